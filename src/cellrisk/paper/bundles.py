"""Every risk along epsilon that a figure or a statement needs, for each experiment, computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    tasks = _tasks(experiment)
    lines: list[Line] = []
    for number, task in enumerate(tasks):
        lines += task(make_grid(points), share_of(progress, number / len(tasks), (number + 1) / len(tasks)))
    return Bundle(experiment, tuple(lines))


Task = Callable[[Floats, Progress | None], Sequence[Line]]


def _tasks(experiment: Experiment) -> list[Task]:
    tasks = [_asker(experiment, PAPER_MECHANISMS, experiment.deltas, measures=("local", "expected"), forms="published")]
    if (experiment.name, experiment.reading) != (ADULT, PUBLISHED):
        others = ("shrinkage", "marginal", "marginal_shrinkage")
        tasks.append(_asker(experiment, "laplace", None, measures=others, forms="published"))
        tasks.append(_asker(experiment, "laplace", None, forms=("exact", "tight")))
        tasks.append(_asker(experiment, "geometric", None, measures="local"))
    else:
        tasks.append(_asker(experiment, "laplace", None, measures="local", forms=("exact", "tight")))
    if experiment.name == ADULT:
        tasks += [_asker(experiment, "laplace", None, attack=attack) for attack in ATTACKS if attack != "homogeneity"]
    return tasks


def _asker(
    experiment: Experiment, mechanism: MechanismName | Sequence[MechanismName], deltas: Any, **asked: Any
) -> Task:
    def ask(epsilons: Floats, progress: Progress | None) -> Sequence[Line]:
        return curve(experiment.table, mechanism, epsilon=epsilons, delta=deltas, progress=progress, **asked).lines

    return ask


def largest_gap(one: Line, other: Line) -> float:
    """The largest difference of two lines where both have an epsilon, the second minus the first."""
    shared = np.intersect1d(one.epsilon, other.epsilon)
    gaps = other.risk[np.isin(other.epsilon, shared)] - one.risk[np.isin(one.epsilon, shared)]
    return float(gaps[int(np.argmax(np.abs(gaps)))]) if len(gaps) else math.nan
