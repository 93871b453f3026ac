"""The figures to decide by along epsilon: caused among the exposed, certainty in levels, the ceiling.

They are panels of the picture of a curve; the picture on a report's first page has the epsilon that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    DASHES,
    GREY,
    INK,
    TINY,
    area_sample,
    brief,
    darker,
    epsilon_axis,
    house_style,
    level_sample,
    percent_axis,
    risk_axis,
    sample,
    show_values,
    write_beside,
)
from cellrisk.show.wording.ceiling import say_most
from cellrisk.system.formatting import claim, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.curves import RiskCurve
    from cellrisk.risk.figure_lines import CausedLine, CeilingLine, CertaintyLine, FigureLines

SURE, UNSURE = "#4A2C6D", "#E9E1F1"
"""The darkest level of certainty; lower ones are lighter, towards the second."""
REST = "#D9E6EE"
"""Exposed, and not because of their own record."""
CHANCE, RAW = (0, (4, 2)), (0, (1, 1.5))
"""How the levels of chance and of the raw table are dashed."""
ASKED_WIDTH, ASKED_HEIGHT = 6.6, 1.55
"""Inches: the width of a page, and the panel of the picture on a report's first page."""


def list_kinds(lines: FigureLines) -> list[str]:
    """The panels of one attribute under one mechanism, from the top."""
    asked = {"caused": lines.caused, "certainty": lines.certainty, "ceiling": lines.ceiling}
    return [kind for kind, found in asked.items() if found]


def draw_figure_panel(
    axes: Axes, kind: str, lines: FigureLines, every: Sequence[FigureLines], inside: bool, left: bool
) -> None:
    """One panel. Panels of one kind share the scale of ``every`` attribute and mechanism in the picture."""
    kinds, small = list_kinds(lines), inside or len(every) > 1
    several, mixed = (len({getattr(each, part) for each in every}) > 1 for part in ("sensitive", "setting"))
    ends = min(float(each.epsilon[0]) for each in every), max(float(each.epsilon[-1]) for each in every)
    words = "epsilon" if small else "epsilon (smaller: more noise, more private)"
    bottom = kind == kinds[-1]
    epsilon_axis(axes, *ends, words if bottom else "")
    axes.tick_params(labelbottom=bottom)
    if small:
        axes.tick_params(labelsize=TINY)
        axes.minorticks_off()
    if kind == "caused" and lines.caused is not None:
        largest = max(_largest_exposed(each.caused) for each in every if each.caused is not None)
        what = "value" if several else brief(lines.sensitive, 22)
        risk_axis(axes, largest, f"people whose\n{what} is read off" if left else "")
        _draw_caused(axes, lines, lines.caused, small)
    elif kind == "certainty":
        largest = max(_largest_right(each) for each in every if each.certainty)
        risk_axis(axes, largest, "people named\nrightly, and surely" if left else "")
        _draw_certainty(axes, lines, lines.certainty, small)
    elif lines.ceiling is not None:
        least = min(1 / each.ceiling.labels for each in every if each.ceiling is not None)
        axes.set_ylim(0.45 if least == 0.5 else 0.0, 1.06)
        percent_axis(axes.yaxis)
        axes.set_ylabel("guesses right,\nat most" if left else "")
        axes.grid(axis="y")
        _draw_ceiling(axes, lines, lines.ceiling, small)
    if kind == kinds[0] and not inside:
        parts = [brief(lines.sensitive, 18)] if several else []
        parts += [lines.setting.describe()] if mixed else []
        axes.set_title(", ".join(parts).replace(", delta", ",\ndelta"))


def _largest_exposed(line: CausedLine) -> float:
    ends = line.exposed_limits.chance, line.exposed_limits.raw, line.limits.raw
    return max(float(line.exposed_share.max()), float(line.share.max()), *ends)


def _largest_right(lines: FigureLines) -> float:
    return max(max(float(line.right.max()), line.raw.right) for line in lines.certainty) / lines.records


