"""Packing: quasi-identifiers as one whole number, or a few, so that counting is faster and spills less.

Each column's values get numbers, and the numbers of all columns together one number: exact, unlike a hash. DuckDB only;
other engines have their own ways with memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from cellrisk.counts.engine import make_view, quote_sql
from cellrisk.counts.levels import Levels
from cellrisk.counts.resources import Resources

if TYPE_CHECKING:
    import ibis.expr.types as ir

WORTHWHILE = 1_000_000
"""Below this many records, finding the numbers costs more than they save."""
LISTED_VALUES = 1024
"""Text with up to so many values is looked up in a list: in Parquet once for each entry of a file's dictionary."""
SHARE_FOR_TYPES = 0.25
"""Other text is looked up in a type made for it, where memory is short and all such types fit into this share of it."""
BYTES_FOR_VALUE = 450
"""What a value of such a type takes beside its letters; the engine does not count it towards its limit."""
LARGEST_KEY = 2**62
BYTES_FOR_TEXT, BYTES_FOR_NUMBER, BYTES_FOR_ROW = 48, 8, 32


@dataclass(frozen=True)
class Packed:
    """The records with fewer, narrower quasi-identifiers, and what packing has hidden."""

    coded: ir.Table
    missing: tuple[int, ...] | None
    """Records in which each quasi-identifier is missing; None where nothing was packed."""


@dataclass(frozen=True)
class Number:
    """A column as a whole number from 0, which stands for a missing value, up to ``size`` - 1."""

    place: str
    """SQL that gives, for each record, the place of its value among the column's values, from 1; NULL where missing."""
    size: int
    nullable: bool
    listed: bool
    """Whether the place was looked up in a list: a second lookup is then cheaper than a product."""

    def times(self, stride: int, kind: str) -> str:
        """The number times ``stride``, as an expression of an SQL type that holds it."""
        if self.listed:
            products = ", ".join(str(stride * place) for place in range(1, self.size))
            product = f"list_extract([{products}]::{kind}[], {self.place})"
        else:
            product = f"({self.place})::{kind} * {stride}::{kind}"
        return f"coalesce({product}, 0::{kind})" if self.nullable else product


def pack(
    coded: ir.Table, records: int, levels: Sequence[Levels], resources: Resources, dictionaries: bool = False
) -> Packed:
    """The same records, packed where that is faster (``dictionaries``: text comes as Parquet stores it) or needed."""
    backend: Any = coded.get_backend()
    if backend.name != "duckdb":
        return Packed(coded, None)
    quasi = [name for name in coded.columns if name.startswith("q")]
    widths = [BYTES_FOR_TEXT if coded[name].type().is_string() else BYTES_FOR_NUMBER for name in quasi]
    per_cell = BYTES_FOR_ROW + sum(widths) + BYTES_FOR_NUMBER * sum(len(each.places) for each in levels)
    short = records * per_cell > resources.memory
    if not short and not (dictionaries and records >= WORTHWHILE):
        return Packed(coded, None)
    name = make_view(backend, backend.compile(coded), coded.schema()).get_name()
    missing = _missing(backend.con, name, quasi, "w" in coded.columns)
    bounds = _bounds(backend.con, name, [column for column in quasi if coded[column].type().is_integer()])
    room = SHARE_FOR_TYPES * resources.memory if short else 0.0
    numbers: dict[str, Number | None] = {}
    for column, absent in zip(quasi, missing, strict=True):
        if column in bounds:
            numbers[column] = _offset(column, *bounds[column], nullable=bool(absent))
            continue
        listed = dictionaries and coded[column].type().is_string()
        numbers[column] = _listed(backend.con, name, column, bool(absent)) if listed else None
        if numbers[column] is None and room > 0:
            numbers[column], taken = _typed(backend.con, name, column, bool(absent), room)
            room -= taken
    keys = _join(numbers)
    if len(keys) == len(quasi):
        return Packed(coded, None)
    others = [column for column in coded.columns if column not in quasi]
    chosen = [f"{expression} AS q{place}" for place, expression in enumerate(keys)] + others
    return Packed(make_view(backend, f"SELECT {', '.join(chosen)} FROM {name}"), missing)


