"""Every risk along epsilon that a figure or a statement needs, for each experiment, computed once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.paper.experiments import ADULT, PUBLISHED, Experiment
from cellrisk.risk.attacks import ATTACKS
from cellrisk.risk.curves import Line, curve
from cellrisk.system.arrays import Floats
from cellrisk.system.progress import Progress, share_of
from cellrisk.system.words import MechanismName

WEIGHTINGS = {"uniform": "each cell alike", "records": "by records"}
NOTED = (0.1, 1.0, 10.0, 10.0**1.5)
"""Epsilons that the paper speaks of; they are on every grid."""
PAPER_MECHANISMS: tuple[MechanismName, ...] = ("laplace", "gaussian", "gaussian-pdp")


@dataclass(frozen=True, eq=False)
class Bundle:
    """The lines of one experiment."""

    experiment: Experiment
    lines: tuple[Line, ...]

    def pick(self, **words: Any) -> tuple[Line, ...]:
        """The lines that these words describe: mechanism, delta, attack, measure, form, weights."""
        found = []
        for line in self.lines:
            own = {**vars(line), "mechanism": line.setting.name, "delta": line.setting.delta}
            if all(own[name] == word for name, word in words.items()):
                found.append(line)
        if not found:
            raise InvalidInput("no line was computed for that", got=", ".join(f"{word}" for word in words.values()))
        return tuple(found)

    def one(self, **words: Any) -> Line:
        """The one line; without other words the homogeneity attack, local, as published, under Laplace noise."""
        usual = {"mechanism": "laplace", "attack": "homogeneity", "measure": "local", "form": "published"}
        return self.pick(**{**usual, **words})[0]

    def weighted(self, **words: Any) -> dict[str, Line]:
        """That line with each cell alike, and by records."""
        return {weights: self.one(weights=weights, **words) for weights in WEIGHTINGS}


def make_grid(points: int) -> Floats:
    """Epsilons from 10^-3 to 10^2 in even steps of the exponent, and those that the paper speaks of.

    >>> [float(f"{epsilon:.4g}") for epsilon in make_grid(6)]
    [0.001, 0.01, 0.1, 1.0, 10.0, 31.62, 100.0]
    """
    exponents = np.round(np.linspace(-3.0, 2.0, points), 12)
    noted = np.round(np.log10(np.array(NOTED)), 12)
    return np.asarray(10.0 ** np.unique(np.concatenate([exponents, noted])))


def compute(experiment: Experiment, points: int, progress: Progress | None = None) -> Bundle:
    """All lines of an experiment: the paper's, those beyond it, and for Adult the attackers who guess."""
    questions, epsilons = list(_ask(experiment)), make_grid(points)
    lines: list[Line] = []
    for number, asked in enumerate(questions):
        part = share_of(progress, number / len(questions), (number + 1) / len(questions))
        lines += curve(experiment.table, epsilon=epsilons, progress=part, **asked).lines
    return Bundle(experiment, tuple(lines))


def _ask(experiment: Experiment) -> Iterator[dict[str, Any]]:
    """The arguments of each `curve`."""
    paper = {"mechanism": PAPER_MECHANISMS, "delta": experiment.deltas}
    yield {**paper, "measures": ("local", "expected"), "forms": "published"}
    if (experiment.name, experiment.reading) != (ADULT, PUBLISHED):
        others = ("shrinkage", "marginal", "marginal_shrinkage")
        yield {"mechanism": "laplace", "measures": others, "forms": "published"}
        yield {"mechanism": "laplace", "forms": ("exact", "tight")}
        yield {"mechanism": "geometric", "measures": "local"}
    else:
        yield {"mechanism": "laplace", "measures": "local", "forms": ("exact", "tight")}
    for attack in ATTACKS if experiment.name == ADULT else ():
        if attack != "homogeneity":
            yield {"mechanism": "laplace", "attack": attack}


def largest_gap(one: Line, other: Line) -> float:
    """The largest difference of two lines where both have an epsilon, the second minus the first."""
    shared = np.intersect1d(one.epsilon, other.epsilon)
    gaps = other.risk[np.isin(other.epsilon, shared)] - one.risk[np.isin(one.epsilon, shared)]
    return float(gaps[int(np.argmax(np.abs(gaps)))]) if len(gaps) else math.nan
