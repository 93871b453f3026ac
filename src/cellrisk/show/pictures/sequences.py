"""Overall risk along a sequence of releases."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    DASHES,
    GREY,
    TINY,
    WEIGHT_COLOURS,
    WEIGHT_WORDS,
    brief,
    risk_axis,
    write_beside,
)
from cellrisk.system.formatting import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.repeat.sequences import RiskSequence

LINES = (("records", DASHES[0]), ("uniform", DASHES[1]))
MOST_NAMED = 8
CAPTION = "Each attribute is assessed at the cumulative loss of its release; what was revealed stays revealed."


@drawn
def draw_sequence(sequence: RiskSequence, inside: bool) -> Picture:
    """The overall risk after each release, along the cumulative epsilon: of the riskiest attribute of each cell.

    Beside it the people revealed because of their own record, and the attribute of each release on its own.
    """
    last = sequence.rows[-1]
    delta = f", delta {claim(last.cumulative.delta)}" if last.cumulative.delta else ""
    riskiest = "the attribute most at risk in each group, " if len(sequence.attributes) > 1 else ""
    return Picture(
        [partial(_draw, sequence=sequence)],
        [2.6],
        title=f"After {number_of(len(sequence.rows), 'release')}, at a cumulative epsilon of "
        f"{claim(last.cumulative.epsilon)}{delta}, the overall risk is {percent(last.overall.max_records)}",
        subtitle=f"{sequence.measure.replace('_', ' ')} risk, {sequence.form}; "
        f"{number_of(sequence.n_records, 'record')} in {number_of(last.cells, 'group')}; in the title: {riskiest}by "
        "records",
        caption=CAPTION,
    )


def _draw(axes: Axes, sequence: RiskSequence) -> None:
    rows = sequence.rows
    x = np.array([row.cumulative.epsilon for row in rows])
    largest = 0.0
    for weights, dashes in LINES:
        risks = np.array([row.overall.value("max", weights) for row in rows])
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[weights], "linestyle": dashes}
        label = f"{WEIGHT_WORDS[weights]}, at last {percent(float(risks[-1]))}"
        axes.plot(x, risks, linewidth=1.6, marker="o", markersize=3.5, label=label, **look)
        largest = max(largest, float(risks.max()))
    if sequence.attributes:
        caused = np.array([row.overall_caused.value("max") for row in rows])
        axes.fill_between(x, 0.0, caused, color=ALARM, alpha=0.25, linewidth=0, zorder=2)
        label = f"because of their own record, at last {percent(float(caused[-1]))}"
        axes.plot(x, caused, color=ALARM, linewidth=1.6, label=label)
    alone = [(at, row.records, row.name) for at, row in zip(x.tolist(), rows, strict=True) if row.records is not None]
    for at, risk, name in alone:
        look = {"color": GREY, "markerfacecolor": "white", "linestyle": "none"}
        axes.plot(at, risk, marker="D", markersize=4.5, zorder=3.2, label="the attribute released", **look)
        if len(alone) <= MOST_NAMED:
            write_beside(axes, brief(name, 16), (at, risk), (0, -5), ha="center", va="top", size=TINY)
    several = len(sequence.attributes) > 1
    risk_axis(
        axes,
        max([largest, *(risk for _, risk, _ in alone)]),
        "overall risk (attribute most at risk)" if several else "overall risk",
    )
    axes.set_xlim(0.0, 1.04 * float(x.max()))
    axes.set_xlabel("cumulative epsilon")
