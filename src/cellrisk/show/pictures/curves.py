"""Risk along epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.canvas import Panel, Picture, drawn
from cellrisk.show.pictures.figure_panels import CHANCE, RAW, draw_figure_panel, list_kinds, make_key, title_of_figures
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
ONE_PANEL = "ask for the curve of one sensitive attribute, one measure and one mechanism"

Part = Callable[["Line"], Any]


@dataclass(frozen=True)
class PanelLayout:
    """How lines are divided among panels and colours. Every sensitive attribute has panels of its own."""

    panel: Part
    """Lines with the same value of this share a panel."""
    colour: Part
    """Lines of a panel with the same value of this share a colour."""
    small: bool = True
    """Whether there are many small panels, up to three in a row."""


SPLITS = (
    PanelLayout(lambda line: (), lambda line: (line.measure, line.setting, line.weights), small=False),
    PanelLayout(lambda line: (line.measure,), lambda line: (line.setting, line.weights)),
    PanelLayout(lambda line: (line.setting.name, line.measure), lambda line: (line.setting.delta, line.weights)),
    PanelLayout(lambda line: (line.setting, line.measure), lambda line: (line.weights,)),
)
"""The first of these that puts no more than six lines into a panel is taken."""


@drawn
def draw_curve(curve: RiskCurve, at: float = 1.0, *, inside: bool) -> Picture:
    """The risk along epsilon between its two ends: chance on the left, the raw table's own on the right.

    The title has the risk at the epsilon that is nearest to ``at``. One panel for each sensitive attribute; if that
    would hold more than six lines, one for each measure, and for each mechanism or setting. Line style is the form;
    colour is what else varies within a panel. The figures to decide by are above them, in a column for each mechanism
    and attribute.
    """
    drawing, figures = CurveDrawing(curve, inside), curve.figures
    rows: list[tuple[float, list[Panel | None]]] = []
    for start in range(0, len(figures), 3):
        several = figures[start : start + 3]
        for kind in list_kinds(figures[0]):
            draws = [
                partial(
                    draw_figure_panel, kind=kind, lines=lines, every=figures, inside=inside, left=lines is several[0]
                )
                for lines in several
            ]
            rows.append((1.5 if kind == "ceiling" else 2.1, [*draws]))
    across = max((len(panels) for _, panels in rows), default=0)
    rows = [(height, panels + [None] * (across - len(panels))) for height, panels in rows]
    rows += drawing.rows()
    key = [*(make_key(figures) if figures else ()), *drawing.key()]
    few = not drawing.split.small and len(curve.leading) <= MOST_IN_A_PANEL and len(figures) <= 1
    return Picture(
        [panel for _, panels in rows for panel in panels],
        [height for height, _ in rows],
        columns=[len(panels) for _, panels in rows],
        title=title_of_figures(curve) if figures else _title(curve, at),
        subtitle=_subtitle(curve),
        key=key,
        caption=curve.words.split("\n")[0] if few else "",
        alone=ONE_PANEL,
    )


@dataclass(frozen=True, eq=False)
class CurveDrawing:
    """Draws the lines of one curve. A line has the same colour and style in every panel."""

    curve: RiskCurve
    inside: bool
    """Whether it is drawn into the reader's axes."""

    @cached_property
    def split(self) -> PanelLayout:
        for split in SPLITS:
            lines = [(line.sensitive, *split.panel(line)) for line in self.curve.lines]
            if max((lines.count(key) for key in lines), default=0) <= MOST_IN_A_PANEL:
                return split
        return SPLITS[-1]

    @cached_property
    def colours(self) -> dict[Any, str]:
        keys = list(dict.fromkeys(self.split.colour(line) for line in self.curve.lines))
        if len({key[:-1] for key in keys}) == 1 and (self.split.small or len(keys) > 1):
            return {key: WEIGHT_COLOURS[key[-1]] for key in keys}
        return {key: COLOURS[place % len(COLOURS)] for place, key in enumerate(keys)}

    @cached_property
    def forms(self) -> list[str]:
        return [form for form in FORM_DASHES if any(line.form == form for line in self.curve.lines)]

    def rows(self) -> list[tuple[float, list[Panel | None]]]:
        """The rows of panels with their heights: those of an attribute begin a row of their own if they are small."""
        found: dict[str, dict[Any, list[Line]]] = {}
        for line in self.curve.lines:
            found.setdefault(line.sensitive, {}).setdefault(self.split.panel(line), []).append(line)
        small, groups = self.split.small, [list(panels.values()) for panels in found.values()]
        groups = groups if small else [[panels[0] for panels in groups]] if groups else []
        columns = min(3 if small else 2, max((len(panels) for panels in groups), default=1))
        rows = [panels[start : start + columns] for panels in groups for start in range(0, len(panels), columns)]
        height = 3.0 if len(rows) == columns == 1 else 2.3 if len(rows) == 1 or not small else 1.75
        made: list[tuple[float, list[Panel | None]]] = []
        for number, row in enumerate(rows):
            below = len(rows[number + 1]) if number + 1 < len(rows) else 0
            panels: list[Panel | None] = [
                partial(self.draw, lines=lines, left=place == 0, bottom=place >= below, wide=columns == 1)
                for place, lines in enumerate(row)
            ]
            made.append((height, panels + [None] * (columns - len(row))))
        return made

    def draw(self, axes: Axes, lines: Sequence[Line], left: bool, bottom: bool, wide: bool) -> None:
        """The lines, bands and levels of one panel."""
        groups: dict[Any, dict[str, Line]] = {}
        for line in lines:
            groups.setdefault(self.split.colour(line), {})[line.form] = line
        for key, forms in groups.items():
            colour, tight, exact = self.colours[key], forms.get("tight"), forms.get("exact")
            if tight is not None and exact is not None:
                axes.fill_between(tight.epsilon, tight.risk, exact.risk, color=colour, alpha=0.13, linewidth=0)
            for form, line in forms.items():
                look: dict[str, Any] = {"linestyle": self._dashes(key, form), "marker": "o", "markersize": 3}
                look |= {"clip_on": False} if len(line.epsilon) <= 12 else {"marker": ""}
                width = 1.1 if self.split.small else 1.6
                axes.plot(line.epsilon, line.risk, color=colour, linewidth=width, label=line.name, **look)
        leading = {key: forms[min(forms, key=list(FORM_DASHES).index)] for key, forms in groups.items()}
        raws = {round(line.limits.raw, 6): line.limits.raw for line in lines}
        chances = {round(line.limits.chance, 6): line.limits.chance for line in leading.values()}
        for dashes, levels in ((RAW, raws), (CHANCE, chances)):
            for level in levels.values():
                axes.axhline(level, color=GREY, linewidth=0.7, linestyle=dashes, zorder=1.5)
        if len(groups) == 1 and not self.split.small:
            ((key, line),) = leading.items()
            show_values(axes, line.epsilon, line.risk, self.colours[key])
        self._dress(axes, lines, left, bottom, wide)

    def _dashes(self, key: Any, form: str) -> Any:
        """The form is shown by dashes; if there is one alone, dashes distinguish colours in black and white."""
        return FORM_DASHES[form] if len(self.forms) > 1 else DASHES[list(self.colours).index(key) % len(DASHES)]

    def _dress(self, axes: Axes, lines: Sequence[Line], left: bool, bottom: bool, wide: bool) -> None:
        """Axes and title of a panel; those of one attribute share their scale."""
        every, small, first = self.curve.lines, self.split.small, lines[0]
        same = [line for line in every if line.sensitive == first.sensitive]
        largest = max(max(float(line.risk.max()), line.limits.raw, line.limits.chance) for line in same)
        ends = min(float(line.epsilon[0]) for line in every), max(float(line.epsilon[-1]) for line in every)
        risk_axis(axes, largest, f"risk for {brief(first.sensitive)}" if self.inside else "risk" if left else "")
        words = "epsilon (smaller: more noise, more private)" if wide and not small and not self.inside else "epsilon"
        epsilon_axis(axes, *ends, words if bottom else "")
        axes.tick_params(labelbottom=bottom, labelleft=left or not small)
        if self.inside:
            return
        parts = [brief(first.sensitive, 18 if small else 36)] if _varies(every, lambda line: line.sensitive) else []
        if small:
            axes.tick_params(labelsize=TINY)
            axes.minorticks_off()
            panels = [self.split.panel(line) for line in same]
            if len(panels[0]) > 1 and len({panel[0] for panel in panels}) > 1:
                one = len({line.setting for line in lines}) == 1
                parts.append(first.setting.describe() if one else first.setting.name)
            parts += [first.measure.replace("_", " ")] if _varies(every, lambda line: line.measure) else []
        axes.set_title(", ".join(parts))

    def key(self) -> list[Any]:
        """What colours and line styles mean, and the two ends of the risk."""
        if not self.curve.lines:
            return []
        handles = []
        if len(self.colours) > 1:
            one = len(self.forms) == 1
            for key, colour in self.colours.items():
                handles.append(sample(self._name(key), colour, self._dashes(key, "") if one else "-", 1.8))
        if len(self.forms) > 1:
            handles += [sample(form, INK, FORM_DASHES[form]) for form in self.forms]
        if {"tight", "exact"} <= set(self.forms):
            handles.append(area_sample("between tight and exact", "#CFCFCF"))
        limits = [line.limits for line in self.curve.leading]
        chances, raws = (_span([getattr(each, end) for each in limits]) for end in ("chance", "raw"))
        return [*handles, level_sample(f"chance {chances}", CHANCE), level_sample(f"raw table {raws}", RAW)]

    def _name(self, key: Any) -> str:
        """What distinguishes the lines of one colour from those of the others, in words."""
        words = []
        for place, part in enumerate(key):
            if len({each[place] for each in self.colours if each[place] is not None}) < 2:
                continue
            if place == len(key) - 1:
                words.append(WEIGHT_WORDS[part])
            elif isinstance(part, float):
                words.append(f"delta {part:g}" if part else "no delta")
            else:
                words.append(part.replace("_", " ") if isinstance(part, str) else part.describe())
        return ", ".join(words)


