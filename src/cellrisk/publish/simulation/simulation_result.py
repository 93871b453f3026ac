"""The answer of `simulate`: estimates with their errors, and a comparison with an assessment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.scenarios import Scenario
from cellrisk.publish.simulation.attacks import mean_and_error
from cellrisk.publish.simulation.comparison import (
    Comparison,
    Estimate,
    compare_figures,
    compare_risks,
)
from cellrisk.risk.assessment import Assessment
from cellrisk.risk.attacks import ATTACKS
from cellrisk.risk.measures import WEIGHTS
from cellrisk.system.arrays import Integers
from cellrisk.system.choices import require_word
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

FORMS = ("exact", "tight")
"""The published form is a formula, not the probability of something, so no release shows it."""


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