def _join(numbers: dict[str, Number | None]) -> list[str]:
    """SQL for as few keys as hold all the numbers; a column without a number is a key of its own."""
    keys = [column for column, number in numbers.items() if number is None]
    together: list[Number] = []
    for number in numbers.values():
        if number is None:
            continue
        if prod(each.size for each in together) * number.size >= LARGEST_KEY and together:
            keys.append(_key(together))
            together = []
        together.append(number)
    return [*keys, _key(together)] if together else keys


def _key(numbers: Sequence[Number]) -> str:
    """SQL for one number that holds all of these: each is multiplied by the sizes of those after it."""
    sizes = [number.size for number in numbers]
    kind = "UINTEGER" if prod(sizes) <= 2**32 else "BIGINT"
    return " + ".join(number.times(prod(sizes[place + 1 :]), kind) for place, number in enumerate(numbers))


def _bounds(connection: Any, table: str, columns: Sequence[str]) -> dict[str, tuple[int | None, int | None]]:
    """The least and the largest number of each column; None where all are missing."""
    if not columns:
        return {}
    facts = ", ".join(f"min({column}), max({column})" for column in columns)
    found = _fetch(connection, f"SELECT {facts} FROM {table}")[0]
    return dict(zip(columns, zip(found[::2], found[1::2], strict=True), strict=True))


def _offset(column: str, low: int | None, high: int | None, nullable: bool) -> Number | None:
    """A column of whole numbers as what they are more than the least of them; None where that is too large."""
    if low is None or high is None:
        return Number("NULL", 1, nullable=True, listed=False)
    size = int(high) - int(low) + 2
    if size >= LARGEST_KEY or abs(low) >= LARGEST_KEY:
        return None
    return Number(f"{column}::BIGINT - ({int(low)}) + 1", size, nullable, listed=False)


def _listed(connection: Any, table: str, column: str, nullable: bool) -> Number | None:
    """A column of text by the place of each value in a list of them; None where they are many."""
    found = _fetch(connection, f"SELECT DISTINCT {column} FROM {table} LIMIT {LISTED_VALUES + 2}")
    values = [value for (value,) in found if value is not None]
    if not 1 <= len(values) <= LISTED_VALUES or any("\0" in value for value in values):
        return None
    place = f"list_position([{', '.join(quote_sql(value) for value in sorted(values))}]::VARCHAR[], {column})"
    return Number(place, len(values) + 1, nullable, listed=True)


def _typed(connection: Any, table: str, column: str, nullable: bool, room: float) -> tuple[Number | None, float]:
    """The column as a type of its own, whose values the engine numbers, and the bytes that it takes; None where it
    would take more than ``room``."""
    text = f"CAST({column} AS VARCHAR)"
    about = f"SELECT approx_count_distinct({column}), avg(strlen({text})) FROM {table}"
    values, length = _fetch(connection, about)[0]
    taken = (values or 0) * (BYTES_FOR_VALUE + 2 * (length or 0))
    if taken > room:
        return None, 0.0
    kind = f"values_{uuid.uuid4().hex}"
    connection.execute(
        f"CREATE TYPE {kind} AS ENUM (SELECT DISTINCT {text} AS v FROM {table} WHERE {column} IS NOT NULL ORDER BY v)"
    )
    size = int(_fetch(connection, f"SELECT len(enum_range(NULL::{kind}))")[0][0]) + 1
    return Number(f"enum_code(CAST({text} AS {kind}))::BIGINT + 1", size, nullable, listed=False), taken


def _missing(connection: Any, table: str, quasi: Sequence[str], weighted: bool) -> tuple[int, ...]:
    """Records in which each quasi-identifier is missing."""
    facts = [
        f"coalesce(sum(w) FILTER ({column} IS NULL), 0)" if weighted else f"count(*) - count({column})"
        for column in quasi
    ]
    return tuple(int(number) for number in _fetch(connection, f"SELECT {', '.join(facts)} FROM {table}")[0])


def _fetch(connection: Any, query: str) -> list[Any]:
    return list(connection.execute(query).fetchall())
