"""The figures to decide by along epsilon: caused among the exposed, certainty in levels, the ceiling.

They are panels of the picture of a curve; the picture on a report's first page has the epsilon that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.labels import Label, Path, Rectangle, label_right, place_labels, spread_right, write_beside
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    GREY,
    INK,
    SMALL,
    TINY,
    brief,
    darker,
    epsilon_axis,
    finish,
    house_style,
    percent_axis,
    risk_axis,
    start_figure,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.text import claim, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.curves import RiskCurve
    from cellrisk.risk.figure_lines import CausedLine, CeilingLine, CertaintyLine, FigureLines

SHOWN = (0.1, 1.0, 10.0)
"""Epsilons at which a line shows its value."""
SURE, UNSURE = "#4A2C6D", "#E9E1F1"
"""The darkest level of certainty; lower ones are lighter, towards the second."""
REST = "#D9E6EE"
"""Exposed, and not because of their own record."""
ASKED_WIDTH, ASKED_HEIGHT = 6.6, 1.55
"""Inches: the width of a page, and the panel of the picture on a report's first page."""

Finish = Callable[[], None]
"""Writes the labels of a panel, once the layout is fixed."""


def list_kinds(lines: FigureLines) -> list[str]:
    """The panels of one attribute under one mechanism, from the top."""
    asked = {"caused": lines.caused, "certainty": lines.certainty, "ceiling": lines.ceiling}
    return [kind for kind, found in asked.items() if found]


def draw_figure_panel(
    axes: Axes, kind: str, lines: FigureLines, every: Sequence[FigureLines], *, small: bool, left: bool, bottom: bool
) -> Finish:
    """One panel. Panels of one kind share the scale of ``every`` attribute and mechanism in the picture."""
    ends = min(float(each.epsilon[0]) for each in every), max(float(each.epsilon[-1]) for each in every)
    words = "epsilon" if small else "epsilon (smaller: more noise, more private)"
    epsilon_axis(axes, *ends, words if bottom else "")
    axes.tick_params(labelbottom=bottom)
    if small:
        axes.tick_params(labelsize=TINY)
        axes.minorticks_off()
    if kind == "caused" and lines.caused is not None:
        largest = max(_largest_exposed(each.caused) for each in every if each.caused is not None)
        several = len({each.sensitive for each in every}) > 1
        what = "value" if several else brief(lines.sensitive, 22)
        risk_axis(axes, largest, f"people whose\n{what} is read off" if left else "")
        return _draw_caused(axes, lines, lines.caused, small)
    if kind == "certainty":
        largest = max(_largest_right(each) for each in every if each.certainty)
        risk_axis(axes, largest, "people named\nrightly, and surely" if left else "")
        return _draw_certainty(axes, lines, lines.certainty, small)
    if lines.ceiling is None:
        raise ValueError(kind)
    least = min(1 / each.ceiling.labels for each in every if each.ceiling is not None)
    axes.set_ylim(0.45 if least == 0.5 else 0.0, 1.06)
    percent_axis(axes.yaxis)
    axes.set_ylabel("guesses right,\nat most" if left else "")
    axes.grid(axis="y")
    return _draw_ceiling(axes, lines, lines.ceiling, small)


def _largest_exposed(line: CausedLine) -> float:
    ends = line.exposed_limits.chance, line.exposed_limits.raw, line.limits.raw
    return max(float(line.exposed_share.max()), float(line.share.max()), *ends)


def _largest_right(lines: FigureLines) -> float:
    return max(max(float(line.right.max()), line.raw.right) for line in lines.certainty) / lines.records


