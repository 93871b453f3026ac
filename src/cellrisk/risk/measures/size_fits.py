"""Estimates of the parameters of cell-size distributions from the histogram of sizes.

Symbols: n a size, N the number of cells, r the shape and theta = mean / r the scale of a negative binomial. Truncated
at 0 its mean is r theta / (1 - (1 + theta)^-r); for a fixed r it is an exponential family in n, so the best theta is
the one that meets the average size, and one dimension remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellrisk.risk.measures.mixtures import legendre_rule
from cellrisk.risk.measures.rising import falling_root, log_excess, sums_of_inverses
from cellrisk.system.arrays import Floats

SMALLEST_SHAPE = 1e-8
"""Stands for shape 0, the log-series limit."""
_LARGEST_SHAPE = 1e10
"""A shape past this cannot be told from infinity."""
_PRIOR_SHAPES = (1e-3, 1e3)
_PRIOR_FACTOR = 1e3
_DROP = 45.0
"""A posterior density below exp(-45) of its maximum is left out."""
POISSON_PRIOR = "prior density rate^(-1/2)"
NEGATIVE_BINOMIAL_PRIOR = (
    f"log shape uniform from {_PRIOR_SHAPES[0]:g} to {_PRIOR_SHAPES[1]:g}, "
    f"log mean uniform within a factor {_PRIOR_FACTOR:g} of the average size"
)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Distinct sizes, all at least 1, and how many cells have each."""

    size: Floats
    cells: Floats

    @cached_property
    def n_cells(self) -> float:
        return float(self.cells.sum())

    @cached_property
    def total(self) -> float:
        return float((self.size * self.cells).sum())

    @property
    def mean(self) -> float:
        return self.total / self.n_cells

    @cached_property
    def pairs(self) -> float:
        """The average of n (n - 1)."""
        return float((self.size * (self.size - 1) * self.cells).sum()) / self.n_cells

    @property
    def only_ones(self) -> bool:
        return self.total == self.n_cells


def poisson_mean(sizes: Histogram, truncated: bool) -> float:
    """The rate by maximum likelihood, and by moments: rate = mean, or rate / (1 - e^-rate) = mean if truncated.

    >>> round(poisson_mean(Histogram(np.array([1.0, 3.0]), np.array([1.0, 1.0])), truncated=True), 6)
    1.593624
    """
    if not truncated:
        return sizes.mean
    return 0.0 if sizes.only_ones else _scale(math.inf, sizes.mean)


def poisson_bayes(sizes: Histogram, truncated: bool) -> float:
    """The posterior mean of the rate, prior density rate^(-1/2); it is proper even where all sizes are 1.

    Plain: (sum n + 1/2) / N. Truncated: the density rate^(sum n - 1/2) e^(-N rate) / (1 - e^-rate)^N, integrated.

    >>> round(poisson_bayes(Histogram(np.array([1.0, 3.0]), np.array([1.0, 1.0])), truncated=False), 12)
    2.25
    """
    if not truncated:
        return (sizes.total + 0.5) / sizes.n_cells
    extra = (
        sizes.total - sizes.n_cells + 0.5
    )  # what is left of the power of the rate once rate^N is taken out of (1 - e^-rate)^N

    def log_density(log_rate: Floats) -> Floats:
        rate = np.exp(log_rate)
        return np.asarray(extra * log_rate - sizes.n_cells * (rate + np.log(-np.expm1(-rate) / rate)))

    average = (sizes.n_cells + extra) / sizes.n_cells
    mode = math.log(_scale(math.inf, average))
    points, weights = _posterior(log_density, mode, -math.inf, math.inf)
    return float((weights * np.exp(points)).sum() / weights.sum())


