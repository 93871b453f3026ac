"""`assess`: every risk of a table at one setting of a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.noise.precision import SHARE, find_change, find_precision
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attackers.figures import NOTABLE_GAINS, AttackTable
from cellrisk.risk.attacks import AskedRisks, choose_risks, people_risk
from cellrisk.risk.ceilings import Ceiling, ceiling, find_advantage, total_variation
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    ConfidentInferences,
    CountPrior,
    find_certainty,
    why_unknown,
)
from cellrisk.risk.measures import FORMS, MEASURES, OF_THE_TABLE, WEIGHTS, average_risks
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.risk.sweep import Limits, find_limits
from cellrisk.system.checks import require_kind
from cellrisk.system.choices import Attack, Form, MeasureName, MechanismName, Neighbours, Weights, require_word
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable
    from cellrisk.risk.people import Caused, People


@dataclass(frozen=True)
class Risk:
    """One number: the risk for a sensitive attribute under an attack, by one measure, form and weighting."""

    sensitive: str
    attack: str
    measure: str
    form: str
    weights: str | None
    risk: float


@dataclass(frozen=True, eq=False)
class AttributeFigures:
    """The figures of one sensitive attribute under noise or a perturbation, computed when they are asked for."""

    attribute: Attribute
    method: Mechanism | Perturbation
    attacker: Attacker = field(default_factory=Attacker)
    attack: str = "homogeneity"

    @property
    def sensitive(self) -> str:
        return self.attribute.name

    @property
    def records(self) -> int:
        return self.attribute.profiles.n_records

    @property
    def unknown(self) -> str | None:
        """Why no certainty can be computed; None if it can."""
        return why_unknown(self.attribute)

    @cached_property
    def belief(self) -> CountPrior | None:
        """The informed attacker's prior; None if no certainty can be computed."""
        return None if self.unknown else self.attacker.believe(self.attribute)

    @cached_property
    def certainty(self) -> tuple[ConfidentInferences, ...]:
        """The people whose value is inferred with each certainty, ascending; empty if it cannot be computed."""
        if self.belief is None:
            return ()
        return find_certainty(self.attribute, self.method.channel, self.attacker.certainties, self.belief)

    @cached_property
    def people(self) -> People:
        """How many people's values the attack reveals."""
        from cellrisk.risk.people import count_people

        return count_people(self.attribute.profiles, self.method.channel, self.attack)

    @property
    def raw_share(self) -> float:
        """The share of people whose value the table shows without noise: those in homogeneous groups."""
        return self.attribute.exposed_share


