"""Columns in SQL: values as they are grouped and compared, bins and counts by number, and where they cannot be used.

Bins are right-closed intervals, numbered inside the engine and labelled in Python. A number of its own stands for a
value that cannot be used, so one pass finds them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from cellrisk.counts.cells import Domain
from cellrisk.counts.engine import Relation, quote_double
from cellrisk.counts.unit import MOST_RECORDS
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Integers
from cellrisk.system.formatting import number_of

NARROWEST, WIDEST = 1e-15, 1e15
FARTHEST = 2.0**52
"""Bin numbers stay exact as floating-point numbers up to here."""
MOST_EDGES = 1000


@dataclass(frozen=True)
class Binning:
    """How a column of numbers is cut: a number for each bin, and a label for each number.

    Bins of one width are (k*w, (k+1)*w], for every whole k. Their edges are the decimal multiples of the width, each
    rounded once, so 1.1 belongs to (1, 1.1] for width 0.1. Bins between edges are (e0, e1], (e1, e2], ...; what lies
    outside has a bin of its own on either side, and all of them belong to the domain, whether they hold records or not.
    """

    width: float = 0.0
    edges: tuple[float, ...] = ()

    @property
    def declared(self) -> Sequence[int]:
        """The bins that belong to the domain whether they hold records or not."""
        return range(-1, len(self.edges)) if self.edges else ()

    def sql(self, number: str) -> str:
        """SQL for the bin's number of a finite number that is given in SQL."""
        if self.edges:
            inside = [f"WHEN {number} <= {quote_double(edge)} THEN {i - 1}" for i, edge in enumerate(self.edges)]
            return f"(CASE {' '.join(inside)} ELSE {len(self.edges) - 1} END)::BIGINT"
        p, q = map(quote_double, Fraction(exact(self.width)).as_integer_ratio())
        guess = f"(ceil({number} * {q} / {p})::BIGINT - 1)"
        return f"{guess} - ({number} <= {guess} * {p} / {q})::BIGINT + ({number} > ({guess} + 1) * {p} / {q})::BIGINT"

    def label(self, index: int) -> str:
        """Return the bin as a person reads it.

        >>> make_binning("age", 5).label(3), make_binning("age", 0.1).label(10)
        ('(15, 20]', '(1, 1.1]')
        >>> bins = make_binning("age", [0, 18, 65])
        >>> [bins.label(index) for index in bins.declared]
        ['up to 0', '(0, 18]', '(18, 65]', 'above 65']
        """
        if self.edges and not 0 <= index < len(self.edges) - 1:
            return f"up to {plain(exact(self.edges[0]))}" if index < 0 else f"above {plain(exact(self.edges[-1]))}"
        width, ends = exact(self.width), (index, index + 1)
        low, high = (plain(exact(self.edges[end]) if self.edges else width * end) for end in ends)
        return f"({low}, {high}]"


def make_binning(column: str, given: Any) -> Binning:
    """Return a width or a list of edges as a binning; the refusal names the column."""
    if isinstance(given, Binning):
        return given
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    values = [scalar(value) for value in (given if several else [given])]
    odd, fix = ", ".join(show(value) for value in values if not is_number(value)), None
    what, got, allowed = "bin edges must be a list of numbers", f"{len(values)} edges", f"2 to {MOST_EDGES} edges"
    if not several:
        what, got, allowed = "a bin width must be positive", show(given), f"numbers from {NARROWEST:g} to {WIDEST:g}"
        if not odd and NARROWEST <= values[0] <= WIDEST:
            return Binning(values[0])
    elif 2 <= len(values) <= MOST_EDGES and odd:
        what, got, allowed = "bin edges must be finite numbers", odd, ""
        fix = "leave infinite edges out: values outside the edges have bins of their own"
    elif 2 <= len(values) <= MOST_EDGES:
        falling = [f"{show(low)} before {show(high)}" for low, high in pairwise(values) if not low < high]
        if not falling:
            return Binning(edges=tuple(values))
        what, got, allowed = "bin edges must increase", falling[0], ""
    refusal = InvalidInput(what, got=got, allowed=allowed or None, fix=fix, code="bins")
    raise refusal.within(f"bins for column '{column}'")


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
    is_time = kind.startswith(("DATE", "TIME")) and not kind.endswith("]")
    return is_time or is_numeric(kind) or is_text(kind) or kind == "BOOLEAN"


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
    reach = sys.float_info.max if binning.edges else FARTHEST * float(binning.width)
    if bare not in INTEGER_BYTES or reach < 2.0 ** (8 * INTEGER_BYTES[bare]):  # else each value has a bin
        cases.append(f"WHEN coalesce(abs({number}) > {quote_double(reach)}, true) THEN {NO_BIN}")
    return f"CASE {' '.join(cases)} ELSE {binning.sql(number)} END"


