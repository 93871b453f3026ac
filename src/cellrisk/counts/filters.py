"""Filters: which part of the people a table counts, by plain conditions on columns and never by a query."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import Any

from cellrisk.counts.columns import (
    NUMBERS,
    as_number,
    check_numbers,
    check_type,
    is_number,
    is_numeric,
    is_text,
    kind_of_type,
    label_level,
    plain_value,
    spell,
)
from cellrisk.counts.engine import Relation, quote_double, quote_sql
from cellrisk.counts.schema import Schema
from cellrisk.errors import InvalidInput

ENDS = ("from", "above", "to", "below")
SIGNS = {"from": ">=", "above": ">", "to": "<=", "below": "<"}
MOST_VALUES = 1000
WHOLE = re.compile(r"-?\d{1,19}")
FORMS = 'a value, a list of values, or a table with "from", "above", "to", "below" (numbers) or "not" (values)'


@dataclass(frozen=True)
class ColumnCondition:
    """What one column must hold: one of some values, none of others, a number between ends.

    A missing value is among no values and between no ends; it is not one of the values of ``none_of``.
    """

    column: str
    one_of: tuple[Any, ...] | None = None
    none_of: tuple[Any, ...] = ()
    ends: tuple[tuple[str, float], ...] = ()
    """Pairs of "from" (at least), "above", "to" (at most) or "below" and a number."""

    def holds(self, value: str, kind: str, strict: bool = True) -> str:
        """SQL for whether each record satisfies it, never NULL; ``value`` is the column in SQL, ``kind`` its type.

        strict: refuses ends of a column that is of no type of numbers; else nobody is between them.
        """
        tests = []
        if self.one_of is not None:
            tests.append(is_among(self.column, value, kind, self.one_of))
        if self.none_of:
            tests.append(f"NOT {is_among(self.column, value, kind, self.none_of)}")
        if self.ends:
            if not (strict or is_numeric(kind) or is_text(kind)):
                return "false"
            what = f"the part of the people asks for numbers of '{self.column}', which holds none"
            check_numbers(kind, what, "choose the part by another column")
            number = as_number(value, kind)
            inside = " AND ".join(f"{number} {SIGNS[word]} {quote_double(end)}" for word, end in self.ends)
            tests.append(f"coalesce({inside} AND NOT isnan({number}), false)")
        return f"({' AND '.join(tests)})"

    def describe(self) -> str:
        """The condition in words.

        >>> age = ColumnCondition("age", ends=(("from", 18.0), ("below", 65.0)))
        >>> age.describe(), ColumnCondition("sex", ("f", "m")).describe()
        ('age from 18 below 65', 'sex is f or m')
        """
        words = [] if self.one_of is None else [f"is {' or '.join(map(label_level, self.one_of))}"]
        words += [f"is not {' or '.join(map(label_level, self.none_of))}"] if self.none_of else []
        words += [f"{word} {end:.15g}" for word, end in self.ends]
        return f"{self.column} {' '.join(words)}"

    def excludes(self, other: ColumnCondition) -> bool:
        """Whether no value satisfies both, whatever the type of the column.

        It is so in three cases: lists of values without a common `trace`; a list whose values the other condition
        forbids in the same spelling; intervals without a common number. A number and a text never exclude each other.
        """
        if self.one_of is not None and other.one_of is not None:
            texts = {isinstance(value, str | bool | date) for value in (*self.one_of, *other.one_of)}
            if len(texts) == 1 and {*map(trace, self.one_of)}.isdisjoint(map(trace, other.one_of)):
                return True
        for mine, theirs in ((self, other), (other, self)):
            if mine.one_of is not None and {*map(repr, mine.one_of)} <= {*map(repr, theirs.none_of)}:
                return True
        ends = (*self.ends, *other.ends)
        low, low_open = max(
            ((end, word == "above") for word, end in ends if word in ENDS[:2]), default=(-math.inf, False)
        )
        high, closed = min(((end, word == "to") for word, end in ends if word in ENDS[2:]), default=(math.inf, True))
        return low > high or (low == high and (low_open or not closed) and math.isfinite(low))


@dataclass(frozen=True)
class Part:
    """The people of a table: those who satisfy every condition. Without conditions, everybody."""

    conditions: tuple[ColumnCondition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(condition.column for condition in self.conditions)

    def holds(self, values: Mapping[str, tuple[str, str]], strict: bool = True) -> str:
        """SQL for whether each record belongs to the part; ``values`` are the columns by name, each in SQL with its
        type."""
        return " AND ".join(condition.holds(*values[condition.column], strict) for condition in self.conditions)

    def check(self, sensitive: Sequence[str]) -> None:
        """Refuse a part that is chosen by a sensitive attribute."""
        for name in [name for name in sensitive if name in self.columns]:
            what = f"a part of the people is chosen by the sensitive attribute '{name}' itself"
            fix = "choose it by other columns: being in such a table reveals the value"
            raise InvalidInput(what, fix=fix, code="part")

    def describe(self) -> str:
        return ", ".join(condition.describe() for condition in self.conditions) or "everybody"

    def excludes(self, other: Part) -> bool:
        """Whether nobody can belong to both, whatever the records are.

        >>> women, men = read_part({"sex": "f"}), read_part({"sex": "m"})
        >>> women.excludes(men), women.excludes(Part())
        (True, False)
        """
        pairs = product(self.conditions, other.conditions)
        return any(mine.column == theirs.column and mine.excludes(theirs) for mine, theirs in pairs)


EVERYBODY = Part()


def with_part(schema: Schema, part: Part) -> Schema:
    """The schema by which a source is opened: the columns that choose the part stand after the quasi-identifiers."""
    columns = tuple(dict.fromkeys((*schema.quasi_identifiers, *part.columns)))
    count = None if schema.wide else schema.count
    return replace(schema, quasi_identifiers=columns, bins=None, levels=None, count=count)


def take_part(records: Relation, schema: Schema, part: Part) -> Relation:
    """The records of a part, with the columns of the schema alone; ``records`` were opened by `with_part`."""
    if not part:
        return records
    raw = with_part(schema, part).quasi_identifiers
    names = [f"c{index}" for index in range(len(raw))]
    values = {name: (column, records.types[column]) for name, column in zip(raw, names, strict=True)}
    kept = [*names[: len(schema.quasi_identifiers)], *list(records.types)[len(raw) :]]
    inside = part.holds(values, schema.outside != "drop")
    return records.select({f"c{index}": column for index, column in enumerate(kept)}, inside)


def read_part(given: Any, whose: str = "the table") -> Part:
    """The part of the people that a mapping from columns to conditions describes; ``whose`` names its table.

    >>> read_part({"sex": "f", "age": {"from": 18, "below": 65}}).describe()
    'sex is f, age from 18 below 65'
    """
    if given is None:
        return EVERYBODY
    if isinstance(given, Part):
        return given
    if not isinstance(given, Mapping) or not given:
        got, allowed = type(given).__name__, 'for instance {sex = "f", age = {from = 18}}; never a query'
        what, got = f"'where' of {whose} must map columns to what they hold", "nothing" if given == {} else f"a {got}"
        raise InvalidInput(what, got=got, allowed=allowed, code="part")
    return Part(tuple(_read_condition(column, value, whose) for column, value in given.items()))


def _read_condition(column: Any, given: Any, whose: str) -> ColumnCondition:
    if not isinstance(column, str) or not column:
        raise InvalidInput(f"'where' of {whose} must name columns", got=f"a {type(column).__name__}", code="part")
    what = f"'where' of {whose} cannot be read for column '{column}'"
    if not isinstance(given, Mapping):
        return ColumnCondition(column, _read_values(given, what))
    unknown = [str(word) for word in given if word not in (*ENDS, "not")]
    ends = tuple((word, given[word]) for word in ENDS if word in given)
    far = [word for word, end in ends if not is_number(end) or not abs(end) < 2.0**53]
    if unknown or far or not given:
        got = f"the word {unknown[0]!r}" if unknown else f"{far[0]} that is not a number below 2^53" if far else None
        raise InvalidInput(what, got=got or "an empty table", allowed=FORMS, code="part")
    none_of = _read_values(given["not"], what) if "not" in given else ()
    return ColumnCondition(column, None, none_of, tuple((word, float(end)) for word, end in ends))


def _read_values(given: Any, what: str) -> tuple[Any, ...]:
    values = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not 1 <= len(values) <= MOST_VALUES:
        raise InvalidInput(what, got=f"{len(values)} values", allowed=f"1 to {MOST_VALUES} values", code="part")
    for value in values:
        odd = isinstance(value, float) and not math.isfinite(value)
        if odd or not isinstance(value, str | int | float | date) or (isinstance(value, str) and "\0" in value):
            got = "no plain value" if odd else f"a {type(value).__name__}"
            raise InvalidInput(what, got=got, allowed=FORMS, code="part")
    return values


def is_among(name: str, column: str, kind: str, values: tuple[Any, ...]) -> str:
    """SQL for whether a column holds one of some values, each spelt as the column spells it; never NULL.

    A number is compared as a number in a column of text too, as CSV files have it: 2 is 2.0 there, "2" is not.
    """
    check_type(name, kind)
    labelled = kind_of_type(kind)
    if labelled == "integer":
        spelt = [form for value in values for form in spell(value, labelled)]
        return _holds_one_of(plain_value(column, kind), [form for form in spelt if WHOLE.fullmatch(form)])
    numbers = [_as_float(value) for value in values if labelled in NUMBERS or not isinstance(value, str)]
    listed = [quote_double(number) for number in numbers if number is not None]
    is_one = _holds_one_of(as_number(column, kind), listed) if is_numeric(kind) or is_text(kind) else "false"
    if labelled in NUMBERS:
        return is_one
    texts = [value for value in values if isinstance(value, str) or _as_float(value) is None]
    forms = dict.fromkeys(form for text in texts for form in spell(text, labelled))
    is_text_of = _holds_one_of(plain_value(column, kind), list(map(quote_sql, forms)))
    return f"({is_text_of} OR {is_one})" if is_text(kind) and listed else is_text_of


def _holds_one_of(value: str, listed: Sequence[str]) -> str:
    return f"coalesce({value} IN ({', '.join(listed)}), false)" if listed else "false"


def trace(value: Any) -> str:
    """Key of a value. Two numbers, or two texts, that may match the same record have the same key.

    `is_among` compares numbers as floating-point numbers, a text as well if the column holds numbers; and it compares
    texts by their letters, truth values in any case. Dates and truth values are texts.

    >>> trace("01") == trace("1.0") == trace(1), trace("TRUE") == trace(True) != trace("yes")
    (True, True)
    """
    number = _as_float(value)
    return str(value).strip().casefold() if number is None else str(number + 0.0)


def _as_float(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool | date) else float(value)
    except (ValueError, OverflowError):
        return None
