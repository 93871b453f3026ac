"""The answer of `simulate`: estimates with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.errors import UnknownName
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.attacks import ATTACKS
from cellrisk.risk.measures import WEIGHTS
from cellrisk.system.arrays import Floats
from cellrisk.system.choices import require_word
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

FORMS = ("exact", "tight")
"""The published form is a formula, not the probability of something, so no release shows it."""


@dataclass(frozen=True)
class Estimate:
    """One simulated number: the mean over releases, and its standard error."""

    name: Mapping[str, Any]
    """The measure, attack, form and weights of a risk; or the number of a scenario."""
    mean: float
    standard_error: float

    @staticmethod
    def of(name: Mapping[str, Any], values: Floats) -> Estimate:
        """Return the estimate from one value a release; its standard error is 0 if the values do not vary.

        >>> Estimate.of({"measure": "local"}, np.array([0.1, 0.3])).mean
        0.2
        """
        if values.min() == values.max():
            return Estimate(name, float(values[0]), 0.0)
        return Estimate(name, float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))))

    def to_dict(self) -> dict[str, Any]:
        return {**self.name, "mean": self.mean, "standard_error": self.standard_error}


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
    def of(numbers: Floats) -> Exposed:
        """Return the people exposed, from their number in each release.

        >>> Exposed.of(np.arange(1, 101)).low, Exposed.of(np.arange(1, 101)).high
        (3, 98)
        """
        found = Estimate.of({}, numbers)
        low, high = np.quantile(numbers, (0.025, 0.975), method="inverted_cdf")
        deviation = found.standard_error * math.sqrt(len(numbers))
        return Exposed(found.mean, found.standard_error, deviation, int(low), int(high))


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """What attackers found in simulated releases. Made by `simulate`."""

    wording: ClassVar[str] = "simulation"

    table: FrequencyTable
    mechanism: Mechanism | None
    """None if the counts are perturbed instead."""
    perturbation: Perturbation | None
    sensitive: str
    releases: int
    seed: int
    post_processed: bool
    """Whether counts were made to add up to published totals before they were attacked."""
    estimates: tuple[Estimate, ...]
    people: Exposed
    """How many people the homogeneity attack reveals."""
    scenarios: tuple[Estimate, ...]
    """The shares of cells in the eight scenarios; they add up to 1."""
    attackers: tuple[Mapping[str, Any], ...] = field(repr=False)
    """The four attacks: people revealed, and because of their own record; none of post-processed releases."""
    unknown: str | None = None
    """Why the attackers who apply Bayes' rule were not simulated."""

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
        words = {"measure": measure, "attack": attack, "form": form, "weights": weights}
        for estimate in self.estimates:
            if estimate.name == words:
                return estimate
        raise UnknownName(
            "that risk was not simulated",
            got=f"form {form}, attack {attack}",
            fix="ask for the tight form, which plurality and proportional have",
        )

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"sensitive": self.sensitive, **row.to_dict()} for row in self.estimates]

    def to_dict(self) -> dict[str, Any]:
        """Return the simulation as JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "sensitive": self.sensitive,
            "mechanism": self.mechanism and self.mechanism.to_dict(),
            **({} if self.perturbation is None else {"perturbation": self.perturbation.to_dict()}),
            "releases": self.releases,
            "seed": self.seed,
            "post_processed": self.post_processed,
            "estimates": [row.to_dict() for row in self.estimates],
            "people": vars(self.people),
            "scenarios": [
                {**row.name, "share": row.mean, "standard_error": row.standard_error} for row in self.scenarios
            ],
            "attackers": [{"sensitive": self.sensitive, **row} for row in self.attackers],
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
            "headline": self.headline,
        }
