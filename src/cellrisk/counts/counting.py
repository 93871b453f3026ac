"""Counting: one GROUP BY of the codes of all columns in use, inside DuckDB.

Each value has a code, the place of its label, and the combinations of codes that occur come out of DuckDB in their
order; what is wanted of them is numpy. If there are more of them than memory holds, they come out in parts, each of
whole cells; what risks need of the parts is added up, and no key is kept.

A record is outside if a value of it is not among the declared labels of its column, or cannot be put into a bin. By
the schema's rule such records are refused, or left out. Left out, the table is a function of what was declared and of
the records inside alone: one record more or less changes counts, and never a label or whether there is an answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    Column,
    bin_value,
    check_several,
    check_type,
    code_values,
    count_value,
    kind_of,
    plain_value,
)
from cellrisk.counts.contributions import Draw, PersonRecords, draw_securely, read_person_records
from cellrisk.counts.engine import MOST_CELLS, Relation, Resources, define, load_stream, new_name
from cellrisk.counts.filters import Part, read_part, take_part, with_part
from cellrisk.counts.profiles import MOST_NUMBERS, LabelledCounts, LevelCounts, NoProfiles, Profiles, merge_lists
from cellrisk.counts.schema import Schema, read_names
from cellrisk.counts.sources import open_records
from cellrisk.counts.table import Attribute, FrequencyTable, Homogeneity
from cellrisk.counts.unit import MOST_RECORDS, Unit
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Integers, find_starts
from cellrisk.system.checks import read_list, require_path, require_whole_number
from cellrisk.system.choices import EngineName, MissingRule, OutsideRule
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress

MOST_LEVELS = 100_000
MOST_IN_PART = 8_000_000
"""Combinations that are brought into memory at a time if there are more of them."""
BYTES_FOR_VALUE = 500
"""What a value of a quasi-identifier that is not declared takes."""
CountLists = tuple[Integers, Integers, Integers, Integers]
"""Lists of counts, as `merge_lists` gives them."""
Combinations = tuple[Sequence[Integers], Integers, "Integers | None"]
"""Codes of combinations, the records of each, and how many cells each cell stands for; None for one."""
Domains = Sequence[tuple[Domain, Integers]]
"""For each column its labels, and the place of each code among them."""
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

    relation: Any
    """A table if there may be more combinations than memory holds, or if some are left out; else a view, used once.
    Rows of Spark if there are more of them than come here."""
    columns: Sequence[Column]
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
    names, last = [f"c{index}" for index in range(len(asked))], f"c{len(asked)}"
    chosen = {name: _choose(relation, name, one) for name, one in zip(names, asked, strict=True)}
    if schema.person is not None:
        check_type(schema.person, relation.types[last])
        kind = relation.types[last]
        chosen["p"] = last if kind in INTEGER_BYTES else f"({plain_value(last, kind)})::VARCHAR"
    values, rows = _weigh(relation, chosen, schema, last)
    records = values.fetch("SELECT coalesce(sum(w), 0)::BIGINT FROM {rows}")[0][0]
    _check_some(records, rows, schema)
    total = "sum(w)" if relation.rows == "n" or isinstance(schema.count, str) else "count(*)"
    coded = [
        _code_column(values, total, name, one, kind_of(relation, name), records, schema, resources)
        for name, one in zip(names, asked, strict=True)
    ]
    columns, tables = [column for column, _ in coded], [table for _, table in coded]
    integer = "INTEGER" if records < 2**31 else "BIGINT"
    kept = rows > most or any(column.leaves_out(schema.missing) for column in columns)
    of_people = "" if schema.person is None else "p, "
    listed = ", ".join(names)
    code = _code_rows(values.name, tables, f"{of_people}w")
    query = f"SELECT {listed}, {total}::{integer} AS n FROM {code} GROUP BY ALL"
    groups = define(relation.connection, "TABLE" if kept else "VIEW", query)
    size = groups.fetch("SELECT count(*) FROM {rows}")[0][0] if kept else rows
    return Groups(groups, columns, size, records, f"SELECT {of_people}{listed}, w AS n FROM {code}")


def group_on_spark(rows: Any, asked: Sequence[AskedColumn], schema: Schema, resources: Resources) -> Groups:
    """Group rows of Spark by the values of the asked columns, as `group_records`.

    The values of each column are numbered here, and the rows are grouped by the numbers there. The combinations come
    here if they are few enough then.
    """
    names = [f"c{index}" for index in range(len(asked))]
    if isinstance(schema.count, str):
        name = f"c{len(asked)}"
        counts = rows.list_values(name)
        _weigh(counts, {}, schema, name)
        count = count_value(schema.count, name, counts.types[name])
        rows = rows.replace_values(name, f"SELECT {name} AS v, {count} AS i FROM {counts.name}")
        rows = replace(rows, frame=rows.frame.withColumn("n", rows.frame["n"] * rows.frame[name]))
    records, columns = rows.fetch("SELECT sum(n) FROM {rows}")[0][0], []
    _check_some(records, rows.size, schema)
    for name, one in zip(names, asked, strict=True):
        most = None if one.binning else most_values(one, schema, resources)  # bins may merge more values than that
        seen = rows.list_values(name, most)
        value = _choose(seen, name, one)
        values = seen.select({name: value, "w": "n"})
        column, codes = _code_column(values, "sum(w)", name, one, kind_of(seen, name), records, schema, resources)
        chosen = f"SELECT {name} AS v, {value} AS chosen FROM {seen.name}"
        joined = f"({chosen}) AS x JOIN {codes} AS m ON x.chosen IS NOT DISTINCT FROM m.v"
        rows = rows.replace_values(name, f"SELECT x.v, m.i::BIGINT AS i FROM {joined}")
        columns.append(column)
    coded = rows.keep(rows.frame.groupBy(*names).agg({"n": "sum"}).withColumnRenamed("sum(n)", "n"))
    relation = load_stream(rows.connection, coded.stream()) if coded.size <= resources.most_cells else coded
    return Groups(relation, columns, coded.size, records, "")


def _choose(relation: Relation, name: str, asked: AskedColumn) -> str:
    """Return SQL for the values of a column as they are compared: plain, or the numbers of bins."""
    kind = relation.types[name]
    check_type(asked.name, kind)
    return plain_value(name, kind) if asked.binning is None else bin_value(asked.name, name, kind, asked.binning)


def _code_rows(rows: str, tables: Sequence[str], others: str) -> str:
    """Return SQL for rows with the codes of the values, from a table of codes for each column; others stay as they are.

    Planning hundreds of joins at once takes DuckDB minutes, so it is done with some of them at a time.
    """
    for start in range(0, len(tables), MOST_JOINS):
        now = range(start, min(start + MOST_JOINS, len(tables)))
        columns = [f"m{index}.i AS c{index}" if index in now else f"x.c{index}" for index in range(len(tables))]
        joins = [f"JOIN {tables[index]} AS m{index} ON x.c{index} IS NOT DISTINCT FROM m{index}.v" for index in now]
        before = f"WITH rows AS MATERIALIZED (FROM {rows}) " if start else ""
        source = "rows" if start else rows
        rows = f"({before}SELECT {', '.join(columns)}, {others} FROM {source} AS x {' '.join(joins)})"
    return rows


def _weigh(relation: Relation, chosen: Mapping[str, str], schema: Schema, name: str) -> tuple[Relation, int]:
    """Return the columns in SQL with w, the records of each row, and how many rows the source has.

    name: that of the column of counts, if there is one.
    """
    rows = relation.fetch(f"SELECT coalesce(sum({relation.rows}), 0)::BIGINT FROM {{rows}}")[0][0]
    if not isinstance(schema.count, str):
        return relation.select({**chosen, "w": relation.rows}), rows
    count = count_value(schema.count, name, relation.types[name])
    view = relation.select({**chosen, "w": count})
    flawed = view.fetch(f"SELECT sum({relation.rows})::BIGINT FROM {{rows}} WHERE w = {NO_COUNT}")[0][0]
    if flawed:
        what = f"the count column '{schema.count}' holds values that are not counts"
        fix = f"correct column '{schema.count}' or name another with {argument('count')}; if counts were suppressed, "
        fix += "as c or <5, give those from before"
        got, allowed = f"{number_of(flawed, 'such row')} of {rows:,}", "whole numbers from 0 to 2^53"
        raise InvalidInput(what, got=got, allowed=allowed, fix=fix, code="unusable-values")
    if (view.fetch(f"SELECT sum(w::HUGEINT * {relation.rows}) FROM {{rows}}")[0][0] or 0) > MOST_RECORDS:
        what = f"the counts in column '{schema.count}' add up to too many records"
        raise InvalidInput(what, allowed=f"at most {MOST_RECORDS} in all", code="too-many-records")
    return view.select({**{column: column for column in chosen}, "w": f"w * {relation.rows}"}), rows


def most_values(asked: AskedColumn, schema: Schema, resources: Resources) -> int | None:
    """Return how many values a column may have.

    None for a declared column if others are left out: all values are read, and how many there are decides nothing.
    """
    declared = asked.levels is not None or (asked.binning is not None and bool(asked.binning.declared))
    if declared and schema.outside == "drop":
        return None
    return MOST_LEVELS if asked.sensitive or declared else resources.memory // BYTES_FOR_VALUE


def _code_column(
    values: Relation,
    total: str,
    name: str,
    asked: AskedColumn,
    kind: str,
    records: int,
    schema: Schema,
    resources: Resources,
) -> tuple[Column, str]:
    """Give the values of a column their codes; return also the table of values v and codes i in DuckDB.

    What is outside is refused, or by the schema's rule has the code of others.
    """
    strict, limit = schema.outside != "drop", most_values(asked, schema, resources)
    listed = "" if limit is None else f"LIMIT {limit + 2}"
    seen = dict(values.fetch(f"SELECT {name}, {total}::BIGINT FROM {{rows}} GROUP BY {name} {listed}"))
    if limit is not None and len(seen) - (None in seen) > limit:
        allowed = f"up to {MOST_LEVELS:,} levels, and so many values of a quasi-identifier as memory holds"
        bins = argument("bins", f"{{{asked.name!r}: ...}}")
        fix = f"cut it into bins with {bins}, or check that it is the right column"
        what = f"column '{asked.name}' has more than {limit:,} values"
        raise InvalidInput(what, allowed=allowed, fix=fix, code="too-many-levels")
    flawed = asked.binning is not None and NO_BIN in seen
    if flawed and seen[NO_BIN] and strict:
        what = f"column '{asked.name}' is to be binned but holds text, infinity, or numbers too large for its bins"
        fix = f"correct these records, use a larger width, or leave them out with {argument('outside', 'drop')}"
        got = f"{number_of(seen[NO_BIN], 'such row')} of {records:,}"
        raise InvalidInput(what, got=got, fix=fix, code="unusable-values")
    column = code_values(asked.name, seen, kind, asked.binning, asked.levels, strict)
    if flawed:
        column.codes[NO_BIN] = column.other
    table, small = new_name("codes"), "UTINYINT" if column.other < 256 else "UINTEGER"
    made = f"SELECT unnest($1::{values.types[name]}[]) AS v, unnest($2::{small}[]) AS i"
    given = [list(column.codes), list(column.codes.values())]
    values.connection.execute(f"CREATE TEMP TABLE {table} AS {made}", given)
    return column, table


def select_records(relation: Any, schema: Schema, resources: Resources, seed: int = 0) -> FrequencyTable:
    """Count the cells of a source; refuse or leave out the records that the schema says."""
    n_quasi = len(schema.quasi_identifiers)
    asked = [
        AskedColumn(name, schema.bins.get(name), schema.levels.get(name), name in schema.sensitive)
        for name in (*schema.quasi_identifiers, *schema.sensitive)
    ]
    most, here = resources.most_cells, isinstance(relation, Relation)
    group = partial(group_records, most=most) if here else group_on_spark
    groups = group(relation, asked, schema, resources)
    where, inside, kept, missing, domains = select(groups, schema)
    check_missing(missing, schema)
    _check_left(kept, groups.records, schema)
    for levels, _ in domains[n_quasi:]:
        check_several(levels)
    facts = {
        "missing_records": tuple((name, missing[name]) for name in schema.columns if name in missing),
        "dropped_records": inside - kept,
        "outside_records": groups.records - inside,
    }
    count = partial(count_table, schema, domains, facts)
    parts = 1 if groups.size <= most else ceil(groups.size / (min(most, MOST_IN_PART) or MOST_IN_PART))
    if not isinstance(groups.relation, Relation):
        table = count([groups.relation.count_vectors(where, n_quasi)])
        return replace(table, read_cells=partial(refuse_cells, groups.size, most))
    if schema.person is None:
        cell = ", ".join(f"c{index}" for index in range(n_quasi))
        of_part = [f" AND hash({cell}) % {parts} = {part}" for part in range(parts)] if parts > 1 else [""]
        table = count((*groups.fetch(where + part), None) for part in of_part)
        if table.n_records != kept:
            raise InvalidInput("the source changed while it was read", fix="try again", code="source-changed")
        return table if parts == 1 else replace(table, read_cells=partial(refuse_cells, groups.size, most))
    if parts > 1:
        what = "the table has too many combinations of values to limit the records of each person"
        got, allowed = f"{groups.size:,} combinations", f"up to {most:,} with this memory"
        fix = "use fewer or coarser quasi-identifiers, or allow more memory"
        raise InvalidInput(what, got=got, allowed=allowed, fix=fix, code="too-many-cells")
    named = " AND p IS NOT NULL" if schema.missing == "drop" else ""
    rows = f"SELECT * FROM ({groups.rows}) WHERE {where}{named}"
    people = read_person_records(groups.relation, rows, schema.unit, seed, relation.rows == "n")
    check_missing({schema.person: people.anonymous} if people.anonymous else {}, schema)
    _check_left(len(people.count), groups.records, schema)
    facts["dropped_records"] = inside - int(people.count.sum())
    return replace(count_people(people, schema, domains, count), seed=seed)


def count_table(
    schema: Schema, domains: Domains, facts: Mapping[str, Any], parts: Iterable[Combinations]
) -> FrequencyTable:
    """Count the cells of combinations and their records, which come in parts of whole cells; add known facts."""
    lists: list[list[CountLists]] = [[] for _ in schema.sensitive]
    kinds, rows = np.zeros(3, np.int64), 0
    for codes, count, times in parts:
        keys, of_attributes = count_cells(codes, count, domains, len(codes) - len(lists))
        cells = np.ones(len(of_attributes[0][2]) - 1, np.int64) if times is None else times
        for of_attribute, (level, positive, offsets) in zip(lists, of_attributes, strict=True):
            of_attribute.append(merge_lists(level, positive, offsets, cells))
        single = np.stack([np.diff(offsets) == 1 for *_, offsets in of_attributes])
        complete, none = single.all(axis=0) @ cells, (~single).all(axis=0) @ cells
        kinds += np.array([complete, cells.sum() - complete - none, none])
        rows += len(count)
    levels = [domain for domain, _ in domains[-len(lists) :]]
    attributes = [count_attribute(domain, of_parts) for domain, of_parts in zip(levels, lists, strict=True)]
    if not rows:
        attributes = [replace(attribute, profiles=NoProfiles(attribute.n_levels)) for attribute in attributes]
    return FrequencyTable(
        schema.quasi_identifiers,
        tuple(replace(attribute, several=schema.unit.contributions > 1) for attribute in attributes),
        Homogeneity(*kinds.tolist()),
        schema.missing,
        outside=schema.outside,
        read_cells=cache(partial(read_cells, domains, keys, of_attributes)),
        unit=schema.unit,
        **facts,
    )


def count_people(
    people: PersonRecords,
    schema: Schema,
    domains: Domains,
    count: Callable[[list[Combinations]], FrequencyTable],
    draw: Draw | None = None,
) -> FrequencyTable:
    """Count the cells of the records that are kept of each person: by the seed, or by another draw."""
    unit, kept = schema.unit, people.keep(schema.unit, draw)
    table = count([(*kept.combine(), None)])
    if table.n_records and unit.contributions > 1 and draw is None:
        codes, n_quasi = kept.codes, len(schema.quasi_identifiers)
        starts = find_starts(codes[:n_quasi])
        cell = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(codes[0])))
        levels = [places[code] for code, (_, places) in zip(codes, domains, strict=True)][n_quasi:]
        attributes = [
            replace(attribute, find_people=cache(partial(kept.contributions, cell, level, attribute.n_levels)))
            for attribute, level in zip(table.attributes, levels, strict=True)
        ]
        table = replace(table, attributes=tuple(attributes))
    again = partial(count_people, people, schema, domains, count, draw_securely)
    left_out = int(people.count.sum() - kept.count.sum())
    facts: Any = {"beyond_records": left_out, "anonymous_records": people.anonymous, "draw_again": again}
    return replace(table, people_by_records=people.by_number(unit), **facts)


def select(groups: Groups, schema: Schema) -> tuple[str, int, int, dict[str, int], Domains]:
    """Select the records that are counted, and the labels of their values.

    Returns SQL for the combinations that they have; the records whose values are all among the declared labels, and
    those of them that are counted; those with a missing value, by column; and for each column its labels, and the place
    of each code among them. A level with counts of zero only occurs; a missing value does not.
    """
    columns, n_quasi = groups.columns, len(schema.quasi_identifiers)
    if not any(column.leaves_out(schema.missing) for column in columns):
        where, n_inside, n_kept = "n > 0", groups.records, groups.records
        absent = [column.records.get(None) for column in columns]
        codes = [
            [code for value, code in column.codes.items() if column.records[value] or (of_level and value is not None)]
            for column, of_level in zip(columns, [False] * n_quasi + [True] * len(schema.sensitive), strict=True)
        ]
    else:
        inside = " AND ".join(f"c{index} <> {column.other}" for index, column in enumerate(columns))
        present = " AND ".join(f"c{index} <> {column.missing}" for index, column in enumerate(columns))
        where = f"{inside} AND {present}" if schema.missing == "drop" else inside
        facts = [f"coalesce(sum(n) FILTER (WHERE {condition}), 0)::BIGINT" for condition in (inside, where)]
        for index, column in enumerate(columns):
            facts.append(f"(sum(n) FILTER (WHERE {inside} AND c{index} = {column.missing}))::BIGINT")
            occurs = "n > 0" if index < n_quasi else f"(n > 0 OR c{index} <> {column.missing})"
            facts.append(f"array_agg(DISTINCT c{index}) FILTER (WHERE {where} AND {occurs})")
        n_inside, n_kept, *counted = groups.relation.fetch(f"SELECT {', '.join(facts)} FROM {{rows}}")[0]
        absent, codes, where = counted[::2], [occurring or [] for occurring in counted[1::2]], f"{where} AND n > 0"
    missing = {column.name: number for column, number in zip(columns, absent, strict=True) if number}
    domains = [column.domain(occurring) for column, occurring in zip(columns, codes, strict=True)]
    return where, n_inside, n_kept, missing, domains


def _check_some(records: int, rows: int, schema: Schema) -> None:
    if not records and schema.outside != "drop":
        counts = f"every count in column '{schema.count}' is zero", "0 records", "give 1 record or more"
        nothing = "the source has no records", "0 rows", "give it 1 row or more below the column names"
        what, got, fix = counts if rows else nothing
        raise InvalidInput(what, got=got, fix=fix, code="no-records")


def _check_left(left: int, records: int, schema: Schema) -> None:
    if not left and schema.outside != "drop":
        what, fix = "no record is left: each has a missing value in a column in use", argument("missing", "category")
        raise InvalidInput(what, got=f"{records:,} dropped", fix=f"use {fix}", code="no-records")


def check_missing(missing: Mapping[str, int], schema: Schema) -> None:
    if schema.missing == "error" and missing:
        got = ", ".join(f"{number_of(number, 'record')} in '{name}'" for name, number in missing.items())
        category, drop = argument("missing", "category"), argument("missing", "drop")
        fix = f"use {category} to make them a category of their own, or {drop}"
        raise InvalidInput("the source has missing values", got=got, fix=fix, code="missing-values")


def refuse_cells(combinations: int, most: int, _: int) -> Cells:
    """Refuse the cells of a table that has too many to keep their keys."""
    what = "the table has too many cells to bring their keys into memory"
    got, allowed = f"{combinations:,} combinations", f"up to {most:,} with this memory, and {MOST_CELLS:,} in all"
    fix = "use fewer or coarser quasi-identifiers, or allow more memory; assessing needs no keys"
    raise InvalidInput(what, got=got, allowed=allowed, fix=fix, code="too-many-cells")


def count_cells(
    codes: Sequence[Integers], count: Integers, domains: Domains, n_quasi: int
) -> tuple[list[Integers], list[tuple[Integers, Integers, Integers]]]:
    """Number the cells of combinations in their order, and add up their counts of each sensitive attribute.

    Returns the codes of each cell, one quasi-identifier at a time, and for each attribute the level and the count of
    each positive count, and where the counts of each cell begin.
    """
    starts, lists, attributes = find_starts(codes[:n_quasi]), [], codes[n_quasi:]
    for code, (levels, label_of) in zip(attributes, domains[-len(attributes) :], strict=True):
        one = label_of.astype(np.min_scalar_type(len(levels)))[code], count, np.append(starts, len(count))
        lists.append(add_up(*one, len(levels)) if len(attributes) > 1 else one)
    return [code[starts] for code in codes[:n_quasi]], lists


def read_cells(
    domains: Domains,
    keys: Sequence[Integers],
    lists: Sequence[tuple[Integers, Integers, Integers]],
    attribute: int,
) -> Cells:
    """Return the cells that `count_cells` found with their keys, and the counts of one sensitive attribute."""
    level, count, offsets = lists[attribute]
    quasi, levels = domains[: len(keys)], domains[len(keys) + attribute][0]
    codes = np.stack([label_of[code] for code, (_, label_of) in zip(keys, quasi, strict=True)], axis=1)
    cell = np.repeat(np.arange(len(codes)), np.diff(offsets))
    level, count = level.astype(np.int64), count.astype(np.int64)
    return Cells(levels.name, levels.labels, tuple(domain for domain, _ in quasi), codes, cell, level, count)


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


def tabulate(
    source: Any,
    quasi_identifiers: str | Sequence[str],
    sensitive: str | Sequence[str],
    *,
    bins: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    count: str | bool | None = None,
    missing: MissingRule = "category",
    outside: OutsideRule = "error",
    table: str | None = None,
    engine: EngineName | None = None,
    memory_limit: str | int | None = None,
    encoding: str | None = None,
    wide: Sequence[str] = (),
    where: Mapping[str, Any] | Part | None = None,
    metadata: str | os.PathLike[str] | None = None,
    person: str | None = None,
    contributions: int | None = None,
    per_group: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FrequencyTable:
    """How many records share each combination of quasi-identifiers, and how their sensitive values are spread?

    The counts are exact. The result holds no records. It holds the cells with their keys (`cells`) up to 20 million
    combinations of values, and as memory allows; once pickled, it holds none.

    Parameters
    ----------
    source
        Path or glob of CSV or Parquet files, a pandas, polars or narwhals frame, a pyarrow table or dataset, any object
        that gives a stream of Arrow batches, a DuckDB relation, a Spark DataFrame; a file of Excel,
        SPSS, SAS or Stata, Feather, JSON lines, a zip with one table; or a DuckDB file or a database's address, with
        ``table``. Of a workbook with several sheets, ``table`` names one.
    quasi_identifiers, sensitive
        A column name, or a list of them.
    bins
        For a column of numbers, a width w, which gives (k*w, (k+1)*w], or a list of edges; right-closed. Edges declare
        their bins, and one on either side for what lies outside.
    levels
        For a column, all its levels in order; default the observed ones, sorted. They are the declared domain, and
        their labels are as declared, however the source spells them: True counts true and TRUE in.
    count
        The column of counts, if each row stands for that many records. False or "none" says that each row is a
        person; without it, a source with a column that is named like counts and not in use is refused.
    missing
        "category" (missing values are a category of their own), "drop" (records with one are left out, and the summary
        says how many), or "error".
    outside
        What becomes of records outside the declared labels: those with a value that is not among the declared levels of
        its column, or that cannot be put into a bin. "error" refuses the source; "drop" leaves them out, so that what
        is released depends on what was declared and not on such a record. Then a table may hold no record at all.
    table
        The table of a DuckDB file or of a database's address, or the sheet of a workbook.
    engine
        "duckdb" (embedded, the default for files and frames) or "spark".
    memory_limit
        What the embedded engine may hold, for example "4GB"; past it, it spills to a private folder. Default a share of
        the memory that is free.
    encoding
        That of text files which are not UTF-8, for example "latin-1"; UTF-16 is recognised by its mark.
    wide
        The columns of counts of a wide table, each of which is named like a level of the one sensitive attribute. The
        attribute has no column then, and ``sensitive`` gives it a name.
    where
        A part of the people: what columns hold, such as ``{"sex": "f", "age": {"from": 18, "below": 65}}``. Default
        everybody.
    metadata
        A file that declares levels and bounds of columns: CSVW or a Table Schema (.json). What ``bins`` and ``levels``
        say of a column goes before it; bounds turn a width into edges.
    person, contributions, per_group
        The column that identifies people, and how many records of one person are kept: so many in all, and so many in
        one count. Which ones is drawn for each person alone: by ``seed`` here, and by secure random bits in `release`.
        A record without a person is a person of its own here, and is left out in `release` and by the rule "drop" of
        ``missing``. Without ``person``, ``contributions`` states a bound that nobody checks. Default one record per
        person, which is assumed.
    seed
        Of that draw.
    progress
        Called now and then with the share of the running step that is done.

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": ["f", "f", "m", "m"], "job": ["a", "a", "a", "b"]})
    >>> table = tabulate(people, "sex", "job")
    >>> print(table)
    4 records in 2 groups of sex; sensitive: job (2 levels)
    >>> list(table.profiles().rows())
    [((2,), 1), ((1, 1), 1)]
    """
    quasi, named = read_names(quasi_identifiers, "quasi_identifiers"), read_names(sensitive, "sensitive")
    if metadata is not None:
        from cellrisk.counts.metadata import read_metadata

        require_path("metadata", metadata)
        bins, levels = read_metadata(metadata).declare((*quasi, *named), bins, levels)
    columns = tuple(read_list("wide", wide, "columns"))
    unit = Unit.read(person, contributions, per_group)
    schema = Schema(quasi, named, bins, levels, count, missing, outside, columns, person, unit)
    require_whole_number("seed", seed, 0)
    part = read_part(where)
    part.check(schema.sensitive)
    resources = Resources.of(memory_limit, progress)
    opened: Any = {"table": table, "engine": engine, "encoding": encoding}
    opened["may_stay"] = not (part or columns or person)
    with open_records(source, with_part(schema, part), resources, **opened) as records:
        return select_records(take_part(records, schema, part), schema, resources, seed)
