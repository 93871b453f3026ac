"""What would lower the risk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    GREY,
    PALE,
    WEIGHT_WORDS,
    bar_axis,
    brief,
    describe_setting,
    percent_axis,
    write_on_bar,
)
from cellrisk.system.formatting import number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.explanation import Explanation
    from cellrisk.risk.explanation.remedies import Coarsening, Removal

ROW = 0.2
"""Inches for a bar or a dot."""
MOST_COARSENINGS = 20


@drawn
def draw_explanation(explanation: Explanation, inside: bool) -> Picture:
    """The risk with all quasi-identifiers, without each of them, and with coarser ones. No cell is shown."""
    removals = sorted(explanation.without, key=lambda removal: removal.risk)
    coarser = sorted(explanation.coarser, key=lambda coarsening: coarsening.risk)[:MOST_COARSENINGS]
    coarser = [] if inside else coarser
    largest = max(explanation.baseline, *(each.risk for each in (*removals, *coarser)))
    panels = [partial(_draw_removals, explanation=explanation, removals=removals, title="" if inside else TITLE)]
    panels += [partial(_draw_coarsenings, explanation=explanation, coarser=coarser)] if coarser else []

    def dress(axes: Axes, panel: int) -> None:
        panels[panel](axes)
        axes.set_xlim(0.0, 1.18 * largest if largest > 0 else 0.01)
        percent_axis(axes.xaxis)
        axes.axvline(explanation.baseline, color=GREY, linewidth=0.7, zorder=1.5)
        axes.set_xlabel(f"risk for {brief(explanation.sensitive, 60)}" if panel == len(panels) - 1 else "")

    rows = [len(removals) + 1] + ([len(coarser)] if coarser else [])
    return Picture(
        [partial(dress, panel=panel) for panel in range(len(panels))],
        rows,
        total=sum(ROW * many + 0.35 for many in rows) + 0.3,
        share="x",
        title=_title(explanation),
        subtitle=_subtitle(explanation),
    )


TITLE = "Without a quasi-identifier"


def _draw_removals(axes: Axes, explanation: Explanation, removals: Sequence[Removal], title: str) -> None:
    names = ["all quasi-identifiers", *(f"without {brief(each.quasi_identifier)}" for each in removals)]
    risks = [explanation.baseline, *(each.risk for each in removals)]
    colours = [ALARM, *(COLOURS[0] if each.change < 0 else PALE for each in removals)]
    axes.barh(range(len(names)), risks, height=0.68, color=colours)
    bar_axis(axes, names)
    for place, risk in enumerate(risks):
        dark = colours[place] != PALE
        write_on_bar(axes, percent(risk), risk, place, inside=risk > 0.25 * max(risks), dark=dark)
    if title:
        axes.set_title(title)


def _draw_coarsenings(axes: Axes, explanation: Explanation, coarser: Sequence[Coarsening]) -> None:
    names = [
        f"{brief(each.quasi_identifier)}: {each.how} ({each.labels:,} of {each.labels_before:,})" for each in coarser
    ]
    risks = [each.risk for each in coarser]
    axes.hlines(range(len(names)), explanation.baseline, risks, color=COLOURS[0], linewidth=1.0, alpha=0.6)
    axes.plot(risks, range(len(names)), "o", color=COLOURS[0], markersize=4.5)
    bar_axis(axes, names)
    for place, risk in enumerate(risks):
        write_on_bar(axes, percent(risk), risk, place, risk <= explanation.baseline, dark=False, apart=5)
    more = len(explanation.coarser) - len(coarser)
    axes.set_title("With coarser values (values left)" + (f"; {more:,} more with a higher risk" if more else ""))


def _title(explanation: Explanation) -> str:
    best = explanation.best_removal
    if best is None:
        return f"Dropping no quasi-identifier would lower the risk of {percent(explanation.baseline)}"
    return (
        f"Dropping {best.quasi_identifier} would lower the risk most: from {percent(explanation.baseline)} to "
        f"{percent(best.risk)}"
    )


def _subtitle(explanation: Explanation) -> str:
    how = "" if explanation.perturbation is None else explanation.perturbation.name
    how = how if explanation.mechanism is None else describe_setting(explanation.mechanism, epsilon=True)
    return (
        f"local risk, {explanation.form}, {WEIGHT_WORDS[explanation.weights]}; {how}; "
        f"{number_of(explanation.records, 'record')} in {number_of(explanation.cells, 'cell')}"
    )
