"""The answer of `average`: risks of the attacker who averages beside those of the rule, and which is larger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.ceilings import find_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.averaging.mean_noise import WHOLE, MeanNoise
from cellrisk.risk.assessment import find_row
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import MEASURES
from cellrisk.risk.priors import Fitted
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, claim, number_of, of_people, percent, whole_people

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

SAME = 1e-9
"""Risks within this relative distance are equal."""
SEES = (
    "The attacker is taken to see the counts before they are rounded and before those below the threshold are set to "
    "zero; of releases that are clamped he sees less."
)


@dataclass(frozen=True)
class Rule:
    """The paper's rule: one release by the same mechanism at the cumulative loss of all of them."""

    operator: str
    """How the losses were composed."""
    epsilon: float | None
    delta: float
    mechanism: Mechanism | None
    """The mechanism at that loss; None where there is no such loss, or the mechanism cannot be set at it."""
    why: str = ""
    """The reason why there is no mechanism; empty where there is one."""

    def __post_init__(self) -> None:
        if (self.mechanism is None) != bool(self.why):
            raise InvalidInput("a rule has a mechanism, or a reason why there is none")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        mechanism = None if self.mechanism is None else self.mechanism.to_dict()
        return {**vars(self), "mechanism": mechanism}


@dataclass(frozen=True)
class Averaged:
    """One risk by one measure, form and weighting: after one release, after averaging all, and by each rule."""

    sensitive: str
    measure: str
    form: str
    weights: str | None
    one: float
    averaging: float
    rules: tuple[float | None, ...]

    def larger(self, place: int = 0) -> str | None:
        """Which is larger, "averaging" or the "rule" at that place, or "equal"; None where the rule has no answer.

        >>> Averaged("y", "local", "tight", "records", 0.1, 0.2, (0.3, 0.2, None)).larger(1)
        'equal'
        """
        rule = self.rules[place]
        if rule is None:
            return None
        if abs(rule - self.averaging) <= SAME * max(rule, self.averaging):
            return "equal"
        return "rule" if rule > self.averaging else "averaging"


@dataclass(frozen=True)
class AveragedCaused:
    """The share of people given away only because of their own record: after one release, after averaging all, and by
    each rule. Local, for the table in hand."""

    sensitive: str
    records: int
    labels: int
    """How many labels the attribute has."""
    one: float
    averaging: float
    rules: tuple[float | None, ...]

    def to_dict(self) -> dict[str, Any]:
        """One entry of ``decision`` in JSON, but for the ceiling."""
        return {
            "one": {"people": self.one * self.records, "share": self.one},
            "averaging": {"people": self.averaging * self.records, "share": self.averaging},
            "rules": [None if each is None else {"people": each * self.records, "share": each} for each in self.rules],
        }


