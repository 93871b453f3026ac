"""Who is given away by several tables together: three rules, exact for independent noise of any kind.

Tables t = 1..r; a person with label k lies in one cell of each, with n_tj people of label j. s_t(n) is the probability
that a count n survives the noise of table t, q_t = 1 - s_t, and u_tk = s_t(n_tk) prod_{j != k} q_t(n_tj) that the cell
shows k alone. In a table that he is not in, everything survives: s = 1.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from cellrisk.counts.joint import JointCells, TableCells
from cellrisk.noise.distributions import InfiniteNoise, Noise
from cellrisk.risk.measures.exactly_one import each_alone
from cellrisk.system.arrays import Floats, Integers

RULES = ("elimination", "any", "unanimous")
NUMBERS_AT_ONCE = 1 << 15
"""Numbers of one kind that are worked on at once: as many as stay near the processor."""
LABELS_LISTED, LISTED = 16, 1 << 19
"""Labels, and counts of a table, up to which what becomes of its cells is listed cell by cell."""
LARGEST_LOOKUP = 1 << 22
"""Counts up to here are looked up in a list of all of them."""
THREADS = min(os.cpu_count() or 1, 4)
Part = TypeVar("Part")
Found = TypeVar("Found")
MOST_SUBSETS = 6
"""Tables up to which every sub-collection of them is looked at."""


@dataclass(frozen=True)
class Figures:
    """What one rule gives away on average, in people."""

    right: float
    named: float
    caused: float

    def __add__(self, other: Figures) -> Figures:
        return Figures(self.right + other.right, self.named + other.named, self.caused + other.caused)


NOBODY = Figures(0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class OwnLabel:
    """What becomes of the people's own label k and of the others, with the people's record and without it."""

    less: Floats
    """s(n_k - 1): how likely the label survives with one person less."""
    first: Floats
    """d(n_k) = s(n_k) - s(n_k - 1)."""
    shown: Floats
    """d(n_k) prod_{j != k} q(n_j): the cell shows k alone only because of one record."""
    still: Floats
    """s(n_k - 1) prod_{j != k} q(n_j): it does without that record."""
    beside: Floats
    """d(n_k) times the probability that exactly one other label survives."""

    def at(self, cells: Integers) -> OwnLabel:
        return OwnLabel(*(take(law, cells) for law in (self.less, self.first, self.shown, self.still, self.beside)))


@dataclass(frozen=True, eq=False)
class CellLaws:
    """What becomes of the counts of some cells: a list entry for each label, an array entry for each cell."""

    vanish: list[Floats]
    survive: list[Floats]
    present: list[Any]
    """Whether there is anybody of the label; all are in a table that the people are not in."""
    alone: list[Floats]
    """u_j: the cell shows j alone."""
    none: Floats
    """u_0: it shows no label alone."""

    def at(self, cells: Integers) -> CellLaws:
        vanish, survive, present, alone = (
            [take(law, cells) for law in each] for each in (self.vanish, self.survive, self.present, self.alone)
        )
        return CellLaws(vanish, survive, present, alone, take(self.none, cells))


@dataclass(frozen=True, eq=False)
class Lookup:
    """What becomes of every count of one table. The last row of ``places`` stands for people who are not in it."""

    places: Integers
    """(cells + 1, labels): where each count is in the lists below."""
    vanish: Floats
    survive: Floats
    less: Floats
    """s(n - 1): how likely the count survives with one person less."""
    first: Floats
    """d(n) = s(n) - s(n - 1), as the probability that n is released as the smallest value there is."""
    present: Any
    """Whether the count is above 0."""

    @property
    def few(self) -> bool:
        """Whether cells and labels are so few that what becomes of them is listed, and people look it up."""
        return self.places.shape[1] <= LABELS_LISTED and self.places.size <= LISTED

    def at(self, cells: Integers) -> Integers:
        """(labels, people): where the counts of some people's cells are; of -1, who are not in the table."""
        return np.ascontiguousarray(np.take(self.places, cells, axis=0, mode="wrap").T)

    @cached_property
    def laws(self) -> CellLaws:
        """Of every cell of the table, and of none of them."""
        return self.find_laws(np.ascontiguousarray(self.places.T))

    @cached_property
    def own(self) -> dict[int, OwnLabel]:
        """What becomes of each label as people's own; filled when a label is first asked for."""
        return {}

    def find_laws(self, places: Integers) -> CellLaws:
        vanish, survive = ([law[place] for place in places] for law in (self.vanish, self.survive))
        alone = each_alone(vanish, survive)
        none = np.maximum(1.0 - sum(alone), 0.0)
        return CellLaws(vanish, survive, [self.present[place] for place in places], alone, none)

    def find_own(self, laws: CellLaws, places: Integers, label: int) -> OwnLabel:
        rest = [other for other in range(len(places)) if other != label]
        quiet = multiply([laws.vanish[other] for other in rest])
        lone = each_alone([laws.vanish[other] for other in rest], [laws.survive[other] for other in rest])
        less, first = self.less[places[label]], self.first[places[label]]
        return OwnLabel(less, first, first * quiet, less * quiet, first * np.asarray(sum(lone)))

    def eliminate(self, cells: Integers, label: int) -> Eliminated:
        """The table as people of one label see it who eliminate."""
        places = self.at(cells)
        vanish, survive = ([take(law, place) for place in places] for law in (self.vanish, self.survive))
        return Eliminated(survive, vanish, take(self.less, places[label]), take(self.first, places[label]), label)

    def see(self, cells: Integers, label: int) -> SeenTable:
        """The table as people of one label see it, whose cells these are."""
        if self.few:
            own = self.own.get(label)
            if own is None:
                own = self.own[label] = self.find_own(self.laws, self.places.T, label)
            return SeenTable(self.laws.at(cells), own.at(cells), label)
        places = self.at(cells)
        laws = self.find_laws(places)
        return SeenTable(laws, self.find_own(laws, places, label), label)

    @staticmethod
    def of(table: TableCells, noise: Noise, threshold: float) -> Lookup:
        counts = table.counts
        largest = int(counts.max())
        if largest < LARGEST_LOOKUP:
            values, places = np.arange(largest + 1), counts
        else:
            values, places = np.unique(counts, return_inverse=True)
            places = places.reshape(counts.shape)
        numbers = values.astype(np.float64)
        return Lookup.with_outside(
            places,
            noise.p_zero(numbers, threshold),
            noise.p_positive(numbers, threshold),
            noise.p_positive(numbers - 1.0, threshold),
            noise.p_pivotal(numbers, threshold),
            numbers > 0,
        )

    @staticmethod
    def with_outside(
        places: Integers, vanish: Floats, survive: Floats, less: Floats, first: Floats, present: Any
    ) -> Lookup:
        """Adds to the lists of a table an entry for people who are not in it, for whom everything survives."""
        outside = np.full((1, places.shape[1]), len(vanish), places.dtype)
        none, all_ = np.zeros(1), np.ones(1)
        return Lookup(
            np.concatenate([places, outside]),
            np.concatenate([vanish, none]),
            np.concatenate([survive, all_]),
            np.concatenate([less, all_]),
            np.concatenate([first, none]),
            np.concatenate([present, [True]]),
        )


