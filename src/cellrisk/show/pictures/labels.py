"""Words beside the lines that they name, where they hide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.style import SMALL
from cellrisk.system.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 2.5
"""Pixels between a label and its line, at a hundred an inch."""
STEP = 3.0
CANDIDATES = 61


@dataclass(frozen=True, eq=False)
class Wish:
    """A label that wants to stand beside a line."""

    words: str
    x: Floats
    y: Floats
    """The line, from left to right."""
    colour: str
    prefer: float | None = None
    """Where along the axis the label would best be, from 0 to 1; None where it does not matter."""
    at: float | None = None
    """The one place for it, for a label of a point."""
    distance: float = GAP
    """How near other lines may come, in pixels at a hundred an inch."""
    size: float = SMALL
    weight: str = "normal"
    must: bool = False
    """Whether it is shown even where it hides a piece of a line."""
    off: float = 2 * GAP
    """How far the label of a point stands from its middle."""


Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""
Path = tuple[Floats, Floats]
"""A line as it was drawn."""
Obstacle = tuple[Floats, float]
"""Points along a line, and how bad it is to hide one of them."""


def place_labels(
    axes: Axes,
    wishes: Sequence[Wish],
    drawn: Sequence[Path],
    taken: Sequence[Box] = (),
    faint: Sequence[Path] = (),
) -> list[Box] | None:
    """Writes each label where it is clear of lines and of other labels, and returns the boxes that are taken then.

    A label that finds no place is left out, or, where it must be shown, stands where it hides least; a faint line may
    be hidden sooner. None, with nothing written, where names of lines (labels that prefer no place) find none.
    """
    obstacles = [(_along(axes, x, y), 1.0) for x, y in drawn] + [(_along(axes, x, y), 0.04) for x, y in faint]
    boxes = list(taken)
    texts = []
    for wish in wishes:
        text = axes.text(0.0, 0.0, wish.words, size=wish.size, color=wish.colour, weight=wish.weight)
        text.set(horizontalalignment="center", verticalalignment="center", linespacing=1.1)
        text.set_in_layout(False)
        texts.append(text)
        extent = text.get_window_extent()
        box = _best(axes, wish, extent.width, extent.height, obstacles, boxes)
        if box is None and wish.prefer is None and wish.at is None:
            for written in texts:
                written.remove()
            return None
        if box is None:
            text.remove()
            continue
        boxes.append(box)
        middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        text.set_transform(axes.transAxes)
        text.set_position(tuple(axes.transAxes.inverted().transform(middle)))
        if wish.must:
            _lighten(text)
    return boxes


def _lighten(text: Any) -> None:
    """White around the letters, so that they can be read on a line."""
    from matplotlib.patheffects import withStroke

    text.set_path_effects([withStroke(linewidth=1.8, foreground="white")])


def mark_box(axes: Axes, x: float, y: float, radius: float) -> Box:
    """The room that a mark takes up, in pixels."""
    across, up = (float(value) for value in axes.transData.transform((x, y)))
    return across - radius, up - radius, across + radius, up + radius


def _best(
    axes: Axes, wish: Wish, width: float, height: float, obstacles: list[Obstacle], taken: list[Box]
) -> Box | None:
    own = axes.transData.transform(np.column_stack([wish.x, wish.y]))
    frame = axes.get_window_extent()
    others = [(line, cost) for line, cost in obstacles if wish.at is not None or not _same(line, own)]
    points = np.concatenate([line for line, _ in others]) if others else np.zeros((0, 2))
    costs = np.concatenate([np.full(len(line), cost) for line, cost in others]) if others else np.zeros(0)
    best, least = None, np.inf
    around = list(_around(axes, wish, width, height)) if wish.at is not None else []
    if around and wish.must and all(box[0] < frame.x0 or box[2] > frame.x1 + 3 for box, _ in around):
        around = [(_within(box, frame), cost) for box, cost in around]  # a label nearly as wide as the axes
    for box, cost in around or _beside(own, frame, width, height):
        if box[0] < frame.x0 or box[2] > frame.x1 + 3 or box[1] < frame.y0 + 1 or box[3] > frame.y1 + 0.5 * height:
            continue
        if any(_overlap(box, other) for other in taken):
            continue
        clear = _clearance(box, points)
        if clear < wish.distance:
            if not wish.must:
                continue
            cost += 2.0 + _hidden(box, points, costs)
        if wish.prefer is not None:
            middle = (box[0] + box[2]) / 2
            cost += 3.0 * abs(middle - frame.x0 - wish.prefer * frame.width) / frame.width
        cost -= 0.5 * min(clear, 2 * height) / height
        if cost < least - 1e-9:
            best, least = box, cost
    return best


def _within(box: Box, frame: Any) -> Box:
    """A box moved to the left or the right, into the axes."""
    left = max(float(frame.x0), min(box[0], float(frame.x1) - (box[2] - box[0])))
    return left, box[1], left + box[2] - box[0], box[3]


def _beside(own: Floats, frame: Any, width: float, height: float) -> Iterator[tuple[Box, float]]:
    """Places just above and below a line, each with its cost: how far the label stands off."""
    first = max(frame.x0, own[0, 0]) + width / 2 + 3
    last = max(first, min(frame.x1, own[-1, 0]) - width / 2 - 1)
    for centre in np.linspace(first, last, CANDIDATES).tolist():
        left, right = centre - width / 2, centre + width / 2
        near = np.interp(np.linspace(left, right, 25), own[:, 0], own[:, 1])
        for bottom in (float(near.max()) + GAP, float(near.min()) - GAP - height):
            away = min(abs(bottom - near[12]), abs(bottom + height - near[12])) - GAP
            yield (left, bottom, right, bottom + height), 0.8 * float(away) / height


def _around(axes: Axes, wish: Wish, width: float, height: float) -> Iterator[tuple[Box, float]]:
    """Places around a point: above it at best, else to a side."""
    level = float(np.interp(wish.at or 0.0, wish.x, wish.y))
    x, y = (float(value) for value in axes.transData.transform((wish.at or 0.0, level)))
    off = wish.off
    sides = ((-0.5 * width, 0.0), (-0.9 * width, 0.5), (-0.1 * width, 0.6))
    places = []
    for times in (1.0, 2.0) if wish.must else (1.0,):
        heights = ((times * off, 0.0), (-times * off - height, 0.3))
        places += [(side, up, cost + more + times - 1) for side, cost in sides for up, more in heights]
    for up, cost in ((0.0, 0.8), (GAP, 0.9), (-height / 2, 0.9), (-height, 1.0), (-off - height, 1.2)):
        places += [(-width - off, up, cost), (off, up, cost + 0.1)]
    for side, up, cost in places:
        yield (x + side, y + up, x + side + width, y + up + height), cost


def _along(axes: Axes, x: Floats, y: Floats) -> Floats:
    """Points along a line, in pixels, evenly spaced."""
    points = axes.transData.transform(np.column_stack([x, y]))
    if len(points) == 1:
        return np.asarray(points)
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    steps = np.linspace(0.0, way[-1], max(2, int(way[-1] / STEP)))
    return np.column_stack([np.interp(steps, way, points[:, 0]), np.interp(steps, way, points[:, 1])])


def _same(line: Floats, own: Floats) -> bool:
    """Whether the evenly spaced points lie on the label's own line."""
    return bool(np.abs(np.interp(line[:, 0], own[:, 0], own[:, 1]) - line[:, 1]).max() < 1.0)


