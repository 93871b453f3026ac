"""Overall risk along a sequence of releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.curves import WEIGHT_COLOURS, WEIGHT_WORDS
from cellrisk.show.pictures.labels import Label, label_right, mark_box, place_labels, spread_right
from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    DASHES,
    GREY,
    INK,
    TINY,
    brief,
    darker,
    finish,
    house_style,
    plain,
    risk_axis,
    sample,
    start_figure,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.text import claim, number_of, percent
from cellrisk.system.words import require_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.repeat.sequences import RiskSequence

LINES = (("records", DASHES[0]), ("uniform", DASHES[1]))
TITLES = {"max": "Riskiest attribute of each cell", "sum": "Attributes added up (no probability)"}
MOST_NUMBERED = 20
CAUSED = "caused by one's own record"
CAPTION = "Each attribute is assessed at the cumulative loss of its release; what was given away stays given away."


def draw_sequence(sequence: RiskSequence, by: str = "loss") -> Figure:
    """The overall risk after each release, along the cumulative epsilon (``loss``) or release by release (``release``).

    On the left the bounded risk, with the attribute of each release on its own; on the right the unbounded one, where
    there are several attributes.
    """
    _check_view(by)
    with house_style():
        kinds = ("max", "sum") if len(sequence.attributes) > 1 else ("max",)
        figure = start_figure(2.6)
        grid = figure.subplots(1, len(kinds), squeeze=False)[0]
        x = _across(sequence, by)
        right = [label_right(axes, _draw(axes, sequence, kind, x)) for axes, kind in zip(grid, kinds, strict=True)]
        for axes, kind in zip(grid, kinds, strict=True):
            _dress(axes, sequence, kind, by, x)
        finish(figure, title=_title(sequence), subtitle=_subtitle(sequence), key=_key(sequence), caption=CAPTION)
        for axes, texts in zip(grid, right, strict=True):
            spread_right(axes, texts)
        _name_releases(grid[0], sequence, x)
        return figure


def draw_sequence_into(ax: Axes, sequence: RiskSequence, by: str = "loss") -> None:
    """The bounded risk alone."""
    _check_view(by)
    check_axes(ax)
    with dressed(ax):
        x = _across(sequence, by)
        ends = _draw(ax, sequence, "max", x)
        _dress(ax, sequence, "max", by, x, inside=True)
        at = float(x[-1])
        labels = [Label(words, x[-1:], np.array([risk]), colour, at=at, must=True) for risk, words, colour in ends]
        add_key(ax, _key(sequence))
        _name_releases(ax, sequence, x, labels)


def _check_view(by: str) -> None:
    from cellrisk.repeat.sequences.sequence_result import VIEWS

    require_word("view of a sequence", by, VIEWS)


def _across(sequence: RiskSequence, by: str) -> Floats:
    found = [row.cumulative.epsilon if by == "loss" else float(row.number) for row in sequence.rows]
    return np.array(found)


def _along(sequence: RiskSequence, kind: str, weights: str) -> Floats:
    return np.array([row.overall.value(kind, weights) for row in sequence.rows])


def _own(sequence: RiskSequence, x: Floats) -> list[tuple[float, float, str]]:
    """The place along the axis, the risk by records and the name of each attribute that was released."""
    rows = zip(x.tolist(), sequence.rows, strict=True)
    return [(across, row.records, row.name) for across, row in rows if row.records is not None]


def _draw(axes: Axes, sequence: RiskSequence, kind: str, x: Floats) -> list[tuple[float, str, str]]:
    """Draws the lines, and returns the last value of each with its words and its colour."""
    ends = []
    for weights, dashes in LINES:
        risk, colour = _along(sequence, kind, weights), WEIGHT_COLOURS[weights]
        axes.plot(x, risk, color=colour, linestyle=dashes, linewidth=1.6, zorder=3, label=f"{kind}, {weights}")
        axes.plot(x, risk, "o", color=colour, markersize=3.5, zorder=3.5, clip_on=False, label="_")
        ends.append((float(risk[-1]), percent(risk[-1]) if kind == "max" else f"{risk[-1]:.3g}", darker(colour)))
    if sequence.attributes:
        caused = np.array([row.overall_caused.value(kind) for row in sequence.rows])
        axes.fill_between(x, 0.0, caused, color=ALARM, alpha=0.25, linewidth=0, zorder=2)
        axes.plot(x, caused, color=ALARM, linewidth=1.6, zorder=3, label=f"{kind}, caused")
        ends.append((float(caused[-1]), percent(caused[-1]) if kind == "max" else f"{caused[-1]:.3g}", darker(ALARM)))
    if kind == "max":
        for across, own, _ in _own(sequence, x):
            axes.plot(across, own, "D", color=GREY, markerfacecolor="white", markersize=4.5, zorder=3.2, label="own")
    return ends


def _dress(axes: Axes, sequence: RiskSequence, kind: str, by: str, x: Floats, inside: bool = False) -> None:
    from matplotlib.ticker import MaxNLocator

    largest = max(float(_along(sequence, kind, weights).max()) for weights, _ in LINES)
    own = [risk for _, risk, _ in _own(sequence, x)]
    risk_axis(axes, max([largest, *own]), "overall risk" if kind == "max" else "")
    if kind == "sum":
        axes.yaxis.set_major_formatter(lambda value, _: "0" if abs(value) < 1e-12 else plain(value))
    several = len(sequence.attributes) > 1
    if inside:
        axes.set_ylabel("overall risk (riskiest attribute)" if several else "overall risk")
    else:
        axes.set_title(TITLES[kind] if several else "")
    if by == "loss":
        axes.set_xlim(0.0, 1.04 * float(x.max()))
        axes.set_xlabel("cumulative epsilon")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        return
    spare = 0.5 if len(x) < MOST_NUMBERED else 0.03 * len(x)
    axes.set_xlim(1 - spare, len(x) + spare)
    axes.set_xlabel("release")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))


def _name_releases(axes: Axes, sequence: RiskSequence, x: Floats, ends: Sequence[Label] = ()) -> None:
    """The name of each attribute beside its own risk, where there is room; before them the ends of the lines."""
    own = _own(sequence, x)
    drawn = [(x, _along(sequence, "max", weights)) for weights, _ in LINES]
    boxes = [mark_box(axes, across, risk, 4.0) for across, risk, _ in own]
    labels = [
        Label(brief(name, 16), np.array([across]), np.array([risk]), INK, at=across, size=TINY, offset=5.0)
        for across, risk, name in own
    ]
    place_labels(axes, [*ends, *labels], drawn, boxes)


def _key(sequence: RiskSequence) -> list[Any]:
    from matplotlib.lines import Line2D

    key = [sample(WEIGHT_WORDS[weights], WEIGHT_COLOURS[weights], dashes) for weights, dashes in LINES]
    if sequence.attributes:
        key.append(sample(CAUSED, ALARM, DASHES[0]))
        mark = Line2D([], [], color=GREY, marker="D", markerfacecolor="white", markersize=4.5, linestyle="none")
        mark.set_label("the attribute released, by records")
        key.append(mark)
    return key


def _title(sequence: RiskSequence) -> str:
    last = sequence.rows[-1]
    delta = f", delta {claim(last.cumulative.delta)}" if last.cumulative.delta else ""
    return (
        f"After {number_of(len(sequence.rows), 'release')}, at a cumulative epsilon of "
        f"{claim(last.cumulative.epsilon)}{delta}, the overall risk is {percent(last.overall.max_records)}"
    )


def _subtitle(sequence: RiskSequence) -> str:
    cells = sequence.rows[-1].cells
    riskiest = "the riskiest attribute of each cell, " if len(sequence.attributes) > 1 else ""
    return (
        f"{sequence.measure.replace('_', ' ')} risk, {sequence.form}; {number_of(sequence.n_records, 'record')} in "
        f"{number_of(cells, 'cell')}; in the title: {riskiest}by records"
    )
