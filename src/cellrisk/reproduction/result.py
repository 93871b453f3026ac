"""The answer of `reproduce`: a sentence, the statements, and all that the page and the pictures are made of."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.progress import Progress
from cellrisk.reproduction.experiments import Experiment
from cellrisk.reproduction.panels import AGREES, DIFFERS, ON_CONDITION, Boxes, Sheet, Statement
from cellrisk.results import Result
from cellrisk.text import aligned, number_of

if TYPE_CHECKING:
    from cellrisk.tables import FrequencyTable


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction(Result):
    """The paper, computed again. Prints as a sentence and the statements that do not plainly agree."""

    experiments: tuple[Experiment, ...]
    sheets: tuple[Sheet, ...]
    boxes: tuple[Boxes, ...]
    statements: tuple[Statement, ...]
    missing: tuple[str, ...]
    """What could not be reproduced, and why; empty where nothing is missing."""
    points: int
    releases: int
    seed: int
    seconds: float
    """How long the computation took, pictures not counted."""

    def __post_init__(self) -> None:
        if not (self.experiments and self.sheets and self.statements):
            raise InvalidInput("a reproduction needs an experiment, a sheet and a statement")
        names = [each.name for each in self.pictures]
        if len(set(names)) < len(names):
            raise InvalidInput("two pictures of a reproduction have the same name")

    @cached_property
    def verdicts(self) -> Mapping[str, int]:
        """How many statements have each verdict."""
        return Counter(statement.verdict for statement in self.statements)

    @property
    def pictures(self) -> tuple[Sheet | Boxes, ...]:
        """What is drawn besides the cell sizes; each has a name and a frame."""
        return (*self.sheets, *self.boxes)

    @property
    def tables(self) -> dict[str, FrequencyTable]:
        """The tables by their labels, for the histograms of cell sizes."""
        return {each.label: each.table for each in self.experiments}

    @property
    def headline(self) -> str:
        """What a reader can repeat."""
        counts = [self.verdicts[verdict] for verdict in (AGREES, ON_CONDITION, DIFFERS)]
        told = (
            f"Of {number_of(len(self.statements), 'number or claim', 'numbers and claims')} of the paper, {counts[0]} "
            f"agree with ours, {counts[1]} agree in part or on a condition that the paper does not state, and "
            f"{counts[2]} do not agree."
        )
        return f"{told} Not everything could be reproduced." if self.missing else told

    def _numbers(self) -> list[dict[str, Any]]:
        """One row a statement."""
        return [vars(statement) for statement in self.statements]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk reproduce --json`` prints."""
        return {
            "sentence": self.headline,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in (AGREES, ON_CONDITION, DIFFERS)},
            "statements": [vars(statement) for statement in self.statements],
            "experiments": [each.to_dict() for each in self.experiments],
            "pictures": [each.name for each in self.pictures],
            "missing": list(self.missing),
            "points": self.points,
            "releases": self.releases,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
        }

    def save(self, path: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None) -> Path:
        """Writes the folder with the page, the pictures and the numbers, whole or not at all."""
        from cellrisk.reproduction.folder import write_folder

        return write_folder(self, path, force=force, progress=progress)

    def _paragraphs(self) -> list[str]:
        rows = [[each.claim, each.paper, each.ours] for each in self.statements if each.verdict == DIFFERS]
        table = [f"Does not agree\n{aligned(['claim', 'paper', 'ours'], rows, left=3)}"] if rows else []
        return [*self.missing, *table]
