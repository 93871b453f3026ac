"""`curve`: risk along epsilon, with the two ends that give it its meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.risk.attackers.attacker import Attacker, SettingFigures, find_setting_figures
from cellrisk.risk.attacks import AskedRisks, choose_risks, people_risk
from cellrisk.risk.ceilings import Ceiling, ceiling, find_success
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    ConfidentInferences,
    CountPrior,
    find_certainty,
    why_unknown,
)
from cellrisk.risk.measures import FORMS, MEASURES
from cellrisk.risk.measures.measure import SETTINGS_AT_ONCE
from cellrisk.risk.people import Caused, caused_shares, count_caused
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.risk.sweep import NO_NOISE, Limits, covered, find_limits, read_epsilons, read_settings
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_kind
from cellrisk.system.choices import (
    Attack,
    FigureName,
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    Weights,
    choose_words,
    list_words,
)
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

FIGURES: tuple[FigureName, ...] = list_words(FigureName)
USUAL_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)
"""Epsilons at which attacks are assessed, if none were asked for."""
MOST_TRACED = 61
"""Epsilons at which attacks are assessed at most, of those that were asked for."""
MOST_NUMBERS = 1_000_000
"""Numbers of all lines together: more would not fit into the memory of a small machine once they are printed."""


@dataclass(frozen=True, eq=False)
class Line:
    """One risk, or one figure to decide by, along epsilon."""

    setting: Mechanism
    sensitive: str
    attack: str
    measure: str
    form: str | None
    weights: str | None
    epsilon: Floats
    risk: Floats
    """Of caused and certainty, the share of people; of the ceiling, the worst case of two equally likely values."""
    limits: Limits
    points: tuple[Any, ...] = ()
    """Of a figure, what `assess` gives at each epsilon: `Caused`, `ConfidentInferences` or `Ceiling`."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each epsilon: what was measured, the risk, and the other numbers of a figure."""
        fixed = {"mechanism": self.setting.name, "delta": self.setting.delta}
        words = {name: getattr(self, name) for name in ("sensitive", "attack", "measure", "form", "weights")}
        points = self.points or [None] * len(self.risk)
        return [
            {**fixed, "epsilon": epsilon, **words, "risk": risk, **vars(self.limits), **_list_parts(point)}
            for epsilon, risk, point in zip(self.epsilon.tolist(), self.risk.tolist(), points, strict=True)
        ]

    def nearest(self, epsilon: float) -> float:
        """Return the epsilon of the line that is nearest to this one."""
        return float(self.epsilon[int(np.argmin(np.abs(np.log(self.epsilon / epsilon))))])

    def at(self, epsilon: float) -> float:
        """Return the risk at the nearest epsilon of the line."""
        return float(self.risk[int(np.searchsorted(self.epsilon, self.nearest(epsilon)))])


def _list_parts(point: Caused | ConfidentInferences | Ceiling | None) -> dict[str, Any]:
    """Return the numbers of a figure beside its share, as JSON has them."""
    if isinstance(point, Caused):
        return {"people": point.people, "exposed": point.exposed, "sd": point.deviation, "bound": point.bound}
    if isinstance(point, ConfidentInferences):
        return {"people": point.right, **point.to_dict()}
    return {} if point is None else {"even_two": point.even_two, "even": point.even, "labels": point.labels}


