"""Counting: one GROUP BY of all columns in use, each record's values packed into one whole number.

Each value has a place among the labels of its column, and the places of all columns together are the digits of one
number, or of a few if 63 bits do not suffice: exact, unlike a hash. The combinations that occur come out of DuckDB,
and what is wanted of them is numpy. If there are more of them than memory holds, they come out in parts, each of whole
cells; what risks need of the parts is added up, and no key is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells, Domain, group_cells
from cellrisk.counts.contributions import Draw, draw_securely
from cellrisk.counts.engine import Relation, name_relation, new_name
from cellrisk.counts.levels import NUMBER, Levels, check_several
from cellrisk.counts.packing import Packing, Rows
from cellrisk.counts.person_records import PersonRecords, read_person_records
from cellrisk.counts.profiles import LabelledCounts, LevelCounts, NoProfiles, Profiles
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import Schema
from cellrisk.counts.table import Attribute, FrequencyTable, Homogeneity
from cellrisk.counts.validation import Numbering, Values, check_declared, check_missing, check_some, number_values
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers

MOST_CELLS = 20_000_000
"""Combinations of the values of all columns in use that are brought into memory with their keys."""
MOST_IN_PART = 8_000_000
"""Combinations that are brought into memory at a time if there are more of them."""
BYTES_FOR_ROW, BYTES_FOR_VALUE = 64, 200
"""What such a combination takes while it is counted, and a value of a column with very many values."""
MOST_LABELS = 100
"""Vectors of counts are kept with their labels up to so many levels."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The combinations of values that occur: in memory, or in DuckDB if they are too many."""

    packing: Packing
    size: int
    relation: Relation | None
    """The table of DuckDB that holds them; None if they are in memory."""
    most: int
    """Combinations that are brought into memory at a time."""
    rows: Rows | None = None

    def parts(self) -> Iterator[Rows]:
        """The combinations, those of one cell together."""
        if self.relation is None:
            if self.rows is not None:
                yield self.rows
            return
        last, unit = self.packing.digits[self.packing.n_quasi - 1]
        cell = ", ".join([*(f"k{number}" for number in range(last)), f"k{last} // {unit}"])
        parts = ceil(self.size / self.most)
        for part in range(parts):
            chosen = f"SELECT * FROM {self.relation.name} WHERE hash({cell}) % {parts} = {part}"
            yield fetch_rows(self.relation.connection, self.packing, chosen)


def group_records(values: Values, packing: Packing, most: int) -> Groups:
    """Group the records by the values of all columns; up to ``most`` combinations are brought into memory."""
    connection, query = values.relation.connection, packing.sql(values)
    if min(values.rows, packing.bound) > most:
        name = new_name("groups")
        connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
        made = name_relation(connection, name)
        size, records = made.fetch("SELECT count(*), sum(n) FROM {rows}")[0]
        if size > most:
            if records != values.records:
                raise source_changed()
            return Groups(packing, size, made, min(most, MOST_IN_PART) or MOST_IN_PART)
        query = f"FROM {name}"
    rows = fetch_rows(connection, packing, query)
    if int(rows.count.sum()) != values.records:
        raise source_changed()
    for numbering in packing.numberings:
        _ = numbering.values  # to have them when DuckDB is gone
    return Groups(packing, len(rows.count), None, most, rows)


def fetch_rows(connection: Any, packing: Packing, query: str) -> Rows:
    """The combinations that a query gives; refuses values that have no place."""
    arrays = connection.sql(query).fetchnumpy()
    if any(np.ma.is_masked(column) for column in arrays.values()):
        raise source_changed()
    *keys, count = map(np.ma.getdata, arrays.values())
    return Rows(packing, tuple(keys), count)


def source_changed() -> InvalidInput:
    return InvalidInput("the source changed while it was read", fix="try again", code="source-changed")


