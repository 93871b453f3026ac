"""What would lower the risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cellrisk.show.pictures.own_axes import check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    GREY,
    INK,
    PALE,
    bar_axis,
    brief,
    finish,
    house_style,
    percent_axis,
    start_figure,
    write_beside,
)
from cellrisk.system.text import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.explanation import Explanation
    from cellrisk.risk.explanation.remedies import Coarsening, Removal

ROW = 0.2
"""Inches for a bar or a dot."""
MOST_COARSENINGS = 20


def draw_explanation(explanation: Explanation) -> Figure:
    """The risk with all quasi-identifiers, without each of them, and with coarser ones. No cell is shown."""
    with house_style():
        removals = _sort(explanation.without)
        coarser = sorted(explanation.coarser, key=lambda coarsening: coarsening.risk)[:MOST_COARSENINGS]
        rows = [len(removals) + 1] + ([len(coarser)] if coarser else [])
        figure = start_figure(sum(ROW * many + 0.35 for many in rows) + 0.3)
        grid = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)[:, 0]
        _draw_removals(grid[0], explanation, removals)
        grid[0].set_title("Without a quasi-identifier")
        if coarser:
            _draw_coarsenings(grid[1], explanation, coarser)
        _dress(list(grid), explanation, [*(each.risk for each in removals), *(each.risk for each in coarser)])
        finish(figure, title=_title(explanation), subtitle=_subtitle(explanation))
        return figure


def draw_explanation_into(ax: Axes, explanation: Explanation) -> None:
    """The risk with all quasi-identifiers and without each of them: the first panel."""
    check_axes(ax)
    with dressed(ax):
        removals = _sort(explanation.without)
        _draw_removals(ax, explanation, removals)
        _dress([ax], explanation, [each.risk for each in removals])


def _sort(removals: Sequence[Removal]) -> list[Removal]:
    return sorted(removals, key=lambda removal: removal.risk)


def _dress(panels: Sequence[Axes], explanation: Explanation, risks: Sequence[float]) -> None:
    largest = max([explanation.baseline, *risks])
    for axes in panels:
        axes.set_xlim(0.0, 1.18 * largest if largest > 0 else 0.01)
        percent_axis(axes.xaxis)
        axes.axvline(explanation.baseline, color=GREY, linewidth=0.7, zorder=1.5)
    panels[-1].set_xlabel(f"risk for {brief(explanation.sensitive, 60)}")


def _draw_removals(axes: Axes, explanation: Explanation, removals: Sequence[Removal]) -> None:
    names = ["all quasi-identifiers", *(f"without {brief(each.quasi_identifier)}" for each in removals)]
    risks = [explanation.baseline, *(each.risk for each in removals)]
    colours = [ALARM, *(COLOURS[0] if each.change < 0 else PALE for each in removals)]
    axes.barh(range(len(names)), risks, height=0.68, color=colours)
    bar_axis(axes, names)
    for place, risk in enumerate(risks):
        inside = risk > 0.25 * max(risks)
        _write_risk(axes, risk, place, -3 if inside else 3, "white" if inside and colours[place] != PALE else INK)


def _draw_coarsenings(axes: Axes, explanation: Explanation, coarser: Sequence[Coarsening]) -> None:
    names = [
        f"{brief(each.quasi_identifier)}: {each.how} ({each.labels:,} of {each.labels_before:,})" for each in coarser
    ]
    risks = [each.risk for each in coarser]
    axes.hlines(range(len(names)), explanation.baseline, risks, color=COLOURS[0], linewidth=1.0, alpha=0.6)
    axes.plot(risks, range(len(names)), "o", color=COLOURS[0], markersize=4.5)
    bar_axis(axes, names)
    for place, risk in enumerate(risks):
        _write_risk(axes, risk, place, -5 if risk <= explanation.baseline else 5)
    more = len(explanation.coarser) - len(coarser)
    axes.set_title("With coarser values (values left)" + (f"; {more:,} more with a higher risk" if more else ""))


def _write_risk(axes: Axes, risk: float, place: int, offset: int, colour: str = INK) -> None:
    """Writes a risk beside its bar or dot: on the left where the offset is negative, else on the right."""
    side = "right" if offset < 0 else "left"
    write_beside(axes, percent(risk), (risk, place), (offset, 0), ha=side, va="center", color=colour)


def _title(explanation: Explanation) -> str:
    best = min(explanation.without, key=lambda removal: removal.change)
    if explanation.most_raising is None:
        return f"Dropping no quasi-identifier would lower the risk of {percent(explanation.baseline)}"
    return (
        f"Dropping {best.quasi_identifier} would lower the risk most: from {percent(explanation.baseline)} to "
        f"{percent(best.risk)}"
    )


def _subtitle(explanation: Explanation) -> str:
    weights = {"records": "by records", "uniform": "each cell alike"}[explanation.weights]
    mechanism, how = explanation.mechanism, "" if explanation.perturbation is None else explanation.perturbation.name
    if mechanism is not None:
        delta = "" if mechanism.pure else f", delta {claim(mechanism.delta)}"
        how = f"{mechanism.name}, epsilon {claim(mechanism.epsilon)}{delta}"
    return (
        f"local risk, {explanation.form}, {weights}; {how}; "
        f"{number_of(explanation.records, 'record')} in {number_of(explanation.cells, 'cell')}"
    )
