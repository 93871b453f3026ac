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
from scipy import special
from scipy.optimize import minimize_scalar

from cellrisk.counts.joint import JointCells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.repeat.together.sets import SetTable
from cellrisk.repeat.together.simulator import Simulator
from cellrisk.risk.certainty import NegativeBinomial
from cellrisk.risk.certainty.beliefs import fit_negative_binomial
from cellrisk.risk.certainty.channel import Channel, expected_counts
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.checks import require_within

FARTHEST = 1 << 16
"""Noise that reaches farther has all but drowned the counts."""
MOST_DRAWS, SHARE = 200, 0.1
"""Releases at most, and how many of those that the simulator could read for the linkage attacks."""
FITTED = 20
"""Releases that a tempering is fitted to."""
FIT = "fit"
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
        """How often an inferred value is right; None if none is inferred."""
        return self.right / self.named if self.named > 0 else None

    @property
    def how(self) -> str:
        return f"simulated, +- {self.error:.2g}"

    def to_dict(self) -> dict[str, Any]:
        figures = {name: value for name, value in vars(self).items() if name != "error"}
        return {**figures, "precision": self.precision, "standard_error": self.error}


def read_tempering(given: float | str | None) -> tuple[float | str, ...]:
    """The temperings that are asked for; by default 1 and the fitted one."""
    if given is None:
        return 1.0, FIT
    if given == FIT:
        return (FIT,)
    if isinstance(given, str):
        raise InvalidInput("unknown tempering", got=repr(given[:40]), allowed="a number above 0 and up to 1, or fit")
    require_within("the tempering", given, above=0, most=1)
    return (float(given),)


def why_not(joint: JointCells, asked: Sequence[SetTable]) -> str | None:
    """Why this attacker is not computed; None if they can be."""
    for inner, outer in permutations(range(len(asked)), 2):
        if set(joint.tables[inner].columns) < set(joint.tables[outer].columns):
            return (
                f"the columns of {asked[inner].title} are among those of {asked[outer].title}, so their cells are "
                "never independent"
            )
    if any(Channel(table.mechanism.noise, table.mechanism.threshold).reach > FARTHEST for table in asked):
        return "the noise of a table has all but drowned its counts"
    return None


def find_certain(
    joint: JointCells,
    asked: Sequence[SetTable],
    certainties: Sequence[float],
    temperings: Sequence[float | str],
    seed: int,
    priors: Sequence[NegativeBinomial] | None = None,
) -> tuple[Certain, ...]:
    """How many people's value does the attacker infer with at least each certainty, and how many correctly?"""
    attacker = InformedAttacker.of(joint, asked, priors)
    simulator = Simulator.of(joint, [table.mechanism for table in asked])
    draws = simulator.count_draws(MOST_DRAWS, SHARE)
    if FIT in temperings:
        views = [attacker.read(released, seed) for released in simulator.draw(FITTED, seed + 1)]
        fitted = attacker.fit(views)
    asked_for = [(fitted if given == FIT else float(given), given == FIT) for given in temperings]
    numbers = []
    for batch, released in enumerate(simulator.draw(draws, seed)):
        view = attacker.read(released, batch)
        numbers.append([view.count(certainties, tempering) for tempering, _ in asked_for])
    counted = np.concatenate(numbers, axis=-1)  # temperings, certainties, right and named, releases
    return tuple(
        Certain(
            certainty,
            tempering,
            is_fitted,
            float(counted[place, row, 0].mean()),
            float(counted[place, row, 1].mean()),
            max(float(counted[place, row, 0].std(ddof=1)), 0.5) / math.sqrt(draws),
        )
        for place, (tempering, is_fitted) in enumerate(asked_for)
        for row, certainty in enumerate(certainties)
    )


