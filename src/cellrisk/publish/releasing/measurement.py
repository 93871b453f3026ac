"""Noise that may be released: OpenDP's exactly sampled integer mechanisms, with their loss by OpenDP's own map."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.noise.mechanisms import DiscreteGaussian, Mechanism
from cellrisk.noise.opendp_noise import calibrate_noise, make_noise
from cellrisk.system.arrays import Integers
from cellrisk.system.progress import StepCounter

if TYPE_CHECKING:
    from cellrisk.publish.releasing.sparse_noise import Tail

COUNTS_AT_ONCE = 25_000
MOST_THREADS = 4


@dataclass(frozen=True)
class Measurement:
    """Integer noise of OpenDP on a vector of counts: discrete Laplace, or discrete Gaussian."""

    gaussian: bool
    scale: float
    loss: float
    """What one record's change costs by OpenDP's map: an epsilon, or a rho if the noise is Gaussian."""

    @property
    def distribution(self) -> str:
        return "discrete Gaussian" if self.gaussian else "discrete Laplace"

    @property
    def unit(self) -> str:
        return "rho" if self.gaussian else "epsilon"

    def tail(self, threshold: float) -> Tail:
        """What this noise does on a zero at the threshold and above."""
        from cellrisk.publish.releasing.sparse_noise import GaussianTail, LaplaceTail

        kind = GaussianTail if self.gaussian else LaplaceTail
        return kind(self.scale, math.ceil(threshold))

    def radius(self, probability: float) -> int:
        """Discrete Laplace noise is farther from 0 with at most that probability: P(|X| >= k) = 2 a^k/(1 + a).

        >>> Measurement(gaussian=False, scale=1.0, loss=1.0).radius(0.05)  # 2 exp(-4)/(1 + exp(-1)) = 0.027
        3
        """
        ratio = math.exp(-1.0 / self.scale)
        return max(math.ceil(self.scale * math.log(2.0 / (probability * (1.0 + ratio))) * (1.0 + 1e-12)) - 1, 0)

    def add_noise(self, counts: Integers, report: StepCounter | None = None) -> Integers:
        """Counts with noise. OpenDP works outside Python's lock, so threads share the work; each has its own noise."""

        def add(piece: Integers) -> Any:
            return make_noise(self.scale, gaussian=self.gaussian)(piece.tolist())

        pieces = [counts[start : start + COUNTS_AT_ONCE] for start in range(0, len(counts), COUNTS_AT_ONCE)]
        threads = ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1))
        found = [np.zeros(0, np.int64)]
        try:
            for noisy in threads.map(add, pieces):
                found.append(np.array(noisy, dtype=np.int64))
                if report is not None:
                    report.add(len(noisy))
        finally:
            threads.shutdown(cancel_futures=True)
        return np.concatenate(found)


def calibrate_sum(units: int, epsilon: float) -> Measurement:
    """The discrete Laplace noise under which a whole number that one record moves by ``units`` costs at most epsilon.

    >>> calibrate_sum(4, 0.5)
    Measurement(gaussian=False, scale=8.0, loss=0.5)
    """
    return Measurement(False, *calibrate_noise(units / epsilon, units, epsilon))


def calibrate(mechanism: Mechanism) -> Measurement:
    """The noise for a mechanism, checked with OpenDP's own map.

    The scale is the mechanism's, rounded up by at most one part in 10^12 so that the loss of one record's change is not
    above epsilon (geometric), or not above rho and, by OpenDP's conversion, epsilon at that delta (discrete Gaussian).

    >>> from cellrisk import Geometric
    >>> calibrate(Geometric(epsilon=0.5, neighbours="replace"))
    Measurement(gaussian=False, scale=4.0, loss=0.5)
    """
    return Measurement(isinstance(mechanism, DiscreteGaussian), *mechanism.calibrate())
