"""Two attacks that link several tables about the same people: exact means for independent noise of any kind.

Tables t = 1..r; a person with label k lies in one cell of each, with n_tj people of label j. s_t(n) is the probability
that a count n is released above zero, q_t = 1 - s_t, and d_t(n) = s_t(n) - s_t(n - 1). In a table that the person is
not in, everything shows: s = 1.

- elimination takes the one label that is above zero in all of the person's cells: z_k prod_{j != k} (1 - z_j) with
  z_j = prod_t s_t(n_tj);
- any takes a label that some table shows alone: 1 - prod_t (1 - u_tk) with u_tk = s_t(n_tk) prod_{j != k} q_t(n_tj).

`Simulator` draws releases of all tables; each attack reads the same releases. The numbers of people over releases give
standard deviations, intervals, and means where no closed form is used, each with its standard error.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from operator import add, and_, or_
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells, TableCells
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.measures.local import each_alone
from cellrisk.system.arrays import Floats, Integers

RULES = ("elimination", "any")
NUMBERS_AT_ONCE = 1 << 15
"""Numbers of one kind that are worked on at once: as many as stay in the processor's cache."""
THREADS = min(os.cpu_count() or 1, 4)
MOST_SUBSETS = 6
"""Tables up to which every sub-collection of them is assessed; of more, each, all but one, and all."""
NEGLECTED = 1e-6
"""People who are named correctly too rarely to matter in a simulated release, all of them together, on average."""
MOST_NUMBERS = 30_000_000
"""Counts of people's cells that are read in all simulated releases: some tenths of a second."""
FEWEST_DRAWS, MOST_DRAWS = 39, 500
"""With 39 releases, the smallest and the largest number are the ends of a 95% interval."""
DRAWN_AT_ONCE, ROWS_AT_ONCE = 1 << 18, 1 << 20
INSIDE = 0.95
BITS = np.array([number.bit_count() for number in range(256)], np.uint8)
"""How many labels a byte of labels holds."""


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
    sizes = range(1, len(laws) + 1) if len(laws) <= MOST_SUBSETS else (1, len(laws) - 1, len(laws))
    usual = [some for size in sizes for some in combinations(every, size)]
    chosen = usual if collections is None else collections
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


def find_spread(numbers: Floats, mean: float, people: int) -> dict[str, Any]:
    """How simulated numbers of people, whose mean is known, vary over releases.

    The standard error of the deviation is that of the variance, from the fourth moment. If all numbers are alike, it is
    the largest deviation that the mean allows: a number from 0 to n has a variance of at most n times its mean. The
    interval is from the k-th number from either end: of n + 1 independent numbers, the last is as likely to fall into
    each gap of the others.
    """
    deviation, error = float(np.std(numbers, ddof=1)), math.sqrt(mean * people)
    if deviation > 0:
        fourth = float(np.mean((numbers - numbers.mean()) ** 4))
        error = math.sqrt(max(fourth - deviation**4, 0.0) / len(numbers)) / (2.0 * deviation)
    outside = int(0.5 * (1.0 - INSIDE) * (len(numbers) + 1))
    ordered = np.sort(numbers)
    return {"sd": deviation, "sd_error": error, "low": round(ordered[outside - 1]), "high": round(ordered[-outside])}


