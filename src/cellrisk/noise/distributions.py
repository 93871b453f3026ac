"""What is added to a count. Noise knows its own distribution and nothing of epsilon, tables or risks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats

NEGLIGIBLE = 1e-17
"""Sums stop where less probability than this is left on a side."""
WIDE = 200.0
"""Noise of a larger scale has its masses computed directly, not as differences of its cdf."""
USUAL_THRESHOLD = 0.5
"""Only what is below 1 vanishes."""


@dataclass(frozen=True)
class Noise(ABC):
    """Symmetric noise, added independently to each count; the sum is rounded and values below a threshold vanish.

    A new noise implements ``cdf`` and ``sample``; the rest follows. The contract suite in the tests runs on
    every subclass.
    """

    scale: float
    """The one parameter, in counts: Laplace's b, a Gaussian's sigma."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidInput("the scale of noise must be a positive number", got=self.scale)

    @classmethod
    def at_scales(cls, scales: Iterable[float]) -> tuple[Noise, ...]:
        """This kind of noise at each of several scales."""
        return tuple(cls(scale) for scale in scales)

    @abstractmethod
    def cdf(self, x: Any) -> Floats:
        """P(noise <= x), accurate in relative terms far into the lower tail. Evaluated between integers only."""

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Draws for simulation. Not safe for a release: floating-point noise leaks."""

    @property
    def last_vanishing(self) -> int | None:
        """The last count that may vanish at all, where that is known and q need not fall; None for added noise."""
        return None

    def vanish(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """q(m) = P(m + noise < threshold): the probability that a count m is released as zero.

        >>> round(float(LaplaceNoise(1.0).vanish(0)), 6)  # 1 - exp(-1/2)/2
        0.696735
        """
        return self.cdf(threshold - np.asarray(count, dtype=np.float64))

    def survive(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """s(m) = P(m + noise > threshold), by symmetry a lower tail too, so never 1 - q.

        >>> round(float(LaplaceNoise(1.0).survive(0)), 6)
        0.303265
        """
        return self.cdf(np.asarray(count, dtype=np.float64) - threshold)

    def lose(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """d(m) = q(m - 1) - q(m): how much likelier a count m vanishes if one record less is in it.

        It is the probability that m is released as exactly the smallest value, so that nothing cancels.
        """
        return self.mass(np.asarray(count, dtype=np.float64) - first_value(threshold))

    def at_most(self, distance: Floats) -> Floats:
        """P(rounded noise <= d) at whole numbers d."""
        return _once(lambda far: self.cdf(far + 0.5), distance)

    def mass(self, distance: Floats) -> Floats:
        """P(rounded noise = d) at whole numbers d. Exact.

        A difference of two lower tails. Where noise is wide the difference of two near-equal numbers would lose digits,
        so the noises that are known have it in closed form; any other noise keeps the difference.

        >>> LaplaceNoise(1.0).mass(np.array([0.0, 3.0])).round(6).tolist()
        [0.393469, 0.025944]
        """
        return _once(self._wide_mass if self.scale > WIDE else self._difference, distance)

    def _wide_mass(self, distance: Floats) -> Floats:
        """P(rounded noise = d) where the scale is large."""
        return self._difference(distance)

    def _difference(self, distance: Floats) -> Floats:
        away = -np.abs(distance)
        return np.asarray(self.cdf(away + 0.5) - self.cdf(away - 0.5))

    @cached_property
    def reach(self) -> int:
        """The distance from a count past which there is less than 1e-17 of probability.

        >>> LaplaceNoise(10.0).reach
        385
        """
        return find_first(lambda distance: float(self.cdf(-0.5 - distance)) < NEGLIGIBLE)


def find_first(holds: Callable[[int], bool]) -> int:
    """The smallest whole number, from 1 on, at which something holds that then holds for all larger ones.

    >>> find_first(lambda number: number * number >= 50)
    8
    """
    low, high = 0, 1
    while not holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _once(law: Callable[[Floats], Floats], distance: Floats) -> Floats:
    """A law at whole numbers, each computed once where their range is less than half as long as the list of them."""
    low, high = float(distance.min()), float(distance.max())
    if 2.0 * (high - low) >= distance.size:
        return law(distance)
    return np.asarray(law(np.arange(low, high + 1.0))[(distance - low).astype(np.int64)])


def first_value(threshold: float) -> int:
    """The smallest positive released value.

    >>> first_value(2.5)
    3
    """
    if not (threshold >= 0.5 and threshold % 1 == 0.5):
        raise InvalidInput("threshold must be a positive half-integer", got=threshold, allowed="0.5, 1.5, ...")
    return math.ceil(threshold)


def vanish_under(noises: Sequence[Noise], counts: Any, threshold: float) -> Floats:
    """q of each noise at each count: (counts, noises)."""
    return np.stack([noise.vanish(counts, threshold) for noise in noises], axis=-1)


def survive_under(noises: Sequence[Noise], counts: Any, threshold: float) -> Floats:
    """s of each noise at each count: (counts, noises)."""
    return np.stack([noise.survive(counts, threshold) for noise in noises], axis=-1)


def lose_under(noises: Sequence[Noise], counts: Any, threshold: float) -> Floats:
    """d of each noise at each count: (counts, noises)."""
    return np.stack([noise.lose(counts, threshold) for noise in noises], axis=-1)


@dataclass(frozen=True)
class NoNoise(Noise):
    """Counts as they are: where noise goes as epsilon grows without bound."""

    scale: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Nothing was given."""

    def cdf(self, x: Any) -> Floats:
        return np.asarray(np.where(np.asarray(x) < 0, 0.0, 1.0))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return np.zeros(shape)


