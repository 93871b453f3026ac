"""Columns in SQL: values as they are grouped and compared, bins and counts by number, and where they cannot be used.

Bins are right-closed intervals, numbered inside the engine and labelled in Python. A number of its own stands for a
value that cannot be used, so one pass finds them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any

from cellrisk.counts.engine import Relation, quote_double
from cellrisk.counts.unit import MOST_RECORDS
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.formatting import number_of

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

    reach = sys.float_info.max

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


INTEGER_BYTES = {"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "UTINYINT": 1, "USMALLINT": 2, "UINTEGER": 4}
"""Types of whole numbers that a BIGINT holds."""
WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", "DECIMAL")
TEMPORAL = ("DATE", "TIME", "TIMESTAMP")
TEXTS = ("VARCHAR", "UUID", "ENUM", "BIT", '"NULL"', "NULL")
ALLOWED = "text, numbers, truth values, dates and times"
NO_BIN, NO_COUNT = -(2**61), -1
"""What stands for a value that cannot be put into a bin, and for one that is not a count."""


def bare_type(kind: str) -> str:
    """A type of DuckDB without its precision, length or values.

    >>> bare_type("DECIMAL(18,3)"), bare_type("INTEGER[]"), bare_type("TIMESTAMP WITH TIME ZONE")
    ('DECIMAL', 'INTEGER[]', 'TIMESTAMP WITH TIME ZONE')
    """
    return kind if kind.endswith("]") else re.sub(r"\(.*", "", kind, flags=re.DOTALL).strip()


def is_numeric(kind: str) -> bool:
    """Whether a type is one of numbers; truth values are none."""
    return bare_type(kind) in (*INTEGER_BYTES, *WIDE, "FLOAT", "DOUBLE")


def is_text(kind: str) -> bool:
    return bare_type(kind) in TEXTS


def has_plain_values(kind: str) -> bool:
    """Whether values of a type can be told apart and written as a label."""
    bare = bare_type(kind)
    return is_numeric(kind) or is_text(kind) or bare == "BOOLEAN" or (bare.startswith(TEMPORAL) and "]" not in bare)


def check_type(name: str, kind: str) -> None:
    if not has_plain_values(kind):
        bare = bare_type(kind).lower()
        shown = "array" if bare.endswith("]") else "binary" if bare == "blob" else bare
        raise InvalidInput(f"column '{name}' holds {shown} values", allowed=ALLOWED, code="column-type")


def check_numbers(kind: str, what: str, fix: str) -> None:
    """Refuse a type that holds neither numbers nor text."""
    if not (is_numeric(kind) or is_text(kind)):
        raise InvalidInput(what, got=f"type {kind.lower()}", fix=fix, code="column-type")


def kind_of(relation: Relation, column: str) -> str:
    """How values of a column become labels: as text, as truth values, or as numbers of some kind."""
    return relation.kinds.get(column) or kind_of_type(relation.types[column])


def kind_of_type(kind: str) -> str:
    bare = bare_type(kind)
    if bare in INTEGER_BYTES:
        return "integer"
    named = {"BOOLEAN": "boolean", "DOUBLE": "double", "FLOAT": "single"}
    return named.get(bare, "number" if bare in WIDE else "text")


def plain_value(column: str, kind: str) -> str:
    """SQL for a value as a whole number or as text, under which equal values are the same value.

    NaN is missing, and -0 is 0.
    """
    bare = bare_type(kind)
    if bare in INTEGER_BYTES:
        return f"{column}::BIGINT"
    if bare == "BOOLEAN":
        return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
    if bare in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({column}) THEN NULL WHEN {column} = 0 THEN '0.0' ELSE {column}::VARCHAR END"
    return column if bare == "VARCHAR" else f"{column}::VARCHAR"


def as_number(column: str, kind: str) -> str:
    """SQL for a column as floating-point numbers, through text where the type is narrower: 1.1 stays 1.1."""
    bare = bare_type(kind)
    if bare in TEXTS:
        return f"TRY_CAST({column} AS DOUBLE)"
    return f"{column}::VARCHAR::DOUBLE" if bare == "FLOAT" else f"{column}::DOUBLE"


def bin_value(name: str, column: str, kind: str, binning: Binning) -> str:
    """SQL for the number of a value's bin; a missing value has none."""
    check_numbers(kind, f"column '{name}' is to be binned but is not numeric", f"leave '{name}' out of bins")
    number, bare = as_number(column, kind), bare_type(kind)
    cases = [f"WHEN {column} IS NULL THEN NULL"]
    if bare not in INTEGER_BYTES:
        cases.append(f"WHEN isnan({number}) THEN NULL")
    if bare not in INTEGER_BYTES or binning.reach < 2.0 ** (8 * INTEGER_BYTES[bare]):  # else each value has a bin
        cases.append(f"WHEN coalesce(abs({number}) > {quote_double(binning.reach)}, true) THEN {NO_BIN}")
    return f"CASE {' '.join(cases)} ELSE {binning.sql(number)} END"


def count_value(name: str, column: str, kind: str) -> str:
    """SQL for the count of a row."""
    check_numbers(kind, f"the count column '{name}' holds no numbers", _fix_count(name))
    number = as_number(column, kind)
    whole = f"{number} >= 0 AND {number} < {quote_double(MOST_RECORDS)} AND {number} = floor({number})"
    return f"CASE WHEN {whole} THEN ({number})::BIGINT ELSE {NO_COUNT} END"


def refuse_bins(name: str, rows: int, of: int) -> InvalidInput:
    return InvalidInput(
        f"column '{name}' is to be binned but holds text, infinity, or numbers too large for its bins",
        got=f"{number_of(rows, 'such row')} of {of:,}",
        fix=f"correct these records, use a larger width, or leave them out with {argument('outside', 'drop')}",
        code="unusable-values",
    )


def refuse_count(name: str, rows: int, of: int) -> InvalidInput:
    return InvalidInput(
        f"the count column '{name}' holds values that are not counts",
        got=f"{number_of(rows, 'such row')} of {of:,}",
        allowed="whole numbers from 0 to 2^53",
        fix=f"{_fix_count(name)}; if counts were suppressed, as c or <5, give those from before",
        code="unusable-values",
    )


def _fix_count(name: str) -> str:
    return f"correct column '{name}' or name another with {argument('count')}"
