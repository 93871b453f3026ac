"""How many people: the number whose sensitive value is read off a release, as a random number, because the noise is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellrisk.attacks import GUESSES
from cellrisk.errors import InvalidInput
from cellrisk.measures import Survival
from cellrisk.measures.measure import NUMBERS_AT_ONCE
from cellrisk.mechanisms import Mechanism
from cellrisk.profiles import Block, Floats, Profiles

COVERAGE = 0.95
WINDOW = 18.0
"""Standard deviations that the exact distribution is computed over; the mass outside is below 1e-15."""
EXACT_WORK = 4_000_000
"""Numbers of frequencies times counts up to which the distribution is computed exactly."""
NORMAL_QUANTILE = 1.959963984540054
NEGLIGIBLE = 1e-18


@dataclass(frozen=True)
class People:
    """The number of people exposed by one release: mean, standard deviation, and an interval that holds it."""

    mean: float
    deviation: float
    """Exact: cells are independent, so variances add up."""
    low: int
    high: int
    """The number lies from ``low`` to ``high`` in at least 95% of releases, and below or above in at most 2.5% each."""
    exact: bool
    """Whether the interval comes from the exact distribution; else from the normal one with this mean and deviation."""

    def __post_init__(self) -> None:
        if not (self.deviation >= 0 and self.low <= self.high):
            raise InvalidInput("a number of people needs a deviation of 0 or more, and an interval in order")

    @property
    def spread(self) -> str:
        """How far the number varies from release to release.

        >>> People(8142.9, 255.3, 7638, 8638, exact=True).spread
        'standard deviation 255, 95% interval 7,638 to 8,638'
        """
        deviation = f"{self.deviation:,.0f}" if self.deviation >= 10 else f"{round(self.deviation, 2):.2g}"
        return f"standard deviation {deviation}, 95% interval {self.low:,} to {self.high:,}"

    def describe(self) -> str:
        """The number as a headline has it."""
        return f"about {round(self.mean):,} ({self.spread})"


def count_people(profiles: Profiles, mechanism: Mechanism, attack: str = "homogeneity") -> People:
    """How many people's values would one release give away?

    A cell shows label k alone, and so exposes its n_k people, with probability P_k = s(n_k) prod_{j != k} q(n_j). Mean
    and variance of a cell are sum n_k P_k and sum n_k^2 P_k - (sum n_k P_k)^2, and cells are independent. The interval
    is read off the exact distribution, whose characteristic function is the product over cells of
    1 + sum_k P_k (e^(i w n_k) - 1); where that takes too long, off the normal distribution. For an attack that guesses,
    P_k is the probability that it names k, and the interval is the normal one.

    >>> from cellrisk import Laplace
    >>> found = count_people(Profiles.from_cells([[3, 0], [2, 1]], n_levels=2), Laplace(epsilon=1.0))
    >>> round(found.mean, 6), round(found.deviation, 6), found.low, found.high
    (2.621011, 1.664582, 0, 5)
    """
    survival = Survival((mechanism.noise,), mechanism.threshold)
    mean = variance = 0.0
    shown: list[tuple[Block, Floats]] = []
    for block in _pieces(profiles):
        if attack in GUESSES:
            guess, counts = GUESSES[attack](), block.counts.astype(np.float64)
            first, second = (guess.expect(block, profiles.n_levels, survival, counts**power)[:, 0] for power in (1, 2))
        else:
            chance = shown_alone(block, profiles.n_levels, survival)
            shown.append((block, chance))
            first = (chance * block.counts).sum(axis=1)
            second = (chance * block.counts.astype(np.float64) ** 2).sum(axis=1)
        mean += float(block.cells @ first)
        variance += float(block.cells @ np.maximum(second - first**2, 0.0))
    deviation = float(np.sqrt(variance))
    largest = max(int(block.counts.max()) for block in profiles.blocks)
    length = min(profiles.n_records + 1, int(WINDOW * deviation) + 2 * largest + 16)
    entries = sum(block.counts.size for block in profiles.blocks)
    exact = attack not in GUESSES and (length // 2 + 1) * entries <= EXACT_WORK
    if exact:
        low, high = _exact_interval(shown, mean, length, profiles.n_records)
    else:
        low = max(0, int(np.floor(mean - NORMAL_QUANTILE * deviation)))
        high = min(profiles.n_records, int(np.ceil(mean + NORMAL_QUANTILE * deviation)))
    return People(mean, deviation, low, high, exact)


def shown_alone(block: Block, n_levels: int, survival: Survival) -> Floats:
    """For each profile and label present, the probability that the release shows this label alone, under one noise."""
    vanish = survival.vanish(block.counts.reshape(-1))[:, 0].reshape(block.counts.shape)
    survive = survival.survive(block.counts.reshape(-1))[:, 0].reshape(block.counts.shape)
    before, after = np.ones_like(vanish), np.ones_like(vanish)
    before[:, 1:] = np.cumprod(vanish[:, :-1], axis=1)
    after[:, :-1] = np.cumprod(vanish[:, :0:-1], axis=1)[:, ::-1]
    absent = float(survival.vanish_empty[0]) ** (n_levels - block.counts.shape[1])
    return np.asarray(survive * before * after * absent)


def _pieces(profiles: Profiles) -> Iterator[Block]:
    if not profiles.blocks:
        raise InvalidInput("a table without records has no risk")
    for block in profiles.blocks:
        step = max(1, NUMBERS_AT_ONCE // block.counts.shape[1])
        for start in range(0, len(block), step):
            yield block[start : start + step]


def _exact_interval(shown: list[tuple[Block, Floats]], mean: float, length: int, most: int) -> tuple[int, int]:
    """Quantiles of the distribution, from its characteristic function at ``length`` frequencies.

    Factors are at most 1 in size, so a frequency at which the product has become negligible needs no further ones;
    the profiles of the most cells come first, and few frequencies are left after them.
    """
    frequency = 2.0 * np.pi * np.arange(length // 2 + 1) / length
    product = np.ones(len(frequency), complex)
    kept = np.arange(len(frequency))
    rows = [(int(cells), block, chance, row) for block, chance in shown for row, cells in enumerate(block.cells)]
    for number, (cells, block, chance, row) in enumerate(sorted(rows, key=lambda each: -each[0])):
        turned = np.exp(1j * np.outer(block.counts[row], frequency[kept])) - 1.0
        product[kept] *= (1.0 + chance[row] @ turned) ** cells
        if number % 8 == 0:
            kept = kept[np.abs(product[kept]) > NEGLIGIBLE]
    start = 0 if length > most else max(0, round(mean) - length // 2)
    mass = np.fft.irfft(np.conj(product), length)  # of each remainder by ``length``
    at = start + np.arange(length)
    below = np.cumsum(mass[at % length])
    tail = (1.0 - COVERAGE) / 2.0
    low, high = np.searchsorted(below, [tail + 1e-12, 1.0 - tail - 1e-12])
    return int(at[low]), int(min(at[min(high, length - 1)], most))
