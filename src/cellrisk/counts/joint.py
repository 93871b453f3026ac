"""Several tables of the same people, counted once: each record's cell in every table.

One grouping by all columns of all tables and the sensitive attribute leaves at most as many rows as there are records.
They come out of DuckDB as codes of values, and the cells of each table are numbered here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellrisk.counts.columns import Binning, check_several, make_binning
from cellrisk.counts.counting import AskedColumn, Groups, check_missing, group_records
from cellrisk.counts.engine import Resources
from cellrisk.counts.filters import EVERYBODY, Part
from cellrisk.counts.schema import Schema
from cellrisk.counts.sources import open_records
from cellrisk.counts.unit import Unit
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
    person: str | None = None,
    contributions: int | None = None,
    per_group: int | None = None,
    progress: Progress | None = None,
) -> JointCells:
    """In which cell of each table is each record, and with whom?

    The source, the levels, the counts and the rule for missing values are those of `tabulate`; with "drop", a record is
    left out of the tables that have the column in which its value is missing, and out of all where it is the sensitive
    one. A source with values outside the declared levels is refused, or, with ``outside="drop"``, such records are left
    out in the same way, so that each table counts whom `release` would count in it. A source in which people have
    several records is refused: each table of a release keeps other records of theirs.

    >>> people = {"sex": ["f", "f", "m"], "town": ["a", "b", "b"], "job": ["x", "y", "y"]}
    >>> import pandas
    >>> joint = count_together(pandas.DataFrame(people), [Asked(("sex",), {}), Asked(("town",), {})], "job")
    >>> [table.counts.tolist() for table in joint.tables]
    [[[1, 1], [0, 1]], [[1, 0], [0, 2]]]
    """
    columns = list(dict.fromkeys(column for asked in tables for column in asked.columns()))
    parts = list({repr(asked.part): asked.part for asked in tables if asked.part}.values())  # 1 == True in Python
    raw = list(dict.fromkeys([*(name for name, _ in columns), *(name for part in parts for name in part.columns)]))
    for part in parts:
        part.check([sensitive])
    unit = Unit.read(person, contributions, per_group)
    if unit.contributions > 1:
        raise refuse_several(str(unit))
    schema = Schema(tuple(raw), (sensitive,), None, levels, count, missing, outside, person=person, unit=unit)
    wanted = [AskedColumn(name, binning, schema.levels.get(name)) for name, binning in columns]
    wanted += [AskedColumn(part.describe(), None, None) for part in parts]
    wanted.append(AskedColumn(sensitive, None, schema.levels.get(sensitive), sensitive=True))
    resources = Resources.of(memory_limit, progress)
    with open_records(source, schema, resources, table=table, engine=engine) as records:
        # A column for every binning of a column, and one for every part: whether the records belong to it.
        values = {name: (f"c{index}", records.types[f"c{index}"]) for index, name in enumerate(raw)}
        chosen = [values[name][0] for name, _ in columns] + [f"({part.holds(values)})::BIGINT" for part in parts]
        chosen += list(records.types)[len(raw) :]
        groups = group_records(
            records.select({f"c{i}": column for i, column in enumerate(chosen)}), wanted, schema, resources
        )
        if person is not None:
            several = f"SELECT 1 FROM ({groups.rows}) WHERE p IS NOT NULL GROUP BY p HAVING sum(n) > 1"
            if people := groups.relation.fetch(f"SELECT count(*) FROM ({several})")[0][0]:
                raise refuse_several(f"{number_of(people, 'person')} with more")
        labels = len(groups.columns[-1].labels) + (None in groups.columns[-1].codes)
        # Each combination may be a cell of its own in every table, with a count for each label.
        row = BYTES_FOR_ROW + 4 * len(wanted) + 4 * len(tables) * (2 + labels)
        if groups.size > resources.memory // row:
            what = "the tables together have more combinations of values than memory holds"
            got = f"{groups.size:,} combinations of {row:,} bytes, with a limit of {resources.memory / 10**6:,.0f} MB"
            fix = "allow more memory, use coarser bins, or assess fewer tables at once"
            raise InvalidInput(what, got=got, fix=fix, code="too-many-cells")
        codes, counts = groups.fetch(f"c{len(wanted) - 1} <> {groups.columns[-1].other}")
    return join_tables(groups, codes, counts.astype(np.int64), tables, columns, parts, schema)


def refuse_several(got: str) -> InvalidInput:
    what = "what several tables reveal together is known for people with one record each alone"
    fix = "assess each table alone; together release and its ledger entry take people with several records"
    return InvalidInput(what, got=got, fix=fix, code="several-records")


def join_tables(
    groups: Groups,
    codes: Sequence[Integers],
    count: Integers,
    tables: Sequence[Asked],
    columns: Sequence[tuple[str, Binning | None]],
    parts: Sequence[Part],
    schema: Schema,
) -> JointCells:
    """The cells of every table, and where the rows are in them; the order does not depend on that of the records.

    codes, count: the combinations of values with a sensitive value among the labels, and the records of each.
    """
    (sensitive,), outside_level = schema.sensitive, groups.records - int(count.sum())
    occurring = np.unique(codes[-1][(count > 0) | (codes[-1] < groups.columns[-1].missing)])
    levels, label_of = groups.columns[-1].domain(occurring.tolist())
    codes, count = [code[count > 0] for code in codes], count[count > 0]
    level, labels = _short(label_of)[codes[-1]], levels.labels
    known, left_out = np.ones(len(level), bool), np.zeros(len(level), bool)
    if schema.missing != "category" and levels.missing:
        known = level < len(labels) - 1
        check_missing({sensitive: int(count[~known].sum())}, schema)
        labels = labels[:-1]
    numbered = [_renumber(code, column.missing) for code, column in zip(codes, groups.columns, strict=True)]
    members, columns_of = [], [[columns.index(column) for column in asked.columns()] for asked in tables]
    for asked, used in zip(tables, columns_of, strict=True):
        member = known.copy()
        if asked.part:
            flag = len(columns) + [repr(part) for part in parts].index(repr(asked.part))
            member &= codes[flag] == groups.columns[flag].codes.get(1, -1)
            if not member.any():
                what = f"no record is in the part of the people: {asked.part.describe()}"
                raise InvalidInput(what, fix="correct 'where', or leave the table out", code="no-records")
        for column in used:
            others = codes[column] == groups.columns[column].other
            left_out |= member & others
            member &= ~others
        if schema.missing != "category":
            lacking = {columns[column][0]: numbered[column][0] == 0 for column in used}
            if schema.missing == "error":
                missing = {name: int(count[member & where].sum()) for name, where in lacking.items()}
                check_missing({name: number for name, number in missing.items() if number}, schema)
            member &= ~np.logical_or.reduce(list(lacking.values()))
        members.append(member)
    somewhere = np.logical_or.reduce(members)
    if not somewhere.any():
        got = f"{number_of(int(count.sum()), 'record')} left out"
        raise InvalidInput("no record is in any of the tables", got=got, code="no-records")
    check_several(replace(levels, labels=labels, missing=levels.missing and len(labels) == len(levels)))
    dropped, outside = int(count[~somewhere].sum()), outside_level + int(count[left_out].sum())
    level, count, joined, cells = level[somewhere], count[somewhere], [], []
    for used, member in zip(columns_of, members, strict=True):
        keys, widths = [numbered[column][0][member] for column in used], [numbered[column][1] for column in used]
        first, number = find_distinct(keys, widths)
        everybody = _short(np.full(len(member), -1))
        everybody[member] = number
        cell = everybody[somewhere]
        here = cell >= 0
        flat = number_keys([cell[here], level[here]], [len(first), len(labels)])
        summed = np.bincount(flat, count[here], minlength=len(first) * len(labels))
        narrow: Any = np.int32 if summed.max(initial=0) < 2**31 else np.int64
        cells.append(cell)
        keyed = np.stack([key[first] for key in keys], axis=1)
        joined.append(TableCells(tuple(used), keyed, summed.astype(narrow).reshape(-1, len(labels))))
    finest = sorted(range(len(joined)), key=lambda table: -joined[table].n_cells)
    order = np.argsort(number_keys([cells[at] + 1 for at in finest], [joined[at].n_cells + 1 for at in finest]))
    return JointCells(
        sensitive,
        labels,
        levels.declared,
        tuple(joined),
        np.stack([cell[order] for cell in cells]),
        level[order],
        count[order],
        tuple(width for _, width in numbered[: len(columns)]),
        dropped,
        outside,
    )


def _renumber(codes: Integers, missing: int) -> tuple[Integers, int]:
    """Number the values of a column that occur from 1 on; 0 is a missing value. Return also a bound of the numbers."""
    occurs = np.bincount(codes, minlength=missing + 2) > 0
    occurs[missing:] = False
    return _short(np.cumsum(occurs) * occurs)[codes], int(occurs.sum()) + 1


def _short(numbers: Any) -> Integers:
    """Return whole numbers in four bytes each."""
    return np.asarray(numbers, np.dtype("int32"))
