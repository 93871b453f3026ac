"""`simulate_constrained`: what attackers find in releases whose counts add up to parents that are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.publish.releasing.covered_counts import CoveredCounts, cover_counts
from cellrisk.publish.releasing.domain import Rule, read_domain
from cellrisk.publish.releasing.given_parents import read_parents
from cellrisk.publish.releasing.parents import ParentGroups, check_constrained, find_parent_groups
from cellrisk.publish.simulation.releases import CountLaw, Releases
from cellrisk.publish.simulation.simulation_result import Estimate, Simulation, summarise_scenarios
from cellrisk.risk.priors import Fitted
from cellrisk.system.arrays import Floats, Integers, number_keys
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.words import MechanismName, Neighbours

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

MOST_COUNTS = 20_000_000
"""Counts of one release that are drawn and sorted in memory."""


def simulate_constrained(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName,
    parents: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    sensitive: str | None = None,
    parent_count: str | None = None,
    exclude: Sequence[Rule] = (),
    may_be_missing: str | Sequence[str] = (),
    releases: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Simulation:
    """What do attackers find, if this table is released consistent with parent counts that are published?

    Simulates ``release(..., parents=parents)``: noise on every count of the domain, the empty cells' too, rounded; then
    the nearest whole numbers that are not negative and add up to the parents; then the attackers of
    `cellrisk.publish.simulation.attacks` read the non-empty cells. The parents are taken as they are published, so what
    varies is the noise of this release alone. Every number is an estimate, with its standard error.

    ``mechanism`` is an object, such as `Geometric`, or its name with ``epsilon``, and where it takes them ``delta``,
    ``neighbours`` and ``threshold``, beside it.
    ``parents``, ``parent_count``, ``exclude`` and ``may_be_missing`` are those of `release`; ``releases``, ``seed`` and
    ``progress`` those of `simulate`.

    Parents can raise the risk and lower it. They tell something of the noise: of two labels under their own total, half
    the difference of the noises is left, which is less, so the risk moves towards the raw table's, up where a cell is
    homogeneous and down where it is not. And no cell shows nothing any more, so chance alone gives away more, which
    raises the risk at small epsilon. A cell (3, 0) under its own total, and by itself:

    >>> import cellrisk as cr, pandas as pd
    >>> cell = pd.DataFrame({"x": "cell", "y": ["a", "b"], "n": [3, 0]})
    >>> table = cr.tabulate(cell, "x", "y", levels={"y": ["a", "b"]}, count="n")
    >>> total = pd.DataFrame({"x": ["cell"], "count": [3]})
    >>> mechanism = cr.Geometric(epsilon=0.1)
    >>> found = simulate_constrained(table, mechanism, total, releases=4000).value()
    >>> round(found.mean, 2), round(found.standard_error, 3), round(cr.assess(table, mechanism).value(), 2)
    (0.53, 0.008, 0.32)
    """
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    check_constrained(mechanism, clamp=True, dense=True, observed_cells_only=False)
    number, first = require_whole_number("releases", releases, 2, MOST_RELEASES), require_whole_number("seed", seed, 0)
    domain = read_domain(table, sensitive, may_be_missing=may_be_missing, observed_levels=True, exclude=exclude)
    grid = cover_counts(domain, observed_cells_only=False)
    if max(grid.size, grid.n_counts) > MOST_COUNTS:
        raise InvalidInput(
            "the domain is too large to simulate whole releases",
            got=f"{grid.size:,} counts",
            allowed=f"up to {MOST_COUNTS:,}",
            fix="use fewer or coarser quasi-identifiers",
        )
    parent_groups = find_parent_groups(read_parents(parents, parent_count), grid)
    drawn = Releases(domain.cells, ConstrainedCounts(domain.cells, grid, parent_groups, mechanism), number)
    law = CountLaw("local", None, None)
    outcomes = drawn.attack(law, np.random.default_rng(first), StepCounter(progress, drawn.steps))
    return Simulation(
        table=table,
        mechanism=mechanism,
        sensitive=domain.sensitive,
        releases=number,
        seed=first,
        post_processed=True,
        estimates=tuple(Estimate.of("local", *key, values) for key, values in outcomes.shares.items()),
        exposed=outcomes.exposed,
        scenarios=summarise_scenarios(outcomes.scenarios, domain.cells.n_cells),
        fitted=Fitted(None, None),
    )


@dataclass(frozen=True, eq=False)
class ConstrainedCounts:
    """Releases of a whole domain, each made consistent with the same parents; the non-empty cells of them are read."""

    cells: Cells
    grid: CoveredCounts
    parent_groups: ParentGroups
    mechanism: Mechanism

    @property
    def size(self) -> int:
        return len(self._counts)

    def publish(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, None]:
        noisy = self.mechanism.noise.sample(generator, (releases, len(self._counts)))
        noisy += self._counts
        parent_groups, n_groups = self.parent_groups, len(self.parent_groups.totals)
        groups = parent_groups.groups + n_groups * np.arange(releases)[:, None]
        several = ParentGroups(groups.ravel(), np.tile(parent_groups.totals, releases))
        whole = np.rint(noisy).astype(np.int64).ravel()
        published = several.make_consistent(whole, generator.random).reshape(releases, -1)
        released = np.take(published, np.minimum(self._where, len(self._counts) - 1), axis=1)
        released[:, self._where == len(self._counts)] = 0
        return np.ascontiguousarray(np.moveaxis(released, 1, 0), np.float64), None

    @cached_property
    def _counts(self) -> Floats:
        """The table's counts in the whole domain, in the order of `CoveredCounts.pieces`."""
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