def negative_binomial_mle(sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Shape and mean of the highest likelihood; shape infinite where sizes vary no more than Poisson ones.

    The slope of the profile likelihood in r is N times: average of sum_{j < n} 1/(r + j), minus log(1 + theta), which
    is divided by 1 - (1 + theta)^-r if truncated; the 1/r that both sides then share is left out of both.

    >>> sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    >>> tuple(round(value, 4) for value in negative_binomial_mle(sizes, truncated=False))
    (2.1914, 2.25)
    """
    limit = _not_overdispersed(sizes, truncated)
    if limit is not None:
        return limit
    first = 1.0 if truncated else 0.0

    def slope(log_shape: float) -> float:
        r = math.exp(log_shape)
        rise, _ = sums_of_inverses(np.full_like(sizes.size, r + first), sizes.size - first)
        average = float((sizes.cells * rise).sum()) / sizes.n_cells
        if not truncated:
            return r * (average - math.log1p(sizes.mean / r))
        log_one_plus = math.log1p(_scale(r, sizes.mean))
        return r * (average - log_one_plus * _inverse_excess(r * log_one_plus))

    root = falling_root(slope, 0.0, math.log(SMALLEST_SHAPE), math.log(_LARGEST_SHAPE))
    return _with_mean(_from_log(root), sizes, truncated)


def negative_binomial_moments(sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Shape and mean that meet the first two moments; where none does, the nearest limit, which meets the first.

    Plain: shape = mean^2 / (variance - mean). Truncated: E n(n-1) / E n = theta (r + 1), then the mean, in r alone.

    >>> sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    >>> tuple(round(value, 6) for value in negative_binomial_moments(sizes, truncated=False))
    (1.140845, 2.25)
    """
    limit = _not_overdispersed(sizes, truncated)
    if limit is not None:
        return limit
    if not truncated:
        return sizes.mean**2 / (sizes.pairs - sizes.mean**2), sizes.mean
    ratio = sizes.pairs / sizes.mean

    def excess(log_shape: float) -> float:
        r = math.exp(log_shape)
        return sizes.mean - _truncated_mean(r, ratio / (r + 1))

    root = falling_root(excess, 0.0, math.log(SMALLEST_SHAPE), math.log(_LARGEST_SHAPE))
    return _with_mean(_from_log(root), sizes, truncated)


def negative_binomial_bayes(sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """Posterior means of shape and mean; both are log-uniform beforehand, over the ranges of the prior.

    Gauss and Legendre's rule in log shape, and for each shape in log mean, over where the density is not negligible.

    >>> sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    >>> shape, mean = negative_binomial_bayes(sizes, truncated=False)
    >>> 3 < shape < 300 and 2 < mean < 3
    True
    """
    from scipy.optimize import minimize_scalar

    edges = math.log(sizes.mean / _PRIOR_FACTOR), math.log(sizes.mean * _PRIOR_FACTOR)
    cache: dict[float, tuple[float, float]] = {}

    def given_shape(log_shape: float) -> tuple[float, float]:
        """log of the integral of the likelihood over the mean, and the mean's posterior mean."""
        if log_shape not in cache:
            cache[log_shape] = _integrate_mean(sizes, truncated, math.exp(log_shape), edges)
        return cache[log_shape]

    def log_density(points: Floats) -> Floats:
        return np.array([given_shape(float(point))[0] for point in np.atleast_1d(points)])

    low, high = (math.log(shape) for shape in _PRIOR_SHAPES)
    best = minimize_scalar(lambda x: -given_shape(x)[0], bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    points, weights = _posterior(log_density, float(best.x), low, high)
    means = np.array([given_shape(float(point))[1] for point in points])
    weights = weights / weights.sum()
    return float(weights @ np.exp(points)), float(weights @ means)


def _integrate_mean(sizes: Histogram, truncated: bool, shape: float, edges: tuple[float, float]) -> tuple[float, float]:
    r, n_cells, total = shape, sizes.n_cells, sizes.total
    fixed = float((sizes.cells * log_excess(np.full_like(sizes.size, r), sizes.size)).sum())

    def log_density(log_mean: Floats) -> Floats:
        mean = np.exp(log_mean)
        empty = -r * np.log1p(mean / r)
        value = fixed + total * (log_mean - np.log1p(mean / r)) + n_cells * empty
        return np.asarray(value - n_cells * np.log(-np.expm1(empty)) if truncated else value)

    if not truncated:
        mode = math.log(sizes.mean)
    else:
        mode = edges[0] if sizes.only_ones else math.log(r * _scale(r, sizes.mean))
    mode = min(max(mode, edges[0]), edges[1])
    points, weights = _posterior(log_density, mode, *edges)
    top = float(log_density(np.array([mode]))[0])
    return top + math.log(weights.sum()), float((weights * np.exp(points)).sum() / weights.sum())


def _posterior(log_density: Callable[[Floats], Floats], mode: float, low: float, high: float) -> tuple[Floats, Floats]:
    """Points and weights that integrate exp(log_density - its value at the mode), each side by itself."""
    top = float(log_density(np.array([mode]))[0])
    points, weights = legendre_rule(64)
    where, width = [], []
    for direction, bound in ((-1.0, low), (1.0, high)):
        step, end = 1e-5, mode
        while end != bound and float(log_density(np.array([end]))[0]) > top - _DROP:
            end = mode + direction * step
            end = max(end, bound) if direction < 0 else min(end, bound)
            step *= 1.5
        half = (end - mode) / 2
        where.append(mode + half * (1 + points))
        width.append(abs(half) * weights)
    everywhere = np.concatenate(where)
    return everywhere, np.concatenate(width) * np.exp(log_density(everywhere) - top)


def _not_overdispersed(sizes: Histogram, truncated: bool) -> tuple[float, float] | None:
    """Shape infinity with its Poisson mean, where E n(n-1) is at most what that Poisson distribution has."""
    rate = poisson_mean(sizes, truncated)
    return None if sizes.pairs > rate * sizes.mean * (1 + 1e-13) else (math.inf, rate)


def _with_mean(shape: float, sizes: Histogram, truncated: bool) -> tuple[float, float]:
    """The shape, and the mean before truncation that goes with the average size."""
    if math.isinf(shape):
        return shape, poisson_mean(sizes, truncated)
    return shape, shape * _scale(shape, sizes.mean) if truncated else sizes.mean


def _from_log(log_shape: float) -> float:
    return math.inf if log_shape == math.inf else max(math.exp(log_shape), SMALLEST_SHAPE)


def _truncated_mean(shape: float, scale: float) -> float:
    """r theta / (1 - (1 + theta)^-r); for an infinite shape, scale stands for the rate r theta."""
    if math.isinf(shape):
        return scale / -math.expm1(-scale)
    return shape * scale / -math.expm1(-shape * math.log1p(scale))


def _scale(shape: float, mean: float) -> float:
    """The theta (for an infinite shape, the rate) at which the truncated mean is this, above 1.

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


def _inverse_excess(x: float) -> float:
    """1 / (1 - e^-x) - 1/x."""
    if x < 0.05:
        return 0.5 + x / 12 * (1 - x * x / 60 * (1 - x * x / 42))
    return 1 / -math.expm1(-x) - 1 / x
