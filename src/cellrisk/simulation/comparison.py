"""An assessment beside a simulation: how far apart they are, in standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.text import aligned, paragraphs

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12
"""Numbers that are closer than this are the same."""
LARGEST_CHANCE_Z = 4.0
"""A z-score beyond this is not chance: 6 in 100,000 for one number."""


@dataclass(frozen=True)
class Difference:
    """One assessed number and its simulated counterpart."""

    measure: str
    attack: str
    form: str
    weights: str | None
    assessed: float
    simulated: float
    standard_error: float
    releases: int

    @property
    def z(self) -> float:
        """(assessed - simulated) / standard error.

        Where the releases did not vary, their error says nothing; the largest one that the assessed value p allows is
        then taken, sqrt(p (1 - p) / releases), because a share lies between 0 and 1.

        >>> Difference("local", "homogeneity", "tight", "records", 0.31, 0.30, 0.005, 1000).z.__round__(6)
        2.0
        """
        difference = self.assessed - self.simulated
        if abs(difference) <= ROUNDING:
            return 0.0
        error = self.standard_error
        if error == 0:
            error = math.sqrt(max(self.assessed * (1.0 - self.assessed), 0.0) / self.releases)
        return difference / error if error > 0 else math.copysign(math.inf, difference)


@dataclass(frozen=True)
class Comparison:
    """Every assessed number that was simulated too. Made by `Simulation.compare`; prints as a sentence and a table."""

    differences: tuple[Difference, ...]
    releases: int
    post_processed: bool = False

    def __post_init__(self) -> None:
        if not self.differences:
            raise InvalidInput(
                "the assessment and the simulation have no number in common",
                fix="assess the exact or tight form of a measure that was simulated",
            )

    @property
    def largest_z(self) -> float:
        """The largest distance, in standard errors, above or below."""
        return max(abs(difference.z) for difference in self.differences)

    @property
    def agrees(self) -> bool:
        """Whether chance explains every difference: none is beyond 4 standard errors."""
        return self.largest_z <= LARGEST_CHANCE_Z

    @property
    def headline(self) -> str:
        """Whether the two agree, in one sentence."""
        verdict = (
            f"within {LARGEST_CHANCE_Z:g}, so chance explains them"
            if self.agrees
            else f"beyond {LARGEST_CHANCE_Z:g}, which chance does not explain"
        )
        subject = "post-processed releases" if self.post_processed else "releases"
        return (
            f"The {len(self.differences):,} assessed numbers are at most {self.largest_z:.1f} standard errors from "
            f"those of {self.releases:,} simulated {subject}: {verdict}."
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a number."""
        import pandas as pd

        return pd.DataFrame(self._rows())

    def to_dict(self) -> dict[str, Any]:
        """The same for machines; an infinite z, of a number that cannot be right, is None."""
        rows = [{**row, "z": row["z"] if math.isfinite(row["z"]) else None} for row in self._rows()]
        largest = self.largest_z if math.isfinite(self.largest_z) else None
        return {
            "releases": self.releases,
            "post_processed": self.post_processed,
            "largest_z": largest,
            "agrees": self.agrees,
            "differences": rows,
            "headline": self.headline,
        }

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {**{name: value for name, value in vars(each).items() if name != "releases"}, "z": each.z}
            for each in self.differences
        ]

    def __str__(self) -> str:
        from cellrisk.assessment import CURATOR_NOTE

        body = [
            [
                *(each.measure, each.attack, each.form, each.weights or "-"),
                *(f"{each.assessed:.4f}", f"{each.simulated:.4f}", f"{each.standard_error:.2g}", f"{each.z:+.2f}"),
            ]
            for each in self.differences
        ]
        header = ["measure", "attack", "form", "weights", "assessed", "simulated", "standard error", "z"]
        return paragraphs([self.headline, aligned(header, body, left=4), CURATOR_NOTE])
