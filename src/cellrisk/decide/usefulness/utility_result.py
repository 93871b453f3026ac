"""The answer of `utility`: a sentence, a table, a frame, a document and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.results import Result
from cellrisk.system.words import NoisyCells, list_words, require_word

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.counts.table import FrequencyTable

CELLS: tuple[NoisyCells, ...] = list_words(NoisyCells)


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
    standard_error: Floats
    """(mechanisms, marginals): of the absolute error; not a number for a single release."""
    releases: int
    seed: int
    domain_size: int
    """Counts that a release of the whole domain has."""
    observed: int
    """Attributes whose values were taken from the data, not declared."""

    def __post_init__(self) -> None:
        require_word("cells", self.cells, CELLS)
        shape = (len(self.mechanisms), len(self.marginals))
        if 0 in shape or self.releases < 1:
            raise InvalidInput("utility needs a mechanism, a marginal and a release at least")
        if self.tvd.shape != (*shape, self.releases):
            raise InvalidInput("utility needs a distance for each mechanism, marginal and release", got=self.tvd.shape)
        if not self.absolute_error.shape == self.standard_error.shape == shape or self.sizes.shape != shape[1:]:
            raise InvalidInput("utility needs an error for each mechanism and marginal, and a size for each marginal")
        if not ((self.tvd >= 0) & (self.tvd <= 1)).all():
            raise InvalidInput("a total variation distance lies between 0 and 1")

    @property
    def ways(self) -> tuple[int, ...]:
        """How many attributes the marginals have, ascending."""
        return tuple(dict.fromkeys(len(columns) for columns in self.marginals))

    @property
    def n_counts(self) -> int:
        """Counts that got noise in each release."""
        table = self.table
        return self.domain_size if self.cells == "domain" else table.n_cells * table.attribute(self.sensitive).n_levels

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
        if not 0 <= mechanism_index < len(self.mechanisms):
            raise InvalidInput(
                "there is no such mechanism", got=mechanism_index, allowed=f"0 to {len(self.mechanisms) - 1}"
            )
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

        kinds, marginals, columns = len(self.mechanisms), len(self.marginals), self.releases + 1
        values = np.concatenate([self.tvd, self.absolute_error[:, :, None]], axis=2)
        release = pd.array([*range(self.releases), None], dtype="Int64")

        def each_mechanism(name: str) -> Any:
            return np.repeat([getattr(mechanism, name) for mechanism in self.mechanisms], marginals * columns)

        def each_marginal(of: list[Any]) -> Any:
            return np.tile(np.repeat(of, columns), kinds)

        return pd.DataFrame(
            {
                "mechanism": each_mechanism("name"),
                "epsilon": each_mechanism("epsilon").astype(float),
                "delta": each_mechanism("delta").astype(float),
                "cells": self.cells,
                "way": each_marginal([len(names) for names in self.marginals]),
                "marginal": each_marginal([" x ".join(names) for names in self.marginals]),
                "release": release.take(np.tile(np.arange(columns), kinds * marginals)),
                "statistic": np.tile(["tvd"] * self.releases + ["absolute_error"], kinds * marginals),
                "value": values.ravel(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk utility --json`` prints."""
        mean_tvd = self.tvd.mean(axis=2)
        return {
            "sensitive": self.sensitive,
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
        return {**self.mechanisms[place].to_dict(), "ways": ways}
