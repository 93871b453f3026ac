"""The total of many independent cells: its mean, its variance, and an interval that holds it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

NEGLECTED = 1e-6
"""Cells that take another than their likeliest value with at most this probability, all together, are fixed at it."""
OUTSIDE = 1e-7
"""Probability on each side of the window that the total is computed over."""
LONGEST = 1 << 22
"""Points of the window; a longer one is computed on a coarser grid."""


@dataclass(frozen=True, eq=False)
class CellOutcomes:
    """Cells of several kinds: each takes one of a row's values with the probability beside it, and 0 otherwise."""

    values: Integers
    """(kinds, values)"""
    pmf: Floats
    """(kinds, values)"""
    cells: Integers
    """(kinds,): how many cells are of that kind."""

    @property
    def mean(self) -> Floats:
        """(kinds,): the mean of one cell."""
        return np.asarray((self.pmf * self.values).sum(axis=1))

    @property
    def _all(self) -> tuple[Integers, Floats]:
        """(kinds, values + 1): every value that a cell takes, the last of which is 0, and their probabilities."""
        rest = np.maximum(1.0 - self.pmf.sum(axis=1), 0.0)
        return np.column_stack([self.values, np.zeros_like(self.cells)]), np.column_stack([self.pmf, rest])

    @property
    def variance(self) -> Floats:
        """(kinds,): the variance of one cell, as a sum of squares, so that it is never negative."""
        values, pmf = self._all
        return np.asarray((pmf * (values - self.mean[:, None]) ** 2).sum(axis=1))

    @property
    def likeliest(self) -> tuple[Integers, Floats]:
        """(kinds,): the likeliest total of all cells of a kind, and a bound of the probability of another."""
        values, pmf = self._all
        value = values[np.arange(len(values)), pmf.argmax(axis=1)]
        return self.cells * value, self.cells * (pmf.sum(axis=1) - pmf.max(axis=1))


def find_moments(outcomes: Sequence[CellOutcomes]) -> tuple[float, float]:
    """Return the mean and the variance of the total of all cells, which are independent."""
    mean = sum(float(kinds.cells @ kinds.mean) for kinds in outcomes)
    return mean, sum(float(kinds.cells @ kinds.variance) for kinds in outcomes)


def find_interval(outcomes: Sequence[CellOutcomes], tail: float) -> tuple[int, int, bool]:
    """Return the whole numbers between which the total lies, but for a probability of at most ``tail`` on each side.

    The third value is whether no narrower ones would do: totals of millions are computed on a coarser grid.

    The total has the characteristic function prod over cells of 1 + sum_v P(v) (e^(i w v) - 1), which is transformed
    back over a window outside which Bernstein's inequality leaves less than 1e-7. Cells that are as good as certain are
    taken out first.
    """
    likeliest = [kinds.likeliest for kinds in outcomes]
    doubt = np.concatenate([part for _, part in likeliest])
    certain = np.zeros(len(doubt), bool)
    order = np.argsort(doubt, kind="stable")
    certain[order] = np.cumsum(doubt[order]) <= NEGLECTED
    fixed = int(np.concatenate([part for part, _ in likeliest])[certain].sum())
    parts = np.split(~certain, np.cumsum([len(kinds.cells) for kinds in outcomes])[:-1])
    rest = [
        CellOutcomes(kinds.values[part], kinds.pmf[part], kinds.cells[part])
        for kinds, part in zip(outcomes, parts, strict=True)
        if part.any()
    ]
    if not rest:
        return fixed, fixed, True
    mean, variance = find_moments(rest)
    radius = tail_radius(variance, float(max(kinds.values.max() for kinds in rest)), OUTSIDE)
    most = sum(int(kinds.cells @ kinds.values.max(axis=1)) for kinds in rest)
    start, stop = max(0, math.floor(mean - radius)), min(most, math.ceil(mean + radius))
    grid = 1 + (stop - start) // LONGEST
    length = fft.next_fast_len((stop - start) // grid + 2, real=True)
    total = fft.irfft(_transform(rest, grid, length), length)
    cdf = np.cumsum(np.roll(total, -(start // grid)))
    allowed = tail - 1.201 * NEGLECTED  # and what is outside the window
    low = int(np.searchsorted(cdf, allowed, side="right"))
    high = int(np.searchsorted(cdf, 1.0 - allowed, side="left"))
    return fixed + (start // grid + low) * grid, fixed + (start // grid + high) * grid, grid == 1


def _transform(outcomes: Sequence[CellOutcomes], grid: int, length: int) -> Floats:
    """Return the characteristic function of the total, in steps of the grid, conjugate, at all frequencies.

    Factors are at most 1 in size, so a frequency at which the product has become as small as rounding needs no further
    ones: those of the kinds of cells that vary most come first. On a coarser grid a value is shared out between its
    neighbours, so its mean stays.
    """
    roots = np.exp(-2j * np.pi / length * np.arange(length))
    kept = np.arange(length // 2 + 1)
    log_product = np.zeros(len(kept), complex)
    for kinds in sorted(outcomes, key=lambda kinds: -float((kinds.cells * kinds.variance).max())):
        ranked = np.argsort(-kinds.cells * kinds.variance, kind="stable")
        while len(ranked):
            rows, ranked = np.split(ranked, [max(1, NUMBERS_AT_ONCE // (len(kept) * kinds.values.shape[1]))])
            factor = np.ones((len(rows), len(kept)), complex)
            for values, pmf in zip(kinds.values[rows].T, kinds.pmf[rows].T, strict=True):
                below, part = values // grid, (values % grid) / grid
                wave = roots[below[:, None] * kept % length]
                if grid > 1:
                    wave += part[:, None] * (roots[(below + 1)[:, None] * kept % length] - wave)
                factor += pmf[:, None] * (wave - 1.0)
            with np.errstate(divide="ignore"):
                log_product += kinds.cells[rows] @ np.log(factor)
            matters = log_product.real > math.log(np.finfo(np.float64).eps)
            kept, log_product = kept[matters], log_product[matters]
    transform = np.zeros(length // 2 + 1, complex)
    transform[kept] = np.exp(log_product)
    return transform


def tail_radius(variance: float, largest: float, outside: float) -> float:
    """Return how far from its mean a total of independent numbers goes with probability ``outside``, at most, a side.

    Bernstein: P(total - mean >= t) <= exp(-t^2 / (2 (v + m t/3))), with v the variance and m the farthest that any of
    them is from its mean.
    """
    exponent = -math.log(outside)
    linear = exponent * largest / 3.0
    return linear + math.sqrt(linear**2 + 2.0 * exponent * variance)
