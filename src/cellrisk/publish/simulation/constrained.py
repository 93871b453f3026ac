"""Simulated releases whose counts are made consistent with totals that are published already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing import read_totals
from cellrisk.publish.releasing.consistency import project_whole
from cellrisk.publish.releasing.count_grid import make_grid
from cellrisk.publish.releasing.domain import read_domain
from cellrisk.publish.releasing.published_totals import check_constrained, find_groups
from cellrisk.publish.simulation.drawing import Law
from cellrisk.system.arrays import Floats, number_keys

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

MOST_COUNTS = 20_000_000
"""Counts of one release that are drawn and sorted in memory."""


def constrained_release(
    table: FrequencyTable, mechanism: Mechanism, sensitive: str, parents: Any, parent_count: str | None, **declared: Any
) -> tuple[Cells, Law, int]:
    """The cells that attackers read, the law of releases that add up to published totals, and the size of each.

    The law adds noise to every count of the domain, rounds, and takes the nearest whole numbers that add up to the same
    totals.
    """
    check_constrained(mechanism, clamp=True, dense=True, observed_cells_only=False)
    domain = read_domain(table, sensitive, observed_levels=True, **declared)
    grid, cells = make_grid(domain, observed_cells_only=False), domain.cells
    if max(grid.size, grid.n_counts) > MOST_COUNTS:
        raise InvalidInput(
            "the domain is too large to simulate whole releases",
            got=f"{grid.size:,} counts",
            allowed=f"up to {MOST_COUNTS:,}",
            fix="use fewer or coarser quasi-identifiers",
        )
    groups, totals = find_groups(read_totals(parents, parent_count), grid)
    true = np.concatenate([counts for _, counts in grid.pieces()]).astype(np.float64)
    *widths, n_levels = (len(axis) for axis in grid.axes)
    places = number_keys(cells.codes.T, widths) * n_levels + np.arange(n_levels)[:, None]  # (levels, cells)
    listed = grid.every_place()
    where = np.minimum(np.searchsorted(listed, places), len(listed) - 1)
    excluded = listed[where] != places

    def release(counts: Floats, releases: int, generator: np.random.Generator) -> tuple[Floats, None]:
        noisy = mechanism.noise.sample(generator, (releases, len(true)))
        noisy += true
        whole = np.rint(noisy).astype(np.int64).ravel()
        own_groups = groups + len(totals) * np.arange(releases)[:, None]
        published = project_whole(whole, own_groups.ravel(), np.tile(totals, releases), generator.random)
        released = np.take(published.reshape(releases, -1), where, axis=1)
        released[:, excluded] = 0
        return np.ascontiguousarray(np.moveaxis(released, 1, 0), np.float64), None

    return cells, release, len(true)
