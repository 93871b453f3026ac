"""What attacks reveal: along epsilon, and of 100 people with and without their own record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.canvas import Panel, Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    DASHES,
    GREY,
    INK,
    PALE,
    area_sample,
    brief,
    darker,
    describe_setting,
    epsilon_axis,
    house_style,
    percent_axis,
    risk_axis,
    sample,
    show_values,
    write_beside,
)
from cellrisk.show.wording.attackers import ICONS, count_icons, own_share, share
from cellrisk.show.wording.ceiling import say_most
from cellrisk.system.arrays import Floats
from cellrisk.system.formatting import claim, number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.attackers.figures import AttackTable
    from cellrisk.risk.attackers.settings import SettingFigures
    from cellrisk.risk.curves import RiskCurve
    from cellrisk.risk.figure_lines import FigureLines

POINTS = tuple(float(epsilon) for epsilon in np.geomspace(0.05, 10.0, 47))
"""Epsilons along which attacks are drawn, if none were asked for: 1 is nearly among them."""
STUB = 0.17
"""How far to the right of the lines, as a part of their width, they are drawn without noise."""
MARK_DASHES = (0, (3, 2))
ROW = 10


def draw_attacks(curve: RiskCurve, inside: bool) -> Picture:
    """Return two lines for each setting and attribute: because of their own record, and inferred; then no noise."""
    found = [
        (name, setting, curve.trace_attacks(name, setting, POINTS))
        for setting in curve.settings
        for name in curve.table.sensitive
    ]
    found = [each for each in found if len(each[2]) > 1]
    several = len(found) > 1
    name, setting, figures = found[0]
    nearest = min(figures[:-1], key=lambda each: abs(np.log(each.mechanism.epsilon if each.mechanism else 1.0)))
    epsilon = nearest.mechanism.epsilon if nearest.mechanism else 1.0
    own = f"{own_share(nearest.own, nearest.people)} are revealed because of their own record"
    infer = f"{share(nearest.inferred / nearest.people)} are inferred, and " if nearest.inferred is not None else ""
    title = f"At epsilon {claim(round(epsilon, 2))}, {infer}{own}"
    titles = [f"{brief(name, 18)}, {setting.describe()}" if several else "" for name, setting, _ in found]
    key = [sample("revealed because of their own record, at least", ALARM, "-", 1.8)]
    if nearest.inferred is not None:
        key.append(sample(f"inferred by an attacker who is {100 * nearest.certainty:g}% sure", COLOURS[0], "-", 1.8))
    size = f"{number_of(curve.table.n_records, 'person')} in {number_of(curve.table.n_cells, 'group')}"
    columns = min(2, len(found))
    panels: list[Panel | None] = [
        partial(_draw_attacks, figures=figures, title=text) for (_, _, figures), text in zip(found, titles, strict=True)
    ]
    panels += [None] * (-len(panels) % columns)
    return Picture(
        panels,
        [2.9] * (len(panels) // columns),
        columns=columns,
        title=f"What attacks reveal at epsilon {claim(round(epsilon, 2))} and along epsilon" if several else title,
        subtitle=size if several else f"'{brief(name)}' of {size}; {describe_setting(setting)} noise",
        key=key,
        alone="ask for the curve of one sensitive attribute and one mechanism",
    )


def _draw_attacks(axes: Axes, figures: Sequence[SettingFigures], title: str) -> None:
    """Draw the two lines of one setting, and where they end without noise."""
    noisy, bare, people = figures[:-1], figures[-1], figures[-1].people
    x = np.array([each.mechanism.epsilon for each in noisy if each.mechanism is not None])
    lines = [(np.array([each.own for each in noisy]), bare.own, ALARM)]
    if bare.inferred is not None:
        lines.append((np.array([each.inferred or 0.0 for each in noisy]), bare.inferred, COLOURS[0]))
    largest = max(max(float(line.max()), end) for line, end, _ in lines) / people
    risk_axis(axes, largest, "share of people")
    end = float(x[-1] * (x[-1] / x[0]) ** STUB) if len(x) > 1 else 10.0 * float(x[0])
    epsilon_axis(axes, float(x[0]), float(x[-1]))
    for line, without_noise, colour in lines:
        look: dict[str, Any] = {"marker": "o" if len(x) < 4 else "", "markersize": 3, "gid": f"line-{colour[1:]}"}
        axes.plot(x, line / people, color=colour, linewidth=1.8, **look)
        axes.plot([x[-1], end], [line[-1] / people, without_noise / people], color=colour, linewidth=1.0, linestyle=":")
        axes.plot(end, without_noise / people, "D", color=colour, markersize=5, clip_on=False)
        if not title:
            show_values(axes, x, line / people, darker(colour))
        look = {"ha": "center", "weight": "bold", "color": darker(colour)}
        write_beside(axes, share(without_noise / people), (end, without_noise / people), (0, 6), **look)
    axes.set_xlim(float(x[0]) / 1.05, float(end * (end / x[0]) ** (STUB / 2)))
    axes.annotate("no noise", (end, 0.0), (0, -5), ("data", "axes fraction"), "offset points", ha="center", va="top")
    axes.set_title(title)


@drawn
def draw_icons(table: AttackTable, sensitive: str, setting: str, inside: bool) -> Picture:
    """Draw 100 people, left with their own record left out and right with it, under the attack that reveals most.

    Coloured are those whose value the attack names correctly; in a second colour, those named because of their record.
    """
    attack, anyway, own, words = count_icons(table)
    return Picture(
        [
            partial(_draw_people, counts=(anyway, 0), title="" if inside else "Own record left out"),
            partial(_draw_people, counts=(anyway, own), title="" if inside else "Own record in the table"),
        ],
        [2.4],
        columns=2,
        width=5.4,
        title=f"Of 100 people, {words} {'is' if words == '1' else 'are'} revealed because of their own record",
        subtitle=f"'{brief(sensitive)}' named correctly at {setting}; {attack}",
        key=[
            area_sample(f"from other people's records: {anyway}", COLOURS[0]),
            area_sample(f"because of their own record: {words}", ALARM),
        ],
        alone="draw the icons into a figure of their own",
    )


def _draw_people(axes: Axes, counts: tuple[int, int], title: str) -> None:
    """Draw 100 dots, row by row: revealed anyway, because of their own record, and not revealed."""
    place = np.arange(ICONS)
    colours = np.select([place < counts[0], place < sum(counts)], [COLOURS[0], ALARM], PALE)
    axes.scatter(place % ROW, -(place // ROW), s=62, c=list(colours), linewidths=0)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, loc="center")


def draw_figures(axes: Axes, lines: FigureLines, title: str = "", marked: float | None = None) -> None:
    """Draw the figures of one attribute and setting that were asked for by name, as shares of the people."""
    traces = trace_figures(lines)
    for name, values, colour, dashes in traces:
        (artist,) = axes.plot(lines.epsilon, values, color=colour, linestyle=dashes, linewidth=1.6)
        artist.set_gid(name.split(",")[0].replace(" ", "-"))
        if marked is None:
            colour = darker(colour)
            show_values(axes, lines.epsilon, values, colour)
        else:
            place = lines.place(marked)
            axes.plot(lines.epsilon[place], values[place], "o", color=colour, markersize=5, markeredgecolor="white")
    risk_axis(axes, max(float(values.max()) for _, values, _, _ in traces), "share of people")
    percent_axis(axes.yaxis)
    epsilon_axis(axes, float(lines.epsilon[0]), float(lines.epsilon[-1]), "epsilon")
    if marked is not None:
        axes.axvline(marked, color=INK, linewidth=0.8, linestyle=MARK_DASHES, zorder=1.9)
    axes.set_title(title)


def trace_figures(lines: FigureLines) -> list[tuple[str, Floats, str, object]]:
    """Return each figure along epsilon: what it is, its shares, a colour and dashes."""
    traces: list[tuple[str, Floats, str, object]] = []
    if lines.caused is not None:
        traces.append(("because of their own record", lines.caused.share, ALARM, "-"))
        traces.append(("revealed", lines.caused.exposed_share, GREY, "-"))
    for line, dashes in zip(reversed(lines.certainty), DASHES, strict=False):
        traces.append((f"inferred, {100 * line.certainty:g}% sure", line.right / lines.records, COLOURS[0], dashes))
    if lines.ceiling is not None:
        traces.append(("worst case", lines.ceiling.even_two, COLOURS[2], "-"))
    return traces


def figure_key(lines: FigureLines, place: int | None = None) -> list[object]:
    """Return the entries of the key; with a place, with the shares there."""
    return [
        sample(name if place is None else f"{name} {share(float(values[place]))}", colour, dashes)
        for name, values, colour, dashes in trace_figures(lines)
    ]


def title_of_figures(every: Sequence[FigureLines]) -> str:
    """Return the message: of one attribute and setting, its first figure at the epsilon nearest to 1."""
    if len(every) > 1:
        return "The figures to decide by, along epsilon"
    (lines,) = every
    place = lines.place(1.0)
    name, values, _, _ = trace_figures(lines)[0]
    value = float(values[place])
    shown = f"{say_most(value)}%" if name == "worst case" else share(value)
    return f"At epsilon {claim(float(lines.epsilon[place]))}, {name}: {shown}"


@drawn
def draw_asked(lines: FigureLines, epsilon: float, inside: bool) -> Picture:
    """Draw the figures along epsilon, and a mark where the release is asked for."""
    name = f"What {lines.setting.name} noise leaves of '{brief(lines.sensitive, 30)}' to be revealed"
    return Picture(
        [partial(draw_figures, lines=lines, marked=epsilon)],
        [1.55],
        width=6.6,
        title=name,
        subtitle=f"At epsilon {claim(epsilon)}, marked",
        key=figure_key(lines, lines.place(epsilon)),
        note="",
    )


def mark_asked(figure: Figure, epsilon: float) -> None:
    """Mark the epsilon that is asked for in every panel of a picture along epsilon."""
    with house_style():
        for axes in figure.axes:
            axes.axvline(epsilon, color=GREY, linewidth=0.7, linestyle=MARK_DASHES, zorder=1.5)
            words, at = f"asked for: {claim(epsilon)}", (epsilon, 1.0)
            write_beside(axes, words, at, (3, -3), xycoords=("data", "axes fraction"), va="top")
