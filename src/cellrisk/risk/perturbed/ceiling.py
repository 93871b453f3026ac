"""The worst case of a perturbation: an attacker who knows every other record and finds two values equally likely."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellrisk.noise.perturbations import Perturbation
from cellrisk.system.arrays import Floats

TIE = 1e-12
MOST_PAIRS = 100_000
"""Pairs of known counts that are gone through for the ceiling."""


def find_ceiling(perturbation: Perturbation) -> tuple[float, tuple[int, int]]:
    """Return how often such an attacker is right at the worst counts a, b of all others, and these counts.

    The release is that of (a + 1, b) or of (a, b + 1): C = 1/2 sum_{r, r'} max(P(a+1 -> r) P(b -> r'),
    P(a -> r) P(b+1 -> r')). Pairs of neighbouring rows that are alike but for a shift are gone through once, the most
    promising first: with t the total variation distance of two neighbouring rows, C is at most
    1 - (1 - t_a)(1 - t_b)/2. Exact, unless more than `MOST_PAIRS` would have to be gone through: then a bound.
    """
    kinds = sorted(_list_steps(perturbation), key=lambda step: -step.distance)
    if not kinds:
        return 0.5, (0, 0)

    def most(first: int, second: int) -> float:
        return 1.0 - 0.5 * (1.0 - kinds[first].distance) * (1.0 - kinds[second].distance)

    best, counts = 0.5, (0, 0)
    waiting = [(-most(0, 0), 0, 0)]
    for _ in range(MOST_PAIRS):
        bound, first, second = heapq.heappop(waiting)
        if -bound <= best + TIE:
            break
        found = tell_apart(kinds[first], kinds[second])
        if found > best + TIE:
            a, b = sorted((kinds[first].count, kinds[second].count))
            best, counts = found, (a, b)
        if second + 1 < len(kinds):
            heapq.heappush(waiting, (-most(first, second + 1), first, second + 1))
        if first == second and first + 1 < len(kinds):
            heapq.heappush(waiting, (-most(first + 1, first + 1), first + 1, first + 1))
        if not waiting:
            break
    else:
        best = max(best, -waiting[0][0])
    return min(best, 1.0), counts


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
    """C for one pair of known counts: pairs of values by whether the first label's ratio is the larger."""
    place = np.searchsorted(second.odds, first.odds, side="right")
    below = np.concatenate([[0.0], np.cumsum(second.without)])
    above = np.concatenate([np.cumsum(second.having[::-1])[::-1], [0.0]])
    return 0.5 * float(first.having @ below[place] + first.without @ above[place])


def _list_steps(perturbation: Perturbation) -> list[RowStep]:
    kinds: dict[bytes, RowStep] = {}
    for count in range(perturbation.last + perturbation.period if perturbation.period else perturbation.last):
        (values, chances), (more, others) = perturbation.row(count), perturbation.row(count + 1)
        every = np.union1d(values, more)
        without, having = np.zeros(len(every)), np.zeros(len(every))
        without[np.searchsorted(every, values)] = chances
        having[np.searchsorted(every, more)] = others
        some = (without > 0) | (having > 0)
        step = RowStep(count, without[some], having[some])
        order = np.lexsort((step.having, step.odds))
        step = RowStep(count, step.without[order], step.having[order])
        kinds.setdefault(np.concatenate([step.without, step.having]).round(12).tobytes(), step)
    return list(kinds.values())