def _varies(lines: Sequence[Line], part: Part) -> bool:
    return len({part(line) for line in lines}) > 1


def _title(curve: RiskCurve, at: float) -> str:
    """The message: the risk at an epsilon that every setting has, the nearest to the one that is asked for."""
    leading = curve.leading
    common = set(leading[0].epsilon.tolist()).intersection(*(line.epsilon.tolist() for line in leading))
    if not common:
        return "Risk along epsilon"
    epsilon = min(common, key=lambda each: abs(float(np.log(each / at))))
    short = len({line.setting.name for line in leading}) == len({line.setting for line in leading})
    several, mixed = (_varies(leading, part) for part in (lambda line: line.sensitive, lambda line: line.setting))
    found = []
    for line in leading:
        who = [line.sensitive] if len(leading) == 1 or several else []
        who += [line.setting.name if short else line.setting.describe()] if mixed else []
        found.append((", ".join(who), line.at(epsilon), line.limits))
    return title_of_risks(epsilon, found, most=4)


def title_of_risks(epsilon: float, found: Sequence[tuple[str, float, Limits]], most: int) -> str:
    """The risk at an epsilon, of whom and between which ends; of several each, or from the least to the greatest."""
    if len(found) == 1:
        ((who, risk, ends),) = found
        return (
            f"At epsilon {claim(epsilon)} the risk for {who} is {percent(risk)} "
            f"(chance {percent(ends.chance)}, raw table {percent(ends.raw)})"
        )
    if len(found) > most:
        least, greatest = (percent(choose(risk for _, risk, _ in found)) for choose in (min, max))
        return f"At epsilon {claim(epsilon)} the risk lies between {least} and {greatest}"
    return f"Risk at epsilon {claim(epsilon)}: {'; '.join(f'{who} {percent(risk)}' for who, risk, _ in found)}"


