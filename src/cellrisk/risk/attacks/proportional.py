"""The attacker who draws a label in proportion to the released counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attacks.guess import Guess
from cellrisk.risk.attacks.lattice import lay_lattice, refine, split_near
from cellrisk.risk.measures.exactly_one import each_alone, exactly_one
from cellrisk.risk.measures.measure import NUMBERS_AT_ONCE
from cellrisk.system.arrays import Floats, Integers

COUNTS_AT_ONCE = 128
UNDERFLOW = 500.0
"""exp(-x r) is left out past this exponent: below 1e-217."""


@dataclass(frozen=True)
class Proportional(Guess):
    """How often is a person's value guessed, when the guess is drawn in proportion to the released counts?

    A cell released as all zeros draws no guess. With r_k the released counts, r their total, and G the Laplace
    transform of a released count, G_k(x) = E exp(-x r_k),

        tight = sum_k (n_k/n) E[r_k/r; r > 0] = integral_0^oo sum_k (n_k/n) (-G_k'(x)) prod_{j != k} G_j(x) dx,

    the product over all K - 1 other labels, absent ones too, because 1/r = integral_0^oo exp(-x r) dx. Exact for
    independent noise: the rule for 1/r is right to 1e-13 for every total that can occur, whatever its distribution;
    G is a sum over the released values, cut below 1e-15, in panels whose error is estimated and held below 1e-11
    where the values are very many. All terms are positive. No other form exists.

    As noise grows every label is drawn alike, and what is left is chance: (1 - 2^-K)/K.

    >>> from cellrisk import Laplace, Profiles
    >>> from cellrisk.noise.channel import AdditiveChannel
    >>> cell = Profiles.from_cells([[4, 2, 1]], n_levels=3)
    >>> noises = AdditiveChannel((Laplace(epsilon=1.0).noise, Laplace(epsilon=0.0001).noise))
    >>> Proportional().average(cell, noises, ("tight",))["tight", "uniform"].round(4).tolist()
    [0.425, 0.2917]
    """

    attack: ClassVar[str] = "proportional"

    def expect(self, block: Block, n_levels: int, channel: CountChannel, worth: Floats) -> Floats:
        n_absent = n_levels - block.counts.shape[1]
        found = np.empty((len(block), len(channel)))
        for place in range(len(channel)):
            drawn, row, rule = _draw(block, n_levels, channel[[place]])
            found[:, place] = drawn.average(row, worth, n_absent, rule)
        return found

    def name_each(self, block: Block, n_levels: int, channel: CountChannel) -> Floats:
        drawn, row, rule = _draw(block, n_levels, channel[[0]])
        return drawn.each(row, n_levels - block.counts.shape[1], rule)


def _draw(block: Block, n_levels: int, channel: CountChannel) -> tuple[_Transforms, Integers, Inverse]:
    """Return the transforms of the distinct counts, where each category's is among them, and the rule for 1/r."""
    distinct, where = np.unique(np.append(block.counts.ravel(), 0), return_inverse=True)  # 0 comes first
    row = where.reshape(-1)[:-1].reshape(block.counts.shape)
    first, last = channel.window(distinct)
    added = int((np.maximum(last, first) - distinct).max())
    rule = invert(int(first.min()), int(block.sizes.max()) + n_levels * added)
    return _Transforms.of(distinct, channel, rule), row, rule


@dataclass(frozen=True, eq=False)
class Inverse:
    """Points x and weights w with sum w exp(-x r) = 1/r."""

    points: Floats
    weights: Floats


def invert(smallest: int, largest: int) -> Inverse:
    """A rule for 1/r, of relative error below 1e-13 for every r from the smallest to the largest total.

    Gauss-Legendre panels on [0, h], [h, 3 h], [3 h, 9 h], ... with h the inverse of the largest total, up to
    where exp(-x r) is below 1e-15 for the smallest.

    >>> rule = invert(1, 1000)
    >>> round(float(rule.weights @ np.exp(-7.0 * rule.points)) * 7, 12)
    1.0
    """
    ratio, order = 3.0, 12
    end, start = 36.0 / smallest, 1.0 / largest
    n_panels = max(1, math.ceil(math.log(end / start) / math.log(ratio)))
    edges = np.concatenate([[0.0], start * ratio ** np.arange(n_panels + 1.0)])
    points, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return Inverse((middle + half * points).ravel(), (half * weights).ravel())


@dataclass(frozen=True, eq=False)
class _Transforms:
    """Transforms of what is released of each distinct count, at each point x: (distinct counts, points)."""

    transform: Floats
    """E exp(-x r)."""
    slope: Floats
    """E r exp(-x r)."""

    @staticmethod
    def of(distinct: Integers, channel: CountChannel, rule: Inverse) -> _Transforms:
        shape = (len(distinct), len(rule.points))
        transform, slope = np.empty(shape), np.empty(shape)
        for few in split_near(distinct, channel.radius, COUNTS_AT_ONCE):
            transform[few], slope[few] = _transform(distinct[few], channel, rule)
        return _Transforms(transform, slope)

    def average(self, row: Integers, worth: Floats, n_absent: int, rule: Inverse) -> Floats:
        """What each cell gives away."""
        absent = rule.weights * self.transform[0] ** n_absent
        found = np.empty(len(row))
        step = max(1, NUMBERS_AT_ONCE // len(absent))
        for start in range(0, len(row), step):
            few = slice(start, start + step)
            labels = range(row.shape[1])
            others = [self.transform[row[few, label]] for label in labels]
            drawn = [worth[few, label, None] * self.slope[row[few, label]] for label in labels]
            found[few] = exactly_one(others, drawn) @ absent
        return found

    def each(self, row: Integers, n_absent: int, rule: Inverse) -> Floats:
        """How often each label of each cell is drawn: (cells, labels)."""
        absent = rule.weights * self.transform[0] ** n_absent
        found = np.empty(row.shape)
        step = max(1, NUMBERS_AT_ONCE // (len(absent) * row.shape[1]))
        for start in range(0, len(row), step):
            few = slice(start, start + step)
            labels = range(row.shape[1])
            others = [self.transform[row[few, label]] for label in labels]
            drawn = [self.slope[row[few, label]] for label in labels]
            for label, alone in enumerate(each_alone(others, drawn)):
                found[few, label] = alone @ absent
        return found


def _transform(counts: Integers, channel: CountChannel, rule: Inverse) -> tuple[Floats, Floats]:
    low, high = channel.window(counts)
    vanish = channel.p_zero(counts)

    def attempt(longest: float) -> tuple[Floats, float]:
        lattice = lay_lattice(int(low.min()), int(np.maximum(high, low).max()), counts, longest)
        chance = channel.pmf(counts[:, None], lattice.values)[..., 0]
        exponent = lattice.values[:, None] * rule.points
        decay = np.exp(-exponent) * lattice.weights[:, None]
        decay[exponent > UNDERFLOW] = 0.0  # subnormal numbers would slow the products tenfold
        records = chance * lattice.values
        error = 0.0
        if len(lattice.panels):
            for point in rule.points[:: len(rule.points) // 12]:
                fall = np.exp(-point * lattice.values)
                error = max(error, lattice.error(chance * fall), lattice.error(records * (point * fall)))
        return np.concatenate([chance, records]) @ decay, error

    survives, slope = np.split(refine(channel.smooth, attempt), 2)
    return vanish + survives, slope
