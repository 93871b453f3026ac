"""Validation: the columns of a source in the schema's roles, their values numbered, and what cannot be counted.

A record is outside if a value of it is not among the declared labels of its column, or cannot be put into a bin. By
the schema's rule such records are refused, or left out. Left out, the table is a function of what was declared and of
the records inside alone: one record more or less changes counts, and never a label or whether there is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cellrisk.counts.binning import Binning
from cellrisk.counts.columns import (
    LEAST_BIN,
    MOST_RECORDS,
    bin_flaws,
    bin_value,
    check_type,
    count_flaws,
    count_value,
    kinds_of,
    plain_value,
)
from cellrisk.counts.engine import Relation, new_name
from cellrisk.counts.levels import (
    MOST_LEVELS,
    Declaration,
    Levels,
    Sorted,
    check_inside,
    declare,
    declared_twice,
    sort_values,
)
from cellrisk.counts.schema import Schema
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.formatting import number_of

WHOLE = re.compile(r"-?\d{1,19}")
WIDEST = 2**40
"""Whole numbers are numbered by what they are more than the least of them, if that is below this."""


@dataclass(frozen=True)
class Column:
    """How the values of one column become labels."""

    name: str
    role: str
    """Its name among the values: q0, q1, ... for quasi-identifiers, y0, y1, ... for sensitive attributes."""
    kind: str
    binning: Binning | None
    declaration: Declaration | None
    listed: bool
    """Whether its levels were declared one by one, so that other values can occur. Between edges none can."""

    def sort(self, seen: Mapping[Any, int]) -> Sorted:
        """The levels of the column, given the records of each value that occurs."""
        return sort_values(seen, self.kind, self.binning, self.declaration)


@dataclass(frozen=True)
class Values:
    """A source with its columns in their roles, as a view of DuckDB: q0, q1, ..., y0, y1, ..., and w, its records.

    A value is a whole number or a text; a bin is its number, and so is a flaw.
    """

    relation: Relation
    schema: Schema
    columns: tuple[Column, ...]
    """Quasi-identifiers, then sensitive attributes."""
    rows: int
    """Rows of the source."""
    records: int
    total: str
    """SQL that adds up the records of rows."""
    identified: bool = False
    """Whether there is a column p, which identifies people."""


def validate(relation: Relation, schema: Schema) -> Values:
    """Put the columns c0, c1, ... of a source in their roles; refuse types and counts that cannot be used."""
    kinds, chosen, columns = kinds_of(relation), {}, []
    n_quasi = len(schema.quasi_identifiers)
    for place, name in enumerate(schema.quasi_identifiers + schema.sensitive):
        source, role = f"c{place}", f"q{place}" if place < n_quasi else f"y{place - n_quasi}"
        kind, binning, given = relation.types[source], schema.binning(name), schema.declared(name)
        check_type(name, kind)
        declaration = declare(name, kinds[source], binning, given)
        columns.append(Column(name, role, kinds[source], binning, declaration, given is not None))
        chosen[role] = plain_value(source, kind) if binning is None else bin_value(name, source, kind, binning)
    made = tuple(columns)
    if schema.person is not None:
        last = f"c{len(columns)}"
        check_type(schema.person, relation.types[last])
        chosen["p"] = f"({plain_value(last, relation.types[last])})::VARCHAR"
    if not isinstance(schema.count, str):
        view = relation.select({**chosen, "w": relation.rows})
        rows = view.fetch("SELECT coalesce(sum(w), 0)::BIGINT FROM {rows}")[0][0]
        total = "sum(w)" if relation.grouped else "count(*)"
        return Values(view, schema, made, rows, rows, total, schema.person is not None)
    flaws, counts = count_flaws(schema.count), f"c{len(columns)}"
    view = relation.select({**chosen, "w": count_value(schema.count, counts, relation.types[counts])})
    sums = [f"coalesce(sum({relation.rows}) FILTER (w = {flaw.number}), 0)::BIGINT" for flaw in flaws]
    sums += [f"coalesce(sum({relation.rows}), 0)::BIGINT", f"sum(w::HUGEINT * {relation.rows}) FILTER (w > 0)"]
    *flawed, rows, records = view.fetch(f"SELECT {', '.join(sums)} FROM {{rows}}")[0]
    for flaw, such in zip(flaws, flawed, strict=True):
        if such:
            raise flaw.refuse(such, rows)
    if (records or 0) > MOST_RECORDS:
        raise InvalidInput(
            f"the counts in column '{schema.count}' add up to too many records",
            allowed=f"at most {MOST_RECORDS} in all",
            code="too-many-records",
        )
    weighted = view.select({**{role: role for role in chosen}, "w": f"w * {relation.rows}"})
    return Values(weighted, schema, made, rows, int(records or 0), "sum(w)")


@dataclass(frozen=True)
class Numbering:
    """Places for the values of a column, in the order of their labels; then one for missing values, one for others.

    A value that was not there when places were given has none (NULL): the source changed while it was read.
    """

    column: Column
    size: int
    """Places of values."""
    missing: bool
    """Whether values are missing, which have the place ``size``."""
    others: bool
    """Whether there may be other values, which have the last place."""
    place: str
    """SQL for the place of a value that has one, else NULL."""
    join: str = ""
    """SQL that joins the table of places."""
    start: int = 0
    """The value at place 0 of a column of whole numbers or bins, at which others follow one by one."""
    read_values: Callable[[], Sequence[Any]] | None = None
    """Gives an engine value for each place; None for whole numbers and bins."""
    stored: bool = False
    """Whether the values are so many that they stay in DuckDB until they are read."""

    @property
    def width(self) -> int:
        return max(self.size + self.missing + self.others, 1)

    @property
    def other(self) -> int:
        """The place of other values."""
        return self.size + self.missing

    @property
    def code(self) -> str:
        """SQL for the place of each record's value."""
        role = f"x.{self.column.role}"
        cases = f"WHEN {role} IS NULL THEN {self.size} " if self.missing else ""
        if self.others:
            cases += f"WHEN {self.place} IS NULL AND {role} IS NOT NULL THEN {self.other} "
        return f"(CASE {cases}ELSE {self.place} END)" if cases else self.place

    @cached_property
    def values(self) -> Sequence[Any]:
        """An engine value for each place."""
        return self.read_values() if self.read_values else range(self.start, self.start + self.size)

    def levels(self, places: Sequence[int], missing: int = 0) -> Levels:
        """The levels of a column of which values at some places occur, and so many missing ones."""
        return self.column.sort({self.values[place]: 1 for place in places} | {None: missing}).levels


