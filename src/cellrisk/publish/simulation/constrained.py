"""Simulated releases whose counts are made consistent with totals that are published already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing import read_totals
from cellrisk.publish.releasing.count_grid import CountGrid, make_grid
from cellrisk.publish.releasing.domain import read_domain
from cellrisk.publish.releasing.published_totals import TotalGroups, check_constrained, find_groups
from cellrisk.system.arrays import Floats, Integers, number_keys

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

MOST_COUNTS = 20_000_000
"""Counts of one release that are drawn and sorted in memory."""


def constrain(
    table: FrequencyTable, mechanism: Mechanism, sensitive: str, parents: Any, parent_count: str | None, **declared: Any
) -> tuple[Cells, ConstrainedRelease]:
    """The cells that attackers read, and the law of releases of the whole domain that add up to published totals."""
    check_constrained(mechanism, clamp=True, dense=True, observed_cells_only=False)
    domain = read_domain(table, sensitive, observed_levels=True, **declared)
    grid = make_grid(domain, observed_cells_only=False)
    if max(grid.size, grid.n_counts) > MOST_COUNTS:
        raise InvalidInput(
            "the domain is too large to simulate whole releases",
            got=f"{grid.size:,} counts",
            allowed=f"up to {MOST_COUNTS:,}",
            fix="use fewer or coarser quasi-identifiers",
        )
    groups = find_groups(read_totals(parents, parent_count), grid)
    return domain.cells, ConstrainedRelease(domain.cells, grid, groups, mechanism)


@dataclass(frozen=True, eq=False)
class ConstrainedRelease:
    """Noise on every count of a domain, rounded, then the nearest whole numbers that add up to the same totals.

    The attackers read the non-empty cells.
    """

    cells: Cells
    grid: CountGrid
    groups: TotalGroups
    mechanism: Mechanism

    @property
    def size(self) -> int:
        return len(self._counts)

    def release(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, None]:
        noisy = self.mechanism.noise.sample(generator, (releases, len(self._counts)))
        noisy += self._counts
        groups = self.groups.groups + len(self.groups.totals) * np.arange(releases)[:, None]
        several = TotalGroups(groups.ravel(), np.tile(self.groups.totals, releases))
        whole = np.rint(noisy).astype(np.int64).ravel()
        published = several.make_consistent(whole, generator.random).reshape(releases, -1)
        released = np.take(published, np.minimum(self._where, len(self._counts) - 1), axis=1)
        released[:, self._where == len(self._counts)] = 0
        return np.ascontiguousarray(np.moveaxis(released, 1, 0), np.float64), None

    @cached_property
    def _counts(self) -> Floats:
        """The table's counts in the whole domain, in the order of `CountGrid.pieces`."""
        return np.concatenate([counts for _, counts in self.grid.pieces()]).astype(np.float64)

    @cached_property
    def _where(self) -> Integers:
        """(levels, cells): the places of the non-empty cells' counts in that order; past its end for excluded ones."""
        *widths, n_levels = (len(axis) for axis in self.grid.axes)
        places = number_keys(self.cells.codes.T, widths) * n_levels + np.arange(n_levels)[:, None]
        every = self.grid.every_place()
        where = np.searchsorted(every, places)
        found = every[np.minimum(where, len(every) - 1)] == places
        return np.where(found, where, len(every))
