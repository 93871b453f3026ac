"""What a set gives away after least squares where the estimates have no law in closed form: releases are simulated.

Noise is drawn for every published count, the tables are made to agree by least squares, and the rules are applied to
the estimates. The same noise without least squares has known means, so that only what least squares changes is left to
chance (a control variate). Of one cell under Laplace noise the law is exact: its characteristic function is a product.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq

from cellrisk.counts.joint import JointCells, TableCells
from cellrisk.noise.distributions import Noise
from cellrisk.repeat.together.rules import Figures, Lookup, count_alone
from cellrisk.system.arrays import Floats, Integers

MOST_NUMBERS = 20_000_000
"""Numbers that are drawn and compared in all: some tenths of a second."""
FEWEST_DRAWS, MOST_DRAWS = 60, 500
NUMBERS_AT_ONCE = 1 << 15
"""Numbers of one kind of a table that are worked on at once."""
TIE = 1e-9
"""Estimates from whole numbers can meet the threshold exactly: as for means, such a count survives."""
MOST_NODES = 1 << 18
"""Nodes of the integral that turns a characteristic function into probabilities."""


@dataclass(frozen=True)
class Refined:
    """What one way of attack gives away after least squares, in people, beside the same without."""

    what: str
    right: float
    named: float
    caused: float
    plain: Figures
    """The same attack on the tables as they are published."""
    error: float = 0.0
    """Of ``right``: a standard error where it was simulated, else how far it may be off."""
    caused_error: float = 0.0
    simulated: bool = False

    @property
    def how(self) -> str:
        """Whether the figures are exact, and else how far they may be off."""
        if self.simulated:
            return f"simulated, +- {self.error:.2g} and {self.caused_error:.2g}"
        if self.error <= 1e-6 * max(self.right, 1.0) and self.caused_error <= 1e-6 * max(self.caused, 1.0):
            return "exact"
        return f"exact to +- {self.error:.2g} and {self.caused_error:.2g}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "right": self.right,
            "named": self.named,
            "caused": self.caused,
            "plain": {"right": self.plain.right, "named": self.plain.named, "caused": self.plain.caused},
            "how": self.how,
            "simulated": self.simulated,
            "error": self.error,
            "caused_error": self.caused_error,
        }


class Fit(ABC):
    """Least squares over the published counts of a set."""

    variances: tuple[float, ...]

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """How many counts of a label each table publishes."""

    @abstractmethod
    def place(self, table: int) -> Integers:
        """For each cell that people are in: its place among the counts of a label that the table publishes."""

    @abstractmethod
    def estimate(self, published: Sequence[Floats]) -> list[Floats]:
        """The estimates of all counts, from published ones: (labels, counts) for each table."""


@dataclass(frozen=True, eq=False)
class ProductFit(Fit):
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

    def shape(self, table: int) -> tuple[int, ...]:
        own = self.joint.tables[table].columns
        return tuple(self.levels[axis] if axis in own else 1 for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shape(table)) for table in range(len(self.variances)))

    def place(self, table: int) -> Integers:
        own = self.joint.tables[table]
        codes = []
        for axis in self.axes:
            if axis in own.columns:
                column = own.codes[:, own.columns.index(axis)]
                codes.append(np.searchsorted(np.unique(column), column))
            else:
                codes.append(np.zeros(own.n_cells, np.int64))
        return np.asarray(np.ravel_multi_index(tuple(codes), self.shape(table)))

    def estimate(self, published: Sequence[Floats]) -> list[Floats]:
        columns = [frozenset(table.columns) for table in self.joint.tables]
        every = frozenset(self.axes)
        labels = len(published[0])
        values = [each.reshape(labels, *self.shape(table)) for table, each in enumerate(published)]
        found = [np.zeros_like(each) for each in values]
        factors = [math.prod(self.levels[axis] for axis in every - own) for own in columns]
        place = {axis: number + 1 for number, axis in enumerate(self.axes)}
        for some in {some for own in columns for some in list_subsets(own)}:
            having = [table for table, own in enumerate(columns) if some <= own]
            total: Any = 0.0
            for table in having:
                part = values[table].mean(axis=tuple(place[axis] for axis in columns[table] - some), keepdims=True)
                for axis in some:
                    part = part - part.mean(axis=place[axis], keepdims=True)
                total = total + part / self.variances[table]
            total = total / sum(factors[table] / self.variances[table] for table in having)
            for table in having:
                found[table] += factors[table] * total
        return [each.reshape(labels, -1) for each in found]


@dataclass(frozen=True, eq=False)
class ObservedFit(Fit):
    """Only cells that occur are published: the estimates are a matrix times the published counts."""

    joint: JointCells
    hat: Floats
    variances: tuple[float, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(table.n_cells for table in self.joint.tables)

    def place(self, table: int) -> Integers:
        return np.arange(self.joint.tables[table].n_cells)

    def estimate(self, published: Sequence[Floats]) -> list[Floats]:
        fitted = np.concatenate(published, axis=1) @ self.hat.T
        return list(np.split(fitted, np.cumsum(self.sizes)[:-1], axis=1))


def simulate_refined(
    joint: JointCells,
    fit: Fit,
    pull: Floats,
    noises: Sequence[Noise],
    thresholds: Sequence[float],
    plain: Mapping[str, Figures],
    seed: int = 0,
) -> dict[str, Refined]:
    """Elimination, any, and each table alone, after least squares, with standard errors.

    ``pull``: how much the estimate of a person's cell in one table moves with the published count of his cell in
    another, (tables, tables) or (tables, tables, rows). His record moves every published count by 1, and so the
    estimate too; of clamped counts, of which those that do not survive are 0, only as far as they move.
    ``plain``: the known means of the same without least squares, by what is assessed. For each, there is an answer
    under its name, and one for clamped counts.
    """
    generator = np.random.default_rng(seed)
    labels, rows, tables = joint.n_levels, len(joint.count), range(len(joint.tables))
    level, people = joint.level.astype(np.int64), joint.count.astype(np.float64)
    work = labels * (3 * len(tables) * rows + 4 * sum(fit.sizes))
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_NUMBERS // work))
    places = [fit.place(table) for table in tables]
    counts = []
    for table in tables:
        whole = np.zeros((labels, fit.sizes[table]))
        whole[:, places[table]] = joint.tables[table].counts.T
        counts.append(whole)
    cells = [places[table].take(joint.cell[table]) for table in tables]
    names = list(plain)
    refined, clamped, control = (np.zeros((draws, len(names), 3)) for _ in range(3))

    def assess(published: Sequence[Floats], moved: Floats) -> Floats:
        fitted = fit.estimate([each.reshape(-1, each.shape[-1]) for each in published])
        seen = [each.reshape(labels, -1, each.shape[-1])[:, :, cell] for each, cell in zip(fitted, cells, strict=True)]
        shift = np.einsum("tun,ubn->tbn" if pull.ndim == 3 else "tu,ubn->tbn", pull, moved)
        return tell(seen, [_pick(each, level) - step for each, step in zip(seen, shift, strict=True)], TIE)

    def tell(values: Sequence[Floats], without: Sequence[Floats], tie: float = 0.0) -> Floats:
        shown = [each > limit - tie for each, limit in zip(values, thresholds, strict=True)]
        less = [each > limit - tie for each, limit in zip(without, thresholds, strict=True)]
        return _apply_rules(shown, less, level, people)

    limits = np.array(thresholds)[:, None, None]
    step = max(1, NUMBERS_AT_ONCE // (labels * max(rows, *fit.sizes)))
    for start in range(0, draws, step):
        part = slice(start, min(start + step, draws))
        drawn = [
            whole[:, None, :] + noise.sample(generator, (labels, part.stop - start, whole.shape[1]))
            for whole, noise in zip(counts, noises, strict=True)
        ]
        seen = [each[:, :, cell] for each, cell in zip(drawn, cells, strict=True)]
        own = np.stack([_pick(each, level) for each in seen])
        control[part] = tell(seen, list(own - 1.0))
        refined[part] = assess(drawn, np.ones_like(own))
        moved = np.where(own > limits, own, 0.0) - np.where(own - 1.0 > limits, own - 1.0, 0.0)
        cut = [np.where(each > limit, each, 0.0) for each, limit in zip(drawn, thresholds, strict=True)]
        clamped[part] = assess(cut, moved)
    found = {}
    for place, name in enumerate(names):
        for numbers, title in ((refined, name), (clamped, name_clamped(name))):
            known = plain[name]
            means = known.right, known.named, known.caused
            (right, error), (named, _), (caused, caused_error) = (
                _control(numbers[:, place, figure], control[:, place, figure], mean, float(people.sum()))
                for figure, mean in enumerate(means)
            )
            found[title] = Refined(title, right, named, caused, known, error, caused_error, True)
    return found


def _control(numbers: Floats, control: Floats, mean: float, people: float) -> tuple[float, float]:
    """The mean of simulated numbers, given that of others of the same releases; and its standard error."""
    spread = float(np.var(control))
    slope = float(np.mean((numbers - numbers.mean()) * (control - control.mean()))) / spread if spread > 0 else 0.0
    rest = numbers - slope * control
    error = float(np.std(rest, ddof=1)) / math.sqrt(len(rest))
    if error == 0:  # nothing happened: a number from 0 to n varies by at most the root of n times its mean
        error = math.sqrt(mean * people / len(rest))
    return max(float(rest.mean()) + slope * mean, 0.0), error


def _pick(values: Any, level: Integers) -> Any:
    """(draws, rows): what is told of each row's own label, from (labels, draws, rows)."""
    return np.take_along_axis(values, np.broadcast_to(level, (1, *values.shape[1:])), axis=0)[0]


