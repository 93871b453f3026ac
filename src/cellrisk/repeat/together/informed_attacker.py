"""The informed attacker on several tables: applies Bayes' rule to what all of them show; simulated.

In each table the attacker's prior is that counts are negative binomial. From the value v that is released for label k
they expect w_k(v) people, so label k has the share s_k = w_k / sum_j w_j in the person's cell. The tables are combined:

    P(k) ~ pi_k prod_t (s_tk / pi_k)^lambda,

pi being the shares of the labels among all people. The tempering lambda = 1 takes the tables for independent given the
person's label. Tables of the same people show less than that, and the attacker is overconfident. A lambda that is
fitted to the true labels is that of an attacker who is helped. The figures are those of the true tables, given lambda.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.repeat.together.linkage_attacks import Simulator
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.certainty.count_priors import fit_negative_binomial
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.system.arrays import Floats, Integers

FARTHEST = 1 << 16
"""Noise that reaches farther has all but drowned the counts."""
MOST_DRAWS, SHARE = 200, 0.1
"""Releases at most, and how many of those that the simulator could read for the linkage attacks."""
FITTED = 20
"""Releases that a tempering is fitted to."""
TIE = 1e-12
MOST_ROWS = 200_000
"""Rows of people that are read in each release; of more, so many are drawn for each."""


@dataclass(frozen=True)
class Certain:
    """The people whose value is inferred with at least a given certainty, on average over releases of all tables."""

    certainty: float
    tempering: float
    fitted: bool
    """Whether the tempering was fitted to the true labels: a helped attacker."""
    right: float
    named: float
    error: float
    """The standard error of ``right``."""

    @property
    def precision(self) -> float | None:
        """Return how often an inferred value is right; None if none is inferred."""
        return self.right / self.named if self.named > 0 else None

    @property
    def how(self) -> str:
        return f"simulated, +- {self.error:.2g}"

    def to_dict(self) -> dict[str, Any]:
        figures = {name: value for name, value in vars(self).items() if name != "error"}
        return {**figures, "precision": self.precision, "standard_error": self.error}


def why_not(joint: JointCells, asked: Sequence[SetTable]) -> str | None:
    """Return why this attacker is not computed; None if they can be."""
    for inner, outer in permutations(range(len(asked)), 2):
        if set(joint.tables[inner].columns) < set(joint.tables[outer].columns):
            return (
                f"the columns of {asked[inner].title} are among those of {asked[outer].title}, so their groups are "
                "never independent"
            )
    if any(table.mechanism.channel.radius > FARTHEST for table in asked):
        return "the noise of a table has all but drowned its counts"
    return None


def find_certain(
    joint: JointCells,
    asked: Sequence[SetTable],
    certainties: Sequence[float],
    seed: int,
) -> tuple[Certain, ...]:
    """Return how many people's value the attacker infers with at least each certainty, and how many correctly: with the
    tempering 1, and with a fitted one."""
    expected = []  # of each table and label, the values that may be released, ascending, and ln w of each of them
    for given, table in zip(asked, joint.tables, strict=True):
        counts, channel = table.counts.astype(np.int64), given.mechanism.channel
        fit = fit_negative_binomial(LevelCounts.from_cells(counts, joint.levels), table.n_cells)
        values = [channel.support(column) for column in counts.T]
        means = [posterior_means(law, channel, shown) for law, shown in zip(fit.by_category, values, strict=True)]
        expected.append([(shown, np.log(np.maximum(w, 1e-300))) for shown, w in zip(values, means, strict=True)])
    simulator = Simulator(joint, [table.mechanism for table in asked])
    draws = simulator.count_draws(MOST_DRAWS, SHARE)
    weights = 1.0, _fit([_read(joint, expected, drawn, seed) for drawn in simulator.draw(FITTED, seed + 1)])
    numbers = []
    for batch, released in enumerate(simulator.draw(draws, seed)):
        view = _read(joint, expected, released, batch)
        numbers.append([view.count(certainties, weight) for weight in weights])
    right, named = np.moveaxis(np.concatenate(numbers, axis=-1), 2, 0)  # each (temperings, certainties, releases)
    return tuple(
        Certain(
            certainty,
            weight,
            place == 1,
            float(right[place, row].mean()),
            float(named[place, row].mean()),
            max(float(right[place, row].std(ddof=1)), 0.5) / math.sqrt(draws),
        )
        for place, weight in enumerate(weights)
        for row, certainty in enumerate(certainties)
    )


def _read(
    joint: JointCells, expected: Sequence[Sequence[tuple[Integers, Floats]]], released: Sequence[Floats], seed: int
) -> View:
    """Return what the tables together show of everybody, or of people who are drawn at random if they are very many."""
    people: Floats = joint.count.astype(np.float64)
    shares = np.bincount(joint.level, people, minlength=joint.n_levels) / people.sum()
    log_prior = np.log(np.maximum(shares, 1e-300))[:, None]
    rows: Any = slice(None)
    if len(people) > MOST_ROWS:
        generator = np.random.default_rng([seed, MOST_ROWS])
        rows = generator.choice(len(people), MOST_ROWS, p=people / people.sum())
        people = np.full(MOST_ROWS, people.sum() / MOST_ROWS)
    gain: Any = 0.0
    for counts, cell, labels in zip(released, joint.cell[:, rows], expected, strict=True):
        shown = np.rint(counts)
        for label, (values, logs) in enumerate(labels):
            shown[:, label] = logs.take(np.searchsorted(values, shown[:, label]), mode="clip")
        gain = gain + np.where(cell < 0, 0.0, (_normalise(shown) - log_prior).take(cell, axis=2, mode="clip"))
    return View(gain, log_prior, joint.level[rows].astype(np.intp), people)


def _normalise(logs: Floats) -> Floats:
    """Logarithms of numbers that add up to 1 over the labels, from (releases, labels, any)."""
    logs = logs - logs.max(axis=1, keepdims=True)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class View:
    """What the tables of some releases together show of people."""

    gain: Floats
    """(releases, labels, rows): the sum of ln(s_tk / pi_k) over the tables that the people are in."""
    log_prior: Floats
    """(labels, 1): ln pi."""
    level: Integers
    people: Floats

    def posterior(self, tempering: float) -> Floats:
        """(releases, labels, rows): ln P(k)."""
        return _normalise(self.log_prior + tempering * self.gain)

    def own(self, values: Floats) -> Floats:
        return np.asarray(values[:, self.level, np.arange(len(self.level))])

    def count(self, certainties: Sequence[float], tempering: float) -> Floats:
        """(certainties, 2, releases): people inferred correctly, and at all."""
        posterior = self.posterior(tempering)
        known = self.own(posterior), posterior.max(axis=1)
        needs = [math.log(certainty - TIE) for certainty in certainties]
        return np.array([[(logs >= need) @ self.people for logs in known] for need in needs])


def _fit(views: Sequence[View]) -> float:
    """The tempering with the least log loss on the true labels, which is convex."""
    from scipy.optimize import minimize_scalar

    def log_loss(tempering: float) -> float:
        return -sum(float(np.sum(view.own(view.posterior(tempering)) @ view.people)) for view in views)

    least = minimize_scalar(log_loss, bounds=(0.01, 1.0), method="bounded")
    return round(float(least.x), 3)
