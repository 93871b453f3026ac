"""A released count: noise is added, the sum rounded, and what is below the threshold is zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import singledispatch

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.system.arrays import Floats, Integers

NEGLIGIBLE = 1e-17
"""Sums stop where less probability than this is left on a side."""
WIDE = 200.0
"""Noise of a larger scale has its masses computed directly, not as differences of its cdf."""
SPAN = 256
"""Counts this far apart share a range of released values even where noise is narrower."""


def first_value(threshold: float) -> int:
    """The smallest positive released value.

    >>> first_value(2.5)
    3
    """
    if not (threshold > 0 and (threshold - 0.5).is_integer()):
        raise InvalidInput("threshold must be a positive half-integer", got=threshold, allowed="0.5, 1.5, ...")
    return int(threshold + 0.5)


def at_most(noise: Noise, distance: Floats) -> Floats:
    """P(rounded noise <= d) at whole numbers d."""
    return _once(lambda far: noise.cdf(far + 0.5), distance)


def mass(noise: Noise, distance: Floats) -> Floats:
    """P(rounded noise = d) at whole numbers d. Exact.

    A difference of two lower tails. Where noise is wide the difference of two near-equal numbers would lose digits,
    so the noises that are known have it in closed form; any other noise keeps the difference.

    >>> mass(LaplaceNoise(1.0), np.array([0.0, 3.0])).round(6).tolist()
    [0.393469, 0.025944]
    """
    law = wide_mass if noise.scale > WIDE else _difference
    return _once(lambda far: law(noise, far), distance)


@singledispatch
def wide_mass(noise: Noise, distance: Floats) -> Floats:
    """P(rounded noise = d) where the scale is large."""
    return _difference(noise, distance)


@wide_mass.register
def _(noise: LaplaceNoise, distance: Floats) -> Floats:
    half = 0.5 / noise.scale
    sides = np.exp(-np.abs(distance) / noise.scale) * math.sinh(half)
    return np.asarray(np.where(distance == 0, -math.expm1(-half), sides))


@wide_mass.register
def _(noise: GeometricNoise, distance: Floats) -> Floats:
    return np.asarray(math.tanh(0.5 / noise.scale) * np.exp(-np.abs(distance) / noise.scale))


@wide_mass.register
def _(noise: GaussianNoise, distance: Floats) -> Floats:
    """The density integrated over a unit by three Gauss points: relative error (z/scale)^6 / 2e6, below 1e-14."""
    points, weights = np.polynomial.legendre.leggauss(3)
    density = sum(
        (0.5 * weight * np.exp(-0.5 * ((distance + 0.5 * point) / noise.scale) ** 2))
        for point, weight in zip(points, weights, strict=True)
    )
    return np.asarray(density / (noise.scale * math.sqrt(2.0 * math.pi)))


@wide_mass.register
def _(noise: DiscreteGaussianNoise, distance: Floats) -> Floats:
    """The weights total scale sqrt(2 pi) (1 + 2 exp(-2 pi^2 scale^2) + ...), by Poisson summation."""
    return np.asarray(np.exp(-0.5 * (distance / noise.scale) ** 2) / (noise.scale * math.sqrt(2.0 * math.pi)))


def _difference(noise: Noise, distance: Floats) -> Floats:
    away = -np.abs(distance)
    return np.asarray(noise.cdf(away + 0.5) - noise.cdf(away - 0.5))


def _once(law: Callable[[Floats], Floats], distance: Floats) -> Floats:
    """A law at whole numbers, each computed once where many of them are equal."""
    low, high = float(distance.min()), float(distance.max())
    if 2.0 * (high - low) >= distance.size:
        return law(distance)
    return np.asarray(law(np.arange(low, high + 1.0))[(distance - low).astype(np.int64)])


def find_reach(noise: Noise) -> int:
    """The distance from a count past which there is less than 1e-17 of probability.

    >>> find_reach(LaplaceNoise(10.0))
    385
    """
    low, high = 0, 1
    while float(noise.cdf(-0.5 - high)) >= NEGLIGIBLE:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(noise.cdf(-0.5 - middle)) >= NEGLIGIBLE else (low, middle)
    return high


def split_near(ascending: Integers, reach: int, at_once: int) -> Iterator[slice]:
    """Runs of counts near enough to each other to share a range of released values."""
    start = 0
    while start < len(ascending):
        stop = int(np.searchsorted(ascending, ascending[start] + max(reach, SPAN), side="right"))
        stop = min(stop, start + at_once)
        yield slice(start, stop)
        start = stop
