"""What a risk needs to know of a table: the multisets of counts in its cells, and how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Floats, Integers, count_distinct

SIZE_CLASSES = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 999), (1000, None))
"""First and last size of each class by which cells are told, in words and in pictures; the last has no end."""


def name_sizes(low: int, high: int | None) -> str:
    """A class of sizes in words.

    >>> name_sizes(2, 2), name_sizes(3, 4), name_sizes(1000, None)
    ('2', '3-4', '1000+')
    """
    return f"{low}" if low == high else f"{low}-{high}" if high else f"{low}+"


@dataclass(frozen=True, eq=False)
class Block:
    """Profiles with the same number of labels present, so that arithmetic on them is rectangular."""

    counts: Integers
    """(profiles, labels present): the non-zero counts of a cell, largest first."""
    cells: Integers
    """How many cells have that profile."""
    records: Integers
    """How many records those cells hold."""

    @cached_property
    def sizes(self) -> Integers:
        """Records in one cell of each profile."""
        return np.asarray(self.counts.sum(axis=1))

    @staticmethod
    def of(counts: Integers, cells: Integers) -> Block:
        return Block(counts, cells, cells * counts.sum(axis=1))

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, rows: slice) -> Block:
        return Block(self.counts[rows], self.cells[rows], self.records[rows])


@dataclass(frozen=True, eq=False)
class Profiles:
    """Every cell's multiset of non-zero counts, each distinct one once, with its multiplicity.

    Noise does not look at labels, so a cell's risk depends on nothing else. Adult's 5,009 cells have 310 profiles.
    The order is canonical: it does not depend on the order of the records.

    >>> profiles = Profiles.from_cells([[2, 0, 0], [0, 2, 0], [0, 1, 4]], n_levels=3)
    >>> list(profiles.rows())
    [((2,), 2), ((4, 1), 1)]
    >>> profiles.n_records, profiles.n_cells, profiles.n_homogeneous
    (9, 3, 2)
    """

    n_levels: int
    blocks: tuple[Block, ...]

    @staticmethod
    def from_cells(cells: Any, n_levels: int, multiplicity: Sequence[int] | Integers | None = None) -> Profiles:
        """Profiles of a matrix of counts, one row a cell, one column a level; cells without records are left out.

        multiplicity: how many cells each row stands for; default one.
        """
        counts, times = _read_counts(cells, multiplicity)
        if counts.ndim != 2 or counts.shape[1] > n_levels:
            got = f"shape {counts.shape}, {n_levels} levels"
            raise InvalidInput("cells must be a matrix with a column for each level", got=got)
        if counts.size and counts.min() < 0:
            raise InvalidInput("counts must not be negative", allowed="whole numbers from 0")
        present = counts > 0
        offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        return Profiles.from_lists(counts[present], offsets, times, n_levels)

    @staticmethod
    def from_lists(values: Integers, offsets: Integers, cells: Integers, n_levels: int) -> Profiles:
        """Profiles from lists of positive counts.

        List i is ``values[offsets[i]:offsets[i + 1]]``, and stands for ``cells[i]`` cells.
        """
        lengths = np.diff(offsets)
        blocks = []
        for length in np.unique(lengths[lengths > 0]):
            rows = np.flatnonzero(lengths == length)
            counts = -np.sort(-values[offsets[rows][:, None] + np.arange(length)], axis=1)
            blocks.append(Block.of(*_merge(counts, cells[rows])))
        return Profiles(int(n_levels), tuple(blocks))

    @cached_property
    def n_profiles(self) -> int:
        return sum(len(block) for block in self.blocks)

    @cached_property
    def n_cells(self) -> int:
        """Cells that hold at least one record."""
        return sum(int(block.cells.sum()) for block in self.blocks)

    @cached_property
    def n_records(self) -> int:
        return sum(int(block.records.sum()) for block in self.blocks)

    @cached_property
    def n_homogeneous(self) -> int:
        """Cells whose records all share one label (Definition 4)."""
        return sum(int(block.cells.sum()) for block in self.blocks if block.counts.shape[1] == 1)

    @property
    def n_heterogeneous(self) -> int:
        """Cells with at least two labels (Definition 5)."""
        return self.n_cells - self.n_homogeneous

    @cached_property
    def n_unique(self) -> int:
        """Cells that hold exactly one record."""
        return sum(int(block.cells[block.sizes == 1].sum()) for block in self.blocks)

    @cached_property
    def n_exposed(self) -> int:
        """Records in homogeneous cells: what the table reveals with no noise at all."""
        return sum(int(block.records.sum()) for block in self.blocks if block.counts.shape[1] == 1)

    @cached_property
    def sizes(self) -> tuple[Integers, Integers]:
        """Distinct cell sizes, ascending, and how many cells have each."""
        nothing = np.zeros(0, np.int64)
        size = np.concatenate([nothing, *(block.sizes for block in self.blocks)])
        distinct, cells = _merge(size[:, None], np.concatenate([nothing, *(block.cells for block in self.blocks)]))
        return distinct[:, 0], cells

    def rows(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Each profile, largest count first, with the number of cells that have it."""
        for block in self.blocks:
            for counts, cells in zip(block.counts.tolist(), block.cells.tolist(), strict=True):
                yield tuple(counts), cells

    def by_size(self) -> Profiles:
        """The same cells with their labels forgotten: one row a cell size."""
        size, cells = self.sizes
        return Profiles(self.n_levels, (Block.of(size[:, None], cells),) if len(size) else ())

    def by_proportions(self) -> Profiles:
        """The same cells with their sizes forgotten: one row a vector of proportions, in lowest terms."""
        blocks = []
        for block in self.blocks:
            proportions = block.counts // np.gcd.reduce(block.counts, axis=1)[:, None]
            counts, cells = _merge(proportions, block.cells)
            blocks.append(Block(counts, cells, _merge(proportions, block.records)[1]))
        return Profiles(self.n_levels, tuple(blocks))