@dataclass(frozen=True, eq=False)
class InformedAttacker:
    """What the attacker expects behind each value that each table may release."""

    joint: JointCells
    log_shares: Floats
    """ln pi."""
    values: Sequence[Sequence[Integers]]
    """Of each table and label, the values that may be released, ascending."""
    log_expected: Sequence[Sequence[Floats]]
    """ln w of each of them."""

    @staticmethod
    def of(joint: JointCells, asked: Sequence[SetTable], priors: Sequence[NegativeBinomial] | None) -> InformedAttacker:
        values, logs = [], []
        for number, (given, table) in enumerate(zip(asked, joint.tables, strict=True)):
            counts = table.counts.astype(np.int64)
            levels = LevelCounts.from_cells(counts, joint.levels)
            prior = fit_negative_binomial(levels, table.n_cells) if priors is None else priors[number]
            channel = Channel(given.mechanism.noise, given.mechanism.threshold)
            values.append([channel.values(column) for column in counts.T])
            expected = [
                expected_counts(law, channel, shown) for law, shown in zip(prior.by_label, values[-1], strict=True)
            ]
            logs.append([np.log(np.maximum(each, 1e-300)) for each in expected])
        shares = np.bincount(joint.level, joint.count, minlength=joint.n_levels)
        return InformedAttacker(joint, np.log(np.maximum(shares / shares.sum(), 1e-300)), values, logs)

    def read(self, released: Sequence[Floats], seed: int) -> Read:
        """What the tables together show of everybody, or of people who are drawn at random if they are very many."""
        joint, people = self.joint, self.joint.count.astype(np.float64)
        rows: Any = slice(None)
        if len(people) > MOST_ROWS:
            generator = np.random.default_rng([seed, MOST_ROWS])
            rows = generator.choice(len(people), MOST_ROWS, p=people / people.sum())
            people = np.full(MOST_ROWS, people.sum() / MOST_ROWS)
        total: Any = 0.0
        for counts, cell, values, logs in zip(released, joint.cell, self.values, self.log_expected, strict=True):
            shown = np.rint(counts)
            found = np.empty_like(shown)
            for label, (known, expected) in enumerate(zip(values, logs, strict=True)):
                place = np.searchsorted(known, shown[:, label])
                found[:, label] = expected.take(place, mode="clip")
            found -= special.logsumexp(found, axis=1, keepdims=True)
            own = found.take(cell[rows], axis=2, mode="clip")
            total = total + np.where(cell[rows] < 0, 0.0, own)
        inside = (joint.cell[:, rows] >= 0).sum(axis=0)
        return Read(total, inside, joint.level[rows].astype(np.intp), people, self.log_shares)

    def fit(self, views: Sequence[Read]) -> float:
        """The tempering with the least log loss on the true labels."""

        def loss(tempering: float) -> float:
            return sum(view.loss(tempering) for view in views)

        found = minimize_scalar(loss, bounds=(0.01, 1.0), method="bounded", options={"xatol": 1e-3})
        return round(float(found.x), 3)


@dataclass(frozen=True, eq=False)
class Read:
    """What the tables of some releases together show of people."""

    log_shares: Floats
    """(releases, labels, rows): ln s_tk, added up over the tables."""
    inside: Integers
    """(rows,): in how many tables the people are."""
    level: Integers
    people: Floats
    log_prior: Floats

    def posterior(self, tempering: float) -> Floats:
        """(releases, labels, rows): ln P(k)."""
        logs = tempering * self.log_shares + np.multiply.outer(self.log_prior, 1.0 - self.inside * tempering)
        return np.asarray(logs - special.logsumexp(logs, axis=1, keepdims=True))

    def loss(self, tempering: float) -> float:
        own = self.posterior(tempering)[:, self.level, np.arange(len(self.level))]
        return -float(np.sum(own @ self.people))

    def count(self, certainties: Sequence[float], tempering: float) -> Floats:
        """(certainties, 2, releases): people inferred correctly, and at all."""
        posterior = self.posterior(tempering)
        own, most = posterior[:, self.level, np.arange(len(self.level))], posterior.max(axis=1)
        needs = [math.log(certainty - TIE) for certainty in certainties]
        return np.array([[(logs >= need) @ self.people for logs in (own, most)] for need in needs])
