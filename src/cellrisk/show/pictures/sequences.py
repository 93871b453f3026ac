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
    plain,
    risk_axis,
    write_beside,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.formatting import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.repeat.sequences import RiskSequence

LINES = (("records", DASHES[0]), ("uniform", DASHES[1]))
TITLES = {"max": "Riskiest attribute of each cell", "sum": "Attributes added up (no probability)"}
MOST_NAMED = 8
CAPTION = "Each attribute is assessed at the cumulative loss of its release; what was revealed stays revealed."


@drawn
def draw_sequence(sequence: RiskSequence, *, inside: bool) -> Picture:
    """The overall risk after each release, along the cumulative epsilon.

    On the left the bounded risk, with the attribute of each release on its own; on the right the unbounded one, if
    there are several attributes.
    """
    several = len(sequence.attributes) > 1
    last = sequence.rows[-1]
    delta = f", delta {claim(last.cumulative.delta)}" if last.cumulative.delta else ""
    riskiest = "the riskiest attribute of each cell, " if several else ""
    kinds = ("max", "sum") if several else ("max",)
    return Picture(
        [partial(_draw, sequence=sequence, kind=kind, inside=inside) for kind in kinds],
        [2.6],
        columns=len(kinds),
        title=f"After {number_of(len(sequence.rows), 'release')}, at a cumulative epsilon of "
        f"{claim(last.cumulative.epsilon)}{delta}, the overall risk is {percent(last.overall.max_records)}",
        subtitle=f"{sequence.measure.replace('_', ' ')} risk, {sequence.form}; "
        f"{number_of(sequence.n_records, 'record')} in {number_of(last.cells, 'cell')}; in the title: {riskiest}by "
        "records",
        caption=CAPTION,
    )


def _draw(axes: Axes, sequence: RiskSequence, kind: str, inside: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    rows = sequence.rows
    x = np.array([row.cumulative.epsilon for row in rows])
    risks: dict[str, Floats] = {name: np.array([row.overall.value(kind, name) for row in rows]) for name, _ in LINES}
    for weights, dashes in LINES:
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[weights]}
        label = f"{WEIGHT_WORDS[weights]}, at last {percent(rows[-1].overall.value('max', weights))}"
        axes.plot(x, risks[weights], linestyle=dashes, linewidth=1.6, marker="o", markersize=3.5, label=label, **look)
    if sequence.attributes:
        caused = np.array([row.overall_caused.value(kind) for row in rows])
        axes.fill_between(x, 0.0, caused, color=ALARM, alpha=0.25, linewidth=0, zorder=2)
        last = percent(rows[-1].overall_caused.value("max"))
        axes.plot(x, caused, color=ALARM, linewidth=1.6, label=f"because of their own record, at last {last}")
    own = [(at, row.records, row.name) for at, row in zip(x.tolist(), rows, strict=True) if row.records is not None]
    largest = max(*(float(risk.max()) for risk in risks.values()), *(risk for _, risk, _ in own), 0.0)
    risk_axis(axes, largest, "overall risk" if kind == "max" else "")
    if kind == "sum":
        axes.yaxis.set_major_formatter(lambda value, _: "0" if abs(value) < 1e-12 else plain(value))
    else:
        for at, risk, name in own:
            look = {"color": GREY, "markerfacecolor": "white", "linestyle": "none"}
            axes.plot(at, risk, marker="D", markersize=4.5, zorder=3.2, label="the attribute released", **look)
            if len(own) <= MOST_NAMED:
                write_beside(axes, brief(name, 16), (at, risk), (0, -5), ha="center", va="top", size=TINY)
    several = len(sequence.attributes) > 1
    if several and inside:
        axes.set_ylabel("overall risk (riskiest attribute)")
    elif several:
        axes.set_title(TITLES[kind])
    axes.set_xlim(0.0, 1.04 * float(x.max()))
    axes.set_xlabel("cumulative epsilon")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
