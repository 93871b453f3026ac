"""`utility`: how much of a table's usefulness is left in what is published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.usefulness.marginals import Layout, ObservedCells, WholeDomain, simulate_marginals
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.precision import find_count_errors
from cellrisk.risk.sweep import list_mechanisms, read_epsilons
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours, NoisyCells, require_word
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.counts.table import FrequencyTable

COUNT_CLASSES: tuple[tuple[int, int | None], ...] = ((1, 4), (5, 19), (20, 99), (100, None))
"""Sizes of counts whose errors are told apart."""
SMALLEST_GROUPS = 9
"""People in the largest of the smallest groups."""
MOST_COUNTS = 200_000_000
"""Counts in one release."""
USUAL_WAYS = (1, 2, 3)
MOST_MARGINALS = 100_000
MOST_DISTANCES = 50_000_000
"""Distances that the result holds: one for each mechanism, marginal and release."""

LAYOUTS: dict[str, type[Layout]] = {"domain": WholeDomain, "observed": ObservedCells}


@dataclass(frozen=True)
class DistanceSpread:
    """How a distance varies over marginals of one way and releases."""

    mean: float
    median: float
    low: float
    """The 5% quantile."""
    high: float
    """The 95% quantile."""

    @staticmethod
    def of(values: Floats) -> DistanceSpread:
        """The spread of some values.

        >>> DistanceSpread.of(np.arange(101.0))
        DistanceSpread(mean=50.0, median=50.0, low=5.0, high=95.0)
        """
        low, median, high = (float(value) for value in np.quantile(values, (0.05, 0.5, 0.95)))
        return DistanceSpread(float(values.mean()), median, low, high)


@dataclass(frozen=True)
class ErrorOfCounts:
    """How far the positive counts of one class of sizes are published from the true ones, on average."""

    low: int
    high: int | None
    """The last size; None if the class has no end."""
    number: int
    """How many such counts there are."""
    relative: float
    """The mean of E|published - true| / true."""
    bias: float
    """The mean of E published - true."""


@dataclass(frozen=True, eq=False, repr=False)
class Utility(Result):
    """Distances of released marginal tables from the true ones, for each mechanism, marginal and simulated release.

    Made by `utility`. Prints as a sentence and a table.
    """

    wording = "utility"
    picture = "draw_utility"

    table: FrequencyTable
    mechanisms: tuple[Mechanism, ...]
    sensitive: str
    cells: str
    """Which counts got noise: those of the whole "domain", or of the "observed" cells."""
    marginals: tuple[tuple[str, ...], ...]
    """The columns of each marginal, by way and then in the order of the columns, the sensitive one last."""
    sizes: Integers
    """Cells of each marginal over which errors are averaged: all of its domain, or the non-empty where observed."""
    tvd: Floats
    """(mechanisms, marginals, releases): total variation distance from the true marginal."""
    absolute_error: Floats
    """(mechanisms, marginals): mean of |released count - true count| over the marginal's cells and the releases."""
    releases: int
    seed: int
    domain_size: int
    """Counts that a release of the whole domain has."""
    observed: int
    """Attributes whose values were taken from the data, not declared."""

    @property
    def ways(self) -> tuple[int, ...]:
        """How many attributes the marginals have, ascending."""
        return tuple(dict.fromkeys(len(columns) for columns in self.marginals))

    @property
    def n_counts(self) -> int:
        """Counts that got noise in each release."""
        table = self.table
        return self.domain_size if self.cells == "domain" else table.n_cells * table.attribute(self.sensitive).n_levels

    def errors_of_counts(self, place: int) -> tuple[ErrorOfCounts, ...]:
        """Return the errors of the positive counts of the table by their size, then of those in the smallest groups.

        Exact, from the noise alone; ``place`` is that of the mechanism.
        """
        blocks = self.table.profiles(self.sensitive).blocks
        counts = np.concatenate([block.counts.ravel() for block in blocks])
        groups = np.concatenate([np.repeat(block.cells, block.counts.shape[1]) for block in blocks])
        sizes = np.concatenate([np.repeat(block.sizes, block.counts.shape[1]) for block in blocks])
        distinct, where = np.unique(counts, return_inverse=True)
        found = find_count_errors(self.mechanisms[place], distinct)
        chosen = [(low, high, (counts >= low) & (counts <= (high or np.inf))) for low, high in COUNT_CLASSES]
        chosen.append((0, SMALLEST_GROUPS, sizes <= SMALLEST_GROUPS))
        return tuple(
            ErrorOfCounts(
                *(low, high, int(groups[rows].sum())),
                relative=float(np.average((found.absolute / distinct)[where[rows]], weights=groups[rows])),
                bias=float(np.average(found.bias[where[rows]], weights=groups[rows])),
            )
            for low, high, rows in chosen
            if rows.any()
        )

    def mean_tvd(self, way: int | None = None) -> Floats:
        """The mean distance, one a mechanism: over the releases and the marginals of one way, or all marginals alike.

        With no way given each marginal counts once, so the ways with the most marginals weigh most.
        """
        return np.asarray(self.tvd[:, self._rows(way)].mean(axis=(1, 2)))

    def values(self, mechanism_index: int, way: int) -> Floats:
        """Every distance for one mechanism and way, marginals and releases pooled: what a box plot shows.

        Parameters
        ----------
        mechanism_index
            Which of the mechanisms, from 0.
        way
            How many attributes the marginals have.
        """
        most = len(self.mechanisms) - 1
        if not 0 <= mechanism_index <= most:
            raise InvalidInput("there is no such mechanism", got=mechanism_index, allowed=f"0 to {most}")
        return np.asarray(self.tvd[mechanism_index, self._rows(way)].ravel())

    def _rows(self, way: int | None) -> Integers:
        if way is not None and way not in self.ways:
            raise InvalidInput("no marginals of that way were simulated", got=way, allowed=f"{self.ways}")
        return np.flatnonzero([way is None or len(columns) == way for columns in self.marginals])

    def count_marginals(self, way: int) -> int:
        """How many marginals of that way there are."""
        return len(self._rows(way))

    @cached_property
    def spreads(self) -> dict[tuple[int, int], DistanceSpread]:
        """The spread of distances by the mechanism's place and the way."""
        places = range(len(self.mechanisms))
        return {(place, way): DistanceSpread.of(self.values(place, way)) for place in places for way in self.ways}

    def _numbers(self) -> pd.DataFrame:
        """One row a number: a ``tvd`` for each release, an ``absolute_error`` for all of them, whose release is NA."""
        import pandas as pd

        values = np.concatenate([self.tvd, self.absolute_error[:, :, None]], axis=2)
        mechanism, marginal, release = (axis.ravel() for axis in np.indices(values.shape))
        names = ("name", "epsilon", "delta")
        settings = pd.DataFrame([[getattr(each, name) for name in names] for each in self.mechanisms], columns=names)
        frame = settings.rename(columns={"name": "mechanism"}).take(mechanism).reset_index(drop=True)
        frame["cells"] = self.cells
        frame["way"] = np.array([len(columns) for columns in self.marginals])[marginal]
        frame["marginal"] = np.array([" x ".join(columns) for columns in self.marginals], object)[marginal]
        frame["release"] = pd.array([*range(self.releases), None], dtype="Int64").take(release)
        frame["statistic"] = np.where(release < self.releases, "tvd", "absolute_error").astype(object)
        frame["value"] = values.ravel()
        return frame

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk utility --json`` prints."""
        mean_tvd = self.tvd.mean(axis=2)
        return {
            "sensitive": self.sensitive,
            "unit": self.table.unit.to_dict(),
            "cells": self.cells,
            "releases": self.releases,
            "seed": self.seed,
            "domain_size": self.domain_size,
            "settings": [self._setting(place) for place in range(len(self.mechanisms))],
            "marginals": [
                {
                    "columns": list(columns),
                    "way": len(columns),
                    "cells": int(self.sizes[row]),
                    "tvd": mean_tvd[:, row].tolist(),
                    "absolute_error": self.absolute_error[:, row].tolist(),
                }
                for row, columns in enumerate(self.marginals)
            ],
            "headline": self.headline,
        }

    def _setting(self, place: int) -> dict[str, Any]:
        ways = [
            {"way": way, "marginals": self.count_marginals(way), **vars(self.spreads[place, way])} for way in self.ways
        ]
        errors = [vars(row) for row in self.errors_of_counts(place)]
        return {**self.mechanisms[place].to_dict(), "ways": ways, "errors_of_counts": errors}


def utility(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName] = USUAL_MECHANISM,
    *,
    epsilon: float | Sequence[float] | Floats | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    ways: int | Sequence[int] | None = None,
    releases: int = 100,
    seed: int = 0,
    cells: NoisyCells = "domain",
    sensitive: str | None = None,
    progress: Progress | None = None,
) -> Utility:
    """How far are the marginal tables of a release from the true ones?

    Total variation distance, TVD = 1/2 sum |p - q| over the cells of a marginal, p their true and q their released
    proportions, for every marginal of ``ways`` attributes among the quasi-identifiers and the sensitive one (Liu and
    Zhao, section 5.3). An estimate from simulated releases; the expected absolute error of a marginal's counts beside
    it. A release with no count left has no proportions; its TVD counts as 1.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it; or a list of either.
    epsilon
        One or several, of a mechanism that is named.
    delta, neighbours, threshold
        Those of a mechanism that is named.
    ways
        How many attributes the marginals have, one number or several; by default 1, 2 and 3, as far as the table has so
        many attributes.
    releases, seed
        How many releases are simulated, and where the draws begin: ``numpy.random.default_rng(seed)``, afresh for each
        mechanism, so that its results depend on no other in the list. Noise is drawn release by release; in each, cells
        are in the order of their keys, and levels in theirs.
    cells
        Which counts get noise. "domain": every combination of the values of the quasi-identifiers, declared or
        observed, with every level, as a release that is differentially private must. "observed": the non-empty cells
        with every level, as the paper's authors did; which cells are there is then outside the guarantee.
    sensitive
        Which sensitive attribute; may be left out where the table has one.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 10})
    >>> found = utility(table, "geometric", epsilon=[0.1, 1.0], releases=50)
    >>> found.mean_tvd(way=2).round(4).tolist()
    [0.0035, 0.0003]
    """
    require_table(table)
    epsilons = [None] if epsilon is None else read_epsilons(epsilon).tolist()
    mechanisms = tuple(
        read_mechanism(each, epsilon=one, delta=delta, neighbours=neighbours, threshold=threshold).with_unit(table.unit)
        for each in list_mechanisms(mechanism)
        for one in epsilons
    )
    if not mechanisms:
        raise InvalidInput("no mechanism was given", fix="give one, for example Geometric(epsilon=1.0)")
    require_whole_number("releases", releases, 1, MOST_DISTANCES)
    require_whole_number("seed", seed, 0)
    require_word("cells", cells, tuple(LAYOUTS))
    name = table.attribute(sensitive).name
    attributes = (*table.quasi_identifiers, name)
    chosen = _read_ways(ways, len(attributes))
    n_marginals = sum(math.comb(len(attributes), way) for way in chosen)
    if n_marginals > MOST_MARGINALS:
        raise InvalidInput("too many marginals", got=n_marginals, allowed=f"up to {MOST_MARGINALS:,}", fix="fewer ways")
    if n_marginals * len(mechanisms) * releases > MOST_DISTANCES:
        raise InvalidInput(
            "too many distances to keep",
            got=", ".join(
                number_of(count, noun)
                for count, noun in ((n_marginals, "marginal"), (releases, "release"), (len(mechanisms), "mechanism"))
            ),
            allowed=f"a product up to {MOST_DISTANCES:,}",
            fix="simulate fewer releases, or choose fewer ways",
        )
    keyed = table.cells(name)
    layout = LAYOUTS[cells](keyed, chosen)
    _check_size(layout.n_counts, cells)
    marginals = tuple(marginal for way in chosen for marginal in combinations(range(len(attributes)), way))
    sizes, tvd, errors = simulate_marginals(layout, mechanisms, marginals, int(releases), int(seed), progress)
    return Utility(
        table=table,
        mechanisms=mechanisms,
        sensitive=name,
        cells=cells,
        marginals=tuple(tuple(attributes[place] for place in marginal) for marginal in marginals),
        sizes=sizes,
        tvd=tvd,
        absolute_error=errors,
        releases=int(releases),
        seed=int(seed),
        domain_size=keyed.domain_size,
        observed=[*(domain.declared for domain in keyed.domains), table.attribute(name).declared].count(False),
    )


def _read_ways(given: int | Sequence[int] | None, n_attributes: int) -> tuple[int, ...]:
    if given is None:
        return USUAL_WAYS[:n_attributes]
    ways = list(given) if isinstance(given, Sequence) else [given]
    if not ways:
        raise InvalidInput("no ways were chosen", allowed=f"whole numbers from 1 to {n_attributes}")
    for way in ways:
        require_whole_number("ways", way, 1)
        if way > n_attributes:
            raise InvalidInput(
                "a marginal cannot have more attributes than the table",
                got=f"way {way:,}" if way < 10**18 else way,
                allowed=f"1 to {n_attributes}: the quasi-identifiers and the sensitive attribute",
            )
    return tuple(sorted({int(way) for way in ways}))


def _check_size(n_counts: int, cells: str) -> None:
    if n_counts <= MOST_COUNTS:
        return
    counted, fix = "observed cells", "use fewer or coarser quasi-identifiers"
    if cells == "domain":
        counted, fix = "whole domain", f"noise the observed cells alone with {argument('cells', 'observed')}, or {fix}"
    raise InvalidInput(
        f"a release of the {counted} has too many counts to simulate",
        got=f"{n_counts:,}" if n_counts < 10**15 else f"more than 10^{len(str(n_counts)) - 1}",
        allowed=f"up to {MOST_COUNTS:,}",
        fix=fix,
    )
