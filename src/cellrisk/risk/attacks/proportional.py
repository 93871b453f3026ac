"""The attack that draws a category in proportion to the released counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attacks.guess import Guess, find_rows
from cellrisk.risk.attacks.lattice import lay_lattice, refine, split_near
from cellrisk.risk.measures.exactly_one import each_alone
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

COUNTS_AT_ONCE = 128
UNDERFLOW = 500.0
"""exp(-x r) is left out past this exponent: below 1e-217."""


@dataclass(frozen=True)
class Proportional(Guess):
    """How often is a person's value named by a draw in proportion to the released counts?

    A cell released as all zeros draws no guess. With r_k the released counts, r their total, and G the Laplace
    transform of a released count, G_k(x) = E exp(-x r_k),

        tight = sum_k (n_k/n) E[r_k/r; r > 0] = integral_0^oo sum_k (n_k/n) (-G_k'(x)) prod_{j != k} G_j(x) dx,

    the product over all K - 1 other categories, absent ones too, because 1/r = integral_0^oo exp(-x r) dx. Exact for
    independent noise: the rule for 1/r is right to 1e-13 for every total that can occur, whatever its distribution;
    G is a sum over the released values, cut below 1e-15, in panels whose error is estimated and held below 1e-11
    where the values are very many. All terms are positive. No other form exists.

    As noise grows every category is drawn alike, and the blind share is left: (1 - 2^-K)/K.

    >>> from cellrisk import Laplace, Profiles
    >>> from cellrisk.noise.channel import AdditiveChannel
    >>> cell = Profiles.from_cells([[4, 2, 1]], n_levels=3)
    >>> noises = AdditiveChannel((Laplace(epsilon=1.0).noise, Laplace(epsilon=0.0001).noise))
    >>> Proportional().average(cell, noises, ("tight",))["tight", "uniform"].round(4).tolist()
    [0.425, 0.2917]
    """

    attack: ClassVar[str] = "proportional"

    def prob_named_as(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        distinct, (row, *own_rows) = find_rows([counts, *owns])  # 0 is the first count
        first, last = channel.window(distinct)
        added = int((np.maximum(last, first) - distinct).max())
        rule = invert(int(first.min()), int(counts.sum(axis=1).max()) + n_levels * added)
        transform, slope = np.empty((2, len(distinct), len(rule.points)))
        for few in split_near(distinct, channel.radius, COUNTS_AT_ONCE):
            transform[few], slope[few] = _transform(distinct[few], channel, rule)
        absent = rule.weights * transform[0] ** (n_levels - counts.shape[1])
        found = np.empty((len(owns), *counts.shape))
        step = max(1, NUMBERS_AT_ONCE // (len(absent) * counts.shape[1]))
        for start in range(0, len(counts), step):
            few = slice(start, start + step)
            for place, own_row in enumerate(own_rows):
                found[place, few] = (each_alone(transform[row[few].T], slope[own_row[few].T]) @ absent).T
        return found


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


def _transform(counts: Integers, channel: CountChannel, rule: Inverse) -> tuple[Floats, Floats]:
    low, high = channel.window(counts)
    hidden = channel.p_zero(counts)

    def attempt(longest: float) -> tuple[Floats, float]:
        lattice = lay_lattice(int(low.min()), int(np.maximum(high, low).max()), counts, longest)
        pmf = channel.pmf(counts[:, None], lattice.values)[..., 0]
        exponent = lattice.values[:, None] * rule.points
        decay = np.exp(-exponent) * lattice.weights[:, None]
        decay[exponent > UNDERFLOW] = 0.0  # subnormal numbers would slow the products tenfold
        records = pmf * lattice.values
        error = 0.0
        if len(lattice.panels):
            for point in rule.points[:: len(rule.points) // 12]:
                fall = np.exp(-point * lattice.values)
                error = max(error, lattice.error(pmf * fall), lattice.error(records * (point * fall)))
        return np.concatenate([pmf, records]) @ decay, error

    shown, slope = np.split(refine(channel.smooth, attempt), 2)
    return hidden + shown, slope
