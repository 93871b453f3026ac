"""Estimates of the parameters of cell-size distributions from the histogram of sizes.

Symbols: n a size, N the number of cells, r the shape and theta = mean / r the scale of a negative binomial. Truncated
at 0 its mean is r theta / (1 - (1 + theta)^-r); for a fixed r it is an exponential family in n, so the best theta is
the one that meets the average size, and one dimension remains. An infinite shape is the Poisson distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cellrisk.risk.measures.pmf import falling_root, log_excess, sums_of_inverses
from cellrisk.system.arrays import Floats

SMALLEST_SHAPE = 1e-8
"""Stands for shape 0, the log-series limit."""
_LARGEST_SHAPE = 1e10
"""A shape past this cannot be told from infinity."""
_PRIOR_SHAPES = (1e-3, 1e3)
_PRIOR_FACTOR = 1e3
_DROP = 45.0
"""A posterior density below exp(-45) of its maximum is left out."""
PRIORS = {
    "poisson": "prior density rate^(-1/2)",
    "negbin": f"log shape uniform from {_PRIOR_SHAPES[0]:g} to {_PRIOR_SHAPES[1]:g}, "
    f"log mean uniform within a factor {_PRIOR_FACTOR:g} of the average size",
}


@dataclass(frozen=True, eq=False)
class Histogram:
    """Distinct sizes, all at least 1, and how many cells have each."""

    size: Floats
    cells: Floats

    def average(self, values: Floats) -> float:
        """Return the average over cells of a value for each size."""
        return float((values * self.cells).sum() / self.cells.sum())

    @property
    def n_cells(self) -> float:
        return float(self.cells.sum())

    @property
    def mean(self) -> float:
        return self.average(self.size)

    @property
    def pairs(self) -> float:
        """The average of n (n - 1)."""
        return self.average(self.size * (self.size - 1))


def poisson_mean(sizes: Histogram, truncated: bool) -> float:
    """Return the rate by maximum likelihood and by moments: the mean, or rate / (1 - e^-rate) = mean if truncated.

    >>> round(poisson_mean(Histogram(np.array([1.0, 3.0]), np.array([1.0, 1.0])), truncated=True), 6)
    1.593624
    """
    if not truncated:
        return sizes.mean
    return _scale(math.inf, sizes.mean) if sizes.pairs > 0 else 0.0


def poisson_bayes(sizes: Histogram, truncated: bool) -> float:
    """Return the posterior mean of the rate, prior density rate^(-1/2), which is proper even if all sizes are 1.

    Plain: (sum n + 1/2) / N. Truncated: the density rate^(sum n - 1/2) e^(-N rate) / (1 - e^-rate)^N, integrated.

    >>> round(poisson_bayes(Histogram(np.array([1.0, 3.0]), np.array([1.0, 1.0])), truncated=False), 12)
    2.25
    """
    if not truncated:
        return sizes.mean + 0.5 / sizes.n_cells

    def log_density(log_rate: Floats) -> Floats:
        rate = np.exp(log_rate)
        empty = np.log(-np.expm1(-rate) / rate)  # rate^N is taken out of (1 - e^-rate)^N
        return np.asarray((sizes.n_cells * (sizes.mean - 1) + 0.5) * log_rate - sizes.n_cells * (rate + empty))

    points, weights, _ = _posterior(log_density, -200.0, math.log(sizes.mean) + 10.0)
    return float(weights @ np.exp(points))


def negative_binomial_mle(sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Return shape and mean of the highest likelihood; the shape is infinite if sizes vary no more than Poisson ones.

    The slope of the profile likelihood in log r is N times: average of sum_{j < n} r/(r + j), minus x = r log(1 +
    theta), which is divided by 1 - e^-x if truncated; the terms of j = 0 are then left out of both.

    >>> sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    >>> tuple(round(value, 4) for value in negative_binomial_mle(sizes, truncated=False))
    (2.1914, 2.25)
    """
    first = 1.0 if truncated else 0.0

    def slope(log_shape: float) -> float:
        r = math.exp(log_shape)
        rise, _ = sums_of_inverses(np.full_like(sizes.size, r + first), sizes.size - first)
        if not truncated:
            return r * (sizes.average(rise) - math.log1p(sizes.mean / r))
        x = r * math.log1p(_scale(r, sizes.mean))
        return r * sizes.average(rise) - (x / -math.expm1(-x) - 1.0)

    return _overdispersed(sizes, truncated, lambda: _root(slope, sizes, truncated))


