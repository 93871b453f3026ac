"""The mean of several independent noises: what is left in a count when an attacker averages its releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_whole_number

MOST_RELEASES = 10_000
WHOLE = (GeometricNoise, DiscreteGaussianNoise)
"""Kinds that are whole numbers."""


@dataclass(frozen=True)
class MeanNoise(Noise):
    """The mean of ``releases`` = T independent noises of one kind, each of the same scale.

    The channel of the mean has q(m) = P(m + mean < threshold). The mean of whole-number noises can meet the threshold
    exactly, if T is even; a count that does is not below it. Gaussian: the mean is Gaussian with scale/sqrt(T). The
    others: sums of positive terms, with a relative error below 1e-9 (discrete Gaussian: 1e-15 absolute).

    >>> mean = MeanNoise(1.0, LaplaceNoise, releases=2)
    >>> round(float(mean.p_zero(1)), 12)  # P(mean < -1/2) = P(sum of two > 1) = e^-1 (2 + 1)/4
    0.275909580879
    """

    scale: float
    """The scale of each of the noises."""
    kind: type[Noise] = LaplaceNoise
    releases: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole_number("releases", self.releases, 1, MOST_RELEASES)

    @staticmethod
    def of(noise: Noise, releases: int) -> MeanNoise:
        """The mean of so many noises like this one.

        >>> MeanNoise.of(GaussianNoise(3.0), 9).deviation
        1.0
        """
        return MeanNoise(noise.scale, type(noise), releases)

    @property
    def deviation(self) -> float:
        """The mean's standard deviation; for a discrete Gaussian an upper bound, close from a scale of 1 on."""
        known: dict[type[Noise], float] = {
            LaplaceNoise: math.sqrt(2.0) * self.scale,
            GeometricNoise: math.sqrt(0.5) / math.sinh(0.5 / self.scale) if self.scale > 1e-3 else 0.0,
        }
        return known.get(self.kind, self.scale) / math.sqrt(self.releases)

    def cdf(self, x: Any) -> Floats:
        """P(mean <= x) = P(mean >= -x), as the mean is symmetric."""
        return self._exceed(-np.asarray(x, dtype=np.float64), strictly=False)

    def p_zero(self, count: Any, threshold: float = 0.5) -> Floats:
        """q(m) = P(m + mean < threshold) = P(mean > m - threshold)."""
        return self._exceed(np.asarray(count, dtype=np.float64) - threshold, strictly=True)

    def p_positive(self, count: Any, threshold: float = 0.5) -> Floats:
        """P(m + mean >= threshold)."""
        return self._exceed(threshold - np.asarray(count, dtype=np.float64), strictly=False)

    def p_pivotal(self, count: Any, threshold: float = 0.5) -> Floats:
        """q(m - 1) - q(m), the difference of two tails on the side where both are small.

        >>> mean = MeanNoise(1.0, LaplaceNoise, releases=2)
        >>> round(float(mean.p_pivotal(1)), 12)  # 1 - 2 e^-1 (2 + 1)/4
        0.448180838243
        """
        count = np.asarray(count, dtype=np.float64)
        below = self.p_positive(count, threshold) - self.p_positive(count - 1.0, threshold)
        above = self.p_zero(count - 1.0, threshold) - self.p_zero(count, threshold)
        return np.asarray(np.where(count < threshold, below, above))

    def _exceed(self, x: Floats, strictly: bool) -> Floats:
        """P(mean > x), or P(mean >= x): a tail of the sum where x > 0, else 1 less that of the other side."""
        size = np.abs(x) * self.releases
        return np.asarray(np.where(x > 0, self._tail(size, strictly), 1.0 - self._tail(size, not strictly)))

    def _tail(self, size: Floats, strictly: bool) -> Floats:
        """P(sum > size), or P(sum >= size), size > 0."""
        if self.kind in WHOLE:
            size = np.floor(size) + 1.0 if strictly else np.ceil(size)
        if self.kind is GaussianNoise:
            return GaussianNoise(self.scale * math.sqrt(self.releases)).cdf(-size)
        if self.kind is DiscreteGaussianNoise:
            return discrete_gaussian_sum_tail(size, self.releases, self.scale)
        distinct, place = np.unique(size, return_inverse=True)
        tail = geometric_sum_tail if self.kind is GeometricNoise else laplace_sum_tail
        return np.asarray(tail(distinct, self.releases, self.scale)[place].reshape(np.shape(size)))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        one, total = self.kind(self.scale), np.zeros(shape)
        for _ in range(self.releases):
            total += one.sample(generator, shape)
        return total / self.releases


