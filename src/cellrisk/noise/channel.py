"""The law of a released count, P(released value | true count). Every risk is a function of counts and of this law."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import USUAL_THRESHOLD, Noise, NoNoise, find_first, first_value
from cellrisk.system.arrays import Floats, Integers

NEVER_ZERO = 1e-18
"""A count whose probability of being released as zero is below this is taken never to be."""
UNCHANGED = 1e-40
"""Noise that changes a count with a smaller probability is taken for none."""
ANY_COUNT = 1 << 62
"""The zero radius of infinite noise: past every count."""


def at_each(law: Callable[[Any], Floats], numbers: Any) -> Floats:
    """Return a law at numbers a whole number apart, each computed once if the law then has fewer to compute."""
    if not numbers.size or 2.0 * np.ptp(numbers) >= numbers.size:
        return np.asarray(law(numbers))
    low, high = numbers.min(), numbers.max()
    return np.asarray(np.asarray(law(np.arange(low, high + 1.0)))[(numbers - low).astype(np.int64)])


class CountChannel(ABC):
    """P(released value | true count), under one setting or several side by side.

    A released value is a positive whole number, or 0 if the count is published as zero or not at all. For a true count
    n, with q(n) = P(0 | n),

        p_zero(n)     = q(n)               nothing is shown
        p_positive(n) = s(n) = 1 - q(n)    something is shown; computed as a tail, so small values keep their digits
        p_pivotal(n)  = q(n - 1) - q(n)    something is shown, and would not be had one record been left out
        pmf(n, v)     = P(v | n)           for released values v

    Counts are arrays of any shape. The result has one more axis at the end, the settings; ``channel[[0, 2]]`` takes
    some of them. Noise with a threshold is an `AdditiveChannel`; cell keys, rounding and suppression are a
    `TransitionTable`. Both take their parts independently for each count, so the probability that exactly one category
    of a group is shown is the paper's sum over categories k of s(n_k) prod_{j != k} q(n_j).

    >>> from cellrisk.noise.distributions import GeometricNoise
    >>> channel = AdditiveChannel((GeometricNoise(1.0), GeometricNoise(2.0)))
    >>> counts = np.array([3, 0])
    >>> q, s = channel.p_zero(counts), channel.p_positive(counts)
    >>> (s[0] * q[1]).round(6).tolist()  # the category of three people is shown, and the other is not
    [0.70445, 0.536006]
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of settings."""

    @abstractmethod
    def __getitem__(self, settings: slice | Sequence[int] | Integers) -> CountChannel:
        """Return the channel of some settings."""

    @abstractmethod
    def p_zero(self, counts: Any) -> Floats:
        """Return q(n): (..., settings)."""

    def p_positive(self, counts: Any) -> Floats:
        """Return s(n): (..., settings)."""
        return np.asarray(1.0 - self.p_zero(counts))

    def p_pivotal(self, counts: Any) -> Floats:
        """Return q(n - 1) - q(n): (..., settings). Negative where one record more can hide a count."""
        counts = np.asarray(counts)
        return np.asarray(self.p_zero(counts - 1) - self.p_zero(counts))

    @abstractmethod
    def pmf(self, counts: Any, values: Any) -> Floats:
        """Return P(v | n) for counts and released values that broadcast: (..., settings)."""

    @abstractmethod
    def cdf(self, counts: Any, values: Any) -> Floats:
        """Return P(released value <= v | n) for counts and values from 0 that broadcast: (..., settings)."""

    @abstractmethod
    def window(self, counts: Any) -> tuple[Integers, Integers]:
        """Return the first and the last positive value that each count may be released as, under the first setting.

        None is possible if the last is below the first. Values with a probability below 1e-17 in all on a side are left
        out.
        """

    @property
    @abstractmethod
    def radius(self) -> int:
        """How far a positive released value lies from its count at most, under the first setting (but for 1e-17)."""

    smooth: float = 0.0
    """Over how many released values P(v | n) is smooth, but at v = n, under the first setting; 0 if it is not."""

    @property
    def steepest(self) -> float:
        """How far log P(v | n) changes at most from one count to the next, at v > 0, under the first setting."""
        return math.inf

    @abstractmethod
    def support(self, counts: Any) -> Integers:
        """Return every value that one of the counts may be released as under the first setting, ascending; 0 is first.

        Values with a probability below 1e-17 in all on a side are left out.
        """

    @property
    @abstractmethod
    def zero_radius(self) -> Integers:
        """For each setting, the first count from which on none is released as zero (probability below 1e-18)."""

    @property
    def infinite(self) -> NDArray[np.bool_]:
        """For each setting, whether its noise has grown without bound, so q = s = 1/2 for every count."""
        return np.zeros(len(self), bool)

    @abstractmethod
    def draw(self, counts: Integers, generator: np.random.Generator) -> Integers:
        """Draw a release of these counts under the first setting, for simulation."""

    @cached_property
    def q0(self) -> Floats:
        """q(0) for each setting."""
        return np.asarray(self.p_zero(np.zeros(1))[0])

    @property
    def largest_p_zero(self) -> Floats:
        """The largest q(n) of any count, for each setting: that of 0, unless a larger count may hide more often."""
        return self.q0


@dataclass(frozen=True, eq=False)
class AdditiveChannel(CountChannel):
    """Noise is added to a count and the sum is rounded; values below a threshold are released as zero."""

    noises: tuple[Noise, ...]
    """One a setting."""
    threshold: float = USUAL_THRESHOLD
    """A half-integer. The smallest positive released value T is the next whole number."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noises", tuple(self.noises))
        object.__setattr__(self, "smooth", self.noises[0].scale if self.noises else 0.0)

    def __len__(self) -> int:
        return len(self.noises)

    def __getitem__(self, settings: slice | Sequence[int] | Integers) -> AdditiveChannel:
        chosen = np.arange(len(self))[settings].tolist()
        return AdditiveChannel(tuple(self.noises[setting] for setting in chosen), self.threshold)

    def p_zero(self, counts: Any) -> Floats:
        return np.stack([noise.p_zero(counts, self.threshold) for noise in self.noises], axis=-1)

    def p_positive(self, counts: Any) -> Floats:
        return np.stack([noise.p_positive(counts, self.threshold) for noise in self.noises], axis=-1)

    def p_pivotal(self, counts: Any) -> Floats:
        return np.stack([noise.p_pivotal(counts, self.threshold) for noise in self.noises], axis=-1)

    @cached_property
    def first(self) -> int:
        """T, the smallest positive released value."""
        return first_value(self.threshold)

    def pmf(self, counts: Any, values: Any) -> Floats:
        counts, values = np.asarray(counts), np.asarray(values)
        hidden = np.broadcast_to(values == 0, np.broadcast_shapes(counts.shape, values.shape))
        distance = (values - counts).astype(np.float64)
        masses = []
        for noise in self.noises:
            mass = np.where(np.abs(distance) > noise.tail_radius, 0.0, at_each(noise.mass, distance))
            if hidden.any():
                mass[hidden] = noise.p_zero(np.broadcast_to(counts, hidden.shape)[hidden], self.threshold)
            masses.append(mass)
        return np.stack(masses, axis=-1)

    def cdf(self, counts: Any, values: Any) -> Floats:
        distance = np.maximum(np.asarray(values), self.first - 1) - np.asarray(counts, dtype=np.float64)
        return np.stack([at_each(noise.cdf, distance + 0.5) for noise in self.noises], axis=-1)

    @property
    def radius(self) -> int:
        return self.noises[0].tail_radius

    @cached_property
    def noise(self) -> Noise:
        """The noise of the first setting; none where it changes no count."""
        return NoNoise() if float(self.noises[0].cdf(-0.5)) < UNCHANGED else self.noises[0]

    @property
    def steepest(self) -> float:
        return self.noise.steepest

    def window(self, counts: Any) -> tuple[Integers, Integers]:
        counts = np.asarray(counts, np.int64)
        return np.maximum(counts - self.radius, self.first), counts + self.radius

    def support(self, counts: Any) -> Integers:
        low, high = self.window(np.unique(counts))
        start = np.maximum(low, np.append(0, np.maximum.accumulate(high)[:-1]) + 1)  # both rise with the count
        return np.concatenate(
            [[0], *(np.arange(*run) for run in zip(start.tolist(), (high + 1).tolist(), strict=True))]
        )

    @cached_property
    def zero_radius(self) -> Integers:
        def first(noise: Noise) -> int:
            return find_first(lambda n: n >= ANY_COUNT or float(noise.p_zero(n, self.threshold)) < NEVER_ZERO)

        return np.array([first(noise) for noise in self.noises])

    @property
    def infinite(self) -> NDArray[np.bool_]:
        return np.array([noise.is_infinite for noise in self.noises])

    def draw(self, counts: Integers, generator: np.random.Generator) -> Integers:
        noisy = counts + np.rint(self.noises[0].sample(generator, counts.shape)).astype(np.int64)
        return np.asarray(np.where(noisy < self.threshold, 0, noisy))