@dataclass(frozen=True, eq=False, repr=False)
class RiskCurve(Result):
    """The answer of `curve`: lines along epsilon. Prints as a short table; `plot` draws it."""

    wording = "curve"
    picture = "draw_curve"

    table: FrequencyTable
    lines: tuple[Line, ...]
    """Those of figures before those of measures, for each setting and attribute."""
    settings: tuple[Mechanism, ...]
    """The mechanisms and deltas, at any epsilon."""
    attacker: Attacker = field(default_factory=Attacker)
    points: Floats | None = None
    """The epsilons that were asked for."""
    named: bool = False
    """Whether measures or figures were asked for by name: then they are printed and drawn, else what attacks reveal."""
    traced: dict[tuple[Any, ...], tuple[SettingFigures, ...]] = field(default_factory=dict)
    """What attacks reveal at epsilons that were asked for once."""

    def trace_attacks(self, sensitive: str, setting: Mechanism, usual: Sequence[float]) -> tuple[SettingFigures, ...]:
        """Return what attacks reveal along epsilon and, last, without noise.

        Parameters
        ----------
        sensitive, setting
            Of which attribute, and by which of the curve's ``settings``.
        usual
            Epsilons, if none were asked for; else at most as many of those that were.
        """
        epsilons = np.asarray(usual)
        if self.points is not None:
            places = np.linspace(0, len(self.points) - 1, min(len(self.points), len(usual)))
            epsilons = self.points[np.unique(places.round().astype(int))]
        key = sensitive, setting, *epsilons.tolist()
        if key not in self.traced:
            mechanisms = [setting.with_epsilon(float(epsilon)) for epsilon in covered(setting, epsilons)]
            self.traced[key] = find_setting_figures(self.table.attribute(sensitive), self.attacker, mechanisms)
        return self.traced[key]

    @property
    def leading(self) -> list[Line]:
        """Every figure, and the preferred measure of each setting and attribute: local, tight, by records if asked."""
        kinds: dict[tuple[Any, ...], list[Line]] = {}
        for number, line in enumerate(self.lines):
            kinds.setdefault((line.setting, line.sensitive, number if line.points else -1), []).append(line)

        def preference(line: Line) -> tuple[Any, ...]:
            measure, form = (*FIGURES, *MEASURES).index(line.measure), (None, *FORMS).index(line.form)
            return measure, -form, line.weights == "uniform"

        return [min(lines, key=preference) for lines in kinds.values()]

    @property
    def words(self) -> str:
        """What the picture shows, in words: one paragraph for each setting and attribute."""
        return str(find_words(self.wording).words(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """Return one row a risk: mechanism, epsilon, delta, and what was measured."""
        return [row for line in self.lines for row in line.rows]

    def _attackers(self) -> list[dict[str, Any]]:
        """Return ``attackers`` in JSON: the rows of `assess` at the usual epsilons, or at up to 61 of those given."""
        usual = USUAL_EPSILONS if self.points is None else [0.0] * MOST_TRACED
        rows = []
        for setting, name in product(self.settings, self.table.sensitive):
            labels = self.table.attribute(name).levels.labels
            for at in self.trace_attacks(name, setting, usual)[:-1]:
                if at.mechanism is not None:
                    start = {"mechanism": setting.name, "delta": setting.delta, "epsilon": at.mechanism.epsilon}
                    rows += [{**start, **row} for row in at.table.to_rows(name, labels, at.advantage)]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cellrisk curve --json`` prints."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "unit": self.table.unit.to_dict(),
            "risks": self._numbers(),
            "attackers": [] if self.named else self._attackers(),
            "headline": self.headline,
            "words": self.words,
        }


def curve(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName] = USUAL_MECHANISM,
    *,
    epsilon: float | Sequence[float] | Floats | None = None,
    delta: float | Sequence[float] | None = None,
    measures: MeasureName | FigureName | Sequence[MeasureName | FigureName] | None = None,
    forms: Form | Sequence[Form] | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    priors: Priors = USUAL_PRIORS,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    attack: Attack = "homogeneity",
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> RiskCurve:
    """Return the risk along epsilon, and the two ends between which it lies.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        One name or several, side by side; of an object, the epsilon does not matter, and its delta, neighbours and
        threshold are taken.
    epsilon
        A list; default 0.001 to 100, evenly spaced in the logarithm. The classical Gaussian mechanism stops below 1.
    delta
        One or several, for the Gaussian mechanisms; default about one over the number of records.
    measures
        The five of `assess`, which are the default, and the figures to decide by: "caused", "certainty", "ceiling".
    forms, weights, priors, attack
        As in `assess`.
    neighbours, threshold
        Those of a mechanism that is named.
    certainty, belief
        How sure the informed attacker must be, one number or several, and the attacker's prior.
    harmful, unions
        As in `assess`.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> line = curve(table, epsilon=[0.01, 1.0], measures="local", forms="tight", weights="records").lines[0]
    >>> [round(float(risk), 6) for risk in line.risk], round(line.limits.chance, 6), round(line.limits.raw, 6)
    ([0.105267, 0.034771], 0.25, 0.034395)
    >>> caused, worst = curve(table, epsilon=[0.01, 1.0], measures=["caused", "ceiling"]).lines
    >>> [round(point.people, 4) for point in caused.points], worst.risk.round(4).tolist()
    ([0.6533, 0.0006], [0.5025, 0.7311])
    """
    require_table(table)
    require_kind("priors", priors, Priors)
    asked, figures = _choose_lines(attack, measures, forms, weights)
    if {"caused", "certainty"} & {*figures}:
        require_table(table, single="caused and certainty, which are figures of one record,")
    attacker = Attacker.of(certainty, belief, harmful, unions)
    attacker.check(table.attributes)
    given = read_epsilons(epsilon)
    settings = read_settings(mechanism, delta, neighbours, threshold, table)
    within = {setting: covered(setting, given) for setting in settings}
    points = len(table.sensitive) * sum(map(len, within.values()))
    numbers = points * len(asked.measures) * len(asked.forms) * len(asked.weights)
    numbers += points * (len(figures) + ("certainty" in figures) * (len(attacker.certainties) - 1))
    if numbers > MOST_NUMBERS:
        got = f"{numbers:,} for all epsilons, mechanisms and measures together"
        fix = "ask for fewer epsilons or fewer measures"
        raise InvalidInput("the curve would have too many numbers", got=got, allowed=f"up to {MOST_NUMBERS:,}", fix=fix)
    report = StepCounter(progress, points * (len(asked.measures) + len(figures)))
    fitted = {attribute.name: priors.fit(attribute, asked.measures) for attribute in table.attributes}
    lines: list[Line] = []
    for setting, attribute in product(settings, table.attributes):
        epsilons = within[setting]
        lines += _trace_figures(attribute, setting, epsilons, figures, attack, attacker, report)
        lines += _trace_measures(attribute, setting, epsilons, asked, fitted[attribute.name], report)
    given_points = None if epsilon is None else given
    return RiskCurve(table, tuple(lines), tuple(settings), attacker, given_points, measures is not None)


def _trace_measures(
    attribute: Attribute, setting: Mechanism, epsilons: Floats, asked: AskedRisks, fitted: Fitted, report: StepCounter
) -> Iterator[Line]:
    """Yield a line for each measure, form and weighting."""
    profiles, channel = attribute.profiles, setting.channel_at(epsilons)
    for measure in asked.make(fitted.measure):
        limits = find_limits(profiles, measure, asked.forms, setting)
        parts = []
        for start in range(0, len(channel), SETTINGS_AT_ONCE):
            parts.append(measure.average(profiles, channel[start : start + SETTINGS_AT_ONCE], asked.forms))
            report.add(min(SETTINGS_AT_ONCE, len(channel) - start))
        for form, weights in product(asked.forms, (None,) if measure.one_number else asked.weights):
            key = form, weights or "uniform"
            risk = np.concatenate([part[key] for part in parts])
            words = asked.attack, measure.name, form, weights
            yield Line(setting, attribute.name, *words, epsilons, risk, limits[key])


def _trace_figures(
    attribute: Attribute,
    setting: Mechanism,
    epsilons: Floats,
    figures: Sequence[str],
    attack: str,
    attacker: Attacker,
    report: StepCounter,
) -> Iterator[Line]:
    """Yield a line for each figure to decide by that was asked for, and of certainty for each certainty."""
    profiles, name = attribute.profiles, attribute.name
    mechanisms = [setting.with_epsilon(epsilon) for epsilon in epsilons.tolist()]
    ends = AdditiveChannel((setting.limit_noise, NO_NOISE), setting.threshold)
    if "caused" in figures:
        exposed = people_risk(attack).average(profiles, setting.channel_at(epsilons), ("tight",))["tight", "records"]
        counted = tuple(
            count_caused(profiles, mechanism, profiles.n_records * share, attack, interval=False)
            for mechanism, share in zip(mechanisms, exposed.tolist(), strict=True)
        )
        limits = Limits(*caused_shares(profiles, ends, attack).tolist())
        shares = np.array([point.share for point in counted])
        yield Line(setting, name, attack, "caused", "tight", "records", epsilons, shares, limits, counted)
        report.add(len(epsilons))
    if "certainty" in figures:
        unknown = why_unknown(attribute)
        if unknown:
            fix = "leave out the measure certainty"
            raise InvalidInput(f"no certainty can be computed for '{name}'", got=unknown, fix=fix)
        prior = attacker.believe(attribute)
        inferred = []
        for channel in (ends[:1], ends[1:], *(mechanism.channel for mechanism in mechanisms)):
            inferred.append(find_certainty(attribute, channel, attacker.certainties, prior))
            report.add(int(len(inferred) > 2))
        for surest in zip(*inferred, strict=True):
            blind, bare, *people = [point.right / profiles.n_records for point in surest]
            words = "bayes", "certainty", "tight", "records"
            yield Line(setting, name, *words, epsilons, np.array(people), Limits(blind, bare), surest[2:])
    if "ceiling" in figures:
        worst = tuple(ceiling(mechanism, labels=attribute.n_levels) for mechanism in mechanisms)
        limits = Limits(find_success(setting.limit_noise, 2), 1.0)
        risk = np.array([point.even_two for point in worst])
        yield Line(setting, name, "informed", "ceiling", None, None, epsilons, risk, limits, worst)
        report.add(len(epsilons))


def _choose_lines(
    attack: str, measures: str | Sequence[str] | None, forms: Any, weights: Any
) -> tuple[AskedRisks, tuple[str, ...]]:
    """Return the paper's measures and the figures to decide by that were asked for."""
    words = () if measures is None else choose_words("measure", measures, (*MEASURES, *FIGURES))
    figures = tuple(word for word in words if word in FIGURES)
    rest = tuple(word for word in words if word in MEASURES)
    asked = choose_risks(attack, rest or None, forms, weights)
    if rest or not figures:
        return asked, figures
    for what, given, chosen, only in (
        ("form", forms, asked.forms, "tight"),
        ("weighting", weights, asked.weights, "records"),
    ):
        if given is not None and only not in chosen:
            raise InvalidInput(f"{' and '.join(figures)} have one {what}", got=", ".join(chosen), allowed=only)
    return replace(asked, measures=()), figures
