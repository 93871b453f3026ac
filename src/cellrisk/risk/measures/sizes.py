"""How many records does a cell hold: the distribution f(n; beta) of cell sizes, given or estimated.

Symbols of the fits: n a size, N the number of cells, r the shape and theta = mean / r the scale of a negative binomial.
Truncated at 0 its mean is r theta / (1 - (1 + theta)^-r); for a fixed r it is an exponential family in n, so the best
theta is the one that meets the average size, and one dimension remains. An infinite shape is the Poisson distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, pdtrc

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import find_first
from cellrisk.risk.measures.mixtures import gamma_mixture, gamma_size_biased, poisson_size_biased
from cellrisk.risk.measures.pmf import count_log_pmf, falling_root, log_excess, sums_of_inverses
from cellrisk.system.arrays import Floats, Integers

SMALLEST_SHAPE = 1e-8
"""Stands for shape 0, the log-series limit."""
_LARGEST_SHAPE = 1e10
"""A shape past this cannot be told from infinity."""
_PRIOR_SHAPES = (1e-3, 1e3)
_PRIOR_FACTOR = 1e3
_DROP = 45.0
"""A posterior density below exp(-45) of its maximum is left out."""
_TITLES = {"poisson": "Poisson", "negbin": "negative binomial"}
_SOURCES = {
    "given": "given",
    "mle": "by maximum likelihood",
    "moments": "by moments",
    "bayes": "by its posterior mean",
}
_LIMITS = {
    "rate zero": "rate zero, every group has one record",
    "shape infinite": "shape infinite, sizes vary no more than Poisson ones",
    "shape zero": f"shape zero, the log-series distribution, taken at shape {SMALLEST_SHAPE:g}",
}
_PRIORS = {
    "poisson": "prior density rate^(-1/2)",
    "negbin": f"log shape uniform from {_PRIOR_SHAPES[0]:g} to {_PRIOR_SHAPES[1]:g}, "
    f"log mean uniform within a factor {_PRIOR_FACTOR:g} of the average size",
}
UNLIKELY = 1e-24
MOST_SIZES = 1 << 24
_NEARLY_ZERO = 1e-15
"""Stands for rate 0 where a weight would be infinite: g(rate) / (1 - e^-rate) is then within 1e-15 of its limit."""


@dataclass(frozen=True)
class SizeDistribution:
    """f(n; beta): the probability that a cell has n records. Only non-empty cells are seen, so f is usually truncated.

    N ~ Poisson(L), L ~ Gamma(shape, scale = mean / shape), given N >= 1 if truncated; an infinite shape is the Poisson
    law of that mean. Mean 0 is the limit in which every cell has one record. Shape 0 (kept at 1e-8, its mean in
    proportion) is the log-series distribution.

    >>> SizeDistribution("negbin", 1.0, 1.0).pmf([1, 2, 3]).round(12).tolist()
    [0.5, 0.25, 0.125]
    """

    family: str
    """poisson or negbin."""
    shape: float
    mean: float
    """The mean before truncation."""
    truncated: bool = True
    """Given that the cell is not empty?"""
    source: str = "given"
    """Where it comes from: given, mle, moments or bayes."""

    @property
    def parameters(self) -> dict[str, float]:
        """beta, by name."""
        return {"rate": self.mean} if self.family == "poisson" else {"shape": self.shape, "mean": self.mean}

    @property
    def boundary(self) -> str | None:
        """The limit at which the distribution lies; else None."""
        if self.mean == 0:
            return "rate zero"
        if self.family == "negbin" and math.isinf(self.shape):
            return "shape infinite"
        return "shape zero" if self.shape == SMALLEST_SHAPE else None

    @property
    def not_empty(self) -> float:
        """1 - P(0) before truncation, to full relative accuracy."""
        exponent = self.mean if math.isinf(self.shape) else self.shape * math.log1p(self.mean / self.shape)
        return -math.expm1(-exponent)

    def tail(self, n: int) -> float:
        """Return P(N > n) before truncation."""
        if math.isinf(self.shape):
            return float(pdtrc(n, self.mean))
        return float(betainc(n + 1.0, self.shape, self.mean / (self.shape + self.mean)))

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """Rates and weights with sum w g(rate) = E g(L), over 1 - P(0) if truncated, N ~ Poisson(L).

        For g(L) = E h(N_1, ..., N_K), N_j ~ Poisson(L p_j), |h| <= 1, h = 0 where all counts are 0.
        """
        if math.isinf(self.shape) or self.mean == 0:  # the Gamma law is a point
            rate = max(self.mean, _NEARLY_ZERO)
            return np.array([rate]), np.array([1 / -math.expm1(-rate) if self.truncated else 1.0])
        rates, weights = gamma_mixture(self.shape, self.mean)
        return rates, weights * self._factor

    @cached_property
    def size_biased_mixture(self) -> tuple[Floats, Floats]:
        """Rates t and weights h with sum h Poisson(m; t) = f(m + 1), m >= 0: one record is set aside."""
        if self._point:
            return np.zeros(1), np.ones(1)
        infinite = math.isinf(self.shape)
        rates, weights = poisson_size_biased(self.mean) if infinite else gamma_size_biased(self.shape, self.mean)
        return rates, weights * self._factor

    @property
    def _point(self) -> bool:
        """All mass on size 1: the limit of a zero-truncated distribution whose mean goes to 0."""
        return self.truncated and self.not_empty == 0

    @property
    def _factor(self) -> float:
        return 1 / self.not_empty if self.truncated else 1.0

    def pmf(self, n: ArrayLike) -> Floats:
        """f(n), n from 0; where truncated, P(n) / (1 - P(0)) for n >= 1 and 0 for n = 0."""
        size = np.asarray(n)
        if self._point:
            return np.asarray(size == 1, dtype=np.float64)
        pmf = np.exp(count_log_pmf(size, self.shape, self.mean)) * self._factor
        return np.asarray(np.where(size == 0, 0.0, pmf)) if self.truncated else np.asarray(pmf)

    def last(self, tail: float = 1e-15) -> int:
        """The smallest n >= 1 with P(N > n) below ``tail``: where a sum over n may stop."""
        if self._point:
            return 1
        return find_first(lambda n: self.tail(n) * self._factor < tail)

    @cached_property
    def likely(self) -> tuple[Integers, Floats]:
        """The sizes n >= 1 that a sum over n needs, and what each weighs: f(n), but those below 1e-24 are left out."""
        least = max(1, int(self.mean))  # f has one peak, and its mean is likely
        first = find_first(lambda n: n >= least or float(self.pmf(n)) > UNLIKELY)
        last = self.last()
        if last - first >= MOST_SIZES:
            what = "marginal risks add up over the sizes that a cell may have, and these are too many"
            got, allowed = f"sizes up to {last:,}", f"up to {MOST_SIZES:,} sizes"
            raise InvalidInput(what, got=got, allowed=allowed, fix="fit Poisson sizes, or ask for the other measures")
        sizes = np.arange(first, last + 1)
        pmf = self.pmf(sizes)
        return sizes[pmf > UNLIKELY], pmf[pmf > UNLIKELY]

    def describe(self) -> str:
        """Return one line for people: the parameters, how they came about, and at which limit they lie."""
        values = ", ".join(f"{name} {value:.6g}" for name, value in self.parameters.items())
        how = _SOURCES[self.source] + (f" ({_PRIORS[self.family]})" if self.source == "bayes" else "")
        limit = f"; at the limit: {_LIMITS[self.boundary]}" if self.boundary else ""
        kind = "zero-truncated " if self.truncated else ""
        return f"Group sizes, {how}: {kind}{_TITLES[self.family]}, {values}{limit}"

    def to_dict(self) -> dict[str, Any]:
        """Return the same for machines. JSON has no infinity: an infinite shape is None, and boundary says why."""
        return {
            "name": self.family,
            **{name: value if math.isfinite(value) else None for name, value in self.parameters.items()},
            "truncated": self.truncated,
            "fit": self.source,
            "boundary": self.boundary,
        }


def fit_sizes(
    profiles: Profiles, family: str = "poisson", method: str = "mle", truncated: bool = True
) -> SizeDistribution:
    """Fit a distribution to the sizes of the non-empty cells.

    Poisson: ``mle`` and ``moments`` coincide, as the mean is sufficient: rate = mean size, or, truncated, the rate with
    rate / (1 - e^-rate) = mean size. ``bayes``: the posterior mean under the prior density rate^(-1/2).
    Negative binomial: ``mle`` by its profile likelihood in the shape; ``moments`` from the mean and variance (n in the
    denominator) or, truncated, from the mean and E n^2 / E n = 1 + scale (shape + 1); ``bayes``: the posterior means of
    shape and mean, both log-uniform over a range. All are estimates; limits (`SizeDistribution.boundary`) are answers.
    The plain fits are those that the paper reports.

    >>> profiles = Profiles.from_cells([[1], [1], [2], [4]], n_levels=1)
    >>> fit_sizes(profiles, truncated=False).mean
    2.0
    >>> round(fit_sizes(profiles).parameters["rate"], 6)
    1.593624
    """
    if profiles.n_cells == 0:
        raise InvalidInput("cell sizes cannot be fitted to a table without records")
    histogram = Histogram(*(values.astype(np.float64) for values in profiles.sizes))
    if family == "poisson":
        rate = poisson_bayes if method == "bayes" else poisson_mean
        return SizeDistribution(family, math.inf, rate(histogram, truncated), truncated, method)
    fit = {
        "mle": negative_binomial_mle,
        "moments": negative_binomial_moments,
        "bayes": negative_binomial_bayes,
    }[method]
    return SizeDistribution(family, *fit(histogram, truncated), truncated, method)


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
    """Return the rate by maximum likelihood and by moments: the mean, or rate / (1 - e^-rate) = mean if truncated."""
    if not truncated:
        return sizes.mean
    return _scale(math.inf, sizes.mean) if sizes.pairs > 0 else 0.0


def poisson_bayes(sizes: Histogram, truncated: bool) -> float:
    """Return the posterior mean of the rate, prior density rate^(-1/2), which is proper even if all sizes are 1.

    Plain: (sum n + 1/2) / N. Truncated: the density rate^(sum n - 1/2) e^(-N rate) / (1 - e^-rate)^N, integrated.
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