Row = tuple[Integers, Floats]
"""The values that a count may be released as, ascending, and their probabilities."""


@dataclass(frozen=True, eq=False)
class TransitionTable(CountChannel):
    """A row of probabilities P(n -> v) for each count n = 0, 1, ..., one setting.

    The last ``period`` rows also hold for larger counts, shifted; with period 0 nothing is known of larger counts.

    >>> rounding = TransitionTable(((np.array([0]), np.ones(1)), (np.array([0, 2]), np.array([0.5, 0.5]))), period=2)
    >>> rounding.p_zero([0, 1, 2])[:, 0].tolist(), rounding.row(3)[0].tolist()
    ([1.0, 0.5, 0.0], [2, 4])
    """

    rows: tuple[Row, ...]
    period: int = 0

    def __len__(self) -> int:
        return 1

    def __getitem__(self, settings: slice | Sequence[int] | Integers) -> TransitionTable:
        return self

    def row(self, count: int) -> Row:
        """Return what a count is released as."""
        last = len(self.rows) - 1  # the largest count that has a row of its own
        if count <= last:
            return self.rows[count]
        if not self.period:
            what = "the perturbation table ends before the largest count"
            got = f"a last row for {last:,}"
            raise InvalidInput(what, got=got, fix="add rows up to the largest count", code="table-ends")
        base = last - self.period + 1 + (count - last - 1) % self.period
        values, pmf = self.rows[base]
        return values + (count - base), pmf

    @cached_property
    def _zero(self) -> Floats:
        """q at the counts that have rows; larger counts are shifted upwards, so none is released as zero."""
        return np.array([float(pmf[values == 0].sum()) for values, pmf in self.rows])

    def p_zero(self, counts: Any) -> Floats:
        counts = np.asarray(counts, dtype=np.float64)
        inside = np.clip(counts, 0, len(self.rows) - 1).astype(np.int64)
        return np.asarray(np.where(counts >= len(self.rows), 0.0, self._zero[inside]))[..., None]

    def _by_count(self, counts: Any, values: Any, law: Callable[[Row, Integers], Floats]) -> Floats:
        """Return a law of the row of each count, at its values."""
        counts, values = np.broadcast_arrays(np.asarray(counts), np.asarray(values))
        probabilities = np.zeros(counts.shape)
        for count in np.unique(counts).tolist():
            here = counts == count
            probabilities[here] = law(self.row(count), values[here])
        return probabilities[..., None]

    def pmf(self, counts: Any, values: Any) -> Floats:
        def law(row: Row, values: Integers) -> Floats:
            nearest = np.minimum(np.searchsorted(row[0], values), len(row[0]) - 1)
            return np.where(row[0][nearest] == values, row[1][nearest], 0.0)

        return self._by_count(counts, values, law)

    def cdf(self, counts: Any, values: Any) -> Floats:
        def law(row: Row, values: Integers) -> Floats:
            return np.append(0.0, np.cumsum(row[1]))[np.searchsorted(row[0], values, side="right")]

        return self._by_count(counts, values, law)

    def window(self, counts: Any) -> tuple[Integers, Integers]:
        shown = [self.row(count)[0] for count in np.asarray(counts).ravel().tolist()]
        shown = [values[values > 0] if values.any() else np.array([1, 0]) for values in shown]
        ends = np.array([(values[0], values[-1]) for values in shown]).reshape(*np.shape(counts), 2)
        return ends[..., 0], ends[..., 1]

    @cached_property
    def radius(self) -> int:
        shown = [values[values > 0] - count for count, (values, _) in enumerate(self.rows)]
        return max(int(np.abs(away).max(initial=0)) for away in shown)

    def support(self, counts: Any) -> Integers:
        rows = [self.row(count)[0] for count in np.unique(counts).tolist()]
        return np.unique(np.concatenate([[0], *rows]).astype(np.int64))

    @cached_property
    def zero_radius(self) -> Integers:
        return np.array([int(np.flatnonzero(self._zero > 0).max(initial=0)) + 1])

    @property
    def largest_p_zero(self) -> Floats:
        return np.array([self._zero.max()])

    def draw(self, counts: Integers, generator: np.random.Generator) -> Integers:
        def drawn(row: Row, values: Integers) -> Floats:
            return generator.choice(row[0], size=len(values), p=row[1] / row[1].sum())

        return self._by_count(counts, counts, drawn)[..., 0].astype(np.int64)