def _draw_caused(axes: Axes, lines: FigureLines, line: CausedLine, small: bool) -> Finish:
    """People exposed, split into those whose own record is the reason and the rest."""
    x, caused, exposed = lines.epsilon, line.share, line.exposed_share
    axes.fill_between(x, caused, exposed, color=REST, linewidth=0)
    axes.fill_between(x, 0.0, caused, color=ALARM, linewidth=0)
    marker = "o" if len(x) <= 12 else ""
    for share, colour in ((exposed, COLOURS[0]), (caused, darker(ALARM))):
        axes.plot(x, share, color=colour, linewidth=1.1 if small else 1.6, marker=marker, markersize=3)
    chance, raw = line.exposed_limits.chance, line.exposed_limits.raw
    axes.axhline(chance, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.8)
    axes.axhline(raw, color=GREY, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1.8)
    right, values = [], []
    if not small:
        right = label_right(axes, [(raw, f"raw table {percent(raw)}", GREY)])
        values = _values(axes, x, caused, darker(ALARM), name="because of their own record")
        values += _values(axes, x, exposed, COLOURS[0], name="exposed")

    def write() -> None:
        spread_right(axes, right)
        drawn: list[Path] = [(x, caused), (x, exposed)]
        ends = np.array(axes.get_xlim())
        faint: list[Path] = [(ends, np.array([level, level])) for level in (chance, raw)]
        taken = place_labels(axes, values, drawn, (), faint) or []
        size = TINY if small else SMALL
        levels = [Label(f"chance {percent(chance)}", ends, np.array([chance, chance]), INK, 0.0, size=size, must=True)]
        if small:
            top = Label(f"raw {percent(raw)}", ends, np.array([raw, raw]), GREY, 1.0, size=size, must=True)
            levels.append(top)
        taken = place_labels(axes, levels, drawn, taken, faint) or taken
        if small or len(x) == 1:
            return
        level = float(axes.transData.transform((ends[0], chance))[1])
        frame = axes.get_window_extent()
        taken = [*taken, (frame.x0, level - 1.5, frame.x1, level + 1.5)]
        areas = (
            (np.zeros(len(x)), caused, ("because of their own record", "own record"), "white", ALARM),
            (caused, exposed, ("exposed anyway",), darker(COLOURS[0]), REST),
        )
        missing = []
        for low, high, names, colour, fill in areas:
            box = _write_inside(axes, x, low, high, names, colour, size, taken)
            taken = taken if box is None else [*taken, box]
            missing += [_area(names[0], fill)] if box is None else []
        if missing:
            axes.legend(handles=missing, loc="best", fontsize=TINY, handlelength=1.2).set_in_layout(False)

    return write


def _draw_certainty(axes: Axes, lines: FigureLines, levels: Sequence[CertaintyLine], small: bool) -> Finish:
    """People named rightly with each certainty or more: filled from the lowest certainty to the highest."""
    x = lines.epsilon
    colours = _shades(len(levels))
    marker = "o" if len(x) <= 12 else ""
    for line, colour in zip(levels, colours, strict=True):
        share = line.right / lines.records
        axes.fill_between(x, 0.0, share, color=colour, linewidth=0)
        axes.plot(x, share, color="white", linewidth=0.8)
        axes.plot(x, share, color=SURE, linewidth=0.7 if len(levels) > 1 else 1.4, marker=marker, markersize=3)
    ends = [(line.raw.right / lines.records, f"{100 * line.certainty:g}% sure") for line in levels]
    words = [(level, f"{sure} (raw {percent(level)})", SURE) for level, sure in ends]
    right = [] if small else label_right(axes, words)
    last = levels[-1].right / lines.records
    values = [] if small else [replace(each, must=True) for each in _values(axes, x, last, INK)]

    def write() -> None:
        spread_right(axes, right)
        drawn: list[Path] = [(x, line.right / lines.records) for line in levels]
        place_labels(axes, values, drawn)

    return write


def _draw_ceiling(axes: Axes, lines: FigureLines, line: CeilingLine, small: bool) -> Finish:
    """The worst case, between two values that are equally likely and among all of them."""
    x = lines.epsilon
    marker = "o" if len(x) <= 12 else ""
    drawn: list[Path] = []
    kinds: list[tuple[str, Floats, float, Any]] = [("two equally likely values", line.even_two, 0.5, "-")]
    if line.labels > 2:
        kinds.append((f"all {line.labels:,} equally likely", line.even, 1 / line.labels, (0, (5, 1.6))))
    for _, values, start, dashes in kinds:
        axes.axhline(start, color=GREY, linewidth=0.6, zorder=1.5)
        axes.plot(
            x, values, color=COLOURS[2], linestyle=dashes, linewidth=1.1 if small else 1.6, marker=marker, markersize=3
        )
        drawn.append((x, values))
    axes.fill_between(x, 0.5, line.even_two, color=COLOURS[2], alpha=0.13, linewidth=0)

    def tell(place: int) -> str:
        return f"{line.times(place)}%"

    shown = [] if small else _values(axes, x, line.even_two, darker(COLOURS[2]), tell)

    def write() -> None:
        ends = np.array(axes.get_xlim())
        size = TINY if small else SMALL
        faint: list[Path] = [(ends, np.array([start, start])) for _, _, start, _ in kinds]
        names = [
            Label(name, x, values, darker(COLOURS[2]), size=size) for name, values, _, _ in kinds if len(kinds) > 1
        ]
        taken = place_labels(axes, shown, drawn, (), faint) or []
        without = "by a coin" if len(kinds) == 1 else "without the table"
        levels = [Label(f"{without} 50%", ends, np.array([0.5, 0.5]), GREY, 0.0, size=size, must=True)]
        taken = place_labels(axes, levels, drawn, taken, faint) or taken
        place_labels(axes, names, drawn, taken, faint)

    return write


