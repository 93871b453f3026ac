"""`inspect_perturbation`: what a perturbation does to the counts of a table, before anybody attacks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.counts.table import FrequencyTable, Summary, require_table
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.explanation.risky_cells import CausedBySize
from cellrisk.system.results import Result, find_words

CLASSES: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, None))
"""The counts that are told apart."""


@dataclass(frozen=True)
class PerturbedClass:
    """Counts of one size: how many there are, and what becomes of them on average."""

    least: int
    most: int | None
    """None where the class has no end."""
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
        """The counts of this class, in words."""
        return CausedBySize(self.least, self.most, 0, 0, 0.0, 0.0).size


@dataclass(frozen=True)
class PerturbedAttribute:
    """The counts of one sensitive attribute in the cells that hold people."""

    sensitive: str
    classes: tuple[PerturbedClass, ...]


@dataclass(frozen=True, repr=False)
class PerturbedCountsSummary(Result):
    """The answer of `inspect_perturbation`: the summary of the table, and what becomes of its counts."""

    wording = "perturbed_counts"

    summary: Summary
    perturbation: Perturbation
    attributes: tuple[PerturbedAttribute, ...]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk inspect --perturbation --json`` prints."""
        found = [
            {
                "sensitive": each.sensitive,
                "classes": [asdict(row) for row in each.classes],
                "sentence": find_words(self.wording).sentence(each, self.perturbation.name),
            }
            for each in self.attributes
        ]
        return {**self.summary.to_dict(), "perturbation": {**self.perturbation.to_dict(), "counts": found}}

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"sensitive": each.sensitive, **asdict(row)} for each in self.attributes for row in each.classes]


def inspect_perturbation(table: FrequencyTable, perturbation: str | Perturbation) -> PerturbedCountsSummary:
    """What would a perturbation do to the counts of this table?

    Counts are those of every sensitive value in every cell that holds people; the numbers are exact means.

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
    found = []
    for attribute in table.attributes:
        made.check_reach(max(int(block.counts.max()) for block in attribute.profiles.blocks))
        found.append(PerturbedAttribute(attribute.name, tuple(_classify(attribute.profiles, made))))
    return PerturbedCountsSummary(table.summary(), made, tuple(found))


def _classify(profiles: Profiles, perturbation: Perturbation) -> Iterator[PerturbedClass]:
    numbers: dict[int, int] = {}
    for block in profiles.blocks:
        for counts, cells in zip(block.counts.tolist(), block.cells.tolist(), strict=True):
            for count in counts:
                numbers[count] = numbers.get(count, 0) + cells
            numbers[0] = numbers.get(0, 0) + cells * (profiles.n_levels - len(counts))
    starts = np.array([least for least, _ in CLASSES])
    told = np.zeros((len(CLASSES), 4))
    for count, number in numbers.items():
        values, chances = perturbation.row(count)
        at = int(np.searchsorted(starts, count, side="right")) - 1
        same, gone = float(chances[values == count].sum()), float(chances[values == 0].sum()) if count else 0.0
        told[at, :3] += number * np.array([same, gone, max(1.0 - same - gone, 0.0)])
        np.add.at(told[:, 3], np.searchsorted(starts, values, side="right") - 1, number * chances)
    for place, (least, most) in enumerate(CLASSES):
        inside = sum(number for count, number in numbers.items() if least <= count <= (count if most is None else most))
        unchanged, hidden, moved, after = told[place].tolist()
        yield PerturbedClass(least, most, inside, unchanged, hidden, moved, after)