@dataclass(frozen=True, repr=False)
class Averaging(Result):
    """What an attacker gains by averaging repeated releases. Made by `average`; prints as sentences and a table."""

    table: FrequencyTable
    mechanism: Mechanism
    releases: int
    rules: tuple[Rule, ...]
    """The rule by basic composition, and the rule by the operator asked for where that is another."""
    rows: tuple[Averaged, ...]
    fitted: Mapping[str, Fitted]
    caused: tuple[AveragedCaused, ...] = ()
    """One for each sensitive attribute."""

    def __post_init__(self) -> None:
        if not self.rows or any(len(row.rules) != len(self.rules) for row in self.rows):
            raise InvalidInput("an averaging has a row at least, with a risk for each rule")

    def ceiling(self, labels: int = 2) -> Ceiling | None:
        """The ceiling of all the releases, for so many labels; None where it is not known.

        From the losses composed, whatever an attacker makes of the releases: no average is better than its parts.
        """
        return self._find_ceiling(labels)[0]

    def _find_ceiling(self, labels: int = 2) -> tuple[Ceiling | None, str]:
        return find_ceiling((Loss.of(self.mechanism),) * self.releases, labels)

    @property
    def noise(self) -> MeanNoise:
        """What is left in a count after averaging."""
        return MeanNoise.of(self.mechanism.noise, self.releases)

    def row(
        self,
        measure: str = "local",
        form: str = "tight",
        weights: str | None = "records",
        sensitive: str | None = None,
    ) -> Averaged:
        """One row: the risk of one release, of the mean of all, and of the paper's rule.

        Parameters
        ----------
        measure, form, weights
            The words of the risk, as in `assess`; marginal shrinkage has no weights.
        sensitive
            Which sensitive attribute; may be left out where there is one.
        """
        found: Averaged = find_row(self.rows, self.table, "average", measure, form, weights, sensitive)
        return found

    @property
    def headline(self) -> str:
        """What a curator can repeat: for each sensitive attribute, its leading risk and which is larger."""
        names = dict.fromkeys(row.sensitive for row in self.rows)
        return "\n".join([*map(self._say_caused, self.caused), *(self._say(self._lead(name)) for name in names)])

    def _say_caused(self, found: AveragedCaused) -> str:
        """The figures to decide by, of one attribute."""
        told = (
            f"{found.sensitive}: somebody who averages {number_of(self.releases, 'release')} would read off the value "
            f"of {of_people(found.averaging * found.records, found.records)} only because of their own record; of one "
            "release alone, "
            f"{whole_people(found.one * found.records)} ({percent(found.one)})."
        )
        most = self.ceiling()
        return told if most is None else f"{told} {most.of_two}"

    def _lead(self, name: str) -> Averaged:
        """The row that stands for an attribute: tight and by records where it was asked for."""
        order = {"tight": 0, "exact": 1, "published": 2}
        rows = [row for row in self.rows if row.sensitive == name]
        return min(rows, key=lambda row: (list(MEASURES).index(row.measure), order[row.form], row.weights == "uniform"))

    def _say(self, row: Averaged) -> str:
        weights = {"uniform": ", each cell alike", "records": ", by records", None: ""}[row.weights]
        said = (
            f"{row.sensitive}: the risk from averaging {number_of(self.releases, 'release')} at "
            f"{self.mechanism.guarantee} is {percent(row.averaging)} ({row.measure.replace('_', ' ')}, "
            f"{row.form}{weights}); from one release alone it is {percent(row.one)}."
        )
        return " ".join([said, *(self._compare(row, place) for place in range(len(self.rules)))])

    def _compare(self, row: Averaged, place: int) -> str:
        """Which is larger under one rule, and the noise of both."""
        rule, risk, larger = self.rules[place], row.rules[place], row.larger(place)
        named = f"the cumulative loss by {rule.operator} composition"
        if rule.mechanism is None or risk is None:
            return f"The rule of {named} has no answer: {rule.why}."
        loss = f"epsilon {claim(rule.epsilon or 0.0)}" + (f" and delta {claim(rule.delta)}" if rule.delta else "")
        said = f"The rule of {named}, {loss}, says {percent(risk)}"
        theirs, ours = MeanNoise.of(rule.mechanism.noise, 1).deviation, self.noise.deviation
        if larger == "equal":
            return f"{said}, which is the same: noise of standard deviation {theirs:.4g} against {ours:.4g}."
        word = "larger" if larger == "rule" else "smaller"
        noise = f"it assumes noise of standard deviation {theirs:.4g} where averaging leaves {ours:.4g}"
        return f"{said}, which is {word}; {noise}."

    @property
    def statements(self) -> tuple[str, ...]:
        """What is assumed."""
        said = [
            "The rule takes one release by the same mechanism at the loss of all releases together; averaging is "
            "computed from the mean of the noises itself.",
            SEES,
        ]
        most, why_not = self._find_ceiling()
        if most is not None:
            said.append(
                "The ceiling is that of all releases together, whatever is made of them: exact but for rounding up."
            )
        else:
            said.append(f"The ceiling of all releases together is not known: {why_not}.")
        if self.noise.kind in WHOLE and self.releases % 2 == 0:
            said.append("A mean that meets the threshold exactly is not below it, so that count does not vanish.")
        if self.mechanism.pure and any(rule.delta for rule in self.rules):
            said.append(f"{self.mechanism.name} takes no delta: the rule is evaluated at its epsilon alone.")
        return tuple(said)

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: ``attacker`` is "one release", "averaging" or "rule", with the operator of a rule."""
        rows: list[dict[str, Any]] = []
        every: list[Averaged | AveragedCaused] = [*self.rows, *self.caused]
        for row in every:
            key: dict[str, str | None] = {
                "sensitive": row.sensitive,
                "measure": "caused",
                "form": None,
                "weights": "records",
            }
            if isinstance(row, Averaged):
                key |= {"measure": row.measure, "form": row.form, "weights": row.weights}
            rows.append({**key, "attacker": "one release", "operator": None, "risk": row.one})
            rows.append({**key, "attacker": "averaging", "operator": None, "risk": row.averaging})
            rows += [
                {**key, "attacker": "rule", "operator": rule.operator, "risk": risk}
                for rule, risk in zip(self.rules, row.rules, strict=True)
            ]
        most = self.ceiling()
        if most is not None:
            words = dict.fromkeys(("sensitive", "measure", "form", "weights", "attacker", "operator"))
            rows.append({**words, "measure": "ceiling", "attacker": "any", "risk": most.even_two})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The answer for machines: JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "mechanism": self.mechanism.to_dict(),
            "releases": self.releases,
            "deviation": self.noise.deviation,
            "rules": [rule.to_dict() for rule in self.rules],
            "risks": [
                {
                    **vars(row),
                    "rules": list(row.rules),
                    "larger": [row.larger(place) for place in range(len(self.rules))],
                }
                for row in self.rows
            ],
            "decision": [self._decide(found) for found in self.caused],
            "fitted": {name: fit.to_dict() for name, fit in self.fitted.items()},
            "sentence": self.headline,
            "statements": list(self.statements),
        }

    def _decide(self, found: AveragedCaused) -> dict[str, Any]:
        most = self.ceiling(max(found.labels, 2))
        told: dict[str, Any] | None = None
        if most is not None:
            told = {name: getattr(most, name) for name in ("even_two", "even", "labels", "advantage")}
            told["sentence"] = most.of_two
        return {"sensitive": found.sensitive, "caused": found.to_dict(), "ceiling": told}

    def _paragraphs(self) -> list[str]:
        header = ["measure", "form", "weights", "one release", "averaging"]
        for rule in self.rules:
            header += [f"rule, {rule.operator}", "larger"]
        parts = []
        for name in dict.fromkeys(row.sensitive for row in self.rows):
            body = []
            for row in self.rows:
                if row.sensitive == name:
                    line = [row.measure, row.form, row.weights or "-", f"{row.one:.4f}", f"{row.averaging:.4f}"]
                    for place, risk in enumerate(row.rules):
                        line += ["-" if risk is None else f"{risk:.4f}", row.larger(place) or "-"]
                    body.append(line)
            parts.append("\n".join([name, aligned(header, body, left=3), *self.fitted[name].describe()]))
        return [*parts, "\n".join(self.statements), CURATOR_NOTE]