@dataclass(frozen=True, eq=False)
class DecisionFigures(AttributeFigures):
    """What to decide by, of one sensitive attribute under one mechanism."""

    method: Mechanism
    chosen: bool = False
    """Whether epsilon was chosen from the data: what one record adds at most is then not stated."""

    @cached_property
    def caused(self) -> Caused:
        """The people revealed because of their own record."""
        from cellrisk.risk.people import count_caused

        return count_caused(self.attribute.profiles, self.method, self.people.mean, self.attack)

    @cached_property
    def ceiling(self) -> Ceiling:
        """What one record adds at most."""
        return replace(ceiling(self.method, labels=self.attribute.n_levels), chosen=self.chosen)

    @property
    def advantage(self) -> float | None:
        """What one record adds to any attack at most; None if epsilon was chosen from the data."""
        return None if self.chosen else self.ceiling.advantage

    @cached_property
    def limits(self) -> Limits:
        """The expected share of people whose value the attack reveals as epsilon falls to 0, and without noise."""
        measure = people_risk(self.attack)
        return find_limits(self.attribute.profiles, measure, ("tight",), self.method)["tight", "records"]

    @property
    def raw_share(self) -> float:
        return super().raw_share if self.attack == "homogeneity" else self.limits.raw

    @property
    def baselines(self) -> dict[str, float]:
        """The shares of people revealed without noise, with nothing but noise, and by guessing.

        A guess drawn from the overall proportions is correct with probability sum_k p_k^2.
        """
        shares = self.attribute.levels.shares
        guesses = {"proportional_guess": float(shares @ shares), "commonest_guess": float(shares.max())}
        return {"raw": self.raw_share, "chance": self.limits.chance, **guesses}

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of ``decision`` in JSON: the figures of one record only if nobody has several."""
        of_records = {"caused": self.caused.to_dict(), "certainty": [row.to_dict() for row in self.certainty]}
        return {
            "sensitive": self.sensitive,
            **({} if self.attribute.several else of_records),
            "ceiling": self.ceiling.to_dict(),
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
            **({} if self.belief is None else {"belief": self.belief.to_dict()}),
        }


@dataclass(frozen=True, repr=False)
class TableRisks(Result):
    """The risks of a table that is published with noise or with a perturbation: of its counts and of one channel.

    Numbers are computed when they are asked for: `value` computes one risk.
    """

    table: FrequencyTable
    method: Mechanism | Perturbation
    asked: AskedRisks
    priors: Priors
    attacker: Attacker

    @cached_property
    def fitted(self) -> Mapping[str, Fitted]:
        """The priors behind the measures that need them, by sensitive attribute."""
        return {attribute.name: self.priors.fit(attribute, self.asked.measures) for attribute in self.table.attributes}

    @cached_property
    def attackers(self) -> Mapping[str, tuple[AttackTable, ...]]:
        """The table of attacks of each sensitive attribute, one for each certainty."""
        channel = self.method.channel
        return {attribute.name: self.attacker.tables(attribute, channel) for attribute in self.table.attributes}

    @cached_property
    def risks(self) -> tuple[Risk, ...]:
        """Every risk that was asked for."""
        return tuple(
            risk for name in self.table.sensitive for risk in self._assess(name, self.asked, self.fitted[name])
        )

    def _assess(self, name: str, asked: AskedRisks, fitted: Fitted) -> Iterator[Risk]:
        profiles, words = self.table.profiles(name), (asked.forms, asked.weights)
        for row in average_risks(profiles, asked.make(fitted.measure), self.method.channel, *words):
            yield Risk(name, asked.attack, *row[:3], float(row[3][0]))

    def value(
        self,
        measure: str = "local",
        form: str = "tight",
        weights: str | None = "records",
        sensitive: str | None = None,
    ) -> float:
        """Return one risk.

        Parameters
        ----------
        measure, form, weights
            The words of the risk, as in `assess`; marginal shrinkage has no weights.
        sensitive
            Which sensitive attribute; may be left out if there is one.
        """
        attribute = self.table.attribute(sensitive)
        asked = replace(
            self.asked,
            measures=tuple(name for name in self.asked.measures if name == measure),
            forms=tuple(name for name in self.asked.forms if name == form),
        )
        rows = list(self._assess(attribute.name, asked, self.priors.fit(attribute, asked.measures)))
        return float(find_row(rows, self.table, "assess", (measure, form, weights), sensitive).risk)

    def _attackers(self) -> dict[str, Any]:
        """Return ``attackers``, ``people_above`` and ``accuracy`` of the JSON."""
        if isinstance(self.method, Mechanism):
            advantage, precision = total_variation(self.method), find_precision(self.method)
            within, deviation = precision.within, precision.sd
        else:
            advantage, within, deviation = find_advantage(self.method), find_change(self.method), None
        rows: list[dict[str, Any]] = []
        above: dict[str, dict[str, int]] = {}
        for name, tables in self.attackers.items():
            labels = self.table.attribute(name).levels.labels
            for table in tables[-1:]:
                rows += table.to_rows(name, labels, advantage)
                above[name] = {f"{gain:g}": table.people_above(gain) for gain in NOTABLE_GAINS}
            for table in tables[:-1]:
                rows += [row for row in table.to_rows(name, labels, advantage) if row["attack"] == "informed"]
        accuracy = {"within": within, "probability": SHARE, "sd": deviation}
        one = above.get(self.table.sensitive[0], {}) if len(self.table.sensitive) == 1 else above
        return {"attackers": rows, "people_above": one, "accuracy": accuracy}

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(row) for row in self.risks]


@dataclass(frozen=True, repr=False)
class Assessment(TableRisks):
    """The answer of `assess`. Prints as a sentence and a table; `value` picks one number, `plot` draws them all."""

    wording = "assessment"
    picture = "draw_assessment"

    method: Mechanism
    chosen: bool = False
    """Whether epsilon was chosen from the data: what one record adds at most is then not stated."""

    @property
    def mechanism(self) -> Mechanism:
        return self.method

    @cached_property
    def figures(self) -> tuple[DecisionFigures, ...]:
        """What to decide by, for each sensitive attribute: caused, certainty, ceiling."""
        how = self.method, self.attacker, self.asked.attack, self.chosen
        return tuple(DecisionFigures(attribute, *how) for attribute in self.table.attributes)

    @cached_property
    def limits(self) -> tuple[Limits, ...]:
        """Beside each risk, in the same order: its limit as epsilon falls to 0, and without noise."""
        ends = {
            (name, measure.name, *key): limits
            for name in self.table.sensitive
            for measure in self.asked.make(self.fitted[name].measure)
            for key, limits in find_limits(self.table.profiles(name), measure, self.asked.forms, self.method).items()
        }
        return tuple(ends[row.sensitive, row.measure, row.form, row.weights or "uniform"] for row in self.risks)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cellrisk assess --json`` prints."""
        say_exposure = find_words(self.wording).say_exposure
        counts = ("n_levels", "n_homogeneous", "n_heterogeneous", "n_unique", "n_profiles")
        sensitive = {
            attribute.name: {name.removeprefix("n_"): getattr(attribute.profiles, name) for name in counts}
            for attribute in self.table.attributes
        }
        by_name = {figures.sensitive: figures for figures in self.figures}
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells, "sensitive": sensitive},
            "unit": self.table.unit.to_dict(),
            "mechanism": self.method.to_dict(),
            "risks": self._numbers(),
            "decision": [figures.to_dict() for figures in self.figures],
            **self._attackers(),
            "limits": [
                {**{key: value for key, value in row.items() if key != "risk"}, **vars(limits)}
                for row, limits in zip(self._numbers(), self.limits, strict=True)
            ],
            "fitted": {name: fitted.to_dict() for name, fitted in self.fitted.items()},
            self.table.revealed_name: {name: vars(figures.people) for name, figures in by_name.items()},
            "baselines": {name: figures.baselines for name, figures in by_name.items()},
            "exposures": [{"sensitive": name, "sentence": say_exposure(by_name[name])} for name in by_name],
            "headline": self.headline,
        }


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
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
    releases: int = 1,
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
    certainty
        How sure the informed attacker must be: one number or several.
    belief
        The attacker's prior: "negbin", "table" or shapes and theta such as "0.4,0.15/0.9"; a mapping gives each
        sensitive attribute its own.
    harmful
        The values of which it counts whether the informed attacker learns them; default all.
    unions
        Sets of values that the informed attacker also names as one value: lists, or texts such as "a+b".
    releases
        How many times the table is released, each time with new noise. With more than one the answer is an
        `Averaging`: the homogeneity attack on the mean of the releases, and the ceiling of all of them.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> round(cr.assess(table, "geometric", epsilon=1.0, measures="local").value(form="exact"), 6)
    0.034794
    """
    require_table(table)
    require_kind("priors", priors, Priors)
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    mechanism = mechanism.with_unit(table.unit)
    asked = choose_risks(attack, measures, forms, weights)
    attacker = Attacker.of(certainty, belief, harmful, unions)
    attacker.check(table.attributes)
    if releases != 1:
        if attack != "homogeneity":
            what = "several releases are assessed by the homogeneity attack alone"
            raise InvalidInput(what, option="releases", got=releases, fix="leave attack out", code="several-releases")
        averaged = import_module("cellrisk.repeat.averaging").average(
            table, mechanism, releases=releases, measures=measures, forms=forms, weights=weights, priors=priors
        )
        return cast(Assessment, averaged)
    for attribute in table.attributes:
        _ = attribute.profiles.blocks  # refuses a table without records
        priors.check(attribute, asked.measures)
    return Assessment(table, mechanism, asked, priors, attacker)


def find_row(
    rows: Sequence[Any], table: FrequencyTable, asker: str, words: tuple[str, str, str | None], sensitive: str | None
) -> Any:
    """Return the row of a result with a measure, form and weights; refuse those that ``asker`` was not asked for."""
    name, (measure, form, weights) = table.attribute(sensitive).name, words
    require_word("measure", measure, MEASURES)
    require_word("form", form, FORMS)
    if weights is not None:
        require_word("weights", weights, WEIGHTS)
    weighting = None if measure == OF_THE_TABLE else weights
    for row in rows:
        if (row.sensitive, row.measure, row.form, row.weights) == (name, measure, form, weighting):
            return row
    got = f"measure {measure}, form {form}, weights {weights}"
    raise UnknownName("that risk was not assessed", got=got, fix=f"add it to measures=, forms= and weights= of {asker}")