@dataclass(frozen=True)
class EndlessNoise(Noise):
    """Noise that has grown without bound: every count, however large, vanishes half of the time.

    >>> float(EndlessNoise().vanish(1_000_000)), float(EndlessNoise().survive(0))
    (0.5, 0.5)
    """

    scale: float = field(default=math.inf, init=False)

    def __post_init__(self) -> None:
        """Nothing was given."""

    def cdf(self, x: Any) -> Floats:
        return np.full(np.shape(x), 0.5)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        raise InvalidInput("noise without bound cannot be drawn", fix="draw noise of a finite scale")


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Density exp(-|x| / scale) / (2 scale)."""

    def cdf(self, x: Any) -> Floats:
        half = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.asarray(np.where(np.asarray(x) < 0, half, 1.0 - half))

    def _wide_mass(self, distance: Floats) -> Floats:
        half = 0.5 / self.scale
        sides = np.exp(-np.abs(distance) / self.scale) * math.sinh(half)
        return np.asarray(np.where(distance == 0, -math.expm1(-half), sides))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.laplace(0.0, self.scale, shape)


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Normal with standard deviation ``scale``."""

    def cdf(self, x: Any) -> Floats:
        return np.asarray(special.ndtr(np.asarray(x) / self.scale))

    def _wide_mass(self, distance: Floats) -> Floats:
        """The density integrated over a unit by three Gauss points: relative error (z/scale)^6 / 2e6, below 1e-14."""
        density = sum(
            (0.5 * weight * np.exp(-0.5 * ((distance + 0.5 * point) / self.scale) ** 2))
            for point, weight in np.transpose(np.polynomial.legendre.leggauss(3))
        )
        return np.asarray(density / (self.scale * math.sqrt(2.0 * math.pi)))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.normal(0.0, self.scale, shape)


_COUNTABLE = 1e16
"""Draws of a geometric noise of this scale are still far below 2^63."""


