"""An independent opinion on the mean of noises, in mpmath arithmetic.

Few noises: sums over every way in which they can fall. Many: P(S > x) is 1/(2 pi i) times the integral of
M(z)^T e^(-zx)/z along c - i inf .. c + i inf, M the moment generating function of one noise, for any c > 0 at which it
exists; c is taken at the saddle point, so that nothing cancels. For whole numbers P(S >= n) has 1/(1 - e^-z) in place
of 1/z, and the line ends after one period. The trapezium rule on such integrals errs by less than any power of its
step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp

Probability = Callable[[int], mp.mpf]


def few_laplace_tail(number: int, x: float) -> mp.mpf:
    """P(sum of Laplace variables of scale 1 > x), from the density of the sum, which has a Bessel function in it."""
    order = number - mp.mpf(1) / 2
    density = lambda y: y**order * mp.besselk(order, y) / (mp.sqrt(mp.pi) * mp.gamma(number) * 2**order)  # noqa: E731
    ends = [mp.mpf(x) + step for step in (0, 1, 3, 8, 20, 50, 120)]
    return mp.quad(density, ends)


def many_laplace_tail(number: int, x: float) -> mp.mpf:
    """The same for many, by a contour integral."""
    c = (mp.sqrt(number**2 + mp.mpf(x) ** 2) - number) / x  # where -T log(1 - z^2) - z x has its saddle
    bend = number * 2 * (1 + c**2) / (1 - c**2) ** 2
    return _integrate(lambda z: mp.exp(-z * x - number * mp.log(1 - z * z)) / z, c, bend, mp.inf)


def many_geometric_tail(scale: float, number: int, n: int) -> mp.mpf:
    """P(sum of two-sided geometric variables >= n), by a contour integral."""
    a = mp.exp(-1 / mp.mpf(scale))
    odds = lambda z: a * mp.exp(z) / (1 - a * mp.exp(z))  # noqa: E731
    c = _root(lambda z: number * (odds(z) - odds(-z)) - n, mp.mpf(0), 1 / mp.mpf(scale))
    bend = number * sum(odds(z) * (1 + odds(z)) for z in (c, -c))
    log_mgf = lambda z: 2 * mp.log(1 - a) - mp.log(1 - a * mp.exp(z)) - mp.log(1 - a * mp.exp(-z))  # noqa: E731
    return _integrate(lambda z: mp.exp(number * log_mgf(z) - n * z) / (1 - mp.exp(-z)), c, bend, mp.pi)


def _integrate(at: Callable[[mp.mpc], mp.mpc], c: mp.mpf, bend: mp.mpf, end: mp.mpf) -> mp.mpf:
    """1/(2 pi) times the integral over t from -end to end of at(c + i t), which falls like exp(-bend t^2/2)."""
    step = min(c / 9, 1 / (2 * mp.sqrt(bend)))
    first = mp.re(at(c))
    total, place, small = first / 2, 0, 0
    while small < 3 and place * step < end:
        place += 1
        term = mp.re(at(c + 1j * place * step))
        total += term
        small = small + 1 if abs(term) < first * mp.mpf(10) ** -20 else 0
    if small < 3:
        raise ValueError("the line ended before the integrand did")
    return total * step / mp.pi


def _root(rising: Callable[[mp.mpf], mp.mpf], low: mp.mpf, high: mp.mpf) -> mp.mpf:
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def geometric(scale: float) -> Probability:
    a = mp.exp(-1 / mp.mpf(scale))
    return lambda j: (1 - a) / (1 + a) * a ** abs(j)


def discrete_gaussian(scale: float) -> Probability:
    total = mp.nsum(lambda j: mp.exp(-(j**2) / (2 * mp.mpf(scale) ** 2)), [-mp.inf, mp.inf])
    return lambda j: mp.exp(-(mp.mpf(j) ** 2) / (2 * mp.mpf(scale) ** 2)) / total


def enumerate_sums(chance: Probability, reach: int, number: int) -> dict[int, mp.mpf]:
    """P(S = n): every way in which ``number`` variables can fall on -reach .. reach."""
    weight = {j: chance(j) for j in range(-reach, reach + 1)}
    total: dict[int, mp.mpf] = {}
    for drawn in itertools.product(weight, repeat=number):
        total[sum(drawn)] = total.get(sum(drawn), mp.mpf(0)) + math.prod(weight[j] for j in drawn)
    return total
