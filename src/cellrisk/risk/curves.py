"""`curve`: risk along epsilon, with the two ends that give it its meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.risk.attacks import AskedRisks, choose_risks
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.risk.figure_lines import FIGURES, FigureLines, find_figure_lines
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import MEASURES
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

    def nearest(self, epsilon: float) -> float:
        """The epsilon of the line that is nearest to this one."""
        return float(self.epsilon[int(np.argmin(np.abs(np.log(self.epsilon / epsilon))))])

    def at(self, epsilon: float) -> float:
        """The risk at the nearest epsilon of the line."""
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

    @property
    def leading(self) -> list[Line]:
        """The first of the preferred lines for each setting and attribute: local, tight, by records."""
        order = {"tight": 0, "exact": 1, "published": 2}
        found: dict[tuple[Mechanism, str], Line] = {}
        places = list(MEASURES)
        for line in sorted(
            self.lines, key=lambda line: (places.index(line.measure), order[line.form], line.weights == "uniform")
        ):
            found.setdefault((line.setting, line.sensitive), line)
        return [line for line in self.lines if any(line is each for each in found.values())]

    @property
    def words(self) -> str:
        """What the picture shows, in words: one paragraph for each setting and attribute."""
        return str(find_words(self.wording).words(self))

    def _numbers(self) -> pd.DataFrame:
        """One row a risk: mechanism, epsilon, delta, and what was measured."""
        import pandas as pd

        parts = [pd.DataFrame(_rows(line)) for line in self.lines]
        parts += [pd.DataFrame(list(each.rows())) for each in self.figures]
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk curve --json`` prints."""
        risks = []
        for line in self.lines:
            columns = _rows(line)
            risks += [
                {**{key: value for key, value in columns.items() if not isinstance(value, np.ndarray)}, **point}
                for point in (
                    {"epsilon": float(epsilon), "risk": float(risk)}
                    for epsilon, risk in zip(line.epsilon, line.risk, strict=True)
                )
            ]
        for each in self.figures:
            risks += each.rows()
        decision = {"decision": [entry for each in self.figures for entry in each.entries()]} if self.figures else {}
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "risks": risks,
            **decision,
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


def _rows(line: Line) -> dict[str, Any]:
    return {
        "mechanism": line.setting.name,
        "delta": line.setting.delta,
        "epsilon": line.epsilon,
        "sensitive": line.sensitive,
        "attack": line.attack,
        "measure": line.measure,
        "form": line.form,
        "weights": line.weights,
        "risk": line.risk,
        "chance": line.limits.chance,
        "raw": line.limits.raw,
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
    require_table(table)
    require_kind("priors", priors, Priors)
    asked, figures = _choose_lines(attack, measures, forms, weights)
    attacker = Attacker.of(certainty, belief)
    epsilons = read_epsilons(epsilon)
    settings = read_settings(mechanism, delta, neighbours, threshold, table.n_records)
    within = {setting: covered(setting, epsilons) for setting in settings}
    points = len(table.sensitive) * sum(len(each) for each in within.values())
    _refuse_too_many(points, asked, figures, attacker)
    report = StepCounter(progress, points * (len(asked.measures) + len(figures)))
    lines: list[Line] = []
    for name in table.sensitive:
        profiles = table.profiles(name)
        fitted = priors.fit(table.attribute(name), asked.measures)
        for measure in asked.make(fitted.measure):
            for setting in settings:
                limits = find_limits(profiles, measure, asked.forms, setting)
                channel = setting.channel_at(within[setting])
                parts = []
                for start in range(0, len(channel), SETTINGS_AT_ONCE):
                    few = channel[start : start + SETTINGS_AT_ONCE]
                    parts.append(measure.average(profiles, few, asked.forms))
                    report.add(len(few))
                for form in asked.forms:
                    for weight in (None,) if measure.one_number else asked.weights:
                        key = form, weight or "uniform"
                        risk = np.concatenate([part[key] for part in parts])
                        lines.append(
                            Line(setting, name, attack, measure.name, form, weight, within[setting], risk, limits[key])
                        )
    lines.sort(key=lambda line: settings.index(line.setting))
    people = {}
    for setting, name in dict.fromkeys((line.setting, line.sensitive) for line in lines):
        usual = next(line for line in lines if line.setting == setting).nearest(1.0)
        people[setting, name] = usual, count_people(table.profiles(name), setting.with_epsilon(usual).channel, attack)
    found = tuple(
        find_figure_lines(table.attribute(name), setting, within[setting], figures, attack, attacker, report)
        for setting in (settings if figures else ())
        for name in table.sensitive
    )
    return RiskCurve(table, tuple(lines), people, found)


def _choose_lines(
    attack: str, measures: str | Sequence[str] | None, forms: Any, weights: Any
) -> tuple[AskedRisks, tuple[str, ...]]:
    """The paper's measures and the figures to decide by that were asked for."""
    words = () if measures is None else choose_words("measure", measures, (*MEASURES, *FIGURES))
    figures = tuple(word for word in words if word in FIGURES)
    rest = tuple(word for word in words if word not in FIGURES)
    if rest or not figures:
        return choose_risks(attack, rest or None, forms, weights), figures
    asked = choose_risks(attack, None, forms, weights)
    for what, given, chosen, only in (
        ("form", forms, asked.forms, "tight"),
        ("weighting", weights, asked.weights, "records"),
    ):
        if given is not None and only not in chosen:
            raise InvalidInput(f"{' and '.join(figures)} have one {what}", got=", ".join(chosen), allowed=only)
    return AskedRisks(attack, (), asked.forms, asked.weights), figures


def _refuse_too_many(points: int, asked: AskedRisks, figures: Sequence[str], attacker: Attacker) -> None:
    """Refuses more numbers than memory would hold, before any is computed."""
    of_measures = len(asked.measures) * len(asked.forms) * len(asked.weights)
    of_figures = len(figures) + (len(attacker.certainties) - 1 if "certainty" in figures else 0)
    numbers = points * (of_measures + of_figures)
    if numbers > MOST_NUMBERS:
        raise InvalidInput(
            "the curve would have too many numbers",
            got=f"{numbers:,} for all epsilons, mechanisms and measures together",
            allowed=f"up to {MOST_NUMBERS:,}",
            fix="ask for fewer epsilons or fewer measures",
        )
