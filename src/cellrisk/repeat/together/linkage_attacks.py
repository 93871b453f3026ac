"""Two attacks that link several tables about the same people: exact means for independent noise of any kind.

Tables t = 1..r; a person with label k lies in one cell of each, with n_tj people of label j. s_t(n) is the probability
that a count n is released above zero, q_t = 1 - s_t, and d_t(n) = s_t(n) - s_t(n - 1). In a table that the person is
not in, everything shows: s = 1.

- elimination takes the one label that is above zero in all of the person's cells: z_k prod_{j != k} (1 - z_j) with
  z_j = prod_t s_t(n_tj);
- any takes a label that some table shows alone: 1 - prod_t (1 - u_tk) with u_tk = s_t(n_tk) prod_{j != k} q_t(n_tj).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from cellrisk.counts.joint import JointCells, TableCells
from cellrisk.noise.distributions import Noise
from cellrisk.system.arrays import Floats, Integers

RULES = ("elimination", "any")
NUMBERS_AT_ONCE = 1 << 15
"""Numbers of one kind that are worked on at once: as many as stay in the processor's cache."""
LARGEST_LOOKUP = 1 << 22
"""Counts up to this are looked up in a list of all of them."""
THREADS = min(os.cpu_count() or 1, 4)
MOST_SUBSETS = 6
"""Tables up to which every sub-collection of them is assessed."""
Part = TypeVar("Part")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Figures:
    """What one attack reveals on average, in people."""

    right: float
    named: float
    caused: float

    @staticmethod
    def of(numbers: Floats) -> Figures:
        return Figures(*(float(number) for number in numbers))


