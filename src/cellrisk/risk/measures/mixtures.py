"""Negative binomial and Poisson cell sizes as finite mixtures of Poissons, so that marginal risks factorise.

A Gamma density times a Poisson probability is x^(a-1) e^-x in x = rate (1 + 1/scale), whatever the count. With
x = softplus(y)^2 that is smooth at one and the same scale for every a (log spacing near 0, even spacing of the square
root far out, where a Poisson's standard deviation is 1/2), so the trapezoid rule in y with one step serves all: with
step h its error is about exp(-pi^2 / (2 h^2)).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, gammaincc

from cellrisk.risk.measures.pmf import deviance, stirling_error
from cellrisk.system.arrays import Floats

_STEP = 0.3
_SMALLEST = math.log(1e-18)
"""Nodes that cannot add more than this are left out."""
_DROP = 45.0
"""exp(-45): what a range leaves out."""
_TERMS = 2000
"""Of the continued fraction; it converges in fewer from three standard deviations above the mean on."""


def gamma_mixture(shape: float, mean: float) -> tuple[Floats, Floats]:
    """Return rates and weights with sum w g(rate) = E g(L), L ~ Gamma(shape, scale = mean / shape).

    For g(L) = E h(N_1, ..., N_K), N_j ~ Poisson(L p_j), |h| <= 1, h = 0 where all counts are 0, so that g vanishes at
    least like L at 0. The error is about 1e-14 times 1 - P(0).

    >>> rates, weights = gamma_mixture(1.0, 1.0)
    >>> round(float(weights @ -np.expm1(-rates)), 13)  # 1 - P(0) = 1/2
    0.5
    """
    scale = mean / shape
    y, root, excess = _grid(shape, scale, shape - math.sqrt(2 * _DROP * shape))
    rates = root**2 * scale / (1 + scale)
    log_weight = _log_density(shape, root**2 / (1 + scale), excess) + np.log(2 * expit(y) / root * _STEP)
    kept = log_weight + np.minimum(0.0, np.log(rates)) > _SMALLEST + _log_not_empty(shape, scale)
    return rates[kept], np.exp(log_weight[kept])


def gamma_size_biased(shape: float, mean: float) -> tuple[Floats, Floats]:
    """Return rates t and weights h with sum h Poisson(m; t) = P(N = m + 1) for every m >= 0, N negative binomial.

    The density in t is h(t) = integral over l > t of gamma(l) e^-(l - t) dl = e^t (1 + scale)^-shape Q(shape, x),
    x = t (1 + 1/scale), Q the upper regularised incomplete Gamma function. A law that is nearly Poisson, whose density
    is cut off, is a mixture of few Poissons by Gauss and Laguerre's rule. The error is about 1e-14 times 1 - P(0).

    >>> rates, weights = gamma_size_biased(1.0, 1.0)
    >>> round(float(weights @ np.exp(-rates)), 13)  # P(1) = 1/4
    0.25
    """
    scale = mean / shape
    if shape > max(400.0, mean**2) and scale < 1 / 64:
        from scipy.linalg import eigh_tridiagonal  # slow to load, and seldom needed

        k = np.arange(12.0)
        points, vectors = eigh_tridiagonal(2 * k + shape, np.sqrt(k[1:] * (k[1:] + shape - 1)))
        parts = [poisson_size_biased(point * scale) for point in points.tolist()]
        weights = [part[1] * vector**2 for part, vector in zip(parts, vectors[0], strict=True)]
        return np.concatenate([part[0] for part in parts]), np.concatenate(weights)
    shrink = scale / (1 + scale)
    y, root, excess = _grid(shape, scale, (shape - 9.5 * math.sqrt(shape) - _DROP / shrink) / (1 + scale))
    x = root**2
    far = x > shape + 3 * math.sqrt(shape) + 3
    log_weight = np.log(2 * root * expit(y) * _STEP * shrink)
    log_weight[~far] += x[~far] * shrink - shape * math.log1p(scale) + np.log(gammaincc(shape, x[~far]))
    log_weight[far] += _log_density(shape, x[far] / (1 + scale), excess[far]) + np.log(_upper_fraction(shape, x[far]))
    kept = log_weight > _SMALLEST + _log_not_empty(shape, scale)
    rates, weights = x[kept] * shrink, np.exp(log_weight[kept])
    return rates, weights * (math.exp(_log_not_empty(shape, scale)) / weights.sum())


def poisson_size_biased(rate: float) -> tuple[Floats, Floats]:
    """Return rates t and weights h with sum h Poisson(m; t) = P(N = m + 1) for every m >= 0, N ~ Poisson(rate).

    P(m + 1) = integral over 0 < t < rate of e^-(rate - t) Poisson(m; t) dt, by Gauss and Legendre's rule. What is
    integrated is all but a power of t, or an exponential: 32 points leave an error below 1e-14.

    >>> rates, weights = poisson_size_biased(2.0)
    >>> round(float(weights @ np.exp(-rates)), 13), round(2 * math.exp(-2), 13)
    (0.2706705664732, 0.2706705664732)
    """
    points, weights = np.polynomial.legendre.leggauss(32)
    half = min(rate, _DROP) / 2
    away = half * (1 - points)
    weights = weights * np.exp(-away)
    return rate - away, weights * (-math.expm1(-rate) / weights.sum())


def _grid(shape: float, scale: float, lowest: float) -> tuple[Floats, Floats, Floats]:
    """Return y, evenly spaced about where x/(1 + scale) is the shape, sqrt(x) = softplus(y), and x/(1 + scale) - shape.

    From where x/(1 + scale) is at the lowest, or 0, to what a Gamma law with that shape can reach.
    """
    centre = math.sqrt(shape * (1 + scale))
    middle = centre + math.log(-math.expm1(-centre))
    highest = math.sqrt((shape + math.sqrt(2 * _DROP * shape) + _DROP) * (1 + scale))
    least = lowest * (1 + scale)
    start = math.sqrt(least) - 1 if least > 1 else -_DROP / 2
    offset = _STEP * np.arange(math.floor((start - middle) / _STEP), math.ceil((highest - middle) / _STEP) + 1)
    y = np.asarray(middle + offset, dtype=np.float64)
    root = np.logaddexp(0.0, y)
    away = offset + np.logaddexp(0.0, -y) - np.logaddexp(0.0, -middle)  # of softplus from the centre
    return y, np.asarray(root), np.asarray(away * (root + centre) / (1 + scale))


def _log_not_empty(shape: float, scale: float) -> float:
    """log(1 - P(0)) = log(1 - (1 + scale)^-shape)."""
    return math.log(-math.expm1(-shape * math.log1p(scale)))


def _log_density(shape: float, x: Floats, excess: Floats) -> Floats:
    """log of x^shape e^-x / G(shape): the density of log X, X ~ Gamma(shape, 1), where excess = x - shape."""
    r = np.asarray(shape)
    return np.asarray(0.5 * np.log(r / (2 * np.pi)) - stirling_error(r) - deviance(r, -excess, x))


def _upper_fraction(shape: float, x: Floats) -> Floats:
    """G(shape, x) / (x^shape e^-x), x > shape + 1: the continued fraction (DLMF 8.9.2), from its end."""
    rest = np.zeros_like(x)
    for i in range(_TERMS, 0, -1):
        rest = i * (shape - i) / (x + (2 * i + 1) - shape + rest)
    return np.asarray(1.0 / (x + 1.0 - shape + rest))
