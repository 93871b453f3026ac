"""`assess`: every risk of a table at one setting of a mechanism, with the sentence a curator can repeat."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.errors import UnknownName
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.precision import SHARE, find_precision
from cellrisk.risk.attackers.figures import NOTABLE_GAINS, AttackTable
from cellrisk.risk.attackers.values import NamedValues
from cellrisk.risk.attacks import AskedRisks, Confidence, choose_risks, find_confidence, people_risk
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.ceilings import total_variation
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.risk.figures import Attacker, DecisionFigures, find_figures
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS, average_risks
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors, takes_priors
from cellrisk.risk.sweep import Limits, find_limits
from cellrisk.system.choices import Attack, Form, MeasureName, MechanismName, Neighbours, Weights, require_word
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable


@dataclass(frozen=True)
class Risk:
    """One number: the risk for a sensitive attribute under an attack, by one measure, form and weighting."""

    sensitive: str
    attack: str
    measure: str
    form: str
    weights: str | None
    risk: float


@dataclass(frozen=True)
class Exposure:
    """What a curator says of one sensitive attribute in one sentence."""

    sensitive: str
    attack: str
    records: int
    people: People
    """How many people's values the attacker gets right."""
    confidence: Confidence
    """How often a released cell that looks homogeneous tells the truth."""
    raw_share: float
    """The share of people whose value the table shows without noise: by homogeneity, those in homogeneous cells."""
    guess_share: float
    """Guessing each person's value from the overall proportions: sum_k p_k^2."""
    best_guess_share: float
    """Always guessing the commonest value: max_k p_k."""
    n_levels: int
    chance_share: float
    """What the attacker gets right as epsilon falls to 0: by luck where noise then drowns the counts, more where the
    mechanism's delta keeps its noise finite."""

    @property
    def share(self) -> float:
        """Expected share of people whose value the attacker gets right: local, tight, by records. Exact."""
        return self.people.mean / self.records


PLANNING = ("shrinkage", "marginal_shrinkage")
"""The measures for tables that are being planned."""


@dataclass(frozen=True)
class PlannedCaused:
    """People who would be revealed because of their own record in a table that is being planned."""

    sensitive: str
    measure: str
    share: float
    """The expected share of its people."""


