"""Counts of a coarser table that are published already, and the counts of a release that must add up to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.matching import LabelledColumn, match_column
from cellrisk.publish.releasing.consistency import MOST_TOTAL, Keys, project_whole
from cellrisk.publish.releasing.covered_counts import LARGEST_COUNT, CoveredCounts
from cellrisk.system.arrays import Integers, number_keys

MOST_GROUPS = 100_000_000


@dataclass(frozen=True, eq=False)
class Parents:
    """A published table of counts: some of the columns of a release, and one row a combination."""

    columns: tuple[LabelledColumn, ...]
    counts: Integers
    complete: bool
    """Whether every combination is listed; else those that are not are zero."""
    name: str
    """The name of the file, or what was given instead of one."""
    sha256: str | None = None
    """The digest of the file; None where no file was given."""
    path: Path | None = field(default=None, repr=False)
    guarantee: Mechanism | None = None
    """A mechanism with the epsilon, the delta and the neighbours of their guarantee; None where it is not known."""
    exceptions: tuple[str, ...] = ()
    """What their guarantee does not cover, a sentence each."""

    def __post_init__(self) -> None:
        if any(len(column.codes) != len(self.counts) for column in self.columns):
            raise InvalidInput("the columns of a parent table must have the same length")
        if len(self.counts) and not 0 <= self.counts.min() <= self.counts.max() <= MOST_TOTAL:
            raise InvalidInput("parent counts must be whole numbers from 0 on", allowed=f"up to {MOST_TOTAL:,}")

    @property
    def statement(self) -> str:
        """What a reader of the release has to know."""
        digest = "" if self.sha256 is None else f" (sha256 {self.sha256})"
        return (
            f"Counts were made consistent with the parent counts published in {self.name}{digest}, by least squares "
            "under non-negativity. This uses no further records, but these counts show the parent counts: the loss of "
            "the parent release adds to this one."
        )

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What no guarantee covers of a release that adds up to these counts."""
        if self.guarantee is None:
            return (f"The guarantee of the parent counts in {self.name} is not known, and these counts show them.",)
        return tuple(f"In the parent counts of {self.name}: {sentence}" for sentence in self.exceptions)

    def compose(self, mechanism: Mechanism) -> Mechanism | None:
        """A mechanism with the guarantee of a release that adds up to these counts: epsilons and deltas add up.

        Where both are pure, its noise hides no more than both noises do: each count of a release and of its parents is
        randomised response, and two of these show less than one with the sum of their epsilons (Kairouz, Oh, Viswanath
        2015). None where the guarantee of these counts is not known.
        """
        if self.guarantee is None:
            return None
        if self.guarantee.neighbours != mechanism.neighbours:
            raise InvalidInput(
                "the parents and this release have guarantees for different neighbours, which do not add up",
                got=f"{self.guarantee.neighbours} and {mechanism.neighbours}",
                fix=f"release with {argument('neighbours', self.guarantee.neighbours)}",
            )
        weaker = mechanism if self.guarantee.pure else self.guarantee
        loss = {name: getattr(self.guarantee, name) + getattr(mechanism, name) for name in ("epsilon", "delta")}
        return replace(weaker, **loss)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"name": self.name, "sha256": self.sha256, "columns": [column.name for column in self.columns]}


@dataclass(frozen=True, eq=False)
class ParentGroups:
    """Which parent each count of a release belongs to, and what the counts of each parent must add up to."""

    groups: Integers
    totals: Integers

    def __post_init__(self) -> None:
        children = np.bincount(self.groups, minlength=len(self.totals))
        childless = int(np.count_nonzero((self.totals > 0) & (children == 0)))
        if childless:
            raise InvalidInput(
                "parent counts are positive where the release excludes every count",
                got=f"{childless:,} of {len(self.totals):,}",
                fix="exclude only what the parent table shows as zero",
            )

    def make_consistent(self, noisy: Integers, keys: Keys) -> Integers:
        """Counts with noise, in the order of the release, as the nearest whole numbers that add up to the parents.

        >>> from cellrisk.publish.releasing.consistency import secure_keys
        >>> parent_groups = ParentGroups(np.array([0, 0, 1]), np.array([4, 0]))
        >>> parent_groups.make_consistent(np.array([6, -3, 2]), secure_keys).tolist()
        [4, 0, 0]
        """
        return project_whole(np.clip(noisy, -LARGEST_COUNT, LARGEST_COUNT), self.groups, self.totals, keys)