def count_value(name: str, column: str, kind: str) -> str:
    """SQL for the count of a row."""
    check_numbers(kind, f"the count column '{name}' holds no numbers", f"name another with {argument('count')}")
    number = as_number(column, kind)
    whole = f"{number} >= 0 AND {number} < {quote_double(MOST_RECORDS)} AND {number} = floor({number})"
    return f"CASE WHEN {whole} THEN ({number})::BIGINT ELSE {NO_COUNT} END"


NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
MISSING_LABEL = "(missing)"
NUMBERS = ("number", "single", "double")
"""Kinds of columns whose values come as the text of a number."""


def label_key(key: Any, kind: str, binning: Binning | None) -> str:
    """An engine value as a label: bins by their interval, numbers without trailing zeros, the rest as it is.

    Engines write one floating-point number in several ways; the label is the same. All write times in UTC.

    >>> label_key("1.0", "number", None), label_key("1.0", "text", None)
    ('1', '1.0')
    >>> label_key("5.684341886080801E-14", "double", None) == label_key("5.684341886080801e-14", "double", None)
    True
    """
    if binning is not None:
        return binning.label(key)
    if kind == "double":
        key = repr(float(key))
    if kind == "single":
        key = str(np.float32(key))
    return label_number(key) if kind in NUMBERS else str(key)


def label_number(text: str) -> str:
    """One text for one number, however it was written.

    >>> label_number("1.50"), label_number("2e3"), label_number("-0.0")
    ('1.5', '2000', '0')
    """
    number = Decimal(text)
    if not number.is_finite():
        return str(float(number))
    return plain(number) if -10 <= number.adjusted() < 40 or number.is_zero() else str(number)


def label_level(level: Any) -> str:
    """The label of a declared level: text as it is, a number without trailing zeros, a truth value as Python says it.

    >>> label_level("1.0"), label_level(1.0), label_level(True)
    ('1.0', '1', 'True')
    """
    return label_number(str(exact(level))) if is_number(level) else str(level)


def spell(level: Any, kind: str) -> list[str]:
    """The texts that count as a declared level in a column of some kind.

    >>> spell(True, "text"), spell(1.0, "text"), spell("1.0", "number")
    (['True', 'true', 'TRUE'], ['1', '1.0'], ['1'])
    """
    text = str(level)
    if isinstance(level, bool):
        return [text, text.lower(), text.upper()]
    if kind == "boolean":
        return [text.strip().capitalize()]
    if kind in ("integer", *NUMBERS) and isinstance(level, str) and NUMBER.fullmatch(text.strip()):
        return [label_number(text.strip())]
    return list(dict.fromkeys([label_level(level), text]))


@dataclass(frozen=True, eq=False)
class Column:
    """A column in use: its labels in their order, and the code of each engine value that occurs.

    The code of a value is the place of its label. Missing values have the next code, `missing`, and values that are not
    among the declared labels the one after it, `other`.
    """

    name: str
    labels: tuple[str, ...]
    codes: dict[Any, int]
    records: Mapping[Any, int]
    """How many records have each value; None stands for a missing value."""
    declared: bool
    binned: bool
    missing: int
    other: int

    def leaves_out(self, missing: str) -> bool:
        """Return whether records are left out because of this column."""
        return self.other in self.codes.values() or (missing == "drop" and None in self.codes)

    def domain(self, occurring: Iterable[int]) -> tuple[Domain, Integers]:
        """Return the labels of some records, by the codes that occur, and the place of each code among them.

        Declared labels need not occur. The label of missing values comes last.
        """
        seen = set(occurring)
        kept = [code for code in range(self.missing) if self.declared or code in seen]
        labels = [self.labels[code] for code in kept]
        ordered = self.binned or all(map(NUMBER.fullmatch, labels))
        if self.missing in seen:
            labels.append(make_label(MISSING_LABEL, labels))
            kept.append(self.missing)
        place = np.full(self.other + 1, -1, np.int64)
        place[kept] = range(len(kept))
        return Domain(self.name, tuple(labels), ordered, self.declared, self.missing in seen), place


