"""Rising factorials a (a+1) ... (a+m-1): their logarithms and slopes, and the root of a likelihood's slope."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import digamma

from cellrisk.risk.measures.pmf import stirling_error
from cellrisk.system.arrays import Floats


def sums_of_inverses(a: Floats, m: Floats) -> tuple[Floats, Floats]:
    """sum over j < m of 1/(a + j) and of 1/(a + j)^2: differences of digamma and trigamma that keep their digits.

    Exact to rounding for a up to 1e13 and more, where digamma(a + m) - digamma(a) would be noise.

    >>> rise, fall = sums_of_inverses(np.array([1.0, 1e12]), np.array([3.0, 3.0]))
    >>> rise.round(12).tolist(), fall.round(12).tolist()
    ([1.833333333333, 3e-12], [1.361111111111, 0.0])
    """
    low = a < 12
    rise, fall = np.empty_like(a), np.empty_like(a)
    b = a[low]
    rise[low] = digamma(b + m[low]) - digamma(b)
    fall[low] = _trigamma(b) - _trigamma(b + m[low])
    x, m = a[~low], m[~low]
    y = x + m
    ratio = m / (x * y)  # 1/x - 1/y
    rise[~low] = np.log1p(m / x) + ratio / 2 + _digamma_tail(x) - _digamma_tail(y)
    fall[~low] = ratio + ratio * (1 / x + 1 / y) / 2 + _trigamma_tail(x) - _trigamma_tail(y)
    return rise, fall


def _digamma_tail(x: Floats) -> Floats:
    """log x - 1/(2x) - digamma(x), by its asymptotic series."""
    s = 1 / (x * x)
    return np.asarray(s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760))))))


def _trigamma_tail(x: Floats) -> Floats:
    """trigamma(x) - 1/x - 1/(2 x^2), by its asymptotic series."""
    s = 1 / (x * x)
    return np.asarray(s / x * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * 691 / 2730))))))


def _trigamma(x: Floats) -> Floats:
    """sum over j >= 0 of 1/(x + j)^2: twelve terms, then the series; several times faster than scipy's zeta(2, x)."""
    terms = 1 / (x[:, None] + np.arange(12))
    total = (terms * terms).sum(axis=1)
    y = x + 12
    return np.asarray(total + 1 / y + 1 / (2 * y * y) + _trigamma_tail(y))


def log_excess(a: Floats, m: Floats) -> Floats:
    """sum over j < m of log(1 + j/a) = log G(a + m) - log G(a) - m log a.

    >>> log_excess(np.array([1.0]), np.array([3.0])).round(12).tolist()  # log(1 2 3)
    [1.791759469228]
    """
    result = (a + m - 0.5) * np.log1p(m / a) - m + stirling_error(a + m) - stirling_error(a)
    return np.asarray(result)


def falling_root(
    slope: Callable[[float], float], start: float, low: float = -math.inf, high: float = math.inf
) -> float:
    """Where does a slope that is positive on the left and negative on the right change its sign?

    The bracket grows from ``start``; where no change is found inside [low, high] the answer is minus or plus infinity:
    the maximum lies at that boundary.

    >>> round(falling_root(lambda x: 2.0 - x, 10.0), 12)
    2.0
    >>> falling_root(lambda x: 1.0, 0.0, high=5.0)
    inf
    """
    from scipy.optimize import brentq

    near, width = min(max(start, low), high), 0.7
    value = slope(near)
    if value == 0:
        return near
    direction = math.copysign(1.0, value)
    while True:
        far = min(max(near + direction * width, low), high)
        if far == near:
            return direction * math.inf
        there = slope(far)
        if there == 0:
            return far
        if (there > 0) != (direction > 0):
            return float(brentq(slope, near, far, xtol=1e-14, rtol=1e-14))
        near, width = far, 1.6 * width