MOST_NUMBERS = 20_000_000
"""Counts in the vectors that are kept with their labels: 200,000 vectors of 100 levels."""


@dataclass(frozen=True, eq=False)
class LabelledCounts:
    """Every cell's counts with their labels, each distinct vector of them once, and how many cells have it.

    What somebody who knows how common each label is needs beside the profiles: (2, 0) and (0, 2) are one profile, and
    two vectors. The order is canonical: it does not depend on the order of the records.

    >>> vectors = LabelledCounts.from_cells([[2, 0], [0, 2], [2, 0], [0, 0]])
    >>> vectors.counts.tolist(), vectors.cells.tolist()
    ([[0, 2], [2, 0]], [1, 2])
    """

    counts: Integers
    """(vectors, levels)"""
    cells: Integers
    """How many cells have that vector."""

    @staticmethod
    def from_cells(cells: Any, multiplicity: Sequence[int] | Integers | None = None) -> LabelledCounts:
        """The distinct rows of a matrix of counts, one row a cell; cells without records are left out."""
        counts, times = _read_counts(cells, multiplicity)
        present = counts.any(axis=1)
        return LabelledCounts(*_merge(counts[present], times[present]))

    @cached_property
    def sizes(self) -> Integers:
        """Records in one cell of each vector."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def n_levels(self) -> int:
        return int(self.counts.shape[1])

    @property
    def n_records(self) -> int:
        return int(self.cells @ self.sizes)

    @property
    def n_cells(self) -> int:
        return int(self.cells.sum())

    def profiles(self) -> Profiles:
        """The same cells with their labels forgotten."""
        return Profiles.from_cells(self.counts, self.n_levels, self.cells)

    def __len__(self) -> int:
        return len(self.cells)


class NoProfiles(Profiles):
    """The profiles of a table without records. It can be released; of a risk there is nothing to say, so it refuses."""

    def __init__(self, n_levels: int) -> None:
        object.__setattr__(self, "n_levels", n_levels)

    n_profiles = 0
    n_cells = 0
    n_records = 0

    def __repr__(self) -> str:
        return str(self)

    @property
    def blocks(self) -> tuple[Block, ...]:
        what, got = "the table has no record, so there is no risk to compute", "0 records inside the declared labels"
        fix = f"check the declared levels and bins; {argument('outside', 'error')} says which column does not fit"
        raise InvalidInput(what, got=got, fix=fix, code="no-records")


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """What an empirical prior on the labels needs: for each level, how its count is spread over the cells."""

    labels: tuple[str, ...]
    """The levels in their order: as declared, else sorted."""
    level: Integers
    """Histogram, first column: the index of a level."""
    count: Integers
    """Histogram, second column: a count of at least 1."""
    cells: Integers
    """Histogram, third column: how many cells hold that level exactly that often."""
    size_products: Floats
    """For each level, the sum over cells of (records in the cell) * (records of that level in the cell)."""

    @cached_property
    def totals(self) -> Integers:
        """Records of each level."""
        total = np.zeros(len(self.labels), np.int64)
        np.add.at(total, self.level, self.count * self.cells)
        return total

    @cached_property
    def shares(self) -> Floats:
        """Each level's share of the records."""
        return np.asarray(self.totals / self.totals.sum())

    @staticmethod
    def from_pairs(labels: Sequence[str], level: Any, count: Any, cells: Any, sizes: Any) -> LevelCounts:
        """From pairs of a level and a count, the number of cells that have each, and the sum of their sizes."""
        pairs, times = _merge(np.stack([level, count], axis=1, dtype=np.int64), cells)
        products = np.bincount(level, count * np.asarray(sizes, np.float64), len(labels)).astype(np.float64)
        return LevelCounts(tuple(labels), pairs[:, 0], pairs[:, 1], times, products)

    @staticmethod
    def from_cells(cells: Any, labels: Sequence[str], multiplicity: Integers | None = None) -> LevelCounts:
        """From a matrix of counts, one row a cell, one column a level; multiplicity: cells of each row."""
        counts, times = _read_counts(cells, multiplicity)
        row, level = np.nonzero(counts)
        sizes = counts.sum(axis=1)[row] * times[row].astype(np.float64)
        return LevelCounts.from_pairs(labels, level, counts[row, level], times[row], sizes)


