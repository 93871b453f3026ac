"""Where risks are within their limits: found from interpolants whose error is bounded, so that no bend is overlooked.

A risk is an analytic function of the logarithm of the noise's scale. Write R(t) = E g(released counts) with 0 <= g <= 1
and noise of scale e^t. At t + i u, each noise has complex probabilities whose sizes add up to at most C(u), so
|R(t + i u)| <= C(u)^K with K labels (docs/maths.md). Interpolation at n Chebyshev points of a stretch of half-length h
is then wrong by at most 4 C(u)^K r^(1 - n) / (r - 1), where h (r - 1/r) / 2 = u. Enough points are taken that this is
below `RESOLUTION`; the bends and crossings of the interpolant are those of the risk, up to that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from cellrisk.decide.search import Admissible, Excesses, collect
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import Mechanism, make_noises
from cellrisk.system.arrays import Floats

RESOLUTION = 1e-10
"""A risk that goes beyond its limit by less than this, and back, may be taken for one that does not."""
MOST_POINTS = 48
"""The most points in one stretch: the bends of an interpolant are eigenvalues of a matrix of that size."""
MOST_STRETCHES = 2000
NEARLY_REAL = 1e-2
DENSE = 512


def find_epsilons(excesses: Excesses, setting: Mechanism, n_levels: int, low: float, high: float) -> Admissible:
    """The epsilons from ``low`` to ``high`` at which no excess is above zero."""
    scales = _Scales.of(setting, low, high)
    kind = type(setting.with_epsilon(low).noise)
    pieces = _cut(scales.logs[-1], scales.logs[0], kind, n_levels)
    places = np.concatenate([piece.places for piece in pieces])
    found = excesses(kind.at_scales(map(math.exp, places)))
    special: list[Floats] = []
    crossings: list[Floats] = []
    for piece, values in zip(pieces, np.hsplit(found, len(pieces)), strict=True):
        interpolants = piece.interpolate(values)
        levels, zeros = piece.find_special(interpolants)
        special += [levels, piece.find_least(interpolants)]
        crossings.append(zeros)
    marked = np.unique(np.concatenate([*special, *crossings]))
    inside = np.concatenate([*special, 0.5 * (marked[1:] + marked[:-1])])  # a crossing itself is all rounding
    epsilon = np.unique(np.concatenate([[low], np.clip(scales.invert(inside), low, high), [high]]))

    def excess(epsilons: Floats) -> Floats:
        return np.asarray(excesses(make_noises(setting, epsilons)).max(axis=0))

    return collect(excess, epsilon, excess(epsilon))


@dataclass(frozen=True, eq=False)
class _Scales:
    """The logarithm of the noise's scale along the logarithm of epsilon: it falls."""

    setting: Mechanism
    epsilons: Floats
    logs: Floats

    @staticmethod
    def of(setting: Mechanism, low: float, high: float) -> _Scales:
        epsilons = np.linspace(math.log(low), math.log(high), 65)
        return _Scales(setting, epsilons, _find_logs(setting, [low, *map(math.exp, epsilons[1:-1]), high]))

    def invert(self, logs: Floats) -> Floats:
        """The epsilon of each scale, by interpolation and two steps of the secant method."""
        found = np.interp(-logs, -self.logs, self.epsilons)
        slope = np.interp(found, self.epsilons, np.gradient(self.logs, self.epsilons))
        for _ in range(2):
            now = _find_logs(self.setting, map(math.exp, found))
            found = np.clip(found - (now - logs) / slope, self.epsilons[0], self.epsilons[-1])
        return np.exp(found)


def _find_logs(setting: Mechanism, epsilons: Iterable[float]) -> Floats:
    """The logarithm of the noise's scale at each epsilon."""
    return np.array([math.log(noise.scale) for noise in make_noises(setting, epsilons)])


