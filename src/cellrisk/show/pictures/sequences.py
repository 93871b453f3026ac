"""Overall risk along a sequence of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.curves import WEIGHT_COLOURS, WEIGHT_WORDS
from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    DASHES,
    GREY,
    TINY,
    brief,
    finish,
    house_style,
    plain,
    risk_axis,
    sample,
    start_figure,
    write_beside,
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
MOST_NUMBERED, MOST_NAMED = 20, 8
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
        for axes, kind in zip(grid, kinds, strict=True):
            _draw(axes, sequence, kind, x)
            _dress(axes, sequence, kind, by, x)
        _name_releases(grid[0], sequence, x)
        finish(figure, title=_title(sequence), subtitle=_subtitle(sequence), key=_key(sequence), caption=CAPTION)
        return figure


def draw_sequence_into(ax: Axes, sequence: RiskSequence, by: str = "loss") -> None:
    """The bounded risk alone."""
    _check_view(by)
    check_axes(ax)
    with dressed(ax):
        x = _across(sequence, by)
        _draw(ax, sequence, "max", x)
        _dress(ax, sequence, "max", by, x, inside=True)
        _name_releases(ax, sequence, x)
        add_key(ax, _key(sequence))


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


def _draw(axes: Axes, sequence: RiskSequence, kind: str, x: Floats) -> None:
    for weights, dashes in LINES:
        risk, colour = _along(sequence, kind, weights), WEIGHT_COLOURS[weights]
        axes.plot(x, risk, color=colour, linestyle=dashes, linewidth=1.6, zorder=3, label=f"{kind}, {weights}")
        axes.plot(x, risk, "o", color=colour, markersize=3.5, zorder=3.5, clip_on=False, label="_")
    if sequence.attributes:
        caused = np.array([row.overall_caused.value(kind) for row in sequence.rows])
        axes.fill_between(x, 0.0, caused, color=ALARM, alpha=0.25, linewidth=0, zorder=2)
        axes.plot(x, caused, color=ALARM, linewidth=1.6, zorder=3, label=f"{kind}, caused")
    if kind == "max":
        for across, own, _ in _own(sequence, x):
            axes.plot(across, own, "D", color=GREY, markerfacecolor="white", markersize=4.5, zorder=3.2, label="own")


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


def _name_releases(axes: Axes, sequence: RiskSequence, x: Floats) -> None:
    """The name of each attribute below its own risk, unless there are many."""
    own = _own(sequence, x)
    for across, risk, name in own if len(own) <= MOST_NAMED else ():
        write_beside(axes, brief(name, 16), (across, risk), (0, -5), ha="center", va="top", size=TINY)


def _key(sequence: RiskSequence) -> list[Any]:
    from matplotlib.lines import Line2D

    last = sequence.rows[-1]
    key = []
    for weights, dashes in LINES:
        risk = percent(last.overall.value("max", weights))
        key.append(sample(f"{WEIGHT_WORDS[weights]}, at last {risk}", WEIGHT_COLOURS[weights], dashes))
    if sequence.attributes:
        key.append(sample(f"{CAUSED}, at last {percent(last.overall_caused.value('max'))}", ALARM, DASHES[0]))
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
