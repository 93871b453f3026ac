"""The answer of `simulate`: a sentence, tables, a frame, a document, and a comparison with an assessment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.scenarios import Scenario, check_scenarios
from cellrisk.publish.simulation.attacks import FigureEstimate, mean_and_error
from cellrisk.publish.simulation.comparison import (
    LARGEST_CHANCE_Z,
    Comparison,
    ExpectedSpread,
    SimulatedDifference,
    compare_figures,
)
from cellrisk.risk.assessment import Assessment
from cellrisk.risk.attacks import ATTACKS, choose_risks
from cellrisk.risk.certainty import Belief
from cellrisk.risk.measures import MEASURES, WEIGHTS
from cellrisk.risk.priors import Fitted
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, number_of, of_people, say_error
from cellrisk.system.words import require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

FORMS = ("exact", "tight")
"""The published form is a formula, not the probability of something, so no release shows it."""


@dataclass(frozen=True)
class Estimate:
    """One simulated number: the mean over releases, and its standard error."""

    measure: str
    attack: str
    form: str
    weights: str | None
    mean: float
    standard_error: float

    @staticmethod
    def of(measure: str, attack: str, form: str, weights: str | None, values: Floats) -> Estimate:
        """The estimate from one value a release; the standard error is their deviation over the root of their number.

        >>> Estimate.of("local", "homogeneity", "tight", "records", np.array([0.1, 0.3])).mean
        0.2
        """
        return Estimate(measure, attack, form, weights, *mean_and_error(values))


@dataclass(frozen=True)
class Exposed:
    """How many people's values were read off correctly by the homogeneity attack, over the releases."""

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

    table: FrequencyTable
    mechanism: Mechanism
    sensitive: str
    releases: int
    seed: int
    post_processed: bool
    """Whether something was done to the releases before they were attacked."""
    estimates: tuple[Estimate, ...]
    exposed: Integers
    """For each release, the people whose value the homogeneity attack read off correctly."""
    scenarios: tuple[Scenario, ...]
    """The shares of cells in the eight scenarios; they add up to 1."""
    fitted: Fitted
    """The priors of the measures that need them."""
    figures: tuple[FigureEstimate, ...] = ()
    """The figures to decide by, in people; none of post-processed releases."""
    unknown: str | None = None
    """Why the attacker who does the mathematics was not simulated."""
    belief: Belief | None = None

    def __post_init__(self) -> None:
        if self.exposed.shape != (self.releases,):
            raise InvalidInput("a simulation needs a number of people for each release", got=self.exposed.shape)
        check_scenarios(self.scenarios)

    def value(
        self,
        measure: str = "local",
        form: str = "tight",
        weights: str | None = "records",
        attack: str = "homogeneity",
    ) -> Estimate:
        """One number with its standard error.

        Parameters
        ----------
        measure, form, weights
            The words of the risk, as in `assess`; marginal shrinkage has no weights.
        attack
            As in `assess`.
        """
        require_word("measure", measure, tuple(MEASURES))
        require_word("form", form, FORMS)
        require_word("attack", attack, ATTACKS)
        if weights is not None:
            require_word("weights", weights, WEIGHTS)
        weighting = None if MEASURES[measure].one_number else weights
        for row in self.estimates:
            if (row.measure, row.form, row.weights, row.attack) == (measure, form, weighting, attack):
                return row
        raise UnknownName(
            "that risk was not simulated",
            got=f"measure {measure}, form {form}, weights {weights}, attack {attack}",
            fix="add it to measures= of simulate; plurality and proportional have the tight form of the local measure",
        )

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
        theirs = assessment.table.attribute(self.sensitive).profiles
        if not theirs.equals(self.table.attribute(self.sensitive).profiles):
            raise InvalidInput("the assessment is of another table", fix="assess the table that was simulated")
        simulated = {(row.measure, row.attack, row.form, row.weights): row for row in self.estimates}
        differences = []
        channel = assessment.mechanism.channel
        for risk in assessment.risks:
            key = (risk.measure, risk.attack, risk.form, risk.weights)
            if risk.sensitive == self.sensitive and key in simulated:
                row = simulated[key]
                error, allowed = row.standard_error, LARGEST_CHANCE_Z * row.standard_error
                if not self.post_processed:
                    asked = choose_risks(risk.attack, risk.measure, risk.form)
                    [measure] = asked.make(assessment.fitted[self.sensitive].measure)
                    spread = ExpectedSpread.of(theirs, measure, risk.form, risk.weights, channel)
                    error, allowed = spread.standard_error(self.releases), spread.allowed(self.releases)
                differences.append(SimulatedDifference(*key, risk.risk, row.mean, error, allowed))
        (figures,) = (each for each in assessment.figures if each.sensitive == self.sensitive)
        compared = compare_figures(assessment.table.attribute(self.sensitive), figures, self.figures, self.releases)
        return Comparison(tuple(differences), self.releases, self.post_processed, tuple(compared), self.unknown)

    @property
    def headline(self) -> str:
        """What a curator can repeat: how many people the simulated releases exposed."""
        mechanism, people, records = self.mechanism, self.people, self.table.n_records
        at, processed = ("With noise of", "post-processed ") if self.post_processed else ("At", "")
        return (
            f"{at} {mechanism.guarantee}, {self.releases:,} simulated {processed}releases let "
            f"{of_people(people.mean, records)} have their {self.sensitive} read off the table correctly on average, "
            f"{people.low:,} to {people.high:,} in 95% of releases."
        )

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"sensitive": self.sensitive, **vars(row)} for row in self.estimates]

    def to_dict(self) -> dict[str, Any]:
        """The simulation for machines: JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "sensitive": self.sensitive,
            "mechanism": self.mechanism.to_dict(),
            "releases": self.releases,
            "seed": self.seed,
            "post_processed": self.post_processed,
            "estimates": [vars(row) for row in self.estimates],
            "people": vars(self.people),
            "scenarios": [
                {**vars(each), "original": each.original, "released": each.released, "exposes": each.exposes}
                for each in self.scenarios
            ],
            "fitted": self.fitted.to_dict(),
            "figures": [vars(row) for row in self.figures],
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
            "headline": self.headline,
        }

    def _paragraphs(self) -> list[str]:
        drawn = (
            f"Estimates from {self.releases:,} simulated releases of {number_of(self.table.n_cells, 'cell')}, seed "
            f"{self.seed}; {self.mechanism.name}, noise scale {self.mechanism.scale:.4g}"
        )
        risks = [
            [row.measure, row.attack, row.form, row.weights or "-", f"{row.mean:.4f}", say_error(row.standard_error)]
            for row in self.estimates
        ]
        scenarios = [
            [f"{each.number}", each.original, each.released, f"{each.share:.4f}", say_error(each.standard_error)]
            for each in self.scenarios
        ]
        risk_table = aligned(["measure", "attack", "form", "weights", "risk", "standard error"], risks, left=4)
        scenario_table = aligned(
            ["scenario", "the cell holds", "its release shows", "share of cells", "standard error"], scenarios, left=3
        )
        return [
            "\n".join([drawn, risk_table, *self.fitted.describe()]),
            *self._show_figures(),
            scenario_table,
            CURATOR_NOTE,
        ]

    def _show_figures(self) -> list[str]:
        if not self.figures:
            return []
        words = {
            "caused": "read off only with their own record (caused)",
            "right": "named rightly",
            "named": "named, rightly or not",
        }
        rows = [
            [
                words[row.figure] + ("" if row.certainty is None else f", {100 * row.certainty:g}% sure or more"),
                f"{row.mean:,.1f}",
                say_error(row.standard_error),
            ]
            for row in self.figures
        ]
        unknown = f"\nWhat an attacker could be sure of was not simulated: {self.unknown}." if self.unknown else ""
        return [aligned(["people", "mean", "standard error"], rows) + unknown]


def summarise_scenarios(cells: Integers, n_cells: int) -> tuple[Scenario, ...]:
    """The share of each scenario from the cells in it: (8, releases).

    >>> cells = np.array([[2, 2], [0, 0], [0, 0], [1, 1], [0, 0], [1, 1], [0, 0], [0, 0]])
    >>> [scenario.share for scenario in summarise_scenarios(cells, 4)]
    [0.5, 0.0, 0.0, 0.25, 0.0, 0.25, 0.0, 0.0]
    """
    return tuple(Scenario(number, *mean_and_error(row / n_cells)) for number, row in enumerate(cells, start=1))
