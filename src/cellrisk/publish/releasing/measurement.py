"""Noise that may be released: OpenDP's exactly sampled integer mechanisms, with their loss by OpenDP's own map."""

from __future__ import annotations

import importlib
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import DiscreteGaussian, Geometric, Mechanism
from cellrisk.publish.releasing.tails import GaussianTail, LaplaceTail, Tail
from cellrisk.system.arrays import Integers
from cellrisk.system.progress import StepCounter

COUNTS_AT_ONCE = 25_000
MOST_THREADS = 4
ROUNDINGS = (0.0, *(2.0 ** (step - 52) for step in range(1, 13)))
"""By how much a scale may be rounded up, in relative terms, so that the loss is within the budget to the last digit."""


@dataclass(frozen=True)
class Measurement:
    """Integer noise of OpenDP on a vector of counts."""

    scale: float
    loss: float
    """What one record's change costs by OpenDP's map, in units of ``unit``."""

    distribution: ClassVar[str]
    unit: ClassVar[str]
    tail_of: ClassVar[type[Tail]]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidInput("the scale of noise must be a positive number", got=self.scale)

    @staticmethod
    def build(opendp: Any, scale: float) -> Any:
        """OpenDP's measurement."""
        raise NotImplementedError

    def tail(self, threshold: float) -> Tail:
        """What this noise does on a zero at the threshold and above."""
        return self.tail_of(self.scale, math.ceil(threshold))

    def add_noise(self, counts: Integers, report: StepCounter) -> Integers:
        """Counts with noise. OpenDP works outside Python's lock, so threads share the work; each has its own noise."""
        opendp = load_opendp()
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
    tail_of: ClassVar[type[Tail]] = LaplaceTail

    @staticmethod
    def build(opendp: Any, scale: float) -> Any:
        space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
        return opendp.m.make_laplace(*space, scale=scale)


@dataclass(frozen=True)
class GaussianMeasurement(Measurement):
    """Discrete Gaussian noise, for `DiscreteGaussian`."""

    distribution: ClassVar[str] = "discrete Gaussian"
    unit: ClassVar[str] = "rho"
    tail_of: ClassVar[type[Tail]] = GaussianTail

    @staticmethod
    def build(opendp: Any, scale: float) -> Any:
        space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")
        return opendp.m.make_gaussian(*space, scale=scale)


def load_opendp() -> Any:
    """OpenDP, which is large and optional."""
    try:
        opendp = importlib.import_module("opendp.prelude")
    except ImportError:
        raise InvalidInput("a release needs OpenDP", fix="pip install 'cellrisk[release]'") from None
    opendp.enable_features("contrib")
    return opendp


def calibrate(mechanism: Mechanism) -> Measurement:
    """The noise for a mechanism, checked with OpenDP's own map.

    The scale is the mechanism's, rounded up by at most one part in 10^12 so that the loss of one record's change is not
    above epsilon (geometric), or not above rho and, by OpenDP's conversion, epsilon at that delta (discrete Gaussian).

    >>> calibrate(Geometric(epsilon=0.5, neighbours="replace"))
    LaplaceMeasurement(scale=4.0, loss=0.5)
    """
    require_integer_noise(mechanism)
    opendp = load_opendp()
    scales = [mechanism.scale * (1.0 + rounding) for rounding in ROUNDINGS]
    if isinstance(mechanism, Geometric):
        for scale in scales:
            loss = LaplaceMeasurement.build(opendp, scale).map(int(mechanism.l1))
            if loss <= mechanism.epsilon:
                return LaplaceMeasurement(scale, loss)
    elif isinstance(mechanism, DiscreteGaussian):
        for scale in scales:
            measurement = GaussianMeasurement.build(opendp, scale)
            loss = measurement.map(mechanism.l2)
            profile = opendp.c.make_zCDP_to_approxDP(measurement).map(mechanism.l2)
            if loss <= mechanism.rho and profile.epsilon(mechanism.delta) <= mechanism.epsilon:
                return GaussianMeasurement(scale, loss)
    raise InvalidInput(
        "the noise of the mechanism is too small for what it promises: OpenDP's privacy map gives more",
        got=f"{mechanism.name} with scale {mechanism.scale:g}",
    )


def require_integer_noise(mechanism: Mechanism) -> None:
    """Refuses what has no exact sampler: floating-point noise tells of the count in its last digits (Mironov 2012)."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("a release needs a mechanism", got=type(mechanism).__name__, fix="make one with mechanism()")
    if not isinstance(mechanism, (Geometric, DiscreteGaussian)):
        fix = (
            "use geometric, which gives the same epsilon"
            if mechanism.pure
            else "use discrete-gaussian, which takes the same epsilon and delta"
        )
        raise InvalidInput(
            f"{mechanism.name} noise is continuous and cannot be released safely: its digits reveal the count",
            allowed="geometric, discrete-gaussian",
            fix=fix,
        )