def _subtitle(curve: RiskCurve) -> str:
    """What all lines have in common, and the table."""
    table, lines = curve.table, curve.lines
    cells = number_of(table.n_cells, "cell")
    if not lines:
        settings = {each.setting.describe() for each in curve.figures}
        noise = f"{settings.pop()} noise; " if len(settings) == 1 else ""
        return f"{noise}{number_of(table.n_records, 'person')} in {cells}"
    first = lines[0]
    parts: list[tuple[Part, str]] = [
        (lambda line: line.measure, f"{first.measure.replace('_', ' ')} risk"),
        (lambda line: line.form, first.form),
        (lambda line: line.weights, WEIGHT_WORDS[first.weights]),
    ]
    mixed = any(_varies(lines, part) for part, _ in parts) and not curve.figures
    parts.append((lambda line: line.setting, first.setting.describe()))
    words = ["risk"] if _varies(lines, parts[0][0]) else []
    words += [word for part, word in parts if not _varies(lines, part)]
    about = f"{', '.join(words)}; {number_of(table.n_records, 'record')} in {cells}"
    return f"{about}. In the title: {curve.leading[0].name}" if mixed else about


def _span(levels: Sequence[float]) -> str:
    """One level, or the lowest and the highest of several."""
    low, high = percent(min(levels)), percent(max(levels))
    return low if low == high else f"{low} to {high}"
