"""Risk along epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.attackers import draw_attacks, draw_figures, figure_key, title_of_figures
from cellrisk.show.pictures.canvas import Panel, Picture, drawn
from cellrisk.show.pictures.style import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    TINY,
    WEIGHT_COLOURS,
    WEIGHT_WORDS,
    area_sample,
    brief,
    epsilon_axis,
    level_sample,
    risk_axis,
    sample,
    show_values,
)
from cellrisk.system.formatting import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.curves import Line, RiskCurve
    from cellrisk.risk.sweep import Limits

MOST_IN_A_PANEL = 6
FORM_DASHES = {"tight": DASHES[0], "exact": DASHES[1], "published": DASHES[2]}
"""The preferred form first."""
BLIND, BARE = (0, (4, 2)), (0, (1, 1.5))
"""How the levels of blind noise and of no noise are dashed."""
ONE_PANEL = "ask for the curve of one sensitive attribute, one measure and one mechanism"

Groups = dict[tuple[Any, ...], list["Line"]]


@drawn
def draw_curve(curve: RiskCurve, at: float = 1.0, *, inside: bool) -> Picture:
    """What attacks reveal along epsilon; or the measures and figures that were named, between their two ends.

    Of named measures the title has the risk at the epsilon nearest to ``at``. One panel for each sensitive attribute;
    if it would hold more than six lines, one for each measure and mechanism. Line style is the form, colour the rest.
    """
    if not curve.named:
        return draw_attacks(curve, inside)
    panels, several = _group(curve.lines), len(curve.figures) > 1
    draws: list[Panel] = [
        partial(draw_figures, lines=lines, title=f"{brief(lines.sensitive, 18)}, {lines.setting.describe()}" * several)
        for lines in curve.figures
    ]
    colours = _choose_colours(curve.lines)
    draws += [
        partial(_draw, lines=lines, curve=curve, colours=colours, title="" if inside or len(panels) == 1 else title)
        for title, lines in zip(_name_panels(panels), panels.values(), strict=True)
    ]
    columns = min(3 if len(draws) > 4 else 2, len(draws))
    rows = -(-len(draws) // columns)
    return Picture(
        [*draws, *[None] * (rows * columns - len(draws))],
        [3.0 if rows == columns == 1 else 2.1] * rows,
        columns=columns,
        title=title_of_figures(curve.figures) if curve.figures else _title(curve, at),
        subtitle=_subtitle(curve),
        key=[*(figure_key(curve.figures[0]) if curve.figures else ()), *_key(curve, colours)],
        caption=curve.words.split("\n")[0] if len(draws) == 1 else "",
        alone=ONE_PANEL,
    )


def _group(lines: Sequence[Line]) -> Groups:
    """Return the lines of each panel, by attribute, and beyond six lines by mechanism and measure."""
    few = max((sum(line.sensitive == name for line in lines) for name in {line.sensitive for line in lines}), default=0)
    groups: Groups = {}
    for line in lines:
        key = (line.sensitive,) if few <= MOST_IN_A_PANEL else (line.sensitive, line.setting, line.measure)
        groups.setdefault(key, []).append(line)
    return groups


def _name_panels(groups: Groups) -> list[str]:
    """Return what distinguishes each panel from the others, in words."""
    titles = []
    for key in groups:
        parts = [part for place, part in enumerate(key) if len({other[place] for other in groups}) > 1]
        words = (part if isinstance(part, str) else part.describe() for part in parts)
        titles.append(", ".join(brief(word.replace("_", " "), 24) for word in words))
    return titles


def _choose_colours(lines: Sequence[Line]) -> dict[tuple[Any, ...], str]:
    """Return a colour for each measure, setting and weighting that share a panel."""
    keys = list(dict.fromkeys(_colour_key(line, lines) for line in lines))
    if len({key[:-1] for key in keys}) == 1 and len(keys) > 1:
        return {key: WEIGHT_COLOURS[key[-1]] for key in keys}
    return {key: COLOURS[place % len(COLOURS)] for place, key in enumerate(keys)}


def _colour_key(line: Line, lines: Sequence[Line]) -> tuple[Any, ...]:
    apart = len(next(iter(_group(lines)))) > 1
    return (line.weights,) if apart else (line.measure, line.setting, line.weights)


def _draw(axes: Axes, lines: Sequence[Line], curve: RiskCurve, colours: dict[tuple[Any, ...], str], title: str) -> None:
    """Draw the lines, bands and levels of one panel."""
    groups: dict[tuple[Any, ...], dict[str, Line]] = {}
    for line in lines:
        groups.setdefault(_colour_key(line, curve.lines), {})[line.form] = line
    forms = {line.form for line in curve.lines}
    for key, by_form in groups.items():
        colour, tight, exact = colours[key], by_form.get("tight"), by_form.get("exact")
        if tight is not None and exact is not None:
            axes.fill_between(tight.epsilon, tight.risk, exact.risk, color=colour, alpha=0.13, linewidth=0)
        for form, line in by_form.items():
            dashes = FORM_DASHES[form] if len(forms) > 1 else DASHES[list(colours).index(key) % len(DASHES)]
            look: dict[str, Any] = {"linestyle": dashes, "color": colour, "label": line.name, "markersize": 3}
            axes.plot(line.epsilon, line.risk, linewidth=1.5, marker="o" if len(line.epsilon) <= 12 else "", **look)
    for dashes, end in ((BARE, "raw"), (BLIND, "chance")):
        for level in {round(getattr(line.limits, end), 9) for line in lines}:
            axes.axhline(level, color=GREY, linewidth=0.7, linestyle=dashes, zorder=1.5)
    if len(groups) == 1:
        ((key, by_form),) = groups.items()
        line = by_form[min(by_form, key=list(FORM_DASHES).index)]
        show_values(axes, line.epsilon, line.risk, colours[key])
    same = [line for line in curve.lines if line.sensitive == lines[0].sensitive]
    largest = max(max(float(line.risk.max()), line.limits.raw, line.limits.chance) for line in same)
    risk_axis(axes, largest, f"risk for {brief(lines[0].sensitive)}")
    every = curve.lines
    epsilon_axis(axes, min(float(line.epsilon[0]) for line in every), max(float(line.epsilon[-1]) for line in every))
    if title:
        axes.tick_params(labelsize=TINY)
        axes.set_xlabel("epsilon")
        axes.set_title(title)


def _key(curve: RiskCurve, colours: dict[tuple[Any, ...], str]) -> list[Any]:
    """Return what colours and line styles mean, and the two ends of the risk."""
    if not curve.lines:
        return []
    forms = [form for form in FORM_DASHES if any(line.form == form for line in curve.lines)]
    handles = []
    for place, (key, colour) in enumerate(colours.items() if len(colours) > 1 else ()):
        handles.append(
            sample(_name_colour(key, list(colours)), colour, DASHES[place % 6] if len(forms) == 1 else "-", 1.8)
        )
    if len(forms) > 1:
        handles += [sample(form, INK, FORM_DASHES[form]) for form in forms]
    if {"tight", "exact"} <= set(forms):
        handles.append(area_sample("between tight and exact", "#CFCFCF"))
    limits = [line.limits for line in curve.leading]
    blind, bare = (_span([getattr(each, end) for each in limits]) for end in ("chance", "raw"))
    return [*handles, level_sample(f"blind {blind}", BLIND), level_sample(f"no noise {bare}", BARE)]


def _name_colour(key: tuple[Any, ...], keys: Sequence[tuple[Any, ...]]) -> str:
    """Return what distinguishes the lines of one colour from those of the others, in words."""
    words = []
    for place, part in enumerate(key):
        if len({other[place] for other in keys if other[place] is not None}) < 2:
            continue
        if place == len(key) - 1:
            words.append(WEIGHT_WORDS[part])
        else:
            words.append(part.replace("_", " ") if isinstance(part, str) else part.describe())
    return ", ".join(words) or WEIGHT_WORDS[key[-1]]


def _title(curve: RiskCurve, at: float) -> str:
    """Return the message: the risk at an epsilon that every setting has, the nearest to the one that is asked for."""
    leading = curve.leading
    common = set(leading[0].epsilon.tolist()).intersection(*(line.epsilon.tolist() for line in leading))
    if not common:
        return "Risk along epsilon"
    epsilon = min(common, key=lambda each: abs(float(np.log(each / at))))
    settings = {line.setting for line in leading}
    names = [
        f"{line.sensitive}, {line.setting.describe()}" if len(settings) > 1 else line.sensitive for line in leading
    ]
    found = [(name, line.at(epsilon), line.limits) for name, line in zip(names, leading, strict=True)]
    return title_of_risks(epsilon, found, most=4)


def title_of_risks(epsilon: float, found: Sequence[tuple[str, float, Limits]], most: int) -> str:
    """Return the risk at an epsilon, of whom and between which ends; of several each, or from least to greatest."""
    if len(found) == 1:
        ((who, risk, ends),) = found
        return (
            f"At epsilon {claim(epsilon)} the risk for {who} is {percent(risk)} "
            f"(blind {percent(ends.chance)}, no noise {percent(ends.raw)})"
        )
    if len(found) > most:
        least, greatest = (percent(choose(risk for _, risk, _ in found)) for choose in (min, max))
        return f"At epsilon {claim(epsilon)} the risk lies between {least} and {greatest}"
    return f"Risk at epsilon {claim(epsilon)}: {'; '.join(f'{who} {percent(risk)}' for who, risk, _ in found)}"


def _subtitle(curve: RiskCurve) -> str:
    """Return what the leading line measures, and the table."""
    about = f"{number_of(curve.table.n_records, 'person')} in {number_of(curve.table.n_cells, 'group')}"
    if not curve.lines:
        return f"{', '.join(dict.fromkeys(each.setting.describe() for each in curve.figures))} noise; {about}"
    return f"{about}. In the title: {curve.leading[0].name}, {curve.leading[0].setting.describe()}"


def _span(levels: Sequence[float]) -> str:
    """Return one level, or the lowest and the highest of several."""
    low, high = percent(min(levels)), percent(max(levels))
    return low if low == high else f"{low} to {high}"
