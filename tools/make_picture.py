"""Makes docs/pictures/risk.svg, the picture of the README and of the documentation's first page.

    .venv/bin/python tools/make_picture.py

The numbers are those of the README's sentence: Adult, six quasi-identifiers, geometric noise: people exposed, those of
them whose own record is the reason, and those whose income somebody who does the mathematics names with 95% certainty.
The same version of matplotlib gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import cellrisk as cr
from cellrisk.counts.datasets import adult_as_published
from cellrisk.show.pictures import to_svg
from cellrisk.show.pictures.figure_panels import REST, SURE
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    GREY,
    INK,
    TEXT,
    darker,
    epsilon_axis,
    finish,
    house_style,
    risk_axis,
    start_figure,
)
from cellrisk.system.atomic import write_whole
from cellrisk.system.formatting import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.figure_lines import FigureLines
    from cellrisk.system.arrays import Floats

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "risk.svg"
QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
BINS = {"age": 5, "hours-per-week": 10}
WIDTH, PANEL = 6.25, 2.9
"""Inches: 600 pixels on a page, and the panel's height."""
LARGE = 9.5
LINES = {"exposed": COLOURS[0], "caused": darker(ALARM), "sure": SURE}


def compute_curve() -> cr.RiskCurve:
    """Exposed, caused and sure, along epsilon."""
    table = cr.tabulate(adult_as_published(), quasi_identifiers=QIDS, sensitive="income", bins=BINS)
    return cr.curve(table, "geometric", measures=["caused", "certainty"])


def read_shares(lines: FigureLines) -> dict[str, Floats]:
    """The three lines, as shares of the people."""
    if lines.caused is None:
        raise ValueError("the curve has no caused figure")
    sure = lines.certainty[0].right / lines.records
    return {"exposed": lines.caused.exposed_share, "caused": lines.caused.share, "sure": sure}


def draw(curve: cr.RiskCurve) -> Figure:
    """Two areas and a line, each named where it is drawn, with the points that people ask about."""
    (lines,) = curve.figures
    shares, x = read_shares(lines), lines.epsilon
    with house_style():
        figure = start_figure(PANEL, WIDTH)
        axes = figure.subplots()
        axes.fill_between(x, shares["caused"], shares["exposed"], color=REST, linewidth=0)
        axes.fill_between(x, 0.0, shares["caused"], color=ALARM, linewidth=0)
        for name, colour in LINES.items():
            (artist,) = axes.plot(x, shares[name], color=colour, linewidth=2.4 if name == "sure" else 1.8)
            artist.set_gid(name)
        risk_axis(axes, max(float(each.max()) for each in shares.values()), "share of people")
        epsilon_axis(axes, float(x[0]), float(x[-1]))
        _name(axes, lines, shares)
        table = curve.table
        people = f"{table.n_records:,} people in {table.n_cells:,} cells of six quasi-identifiers (UCI Adult)"
        about = f"{people}; geometric noise"
        finish(figure, title="What a table with noise still gives away", subtitle=about, note="")
        return figure


def _name(axes: Axes, lines: FigureLines, shares: dict[str, Floats]) -> None:
    """The names of the lines, what they are at epsilon 1, and chance."""
    place = lines.place(1.0)
    axes.axvline(1.0, color=GREY, linewidth=0.6, linestyle=(0, (1, 1.5)), zorder=1.8)
    about: dict[str, Any] = {"textcoords": "offset points", "linespacing": 1.15}
    offsets: dict[str, tuple[tuple[float, float], str]] = {
        "sure": ((-9, 7), "right"),
        "exposed": ((9, -10), "left"),
        "caused": ((-7, 6), "right"),
    }
    for name, colour in LINES.items():
        point = float(lines.epsilon[place]), float(shares[name][place])
        axes.plot(*point, "o", color=colour, markersize=6.5, markeredgecolor="white", zorder=4)
        offset, side = offsets[name]
        axes.annotate(
            percent(point[1]), point, offset, ha=side, size=LARGE, weight="bold", color=darker(colour), **about
        )
    chance = lines.caused.exposed_limits.chance if lines.caused else 0.0
    axes.axhline(chance, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.8)
    left = float(lines.epsilon[0])
    axes.annotate(
        f"{percent(chance)} by chance alone", (left, chance), (4, -4), va="top", size=TEXT, color=INK, **about
    )
    words: tuple[tuple[str, tuple[float, float], str, str], ...] = (
        ("sure: income named rightly, with\n95% certainty, by mathematics", (1.35e-3, 0.375), darker(SURE), "left"),
        ("exposed: income read off\nthe table, rightly", (95.0, 0.345), darker(COLOURS[0]), "right"),
        ("caused: only because of\ntheir own record", (95.0, 0.045), "white", "right"),
    )
    for text, at, colour, side in words:
        axes.text(*at, text, size=TEXT, weight="bold", color=colour, ha=side, va="center", linespacing=1.15)


def describe(curve: cr.RiskCurve) -> tuple[str, str]:
    """The title and the words for a reader who sees no picture."""
    (lines,) = curve.figures
    title = "Share of people whose income the released table gives away, along epsilon"
    words = {"exposed": "read off", "caused": "only because of their own record", "sure": "named with 95% certainty"}
    told = []
    for name, share in read_shares(lines).items():
        values = ", ".join(
            f"{percent(share[lines.place(each)])} at epsilon {each:g}" for each in (0.01, 0.1, 1.0, 10.0)
        )
        told.append(f"{name} ({words[name]}): {values}")
    chance = lines.caused.exposed_limits.chance if lines.caused else 0.0
    return title, f"{'; '.join(told)}; exposed by chance alone: {percent(chance)}."


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
