"""Two attacks that link several tables about the same people: exact means for independent noise of any kind.

Tables t = 1..r; a person with label k lies in one cell of each, with n_tj people of label j. s_t(n) is the probability
that a count n is released above zero, q_t = 1 - s_t, and d_t(n) = s_t(n) - s_t(n - 1). In a table that the person is
not in, everything shows: s = 1.

- elimination takes the one label that is above zero in all of the person's cells: z_k prod_{j != k} (1 - z_j) with
  z_j = prod_t s_t(n_tj);
- any takes a label that some table shows alone: 1 - prod_t (1 - u_tk) with u_tk = s_t(n_tk) prod_{j != k} q_t(n_tj).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells, TableCells
from cellrisk.noise.distributions import Noise
from cellrisk.risk.measures.local import each_alone
from cellrisk.system.arrays import Floats, Integers

RULES = ("elimination", "any")
NUMBERS_AT_ONCE = 1 << 15
"""Numbers of one kind that are worked on at once: as many as stay in the processor's cache."""
THREADS = min(os.cpu_count() or 1, 4)
MOST_SUBSETS = 6
"""Tables up to which every sub-collection of them is assessed."""
NEGLECTED = 1e-6
"""People who are named correctly too rarely to matter in a simulated release, all of them together, on average."""


@dataclass(frozen=True)
class Figures:
    """What one attack reveals on average, in people."""

    right: float
    named: float
    caused: float


@dataclass(frozen=True, eq=False)
class TableLaw:
    """The probabilities of one table's counts. The last row of ``places`` is for people who are not in the table."""

    counts: Integers
    """(cells, labels)"""
    places: Integers
    """(cells + 1, labels): where each count is in the lists below."""
    p_zero: Floats
    p_positive: Floats
    p_less: Floats
    """s(n - 1): the probability that the count shows with one record less."""
    p_pivotal: Floats
    """d(n) = s(n) - s(n - 1)."""
    present: Any
    """Whether the count is above 0."""

    @staticmethod
    def of(table: TableCells, noise: Noise, threshold: float) -> TableLaw:
        values, places = np.unique(table.counts, return_inverse=True)
        numbers = values.astype(np.float64)
        return TableLaw(
            table.counts,
            np.concatenate([places.reshape(table.counts.shape), np.full((1, table.counts.shape[1]), len(values))]),
            np.append(noise.p_zero(numbers, threshold), 0.0),
            np.append(noise.p_positive(numbers, threshold), 1.0),
            np.append(noise.p_positive(numbers - 1.0, threshold), 1.0),
            np.append(noise.p_pivotal(numbers, threshold), 0.0),
            np.append(numbers > 0, True),
        )

    def see(self, cells: Integers, level: Integers) -> View:
        """The table as people see it whose cells (-1: none) and labels these are."""
        places = np.ascontiguousarray(self.places.take(cells, axis=0, mode="wrap").T)
        own = own_of(places, level)
        return View(
            self.p_positive.take(places),
            self.p_zero.take(places),
            self.p_less.take(own),
            self.p_pivotal.take(own),
            self.present.take(places),
        )

    def alone(self) -> tuple[Figures, float]:
        """Return what the table reveals by itself, and the deviation of the people named correctly. Its cells are
        independent: label k is shown alone with P_k = s(n_k) prod_{j != k} q(n_j), and the variance of a cell is
        sum n_k^2 P_k - (sum n_k P_k)^2."""
        counts, zero = self.counts.astype(np.float64), self.p_zero.take(self.places[:-1])
        shown = each_alone(zero, self.p_positive.take(self.places[:-1]), axis=1)
        pivotal = each_alone(zero, self.p_pivotal.take(self.places[:-1]), axis=1)
        right = (counts * shown).sum(axis=1)
        variance = float(((counts**2 * shown).sum(axis=1) - right**2).sum())
        named = float((counts.sum(axis=1) * shown.sum(axis=1)).sum())
        figures = Figures(float(right.sum()), named, float((counts * pivotal).sum()))
        return figures, math.sqrt(max(variance, 0.0))


@dataclass(frozen=True, eq=False)
class View:
    """One table, or several that are linked by elimination, as some people see them: (labels, people) or (people,)."""

    stays: Floats
    """z_j = prod_t s_t(n_tj): the label shows in all of the tables."""
    goes: Floats
    """1 - z_j, added up so that nothing cancels."""
    less: Floats
    """prod_t s_t(n_tk - 1) of the people's own label."""
    pivotal: Floats
    """z_k less that: sum_t prod_{u<t} s_u(n_uk - 1) d_t(n_tk) prod_{u>t} s_u(n_uk)."""
    present: Any = None
    """Whether there is anybody of the label in the cell, of one table."""

    def link(self, other: View) -> View:
        return View(
            self.stays * other.stays,
            self.goes + self.stays * other.goes,
            self.less * other.less,
            self.pivotal * (other.less + other.pivotal) + self.less * other.pivotal,
        )

    def eliminate(self, level: Integers) -> list[Floats]:
        """Of each person: right = z_k prod_{j != k} (1 - z_j), named (the same added up over labels) and caused."""
        others = product_of_others(self.goes)
        alone = self.stays * others
        return [own_of(alone, level), alone.sum(axis=0), self.pivotal * own_of(others, level)]


