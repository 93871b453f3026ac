"""Least squares over tables with common margins: what an attacker gains who makes them agree with each other.

Tables of the same people add up to the same margins, so that each tells something of the others' noise. Where every
combination of values is published, the weighted least-squares estimate of a count has a smaller variance, in closed
form, and a record still moves it by exactly 1. Labels stay independent of each other. For Gaussian noise the estimates
are Gaussian: the rules are exact up to three tables, and integrals of Genz (1992) with their error beyond. Under
Laplace noise each table alone is exact; what else there is, and counts that are set to 0 before, is simulated with its
error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy import special

from cellrisk.counts.joint import JointCells
from cellrisk.noise.distributions import GaussianNoise, LaplaceNoise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.averaging.mean_noise import MeanNoise
from cellrisk.repeat.together.refined import (
    Fit,
    ObservedFit,
    ProductFit,
    Refined,
    assess_laplace_cells,
    covary,
    name_alone,
    name_clamped,
    simulate_refined,
)
from cellrisk.repeat.together.rules import Figures
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.measures.exactly_one import each_alone
from cellrisk.system.arrays import Floats
from cellrisk.system.text import number_of

MOST_TABLES = 3
"""Orthants of so many dimensions are computed exactly."""
SHIFTS, FEWEST_POINTS, GENZ_NUMBERS = 8, 16, 20_000_000
"""Shifts of the points of an integral, points at least, and evaluations in all: more are simulated instead."""
MOST_ROWS, MOST_COUNTS = 200_000, 1_000_000
RULES = ("elimination", "any")
MOST_CELLS = 1_200
"""Cells of all tables together up to which the normal equations of those that occur are solved: some seconds."""
POINTS, REACH = 96, 9.0
"""Gauss points along one coordinate of three, and where a normal law has less than 1e-18 left."""


@dataclass(frozen=True)
class Observed:
    """Least squares over the cells that occur: every cell has a variance of its own."""

    shares: tuple[float, ...]
    """What is left of the variance of the noise in each table's counts, on average over its people."""
    rows: tuple[Refined, ...]
    """What each way of attack gives away then; empty where that is not computed."""

    @property
    def rules(self) -> dict[str, Refined]:
        """Elimination and any."""
        return {row.what: row for row in self.rows if row.what in RULES}

    @property
    def left(self) -> str:
        return ", ".join(f"{100 * share:.1f}%" for share in self.shares)

    @property
    def told(self) -> str:
        """What the rules give away, in words."""
        return " and ".join(
            f"{number_of(row.right, 'person')} rightly, {row.caused:,.3g} because of their own record, by {rule} "
            f"({row.how})"
            for rule, row in self.rules.items()
        )

    @property
    def headline(self) -> str:
        said = f"If only the combinations that occur are published, {self.left} of it is left to people on average"
        return f"{said} (exact), and {self.told}."

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
    """The tables after least squares, where every combination of values is published."""

    why: str | None
    """Why nothing is told of what each way of attack gives away."""
    observed: Observed | None = None
    """The same where only combinations of values that occur are published, as with nested geography."""

    @property
    def headline(self) -> str:
        said = (
            "Least squares over the margins that the tables have in common, if every combination of values is "
            f"published, leaves {self.left} of the variance of their noise"
        )
        if not self.rows:
            return f"{said}. What that gives away is left out: {self.why}."
        occur = f"What is left where only combinations that occur are published is told up to {MOST_CELLS:,} cells."
        if self.observed is not None:
            occur = self.observed.headline
        return f"{said}; the attacker then names {self.told}. {occur}"

    def to_dict(self) -> dict[str, Any]:
        occur = {} if self.observed is None else {"observed_cells": self.observed.to_dict()}
        return {**super().to_dict(), "why": self.why, **occur}


def refine(columns: Sequence[frozenset[int]], levels: Mapping[int, int], variances: Sequence[float]) -> Floats:
    """(tables, tables): the covariances of the least-squares estimates of one person's cells, on a product domain.

    >>> parent, child = frozenset({0}), frozenset({0, 1})
    >>> refine([parent, child], {0: 5, 1: 3}, [1.0, 1.0]).round(6).tolist()  # 1/(1/v_p + 1/(C v_c))
    [[0.75, 0.25], [0.25, 0.75]]
    """
    tables = range(len(columns))
    return np.array(
        [
            [covary(columns, levels, variances, (one, other), columns[one] & columns[other]) for other in tables]
            for one in tables
        ]
    )