def negative_binomial_moments(sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Return shape and mean that meet the first two moments; if none does, the nearest limit, which meets the first.

    Plain: shape = mean^2 / (variance - mean). Truncated: E n(n-1) / E n = theta (r + 1), then the mean, in r alone.

    >>> sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    >>> tuple(round(value, 6) for value in negative_binomial_moments(sizes, truncated=False))
    (1.140845, 2.25)
    """
    mean, pairs = sizes.mean, sizes.pairs

    def excess(log_shape: float) -> float:
        r = math.exp(log_shape)
        return mean - _truncated_mean(r, pairs / mean / (r + 1))

    def fit() -> tuple[float, float]:
        return _root(excess, sizes, truncated) if truncated else (mean**2 / (pairs - mean**2), mean)

    return _overdispersed(sizes, truncated, fit)


def negative_binomial_bayes(sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Return the posterior means of shape and mean; both are log-uniform beforehand, over the ranges of the prior.

    Gauss and Legendre's rule in log shape, and for each shape in log mean, over where the density is not negligible.

    >>> sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    >>> shape, mean = negative_binomial_bayes(sizes, truncated=False)
    >>> 3 < shape < 300 and 2 < mean < 3
    True
    """
    centre, factor, n_cells = math.log(sizes.mean), math.log(_PRIOR_FACTOR), sizes.n_cells

    def given_shape(log_shape: float) -> tuple[float, float]:
        """Return the log of the integral of the likelihood over the mean, and the posterior mean of the mean."""
        r = math.exp(log_shape)
        fixed = sizes.average(log_excess(np.full_like(sizes.size, r), sizes.size))

        def log_density(log_mean: Floats) -> Floats:
            log_one_plus = np.log1p(np.exp(log_mean) / r)
            value = fixed + sizes.mean * (log_mean - log_one_plus) - r * log_one_plus
            return np.asarray(n_cells * (value - np.log(-np.expm1(-r * log_one_plus)) if truncated else value))

        points, weights, log_total = _posterior(log_density, centre - factor, centre + factor)
        return log_total, float(weights @ np.exp(points))

    def log_density(points: Floats) -> Floats:
        return np.array([given_shape(point)[0] for point in np.atleast_1d(points).tolist()])

    points, weights, _ = _posterior(log_density, *np.log(_PRIOR_SHAPES).tolist())
    means = np.array([given_shape(point)[1] for point in points.tolist()])
    return float(weights @ np.exp(points)), float(weights @ means)


def _posterior(log_density: Callable[[Floats], Floats], low: float, high: float) -> tuple[Floats, Floats, float]:
    """Return points, weights of sum 1, and the log of the integral of the density, each side of its peak by itself."""
    from scipy.optimize import minimize_scalar

    def fall(point: float) -> float:
        return -float(log_density(np.array([point]))[0])

    inner = minimize_scalar(fall, bounds=(low, high), method="bounded", options={"xatol": 1e-6}).x
    mode = min((low, float(inner), high), key=fall)
    top = -fall(mode)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    points, densities = [], []
    for end in (low, high):
        step, edge = 1e-5, mode
        while edge != end and fall(edge) < _DROP - top:
            edge = max(mode - step, end) if end == low else min(mode + step, end)
            step *= 1.5
        points.append(mode + 0.5 * (edge - mode) * (1 + nodes))
        densities.append(0.5 * abs(edge - mode) * weights * np.exp(log_density(points[-1]) - top))
    density = np.concatenate(densities)
    return np.concatenate(points), density / density.sum(), top + math.log(density.sum())


def _overdispersed(sizes: Histogram, truncated: bool, fit: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """Return the fit, or the Poisson limit if E n(n-1) is at most what that Poisson distribution has."""
    rate = poisson_mean(sizes, truncated)
    return fit() if sizes.pairs > rate * sizes.mean * (1 + 1e-13) else (math.inf, rate)


def _root(slope: Callable[[float], float], sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Return the shape at which a slope in its logarithm changes sign, and the mean that goes with the average size."""
    root = falling_root(slope, math.log(SMALLEST_SHAPE), math.log(_LARGEST_SHAPE))
    if root == math.inf:
        return math.inf, poisson_mean(sizes, truncated)
    shape = max(math.exp(root), SMALLEST_SHAPE)
    return shape, shape * _scale(shape, sizes.mean) if truncated else sizes.mean


def _truncated_mean(shape: float, scale: float) -> float:
    """Return r theta / (1 - (1 + theta)^-r); if the shape is infinite, scale stands for the rate r theta."""
    if math.isinf(shape):
        return scale / -math.expm1(-scale)
    return shape * scale / -math.expm1(-shape * math.log1p(scale))


def _scale(shape: float, mean: float) -> float:
    """Return the theta (if the shape is infinite, the rate) at which the truncated mean is this, above 1.

    It lies between 2 (mean - 1)/(r + 1), by convexity, and (mean - 1)/r, by Bernoulli's inequality.
    """
    from scipy.optimize import brentq

    if math.isinf(shape):
        ends = mean - 1, min(2 * (mean - 1), mean)
    else:
        ends = 2 * (mean - 1) / (shape + 1), (mean - 1) / shape
    low, high = math.log(min(ends)) - 1e-3, math.log(max(ends)) + 1e-3
    root = brentq(lambda x: _truncated_mean(shape, math.exp(x)) - mean, low, high, xtol=1e-15, rtol=1e-15)
    return math.exp(root)
