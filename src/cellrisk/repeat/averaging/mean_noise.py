"""The mean of several independent noises: what is left in a count when an attacker averages its releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.repeat.averaging.sums import discrete_gaussian_sum_tail, geometric_sum_tail, laplace_sum_tail
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_whole_number

MOST_RELEASES = 10_000
KINDS = (LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise)
WHOLE = (GeometricNoise, DiscreteGaussianNoise)
"""Kinds that are whole numbers."""


@dataclass(frozen=True)
class MeanNoise(Noise):
    """The mean of ``releases`` = T independent noises of one kind, each of the same scale.

    A count m vanishes where m + mean < threshold. The mean of whole-number noises can meet the threshold exactly, if T
    is even; such a tie is not below it, so the count survives, and vanish(m) is P(mean < threshold - m), not
    P(mean <= threshold - m). Gaussian: the mean is Gaussian with scale/sqrt(T). The others: closed forms or
    convolutions of `cellrisk.repeat.averaging.sums`, exact to about 1e-12 in relative terms, in the tails too.

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
        if self.kind not in KINDS:
            raise InvalidInput(
                "the mean of such noise is not known",
                got=getattr(self.kind, "__name__", type(self.kind).__name__),
                allowed=", ".join(kind.__name__ for kind in KINDS),
            )
        require_whole_number("releases", self.releases, 1, MOST_RELEASES)

    @staticmethod
    def of(noise: Noise, releases: int) -> MeanNoise:
        """The mean of so many noises like this one.

        >>> MeanNoise.of(GaussianNoise(3.0), 9).deviation
        1.0
        """
        return MeanNoise(noise.scale, type(noise), require_whole_number("releases", releases, 1, MOST_RELEASES))

    @property
    def deviation(self) -> float:
        """The mean's standard deviation; for a discrete Gaussian an upper bound, close from a scale of 1 on."""
        known: dict[type[Noise], float] = {
            LaplaceNoise: math.sqrt(2.0) * self.scale,
            GeometricNoise: math.sqrt(0.5) / math.sinh(0.5 / self.scale) if self.scale > 1e-3 else 0.0,
        }
        return known.get(self.kind, self.scale) / math.sqrt(self.releases)

    def cdf(self, x: Any) -> Floats:
        """P(mean <= x)."""
        x = np.asarray(x, dtype=np.float64)
        size = np.abs(x) * self.releases
        return np.asarray(np.where(x < 0, self._tail(size), 1.0 - self._beyond(size)))

    def p_zero(self, count: Any, threshold: float = 0.5) -> Floats:
        """q(m) = P(m + mean < threshold)."""
        x = threshold - np.asarray(count, dtype=np.float64)
        size = np.abs(x) * self.releases
        return np.asarray(np.where(x < 0, self._beyond(size), 1.0 - self._tail(size)))

    def p_positive(self, count: Any, threshold: float = 0.5) -> Floats:
        """s(m) = P(m + mean >= threshold): the mean is symmetric, so it is P(mean <= m - threshold)."""
        return self.cdf(np.asarray(count, dtype=np.float64) - threshold)

    def p_pivotal(self, count: Any, threshold: float = 0.5) -> Floats:
        """q(m - 1) - q(m): how likely the mean shows a count that it would not show, had it been less by one.

        A difference of two tails on the side where both are small.

        >>> mean = MeanNoise(1.0, LaplaceNoise, releases=2)
        >>> round(float(mean.p_pivotal(1)), 12)  # 1 - 2 e^-1 (2 + 1)/4
        0.448180838243
        """
        count = np.asarray(count, dtype=np.float64)
        below = self.p_positive(count, threshold) - self.p_positive(count - 1.0, threshold)
        above = self.p_zero(count - 1.0, threshold) - self.p_zero(count, threshold)
        return np.asarray(np.where(count < threshold, below, above))

    def _beyond(self, size: Floats) -> Floats:
        """P(sum > size), size > 0."""
        return self._tail(np.floor(size) + 1.0 if self.kind in WHOLE else size)

    def _tail(self, size: Floats) -> Floats:
        """P(sum >= size), size > 0."""
        if self.kind is GaussianNoise:
            return GaussianNoise(self.scale * math.sqrt(self.releases)).cdf(-size)
        if self.kind is LaplaceNoise:
            return laplace_sum_tail(size / self.scale, self.releases)
        whole = geometric_sum_tail if self.kind is GeometricNoise else discrete_gaussian_sum_tail
        return whole(np.ceil(size), self.releases, self.scale)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        one, total = self.kind(self.scale), np.zeros(shape)
        for _ in range(self.releases):
            total += one.sample(generator, shape)
        return total / self.releases
