"""Least squares over tables with common margins: what an attacker gains who makes the tables agree with each other.

Tables of the same people add up to the same margins, so each reduces the noise of the others. If every combination of
values is published, the weighted least-squares estimate of a count has a smaller variance, in closed form, and a record
still moves it by exactly 1. What the attacks then reveal is simulated, with its standard error: the same releases
without least squares have known means, so only what least squares changes adds to the error (a control variate).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy import linalg

from cellrisk.counts.joint import JointCells
from cellrisk.noise.distributions import GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.together.linkage_attacks import RULES, Figures
from cellrisk.repeat.together.sets import SetTable
from cellrisk.repeat.together.simulator import Reader, Simulator, control, name_ways
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.text import number_of

MOST_ROWS, MOST_COUNTS = 200_000, 1_000_000
MOST_CELLS = 1_200
"""Cells of all tables together up to which the normal equations of those that occur are solved: some seconds."""
MOST_DRAWS, SHARE = 200, 0.2
"""Releases at most, and how many of those that the simulator could read without least squares."""
TIE = 1e-9
"""Estimates from whole numbers can meet the threshold exactly: such a count is shown."""
CLAMPED = "{}, clamped"


@dataclass(frozen=True)
class Refined:
    """What one attack reveals after least squares, in people, beside the same without; simulated."""

    what: str
    right: float
    named: float
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
class Observed:
    """Least squares over the cells that occur: every cell has a variance of its own."""

    shares: tuple[float, ...]
    """The share of the variance of the noise that is left in each table's counts, on average over its people. Exact."""
    rows: tuple[Refined, ...]
    """What each attack then reveals; empty if that is not computed."""

    @property
    def rules(self) -> dict[str, Refined]:
        """Elimination and any."""
        return {row.what: row for row in self.rows if row.what in RULES}

    @property
    def left(self) -> str:
        return ", ".join(f"{100 * share:.1f}%" for share in self.shares)

    @property
    def revealed(self) -> str:
        """What the rules reveal, in words."""
        return " and ".join(
            f"{number_of(row.right, 'person')} rightly, {row.caused:,.3g} because of their own record, by {rule} "
            f"({row.how})"
            for rule, row in self.rules.items()
        )

    @property
    def headline(self) -> str:
        occur = f"If only the combinations that occur are published, {self.left} of it is left to people on average"
        return f"{occur} (exact), and {self.revealed}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "variance_left": list(self.shares),
            "rules": [
                {"rule": row.what, "right": row.right, "named": row.named, "caused": row.caused, "how": row.how}
                for row in self.rules.values()
            ],
            "rows": [row.to_dict() for row in self.rows],
            "sentence": self.headline,
        }


@dataclass(frozen=True)
class Refinement(Observed):
    """The tables after least squares, if every combination of values is published."""

    why: str | None
    """Why what each attack reveals is not computed."""
    observed: Observed | None = None
    """The same if only combinations of values that occur are published, as with nested geography."""

    @property
    def headline(self) -> str:
        said = (
            "Least squares over the margins that the tables have in common, if every combination of values is "
            f"published, leaves {self.left} of the variance of their noise"
        )
        if not self.rows:
            return f"{said}. What that reveals is not computed: {self.why}."
        occur = f"What is left if only combinations that occur are published is computed up to {MOST_CELLS:,} cells."
        if self.observed is not None:
            occur = self.observed.headline
        return f"{said}; the attacker then names {self.revealed}. {occur}"

    def to_dict(self) -> dict[str, Any]:
        occur = {} if self.observed is None else {"observed_cells": self.observed.to_dict()}
        return {**super().to_dict(), "why": self.why, **occur}


