"""The distinct vectors of counts that the cells have, each with the number of its cells.

Where they are few, they are brought here and taken apart; where they are many, the engine is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add, and_
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from cellrisk.counts.holding import read, read_or_held
from cellrisk.counts.profiles import MOST_NUMBERS, LabelledCounts, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from cellrisk.counts.sums import Sums

FEW = 10_000
"""Rows that are brought here."""
MASK_BITS = 60
Histogram: TypeAlias = dict[str, tuple[Integers, Integers, Integers]]
"""For each count column: its distinct positive counts, the cells that hold each, and the records of those cells."""


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


class Vectors(Protocol):
    """A table of vectors: a column for each count, n records and m cells; masks of missing keys; flags h0, h1, ..."""

    def histogram(self, names: list[str]) -> Histogram:
        """How often each count occurs in each column of counts."""

    def profiles(
        self, names: list[str], levels: Sequence[int], n_levels: int
    ) -> tuple[Profiles, LabelledCounts | None]:
        """The profiles of the attribute whose counts these columns are, of those levels, and its vectors with their
        labels; None where they are too many to be brought here."""

    def homogeneity(self, columns: Sequence[Sequence[str]], dense: Sequence[bool]) -> Homogeneity:
        """Cells by how many attributes take one value in them."""

    def missing(self, quasi: Sequence[str]) -> tuple[int, ...]:
        """Records in which each quasi-identifier is missing."""


@contextmanager
def opened_vectors(vectors: ir.Table, sums: Sums, parts: Sequence[str] | None) -> Iterator[Vectors]:
    """The vectors, computed once, and brought here where they are few.

    ``parts``: the counts that add up to the records of a cell; None where n is among the columns. A count table may
    list empty cells; so may a source with new levels since its survey, refused later on. They are left out.
    """
    with read_or_held(vectors, FEW) as (few, table):
        yield ManyVectors(refine(table(), sums, parts)) if few is None else FewVectors(take_apart(few, sums, parts))


def refine(held: ir.Table, sums: Sums, parts: Sequence[str] | None) -> ir.Table:
    """The vectors of cells that are not empty, in an engine, with their counts and records."""
    vectors = sums.read(held)
    if parts:
        vectors = vectors.mutate(n=reduce(add, [vectors[name] for name in parts]))
    return vectors.filter(vectors.n > 0)


def take_apart(few: pa.Table, sums: Sums, parts: Sequence[str] | None) -> dict[str, Integers]:
    """The vectors of counts as arrays in memory, one for each column; ``parts`` add up to a cell's records."""
    columns = {name: integers(few[name]) for name in few.column_names if name not in sums.folded}
    columns |= sums.unfold(few)
    if parts:
        columns["n"] = reduce(add, [columns[name] for name in parts])
    some = columns["n"] > 0
    return {name: column[some] for name, column in columns.items()}


@dataclass(frozen=True, eq=False)
class FewVectors:
    """Vectors in memory."""

    columns: dict[str, Integers]

    def histogram(self, names: list[str]) -> Histogram:
        found: Histogram = {}
        for name in names:
            some = self.columns[name] > 0
            values, places = np.unique(self.columns[name][some], return_inverse=True)
            cells, sizes = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
            np.add.at(cells, places, self.columns["m"][some])
            np.add.at(sizes, places, (self.columns["n"] * self.columns["m"])[some])
            found[name] = values, cells, sizes
        return found

    def profiles(self, names: list[str], levels: Sequence[int], n_levels: int) -> tuple[Profiles, LabelledCounts]:
        labelled = label(self.columns, names, levels, n_levels)
        return labelled.profiles(), labelled

    def homogeneity(self, columns: Sequence[Sequence[str]], dense: Sequence[bool]) -> Homogeneity:
        single = np.stack(
            [
                np.sum([self.columns[name] > 0 for name in names], axis=0) == 1
                if dense[place]
                else self.columns[f"h{place}"] > 0
                for place, names in enumerate(columns)
            ]
        )
        cells = self.columns["m"]
        complete, none = int(cells[single.all(axis=0)].sum()), int(cells[~single.any(axis=0)].sum())
        return Homogeneity(complete, int(cells.sum()) - complete - none, none)

    def missing(self, quasi: Sequence[str]) -> tuple[int, ...]:
        records = self.columns["n"] * self.columns["m"]
        bits = [self.columns[f"mask{place // MASK_BITS}"] >> (place % MASK_BITS) & 1 for place in range(len(quasi))]
        return tuple(int((bit * records).sum()) for bit in bits)


