"""An assessment beside a simulation: how far apart they are, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.publish.simulation.attacks import FigureEstimate
from cellrisk.risk.certainty import find_spread
from cellrisk.risk.measures import Local, Measure
from cellrisk.risk.measures.local import shown_alone
from cellrisk.risk.totals import tail_radius
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute
    from cellrisk.risk.figures import DecisionFigures

ROUNDING = 1e-12
"""Numbers that are closer than this are the same."""
LARGEST_CHANCE_Z = 4.0
"""A z-score beyond this, where the law of a number is not known, is taken for more than chance."""
FALSE_ALARM = 1e-4
"""A right number is farther off than is allowed with at most this probability, whatever the table."""


class ComparedNumber:
    """An assessed number and its simulated counterpart."""

    assessed: float
    simulated: float
    standard_error: float
    allowed: float

    @property
    def z(self) -> float:
        """(assessed - simulated) / standard error.

        >>> SimulatedDifference("local", "homogeneity", "tight", "records", 0.31, 0.30, 0.005, 0.02).z.__round__(6)
        2.0
        """
        difference = self.assessed - self.simulated
        if abs(difference) <= self._rounding:
            return 0.0
        return difference / self.standard_error if self.standard_error > 0 else math.copysign(math.inf, difference)

    @property
    def agrees(self) -> bool:
        """Whether chance explains the difference."""
        return abs(self.assessed - self.simulated) <= self.allowed + self._rounding

    @property
    def _rounding(self) -> float:
        return ROUNDING * max(1.0, self.assessed)

    def to_dict(self) -> dict[str, Any]:
        return {**{name: value for name, value in vars(self).items() if name != "allowed"}, "z": self.z}


@dataclass(frozen=True)
class SimulatedDifference(ComparedNumber):
    """One assessed risk and its simulated counterpart."""

    measure: str
    attack: str
    form: str
    weights: str | None
    assessed: float
    simulated: float
    standard_error: float
    """The standard error of the simulated number, if the assessed one is right: known, or bounded from above, and not
    estimated from the releases, which may not have drawn what is rare and large. Post-processed ones have their own."""
    allowed: float
    """The difference that chance explains."""


@dataclass(frozen=True)
class FigureDifference(ComparedNumber):
    """One figure to decide by and its simulated counterpart, in people."""

    figure: str
    """"caused", "right" or "named"."""
    certainty: float | None
    assessed: float
    """The assessed number; where only two ends are known, the one that is nearest to the simulated number, or that
    number itself between them."""
    simulated: float
    standard_error: float
    """The standard error of the simulated number, if the assessed one is right: known, or estimated from the releases
    where it is not."""
    allowed: float
    """The difference that chance explains."""

    @property
    def tells(self) -> bool:
        """Whether so many releases say anything: chance does not explain a difference as large as the figure itself.

        >>> FigureDifference("caused", None, 3.0, 2.0, 1.1, 4.5).tells
        False
        """
        return self.allowed < max(self.assessed, ROUNDING)

    @property
    def name(self) -> str:
        """The figure, in words."""
        return self.figure if self.certainty is None else f"{self.figure}, {100 * self.certainty:g}% sure"


def compare_figures(
    attribute: Attribute, assessed: DecisionFigures, simulated: Sequence[FigureEstimate], releases: int
) -> Iterator[FigureDifference]:
    """Each figure that was simulated too, with the standard error that follows from the assessment's own law."""
    mechanism, blocks = assessed.mechanism, attribute.profiles.blocks
    most = max(float(block.counts.max()) for block in blocks)
    fullest = max(float(block.sizes.max()) for block in blocks)
    for row in simulated:
        if row.figure == "caused":
            if assessed.attack == "homogeneity" and assessed.caused.deviation is not None:
                spread = ExpectedSpread(assessed.caused.deviation**2, most)
                errors = spread.standard_error(releases), spread.allowed(releases)
                yield FigureDifference("caused", None, assessed.caused.people, row.mean, *errors)
            continue
        named = next((each for each in assessed.certainty if each.certainty == row.certainty), None)
        if named is None or assessed.belief is None:
            continue
        low, high = getattr(named, f"{row.figure}_low"), getattr(named, f"{row.figure}_high")
        known = find_spread(attribute, mechanism.channel, named.certainty, assessed.belief)
        if known is None:
            error = math.hypot(row.standard_error, named.error or 0.0)
            errors = error, LARGEST_CHANCE_Z * error
        else:
            right = row.figure == "right"
            spread = ExpectedSpread(known[0 if right else 1] ** 2, most if right else fullest)
            errors = spread.standard_error(releases), spread.allowed(releases)
        nearest = min(max(row.mean, low), high)
        yield FigureDifference(row.figure, named.certainty, nearest, row.mean, *errors)


