"""Least squares over tables with common margins: what an attacker gains who makes the tables agree with each other.

Tables of the same people add up to the same margins, so each reduces the noise of the others. The weighted
least-squares estimates of the counts have a smaller variance, in closed form, and a record still moves each of its
counts by exactly 1. What the attacks then reveal is simulated, with its standard error: the same releases without
least squares have known means, so only what least squares changes adds to the error (a control variate).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells
from cellrisk.repeat.together.linkage_attacks import RULES, Figures, Simulator, control
from cellrisk.repeat.together.sets import SetTable
from cellrisk.system.arrays import Floats
from cellrisk.system.results import find_words

MOST_ROWS, MOST_COUNTS = 200_000, 1_000_000
MOST_DRAWS, SHARE = 100, 0.1
"""Releases at most, and how many of those that the simulator could read without least squares."""
LEAST_VARIANCE = 1e-30
"""Noise that changes no count has a variance of 0, by which nothing can be divided."""
TIE = 1e-9
"""Estimates from whole numbers can meet the threshold exactly: such a count is shown."""


@dataclass(frozen=True)
class Refined:
    """What one attack reveals after least squares, in people, beside the same without; simulated."""

    what: str
    right: float
    caused: float
    plain: Figures
    """The same attack on the tables as they are published."""
    error: float
    """The standard error of ``right``."""
    caused_error: float

    @property
    def how(self) -> str:
        return f"simulated, +- {self.error:.2g} and {self.caused_error:.2g}"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "plain": vars(self.plain), "how": self.how, "simulated": True}


@dataclass(frozen=True)
class Refinement:
    """The tables after least squares, if every combination of values is published."""

    shares: tuple[float, ...]
    """The share of the variance of the noise that is left in each table's counts, on average over its people. Exact."""
    rows: tuple[Refined, ...]
    """What each attack then reveals; empty if that is not computed."""
    why: str | None = None
    """Why what each attack reveals is not computed."""

    @property
    def headline(self) -> str:
        return str(find_words("together").refinement_headline(self))

    def to_dict(self) -> dict[str, Any]:
        return {
            "variance_left": list(self.shares),
            "rows": [row.to_dict() for row in self.rows],
            "why": self.why,
            "sentence": self.headline,
        }


@dataclass(frozen=True, eq=False)
class ProductFit:
    """Every combination of values is published.

    The counts of a table are a sum of components, one for each set S of its columns: means over the other columns, less
    those over any column of S. Least squares takes each component from all tables that have it, weighted by 1/v_t:
    x_S = sum_t y_tS / v_t divided by M_S = sum_t (1/v_t) prod_{a not in Q_t} L_a.
    """

    columns: Sequence[frozenset[int]]
    """Those of each table."""
    levels: Mapping[int, int]
    variances: tuple[float, ...]

    @cached_property
    def axes(self) -> tuple[int, ...]:
        return tuple(sorted(self.levels))

    def shape(self, table: int) -> tuple[int, ...]:
        return tuple(self.levels[axis] if axis in self.columns[table] else 1 for axis in self.axes)

    def estimate(self, published: Sequence[Floats]) -> list[Floats]:
        """The estimates of all counts, from published ones: (releases, labels, counts) of each table."""
        values = [counts.reshape(-1, *self.shape(table)) for table, counts in enumerate(published)]
        estimates = [np.zeros_like(counts) for counts in values]
        factors = [math.prod(self.levels[axis] for axis in set(self.axes) - columns) for columns in self.columns]
        dimension = {axis: number + 1 for number, axis in enumerate(self.axes)}
        for subset in {subset for columns in self.columns for subset in list_subsets(columns)}:
            having = [table for table, columns in enumerate(self.columns) if subset <= columns]
            total: Any = 0.0
            for table in having:
                others = tuple(dimension[axis] for axis in self.columns[table] - subset)
                component = values[table].mean(axis=others, keepdims=True)
                for axis in subset:
                    component = component - component.mean(axis=dimension[axis], keepdims=True)
                total = total + component / self.variances[table]
            total = total / sum(factors[table] / self.variances[table] for table in having)
            for table in having:
                estimates[table] += factors[table] * total
        return [estimate.reshape(counts.shape) for estimate, counts in zip(estimates, published, strict=True)]


def list_subsets(columns: Iterable[int]) -> list[frozenset[int]]:
    listed = sorted(columns)
    return [frozenset(subset) for size in range(len(listed) + 1) for subset in combinations(listed, size)]


