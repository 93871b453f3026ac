"""The picture of a report's first page: exposed, caused and sure along epsilon, with the one that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellrisk.show.pictures.figure_panels import REST, SURE
from cellrisk.show.pictures.labels import label_right, spread_right, write_beside
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    GREY,
    INK,
    brief,
    darker,
    epsilon_axis,
    finish,
    house_style,
    risk_axis,
    start_figure,
)
from cellrisk.system.text import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cellrisk.risk.figure_lines import FigureLines

WIDTH, PANEL = 6.6, 1.55
"""Inches: the width of a page, and the panel's height."""


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
        figure = start_figure(PANEL, WIDTH)
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
            subtitle=f"At epsilon {epsilon:.5g}, marked: {told}. Exposed by chance alone: {percent(chance)}",
            note="",
        )
        spread_right(axes, texts)
        return figure


def mark_asked(figure: Figure, epsilon: float) -> None:
    """Marks the epsilon that is asked for in every panel of a picture along epsilon."""
    for axes in figure.axes:
        axes.axvline(epsilon, color=GREY, linewidth=0.7, linestyle=(0, (3, 2)), zorder=1.5)
        words, at = f"asked for: {epsilon:.5g}", (epsilon, 1.0)
        write_beside(axes, words, at, (3, -3), xycoords=("data", "axes fraction"), va="top")