def product_of_others(factors: Floats) -> Floats:
    """The product over all other rows, for each row: (labels, people). Nothing is divided."""
    return factors[::-1] if len(factors) == 2 else each_alone(factors, np.ones_like(factors))


def own_of(numbers: Any, level: Integers) -> Any:
    """The entry of each person's own label, from (labels, people)."""
    return numbers[level, np.arange(len(level))]


def find_laws(joint: JointCells, noises: Sequence[Noise], thresholds: Sequence[float]) -> list[TableLaw]:
    return [TableLaw.of(*each) for each in zip(joint.tables, noises, thresholds, strict=True)]


@dataclass(frozen=True)
class Linked:
    """Mean figures of each rule by all tables; of elimination, by collections of tables; and people without noise."""

    rules: Mapping[str, Figures]
    collections: Mapping[tuple[int, ...], Figures]
    deviations: tuple[float, ...]
    """Of each table alone."""
    raw: Mapping[str, int]
    matters: Any
    """(rows,): which rows of people a simulated release has to be read for; the others are as good as never named."""


def link_tables(
    joint: JointCells, laws: Sequence[TableLaw], collections: Sequence[tuple[int, ...]] | None = None
) -> Linked:
    """Assess both attacks in one pass over the people; elimination by each of some collections of tables.

    Each table alone, which is assessed by its cells, and all tables are always among the collections.
    """
    every = tuple(range(len(laws)))
    single: list[tuple[int, ...]] = [(table,) for table in every]
    chosen = choose_collections(len(laws)) if collections is None else collections
    linked = [tables for tables in dict.fromkeys([*chosen, every]) if len(tables) > 1]
    enough = NEGLECTED / len(joint.count)

    step = max(1, NUMBERS_AT_ONCE // joint.n_levels)

    def assess(start: int) -> tuple[Floats, Any]:
        """The figures of some rows of people, and which of them matter."""
        rows = slice(start, start + step)
        people, level = joint.count[rows].astype(np.float64), joint.level[rows].astype(np.intp)
        views = [law.see(cell[rows].astype(np.intp), level) for law, cell in zip(laws, joint.cell, strict=True)]
        figures = [_without_noise(views), _any(views, level)]
        states = dict(zip(single, views, strict=True))
        for tables in linked:
            before = states.get(tables[:-1])
            parts = [views[table] for table in tables] if before is None else [before, views[tables[-1]]]
            states[tables] = reduce(View.link, parts)
            figures.append(states[tables].eliminate(level))
        # Not added up through a linear algebra library, whose threads would compete.
        numbers = np.array([[np.einsum("i,i->", people, each) for each in rule] for rule in figures])
        return numbers, people * (figures[1][0] + figures[-1][0]) > enough

    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        try:
            parts = list(pool.map(assess, range(0, len(joint.count), step)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    raw, by_any, *by_elimination = sum((numbers for numbers, _ in parts), np.zeros((len(linked) + 2, 3))).tolist()
    alone = [law.alone() for law in laws]
    found = {tables: figures for tables, (figures, _) in zip(single, alone, strict=True)}
    found |= {tables: Figures(*numbers) for tables, numbers in zip(linked, by_elimination, strict=True)}
    return Linked(
        {"elimination": found[every], "any": Figures(*by_any)},
        found,
        tuple(deviation for _, deviation in alone),
        {"elimination": round(raw[0]), "any": round(raw[1])},
        np.concatenate([matters for _, matters in parts]),
    )


def choose_collections(tables: int) -> list[tuple[int, ...]]:
    """Every collection of tables, smaller ones first; of many tables, each, all but one, and all."""
    every = range(tables)
    if tables <= MOST_SUBSETS:
        return [some for size in range(1, tables + 1) for some in combinations(every, size)]
    return [*((table,) for table in every), *combinations(every, tables - 1), tuple(every)]


def _any(views: Sequence[View], level: Integers) -> list[Floats]:
    """Of each person: right = 1 - prod_t (1 - u_tk), labels named, and caused: the same telescope over the tables."""
    shown: Any = 0.0
    hidden, pivotal = np.ones(len(level)), np.zeros(len(level))
    for table in views:
        others = product_of_others(table.goes)
        alone, quiet = table.stays * others, own_of(others, level)
        shown = shown + (1.0 - shown) * alone
        pivotal = pivotal * (1.0 - own_of(alone, level)) + hidden * table.pivotal * quiet
        hidden = hidden * (1.0 - table.less * quiet)
    return [own_of(shown, level), shown.sum(axis=0), pivotal]


def _without_noise(views: Sequence[View]) -> list[Any]:
    """Of each person: whether their cells have only their label in common; whether one cell has only their label; 0."""
    common = np.logical_and.reduce([table.present for table in views]).sum(axis=0) == 1
    somewhere = np.logical_or.reduce([table.present.sum(axis=0) == 1 for table in views])
    return [common, somewhere, np.zeros(len(common))]
