"""Least squares over tables with common margins: what an attacker gains who makes them agree with each other.

Tables of the same people add up to the same margins, so that each tells something of the others' noise. Where every
combination of values is published, the weighted least-squares estimate of a count has a smaller variance, in closed
form, and a record still moves it by exactly 1. Labels stay independent of each other. For Gaussian noise the estimates
are Gaussian, and the rules are exact; other noises have the variance alone. Counts are taken before any is set to 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from cellrisk.counts.joint import JointCells
from cellrisk.noise.distributions import GaussianNoise
from cellrisk.repeat.averaging.mean_noise import MeanNoise
from cellrisk.repeat.together.rules import Figures
from cellrisk.repeat.together.sets import SetTable
from cellrisk.system.arrays import Floats

MOST_TABLES = 3
"""Orthants of so many dimensions are computed exactly."""
MOST_ROWS = 200_000
POINTS, REACH = 96, 9.0
"""Gauss points along one coordinate of three, and where a normal law has less than 1e-18 left."""


@dataclass(frozen=True)
class Refinement:
    """The tables after least squares."""

    shares: tuple[float, ...]
    """What is left of the variance of the noise in each table's counts."""
    rules: Mapping[str, Figures]
    """Elimination and any at the refined variance; empty where they are not computed."""
    why: str | None
    """Why they are not."""

    @property
    def headline(self) -> str:
        left = ", ".join(f"{100 * share:.1f}%" for share in self.shares)
        said = (
            "Least squares over the margins that the tables have in common, if every combination of values is "
            f"published, leaves {left} of the variance of their noise"
        )
        if not self.rules:
            return f"{said}. What that gives away is left out: {self.why}."
        told = " and ".join(
            f"{figures.right:,.0f} people rightly, {figures.caused:,.3g} because of their own record, by {rule}"
            for rule, figures in self.rules.items()
        )
        return f"{said}; the attacker then names {told} (exact, of counts that are not set to 0)."

    def to_dict(self) -> dict[str, Any]:
        rules = [{"rule": rule, **vars(figures)} for rule, figures in self.rules.items()]
        return {"variance_left": list(self.shares), "rules": rules, "why": self.why, "sentence": self.headline}


def refine(columns: Sequence[frozenset[int]], levels: Mapping[int, int], variances: Sequence[float]) -> Floats:
    """(tables, tables): the covariances of the least-squares estimates of one person's cells, on a product domain.

    With Q_t the columns of table t, v_t its variance and L_a the levels of column a, M_S = sum over tables that have
    all of S of (1/v_t) prod_{a not in Q_t} L_a, and cov(Q, Q') = sum over S in I = Q and Q' of
    prod_{a in S} (1 - 1/L_a) prod_{a in I - S} 1/L_a prod_{a in neither} L_a / M_S.

    >>> parent, child = frozenset({0}), frozenset({0, 1})
    >>> refine([parent, child], {0: 5, 1: 3}, [1.0, 1.0]).round(6).tolist()  # 1/(1/v_p + 1/(C v_c))
    [[0.75, 0.25], [0.25, 0.75]]
    """
    every = frozenset().union(*columns)
    found = np.zeros((len(columns), len(columns)))
    for one, mine in enumerate(columns):
        for other, theirs in enumerate(columns):
            common = mine & theirs
            outside = math.prod(levels[each] for each in every - mine - theirs)
            for some in _subsets(common):
                precision = sum(
                    math.prod(levels[each] for each in every - own) / variance
                    for own, variance in zip(columns, variances, strict=True)
                    if some <= own
                )
                weight = math.prod(1.0 - 1.0 / levels[each] for each in some)
                weight *= math.prod(1.0 / levels[each] for each in common - some)
                found[one, other] += weight * outside / precision
    return found


def _subsets(columns: frozenset[int]) -> list[frozenset[int]]:
    return [frozenset(some) for size in range(len(columns) + 1) for some in combinations(sorted(columns), size)]


def find_refinement(joint: JointCells, asked: Sequence[SetTable]) -> Refinement | None:
    """What least squares leaves of the noise, and what the rules then give away; None where no margin is in common, or
    where the tables are not all of the same people."""
    if len(asked) < 2 or any(table.part for table in asked) or (joint.cell < 0).any():
        return None
    columns = [frozenset(table.columns) for table in joint.tables]
    if not any(one & other for one, other in combinations(columns, 2)):
        return None
    levels = {place: _count_levels(joint, place) for own in columns for place in own}
    variances = [MeanNoise.of(table.mechanism.noise, 1).deviation ** 2 for table in asked]
    covariance = refine(columns, levels, variances)
    shares = tuple(float(covariance[place, place]) / variance for place, variance in enumerate(variances))
    why = _why_not(joint, asked)
    rules = {} if why else assess_refined(joint, covariance, [table.mechanism.threshold for table in asked])
    return Refinement(shares, rules, why)


def _count_levels(joint: JointCells, column: int) -> int:
    """The values that a column takes in the tables, a missing one included where it occurs."""
    for table in joint.tables:
        if column in table.columns:
            return len(np.unique(table.codes[:, table.columns.index(column)]))
    return joint.widths[column]