def _clearance(box: Box, points: Floats) -> float:
    """The distance from a box to the nearest point."""
    if not len(points):
        return np.inf
    across = np.maximum(np.maximum(box[0] - points[:, 0], points[:, 0] - box[2]), 0.0)
    up = np.maximum(np.maximum(box[1] - points[:, 1], points[:, 1] - box[3]), 0.0)
    return float(np.hypot(across, up).min())


def _hidden(box: Box, points: Floats, costs: Floats) -> float:
    """What it costs that a box covers points."""
    across = (points[:, 0] > box[0] - 1) & (points[:, 0] < box[2] + 1)
    return float(costs[across & (points[:, 1] > box[1] - 1) & (points[:, 1] < box[3] + 1)].sum())


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] + 2 and other[0] < one[2] + 2 and one[1] < other[3] and other[1] < one[3]


def label_right(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> list[Any]:
    """Words right of the axes, at (height, words, colour), in the room that the layout shall leave for them."""
    return [
        axes.text(
            1.015 if len(labels) == 1 else 1.05,
            height,
            words,
            transform=axes.get_yaxis_transform(),
            size=SMALL,
            color=colour,
            va="center",
            ha="left",
            linespacing=1.1,
        )
        for height, words, colour in labels
    ]


def wish_right(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> list[Wish]:
    """The same words within the axes, beside levels that go all the way, where nothing may stand outside."""
    ends = np.array(axes.get_xlim())
    return [
        Wish(words, ends, np.array([height, height]), colour, 1.0, distance=1.5, must=True)
        for height, words, colour in labels
    ]


def spread_right(axes: Axes, texts: Sequence[Any]) -> None:
    """Moves labels on the right apart, as little as possible, with a thin line back to their places."""
    if not texts:
        return
    order = sorted(texts, key=lambda text: float(text.get_position()[1]))
    wanted = axes.transData.transform([(axes.get_xlim()[0], text.get_position()[1]) for text in order])[:, 1]
    heights = np.array([text.get_window_extent().height + 4.0 for text in order])
    placed = spread(wanted, heights)
    for text, new, old in zip(order, placed, wanted, strict=True):
        if len(order) == 1:
            continue
        low, high = (axes.transData.inverted().transform((0.0, value))[1] for value in (old, new))
        text.set_position((text.get_position()[0], high))
        axes.plot(
            [1.005, 1.04],
            [low, high],
            transform=axes.get_yaxis_transform(),
            color=text.get_color(),
            linewidth=0.5,
            clip_on=False,
            scalex=False,
            scaley=False,
        )


def spread(wanted: Floats, heights: Floats) -> Floats:
    """Centres as near as possible to the wanted ones, in their order, that keep the heights apart.

    >>> spread(np.array([0.0, 1.0, 50.0]), np.array([10.0, 10.0, 10.0])).tolist()
    [-4.5, 5.5, 50.0]
    """
    blocks: list[list[Any]] = []
    for centre, height in zip(wanted.tolist(), heights.tolist(), strict=True):
        blocks.append([centre, height, [height]])
        while len(blocks) > 1 and blocks[-1][0] - blocks[-1][1] / 2 < blocks[-2][0] + blocks[-2][1] / 2 - 1e-9:
            upper, lower = blocks.pop(), blocks.pop()
            many, few = len(upper[2]), len(lower[2])
            middle = (upper[0] * many + lower[0] * few) / (many + few)
            blocks.append([middle, upper[1] + lower[1], lower[2] + upper[2]])
    found = []
    for centre, total, parts in blocks:
        bottom = centre - total / 2
        for part in parts:
            found.append(bottom + part / 2)
            bottom += part
    return np.array(found)