def _values(
    axes: Axes, x: Floats, y: Floats, colour: Any, tell: Callable[[int], str] | None = None, name: str = ""
) -> list[Label]:
    """Marks on a line, and labels of their heights, at the epsilons that people ask about; or of the only point."""
    words = tell or (lambda place: percent(float(y[place])))
    if len(x) == 1:
        return [Label(f"{words(0)} {name}".strip(), x, y, darker(colour), at=float(x[0]), weight="bold")]
    labels = []
    for place in find_shown(x):
        if x[0] < x[place] < x[-1]:
            at = float(x[place])
            axes.plot(at, y[place], "o", color=colour, markersize=4.2, zorder=4, markeredgecolor="white")
            labels.append(Label(words(place), x, y, darker(colour), at=at, weight="bold"))
    return labels


def find_shown(x: Floats) -> Iterator[int]:
    """Where a line has the epsilons that people ask about."""
    for epsilon in SHOWN:
        place = int(np.argmin(np.abs(np.log(x / epsilon))))
        if abs(x[place] / epsilon - 1) < 0.01:
            yield place


def _shades(many: int) -> list[str]:
    """Colours of levels of certainty, from light to dark: apart in black and white too."""
    from matplotlib.colors import to_hex, to_rgb

    def mix(part: float) -> str:
        red, green, blue = (a + (b - a) * part for a, b in zip(to_rgb(UNSURE), to_rgb(SURE), strict=True))
        return to_hex((red, green, blue))

    return [mix(0.3)] if many == 1 else [mix(place / many) for place in range(many)]


def _write_inside(
    axes: Axes,
    x: Floats,
    low: Floats,
    high: Floats,
    names: Sequence[str],
    colour: Any,
    size: float,
    taken: Sequence[Rectangle],
) -> Rectangle | None:
    """Writes the first of the names that fits into the area between two lines, where there is most room."""
    lower, upper = (axes.transData.transform(np.column_stack([x, each])) for each in (low, high))
    frame = axes.get_window_extent()
    for name in names:
        text = axes.text(0.0, 0.0, name, size=size, color=colour, ha="center", va="center", weight="bold")
        text.set_in_layout(False)
        extent = text.get_window_extent()
        wide, tall = extent.width + 6, extent.height + 3
        best: tuple[float, float, float] | None = None
        for middle in np.linspace(frame.x0 + wide / 2, frame.x1 - wide / 2, 121):
            across = middle + np.linspace(-0.5, 0.5, 15) * wide
            floor, top = np.interp(across, *lower.T).max(), np.interp(across, *upper.T).min()
            for share in (0.5, 0.35, 0.65, 0.2, 0.8):
                centre = floor + tall / 2 + share * (top - floor - tall)
                box = middle - wide / 2, centre - tall / 2, middle + wide / 2, centre + tall / 2
                free = all(box[2] < a or c < box[0] or box[3] < b or d < box[1] for a, b, c, d in taken)
                if top - floor >= tall and free and (best is None or top - floor > best[0] + 0.5):
                    best = float(top - floor), float(middle), float(centre)
        if best is not None:
            text.set_transform(axes.transAxes)
            text.set_position(tuple(axes.transAxes.inverted().transform(best[1:])))
            return best[1] - wide / 2, best[2] - tall / 2, best[1] + wide / 2, best[2] + tall / 2
        text.remove()
    return None


def make_key(figures: Sequence[FigureLines]) -> list[Any]:
    """The entries of a key for small panels, whose areas are not named inside."""
    first = figures[0]
    found = []
    if first.caused is not None:
        found += [_area("because of their own record", ALARM), _area("exposed anyway", REST)]
    shades = _shades(len(first.certainty)) if first.certainty else []
    found += [
        _area(f"{100 * line.certainty:g}% sure and right", colour)
        for line, colour in zip(first.certainty, shades, strict=True)
    ]
    return found


def _area(words: str, colour: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor=GREY, linewidth=0.4, label=words)