@dataclass(frozen=True)
class GeometricNoise(Noise):
    """Two-sided geometric (discrete Laplace): P(j) = (1 - a)/(1 + a) a^|j| with a = exp(-1/scale)."""

    def cdf(self, x: Any) -> Floats:
        tail_length = np.ceil(np.abs(x))  # P(noise >= k) = a^k/(1 + a) for k >= 1
        tail = np.exp(-tail_length / self.scale) / (1.0 + math.exp(-1.0 / self.scale))
        return np.asarray(np.where(np.asarray(x) < 0, tail, 1.0 - tail))

    def _wide_mass(self, distance: Floats) -> Floats:
        return np.asarray(math.tanh(0.5 / self.scale) * np.exp(-np.abs(distance) / self.scale))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.scale > _COUNTABLE:  # 64 bits would not do; a geometric is an exponential rounded up
            first, second = (np.ceil(generator.exponential(self.scale, shape)) for _ in range(2))
            return np.asarray(first - second)
        success = -math.expm1(-1.0 / self.scale)
        draws = generator.geometric(success, shape) - generator.geometric(success, shape)
        return draws.astype(np.float64)


@dataclass(frozen=True)
class DiscreteGaussianNoise(Noise):
    """Integers with P(j) proportional to exp(-j^2 / (2 scale^2))."""

    @cached_property
    def _weight_total(self) -> float:
        return float(1.0 + 2.0 * self._tail_weights(np.array([1.0]))[0])

    def _tail_weights(self, first: Any) -> Floats:
        """Sum of exp(-j^2/(2 scale^2)) over j >= first, for whole numbers first >= 1."""
        if self.scale > 1000:
            return self._smooth_tail_weights(np.asarray(first, dtype=np.float64))
        underflow = math.ceil(39.0 * self.scale)
        first = np.minimum(first, underflow).astype(np.int64)
        start, last = int(np.min(first)), int(np.max(first))
        end = min(underflow, last + math.ceil(9.5 * self.scale)) + 1
        terms = np.exp(-0.5 * (np.arange(start, end) / self.scale) ** 2)
        sums = np.cumsum(terms[::-1])[::-1]  # smallest first
        return np.asarray(sums[first - start])

    def _smooth_tail_weights(self, first: Floats) -> Floats:
        """The tail weights by the Euler-Maclaurin midpoint formula to the third derivative: relative error below 1e-12.

        The fifth would add at most 31 u^6 / (967680 sigma^6) of the whole, below 1e-12 where nothing underflows.
        """
        sigma = self.scale
        u = (first - 0.5) / sigma
        density = np.exp(-0.5 * u * u)
        first_derivative = -u / sigma
        third = -(u**3 - 3.0 * u) / sigma**3
        corrections = first_derivative / 24.0 - 7.0 * third / 5760.0
        return np.asarray(sigma * math.sqrt(2.0 * math.pi) * special.ndtr(-u) + corrections * density)

    def cdf(self, x: Any) -> Floats:
        beyond = np.ceil(np.abs(np.asarray(x, dtype=np.float64)))
        tail = self._tail_weights(beyond) / self._weight_total
        return np.asarray(np.where(np.asarray(x) < 0, tail, 1.0 - tail))

    def _wide_mass(self, distance: Floats) -> Floats:
        """The weights total scale sqrt(2 pi) (1 + 2 exp(-2 pi^2 scale^2) + ...), by Poisson summation."""
        return np.asarray(np.exp(-0.5 * (distance / self.scale) ** 2) / (self.scale * math.sqrt(2.0 * math.pi)))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.scale > 1000:  # a rounded Gaussian: probabilities differ by about 1/(24 scale^2) of themselves
            return np.asarray(np.rint(generator.normal(0.0, self.scale, shape)))
        reach = math.ceil(9.5 * self.scale)
        support = np.arange(-reach, reach + 1)
        weight = np.exp(-0.5 * (support / self.scale) ** 2)
        return generator.choice(support.astype(np.float64), size=shape, p=weight / weight.sum())