def number_values(values: Values, column: Column) -> Numbering:
    """Give the values of a column their places."""
    role, relation, dropping = column.role, values.relation, values.schema.outside == "drop"
    if column.binning is not None or (column.kind == "integer" and column.declaration is None and role[0] == "q"):
        numbering = _number_by_range(values, column, dropping)
        if numbering and not column.listed and (role[0] == "q" or numbering.size <= MOST_LEVELS):
            return numbering
    levels, usable = _find_declared(column), f"WHERE {role} >= {LEAST_BIN} OR {role} IS NULL" if column.binning else ""
    others = column.listed or column.binning is not None
    if levels is not None:
        missing = bool(relation.fetch(f"SELECT 1 FROM {{rows}} WHERE {role} IS NULL LIMIT 1"))
    else:
        # Of a declared column all values are read if others are left out: how many there are decides nothing then.
        limit = "" if dropping and column.declaration else f"LIMIT {MOST_LEVELS + 2}"
        seen = dict.fromkeys(
            (value for (value,) in relation.fetch(f"SELECT DISTINCT {role} FROM {{rows}} {usable} {limit}")), 1
        )
        missing = seen.pop(None, 0) > 0
        if limit and len(seen) > MOST_LEVELS:
            if role[0] == "y" or column.declaration is not None:
                raise InvalidInput(
                    f"column '{column.name}' has more than {MOST_LEVELS:,} levels",
                    allowed=f"up to {MOST_LEVELS:,}",
                    fix=f"cut it into bins with {argument('bins', f'{{{column.name!r}: ...}}')}, or check that it is "
                    "the right column",
                    code="too-many-levels",
                )
            return _number_in_engine(relation, column, others)
        levels = column.sort(seen).levels
    keys: list[Any] = [None] * len(levels.labels)
    for key, place in levels.places.items():
        keys[place] = key
    kind = "BIGINT" if column.kind == "integer" or column.binning is not None else "VARCHAR"
    made = f"SELECT unnest($1::{kind}[]) AS v, unnest($2::BIGINT[]) AS i"
    name = new_name("places")
    relation.connection.execute(f"CREATE TEMP TABLE {name} AS {made}", [list(levels.places), [*levels.places.values()]])
    return Numbering(column, len(keys), missing, others, f"m_{role}.i", _join(name, role), 0, lambda: keys)


def _join(name: str, role: str) -> str:
    return f"LEFT JOIN {name} AS m_{role} ON x.{role} = m_{role}.v"


