"""How large the cells of a table are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.profiles import SIZE_CLASSES, Profiles
from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import ALARM, CALM, TINY, brief, write_beside
from cellrisk.system.arrays import Integers
from cellrisk.system.formatting import number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.counts.table import Attribute, FrequencyTable

Bins = Sequence[tuple[int, int | None]]
"""First and last size of each bar; None where a bar has no end."""


@drawn
def draw_sizes(table: FrequencyTable, inside: bool) -> Picture:
    """How many cells hold one person, two, three and so on, and in how many of them all share one value.

    A panel for each sensitive attribute; sizes are put together as in the text of `inspect`.
    """
    first, *more = table.attributes
    bins = [each for each in SIZE_CLASSES if each[0] <= int(first.profiles.sizes[0][-1])]
    unique, one = first.profiles.n_unique, "person" if table.unit.contributions == 1 else "record"
    people = number_of(table.n_records, one)
    return Picture(
        [partial(_draw, attribute=each, bins=bins, title=bool(more)) for each in table.attributes],
        [1.9 if more else 2.6] * (1 + len(more)),
        title=f"{unique:,} of {number_of(table.n_cells, 'group')} {'hold' if unique != 1 else 'holds'} one {one}",
        subtitle=f"{people} in {number_of(table.n_cells, 'group')}"
        if more
        else f"In {number_of(first.profiles.n_homogeneous, 'group')} all {table.revealed_name} share one value of "
        f"{first.name}: they hold {first.profiles.n_exposed:,} of {people} ({percent(first.exposed_share)})",
        alone="tabulate with one sensitive attribute",
    )


def _draw(axes: Axes, attribute: Attribute, bins: Bins, title: bool) -> None:
    """The bars of one attribute, with their numbers."""
    alike, mixed = (_count(attribute.profiles, bins, homogeneous) for homogeneous in (True, False))
    places = np.arange(len(bins))
    axes.bar(places, alike, color=ALARM, width=0.78, label="homogeneous: one value")
    axes.bar(places, mixed, bottom=alike, color=CALM, width=0.78, label="heterogeneous: several values")
    for place, total in zip(places.tolist(), (alike + mixed).tolist(), strict=True):
        if total:
            write_beside(axes, f"{total:,}", (place, total), (0, 2), ha="center", size=TINY)
    axes.set_xticks(places, [_name(low, high) for low, high in bins], size=TINY)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("groups")
    axes.set_xlabel("people in the group")
    axes.set_ylim(0, 1.13 * max(1, int((alike + mixed).max())))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="y", integer=True, nbins=5)
    axes.grid(axis="y")
    if title:
        axes.set_title(f"{brief(attribute.name)}: {percent(attribute.exposed_share)} of people in homogeneous groups")


def _count(profiles: Profiles, bins: Bins, homogeneous: bool) -> Integers:
    """Cells in each bar, of those whose people share one value or of the others."""
    total = np.zeros(len(bins), np.int64)
    starts = np.array([low for low, _ in bins])
    for block in profiles.blocks:
        if (block.counts.shape[1] == 1) == homogeneous:
            np.add.at(total, np.searchsorted(starts, block.sizes, side="right") - 1, block.cells)
    return total


def _name(low: int, high: int | None) -> str:
    short = [f"{number:,}" if number < 10_000 else f"{number:.0e}".replace("e+0", "e") for number in (low, high or 0)]
    if high is None:
        return f"{short[0]}\nor more"
    return short[0] if low == high else f"{short[0]}\u2013\n{short[1]}"
