"""How what a set of tables reveals grows as its tables are added."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import COLOURS, PALE, bar_axis, brief
from cellrisk.system.formatting import claim, number_of, percent, say_people

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.repeat.together import TogetherAssessment

ROW = 0.36
"""Inches for a table: a bar of the tables so far, and one of the table alone."""
PANELS = {"caused": "Because of their own records", "right": "Named correctly at all"}
CAPTION = "By elimination. Dark: the table with all above it. Pale: the table by itself."


@drawn
def draw_together(found: TogetherAssessment, inside: bool) -> Picture:
    """People revealed by the first table, by the first two, and so on; beside each what the table does by itself."""
    lead, many = found.rule(), len(found.tables)
    people = f"{lead.caused:,.3g} of {number_of(found.records, 'person')}"
    delta = f" at delta {claim(found.cost.delta)}" if found.cost.delta else ""
    share = percent(lead.caused / found.records)
    return Picture(
        [partial(_draw, found=found, name=name, title="" if inside else title) for name, title in PANELS.items()],
        [ROW * many + 0.75],
        columns=2,
        share="y",
        title=f"{'The table reveals' if many == 1 else f'Together the {many} tables reveal'} {people} because of "
        "their own records",
        subtitle=f"{brief(found.sensitive, 40)}; {share} of the people; the set costs epsilon "
        f"{claim(found.cost.epsilon)}{delta}",
        caption=CAPTION,
    )


def _draw(axes: Axes, found: TogetherAssessment, name: str, title: str) -> None:
    places = range(len(found.tables))
    names = [f"{each.table.number}: {brief(each.table.name or each.table.describe(), 34)}" for each in found.tables]
    alone = [float(getattr(each.alone, name)) for each in found.tables]
    together = [found.collections.get(tuple(range(1, place + 2))) for place in places]
    so_far = {place: float(getattr(each, name)) for place, each in enumerate(together) if each is not None}
    largest = max([*alone, *so_far.values()], default=0.0)
    bars = axes.barh([place - 0.16 for place in so_far], list(so_far.values()), height=0.4, color=COLOURS[0])
    axes.bar_label(bars, [say_people(number) for number in so_far.values()], padding=3)
    axes.barh([place + 0.24 for place in places], alone, height=0.24, color=PALE)
    bar_axis(axes, names)
    axes.set_xlim(0.0, 1.2 * largest if largest > 0 else 1.0)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("people")
    if title:
        axes.set_title(title)
