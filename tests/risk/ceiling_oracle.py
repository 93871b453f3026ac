"""Ceilings by other means: enumeration of released counts, integrals in 30 digits, and draws. No code is shared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 30
Pmf = Callable[[int], Any]


def geometric(epsilon: float) -> Pmf:
    a = mp.e ** -mp.mpf(epsilon)
    return lambda j: (1 - a) / (1 + a) * a ** abs(j)


def rounded_laplace(epsilon: float) -> Pmf:
    """P(j - 1/2 < e < j + 1/2) for e of scale 1/epsilon."""

    def below(x: Any) -> Any:
        half = mp.e ** (-abs(x) * mp.mpf(epsilon)) / 2
        return half if x < 0 else 1 - half

    return lambda j: below(mp.mpf(j) + mp.mpf(1) / 2) - below(mp.mpf(j) - mp.mpf(1) / 2)


def rounded_gaussian(sigma: float) -> Pmf:
    def above(x: Any) -> Any:
        return mp.erfc(x / (mp.sqrt(2) * sigma)) / 2

    return lambda j: above(abs(mp.mpf(j)) - mp.mpf(1) / 2) - above(abs(mp.mpf(j)) + mp.mpf(1) / 2)


def discrete_gaussian(sigma: float) -> Pmf:
    def weight(j: int) -> Any:
        return mp.e ** (-(mp.mpf(j) ** 2) / (2 * mp.mpf(sigma) ** 2))

    total = mp.fsum(weight(j) for j in range(-int(14 * sigma) - 3, int(14 * sigma) + 4))
    return lambda j: weight(j) / total


def enumerate_success(pmf: Pmf, priors: Sequence[float], most: int) -> float:
    """The sum over released vectors y, up to most either side, of the largest pi_k f(y_k - 1) prod_{j != k} f(y_j)."""
    values = range(-most, most + 2)
    without = np.array([float(pmf(j)) for j in values])
    with_person = np.array([float(pmf(j - 1)) for j in values])
    largest = np.zeros((len(without),) * len(priors))
    for label, prior in enumerate(priors):
        term = np.array(prior)
        for other in range(len(priors)):
            term = np.multiply.outer(term, with_person if other == label else without)
        largest = np.maximum(largest, term)
    return math.fsum(largest.ravel())


def integrate_laplace(epsilon: float, priors: Sequence[float]) -> float:
    """The integral of 1 - prod_k G(x/pi_k): G(x) = F((ln x/epsilon + 1)/2), F the Laplace distribution function."""
    e = mp.mpf(epsilon)

    def below(x: Any) -> Any:
        if x < mp.e**-e:
            return mp.mpf(0)
        return mp.mpf(1) if x >= mp.e**e else 1 - mp.e ** (-e * (mp.log(x) / e + 1) / 2) / 2

    cuts = sorted({mp.mpf(0), *(prior * mp.e**side for prior in priors for side in (-e, e))})
    return float(mp.quad(lambda x: 1 - mp.fprod(below(x / prior) for prior in priors), cuts))


def integrate_gaussian(sigma: float, priors: Sequence[float]) -> float:
    """The integral of 1 - prod_k G(x/pi_k), G(x) = Phi(sigma ln x + 1/(2 sigma)), along t = ln x, in 20 digits."""
    with mp.workdps(20):
        s = mp.mpf(sigma)
        logs = [(mp.log(prior), times) for prior, times in Counter(priors).items()]

        def rest(t: Any) -> Any:
            inside = [mp.ncdf(s * (t - prior) + 1 / (2 * s)) ** times for prior, times in logs]
            return mp.e**t * (1 - mp.fprod(inside))

        far = 1 / (2 * s * s) + 9 / s
        low, high = (max(prior + side * far for prior, _ in logs) for side in (-1, 1))
        cuts = [low + (high - low) * part / 12 for part in range(13)]
        return float(mp.e**low + mp.quad(rest, cuts))


def guess_among(worlds: Sequence[Any], priors: Sequence[float]) -> float:
    """How often the best guess is right, where each label has its own probabilities of the same outcomes."""
    return math.fsum(np.max([prior * world for prior, world in zip(priors, worlds, strict=True)], axis=0).ravel())