def _draw_caused(axes: Axes, lines: FigureLines, line: CausedLine, small: bool) -> None:
    """People exposed, split into those whose own record is the reason and the rest."""
    x, caused, exposed = lines.epsilon, line.share, line.exposed_share
    axes.fill_between(x, caused, exposed, color=REST, linewidth=0)
    axes.fill_between(x, 0.0, caused, color=ALARM, linewidth=0)
    for share, colour in ((exposed, COLOURS[0]), (caused, darker(ALARM))):
        _draw_line(axes, x, share, colour, small)
    axes.axhline(line.exposed_limits.chance, color=GREY, linewidth=0.8, linestyle=CHANCE, zorder=1.8)
    axes.axhline(line.exposed_limits.raw, color=GREY, linewidth=0.8, linestyle=RAW, zorder=1.8)
    if not small:
        show_values(axes, x, caused, darker(ALARM))
        show_values(axes, x, exposed, COLOURS[0])


def _draw_line(axes: Axes, x: Any, y: Any, colour: str, small: bool, dashes: Any = "-") -> None:
    marker = "o" if len(x) <= 12 else ""
    axes.plot(x, y, color=colour, linestyle=dashes, linewidth=1.1 if small else 1.6, marker=marker, markersize=3)


def _draw_certainty(axes: Axes, lines: FigureLines, levels: Sequence[CertaintyLine], small: bool) -> None:
    """People named rightly with each certainty or more: filled from the lowest certainty to the highest."""
    x = lines.epsilon
    for line, colour in zip(levels, _shades(len(levels)), strict=True):
        share = line.right / lines.records
        axes.fill_between(x, 0.0, share, color=colour, linewidth=0)
        axes.plot(x, share, color="white", linewidth=0.8)
        _draw_line(axes, x, share, SURE, small or len(levels) > 1)
    if not small:
        show_values(axes, x, levels[-1].right / lines.records, INK)


def _draw_ceiling(axes: Axes, lines: FigureLines, line: CeilingLine, small: bool) -> None:
    """The worst case, between two values that are equally likely and among all of them."""
    x = lines.epsilon
    axes.axhline(0.5, color=GREY, linewidth=0.6, zorder=1.5)
    _draw_line(axes, x, line.even_two, COLOURS[2], small)
    if line.labels > 2:
        axes.axhline(1 / line.labels, color=GREY, linewidth=0.6, zorder=1.5)
        _draw_line(axes, x, line.even, COLOURS[2], small, DASHES[1])
    axes.fill_between(x, 0.5, line.even_two, color=COLOURS[2], alpha=0.13, linewidth=0)
    if not small:
        show_values(axes, x, line.even_two, COLOURS[2], lambda place: f"{say_most(float(line.even_two[place]))}%")


def _shades(many: int) -> list[str]:
    """Colours of levels of certainty, from light to dark: apart in black and white too."""
    from matplotlib.colors import to_hex, to_rgb

    def mix(part: float) -> str:
        red, green, blue = (a + (b - a) * part for a, b in zip(to_rgb(UNSURE), to_rgb(SURE), strict=True))
        return to_hex((red, green, blue))

    return [mix(0.3)] if many == 1 else [mix(place / many) for place in range(many)]


def make_key(figures: Sequence[FigureLines]) -> list[Any]:
    """The entries of the key: areas and lines; levels with their numbers if there is one attribute and mechanism."""
    first, alone = figures[0], len(figures) == 1
    key = []
    if first.caused is not None:
        ends = first.caused.exposed_limits
        key += [area_sample("because of their own record", ALARM), area_sample("exposed anyway", REST)]
        key.append(level_sample(f"chance {percent(ends.chance)}" if alone else "chance", CHANCE))
        key.append(level_sample(f"raw table {percent(ends.raw)}" if alone else "raw table", RAW))
    shades = _shades(len(first.certainty)) if first.certainty else []
    for line, colour in zip(first.certainty, shades, strict=True):
        raw = f" (raw {percent(line.raw.right / first.records)})" if alone else " and right"
        key.append(area_sample(f"{100 * line.certainty:g}% sure{raw}", colour))
    if first.ceiling is not None and first.ceiling.labels > 2:
        key.append(sample("two equally likely values", COLOURS[2], "-"))
        key.append(sample(f"all {first.ceiling.labels:,} equally likely", COLOURS[2], DASHES[1]))
    return key