def _read_counts(cells: Any, multiplicity: Sequence[int] | Integers | None) -> tuple[Integers, Integers]:
    """A matrix of counts, and how many cells each row stands for: one by default."""
    counts = np.asarray(cells, np.int64)
    times = np.ones(len(counts), np.int64) if multiplicity is None else np.asarray(multiplicity, np.int64)
    return counts, times


def _merge(counts: Integers, cells: Integers) -> tuple[Integers, Integers]:
    """Each distinct row, in lexicographic order, and how many cells have it."""
    return count_distinct(list(counts.T), (counts.max(axis=0, initial=0) + 1).tolist(), cells)


def merge_lists(
    level: Integers, count: Integers, offsets: Integers, cells: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Lists of counts with their levels, each distinct one once, and how many cells have it.

    List i is ``count[offsets[i]:offsets[i + 1]]`` and stands for ``cells[i]`` cells; ``level`` is ascending in it.

    >>> level, count, once = np.array([0, 1, 1]), np.array([2, 2, 2]), np.ones(3, np.int64)
    >>> [array.tolist() for array in merge_lists(level, count, np.arange(4), once)]
    [[0, 1], [2, 2], [0, 1, 2], [1, 2]]
    """
    lengths, parts = np.diff(offsets), [[np.zeros(0, np.int64)] * 4]
    for length in (np.flatnonzero(np.bincount(lengths)[1:]) + 1).tolist():
        rows = np.flatnonzero(lengths == length)
        columns = [array[offsets[rows] + index] for array in (level, count) for index in range(length)]
        distinct, times = count_distinct(columns, [int(column.max()) + 1 for column in columns], cells[rows])
        parts.append([distinct[:, :length].ravel(), distinct[:, length:].ravel(), np.full(len(times), length), times])
    level, count, lengths, cells = map(np.concatenate, zip(*parts, strict=True))
    return level, count, np.concatenate([[0], np.cumsum(lengths)]), cells
