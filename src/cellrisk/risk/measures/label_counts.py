"""A label's count before the cell's total is fixed: negative binomial, Poisson in the limit.

Counts that are Dirichlet-multinomial are independent negative binomials (shapes alpha_k, one common success
probability), given their total. The common mean is free; it is the size of a cell, shared out among the labels.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from cellrisk.risk.measures.pmf import negative_binomial_log_pmf, poisson_log_pmf
from cellrisk.system.arrays import Floats, Integers

BESIDES = 50.0
"""Counts with a probability below exp(-50), about 1e-22, on either side are left out."""
RUN = 64
"""So many consecutive probabilities follow from one by their ratios: an error of at most 64 roundings."""


def count_pmf(counts: ArrayLike, share: ArrayLike, concentration: float, size: ArrayLike) -> Floats:
    """How likely is a label of this share to have that count, where its mean is share * size?"""
    return np.asarray(np.exp(count_log_pmf(counts, share, concentration, size)))


def count_log_pmf(counts: ArrayLike, share: ArrayLike, concentration: float, size: ArrayLike) -> Floats:
    """The logarithm of that."""
    mean = np.multiply(share, size)
    if math.isinf(concentration):
        return poisson_log_pmf(counts, mean)
    return negative_binomial_log_pmf(counts, np.multiply(share, concentration), mean)


def consecutive_pmf(first: Integers, width: int, shares: Floats, concentration: float, size: int) -> Floats:
    """The same at consecutive counts, from the first on, for each share: (shares, width); several times faster.

    P(m + 1)/P(m) = mean (1 + m/shape) / ((m + 1)(1 + mean/shape)), by which one count in 64 gives the others.

    >>> fast = consecutive_pmf(np.array([3]), 97, np.array([0.3]), 2.0, 50)[0]
    >>> bool(np.allclose(fast, count_pmf(np.arange(3, 100), 0.3, 2.0, 50), rtol=1e-13, atol=0))
    True
    """
    runs = -(-width // RUN)
    steps = np.arange(runs * RUN, dtype=np.float64).reshape(runs, RUN)
    counts = first[:, None, None] + steps
    shape, mean = (shares * concentration)[:, None, None], (shares * size)[:, None, None]
    ratios = np.empty_like(counts)
    ratios[..., 0] = count_pmf(counts[..., 0], shares[:, None], concentration, size)
    if math.isinf(concentration):
        np.divide(mean, counts[..., 1:], out=ratios[..., 1:])
    else:
        np.divide((counts[..., :-1] + shape) * (mean / (shape + mean)), counts[..., 1:], out=ratios[..., 1:])
    return np.cumprod(ratios, axis=2, out=ratios).reshape(len(shares), -1)[:, :width]


def likeliest(shares: Floats, concentration: float, size: int) -> Floats:
    """The largest probability of any count of 1 or more: for each share."""
    mean = shares * size
    mode = mean if math.isinf(concentration) else mean * (1.0 - 1.0 / (shares * concentration))
    return count_pmf(np.maximum(np.floor(mode), 1.0), shares, concentration, size)


def window(shares: Floats, concentration: float, size: int) -> tuple[Integers, Integers]:
    """The first and the last count that matter, for each share: what lies outside has a probability of about 1e-22.

    By Chernoff's bound, P(N >= m) for m above the mean, and P(N <= m) below it, is at most exp(-D(m)), the likelihood
    of the mean m against that of the true one.

    >>> [bound.tolist() for bound in window(np.array([0.2, 0.8]), 1e9, 1000)]
    [[76, 533], [358, 1100]]
    """
    mean = shares * size
    high = mean + 1.0
    while (short := _deviance(high, mean, shares * concentration) < BESIDES).any():
        high = np.where(short, 2.0 * high, high)
    low, start = np.zeros_like(mean), mean.copy()
    inner = mean.copy()
    while ((high - inner) > 0.5).any():
        middle = 0.5 * (inner + high)
        beyond = _deviance(middle, mean, shares * concentration) >= BESIDES
        inner, high = np.where(beyond, inner, middle), np.where(beyond, middle, high)
    while ((start - low) > 0.5).any():
        middle = 0.5 * (low + start)
        beyond = _deviance(middle, mean, shares * concentration) >= BESIDES
        low, start = np.where(beyond, middle, low), np.where(beyond, start, middle)
    return np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)


def _deviance(m: Floats, mean: Floats, shape: Floats) -> Floats:
    """D(m) = m log(m/mean) - (shape + m) log((shape + m)/(shape + mean)), and its limit at infinite shape."""
    difference = m - mean
    with np.errstate(invalid="ignore"):
        others = np.where(np.isinf(shape), difference, (shape + m) * np.log1p(difference / (shape + mean)))
    return np.asarray(m * np.log(m / mean) - others)
