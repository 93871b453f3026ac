"""The answer of `simulate`: estimates with their errors, beside those of an assessment, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.scenarios import Scenario
from cellrisk.publish.simulation.attacks import mean_and_error
from cellrisk.risk.assessment import Assessment
from cellrisk.risk.attacks import ATTACKS, choose_risks
from cellrisk.risk.certainty import find_spread
from cellrisk.risk.measures import WEIGHTS, Local, Measure
from cellrisk.risk.measures.local import shown_alone
from cellrisk.risk.totals import tail_radius
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.choices import require_word
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable
    from cellrisk.risk.figures import DecisionFigures

FORMS = ("exact", "tight")
"""The published form is a formula, not the probability of something, so no release shows it."""
ROUNDING = 1e-12
"""Numbers that are closer than this are the same."""
LARGEST_CHANCE_Z = 4.0
"""A z-score beyond this, where the law of a number is not known, is taken for more than chance."""
FALSE_ALARM = 1e-4
"""A right number is farther off than is allowed with at most this probability, whatever the table."""


@dataclass(frozen=True)
class Estimate:
    """One simulated number: the mean over releases, and its standard error."""

    name: Mapping[str, Any]
    """The measure, attack, form and weights of a risk; or the figure ("caused", "right", "named"), in people, and its
    certainty."""
    mean: float
    standard_error: float

    @staticmethod
    def of(name: Mapping[str, Any], values: Floats) -> Estimate:
        """The estimate from one value a release; the standard error is their deviation over the root of their number.

        >>> Estimate.of({"figure": "caused"}, np.array([0.1, 0.3])).mean
        0.2
        """
        return Estimate(name, *mean_and_error(values))

    def to_dict(self) -> dict[str, Any]:
        return {**self.name, "mean": self.mean, "standard_error": self.standard_error}


@dataclass(frozen=True)
class Difference:
    """An assessed number and its simulated counterpart."""

    name: Mapping[str, Any]
    """That of the estimate."""
    assessed: float
    """The assessed number; where only two ends are known, the one that is nearest to the simulated number, or that
    number itself between them."""
    simulated: float
    standard_error: float
    """The standard error of the simulated number, if the assessed one is right: known, or bounded from above, and not
    estimated from the releases, which may not have drawn what is rare and large. It is estimated if the releases were
    post-processed, or the law is not known."""
    allowed: float
    """The difference that chance explains."""

    @staticmethod
    def of(figure: str, assessed: float, values: Floats) -> Difference:
        """A figure whose law is not known: the standard error is that of its values in the releases."""
        mean, error = mean_and_error(values)
        return Difference({"figure": figure}, float(assessed), mean, error, LARGEST_CHANCE_Z * error)

    @property
    def z(self) -> float:
        """(assessed - simulated) / standard error.

        >>> round(Difference({"figure": "caused"}, 0.31, 0.30, 0.005, 0.02).z, 6)
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
    def tells(self) -> bool:
        """Whether so many releases say anything: chance does not explain a difference as large as the figure itself.

        >>> Difference({"figure": "caused"}, 3.0, 2.0, 1.1, 4.5).tells
        False
        """
        return self.allowed < max(self.assessed, ROUNDING)

    @property
    def _rounding(self) -> float:
        return ROUNDING * max(1.0, self.assessed)

    def to_dict(self) -> dict[str, Any]:
        numbers = {"assessed": self.assessed, "simulated": self.simulated, "standard_error": self.standard_error}
        return {**self.name, **numbers, "z": self.z}


def compare_risks(
    attribute: Attribute, assessment: Assessment, simulated: Sequence[Estimate], releases: int, post_processed: bool
) -> list[Difference]:
    """Each risk of an attribute that was simulated too, with the error that follows from the assessment's own law."""
    rows = {tuple(row.name.values()): row for row in simulated}
    differences = []
    for risk in assessment.risks:
        row = rows.get((risk.measure, risk.attack, risk.form, risk.weights))
        if risk.sensitive != attribute.name or row is None:
            continue
        errors = row.standard_error, LARGEST_CHANCE_Z * row.standard_error
        if not post_processed:
            [measure] = choose_risks(risk.attack, risk.measure, risk.form).make(
                assessment.fitted[attribute.name].measure
            )
            channel = assessment.mechanism.channel
            spread = expected_spread(attribute.profiles, measure, risk.form, risk.weights, channel)
            errors = expected_errors(*spread, releases)
        differences.append(Difference(row.name, risk.risk, row.mean, *errors))
    return differences


