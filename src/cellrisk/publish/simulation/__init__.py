"""`simulate`: whole releases drawn as the mechanism or the perturbation draws them, which checks every closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, read_method
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.simulation.attacks import EXPOSING, SCENARIOS, TOO_WIDE, CellAttacks, begin_attacks
from cellrisk.publish.simulation.drawing import constrained_release, draw_releases, noisy_release, perturbed_release
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attacks import ATTACKS
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior, why_unknown
from cellrisk.risk.measures import WEIGHTS
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours, require_word
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.publish.releasing.domain import Rule

__all__ = ["Simulation", "simulate"]

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
    deviation: float
    """The standard deviation from release to release."""
    low: int
    """The 2.5% quantile over the releases."""
    high: int
    """The 97.5% quantile over the releases."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """What attackers found in simulated releases. Made by `simulate`."""

    wording: ClassVar[str] = "audit"

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
        fix = "ask for the tight form, which plurality and proportional have"
        raise UnknownName("that risk was not simulated", got=f"form {form}, attack {attack}", fix=fix, code="form")

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"sensitive": self.sensitive, **row.to_dict()} for row in self.estimates]

    def to_dict(self) -> dict[str, Any]:
        """Return the simulation as JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "unit": self.table.unit.to_dict(),
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


def simulate(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    releases: int = 1000,
    seed: int = 0,
    sensitive: str | None = None,
    perturbation: str | Perturbation | None = None,
    parents: Any = None,
    parent_count: str | None = None,
    exclude: Sequence[Rule] = (),
    may_be_missing: str | Sequence[str] = (),
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """What do attackers find in simulated releases of this table?

    Noise on each count of the non-empty cells times the levels, rounded, zero below the threshold; or each count drawn
    from its row of a perturbation. Then the attackers read the release. Every number is an estimate, the mean over the
    releases, with its standard error. No formula of a risk is used, so this is a check on the local risk and on every
    attack, and the only answer if ``parents`` change the release.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism, epsilon, delta, neighbours, threshold
        A mechanism such as `Geometric`, or its name with its parameters.
    releases, seed
        How many, from 2 on, and where the draws begin. Results do not depend on memory or processors.
    sensitive
        Which sensitive attribute; may be left out if the table has one.
    perturbation
        Instead of a mechanism, as in `assess_perturbation`.
    parents, parent_count, exclude, may_be_missing
        As in `release`: simulates counts made consistent with published totals. The totals are taken as they are
        published, so only the noise of this release varies.
    certainty, belief, harmful, unions
        Those of the informed attacker, as in `assess`. Without parents, the four attacks of `assess` read the releases
        (``attackers``, at the largest certainty), and each record is left out in turn under the same noise.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = simulate(table, cr.Laplace(epsilon=1.0), releases=200)
    >>> estimate = found.value(form="exact")
    >>> round(estimate.mean, 4), round(estimate.standard_error, 4)  # assess: 0.034845
    (0.0324, 0.0016)

    Published totals can raise the risk and lower it. They carry information on the noise: of two labels under their own
    total, half the difference of the noises is left, so the risk moves towards that without noise. And every cell shows
    something, which raises the risk at small epsilon.
    """
    require_table(table, single="simulated attacks")
    number, first = require_whole_number("releases", releases, 2, MOST_RELEASES), require_whole_number("seed", seed, 0)
    attribute, attacker = table.attribute(sensitive), Attacker.of(certainty, belief, harmful, unions)
    attacker.check(table.attributes)
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    method = read_method(mechanism, perturbation, beside)
    size, generator = None, np.random.default_rng(np.random.SeedSequence(first, spawn_key=(0,)))
    if parents is not None:
        if isinstance(method, Perturbation):
            what, fix = "perturbed counts are not made to add up", "leave the parents or the perturbation out"
            raise InvalidInput(what, fix=fix, code="perturbation")
        declared = {"exclude": exclude, "may_be_missing": may_be_missing}
        cells, law, size = constrained_release(table, method, attribute.name, parents, parent_count, **declared)
        generator = np.random.default_rng(first)
    else:
        if parent_count is not None or exclude or may_be_missing:
            what = "parent_count, exclude and may_be_missing are those of a release with parents"
            raise InvalidInput(what, fix="name the parents", code="no-parents")
        cells = table.cells(attribute.name)
        if isinstance(method, Perturbation):
            method.check_reach(int(cells.count.max()))
        law = perturbed_release(method) if isinstance(method, Perturbation) else noisy_release(method)
    attacks, realised, unknown = CellAttacks(number), None, None
    if parents is None:
        unknown = why_unknown(attribute)
        realised = begin_attacks(attribute, attacker, number, None if unknown else method.channel)
        if realised.means is None:
            unknown = unknown or TOO_WIDE
    for chunk in draw_releases(cells, law, number, generator, progress, size):
        attacks.read(chunk)
        if realised is not None:
            realised.read(chunk.releases, chunk.counts, chunk.released, chunk.lessened)
    total = {"uniform": cells.n_cells, "records": int(cells.sizes.sum())}
    revealed = np.rint(attacks.sums["homogeneity", "tight", "records"])
    people = Estimate.of({}, revealed)
    low, high = np.quantile(revealed, (0.025, 0.975), method="inverted_cdf")
    return Simulation(
        table=table,
        mechanism=method if isinstance(method, Mechanism) else None,
        perturbation=method if isinstance(method, Perturbation) else None,
        sensitive=attribute.name,
        releases=number,
        seed=first,
        post_processed=realised is None,
        estimates=tuple(
            Estimate.of({"measure": "local", "attack": attack, "form": form, "weights": weights}, sums / total[weights])
            for (attack, form, weights), sums in attacks.sums.items()
        ),
        people=Exposed(
            people.mean, people.standard_error, people.standard_error * math.sqrt(number), int(low), int(high)
        ),
        scenarios=tuple(
            Estimate.of(
                {"number": place, "original": held, "released": shown, "exposes": place in EXPOSING},
                row / cells.n_cells,
            )
            for (place, (held, shown)), row in zip(SCENARIOS.items(), attacks.scenarios, strict=True)
        ),
        attackers=() if realised is None else tuple(realised.to_rows(attribute.levels.labels)),
        unknown=unknown,
    )