def _why_not(joint: JointCells, asked: Sequence[SetTable]) -> str | None:
    if not all(isinstance(table.mechanism.noise, GaussianNoise) for table in asked):
        return "the estimates have a law that can be computed for Gaussian noise alone"
    if len(asked) > MOST_TABLES:
        return f"it is computed for up to {MOST_TABLES} tables"
    if len(joint.count) > MOST_ROWS:
        return f"it is computed for up to {MOST_ROWS:,} combinations of values"
    return None


def assess_refined(joint: JointCells, covariance: Floats, thresholds: Sequence[float]) -> dict[str, Figures]:
    """Elimination and any where the estimates of each label are Gaussian with these covariances: orthants."""
    tables = range(len(joint.tables))
    labels = joint.n_levels
    counts = [table.counts[own].astype(np.int64) for table, own in zip(joint.tables, joint.cell, strict=True)]
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)

    def chance(some: tuple[int, ...], label: int, *, vanish: bool = False, less: int = 0) -> Floats:
        """How likely one label survives, or vanishes, in all of some tables, for each row of people."""
        values = np.stack([counts[table][:, label] - less for table in some])
        distinct, place = np.unique(values, axis=1, return_inverse=True)
        bounds = np.stack(
            [(thresholds[table] - row) / deviation[table] for table, row in zip(some, distinct, strict=True)]
        )
        inner = correlation[np.ix_(some, some)]
        return orthant(-bounds if vanish else bounds, inner)[place.ravel()]

    every = tuple(tables)
    people, level = joint.count.astype(np.float64), joint.level
    stays = [chance(every, label) for label in range(labels)]
    found = {"elimination": _eliminate(joint, stays, [chance(every, label, less=1) for label in range(labels)])}
    right, named, without = np.zeros(len(people)), np.zeros(len(people)), np.zeros(len(people))
    for size in range(1, len(every) + 1):
        for some in combinations(tables, size):
            sign = (-1.0) ** (size - 1)
            gone = [chance(some, label, vanish=True) for label in range(labels)]
            for label in range(labels):
                others = np.ones(len(people))
                for other in range(labels):
                    if other != label:
                        others = others * gone[other]
                shown = sign * chance(some, label) * others
                own = level == label
                named += shown
                right += np.where(own, shown, 0.0)
                without += np.where(own, sign * chance(some, label, less=1) * others, 0.0)
    found["any"] = Figures(
        float(np.sum(people * right)),
        float(np.sum(people * named)),
        max(float(np.sum(people * (right - without))), 0.0),
    )
    return found


def _eliminate(joint: JointCells, stays: list[Floats], less: list[Floats]) -> Figures:
    people, level = joint.count.astype(np.float64), joint.level
    right = named = caused = 0.0
    for label, own in enumerate(stays):
        others = np.ones(len(people))
        for other, each in enumerate(stays):
            if other != label:
                others = others * (1.0 - each)
        mine = np.where(level == label, people, 0.0)
        right += float(np.sum(mine * own * others))
        named += float(np.sum(people * own * others))
        caused += float(np.sum(mine * (own - less[label]) * others))
    return Figures(right, named, max(caused, 0.0))


def orthant(bounds: Floats, correlation: Floats) -> Floats:
    """P(every coordinate of a standard normal vector is above its bound): (points,), for bounds (coordinates, points).

    One coordinate by its distribution function, two by Owen's T, three by the integral over the first of the other two.

    >>> half = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]])
    >>> orthant(np.zeros((3, 1)) + 1e-12, half).round(6).tolist()  # 1/8 + 3 arcsin(1/2)/(4 pi)
    [0.25]
    """
    if len(bounds) == 1:
        return np.asarray(special.ndtr(-bounds[0]))
    if len(bounds) == 2:
        return _two(-bounds[0], -bounds[1], float(correlation[0, 1]))
    first, second = float(correlation[0, 1]), float(correlation[0, 2])
    left, right = math.sqrt(1.0 - first**2), math.sqrt(1.0 - second**2)
    inner = (float(correlation[1, 2]) - first * second) / (left * right)
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    low = np.clip(bounds[0], -REACH, REACH)
    half = 0.5 * (REACH - low)
    total = np.zeros(bounds.shape[1])
    for point, weight in zip(points, weights, strict=True):
        x = low + half * (1.0 + point)
        both = _two((first * x - bounds[1]) / left, (second * x - bounds[2]) / right, inner)
        total += weight * np.exp(-0.5 * x * x) * both
    return np.asarray(total * half / math.sqrt(2.0 * math.pi))


def _two(h: Floats, k: Floats, correlation: float) -> Floats:
    """P(X <= h, Y <= k) of two standard normal numbers, by Owen's T (Owen 1956)."""
    h, k = (np.where(np.abs(each) < 1e-300, 1e-300, each) for each in (h, k))
    width = math.sqrt(1.0 - correlation**2)
    with np.errstate(over="ignore"):
        first = special.owens_t(h, (k / h - correlation) / width)
        second = special.owens_t(k, (h / k - correlation) / width)
    apart = np.where((h > 0) == (k > 0), 0.0, 0.5)
    found = 0.5 * (special.ndtr(h) + special.ndtr(k)) - first - second - apart
    return np.asarray(np.clip(found, 0.0, 1.0))