@dataclass(frozen=True, eq=False)
class ManyVectors:
    """Vectors in an engine."""

    table: ir.Table

    def histogram(self, names: list[str]) -> Histogram:
        from ibis import selectors

        vectors = self.table
        # Columns by their number: of a name, Ibis brings the quotation marks along from PostgreSQL.
        long = vectors.pivot_longer(
            selectors.cols(*names), names_to="column", names_transform=names.index, values_to="c"
        )
        long = long.filter(long.c > 0)
        found = read(long.group_by(["column", "c"]).aggregate(cells=long.m.sum(), sizes=(long.n * long.m).sum()))
        column, count, cells, sizes = (integers(found[name]) for name in ("column", "c", "cells", "sizes"))
        return {
            name: (count[column == place], cells[column == place], sizes[column == place])
            for place, name in enumerate(names)
        }

    def profiles(
        self, names: list[str], levels: Sequence[int], n_levels: int
    ) -> tuple[Profiles, LabelledCounts | None]:
        import ibis

        vectors, most = self.table, MOST_NUMBERS // n_levels
        found = read(vectors.group_by(names).aggregate(m=vectors.m.sum()).limit(most + 1))
        if len(found) <= most:
            labelled = label({name: integers(found[name]) for name in found.column_names}, names, levels, n_levels)
            return labelled.profiles(), labelled
        lists = ibis.array([vectors[name] for name in names]).filter(lambda count: count > 0).sort()
        chosen = vectors.select(profile=lists, m=vectors.m)
        return read_profiles(chosen.group_by("profile").aggregate(m=chosen.m.sum()), n_levels), None

    def homogeneity(self, columns: Sequence[Sequence[str]], dense: Sequence[bool]) -> Homogeneity:
        vectors = self.table
        single = [
            reduce(add, [(vectors[name] > 0).cast("int64") for name in names]) == 1
            if dense[place]
            else vectors[f"h{place}"]
            for place, names in enumerate(columns)
        ]
        every = reduce(and_, single)
        no = reduce(and_, [~flag for flag in single])
        found = read(
            vectors.aggregate(
                every=vectors.m.sum(where=every).fill_null(0),
                no=vectors.m.sum(where=no).fill_null(0),
                all=vectors.m.sum(),
            )
        )
        complete, none, cells = (int(found[name][0].as_py()) for name in ("every", "no", "all"))
        return Homogeneity(complete, cells - complete - none, none)

    def missing(self, quasi: Sequence[str]) -> tuple[int, ...]:
        vectors = self.table
        records = [0] * len(quasi)
        for start in range(0, len(quasi), MASK_BITS):
            mask = f"mask{start // MASK_BITS}"
            some = vectors.filter(vectors[mask] > 0)
            found = read(some.group_by(mask).aggregate(records=(some.n * some.m).sum()))
            for bits, number in zip(found[mask].to_pylist(), found["records"].to_pylist(), strict=True):
                for place in range(start, min(start + MASK_BITS, len(quasi))):
                    records[place] += int(number) if int(bits) >> (place - start) & 1 else 0
        return tuple(records)


def label(columns: Mapping[str, Integers], names: list[str], levels: Sequence[int], n_levels: int) -> LabelledCounts:
    """Columns of counts, one a level, and m, the number of cells, as distinct vectors."""
    counts = np.zeros((len(columns["m"]), n_levels), np.int64)
    for name, level in zip(names, levels, strict=True):
        counts[:, level] = columns[name]
    return LabelledCounts.from_cells(counts, columns["m"])


def read_profiles(grouped: ir.Table, n_levels: int) -> Profiles:
    """A column of lists and their multiplicities, as profiles."""
    found = read(grouped)
    lists = found["profile"].combine_chunks()
    offsets = integers(lists.offsets)
    values = integers(lists.values)
    return Profiles.from_lists(values, offsets, integers(found["m"]), n_levels)


def integers(column: Any) -> Integers:
    """An Arrow column of whole numbers, or of truth values, as a numpy array of its own.

    Not through Arrow's `to_numpy`, which loads all of pandas.
    """
    import pyarrow as pa

    whole = column if pa.types.is_integer(column.type) else column.cast("int64")
    chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    return np.concatenate([np.zeros(0, np.int64), *map(np.from_dlpack, chunks)], dtype=np.int64)