@dataclass(frozen=True)
class ExpectedSpread:
    """How much a simulated number varies from release to release, if an assessment is right."""

    variance: float
    largest: float
    """The most that one cell changes the number."""

    @staticmethod
    def of(
        profiles: Profiles, measure: Measure, form: str, weights: str | None, channel: CountChannel
    ) -> ExpectedSpread:
        """The spread of the sum over cells of w_i X_i, 0 <= X_i <= 1, with w_i the weights of the cells.

        Cells are independent. A cell that shows label k alone with probability P_k has X = 1 (exact) or n_k/n (tight):
        its variance is known. Where counts are drawn anew, or an attacker guesses, X has the mean R and, because it
        lies between 0 and 1, a variance of at most R (1 - R).
        """
        known = isinstance(measure, Local)
        variance = largest = 0.0
        for block in profiles.blocks:
            if known:
                chance = shown_alone(block, profiles.n_levels, channel)
                worth = block.counts / block.sizes[:, None] if form == "tight" else np.ones(block.counts.shape)
                mean = (chance * worth).sum(axis=1)
                each = (chance * worth**2).sum(axis=1) - mean**2
            else:
                risk = measure.risk(block, profiles.n_levels, channel, (form,))[form][:, 0]
                each = risk * (1.0 - risk)
            weight = (
                block.sizes / profiles.n_records if weights == "records" else np.full(len(block), 1 / profiles.n_cells)
            )
            variance += float(block.cells @ (weight**2 * np.maximum(each, 0.0)))
            largest = max(largest, float(weight.max()))
        return ExpectedSpread(variance, largest)

    def standard_error(self, releases: int) -> float:
        """The standard error of the mean over releases."""
        return math.sqrt(self.variance / releases)

    def allowed(self, releases: int) -> float:
        """How far the mean over releases may be off: farther with probability `FALSE_ALARM` at most, by Bennett."""
        return tail_radius(releases * self.variance, self.largest, 0.5 * FALSE_ALARM) / releases


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Every assessed number that was simulated too. Made by `Simulation.compare`; prints as a sentence and a table."""

    differences: tuple[SimulatedDifference, ...]
    releases: int
    post_processed: bool = False
    figures: tuple[FigureDifference, ...] = ()
    """The figures to decide by, in people."""
    unknown: str | None = None
    """Why the attacker who does the mathematics was not simulated."""

    @property
    def _every(self) -> tuple[SimulatedDifference | FigureDifference, ...]:
        return (*self.differences, *self.figures)

    def __post_init__(self) -> None:
        if not self.differences:
            raise InvalidInput(
                "the assessment and the simulation have no number in common",
                fix="assess the exact or tight form of a measure that was simulated",
            )

    @property
    def largest_z(self) -> float:
        """The largest distance, in standard errors, above or below."""
        return max(abs(difference.z) for difference in self._every)

    @property
    def agrees(self) -> bool:
        """Whether chance explains every difference: a right number is farther off once in 10,000 times at most."""
        return all(difference.agrees for difference in self._every)

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
            f"The {len(self._every):,} assessed numbers are at most {self.largest_z:.1f} standard errors from "
            f"those of {self.releases:,} simulated {subject}: {verdict}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison for machines; an infinite z, of a number that cannot be right, is None."""
        return {
            "releases": self.releases,
            "post_processed": self.post_processed,
            "largest_z": _finite(self.largest_z),
            "agrees": self.agrees,
            "differences": [{**each.to_dict(), "z": _finite(each.z)} for each in self.differences],
            "figures": [{**each.to_dict(), "z": _finite(each.z), "tells": each.tells} for each in self.figures],
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        """Risks, then the figures to decide by, whose form is "people"."""
        rows = [each.to_dict() for each in self.differences]
        for each in self.figures:
            attack = "homogeneity" if each.certainty is None else "bayes"
            words = {"measure": each.figure, "attack": attack, "form": "people", "weights": None}
            rows.append(words | {name: value for name, value in each.to_dict().items() if name != "figure"})
        return rows

    def _paragraphs(self) -> list[str]:
        body = [
            [each.measure, each.attack, each.form, each.weights or "-", *_show_numbers(each, ".4f")]
            for each in self.differences
        ]
        header = ["measure", "attack", "form", "weights", "assessed", "simulated", "standard error", "z"]
        return [aligned(header, body, left=4), *self._show_figures(), CURATOR_NOTE]

    def _show_figures(self) -> list[str]:
        parts = []
        if self.figures:
            body = [[each.name, *_show_numbers(each, ",.1f")] for each in self.figures]
            parts.append(aligned(["people", "assessed", "simulated", "standard error", "z"], body))
        few = [each.name for each in self.figures if not each.tells]
        if few:
            parts.append(
                f"Too few releases to tell: {'; '.join(few)}. Chance explains a difference as large as the figure."
            )
        if self.unknown:
            parts.append(f"The attacker who does the mathematics was not simulated: {self.unknown}.")
        return parts


def _show_numbers(each: ComparedNumber, form: str) -> list[str]:
    return [f"{each.assessed:{form}}", f"{each.simulated:{form}}", f"{each.standard_error:.2g}", f"{each.z:+.2f}"]


def _finite(z: float) -> float | None:
    return z if math.isfinite(z) else None
