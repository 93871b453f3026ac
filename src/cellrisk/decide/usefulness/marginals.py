"""Marginal tables of many releases at once, over the whole domain or over the observed cells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.system.arrays import Floats, Integers, number_keys

Attributes = tuple[int, ...]
"""Places of a marginal's attributes, ascending: the quasi-identifiers in order, then the sensitive attribute."""


@dataclass(frozen=True, eq=False)
class Margin:
    """One marginal of the true table and of some releases, where the true one is not empty."""

    attributes: Attributes
    size: int
    """Cells over which an error is averaged."""
    true: Floats
    """The counts that are not zero."""
    released: Floats
    """(releases, cells): the counts in the same cells."""


@dataclass(frozen=True, eq=False)
class Layout(ABC):
    """The counts that get noise, in the order in which it is drawn, and the marginals of such counts.

    Counts are whole numbers below 2^53 kept as floats, so that sums of them are exact in any order.
    """

    cells: Cells
    ways: tuple[int, ...]
    whole: ClassVar[bool]
    """Whether an error is averaged over the cells that are empty in the true table too."""

    @property
    @abstractmethod
    def n_counts(self) -> int:
        """Counts in one release."""

    @cached_property
    @abstractmethod
    def places(self) -> Integers:
        """Where the positive counts stand among them, ascending."""

    @abstractmethod
    def room(self, releases: int) -> Floats:
        """An array for so many releases, (releases, counts), to be filled."""

    @abstractmethod
    def margins(self, released: Floats) -> Iterator[Margin]:
        """Every marginal once, in any order."""


@dataclass(frozen=True, eq=False)
class WholeDomain(Layout):
    """Every combination of values with every level: a dense array with an axis for each attribute.

    >>> from cellrisk.counts.cells import Domain, group_cells
    >>> domains = Domain("sex", ("f", "m")), Domain("age", ("young", "old"))
    >>> keys, level, count = np.array([[0, 0], [1, 1]]), np.array([1, 0]), np.array([3, 5])
    >>> layout = WholeDomain(group_cells("job", ("cook", "smith"), domains, keys, level, count), (1,))
    >>> layout.places, layout.n_counts
    (array([1, 6]), 8)
    >>> [(margin.attributes, margin.released.tolist()) for margin in layout.margins(np.arange(8.0)[None])]
    [((2,), [[12.0, 16.0]]), ((1,), [[10.0, 18.0]]), ((0,), [[6.0, 22.0]])]
    """

    whole: ClassVar[bool] = True

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (*(len(domain) for domain in self.cells.domains), len(self.cells.levels))

    @property
    def n_counts(self) -> int:
        return self.cells.domain_size

    @cached_property
    def places(self) -> Integers:
        return number_keys((*self.cells.codes[self.cells.cell].T, self.cells.level), self.shape)

    def room(self, releases: int) -> Floats:
        return np.empty((releases, self.n_counts))

    def margins(self, released: Floats) -> Iterator[Margin]:
        for attributes, counts in self._sum_out(released, tuple(range(len(self.shape))), 0):
            occupied, true = self._true[attributes]
            size = counts.shape[1]
            yield Margin(attributes, size, true, counts if len(true) == size else counts[:, occupied])

    @cached_property
    def _true(self) -> dict[Attributes, tuple[Integers, Floats]]:
        counts = np.zeros((1, self.n_counts))
        counts[0, self.places] = self.cells.count
        found = {}
        for attributes, (sums,) in self._sum_out(counts, tuple(range(len(self.shape))), 0):
            occupied = np.flatnonzero(sums)
            found[attributes] = occupied, sums[occupied]
        return found

    @cached_property
    def _largest_first(self) -> list[int]:
        return sorted(range(len(self.shape)), key=lambda attribute: -self.shape[attribute])

    def _sum_out(self, counts: Floats, kept: Attributes, first: int) -> Iterator[tuple[Attributes, Floats]]:
        """Marginals of the wanted ways, each from one that has a single attribute more.

        Attributes leave in one order, so each set of them is reached once; the largest leave first, so that most sets
        are reached from small arrays.
        """
        if len(kept) in self.ways:
            yield kept, counts
        left = len(kept) - 1
        target = max((way for way in self.ways if way <= left), default=None)
        if target is None:
            return
        for place in range(first, len(self.shape) - (left - target)):  # enough attributes may still leave
            attribute = self._largest_first[place]
            where = kept.index(attribute)
            width, after = self.shape[attribute], math.prod(self.shape[each] for each in kept[where + 1 :])
            sums = np.matmul(np.ones(width), counts.reshape(-1, width, after)).reshape(len(counts), -1)
            yield from self._sum_out(sums, kept[:where] + kept[where + 1 :], place + 1)


