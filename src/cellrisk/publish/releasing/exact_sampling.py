"""Waiting times drawn exactly, from the operating system's secure random bits: whole parts of -ln U / rate.

They are what a sparse release is made of. With U uniform on (0, 1), floor(-ln U / rate) is geometric: it is g or more
with probability exp(-g rate). So it is the number of failures before a success of probability 1 - exp(-rate), and it is
1 or more with probability exp(-rate).

Each U begins as 64 random bits, which leave it an interval. Floating-point arithmetic with its error bounded says for
almost every U that the whole interval has one answer; the rest are decided with more bits and more digits, as many as
it takes. So the answers have exactly the distribution above: there is no approximation to account for.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats, Integers

MOST = 2**60
"""Waiting times above this one are given as this one."""
SLACK = 2.0**-48
"""More than the error of the floating-point steps taken together, absolute in a logarithm because its argument is
rounded, and relative in all: roundings of 2^-53, logarithms within 4 units in the last place, rates within 2^-50."""
LEAST_RATE = 1e-290
"""Below this, floating-point rates lose digits."""
FIRST_DIGITS = 40

Bounds = tuple[Decimal, Decimal]
Words = npt.NDArray[np.uint64]


def with_digits(digits: int) -> Context:
    """Arithmetic with so many digits, correctly rounded, in which nothing that matters here under- or overflows."""
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Rate:
    """A positive real number that can be enclosed as narrowly as is asked.

    >>> rate = Rate.of(Fraction(1, 3))
    >>> rate.nearest, rate.bounds(5)[0] < Fraction(1, 3) < rate.bounds(5)[1]
    (0.3333333333333333, True)
    """

    bounds: Callable[[int], Bounds]
    """Numbers below and above, within 10^-digits of it in relative terms."""

    @staticmethod
    def of(value: Fraction) -> Rate:
        """A rate that is a fraction."""
        if value < 0:
            raise InvalidInput("a rate cannot be negative", code="range")
        return Rate(lru_cache(lambda digits: enclose_fraction(value, digits)))

    @property
    def nearest(self) -> float:
        return float(self.bounds(FIRST_DIGITS)[0])


def enclose_fraction(value: Fraction, digits: int) -> Bounds:
    """A fraction between two decimal numbers."""
    with localcontext(with_digits(digits + 5)):
        return widen(Decimal(value.numerator) / Decimal(value.denominator), digits)


def widen(value: Decimal, digits: int) -> Bounds:
    """A value that is right within 10^-digits in relative terms, as bounds."""
    with localcontext(with_digits(digits + 5)):
        margin = Decimal(10) ** -digits
        return value * (1 - margin), value * (1 + margin)


def draw_waits(number: int, rate: Rate, most: int = MOST) -> Integers:
    """So many independent draws of min(floor(-ln U / rate), most).

    >>> bool((draw_waits(5, Rate.of(Fraction(50)), most=0) == 0).all())
    True
    """
    return resolve(
        draw_words(number), np.broadcast_to(rate.nearest, (number,)), lambda _, digits: rate.bounds(digits), most
    )


def draw_survivals(exponents: Floats, exact: Callable[[int], Fraction]) -> npt.NDArray[np.bool_]:
    """True with probability exp(-x), for each x of ``exponents``; ``exact`` gives the x at a place without error."""
    words = draw_words(len(exponents))
    return np.asarray(resolve(words, exponents, lambda place, digits: enclose_fraction(exact(place), digits), 1) == 1)


def draw_words(number: int) -> Words:
    """Words of 64 secure random bits."""
    return np.frombuffer(os.urandom(8 * number), dtype=np.uint64)


def resolve(words: Words, rates: Floats, bounds: Callable[[int, int], Bounds], most: int) -> Integers:
    """min(floor(-ln U / rate), most) for each U that begins with a word of 64 bits.

    rates: within 2^-50 of the true ones in relative terms; ``bounds`` encloses the one at a place with so many digits.
    """
    start = words.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        low, high = -np.log((start + 1.0) * 2.0**-64), -np.log(start * 2.0**-64)
        low = np.maximum(low * (1.0 - SLACK) - SLACK, 0.0) / rates * (1.0 - SLACK)
        high = (high * (1.0 + SLACK) + SLACK) / rates * (1.0 + SLACK)
        least, greatest = np.floor(np.minimum(low, most)), np.floor(np.minimum(high, most))
    settled = (least == greatest) & (rates > LEAST_RATE)
    waits = np.where(settled, least, 0.0).astype(np.int64)
    for place in np.flatnonzero(~settled):
        waits[place] = resolve_slowly(int(words[place]), partial(bounds, int(place)), most)
    return waits


def resolve_slowly(word: int, bounds: Callable[[int], Bounds], most: int, digits: int = FIRST_DIGITS) -> int:
    """The waiting time for one U, with more bits and digits until they decide.

    >>> resolve_slowly(2**63, lambda digits: enclose_fraction(Fraction(1, 100), digits), 10**9)  # 100 ln 2 = 69.3...
    69
    """
    bits = 64
    while True:
        more = max(4 * digits - bits, 0)
        word, bits = (word << more) | secrets.randbits(more), bits + more
        least_rate, greatest_rate = bounds(digits)
        if greatest_rate == 0:
            return most
        low, high = enclose_logarithm(word, bits, digits)
        with localcontext(with_digits(digits + 10)):
            slack = Decimal(10) ** -digits
            least = int(min(low / greatest_rate * (1 - slack), Decimal(most)))
            greatest = int(min(high / least_rate * (1 + slack), Decimal(most)))
        if least == greatest:
            return least
        digits *= 2


def enclose_logarithm(word: int, bits: int, digits: int) -> Bounds:
    """-ln U for a U from word / 2^bits to (word + 1) / 2^bits, between two decimal numbers."""
    with localcontext(with_digits(digits + 10)):
        whole, slack = Decimal(1 << bits), Decimal(10) ** -(digits + 5)
        low = -(Decimal(word + 1) / whole).ln()
        high = -(Decimal(word) / whole).ln() if word else Decimal("Infinity")
        return max(low * (1 - slack) - slack, Decimal(0)), high * (1 + slack) + slack
