"""Validation: the columns of a source in the schema's roles, their values numbered, and what cannot be counted.

A record is outside if a value of it is not among the declared labels of its column, or cannot be put into a bin. By
the schema's rule such records are refused, or left out. Left out, the table is a function of what was declared and of
the records inside alone: one record more or less changes counts, and never a label or whether there is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cellrisk.counts.binning import Binning
from cellrisk.counts.columns import (
    LEAST_BIN,
    MOST_RECORDS,
    Flaw,
    bin_flaws,
    bin_value,
    check_type,
    count_flaws,
    count_value,
    kinds_of,
    plain_value,
)
from cellrisk.counts.engine import Relation, make_view, new_name
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

    def check(self, found: Sorted) -> None:
        """Refuses values that are not among the declared levels, and levels that the column cannot tell apart."""
        if self.declaration is not None and self.declaration.repeated:
            raise declared_twice(self.name, len(self.declaration.labels))
        check_inside(self.name, found, self.kind, self.binning)


@dataclass(frozen=True)
class Values:
    """A source with its columns in their roles, as a view of DuckDB: q0, q1, ..., y0, y1, ..., w and n.

    A value is a whole number or a text; a bin is its number, and so is a flaw. w is the records of a row.
    """

    relation: Relation
    columns: tuple[Column, ...]
    """Quasi-identifiers, then sensitive attributes."""
    rows: int
    """Rows of the source."""
    records: int
    total: str
    """SQL that adds up the records of rows."""

    @property
    def quasi(self) -> list[Column]:
        return [column for column in self.columns if column.role.startswith("q")]

    @property
    def sensitive(self) -> list[Column]:
        return [column for column in self.columns if column.role.startswith("y")]


def validate(relation: Relation, schema: Schema) -> Values:
    """Puts the columns c0, c1, ... of a source in their roles; refuses types and counts that cannot be used."""
    kinds, chosen, columns = kinds_of(relation), {}, []
    names = schema.quasi_identifiers + schema.sensitive
    for place, name in enumerate(names):
        source, quasi = f"c{place}", place < len(schema.quasi_identifiers)
        role = f"q{place}" if quasi else f"y{place - len(schema.quasi_identifiers)}"
        kind, binning, given = relation.types[source], schema.binning(name), schema.declared(name)
        check_type(name, kind)
        declaration = declare(name, kinds[source], binning, given)
        columns.append(Column(name, role, kinds[source], binning, declaration, given is not None))
        if binning is None:
            chosen[role] = plain_value(source, kind)
        else:
            chosen[role] = bin_value(name, source, kind, binning)
    flaws: tuple[Flaw, ...] = ()
    if isinstance(schema.count, str):
        flaws = count_flaws(schema.count)
        counts = f"c{len(names)}"
        chosen["w"] = count_value(schema.count, counts, relation.types[counts])
    made = ", ".join(f"{sql} AS {name}" for name, sql in chosen.items())
    view = make_view(relation.connection, f"SELECT {made}, {relation.rows}::BIGINT AS n FROM {relation.name}")
    found = view.fetch(
        "SELECT coalesce(sum(n), 0)::BIGINT"
        + "".join(f", coalesce(sum(n) FILTER (w = {flaw.number}), 0)::BIGINT" for flaw in flaws)
        + (", sum(w::HUGEINT * n) FILTER (w > 0)" if flaws else "")
        + " FROM {rows}"
    )[0]
    rows = found[0]
    for flaw, such in zip(flaws, found[1:], strict=False):
        if such:
            raise flaw.refuse(such, rows)
    if flaws and (found[-1] or 0) > MOST_RECORDS:
        raise InvalidInput(
            f"the counts in column '{schema.count}' add up to too many records",
            allowed=f"at most {MOST_RECORDS} in all",
        )
    weighted = view.select({**{column.role: column.role for column in columns}, "w": "w * n" if flaws else "n"})
    total = "sum(w)" if flaws or relation.grouped else "count(*)"
    return Values(weighted, tuple(columns), rows, int(found[-1] or 0) if flaws else rows, total)


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
    keys: tuple[Any, ...] | None = None
    """An engine value for each place; None for whole numbers and bins, and if there are too many to bring here."""
    table: Relation | None = field(default=None, repr=False)
    """The table of places if there are too many."""

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
        if self.keys is not None:
            return self.keys
        if self.table is None:
            return range(self.start, self.start + self.size)
        return [value for (value,) in self.table.fetch("SELECT v FROM {rows} ORDER BY i")]

    def levels(self, places: Sequence[int], missing: int = 0) -> Levels:
        """The levels of a column of which values at some places occur, and so many missing ones."""
        seen = {self.values[place]: 1 for place in places}
        return self.column.sort(seen | {None: missing}).levels


def number_values(values: Values, column: Column, dropping: bool) -> Numbering:
    """Give the values of a column their places. If they are very many, DuckDB keeps the places.

    dropping: whether values that are not among the declared labels, or cannot be put into a bin, are left out.
    """
    role, relation = column.role, values.relation
    if column.binning is not None or (column.kind == "integer" and column.declaration is None and role[0] == "q"):
        numbering = _number_by_range(values, column, dropping)
        if not column.listed and (role[0] == "q" or numbering.size <= MOST_LEVELS):
            return numbering
    known = _find_declared(column)
    if known is None:
        limit = None if dropping and column.declaration else MOST_LEVELS + 2
        end = f" LIMIT {limit}" if limit else ""
        found = [value for (value,) in relation.fetch(f"SELECT DISTINCT {role} FROM {{rows}}{end}")]
        if limit and len(found) >= limit:
            if role[0] == "y" or column.declaration is not None:
                raise _too_many_levels(column.name)
            return _number_in_engine(relation, column)
        missing = None in found
        known = column.sort(dict.fromkeys((value for value in found if value is not None), 1)).levels
    else:
        missing = bool(relation.fetch(f"SELECT 1 FROM {{rows}} WHERE {role} IS NULL LIMIT 1"))
    size = len(known.labels)
    keys: list[Any] = [None] * size
    for key, place in known.places.items():
        keys[place] = key
    name = _make_places(relation, column, list(known.places), list(known.places.values()))
    join = f"LEFT JOIN {name} AS m_{role} ON x.{role} = m_{role}.v"
    return Numbering(column, size, missing, column.listed, f"m_{role}.i", join, keys=tuple(keys))


def _number_by_range(values: Values, column: Column, dropping: bool) -> Numbering:
    """Whole numbers and bins by what they are more than the least of them."""
    role, relation, bins = column.role, values.relation, column.binning
    flaws = bin_flaws(column.name) if bins is not None else ()
    asked = [f"min({role}) FILTER ({role} >= {LEAST_BIN})" if flaws else f"min({role})", f"max({role})"]
    asked += [f"bool_or({role} IS NULL)"] + [f"sum(n) FILTER ({role} = {flaw.number})" for flaw in flaws]
    low, high, missing, *flawed = relation.fetch(f"SELECT {', '.join(asked)} FROM {{rows}}")[0]
    for flaw, rows in zip(flaws, flawed, strict=True):
        if rows and not dropping:
            raise flaw.refuse(int(rows), values.rows)
    if column.declaration is not None and bins is not None and bins.declared and not column.listed:
        low, high = bins.declared[0], bins.declared[-1]
    if low is None or (flaws and high < LEAST_BIN):
        low, high = 0, -1
    if high - low >= WIDEST:
        return _number_in_engine(relation, column)
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


def _make_places(relation: Relation, column: Column, keys: Sequence[Any], places: Sequence[int]) -> str:
    """A table of DuckDB with the place of each value."""
    kind = "BIGINT" if column.kind == "integer" or column.binning is not None else "VARCHAR"
    name = new_name("places")
    made = f"SELECT unnest($1::{kind}[]) AS v, unnest($2::BIGINT[]) AS i"
    relation.connection.execute(f"CREATE TEMP TABLE {name} AS {made}", [list(keys), list(places)])
    return name


def _number_in_engine(relation: Relation, column: Column) -> Numbering:
    """Places in no order, for a quasi-identifier with very many values."""
    name, role = new_name("places"), column.role
    relation.connection.execute(
        f"CREATE TEMP TABLE {name} AS SELECT v, row_number() OVER () - 1 AS i "
        f"FROM (SELECT DISTINCT {role} AS v FROM {relation.name} WHERE {role} IS NOT NULL)"
    )
    size = relation.fetch(f"SELECT count(*) FROM {name}")[0][0]
    missing = bool(relation.fetch(f"SELECT 1 FROM {{rows}} WHERE {role} IS NULL LIMIT 1"))
    join = f"LEFT JOIN {name} AS m_{role} ON x.{role} = m_{role}.v"
    return Numbering(
        column, size, missing, False, f"m_{role}.i", join, table=Relation(relation.connection, name, {"v": "", "i": ""})
    )


def list_outside(values: Values, column: Column) -> Sorted:
    """The values of a declared column as they occur, with the records of each: what a refusal tells."""
    found = values.relation.fetch(f"SELECT {column.role}, sum(w)::BIGINT FROM {{rows}} GROUP BY ALL")
    return column.sort({value: int(records) for value, records in found})


def check_missing(missing: dict[str, int], schema: Schema) -> None:
    if schema.missing == "error" and missing:
        raise InvalidInput(
            "the source has missing values",
            got=", ".join(f"{number_of(number, 'record')} in '{name}'" for name, number in missing.items()),
            fix=f"use {argument('missing', 'category')} to make them a category of their own, or "
            f"{argument('missing', 'drop')}",
            code="missing-values",
        )


def check_some(values: Values, kept: int, schema: Schema) -> None:
    """Refuses a source without records to count."""
    if not values.rows:
        raise InvalidInput(
            "the source has no records",
            got="0 rows",
            allowed="1 row or more below the column names",
            code="no-records",
        )
    if not values.records:
        raise InvalidInput(
            f"every count in column '{schema.count}' is zero",
            got="0 records",
            allowed="1 record or more",
            code="no-records",
        )
    if not kept:
        raise InvalidInput(
            "no record is left: each has a missing value in a column in use",
            got=f"{number_of(values.records, 'record')} dropped",
            fix=f"use {argument('missing', 'category')}",
            code="no-records",
        )


def _too_many_levels(name: str) -> InvalidInput:
    return InvalidInput(
        f"column '{name}' has more than {MOST_LEVELS:,} levels",
        allowed=f"up to {MOST_LEVELS:,}",
        fix=f"cut it into bins with {argument('bins', f'{{{name!r}: ...}}')}, or check that it is the right column",
        code="too-many-levels",
    )
