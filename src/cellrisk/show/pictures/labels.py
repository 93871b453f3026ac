"""Words beside the lines and points that they name, where they hide nothing.

All lengths are pixels of a figure with a hundred of them to an inch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.style import INK, SMALL
from cellrisk.system.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 2.5
"""Between a label and its own line."""
CLEAR = 1.5
"""Between a label and other lines, at least."""
STEP = 3.0
"""Between the points of a line that a label may hide."""
AROUND = np.array(
    [
        *((-0.5, 0, 0, 1, 0.0), (-0.9, 0, 0, 1, 0.5), (-0.1, 0, 0, 1, 0.6)),  # above
        *((-0.5, 0, -1, -1, 0.3), (-0.9, 0, -1, -1, 0.8), (-0.1, 0, -1, -1, 0.9)),  # below
        *((-1, -1, 0, 0, 0.8), (-1, -1, -0.5, 0, 0.9), (-1, -1, -1, 0, 1.0), (-1, -1, -1, -1, 1.2)),  # on the left
        *((0, 1, 0, 0, 0.9), (0, 1, -0.5, 0, 1.0), (0, 1, -1, 0, 1.1), (0, 1, -1, -1, 1.3)),  # on the right
        *((-0.5, 0, 0, 2, 1.0), (-0.9, 0, 0, 2, 1.5), (-0.5, 0, -1, -2, 1.3), (-0.9, 0, -1, -2, 1.8)),  # farther off
    ]
)
"""Places for the label of a point: its left end in widths and offsets, its bottom in heights and offsets, its cost."""


@dataclass(frozen=True, eq=False)
class Label:
    """Words that are to stand beside a line, or around one point of it."""

    words: str
    x: Floats
    y: Floats
    """The line, from left to right."""
    colour: str
    prefer: float | None = None
    """Where along the axis the label would best be, from 0 to 1; None where it does not matter."""
    at: float | None = None
    """The x of the point; None for the label of a line."""
    offset: float = 2 * GAP
    """How far the label of a point stands from its middle."""
    size: float = SMALL
    weight: str = "normal"
    must: bool = False
    """Whether it is shown even where it hides a piece of a line."""


Rectangle = tuple[float, float, float, float]
"""Left, bottom, right, top."""
Path = tuple[Floats, Floats]
"""A line as it was drawn."""


def place_labels(
    axes: Axes,
    labels: Sequence[Label],
    drawn: Sequence[Path],
    taken: Sequence[Rectangle] = (),
    faint: Sequence[Path] = (),
) -> list[Rectangle] | None:
    """Writes each label where it is clear of lines and of other labels, and returns the boxes that are taken then.

    A label that finds no place is left out, or, where it must be shown, stands where it hides least; a faint line may
    be hidden sooner. None, with nothing written, where names of lines (labels that prefer no place) find none.
    """
    from matplotlib.patheffects import withStroke

    lines = [(_points(axes, *path), cost) for paths, cost in ((drawn, 1.0), (faint, 0.04)) for path in paths]
    boxes, texts = list(taken), []
    for label in labels:
        text = axes.text(0.0, 0.0, label.words, size=label.size, color=label.colour, weight=label.weight)
        text.set(horizontalalignment="center", verticalalignment="center", linespacing=1.1)
        text.set_in_layout(False)
        texts.append(text)
        extent = text.get_window_extent()
        box = _find_box(axes, label, extent.width, extent.height, lines, boxes)
        if box is None and label.prefer is None and label.at is None:
            for written in texts:
                written.remove()
            return None
        if box is None:
            texts.pop().remove()
            continue
        boxes.append(box)
        middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        text.set_transform(axes.transAxes)
        text.set_position(tuple(axes.transAxes.inverted().transform(middle)))
        if label.must:  # white around the letters, so that they can be read on a line
            text.set_path_effects([withStroke(linewidth=1.8, foreground="white")])
    return boxes


def mark_box(axes: Axes, x: float, y: float, radius: float) -> Rectangle:
    """The room that a mark takes up."""
    across, up = (float(value) for value in axes.transData.transform((x, y)))
    return across - radius, up - radius, across + radius, up + radius


def _find_box(
    axes: Axes,
    label: Label,
    width: float,
    height: float,
    lines: Sequence[tuple[Floats, float]],
    taken: Sequence[Rectangle],
) -> Rectangle | None:
    """The cheapest place for a label of that size; None where it fits nowhere."""
    own, frame = axes.transData.transform(np.column_stack([label.x, label.y])), axes.get_window_extent()
    left, bottom, cost = _beside(own, frame, width, height) if label.at is None else _around(axes, label, width, height)
    if label.must:
        moved = np.clip(left, frame.x0, max(frame.x0, frame.x1 + 3 - width))
        left, cost = moved, cost + np.abs(moved - left) / height
    right, top = left + width, bottom + height
    fits = (left >= frame.x0) & (right <= frame.x1 + 3) & (bottom >= frame.y0 + 1) & (top <= frame.y1 + 0.5 * height)
    for low, floor, high, ceiling in taken:
        fits &= (left >= high + 2) | (right + 2 <= low) | (bottom >= ceiling) | (top <= floor)
    for points, hiding in lines:
        if label.at is None and np.abs(np.interp(points[:, 0], *own.T) - points[:, 1]).max() < 1.0:
            continue  # the label's own line
        across = np.maximum(np.maximum(left[:, None] - points[:, 0], points[:, 0] - right[:, None]), 0.0)
        up = np.maximum(np.maximum(bottom[:, None] - points[:, 1], points[:, 1] - top[:, None]), 0.0)
        away = np.hypot(across, up)
        clearance = away.min(axis=1)
        fits &= (clearance >= CLEAR) | label.must
        cost = cost + 2.0 * (clearance < CLEAR) + hiding * (away < 1.0).sum(axis=1)
        cost = cost - 0.5 * np.minimum(clearance / height, 2.0) / len(lines)
    if label.prefer is not None:
        cost = cost + 3.0 * np.abs((left + right) / 2 - frame.x0 - label.prefer * frame.width) / frame.width
    best = int(np.argmin(np.where(fits, cost, np.inf)))
    return (float(left[best]), float(bottom[best]), float(right[best]), float(top[best])) if fits[best] else None


def _beside(own: Floats, frame: Any, width: float, height: float) -> tuple[Floats, Floats, Floats]:
    """Left, bottom and cost of places just above and below a line; the cost is how far the label stands off."""
    first = max(frame.x0, own[0, 0]) + width / 2 + 3
    middles = np.linspace(first, max(first, min(frame.x1, own[-1, 0]) - width / 2 - 1), 61)
    near = np.interp(middles[:, None] + np.linspace(-0.5, 0.5, 25) * width, own[:, 0], own[:, 1])
    low, middle, high = near.min(axis=1), near[:, 12], near.max(axis=1)
    cost = 0.8 * np.concatenate([high - middle, middle - low]) / height
    return np.tile(middles - width / 2, 2), np.concatenate([high + GAP, low - GAP - height]), cost


def _around(axes: Axes, label: Label, width: float, height: float) -> tuple[Floats, Floats, Floats]:
    """Left, bottom and cost of places around a point."""
    at = label.at or 0.0
    x, y = axes.transData.transform((at, float(np.interp(at, label.x, label.y))))
    widths, sideways, heights, upwards, cost = AROUND.T
    return x + widths * width + sideways * label.offset, y + heights * height + upwards * label.offset, cost


def _points(axes: Axes, x: Floats, y: Floats) -> Floats:
    """Points along a line, evenly spaced."""
    points = np.asarray(axes.transData.transform(np.column_stack([x, y])))
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    steps = np.linspace(0.0, way[-1], max(2, int(way[-1] / STEP)))
    return np.column_stack([np.interp(steps, way, points[:, 0]), np.interp(steps, way, points[:, 1])])


def write_beside(axes: Axes, words: str, at: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """Writes words so many points right of a place and above it."""
    axes.annotate(words, at, offset, textcoords="offset points", **{"size": SMALL, "color": INK, **look})


def label_right(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> list[Any]:
    """Words right of the axes, at (height, words, colour), in the room that the layout shall leave for them."""
    across = 1.015 if len(labels) == 1 else 1.05
    look: dict[str, Any] = {"size": SMALL, "va": "center", "ha": "left", "linespacing": 1.1}
    beside = axes.get_yaxis_transform()
    return [
        axes.text(across, height, words, transform=beside, color=colour, **look) for height, words, colour in labels
    ]


def label_right_inside(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> list[Label]:
    """The same words within the axes, beside levels that go all the way, where nothing may stand outside."""
    ends = np.array(axes.get_xlim())
    return [Label(words, ends, np.array([height, height]), colour, 1.0, must=True) for height, words, colour in labels]


def spread_right(axes: Axes, texts: Sequence[Any]) -> None:
    """Moves labels on the right apart, as little as possible, with a thin line back to their places."""
    if len(texts) < 2:
        return
    order = sorted(texts, key=lambda text: float(text.get_position()[1]))
    wanted = axes.transData.transform([(axes.get_xlim()[0], text.get_position()[1]) for text in order])[:, 1]
    heights = np.array([text.get_window_extent().height + 4.0 for text in order])
    placed = spread(wanted, heights)
    for text, new, old in zip(order, placed, wanted, strict=True):
        low, high = (axes.transData.inverted().transform((0.0, value))[1] for value in (old, new))
        text.set_position((text.get_position()[0], high))
        look: dict[str, Any] = {"color": text.get_color(), "linewidth": 0.5, "clip_on": False}
        beside = axes.get_yaxis_transform()
        axes.plot([1.005, 1.04], [low, high], transform=beside, scalex=False, scaley=False, **look)


def spread(wanted: Floats, heights: Floats) -> Floats:
    """Centres as near as possible to the wanted ones, in their order, that keep the heights apart.

    Centres less the heights below them must not fall, so neighbours in which they do share their mean.

    >>> spread(np.array([0.0, 1.0, 50.0]), np.array([10.0, 10.0, 10.0])).tolist()
    [-4.5, 5.5, 50.0]
    """
    below = np.cumsum(heights) - heights / 2
    blocks: list[list[float]] = []
    for value in (wanted - below).tolist():
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-1]) < np.mean(blocks[-2]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return np.asarray(below + np.concatenate([np.full(len(block), np.mean(block)) for block in blocks]))
