"""The original table and a release of it side by side: every count that either of them has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput
from cellrisk.publish.auditing.reading import ReleasedCounts
from cellrisk.publish.matching import check_levels, check_shared, match_column
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.results import LeavesKeys


@dataclass(frozen=True, eq=False)
class TableComparison(LeavesKeys):
    """Each key that either table has, and for each of its labels the original count d and the released count s.

    Attackers use the positive counts of a release; negative ones, which unbiased noise makes, are read as zero.

    >>> codes, cell, level = np.array([[0], [1]]), np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> original, released = np.array([3.0, 0.0, 1.0]), np.array([2.0, -1.0, 1.0])
    >>> both = TableComparison(("sex",), (("f", "m"),), ("a", "b"), codes, cell, level, original, released)
    >>> both.sizes.tolist(), both.shown_sizes.tolist(), both.n_shown.tolist()
    ([3.0, 1.0], [2.0, 1.0], [1, 1])
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    """The values of each quasi-identifier: those of the original, then those that the release alone has."""
    levels: tuple[str, ...]
    codes: Integers
    """(cells, quasi-identifiers): the place of each cell's values among the labels."""
    cell: Integers
    """The cell of each pair of a cell and a level; the pairs ascend."""
    level: Integers
    """The level of each pair."""
    original: Floats
    """The original count of each pair."""
    released: Floats
    """The released count of each pair."""

    def __post_init__(self) -> None:
        if not self.original.sum() > 0:
            raise InvalidInput("the original table has no records")

    @property
    def n_records(self) -> float:
        """Records of the original: N."""
        return float(self.original.sum())

    @cached_property
    def shown(self) -> Floats:
        """The counts as attackers use them."""
        return np.maximum(self.released, 0.0)

    @cached_property
    def sizes(self) -> Floats:
        """Records of the original in each cell; 0 where the release alone has the key."""
        return self.add_up(self.original)

    @cached_property
    def shown_sizes(self) -> Floats:
        """The sum of the counts shown in each cell; 0 where the release shows nothing."""
        return self.add_up(self.shown)

    @cached_property
    def n_shown(self) -> Integers:
        """How many labels each released cell shows."""
        return self.add_up(self.shown > 0).astype(np.int64)

    @cached_property
    def n_labels(self) -> Integers:
        """How many labels each cell of the original holds."""
        return self.add_up(self.original > 0).astype(np.int64)

    @cached_property
    def named(self) -> Floats:
        """Records of the original in each cell that have the one label which the release shows alone."""
        return np.asarray(self.add_up(self.original * (self.shown > 0)) * (self.n_shown == 1))

    @property
    def n_exposed(self) -> int:
        """People whose own value the release shows alone in their cell."""
        return round(float(self.named.sum()))

    def add_up(self, amounts: Any) -> Floats:
        """The sum over the labels of each cell."""
        return np.bincount(self.cell, amounts, minlength=len(self.codes)).astype(np.float64)

    def largest(self, amounts: Floats) -> Floats:
        """The largest over the labels of each cell."""
        starts = np.searchsorted(self.cell, np.arange(len(self.codes)))
        return np.asarray(np.maximum.reduceat(amounts, starts))

    def without_keys(self) -> dict[str, Any]:
        return {"labels": (), "codes": np.zeros((len(self.codes), 0), np.int64)}

    def key(self, cell: int) -> dict[str, str]:
        """The values of the quasi-identifiers in one cell."""
        if not self.labels:
            raise InvalidInput("the keys of this audit were left behind when it was pickled", fix="audit again")
        values = zip(self.names, self.labels, self.codes[cell], strict=True)
        return {name: labels[code] for name, labels, code in values}

    def as_it_is(self) -> TableComparison:
        """The original compared with itself, as if it were released without any change."""
        return replace(self, released=self.original)


def compare_tables(cells: Cells, released: ReleasedCounts, missing_level: bool) -> TableComparison:
    """Puts a release beside the original; refuses what cannot be compared.

    ``missing_level``: whether the last level of the sensitive attribute stands for missing values.
    """
    quasi = [
        match_column(column, domain.labels, domain.missing)
        for column, domain in zip(released.columns[:-1], cells.domains, strict=True)
    ]
    sensitive = match_column(released.columns[-1], cells.levels, missing_level)
    for column in quasi:
        check_shared(column)
    check_levels(sensitive)
    ours = cells.codes[cells.cell]
    theirs = np.stack([column.codes for column in quasi], axis=1)
    codes = np.concatenate([ours, theirs])
    level = np.concatenate([cells.level, sensitive.codes])
    first, cell = find_distinct(codes.T, [len(column.labels) for column in quasi])
    pairs, place = np.unique(cell * len(cells.levels) + level, return_inverse=True)
    return TableComparison(
        cells.names,
        tuple(column.labels for column in quasi),
        cells.levels,
        codes[first],
        pairs // len(cells.levels),
        pairs % len(cells.levels),
        np.bincount(place[: len(ours)], cells.count, minlength=len(pairs)).astype(np.float64),
        np.bincount(place[len(ours) :], released.count, minlength=len(pairs)).astype(np.float64),
    )
