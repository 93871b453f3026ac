"""What samples say: whether they have a distribution, and whether two of them break a privacy promise.

Each test raises a false alarm with probability FALSE_ALARM at most, or about that much for the chi-square one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

import cellrisk as cr
from cellrisk.noise.mechanisms import Mechanism

FALSE_ALARM = 1e-6
SIDE = 150
"""Cells of `square` are SIDE x SIDE."""

Chance = Callable[[int], float]


def square(count: int, share: float = 1.0) -> cr.FrequencyTable:
    """A table of SIDE x SIDE cells, of which a share hold ``count`` records with y = no; no record has y = yes."""
    labels = [f"v{place:03}" for place in range(SIDE)]
    rows = pd.DataFrame([(a, b) for a in labels for b in labels][: round(share * SIDE**2)], columns=["a", "b"])
    rows = rows.assign(y="no", c=count)
    return cr.tabulate(rows, ["a", "b"], "y", levels={"a": labels, "b": labels, "y": ["no", "yes"]}, count="c")


def all_counts(frame: pd.DataFrame) -> np.ndarray:
    """(cells, levels): every count of a `square`, those that are not listed as zero."""
    grid = np.zeros((SIDE * SIDE, 2), np.int64)
    grid[frame.a.cat.codes.to_numpy(np.int64) * SIDE + frame.b.cat.codes, frame.y.cat.codes] = frame["count"]
    return grid


def chance_of(mechanism: Mechanism) -> Chance:
    """P(noise = j) from the definition, by a sum over all that is not negligible."""

    def weight(j: int) -> float:
        if mechanism.name == "geometric":
            return math.exp(-abs(j) / mechanism.scale)
        return math.exp(-(j**2) / (2.0 * mechanism.scale**2))

    reach = math.ceil(60 * mechanism.scale) + 60
    total = math.fsum(weight(j) for j in range(-reach, reach + 1))
    return lambda j: weight(j) / total


def misfit(values: np.ndarray, support: Sequence[int], chances: Sequence[float]) -> float:
    """The p-value of a chi-square test. Neighbours are pooled until 10 are expected; the rest is a class."""
    observed, expected = [0], [0.0]
    found = dict(zip(*np.unique(values, return_counts=True), strict=True))
    for value, chance in zip(support, chances, strict=True):
        if expected[-1] >= 10:
            observed.append(0)
            expected.append(0.0)
        observed[-1] += int(found.pop(value, 0))
        expected[-1] += chance * len(values)
    observed[-1] += sum(found.values())
    expected[-1] += max(len(values) - math.fsum(expected), 0.0)
    if expected[-1] < 10:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    terms = (np.array(observed) - np.array(expected)) ** 2 / np.array(expected)
    return float(stats.chi2.sf(terms.sum(), len(terms) - 1))


def breaks_promise(first: np.ndarray, second: np.ndarray, epsilon: float, delta: float) -> bool:
    """Whether samples of two neighbours show an event with P(first) > e^epsilon P(second) + delta, or the reverse.

    Events are the values up to and from each value on; their probabilities are bounded by Clopper and Pearson's
    intervals, so that all of them together are wrong with probability FALSE_ALARM.
    """
    values = np.unique(np.concatenate([first, second]))
    level = FALSE_ALARM / (8 * len(values))
    for p, q in ((first, second), (second, first)):
        for value in values:
            for event in (lambda sample, at=value: sample >= at, lambda sample, at=value: sample <= at):
                hits, others = int(event(p).sum()), int(event(q).sum())
                low = stats.beta.ppf(level, hits, len(p) - hits + 1) if hits else 0.0
                high = stats.beta.isf(level, others + 1, len(q) - others) if others < len(q) else 1.0
                if low > math.exp(epsilon) * high + delta:
                    return True
    return False
