"""How likely is a count: Poisson and negative binomial probabilities that keep their digits at any size.

``exp(gammaln(...))`` subtracts numbers of the order m log m, so at m = 10^7 nine digits are lost. Here the large parts
cancel on paper (C. Loader, "Fast and accurate computation of binomial probabilities", 2000):

    log m! = log(sqrt(2 pi m) (m/e)^m) + delta(m),           delta: the error of Stirling's formula, at most 1/(12 m)
    D(x, r) = x log(x / r) + r - x >= 0,                     the deviance of x from a reference r

and what is left is a sum of small terms of known sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""B_2j / (2j (2j-1)): past x = 10 the next term is below 1e-16."""
_NEAR = 0.25
"""Where |x - r| / (x + r) is below this, the deviance is a series of which 13 terms suffice."""


def poisson_pmf(m: ArrayLike, mean: ArrayLike) -> Floats:
    """Answers: how likely is the count m when counts are Poisson with this mean?

    P(m) = e^-mean mean^m / m! = exp(-delta(m) - D(m, mean)) / sqrt(2 pi m). Exact; relative error about 1e-13 for
    counts up to 10^7 and beyond. ``m`` and ``mean`` broadcast; a negative m has probability 0; mean 0 puts all on 0.

    >>> round(float(poisson_pmf(3, 2.5)), 12)
    0.21376301725
    >>> poisson_pmf([0, 1], 0.0).tolist()
    [1.0, 0.0]
    """
    return np.asarray(np.exp(poisson_log_pmf(m, mean)), dtype=np.float64)


def poisson_log_pmf(m: ArrayLike, mean: ArrayLike) -> Floats:
    """The logarithm of `poisson_pmf`; minus infinity where that is 0.

    >>> round(float(poisson_log_pmf(10_000_000, 10_000_000.0)), 12)  # -log(2 pi 10^7)/2 - 1/(12 10^7)
    -8.977986367017
    """
    counts, rate = _counts(m), _means(mean)
    positive = np.maximum(counts, 1.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        constant = -stirling_error(positive) - 0.5 * np.log(2 * np.pi * positive)
        above = constant - deviance(positive, positive - rate, rate)
    return np.asarray(np.where(counts > 0, above, np.where(counts < 0, -np.inf, -rate)))


def negative_binomial_pmf(m: ArrayLike, shape: ArrayLike, mean: ArrayLike) -> Floats:
    """Answers: how likely is the count m when counts are negative binomial, a Gamma mixture of Poissons?

    P(m) = G(shape+m) / (G(shape) m!) (shape/(shape+mean))^shape (mean/(shape+mean))^m, variance mean + mean^2/shape,
    computed as shape/(shape+m) times the binomial saddle-point form with shape successes in shape+m trials. Exact;
    relative error about 1e-13 for shapes from 1e-9 to 1e12. Shape infinity is the Poisson distribution.

    >>> round(float(negative_binomial_pmf(2, 1.0, 1.0)), 12)
    0.125
    """
    return np.asarray(np.exp(negative_binomial_log_pmf(m, shape, mean)), dtype=np.float64)


def negative_binomial_log_pmf(m: ArrayLike, shape: ArrayLike, mean: ArrayLike) -> Floats:
    """The logarithm of `negative_binomial_pmf`; minus infinity where that is 0.

    >>> round(float(negative_binomial_log_pmf(0, 2.0, 2.0)), 12)  # 2 log(1/2)
    -1.38629436112
    """
    counts, size, rate = _counts(m), np.asarray(shape, dtype=np.float64), _means(mean)
    if not np.all(size > 0):
        raise InvalidInput("the shape of a negative binomial must be positive", allowed="numbers above 0, or infinity")
    if np.isinf(size).any():
        limit = poisson_log_pmf(counts, rate)
        finite = negative_binomial_log_pmf(counts, np.where(np.isinf(size), 1.0, size), rate)
        return np.asarray(np.where(np.isinf(size), limit, finite))
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
        zero = -size * np.log1p(rate / size)
    return np.asarray(np.where(counts > 0, above, np.where(counts < 0, -np.inf, zero)))


def stirling_error(x: ArrayLike) -> Floats:
    """delta(x) = log G(x+1) - log(sqrt(2 pi x) (x/e)^x) for real x > 0: what Stirling's formula leaves out.

    >>> round(float(stirling_error(1.0)), 12)  # 1 - log(2 pi) / 2
    0.081061466795
    """
    values = np.asarray(x, dtype=np.float64)
    inverse = 1.0 / np.maximum(values, 10.0)
    square = inverse * inverse
    total = np.full_like(inverse, _STIRLING[-1])
    for coefficient in _STIRLING[-2::-1]:
        total = total * square + coefficient
    result = np.atleast_1d(np.asarray(total * inverse))
    small = np.atleast_1d(values < 10.0)
    if small.any():
        few = np.atleast_1d(values)[small]
        result[small] = gammaln(few + 1) - (few + 0.5) * np.log(few) + few - 0.5 * np.log(2 * np.pi)
    return np.asarray(result.reshape(values.shape))


def deviance(x: Floats, difference: Any, reference: Any) -> Floats:
    """D(x, r) = x log(x / r) + r - x, given the difference x - r to full accuracy; no cancellation where x is near r.

    With v = (x - r)/(x + r), log(x / r) = 2 artanh v, so D = (x - r) v + 2 x v (v^2/3 + v^4/5 + ...).

    >>> round(float(deviance(np.asarray(2.0), 1.0, 1.0)), 12)  # 2 log 2 - 1
    0.38629436112
    """
    v = difference / (x + reference)
    square = v * v
    total = np.full_like(square, 1 / 27)
    for odd in range(25, 1, -2):
        total = total * square + 1 / odd
    near = difference * v + 2 * x * v * square * total
    far = x * np.log1p(difference / reference) - difference
    return np.asarray(np.where(np.abs(v) < _NEAR, near, far))


def _counts(m: ArrayLike) -> Floats:
    counts = np.asarray(m)
    if counts.dtype.kind not in "iub" and not np.all(counts == np.floor(counts)):
        raise InvalidInput("counts must be whole numbers", allowed="whole numbers from 0")
    return counts.astype(np.float64)


def _means(mean: ArrayLike) -> Floats:
    rate = np.asarray(mean, dtype=np.float64)
    if not np.all((rate >= 0) & np.isfinite(rate)):
        raise InvalidInput("the mean of a count must be finite and not negative", allowed="numbers from 0")
    return rate


def first_count(mean: ArrayLike) -> NDArray[np.int64]:
    """The first count of a Poisson variable that matters: nine and a half standard deviations below its mean."""
    rate = np.asarray(mean, dtype=np.float64)
    return np.asarray(np.maximum(0.0, np.floor(rate - 9.5 * np.sqrt(rate)))).astype(np.int64)


def last_count(mean: ArrayLike) -> NDArray[np.int64]:
    """The last count that matters; what lies outside the two has a probability below 1e-19.

    >>> first_count([1, 400]).tolist(), last_count([1, 400]).tolist()
    ([0, 210], [31, 610])
    """
    rate = np.asarray(mean, dtype=np.float64)
    return np.asarray(np.ceil(rate + 9.5 * np.sqrt(rate)) + 20.0).astype(np.int64)
