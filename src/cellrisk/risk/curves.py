"""`curve`: risk along epsilon, with the two ends that give it its meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.risk.attackers.settings import SettingFigures, find_setting_figures
from cellrisk.risk.attacks import AskedRisks, choose_risks
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.risk.figure_lines import FIGURES, FigureLines, find_figure_lines
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import FORMS, MEASURES
from cellrisk.risk.measures.measure import SETTINGS_AT_ONCE
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.risk.sweep import Limits, covered, find_limits, read_epsilons, read_settings
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
)
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.counts.table import FrequencyTable

MOST_NUMBERS = 1_000_000
"""Numbers of all lines together: more would not fit into the memory of a small machine once they are printed."""


@dataclass(frozen=True, eq=False)
class Line:
    """One risk along epsilon."""

    setting: Mechanism
    sensitive: str
    attack: str
    measure: str
    form: str
    weights: str | None
    epsilon: Floats
    risk: Floats
    limits: Limits

    @property
    def name(self) -> str:
        """What is measured, in words."""
        weights = {"uniform": "each cell alike", "records": "by records", None: "whole table"}[self.weights]
        attack = "" if self.attack == "homogeneity" else f"{self.attack} attack, "
        return f"{attack}{self.measure.replace('_', ' ')}, {self.form}, {weights}"

    @property
    def columns(self) -> dict[str, Any]:
        """What was measured, and the numbers, by the name of the column."""
        return {
            "mechanism": self.setting.name,
            "delta": self.setting.delta,
            "epsilon": self.epsilon,
            "sensitive": self.sensitive,
            "attack": self.attack,
            "measure": self.measure,
            "form": self.form,
            "weights": self.weights,
            "risk": self.risk,
            "chance": self.limits.chance,
            "raw": self.limits.raw,
        }

    def nearest(self, epsilon: float) -> float:
        """Return the epsilon of the line that is nearest to this one."""
        return float(self.epsilon[int(np.argmin(np.abs(np.log(self.epsilon / epsilon))))])

    def at(self, epsilon: float) -> float:
        """Return the risk at the nearest epsilon of the line."""
        return float(self.risk[int(np.searchsorted(self.epsilon, self.nearest(epsilon)))])


@dataclass(frozen=True, eq=False, repr=False)
class RiskCurve(Result):
    """The answer of `curve`: lines along epsilon. Prints as a short table; `plot` draws it."""

    wording = "curve"
    picture = "draw_curve"

    table: FrequencyTable
    lines: tuple[Line, ...]
    people: Mapping[tuple[Mechanism, str], tuple[float, People]]
    """People exposed, for each setting and attribute, at the epsilon of its lines that is nearest to 1."""
    figures: tuple[FigureLines, ...] = ()
    """Caused, certainty and ceiling, where they were asked for: one entry for each setting and attribute."""
    settings: tuple[Mechanism, ...] = ()
    """The mechanisms and deltas, at any epsilon."""
    attacker: Attacker = field(default_factory=Attacker)
    points: Floats | None = None
    """The epsilons that were asked for."""
    named: bool = False
    """Whether measures or figures were asked for by name: then they are printed and drawn, else what attacks reveal."""

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
        mechanisms = [setting.with_epsilon(float(epsilon)) for epsilon in covered(setting, epsilons)]
        return find_setting_figures(self.table.attribute(sensitive), self.attacker, mechanisms)

    @property
    def leading(self) -> list[Line]:
        """The preferred line of each setting and attribute: local, tight, by records if there is one."""
        measures: list[str] = [*MEASURES]
        forms: list[str] = [*FORMS]
        groups: dict[tuple[Mechanism, str], list[Line]] = {}
        for line in self.lines:
            groups.setdefault((line.setting, line.sensitive), []).append(line)
        return [
            min(
                lines,
                key=lambda line: (measures.index(line.measure), -forms.index(line.form), line.weights == "uniform"),
            )
            for lines in groups.values()
        ]

    @property
    def words(self) -> str:
        """What the picture shows, in words: one paragraph for each setting and attribute."""
        return str(find_words(self.wording).words(self))

    def _figure_rows(self) -> list[dict[str, Any]]:
        return [row for lines in self.figures for place in range(len(lines.epsilon)) for row in lines.rows(place)]

    def _numbers(self) -> pd.DataFrame:
        """Return one row a risk: mechanism, epsilon, delta, and what was measured."""
        import pandas as pd

        parts = [pd.DataFrame(line.columns) for line in self.lines]
        parts += [pd.DataFrame(self._figure_rows())] if self.figures else []
        return pd.concat(parts, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cellrisk curve --json`` prints."""
        risks = []
        for line in self.lines:
            fixed = {key: value for key, value in line.columns.items() if key not in ("epsilon", "risk")}
            points = zip(line.epsilon.tolist(), line.risk.tolist(), strict=True)
            risks += [{**fixed, "epsilon": epsilon, "risk": risk} for epsilon, risk in points]
        decision = [lines.entry(place) for lines in self.figures for place in range(len(lines.epsilon))]
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "risks": [*risks, *self._figure_rows()],
            **({"decision": decision} if decision else {}),
            "people": [
                {
                    "mechanism": setting.name,
                    "delta": setting.delta,
                    "sensitive": name,
                    "epsilon": epsilon,
                    **vars(people),
                }
                for (setting, name), (epsilon, people) in self.people.items()
            ],
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
        The curve has the latter in ``figures``, and draws and tells them first.
    forms, weights, priors, attack
        As in `assess`.
    neighbours, threshold
        Those of a mechanism that is named.
    certainty, belief
        How sure the informed attacker must be, one number or several, and the attacker's prior.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> line = curve(table, epsilon=[0.01, 1.0], measures="local", forms="tight", weights="records").lines[0]
    >>> [round(float(risk), 6) for risk in line.risk], round(line.limits.chance, 6), round(line.limits.raw, 6)
    ([0.105267, 0.034771], 0.25, 0.034395)
    >>> (found,) = curve(table, epsilon=[0.01, 1.0], measures=["caused", "ceiling"]).figures
    >>> found.caused.people.round(4).tolist(), found.ceiling.even_two.round(4).tolist()
    ([0.6533, 0.0006], [0.5025, 0.7311])
    """
    require_table(table, single="figures of attacks")
    require_kind("priors", priors, Priors)
    asked, figures = _choose_lines(attack, measures, forms, weights)
    attacker = Attacker.of(certainty, belief)
    given = read_epsilons(epsilon)
    settings = read_settings(mechanism, delta, neighbours, threshold, table)
    within = {setting: covered(setting, given) for setting in settings}
    points = len(table.sensitive) * sum(len(each) for each in within.values())
    _refuse_too_many(points, asked, figures, attacker)
    report = StepCounter(progress, points * (len(asked.measures) + len(figures)))
    lines: list[Line] = []
    people = {}
    fitted = {each.name: priors.fit(each, asked.measures) for each in table.attributes}
    for setting in settings:
        epsilons = within[setting]
        channel = setting.channel_at(epsilons)
        for name in table.sensitive:
            profiles = table.profiles(name)
            for measure in asked.make(fitted[name].measure):
                limits = find_limits(profiles, measure, asked.forms, setting)
                parts = []
                for start in range(0, len(channel), SETTINGS_AT_ONCE):
                    parts.append(measure.average(profiles, channel[start : start + SETTINGS_AT_ONCE], asked.forms))
                    report.add(min(SETTINGS_AT_ONCE, len(channel) - start))
                for form, weight in product(asked.forms, (None,) if measure.one_number else asked.weights):
                    key = form, weight or "uniform"
                    risk = np.concatenate([part[key] for part in parts])
                    lines.append(Line(setting, name, attack, measure.name, form, weight, epsilons, risk, limits[key]))
            if asked.measures:
                usual = lines[-1].nearest(1.0)
                people[setting, name] = usual, count_people(profiles, setting.with_epsilon(usual).channel, attack)
    traced = tuple(
        find_figure_lines(attribute, setting, within[setting], figures, attack, attacker, report)
        for setting in (settings if figures else ())
        for attribute in table.attributes
    )
    points_given = None if epsilon is None else read_epsilons(epsilon)
    return RiskCurve(table, tuple(lines), people, traced, tuple(settings), attacker, points_given, measures is not None)


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


def _refuse_too_many(points: int, asked: AskedRisks, figures: Sequence[str], attacker: Attacker) -> None:
    """Refuse more numbers than memory would hold, before any is computed."""
    numbers = points * len(asked.measures) * len(asked.forms) * len(asked.weights)
    numbers += points * (len(figures) + ("certainty" in figures) * (len(attacker.certainties) - 1))
    if numbers > MOST_NUMBERS:
        raise InvalidInput(
            "the curve would have too many numbers",
            got=f"{numbers:,} for all epsilons, mechanisms and measures together",
            allowed=f"up to {MOST_NUMBERS:,}",
            fix="ask for fewer epsilons or fewer measures",
        )