@dataclass(frozen=True, repr=False)
class Assessment(Result):
    """The answer of `assess`. Prints as a sentence and a table; `value` picks one number, `plot` draws them all.

    Numbers are computed when they are asked for: `value` computes one risk.
    """

    wording = "assessment"
    picture = "draw_assessment"

    table: FrequencyTable
    mechanism: Mechanism
    asked: AskedRisks
    priors: Priors
    attacker: Attacker
    domain: bool = False
    """Whether the empty cells of the domain count into the confidence."""
    chosen: bool = False
    """Whether epsilon was chosen from the data: what one record adds at most is then not stated."""

    @cached_property
    def fitted(self) -> Mapping[str, Fitted]:
        """The priors behind the measures that need them, by sensitive attribute."""
        return {name: self._fit(name, self.asked.measures) for name in self.table.sensitive}

    def _fit(self, name: str, measures: Sequence[str]) -> Fitted:
        return self.priors.fit(self.table.attribute(name), measures)

    @cached_property
    def risks(self) -> tuple[Risk, ...]:
        """Every risk that was asked for."""
        asked = self.asked
        return tuple(
            Risk(name, asked.attack, measure, form, weight, float(values[0]))
            for name in self.table.sensitive
            for measure, form, weight, values in average_risks(
                self.table.profiles(name),
                asked.make(self.fitted[name].measure),
                self.mechanism.channel,
                asked.forms,
                asked.weights,
            )
        )

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        """How many people's values the attacker gets right, for each sensitive attribute."""
        empty = self.table.empty_cells() if self.domain else 0
        return tuple(
            find_exposure(attribute, self.mechanism, self.asked.attack, empty) for attribute in self.table.attributes
        )

    @cached_property
    def figures(self) -> tuple[DecisionFigures, ...]:
        """What to decide by, for each sensitive attribute: caused, certainty, ceiling."""
        found = (
            find_figures(
                self.table.attribute(exposure.sensitive),
                self.mechanism,
                exposure.people,
                self.asked.attack,
                self.attacker,
            )
            for exposure in self.exposures
        )
        return tuple(each.as_chosen() if self.chosen else each for each in found)

    @cached_property
    def attackers(self) -> Mapping[str, tuple[AttackTable, ...]]:
        """The table of attacks of each sensitive attribute, one for each certainty."""
        channel = self.mechanism.channel
        return {attribute.name: self.attacker.tables(attribute, channel) for attribute in self.table.attributes}

    def _attackers(self) -> dict[str, Any]:
        """What stands under ``attackers``, ``people_above`` and ``accuracy`` in JSON."""
        advantage, precision = total_variation(self.mechanism), find_precision(self.mechanism)
        rows: list[dict[str, Any]] = []
        above: dict[str, dict[str, int]] = {}
        for name, tables in self.attackers.items():
            labels = self.table.attribute(name).levels.labels
            for table in tables[-1:]:
                rows += table.to_rows(name, labels, advantage)
                above[name] = {f"{gain:g}": table.people_above(gain) for gain in NOTABLE_GAINS}
            for table in tables[:-1]:
                rows += [row for row in table.to_rows(name, labels, advantage) if row["attack"] == "informed"]
        accuracy = {"within": precision.within, "probability": SHARE, "sd": precision.sd}
        one = above.get(self.table.sensitive[0], {}) if len(self.table.sensitive) == 1 else above
        return {"attackers": rows, "people_above": one, "accuracy": accuracy}

    @cached_property
    def limits(self) -> tuple[Limits, ...]:
        """Beside each risk, in the same order: what it would be by chance, and without noise."""
        forms = tuple(dict.fromkeys(row.form for row in self.risks))
        ends = {}
        for name, measure in dict.fromkeys((row.sensitive, row.measure) for row in self.risks):
            asked = choose_risks(self.asked.attack, measure, forms)
            [made] = asked.make(self.fitted[name].measure)
            ends[name, measure] = find_limits(self.table.profiles(name), made, forms, self.mechanism)
        return tuple(ends[row.sensitive, row.measure][row.form, row.weights or "uniform"] for row in self.risks)

    @cached_property
    def planned(self) -> tuple[PlannedCaused, ...]:
        """Caused in tables like this one that are yet to be made: for shrinkage and marginal shrinkage, where they were
        asked for by name."""
        named = dict.fromkeys((row.sensitive, row.measure) for row in self.risks)
        if {measure for _, measure in named} == {*MEASURES} or self.asked.attack != "homogeneity":
            return ()
        channel = self.mechanism.channel
        return tuple(
            PlannedCaused(
                name,
                measure,
                float(caused_shares(self.table.profiles(name), channel, self.fitted[name].measure(measure))[0]),
            )
            for name, measure in named
            if measure in PLANNING
        )

    def value(
        self,
        measure: str = "local",
        form: str = "tight",
        weights: str | None = "records",
        sensitive: str | None = None,
    ) -> float:
        """One risk. ``sensitive`` may be left out where the table has one attribute; ``weights`` does not matter for
        marginal shrinkage.

        Parameters
        ----------
        measure, form, weights
            The words of the risk, as in `assess`; marginal shrinkage has no weights.
        sensitive
            Which sensitive attribute; may be left out where there is one.
        """
        if "risks" in vars(self):
            found: Risk = find_row(self.risks, self.table, "assess", measure, form, weights, sensitive)
            return found.risk
        attribute, asked = self.table.attribute(sensitive), self.asked
        rows = [
            Risk(attribute.name, asked.attack, name, shape, None if MEASURES[name].one_number else weight, 0.0)
            for name, shape, weight in product(asked.measures, asked.forms, asked.weights)
        ]
        wanted = find_row(rows, self.table, "assess", measure, form, weights, sensitive)
        fitted = self.fitted if "fitted" in vars(self) else {attribute.name: self._fit(attribute.name, (measure,))}
        [made] = replace(asked, measures=(measure,)).make(fitted[attribute.name].measure)
        averages = made.average(attribute.profiles, self.mechanism.channel, (form,))
        return float(averages[form, wanted.weights or "uniform"][0])

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(row) for row in self.risks]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk assess --json`` prints."""
        sensitive = {name: _counts_of(self.table.attribute(name)) for name in self.table.sensitive}
        say_exposure = find_words(self.wording).say_exposure
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells, "sensitive": sensitive},
            "mechanism": self.mechanism.to_dict(),
            "risks": [vars(row) for row in self.risks],
            "decision": [each.to_dict() for each in self.figures],
            **self._attackers(),
            **({"planned": [vars(each) for each in self.planned]} if self.planned else {}),
            "limits": [
                {**{key: value for key, value in vars(row).items() if key != "risk"}, **vars(limits)}
                for row, limits in zip(self.risks, self.limits, strict=True)
            ],
            "fitted": {name: fit.to_dict() for name, fit in self.fitted.items()},
            "confidence": {
                exposure.sensitive: {
                    key: value if math.isfinite(value) else None for key, value in vars(exposure.confidence).items()
                }
                for exposure in self.exposures
            },
            "people": {exposure.sensitive: vars(exposure.people) for exposure in self.exposures},
            "baselines": {
                exposure.sensitive: {
                    "raw": exposure.raw_share,
                    "chance": exposure.chance_share,
                    "proportional_guess": exposure.guess_share,
                    "commonest_guess": exposure.best_guess_share,
                }
                for exposure in self.exposures
            },
            "exposures": [
                {"sensitive": exposure.sensitive, "sentence": say_exposure(exposure, self.mechanism)}
                for exposure in self.exposures
            ],
            "headline": self.headline,
        }


@takes_priors
def assess(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    measures: MeasureName | Sequence[MeasureName] | None = None,
    forms: Form | Sequence[Form] | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    priors: Priors = USUAL_PRIORS,
    attack: Attack = "homogeneity",
    domain: bool = False,
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
) -> Assessment:
    """Return what an attacker learns about the people of this table if it is published through this mechanism.

    The answer leads with what to decide by: the people revealed because of their own record (caused), those whose
    value the informed attacker infers with at least some ``certainty``, given a ``belief``, and the worst case for one
    record (the ceiling). The paper's measures of the homogeneity attack follow.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    measures, forms, weights
        One word or several; default all.
    priors
        How the priors of the measures that need any are found.
    attack
        "homogeneity"; "plurality", which names the largest released count of a person's cell; or "proportional", which
        draws a value in proportion to the counts. The last two have one measure and form, local and tight.
    domain
        Counts the empty cells of the domain into the confidence, for which the keys of the cells are read from the
        source.
    certainty
        How sure the informed attacker must be: one number or several.
    belief
        The attacker's prior: "negbin", "table" or shapes and theta such as "0.4,0.15/0.9"; a mapping gives each
        sensitive attribute its own.
    harmful
        The values of which it counts whether the informed attacker learns them; default all.
    unions
        Sets of values that the informed attacker also names as one value: lists, or texts such as "a+b".

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> round(cr.assess(table, "geometric", epsilon=1.0, measures="local").value(form="exact"), 6)
    0.034794
    """
    require_table(table)
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    asked = choose_risks(attack, measures, forms, weights)
    attacker = Attacker.of(certainty, belief, NamedValues.read(harmful, unions))
    attacker.values.check(table.attributes)
    for attribute in table.attributes:
        _ = attribute.profiles.blocks  # refuses a table without records
        priors.check(attribute, asked.measures)
        attacker.check(attribute)
    return Assessment(table, mechanism, asked, priors, attacker, domain)


def find_row(
    rows: Sequence[Any],
    table: FrequencyTable,
    asker: str,
    measure: str,
    form: str,
    weights: str | None,
    sensitive: str | None,
) -> Any:
    """The row of an answer with those words; refuses words that are unknown, or that ``asker`` was not asked for."""
    name = table.attribute(sensitive).name
    require_word("measure", measure, tuple(MEASURES))
    require_word("form", form, FORMS)
    if weights is not None:
        require_word("weights", weights, WEIGHTS)
    weighting = None if MEASURES[measure].one_number else weights
    for row in rows:
        if (row.sensitive, row.measure, row.form, row.weights) == (name, measure, form, weighting):
            return row
    raise UnknownName(
        "that risk was not assessed",
        got=f"measure {measure}, form {form}, weights {weights}",
        fix=f"add it to measures=, forms= and weights= of {asker}",
    )


def find_exposure(attribute: Attribute, mechanism: Mechanism, attack: str = "homogeneity", empty: int = 0) -> Exposure:
    """The headline's numbers for one sensitive attribute."""
    profiles, shares = attribute.profiles, attribute.levels.shares
    ends = find_limits(profiles, people_risk(attack), ("tight",), mechanism)["tight", "records"]
    return Exposure(
        sensitive=attribute.name,
        attack=attack,
        records=profiles.n_records,
        people=count_people(profiles, mechanism.channel, attack),
        confidence=find_confidence(profiles, mechanism.channel, empty)[0],
        raw_share=attribute.exposed_share if attack == "homogeneity" else ends.raw,
        guess_share=float(shares @ shares),
        best_guess_share=float(shares.max()),
        n_levels=profiles.n_levels,
        chance_share=ends.chance,
    )


def _counts_of(attribute: Attribute) -> dict[str, int]:
    profiles = attribute.profiles
    return {
        "levels": profiles.n_levels,
        "homogeneous": profiles.n_homogeneous,
        "heterogeneous": profiles.n_heterogeneous,
        "unique": profiles.n_unique,
        "profiles": profiles.n_profiles,
    }
