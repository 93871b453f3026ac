"""The survey: what is found out about a source before it is counted. Flaws, missing values, levels, and who is outside.

A record is outside where a value of it is not among the declared labels of its column, or cannot be put into a bin. By
the schema's rule such records are refused, or left out. Left out, the table is a function of what was declared and of
the records inside alone: one record more or less changes counts, and never a label or whether there is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Protocol

from cellrisk.counts.binning import Binning
from cellrisk.counts.coding import MOST_RECORDS, Coding, Flaw, code_columns, code_level
from cellrisk.counts.condensing import condense
from cellrisk.counts.holding import expect, read, read_or_held
from cellrisk.counts.levels import (
    MOST_LEVELS,
    Declaration,
    Levels,
    SeenValue,
    Sorted,
    check_inside,
    check_several,
    declare,
    declared_twice,
    sort_values,
)
from cellrisk.counts.schema import Schema
from cellrisk.errors import InvalidInput
from cellrisk.system.text import number_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

FEW = 10_000
"""Combinations of sensitive values that are brought here."""


@dataclass(frozen=True)
class Survey:
    """What was found out about a source."""

    coded: ir.Table
    """The records to count: quasi-identifiers q0, q1, ..., sensitive y0, y1, ..., and w where records have counts."""
    columns: dict[str, Column]
    """What is known of each column, by its role: q0, q1, ..., y0, y1, ..."""
    levels: tuple[Levels, ...]
    records: int
    """How many records there are to count."""
    outside: int
    """How many records were left out because a value of theirs is not among the declared labels."""
    dropped: int
    """How many of the other records were left out because a value is missing."""
    missing: dict[str, int]
    """Records with a missing value, for each sensitive column that has any."""
    rows: int | None
    """How many rows the table has at most, where that is known: less than records where like records became one."""
    few: bool
    """Whether they can be brought here."""


@dataclass(frozen=True)
class Column:
    """How the values of one column become labels."""

    name: str
    role: str
    kind: str
    binning: Binning | None
    declaration: Declaration | None
    listed: bool
    """Whether its levels were declared one by one, so that other values can occur. Between edges none can."""

    def value(self, coded: ir.Table) -> ir.Value:
        """The column as it comes out of the engine: bins by number, the rest as text or whole numbers."""
        column = coded[self.role]
        return column if self.binning is not None or self.role.startswith("y") else code_level(column)

    def sort(self, seen: Sequence[SeenValue]) -> Sorted:
        """The levels of the column, given the values that occur."""
        return sort_values(seen, self.kind, self.binning, self.declaration)

    def check(self, found: Sorted) -> None:
        """Refuses values that are not among the declared levels, and levels that the column cannot tell apart."""
        if self.declaration is not None and self.declaration.repeated:
            raise declared_twice(self.name, len(self.declaration.labels))
        check_inside(self.name, found, self.kind, self.binning)


def survey_source(table: ir.Table, schema: Schema) -> Survey:
    """Checks the records of a source and codes its columns for counting; refuses what would give a wrong number."""
    coding = code_columns(table, schema)
    condensed, dropping = condense(coding.table), schema.outside == "drop"
    coded = condensed.table
    columns = describe_columns(coding, schema)
    quasi, sensitive = ([columns[role] for role in columns if role.startswith(letter)] for letter in "qy")
    domains = {each.role: list_domain(coded, each, dropping) for each in quasi if each.listed}
    inside = find_inside(coded, coding.flaws, columns, domains) if dropping else None
    facts = list_facts(coded, coding.flaws, columns, inside, schema)
    combinations = coded.group_by([each.role for each in sensitive]).aggregate(**facts)
    with read_or_held(combinations, FEW) as (few, table):
        names = list(facts)
        groups: Groups = ManyGroups(table(), names) if few is None else FewGroups(few.to_pylist(), names)
        totals = groups.add_up()
        check_flaws(totals, coding.flaws, schema)
        kept_values: dict[str, Sorted] = {}
        if dropping:
            kept_values = {
                each.role: groups.list_values(each, "rows", dropping=True) for each in sensitive if each.listed
            }
            groups = groups.filter(columns, kept_values)
        counted = groups.add_up() if kept_values else totals
        watched = [role for role in columns if f"missing_{role}" in facts]
        found = {columns[role].name: int(counted[f"missing_{role}"]) for role in watched}
        missing = {column: number for column, number in found.items() if number}
        check_missing(missing, schema)
        if not dropping:
            check_some(totals, schema)
        # A level that a count table lists with zeros only is a level too.
        kept = groups.filter_kept()
        sorted_levels = [kept.list_values(each, "kept", dropping) for each in sensitive]
    for each, values in [
        *zip(sensitive, sorted_levels, strict=True),
        *((columns[role], domains[role]) for role in domains),
    ]:
        if not dropping:
            each.check(values)
    for each, values in zip(sensitive, sorted_levels, strict=True):
        check_several(each.name, values.levels)
    spelt = {**domains, **{each.role: values for each, values in zip(sensitive, sorted_levels, strict=True)}}
    records = int(counted["kept"])
    expect(coded, records)
    return Survey(
        choose_records(coded, columns, inside, kept_values, spelt, schema),
        columns,
        tuple(keep_one_spelling(values.levels) for values in sorted_levels),
        records,
        int(totals["total"]) - int(counted["inside"]),
        int(counted["inside"]) - records,
        missing,
        condensed.rows,
        condensed.few,
    )


def describe_columns(coding: Coding, schema: Schema) -> dict[str, Column]:
    """What was declared of each column, by its role."""
    found = {}
    for role, name in zip(coding.kinds, schema.columns, strict=False):
        kind, binning, given = coding.kinds[role], schema.binning(name), schema.declared(name)
        found[role] = Column(name, role, kind, binning, declare(name, kind, binning, given), given is not None)
    return found


def list_domain(coded: ir.Table, column: Column, dropping: bool) -> Sorted:
    """The values of a declared quasi-identifier."""
    records = coded.select(value=column.value(coded), n=coded["w"] if "w" in coded.columns else 1)
    return list_values(records, "value", records.n, column, dropping)


def list_values(table: ir.Table, name: str, records: ir.Value, column: Column, dropping: bool) -> Sorted:
    """The values of a column and how many records hold each. Where others are dropped, only those that may be declared
    are looked at, so that a column can hold any number of others."""
    named = table.select(**{name: table[name], "records": records})
    likely = find_likely(named[name], column) if dropping else None
    named = named if likely is None else named.filter(named[name].isnull() | likely)
    grouped = named.group_by(name).aggregate(records=named.records.sum().fill_null(0))
    return column.sort(
        find_values(grouped, name, column.name, None if dropping and column.declaration else MOST_LEVELS)
    )


class Groups(Protocol):
    """The combinations of sensitive values that occur, with facts about the records of each."""

    def add_up(self) -> dict[str, Any]:
        """The facts, added up over all combinations."""

    def list_values(self, column: Column, records: str, dropping: bool) -> Sorted:
        """The values of a sensitive column; ``records`` names the fact that counts the records of each."""

    def filter(self, columns: Mapping[str, Column], values: Mapping[str, Sorted]) -> Groups:
        """The combinations in which every value has a level or is missing."""

    def filter_kept(self) -> Groups:
        """The combinations that have a row which is counted."""


@dataclass(frozen=True)
class FewGroups:
    """Combinations in memory."""

    rows: list[dict[str, Any]]
    facts: Sequence[str]

    def add_up(self) -> dict[str, Any]:
        return {name: sum(row[name] or 0 for row in self.rows) for name in self.facts}

    def list_values(self, column: Column, records: str, dropping: bool) -> Sorted:
        found: dict[Any, Any] = {}
        for row in self.rows:
            value = row[column.role]
            found[value] = found.get(value, 0) + (row[records] or 0)
        return column.sort([SeenValue(value, int(number)) for value, number in found.items()])

    def filter(self, columns: Mapping[str, Column], values: Mapping[str, Sorted]) -> FewGroups:
        rows = self.rows
        for role, found in values.items():
            rows = [row for row in rows if row[role] is None or row[role] in found.levels.places]
        return FewGroups(rows, self.facts)

    def filter_kept(self) -> FewGroups:
        return FewGroups([row for row in self.rows if row["kept_rows"] > 0], self.facts)


@dataclass(frozen=True)
class ManyGroups:
    """Combinations in an engine."""

    table: ir.Table
    facts: Sequence[str]

    def add_up(self) -> dict[str, Any]:
        found = self.table.aggregate(**{name: self.table[name].sum().fill_null(0) for name in self.facts})
        totals: dict[str, Any] = read(found).to_pylist()[0]
        return totals

    def list_values(self, column: Column, records: str, dropping: bool) -> Sorted:
        return list_values(self.table, column.role, self.table[records], column, dropping)

    def filter(self, columns: Mapping[str, Column], values: Mapping[str, Sorted]) -> ManyGroups:
        return ManyGroups(filter_values(self.table, columns, values), self.facts)

    def filter_kept(self) -> ManyGroups:
        return ManyGroups(self.table.filter(self.table.kept_rows > 0), self.facts)


def find_likely(value: ir.Value, column: Column) -> ir.BooleanValue | None:
    """Which values the engine itself can tell to be declared; None where only their labels tell."""
    if column.declaration is None or column.binning is not None or column.kind not in ("text", "boolean", "integer"):
        return None
    texts = column.declaration.spellings
    return holds_one_of(
        value, [int(text) for text in texts if WHOLE.fullmatch(text)] if column.kind == "integer" else texts
    )


WHOLE = re.compile(r"-?\d{1,18}")


def holds_one_of(value: ir.Value, keys: Any) -> ir.BooleanValue:
    """Whether a value is one of some; never NULL."""
    import ibis

    listed = list(keys)
    return value.isin(listed).fill_null(False) if listed else ibis.literal(False)


def find_inside(
    coded: ir.Table, flaws: Sequence[Flaw], columns: Mapping[str, Column], domains: Mapping[str, Sorted]
) -> ir.BooleanValue | None:
    """Which records are inside, as far as bins and quasi-identifiers go; None where all are."""
    bad = [coded[f"flaw{place}"] for place, flaw in enumerate(flaws) if flaw.outside]
    good = [is_level(columns[role].value(coded), values.levels) for role, values in domains.items()]
    conditions = [*(~each for each in bad), *good]
    return reduce(and_, conditions) if conditions else None


def is_level(value: ir.Value, levels: Levels) -> ir.BooleanValue:
    """Whether a value has a level, or is missing."""
    return value.isnull() | holds_one_of(value, [key for key in levels.places if key is not None])


def filter_values(table: ir.Table, columns: Mapping[str, Column], values: Mapping[str, Sorted]) -> ir.Table:
    """The rows whose sensitive values have a level, or are missing."""
    for role, found in values.items():
        table = table.filter(is_level(columns[role].value(table), found.levels))
    return table


def list_facts(
    coded: ir.Table,
    flaws: Sequence[Flaw],
    columns: Mapping[str, Column],
    inside: ir.BooleanValue | None,
    schema: Schema,
) -> dict[str, Any]:
    """What is counted in the one pass over all records."""
    present = reduce(and_, [coded[role].notnull() for role in columns]) if schema.missing == "drop" else None
    keep = both(present, inside)
    facts = {f"flaw{place}": count_rows(coded, schema, coded[f"flaw{place}"]) for place in range(len(flaws))}
    # Counting finds the missing quasi-identifiers of its own; only a rule that acts on them must read them here.
    watched = [role for role in columns if schema.missing != "category" or role.startswith("y")]
    facts |= {f"missing_{role}": count_records(coded, both(coded[role].isnull(), inside)) for role in watched}
    facts |= {"rows": count_rows(coded, schema), "total": count_records(coded), "inside": count_records(coded, inside)}
    return facts | {"kept_rows": count_rows(coded, schema, keep), "kept": count_records(coded, keep)}


def both(first: ir.BooleanValue | None, second: ir.BooleanValue | None) -> ir.BooleanValue | None:
    """Two conditions, of which None always holds."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def choose_records(
    coded: ir.Table,
    columns: Mapping[str, Column],
    inside: ir.BooleanValue | None,
    kept_values: Mapping[str, Sorted],
    spelt: Mapping[str, Sorted],
    schema: Schema,
) -> ir.Table:
    """The records to count, each level under one spelling."""
    chosen = coded if inside is None else coded.filter(inside)
    chosen = filter_values(chosen, columns, kept_values)
    if schema.missing == "drop":
        chosen = chosen.filter(reduce(and_, [chosen[role].notnull() for role in columns]))
    found = {
        role: join_spellings(chosen[role], spelt[role].levels) if role in spelt else chosen[role] for role in columns
    }
    if "w" in coded.columns:
        found["w"] = chosen["w"].cast("int64")
    return chosen.select(**found)


