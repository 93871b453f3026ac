"""The answer of `average`: risks of the attacker who averages beside those of the rule, and which is larger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.ceilings import find_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.averaging.mean_noise import MeanNoise
from cellrisk.risk.assessment import find_row
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.priors import Fitted
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

SAME = 1e-9
"""Risks within this relative distance are equal."""


@dataclass(frozen=True)
class Rule:
    """The paper's rule: one release by the same mechanism at the cumulative loss of all of them."""

    method: str
    """How the losses were composed."""
    epsilon: float | None
    delta: float
    mechanism: Mechanism | None
    """The mechanism at that loss; None if there is no such loss, or the mechanism cannot be set at it."""
    why: str = ""
    """The reason why there is no mechanism; empty if there is one."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {**vars(self), "mechanism": None if self.mechanism is None else self.mechanism.to_dict()}


@dataclass(frozen=True)
class Averaged:
    """One risk by one measure, form and weighting: after one release, after averaging all, and by each rule."""

    sensitive: str
    measure: str
    form: str | None
    weights: str | None
    one: float
    averaging: float
    rules: tuple[float | None, ...]

    def larger(self, number: int = 0) -> str | None:
        """Which is larger, "averaging" or the "rule" of that number, or "equal"; None if the rule has no answer.

        >>> Averaged("y", "local", "tight", "records", 0.1, 0.2, (0.3, 0.2, None)).larger(1)
        'equal'
        """
        rule = self.rules[number]
        if rule is None:
            return None
        if abs(rule - self.averaging) <= SAME * max(rule, self.averaging):
            return "equal"
        return "rule" if rule > self.averaging else "averaging"


@dataclass(frozen=True, repr=False)
class Averaging(Result):
    """What an attacker gains by averaging repeated releases. Made by `average`; prints as sentences and a table."""

    wording = "averaging"

    table: FrequencyTable
    mechanism: Mechanism
    releases: int
    rules: tuple[Rule, ...]
    """The rule by basic composition, and the rule by the method asked for if that is another."""
    rows: tuple[Averaged, ...]
    fitted: Mapping[str, Fitted]
    caused: tuple[Averaged, ...] = ()
    """For each sensitive attribute, the share of people revealed only because of their own record."""

    def find_ceiling(self, labels: int = 2) -> tuple[Ceiling | None, str]:
        """The ceiling of all the releases, for so many labels; or None, and why it is not known.

        From the losses composed, whatever an attacker makes of the releases: no average is better than its parts.

        Parameters
        ----------
        labels
            How many values the sensitive attribute has.
        """
        return find_ceiling((Loss.of(self.mechanism),) * self.releases, labels)

    @property
    def noise(self) -> MeanNoise:
        """What is left in a count after averaging."""
        return MeanNoise.of(self.mechanism.noise, self.releases)

    def row(
        self, measure: str = "local", form: str = "tight", weights: str | None = "records", sensitive: str | None = None
    ) -> Averaged:
        """One row: the risk of one release, of the mean of all, and of the paper's rule.

        Parameters
        ----------
        measure, form, weights
            The words of the risk, as in `assess`; marginal shrinkage has no weights.
        sensitive
            Which sensitive attribute; may be left out if there is one.
        """
        found: Averaged = find_row(self.rows, self.table, "average", measure, form, weights, sensitive)
        return found

    @property
    def statements(self) -> tuple[str, ...]:
        """What is assumed."""
        return tuple(find_words("averaging").statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: ``attacker`` is "one release", "averaging" or "rule", with the method of a rule."""
        rows: list[dict[str, Any]] = []
        for row in (*self.rows, *self.caused):
            key = {name: getattr(row, name) for name in ("sensitive", "measure", "form", "weights")}
            rows.append({**key, "attacker": "one release", "method": None, "risk": row.one})
            rows.append({**key, "attacker": "averaging", "method": None, "risk": row.averaging})
            rows += [
                {**key, "attacker": "rule", "method": rule.method, "risk": risk}
                for rule, risk in zip(self.rules, row.rules, strict=True)
            ]
        most, _ = self.find_ceiling()
        if most is not None:
            words = dict.fromkeys(("sensitive", "measure", "form", "weights", "attacker", "method"))
            rows.append({**words, "measure": "ceiling", "attacker": "any", "risk": most.even_two})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The answer for machines: JSON-ready values."""
        numbers = range(len(self.rules))
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "mechanism": self.mechanism.to_dict(),
            "releases": self.releases,
            "deviation": self.noise.deviation,
            "rules": [rule.to_dict() for rule in self.rules],
            "risks": [
                {**vars(row), "rules": list(row.rules), "larger": [row.larger(number) for number in numbers]}
                for row in self.rows
            ],
            "decision": [self._decide(row) for row in self.caused],
            "fitted": {name: fit.to_dict() for name, fit in self.fitted.items()},
            "sentence": self.headline,
            "statements": list(self.statements),
        }

    def _decide(self, row: Averaged) -> dict[str, Any]:
        """The figures to decide by, of one attribute."""

        def count(share: float) -> dict[str, float]:
            return {"people": share * self.table.n_records, "share": share}

        caused = {"one": count(row.one), "averaging": count(row.averaging)}
        rules = [None if share is None else count(share) for share in row.rules]
        most, _ = self.find_ceiling(max(self.table.attribute(row.sensitive).n_levels, 2))
        ceiling: dict[str, Any] | None = None
        if most is not None:
            named = {name: getattr(most, name) for name in ("even_two", "even", "labels", "advantage")}
            ceiling = {**named, "sentence": most.of_two}
        return {"sensitive": row.sensitive, "caused": {**caused, "rules": rules}, "ceiling": ceiling}
