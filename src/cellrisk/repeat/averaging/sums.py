"""The upper tails of sums of independent noises: every term is positive, so tails keep their digits however small."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from cellrisk.noise.distributions import DiscreteGaussianNoise
from cellrisk.system.arrays import Floats, Integers

PIECE = 512.0
"""exp(-y) is taken in pieces of this length, so that neither it nor its digits are lost for large y."""
SMALLEST = 1e-300
"""Probabilities below this are left out of a convolution."""
LARGEST_DEVIATION = 1e-15
"""By how much a sum of discrete Gaussians may differ from one of them, in relative terms, to be taken for it."""


def laplace_sum_tail(x: Floats, number: int) -> Floats:
    """P(S > x), x > 0, for the sum S of ``number`` = T Laplace variables of scale 1. Exact.

    S is the difference of two Gamma(T) variables: the times at which two Poisson processes have made T steps. S > x
    says that the first makes fewer than T steps in x and in the time that the second takes. It makes Poisson(x) steps
    in the one, and NB(T, 1/2) in the other, so

        P(S > x) = P(Poisson(x) + NB(T, 1/2) <= T - 1) = e^-x sum_{j < T} x^j/j! P(NB(T, 1/2) <= T - 1 - j).

    The sum is evaluated from its last term on. Relative error below 1e-12 for T up to 10,000.

    >>> float(laplace_sum_tail(np.array(2.0), 1)) == math.exp(-2.0) / 2.0
    True
    >>> round(float(laplace_sum_tail(np.array(2.0), 2)), 12)  # e^-x (2 + x)/4
    0.135335283237
    """
    near = np.minimum(x, _negligible_from(number))
    last = _last_term(float(near.max(initial=0.0)), number)
    mantissa, exponent = _sum_positive(lambda j: near / (j + 1.0), _cumulative_ratios(number, 0.5), last, near)
    tail = _times_exponential(0.5 * mantissa, exponent, near)
    return np.where(x < _negligible_from(number), tail, 0.0)


def geometric_sum_tail(n: Floats, number: int, scale: float) -> Floats:
    """P(S >= n), n >= 1 whole, for the sum S of ``number`` = T two-sided geometric variables, a = exp(-1/scale). Exact.

    S is the difference of two NB(T, 1 - a) variables: failures before T successes in two rows of trials. In the same
    way as for Laplace variables, with binomials in the place of the Poisson variable,

        P(S >= n) = P(B + K <= T - 1),   B ~ Binomial(n + T - 1, 1 - a),   K ~ NB(T, 1/(1 + a)).

    Relative error below 1e-12 for T up to 10,000.

    >>> a = math.exp(-1.0)
    >>> round(float(geometric_sum_tail(np.array(3.0), 1, 1.0)), 12) == round(a**3 / (1.0 + a), 12)
    True
    """
    rate = 1.0 / scale
    if rate > 600:  # the first term of many
        log_ways = special.gammaln(number + n) - special.gammaln(n + 1.0) - special.gammaln(number)
        return np.asarray(np.exp(log_ways - n * rate))
    far = n * rate >= _negligible_from(number)
    trials = np.where(far, 1.0, n) + (number - 1.0)
    odds = math.expm1(rate)
    failure = 1.0 / (1.0 + math.exp(rate))
    last = _last_term(float(trials.max(initial=0.0)) * -math.expm1(-rate), number)
    mantissa, exponent = _sum_positive(
        lambda j: (trials - j) * (odds / (j + 1.0)), _cumulative_ratios(number, failure), last, trials * odds
    )
    start = float(special.betainc(number, number, 1.0 - failure))  # P(K <= T - 1)
    coarse = float(np.float32(rate))  # few digits, so that its products are exact
    tail = _times_exponential(start * mantissa * np.exp(trials * (coarse - rate)), exponent, trials * coarse)
    return np.where(far, 0.0, tail)


def discrete_gaussian_sum_tail(n: Floats, number: int, scale: float) -> Floats:
    """P(S >= n), n >= 1 whole, for the sum S of ``number`` = T discrete Gaussians.

    Points of the lattice Z^T with sum n are n/T in each place plus a vector that adds up to 0, so P(S = n) is
    proportional to exp(-n^2/(2 T scale^2)) c(n mod T), c a sum over vectors of the second kind. By Poisson summation c
    is constant but for a relative deviation of at most theta^T - 1, theta = sum_k exp(-(pi scale k)^2). Where that is
    below 1e-15, which takes a scale of about 2, S is a discrete Gaussian of scale * sqrt(T); else the T variables are
    convolved, term by term. Relative error below 1e-12 for tails above 1e-200.

    >>> wide, narrow = (float(discrete_gaussian_sum_tail(np.array(12.0), 9, scale)) for scale in (2.2, 1.9))
    >>> round(wide, 6), round(narrow, 6)  # normal: 0.040714, 0.021819
    (0.040571, 0.021685)
    """
    if gaussian_deviation(number, scale) <= LARGEST_DEVIATION:
        return DiscreteGaussianNoise(scale * math.sqrt(number)).cdf(0.5 - n)
    tails = _convolved_tails(number, scale)
    places = np.minimum(n, len(tails) - 1).astype(np.int64)
    return np.asarray(tails[places])


def gaussian_deviation(number: int, scale: float) -> float:
    """theta^T - 1: by how much a sum of T discrete Gaussians differs from a discrete Gaussian at most, relatively.

    The vectors of the dual lattice, projections of whole-number vectors k with median 0, are at least |k|/sqrt 2 long.

    >>> gaussian_deviation(100, 2.2) < 1e-17 < gaussian_deviation(100, 2.0)
    True
    """
    power = (math.pi * scale) ** 2
    others = 2.0 * sum(math.exp(-power * k * k) for k in range(1, 4 + math.ceil(7.0 / scale)))
    return math.expm1(min(number * math.log1p(others), 700.0))


def _sum_positive(
    factor: Callable[[int], Floats], ratios: Floats, last: int, largest: Floats
) -> tuple[Floats, Integers]:
    """1 + f_0 (1 + f_1 (1 + ... f_{last-1})), f_j = factor(j) ratios[j], as a number times a power of two.

    largest: no factor is above these.
    """
    every = max(1, int(900.0 / math.log2(2.0 + float(largest.max(initial=0.0)))))
    total: Floats = np.ones(largest.shape)
    exponent: Integers = np.zeros(largest.shape, np.int64)
    one: Floats = total.copy()
    for step, j in enumerate(range(last - 1, -1, -1), start=1):
        total *= factor(j)
        total *= ratios[j]
        total += one
        if step % every == 0:
            total, more = np.frexp(total)
            exponent = exponent + more
            one = np.ldexp(1.0, -exponent)
    return total, exponent


def _times_exponential(number: Floats, exponent: Integers, y: Floats) -> Floats:
    """number 2^exponent e^-y, without a loss of digits in the exponents."""
    rest = np.fmod(y, PIECE)
    pieces = np.rint((y - rest) / PIECE)
    shift = round(PIECE / math.log(2.0))
    base = math.ldexp(math.exp(-PIECE), shift)
    powers = (exponent - shift * pieces).astype(np.int64)
    return np.asarray(np.ldexp(number * base**pieces * np.exp(-rest), np.maximum(powers, -2000)))


@lru_cache(maxsize=64)
def _cumulative_ratios(number: int, failure: float) -> Floats:
    """W_{j+1}/W_j for j = 0 .. T - 2, where W_j = P(NB <= T - 1 - j): failures before T successes.

    With v_i the share of the last term in the sum up to i, v_i = v_{i-1}/(v_{i-1} + g_i) and the sums' ratio is
    g_i/(v_{i-1} + g_i), g_i = i/((T - 1 + i) failure).
    """
    ratios = np.empty(number - 1)
    share = 1.0
    for i in range(1, number):
        g = i / ((number - 1 + i) * failure)
        ratios[number - 1 - i] = g / (share + g)
        share /= share + g
    ratios.setflags(write=False)
    return ratios


def _last_term(mean: float, number: int) -> int:
    """The last j of the sum that matters: those beyond are below 1e-18 of it, by Bernstein's inequality."""
    return min(number - 1, math.ceil(mean + 10.0 * math.sqrt(mean)) + 50)


def _negligible_from(number: int) -> float:
    """Where tails are below 1e-320: P(S > x) <= e^(-x/2) (4/3)^T, in scales (Chernoff)."""
    return 1500.0 + 0.58 * number


@lru_cache(maxsize=16)
def _convolved_tails(number: int, scale: float) -> Floats:
    """P(S >= n) at n = 0, 1, ..., and 0 at the end: the T-fold convolution, by squaring."""
    reach = math.ceil(38.0 * scale) + 1
    power = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    power = _trimmed(power)
    total, left = np.ones(1), number
    while left:
        if left & 1:
            total = _trimmed(np.convolve(total, power))
        left >>= 1
        if left:
            power = _trimmed(np.convolve(power, power))
    upper = total[len(total) // 2 :]
    tails = np.append(np.cumsum(upper[::-1])[::-1], 0.0)
    tails.setflags(write=False)
    return tails


def _trimmed(chances: Floats) -> Floats:
    """Symmetric probabilities that add up to 1, without the negligible ones at both ends."""
    chances = 0.5 * (chances + chances[::-1]) / chances.sum()
    first = int(np.argmax(chances >= SMALLEST))
    return chances[first : len(chances) - first]
