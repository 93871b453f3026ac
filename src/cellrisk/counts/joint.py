"""Several tables of the same people, counted once: each record's cell in every table.

One grouping by all columns of all tables and the sensitive attribute leaves at most as many rows as there are records.
They come out of the engine in a stream, with numbers in place of keys, and the cells of each table are numbered here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.binning import Binning, make_binning
from cellrisk.counts.coding import Flaw, code_bins, code_group, kind_of
from cellrisk.counts.counting import CHANGED, find_places
from cellrisk.counts.holding import held
from cellrisk.counts.levels import declare
from cellrisk.counts.likeness import refuse_counts
from cellrisk.counts.parts import EVERYBODY, Part
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import Schema, read_mapping, read_names
from cellrisk.counts.sources import open_records
from cellrisk.counts.sums import total
from cellrisk.counts.survey import Column, Survey, check_missing, is_level, list_domain, survey_source
from cellrisk.counts.vectors import integers
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers, find_distinct, number_keys
from cellrisk.system.progress import Progress
from cellrisk.system.text import number_of

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

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
    with open_records(source, opened_as, resources, table=table, engine=engine) as (records, opened_as, others, _):
        values = {name: records[f"c{place}"] for place, name in enumerate(raw)}
        marks = find_outside(records, values, columns, declared) if dropping else {}
        flags = [f"belongs to part {place + 1}" for place in range(len(parts))]
        flags += [f"is outside of column {place + 1}" for place in marks]
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
        survey = survey_source(arrange(records, values, columns, parts, marks), schema)
        rows = read_rows(survey, len(columns), len(flags), len(tables), resources)
    once = opened_as.count is None and bool(others) and bool((rows.count == 1).all()) and len(rows.count) > 1
    if opened_as.count is None:
        refuse_counts(source, opened_as.columns, others, once, table=table, engine=engine)
    if int(rows.count.sum()) != survey.records:
        raise InvalidInput(CHANGED, fix="try again")
    return join_tables(rows, survey, tables, columns, parts, tuple(marks), sensitive, names, opened_as)


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


def find_outside(
    records: ir.Table,
    values: Mapping[str, ir.Value],
    columns: Sequence[tuple[str, Binning | None]],
    declared: Mapping[str, Sequence[Any]],
) -> dict[int, ir.BooleanValue]:
    """Which values are not among the declared labels of their column, or cannot be put into a bin: for each column, by
    its place, in which there can be any."""
    found: dict[int, ir.BooleanValue] = {}
    for place, (name, binning) in enumerate(columns):
        value, given = values[name], declared.get(name)
        flaws: list[Flaw] = []
        coded: Any = code_group(value) if binning is None else code_bins(name, value, binning, flaws)
        bad = [flaw.where.fill_null(False) for flaw in flaws if flaw.outside]
        if given is not None:
            kind = kind_of(value)
            column = Column(name, "q0", kind, binning, declare(name, kind, binning, given), True)
            levels = list_domain(records.select(q0=coded), column, True).levels
            own: Any = {"q0": coded}
            bad.append(~is_level(column.value(own), levels))
        if bad:
            found[place] = reduce(or_, bad)
    return found


def arrange(
    records: ir.Table,
    values: Mapping[str, ir.Value],
    columns: Sequence[tuple[str, Binning | None]],
    parts: Sequence[Part],
    marks: Mapping[int, ir.BooleanValue],
) -> ir.Table:
    """The records with a column for every binning of a column, one for every part: whether they belong to it, and one
    for every mark: whether their value is outside, which is then no value."""
    import ibis

    found: list[Any] = []
    for place, (name, _) in enumerate(columns):
        value = values[name]
        found.append(ibis.cases((marks[place], ibis.null(value.type())), else_=value) if place in marks else value)
    found += [part.holds(values).cast("int64") for part in parts]
    found += [mark.cast("int64") for mark in marks.values()]
    found += [records[name] for name in records.columns[len(values) :]]
    return records.select(**{f"c{place}": value for place, value in enumerate(found)})


@dataclass(frozen=True, eq=False)
class Rows:
    """What came out of the engine: codes of the columns, the level, the number of people."""

    codes: list[Integers]
    widths: list[int]
    flags: list[Any]
    """Whether they belong to each part, and whether their value is outside of each column that can have any."""
    level: Integers
    count: Integers


class Numbering:
    """Numbers for the values of one column, as they come; in the end in an order that does not depend on that."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.parts: list[Integers] = []

    def add(self, column: pa.ChunkedArray) -> None:
        encoded = column.combine_chunks().dictionary_encode()
        numbers = self.numbers
        values = [numbers.setdefault(value, len(numbers) + 1) for value in encoded.dictionary.to_pylist()]
        places = short([*values, MISSING])
        self.parts.append(places[integers(encoded.indices.fill_null(len(values)))])

    def finish(self) -> tuple[Integers, int]:
        """The codes of all rows, and how many there may be."""
        values = list(self.numbers)
        order = short([0] * (len(values) + 1))
        plain = all(isinstance(value, int) for value in values)
        for place, value in enumerate(sorted(values, key=None if plain else str)):
            order[self.numbers[value]] = place + 1
        return order[join(self.parts, np.int32)], len(values) + 1


