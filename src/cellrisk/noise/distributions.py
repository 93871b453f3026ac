"""Noise added to a count: its distribution, and nothing of epsilon, tables or risks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats

TAIL = 1e-17
"""Probability left out on each side of a sum over released values."""
WIDE = 200.0
"""Scale, in counts, above which differences of a Gaussian cdf lose digits, and its density is integrated instead."""
USUAL_THRESHOLD = 0.5
"""Only noisy counts below 1 are released as zero."""


@dataclass(frozen=True)
class Noise(ABC):
    """Symmetric noise, added independently to each count; the sum is rounded, and zero below a threshold.

    A new noise implements ``cdf`` and ``sample``; the rest follows. The contract suite in the tests runs on
    every subclass.
    """

    scale: float
    """The one parameter, in counts: Laplace's b, a Gaussian's sigma."""

    is_infinite: ClassVar[bool] = False
    """Whether the noise has grown without bound, so every count is released as zero half of the time."""
    is_none: ClassVar[bool] = False
    """Whether counts are released as they are."""
    is_whole: ClassVar[bool] = False
    """Whether the noise takes whole numbers only."""
    log_concave: ClassVar[bool] = False
    """Whether the rounded mass is proved to be log-concave."""
    log_centre: ClassVar[Any] = None
    """log P(0)/c, if the rounded noise is j with probability c e^(-|j|/scale) but at 0; None for other noise."""

    def __post_init__(self) -> None:
        if not (0 < self.scale < math.inf or self.is_none or self.is_infinite):
            raise InvalidInput("the scale of noise must be a positive number", got=self.scale)

    @abstractmethod
    def cdf(self, x: Any) -> Floats:
        """Return P(noise <= x), accurate in relative terms far into the lower tail; asked between integers only."""

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Draw noise for simulation. Not safe for a release: the digits of floating-point noise reveal the count."""

    def p_zero(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """Return q(m) = P(m + noise < threshold): the probability that a count m is released as zero.

        >>> round(float(LaplaceNoise(1.0).p_zero(0)), 6)  # 1 - exp(-1/2)/2
        0.696735
        """
        return self.cdf(threshold - np.asarray(count, dtype=np.float64))

    def p_positive(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """Return s(m) = P(m + noise > threshold), by symmetry also a lower tail, so never computed as 1 - q."""
        return self.cdf(np.asarray(count, dtype=np.float64) - threshold)

    def p_pivotal(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """Return q(m - 1) - q(m): the probability that a count m is shown, and would not be with one record less.

        It is the probability that m is released as exactly the smallest value, so nothing cancels.
        """
        return self.mass(np.asarray(count, dtype=np.float64) - first_value(threshold))

    def mass(self, distance: Floats) -> Floats:
        """Return P(rounded noise = d) at whole numbers d: a difference of two lower tails, or its closed form.

        >>> LaplaceNoise(1.0).mass(np.array([0.0, 3.0])).round(6).tolist()
        [0.393469, 0.025944]
        """
        away = -np.abs(distance)
        return np.asarray(self.cdf(away + 0.5) - self.cdf(away - 0.5))

    def log_mass(self, distance: Floats) -> Floats:
        """Return log P(rounded noise = d), up to a constant, also where the probability itself underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass(distance)))

    def log_at_most(self, distance: Floats) -> Floats:
        """Return log P(rounded noise <= d), also where the probability itself underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(self.cdf(distance + 0.5), 0.0)))

    def far(self, exponent: float) -> int:
        """Return the smallest distance that rounded noise exceeds with a probability below e^-exponent."""
        return find_first(lambda distance: float(self.cdf(-0.5 - distance)) < math.exp(-exponent))

    @cached_property
    def tail_radius(self) -> int:
        """The distance from a count past which there is less than 1e-17 of probability."""
        return self.far(-math.log(TAIL))

    @property
    def variance(self) -> float:
        """The variance before rounding; of a discrete Gaussian an upper bound, close from a scale of 1 on."""
        return self.scale**2

    @property
    def mean_size(self) -> float:
        """E|e| before rounding; of a discrete Gaussian that of the continuous one from a scale of 100 on."""
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def steepest(self) -> float:
        """How far the log mass changes at most from one count to the next, but for a probability below 1e-22."""
        return 10.0 / self.scale


def find_first(holds: Callable[[int], bool]) -> int:
    """Return the smallest whole number, from 1 on, at which something holds that then holds for all larger ones."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def first_value(threshold: float) -> int:
    """Return the smallest positive released value under a threshold, which is a half-integer."""
    return math.ceil(threshold)


@dataclass(frozen=True)
class NoNoise(Noise):
    """Counts as they are: the limit of noise as epsilon grows without bound."""

    is_none: ClassVar[bool] = True

    scale: float = field(default=0.0, init=False)

    def cdf(self, x: Any) -> Floats:
        return np.asarray(np.where(np.asarray(x) < 0, 0.0, 1.0))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return np.zeros(shape)


@dataclass(frozen=True)
class InfiniteNoise(Noise):
    """Noise that has grown without bound: every count, however large, is released as zero half of the time."""

    is_infinite: ClassVar[bool] = True

    scale: float = field(default=math.inf, init=False)

    def cdf(self, x: Any) -> Floats:
        return np.full(np.shape(x), 0.5)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        raise InvalidInput("noise without bound cannot be drawn", fix="draw noise of a finite scale")


@dataclass(frozen=True)
class _TwoSided(Noise):
    """Rounded noise that is j with a probability proportional to exp(-|j|/scale), but at 0."""

    log_concave: ClassVar[bool] = True
    log_centre: ClassVar[Any] = 0.0

    @property
    def steepest(self) -> float:
        return 1.0 / self.scale

    def log_mass(self, distance: Floats) -> Floats:
        return np.asarray(-np.abs(distance) / self.scale + np.where(distance == 0, self.log_centre, 0.0))

    def log_at_most(self, distance: Floats) -> Floats:
        """In the lower tail the logarithm is a straight line."""
        near = super().log_at_most(np.maximum(distance, -1.0))
        return np.asarray(near + np.minimum(distance + 1.0, 0.0) / self.scale)


@dataclass(frozen=True)
class LaplaceNoise(_TwoSided):
    """Density exp(-|x| / scale) / (2 scale)."""

    @property
    def log_centre(self) -> float:
        """P(0) = 1 - e^-h in units of sinh h, h = 1/(2 scale): 2 e^-h/(1 + e^-h)."""
        half = 0.5 / self.scale
        return math.log(2.0) - half - math.log1p(math.exp(-half))

    @property
    def variance(self) -> float:
        return 2.0 * self.scale**2

    @property
    def mean_size(self) -> float:
        return self.scale

    def cdf(self, x: Any) -> Floats:
        half = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.asarray(np.where(np.asarray(x) < 0, half, 1.0 - half))

    def mass(self, distance: Floats) -> Floats:
        sides = -0.5 * math.expm1(-1.0 / self.scale) * np.exp((0.5 - np.maximum(np.abs(distance), 1.0)) / self.scale)
        return np.asarray(np.where(distance == 0, -math.expm1(-0.5 / self.scale), sides))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.laplace(0.0, self.scale, shape)


@dataclass(frozen=True)
class GeometricNoise(_TwoSided):
    """Two-sided geometric (discrete Laplace): P(j) = (1 - a)/(1 + a) a^|j| with a = exp(-1/scale)."""

    is_whole: ClassVar[bool] = True

    @property
    def variance(self) -> float:
        return 0.5 / math.sinh(0.5 / self.scale) ** 2 if self.scale > 1e-3 else 0.0

    @property
    def mean_size(self) -> float:
        return 1.0 / math.sinh(1.0 / self.scale) if self.scale > 2e-3 else 0.0

    def cdf(self, x: Any) -> Floats:
        tail_length = np.ceil(np.abs(x))  # P(noise >= k) = a^k/(1 + a) for k >= 1
        tail = np.exp(-tail_length / self.scale) / (1.0 + math.exp(-1.0 / self.scale))
        return np.asarray(np.where(np.asarray(x) < 0, tail, 1.0 - tail))

    def mass(self, distance: Floats) -> Floats:
        return np.asarray(math.tanh(0.5 / self.scale) * np.exp(-np.abs(distance) / self.scale))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.scale > 1e16:  # 64 bits would not do; a geometric is an exponential rounded up
            first, second = (np.ceil(generator.exponential(self.scale, shape)) for _ in range(2))
            return np.asarray(first - second)
        success = -math.expm1(-1.0 / self.scale)
        draws = generator.geometric(success, shape) - generator.geometric(success, shape)
        return draws.astype(np.float64)


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Normal with standard deviation ``scale``."""

    log_concave: ClassVar[bool] = True

    def cdf(self, x: Any) -> Floats:
        return np.asarray(special.ndtr(np.asarray(x) / self.scale))

    def mass(self, distance: Floats) -> Floats:
        constant = math.log(self.scale * math.sqrt(2.0 * math.pi)) if self.scale > WIDE else 0.0
        return np.asarray(np.exp(self.log_mass(distance) - constant))

    def log_mass(self, distance: Floats) -> Floats:
        """Return the log of a difference of two tails.

        Where that loses digits, the density times its mean over a unit, relative to its middle:
        sum_k He_2k(x) / ((2k + 1)! (2 scale)^2k), of which five terms suffice.
        """
        if self.scale > WIDE:
            square = (distance / self.scale) ** 2
            series = [(2.0 * self.scale) ** -k / math.factorial(k + 1) if k % 2 == 0 else 0.0 for k in range(9)]
            mean = np.polynomial.polynomial.polyval(square, np.polynomial.hermite_e.herme2poly(series)[::2])
            return np.asarray(np.log(mean) - 0.5 * square)
        away = np.abs(distance)
        upper = special.log_ndtr((0.5 - away) / self.scale)
        lower = special.log_ndtr((-0.5 - away) / self.scale)
        return np.asarray(upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300))))

    def log_at_most(self, distance: Floats) -> Floats:
        return np.asarray(special.log_ndtr((distance + 0.5) / self.scale))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.normal(0.0, self.scale, shape)


