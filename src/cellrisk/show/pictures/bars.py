"""What would help: the people revealed because of their own record as the table is, and after each change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import ALARM, COLOURS, GREY, PALE, bar_axis, brief
from cellrisk.show.wording.explanation import headline, list_remedies
from cellrisk.system.formatting import number_of, whole_people

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.explanation import Explanation

ROW = 0.2
"""Inches for a bar."""
MOST_CHANGES = 24


@drawn
def draw_explanation(explanation: Explanation, inside: bool) -> Picture:
    """A bar for the table as it is and for each change, the most helpful first. No cell is shown."""
    now, *changes = list_remedies(explanation)
    shown = [now, *sorted(changes, key=lambda remedy: remedy[4])[:MOST_CHANGES]]
    title, _, best = headline(explanation).partition(" record. ")
    size = f"{number_of(explanation.records, 'person')} in {number_of(explanation.now.cells, 'group')}"
    return Picture(
        [partial(_draw, names=[brief(what, 60) for what, *_ in shown], people=[own for _, _, own, *_ in shown])],
        [ROW * len(shown) + 0.5],
        title=f"{title} record." if best else title,
        subtitle=f"'{brief(explanation.sensitive)}' of {size}. {best}",
    )


def _draw(axes: Axes, names: Sequence[str], people: Sequence[float]) -> None:
    colours = [ALARM, *(COLOURS[0] if own < people[0] else PALE for own in people[1:])]
    bars = axes.barh(range(len(names)), people, height=0.68, color=colours)
    bar_axis(axes, names)
    largest = max(people)
    axes.bar_label(bars, [whole_people(own) for own in people], padding=3)
    axes.axvline(people[0], color=GREY, linewidth=0.7, zorder=1.5)
    axes.set_xlim(min(0.0, *people), 1.18 * largest if largest > 0 else 0.01)
    axes.set_xlabel("people revealed because of their own record, at least")
