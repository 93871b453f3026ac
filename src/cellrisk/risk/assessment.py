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
from cellrisk.risk.attacks import AskedRisks, Confidence, choose_risks, find_confidence, people_risk
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief, count_by_certainty
from cellrisk.risk.figures import GIVEN_AWAY, Attacker, DecisionFigures, find_figures, say_tables
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS, average_risks
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors, takes_priors
from cellrisk.risk.sweep import Limits, find_limits
from cellrisk.system.results import Result
from cellrisk.system.sketches import draw_bars
from cellrisk.system.text import CURATOR_NOTE, aligned, claim, number_of, of_people, percent
from cellrisk.system.words import Attack, Form, MeasureName, MechanismName, Neighbours, Weights, require_word

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
    """The share of people whose values the raw table gives away: by homogeneity, those in homogeneous cells."""
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

    def sentence(self, mechanism: Mechanism) -> str:
        given_away = GIVEN_AWAY[self.attack].format(sensitive=self.sensitive)
        return (
            f"At {mechanism.guarantee}, {of_people(self.people.mean, self.records, f'; {self.people.spread}')} would "
            f"{given_away}; the raw table exposes {percent(self.raw_share)}, guessing from the overall proportions "
            f"gets {percent(self.guess_share)}."
        )


PLANNING = {
    "shrinkage": "cells of these sizes, whose values are drawn anew from the prior",
    "marginal_shrinkage": "cells whose sizes and values are drawn anew from both laws",
}
"""The measures for tables that are being planned, and what each takes as given."""


@dataclass(frozen=True)
class PlannedCaused:
    """People who would be given away because of their own record in a table that is yet to be made."""

    sensitive: str
    measure: str
    share: float
    """The expected share of its people."""

    @property
    def sentence(self) -> str:
        share = percent(self.share)
        return (
            f"In a table that is yet to be made, with {PLANNING[self.measure]} ({self.measure}), "
            f"{'about ' if share[0].isdigit() else ''}{share} of the people would have their {self.sensitive} given "
            "away only because of their own record."
        )


