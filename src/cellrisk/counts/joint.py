"""Several tables of the same people, counted once: each record's cell in every table.

One grouping by all columns of all tables and the sensitive attribute leaves at most as many rows as there are records.
They come out of DuckDB as packed numbers, and the cells of each table are numbered here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.binning import Binning, make_binning
from cellrisk.counts.count_tables import refuse_counts
from cellrisk.counts.counting import Selection, count_places, group_records, number_columns, read_levels
from cellrisk.counts.engine import Relation
from cellrisk.counts.filters import EVERYBODY, Part
from cellrisk.counts.packing import Rows
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import Schema, read_mapping, read_names
from cellrisk.counts.sources import open_records
from cellrisk.counts.validation import check_missing, validate
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers, find_distinct, number_keys
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress

BYTES_FOR_ROW = 64
"""What a row takes beside its codes and counts while figures are computed."""


@dataclass(frozen=True)
class Asked:
    """One table of a set: its columns, how they are binned, and the part of the people that it counts."""

    quasi_identifiers: tuple[str, ...]
    bins: Mapping[str, Any]
    part: Part = EVERYBODY

    def columns(self) -> tuple[tuple[str, Binning | None], ...]:
        """Each column with its binning."""
        return tuple(
            (name, make_binning(name, self.bins[name]) if name in self.bins else None)
            for name in self.quasi_identifiers
        )


@dataclass(frozen=True, eq=False)
class TableCells:
    """The cells of one table, without their keys."""

    columns: tuple[int, ...]
    """Which of the set's columns it has; two tables that bin a column alike share its number."""
    codes: Integers
    """(cells, columns): the codes of each cell's values. 0 is a missing value."""
    counts: Integers
    """(cells, levels)"""

    @property
    def n_cells(self) -> int:
        return len(self.counts)

    @property
    def n_records(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class JointCells:
    """Several tables of the same people: rows of people who share their cells in all tables and their level."""

    sensitive: str
    levels: tuple[str, ...]
    declared: bool
    """Whether the levels were declared."""
    tables: tuple[TableCells, ...]
    cell: Integers
    """(tables, rows): the cell of a row's people in each table; -1 if they are not in it. Rows are in the order of
    these, tables with more cells first, so people who share their cells in these tables are side by side."""
    level: Integers
    """(rows,)"""
    count: Integers
    """(rows,): people."""
    widths: tuple[int, ...]
    """How many values each of the set's columns has, a missing one included."""
    dropped: int = 0
    """Records that are in no table, though their sensitive value is among the labels."""
    outside: int = 0
    """Records that were left out of a table because a value of theirs is not among the declared labels."""

    @property
    def n_records(self) -> int:
        """People who are in one of the tables at least."""
        return int(self.count.sum())

    @property
    def n_levels(self) -> int:
        return len(self.levels)


def count_together(
    source: Any,
    tables: Sequence[Asked],
    sensitive: str,
    *,
    levels: Mapping[str, Sequence[Any]] | None = None,
    count: str | bool | None = None,
    missing: str = "category",
    outside: str = "error",
    table: str | None = None,
    engine: str | None = None,
    memory_limit: str | int | None = None,
    progress: Progress | None = None,
) -> JointCells:
    """In which cell of each table is each record, and with whom?

    The source, the levels, the counts and the rule for missing values are those of `tabulate`; with "drop", a record is
    left out of the tables that have the column in which its value is missing, and out of all where it is the sensitive
    one. A source with values outside the declared levels is refused, or, with ``outside="drop"``, such records are left
    out in the same way, so that each table counts whom `release` would count in it.

    >>> people = {"sex": ["f", "f", "m"], "town": ["a", "b", "b"], "job": ["x", "y", "y"]}
    >>> import pandas
    >>> joint = count_together(pandas.DataFrame(people), [Asked(("sex",), {}), Asked(("town",), {})], "job")
    >>> [table.counts.tolist() for table in joint.tables]
    [[[1, 1], [0, 1]], [[1, 0], [0, 2]]]
    """
    read_names(sensitive, "sensitive")
    columns = list(dict.fromkeys(column for asked in tables for column in asked.columns()))
    parts = list({repr(asked.part): asked.part for asked in tables if asked.part}.values())  # 1 == True in Python
    raw = list(dict.fromkeys([*(name for name, _ in columns), *(name for part in parts for name in part.columns)]))
    for part in parts:
        part.check([sensitive])
    declared = read_mapping(levels, "levels", "{'sex': ['f', 'm']}")
    unknown = [name for name in declared if name not in (sensitive, *raw)]
    if unknown:
        raise InvalidInput(f"are given for column '{unknown[0]}', which no table has", option="levels", code="roles")
    opened_as = Schema(tuple(raw), (sensitive,), count=count, missing=missing, outside=outside)
    resources = Resources.of(memory_limit, progress)
    with open_records(source, opened_as, resources, table=table, engine=engine) as (records, others):
        if opened_as.count is None:
            refuse_counts(others)
        values = validate(arrange(records, raw, columns, parts), arranged_schema(opened_as, columns, parts, declared))
        packing = number_columns(values)
        labels = packing.numberings[-1].width
        # Each combination may be a cell of its own in every table, with a count for each label.
        row = BYTES_FOR_ROW + 4 * (len(columns) + len(parts)) + 4 * len(tables) * (2 + labels)
        groups = group_records(values, packing, resources.memory // row)
        if groups.rows is None:
            raise InvalidInput(
                "the tables together have more combinations of values than memory holds",
                got=f"{groups.size:,} combinations in {len(tables)} tables of {labels:,} labels, {row:,} bytes each, "
                f"with a limit of {resources.memory / 10**6:,.0f} MB",
                fix="allow more memory, use coarser bins, or assess fewer tables at once",
                code="too-many-cells",
            )
        if outside != "drop":
            selection = Selection(packing, values.schema)
            selection.add(groups.rows)
            selection.check(values)
    return join_tables(groups.rows.sort(), tables, columns, parts, opened_as)


def arrange(
    records: Relation, raw: Sequence[str], columns: Sequence[tuple[str, Binning | None]], parts: Sequence[Part]
) -> Relation:
    """The records with a column for every binning of a column, and one for every part: whether they belong to it."""
    source = {name: f"c{place}" for place, name in enumerate(raw)}
    values = {name: (column, records.types[column]) for name, column in source.items()}
    chosen = [source[name] for name, _ in columns]
    chosen += [f"({part.holds(values)})::BIGINT" for part in parts]
    chosen += list(records.types)[len(raw) :]
    return records.select({f"c{place}": column for place, column in enumerate(chosen)})


def arranged_schema(
    schema: Schema, columns: Sequence[tuple[str, Binning | None]], parts: Sequence[Part], levels: Mapping[str, Any]
) -> Schema:
    """The schema of arranged records. A column that is binned in several ways has a name of its own for each."""
    names: list[str] = []
    for name, _ in columns:
        times = sum(other == name for other, _ in columns[: len(names)])
        names.append(f"{name}, binned in way {times + 1}" if times else name)
    given = {shown: levels[name] for shown, (name, _) in zip(names, columns, strict=True) if name in levels}
    given |= {name: levels[name] for name in schema.sensitive if name in levels}
    return Schema(
        (*names, *(f"belongs to part {place + 1}" for place in range(len(parts)))),
        schema.sensitive,
        {name: binning for name, (_, binning) in zip(names, columns, strict=True) if binning is not None},
        given,
        schema.count,
        "error" if schema.missing == "error" and schema.outside != "drop" else "category",
        schema.outside,
    )


def join_tables(
    rows: Rows,
    tables: Sequence[Asked],
    columns: Sequence[tuple[str, Binning | None]],
    parts: Sequence[Part],
    schema: Schema,
) -> JointCells:
    """The cells of every table, and where the rows are in them; the order does not depend on that of the records."""
    last, total, (sensitive,) = len(columns) + len(parts), int(rows.count.sum()), schema.sensitive
    numbering = rows.packing.numberings[last]
    if numbering.others:
        rows = rows.take(rows.places(last) != numbering.other)
    outside_level = total - int(rows.count.sum())
    levels, level_of = read_levels(numbering, count_places(rows, last))
    rows, labels = rows.take(rows.count > 0), levels.labels
    level, count = short(level_of)[rows.places(last)], rows.count.astype(np.int64)
    coded = [CodedColumn.of(rows, place) for place in range(len(columns))]
    known, left_out = np.ones(len(level), bool), np.zeros(len(level), bool)
    if schema.missing != "category" and levels.missing:
        known = level < len(labels) - 1
        if schema.missing == "error":
            check_missing({sensitive: int(count[~known].sum())}, schema)
        labels = labels[:-1]
    members, columns_of = [], [[columns.index(column) for column in asked.columns()] for asked in tables]
    for asked, places in zip(tables, columns_of, strict=True):
        member = known.copy()
        if asked.part:
            number = next(number for number, part in enumerate(parts) if repr(part) == repr(asked.part))
            flag = rows.packing.numberings[len(columns) + number]
            member &= rows.places(len(columns) + number) + flag.start > 0
            if not member.any():
                raise InvalidInput(
                    f"no record is in the part of the people: {asked.part.describe()}",
                    fix="correct 'where', or leave the table out",
                    code="no-records",
                )
        for place in places:
            left_out |= member & coded[place].outside
            member &= ~coded[place].outside
        if schema.missing != "category":
            lacking = {columns[place][0]: coded[place].codes == 0 for place in places}
            if schema.missing == "error":  # without outside="drop", it was refused before
                missing = {name: int(count[member & where].sum()) for name, where in lacking.items()}
                check_missing({name: number for name, number in missing.items() if number}, schema)
            member &= ~np.logical_or.reduce(list(lacking.values()))
        members.append(member)
    somewhere = np.logical_or.reduce(members)
    if not somewhere.any():
        got = f"{number_of(int(count.sum()), 'record')} left out"
        raise InvalidInput("no record is in any of the tables", got=got, code="no-records")
    if len(labels) < 2:
        what, allowed = f"sensitive column '{sensitive}' has one level only", "two levels or more"
        raise InvalidInput(what, allowed=allowed, code="one-level")
    dropped, outside = int(count[~somewhere].sum()), outside_level + int(count[left_out].sum())
    kept = slice(None) if somewhere.all() else np.flatnonzero(somewhere)
    level, count, joined, cells = level[kept], count[kept], [], []
    for places, member in zip(columns_of, members, strict=True):
        cell, codes = number_cells([coded[place] for place in places], member)
        cell = cell[kept]
        here: Any = slice(None) if member.all() else cell >= 0
        flat = number_keys([cell[here], level[here]], [len(codes), len(labels)])
        summed = np.bincount(flat, count[here], minlength=len(codes) * len(labels))
        narrow: Any = np.int32 if summed.max(initial=0) < 2**31 else np.int64
        cells.append(cell)
        joined.append(TableCells(tuple(places), codes, summed.astype(narrow).reshape(-1, len(labels))))
    finest = sorted(range(len(joined)), key=lambda table: -joined[table].n_cells)
    order = np.argsort(number_keys([cells[at] + 1 for at in finest], [joined[at].n_cells + 1 for at in finest]))
    return JointCells(
        sensitive,
        labels,
        levels.declared,
        tuple(joined),
        np.stack([cell.take(order) for cell in cells]),
        level.take(order),
        count.take(order),
        tuple(column.width for column in coded),
        dropped,
        outside,
    )


def short(numbers: Any) -> Integers:
    """Whole numbers in four bytes each."""
    return np.asarray(numbers, np.dtype("int32"))


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of the set in each row: its values that occur, numbered from 1 in the order of their labels."""

    codes: Integers
    """0 is a missing value."""
    width: int
    """Codes are below it."""
    outside: Any
    """Whether the value is outside the declared labels."""

    @staticmethod
    def of(rows: Rows, column: int) -> CodedColumn:
        numbering, places = rows.packing.numberings[column], rows.places(column)
        occurs = np.bincount(places, minlength=numbering.width) > 0
        occurs[numbering.size :] = False
        code = short(np.cumsum(occurs) * occurs)
        outside = places == numbering.other if numbering.others else np.zeros((), bool)
        return CodedColumn(code[places], int(occurs.sum()) + 1, outside)


def number_cells(columns: Sequence[CodedColumn], member: Any) -> tuple[Integers, Integers]:
    """The cell of each row, -1 for those who are not in the table, and the codes of each cell, in their order."""
    codes = [column.codes if member.all() else column.codes[member] for column in columns]
    first, number = find_distinct(codes, [column.width for column in columns])
    cell = short(np.full(len(member), -1))
    cell[member] = number
    return cell, np.stack([code[first] for code in codes], axis=1)
