"""What a release covers: every count that gets noise, by its place in a fixed order, and the labels at a place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cellrisk.counts.cells import Domain
from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.domain import Exclusions, ReleasedDomain
from cellrisk.system.arrays import Integers, number_keys

MOST_PLACES = 2**60
LARGEST_COUNT = 2**60
"""Noisy counts above this one are released as this one."""
PLACES_AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class CountGrid:
    """The counts that get noise: combinations of labels, or the observed cells with every level, less exclusions.

    >>> sex, job = Domain("sex", ("f", "m"), declared=True), Domain("job", ("cook", "smith"), declared=True)
    >>> grid = CountGrid((sex, job), np.array([3]), np.array([7]), Exclusions((2, 2)))
    >>> grid.size, [column.tolist() for column in grid.codes(np.array([0, 3]))]
    (4, [[0, 1], [0, 1]])
    """

    axes: tuple[Domain, ...]
    """The quasi-identifiers, then the sensitive attribute."""
    places: Integers
    """The places of the positive counts, ascending."""
    counts: Integers
    """The positive counts, in the order of their places."""
    exclusions: Exclusions
    observed: Integers | None = None
    """The labels of the observed cells, (cells, quasi-identifiers), where only these are released."""

    def __post_init__(self) -> None:
        if self.size > MOST_PLACES:
            raise InvalidInput(
                "the domain is too large to release",
                got=f"about 10^{len(str(self.size)) - 1} counts",
                allowed="up to 2^60",
                fix="use fewer or coarser quasi-identifiers",
            )
        if self.n_counts == 0:
            raise InvalidInput("everything is excluded: there is nothing to release")

    @property
    def size(self) -> int:
        """Places, the excluded ones too."""
        if self.observed is None:
            return math.prod(len(axis) for axis in self.axes)
        return len(self.observed) * len(self.axes[-1])

    @cached_property
    def n_counts(self) -> int:
        """Counts that get noise."""
        if self.observed is None or not self.exclusions.boxes:
            return self.size - (self.exclusions.size if self.exclusions.boxes else 0)
        return sum(len(places) for places, _ in self.pieces())

    def codes(self, places: Integers) -> list[Integers]:
        """The labels at places, as their numbers on each axis."""
        rest, found = places, []
        for axis in reversed(self.axes if self.observed is None else self.axes[-1:]):
            rest, code = np.divmod(rest, len(axis))
            found.append(code)
        quasi = [] if self.observed is None else [column[rest] for column in self.observed.T]
        return [*quasi, *reversed(found)]

    def exclude(self, places: Integers) -> npt.NDArray[np.bool_]:
        """Which places are excluded."""
        if not self.exclusions.boxes:
            return np.zeros(len(places), bool)
        return self.exclusions.cover(self.codes(places))

    def occupied(self, places: Integers) -> npt.NDArray[np.bool_]:
        """Which places hold a positive count."""
        where = np.searchsorted(self.places, places)
        found = np.zeros(len(places), bool)
        inside = where < len(self.places)
        found[inside] = self.places[where[inside]] == places[inside]
        return found

    def every_place(self) -> Integers:
        """All places that are not excluded, in the order of `pieces`."""
        return np.concatenate([places for places, _ in self.pieces()])

    def pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """All places that are not excluded with their counts, zeros too, some at a time."""
        for start in range(0, self.size, PLACES_AT_ONCE):
            stop = min(start + PLACES_AT_ONCE, self.size)
            counts = np.zeros(stop - start, np.int64)
            first, last = np.searchsorted(self.places, (start, stop))
            counts[self.places[first:last] - start] = self.counts[first:last]
            places = np.arange(start, stop)
            kept = ~self.exclude(places)
            yield places[kept], counts[kept]


def make_grid(domain: ReleasedDomain, observed_cells_only: bool) -> CountGrid:
    """The counts of a domain that get noise: all of them, or those of the observed cells."""
    cells, axes = domain.cells, domain.axes
    if observed_cells_only:
        places = cells.cell * len(axes[-1]) + cells.level
    else:
        widths = [len(axis) for axis in axes]
        if math.prod(widths) > MOST_PLACES:  # the numbers below would overflow: CountGrid refuses
            return CountGrid(axes, cells.cell[:0], cells.count[:0], Exclusions(()))
        places = number_keys((*cells.codes[cells.cell].T, cells.level), widths)
    order = np.argsort(places, kind="stable")
    observed = cells.codes if observed_cells_only else None
    return CountGrid(axes, places[order], cells.count[order], domain.exclusions, observed)