@dataclass(frozen=True, repr=False)
class Assessment(Result):
    """The answer of `assess`. Prints as a sentence and a table; `value` picks one number, `plot` draws them all.

    Numbers are computed when they are asked for: `value` computes one risk.
    """

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

    def people_by_certainty(self, sensitive: str | None = None) -> list[dict[str, float]]:
        """How sure the attacker who does the mathematics is of how many people: named between two certainties, and
        rightly so."""
        attribute, mechanism = self.table.attribute(sensitive), self.mechanism
        return count_by_certainty(attribute, mechanism.channel, self.attacker.believe(attribute))

    @property
    def headline(self) -> str:
        """What a curator can repeat: what to decide by, for each sensitive attribute."""
        return "\n".join(
            figures.sentence(exposure.chance_share)
            for figures, exposure in zip(self.figures, self.exposures, strict=True)
        )

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(row) for row in self.risks]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk assess --json`` prints."""
        sensitive = {name: _counts_of(self.table.attribute(name)) for name in self.table.sensitive}
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells, "sensitive": sensitive},
            "mechanism": self.mechanism.to_dict(),
            "risks": [vars(row) for row in self.risks],
            "decision": [each.to_dict() for each in self.figures],
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
                {"sensitive": exposure.sensitive, "sentence": exposure.sentence(self.mechanism)}
                for exposure in self.exposures
            ],
            "headline": self.headline,
        }

    def _sketch(self) -> str:
        """Shares of the people: right by chance, exposed, exposed because of their own record, named with certainty."""
        rows = []
        for figures, exposure in zip(self.figures, self.exposures, strict=True):
            whose = f"{figures.sensitive}: " if len(self.figures) > 1 else ""
            shares = {
                f"right {self.mechanism.by_chance}": exposure.chance_share,
                "exposed": exposure.share,
                "because of their own record": figures.caused.share,
            }
            for row in figures.certainty[-1:]:
                shares[f"named with {100 * row.certainty:g}% certainty"] = row.right / exposure.records
            rows += [(f"{whose}{name}", share, percent(share)) for name, share in shares.items()]
        return draw_bars(rows)

    @property
    def of_several(self) -> list[str]:
        """What the tables of several sensitive attributes cost together; empty for one."""
        return say_tables(self.mechanism, len(self.figures))

    def _paragraphs(self) -> list[str]:
        parts = [_describe_mechanism(self.mechanism)]
        for figures in self.figures:
            title = "" if len(self.figures) == 1 else f"{figures.sensitive}: "
            parts.append(f"{title}{figures.describe_certainty()}\n{figures.describe_bounds()}")
        parts += [each.sentence for each in self.planned]
        parts.append("\n".join(exposure.sentence(self.mechanism) for exposure in self.exposures))
        for name in dict.fromkeys(row.sensitive for row in self.risks):
            counts = _counts_of(self.table.attribute(name))
            title = (
                f"{name}: {number_of(counts['levels'], 'level')}; {number_of(self.table.n_cells, 'cell')}, "
                f"{counts['homogeneous']:,} homogeneous, {counts['heterogeneous']:,} heterogeneous, "
                f"{counts['unique']:,} unique"
            )
            exposure = next(each for each in self.exposures if each.sensitive == name)
            confidence = _describe_confidence(exposure, self.mechanism)
            table = _risk_table(self.risks, self.limits, name, self.mechanism.by_chance)
            parts.append("\n".join([title, table, *self.fitted[name].describe(), confidence]))
        return [*parts, *self.of_several, CURATOR_NOTE]


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
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
) -> Assessment:
    """What can somebody learn about the people of this table, if it is published through this mechanism, and how much
    of that because they are in it?

    The answer leads with what to decide by: the people given away only because of their own record (caused), those
    whose value an attacker who does the mathematics names with at least some ``certainty``, given his ``belief``, and
    how often anybody at all can guess right (the ceiling). The paper's measures of the homogeneity attack follow.

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
        How sure an attacker who does the mathematics must be to name a value: one number or several.
    belief
        What he believes: "negbin", "table" or shapes and theta such as "0.4,0.15/0.9"; a mapping gives each sensitive
        attribute its own.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> round(cr.assess(table, "geometric", epsilon=1.0, measures="local").value(form="exact"), 6)
    0.034794
    """
    require_table(table)
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    asked = choose_risks(attack, measures, forms, weights)
    attacker = Attacker.of(certainty, belief)
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


def _describe_confidence(exposure: Exposure, mechanism: Mechanism) -> str:
    found = exposure.confidence
    if not math.isfinite(found.people_precision):
        return "No released cell would look homogeneous."
    precision, chance = percent(found.people_precision), percent(1.0 / exposure.n_levels)
    with_empty = ""
    if found.looks_with_empty > found.looks:
        with_empty = (
            f" Of all released cells that look homogeneous, empty ones too, {percent(found.precision_with_empty)} show "
            f"a value that is there; without the empty ones {percent(found.precision)}."
        )
    share = percent(exposure.chance_share)
    alone = (
        f"Noise alone gives away {share}."
        if math.isinf(mechanism.limit_noise.scale)
        else f"As epsilon falls to 0, with delta as it is, {share} would still be given away."
    )
    return (
        f"Of the people in released cells that look homogeneous, {precision} have the value shown; by chance it would "
        f"be {chance}. {alone}{with_empty}"
    )


def _describe_mechanism(mechanism: Mechanism) -> str:
    suppressed = "" if mechanism.threshold == 0.5 else f", counts below {mechanism.threshold:g} suppressed"
    delta = "" if mechanism.pure else f", delta {claim(mechanism.delta)}"
    return (
        f"{mechanism.name}, epsilon {claim(mechanism.epsilon)}{delta}, noise scale {mechanism.scale:.4g}, "
        f"neighbours {mechanism.neighbours}{suppressed}"
    )


def _risk_table(risks: Sequence[Risk], limits: Sequence[Limits], sensitive: str, by_chance: str) -> str:
    """A row for each measure and weighting: its forms, then what the last of them is by chance and without noise."""
    rows: dict[tuple[str, str], dict[str, tuple[Risk, Limits]]] = {}
    for row, ends in zip(risks, limits, strict=True):
        if row.sensitive == sensitive:
            rows.setdefault((row.measure, row.weights or "-"), {})[row.form] = row, ends
    forms = [form for form in FORMS if any(form in cells for cells in rows.values())]
    body = [
        [measure, weights, *(f"{cells[form][0].risk:.4f}" for form in forms)]
        + [f"{number:.4f}" for number in (cells[forms[-1]][1].chance, cells[forms[-1]][1].raw)]
        for (measure, weights), cells in rows.items()
    ]
    header = ["measure", "weights", *forms, f"{forms[-1]}: {by_chance}", "without noise"]
    return aligned(header, body, left=2)
