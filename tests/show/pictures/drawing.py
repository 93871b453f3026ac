"""Tables to draw, and what a drawn figure holds: its lines, levels and words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.risk.curves import Line

EPSILONS = [0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0]
MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


def make_table(levels: int, sensitive: str | list[str] = "job", seed: int = 5) -> cr.FrequencyTable:
    """A made table of four quasi-identifiers, with cells of many sizes."""
    random = np.random.default_rng(seed)
    many = 400
    frame = pd.DataFrame(
        {
            "age": np.minimum(random.geometric(0.2, many), 12),
            "town": random.choice(list("abcd"), many, p=[0.6, 0.2, 0.15, 0.05]),
            "sex": random.choice(["f", "m"], many),
            "job": random.integers(0, levels, many).astype(str),
            "pay": random.choice(["low", "high"], many, p=[0.8, 0.2]),
        }
    )
    return cr.tabulate(frame, ["age", "town", "sex"], sensitive)


def drawn_lines(figure: Figure) -> list[tuple[Any, Any]]:
    return [(line.get_xdata(), line.get_ydata()) for axes in figure.axes for line in axes.lines]


def holds(figure: Figure, line: Line) -> bool:
    """Whether a drawn line has exactly the numbers of a line of the result."""
    return any(np.array_equal(x, line.epsilon) and np.array_equal(y, line.risk) for x, y in drawn_lines(figure))


def levels_of(figure: Figure) -> list[float]:
    """The heights of horizontal reference lines."""
    pairs = [
        np.asarray(y, float) for x, y in drawn_lines(figure) if len(y) == 2 and set(np.ravel(x)) <= {0, 0.3, 0.8, 1}
    ]
    return [float(y[0]) for y in pairs if y[0] == y[1]]


def words_of(figure: Figure) -> str:
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend() is not None)]
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    texts += [text for legend in legends for text in legend.get_texts()]
    return " ".join(" ".join(text.get_text() for text in texts).split())
