"""Counting: one GROUP BY of all columns in use, each record's values packed into one whole number.

Each value has a place among the labels of its column, and the places of all columns together are the digits of one
number, or of a few if 63 bits do not suffice: exact, unlike a hash. The combinations that occur come out of DuckDB,
and what is wanted of them is numpy. If there are more of them than memory holds, only distinct vectors of counts come
out, and no key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells, Domain, group_cells
from cellrisk.counts.levels import MOST_LEVELS, NUMBER, Levels, check_several
from cellrisk.counts.profiles import LabelledCounts, LevelCounts, NoProfiles, Profiles
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import Schema
from cellrisk.counts.validation import (
    Column,
    Numbering,
    Values,
    check_missing,
    check_some,
    list_outside,
    number_values,
)
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import LARGEST_KEY, Integers

MOST_CELLS = 20_000_000
"""Combinations of the values of all columns in use that are brought into memory with their keys."""
BYTES_FOR_ROW, BYTES_FOR_VALUE = 64, 200
"""What such a combination takes while it is counted, and a value of a column with very many values."""
MOST_LABELS = 100
"""Vectors of counts are kept with their labels up to so many levels."""
DENSE_LEVELS = 32
"""Without keys, DuckDB counts each level in a column of its own up to so many levels."""


@dataclass(frozen=True)
class Homogeneity:
    """Cells by how many of the sensitive attributes take one value only in them (Definitions 4 and 5)."""

    complete: int
    """Every attribute has one value in the cell."""
    partial: int
    """Some have, some have not."""
    none: int
    """No attribute has."""

    def __post_init__(self) -> None:
        if min(self.complete, self.partial, self.none) < 0:
            raise InvalidInput("numbers of cells must not be negative")


@dataclass(frozen=True, eq=False)
class CountedAttribute:
    """What was counted of one sensitive attribute."""

    levels: Levels
    profiles: Profiles
    level_counts: LevelCounts
    vectors: LabelledCounts | None
    """None if there are too many of them, or too many levels."""

    @staticmethod
    def from_vectors(levels: Levels, counts: Any, cells: Any) -> CountedAttribute:
        """From vectors of counts, (vectors, levels), and the number of cells that have each."""
        vectors = LabelledCounts.from_cells(counts, cells)
        spread = LevelCounts.from_cells(vectors.counts, levels.labels, vectors.cells)
        profiles = vectors.profiles() if len(vectors) else NoProfiles(len(levels.labels))
        return CountedAttribute(levels, profiles, spread, vectors)

    @staticmethod
    def from_lists(levels: Levels, level: Integers, count: Integers, offsets: Integers) -> CountedAttribute:
        """From the positive counts of each cell: those of cell i are ``count[offsets[i]:offsets[i + 1]]``."""
        n_levels = len(levels.labels)
        vectors = LabelledCounts.from_lists(level, count, offsets, n_levels) if n_levels <= MOST_LABELS else None
        if vectors is not None:
            return CountedAttribute.from_vectors(levels, vectors.counts, vectors.cells)
        count, once = count.astype(np.int64), np.ones(len(count), np.int64)
        profiles = Profiles.from_lists(count, offsets, once[: len(offsets) - 1], n_levels)
        sizes = np.repeat(np.add.reduceat(count, offsets[:-1]) if len(count) else count, np.diff(offsets))
        spread = LevelCounts.from_pairs(levels.labels, level, count, once, sizes)
        return CountedAttribute(levels, profiles, spread, None)

    @staticmethod
    def from_spread(
        levels: Levels, lists: Any, level: Integers, count: Integers, cells: Integers, sizes: Any
    ) -> CountedAttribute:
        """From an Arrow table of the sorted lists ``counts`` that m cells have, and for each pair of a level and a
        count the number of cells that have it, and the sum of their sizes."""
        counts = lists["counts"].combine_chunks()
        offsets = np.append(0, np.cumsum(_integers(counts.value_lengths())))
        profiles = Profiles.from_lists(_integers(counts.flatten()), offsets, _integers(lists["m"]), len(levels.labels))
        return CountedAttribute(
            levels, profiles, LevelCounts.from_pairs(levels.labels, level, count, cells, sizes), None
        )


def _integers(column: Any) -> Integers:
    """An Arrow column of whole numbers as a numpy array; not through Arrow's own, which loads all of pandas."""
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    return np.concatenate([np.zeros(0, np.int64), *map(np.from_dlpack, chunks)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Tally:
    """What was counted of a source."""

    attributes: tuple[CountedAttribute, ...]
    homogeneity: Homogeneity
    missing: dict[str, int]
    """Records inside with a missing value, for each column in use that has any."""
    records: int
    """Records that were counted."""
    outside: int
    """Records left out because a value is not among the declared labels."""
    dropped: int
    """Other records left out because a value is missing."""
    keyed: KeyedCells | None = field(default=None, repr=False)
    """The cells with their keys; None if there are too many of them."""
    combinations: int = 0
    """About how many combinations of values there are if there are too many."""

    def read_cells(self, place: int) -> Cells:
        """The cells with their keys, and the counts of the sensitive attribute at a place."""
        if self.keyed is None:
            raise InvalidInput(
                "the table has too many cells to bring their keys into memory",
                got=f"about {self.combinations:,} combinations of values",
                allowed=f"up to {MOST_CELLS:,}, of {BYTES_FOR_ROW} bytes each",
                fix="use fewer or coarser quasi-identifiers, or allow more memory; assessing needs no keys",
                code="too-many-cells",
            )
        return self.keyed.cells(place)


@dataclass(frozen=True)
class Packing:
    """The places of several columns as the digits of one number, or of a few."""

    numberings: tuple[Numbering, ...]
    """Those of quasi-identifiers, then those of sensitive attributes."""

    @cached_property
    def groups(self) -> list[list[int]]:
        """Which columns are the digits of each number."""
        groups: list[list[int]] = [[]]
        for place, numbering in enumerate(self.numberings):
            size = prod(self.numberings[each].width for each in groups[-1])
            if groups[-1] and size * numbering.width >= LARGEST_KEY:
                groups.append([])
            groups[-1].append(place)
        return groups

    def digit(self, place: int) -> tuple[int, int]:
        """Which number holds a column, and what a place of the column counts there."""
        number = next(number for number, group in enumerate(self.groups) if place in group)
        later = self.groups[number][self.groups[number].index(place) + 1 :]
        return number, prod(self.numberings[each].width for each in later)

    @property
    def joins(self) -> str:
        return " ".join(numbering.join for numbering in self.numberings)

    @property
    def bound(self) -> int:
        """Combinations that there can be."""
        return prod(numbering.width for numbering in self.numberings)

    @property
    def n_quasi(self) -> int:
        return sum(numbering.column.role[0] == "q" for numbering in self.numberings)

    def sql(self, columns: Sequence[int] | None = None) -> list[str]:
        """SQL for the numbers; of some columns alone if these are given."""
        chosen = range(len(self.numberings)) if columns is None else columns
        found = []
        for group in self.groups:
            digits = [f"{self.numberings[each].code} * {self.digit(each)[1]}" for each in group if each in chosen]
            found += [f"({' + '.join(digits)})::BIGINT"] if digits else []
        return found


@dataclass(frozen=True, eq=False)
class Rows:
    """Combinations of values that occur, as packed numbers, and the records of each."""

    packing: Packing
    keys: tuple[Integers, ...]
    count: Integers

    def places(self, column: int) -> Integers:
        """The place of a column's value in each row."""
        number, unit = self.packing.digit(column)
        width = self.packing.numberings[column].width
        shifted = self.keys[number] // unit if unit > 1 else self.keys[number]
        return shifted % width if self.packing.groups[number][0] != column else shifted

    def take(self, chosen: Any) -> Rows:
        return Rows(self.packing, tuple(key[chosen] for key in self.keys), self.count[chosen])

    def sort(self) -> Rows:
        """The rows in the order of their numbers; with the count as last digits if 63 bits suffice, which is faster."""
        unit = int(self.count.max(initial=0)) + 1
        if len(self.keys) > 1 or self.packing.bound * unit >= LARGEST_KEY:
            return self.take(np.lexsort(self.keys[::-1]))
        whole = self.keys[0] * unit
        whole += self.count
        whole.sort()
        count = (whole % unit).astype(self.count.dtype)
        whole //= unit
        return Rows(self.packing, (whole,), count)


def fetch_rows(values: Values, packing: Packing, most: int, slack: float = 1.0) -> Rows | int:
    """The combinations that occur, in any order, or about how many there are if these are more than ``most``.

    slack: by how much an estimate, which is off by a few percent, must exceed that to be relied on.
    """
    relation = values.relation
    if min(values.rows, packing.bound) > most:
        roles = ", ".join(column.role for column in values.columns)
        about = int(relation.fetch(f"SELECT approx_count_distinct(hash({roles})) FROM {{rows}}")[0][0])
        if min(about, packing.bound) > slack * most:
            return about
    keys = [f"{sql} AS k{place}" for place, sql in enumerate(packing.sql())]
    narrow = "INTEGER" if values.records < 2**31 else "BIGINT"
    query = (
        f"SELECT {', '.join(keys)}, {values.total}::{narrow} AS n FROM {relation.name} AS x {packing.joins} "
        f"GROUP BY ALL LIMIT {most + 1}"
    )
    found = relation.connection.sql(query).fetchnumpy()
    if len(found["n"]) > most:
        return len(found["n"])
    if any(np.ma.is_masked(column) for column in found.values()) or int(found["n"].sum()) != values.records:
        raise source_changed()
    for numbering in packing.numberings:
        _ = numbering.values  # to have them when DuckDB is gone
    arrays = [np.ma.getdata(found[f"k{place}"]) for place in range(len(keys))]
    return Rows(packing, tuple(arrays), np.ma.getdata(found["n"]))


def source_changed() -> InvalidInput:
    return InvalidInput("the source changed while it was read", fix="try again", code="source-changed")


@dataclass(frozen=True, eq=False)
class Selected:
    """The combinations of values that are counted, and how many records are not."""

    rows: Rows
    missing: dict[str, int]
    records: int
    outside: int
    dropped: int

    def tally(self) -> Tally:
        """What was counted. DuckDB is not needed any more, and its memory is free."""
        rows = self.rows.sort()
        packing, levels, level = rows.packing, [], []
        for place in range(packing.n_quasi, len(packing.numberings)):
            found, places = read_levels(packing.numberings[place], rows.places(place), rows.count)
            check_several(packing.numberings[place].column.name, found)
            levels.append(found)
            level.append(places)
        positive = rows.count > 0
        if not positive.all():
            rows, level = rows.take(positive), [each[positive] for each in level]
        keyed = collect_cells(rows, levels, level)
        attributes = tuple(
            CountedAttribute.from_lists(each, *lists) for each, lists in zip(levels, keyed.lists, strict=True)
        )
        single = np.stack([np.diff(offsets) == 1 for *_, offsets in keyed.lists])
        complete, none = int(single.all(axis=0).sum()), int((~single).all(axis=0).sum())
        homogeneity = Homogeneity(complete, single.shape[1] - complete - none, none)
        return Tally(attributes, homogeneity, self.missing, self.records, self.outside, self.dropped, keyed=keyed)


@dataclass(frozen=True)
class TooManyCells:
    """About how many combinations of values there are, more than memory holds."""

    packing: Packing
    combinations: int


def count_cells(values: Values, schema: Schema, resources: Resources) -> Selected | TooManyCells:
    """Counts the records of a validated source in their cells, with their keys if memory allows."""
    packing = number_columns(values, schema)
    listed = sum(each.size for each in packing.numberings if each.table is not None)
    most = min(MOST_CELLS, max(0, resources.memory - BYTES_FOR_VALUE * listed) // BYTES_FOR_ROW)
    rows = fetch_rows(values, packing, most)
    if isinstance(rows, int):
        return TooManyCells(packing, rows)
    return select_rows(values, schema, rows)


def number_columns(values: Values, schema: Schema) -> Packing:
    dropping = schema.outside == "drop"
    return Packing(tuple(number_values(values, column, dropping, MOST_LEVELS) for column in values.columns))


def select_rows(values: Values, schema: Schema, rows: Rows) -> Selected:
    """Leaves out, or refuses, what the schema says: values outside the declared labels, and missing ones."""
    packing, count = rows.packing, rows.count
    total = inside_records = int(count.sum())
    if not any(numbering.others or numbering.missing for numbering in packing.numberings):
        check_records(values, schema, {}, total, {})
        return Selected(rows, {}, total, 0, 0)
    inside, present = np.ones(len(count), bool), np.ones(len(count), bool)
    others: dict[str, int] = {}
    lacking: dict[str, Any] = {}
    for place, numbering in enumerate(packing.numberings):
        places = rows.places(place)
        if numbering.others:
            other = places == numbering.other
            inside &= ~other
            others[numbering.column.role] = int(count[other].sum())
        if numbering.missing:
            lacking[numbering.column.name] = places == numbering.size
            present &= ~lacking[numbering.column.name]
    found = {name: int(count[where & inside].sum()) for name, where in lacking.items()}
    missing = {name: number for name, number in found.items() if number}
    kept = inside & present if schema.missing == "drop" else inside
    records, inside_records = int(count[kept].sum()), int(count[inside].sum())
    check_records(values, schema, missing, records, others)
    chosen = rows if kept.all() else rows.take(kept)
    return Selected(chosen, missing, records, total - inside_records, inside_records - records)


def check_records(
    values: Values, schema: Schema, missing: dict[str, int], records: int, others: dict[str, int]
) -> None:
    """Refuses missing values, sources without records and values outside the declared labels, as the schema says."""
    check_missing(missing, schema)
    if schema.outside == "drop":
        return
    check_some(values, records + sum(others.values()), schema)
    for column in [*values.sensitive, *values.quasi]:
        if column.listed and ((column.declaration and column.declaration.repeated) or others.get(column.role)):
            column.check(list_outside(values, column))


def read_levels(numbering: Numbering, places: Integers, count: Integers) -> tuple[Levels, Integers]:
    """The levels of a sensitive attribute, and that of each row. A level that has counts of zero only is one too."""
    records = np.bincount(places, count, numbering.width)
    occurs = np.bincount(places, minlength=numbering.width) > 0
    observed = np.flatnonzero(occurs[: numbering.size]).tolist()
    missing = int(records[numbering.size]) if numbering.missing else 0
    levels = numbering.levels(observed, missing)
    return levels, renumber(numbering, levels, observed)[places]


def renumber(numbering: Numbering, levels: Levels, observed: Sequence[int]) -> Integers:
    """For each place, that of its label among the levels."""
    found = np.full(numbering.width, len(levels.labels) - 1, np.int64)  # the last is that of missing values
    found[observed] = [levels.places[numbering.values[place]] for place in observed]
    return found


@dataclass(frozen=True, eq=False)
class KeyedCells:
    """The cells with their packed keys, and the positive counts of each attribute in them."""

    packing: Packing
    keys: tuple[Integers, ...]
    """Of each cell, in order."""
    levels: tuple[Levels, ...]
    lists: tuple[tuple[Integers, Integers, Integers], ...]
    """For each attribute the level and the count of each positive count, and where the counts of each cell begin."""

    @cached_property
    def domains(self) -> tuple[tuple[Domain, ...], Integers, bool]:
        """The domains of the quasi-identifiers, the codes of each cell, and whether cells are in their order."""
        rows = Rows(self.packing, self.keys, self.keys[0])
        domains, codes, in_order = [], [], True
        for place in range(self.packing.n_quasi):
            numbering, places = self.packing.numberings[place], rows.places(place)
            occurs = np.bincount(places, minlength=numbering.width) > 0
            observed = np.flatnonzero(occurs[: numbering.size]).tolist()
            levels = numbering.levels(observed, int(numbering.missing and occurs[numbering.size]))
            new = renumber(numbering, levels, observed)
            in_order &= bool((np.diff(new[observed]) > 0).all())
            domains.append(make_domain(numbering.column, levels))
            codes.append(new[places])
        return tuple(domains), np.stack(codes, axis=1), in_order

    def cells(self, place: int) -> Cells:
        """The cells with their keys, and the counts of the sensitive attribute at a place."""
        domains, codes, in_order = self.domains
        level, count, offsets = self.lists[place]
        name = self.packing.numberings[self.packing.n_quasi + place].column.name
        cell = np.repeat(np.arange(len(codes)), np.diff(offsets))
        level, count = level.astype(np.int64), count.astype(np.int64)
        if in_order:
            return Cells(name, self.levels[place].labels, domains, codes, cell, level, count)
        return group_cells(name, self.levels[place].labels, domains, codes[cell], level, count)


def make_domain(column: Column, levels: Levels) -> Domain:
    named = levels.labels[: len(levels.labels) - levels.missing]
    ordered = column.binning is not None or all(NUMBER.fullmatch(label) for label in named)
    return Domain(column.name, levels.labels, ordered, levels.declared, levels.missing)


def collect_cells(rows: Rows, levels: Sequence[Levels], level: Sequence[Integers]) -> KeyedCells:
    """Rows of one cell together. ``levels`` and ``level``: those of each sensitive attribute, and of each row."""
    packing = rows.packing
    keys = []
    for number, group in enumerate(packing.groups):
        quasi = [each for each in group if each < packing.n_quasi]
        if quasi:  # the places of quasi-identifiers alone, others being zero
            unit = packing.digit(quasi[-1])[1]
            keys.append(rows.keys[number] // unit * unit if unit > 1 else rows.keys[number])
    new = np.zeros(len(rows.count), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    starts = np.flatnonzero(new)
    small = np.min_scalar_type(max(len(each.labels) for each in levels))
    lists: tuple[tuple[Integers, Integers, Integers], ...]
    if len(levels) == 1:
        lists = ((level[0].astype(small), rows.count, np.append(starts, len(new))),)
    else:
        cell = np.cumsum(new) - 1
        lists = tuple(
            _add_up(cell, places, len(each.labels), rows.count) for each, places in zip(levels, level, strict=True)
        )
    return KeyedCells(packing, tuple(key[starts] for key in keys), tuple(levels), lists)


def _add_up(cell: Integers, level: Integers, n_levels: int, count: Integers) -> tuple[Integers, Integers, Integers]:
    """The counts of one of several attributes, whose rows stand for combinations with the others."""
    pair = cell * n_levels + level
    order = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    pairs = pair[order][starts]
    total = np.add.reduceat(count[order].astype(np.int64), starts) if len(starts) else count
    offsets = np.searchsorted(pairs // n_levels, np.arange(int(cell[-1]) + 2 if len(cell) else 1))
    return pairs % n_levels, total, offsets