def title_of_figures(curve: RiskCurve) -> str:
    """The message: of one attribute and mechanism, its first figure at the epsilon nearest to 1."""
    if len(curve.figures) > 1:
        return "The figures to decide by, along epsilon"
    (lines,) = curve.figures
    place = lines.place(1.0)
    at = f"At epsilon {claim(float(lines.epsilon[place]))}, "
    if lines.caused is not None:
        point = lines.caused.points[place]
        exposed = percent(point.exposed / point.records)
        return f"{at}{percent(point.share)} are given away because of their own record, of {exposed} exposed"
    if lines.certainty:
        line = lines.certainty[-1]
        share = percent(line.points[place].right / lines.records)
        return f"{at}{share} of people are named rightly with {100 * line.certainty:g}% certainty"
    level = "" if lines.ceiling is None else say_most(float(lines.ceiling.even_two[place]))
    return f"{at}worst case {level}%: knows every other record, finds two values equally likely"


@drawn
def draw_asked(lines: FigureLines, epsilon: float, inside: bool) -> Picture:
    """Two areas and a line, and a mark where the release is asked for."""
    if lines.caused is None:
        raise ValueError("the line of caused people was not asked for")
    caused, exposed = lines.caused.share, lines.caused.exposed_share
    shown = {"exposed": (exposed, COLOURS[0]), "because of own record": (caused, darker(ALARM))}
    if lines.certainty:
        level = lines.certainty[-1]
        shown[f"named, {100 * level.certainty:g}% sure"] = (level.right / lines.records, SURE)
    place, chance = lines.place(epsilon), lines.caused.exposed_limits.chance

    def draw(axes: Axes) -> None:
        x = lines.epsilon
        axes.fill_between(x, caused, exposed, color=REST, linewidth=0)
        axes.fill_between(x, 0.0, caused, color=ALARM, linewidth=0, alpha=0.85)
        for name, (share, colour) in shown.items():
            (artist,) = axes.plot(x, share, color=colour, linewidth=1.7)
            artist.set_gid(name.split()[0].strip(","))
            axes.plot(x[place], share[place], "o", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        axes.axvline(epsilon, color=INK, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1.9)
        axes.axhline(chance, color=GREY, linewidth=0.7, linestyle=CHANCE, zorder=1.8)
        risk_axis(axes, max(float(share.max()) for share, _ in shown.values()), "share of people")
        epsilon_axis(axes, float(x[0]), float(x[-1]))

    return Picture(
        [draw],
        [ASKED_HEIGHT],
        width=ASKED_WIDTH,
        title=f"What {lines.setting.name} noise leaves of {brief(lines.sensitive, 30)} to be given away",
        subtitle=f"At epsilon {claim(epsilon)}, marked. Exposed by chance alone: {percent(chance)}",
        key=[sample(f"{name} {percent(float(share[place]))}", colour, "-") for name, (share, colour) in shown.items()],
        note="",
    )


def mark_asked(figure: Figure, epsilon: float) -> None:
    """Marks the epsilon that is asked for in every panel of a picture along epsilon."""
    with house_style():
        for axes in figure.axes:
            axes.axvline(epsilon, color=GREY, linewidth=0.7, linestyle=(0, (3, 2)), zorder=1.5)
            words, at = f"asked for: {claim(epsilon)}", (epsilon, 1.0)
            write_beside(axes, words, at, (3, -3), xycoords=("data", "axes fraction"), va="top")
