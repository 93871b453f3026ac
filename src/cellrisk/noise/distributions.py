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
"""Scale, in counts, above which masses are computed directly and not as differences of the cdf."""
USUAL_THRESHOLD = 0.5
"""Only noisy counts below 1 are released as zero."""


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

    @abstractmethod
    def cdf(self, x: Any) -> Floats:
        """P(noise <= x), accurate in relative terms far into the lower tail. Evaluated between integers only."""

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Draws for simulation. Not safe for a release: floating-point noise leaks."""

    is_infinite: ClassVar[bool] = False
    """Whether the noise has grown without bound, so every count is released as zero half of the time."""
    is_none: ClassVar[bool] = False
    """Whether counts are released as they are."""
    is_whole: ClassVar[bool] = False
    """Whether the noise takes whole numbers only."""
    log_concave: ClassVar[bool] = False
    """Whether the rounded mass is proved to be log-concave."""

    def p_zero(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """Return q(m) = P(m + noise < threshold): the probability that a count m is released as zero.

        >>> round(float(LaplaceNoise(1.0).p_zero(0)), 6)  # 1 - exp(-1/2)/2
        0.696735
        """
        return self.cdf(threshold - np.asarray(count, dtype=np.float64))

    def p_positive(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """Return s(m) = P(m + noise > threshold), by symmetry also a lower tail, so never computed as 1 - q.

        >>> round(float(LaplaceNoise(1.0).p_positive(0)), 6)
        0.303265
        """
        return self.cdf(np.asarray(count, dtype=np.float64) - threshold)

    def p_pivotal(self, count: Any, threshold: float = USUAL_THRESHOLD) -> Floats:
        """Return q(m - 1) - q(m): the probability that a count m is shown, and would not be with one record less.

        It is the probability that m is released as exactly the smallest value, so nothing cancels.
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

    def log_mass(self, distance: Floats) -> Floats:
        """Return log P(rounded noise = d), up to a constant, also where the probability itself underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass(distance)))

    def log_at_most(self, distance: Floats) -> Floats:
        """Return log P(rounded noise <= d), also where the probability itself underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(self.at_most(distance), 0.0)))

    def far(self, exponent: float) -> float:
        """Return a distance that rounded noise exceeds with a probability below e^-exponent."""
        return float(find_first(lambda distance: float(self.cdf(-0.5 - distance)) < math.exp(-exponent)))

    @property
    def log_centre(self) -> float | None:
        """log P(0)/c, if the rounded noise is j with probability c e^(-|j|/scale) but at 0; None for other noise."""
        return None

    @property
    def variance(self) -> float:
        """The variance before rounding; of a discrete Gaussian an upper bound, close from a scale of 1 on."""
        return self.scale**2

    @property
    def mean_size(self) -> float:
        """E|e| before rounding: sum_j 2 P(e <= -j) over j from 1, for noise of whole numbers."""
        values = np.arange(1.0, 40.0 * self.scale + 40.0)
        return 2.0 * float(np.sum(self.cdf(0.5 - values)))

    @property
    def steepest(self) -> float:
        """How far the log mass changes at most from one count to the next, but for a probability below 1e-22."""
        return 10.0 / self.scale

    @property
    def mass_at_zero(self) -> float:
        """P(rounded noise = 0)."""
        return float(self.mass(np.zeros(1))[0])

    @cached_property
    def tail_radius(self) -> int:
        """The distance from a count past which there is less than 1e-17 of probability.

        >>> LaplaceNoise(10.0).tail_radius
        385
        """
        return find_first(lambda distance: float(self.cdf(-0.5 - distance)) < TAIL)


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
        raise InvalidInput(
            "must be a positive half-integer", option="threshold", got=threshold, allowed="0.5, 1.5, ..."
        )
    return math.ceil(threshold)


@dataclass(frozen=True)
class NoNoise(Noise):
    """Counts as they are: the limit of noise as epsilon grows without bound."""

    is_none: ClassVar[bool] = True

    scale: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Nothing was given."""

    def cdf(self, x: Any) -> Floats:
        return np.asarray(np.where(np.asarray(x) < 0, 0.0, 1.0))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return np.zeros(shape)


@dataclass(frozen=True)
class InfiniteNoise(Noise):
    """Noise that has grown without bound: every count, however large, is released as zero half of the time.

    >>> float(InfiniteNoise().p_zero(1_000_000)), float(InfiniteNoise().p_positive(0))
    (0.5, 0.5)
    """

    is_infinite: ClassVar[bool] = True

    scale: float = field(default=math.inf, init=False)

    def __post_init__(self) -> None:
        """Nothing was given."""

    def cdf(self, x: Any) -> Floats:
        return np.full(np.shape(x), 0.5)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        raise InvalidInput("noise without bound cannot be drawn", fix="draw noise of a finite scale")


@dataclass(frozen=True)
class _TwoSided(Noise):
    """Rounded noise that is j with a probability proportional to exp(-|j|/scale), but at 0."""

    log_concave: ClassVar[bool] = True

    @property
    def log_centre(self) -> float:
        return 0.0

    @property
    def steepest(self) -> float:
        return 1.0 / self.scale

    def far(self, exponent: float) -> float:
        return self.scale * exponent + 2.0

    def log_mass(self, distance: Floats) -> Floats:
        return np.asarray(-np.abs(distance) / self.scale + np.where(distance == 0, self.log_centre, 0.0))

    def log_at_most(self, distance: Floats) -> Floats:
        """In the lower tail the logarithm is a straight line."""
        known = float(np.log(self.at_most(np.array([-1.0]))[0]))
        near = super().log_at_most(np.maximum(distance, -1.0))
        return np.asarray(np.where(distance < -1, known + (distance + 1.0) / self.scale, near))


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

    def _wide_mass(self, distance: Floats) -> Floats:
        half = 0.5 / self.scale
        sides = np.exp(-np.abs(distance) / self.scale) * math.sinh(half)
        return np.asarray(np.where(distance == 0, -math.expm1(-half), sides))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.laplace(0.0, self.scale, shape)


NARROW = 16.0
"""Scale, in counts, above which the mass of Gaussian noise is its density times a short series, right to 1e-12."""


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Normal with standard deviation ``scale``."""

    log_concave: ClassVar[bool] = True

    @property
    def mean_size(self) -> float:
        return self.scale * math.sqrt(2.0 / math.pi)

    def far(self, exponent: float) -> float:
        return self.scale * math.sqrt(2.0 * exponent) + 2.0

    def log_mass(self, distance: Floats) -> Floats:
        if self.scale > NARROW:
            # The density times its mean over a unit, relative to its middle: sum_k He_2k(x) / ((2k + 1)! (2 scale)^2k).
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

    is_whole: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    @property
    def mean_size(self) -> float:
        return super().mean_size if self.scale <= 100 else self.scale * math.sqrt(2.0 / math.pi)

    def far(self, exponent: float) -> float:
        return self.scale * math.sqrt(2.0 * exponent) + 2.0

    def log_mass(self, distance: Floats) -> Floats:
        return np.asarray(-0.5 * (distance / self.scale) ** 2)

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
