"""What a perturbation does to the counts of a table, before any attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.perturbed.equal_risk import tally_counts

CLASSES: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, None))
"""The sizes of counts that are summarised separately: the least and the most."""


@dataclass(frozen=True)
class PerturbedClass:
    """Counts of one size: how many there are, and what they are published as on average. Exact."""

    least: int
    most: int | None
    """None if the class has no end."""
    counts: int
    unchanged: float
    """Published as they are."""
    hidden: float
    """Counts that hold people and are published as 0, or not at all."""
    moved: float
    """Published as another count."""
    after: float
    """Counts that are published in this class, whatever they were before."""

    @property
    def size(self) -> str:
        """The sizes of the class, in words."""
        if self.most is None:
            return f"{self.least:,} and more"
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


def classify_counts(profiles: Profiles, perturbation: Perturbation) -> Iterator[PerturbedClass]:
    """Yield what becomes of the counts of every category in every group that holds people, by their size.

    >>> from cellrisk.noise.perturbations import read_perturbation
    >>> profiles = Profiles.from_cells([[1, 0], [3, 1]], n_levels=2)
    >>> [(row.size, row.counts, row.hidden) for row in classify_counts(profiles, read_perturbation("cell-key"))][1]
    ('1', 2, 2.0)
    """
    starts = [least for least, _ in CLASSES]
    totals, after = np.zeros((len(CLASSES), 4)), np.zeros(len(CLASSES))
    for count, number in zip(*(part.tolist() for part in tally_counts(profiles)), strict=True):
        values, pmf = perturbation.row(count)
        same, hidden = float(pmf[values == count].sum()), float(pmf[values == 0].sum()) if count else 0.0
        row = np.array([1.0, same, hidden, max(1.0 - same - hidden, 0.0)])
        totals[np.searchsorted(starts, count, side="right") - 1] += number * row
        np.add.at(after, np.searchsorted(starts, values, side="right") - 1, number * pmf)
    for ends, (number, same, hidden, moved), published in zip(CLASSES, totals.tolist(), after.tolist(), strict=True):
        yield PerturbedClass(*ends, round(number), same, hidden, moved, published)
