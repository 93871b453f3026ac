"""Attacks that always guess: the largest released count, and a draw in proportion to the released counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attacks.lattice import lay_lattice, refine, split_near
from cellrisk.risk.measures.local import Local, each_alone
from cellrisk.risk.measures.measure import RisksByForm
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

CELLS_AT_ONCE, COUNTS_AT_ONCE = 256, 128
"""Cells of the plurality attack, and counts of the proportional attack, that share a range of released values."""
UNDERFLOW = 500.0
"""exp(-x r) is left out past this exponent: below 1e-217."""


class Guess(Local):
    """An attack that always names one category, or none.

    tight: the share of a cell's people whose value is named; own: less that with one's own record left out. The record
    of a person never takes a guess away from their category.
    """

    attack: ClassVar[str]

    @abstractmethod
    def prob_named_as(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        """Return P(the attack names k) if category k has its count in each of ``owns`` and the others keep theirs.

        For each category given in each cell, under the first setting: (owns, cells, categories).
        """

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        shares = block.counts / block.sizes[:, None]
        risks = {form: np.empty((len(block), len(channel))) for form in forms}
        owns = [block.counts, np.maximum(block.counts - 1, 0)][: 2 if "own" in forms else 1]
        for setting in range(len(channel)):
            named, *without = self.prob_named_as(owns, block.counts, n_levels, channel[[setting]])
            for form in forms:
                probability = named if form == "tight" else np.maximum(named - without[0], 0.0)
                risks[form][:, setting] = (shares * probability).sum(axis=1)
        return {form: np.minimum(risk, 1.0) for form, risk in risks.items()}

    def limit(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        """Return the risk under infinite noise: something is shown, and the guess is correct one time in K."""
        blind = np.full((len(block), len(channel)), (1.0 - 0.5**n_levels) / n_levels)
        return {form: blind if form == "tight" else 0.0 * blind for form in forms}


@dataclass(frozen=True)
class Plurality(Guess):
    """How often is a person's value named by the largest released count?

    Ties are split evenly, and a cell released as all zeros draws no guess. With r_k the released counts and v from
    the smallest positive released value,

        tight = sum_k (n_k/n) P(k wins),
        P(k wins) = sum_v P(r_k = v) integral_0^1 prod_{j != k} (P(r_j < v) + u P(r_j = v)) du,

    the product over all K - 1 other categories, absent ones too (u stands for the place of k in a random order of the
    tied). The integrand is a polynomial of degree K - 1, so Gauss-Legendre points integrate it exactly. Exact for
    independent noise: terms are positive, what is cut off is below 1e-15; sums over very many values are taken in
    panels whose error is estimated and held below 1e-11. No other form exists.

    As noise grows every category wins alike, and the blind share is left: (1 - 2^-K)/K.
    """

    attack: ClassVar[str] = "plurality"

    def prob_named_as(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        order = np.argsort(counts.max(axis=1), kind="stable")
        probabilities = np.empty((len(owns), *counts.shape))
        for near in split_near(counts.max(axis=1)[order], channel.radius, CELLS_AT_ONCE):
            rows = order[near]
            near_owns = [own[rows] for own in owns]
            probabilities[:, rows] = self._prob_largest(near_owns, counts[rows], n_levels, channel)
        return probabilities

    def _prob_largest(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        """Return how often each category wins, of cells whose largest counts are near: (owns, cells, categories)."""
        # A winner below the values of the largest count, or above all values, has a probability below 1e-17.
        low, high = channel.window(np.unique([known.max(axis=1) for known in (counts, *owns)]))
        distinct, (row, *own_rows) = _distinct_counts([counts, *owns])
        points, weights = np.polynomial.legendre.leggauss((n_levels + 1) // 2)  # exact to degree n_levels - 1
        points, weights = 0.5 * (points + 1.0), 0.5 * weights

        def attempt(longest: float) -> tuple[Floats, float]:
            lattice = lay_lattice(int(low.min()), int(np.maximum(high, low).max()), distinct, longest)
            below = channel.cdf(distinct[:, None], lattice.values - 1.0)[..., 0]
            equal = channel.pmf(distinct[:, None], lattice.values)[..., 0]
            probabilities, error = np.empty((len(owns), *counts.shape)), 0.0
            step = max(1, NUMBERS_AT_ONCE // (len(lattice.values) * counts.shape[1]))
            for start in range(0, len(counts), step):
                part = slice(start, start + step)
                less, same = below[row[part].T], equal[row[part].T]
                others = np.zeros_like(same)  # how likely no other category beats category k
                for point, weight in zip(points, weights, strict=True):
                    absent = (below[0] + point * equal[0]) ** (n_levels - counts.shape[1])  # 0 is the first count
                    others += each_alone(less + point * same, np.ones_like(same)) * (weight * absent)
                for which, own_row in enumerate(own_rows):
                    wins = equal[own_row[part].T] * others
                    probabilities[which, part] = (wins @ lattice.weights).T
                    error = max(error, *(lattice.error(terms) for terms in wins))
            return probabilities, error

        return refine(channel.smooth, attempt)


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
    """

    attack: ClassVar[str] = "proportional"

    def prob_named_as(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        distinct, (row, *own_rows) = _distinct_counts([counts, *owns])
        first, last = channel.window(distinct)
        added = int((np.maximum(last, first) - distinct).max())
        points, weights = inverse_rule(int(first.min()), int(counts.sum(axis=1).max()) + n_levels * added)
        transform, slope = np.empty((2, len(distinct), len(points)))
        for near in split_near(distinct, channel.radius, COUNTS_AT_ONCE):
            transform[near], slope[near] = _laplace_transform(distinct[near], channel, points)
        absent = weights * transform[0] ** (n_levels - counts.shape[1])  # 0 is the first count
        probabilities = np.empty((len(owns), *counts.shape))
        step = max(1, NUMBERS_AT_ONCE // (len(absent) * counts.shape[1]))
        for start in range(0, len(counts), step):
            part = slice(start, start + step)
            for which, own_row in enumerate(own_rows):
                alone = each_alone(transform[row[part].T], slope[own_row[part].T])
                probabilities[which, part] = (alone @ absent).T
        return probabilities


def inverse_rule(smallest: int, largest: int) -> tuple[Floats, Floats]:
    """Return points x and weights w with sum w exp(-x r) = 1/r for every r between two totals, to a relative 1e-13.

    Gauss-Legendre panels on [0, h], [h, 3 h], [3 h, 9 h], ... with h the inverse of the largest total, up to
    where exp(-x r) is below 1e-15 for the smallest.
    """
    ratio, order = 3.0, 12
    end, start = 36.0 / smallest, 1.0 / largest
    n_panels = max(1, math.ceil(math.log(end / start) / math.log(ratio)))
    edges = np.concatenate([[0.0], start * ratio ** np.arange(n_panels + 1.0)])
    points, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * points).ravel(), (half * weights).ravel()


def _laplace_transform(counts: Integers, channel: CountChannel, points: Floats) -> tuple[Floats, Floats]:
    """Return G and -G' of each count at each point: (counts, points)."""
    low, high = channel.window(counts)

    def attempt(longest: float) -> tuple[Floats, float]:
        lattice = lay_lattice(int(low.min()), int(np.maximum(high, low).max()), counts, longest)
        pmf = channel.pmf(counts[:, None], lattice.values)[..., 0]
        exponent = lattice.values[:, None] * points
        decay = np.exp(-exponent) * lattice.weights[:, None]
        decay[exponent > UNDERFLOW] = 0.0  # subnormal numbers would slow the products tenfold
        records = pmf * lattice.values
        error = 0.0
        if len(lattice.panels):
            for point in points[:: len(points) // 12]:
                fall = np.exp(-point * lattice.values)
                error = max(error, lattice.error(pmf * fall), lattice.error(records * (point * fall)))
        return np.concatenate([pmf, records]) @ decay, error

    shown, slope = np.split(refine(channel.smooth, attempt), 2)
    return channel.p_zero(counts) + shown, slope


def _distinct_counts(counts: Sequence[Integers]) -> tuple[Integers, list[Integers]]:
    """Return the distinct counts of several arrays, ascending from 0, and the place of each count among them."""
    distinct = np.unique(np.concatenate([np.zeros(1, np.int64), *(array.ravel() for array in counts)]))
    return distinct, [np.searchsorted(distinct, array) for array in counts]