def join_spellings(value: ir.Value, levels: Levels) -> ir.Value:
    """The column with every spelling of a level written as the first one: 'true' and 'TRUE' as 'True'."""
    import ibis

    first = keep_one_spelling(levels).places
    names = {place: key for key, place in first.items()}
    others = [(value == key, names[place]) for key, place in levels.places.items() if key not in first]
    return ibis.cases(*others, else_=value) if others else value


def keep_one_spelling(levels: Levels) -> Levels:
    """The levels with one engine value each."""
    names: dict[int, Any] = {}
    for key in sorted((key for key in levels.places if key is not None), key=str):
        names.setdefault(levels.places[key], key)
    places = {key: place for key, place in levels.places.items() if key is None or names[place] == key}
    return replace(levels, places=places)


def count_records(coded: ir.Table, where: ir.BooleanValue | None = None) -> Any:
    """How many records satisfy a condition; rows of a count table stand for as many as their count says."""
    return coded.count(where=where) if "w" not in coded.columns else coded["w"].sum(where=where).fill_null(0.0)


def count_rows(coded: ir.Table, schema: Schema, where: ir.BooleanValue | None = None) -> Any:
    """How many rows of the source satisfy a condition: each is a record, but for those of a count table."""
    return coded.count(where=where) if isinstance(schema.count, str) else count_records(coded, where)