def variances_left(
    columns: Sequence[frozenset[int]], levels: Mapping[int, int], variances: Sequence[float]
) -> list[float]:
    """The variances of the least-squares estimates of a count of each table, on a product domain.

    With Q_t the columns of table t, v_t its variance and L_a the levels of column a, M_S = sum over tables that have
    all of S of (1/v_t) prod_{a not in Q_t} L_a, and the variance of table Q is the sum over S in Q of
    prod_{a in S} (1 - 1/L_a) prod_{a in Q - S} 1/L_a prod_{a not in Q} L_a / M_S.

    >>> parent, child = frozenset({0}), frozenset({0, 1})
    >>> left = variances_left([parent, child], {0: 5, 1: 3}, [1.0, 1.0])  # 1/(1/v_p + 1/(C v_c))
    >>> [round(variance, 12) for variance in left]
    [0.75, 0.75]
    """
    axes = frozenset().union(*columns)
    factors = [math.prod(levels[axis] for axis in axes - table) for table in columns]

    def component(subset: frozenset[int], table: frozenset[int]) -> float:
        having = zip(columns, factors, variances, strict=True)
        precision = sum(factor / variance for other, factor, variance in having if subset <= other)
        inside = math.prod(1.0 - 1.0 / levels[axis] for axis in subset)
        return inside / math.prod(levels[axis] for axis in table - subset) / precision

    return [
        factor * sum(component(subset, table) for subset in list_subsets(table))
        for table, factor in zip(columns, factors, strict=True)
    ]


def find_refinement(
    joint: JointCells, asked: Sequence[SetTable], plain: Sequence[Figures], seed: int = 0
) -> Refinement | None:
    """Return what least squares leaves of the noise, and what the attacks then reveal.

    None if the tables have no margin in common, or are not all of the same people. ``plain``: what each way of attack
    reveals without least squares.
    """
    if len(asked) < 2 or any(table.part for table in asked) or (joint.cell < 0).any():
        return None
    columns = [frozenset(table.columns) for table in joint.tables]
    if not any(one & other for one, other in combinations(columns, 2)):
        return None
    levels = {column: count_levels(joint, column) for table in columns for column in table}
    variances = tuple(max(table.mechanism.noise.variance, LEAST_VARIANCE) for table in asked)
    fit, left = ProductFit(columns, levels, variances), variances_left(columns, levels, variances)
    shares = tuple(rest / variance for rest, variance in zip(left, variances, strict=True))
    sizes = [math.prod(fit.shape(table)) for table in range(len(asked))]
    if len(joint.count) > MOST_ROWS:
        return Refinement(shares, (), f"it is computed for up to {MOST_ROWS:,} combinations of values that occur")
    if sum(sizes) * joint.n_levels > MOST_COUNTS:
        return Refinement(shares, (), f"it is computed for up to {MOST_COUNTS:,} counts")
    simulator = Simulator(publish_all(joint, fit), [table.mechanism for table in asked])
    known, refined = [], []
    for drawn in simulator.draw(simulator.count_draws(MOST_DRAWS, SHARE), seed):
        known.append(simulator.read(*simulator.compare(drawn)))
        refined.append(simulator.read(*simulator.compare(fit.estimate(drawn), TIE)))
    before, after = np.concatenate(known), np.concatenate(refined)
    ways, rows = [*RULES, *(f"table {table.number} alone" for table in asked)], []
    for place, (way, means) in enumerate(zip(ways, plain, strict=True)):
        (right, error), (caused, caused_error) = (
            control(after[:, place, figure], before[:, place, figure], mean)
            for figure, mean in ((0, means.right), (2, means.caused))
        )
        rows.append(Refined(way, right, caused, means, error, caused_error))
    return Refinement(shares, tuple(rows))


def publish_all(joint: JointCells, fit: ProductFit) -> JointCells:
    """The same people in tables with a cell for every combination of values, in the order of the fit's axes."""
    tables, cell = [], []
    for number, (table, cells) in enumerate(zip(joint.tables, joint.cell, strict=True)):
        codes = [np.zeros(table.n_cells, np.int64) for _ in fit.axes]
        for axis, column in zip(table.columns, table.codes.T, strict=True):
            codes[fit.axes.index(axis)] = np.searchsorted(np.unique(column), column)
        place = np.ravel_multi_index(tuple(codes), fit.shape(number))
        counts = np.zeros((math.prod(fit.shape(number)), joint.n_levels), np.int64)
        counts[place] = table.counts
        tables.append(replace(table, counts=counts))
        cell.append(place[cells])
    return replace(joint, tables=tuple(tables), cell=np.stack(cell))


def count_levels(joint: JointCells, column: int) -> int:
    """The values that a column takes in the tables, a missing one included if it occurs."""
    for table in joint.tables:
        if column in table.columns:
            return len(np.unique(table.codes[:, table.columns.index(column)]))
    return joint.widths[column]