def find_refinement(
    joint: JointCells, asked: Sequence[SetTable], plain: Mapping[str, Figures], seed: int = 0
) -> Refinement | None:
    """What least squares leaves of the noise, and what the rules then give away.

    None where no margin is in common, or where the tables are not all of the same people. ``plain``: what each way of
    attack gives away without least squares.
    """
    if len(asked) < 2 or any(table.part for table in asked) or (joint.cell < 0).any():
        return None
    columns = [frozenset(table.columns) for table in joint.tables]
    if not any(one & other for one, other in combinations(columns, 2)) and not is_nested(joint):
        return None
    levels = {place: count_levels(joint, place) for own in columns for place in own}
    variances = tuple(MeanNoise.of(table.mechanism.noise, 1).deviation ** 2 for table in asked)
    covariance = refine(columns, levels, variances)
    shares = tuple(float(covariance[place, place]) / variance for place, variance in enumerate(variances))
    fit = ProductFit(joint, levels, variances)
    why = _why_not(joint, fit)
    if why:
        return Refinement(shares, (), why)
    mechanisms = [table.mechanism for table in asked]
    rows = assess_fit(joint, fit, covariance, mechanisms, plain, seed)
    if all(isinstance(each.noise, LaplaceNoise) for each in mechanisms):
        scales, thresholds = [each.noise.scale for each in mechanisms], [each.threshold for each in mechanisms]
        rows |= assess_laplace_cells(joint, levels, scales, thresholds, plain)
    return Refinement(shares, tuple(rows.values()), None, find_observed(joint, variances, mechanisms, plain, seed))


def assess_fit(
    joint: JointCells,
    fit: Fit,
    covariance: Floats,
    mechanisms: Sequence[Mechanism],
    plain: Mapping[str, Figures],
    seed: int,
) -> dict[str, Refined]:
    """Every way of attack on what least squares makes of the tables, exact where that can be, else simulated."""
    noises, thresholds = [each.noise for each in mechanisms], [each.threshold for each in mechanisms]
    divisor = np.asarray(fit.variances).reshape(1, -1, *([1] if covariance.ndim == 3 else []))
    found = simulate_refined(joint, fit, covariance / divisor, noises, thresholds, plain, seed)
    points = count_points(len(joint.count), len(mechanisms), joint.n_levels)
    if all(isinstance(noise, GaussianNoise) for noise in noises) and points is not None:
        found |= assess_refined(joint, covariance, thresholds, plain, points)
    told = [*plain, *map(name_clamped, RULES)]
    return {name: found[name] for name in told}


def is_nested(joint: JointCells) -> bool:
    """Whether each cell of some table lies in one cell of another, as districts lie in regions."""
    for inner, outer in permutations(range(len(joint.tables)), 2):
        pairs = np.unique(joint.cell[[inner, outer]], axis=1)
        if pairs.shape[1] == joint.tables[inner].n_cells and joint.tables[outer].n_cells > 1:
            return True
    return False


def find_observed(
    joint: JointCells,
    variances: tuple[float, ...],
    mechanisms: Sequence[Mechanism],
    plain: Mapping[str, Figures],
    seed: int,
) -> Observed | None:
    """Least squares where only cells that occur are published; None where they are too many."""
    cells = [table.n_cells for table in joint.tables]
    if sum(cells) > MOST_CELLS:
        return None
    whole = project_observed(joint.cell, cells, variances)
    covariance = choose_own(whole, joint.cell, cells)
    people = joint.count.astype(np.float64)
    shares = tuple(
        float(np.sum(people * covariance[table, table]) / people.sum() / variance)
        for table, variance in enumerate(variances)
    )
    fit = ObservedFit(joint, whole / np.repeat(variances, cells), variances)
    return Observed(shares, tuple(assess_fit(joint, fit, covariance, mechanisms, plain, seed).values()))