def laplace_sum_tail(x: Floats, number: int, scale: float = 1.0) -> Floats:
    """P(S > x), x > 0, for the sum S of ``number`` = T Laplace variables.

    S/scale is the difference of two Gamma(T) variables: the times at which two Poisson processes have made T steps.
    S > x says that the first makes fewer than T steps in x and in the time that the second takes. It makes Poisson(x)
    steps in the one, and K ~ NB(T, 1/2) in the other, so P(S > x) = sum_{k < T} P(K = k) P(Poisson(x) <= T - 1 - k).

    >>> round(float(laplace_sum_tail(np.array([2.0]), 2)[0]), 12)  # e^-x (2 + x)/4
    0.135335283237
    """
    k = np.arange(number)
    weights = _negative_binomial(number, 0.5)
    near = x / scale < _negligible_from(number)
    return np.array(
        [weights @ special.gammaincc(number - k, at / scale) if here else 0.0 for at, here in zip(x, near, strict=True)]
    )


def geometric_sum_tail(n: Floats, number: int, scale: float) -> Floats:
    """P(S >= n), n >= 1 whole, for the sum S of ``number`` = T two-sided geometric variables, a = exp(-1/scale).

    S is the difference of two NB(T, 1 - a) variables: failures before T successes in two rows of trials. As for
    Laplace variables, with binomials instead of the Poisson variable: P(S >= n) = P(B + K <= T - 1) with
    B ~ Binomial(n + T - 1, 1 - a) and K ~ NB(T, 1/(1 + a)).

    >>> a = math.exp(-1.0)
    >>> round(float(geometric_sum_tail(np.array([3.0]), 1, 1.0)[0]), 12) == round(a**3 / (1.0 + a), 12)
    True
    """
    k = np.arange(number)
    weights = _negative_binomial(number, 1.0 / (1.0 + math.exp(-1.0 / scale)))
    success = -math.expm1(-1.0 / scale)
    near = n / scale < _negligible_from(number)
    return np.array(
        [
            weights @ special.betaincc(number - k, at + k, success) if here else 0.0
            for at, here in zip(n, near, strict=True)
        ]
    )


def discrete_gaussian_sum_tail(n: Floats, number: int, scale: float) -> Floats:
    """P(S >= n), n >= 1 whole, for the sum S of ``number`` = T discrete Gaussians.

    Points of the lattice Z^T with sum n are n/T in each place plus a vector that adds up to 0, so P(S = n) is
    proportional to exp(-n^2/(2 T scale^2)) c(n mod T), c a sum over vectors of the second kind. By Poisson summation c
    is constant but for a relative deviation of at most theta^T - 1, theta = sum_k exp(-(pi scale k)^2). If that is
    below 1e-15, which takes a scale of about 2, S is a discrete Gaussian of scale * sqrt(T); else the T variables are
    convolved.

    >>> wide, narrow = (float(discrete_gaussian_sum_tail(np.array(12.0), 9, scale)) for scale in (2.2, 1.9))
    >>> round(wide, 6), round(narrow, 6)  # normal: 0.040714, 0.021819
    (0.040571, 0.021685)
    """
    if 2.0 * number * math.exp(-((math.pi * scale) ** 2)) <= 1e-15:
        return DiscreteGaussianNoise(scale * math.sqrt(number)).cdf(0.5 - n)
    tails = _convolve_gaussians(number, scale)
    return np.asarray(tails[np.minimum(n, len(tails) - 1).astype(np.int64)])


@lru_cache(maxsize=16)
def _convolve_gaussians(number: int, scale: float) -> Floats:
    """P(S >= n) at n = 0, 1, ..., and 0 at the end. Beyond 9 scales, of one or of the sum, less than 1e-17 is left."""
    radius = math.ceil(9.0 * scale * math.sqrt(number)) + 2
    one = np.exp(-0.5 * (np.arange(radius + 1) / scale) ** 2)
    around = np.concatenate([one, one[:0:-1]])
    total = np.fft.irfft(np.fft.rfft(around / around.sum()) ** number, len(around))[: radius + 1]
    return np.append(np.clip(np.cumsum(total[::-1])[::-1], 0.0, 1.0), 0.0)


@lru_cache(maxsize=64)
def _negative_binomial(number: int, success: float) -> Floats:
    """P(K = k), k < T: failures before ``number`` = T successes."""
    k = np.arange(number)
    ways = -special.betaln(number, k + 1.0) - np.log(number + k)
    return np.asarray(np.exp(ways + number * math.log(success) + special.xlogy(k, 1.0 - success)))


def _negligible_from(number: int) -> float:
    """Return where tails are below 1e-320: P(S > x) <= e^(-x/2) (4/3)^T, in scales (Chernoff)."""
    return 1500.0 + 0.58 * number