class Selection:
    """Which combinations are counted, and how many records are not; combinations are added part by part."""

    def __init__(self, packing: Packing, schema: Schema) -> None:
        self.packing, self.dropping = packing, schema.missing == "drop"
        self.missing: Counter[str] = Counter()
        """Records inside with a missing value, by column."""
        self.others: Counter[str] = Counter()
        """Records with a value that is not among the declared labels, by column."""
        self.inside = 0
        """Records without such values."""
        self.records = 0
        """Records that are counted."""

    def add(self, rows: Rows) -> Rows:
        """Add combinations; return those that are counted."""
        inside, present = np.ones(len(rows.count), bool), np.ones(len(rows.count), bool)
        lacking: dict[str, Any] = {}
        for place, numbering in enumerate(self.packing.numberings):
            if numbering.others:
                other = rows.places(place) == numbering.other
                inside &= ~other
                self.others[numbering.column.name] += int(rows.count[other].sum())
            if numbering.missing:
                lacking[numbering.column.name] = rows.places(place) == numbering.size
                present &= ~lacking[numbering.column.name]
        for name, missing in lacking.items():
            self.missing[name] += int(rows.count[missing & inside].sum())
        kept = inside & present if self.dropping else inside
        self.inside += int(rows.count[inside].sum())
        chosen = rows if kept.all() else rows.take(kept)
        self.records += int(chosen.count.sum())
        return chosen

    def check(self, values: Values) -> None:
        """Refuse missing values, no records, and values outside the declared labels, as the schema says."""
        check_missing(+self.missing, values.schema)
        if values.schema.outside == "drop":
            return
        check_some(values, self.records + self.others.total())
        for column in [*values.columns[self.packing.n_quasi :], *values.columns[: self.packing.n_quasi]]:
            repeated = column.declaration is not None and column.declaration.repeated
            if column.listed and (repeated or self.others[column.name]):
                check_declared(values, column)


def number_columns(values: Values) -> Packing:
    return Packing(tuple(number_values(values, column) for column in values.columns))


@dataclass(frozen=True, eq=False)
class Selected:
    """The records of a validated source that are counted, as combinations of values."""

    schema: Schema
    groups: Groups
    selection: Selection
    kept: Sequence[Rows]
    """The combinations that are counted, if they are in memory."""
    levels: Sequence[tuple[Levels, Integers]]
    """Those of each sensitive attribute, and the level of each place."""
    outside: int
    people: PersonRecords | None = None

    def count(self) -> FrequencyTable:
        """Count the cells, with their keys if they are in memory. Then, DuckDB is not needed any more."""
        if self.people is not None:
            return self.count_people(self.people)
        selection, merged, kinds = self.selection, list[Attribute](), np.zeros(3, np.int64)
        for rows in self.kept or (Selection(selection.packing, self.schema).add(rows) for rows in self.groups.parts()):
            cells = CountedCells.of(rows.sort(), self.levels)
            attributes = cells.attributes(self.schema.sensitive)
            merged = list(map(merge_attributes, merged, attributes)) if merged else attributes
            kinds += cells.homogeneity
        if not selection.records:
            merged = [replace(attribute, profiles=NoProfiles(attribute.n_levels)) for attribute in merged]
        return self._make(merged, kinds, cells.read if self.kept else refuse_cells(self.groups.size))

    def count_people(self, people: PersonRecords, draw: Draw | None = None) -> FrequencyTable:
        """Count the cells of the records that are kept of each person: by the seed, or by another draw."""
        kept = people.keep(self.schema.unit, draw)
        keys, total, place = kept.combine()
        rows = Rows(self.selection.packing, keys, total)
        cells = CountedCells.of(rows, self.levels)
        attributes = cells.attributes(self.schema.sensitive)
        if not len(total):
            attributes = [replace(attribute, profiles=NoProfiles(attribute.n_levels)) for attribute in attributes]
        elif self.schema.unit.contributions > 1 and draw is None:
            kinds = kept.contributions(rows, self.levels, place)
            attributes = [replace(each, people=kind) for each, kind in zip(attributes, kinds, strict=True)]
        made = self._make(attributes, cells.homogeneity, cells.read)
        again = partial(self.count_people, people, draw_securely)
        left_out = int(people.count.sum() - kept.count.sum())
        return replace(made, beyond_records=left_out, anonymous_records=people.anonymous, draw_again=again)

    def _make(self, attributes: Sequence[Attribute], kinds: Any, read_cells: Callable[[int], Cells]) -> FrequencyTable:
        selection, homogeneity = self.selection, Homogeneity(*map(int, kinds))
        dropped = selection.inside - selection.records
        made = make_table(
            self.schema, tuple(attributes), homogeneity, +selection.missing, dropped, self.outside, read_cells
        )
        return replace(made, unit=self.schema.unit)


