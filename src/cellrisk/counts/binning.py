"""Bins: numbers into right-closed intervals, numbered inside the engine and labelled in Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any

from cellrisk.errors import InvalidInput

NARROWEST, WIDEST = 1e-15, 1e15
FARTHEST = 2.0**52
"""Bin numbers stay exact as floating-point numbers up to here."""
MOST_EDGES = 1000


@dataclass(frozen=True)
class WidthBinning:
    """Bins of one width, (k*w, (k+1)*w], for every whole k.

    The edges are the decimal multiples of the width, each rounded once, so 1.1 belongs to (1, 1.1] for width 0.1.

    >>> WidthBinning(5).label(3), WidthBinning(0.1).label(10)
    ('(15, 20]', '(1, 1.1]')
    """

    width: float

    def __post_init__(self) -> None:
        if not is_number(self.width) or not NARROWEST <= self.width <= WIDEST:
            allowed = f"numbers from {NARROWEST:g} to {WIDEST:g}"
            raise InvalidInput("a bin width must be positive", got=show(self.width), allowed=allowed, code="bins")

    @property
    def fraction(self) -> Fraction:
        return Fraction(exact(self.width))

    @property
    def reach(self) -> float:
        """The largest absolute value that can be binned exactly."""
        return FARTHEST * float(self.width)

    @property
    def declared(self) -> Sequence[int]:
        """The bins that belong to the domain whether they hold records or not: none, as there is no end of them."""
        return ()

    def sql(self, number: str) -> str:
        """SQL for the bin's number of a finite number that is given in SQL."""
        p, q = (f"'{float(part)!r}'::DOUBLE" for part in (self.fraction.numerator, self.fraction.denominator))
        guess = f"(ceil({number} * {q} / {p})::BIGINT - 1)"
        return f"{guess} - ({number} <= {guess} * {p} / {q})::BIGINT + ({number} > ({guess} + 1) * {p} / {q})::BIGINT"

    def label(self, index: int) -> str:
        """The bin as a person reads it."""
        width = exact(self.width)
        return f"({plain(width * index)}, {plain(width * (index + 1))}]"


@dataclass(frozen=True)
class EdgeBinning:
    """Bins between given edges, (e0, e1], (e1, e2], ...; what lies outside has a bin of its own on either side.

    All of them belong to the domain, the outer two as well, whether they hold records or not.

    >>> bins = EdgeBinning((0, 18, 65))
    >>> [bins.label(index) for index in bins.declared]
    ['up to 0', '(0, 18]', '(18, 65]', 'above 65']
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MOST_EDGES:
            got, allowed = f"{len(self.edges)} edges", f"2 to {MOST_EDGES} edges"
            raise InvalidInput("bin edges must be a list of numbers", got=got, allowed=allowed, code="bins")
        odd = ", ".join(show(edge) for edge in self.edges if not is_number(edge))
        if odd:
            fix = "leave infinite edges out: values outside the edges have bins of their own"
            raise InvalidInput("bin edges must be finite numbers", got=odd, fix=fix, code="bins")
        for low, high in pairwise(self.edges):
            if not low < high:
                raise InvalidInput("bin edges must increase", got=f"{show(low)} before {show(high)}", code="bins")

    @property
    def reach(self) -> float:
        return math.inf

    @property
    def declared(self) -> Sequence[int]:
        return range(-1, len(self.edges))

    def sql(self, number: str) -> str:
        inside = [f"WHEN {number} <= '{float(edge)!r}'::DOUBLE THEN {i - 1}" for i, edge in enumerate(self.edges)]
        return f"(CASE {' '.join(inside)} ELSE {len(self.edges) - 1} END)::BIGINT"

    def label(self, index: int) -> str:
        if index < 0:
            return f"up to {plain(exact(self.edges[0]))}"
        if index >= len(self.edges) - 1:
            return f"above {plain(exact(self.edges[-1]))}"
        return f"({plain(exact(self.edges[index]))}, {plain(exact(self.edges[index + 1]))}]"


Binning = WidthBinning | EdgeBinning
"""How a column of numbers is cut: a number for each bin, and a label for each number."""


def make_binning(column: str, given: Any) -> Binning:
    """A width or a list of edges as a binning; the refusal names the column.

    >>> make_binning("age", 5), make_binning("age", [0, 18, 65])
    (WidthBinning(width=5), EdgeBinning(edges=(0, 18, 65)))
    """
    try:
        if isinstance(given, WidthBinning | EdgeBinning):
            return given
        if isinstance(given, Iterable) and not isinstance(given, str | bytes):
            return EdgeBinning(tuple(scalar(edge) for edge in given))
        return WidthBinning(scalar(given))
    except InvalidInput as refusal:
        raise refusal.within(f"bins for column '{column}'") from None


def scalar(value: Any) -> Any:
    """A numpy number as the Python number that it holds; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def is_number(value: object) -> bool:
    """A finite real number, small enough for floating point; truth values are none."""
    try:
        return isinstance(value, Real | Decimal) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def exact(value: Any) -> Decimal:
    """The number as it is written: 0.1 is a tenth, not the binary fraction next to it."""
    return Decimal(value) if isinstance(value, int | Decimal) else Decimal(repr(float(value)))


def plain(number: Decimal) -> str:
    """Without exponent and without trailing zeros.

    >>> plain(Decimal("20.0")), plain(Decimal("1E+3")), plain(Decimal("-0"))
    ('20', '1000', '0')
    """
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def show(value: object) -> str:
    """What was asked for, in a message: numbers as they are, other things by their kind."""
    return str(value) if isinstance(value, Real | Decimal) else f"a {type(value).__name__}"