def compare_figures(
    attribute: Attribute, assessed: DecisionFigures, simulated: Sequence[Estimate], releases: int
) -> Iterator[Difference]:
    """Each figure that was simulated too, with the standard error that follows from the assessment's own law."""
    blocks = attribute.profiles.blocks
    most = max(float(block.counts.max()) for block in blocks)
    fullest = max(float(block.sizes.max()) for block in blocks)
    for row in simulated:
        figure, certainty = row.name["figure"], row.name["certainty"]
        if figure == "caused":
            if assessed.attack == "homogeneity" and assessed.caused.deviation is not None:
                errors = expected_errors(assessed.caused.deviation**2, most, releases)
                yield Difference(row.name, assessed.caused.people, row.mean, *errors)
            continue
        named = next((inferred for inferred in assessed.certainty if inferred.certainty == certainty), None)
        if named is None or assessed.belief is None:
            continue
        known = find_spread(attribute, assessed.mechanism.channel, named.certainty, assessed.belief)
        if known is None:
            error = math.hypot(row.standard_error, named.error or 0.0)
            errors = error, LARGEST_CHANCE_Z * error
        elif figure == "right":
            errors = expected_errors(known[0] ** 2, most, releases)
        else:
            errors = expected_errors(known[1] ** 2, fullest, releases)
        low, high = getattr(named, f"{figure}_low"), getattr(named, f"{figure}_high")
        yield Difference(row.name, min(max(row.mean, low), high), row.mean, *errors)


def expected_spread(
    profiles: Profiles, measure: Measure, form: str, weights: str | None, channel: CountChannel
) -> tuple[float, float]:
    """The variance of the sum over cells of w_i X_i, 0 <= X_i <= 1, with w_i the weights of cells; and the largest w_i.

    Cells are independent. A cell that shows label k alone with probability P_k has X = 1 (exact) or n_k/n (tight): its
    variance is known. If counts are drawn anew, or an attacker guesses, X has the mean R and, because it lies between 0
    and 1, a variance of at most R (1 - R).
    """
    variance = largest = 0.0
    for block in profiles.blocks:
        if isinstance(measure, Local):
            alone = shown_alone(block, profiles.n_levels, channel)
            worth = block.counts / block.sizes[:, None] if form == "tight" else np.ones(block.counts.shape)
            cell = (alone * worth**2).sum(axis=1) - (alone * worth).sum(axis=1) ** 2
        else:
            risk = measure.risk(block, profiles.n_levels, channel, (form,))[form][:, 0]
            cell = risk * (1.0 - risk)
        by_records = weights == "records"
        weight = block.sizes / profiles.n_records if by_records else np.full(len(block), 1 / profiles.n_cells)
        variance += float(block.cells @ (weight**2 * np.maximum(cell, 0.0)))
        largest = max(largest, float(weight.max()))
    return variance, largest


