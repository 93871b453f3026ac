"""The attack that names the category with the largest released count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attacks.guess import Guess, find_rows
from cellrisk.risk.attacks.lattice import lay_lattice, refine, split_near
from cellrisk.risk.measures.exactly_one import each_alone
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

ROWS_AT_ONCE = 256


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

    >>> from cellrisk import Laplace, Profiles
    >>> from cellrisk.noise.channel import AdditiveChannel
    >>> cell = Profiles.from_cells([[4, 2, 1]], n_levels=3)
    >>> noises = AdditiveChannel((Laplace(epsilon=1.0).noise, Laplace(epsilon=0.0001).noise))
    >>> Plurality().average(cell, noises, ("tight",))["tight", "uniform"].round(4).tolist()
    [0.5132, 0.2917]
    """

    attack: ClassVar[str] = "plurality"

    def prob_named_as(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        largest = counts.max(axis=1)
        order = np.argsort(largest, kind="stable")
        found = np.empty((len(owns), *counts.shape))
        for few in split_near(largest[order], channel.radius, ROWS_AT_ONCE):
            rows = order[few]
            found[:, rows] = _win([own[rows] for own in owns], counts[rows], n_levels, channel)
        return found


def _win(owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
    """Return how often each category wins, of cells whose largest counts are near: (owns, cells, categories)."""
    # A winner below the values of the largest count, or above all values, has a probability below 1e-17.
    low, high = channel.window(np.unique([known.max(axis=1) for known in (counts, *owns)]))
    distinct, (row, *own_rows) = find_rows([counts, *owns])
    points, weights = np.polynomial.legendre.leggauss((n_levels + 1) // 2)  # exact to degree n_levels - 1
    points, weights = 0.5 * (points + 1.0), 0.5 * weights

    def attempt(longest: float) -> tuple[Floats, float]:
        lattice = lay_lattice(int(low.min()), int(np.maximum(high, low).max()), distinct, longest)
        below = channel.cdf(distinct[:, None], lattice.values - 1.0)[..., 0]
        equal = channel.pmf(distinct[:, None], lattice.values)[..., 0]
        found, error = np.empty((len(owns), *counts.shape)), 0.0
        step = max(1, NUMBERS_AT_ONCE // (len(lattice.values) * counts.shape[1]))
        for start in range(0, len(counts), step):
            few = slice(start, start + step)
            less, same = below[row[few].T], equal[row[few].T]
            others = np.zeros_like(same)  # how likely no other category beats category k
            for point, weight in zip(points, weights, strict=True):
                absent = (below[0] + point * equal[0]) ** (n_levels - counts.shape[1])  # 0 is the first count
                others += each_alone(less + point * same, np.ones_like(same)) * (weight * absent)
            for place, own_row in enumerate(own_rows):
                wins = equal[own_row[few].T] * others
                found[place, few] = (wins @ lattice.weights).T
                error = max(error, *(lattice.error(terms) for terms in wins))
        return found, error

    return refine(channel.smooth, attempt)
