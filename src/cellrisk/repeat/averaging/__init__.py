"""`average`: the same table released several times, and an attacker who averages the noise away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.repeat.accounting.ceilings import describe_ceiling, find_ceiling
from cellrisk.repeat.accounting.composition import compose, find_probabilistic_epsilon
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.averaging.mean_noise import MeanNoise
from cellrisk.risk.assessment import find_row
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import Local, average_risks
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_kind, require_within
from cellrisk.system.choices import (
    CompositionMethod,
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    Weights,
    list_words,
    require_word,
)
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["Averaged", "Averaging", "MeanNoise", "Rule", "average"]

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
    """One risk by one measure, form and weighting: after one release, after averaging all, and by the rule."""

    sensitive: str
    measure: str
    form: str | None
    weights: str | None
    one: float
    averaging: float
    rule: float | None

    @property
    def larger(self) -> str | None:
        """Return which is larger, "averaging" or the "rule", or "equal"; None if the rule has no answer.

        >>> Averaged("y", "local", "tight", "records", 0.1, 0.2, 0.3).larger
        'rule'
        """
        if self.rule is None:
            return None
        if abs(self.rule - self.averaging) <= SAME * max(self.rule, self.averaging):
            return "equal"
        return "rule" if self.rule > self.averaging else "averaging"


@dataclass(frozen=True, repr=False)
class Averaging(Result):
    """What an attacker gains by averaging repeated releases. Made by `average`; prints as sentences and a table."""

    wording = "several_releases"

    table: FrequencyTable
    mechanism: Mechanism
    releases: int
    rule: Rule
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
        """Return what is left in a count after averaging."""
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

    def value(
        self, measure: str = "local", form: str = "tight", weights: str | None = "records", sensitive: str | None = None
    ) -> float:
        """One risk of the attacker who averages.

        Parameters
        ----------
        measure, form, weights, sensitive
            As in `row`.
        """
        return self.row(measure, form, weights, sensitive).averaging

    @property
    def statements(self) -> tuple[str, ...]:
        """Return what is assumed."""
        return tuple(find_words(self.wording).statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: ``attacker`` is "one release", "averaging" or "rule", with the method of a rule."""
        rows: list[dict[str, Any]] = []
        for row in (*self.rows, *self.caused):
            key = {name: getattr(row, name) for name in ("sensitive", "measure", "form", "weights")}
            rows.append({**key, "attacker": "one release", "method": None, "risk": row.one})
            rows.append({**key, "attacker": "averaging", "method": None, "risk": row.averaging})
            rows.append({**key, "attacker": "rule", "method": self.rule.method, "risk": row.rule})
        most, _ = self.find_ceiling()
        if most is not None:
            words = dict.fromkeys(("sensitive", "measure", "form", "weights", "attacker", "method"))
            rows.append({**words, "measure": "ceiling", "attacker": "any", "risk": most.even_two})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The answer for machines: JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "unit": self.table.unit.to_dict(),
            "mechanism": self.mechanism.to_dict(),
            "releases": self.releases,
            "deviation": self.noise.deviation,
            "rule": self.rule.to_dict(),
            "risks": [{**vars(row), "larger": row.larger} for row in self.rows],
            "decision": [self._decide(row) for row in self.caused],
            "fitted": {name: fit.to_dict() for name, fit in self.fitted.items()},
            "sentence": self.headline,
            "statements": list(self.statements),
        }

    def _decide(self, row: Averaged) -> dict[str, Any]:
        """The figures to decide by, of one attribute."""

        caused = {
            name: None if share is None else {"people": share * self.table.n_records, "share": share}
            for name, share in (("one", row.one), ("averaging", row.averaging), ("rule", row.rule))
        }
        most, _ = self.find_ceiling(max(self.table.attribute(row.sensitive).n_levels, 2))
        return {"sensitive": row.sensitive, "caused": caused, "ceiling": describe_ceiling(most)}