def expected_errors(variance: float, largest: float, releases: int) -> tuple[float, float]:
    """The standard error of the mean over releases of a sum of independent parts, and how far it may be off.

    It is farther off with probability `FALSE_ALARM` at most, by Bennett's inequality; no part is above ``largest``.
    """
    allowed = tail_radius(releases * variance, largest, 0.5 * FALSE_ALARM) / releases
    return math.sqrt(variance / releases), allowed


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Every assessed number that was simulated too. Made by `Simulation.compare`; prints as a sentence and a table."""

    wording: ClassVar[str] = "comparison"

    differences: tuple[Difference, ...]
    releases: int
    post_processed: bool = False
    figures: tuple[Difference, ...] = ()
    """The figures to decide by, in people."""
    unknown: str | None = None
    """Why the informed attacker was not simulated."""

    @property
    def every(self) -> tuple[Difference, ...]:
        """Risks and figures."""
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
        return max(abs(difference.z) for difference in self.every)

    @property
    def agrees(self) -> bool:
        """Whether chance explains every difference: a right number is farther off once in 10,000 times at most."""
        return all(difference.agrees for difference in self.every)

    def to_dict(self) -> dict[str, Any]:
        """The comparison for machines; an infinite z, of a number that cannot be right, is None."""
        return {
            "releases": self.releases,
            "post_processed": self.post_processed,
            "largest_z": _finite(self.largest_z),
            "agrees": self.agrees,
            "differences": [{**row.to_dict(), "z": _finite(row.z)} for row in self.differences],
            "figures": [{**row.to_dict(), "z": _finite(row.z), "tells": row.tells} for row in self.figures],
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        """Risks, then the figures to decide by, whose form is "people"."""
        rows = [row.to_dict() for row in self.differences]
        for row in self.figures:
            numbers = {name: value for name, value in row.to_dict().items() if name != "figure"}
            attack = "homogeneity" if row.name["certainty"] is None else "bayes"
            words = {"measure": row.name["figure"], "attack": attack, "form": "people", "weights": None}
            rows.append(words | numbers)
        return rows


def _finite(z: float) -> float | None:
    return z if math.isfinite(z) else None


@dataclass(frozen=True)
class Exposed:
    """How many people's values the homogeneity attack outputs correctly, over the releases."""

    mean: float
    standard_error: float
    """The standard error of the mean."""
    deviation: float
    """The standard deviation from release to release."""
    low: int
    """The 2.5% quantile over the releases."""
    high: int
    """The 97.5% quantile over the releases."""

    @staticmethod
    def of(numbers: Integers) -> Exposed:
        """The people exposed, from their number in each release.

        >>> Exposed.of(np.arange(1, 101)).low, Exposed.of(np.arange(1, 101)).high
        (3, 98)
        """
        mean, error = mean_and_error(numbers.astype(np.float64))
        low, high = np.quantile(numbers, (0.025, 0.975), method="inverted_cdf")
        return Exposed(mean, error, error * math.sqrt(len(numbers)), int(low), int(high))


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """What attackers found in simulated releases. Made by `simulate`; prints as a sentence and two tables."""

    wording: ClassVar[str] = "simulation"

    table: FrequencyTable
    mechanism: Mechanism
    sensitive: str
    releases: int
    seed: int
    post_processed: bool
    """Whether something was done to the releases before they were attacked."""
    estimates: tuple[Estimate, ...]
    exposed: Integers
    """For each release, the people whose value the homogeneity attack outputs correctly."""
    scenarios: tuple[Scenario, ...]
    """The shares of cells in the eight scenarios; they add up to 1."""
    figures: tuple[Estimate, ...] = ()
    """The figures to decide by, in people; none of post-processed releases."""
    unknown: str | None = None
    """Why the informed attacker was not simulated."""
    attackers: tuple[Mapping[str, Any], ...] = ()
    """The four attacks: people revealed, and because of their own record; none of post-processed releases."""

    def value(
        self, measure: str = "local", form: str = "tight", weights: str = "records", attack: str = "homogeneity"
    ) -> Estimate:
        """One number with its standard error.

        Parameters
        ----------
        measure, form, weights, attack
            The words of the risk, as in `assess`; only the local measure is simulated.
        """
        require_word("measure", measure, ("local",))
        require_word("form", form, FORMS)
        require_word("weights", weights, WEIGHTS)
        require_word("attack", attack, ATTACKS)
        words = (measure, attack, form, weights)
        estimate = next((row for row in self.estimates if tuple(row.name.values()) == words), None)
        if estimate is None:
            raise UnknownName(
                "that risk was not simulated",
                got=f"form {form}, attack {attack}",
                fix="ask for the tight form, which plurality and proportional have",
            )
        return estimate

    @cached_property
    def people(self) -> Exposed:
        """How many people a release exposes: mean, deviation and quantiles."""
        return Exposed.of(self.exposed)

    def compare(self, assessment: Assessment) -> Comparison:
        """How far is each assessed number from the simulated one, in standard errors?

        Numbers of other forms, measures and attributes are left out. The settings may differ: then the difference
        shows. Standard errors are those of the assessment's own law, so that a rare large exposure which no release
        happened to draw does not count against it.
        """
        if not isinstance(assessment, Assessment):
            raise InvalidInput("compare needs an assessment", got=type(assessment).__name__, fix="make it with assess")
        attribute = assessment.table.attribute(self.sensitive)
        if not attribute.profiles.equals(self.table.attribute(self.sensitive).profiles):
            raise InvalidInput("the assessment is of another table", fix="assess the table that was simulated")
        differences = compare_risks(attribute, assessment, self.estimates, self.releases, self.post_processed)
        (figures,) = (figure for figure in assessment.figures if figure.sensitive == self.sensitive)
        compared = compare_figures(attribute, figures, self.figures, self.releases)
        return Comparison(tuple(differences), self.releases, self.post_processed, tuple(compared), self.unknown)

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"sensitive": self.sensitive, **row.to_dict()} for row in self.estimates]

    def to_dict(self) -> dict[str, Any]:
        """The simulation for machines: JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "sensitive": self.sensitive,
            "mechanism": self.mechanism.to_dict(),
            "releases": self.releases,
            "seed": self.seed,
            "post_processed": self.post_processed,
            "estimates": [row.to_dict() for row in self.estimates],
            "people": vars(self.people),
            "scenarios": [
                {**vars(row), "original": row.original, "released": row.released, "exposes": row.exposes}
                for row in self.scenarios
            ],
            "figures": [row.to_dict() for row in self.figures],
            "attackers": [{"sensitive": self.sensitive, **row} for row in self.attackers],
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
            "headline": self.headline,
        }