def code_values(
    name: str, seen: Mapping[Any, int], kind: str, binning: Binning | None, given: Sequence[Any] | None, strict: bool
) -> Column:
    """Return a column with labels as they are declared, or else as they occur.

    Without declared levels, bins by their edges are declared, with one more on either side. Declared labels, and
    whether one is declared twice, are a function of the declaration alone, never of what occurs or of how it is stored:
    "007" and "7" are two levels. Where a column of numbers cannot tell them apart, a value is of the level that is
    written as the value is, or else of the first.

    Parameters
    ----------
    seen
        The records of each engine value; None stands for a missing value.
    strict
        Refuses values with records that are not among the declared labels, and levels that the column cannot tell
        apart.

    >>> code_values("paid", {"true": 3, "no": 1}, "text", None, [True, False], strict=False).codes
    {'true': 0, 'no': 3}
    """
    values = [key for key in seen if key is not None]
    if given is not None:
        labels, spellings = _spell_all(name, kind, binning, given, strict)
    else:
        labels = () if binning is None else tuple(map(binning.label, binning.declared))
        spellings = {label: place for place, label in enumerate(labels)}
    declared = given is not None or bool(labels)
    if declared:
        shown = {key: label_key(key, kind, binning) for key in values}
        codes = {key: spellings.get(label, len(labels) + 1) for key, label in shown.items()}
        outside = {key: seen[key] for key, code in codes.items() if code > len(labels) and seen[key]}
        if strict and outside:
            spaces = all(shown[key].strip() in labels for key in outside)
            fix = "strip the spaces around the values" if spaces else f"declare them with {argument('levels')} as well"
            fix = f"{fix}, or leave these records out with {argument('outside', 'drop')}"
            got = f"{number_of(sum(outside.values()), 'record')} with {number_of(len(outside), 'other value')}"
            what = f"column '{name}' holds values that are not among its declared levels"
            raise InvalidInput(what, got=got, fix=fix, code="outside-levels")
    else:
        listed, codes = observe(values, kind, binning)
        labels = tuple(listed)
    if None in seen:
        codes[None] = len(labels)
    return Column(name, labels, codes, seen, declared, binning is not None, len(labels), len(labels) + 1)


def _spell_all(
    name: str, kind: str, binning: Binning | None, given: Sequence[Any], strict: bool
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the labels of declared levels, and the place of the label that each text in the source counts as."""
    levels = [scalar(level) for level in given]
    if not levels or any(level is None or level != level for level in levels):  # NaN is not itself
        what = f"of column '{name}' are an empty list, or hold a missing value"
        fix = f"leave it out: {argument('missing')} decides about missing values"
        raise InvalidInput(what, option="levels", fix=fix, code="levels")
    labels, spellings = tuple(map(label_level, levels)), dict[str, int]()

    def count_repeats(kind: str) -> int:
        """Add the texts of all levels in a column of some kind; return how many of them are another level's too."""
        forms = [(form, place) for place, level in enumerate(levels) for form in spell(level, kind)]
        return sum(spellings.setdefault(form, place) != place for form, place in forms)

    repeated = count_repeats("text") or len(set(labels)) != len(labels)
    if repeated or (count_repeats("text" if binning else kind) and strict):
        what, got = f"of column '{name}' are declared twice", f"{len(levels)} with repeats"
        raise InvalidInput(what, option="levels", got=got, code="levels")
    return labels, spellings


def observe(values: Sequence[Any], kind: str, binning: Binning | None) -> tuple[list[str], dict[Any, int]]:
    """Return levels as they occur, bins in order, numbers by size, text by alphabet; and the place of each value."""
    labelled = [(label_key(key, kind, binning), key) for key in values]
    if binning is not None or kind == "integer":
        labelled.sort(key=lambda pair: pair[1])
    elif all(NUMBER.fullmatch(label) or label in ("inf", "-inf") for label, _ in labelled):
        labelled.sort(key=lambda pair: (Decimal(pair[0]), pair[0]))
    else:
        labelled.sort()
    number = {label: place for place, label in enumerate(dict.fromkeys(label for label, _ in labelled))}
    return list(number), {key: number[label] for label, key in labelled}


def make_label(label: str, taken: Sequence[str]) -> str:
    """A new label, in as many brackets as it takes to differ from those that are there.

    >>> make_label(MISSING_LABEL, ["a", "(missing)"])
    '((missing))'
    """
    while label in taken:
        label = f"({label})"
    return label


def check_several(levels: Domain) -> None:
    """Refuse a sensitive column with one level; a declared one, whatever its records are."""
    if len(levels) - (levels.missing and levels.declared) < 2:
        every = " (every value is missing)" if levels.missing and not levels.declared else ""
        what = f"sensitive column '{levels.name}' has one level only{every}: there is nothing to protect"
        fix = f"declare the other levels with {argument('levels')}"
        raise InvalidInput(what, allowed="two levels or more", fix=fix, code="one-level")