def join(parts: Sequence[Integers], kind: Any) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def read_rows(survey: Survey, n_columns: int, n_flags: int, n_tables: int, resources: Resources) -> Rows:
    """Groups the records by all columns and the level, and brings the groups here, a batch at a time."""
    coded, levels = survey.coded, survey.levels[0]
    quasi = [f"q{place}" for place in range(n_columns + n_flags)]
    grouped = coded.group_by([*quasi, "y0"]).aggregate(c=total(coded))
    grouped = grouped.filter(grouped.c > 0)
    need = Need(4 * (n_columns + n_flags), n_tables, len(levels.labels), resources.memory)
    numberings = [Numbering() for _ in range(n_columns)]
    flags: list[list[Any]] = [[] for _ in range(n_flags)]
    level: list[Integers] = []
    count: list[Integers] = []
    seen = 0
    with known_to_fit(grouped, survey.records, need) as fitting:
        for batch in stream(fitting):
            seen += len(batch)
            need.check(seen)
            for place, numbering in enumerate(numberings):
                numbering.add(batch[f"q{place}"])
            for place in range(n_flags):
                flags[place].append(integers(batch[f"q{n_columns + place}"]).astype(bool))
            level.append(find_places(batch["y0"], levels).astype(np.int32))
            count.append(integers(batch["c"]))
    coded_columns = [numbering.finish() for numbering in numberings]
    return Rows(
        [codes for codes, _ in coded_columns],
        [width for _, width in coded_columns],
        [join(each, bool) for each in flags],
        join(level, np.int32),
        join(count, np.int64),
    )


@dataclass(frozen=True)
class Need:
    """The memory that a set takes: so much for each combination of values of all tables that occurs."""

    codes: int
    """Bytes for the codes of a combination."""
    tables: int
    labels: int
    memory: int

    @property
    def row(self) -> int:
        """Bytes for a combination. Each may be a cell of its own in every table, with a count for each label."""
        return BYTES_FOR_ROW + self.codes + 4 * self.tables * (2 + self.labels)

    def check(self, rows: int) -> None:
        """Refuses more combinations than memory holds."""
        if rows * self.row > self.memory:
            raise InvalidInput(
                "the tables together have more combinations of values than memory holds",
                got=f"{rows:,} combinations or more in {self.tables} tables of {self.labels:,} labels, {self.row:,} "
                f"bytes each, beside a limit of {self.memory / 10**6:,.0f} MB",
                fix="allow more memory, use coarser bins, or assess fewer tables at once",
            )


@contextmanager
def known_to_fit(grouped: ir.Table, records: int, need: Need) -> Iterator[ir.Table]:
    """The groups, of which none is brought here where they are too many: more than there are records they cannot be,
    and if that is not enough, the engine counts them first."""
    if records * need.row <= need.memory:
        yield grouped
        return
    backend: Any = grouped.get_backend()
    if backend.name not in ("duckdb", "pyspark"):  # computed again, as a table of it may not be made everywhere
        need.check(int(grouped.count().to_pyarrow().as_py()))
        yield grouped
        return
    with held(grouped) as table:
        need.check(int(table.count().to_pyarrow().as_py()))
        yield table