@dataclass(frozen=True, eq=False)
class Simulator:
    """Releases of all tables of a set, and the linkage attacks on them. Labels are the bits of one byte or several."""

    joint: JointCells
    mechanisms: Sequence[Mechanism]
    rows: Integers | None = None
    """The rows of people whom the attacks on several tables are read for; by default all of them."""

    @cached_property
    def truth(self) -> list[Floats]:
        """(labels, cells) of each table."""
        return [table.counts.T.astype(np.float64) for table in self.joint.tables]

    @cached_property
    def people(self) -> list[tuple[Floats, list[Any], list[Any]]]:
        """The people, their own label as the bits of each byte, and their cell in each table (-1: none); a million rows
        at a time."""
        joint, labels = self.joint, range((self.joint.n_levels + 7) // 8)
        rows: Any = slice(None) if self.rows is None else self.rows
        level, count = joint.level[rows].astype(np.intp), joint.count[rows].astype(np.float64)
        own = [np.where(level // 8 == byte, 1 << level % 8, 0).astype(np.uint8) for byte in labels]
        parts = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(count), ROWS_AT_ONCE)]
        cells = joint.cell[:, rows]
        return [(count[part], [byte[part] for byte in own], list(cells[:, part])) for part in parts]

    def count_draws(self, most: int = MOST_DRAWS, share: float = 1.0) -> int:
        """Return how many releases can be read in some tenths of a second."""
        rows = sum(len(count) for count, _, _ in self.people)
        work = len(self.truth) * rows + sum(counts.size for counts in self.truth)
        return int(min(max(share * MOST_NUMBERS / work, FEWEST_DRAWS), most))

    def draw(self, draws: int, seed: int) -> Iterator[list[Floats]]:
        """Released counts before any is set to 0, some releases at a time: (releases, labels, counts) of each table."""
        generator = np.random.default_rng(seed)
        for drawn in self._step(draws):
            yield [
                counts + mechanism.noise.sample(generator, (drawn, *counts.shape))
                for counts, mechanism in zip(self.truth, self.mechanisms, strict=True)
            ]

    def show(self, draws: int, seed: int) -> Iterator[list[Any]]:
        """Which counts of such releases show, by their probabilities alone: no noise is drawn."""
        generator = np.random.default_rng(seed)
        chances = [
            mechanism.noise.p_positive(counts, mechanism.threshold)
            for counts, mechanism in zip(self.truth, self.mechanisms, strict=True)
        ]
        for drawn in self._step(draws):
            yield [generator.random((drawn, *chance.shape)) < chance for chance in chances]

    def _step(self, draws: int) -> Iterator[int]:
        """How many releases are drawn at a time."""
        step = max(1, DRAWN_AT_ONCE // max(len(self.joint.count), *(counts.size for counts in self.truth)))
        yield from (min(step, draws - start) for start in range(0, draws, step))

    def compare(self, released: Sequence[Floats], tie: float = 0.0) -> tuple[list[Any], list[Any]]:
        """Which of released counts show, and which still would if they were less by 1."""
        limits = [mechanism.threshold - tie for mechanism in self.mechanisms]
        shown, rest = (
            [counts > limit + less for counts, limit in zip(released, limits, strict=True)] for less in (0.0, 1.0)
        )
        return shown, rest

    def read(self, shown: Sequence[Any], rest: Sequence[Any] = ()) -> Floats:
        """(releases, ways, 1 or 3): people named correctly; with ``rest`` also those named, and because of their own
        records. The ways are elimination, any, and each table alone.

        Without the own record the person's own counts are less by 1, so of those named correctly, those still are whose
        own label is still shown.
        """
        alone = [each & (each.sum(axis=1, keepdims=True) == 1) for each in shown]
        still = [each & less for each, less in zip(alone, rest, strict=True)] if rest else []
        by_cell = [_count_cells(*each) for each in zip(self.truth, alone, still or [None] * len(alone), strict=True)]
        views = [
            [_pack(each, outside) for each in counts]
            for counts, outside in ((shown, 255), (alone, 0), (rest, 255), (still, 0))
        ]
        by_row = np.zeros((len(shown[0]), 2, by_cell[0].shape[1]))
        for people, own, cells in self.people:
            by_row += _count_rows(people, own, cells, *views)
        return np.concatenate([by_row, np.stack(by_cell, axis=1)], axis=1)


def _count_cells(counts: Floats, alone: Any, still: Any) -> Floats:
    """(releases, 1 or 3): what one table reveals by itself, by its cells."""

    def count(chosen: Any, people: Floats) -> Floats:
        return np.asarray(chosen.reshape(len(chosen), -1).astype(np.float64) @ people.ravel())

    right = count(alone, counts)
    if still is None:
        return right[:, None]
    named = count(alone.any(axis=1), counts.sum(axis=0))
    return np.stack([right, named, right - count(still, counts)], axis=1)


def _pack(labels: Any, outside: int) -> Any:
    """(releases, bytes, counts + 1): labels as bits; the last entry is for people who are not in the table."""
    packed = np.packbits(labels, axis=1, bitorder="little")
    return np.concatenate([packed, np.full((*packed.shape[:2], 1), outside, np.uint8)], axis=2)


def _count_rows(
    people: Floats, own: list[Any], cells: list[Any], shown: Any, alone: Any, rest: Any, still: Any
) -> Floats:
    """(releases, 2, 1 or 3): elimination and any, for everybody. ``rest``, ``still``: without the own record."""

    def link(views: Any, how: Any) -> list[Any]:
        """The labels that are in all tables, or in any, as bytes: (releases, rows)."""
        return [
            reduce(
                how, (view[:, byte].take(cell, axis=1, mode="wrap") for view, cell in zip(views, cells, strict=True))
            )
            for byte in range(len(own))
        ]

    def hold(labels: list[Any]) -> Any:
        return reduce(or_, [(byte & mine) > 0 for byte, mine in zip(labels, own, strict=True)])

    def count(chosen: Any) -> Floats:
        return np.asarray(chosen.astype(np.float64) @ people)

    left, named = link(shown, and_), link(alone, or_)
    right = [reduce(and_, [byte == mine for byte, mine in zip(left, own, strict=True)]), hold(named)]
    if not rest:
        return np.stack([count(each) for each in right], axis=1)[..., None]
    pivotal = [right[0] & ~hold(link(rest, and_)), right[1] & ~hold(link(still, or_))]
    labels = [reduce(add, [BITS.take(byte) for byte in each]) for each in (left, named)]
    numbers = [right, [labels[0] == 1, labels[1]], pivotal]
    return np.stack([np.stack([count(each) for each in rule], axis=1) for rule in numbers], axis=2)


def control(numbers: Floats, others: Floats, mean: float) -> tuple[float, float]:
    """The mean of simulated numbers given other numbers of the same releases, whose mean is known; its standard error.

    This is a control variate: what both numbers share does not add to the error. The error is never below what is left
    of the difference between the others and their known mean, so rare events that no release showed are in it.
    """
    spread = float(np.var(others))
    slope = float(np.mean((numbers - numbers.mean()) * (others - others.mean()))) / spread if spread > 0 else 0.0
    rest = numbers - slope * others
    error = float(np.std(rest, ddof=1)) / math.sqrt(len(rest))
    missed = abs(1.0 - slope) * abs(float(others.mean()) - mean)
    return max(float(rest.mean()) + slope * mean, 0.0), max(error, missed)