def _apply_rules(shown: Sequence[Any], less: Sequence[Any], level: Integers, people: Floats) -> Floats:
    """(draws, ways, 3): people named rightly, at all, and because of their own record: by elimination, any, each table.

    ``shown``: (labels, draws, rows), what each table shows; ``less``: (draws, rows), whether it shows the own label
    with a record less.
    """

    def count(right: Any, named: Any, without: Any) -> Floats:
        return np.stack([right @ people, named @ people, right @ people - without @ people], axis=1)

    own = [_pick(each, level) for each in shown]
    many = [each.sum(axis=0) for each in shown]
    quiet = [number == mine for number, mine in zip(many, own, strict=True)]
    stays = np.logical_and.reduce(shown)
    mine, number = np.logical_and.reduce(own), stays.sum(axis=0)
    found = [count(mine & (number == 1), number == 1, np.logical_and.reduce(less) & (number == mine))]
    alone = [each & (number == 1) for each, number in zip(shown, many, strict=True)]
    still = [each & nobody for each, nobody in zip(less, quiet, strict=True)]
    somewhere = np.logical_or.reduce(alone)
    found.append(count(_pick(somewhere, level), somewhere.sum(axis=0), np.logical_or.reduce(still)))
    for each, rest in zip(alone, still, strict=True):
        found.append(count(_pick(each, level), each.any(axis=0), rest))
    return np.stack(found, axis=1)