def title_of_figures(curve: RiskCurve) -> str:
    """The message: the figures at an epsilon near 1 that every mechanism has."""
    figures = curve.figures
    common = set(figures[0].epsilon.tolist()).intersection(*(each.epsilon.tolist() for each in figures))
    if not common or len(figures) > 4:
        return "The figures to decide by, along epsilon"
    epsilon = min(common, key=lambda each: abs(float(np.log(each))))
    if len(figures) == 1:
        return f"At epsilon {claim(epsilon)}, {_tell(figures[0], figures[0].place(epsilon), short=False)}"
    several, mixed = (len({getattr(each, part) for each in figures}) > 1 for part in ("sensitive", "setting"))
    told = []
    for each in figures:
        who = [*([each.sensitive] if several else []), *([each.setting.describe()] if mixed else [])]
        told.append(f"{', '.join(who)} {_tell(each, each.place(epsilon), short=True)}")
    return f"{_subject(figures[0])} at epsilon {claim(epsilon)}: {'; '.join(told)}"


def _subject(lines: FigureLines) -> str:
    if lines.caused is not None:
        return "Given away because of their own record"
    return "Named rightly, and surely" if lines.certainty else "Ceiling"


def _tell(lines: FigureLines, place: int, short: bool) -> str:
    if lines.caused is not None:
        point = lines.caused.points[place]
        if short:
            return percent(point.share)
        exposed = percent(point.exposed / point.records)
        return f"{percent(point.share)} are given away because of their own record, of {exposed} exposed"
    if lines.certainty:
        line = lines.certainty[-1]
        share = percent(line.points[place].right / lines.records)
        return share if short else f"{share} of people are named rightly with {100 * line.certainty:g}% certainty"
    if lines.ceiling is None:
        raise ValueError("no figure")
    level = f"{lines.ceiling.times(place)}%"
    return level if short else f"worst case {level}: knows every other record, finds two values equally likely"


def draw_asked(lines: FigureLines, epsilon: float) -> Figure:
    """Two areas and a line, named at their right ends, and a mark where the release is asked for."""
    if lines.caused is None:
        raise ValueError("the line of caused people was not asked for")
    x, caused, exposed = lines.epsilon, lines.caused.share, lines.caused.exposed_share
    shown = {"exposed": (exposed, COLOURS[0]), "because of own record": (caused, darker(ALARM))}
    if lines.certainty:
        level = lines.certainty[-1]
        shown[f"named, {100 * level.certainty:g}% sure"] = (level.right / lines.records, SURE)
    place = lines.place(epsilon)
    with house_style():
        figure = start_figure(ASKED_HEIGHT, ASKED_WIDTH)
        axes = figure.subplots()
        axes.fill_between(x, caused, exposed, color=REST, linewidth=0)
        axes.fill_between(x, 0.0, caused, color=ALARM, linewidth=0, alpha=0.85)
        for name, (share, colour) in shown.items():
            (artist,) = axes.plot(x, share, color=colour, linewidth=1.7)
            artist.set_gid(name.split()[0].strip(","))
            axes.plot(x[place], share[place], "o", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        axes.axvline(epsilon, color=INK, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1.9)
        chance = lines.caused.exposed_limits.chance
        axes.axhline(chance, color=GREY, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1.8)
        risk_axis(axes, max(float(share.max()) for share, _ in shown.values()), "share of people")
        epsilon_axis(axes, float(x[0]), float(x[-1]))
        ends = [
            (float(share[-1]), f"{name} {percent(float(share[-1]))}", darker(c)) for name, (share, c) in shown.items()
        ]
        texts = label_right(axes, ends)
        told = ", ".join(f"{name} {percent(float(share[place]))}" for name, (share, _) in shown.items())
        finish(
            figure,
            title=f"What {lines.setting.name} noise leaves of {brief(lines.sensitive, 30)} to be given away",
            subtitle=f"At epsilon {claim(epsilon)}, marked: {told}. Exposed by chance alone: {percent(chance)}",
            note="",
        )
        spread_right(axes, texts)
        return figure


def mark_asked(figure: Figure, epsilon: float) -> None:
    """Marks the epsilon that is asked for in every panel of a picture along epsilon."""
    with house_style():
        for axes in figure.axes:
            axes.axvline(epsilon, color=GREY, linewidth=0.7, linestyle=(0, (3, 2)), zorder=1.5)
            words, at = f"asked for: {claim(epsilon)}", (epsilon, 1.0)
            write_beside(axes, words, at, (3, -3), xycoords=("data", "axes fraction"), va="top")