@dataclass(frozen=True)
class DiscreteGaussianNoise(Noise):
    """Integers with P(j) proportional to exp(-j^2 / (2 scale^2))."""

    is_whole: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    @property
    def mean_size(self) -> float:
        """E|e| = sum_j 2 P(e <= -j) over j from 1."""
        if self.scale > 100:
            return super().mean_size
        return 2.0 * float(np.sum(self.cdf(0.5 - np.arange(1.0, 40.0 * self.scale + 40.0))))

    @cached_property
    def _weight_total(self) -> float:
        """Sum of exp(-j^2/(2 scale^2)): by Poisson's formula scale sqrt(2 pi) (1 + 2 exp(-2 pi^2 scale^2) + ...)."""
        if self.scale > 2:
            return self.scale * math.sqrt(2.0 * math.pi)
        return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (j / self.scale) ** 2) for j in range(1, 20))

    def _tail_weights(self, first: Any) -> Floats:
        """Sum of exp(-j^2/(2 scale^2)) over j >= first, for whole numbers first >= 1.

        For large scales by the Euler-Maclaurin midpoint formula to the third derivative: the fifth would add at most
        31 u^6 / (967680 sigma^6) of the whole, below 1e-12 where nothing underflows.
        """
        sigma = self.scale
        if sigma > 1000:
            u = (np.asarray(first, dtype=np.float64) - 0.5) / sigma
            corrections = -u / (24.0 * sigma) + 7.0 * (u**3 - 3.0 * u) / (5760.0 * sigma**3)
            return np.asarray(self._weight_total * special.ndtr(-u) + corrections * np.exp(-0.5 * u * u))
        underflow = math.ceil(39.0 * sigma)
        first = np.minimum(first, underflow).astype(np.int64)
        start, last = int(np.min(first)), int(np.max(first))
        terms = np.exp(-0.5 * (np.arange(start, min(underflow, last + math.ceil(9.5 * sigma)) + 1) / sigma) ** 2)
        sums = np.cumsum(terms[::-1])[::-1]  # smallest first
        return np.asarray(sums[first - start])

    def cdf(self, x: Any) -> Floats:
        beyond = np.ceil(np.abs(np.asarray(x, dtype=np.float64)))
        tail = self._tail_weights(beyond) / self._weight_total
        return np.asarray(np.where(np.asarray(x) < 0, tail, 1.0 - tail))

    def mass(self, distance: Floats) -> Floats:
        return np.asarray(np.exp(self.log_mass(distance)) / self._weight_total)

    def log_mass(self, distance: Floats) -> Floats:
        return np.asarray(-0.5 * (distance / self.scale) ** 2)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.scale > 1000:  # a rounded Gaussian: probabilities differ by about 1/(24 scale^2) of themselves
            return np.asarray(np.rint(generator.normal(0.0, self.scale, shape)))
        radius = math.ceil(9.5 * self.scale)
        support = np.arange(-radius, radius + 1)
        weight = np.exp(-0.5 * (support / self.scale) ** 2)
        return generator.choice(support.astype(np.float64), size=shape, p=weight / weight.sum())
