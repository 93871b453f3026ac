"""The upper tail of integer noise: how often it reaches a whole number, and how far it then goes. Drawn exactly."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.exact_sampling import MOST, Bounds, Rate, draw_survivals, draw_waits, widen, with_digits
from cellrisk.system.arrays import Integers

MOST_AT_ONCE = 1_000_000
WIDEST_GAUSSIAN = 1e5
"""The largest scale of Gaussian noise whose tail is summed."""


@dataclass(frozen=True)
class Tail(ABC):
    """Noise that comes out as ``least`` or more."""

    scale: float
    least: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidInput("the scale of noise must be a positive number", got=self.scale, code="range")
        if self.least < 1:
            raise InvalidInput("a tail begins at a whole number from 1 on", got=self.least, code="range")

    @abstractmethod
    def probability(self, digits: int) -> Decimal:
        """P(noise >= least), within 10^-digits in relative terms."""

    @abstractmethod
    def draw(self, number: int) -> Integers:
        """So many draws of the noise, given that it is ``least`` or more."""

    @cached_property
    def rate(self) -> Rate:
        """-ln(1 - P(noise >= least)): zeros in a row are waited for at this rate."""
        return Rate(lru_cache(self._enclose_rate))

    def _enclose_rate(self, digits: int) -> Bounds:
        """-ln(1 - p) = p + p^2/2 + p^3/3 + ..., where p < 1/2, so what is left out is below the last term."""
        p = self.probability(digits + 5)
        with localcontext(with_digits(digits + 10)):
            total, power, place = p, p, 1
            while power > total.scaleb(-digits - 5):
                place, power = place + 1, power * p
                total += power / place
            return widen(total, digits)


@dataclass(frozen=True)
class LaplaceTail(Tail):
    """Discrete Laplace, P(j) = (1 - a)/(1 + a) a^|j|, a = exp(-1/scale): P(noise >= k) = a^k/(1 + a).

    >>> f"{LaplaceTail(1.0, 21).probability(20):.6e}", f"{math.exp(-21) / (1 + math.exp(-1)):.6e}"
    ('5.543296e-10', '5.543296e-10')
    """

    def probability(self, digits: int) -> Decimal:
        scale = Fraction(self.scale)
        size = len(str(math.ceil(self.least / scale)))  # digits that an error in the exponent costs
        with localcontext(with_digits(digits + size + 5)):
            step = Decimal(scale.denominator) / Decimal(scale.numerator)
            return (-self.least * step).exp() / (1 + (-step).exp())

    def draw(self, number: int) -> Integers:
        """The tail of a geometric distribution has that distribution again."""
        return np.minimum(self.least + draw_waits(number, Rate.of(1 / Fraction(self.scale))), MOST)


@dataclass(frozen=True)
class GaussianTail(Tail):
    """Discrete Gaussian, P(j) proportional to exp(-j^2/(2 scale^2)).

    >>> round(float(GaussianTail(1.0, 1).probability(20)), 6)  # (1 - 0.398942)/2
    0.300529
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale > WIDEST_GAUSSIAN:
            what, got = "the Gaussian noise is too wide for a sparse release", f"scale {self.scale:.3g}"
            fix = "use a larger epsilon or delta"
            raise InvalidInput(what, got=got, allowed=f"up to {WIDEST_GAUSSIAN:g}", fix=fix, code="too-wide")

    def probability(self, digits: int) -> Decimal:
        with localcontext(with_digits(digits + 5)):
            return self._sum_from(self.least, digits + 2) / (1 + 2 * self._sum_from(1, digits + 2))

    def _sum_from(self, first: int, digits: int) -> Decimal:
        """Sum of exp(-j^2/(2 scale^2)) over j >= first.

        Each term is the one before times a factor that shrinks, so what is left out is below a geometric series.
        After n terms roundings add up to n^2 units in the last place: 25 digits more than are asked for are enough.
        """
        half_precision = 1 / (2 * Fraction(self.scale) ** 2)
        size = len(str(math.ceil((2 * first + 1) * first * half_precision)))
        more = math.ceil(self.scale * math.sqrt(2.0 * math.log(10.0) * (digits + 10))) + 2
        with localcontext(with_digits(digits + size + 25)):
            c = Decimal(half_precision.numerator) / Decimal(half_precision.denominator)
            total, term = Decimal(0), (-c * first * first).exp()
            factor, shrink = (-c * (2 * first + 1)).exp(), (-2 * c).exp()
            while term > total.scaleb(-digits - 2) * (1 - factor):
                for _ in range(more):
                    total += term
                    term *= factor
                    factor *= shrink
            return total

    def draw(self, number: int) -> Integers:
        """By rejection: k + g, g >= 0, has weight exp(-(k + h) g/scale^2) times exp(-(g - h)^2/(2 scale^2)), for any h.

        The first is geometric and is proposed, the second is a probability and accepts; both are drawn exactly. The h
        taken here accepts three of four proposals or more (Robert 1995).
        """
        k, variance = self.least, Fraction(self.scale) ** 2
        h = round((math.sqrt(k * k + 4.0 * float(variance)) - k) / 2.0)
        rate = Rate.of((k + h) / variance)
        found: list[Integers] = [np.zeros(0, np.int64)]
        missing = number
        while missing > 0:
            proposed = draw_waits(min(missing + missing // 2 + 16, MOST_AT_ONCE), rate)
            exponents = (proposed - h).astype(np.float64) ** 2 / (2.0 * float(variance))
            accepted = draw_survivals(exponents, partial(_exponent, proposed, h, 2 * variance))
            found.append(np.minimum(k + proposed[accepted], MOST))
            missing -= int(accepted.sum())
        return np.concatenate(found)[:number]


def _exponent(waits: Integers, h: int, twice_variance: Fraction, place: int) -> Fraction:
    return (int(waits[place]) - h) ** 2 / twice_variance


def draw_places(tail: Tail, size: int) -> Iterator[Integers]:
    """Which of ``size`` zeros come out in the tail: each with the tail's probability, ascending, some at once.

    Only those that do are drawn: the zeros between them are geometric waiting times. The number of places is then
    binomial, and the places are uniform.
    """
    if size > MOST:
        got = f"about 10^{len(str(size)) - 1}"
        raise InvalidInput("too many counts to draw from", got=got, allowed="up to 2^60", code="too-large")
    rate, last = tail.rate, -1
    chance = rate.nearest
    while last < size:
        number = int(min((size - last) * chance * 1.05 + 16, MOST_AT_ONCE))
        steps = 1 + draw_waits(number, rate)
        reach = np.cumsum(steps.astype(np.float64))
        kept = int(np.searchsorted(reach, 2.0 * MOST)) + 1  # beyond, sums of whole numbers would overflow
        places = last + np.cumsum(steps[:kept])
        yield places[places < size]
        last = int(places[-1])
