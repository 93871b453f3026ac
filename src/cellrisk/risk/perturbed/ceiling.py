"""The worst case of a perturbation: an attacker who knows every other record and finds two values equally likely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellrisk.noise.perturbations import Perturbation
from cellrisk.system.arrays import Floats

TIE = 1e-12
MOST_PAIRS = 100_000
"""Pairs of known counts that are compared for the ceiling."""


def find_ceiling(perturbation: Perturbation) -> tuple[float, tuple[int, int]]:
    """Return how often such an attacker is right at the worst counts a, b of all others, and these counts.

    The release is that of (a + 1, b) or of (a, b + 1): C = 1/2 sum_{r, r'} max(P(a+1 -> r) P(b -> r'),
    P(a -> r) P(b+1 -> r')). Neighbouring rows that are alike but for a shift are compared once, in descending order of
    their total variation distance t: C is at most 1 - (1 - t_a)(1 - t_b)/2. Exact, unless more than `MOST_PAIRS` would
    have to be compared: then a bound.
    """
    steps = sorted(_list_steps(perturbation), key=lambda step: -step.distance)
    best, counts, pairs = 0.5, (0, 0), 0
    for place, first in enumerate(steps):
        for second in steps[place:]:
            bound = 1.0 - 0.5 * (1.0 - first.distance) * (1.0 - second.distance)
            if bound <= best + TIE:
                break
            pairs += 1
            if pairs > MOST_PAIRS:  # no later pair has a larger bound than the first step with itself
                return 1.0 - 0.5 * (1.0 - first.distance) ** 2, counts
            right = tell_apart(first, second)
            if right > best + TIE:
                best, counts = right, (min(first.count, second.count), max(first.count, second.count))
    return min(best, 1.0), counts


def find_advantage(perturbation: Perturbation) -> float:
    """Return by how much one record, added to any count, raises the probability of anything published at most."""
    return max(step.distance for step in _list_steps(perturbation))


@dataclass(frozen=True, eq=False)
class RowStep:
    """The rows of a count and of the next one, value by value, in the order of their ratio."""

    count: int
    without: Floats
    having: Floats

    @cached_property
    def distance(self) -> float:
        """The total variation distance between the two rows."""
        return 0.5 * float(np.abs(self.having - self.without).sum())

    @cached_property
    def odds(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(self.having / self.without)


def tell_apart(first: RowStep, second: RowStep) -> float:
    """Return C for one pair of known counts: pairs of values by whether the first category's ratio is the larger."""
    place = np.searchsorted(second.odds, first.odds, side="right")
    below = np.concatenate([[0.0], np.cumsum(second.without)])
    above = np.concatenate([np.cumsum(second.having[::-1])[::-1], [0.0]])
    return 0.5 * float(first.having @ below[place] + first.without @ above[place])


def _list_steps(perturbation: Perturbation) -> list[RowStep]:
    """Return the different steps from a count to the next."""
    steps: dict[bytes, RowStep] = {}
    for count in range(perturbation.last + perturbation.period):
        rows = perturbation.row(count), perturbation.row(count + 1)
        every = np.union1d(rows[0][0], rows[1][0])
        pmf = np.zeros((2, len(every)))
        for row, (values, probabilities) in zip(pmf, rows, strict=True):
            row[np.searchsorted(every, values)] = probabilities
        without, having = pmf[:, pmf.any(axis=0)]
        with np.errstate(divide="ignore"):
            order = np.lexsort((having, having / without))
        step = RowStep(count, without[order], having[order])
        steps.setdefault(np.concatenate([step.without, step.having]).round(12).tobytes(), step)
    return list(steps.values())