def stream(table: ir.Table) -> Iterator[pa.Table]:
    """The rows of an expression, a batch at a time. Ibis 12 asks DuckDB 2 for a stream by a name that is gone."""
    import pyarrow as pa

    backend: Any = table.get_backend()
    if backend.name == "duckdb":
        batches = pa.RecordBatchReader.from_stream(backend.con.sql(backend.compile(table)))
    else:
        batches = table.to_pyarrow_batches()
    for batch in batches:
        if len(batch):
            yield pa.Table.from_batches([batch])


def join_tables(
    rows: Rows,
    survey: Survey,
    tables: Sequence[Asked],
    columns: Sequence[tuple[str, Binning | None]],
    parts: Sequence[Part],
    marks: Sequence[int],
    sensitive: str,
    names: Sequence[str],
    schema: Schema,
) -> JointCells:
    """The cells of every table, and where the rows are in them."""
    levels = survey.levels[0]
    level, count, labels = rows.level, rows.count, levels.labels
    known = np.ones(len(level), bool)
    if schema.missing != "category" and levels.missing:
        known = level < len(labels) - 1
        if schema.missing == "error":
            check_missing({sensitive: int(count[~known].sum())}, schema)
        labels = labels[:-1]
    outside = dict(zip(marks, rows.flags[len(parts) :], strict=True))
    left_out = np.zeros(len(level), bool)
    members = []
    for each in tables:
        member = known.copy()
        own = [columns.index(column) for column in each.columns()]
        if each.part:
            member &= rows.flags[[*map(repr, parts)].index(repr(each.part))]
            if not member.any():
                raise InvalidInput(
                    f"no record is in the part of the people: {each.part.describe()}",
                    fix="correct 'where', or leave the table out",
                )
        for place in own:
            if place in outside:
                left_out |= member & outside[place]
        for place in own:
            if place in outside:
                member &= ~outside[place]
        if schema.missing == "error" and outside:  # else the survey has refused them
            empty = {columns[place][0]: int(count[member & (rows.codes[place] == MISSING)].sum()) for place in own}
            check_missing({name: number for name, number in empty.items() if number}, schema)
        if schema.missing == "drop":
            for place in own:
                member &= rows.codes[place] != MISSING
        members.append(member)
    some = np.logical_or.reduce(members)
    if not some.any():
        raise InvalidInput("no record is in any of the tables", got=f"{number_of(int(count.sum()), 'record')} left out")
    dropped = int(count[~some].sum())
    kept = slice(None) if some.all() else np.flatnonzero(some)
    count_all = count
    level, count = level[kept], count[kept]
    if len(labels) < 2:
        raise InvalidInput(f"sensitive column '{sensitive}' has one level only", allowed="two levels or more")
    found, cells = [], []
    for each, member in zip(tables, members, strict=True):
        mine = tuple(columns.index(column) for column in each.columns())
        cell, codes = number_cells(
            [rows.codes[place] for place in mine], [rows.widths[place] for place in mine], member
        )
        cell = cell[kept]
        here: Any = slice(None) if member.all() else cell >= 0
        flat = number_keys([cell[here], level[here]], [len(codes), len(labels)])
        summed = np.bincount(flat, count[here], minlength=len(codes) * len(labels))
        cells.append(cell)
        found.append(TableCells(mine, codes, narrow(summed).reshape(len(codes), len(labels))))
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
        tuple(rows.widths),
        dropped,
        survey.outside + int(count_all[left_out].sum()),
    )


def short(numbers: Any) -> Integers:
    """Whole numbers in four bytes each."""
    found: Integers = np.asarray(numbers, np.dtype("int32"))
    return found


def narrow(counts: Any) -> Integers:
    """Counts in as few bytes as hold them."""
    return np.asarray(counts.astype(np.int32 if not len(counts) or counts.max() < 2**31 else np.int64))


def number_cells(codes: Sequence[Integers], widths: Sequence[int], member: Any) -> tuple[Integers, Integers]:
    """The cell of each row, -1 for those who are not in the table, and the codes of each cell, in their order."""
    every = bool(member.all())
    own = list(codes) if every else [code[member] for code in codes]
    first, number = find_distinct(own, widths)
    cell, cells = short(number), np.stack([code[first] for code in own], axis=1)
    if every:
        return cell, cells
    found = short(np.full(len(member), -1))
    found[member] = cell
    return found, cells