def _number_by_range(values: Values, column: Column, dropping: bool) -> Numbering | None:
    """Number whole numbers and bins by what they are more than the least of them; None if they are too far apart."""
    role, relation, bins = column.role, values.relation, column.binning
    flaws = bin_flaws(column.name) if bins is not None else ()
    asked = [f"min({role}) FILTER ({role} >= {LEAST_BIN})" if flaws else f"min({role})", f"max({role})"]
    asked += [f"bool_or({role} IS NULL)"] + [f"sum({relation.rows}) FILTER ({role} = {flaw.number})" for flaw in flaws]
    low, high, missing, *flawed = relation.fetch(f"SELECT {', '.join(asked)} FROM {{rows}}")[0]
    for flaw, rows in zip(flaws, flawed, strict=True):
        if rows and not dropping:
            raise flaw.refuse(int(rows), values.rows)
    if column.declaration is not None and bins is not None and bins.declared and not column.listed:
        low, high = bins.declared[0], bins.declared[-1]
    if low is None or (flaws and high < LEAST_BIN):
        low, high = 0, -1
    if high - low >= WIDEST:
        return None
    place = f"CASE WHEN x.{role} BETWEEN {low} AND {high} THEN x.{role} - ({low}) END"
    return Numbering(column, high - low + 1, bool(missing), any(flawed), place, start=low)


def _find_declared(column: Column) -> Levels | None:
    """The levels of a declared column that the declaration alone tells; None if the values that occur must be asked.

    Numbers and moments are written in many ways, so that their labels tell which values are declared.
    """
    if column.declaration is None or column.binning or column.kind not in ("text", "boolean", "integer"):
        return None
    places: dict[Any, int] = dict(column.declaration.spellings)
    if column.kind == "integer":
        whole = {int(text): place for text, place in places.items() if WHOLE.fullmatch(text)}
        places = {number: place for number, place in whole.items() if -(2**63) <= number < 2**63}
    return Levels(column.declaration.labels, places, declared=True, missing=False)


def _number_in_engine(relation: Relation, column: Column, others: bool) -> Numbering:
    """Places for a quasi-identifier with very many values."""
    name, role = new_name("places"), column.role
    usable = f" AND {role} >= {LEAST_BIN}" if column.binning else ""
    relation.connection.execute(
        f"CREATE TEMP TABLE {name} AS SELECT v, row_number() OVER (ORDER BY v) - 1 AS i "
        f"FROM (SELECT DISTINCT {role} AS v FROM {relation.name} WHERE {role} IS NOT NULL{usable})"
    )
    size = relation.fetch(f"SELECT count(*) FROM {name}")[0][0]
    missing = bool(relation.fetch(f"SELECT 1 FROM {{rows}} WHERE {role} IS NULL LIMIT 1"))

    def read_values() -> list[Any]:
        return [value for (value,) in relation.fetch(f"SELECT v FROM {name} ORDER BY i")]

    return Numbering(column, size, missing, others, f"m_{role}.i", _join(name, role), 0, read_values, stored=True)


def check_declared(values: Values, column: Column) -> None:
    """Refuse values that are not among the declared levels, and levels that the column cannot tell apart."""
    if column.declaration is not None and column.declaration.repeated:
        raise declared_twice(column.name, len(column.declaration.labels))
    seen = values.relation.fetch(f"SELECT {column.role}, sum(w)::BIGINT FROM {{rows}} GROUP BY ALL")
    check_inside(column.name, column.sort({key: int(records) for key, records in seen}), column.kind, column.binning)


def check_missing(missing: dict[str, int], schema: Schema) -> None:
    if schema.missing == "error" and missing:
        raise InvalidInput(
            "the source has missing values",
            got=", ".join(f"{number_of(number, 'record')} in '{name}'" for name, number in missing.items()),
            fix=f"use {argument('missing', 'category')} to make them a category of their own, or "
            f"{argument('missing', 'drop')}",
            code="missing-values",
        )


def check_some(values: Values, kept: int) -> None:
    """Refuse a source without records to count."""
    if not values.rows:
        what, got, fix = "the source has no records", "0 rows", "give it 1 row or more below the column names"
    elif not values.records:
        what, got, fix = f"every count in column '{values.schema.count}' is zero", "0 records", "give 1 record or more"
    elif not kept:
        what, got = "no record is left: each has a missing value in a column in use", f"{values.records:,} dropped"
        fix = f"use {argument('missing', 'category')}"
    else:
        return
    raise InvalidInput(what, got=got, fix=fix, code="no-records")
