"""How likely is a count: Poisson and negative binomial probabilities that keep their digits at any size.

``exp(gammaln(...))`` subtracts numbers of the order m log m, so at m = 10^7 nine digits are lost. Here the large parts
cancel on paper (C. Loader, "Fast and accurate computation of binomial probabilities", 2000):

    log m! = log(sqrt(2 pi m) (m/e)^m) + delta(m),           delta: the error of Stirling's formula, at most 1/(12 m)
    D(x, r) = x log(x / r) + r - x >= 0,                     the deviance of x from a reference r

and what is left is a sum of small terms of known sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, zeta

from cellrisk.system.arrays import Floats, Integers

OUTSIDE = 42.0
"""exp(-42), about 1e-18: the probability of counts that are left out, on either side."""
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""B_2j / (2j (2j-1)): past x = 10 the next term is below 1e-16."""
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)
_ARTANH = [1 / odd for odd in range(3, 29, 2)]
_NEAR = 0.25
"""Where |x - r| / (x + r) is below this, the deviance is a series of which 13 terms suffice."""


def poisson_log_pmf(m: ArrayLike, mean: ArrayLike) -> Floats:
    """Return log P(m) of Poisson counts: P(m) = e^-mean mean^m / m! = exp(-delta(m) - D(m, mean)) / sqrt(2 pi m).

    Relative error of P about 1e-13 for counts up to 10^7 and beyond. ``m`` and ``mean`` broadcast; mean 0 puts all on
    0.

    >>> round(float(poisson_log_pmf(10_000_000, 10_000_000.0)), 12)  # -log(2 pi 10^7)/2 - 1/(12 10^7)
    -8.977986367017
    """
    counts, rate = np.asarray(m, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    positive = np.maximum(counts, 1.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        constant = -stirling_error(positive) - 0.5 * np.log(2 * np.pi * positive)
        above = constant - deviance(positive, positive - rate, rate)
    return np.asarray(np.where(counts > 0, above, -rate))


def negative_binomial_log_pmf(m: ArrayLike, shape: ArrayLike, mean: ArrayLike) -> Floats:
    """Return log P(m) of negative binomial counts, a Gamma mixture of Poissons: variance mean + mean^2/shape.

    P(m) = G(shape+m) / (G(shape) m!) (shape/(shape+mean))^shape (mean/(shape+mean))^m, computed as shape/(shape+m)
    times the binomial saddle-point form with shape successes in shape+m trials. Relative error of P about 1e-13 for
    finite shapes from 1e-9 to 1e12.

    >>> round(float(negative_binomial_log_pmf(0, 2.0, 2.0)), 12)  # 2 log(1/2)
    -1.38629436112
    """
    counts, size, rate = (np.asarray(values, dtype=np.float64) for values in (m, shape, mean))
    positive = np.maximum(counts, 1.0)
    trials = size + positive
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        kept = size / (size + rate)
        excess = kept * (positive - rate)  # m minus what is expected in these trials; the shape is short by as much
        above = (
            stirling_error(trials)
            - stirling_error(size)
            - stirling_error(positive)
            - 0.5 * np.log(2 * np.pi * positive)
            + 0.5 * np.log(size / trials)
            - deviance(positive, excess, trials * (rate / (size + rate)))
            - deviance(size, -excess, trials * kept)
        )
    return np.asarray(np.where(counts > 0, above, -size * np.log1p(rate / size)))


def count_log_pmf(m: ArrayLike, shape: ArrayLike, mean: ArrayLike) -> Floats:
    """Return log P(m) of negative binomial counts, or of Poisson counts if the shape is infinite."""
    infinite = bool(np.isinf(shape).all())
    return poisson_log_pmf(m, mean) if infinite else negative_binomial_log_pmf(m, shape, mean)


def stirling_error(x: ArrayLike) -> Floats:
    """Return delta(x) = log G(x+1) - log(sqrt(2 pi x) (x/e)^x), x > 0: what Stirling's formula leaves out.

    >>> round(float(stirling_error(1.0)), 12)  # 1 - log(2 pi) / 2
    0.081061466795
    """
    values = np.atleast_1d(np.asarray(x, dtype=np.float64))
    inverse = 1.0 / np.maximum(values, 10.0)
    error = np.polynomial.polynomial.polyval(inverse * inverse, _STIRLING) * inverse
    small = values < 10.0
    if small.any():
        low = values[small]
        error[small] = gammaln(low + 1) - (low + 0.5) * np.log(low) + low - 0.5 * np.log(2 * np.pi)
    return np.asarray(error.reshape(np.shape(x)))


def deviance(x: Floats, difference: Any, reference: Any) -> Floats:
    """Return D(x, r) = x log(x / r) + r - x, given x - r to full accuracy, so nothing cancels if x is near r.

    With v = (x - r)/(x + r), log(x / r) = 2 artanh v, so D = (x - r) v + 2 x v (v^2/3 + v^4/5 + ...).

    >>> round(float(deviance(np.asarray(2.0), 1.0, 1.0)), 12)  # 2 log 2 - 1
    0.38629436112
    """
    v = difference / (x + reference)
    square = v * v
    near = difference * v + 2 * x * v * square * np.polynomial.polynomial.polyval(square, _ARTANH)
    far = x * np.log1p(difference / reference) - difference
    return np.asarray(np.where(np.abs(v) < _NEAR, near, far))


def window(mean: Any, shape: Any = np.inf) -> tuple[Integers, Integers]:
    """Return the first and the last count that matter: on either side lies a probability below e^-t, t = 42.

    The cumulants are at most n! V (1 + theta)^(n - 2)/2 with V = mean (1 + theta) the variance, theta = mean/shape, so
    the upper tail is sub-gamma: P(N > mean + sqrt(2 V t) + (1 + theta) t) <= e^-t. Tilted downwards the variance only
    falls, so P(N < mean - sqrt(2 V t)) <= e^-t (Boucheron, Lugosi and Massart 2013, section 2.4).
    """
    spread = 1.0 + np.asarray(mean, dtype=np.float64) / shape
    radius = np.sqrt(2.0 * OUTSIDE * mean * spread)
    return (
        np.maximum(np.floor(mean - radius), 0.0).astype(np.int64),
        np.ceil(mean + radius + OUTSIDE * spread).astype(np.int64),
    )


def sums_of_inverses(a: Floats, m: Floats) -> tuple[Floats, Floats]:
    """Return the sum over j < m of 1/(a + j), a difference of digamma that keeps its digits, and of 1/(a + j)^2.

    The first is exact to rounding for a up to 1e13 and more, where digamma(a + m) - digamma(a) would be noise; the
    second, a difference of trigamma, loses them.

    >>> rise, fall = sums_of_inverses(np.array([1.0, 1e12]), np.array([3.0, 3.0]))
    >>> rise.round(12).tolist(), fall.round(12).tolist()
    ([1.833333333333, 3e-12], [1.361111111111, 0.0])
    """
    x, y = np.maximum(a, 12.0), np.maximum(a, 12.0) + m
    rise = np.log1p(m / x) + m / (2 * x * y) + _digamma_tail(x) - _digamma_tail(y)
    low = a < 12
    rise[low] = digamma(a[low] + m[low]) - digamma(a[low])
    return rise, np.asarray(zeta(2, a) - zeta(2, a + m))


def _digamma_tail(x: Floats) -> Floats:
    """log x - 1/(2x) - digamma(x), by its asymptotic series."""
    square = 1 / (x * x)
    return np.asarray(square * np.polynomial.polynomial.polyval(square, _DIGAMMA))


def log_excess(a: Floats, m: Floats) -> Floats:
    """Return the sum over j < m of log(1 + j/a) = log G(a + m) - log G(a) - m log a."""
    result = (a + m - 0.5) * np.log1p(m / a) - m + stirling_error(a + m) - stirling_error(a)
    return np.asarray(result)


def falling_root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Return where a slope that is positive on the left and negative on the right changes its sign.

    Minus or plus infinity if it does not between the two ends: the maximum lies at that boundary.
    """
    from scipy.optimize import brentq

    if slope(low) <= 0:
        return -math.inf
    return float(brentq(slope, low, high, xtol=1e-14, rtol=1e-14)) if slope(high) < 0 else math.inf