@dataclass(frozen=True, eq=False)
class _Piece:
    """A stretch of the logarithm of the scale, and how many Chebyshev points its interpolant needs."""

    middle: float
    half: float
    points: int

    @property
    def places(self) -> Floats:
        return self.middle + self.half * chebyshev.chebpts1(self.points)

    def interpolate(self, values: Floats) -> Floats:
        """The Chebyshev series through the values at ``places``: (limits, points) to (points, limits)."""
        terms = chebyshev.chebvander(chebyshev.chebpts1(self.points), self.points - 1)
        norms = np.full(self.points, 2.0 / self.points)
        norms[0] = 1.0 / self.points
        return np.asarray(norms[:, None] * (terms.T @ values.T))

    def find_special(self, interpolants: Floats) -> tuple[Floats, Floats]:
        """The places where an interpolant is level, with both ends; and those where one is zero."""
        levels, zeros = [np.array([-1.0, 1.0])], [np.zeros(0)]
        for coefficients in interpolants.T:
            for series, found in ((chebyshev.chebder(coefficients), levels), (coefficients, zeros)):
                roots = chebyshev.chebroots(chebyshev.chebtrim(series, 1e-15 * float(np.abs(series).max())))
                found.append(roots.real[(np.abs(roots.imag) < NEARLY_REAL) & (np.abs(roots.real) <= 1.0)])
        return self.middle + self.half * np.concatenate(levels), self.middle + self.half * np.concatenate(zeros)

    def find_least(self, interpolants: Floats) -> Floats:
        """The place where the largest interpolant is least, among many: it may be where two of them cross."""
        dense = np.linspace(-1.0, 1.0, DENSE)
        largest = chebyshev.chebval(dense, interpolants).max(axis=0)
        return np.array([self.middle + self.half * dense[np.argmin(largest)]])


def _cut(low: float, high: float, kind: type[Noise], n_levels: int) -> list[_Piece]:
    """Stretches from low to high with the fewest points altogether."""
    number, points = count_points(high - low, kind, n_levels)
    half = 0.5 * (high - low) / number
    return [_Piece(low + half * (2 * place + 1), half, points) for place in range(number)]


def count_points(length: float, kind: type[Noise], n_levels: int) -> tuple[int, int]:
    """How many stretches, and how many points in each, keep the error of interpolation below the resolution.

    >>> count_points(math.log(1e5), LaplaceNoise, 2)
    (3, 43)
    """
    heights = np.concatenate([np.geomspace(0.001, 0.04, 12), np.linspace(0.05, 1.4, 28)])  # low for very many labels
    sizes = n_levels * np.array([log_size(kind, height) for height in heights.tolist()])
    numbers = np.arange(1, MOST_STRETCHES)[:, None]
    steepness = heights / np.maximum(0.5 * length / numbers, RESOLUTION)  # a range may be a single point
    ratio = steepness + np.hypot(steepness, 1.0)
    points = np.ceil(1.0 + (np.log(4.0 / RESOLUTION / (ratio - 1.0)) + sizes) / np.log(ratio))
    total = np.where(points <= MOST_POINTS, numbers * points, np.inf)
    number, height = np.unravel_index(np.argmin(total), total.shape)
    return int(numbers[number, 0]), int(points[number, height])


@lru_cache(maxsize=512)
def log_size(kind: type[Noise], height: float) -> float:
    """log C(u): the total size of the complex probabilities of noise whose scale is turned by an angle u.

    Laplace: 1/cos u. Gaussian: 1/sqrt(cos 2u). Geometric: at most 1/cos^2 u. Discrete Gaussian: the largest over scales
    of a theta function over another, which rises from 1 to a peak near a scale of 0.4 and falls to 1/sqrt(cos 2u).

    >>> round(math.exp(log_size(LaplaceNoise, 1.0)), 6), round(1 / math.cos(1.0), 6)
    (1.850816, 1.850816)
    """
    if kind in (LaplaceNoise, GeometricNoise) and height < 0.5 * math.pi:
        return -math.log(math.cos(height)) * (1 if kind is LaplaceNoise else 2)
    if kind not in (GaussianNoise, DiscreteGaussianNoise) or height >= 0.25 * math.pi:
        return math.inf
    if kind is GaussianNoise:
        return -0.5 * math.log(math.cos(2.0 * height))
    from scipy.optimize import minimize_scalar

    def negative_size(scale: float) -> float:
        terms = np.exp(-0.5 * (np.arange(-20, 21) / scale) ** 2 * np.exp(-2j * height))
        return -float(np.abs(terms).sum() / np.abs(terms.sum()))

    return math.log(-minimize_scalar(negative_size, bounds=(0.3, 0.6), method="bounded").fun)
