"""Marginal tables of simulated releases, over the whole domain or over the observed cells, and how far they are off."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.system.arrays import Floats, Integers, number_keys
from cellrisk.system.progress import Progress, StepCounter

COUNTS_AT_ONCE = 1 << 22
"""Counts of several releases that are in memory together, 32 MB; one release at least, however large."""
DRAWN_AT_ONCE = 1 << 20
"""Draws are made in pieces of this many counts: part of the order that a seed stands for, so never to be changed."""

Attributes = tuple[int, ...]
"""Places of a marginal's attributes, ascending: the quasi-identifiers in order, then the sensitive attribute."""


@dataclass(frozen=True, eq=False)
class Layout(ABC):
    """The counts that get noise, in the order in which it is drawn, and the marginals of such counts.

    Counts are whole numbers below 2^53 kept as floats, so sums of them are exact in any order.
    """

    cells: Cells
    ways: tuple[int, ...]
    whole: ClassVar[bool]
    """Whether an error is averaged also over the cells that are empty in the true table."""

    @property
    @abstractmethod
    def n_counts(self) -> int:
        """Counts in one release."""

    @cached_property
    @abstractmethod
    def places(self) -> Integers:
        """The places of the positive counts among them, ascending."""

    @abstractmethod
    def margins(self, released: Floats) -> Iterator[tuple[Attributes, Floats]]:
        """Every marginal once, in any order: its attributes, and its counts (releases, cells)."""

    @cached_property
    def true(self) -> dict[Attributes, Floats]:
        """The true counts of every marginal."""
        counts = np.zeros((1, self.n_counts))
        counts[0, self.places] = self.cells.count
        return {attributes: sums[0] for attributes, sums in self.margins(counts)}


class WholeDomain(Layout):
    """Every combination of values with every level: a dense array with an axis for each attribute.

    >>> from cellrisk.counts.cells import Domain, group_cells
    >>> domains = Domain("sex", ("f", "m")), Domain("age", ("young", "old"))
    >>> keys, level, count = np.array([[0, 0], [1, 1]]), np.array([1, 0]), np.array([3, 5])
    >>> layout = WholeDomain(group_cells("job", ("cook", "smith"), domains, keys, level, count), (1,))
    >>> layout.places, layout.n_counts
    (array([1, 6]), 8)
    >>> [(attributes, sums.tolist()) for attributes, sums in layout.margins(np.arange(8.0)[None])]
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

    def margins(self, released: Floats) -> Iterator[tuple[Attributes, Floats]]:
        yield from self._sum_out(released, tuple(range(len(self.shape))), 0)

    @cached_property
    def _largest_first(self) -> list[int]:
        return sorted(range(len(self.shape)), key=lambda attribute: -self.shape[attribute])

    def _sum_out(self, counts: Floats, kept: Attributes, first: int) -> Iterator[tuple[Attributes, Floats]]:
        """Marginals of the wanted ways, each from one that has a single attribute more.

        Attributes leave in one order, so each set of them is reached once; the largest leave first, so most sets are
        reached from small arrays.
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