@dataclass(frozen=True, eq=False)
class SeenTable:
    """One table as some people of one label see it: a list entry for each label, an array entry for each of them."""

    laws: CellLaws
    own: OwnLabel
    label: int

    @property
    def eliminated(self) -> Eliminated:
        return Eliminated(self.laws.survive, self.laws.vanish, self.own.less, self.own.first, self.label)


def take(law: Any, cells: Integers) -> Any:
    """The entries of some cells; the last one of -1."""
    return law.take(cells, mode="wrap")


def multiply(factors: Sequence[Floats]) -> Floats:
    return reduce(operator.mul, factors)


def add_up(people: Floats, chance: Any) -> float:
    """The sum of the products. Not through a linear algebra library, whose threads would be in the way of ours."""
    return float(np.einsum("i,i->", people, chance))


def look_up(joint: JointCells, noises: Sequence[Noise], thresholds: Sequence[float]) -> list[Lookup]:
    return [
        Lookup.of(table, noise, threshold)
        for table, noise, threshold in zip(joint.tables, noises, thresholds, strict=True)
    ]


def split_people(joint: JointCells) -> Iterator[tuple[int, Integers]]:
    """The rows of people, some of one label at a time."""
    level = joint.level.astype(np.int16) if joint.n_levels < 1 << 15 else joint.level  # sorted by counting
    order = np.argsort(level, kind="stable")
    ends = np.searchsorted(level[order], np.arange(joint.n_levels + 1))
    step = max(1, NUMBERS_AT_ONCE // joint.n_levels)
    for label in range(joint.n_levels):
        for start in range(ends[label], ends[label + 1], step):
            yield label, order[start : min(start + step, ends[label + 1])]


def in_threads(work: Callable[[Part], Found], parts: Iterable[Part]) -> Iterator[Found]:
    """What a function finds in each part, in the order of the parts. Numpy computes in several threads at once."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        try:
            yield from pool.map(work, parts)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class CountedPeople:
    """Mean figures of each rule, by all tables together; of elimination, by collections of tables; and raw people."""

    rules: dict[str, Figures]
    collections: dict[tuple[int, ...], Figures]
    raw: dict[str, int]

    def __add__(self, other: CountedPeople) -> CountedPeople:
        return CountedPeople(
            {rule: own + other.rules[rule] for rule, own in self.rules.items()},
            {some: own + other.collections[some] for some, own in self.collections.items()},
            {rule: own + other.raw[rule] for rule, own in self.raw.items()},
        )


def count_given_away(joint: JointCells, lookups: Sequence[Lookup]) -> CountedPeople:
    """Who is given away on average, in one pass over the people."""
    chosen = choose_collections(len(lookups))
    every = tuple(range(len(lookups)))
    several = [some for some in chosen if len(some) > 1 or some == every]

    def count(part: tuple[int, Integers]) -> CountedPeople:
        label, rows = part
        people = joint.count[rows].astype(np.float64)
        seen = [lookup.see(own[rows].astype(np.intp), label) for lookup, own in zip(lookups, joint.cell, strict=True)]
        collections = eliminate_by(several, [each.eliminated for each in seen], people)
        rules = {
            "elimination": collections[every],
            "any": find_any(seen, people),
            "unanimous": find_unanimous(seen, people),
        }
        return CountedPeople(rules, collections, find_raw(seen, people))

    nobody = CountedPeople(dict.fromkeys(RULES, NOBODY), dict.fromkeys(several, NOBODY), dict.fromkeys(RULES, 0))
    found = sum(in_threads(count, split_people(joint)), nobody)
    # By one table alone nobody needs to be followed through the others: its cells tell.
    collections = found.collections | {
        (place,): count_alone(joint.tables[place], lookup) for place, lookup in enumerate(lookups)
    }
    return CountedPeople(found.rules, {some: collections[some] for some in chosen}, found.raw)


def count_eliminated(
    joint: JointCells, lookups: Sequence[Lookup], place: int, others: Sequence[Lookup]
) -> list[Figures]:
    """Elimination by all tables together, for each of some lookups in the place of one table's own."""
    rest = [table for table in range(len(lookups)) if table != place]

    def count(part: tuple[int, Integers]) -> list[Figures]:
        label, rows = part
        people = joint.count[rows].astype(np.float64)
        seen = [lookups[table].eliminate(joint.cell[table][rows].astype(np.intp), label) for table in rest]
        own = [lookup.eliminate(joint.cell[place][rows].astype(np.intp), label) for lookup in others]
        state = reduce(Eliminated.add, seen) if seen else None
        return [(each if state is None else state.add(each)).figures(people) for each in own]

    total = [NOBODY] * len(others)
    for some in in_threads(count, split_people(joint)):
        total = [one + more for one, more in zip(total, some, strict=True)]
    return total


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Elimination by one table or several, for some people of one label; `add` puts two collections together."""

    stays: list[Floats]
    """z_j = prod_t s_t(n_tj) of each label."""
    goes: list[Floats]
    """1 - z_j, added up so that nothing cancels."""
    less: Floats
    """prod_t s_t(n_tk - 1) of the people's own label."""
    pivotal: Floats
    """z_k less that: sum_t prod_{u<t} s_u(n_uk - 1) d_t(n_tk) prod_{u>t} s_u(n_uk)."""
    label: int

    def add(self, other: Eliminated) -> Eliminated:
        return Eliminated(
            [z * s for z, s in zip(self.stays, other.stays, strict=True)],
            [gone + z * q for gone, z, q in zip(self.goes, self.stays, other.goes, strict=True)],
            self.less * other.less,
            self.pivotal * other.stays[self.label] + self.less * other.pivotal,
            self.label,
        )

    def figures(self, people: Floats) -> Figures:
        """right = z_k prod_{j != k} (1 - z_j); named: the same for every label, added up."""
        alone = each_alone(self.goes, self.stays)
        others = multiply([gone for place, gone in enumerate(self.goes) if place != self.label])
        return Figures(
            add_up(people, alone[self.label]),
            sum(add_up(people, each) for each in alone),
            add_up(people, self.pivotal * others),
        )


def find_any(seen: Sequence[SeenTable], people: Floats) -> Figures:
    """Shown alone somewhere: 1 - prod_t (1 - u_tk)."""
    label = seen[0].label
    shown = []
    for other in range(len(seen[0].laws.alone)):
        found = seen[0].laws.alone[other]
        for table in seen[1:]:
            found = found + (1.0 - found) * table.laws.alone[other]
        shown.append(found)
    hidden, pivotal = 1.0 - seen[0].own.still, seen[0].own.shown
    for table in seen[1:]:
        pivotal = pivotal * (1.0 - table.laws.alone[label]) + hidden * table.own.shown
        hidden = hidden * (1.0 - table.own.still)
    return Figures(add_up(people, shown[label]), sum(add_up(people, some) for some in shown), add_up(people, pivotal))


@dataclass(frozen=True, eq=False)
class Unanimous:
    """How a label stands after some tables: no label was shown alone, or this one alone at least once."""

    none: Floats
    shown: Floats

    @staticmethod
    def start(rows: int) -> Unanimous:
        return Unanimous(np.ones(rows), np.zeros(rows))

    def add(self, none: Floats, own: Floats) -> Unanimous:
        return Unanimous(self.none * none, self.shown * (none + own) + self.none * own)


def find_unanimous(seen: Sequence[SeenTable], people: Floats) -> Figures:
    """Shown alone somewhere, and no other label is: prod_t (u_tk + u_t0) - prod_t u_t0.

    With a record less, in table t alone: others are shown alone more often by d O, O = sum_{j != k} s_j prod q of the
    rest, and none by d (Q - O), Q = prod_{j != k} q_j. That takes away d ((X - Y) O + Y Q), where X and Y are the two
    products over the other tables.
    """
    label, rows = seen[0].label, len(people)
    after = [Unanimous.start(rows)]
    for table in reversed(seen[1:]):
        after.append(after[-1].add(table.laws.none, table.laws.alone[label]))
    totals = []
    for other in range(len(seen[0].laws.alone)):
        if other == label:
            state = after[-1].add(seen[0].laws.none, seen[0].laws.alone[label])
        else:
            state = Unanimous.start(rows)
            for table in seen:
                state = state.add(table.laws.none, table.laws.alone[other])
        totals.append(state.shown)
    before, pivotal = Unanimous.start(rows), np.zeros(rows)
    for table, rest in zip(seen, reversed(after), strict=True):
        own = table.own
        both = before.none * rest.none
        shown = before.shown * (rest.none + rest.shown) + before.none * rest.shown
        pivotal = pivotal + shown * own.beside + both * own.shown
        before = before.add(np.maximum(table.laws.none + own.shown - own.beside, 0.0), own.still)
    return Figures(add_up(people, totals[label]), sum(add_up(people, some) for some in totals), add_up(people, pivotal))


def choose_collections(tables: int) -> list[tuple[int, ...]]:
    """Every collection of some tables, smaller ones first; of many tables, each, all but one, and all."""
    every = range(tables)
    if tables <= MOST_SUBSETS:
        return [some for size in range(1, tables + 1) for some in combinations(every, size)]
    return [*((table,) for table in every), *combinations(every, tables - 1), tuple(every)]


def eliminate_by(
    chosen: Sequence[tuple[int, ...]], seen: Sequence[Eliminated], people: Floats
) -> dict[tuple[int, ...], Figures]:
    """Elimination, the one label that vanishes in none of his cells, by each collection of tables."""
    found = {}
    states: dict[tuple[int, ...], Eliminated] = {}
    for some in chosen:
        before = states.get(some[:-1])
        parts = [seen[table] for table in some] if before is None else [before, seen[some[-1]]]
        state = reduce(Eliminated.add, parts)
        if some[-1] < len(seen) - 1 and len(seen) <= MOST_SUBSETS:  # a larger collection begins with this one
            states[some] = state
        found[some] = state.figures(people)
    return found


def find_raw(seen: Sequence[SeenTable], people: Floats) -> dict[str, int]:
    """People whom the tables would give away without noise: whose cells have only their label in common, or one of
    whose cells has only their label."""
    label = seen[0].label
    common = np.zeros(len(people), bool)
    somewhere = np.zeros(len(people), bool)
    for other in range(len(seen[0].laws.present)):
        if other != label:
            common |= np.logical_and.reduce([each.laws.present[other] for each in seen])
    for each in seen:
        others = [present for other, present in enumerate(each.laws.present) if other != label]
        somewhere |= ~np.logical_or.reduce(others)
    shown = round(add_up(people, somewhere))
    return {"elimination": round(add_up(people, ~common)), "any": shown, "unanimous": shown}


def count_chance(joint: JointCells, noises: Sequence[Noise], thresholds: Sequence[float]) -> dict[str, float]:
    """What each rule gets right where noise has grown as far as it can: people guessed by chance.

    With r tables whose noise has no bound and K labels: elimination 2^-r (1 - 2^-r)^(K-1), any 1 - (1 - 2^-K)^r,
    unanimous (1 - (K-1) 2^-K)^r - (1 - K 2^-K)^r; r is the number of tables that a person is in.
    """
    if not all(isinstance(noise, InfiniteNoise) for noise in noises):
        found = count_given_away(joint, look_up(joint, noises, thresholds)).rules
        return {rule: figures.right for rule, figures in found.items()}
    people = np.bincount((joint.cell >= 0).sum(axis=0), joint.count, minlength=len(noises) + 1)
    r, k = np.arange(len(people), dtype=np.float64), joint.n_levels
    half = 0.5**r
    one = 0.5**k
    return {
        "elimination": float(people @ (half * (1.0 - half) ** (k - 1))),
        "any": float(people @ -np.expm1(r * np.log1p(-one))),
        "unanimous": float(people @ ((1.0 - (k - 1) * one) ** r - (1.0 - k * one) ** r)),
    }


def count_alone(table: TableCells, lookup: Lookup) -> Figures:
    """One table by itself, where the three rules are one: the cell shows a label alone."""
    places = np.ascontiguousarray(lookup.places[:-1].T)
    laws = lookup.find_laws(places)
    pivotal = each_alone(laws.vanish, [lookup.first[place] for place in places])
    counts = table.counts.T.astype(np.float64)
    size = counts.sum(axis=0)
    return Figures(
        sum(add_up(own, shown) for own, shown in zip(counts, laws.alone, strict=True)),
        sum(add_up(size, shown) for shown in laws.alone),
        sum(add_up(own, shown) for own, shown in zip(counts, pivotal, strict=True)),
    )