def project_observed(cell: Any, cells: Sequence[int], variances: Sequence[float]) -> Floats:
    """(cells, cells): the covariances of the least-squares estimates of all cells of all tables.

    What is not known are the counts of the combinations that occur; a cell of a table adds up those inside it. With A
    the matrix of these sums over all cells and V the variances, the normal equations leave the estimates the covariance
    V^1/2 P V^1/2, P the projection onto the columns of V^-1/2 A: it is found from A V^-1 A', cells by cells.
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
    values, vectors = np.linalg.eigh(product)
    kept = vectors[:, values > values[-1] * 1e-10]
    return np.asarray((kept @ kept.T) / np.outer(scale, scale))


def choose_own(whole: Floats, cell: Any, cells: Sequence[int]) -> Floats:
    """(tables, tables, rows): of each row's own cells."""
    starts = np.concatenate([[0], np.cumsum(cells)])[:-1]
    own = [rows + start for rows, start in zip(cell, starts, strict=True)]
    return np.array([[whole[one, other] for other in own] for one in own])


def count_levels(joint: JointCells, column: int) -> int:
    """The values that a column takes in the tables, a missing one included where it occurs."""
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


def count_points(rows: int, tables: int, labels: int) -> int | None:
    """Points for each integral in more than three dimensions; 0 where there is none, None where they are too many."""
    if tables <= MOST_TABLES:
        return 0
    integrals = sum(math.comb(tables, size) for size in range(MOST_TABLES + 1, tables + 1)) * 3 * labels
    points = GENZ_NUMBERS // (integrals * rows * tables * SHIFTS)
    return min(points, 512) if points >= FEWEST_POINTS else None


def assess_refined(
    joint: JointCells,
    covariance: Floats,
    thresholds: Sequence[float],
    plain: Mapping[str, Figures],
    points: int = 0,
) -> dict[str, Refined]:
    """Elimination, any and each table alone where the estimates of each label are Gaussian: orthants.

    ``covariance`` is (tables, tables) where it is the same for everybody, or (tables, tables, rows). Orthants of more
    than three dimensions are integrated over ``points`` points, shifted at random several times: the figures differ by
    their error.
    """
    known: dict[Any, Floats] = {}
    found = []
    for shift in range(SHIFTS if points else 1):
        known = {key: value for key, value in known.items() if len(key[0]) <= MOST_TABLES}
        found.append(_assess_gaussian(joint, covariance, thresholds, known, points, shift))
    rows = {}
    for name in found[0]:
        numbers = np.stack([each[name] for each in found])
        mean = numbers.mean(axis=0).tolist()
        error = numbers.std(axis=0, ddof=1) / math.sqrt(SHIFTS) if points else np.zeros(3)
        rows[name] = Refined(name, mean[0], mean[1], max(mean[2], 0.0), plain[name], float(error[0]), float(error[2]))
    return rows


def _assess_gaussian(
    joint: JointCells,
    covariance: Floats,
    thresholds: Sequence[float],
    known: dict[Any, Floats],
    points: int,
    shift: int,
) -> dict[str, Floats]:
    """(3,): people named rightly, at all, and because of their own record, by each way of attack."""
    tables = range(len(joint.tables))
    labels = joint.n_levels
    counts = [table.counts[own].astype(np.int64) for table, own in zip(joint.tables, joint.cell, strict=True)]
    deviation = np.sqrt(np.stack([covariance[table, table] for table in tables]))
    correlation = covariance / (deviation[:, None] * deviation[None, :])
    alike = covariance.ndim == 2

    def chance(some: tuple[int, ...], label: int, *, vanish: bool = False, less: int = 0) -> Floats:
        """How likely one label survives, or vanishes, in all of some tables, for each row of people."""
        asked = some, label, vanish, less
        if asked in known:
            return known[asked]
        values = np.stack([counts[table][:, label] - less for table in some])
        distinct, place = values, np.arange(values.shape[1])
        if alike:  # people with the same counts have the same chance
            distinct, place = np.unique(values, axis=1, return_inverse=True)
        bounds = np.stack(
            [(thresholds[table] - row) / deviation[table] for table, row in zip(some, distinct, strict=True)]
        )
        inner = correlation[np.ix_(some, some)]
        signed = -bounds if vanish else bounds
        found = orthant(signed, inner) if len(some) <= MOST_TABLES else integrate_orthant(signed, inner, points, shift)
        known[asked] = found[place.ravel()]
        return known[asked]

    every, people = tuple(tables), joint.count.astype(np.float64)

    def show(some: tuple[int, ...], gone: Sequence[Floats]) -> Floats:
        """(3, rows): the own label is left alone, any label is, and the own one only because of the own record."""
        stays = [chance(some, label) for label in range(labels)]
        less = [chance(some, label, less=1) for label in range(labels)]
        alone = np.stack(each_alone(gone, stays))
        caused = np.stack(each_alone(gone, [one - other for one, other in zip(stays, less, strict=True)]))
        own = joint.level, np.arange(len(people))
        return np.stack([alone[own], alone.sum(axis=0), caused[own]])

    found = {"elimination": show(every, [1.0 - chance(every, label) for label in range(labels)]) @ people}
    total = np.zeros((3, len(people)))
    alone = {}
    for size in range(1, len(every) + 1):
        for some in combinations(tables, size):
            shown = show(some, [chance(some, label, vanish=True) for label in range(labels)])
            total += (-1.0) ** (size - 1) * shown
            if size == 1:
                alone[name_alone(some[0])] = shown @ people
    return found | {"any": total @ people} | alone