def check_flaws(totals: dict[str, Any], flaws: Sequence[Flaw], schema: Schema) -> None:
    """Refuses a source with a flaw; values outside the domain are one only where they are not left out."""
    for place, flaw in enumerate(flaws):
        rows = int(totals[f"flaw{place}"])
        if rows and not (flaw.outside and schema.outside == "drop"):
            raise flaw.refuse(f"{rows:,} such row{'s' if rows > 1 else ''} of {int(totals['rows']):,}")
    if totals["total"] > MOST_RECORDS:
        raise InvalidInput(
            f"the counts in column '{schema.count}' add up to too many records",
            allowed=f"at most {MOST_RECORDS} in all",
        )


def check_missing(missing: dict[str, int], schema: Schema) -> None:
    if schema.missing == "error" and missing:
        raise InvalidInput(
            "the source has missing values",
            got=", ".join(f"{number_of(number, 'record')} in '{name}'" for name, number in missing.items()),
            fix="use missing='category' to make them a category of their own, or missing='drop'",
        )


def check_some(totals: dict[str, Any], schema: Schema) -> None:
    """Refuses a source without records to count."""
    if not totals["rows"]:
        raise InvalidInput("the source has no records", got="0 rows", allowed="1 row or more below the column names")
    if not totals["total"]:
        raise InvalidInput(
            f"every count in column '{schema.count}' is zero", got="0 records", allowed="1 record or more"
        )
    if not totals["kept"]:
        raise InvalidInput(
            "no record is left: each has a missing value in a column in use",
            got=f"{number_of(int(totals['total']), 'record')} dropped",
            fix="use missing='category'",
        )


def find_values(grouped: ir.Table, key: str, name: str, most: int | None = MOST_LEVELS) -> list[SeenValue]:
    """The values of a column, of which there must not be too many, and their records."""
    found = read(grouped if most is None else grouped.limit(most + 2))
    if most is not None and len(found) > most + 1:
        raise InvalidInput(
            f"column '{name}' has more than {most:,} levels",
            allowed=f"up to {most:,}",
            fix=f"cut it into bins with bins={{'{name}': ...}}, or check that it is the right column",
        )
    return [
        SeenValue(value, int(number))
        for value, number in zip(found[key].to_pylist(), found["records"].to_pylist(), strict=True)
    ]
