"""`inspect_perturbation`: what a perturbation does to the counts of a table, before any attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.counts.table import FrequencyTable, Summary, require_table
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.perturbed.equal_risk import tally_counts
from cellrisk.system.results import Result, find_words

CLASSES: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, None))
"""The sizes of counts that are summarised separately: the least and the most."""


@dataclass(frozen=True)
class PerturbedClass:
    """Counts of one size: how many there are, and what they are published as on average."""

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


@dataclass(frozen=True)
class PerturbedAttribute:
    """The counts of one sensitive attribute in the groups that hold people."""

    sensitive: str
    classes: tuple[PerturbedClass, ...]


@dataclass(frozen=True, repr=False)
class PerturbedCountsSummary(Result):
    """The answer of `inspect_perturbation`: the summary of the table, and what its counts are published as."""

    wording = "perturbed_counts"

    summary: Summary
    perturbation: Perturbation
    attributes: tuple[PerturbedAttribute, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cellrisk inspect --perturbation --json`` prints."""
        sentence = find_words(self.wording).sentence
        counts = [
            {**asdict(attribute), "sentence": sentence(attribute, self.perturbation.name)}
            for attribute in self.attributes
        ]
        return {**self.summary.to_dict(), "perturbation": {**self.perturbation.to_dict(), "counts": counts}}

    def _numbers(self) -> list[dict[str, Any]]:
        return [
            {"sensitive": attribute.sensitive, **asdict(row)}
            for attribute in self.attributes
            for row in attribute.classes
        ]


def inspect_perturbation(table: FrequencyTable, perturbation: str | Perturbation) -> PerturbedCountsSummary:
    """Return what a perturbation would do to the counts of this table.

    Counts are those of every category in every group that holds people; the numbers are exact means.

    Parameters
    ----------
    table
        Made by `tabulate`.
    perturbation
        As in `assess_perturbation`.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> [one, *_] = [each for each in inspect_perturbation(table, "cell-key").attributes[0].classes if each.least == 1]
    >>> one.counts, one.hidden
    (2, 2.0)
    """
    require_table(table)
    made = read_perturbation(perturbation)
    attributes = []
    for attribute in table.attributes:
        made.check_reach(max(int(block.counts.max()) for block in attribute.profiles.blocks))
        attributes.append(PerturbedAttribute(attribute.name, tuple(_classify(attribute.profiles, made))))
    return PerturbedCountsSummary(table.summary(), made, tuple(attributes))


def _classify(profiles: Profiles, perturbation: Perturbation) -> Iterator[PerturbedClass]:
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
