"""Rising factorials a (a+1) ... (a+m-1): their logarithms and slopes, and the root of a likelihood's slope."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import digamma, zeta

from cellrisk.risk.measures.pmf import stirling_error
from cellrisk.system.arrays import Floats

_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)


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
    """Return the sum over j < m of log(1 + j/a) = log G(a + m) - log G(a) - m log a.

    >>> log_excess(np.array([1.0]), np.array([3.0])).round(12).tolist()  # log(1 2 3)
    [1.791759469228]
    """
    result = (a + m - 0.5) * np.log1p(m / a) - m + stirling_error(a + m) - stirling_error(a)
    return np.asarray(result)


def falling_root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Return where a slope that is positive on the left and negative on the right changes its sign.

    Minus or plus infinity if it does not between the two ends: the maximum lies at that boundary.

    >>> round(falling_root(lambda x: 2.0 - x, 0.0, 10.0), 12)
    2.0
    >>> falling_root(lambda x: 1.0, 0.0, 5.0)
    inf
    """
    from scipy.optimize import brentq

    if slope(low) <= 0:
        return -math.inf
    return float(brentq(slope, low, high, xtol=1e-14, rtol=1e-14)) if slope(high) < 0 else math.inf
