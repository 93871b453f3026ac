"""What a reproduction holds: panels of curves, boxes of distances, statements with their verdicts. Nothing is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.system.words import NoisyCells, require_word

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.risk.curves import Line

READINGS = ("as published", "as defined")
AGREES, ON_CONDITION, DIFFERS = "agrees", "agrees on a condition", "does not agree"
VERDICTS = (AGREES, ON_CONDITION, DIFFERS)
CELLS: tuple[NoisyCells, ...] = ("observed", "domain")


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes: risks along epsilon that belong together."""

    letter: str
    """The paper's letter in its figure 3; empty beyond the paper."""
    experiment: str
    """Adult, Bankruptcy or Bankruptcy subset."""
    reading: str
    """How the table was read: as the authors read it, or as they define cells."""
    title: str
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        require_word("reading of a table", self.reading, READINGS)
        if not self.lines:
            raise InvalidInput("a panel needs a line")


@dataclass(frozen=True, eq=False)
class Sheet:
    """One picture: panels side by side."""

    name: str
    """The stem of its files."""
    title: str
    caption: str
    panels: tuple[Panel, ...]

    def __post_init__(self) -> None:
        if not self.panels:
            raise InvalidInput("a sheet needs a panel")

    def to_frame(self) -> pd.DataFrame:
        """One row a risk: the panel, the setting, epsilon, and what was measured."""
        import pandas as pd

        rows = [
            pd.DataFrame(
                {
                    "letter": panel.letter,
                    "experiment": panel.experiment,
                    "reading": panel.reading,
                    "panel": panel.title,
                    "mechanism": line.setting.name,
                    "delta": line.setting.delta,
                    "attack": line.attack,
                    "measure": line.measure,
                    "form": line.form,
                    "weights": line.weights,
                    "chance": line.limits.chance,
                    "raw": line.limits.raw,
                    "epsilon": line.epsilon,
                    "risk": line.risk,
                }
            )
            for panel in self.panels
            for line in panel.lines
        ]
        return pd.concat(rows, ignore_index=True)


@dataclass(frozen=True)
class Box:
    """One box: for each marginal of a way, the mean TVD over the releases of one setting."""

    mechanism: str
    delta: float
    epsilon: float
    distances: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.distances or not all(0.0 <= distance <= 1.0 for distance in self.distances):
            raise InvalidInput("a box needs distances between 0 and 1", got=f"{len(self.distances)} numbers")

    @property
    def mean(self) -> float:
        return math.fsum(self.distances) / len(self.distances)


@dataclass(frozen=True)
class Boxes:
    """How far simulated releases are from the true marginals: one box a setting, for 1-, 2- and 3-way marginals."""

    name: str
    """The stem of its files."""
    title: str
    caption: str
    cells: str
    """Which counts got noise: the "observed" cells with every level, or the whole "domain"."""
    releases: int
    seed: int
    ways: Mapping[int, tuple[Box, ...]]
    """Boxes by way, in the same order of settings for each: by mechanism, delta, epsilon."""

    def __post_init__(self) -> None:
        require_word("cells", self.cells, CELLS)
        if not self.ways or not all(self.ways.values()):
            raise InvalidInput("box plots need a box for each way")

    def mean(self, way: int, mechanism: str, delta: float, epsilon: float) -> float:
        """The mean distance of one box; the epsilon of the boxes that is nearest is taken."""
        boxes = [box for box in self.ways[way] if (box.mechanism, box.delta) == (mechanism, delta)]
        return min(boxes, key=lambda box: abs(math.log(box.epsilon / epsilon))).mean

    def to_frame(self) -> pd.DataFrame:
        """One row a distance: the mean over the releases for one marginal."""
        import pandas as pd

        rows = [
            {
                "cells": self.cells,
                "way": way,
                "mechanism": box.mechanism,
                "delta": box.delta,
                "epsilon": box.epsilon,
                "marginal": place,
                "tvd": distance,
            }
            for way, boxes in self.ways.items()
            for box in boxes
            for place, distance in enumerate(box.distances)
        ]
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class Statement:
    """One number or claim of the paper, beside ours."""

    place: str
    """Where the paper says it."""
    claim: str
    paper: str
    ours: str
    verdict: str
    why: str
    """One sentence; empty where the two agree and nothing is to be said."""

    def __post_init__(self) -> None:
        require_word("verdict", self.verdict, VERDICTS)
        if self.verdict != AGREES and not self.why:
            raise InvalidInput("a statement that does not plainly agree needs a reason", got=self.claim)