def check_constrained(mechanism: Mechanism, clamp: bool, dense: bool | None, observed_cells_only: bool) -> None:
    """Refuses settings of a release that cannot be combined with parents."""
    if not clamp:
        raise InvalidInput("counts that are consistent with parents are not negative", fix="leave clamp=False out")
    if dense is False or observed_cells_only:
        raise InvalidInput(
            "parents are shared among every count of the domain, the empty ones too",
            fix="leave dense=False and observed_cells_only out",
        )
    if mechanism.threshold != USUAL_THRESHOLD:
        raise InvalidInput(
            "a threshold would take counts away from their parents",
            got=mechanism.threshold,
            allowed=f"{USUAL_THRESHOLD}",
        )


def find_parent_groups(parents: Parents, grid: CoveredCounts) -> ParentGroups:
    """The parent of each count that gets noise; refuses labels and combinations that are not those of the grid."""
    axes = {axis.name: place for place, axis in enumerate(grid.axes)}
    unknown = [column.name for column in parents.columns if column.name not in axes]
    if unknown:
        raise UnknownName(
            "the parent table has columns that the release has not", got=", ".join(unknown), allowed=", ".join(axes)
        )
    if len(parents.columns) == len(axes):
        raise InvalidInput(
            "the parent table has all columns of the release, so that nothing is left to release",
            fix="give a table with fewer of them",
        )
    chosen = [axes[column.name] for column in parents.columns]
    widths = [len(grid.axes[place]) for place in chosen]
    if math.prod(widths) > MOST_GROUPS:
        raise InvalidInput(
            "the parent table's domain is too large", got=f"{math.prod(widths):,}", allowed=f"up to {MOST_GROUPS:,}"
        )
    places = grid.every_place()
    matched, codes = [_match(column, grid, axes) for column in parents.columns], grid.codes(places)
    widths = [1, *widths]  # where the parent table has no column, all counts are one group
    listed = number_keys([np.zeros_like(parents.counts), *matched], widths)
    groups = number_keys([np.zeros_like(places), *(codes[place] for place in chosen)], widths)
    totals = np.zeros(math.prod(widths), np.int64)
    _check_listed(parents, np.bincount(listed, minlength=len(totals)), np.bincount(groups, minlength=len(totals)))
    totals[listed] = parents.counts
    return ParentGroups(groups, totals)


def _match(column: LabelledColumn, grid: CoveredCounts, axes: dict[str, int]) -> Integers:
    """The place of each label of a parent column on the axis with the same name."""
    axis = grid.axes[axes[column.name]]
    matched = match_column(column, axis.labels, axis.missing)
    unknown = len(matched.labels) - matched.known
    if unknown:
        raise InvalidInput(
            f"the parent table has labels of '{column.name}' that the release has not",
            got=f"{unknown:,} of them",
            allowed=f"the {matched.known:,} labels of the release",
            fix="declare the same levels or bins for both",
        )
    return matched.codes


def _check_listed(parents: Parents, times: Integers, children: Integers) -> None:
    twice = int(np.count_nonzero(times > 1))
    if twice:
        raise InvalidInput(
            "the parent table lists combinations more than once", got=f"{twice:,} of them", allowed="one row each"
        )
    absent = int(np.count_nonzero((children > 0) & (times == 0))) if parents.complete else 0
    if absent:
        raise InvalidInput(
            "the parent table does not list every combination that the release has counts for",
            got=f"{absent:,} missing of {int(np.count_nonzero(children)):,}",
            fix="list them with their counts, 0 where there is none, or exclude them from the release too",
        )
