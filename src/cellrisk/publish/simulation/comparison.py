"""An assessment beside a simulation: how far apart they are, in standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures import Local, Measure, Survival
from cellrisk.risk.people import shown_alone
from cellrisk.risk.totals import find_reach
from cellrisk.system.results import Result
from cellrisk.system.text import aligned

if TYPE_CHECKING:
    pass

ROUNDING = 1e-12
"""Numbers that are closer than this are the same."""
FALSE_ALARM = 1e-4
"""A right number is farther off than is allowed with at most this probability, whatever the table."""


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
    """Of the simulated number, if the assessed one is right: known, or bounded from above, and not estimated from the
    releases, which may not have drawn what is rare and large. Post-processed releases have their own."""
    allowed: float
    """The difference that chance explains."""

    @property
    def z(self) -> float:
        """(assessed - simulated) / standard error.

        >>> Difference("local", "homogeneity", "tight", "records", 0.31, 0.30, 0.005, 0.02).z.__round__(6)
        2.0
        """
        difference = self.assessed - self.simulated
        if abs(difference) <= ROUNDING:
            return 0.0
        return difference / self.standard_error if self.standard_error > 0 else math.copysign(math.inf, difference)

    @property
    def agrees(self) -> bool:
        """Whether chance explains the difference."""
        return abs(self.assessed - self.simulated) <= self.allowed + ROUNDING


@dataclass(frozen=True)
class Spread:
    """How much a simulated number varies from release to release, if an assessment is right."""

    variance: float
    largest: float
    """The most that one cell changes the number."""

    @staticmethod
    def of(profiles: Profiles, measure: Measure, form: str, weights: str | None, survival: Survival) -> Spread:
        """Of the sum over cells of w_i X_i, 0 <= X_i <= 1, with w_i the weights of the cells.

        Cells are independent. A cell that shows label k alone with probability P_k has X = 1 (exact) or n_k/n (tight):
        its variance is known. Where counts are drawn anew, or an attacker guesses, X has the mean R and, because it
        lies between 0 and 1, a variance of at most R (1 - R).
        """
        known = isinstance(measure, Local)
        variance = largest = 0.0
        for block in profiles.blocks:
            if known:
                chance = shown_alone(block, profiles.n_levels, survival)
                worth = block.counts / block.sizes[:, None] if form == "tight" else np.ones(block.counts.shape)
                mean = (chance * worth).sum(axis=1)
                each = (chance * worth**2).sum(axis=1) - mean**2
            else:
                risk = measure.risk(block, profiles.n_levels, survival, (form,))[form][:, 0]
                each = risk * (1.0 - risk)
            weight = (
                block.sizes / profiles.n_records if weights == "records" else np.full(len(block), 1 / profiles.n_cells)
            )
            variance += float(block.cells @ (weight**2 * np.maximum(each, 0.0)))
            largest = max(largest, float(weight.max()))
        return Spread(variance, largest)

    def standard_error(self, releases: int) -> float:
        """Of the mean over releases."""
        return math.sqrt(self.variance / releases)

    def allowed(self, releases: int) -> float:
        """How far the mean over releases may be off: farther with probability `FALSE_ALARM` at most, by Bennett."""
        return find_reach(releases * self.variance, self.largest, 0.5 * FALSE_ALARM) / releases


@dataclass(frozen=True, repr=False)
class Comparison(Result):
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
        """Whether chance explains every difference: a right number is farther off once in 10,000 times at most."""
        return all(difference.agrees for difference in self.differences)

    @property
    def headline(self) -> str:
        """Whether the two agree, in one sentence."""
        verdict = (
            "chance explains them"
            if self.agrees
            else "farther than a right number is once in 10,000 times, which chance does not explain"
        )
        subject = "post-processed releases" if self.post_processed else "releases"
        return (
            f"The {len(self.differences):,} assessed numbers are at most {self.largest_z:.1f} standard errors from "
            f"those of {self.releases:,} simulated {subject}: {verdict}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The same for machines; an infinite z, of a number that cannot be right, is None."""
        rows = [{**row, "z": row["z"] if math.isfinite(row["z"]) else None} for row in self._numbers()]
        largest = self.largest_z if math.isfinite(self.largest_z) else None
        return {
            "releases": self.releases,
            "post_processed": self.post_processed,
            "largest_z": largest,
            "agrees": self.agrees,
            "differences": rows,
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [
            {**{name: value for name, value in vars(each).items() if name != "allowed"}, "z": each.z}
            for each in self.differences
        ]

    def _paragraphs(self) -> list[str]:
        from cellrisk.risk.assessment import CURATOR_NOTE

        body = [
            [
                *(each.measure, each.attack, each.form, each.weights or "-"),
                *(f"{each.assessed:.4f}", f"{each.simulated:.4f}", f"{each.standard_error:.2g}", f"{each.z:+.2f}"),
            ]
            for each in self.differences
        ]
        header = ["measure", "attack", "form", "weights", "assessed", "simulated", "standard error", "z"]
        return [aligned(header, body, left=4), CURATOR_NOTE]
