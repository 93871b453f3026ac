"""Counting: one GROUP BY of the codes of all columns in use, inside DuckDB.

Each value has a code, the place of its label, and the combinations of codes that occur come out of DuckDB in their
order; what is wanted of them is numpy. If there are more of them than memory holds, they come out in parts, each of
whole cells; what risks need of the parts is added up, and no key is kept.

A record is outside if a value of it is not among the declared labels of its column, or cannot be put into a bin. By
the schema's rule such records are refused, or left out. Left out, the table is a function of what was declared and of
the records inside alone: one record more or less changes counts, and never a label or whether there is an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from cellrisk.counts.cells import Cells, Domain
from cellrisk.counts.columns import (
    INTEGER_BYTES,
    NO_BIN,
    NO_COUNT,
    Binning,
    bin_value,
    check_type,
    count_value,
    kind_of,
    plain_value,
    refuse_bins,
    refuse_count,
)
from cellrisk.counts.contributions import Draw, draw_securely
from cellrisk.counts.engine import Relation, Resources, name_relation, new_name
from cellrisk.counts.levels import Column, check_several, code_values
from cellrisk.counts.person_records import PersonRecords, read_person_records
from cellrisk.counts.profiles import MOST_NUMBERS, LabelledCounts, LevelCounts, NoProfiles, Profiles, merge_lists
from cellrisk.counts.schema import Schema
from cellrisk.counts.table import Attribute, FrequencyTable, Homogeneity
from cellrisk.counts.unit import MOST_RECORDS
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Integers, find_starts
from cellrisk.system.formatting import number_of

MOST_LEVELS = 100_000
MOST_CELLS = 20_000_000
"""Combinations of the values of all columns in use that are brought into memory with their keys."""
MOST_IN_PART = 8_000_000
"""Combinations that are brought into memory at a time if there are more of them."""
BYTES_FOR_ROW, BYTES_FOR_VALUE = 64, 500
"""What such a combination takes while it is counted, and a value of a quasi-identifier that is not declared."""
CountLists = tuple[Integers, Integers, Integers, Integers]
"""Lists of counts, as `merge_lists` gives them."""
MOST_JOINS = 20
"""Columns whose values are replaced by codes in one query."""
MOST_LABELS = 100
"""Vectors of counts are kept with their labels up to so many levels."""


class AskedColumn(NamedTuple):
    """How the values of one column are to become labels."""

    name: str
    binning: Binning | None
    levels: Sequence[Any] | None
    sensitive: bool = False


@dataclass(frozen=True, eq=False)
class Groups:
    """The combinations of codes that occur, in DuckDB: c0, c1, ..., and n records of each."""

    relation: Relation
    """A table if there may be more combinations than memory holds, or if some are left out; else a view, used once."""
    columns: tuple[Column, ...]
    size: int
    """How many combinations there are; of a view, at most."""
    records: int
    rows: str
    """SQL for what is grouped: the codes c0, c1, ... of each row, its records n, and p, if there are people."""

    def fetch(self, where: str = "true") -> tuple[list[Integers], Integers]:
        """Return the codes of the combinations that satisfy a condition, in their order, and the records of each."""
        query = f"SELECT * FROM {self.relation.name} WHERE {where} ORDER BY ALL"
        *codes, count = map(np.ma.getdata, self.relation.connection.sql(query).fetchnumpy().values())
        return codes, count


def group_records(
    relation: Relation, asked: Sequence[AskedColumn], schema: Schema, resources: Resources, most: int = 0
) -> Groups:
    """Group the records by the values of the asked columns, c0, c1, ...; refuse values that cannot be used."""
    chosen = {}
    for place, (name, binning, *_) in enumerate(asked):
        source, kind = f"c{place}", relation.types[f"c{place}"]
        check_type(name, kind)
        chosen[source] = plain_value(source, kind) if binning is None else bin_value(name, source, kind, binning)
    if schema.person is not None:
        last = f"c{len(asked)}"
        check_type(schema.person, relation.types[last])
        kind = relation.types[last]
        chosen["p"] = last if kind in INTEGER_BYTES else f"({plain_value(last, kind)})::VARCHAR"
    values, rows = _weigh(relation, chosen, schema, len(asked))
    records = values.fetch("SELECT coalesce(sum(w), 0)::BIGINT FROM {rows}")[0][0]
    if not records and schema.outside != "drop":
        counts = f"every count in column '{schema.count}' is zero", "0 records", "give 1 record or more"
        nothing = "the source has no records", "0 rows", "give it 1 row or more below the column names"
        what, got, fix = counts if rows else nothing
        raise InvalidInput(what, got=got, fix=fix, code="no-records")
    total = "sum(w)" if relation.grouped or isinstance(schema.count, str) else "count(*)"
    connection, columns, tables = relation.connection, [], []
    for place, one in enumerate(asked):
        kind, strict = kind_of(relation, f"c{place}"), schema.outside != "drop"
        declared = one.levels is not None or (one.binning is not None and bool(one.binning.declared))
        limit = MOST_LEVELS if one.sensitive or declared else resources.memory // BYTES_FOR_VALUE
        # Of a declared column all values are read if others are left out: how many there are decides nothing then.
        column = _code_column(
            values, total, place, one, kind, records, strict, None if declared and not strict else limit
        )
        columns.append(column)
        tables.append(new_name("codes"))
        small = "UTINYINT" if column.other < 256 else "UINTEGER"
        made = f"SELECT unnest($1::{values.types[f'c{place}']}[]) AS v, unnest($2::{small}[]) AS i"
        given = [list(column.codes), list(column.codes.values())]
        connection.execute(f"CREATE TEMP TABLE {tables[-1]} AS {made}", given)
    name, integer = new_name("groups"), "INTEGER" if records < 2**31 else "BIGINT"
    kept = rows > most or any(column.leaves_out(schema.missing) for column in columns)
    others = ["w", *(["p"] if schema.person is not None else [])]
    listed, coded = ", ".join(f"c{place}" for place in range(len(asked))), _code_rows(values.name, tables, others)
    connection.execute(
        f"CREATE TEMP {'TABLE' if kept else 'VIEW'} {name} AS "
        f"SELECT {listed}, {total}::{integer} AS n FROM {coded} GROUP BY ALL"
    )
    groups = name_relation(connection, name)
    size = groups.fetch("SELECT count(*) FROM {rows}")[0][0] if kept else rows
    of_people = "p, " if schema.person is not None else ""
    return Groups(groups, tuple(columns), size, records, f"SELECT {of_people}{listed}, w AS n FROM {coded}")


def _code_rows(rows: str, tables: Sequence[str], others: Sequence[str]) -> str:
    """Return SQL for rows with the codes of the values, from a table of codes for each column; others stay as they are.

    Planning hundreds of joins at once takes DuckDB minutes, so it is done with some of them at a time.
    """
    for start in range(0, len(tables), MOST_JOINS):
        now = range(start, min(start + MOST_JOINS, len(tables)))
        columns = [f"m{place}.i AS c{place}" if place in now else f"x.c{place}" for place in range(len(tables))]
        joins = [f"JOIN {tables[place]} AS m{place} ON x.c{place} IS NOT DISTINCT FROM m{place}.v" for place in now]
        before = f"WITH rows AS MATERIALIZED (FROM {rows}) " if start else ""
        source = "rows" if start else rows
        rows = f"({before}SELECT {', '.join([*columns, *others])} FROM {source} AS x {' '.join(joins)})"
    return rows


def _weigh(relation: Relation, chosen: Mapping[str, str], schema: Schema, place: int) -> tuple[Relation, int]:
    """Return the columns in SQL with w, the records of each row, and how many rows the source has."""
    rows = relation.fetch(f"SELECT coalesce(sum({relation.rows}), 0)::BIGINT FROM {{rows}}")[0][0]
    if not isinstance(schema.count, str):
        return relation.select({**chosen, "w": relation.rows}), rows
    count = count_value(schema.count, f"c{place}", relation.types[f"c{place}"])
    view = relation.select({**chosen, "w": count})
    flawed = view.fetch(f"SELECT sum({relation.rows})::BIGINT FROM {{rows}} WHERE w = {NO_COUNT}")[0][0]
    if flawed:
        raise refuse_count(schema.count, flawed, rows)
    if (view.fetch(f"SELECT sum(w::HUGEINT * {relation.rows}) FROM {{rows}}")[0][0] or 0) > MOST_RECORDS:
        raise InvalidInput(
            f"the counts in column '{schema.count}' add up to too many records",
            allowed=f"at most {MOST_RECORDS} in all",
            code="too-many-records",
        )
    return view.select({**{column: column for column in chosen}, "w": f"w * {relation.rows}"}), rows


def _code_column(
    values: Relation,
    total: str,
    place: int,
    asked: AskedColumn,
    kind: str,
    records: int,
    strict: bool,
    limit: int | None,
) -> Column:
    """Give the values of a column their codes; strict: refuse what is outside, else give it the code of others."""
    listed = "" if limit is None else f"LIMIT {limit + 2}"
    seen = dict(values.fetch(f"SELECT c{place}, {total}::BIGINT FROM {{rows}} GROUP BY c{place} {listed}"))
    if limit is not None and len(seen) - (None in seen) > limit:
        raise InvalidInput(
            f"column '{asked.name}' has more than {limit:,} values",
            allowed=f"up to {MOST_LEVELS:,} levels, and so many values of a quasi-identifier as memory holds",
            fix=f"cut it into bins with {argument('bins', f'{{{asked.name!r}: ...}}')}, or check that it is the right "
            "column",
            code="too-many-levels",
        )
    flawed = asked.binning is not None and NO_BIN in seen
    if flawed and seen[NO_BIN] and strict:
        raise refuse_bins(asked.name, seen[NO_BIN], records)
    column = code_values(asked.name, seen, kind, asked.binning, asked.levels, strict)
    if flawed:
        column.codes[NO_BIN] = column.other
    return column


def select_records(relation: Relation, schema: Schema, resources: Resources, seed: int = 0) -> FrequencyTable:
    """Count the cells of a source; refuse or leave out the records that the schema says."""
    n_quasi = len(schema.quasi_identifiers)
    asked = [
        AskedColumn(name, schema.bins.get(name), schema.levels.get(name), name in schema.sensitive)
        for name in (*schema.quasi_identifiers, *schema.sensitive)
    ]
    most = min(MOST_CELLS, resources.memory // BYTES_FOR_ROW)
    groups = group_records(relation, asked, schema, resources, most)
    selection = select(groups, schema)
    check_missing(selection.missing, schema)
    _check_left(selection.records, groups.records, schema)
    for levels, _ in selection.domains[n_quasi:]:
        check_several(levels)
    parts = 1 if groups.size <= most else ceil(groups.size / (min(most, MOST_IN_PART) or MOST_IN_PART))
    if schema.person is None:
        cell = ", ".join(f"c{place}" for place in range(n_quasi))
        of_part = [f" AND hash({cell}) % {parts} = {part}" for part in range(parts)] if parts > 1 else [""]
        table = selection.count(groups.fetch(selection.where + part) for part in of_part)
        if table.n_records != selection.records:
            raise InvalidInput("the source changed while it was read", fix="try again", code="source-changed")
        return table if parts == 1 else replace(table, read_cells=partial(refuse_cells, groups.size, most))
    if parts > 1:
        raise InvalidInput(
            "the table has too many combinations of values to limit the records of each person",
            got=f"{groups.size:,} combinations",
            allowed=f"up to {most:,} with this memory",
            fix="use fewer or coarser quasi-identifiers, or allow more memory",
            code="too-many-cells",
        )
    named = " AND p IS NOT NULL" if schema.missing == "drop" else ""
    rows = f"SELECT * FROM ({groups.rows}) WHERE {selection.where}{named}"
    people = read_person_records(groups.relation, rows, schema.unit, seed, relation.grouped)
    check_missing({schema.person: people.anonymous} if people.anonymous else {}, schema)
    _check_left(len(people.count), groups.records, schema)
    return replace(selection.count_people(people), seed=seed)


@dataclass(frozen=True, eq=False)
class Selection:
    """Which records of a source are counted, and how their values are labelled."""

    schema: Schema
    where: str
    """SQL for the combinations that they have."""
    outside: int
    """Records with values that are not among the declared labels."""
    dropped: int
    """Other records that are left out because a value is missing."""
    records: int
    missing: dict[str, int]
    """Records inside with a missing value, by column."""
    domains: Sequence[tuple[Domain, Integers]]
    """For each column its labels, and the place of each code among them."""

    def count(self, parts: Iterable[tuple[Sequence[Integers], Integers]]) -> FrequencyTable:
        """Count the cells of combinations and their records, which come in parts of whole cells."""
        n_quasi = len(self.schema.quasi_identifiers)
        lists: list[list[CountLists]] = [[] for _ in self.schema.sensitive]
        kinds, records = np.zeros(3, np.int64), 0
        for codes, count in parts:
            counted = count_cells(codes, count, self.domains, n_quasi)
            for of_attribute, (level, positive, offsets) in zip(lists, counted.lists, strict=True):
                of_attribute.append(merge_lists(level, positive, offsets, np.ones(len(offsets) - 1, np.int64)))
            kinds, records = kinds + counted.homogeneity, records + int(count.sum())
        levels = [domain for domain, _ in self.domains[n_quasi:]]
        attributes = [count_attribute(domain, of_parts) for domain, of_parts in zip(levels, lists, strict=True)]
        if not records:
            attributes = [replace(attribute, profiles=NoProfiles(attribute.n_levels)) for attribute in attributes]
        return FrequencyTable(
            self.schema.quasi_identifiers,
            tuple(replace(attribute, several=self.schema.unit.contributions > 1) for attribute in attributes),
            Homogeneity(*kinds.tolist()),
            self.schema.missing,
            tuple((name, self.missing[name]) for name in self.schema.columns if name in self.missing),
            self.dropped,
            self.schema.outside,
            self.outside,
            counted.read,
            self.schema.unit,
        )

    def count_people(self, people: PersonRecords, draw: Draw | None = None) -> FrequencyTable:
        """Count the cells of the records that are kept of each person: by the seed, or by another draw."""
        unit, kept = self.schema.unit, people.keep(self.schema.unit, draw)
        table = self.count([kept.combine()])
        if table.n_records and unit.contributions > 1 and draw is None:
            codes, n_quasi = kept.codes, len(self.schema.quasi_identifiers)
            starts = find_starts(codes[:n_quasi])
            cell = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(codes[0])))
            levels = [places[code] for code, (_, places) in zip(codes, self.domains, strict=True)][n_quasi:]
            attributes = [
                replace(attribute, find_people=cache(partial(kept.contributions, cell, level, attribute.n_levels)))
                for attribute, level in zip(table.attributes, levels, strict=True)
            ]
            table = replace(table, attributes=tuple(attributes))
        again = partial(self.count_people, people, draw_securely)
        left_out = int(people.count.sum() - kept.count.sum())
        facts: Any = {"beyond_records": left_out, "anonymous_records": people.anonymous, "draw_again": again}
        facts["dropped_records"] = self.dropped + self.records - int(people.count.sum())
        return replace(table, people_by_records=people.by_number(unit), **facts)


def select(groups: Groups, schema: Schema) -> Selection:
    """Select the records that are counted. A level with counts of zero only occurs; a missing value does not."""
    columns, n_quasi = groups.columns, len(schema.quasi_identifiers)
    if not any(column.leaves_out(schema.missing) for column in columns):
        where, n_inside, n_kept = "n > 0", groups.records, groups.records
        absent = [column.records.get(None) for column in columns]
        codes = [column.list_codes(counted=place < n_quasi) for place, column in enumerate(columns)]
    else:
        inside = " AND ".join(f"c{place} <> {column.other}" for place, column in enumerate(columns))
        present = " AND ".join(f"c{place} <> {column.missing}" for place, column in enumerate(columns))
        where = f"{inside} AND {present}" if schema.missing == "drop" else inside
        facts = [f"coalesce(sum(n) FILTER ({condition}), 0)::BIGINT" for condition in (inside, where)]
        for place, column in enumerate(columns):
            facts.append(f"(sum(n) FILTER ({inside} AND c{place} = {column.missing}))::BIGINT")
            counted = "n > 0" if place < n_quasi else f"(n > 0 OR c{place} <> {column.missing})"
            facts.append(f"list(DISTINCT c{place}) FILTER ({where} AND {counted})")
        n_inside, n_kept, *found = groups.relation.fetch(f"SELECT {', '.join(facts)} FROM {{rows}}")[0]
        absent, codes, where = found[::2], [occurring or [] for occurring in found[1::2]], f"{where} AND n > 0"
    missing = {column.name: number for column, number in zip(columns, absent, strict=True) if number}
    domains = [column.domain(occurring) for column, occurring in zip(columns, codes, strict=True)]
    return Selection(schema, where, groups.records - n_inside, n_inside - n_kept, n_kept, missing, domains)


def _check_left(left: int, records: int, schema: Schema) -> None:
    if not left and schema.outside != "drop":
        raise InvalidInput(
            "no record is left: each has a missing value in a column in use",
            got=f"{records:,} dropped",
            fix=f"use {argument('missing', 'category')}",
            code="no-records",
        )


def check_missing(missing: Mapping[str, int], schema: Schema) -> None:
    if schema.missing == "error" and missing:
        raise InvalidInput(
            "the source has missing values",
            got=", ".join(f"{number_of(number, 'record')} in '{name}'" for name, number in missing.items()),
            fix=f"use {argument('missing', 'category')} to make them a category of their own, or "
            f"{argument('missing', 'drop')}",
            code="missing-values",
        )


def refuse_cells(combinations: int, most: int, _: int) -> Cells:
    """Refuse the cells of a table that has too many to keep their keys."""
    raise InvalidInput(
        "the table has too many cells to bring their keys into memory",
        got=f"{combinations:,} combinations of values",
        allowed=f"up to {most:,} with this memory, and {MOST_CELLS:,} in all",
        fix="use fewer or coarser quasi-identifiers, or allow more memory; assessing needs no keys",
        code="too-many-cells",
    )


@dataclass(frozen=True, eq=False)
class CountedCells:
    """The cells in the order of their keys, and the positive counts of each attribute in them."""

    domains: Sequence[tuple[Domain, Integers]]
    """For each column its labels, and the place of each code among them."""
    keys: Sequence[Integers]
    """The codes of each cell, one quasi-identifier at a time."""
    lists: Sequence[tuple[Integers, Integers, Integers]]
    """For each attribute the level and the count of each positive count, and where the counts of each cell begin."""

    @property
    def homogeneity(self) -> tuple[int, int, int]:
        """Cells in which all attributes, some of them, and none takes one value only."""
        single = np.stack([np.diff(offsets) == 1 for *_, offsets in self.lists])
        complete, none = int(single.all(axis=0).sum()), int((~single).all(axis=0).sum())
        return complete, single.shape[1] - complete - none, none

    def read(self, attribute: int) -> Cells:
        """The cells with their keys, and the counts of one sensitive attribute."""
        level, count, offsets = self.lists[attribute]
        quasi, levels = self.domains[: len(self.keys)], self.domains[len(self.keys) + attribute][0]
        codes = np.stack([place[code] for code, (_, place) in zip(self.keys, quasi, strict=True)], axis=1)
        cell = np.repeat(np.arange(len(codes)), np.diff(offsets))
        domains = tuple(domain for domain, _ in quasi)
        level, count = level.astype(np.int64), count.astype(np.int64)
        return Cells(levels.name, levels.labels, domains, codes, cell, level, count)


def count_cells(
    codes: Sequence[Integers], count: Integers, domains: Sequence[tuple[Domain, Integers]], n_quasi: int
) -> CountedCells:
    """Number the cells of combinations in their order, and add up their counts of each sensitive attribute."""
    starts, lists = find_starts(codes[:n_quasi]), []
    for code, (levels, place) in zip(codes[n_quasi:], domains[n_quasi:], strict=True):
        one = place.astype(np.min_scalar_type(len(levels)))[code], count, np.append(starts, len(count))
        lists.append(add_up(*one, len(levels)) if len(codes) > n_quasi + 1 else one)
    return CountedCells(domains, [code[starts] for code in codes[:n_quasi]], lists)


def add_up(level: Integers, count: Integers, offsets: Integers, n_levels: int) -> tuple[Integers, Integers, Integers]:
    """The counts of one of several attributes, of combinations with the values of the others."""
    cell = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    pair = cell * n_levels + level
    order = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    pairs = pair[order][starts]
    total = np.add.reduceat(count[order].astype(np.int64), starts) if len(starts) else count
    return pairs % n_levels, total, np.searchsorted(pairs // n_levels, np.arange(len(offsets)))


def count_attribute(domain: Domain, parts: Sequence[CountLists]) -> Attribute:
    """An attribute from the distinct lists of counts in each part of the cells."""
    levels, counts, _, cells = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    lengths = np.concatenate([np.diff(offsets) for _, _, offsets, _ in parts])
    level, count, offsets, cells = merge_lists(levels, counts, np.concatenate([[0], np.cumsum(lengths)]), cells)
    lengths = np.diff(offsets)
    profiles = Profiles.from_lists(count, offsets, cells, len(domain))
    sizes = np.repeat(np.add.reduceat(count, offsets[:-1]) * cells, lengths)
    spread = LevelCounts.from_pairs(domain.labels, level, count, np.repeat(cells, lengths), sizes)
    vectors = None
    if len(domain) <= MOST_LABELS and len(cells) * len(domain) <= MOST_NUMBERS:
        dense = np.zeros((len(cells), len(domain)), np.int64)
        dense[np.repeat(np.arange(len(cells)), lengths), level] = count
        vectors = LabelledCounts.from_cells(dense, cells)
    return Attribute(domain.name, spread, profiles, domain.declared, domain.missing, vectors)
