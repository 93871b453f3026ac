"""All risks of a table at one epsilon, each between blind noise and the table without noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    GREY,
    INK,
    SMALL,
    WEIGHT_COLOURS,
    WEIGHT_WORDS,
    bar_axis,
    brief,
    describe_setting,
    percent_axis,
)
from cellrisk.system.formatting import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.assessment import Assessment, Risk
    from cellrisk.risk.sweep import Limits

ROW = 0.165
"""Inches for a risk."""
FORMS = ("tight", "exact", "published")
"""The preferred form first."""
MARKERS = {"records": "o", "uniform": "s", None: "D"}
FOR_NUMBERS = 0.2
"""The share of a panel's width that is kept for the numbers on its right."""


@drawn
def draw_assessment(assessment: Assessment, inside: bool) -> Picture:
    """A row for each measure, form and weighting: the risk, and on both sides of it blind noise and no noise.

    A panel for each sensitive attribute, two beside each other. The colour and shape of a mark show the weights.
    """
    table = assessment.table
    panels: dict[str, list[tuple[Risk, Limits]]] = {}
    for risk, limits in zip(assessment.risks, assessment.limits, strict=True):
        panels.setdefault(risk.sensitive, []).append((risk, limits))
    for rows in panels.values():
        measures = [risk.measure for risk, _ in rows]
        rows.sort(key=lambda row: (measures.index(row[0].measure), FORMS.index(row[0].form), row[0].weights or ""))
    first, ends = next(iter(panels.values()))[0]
    columns = min(2, len(panels))
    about = f"{number_of(table.n_records, 'record')} in {number_of(table.n_cells, 'cell')}"
    shown = f"{first.measure.replace('_', ' ')} risk, {first.form}, {WEIGHT_WORDS[first.weights]}"
    return Picture(
        [partial(_draw, rows=rows, name=name) for name, rows in panels.items()],
        [ROW * (len(next(iter(panels.values()))) + 1) + 0.5] * -(-len(panels) // columns),
        columns=columns,
        share="y",
        title=f"At epsilon {claim(assessment.mechanism.epsilon)} the {shown} for {brief(first.sensitive)} is "
        f"{percent(first.risk)} (blind {percent(ends.chance)}, no noise {percent(ends.raw)})",
        subtitle=f"{describe_setting(assessment.mechanism)}; {first.attack} attack; {about}",
        alone="tabulate with one sensitive attribute",
    )


def _draw(axes: Axes, rows: Sequence[tuple[Risk, Limits]], name: str) -> None:
    several = len({risk.form for risk, _ in rows}) > 1 or len({risk.weights for risk, _ in rows} - {None}) > 1
    for place, (risk, limits) in enumerate(rows):
        grey: dict[str, Any] = {"color": GREY, "linestyle": "none", "clip_on": False}
        axes.plot([limits.chance, limits.raw], [place, place], color=GREY, linewidth=0.8, zorder=1.5)
        axes.plot(limits.chance, place, "o", **grey, markerfacecolor="white", markersize=4, zorder=2.5, label="blind")
        axes.plot(limits.raw, place, "|", **grey, markersize=7, markeredgewidth=1.4, zorder=2, label="no noise")
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[risk.weights], "marker": MARKERS[risk.weights]}
        label = f"risk, {WEIGHT_WORDS[risk.weights]}"
        axes.plot(risk.risk, place, linestyle="none", **look, markersize=5, zorder=4, clip_on=False, label=label)
        words: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "size": SMALL, "color": INK, "ha": "right"}
        axes.text(1.0, place, percent(risk.risk), va="center", **words)
    names = [risk.measure.replace("_", " ") + (f", {risk.form}" if several else "") for risk, _ in rows]
    bar_axis(axes, names)
    largest = max(max(risk.risk, limits.chance, limits.raw) for risk, limits in rows)
    axes.set_xlim(0.0, largest / (1.0 - FOR_NUMBERS) if largest > 0 else 0.01)
    percent_axis(axes.xaxis)
    axes.set_xlabel(f"risk for {brief(name)}")
