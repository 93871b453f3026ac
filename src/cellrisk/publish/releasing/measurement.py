"""Noise that may be released: OpenDP's exactly sampled integer mechanisms, with their loss by OpenDP's own map."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise import opendp_noise
from cellrisk.noise.mechanisms import DiscreteGaussian, Mechanism
from cellrisk.system.arrays import Integers
from cellrisk.system.progress import StepCounter

if TYPE_CHECKING:
    from cellrisk.publish.releasing.tails import Tail

COUNTS_AT_ONCE = 25_000
MOST_THREADS = 4


@dataclass(frozen=True)
class Measurement:
    """Integer noise of OpenDP on a vector of counts."""

    scale: float
    loss: float
    """What one record's change costs by OpenDP's map, in units of ``unit``."""

    distribution: ClassVar[str]
    unit: ClassVar[str]

    @staticmethod
    def build(opendp: Any, scale: float) -> Any:
        """OpenDP's measurement."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidInput("the scale of noise must be a positive number", got=self.scale)

    def tail(self, threshold: float) -> Tail:
        """What this noise does on a zero at the threshold and above."""
        from cellrisk.publish.releasing.tails import GaussianTail, LaplaceTail

        kind = GaussianTail if isinstance(self, GaussianMeasurement) else LaplaceTail
        return kind(self.scale, math.ceil(threshold))

    def add_noise(self, counts: Integers, report: StepCounter) -> Integers:
        """Counts with noise. OpenDP works outside Python's lock, so threads share the work; each has its own noise."""
        opendp = opendp_noise.load_opendp()
        pieces = [counts[start : start + COUNTS_AT_ONCE] for start in range(0, len(counts), COUNTS_AT_ONCE)]
        threads = ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1))
        found = [np.zeros(0, np.int64)]
        try:
            for noisy in threads.map(lambda piece: self.build(opendp, self.scale)(piece.tolist()), pieces):
                found.append(np.array(noisy, dtype=np.int64))
                report.add(len(noisy))
        finally:
            threads.shutdown(cancel_futures=True)
        return np.concatenate(found)


@dataclass(frozen=True)
class LaplaceMeasurement(Measurement):
    """Discrete Laplace noise, for `Geometric`."""

    distribution: ClassVar[str] = "discrete Laplace"
    unit: ClassVar[str] = "epsilon"
    build = staticmethod(opendp_noise.make_laplace)


@dataclass(frozen=True)
class GaussianMeasurement(Measurement):
    """Discrete Gaussian noise, for `DiscreteGaussian`."""

    distribution: ClassVar[str] = "discrete Gaussian"
    unit: ClassVar[str] = "rho"
    build = staticmethod(opendp_noise.make_gaussian)


def calibrate(mechanism: Mechanism) -> Measurement:
    """The noise for a mechanism, checked with OpenDP's own map.

    The scale is the mechanism's, rounded up by at most one part in 10^12 so that the loss of one record's change is not
    above epsilon (geometric), or not above rho and, by OpenDP's conversion, epsilon at that delta (discrete Gaussian).

    >>> from cellrisk import Geometric
    >>> calibrate(Geometric(epsilon=0.5, neighbours="replace"))
    LaplaceMeasurement(scale=4.0, loss=0.5)
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("a release needs a mechanism", got=type(mechanism).__name__, fix="make one with mechanism()")
    kind = GaussianMeasurement if isinstance(mechanism, DiscreteGaussian) else LaplaceMeasurement
    return kind(*mechanism.calibrate())