def select_records(values: Values, resources: Resources, seed: int = 0) -> Selected:
    """Group the records of a validated source; refuse or leave out what the schema says."""
    packing, schema = number_columns(values), values.schema
    listed = sum(numbering.size for numbering in packing.numberings if numbering.stored)
    most = min(MOST_CELLS, max(0, resources.memory - BYTES_FOR_VALUE * listed) // BYTES_FOR_ROW)
    groups, selection = group_records(values, packing, most), Selection(packing, schema)
    sensitive = range(packing.n_quasi, len(packing.numberings))
    seen = [np.zeros((2, packing.numberings[place].width)) for place in sensitive]
    kept = []
    for rows in groups.parts():
        chosen = selection.add(rows)
        for place, totals in zip(sensitive, seen, strict=True):
            totals += count_places(chosen, place)
        if groups.rows is not None:
            kept.append(chosen)
    selection.check(values)
    levels = [read_levels(packing.numberings[place], totals) for place, totals in zip(sensitive, seen, strict=True)]
    for name, (of_attribute, _) in zip(schema.sensitive, levels, strict=True):
        check_several(name, of_attribute)
    people = None
    if values.identified:
        if not kept:
            raise InvalidInput(
                "the table has too many combinations of values to limit the records of each person",
                got=f"{groups.size:,} combinations",
                allowed=f"up to {most:,} with this memory",
                fix="use fewer or coarser quasi-identifiers, or allow more memory",
                code="too-many-cells",
            )
        people = read_person_records(values, packing, schema.unit, seed)
    return Selected(schema, groups, selection, kept, levels, values.records - selection.inside, people)


def make_table(
    schema: Schema,
    attributes: tuple[Attribute, ...],
    homogeneity: Homogeneity,
    missing: Mapping[str, int],
    dropped: int,
    outside: int,
    read_cells: Callable[[int], Cells],
) -> FrequencyTable:
    """The frequency table of what was counted; ``missing``: the records with a missing value, by column."""
    return FrequencyTable(
        schema.quasi_identifiers,
        attributes,
        homogeneity,
        schema.missing,
        tuple((name, missing[name]) for name in schema.columns if name in missing),
        dropped,
        schema.outside,
        outside,
        read_cells,
    )


def refuse_cells(combinations: int) -> Callable[[int], Cells]:
    """What stands for the cells of a table that has too many to keep their keys."""

    def refuse(_: int) -> Cells:
        raise InvalidInput(
            "the table has too many cells to bring their keys into memory",
            got=f"{combinations:,} combinations of values",
            allowed=f"up to {MOST_CELLS:,}, of {BYTES_FOR_ROW} bytes each",
            fix="use fewer or coarser quasi-identifiers, or allow more memory; assessing needs no keys",
            code="too-many-cells",
        )

    return refuse


def count_places(rows: Rows, column: int) -> Any:
    """For each place of a column, the rows that have it, and their records."""
    places, width = rows.places(column), rows.packing.numberings[column].width
    return np.stack([np.bincount(places, minlength=width), np.bincount(places, rows.count, width)])


def read_levels(numbering: Numbering, seen: Any) -> tuple[Levels, Integers]:
    """The levels of a sensitive attribute, and for each place that of its label among them.

    A level that has counts of zero only is one too; missing values that have are none.
    """
    occurs, records = seen
    observed = np.flatnonzero(occurs[: numbering.size]).tolist()
    levels = numbering.levels(observed, int(records[numbering.size]) if numbering.missing else 0)
    level = np.full(numbering.width, len(levels.labels) - 1, np.int64)  # the last is that of missing values
    level[observed] = [levels.places[numbering.values[place]] for place in observed]
    return levels, level


@dataclass(frozen=True, eq=False)
class CountedCells:
    """The cells in the order of their packed keys, and the positive counts of each attribute in them."""

    first: Rows
    """A combination of each cell."""
    levels: Sequence[Levels]
    lists: tuple[tuple[Integers, Integers, Integers], ...]
    """For each attribute the level and the count of each positive count, and where the counts of each cell begin."""

    @staticmethod
    def of(rows: Rows, levels: Sequence[tuple[Levels, Integers]]) -> CountedCells:
        """The cells of sorted combinations. ``levels``: those of each attribute, and the level of each place."""
        if not rows.count.all():
            rows = rows.take(rows.count > 0)
        starts, lists = rows.first_of_cells(), []
        for place, (of_attribute, level_of) in enumerate(levels, rows.packing.n_quasi):
            small = np.min_scalar_type(len(of_attribute.labels))
            level, count = level_of.astype(small)[rows.places(place)], rows.count
            offsets = np.append(starts, len(count))
            if len(levels) > 1:
                level, count, offsets = add_up(level, count, offsets, len(of_attribute.labels))
            lists.append((level, count, offsets))
        return CountedCells(rows.take(starts), [of_attribute for of_attribute, _ in levels], tuple(lists))

    def attributes(self, names: Sequence[str]) -> list[Attribute]:
        """What risks need of each attribute."""
        return [
            count_attribute(name, levels, *lists)
            for name, levels, lists in zip(names, self.levels, self.lists, strict=True)
        ]

    @property
    def homogeneity(self) -> tuple[int, int, int]:
        """Cells in which all attributes, some of them, and none takes one value only."""
        single = np.stack([np.diff(offsets) == 1 for *_, offsets in self.lists])
        complete, none = int(single.all(axis=0).sum()), int((~single).all(axis=0).sum())
        return complete, single.shape[1] - complete - none, none

    @cached_property
    def keys(self) -> tuple[tuple[Domain, ...], Integers, bool]:
        """The domains of the quasi-identifiers, the codes of each cell, and whether cells are in their order."""
        domains, codes, in_order = [], [], True
        for place in range(self.first.packing.n_quasi):
            numbering, seen = self.first.packing.numberings[place], count_places(self.first, place)
            levels, code = read_levels(numbering, seen)
            in_order &= bool((np.diff(code[: numbering.size][seen[0, : numbering.size] > 0]) > 0).all())
            named = levels.labels[: len(levels.labels) - levels.missing]
            ordered = numbering.column.binning is not None or all(map(NUMBER.fullmatch, named))
            domains.append(Domain(numbering.column.name, levels.labels, ordered, levels.declared, levels.missing))
            codes.append(code[self.first.places(place)])
        return tuple(domains), np.stack(codes, axis=1), in_order

    def read(self, place: int) -> Cells:
        """The cells with their keys, and the counts of the sensitive attribute at a place."""
        domains, codes, in_order = self.keys
        level, count, offsets = self.lists[place]
        name = self.first.packing.numberings[self.first.packing.n_quasi + place].column.name
        cell = np.repeat(np.arange(len(codes)), np.diff(offsets))
        level, count = level.astype(np.int64), count.astype(np.int64)
        if in_order:
            return Cells(name, self.levels[place].labels, domains, codes, cell, level, count)
        return group_cells(name, self.levels[place].labels, domains, codes[cell], level, count)


def add_up(level: Integers, count: Integers, offsets: Integers, n_levels: int) -> tuple[Integers, Integers, Integers]:
    """The counts of one of several attributes, of combinations with the values of the others."""
    cell = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    pair = cell * n_levels + level
    order = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    pairs = pair[order][starts]
    total = np.add.reduceat(count[order].astype(np.int64), starts) if len(starts) else count
    return pairs % n_levels, total, np.searchsorted(pairs // n_levels, np.arange(len(offsets)))


def count_attribute(name: str, levels: Levels, level: Integers, count: Integers, offsets: Integers) -> Attribute:
    """An attribute from the positive counts of cells: those of cell i are ``count[offsets[i]:offsets[i + 1]]``."""
    n_levels = len(levels.labels)
    vectors = LabelledCounts.from_lists(level, count, offsets, n_levels) if n_levels <= MOST_LABELS else None
    if vectors is not None:
        return name_vectors(name, levels, vectors)
    count, once = count.astype(np.int64), np.ones(len(count), np.int64)
    profiles = Profiles.from_lists(count, offsets, once[: len(offsets) - 1], n_levels)
    sizes = np.repeat(np.add.reduceat(count, offsets[:-1]) if len(count) else count, np.diff(offsets))
    spread = LevelCounts.from_pairs(levels.labels, level, count, once, sizes)
    return Attribute(name, spread, profiles, levels.declared, levels.missing)


def name_vectors(name: str, levels: Levels, vectors: LabelledCounts) -> Attribute:
    """An attribute from the distinct vectors of counts that cells have."""
    spread = LevelCounts.from_cells(vectors.counts, levels.labels, vectors.cells)
    return Attribute(name, spread, vectors.profiles(), levels.declared, levels.missing, vectors)


def merge_attributes(one: Attribute, other: Attribute) -> Attribute:
    """One attribute of two sets of cells."""
    vectors = None if one.vectors is None or other.vectors is None else one.vectors.merge(other.vectors)
    levels, profiles = one.levels.merge(other.levels), one.profiles.merge(other.profiles)
    return replace(one, levels=levels, profiles=profiles, vectors=vectors)
