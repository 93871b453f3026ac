"""Several tables of the same people, counted once: each record's cell in every table.

One grouping by all columns of all tables and the sensitive attribute leaves at most as many rows as there are records.
They come out of DuckDB as packed numbers, and the cells of each table are numbered here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cellrisk.counts.binning import Binning, make_binning
from cellrisk.counts.count_tables import refuse_counts
from cellrisk.counts.counting import Rows, Selection, count_places, group_records, number_columns, read_levels
from cellrisk.counts.engine import Relation
from cellrisk.counts.filters import EVERYBODY, Part
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import Schema, read_mapping, read_names
from cellrisk.counts.sources import open_records
from cellrisk.counts.validation import check_missing, validate
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers, find_distinct, number_keys
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress

MISSING = 0
"""The code of a missing value; others count from 1."""
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
    """(tables, rows): the cell of a row's people in each table; -1 where they are not in it. Rows are in the order of
    these, tables with more cells first, so that whoever shares his cells in these tables is beside each other."""
    level: Integers
    """(rows,)"""
    count: Integers
    """(rows,): people."""
    names: tuple[str, ...]
    """The set's columns; one that is binned in several ways stands there as often."""
    widths: tuple[int, ...]
    """How many values each of these columns has, a missing one included."""
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
    >>> found = count_together(pandas.DataFrame(people), [Asked(("sex",), {}), Asked(("town",), {})], "job")
    >>> [table.counts.tolist() for table in found.tables]
    [[[1, 1], [0, 1]], [[1, 0], [0, 2]]]
    """
    read_names(sensitive, "sensitive")
    columns = list(dict.fromkeys(column for each in tables for column in each.columns()))
    parts = list({repr(each.part): each.part for each in tables if each.part}.values())  # 1 == True in Python
    filtered = [name for part in parts for name in part.columns]
    raw = list(dict.fromkeys([*(name for name, _ in columns), *filtered]))
    for part in parts:
        part.check([sensitive])
    names = name_variants([name for name, _ in columns])
    dropping = outside == "drop"
    levels = read_mapping(levels, "levels", "{'sex': ['f', 'm']}")
    declared = {name: given for name, given in levels.items() if name in (sensitive, *raw)}
    unknown = [name for name in levels if name not in declared]
    if unknown:
        raise InvalidInput(f"levels are given for column '{unknown[0]}', which no table has")
    opened_as = Schema(tuple(raw), (sensitive,), count=count, missing=missing, outside=outside)
    resources = Resources.of(memory_limit, progress)
    with open_records(source, opened_as, resources, table=table, engine=engine) as (records, others):
        if opened_as.count is None:
            refuse_counts(others)
        flags = [f"belongs to part {place + 1}" for place in range(len(parts))]
        schema = Schema(
            (*names, *flags),
            (sensitive,),
            {name: binning for name, (_, binning) in zip(names, columns, strict=True) if binning is not None},
            {
                **{shown: declared[name] for shown, (name, _) in zip(names, columns, strict=True) if name in declared},
                **({sensitive: declared[sensitive]} if sensitive in declared else {}),
            },
            opened_as.count,
            "error" if missing == "error" and not dropping else "category",
            outside,
        )
        found = validate(arrange(records, raw, columns, parts), schema)
        packing = number_columns(found, schema)
        labels = packing.numberings[-1].width
        # Each combination may be a cell of its own in every table, with a count for each label.
        row = BYTES_FOR_ROW + 4 * (len(names) + len(flags)) + 4 * len(tables) * (2 + labels)
        groups = group_records(found, packing, resources.memory // row)
        if groups.rows is None:
            raise refuse_rows(groups.size, len(tables), labels, row, resources.memory)
        rows = groups.rows
        if not dropping:
            selection = Selection(packing, schema)
            selection.add(rows)
            selection.check(found, schema)
    return join_tables(rows, tables, columns, parts, names, opened_as)


def name_variants(names: Sequence[str]) -> list[str]:
    """A name of its own for every column, where some are binned in several ways.

    >>> name_variants(["age", "sex", "age"])
    ['age', 'sex', 'age, binned in way 2']
    """
    found: list[str] = []
    for place, name in enumerate(names):
        times = names[:place].count(name)
        found.append(f"{name}, binned in way {times + 1}" if times else name)
    return found


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


class CodedColumn(NamedTuple):
    """A column of the set in each row."""

    codes: Integers
    width: int
    """Codes are below it."""
    outside: Any
    """Whose value is outside the declared labels; None if nobody's can be."""


def code_column(rows: Rows, place: int) -> CodedColumn:
    """The values of a column that occur, numbered from 1 in the order of their labels."""
    numbering, places = rows.packing.numberings[place], rows.places(place)
    occurs = np.bincount(places, minlength=numbering.width)[: numbering.size] > 0
    code = short([MISSING] * numbering.width)
    code[: numbering.size][occurs] = np.arange(1, int(occurs.sum()) + 1)
    return CodedColumn(code[places], int(occurs.sum()) + 1, places == numbering.other if numbering.others else None)