@dataclass(frozen=True, eq=False)
class LaplaceSum:
    """The law of a weighted sum of independent Laplace noises, from its characteristic function (Gil-Pelaez 1951).

    prod (1 + (b w x)^2)^-times over the weights. Probabilities are sums over the nodes (k + 1/2) h, which are off by no
    more than what lies beyond 2 pi / h, and by what is left beyond the last node.

    >>> one = LaplaceSum(np.array([2.0]), np.array([1.0]))
    >>> abs(float(one.above(np.array([3.0]))[0]) - 0.5 * math.exp(-1.5)) <= one.error
    True
    """

    scales: Floats
    """b w: the scale of each noise times its weight."""
    times: Floats
    """How often it occurs."""

    def characteristic(self, x: Any) -> Floats:
        squares = np.multiply.outer(np.asarray(x), self.scales) ** 2
        return np.asarray(np.exp(-np.log1p(squares) @ self.times))

    @cached_property
    def reach(self) -> float:
        """What the sum exceeds with a probability below 1e-17, by Chernoff's bound."""
        tilt = 0.9 / float(self.scales.max())
        return float((-np.log1p(-((tilt * self.scales) ** 2)) @ self.times + 40.0) / tilt)

    @cached_property
    def nodes(self) -> tuple[Floats, Floats]:
        step = math.pi / self.reach

        def left(log_x: float) -> float:
            return float(-np.log1p((math.exp(log_x) * self.scales) ** 2) @ self.times) + 40.0

        high = math.log(1e9 / float(self.scales.max()))
        last = math.exp(brentq(left, -high, high)) if left(high) < 0 else math.exp(high)
        number = int(min(max(math.ceil(last / step), 64), MOST_NODES))
        x = np.asarray((np.arange(number) + 0.5) * step, np.float64)
        weight = np.concatenate([self.characteristic(part) for part in np.array_split(x, -(-number // 4096))])
        return x, np.asarray(weight / (np.arange(number) + 0.5) / math.pi, np.float64)

    @property
    def error(self) -> float:
        """How far a probability may be off: what is left of the sum, whose terms fall faster than 1/k^3."""
        x, weight = self.nodes
        return float(abs(weight[-1]) * len(x)) + 1e-15

    def above(self, values: Floats) -> Floats:
        """P(sum > value)."""
        x, weight = self.nodes
        near = np.minimum(np.abs(values), self.reach)
        sums = np.array([float(np.sin(x * each) @ weight) for each in near])
        tail = np.clip(0.5 - sums, 0.0, 0.5)
        tail = np.where(np.abs(values) >= self.reach, 0.0, tail)
        return np.asarray(np.where(np.asarray(values) >= 0, tail, 1.0 - tail))

    def look_up(self, table: TableCells, threshold: float) -> Lookup:
        """What becomes of the counts of a table under this noise."""
        largest = int(table.counts.max())
        edge = min(largest, math.ceil(self.reach + abs(threshold)) + 2)
        known = self.above(threshold - np.arange(-1.0, edge + 1.0))
        survive = np.concatenate([known, np.ones(largest - edge)])
        vanish = np.concatenate([self.above(np.arange(-1.0, edge + 1.0) - threshold), np.zeros(largest - edge)])
        first = np.maximum(survive[1:] - survive[:-1], 0.0)
        present = np.arange(largest + 1) > 0
        return Lookup.with_outside(table.counts, vanish[1:], survive[1:], survive[:-1], first, present)


def list_subsets(columns: Iterable[int]) -> list[frozenset[int]]:
    every = sorted(columns)
    return [frozenset(some) for size in range(len(every) + 1) for some in combinations(every, size)]


def covary(
    columns: Sequence[frozenset[int]],
    levels: Mapping[int, int],
    variances: Sequence[float],
    pair: tuple[int, int],
    agree: frozenset[int],
) -> float:
    """The covariance of the least-squares estimates of a cell in each of two tables, on a product domain.

    With Q_t the columns of table t, v_t its variance and L_a the levels of column a, M_S = sum over tables that have
    all of S of (1/v_t) prod_{a not in Q_t} L_a, and cov(Q, Q') = sum over S in I = Q and Q' of
    prod_{a in S} ([the cells agree in a] - 1/L_a) prod_{a in I - S} 1/L_a prod_{a in neither} L_a / M_S.
    """
    every = frozenset().union(*columns)
    own, theirs = (columns[table] for table in pair)
    common = own & theirs
    outside = math.prod(levels[axis] for axis in every - own - theirs)
    total = 0.0
    for some in list_subsets(common):
        precision = sum(
            math.prod(levels[axis] for axis in every - each) / variance
            for each, variance in zip(columns, variances, strict=True)
            if some <= each
        )
        term = math.prod((axis in agree) - 1.0 / levels[axis] for axis in some)
        term *= math.prod(1.0 / levels[axis] for axis in common - some)
        total += term * outside / precision
    return total


def weigh_cells(
    columns: Sequence[frozenset[int]], levels: Mapping[int, int], variances: Sequence[float], table: int
) -> list[tuple[int, float, int]]:
    """How much of each table's noise is in the refined count of one cell: (table, weight, how many counts have it).

    A count of table u is in it with the weight cov / v_u, which depends on the columns alone in which the two cells
    agree: those of a set A of the common ones, and of these there are prod (L_a - 1) over the rest of the common ones
    times prod L_a over the columns of u alone.
    """
    own, found = columns[table], []
    for other, theirs in enumerate(columns):
        for agree in list_subsets(own & theirs):
            times = math.prod(levels[axis] - 1 for axis in (own & theirs) - agree)
            times *= math.prod(levels[axis] for axis in theirs - own)
            if times:
                covariance = covary(columns, levels, variances, (table, other), agree)
                found.append((other, covariance / variances[other], times))
    return found


def assess_laplace_cells(
    joint: JointCells,
    levels: Mapping[int, int],
    scales: Sequence[float],
    thresholds: Sequence[float],
    plain: Mapping[str, Figures],
) -> dict[str, Refined]:
    """Each table alone after least squares under Laplace noise: exact, cell by cell."""
    columns = [frozenset(table.columns) for table in joint.tables]
    found = {}
    for table, (own, threshold) in enumerate(zip(joint.tables, thresholds, strict=True)):
        weights = weigh_cells(columns, levels, [2.0 * scale**2 for scale in scales], table)
        law = LaplaceSum(
            np.array([abs(weight) * scales[other] for other, weight, _ in weights]),
            np.array([float(times) for _, _, times in weights]),
        )
        figures = count_alone(own, law.look_up(own, threshold))
        name = name_alone(table)
        error = own.n_records * own.counts.shape[1] * law.error
        found[name] = Refined(name, figures.right, figures.named, figures.caused, plain[name], error, error)
    return found


def name_alone(table: int) -> str:
    return f"table {table + 1} alone"


def name_clamped(what: str) -> str:
    return f"{what}, clamped"
