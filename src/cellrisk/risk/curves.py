"""`curve`: risk along epsilon, with the two ends that give it its meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.risk.attacks import AskedRisks, choose_risks
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief
from cellrisk.risk.figure_lines import FIGURES, FigureLines, find_figure_lines
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import MEASURES
from cellrisk.risk.measures.measure import SETTINGS_AT_ONCE
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.risk.sweep import Limits, covered, find_limits, read_epsilons, read_settings
from cellrisk.system.arrays import Floats
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.results import Result
from cellrisk.system.sketches import STROKES, draw_lines
from cellrisk.system.text import CURATOR_NOTE, aligned, number_of, percent
from cellrisk.system.words import (
    Attack,
    FigureName,
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    Weights,
    choose_words,
)

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.counts.table import FrequencyTable

MOST_ROWS_SHOWN = 11
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

    def __post_init__(self) -> None:
        if self.epsilon.shape != self.risk.shape or not len(self.epsilon):
            raise InvalidInput("a line needs one risk for each epsilon, and one epsilon at least")

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

    @property
    def words(self) -> str:
        """The two ends of the line and its extremes, for a reader who sees no picture."""
        low, high = self.limits.chance, self.limits.raw
        scale = self.setting.limit_noise.scale
        why = (
            "that is chance, what noise alone gives away"
            if math.isinf(scale)
            else f"with delta as it is, the noise grows to a scale of {scale:.3g} and no further"
        )
        start = (
            f"As epsilon falls to 0 the risk tends to {percent(low)}: {why}. "
            f"As epsilon grows it tends to {percent(high)}, the raw table's own risk."
        )
        least, most = int(np.argmin(self.risk)), int(np.argmax(self.risk))
        if percent(self.risk[least]) == percent(self.risk[most]):
            return f"{start} At every epsilon computed it is {percent(self.risk[most])}."
        return (
            f"{start} Of the epsilons computed, {self.epsilon[least]:.3g} has the smallest risk, "
            f"{percent(self.risk[least])}, and {self.epsilon[most]:.3g} the largest, {percent(self.risk[most])}."
        )


@dataclass(frozen=True, eq=False, repr=False)
class RiskCurve(Result):
    """The answer of `curve`: lines along epsilon. Prints as a short table; `plot` draws it."""

    picture = "draw_curve"

    table: FrequencyTable
    lines: tuple[Line, ...]
    people: Mapping[tuple[Mechanism, str], tuple[float, People]]
    """People exposed, for each setting and attribute, at the epsilon of its lines that is nearest to 1."""
    figures: tuple[FigureLines, ...] = ()
    """Caused, certainty and ceiling, where they were asked for: one entry for each setting and attribute."""

    def __post_init__(self) -> None:
        if not (self.lines or self.figures):
            raise InvalidInput("a curve needs one line at least")

    @property
    def headline(self) -> str:
        """The figures to decide by, where asked for, then a sentence a setting and attribute for its leading line."""
        sentences = [each.sentence for each in self.figures]
        for line in self.leading:
            shown = sorted({line.nearest(epsilon) for epsilon in (0.1, 1.0, 10.0)})
            risks = ", ".join(f"{percent(line.at(epsilon))} at epsilon {epsilon:.3g}" for epsilon in shown)
            epsilon, people = self.people[line.setting, line.sensitive]
            sentences.append(
                f"{line.sensitive}, {line.setting.describe()} ({line.name}): {risks}; {line.setting.lower_end} is "
                f"{percent(line.limits.chance)}, the raw table {percent(line.limits.raw)}. At epsilon {epsilon:.3g}, "
                f"{people.describe()} of {number_of(self.table.n_records, 'person')} exposed."
            )
        return "\n".join(sentences)

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
        """What the picture shows, in words: one paragraph a setting and attribute."""
        lines = (f"{line.sensitive}, {line.setting.describe()}: {line.words}" for line in self.leading)
        return "\n".join([*(each.words for each in self.figures), *lines])

    def _numbers(self) -> pd.DataFrame:
        """One row a risk: mechanism, epsilon, delta, and what was measured."""
        import pandas as pd

        parts = [pd.DataFrame(_rows(line)) for line in self.lines]
        parts += [pd.DataFrame(list(each.rows())) for each in self.figures]
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)

    def _sketch(self) -> str:
        lines = self.leading[: len(STROKES)]
        names = [f"{line.sensitive}, {line.setting.describe()} ({line.name})" for line in lines]
        along, risks = [line.epsilon.tolist() for line in lines], [line.risk.tolist() for line in lines]
        return draw_lines(along, risks, names) if lines else ""

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

    def _paragraphs(self) -> list[str]:
        parts = []
        settings = [each.setting for each in self.figures] + [line.setting for line in self.lines]
        for setting in dict.fromkeys(settings):
            figures = [each for each in self.figures if each.setting == setting]
            lines = [line for line in self.lines if line.setting == setting]
            epsilons = figures[0].epsilon if figures else lines[0].epsilon
            step = max(1, (len(epsilons) - 1) // (MOST_ROWS_SHOWN - 1))
            shown = [f"{epsilon:.3g}" for epsilon in epsilons[::step]]
            tables = []
            if figures:
                rows = [[each.sensitive, what, *values[::step]] for each in figures for what, values in each.shown()]
                tables.append(aligned(["", "epsilon:", *shown], rows, left=2))
            if lines:
                rows = [
                    [line.sensitive, line.measure, line.form, line.weights or "-"]
                    + [f"{risk:.4f}" for risk in line.risk[::step]]
                    for line in lines
                ]
                tables.append(aligned(["", "epsilon:", "", "", *shown], rows, left=4))
            parts.append("\n".join([setting.describe(), *tables]))
        believed = dict.fromkeys(each.belief.describe() for each in self.figures if each.belief is not None)
        beliefs = [f"The attacker's belief: {belief}." for belief in believed]
        return [*parts, self.words, *beliefs, CURATOR_NOTE]


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


@takes_priors
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
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
    progress: Progress | None = None,
) -> RiskCurve:
    """How does the risk change with epsilon, and between which two ends?

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
        How sure the attacker of "certainty" must be, one number or several, and what he believes beforehand.
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
