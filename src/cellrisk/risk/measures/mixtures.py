"""Negative binomial and Poisson cell sizes as finite mixtures of Poissons, so that marginal risks factorise.

A Gamma density times a Poisson probability is x^(a-1) e^-x in x = rate (1 + 1/scale), whatever the count. With
x = softplus(y)^2 that is smooth at one and the same scale for every a (log spacing near 0, even spacing of the square
root far out, where a Poisson's standard deviation is 1/2), so the trapezoid rule in y with one step serves all: with
step h its error is about exp(-pi^2 / (2 h^2)).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit, gammaincc

from cellrisk.risk.measures.pmf import deviance, stirling_error
from cellrisk.system.arrays import Floats

_STEP = 0.3
_SMALLEST = math.log(1e-18)
"""Nodes that cannot add more than this are left out."""
_DROP = 45.0
"""exp(-45): what a range leaves out."""
_LARGE_SHAPE = 400.0
"""Past this a Gamma law keeps clear of 0, and its square root is all but normal."""


def gamma_mixture(shape: float, mean: float) -> tuple[Floats, Floats]:
    """Rates and weights with sum w g(rate) = E g(L), L ~ Gamma(shape, scale = mean / shape).

    For g(L) = E h(N_1, ..., N_K), N_j ~ Poisson(L p_j), |h| <= 1, h = 0 where all counts are 0, so that g vanishes at
    least like L at 0. The error is about 1e-14 times 1 - P(0).

    >>> rates, weights = gamma_mixture(1.0, 1.0)
    >>> round(float(weights @ -np.expm1(-rates)), 13)  # 1 - P(0) = 1/2
    0.5
    """
    scale = mean / shape
    if shape > _LARGE_SHAPE:
        root = math.sqrt(shape * (1 + scale))
        lowest = math.sqrt((shape - math.sqrt(2 * _DROP * shape)) * (1 + scale))
        reach = math.ceil((root - lowest) / _STEP)
        offset = _STEP * np.arange(-reach, reach + 1)  # of the square root, from its centre
        excess = offset * (2 * root + offset) / (1 + scale)
        rates = mean * (1 + offset / root) ** 2
        log_weight = _log_density_of_log(shape, shape + excess, excess) + np.log(2 / (root + offset))
    else:
        y, x = _grid(shape, scale)
        rates = x * (scale / (1 + scale))
        log_weight = _log_density_of_log(shape, x / (1 + scale), x / (1 + scale) - shape)
        log_weight = log_weight + _log_slope(y) - np.log(x)
    log_weight = log_weight + math.log(_STEP)
    kept = log_weight + np.minimum(0.0, np.log(rates)) > _SMALLEST + _log_not_empty(shape, scale)
    return rates[kept], np.exp(log_weight[kept])


def gamma_size_biased(shape: float, mean: float) -> tuple[Floats, Floats]:
    """Rates t and weights h with sum h Poisson(m; t) = P(N = m + 1) for every m >= 0, N negative binomial.

    The density in t is h(t) = integral over l > t of gamma(l) e^-(l - t) dl = e^t (1 + scale)^-shape Q(shape, x),
    x = t (1 + 1/scale), Q the upper regularised incomplete Gamma function. The error is about 1e-14 times 1 - P(0).

    >>> rates, weights = gamma_size_biased(1.0, 1.0)
    >>> round(float(weights @ np.exp(-rates)), 13)  # P(1) = 1/4
    0.25
    """
    scale = mean / shape
    shrink = scale / (1 + scale)
    spread = 9.5 * math.sqrt(shape)
    if shape > max(_LARGE_SHAPE, mean**2) and scale < 1 / 64:  # nearly Poisson: e^t, cut off round t = mean
        excess, weight = _gauss_legendre(-spread, spread, 80)
        weight = weight * shrink * _upper_tail(shape, excess, spread)
        edge = (shape - spread) * shrink
        low, low_weight = _gauss_legendre(max(0.0, edge - _DROP), edge)
        rates = np.concatenate([low, (shape + excess) * shrink])
        weights = np.concatenate([low_weight, weight]) * np.exp(rates - shape * math.log1p(scale))
    else:
        y, x = _grid(shape, scale, shape - spread - _DROP / shrink)
        rates = x * shrink
        log_weight = _log_beyond(shape, scale, x) + _log_slope(y) + math.log(_STEP * shrink)
        kept = log_weight > _SMALLEST + _log_not_empty(shape, scale)
        rates, weights = rates[kept], np.exp(log_weight[kept])
    return rates, weights * (math.exp(_log_not_empty(shape, scale)) / weights.sum())


def poisson_size_biased(rate: float) -> tuple[Floats, Floats]:
    """Rates t and weights h with sum h Poisson(m; t) = P(N = m + 1) for every m >= 0, N ~ Poisson(rate).

    P(m + 1) = integral over 0 < t < rate of e^-(rate - t) Poisson(m; t) dt, by Gauss and Legendre's rule. What is
    integrated is all but a power of t, or an exponential: 32 points leave an error below 1e-14.

    >>> rates, weights = poisson_size_biased(2.0)
    >>> round(float(weights @ np.exp(-rates)), 13), round(2 * math.exp(-2), 13)
    (0.2706705664732, 0.2706705664732)
    """
    rates, weights = _gauss_legendre(max(0.0, rate - _DROP), rate, 32)
    weights = weights * np.exp(rates - rate)
    return rates, weights * (-math.expm1(-rate) / weights.sum())


@lru_cache(maxsize=64)
def legendre_rule(nodes: int) -> tuple[Floats, Floats]:
    """Points and weights of Gauss and Legendre's rule on [-1, 1]; kept, as finding them is slow.

    >>> points, weights = legendre_rule(3)
    >>> round(float(weights @ points**4), 12)  # 2/5
    0.4
    """
    points, weights = np.polynomial.legendre.leggauss(nodes)
    for values in (points, weights):
        values.flags.writeable = False
    return points, weights


def _gauss_legendre(low: float, high: float, nodes: int | None = None) -> tuple[Floats, Floats]:
    points, weights = legendre_rule(nodes or 16 + math.ceil(1.2 * (high - low)))
    half = (high - low) / 2
    return np.asarray(low + half * (1 + points)), np.asarray(half * weights)


def _grid(shape: float, scale: float, lowest: float = 0.0) -> tuple[Floats, Floats]:
    """Points y, evenly spaced, and x = softplus(y)^2 from the lowest to what a Gamma law with that shape can reach."""
    highest = math.sqrt((shape + math.sqrt(2 * _DROP * shape) + _DROP) * (1 + scale))
    start = -_DROP / 2 if lowest <= 1 else math.sqrt(lowest) - 1
    y = np.arange(start, highest + _STEP, _STEP)
    return y, np.logaddexp(0.0, y) ** 2


def _log_slope(y: Floats) -> Floats:
    """log dx/dy for x = softplus(y)^2."""
    return np.asarray(np.log(2 * np.logaddexp(0.0, y) * expit(y)))


def _log_not_empty(shape: float, scale: float) -> float:
    """log(1 - P(0)) = log(1 - (1 + scale)^-shape)."""
    return math.log(-math.expm1(-shape * math.log1p(scale)))


def _log_density_of_log(shape: float, value: Floats, excess: Floats) -> Floats:
    """log of x^shape e^-x / G(shape): the density of log X, X ~ Gamma(shape, 1), where excess = x - shape."""
    r = np.asarray(shape)
    return np.asarray(0.5 * np.log(r / (2 * np.pi)) - stirling_error(r) - deviance(r, -excess, value))


def _upper_tail(shape: float, excess: Floats, end: float) -> Floats:
    """P(shape + excess < X < shape + end), X ~ Gamma(shape, 1), for a large shape: its density, integrated."""
    points, weights = legendre_rule(64)
    half = (end - excess[:, None]) / 2
    inner = excess[:, None] + half * (1 + points)
    density = np.exp(_log_density_of_log(shape, shape + inner, inner)) / (shape + inner)
    return np.asarray((density * half) @ weights)


def _log_beyond(shape: float, scale: float, x: Floats) -> Floats:
    """log h(t) at t = x scale / (1 + scale); in the upper tail through a continued fraction, where nothing cancels."""
    far = x > shape + 3 * math.sqrt(shape) + 3
    result = np.empty_like(x)
    near = x[~far]
    result[~far] = near * (scale / (1 + scale)) - shape * math.log1p(scale) + np.log(gammaincc(shape, near))
    value = x[far] / (1 + scale)
    result[far] = _log_density_of_log(shape, value, value - shape) + np.log(_upper_fraction(shape, x[far]))
    return result


def _upper_fraction(shape: float, x: Floats) -> Floats:
    """G(shape, x) / (x^shape e^-x), x > shape + 1: the continued fraction, by Lentz's method (DLMF 8.9.2)."""
    b = x + 1 - shape
    c = np.full_like(x, 1e300)
    d = 1 / b
    total = d.copy()
    for i in range(1, 2000):
        step = i * (shape - i)
        b = b + 2
        d = 1 / (b + step * d)
        c = b + step / c
        total *= c * d
        if np.all(np.abs(c * d - 1) < 4e-16):
            break
    return total
