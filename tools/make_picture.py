"""Makes docs/pictures/risk.svg, the picture of the README and of the documentation's first page.

    .venv/bin/python tools/make_picture.py

The numbers are those of the README's sentence: Adult, six quasi-identifiers, geometric noise, the local risk, tight, by
records. The same version of matplotlib gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import cellrisk as cr
from cellrisk.counts.datasets import adult_as_published
from cellrisk.show.pictures import to_svg
from cellrisk.show.pictures.style import (
    COLOURS,
    GREY,
    TEXT,
    darker,
    epsilon_axis,
    finish,
    house_style,
    risk_axis,
    start_figure,
)
from cellrisk.system.text import percent
from cellrisk.system.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.curves import Line

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "risk.svg"
QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
BINS = {"age": 5, "hours-per-week": 10}
WIDTH, PANEL = 6.25, 2.05
"""Inches: 600 pixels on a page, and the panel's height."""
LARGE = 9.5


def compute_curve() -> cr.RiskCurve:
    """The share of people whose income is read off the released table, along epsilon."""
    table = cr.tabulate(adult_as_published(), quasi_identifiers=QIDS, sensitive="income", bins=BINS)
    return cr.curve(table, "geometric", measures="local", forms="tight", weights="records")


def draw(curve: cr.RiskCurve) -> Figure:
    """One line between chance and the raw table, with the point that people ask about."""
    (line,) = curve.lines
    with house_style():
        figure = start_figure(PANEL, WIDTH)
        axes = figure.subplots()
        (artist,) = axes.plot(line.epsilon, line.risk, color=COLOURS[0], linewidth=2.4)
        artist.set_gid("risk")
        axes.plot(line.nearest(1.0), line.at(1.0), "o", color=COLOURS[0], markersize=7, zorder=4)
        _mark_levels(axes, line)
        risk_axis(axes, line.limits.raw, "people whose\nincome is read off")
        epsilon_axis(axes, float(line.epsilon[0]), float(line.epsilon[-1]))
        table = curve.table
        people = f"{table.n_records:,} people in {table.n_cells:,} cells of six quasi-identifiers (UCI Adult)"
        about = f"{people}; geometric noise"
        finish(figure, title="What a table with noise still gives away", subtitle=about, note="")
        return figure


def _mark_levels(axes: Axes, line: Line) -> None:
    """The two ends, each named where the line comes near it, and the point."""
    for level in (line.limits.chance, line.limits.raw):
        axes.axhline(level, color=GREY, linewidth=0.7, zorder=1.5)
    about: dict[str, Any] = {"textcoords": "offset points", "size": TEXT, "color": GREY}
    low, high = (float(line.epsilon[0]), line.limits.chance), (float(line.epsilon[-1]), line.limits.raw)
    axes.annotate(f"chance alone: {percent(low[1])}", low, (4, -4), va="top", **about)
    axes.annotate(f"raw table, without noise: {percent(high[1])}", high, (-1, 4), ha="right", **about)
    point = (line.nearest(1.0), line.at(1.0))
    axes.annotate(
        f"{percent(point[1])} at epsilon 1",
        point,
        (-7, 6),
        textcoords="offset points",
        ha="right",
        size=LARGE,
        weight="bold",
        color=darker(COLOURS[0]),
    )


def describe(curve: cr.RiskCurve) -> tuple[str, str]:
    """The title and the words for a reader who sees no picture."""
    (line,) = curve.lines
    title = "Share of people whose income is read off the table, along epsilon"
    values = ", ".join(f"{percent(line.at(epsilon))} at epsilon {epsilon:g}" for epsilon in (0.01, 0.1, 1.0, 10.0))
    ends = f"{percent(line.limits.chance)} by chance alone, {percent(line.limits.raw)} in the raw table"
    return title, f"{values}; {ends}."


def make_svg(curve: cr.RiskCurve) -> str:
    """The file: the drawing, with a title and a description inside."""
    element = to_svg(draw(curve))
    start = element.index(">") + 1
    title, words = describe(curve)
    opening = element[: start - 1] + ' role="img">'
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f"{opening}\n <title>{escape(title)}</title>\n <desc>{escape(words)}</desc>{element[start:]}"
    )


def main() -> None:
    """Compute, draw, write."""
    parser = argparse.ArgumentParser(description="Make the picture of the README.")
    parser.add_argument("--output", type=Path, default=TARGET, help="default: docs/pictures/risk.svg")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = make_svg(compute_curve())
    write_whole(options.output, text)
    print(f"{options.output.name}: {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
