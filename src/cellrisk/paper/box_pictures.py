"""The paper's figures: sheets of panels along epsilon, cell sizes, and boxes of distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.paper.sheet_pictures import draw_sheet, shade
from cellrisk.show.pictures.boxes import NOISED, draw_box
from cellrisk.show.pictures.sizes import Bins, draw_attribute, make_key
from cellrisk.show.pictures.style import TINY, finish, house_style, plain, start_figure
from cellrisk.system.text import number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.counts.table import FrequencyTable
    from cellrisk.paper.panels import Box, Boxes

__all__ = ["draw_boxes", "draw_cell_sizes", "draw_sheet"]

WIDEST = 26
"""The most bars in a row of histograms. A bar for several sizes counts twice, because its label is wide."""
GUARANTEES = {
    "laplace": "\u03b5-DP, Laplace",
    "gaussian": "(\u03b5, \u03b4)-DP, Gaussian",
    "gaussian-pdp": "(\u03b5, \u03b4)-pDP, Gaussian",
}
"""What the paper calls its three mechanisms."""
READING = (
    "TVD: total variation distance, the share of records that would have to move. Box: middle half of the marginals, "
    "each with its mean over the releases; line: median; whiskers: least and greatest; diamond: mean."
)


MOST_SINGLE = 20
"""A table whose cells are no larger than this has a bar for each size."""
SINGLE = 10
"""The largest size that has a bar of its own in other tables; larger sizes share bars."""
STEPS = (1, 2, 5)
MOST_BARS = 20


def draw_cell_sizes(tables: Mapping[str, FrequencyTable]) -> Figure:
    """How many cells hold one person, two and so on, in several tables, and in how many of them all share one value.

    Tables with small cells stand side by side; one with large cells has a row of its own, and sizes above ten are put
    together there.
    """
    if not tables:
        raise InvalidInput("there is no table to draw", allowed="one table with its name, or more")
    with house_style():
        bins = {name: choose_bins(int(table.attributes[0].profiles.sizes[0][-1])) for name, table in tables.items()}
        widths = {name: sum(1 if low == high else 2 for low, high in each) for name, each in bins.items()}
        rows = _arrange(widths)
        figure = start_figure(1.65 * len(rows))
        outer = figure.add_gridspec(len(rows), 1)
        for number, names in enumerate(rows):
            inner = outer[number].subgridspec(1, len(names), width_ratios=[widths[name] + 3 for name in names])
            for place, name in enumerate(names):
                axes = figure.add_subplot(inner[place])
                attribute = tables[name].attributes[0]
                draw_attribute(axes, attribute, bins[name], many=False)
                many = attribute.profiles.n_homogeneous
                alike = "all" if not attribute.profiles.n_heterogeneous else f"{many:,}"
                axes.set_title(f"{name}: {number_of(tables[name].n_cells, 'cell')}, {alike} homogeneous")
                axes.set_ylabel("" if place else "cells")
                axes.set_xlabel("people in the cell" if number + 1 == len(rows) else "")
        finish(figure, title="How many people a cell holds", key=make_key("one sensitive value", "several"), note="")
        return figure


def choose_bins(largest: int) -> Bins:
    """First and last size of each bar of the reproduction, where each size up to ten has its own.

    >>> choose_bins(3), choose_bins(70)[9:]
    ([(1, 1), (2, 2), (3, 3)], [(10, 10), (11, 20), (21, 50), (51, 100)])
    """
    if largest <= MOST_SINGLE:
        return [(size, size) for size in range(1, largest + 1)]
    bins: list[tuple[int, int | None]] = [(size, size) for size in range(1, SINGLE + 1)]
    edges = [step * 10**power for power in range(1, 19) for step in STEPS][1:]
    low = SINGLE + 1
    while low <= largest:
        high = edges.pop(0)
        last = len(bins) == MOST_BARS - 1
        bins.append((low, None if last else high))
        low = largest + 1 if last else high + 1
    return bins


def _arrange(widths: Mapping[str, int]) -> list[list[str]]:
    """Names in rows, as many in each as there is room for.

    >>> _arrange({"large": 20, "small": 7, "other": 11})
    [['large'], ['small', 'other']]
    """
    rows: list[list[str]] = []
    for name, width in widths.items():
        if rows and sum(widths[each] for each in rows[-1]) + width <= WIDEST:
            rows[-1].append(name)
        else:
            rows.append([name])
    return rows


def draw_boxes(boxes: Boxes) -> Figure:
    """Box plots of the total variation distance (TVD): a row for each way of marginals, a column for each mechanism.

    Boxes stand by epsilon, and side by side for each delta, the larger the darker. A row shares its scale.
    The caption is for the page around the picture.
    """
    with house_style():
        first = next(iter(boxes.ways.values()))
        mechanisms = list(dict.fromkeys(box.mechanism for box in first))
        ratios = [_room([box for box in first if box.mechanism == name]) for name in mechanisms]
        figure = start_figure(1.6 * len(boxes.ways))
        grid = figure.subplots(len(boxes.ways), len(mechanisms), sharey="row", squeeze=False, width_ratios=ratios)
        colours = shade([box.delta for box in first])
        for number, (way, found) in enumerate(boxes.ways.items()):
            last = number + 1 == len(boxes.ways)
            for axes, name in zip(grid[number], mechanisms, strict=True):
                _draw_boxes(axes, [box for box in found if box.mechanism == name], colours)
                axes.set_title("" if number else GUARANTEES.get(name, name))
                axes.set_xlabel("epsilon" if last else "")
                axes.tick_params(labelsize=TINY, labelbottom=last)
            many, largest = len(found[0].distances), max(max(box.distances) for box in found)
            grid[number, 0].set_ylabel(f"TVD, {way}-way\n({number_of(many, 'marginal')})")
            grid[number, 0].locator_params(axis="y", nbins=5)
            grid[number, 0].set_ylim(-0.03 * largest, 1.06 * largest or 0.01)
        about = f"{NOISED[boxes.cells]}; {number_of(boxes.releases, 'simulated release')}"
        finish(figure, title=boxes.title, subtitle=about, key=_key_to_boxes(colours), caption=READING, note="")
        return figure


def _room(boxes: Sequence[Box]) -> float:
    """How wide a panel is, in boxes and the gaps between epsilons."""
    return len(boxes) + 4.0 * len({box.epsilon for box in boxes})


def _draw_boxes(axes: Axes, boxes: Sequence[Box], colours: Mapping[float, str]) -> None:
    epsilons = sorted({box.epsilon for box in boxes})
    deltas = sorted({box.delta for box in boxes})
    width = min(0.8 / len(deltas), 0.45)
    for box in boxes:
        position = epsilons.index(box.epsilon) + (deltas.index(box.delta) - (len(deltas) - 1) / 2) * width
        levels = np.quantile(box.distances, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
        parts = dict(zip(("whislo", "q1", "med", "q3", "whishi"), levels, strict=True), mean=box.mean)
        draw_box(axes, parts, position, 0.8 * width, colours[box.delta], mark=2.4)
    axes.set_xticks(range(len(epsilons)), [_name_epsilon(epsilon) for epsilon in epsilons])
    axes.set_xlim(-0.6, len(epsilons) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")


def _name_epsilon(epsilon: float) -> str:
    """An epsilon in few signs, and whether it lies just below 1, where the classical Gaussian mechanism ends.

    >>> _name_epsilon(0.1), _name_epsilon(1.0), _name_epsilon(0.9999999)
    ('0.1', '1', '<1')
    """
    return "<1" if 0.999 < epsilon < 1.0 else plain(epsilon)


def _key_to_boxes(colours: Mapping[float, str]) -> list[Any]:
    from matplotlib.patches import Patch

    words = {delta: f"delta {delta:g}" if delta else "no delta" for delta in colours}
    return [Patch(facecolor=colour, alpha=0.5, label=words[delta]) for delta, colour in colours.items()]
