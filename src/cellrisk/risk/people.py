"""How many people: the number whose sensitive value is read off a release, as a random number, because the noise is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attacks import GUESSES
from cellrisk.risk.measures.local import shown_alone
from cellrisk.risk.totals import CellOutcomes, find_interval, find_moments
from cellrisk.system.arrays import NUMBERS_AT_ONCE
from cellrisk.system.formatting import about_people

TAIL = 0.025
"""The share of releases that is below the interval at most, and above it at most."""


@dataclass(frozen=True)
class People:
    """The number of people exposed by one release: mean, standard deviation, and an interval that holds it."""

    mean: float
    deviation: float
    """Exact: cells are independent, so variances add up."""
    low: int
    high: int
    """The number lies from ``low`` to ``high`` in at least 95% of releases, and below or above in at most 2.5% each."""
    exact: bool = True
    """Whether no narrower interval holds it so often; otherwise it was computed on a coarser grid."""

    def describe(self) -> str:
        """Return the number as a headline has it, and how far it varies from release to release.

        >>> People(8142.9, 255.3, 7638, 8638).describe()
        'about 8,143 (standard deviation 255, 95% interval 7,638 to 8,638)'
        >>> People(4.1, 3.346, 0, 12).describe()
        'about 4 (standard deviation 3.3, 95% interval 0 to 12)'
        """
        digits = 0 if self.deviation >= 10 else 1 if self.deviation >= 1 else 2
        deviation = f"{self.deviation:,.0f}" if digits == 0 else f"{round(self.deviation, digits):g}"
        spread = f"standard deviation {deviation}, 95% interval {self.low:,} to {self.high:,}"
        return f"{about_people(self.mean)} ({spread})"


def count_people(profiles: Profiles, channel: CountChannel, attack: str = "homogeneity") -> People:
    """Return how many people's values one release reveals.

    A cell shows category k alone, and so exposes its n_k people, with probability P_k = s(n_k) prod_{j != k} q(n_j);
    for an attack that guesses, P_k is the probability that it names k. Mean and variance of a cell are sum n_k P_k and
    sum n_k^2 P_k - (sum n_k P_k)^2, and cells are independent. The interval is that of `find_interval`: the number is
    below it in at most 2.5% of releases, and above it in at most 2.5%.

    >>> from cellrisk import Laplace
    >>> found = count_people(Profiles.from_cells([[3, 0], [2, 1]], n_levels=2), Laplace(epsilon=1.0).channel)
    >>> round(found.mean, 6), round(found.deviation, 6), found.low, found.high
    (2.621011, 1.664582, 0, 5)
    """
    outcomes = find_outcomes(profiles, channel, attack)
    mean, variance = find_moments(outcomes)
    return People(mean, math.sqrt(variance), *find_interval(outcomes, TAIL))


def find_outcomes(profiles: Profiles, channel: CountChannel, attack: str = "homogeneity") -> list[CellOutcomes]:
    """Return how many people of each cell the attack gets right, and how likely, under the first setting."""
    outcomes = []
    for block in split_profiles(profiles):
        if attack in GUESSES:
            pmf = GUESSES[attack]().prob_named_as([block.counts], block.counts, profiles.n_levels, channel)[0]
        else:
            pmf = shown_alone(block, profiles.n_levels, channel)
        whole = np.maximum(pmf.sum(axis=1, keepdims=True), 1.0)  # above 1 by rounding alone
        outcomes.append(CellOutcomes(block.counts, pmf / whole, block.cells))
    return outcomes


def split_profiles(profiles: Profiles) -> Iterator[Block]:
    """Yield the profiles, few at a time, so that working arrays stay small."""
    if not profiles.blocks:
        raise InvalidInput("a table without records has no risk", code="no-records")
    for block in profiles.blocks:
        step = max(1, NUMBERS_AT_ONCE // block.counts.shape[1])
        for start in range(0, len(block), step):
            yield block[start : start + step]