def refuse_rows(rows: int, tables: int, labels: int, row: int, memory: int) -> InvalidInput:
    """Return the refusal of more combinations of values than memory holds, each of so many bytes."""
    return InvalidInput(
        "the tables together have more combinations of values than memory holds",
        got=f"{rows:,} combinations in {tables} tables of {labels:,} labels, {row:,} bytes each, with a limit of "
        f"{memory / 10**6:,.0f} MB",
        fix="allow more memory, use coarser bins, or assess fewer tables at once",
        code="too-many-cells",
    )


def join_tables(
    rows: Rows,
    tables: Sequence[Asked],
    columns: Sequence[tuple[str, Binning | None]],
    parts: Sequence[Part],
    names: Sequence[str],
    schema: Schema,
) -> JointCells:
    """The cells of every table, and where the rows are in them; the order does not depend on that of the records."""
    rows, last, (sensitive,) = rows.sort(), len(columns) + len(parts), schema.sensitive
    numbering, total = rows.packing.numberings[last], int(rows.count.sum())
    if numbering.others:
        rows = rows.take(rows.places(last) != numbering.other)
    outside_level = total - int(rows.count.sum())
    levels, level_of = read_levels(numbering, count_places(rows, last))
    rows = rows.take(rows.count > 0)
    level = short(level_of)[rows.places(last)]
    count, labels = rows.count.astype(np.int64), levels.labels
    coded = [code_column(rows, place) for place in range(len(columns))]
    belongs = {
        repr(part): rows.places(place) + rows.packing.numberings[place].start > 0
        for place, part in enumerate(parts, len(columns))
    }
    known = np.ones(len(level), bool)
    if schema.missing != "category" and levels.missing:
        known = level < len(labels) - 1
        if schema.missing == "error":
            check_missing({sensitive: int(count[~known].sum())}, schema)
        labels = labels[:-1]
    left_out = np.zeros(len(level), bool)
    members = []
    for each in tables:
        member, mine = known.copy(), {column[0]: coded[columns.index(column)] for column in each.columns()}
        if each.part:
            member &= belongs[repr(each.part)]
            if not member.any():
                raise InvalidInput(
                    f"no record is in the part of the people: {each.part.describe()}",
                    fix="correct 'where', or leave the table out",
                    code="no-records",
                )
        for column in mine.values():
            if column.outside is not None:
                left_out |= member & column.outside
                member &= ~column.outside
        if schema.missing == "error" and any(column.outside is not None for column in coded):  # else refused before
            empty = {name: int(count[member & (column.codes == MISSING)].sum()) for name, column in mine.items()}
            check_missing({name: number for name, number in empty.items() if number}, schema)
        if schema.missing == "drop":
            member &= np.logical_and.reduce([column.codes != MISSING for column in mine.values()])
        members.append(member)
    some = np.logical_or.reduce(members)
    if not some.any():
        raise InvalidInput("no record is in any of the tables", got=f"{number_of(int(count.sum()), 'record')} left out")
    dropped, outside = int(count[~some].sum()), outside_level + int(count[left_out].sum())
    kept = slice(None) if some.all() else np.flatnonzero(some)
    level, count = level[kept], count[kept]
    if len(labels) < 2:
        raise InvalidInput(f"sensitive column '{sensitive}' has one level only", allowed="two levels or more")
    found, cells = [], []
    for each, member in zip(tables, members, strict=True):
        places = tuple(columns.index(column) for column in each.columns())
        cell, codes = number_cells([coded[place] for place in places], member)
        cell = cell[kept]
        here: Any = slice(None) if member.all() else cell >= 0
        flat = number_keys([cell[here], level[here]], [len(codes), len(labels)])
        summed = np.bincount(flat, count[here], minlength=len(codes) * len(labels))
        cells.append(cell)
        found.append(TableCells(places, codes, narrow(summed).reshape(len(codes), len(labels))))
    finest = sorted(range(len(found)), key=lambda table: -found[table].n_cells)
    order = np.argsort(number_keys([cells[each] + 1 for each in finest], [found[each].n_cells + 1 for each in finest]))
    return JointCells(
        sensitive,
        labels,
        levels.declared,
        tuple(found),
        np.stack([cell.take(order) for cell in cells]),
        level.take(order),
        count.take(order),
        tuple(names),
        tuple(column.width for column in coded),
        dropped,
        outside,
    )


def short(numbers: Any) -> Integers:
    """Whole numbers in four bytes each."""
    found: Integers = np.asarray(numbers, np.dtype("int32"))
    return found


def narrow(counts: Any) -> Integers:
    """Counts in as few bytes as hold them."""
    return np.asarray(counts.astype(np.int32 if not len(counts) or counts.max() < 2**31 else np.int64))


def number_cells(columns: Sequence[CodedColumn], member: Any) -> tuple[Integers, Integers]:
    """The cell of each row, -1 for those who are not in the table, and the codes of each cell, in their order."""
    every = bool(member.all())
    own = [column.codes if every else column.codes[member] for column in columns]
    first, number = find_distinct(own, [column.width for column in columns])
    cell, cells = short(number), np.stack([code[first] for code in own], axis=1)
    if every:
        return cell, cells
    found = short(np.full(len(member), -1))
    found[member] = cell
    return found, cells