class ObservedCells(Layout):
    """The non-empty cells with every level: a row for each cell, added up by the values of a few attributes.

    >>> from cellrisk.counts.cells import Domain, group_cells
    >>> domains = Domain("sex", ("f", "m")), Domain("age", ("young", "old"))
    >>> keys, level, count = np.array([[0, 0], [1, 1]]), np.array([1, 0]), np.array([3, 5])
    >>> layout = ObservedCells(group_cells("job", ("cook", "smith"), domains, keys, level, count), (1,))
    >>> layout.places, layout.n_counts
    (array([1, 2]), 4)
    >>> [(attributes, sums.tolist()) for attributes, sums in layout.margins(np.arange(4.0)[None])]
    [((2,), [[2.0, 4.0]]), ((0,), [[1.0, 5.0]]), ((1,), [[1.0, 5.0]])]
    """

    whole: ClassVar[bool] = False

    @property
    def n_counts(self) -> int:
        return self.cells.n_cells * len(self.cells.levels)

    @cached_property
    def places(self) -> Integers:
        return self.cells.cell * len(self.cells.levels) + self.cells.level

    def margins(self, released: Floats) -> Iterator[tuple[Attributes, Floats]]:
        n_cells, n_levels, n_releases = self.cells.n_cells, len(self.cells.levels), len(released)
        by_level = np.ascontiguousarray(released.T).reshape(n_cells, n_levels * n_releases)
        by_cell = by_level.reshape(n_cells, n_levels, n_releases).sum(axis=1)
        places = range(len(self.cells.domains))
        for taken in range(len(places) + 1):
            alone, beside = taken in self.ways, taken + 1 in self.ways  # without and with the sensitive attribute
            for attributes in combinations(places, taken) if alone or beside else ():
                groups = self._group(attributes)
                if beside:
                    yield (*attributes, len(places)), (groups @ by_level).reshape(-1, n_releases).T
                if alone:
                    yield attributes, (groups @ by_cell).T

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


def simulate_marginals(
    layout: Layout,
    mechanisms: Sequence[Mechanism],
    marginals: Sequence[Attributes],
    releases: int,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Integers, Floats, Floats]:
    """Return how far the marginals of simulated releases are from the true ones. No release is kept.

    The cells of each marginal; the distances (mechanisms, marginals, releases); and (mechanisms, marginals) the
    absolute error of a count, averaged over the marginal's cells and the releases.
    """
    number = {attributes: place for place, attributes in enumerate(marginals)}
    averaged = [(layout.true[attributes] > 0) | layout.whole for attributes in marginals]
    sizes = np.array([np.count_nonzero(each) for each in averaged])
    tvd, errors = np.zeros((2, len(mechanisms), len(marginals), releases))
    report = StepCounter(progress, tvd.size)
    step = max(1, COUNTS_AT_ONCE // layout.n_counts)
    for place, mechanism in enumerate(mechanisms):
        generator = np.random.default_rng(seed)
        for start in range(0, releases, step):
            part = slice(start, min(start + step, releases))
            released = np.empty((part.stop - part.start, layout.n_counts))
            for release in released:
                draw(layout, mechanism, generator, release)
            for attributes, sums in layout.margins(released):
                row, true = number[attributes], layout.true[attributes]
                tvd[place, row, part] = distances(true, sums)
                errors[place, row, part] = np.abs(sums - true).sum(axis=1, where=averaged[row]) / sizes[row]
                report.add(len(released))
    return sizes, tvd, errors.mean(axis=2)


def draw(layout: Layout, mechanism: Mechanism, generator: np.random.Generator, release: Floats) -> None:
    """Fill one release: each count plus noise, rounded, and zero if that sum is below the threshold."""
    for start in range(0, len(release), DRAWN_AT_ONCE):
        stop = min(start + DRAWN_AT_ONCE, len(release))
        counts = mechanism.noise.sample(generator, (stop - start,))
        first, last = np.searchsorted(layout.places, (start, stop))
        counts[layout.places[first:last] - start] += layout.cells.count[first:last]
        vanished = counts < mechanism.threshold
        np.rint(counts, out=counts)
        counts[vanished] = 0.0
        release[start:stop] = counts


def distances(true: Floats, released: Floats) -> Floats:
    """Total variation distance of each release's marginal (releases, cells) from the true one; 1 if nothing is left.

    1/2 sum |p - q| = sum max(p - q, 0), because p and q both add up to 1.

    >>> distances(np.array([6.0, 2.0, 0.0]), np.array([[6.0, 2.0, 0.0], [3.0, 2.0, 5.0], [0.0, 0.0, 0.0]])).tolist()
    [0.0, 0.5, 1.0]
    """
    totals = released.sum(axis=1)
    shares = released / np.where(totals == 0, 1.0, totals)[:, None]
    found = np.maximum(true / true.sum() - shares, 0.0).sum(axis=1)
    return np.where(totals == 0, 1.0, np.minimum(found, 1.0))  # rounding alone could exceed 1