def integrate_orthant(bounds: Floats, correlation: Floats, points: int, shift: int) -> Floats:
    """The same in any number of dimensions, by the transformation of Genz (1992) over a lattice that is shifted at
    random and folded: what shifts differ by is the error.

    >>> half = 0.5 * np.eye(4) + 0.5
    >>> found = [integrate_orthant(np.zeros((4, 1)), half, 500, shift)[0] for shift in range(8)]
    >>> round(float(np.mean(found)), 3)  # 1/(r + 1)
    0.2
    """
    size = len(bounds)
    matrix = np.moveaxis(correlation, -1, 0) if correlation.ndim == 3 else correlation[None]
    root = np.linalg.cholesky(matrix + 1e-9 * np.eye(size))
    primes = np.array(
        [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0, 41.0, 43.0, 47.0, 53.0, 59.0]
    )
    start = np.random.default_rng(shift).random(size - 1)
    lattice = (np.arange(1, points + 1)[:, None] * np.sqrt(primes[: size - 1]) + start) % 1.0
    total = np.zeros(bounds.shape[1])
    for point in np.abs(2.0 * lattice - 1.0):
        inside = special.ndtr(-bounds[0] / root[:, 0, 0])
        product, drawn = inside, []
        for row in range(1, size):
            drawn.append(special.ndtri(np.clip(point[row - 1] * inside, 1e-300, 1.0 - 1e-16)))
            used = sum(root[:, row, column] * each for column, each in enumerate(drawn))
            inside = special.ndtr((-bounds[row] - used) / root[:, row, row])
            product = product * inside
        total += product
    return np.asarray(total / points)


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
        return _two(-bounds[0], -bounds[1], _below_one(correlation[0, 1]))
    first, second = _below_one(correlation[0, 1]), _below_one(correlation[0, 2])
    left, right = np.sqrt(1.0 - first**2), np.sqrt(1.0 - second**2)
    inner = _below_one((correlation[1, 2] - first * second) / (left * right))
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    low = np.clip(bounds[0], -REACH, REACH)
    half = 0.5 * (REACH - low)
    total = np.zeros(bounds.shape[1])
    for point, weight in zip(points, weights, strict=True):
        x = low + half * (1.0 + point)
        both = _two((first * x - bounds[1]) / left, (second * x - bounds[2]) / right, inner)
        total += weight * np.exp(-0.5 * x * x) * both
    return np.asarray(total * half / math.sqrt(2.0 * math.pi))


def _below_one(correlation: Any) -> Any:
    """Estimates that are always equal, as those of a cell and of the only one inside it, are taken for nearly so."""
    return np.clip(correlation, -1.0 + 1e-12, 1.0 - 1e-12)


def _two(h: Floats, k: Floats, correlation: Any) -> Floats:
    """P(X <= h, Y <= k) of two standard normal numbers, by Owen's T (Owen 1956)."""
    h, k = (np.where(np.abs(each) < 1e-300, 1e-300, each) for each in (h, k))
    width = np.sqrt(1.0 - correlation**2)
    with np.errstate(over="ignore"):
        first = special.owens_t(h, (k / h - correlation) / width)
        second = special.owens_t(k, (h / k - correlation) / width)
    apart = np.where((h > 0) == (k > 0), 0.0, 0.5)
    found = 0.5 * (special.ndtr(h) + special.ndtr(k)) - first - second - apart
    return np.asarray(np.clip(found, 0.0, 1.0))