def average(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    releases: int,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    measures: MeasureName | Sequence[MeasureName] | None = None,
    forms: Form | Sequence[Form] | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    priors: Priors = USUAL_PRIORS,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
) -> Averaging:
    """Assess what averaging reveals if the same table is released ``releases`` = T times with independent noise.

    The attacker takes the mean of the T noisy counts of each cell and level, and attacks it like one release: the
    homogeneity risk with q(m) = P(m + mean < threshold), exact. Beside it stands the paper's rule (section 4.3): the
    risk of one release by the same mechanism at the cumulative loss, by the ``method`` of `compose` at a
    ``total_delta``. If the mechanism cannot be set at that loss, the answer says so. ``caused`` has the
    people whom the same attack reveals only because of their own record, exact; ``find_ceiling`` composes the losses.

    Gaussian noise, composed exactly: the rule has noise of scale sigma/sqrt(T), which is what averaging leaves, so the
    two agree. Laplace noise at T epsilon has a standard deviation of sqrt(2) b/T, where averaging leaves sqrt(2/T) b,
    and geometric noise is much the same: the rule takes less noise. So it is larger if risk rises with epsilon, as in
    homogeneous cells, and smaller if risk falls with epsilon, as it mostly does in cells with several labels: the rule
    does not bound the averaging attacker. Ten releases at epsilon 0.1 of a cell (3, 0) and of a cell (3, 2):

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    releases
        How many, T.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    measures, forms, weights
        One word or several; default all.
    priors
        How the priors of the measures that need any are found.
    method, total_delta
        How the paper's rule adds up the losses, as in `compose`, and at which delta; default the sum of theirs.

    >>> import cellrisk as cr, pandas as pd
    >>> levels = {"y": ["a", "b"]}
    >>> for counts in ([3, 0], [3, 2]):
    ...     cell = pd.DataFrame({"x": "cell", "y": ["a", "b"], "n": counts})
    ...     table = cr.tabulate(cell, "x", "y", levels=levels, count="n")
    ...     row = average(table, cr.Laplace(epsilon=0.1), releases=10, measures="local").row(form="exact")
    ...     print(counts, round(row.averaging, 4), round(row.rule, 4), row.larger)
    [3, 0] 0.3925 0.6681 rule
    [3, 2] 0.4405 0.1434 averaging
    """
    require_table(table, single="attacks on averages")
    require_kind("priors", priors, Priors)
    if isinstance(mechanism, Mechanism) and delta is not None:
        raise InvalidInput(
            "belongs to a mechanism that is given by name",
            option="delta",
            fix=f"{argument('total_delta')} is the delta of all releases together",
        )
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    mechanism = mechanism.with_unit(table.unit)
    asked = choose_risks("homogeneity", measures, forms, weights)
    mean = MeanNoise.of(mechanism.noise, releases)
    rule = _find_rule(mechanism, mean.releases, method, total_delta)
    set_up = [] if rule.mechanism is None else [rule.mechanism.noise]
    channel = AdditiveChannel((mechanism.noise, mean, *set_up), mechanism.threshold)
    rows: list[Averaged] = []
    caused: list[Averaged] = []
    fitted: dict[str, Fitted] = {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        fitted[name] = priors.fit(attribute, asked.measures)
        chosen = asked.make(fitted[name].measure)
        for measure, form, weight, values in average_risks(
            attribute.profiles, chosen, channel, asked.forms, asked.weights
        ):
            rows.append(Averaged(name, measure, form, weight, *_assign(values)))
        shares = Local().average(attribute.profiles, channel, ("own",))["own", "records"]
        caused.append(Averaged(name, "caused", None, "records", *_assign(shares)))
    return Averaging(table, mechanism, mean.releases, rule, tuple(rows), fitted, tuple(caused))


def _assign(values: Floats) -> tuple[float, float, float | None]:
    """Values under the noises that were asked about: of one release, of the mean, and of the rule if it has noise."""
    one, averaging, *rule = (float(value) for value in values)
    return one, averaging, rule[0] if rule else None


def _find_rule(mechanism: Mechanism, number: int, method: CompositionMethod, delta: float | None) -> Rule:
    """The mechanism at the cumulative loss."""
    require_word("method", method, list_words(CompositionMethod))
    if delta is not None:
        require_within("total_delta", delta, least=0, below=1)
    try:
        composition = compose([Loss.of(mechanism)] * number, method=method, delta=delta)
    except InvalidInput as refusal:
        return Rule(method, None, delta or 0.0, None, str(refusal))
    named, epsilon, total = composition.chosen.method, composition.epsilon, composition.delta
    if mechanism.name == "gaussian-pdp" and named != "basic":
        epsilon = find_probabilistic_epsilon(composition.events, total) or epsilon
    try:
        cumulative = replace(mechanism, epsilon=epsilon, delta=0.0 if mechanism.pure else total)
    except InvalidInput as refusal:
        return Rule(named, epsilon, total, None, str(refusal))
    return Rule(named, epsilon, total, cumulative)