@dataclass(frozen=True, eq=False)
class ProductFit:
    """Every combination of values is published.

    The counts of a table are a sum of components, one for each set S of its columns: means over the other columns, less
    those over any column of S. Least squares takes each component from all tables that have it, weighted by 1/v_t:
    x_S = sum_t y_tS / v_t divided by M_S = sum_t (1/v_t) prod_{a not in Q_t} L_a.
    """

    joint: JointCells
    levels: Mapping[int, int]
    variances: tuple[float, ...]

    @cached_property
    def axes(self) -> tuple[int, ...]:
        return tuple(sorted(self.levels))

    @cached_property
    def columns(self) -> list[frozenset[int]]:
        return [frozenset(table.columns) for table in self.joint.tables]

    @cached_property
    def covariance(self) -> Floats:
        return refine(self.columns, self.levels, self.variances)

    @property
    def pull(self) -> Floats:
        """(tables, tables): how far the estimate of a person's cell in one table moves with the published count of the
        person's cell in another."""
        return np.asarray(self.covariance / np.asarray(self.variances))

    def shape(self, table: int) -> tuple[int, ...]:
        return tuple(self.levels[axis] if axis in self.columns[table] else 1 for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many counts of a label each table publishes."""
        return tuple(math.prod(self.shape(table)) for table in range(len(self.variances)))

    def place(self, table: int) -> Integers:
        """For each cell that people are in: its place among the counts of a label that the table publishes."""
        cells = self.joint.tables[table]
        codes = []
        for axis in self.axes:
            if axis in cells.columns:
                column = cells.codes[:, cells.columns.index(axis)]
                codes.append(np.searchsorted(np.unique(column), column))
            else:
                codes.append(np.zeros(cells.n_cells, np.int64))
        return np.asarray(np.ravel_multi_index(tuple(codes), self.shape(table)))

    def estimate(self, published: Sequence[Floats]) -> list[Floats]:
        """The estimates of all counts, from published ones: (any, counts) for each table."""
        every = frozenset(self.axes)
        values = [each.reshape(-1, *self.shape(table)) for table, each in enumerate(published)]
        found = [np.zeros_like(each) for each in values]
        factors = [math.prod(self.levels[axis] for axis in every - own) for own in self.columns]
        place = {axis: number + 1 for number, axis in enumerate(self.axes)}
        for subset in {subset for own in self.columns for subset in list_subsets(own)}:
            having = [table for table, own in enumerate(self.columns) if subset <= own]
            total: Any = 0.0
            for table in having:
                others = tuple(place[axis] for axis in self.columns[table] - subset)
                part = values[table].mean(axis=others, keepdims=True)
                for axis in subset:
                    part = part - part.mean(axis=place[axis], keepdims=True)
                total = total + part / self.variances[table]
            total = total / sum(factors[table] / self.variances[table] for table in having)
            for table in having:
                found[table] += factors[table] * total
        return [each.reshape(len(each), -1) for each in found]


@dataclass(frozen=True, eq=False)
class ObservedFit:
    """Only cells that occur are published: the estimates are a matrix times the published counts. Else as above."""

    joint: JointCells
    variances: tuple[float, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(table.n_cells for table in self.joint.tables)

    def place(self, table: int) -> Integers:
        return np.arange(self.sizes[table])

    @cached_property
    def whole(self) -> Floats:
        return project_observed(self.joint.cell, self.sizes, self.variances)

    @cached_property
    def covariance(self) -> Floats:
        """(tables, tables, rows): of each row's own cells."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]
        own = [rows + start for rows, start in zip(self.joint.cell, starts, strict=True)]
        return np.array([[self.whole[one, other] for other in own] for one in own])

    @property
    def pull(self) -> Floats:
        return np.asarray(self.covariance / np.asarray(self.variances)[:, None])

    def estimate(self, published: Sequence[Floats]) -> list[Floats]:
        hat = self.whole / np.repeat(self.variances, self.sizes)
        fitted = np.concatenate(published, axis=1) @ hat.T
        return list(np.split(fitted, np.cumsum(self.sizes)[:-1], axis=1))


Fit = ProductFit | ObservedFit


def list_subsets(columns: Iterable[int]) -> list[frozenset[int]]:
    every = sorted(columns)
    return [frozenset(some) for size in range(len(every) + 1) for some in combinations(every, size)]


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

    def precision(subset: frozenset[int]) -> float:
        return sum(
            math.prod(levels[axis] for axis in every - own) / variance
            for own, variance in zip(columns, variances, strict=True)
            if subset <= own
        )

    def covary(one: frozenset[int], other: frozenset[int]) -> float:
        outside = math.prod(levels[axis] for axis in every - one - other)
        return outside * sum(
            math.prod(1.0 - 1.0 / levels[axis] for axis in subset)
            / math.prod(levels[axis] for axis in (one & other) - subset)
            / precision(subset)
            for subset in list_subsets(one & other)
        )

    return np.array([[covary(one, other) for other in columns] for one in columns])


def project_observed(cell: Any, cells: Sequence[int], variances: Sequence[float]) -> Floats:
    """(cells, cells): the covariances of the least-squares estimates of all cells of all tables.

    What is not known are the counts of the combinations that occur; a cell of a table adds up those inside it. With A
    the matrix of these sums over all cells and V the variances, the normal equations leave the estimates the covariance
    V^1/2 P V^1/2, P the projection onto the columns of V^-1/2 A. With L L' the pivoted Cholesky factorisation of
    V^-1/2 A A' V^-1/2, cells by cells, L has independent columns that span the same, and P = L (L'L)^-1 L'.
    """
    starts = np.concatenate([[0], np.cumsum(cells)])
    atoms = np.unique(np.asarray(cell), axis=1)
    scale = np.repeat(1.0 / np.sqrt(np.asarray(variances, np.float64)), cells)
    product = np.zeros((starts[-1], starts[-1]))
    places = [own + start for own, start in zip(atoms, starts[:-1], strict=True)]
    for one in places:
        for other in places:
            np.add.at(product, (one, other), 1.0)
    product *= np.outer(scale, scale)
    factor, pivot, rank, _ = linalg.lapack.dpstrf(product, tol=1e-10 * product.max(), lower=1)
    factor = np.tril(factor)[np.argsort(pivot), :rank]
    inner = linalg.cholesky(factor.T @ factor, lower=True)
    half = linalg.solve_triangular(inner, factor.T, lower=True)
    return np.asarray((half.T @ half) / np.outer(scale, scale))


def find_refinement(
    joint: JointCells, asked: Sequence[SetTable], plain: Mapping[str, Figures], seed: int = 0
) -> Refinement | None:
    """What least squares leaves of the noise, and what the attacks then reveal.

    None if the tables have no margin in common, or are not all of the same people. ``plain``: what each way of attack
    reveals without least squares.
    """
    if len(asked) < 2 or any(table.part for table in asked) or (joint.cell < 0).any():
        return None
    columns = [frozenset(table.columns) for table in joint.tables]
    if not any(one & other for one, other in combinations(columns, 2)) and not is_nested(joint):
        return None
    levels = {column: count_levels(joint, column) for own in columns for column in own}
    variances = tuple(find_variance(table.mechanism.noise) for table in asked)
    fit = ProductFit(joint, levels, variances)
    shares = tuple((np.diag(fit.covariance) / variances).tolist())
    why = _why_not(joint, fit)
    if why:
        return Refinement(shares, (), why)
    mechanisms = [table.mechanism for table in asked]
    observed = None
    if sum(table.n_cells for table in joint.tables) <= MOST_CELLS:
        occur, people = ObservedFit(joint, variances), joint.count / joint.n_records
        left = tuple(float(people @ occur.covariance[t, t]) / v for t, v in enumerate(variances))
        observed = Observed(left, simulate_refined(joint, occur, mechanisms, plain, seed))
    return Refinement(shares, simulate_refined(joint, fit, mechanisms, plain, seed), None, observed)


def simulate_refined(
    joint: JointCells, fit: Fit, mechanisms: Sequence[Mechanism], plain: Mapping[str, Figures], seed: int = 0
) -> tuple[Refined, ...]:
    """Elimination, any, and each table alone after least squares, and the first two on clamped counts.

    A person's record moves every published count of the person by 1, and so the estimates; of clamped counts, of which
    those below the threshold are 0, only as far as they move.
    """
    tables = range(len(mechanisms))
    simulator = Simulator.of(joint, mechanisms, fit.sizes, [fit.place(table) for table in tables])
    (reader,) = Reader.split(simulator)
    limits = np.array([mechanism.threshold for mechanism in mechanisms])
    pull = fit.pull
    whole = pull.sum(axis=1)

    def read(published: Sequence[Floats], shift: Floats) -> Floats:
        fitted = fit.estimate([each.reshape(-1, each.shape[-1]) for each in published])
        estimates = [each.reshape(before.shape) for each, before in zip(fitted, published, strict=True)]
        mine = [own - moved for own, moved in zip(reader.own(estimates), shift, strict=True)]
        less = [own > limit - TIE for own, limit in zip(mine, limits, strict=True)]
        return reader.read(reader.look(simulator.show(estimates, tie=TIE)), less)

    found = []
    for drawn in simulator.draw(simulator.count_draws(MOST_DRAWS, SHARE), seed):
        as_published = reader.read(reader.look(simulator.show(drawn)), reader.own(simulator.show(drawn, 1.0)))
        cut = [np.where(counts > limit, counts, 0.0) for counts, limit in zip(drawn, limits, strict=True)]
        cut_less = [
            np.where(counts - 1.0 > limit, counts - 1.0, 0.0) for counts, limit in zip(drawn, limits, strict=True)
        ]
        moved = np.stack(reader.own([now - then for now, then in zip(cut, cut_less, strict=True)]))
        shift = np.einsum("tun,ubn->tbn" if pull.ndim == 3 else "tu,ubn->tbn", pull, moved)
        found.append(np.stack([as_published, read(drawn, whole[:, None]), read(cut, shift)]))
    known, refined, clamped = np.concatenate(found, axis=1)
    ways = name_ways(len(mechanisms))
    rows = []
    for numbers, title, chosen in ((refined, "{}", ways), (clamped, CLAMPED, RULES)):
        for way in chosen:
            place, means = ways.index(way), plain[way]
            (right, error), (named, _), (caused, caused_error) = (
                control(numbers[:, place, figure], known[:, place, figure], mean)
                for figure, mean in enumerate((means.right, means.named, means.caused))
            )
            rows.append(Refined(title.format(way), right, named, caused, means, error, caused_error))
    return tuple(rows)


def find_variance(noise: Noise) -> float:
    """The variance of one noise; of a discrete Gaussian an upper bound, close from a scale of 1 on."""
    if isinstance(noise, LaplaceNoise):
        return 2.0 * noise.scale**2
    if isinstance(noise, GeometricNoise):
        return 0.5 / math.sinh(0.5 / noise.scale) ** 2 if noise.scale > 1e-3 else 0.0
    return noise.scale**2


def is_nested(joint: JointCells) -> bool:
    """Whether each cell of some table lies in one cell of another, as districts lie in regions."""
    for inner, outer in permutations(range(len(joint.tables)), 2):
        pairs = np.unique(joint.cell[[inner, outer]], axis=1)
        if pairs.shape[1] == joint.tables[inner].n_cells and joint.tables[outer].n_cells > 1:
            return True
    return False


def count_levels(joint: JointCells, column: int) -> int:
    """The values that a column takes in the tables, a missing one included if it occurs."""
    for table in joint.tables:
        if column in table.columns:
            return len(np.unique(table.codes[:, table.columns.index(column)]))
    return joint.widths[column]


def _why_not(joint: JointCells, fit: Fit) -> str | None:
    if len(joint.count) > MOST_ROWS:
        return f"it is computed for up to {MOST_ROWS:,} combinations of values that occur"
    if sum(fit.sizes) * joint.n_levels > MOST_COUNTS:
        return f"it is computed for up to {MOST_COUNTS:,} counts"
    return None
