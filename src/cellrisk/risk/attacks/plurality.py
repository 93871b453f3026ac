"""The attacker who names the label with the largest released count."""

from __future__ import annotations

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

ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Plurality(Guess):
    """How often is a person's value guessed, when the guess is the label with the largest released count?

    Ties are split evenly, and a cell released as all zeros draws no guess. With r_k the released counts and v from
    the smallest positive released value,

        tight = sum_k (n_k/n) P(k wins),
        P(k wins) = sum_v P(r_k = v) integral_0^1 prod_{j != k} (P(r_j < v) + u P(r_j = v)) du,

    the product over all K - 1 other labels, absent ones too (u stands for the place of k in a random order of the
    tied). The integrand is a polynomial of degree K - 1, so Gauss-Legendre points integrate it exactly. Exact for
    independent noise: terms are positive, what is cut off is below 1e-15; sums over very many values are taken in
    panels whose error is estimated and held below 1e-11. No other form exists.

    As noise grows every label wins alike, and what is left is chance: (1 - 2^-K)/K.

    >>> from cellrisk import Laplace, Profiles
    >>> from cellrisk.noise.channel import AdditiveChannel
    >>> cell = Profiles.from_cells([[4, 2, 1]], n_levels=3)
    >>> noises = AdditiveChannel((Laplace(epsilon=1.0).noise, Laplace(epsilon=0.0001).noise))
    >>> Plurality().average(cell, noises, ("tight",))["tight", "uniform"].round(4).tolist()
    [0.5132, 0.2917]
    """

    attack: ClassVar[str] = "plurality"

    def expect(self, block: Block, n_levels: int, channel: CountChannel, worth: Floats) -> Floats:
        found = [_win_all(block.counts, worth, n_levels, channel[[place]]) for place in range(len(channel))]
        return np.concatenate(found, axis=1)

    def name_each(self, block: Block, n_levels: int, channel: CountChannel) -> Floats:
        return _win_all(block.counts, None, n_levels, channel[[0]])


def _win_all(counts: Integers, worth: Floats | None, n_levels: int, channel: CountChannel) -> Floats:
    """Return the same as `_win` for any cells."""
    order = np.argsort(counts[:, 0], kind="stable")
    found = np.empty((len(counts), 1) if worth is not None else counts.shape)
    for few in split_near(counts[order, 0], channel.radius, ROWS_AT_ONCE):
        rows = order[few]
        found[rows] = _win(counts[rows], None if worth is None else worth[rows], n_levels, channel)
    return found


def _win(counts: Integers, worth: Floats | None, n_levels: int, channel: CountChannel) -> Floats:
    """Return what cells whose largest counts are near each other reveal, under one setting: (cells, 1).

    Without ``worth``, how often each of their categories wins: (cells, categories).
    """
    # A winner below the values of the largest count, or above all values, has a probability below 1e-17.
    low, high = channel.window(np.unique(counts[:, 0]))
    distinct, where = np.unique(counts, return_inverse=True)
    row = where.reshape(counts.shape)

    def attempt(longest: float) -> tuple[Floats, float]:
        first, last = int(low.min()), int(np.maximum(high, low).max())
        lattice = lay_lattice(first, last, distinct, longest)
        wins = _Wins.of(distinct, lattice.values, channel, n_levels, counts.shape[1])
        found, error = np.empty((len(counts), counts.shape[1] if worth is None else 1)), 0.0
        step = max(1, NUMBERS_AT_ONCE // (len(lattice.values) * found.shape[1]))
        for start in range(0, len(counts), step):
            few = slice(start, start + step)
            every = wins.of_each(row[few]) if worth is None else [wins.at_each_value(row[few], worth[few])]
            for label, terms in enumerate(every):
                found[few, label] = terms @ lattice.weights
                error = max(error, lattice.error(terms))
        return found, error

    return refine(channel.smooth, attempt)


@dataclass(frozen=True, eq=False)
class _Wins:
    """What each distinct count does at each released value."""

    below: Floats
    """P(r < v): (distinct counts, values)."""
    equal: Floats
    """P(r = v)."""
    absent: Floats
    """The product over the absent labels at each point u: (points, values)."""
    points: Floats
    weights: Floats

    @staticmethod
    def of(distinct: Integers, values: Floats, channel: CountChannel, n_levels: int, n_present: int) -> _Wins:
        points, weights = np.polynomial.legendre.leggauss((n_levels + 1) // 2)  # exact to degree n_levels - 1
        points, weights = 0.5 * (points + 1.0), 0.5 * weights
        counts = np.append(distinct, 0)[:, None]
        below, equal = channel.cdf(counts, values - 1.0)[..., 0], channel.pmf(counts, values)[..., 0]
        absent = below[-1] + points[:, None] * equal[-1]
        return _Wins(below[:-1], equal[:-1], absent ** (n_levels - n_present), points, weights)

    def _labels(self, row: Integers) -> tuple[list[Floats], list[Floats]]:
        """P(r < v) and P(r = v) of each label of the cells: (cells, values)."""
        return [self.below[label] for label in row.T], [self.equal[label] for label in row.T]

    def at_each_value(self, row: Integers, worth: Floats) -> Floats:
        """sum_k worth_k P(k wins with the value v): (cells, values)."""
        total = np.zeros((len(row), self.below.shape[1]))
        below, equal = self._labels(row)
        wins = [share[:, None] * same for share, same in zip(worth.T, equal, strict=True)]
        for point, weight, absent in zip(self.points, self.weights, self.absent, strict=True):
            loses = [less + point * same for less, same in zip(below, equal, strict=True)]
            total += exactly_one(loses, wins) * (weight * absent)
        return total

    def of_each(self, row: Integers) -> list[Floats]:
        """P(k wins with the value v) for each label: (cells, values)."""
        below, equal = self._labels(row)
        totals = [np.zeros((len(row), self.below.shape[1])) for _ in below]
        for point, weight, absent in zip(self.points, self.weights, self.absent, strict=True):
            loses = [less + point * same for less, same in zip(below, equal, strict=True)]
            for total, alone in zip(totals, each_alone(loses, equal), strict=True):
                total += alone * (weight * absent)
        return totals