@dataclass(frozen=True, eq=False)
class TableLaw:
    """The probabilities of one table's counts. The last row of ``places`` is for people who are not in the table."""

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
        counts = table.counts
        if int(counts.max()) < LARGEST_LOOKUP:
            values, places = np.arange(int(counts.max()) + 1), counts
        else:
            values, places = np.unique(counts, return_inverse=True)
            places = places.reshape(counts.shape)
        numbers = values.astype(np.float64)
        outside = np.full((1, counts.shape[1]), len(values), places.dtype)
        return TableLaw(
            np.concatenate([places, outside]),
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

    def eliminate(self, level: Integers, people: Floats) -> Floats:
        """(3,): right = z_k prod_{j != k} (1 - z_j), named (the same for every label, added up) and caused."""
        others = product_of_others(self.goes)
        alone = self.stays * others
        return add_up(people, own_of(alone, level), alone.sum(axis=0), self.pivotal * own_of(others, level))


def product_of_others(factors: Floats) -> Floats:
    """The product over all other rows, for each row: (labels, people). Nothing is divided.

    >>> product_of_others(np.array([[2.0], [3.0], [5.0]])).ravel().tolist()
    [15.0, 10.0, 6.0]
    """
    if len(factors) == 2:
        return factors[::-1]
    found = np.ones_like(factors)
    found[1:] = np.cumprod(factors[:-1], axis=0)
    found[:-1] *= np.cumprod(factors[:0:-1], axis=0)[::-1]
    return found


def own_of(numbers: Any, level: Integers) -> Any:
    """The entry of each person's own label, from (labels, people)."""
    return numbers[level, np.arange(len(level))]


def add_up(people: Floats, *probabilities: Floats) -> Floats:
    """The expected number of people of each. Not through a linear algebra library, whose threads would compete."""
    return np.array([np.einsum("i,i->", people, each) for each in probabilities])


def find_laws(joint: JointCells, noises: Sequence[Noise], thresholds: Sequence[float]) -> list[TableLaw]:
    return [TableLaw.of(*each) for each in zip(joint.tables, noises, thresholds, strict=True)]


def in_threads(work: Callable[[Part], Found], parts: Iterable[Part]) -> Iterator[Found]:
    """The results of a function for each part, in the order of the parts."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        try:
            yield from pool.map(work, parts)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def split_rows(joint: JointCells) -> Iterator[slice]:
    """The rows of people, a few at a time."""
    step = max(1, NUMBERS_AT_ONCE // joint.n_levels)
    return (slice(start, start + step) for start in range(0, len(joint.count), step))


@dataclass(frozen=True)
class Linked:
    """Mean figures of each rule by all tables; of elimination, by collections of tables; and people without noise."""

    rules: Mapping[str, Figures]
    collections: Mapping[tuple[int, ...], Figures]
    raw: Mapping[str, int]


def link_tables(
    joint: JointCells, laws: Sequence[TableLaw], collections: Sequence[tuple[int, ...]] | None = None
) -> Linked:
    """Assess both attacks in one pass over the people; elimination by each of some collections of tables."""
    every = tuple(range(len(laws)))
    chosen = choose_collections(len(laws)) if collections is None else list(collections)

    def assess(rows: slice) -> Floats:
        people, level = joint.count[rows].astype(np.float64), joint.level[rows].astype(np.intp)
        seen = [law.see(cell[rows].astype(np.intp), level) for law, cell in zip(laws, joint.cell, strict=True)]
        found = [_any(seen, level, people), _without_noise(seen, people)]
        states: dict[tuple[int, ...], View] = {}
        for tables in chosen:
            before = states.get(tables[:-1])
            parts = [seen[table] for table in tables] if before is None else [before, seen[tables[-1]]]
            state = reduce(View.link, parts)
            if len(laws) <= MOST_SUBSETS:  # a larger collection begins with this one
                states[tables] = state
            found.append(state.eliminate(level, people))
        return np.stack(found)

    total = sum(in_threads(assess, split_rows(joint)), np.zeros((len(chosen) + 2, 3)))
    figures = {tables: Figures.of(numbers) for tables, numbers in zip(chosen, total[2:], strict=True)}
    raw = {"elimination": round(float(total[1, 0])), "any": round(float(total[1, 1]))}
    return Linked({"elimination": figures[every], "any": Figures.of(total[0])}, figures, raw)


def eliminate(joint: JointCells, laws: Sequence[TableLaw]) -> Figures:
    """Elimination by all tables together, and nothing else."""

    def assess(rows: slice) -> Floats:
        people, level = joint.count[rows].astype(np.float64), joint.level[rows].astype(np.intp)
        seen = (law.see(cell[rows].astype(np.intp), level) for law, cell in zip(laws, joint.cell, strict=True))
        return reduce(View.link, seen).eliminate(level, people)

    return Figures.of(sum(in_threads(assess, split_rows(joint)), np.zeros(3)))


def choose_collections(tables: int) -> list[tuple[int, ...]]:
    """Every collection of tables, smaller ones first; of many tables, each, all but one, and all."""
    every = range(tables)
    if tables <= MOST_SUBSETS:
        return [some for size in range(1, tables + 1) for some in combinations(every, size)]
    return [*((table,) for table in every), *combinations(every, tables - 1), tuple(every)]


def _any(seen: Sequence[View], level: Integers, people: Floats) -> Floats:
    """(3,): right = 1 - prod_t (1 - u_tk), labels named, and caused: the same telescope over the tables."""
    shown: Any = 0.0
    hidden, pivotal = np.ones(len(people)), np.zeros(len(people))
    for table in seen:
        others = product_of_others(table.goes)
        alone, quiet = table.stays * others, own_of(others, level)
        shown = shown + (1.0 - shown) * alone
        pivotal = pivotal * (1.0 - own_of(alone, level)) + hidden * table.pivotal * quiet
        hidden = hidden * (1.0 - table.less * quiet)
    return add_up(people, own_of(shown, level), shown.sum(axis=0), pivotal)


def _without_noise(seen: Sequence[View], people: Floats) -> Floats:
    """(3,): people whose cells have only their label in common; people of whom one cell has only their label; 0."""
    common = np.logical_and.reduce([table.present for table in seen]).sum(axis=0) == 1
    somewhere = np.logical_or.reduce([table.present.sum(axis=0) == 1 for table in seen])
    return add_up(people, common, somewhere, np.zeros(len(people)))
