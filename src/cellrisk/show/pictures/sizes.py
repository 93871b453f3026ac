"""How large the cells of a table are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import SIZE_CLASSES, Profiles
from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    CALM,
    SMALL,
    TINY,
    brief,
    finish,
    house_style,
    start_figure,
    write_beside,
)
from cellrisk.system.arrays import Integers
from cellrisk.system.text import number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.counts.table import Attribute, FrequencyTable

Bins = Sequence[tuple[int, int | None]]
"""First and last size of each bar; None where a bar has no end."""


def draw_sizes(table: FrequencyTable) -> Figure:
    """How many cells hold one person, two, three and so on, and in how many of them all share one value.

    A panel a sensitive attribute; sizes are put together as in the text of `inspect`. Bars carry their numbers, so that
    small ones can be read too.
    """
    with house_style():
        bins = _choose_bins(table)
        figure = start_figure(2.6 if len(table.attributes) == 1 else 1.9 * len(table.attributes))
        grid = figure.subplots(len(table.attributes), 1, squeeze=False)[:, 0]
        for axes, attribute in zip(grid, table.attributes, strict=True):
            draw_attribute(axes, attribute, bins, many=len(table.attributes) > 1)
            axes.set_xlabel("people in the cell" if axes is grid[-1] else "")
        finish(figure, title=_title(table), subtitle=_subtitle(table), key=_key(table))
        return figure


def draw_sizes_into(ax: Axes, table: FrequencyTable) -> None:
    """The panel of the only sensitive attribute."""
    check_axes(ax, len(table.attributes), "tabulate with one sensitive attribute")
    with dressed(ax):
        draw_attribute(ax, table.attributes[0], _choose_bins(table), many=False)
        ax.set_xlabel("people in the cell")
        add_key(ax, _key(table))


def _choose_bins(table: FrequencyTable) -> Bins:
    largest = int(table.attributes[0].profiles.sizes[0][-1])
    return [each for each in SIZE_CLASSES if each[0] <= largest]


def _count(profiles: Profiles, bins: Bins, homogeneous: bool) -> Integers:
    """Cells in each bar, of those whose people share one value or of the others."""
    total = np.zeros(len(bins), np.int64)
    starts = np.array([low for low, _ in bins])
    for block in profiles.blocks:
        if (block.counts.shape[1] == 1) == homogeneous:
            np.add.at(total, np.searchsorted(starts, block.sizes, side="right") - 1, block.cells)
    return total


def draw_attribute(axes: Axes, attribute: Attribute, bins: Bins, many: bool) -> None:
    """The bars of one attribute, with their numbers; its name too, where there are many."""
    alike, mixed = (_count(attribute.profiles, bins, homogeneous) for homogeneous in (True, False))
    places = np.arange(len(bins))
    axes.bar(places, alike, color=ALARM, width=0.78, label="homogeneous")
    axes.bar(places, mixed, bottom=alike, color=CALM, width=0.78, label="heterogeneous")
    for place, total in zip(places.tolist(), (alike + mixed).tolist(), strict=True):
        if total:
            size = TINY if len(bins) > 12 else SMALL
            write_beside(axes, f"{total:,}", (place, total), (0, 2), ha="center", size=size)
    names = [_name(low, high) for low, high in bins]
    axes.set_xticks(places, names, size=TINY if len(bins) > 12 else None)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("cells")
    axes.set_ylim(0, 1.13 * max(1, int((alike + mixed).max())))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="y", integer=True, nbins=5)
    axes.grid(axis="y")
    if many:
        exposed = f"{percent(attribute.exposed_share)} of people are in homogeneous cells"
        axes.set_title(f"{brief(attribute.name)}: {exposed}")


def _name(low: int, high: int | None) -> str:
    if high is None:
        return f"{_short(low)}\nor more"
    return f"{low:,}" if low == high else f"{_short(low)}\u2013\n{_short(high)}"


def _short(number: int) -> str:
    return f"{number:,}" if number < 10_000 else f"{number:.0e}".replace("e+0", "e")


def _title(table: FrequencyTable) -> str:
    unique, cells = table.attributes[0].profiles.n_unique, table.n_cells
    return f"{unique:,} of {number_of(cells, 'cell')} {'hold' if unique != 1 else 'holds'} one person"


def _subtitle(table: FrequencyTable) -> str:
    if len(table.attributes) > 1:
        return f"{number_of(table.n_records, 'person')} in {number_of(table.n_cells, 'cell')}"
    profiles = table.attributes[0].profiles
    return (
        f"In {number_of(profiles.n_homogeneous, 'cell')} all people share one value of {table.sensitive[0]}: they hold "
        f"{profiles.n_exposed:,} of {number_of(table.n_records, 'person')} ("
        f"{percent(table.attributes[0].exposed_share)})"
    )


def _key(table: FrequencyTable) -> list[Any]:
    of = f" of {brief(table.sensitive[0])}" if len(table.attributes) == 1 else ""
    return make_key(f"one value{of}", f"several values{of}")


def make_key(homogeneous: str, heterogeneous: str) -> list[Any]:
    """What the two colours of bars mean."""
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=ALARM, label=f"homogeneous: {homogeneous}"),
        Patch(facecolor=CALM, label=f"heterogeneous: {heterogeneous}"),
    ]