@dataclass(frozen=True, eq=False)
class ObservedCells(Layout):
    """The non-empty cells with every level: a row for each cell, added up by the values of a few attributes.

    >>> from cellrisk.counts.cells import Domain, group_cells
    >>> domains = Domain("sex", ("f", "m")), Domain("age", ("young", "old"))
    >>> keys, level, count = np.array([[0, 0], [1, 1]]), np.array([1, 0]), np.array([3, 5])
    >>> layout = ObservedCells(group_cells("job", ("cook", "smith"), domains, keys, level, count), (1,))
    >>> layout.places, layout.n_counts
    (array([1, 2]), 4)
    >>> [(margin.attributes, margin.released.tolist()) for margin in layout.margins(np.arange(4.0)[None])]
    [((2,), [[2.0, 4.0]]), ((0,), [[1.0, 5.0]]), ((1,), [[1.0, 5.0]])]
    """

    whole: ClassVar[bool] = False

    @property
    def n_counts(self) -> int:
        return self.cells.n_cells * len(self.cells.levels)

    @cached_property
    def places(self) -> Integers:
        return self.cells.cell * len(self.cells.levels) + self.cells.level

    def room(self, releases: int) -> Floats:
        return np.empty((self.n_counts, releases)).T

    def margins(self, released: Floats) -> Iterator[Margin]:
        n_cells, n_levels, n_releases = self.cells.n_cells, len(self.cells.levels), len(released)
        by_level = released.T.reshape(n_cells, n_levels * n_releases)
        by_cell = by_level.reshape(n_cells, n_levels, n_releases).sum(axis=1)
        quasi_identifiers = range(len(self.cells.domains))
        for taken in range(len(quasi_identifiers) + 1):
            alone, beside = taken in self.ways, taken + 1 in self.ways  # without and with the sensitive attribute
            for attributes in combinations(quasi_identifiers, taken) if alone or beside else ():
                groups = self._group(attributes)
                true = groups @ self._true
                if beside:
                    sums = (groups @ by_level).reshape(-1, n_releases)
                    yield _where_occupied((*attributes, len(quasi_identifiers)), true.ravel(), sums)
                if alone:
                    yield _where_occupied(attributes, true.sum(axis=1), groups @ by_cell)

    @cached_property
    def _true(self) -> Floats:
        counts = np.zeros(self.n_counts)
        counts[self.places] = self.cells.count
        return counts.reshape(self.cells.n_cells, len(self.cells.levels))

    def _group(self, attributes: Attributes) -> Any:
        """The matrix (groups, cells) that adds up the cells with the same values."""
        from scipy.sparse import csr_array

        alike = np.zeros(self.cells.n_cells, np.int64)  # without any attribute, all cells are one group
        widths = [len(self.cells.domains[attribute]) for attribute in attributes]
        key = number_keys([alike, *(self.cells.codes[:, attribute] for attribute in attributes)], [1, *widths])
        short = key.max(initial=0) < 2**16
        order = np.argsort(key.astype(np.uint16) if short else key, kind="stable")  # 16 bits sort fastest
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        offsets = np.append(starts, len(key))
        return csr_array((np.ones(len(key)), order, offsets), shape=(len(starts), len(key)))


def _where_occupied(attributes: Attributes, true: Floats, sums: Floats) -> Margin:
    occupied = np.flatnonzero(true)
    if len(occupied) < len(true):
        true, sums = true[occupied], sums[occupied]
    return Margin(attributes, len(true), true, sums.T)
