"""How far the number of people given away varies from release to release: people who share a cell vary together.

A rule is sum_b c_b prod_t 1(event_tb) over the tables that a person is in. Exactly, and without going through pairs of
people,

    Var = sum_{S != {}} sum_{joint cells g of S} sum_{b,b'} A_gb A_gb' prod_{t in S} cov_t(b, b'),
    A_gb = sum over the people of g of c_b prod_{t not in S} P(event_tb).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells
from cellrisk.noise.distributions import Noise
from cellrisk.repeat.together.rules import LISTED, NUMBERS_AT_ONCE, RULES, Lookup, add_up, in_threads, multiply, take
from cellrisk.risk.measures.exactly_one import each_alone
from cellrisk.system.arrays import Floats, Integers, number_keys

MOST_LABELS = 6
"""Elimination has 2^K - 1 events: with more labels it is simulated."""
MOST_WORK = 3_000_000_000
"""Numbers that are multiplied before the deviation is simulated instead: about a minute."""
DRAWS = 400
OUTSIDE = 0.05
"""Chebyshev: a number is further than 1/sqrt(OUTSIDE) deviations from its mean with at most this probability."""


@dataclass(frozen=True)
class Spread:
    """The standard deviation of a number of people over releases."""

    deviation: float
    error: float | None = None
    """The standard error of the deviation where it was simulated; None where it is exact."""

    def interval(self, mean: float, most: int) -> tuple[int, int] | None:
        """Whole numbers between which at least 95% of releases lie, by Chebyshev's inequality; None if simulated."""
        if self.error is not None:
            return None
        reach = self.deviation / math.sqrt(OUTSIDE)
        return max(0, math.ceil(mean - reach - 1e-9)), min(most, math.floor(mean + reach + 1e-9))


class Events(ABC):
    """The events of a rule. Each has its probability in a cell, and its covariance with each other there."""

    count: int
    coefficient: Floats
    """(events, labels): how often each event counts for people of each label."""

    @abstractmethod
    def chance(self, vanish: list[Floats], survive: list[Floats]) -> list[Floats]:
        """P(event) in each of some cells; a list entry for each label, and then for each event."""

    @abstractmethod
    def covariance(self, chance: list[Floats], first: int, second: int) -> Floats | None:
        """Of two events in the same cell, from their probabilities; None where it is 0 everywhere."""


class EveryoneOf(Events):
    """Elimination: for each set B of labels, "all of B survive", with the sign (-1)^(|B| - 1) for the labels in B."""

    def __init__(self, labels: int) -> None:
        self.sets = [frozenset(some) for size in range(1, labels + 1) for some in combinations(range(labels), size)]
        self.place = {some: place for place, some in enumerate(self.sets)}
        self.count = len(self.sets)
        self.coefficient = np.array(
            [[(-1.0) ** (len(some) - 1) * (label in some) for label in range(labels)] for some in self.sets]
        )

    def chance(self, vanish: list[Floats], survive: list[Floats]) -> list[Floats]:
        found: list[Floats] = []
        for some in self.sets:
            last = max(some)
            rest = some - {last}
            found.append(found[self.place[rest]] * survive[last] if rest else survive[last])
        return found

    def covariance(self, chance: list[Floats], first: int, second: int) -> Floats | None:
        """P(B and B' survive) - P(B) P(B') = P(union) (1 - P(intersection))."""
        both = self.sets[first] & self.sets[second]
        if not both:
            return None
        union = self.place[self.sets[first] | self.sets[second]]
        return np.asarray(chance[union] * (1.0 - chance[self.place[both]]))


class NotAlone(Events):
    """Any: "the cell does not show k alone", for each label k; one less their product."""

    def __init__(self, labels: int) -> None:
        self.count = labels
        self.coefficient = -np.eye(labels)

    def chance(self, vanish: list[Floats], survive: list[Floats]) -> list[Floats]:
        return [1.0 - alone for alone in each_alone(vanish, survive)]

    def covariance(self, chance: list[Floats], first: int, second: int) -> Floats:
        shown = 1.0 - chance[first]
        return np.asarray(shown * chance[first] if first == second else -shown * (1.0 - chance[second]))


class AloneOrNone(Events):
    """Unanimous: "the cell shows k alone, or no label alone" for each label k, less "no label alone"."""

    def __init__(self, labels: int) -> None:
        self.count = labels + 1
        self.coefficient = np.vstack([np.eye(labels), -np.ones((1, labels))])

    def chance(self, vanish: list[Floats], survive: list[Floats]) -> list[Floats]:
        alone = each_alone(vanish, survive)
        none = np.maximum(1.0 - sum(alone), 0.0)
        return [*(none + each for each in alone), none]

    def covariance(self, chance: list[Floats], first: int, second: int) -> Floats:
        both = chance[first] if first == second else chance[-1]
        return np.asarray(both - chance[first] * chance[second])


def find_spreads(
    joint: JointCells,
    lookups: Sequence[Lookup],
    noises: Sequence[Noise],
    thresholds: Sequence[float],
    means: Mapping[str, float],
    seed: int = 0,
) -> dict[str, Spread]:
    """The deviation of each rule: exact where that is not too much work, else simulated with its error.

    ``means``: people whom each rule names rightly. Where all simulated releases are alike, the error is the largest
    deviation that such a mean allows: a number from 0 to n has a variance of at most n times its mean.
    """
    chosen: dict[str, Events] = {}
    for rule in RULES:
        events = choose_events(rule, joint.n_levels)
        subsets = 2 ** len(lookups) - 1
        if events is not None and subsets * len(joint.count) * events.count * (events.count + 1) // 2 <= MOST_WORK:
            chosen[rule] = events
    variances = find_variances(joint, lookups, tuple(chosen.values()))
    found = {rule: Spread(math.sqrt(variance)) for rule, variance in zip(chosen, variances, strict=True)}
    missing = [rule for rule in RULES if rule not in found]
    if missing:
        drawn = simulate_rules(joint, noises, thresholds, DRAWS, seed)
        for rule in missing:
            found[rule] = estimate(drawn[rule]["right"], math.sqrt(means[rule] * joint.n_records))
    return {rule: found[rule] for rule in RULES}


def choose_events(rule: str, labels: int) -> Events | None:
    """The events of a rule; None where there are too many."""
    if rule == "any":
        return NotAlone(labels)
    if rule == "unanimous":
        return AloneOrNone(labels)
    return EveryoneOf(labels) if labels <= MOST_LABELS else None


def estimate(numbers: Floats, largest: float) -> Spread:
    """The deviation of simulated numbers, with its standard error: that of the variance, from the fourth moment.

    ``largest``: what it is at most, which is the error where no number differs from another.
    """
    deviation = float(np.std(numbers, ddof=1))
    if deviation == 0:
        return Spread(0.0, largest)
    fourth = float(np.mean((numbers - numbers.mean()) ** 4))
    error = math.sqrt(max(fourth - deviation**4, 0.0) / len(numbers)) / (2.0 * deviation)
    return Spread(deviation, error)


def find_variances(joint: JointCells, lookups: Sequence[Lookup], rules: Sequence[Events]) -> list[float]:
    """The variance of each rule: the sum over all collections S of tables, and over the joint cells of each."""
    total = np.zeros(len(rules))
    if not rules:
        return []
    tables = [Chances(lookup, tuple(rules)) for lookup in lookups]
    finest = sorted(range(len(lookups)), key=lambda table: -joint.tables[table].n_cells)  # in the order of the rows
    few: list[tuple[int, ...]] = []
    left = max(NUMBERS_AT_ONCE, len(joint.count) // 8)
    for size in range(1, len(lookups) + 1):
        for shared in combinations(finest, size):
            cells = math.prod(joint.tables[table].n_cells for table in shared)
            if cells <= left:
                few.append(shared)
                left -= cells
            else:
                total += sum(_add_many(joint, tables, rules, shared), np.zeros(len(rules)))
    total += sum(_add_few(joint, tables, rules, few), np.zeros(len(rules)))
    return [max(float(each), 0.0) for each in total]


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of people in some joint cells."""

    rows: Any
    """Their places, or a slice."""
    n_cells: int
    cell: Any
    """(rows,): the joint cell of each, from 0."""
    cells: Sequence[Integers] = ()
    """The cell of each joint cell in each of the tables that are shared."""

    def add_up(self, numbers: Floats) -> Floats:
        """(joint cells,): the sums over the rows of each."""
        return np.asarray(np.bincount(self.cell, numbers, minlength=self.n_cells), np.float64)


def _add_many(
    joint: JointCells, tables: Sequence[Chances], rules: Sequence[Events], shared: tuple[int, ...]
) -> Iterator[Floats]:
    """The sums over the joint cells of some tables, some at a time."""
    others = [table for table in range(len(tables)) if table not in shared]
    yield from in_threads(
        lambda group: _cover(tables, rules, shared, group.cells, _weigh(joint, tables, rules, others, group)),
        _split_groups(joint, shared),
    )


def _add_few(
    joint: JointCells, tables: Sequence[Chances], rules: Sequence[Events], collections: Sequence[tuple[int, ...]]
) -> Iterator[Floats]:
    """The same for collections of few joint cells each: weights are added up over all people, in one pass over them."""
    widths = [[joint.tables[table].n_cells for table in shared] for shared in collections]
    sizes = [math.prod(each) for each in widths]
    step = max(1, NUMBERS_AT_ONCE // joint.n_levels)
    rows = len(joint.count)

    def weigh(stripe: range) -> list[list[list[Floats]]]:
        found = [[[np.zeros(size) for _ in range(events.count)] for events in rules] for size in sizes]
        for start in stripe:
            part = slice(start, start + step)
            cells = [cell[part] for cell in joint.cell]
            inside = [cell >= 0 for cell in cells]
            chances = [table.at(cell) for table, cell in zip(tables, cells, strict=True)]
            level, people = joint.level[part], joint.count[part].astype(np.float64)
            own = [[people * take(coefficient, level) for coefficient in events.coefficient] for events in rules]
            for shared, width, weights in zip(collections, widths, found, strict=True):
                there = np.logical_and.reduce([inside[table] for table in shared])
                some = slice(None) if there.all() else there
                key = number_keys([cells[table][some] for table in shared], width)
                others = [chances[table] for table in range(len(tables)) if table not in shared]
                for place, events in enumerate(own):
                    for event, product in enumerate(events):
                        for each in others:
                            product = product * each[place][event]
                        np.add.at(weights[place][event], key, product[some])
        return found

    half = -(-rows // (2 * step)) * step
    first, second = in_threads(weigh, [range(0, min(half, rows), step), range(half, rows, step)])
    for shared, width, size, one, other in zip(collections, widths, sizes, first, second, strict=True):
        weights = [
            [mine + more for mine, more in zip(own, rest, strict=True)] for own, rest in zip(one, other, strict=True)
        ]
        yield _cover(tables, rules, shared, np.unravel_index(np.arange(size), width), weights)


def _split_groups(joint: JointCells, shared: tuple[int, ...]) -> Iterator[Group]:
    """The people who are in all of these tables by their joint cells there, some cells at a time."""
    cells = [joint.cell[table] for table in shared]
    inside = np.logical_and.reduce([cell >= 0 for cell in cells])
    rows = None if inside.all() else np.flatnonzero(inside)
    key = number_keys(
        cells if rows is None else [cell.take(rows) for cell in cells],
        [joint.tables[table].n_cells for table in shared],
    )
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key)
        rows, key = order if rows is None else rows.take(order), key.take(order)
    changes = np.concatenate([[True], key[1:] != key[:-1]]) if len(key) else np.zeros(0, bool)
    starts = np.flatnonzero(changes)
    ends = np.append(starts[1:], len(key))
    del key
    step = max(1, NUMBERS_AT_ONCE // joint.n_levels)
    begin = 0
    while begin < len(starts):
        end = max(int(np.searchsorted(ends, starts[begin] + step, side="right")), begin + 1)
        low, high = int(starts[begin]), int(ends[end - 1])
        here = starts[begin:end] if rows is None else rows.take(starts[begin:end])
        own: Any = slice(low, high) if rows is None else rows[low:high]
        yield Group(own, end - begin, np.cumsum(changes[low:high]) - 1, [cell.take(here) for cell in cells])
        begin = end


def _weigh(
    joint: JointCells, tables: Sequence[Chances], rules: Sequence[Events], others: Sequence[int], group: Group
) -> list[list[Floats]]:
    """A_gb of each rule: a list entry for each event, an array entry for each joint cell."""
    rows = group.rows
    level, people = joint.level[rows], joint.count[rows].astype(np.float64)
    seen = [tables[table].at(joint.cell[table][rows]) for table in others]
    found = []
    for place, events in enumerate(rules):
        weights = []
        for event in range(events.count):
            product = people * take(events.coefficient[event], level)
            for chances in seen:
                product *= chances[place][event]
            weights.append(group.add_up(product))
        found.append(weights)
    return found


def _cover(
    tables: Sequence[Chances],
    rules: Sequence[Events],
    shared: tuple[int, ...],
    cells: Sequence[Integers],
    weights: Sequence[Sequence[Floats]],
) -> Floats:
    """sum_g sum_{b,b'} A_gb A_gb' prod_{t in S} cov_t(b, b') of each rule, over some joint cells."""
    seen = [tables[table].at(own) for table, own in zip(shared, cells, strict=True)]
    totals = np.zeros(len(rules))
    for place, (events, weight) in enumerate(zip(rules, weights, strict=True)):
        for one in range(events.count):
            for other in range(one, events.count):
                found = [events.covariance(chances[place], one, other) for chances in seen]
                if found[0] is None:
                    continue
                covariance = multiply([each for each in found if each is not None])
                both = float(np.einsum("i,i,i->", weight[one], weight[other], covariance))
                totals[place] += both if one == other else 2.0 * both
    return totals


@dataclass(frozen=True, eq=False)
class Chances:
    """P(event) in the cells of one table, for the events of some rules."""

    lookup: Lookup
    rules: tuple[Events, ...]

    @cached_property
    def listed(self) -> list[list[Floats]] | None:
        """Of each rule and event, for every cell and for people who are in none; None where that is too much."""
        if not self.lookup.few or self.lookup.places.shape[0] * sum(each.count for each in self.rules) > LISTED:
            return None
        return [events.chance(self.lookup.laws.vanish, self.lookup.laws.survive) for events in self.rules]

    def at(self, cells: Integers) -> list[list[Floats]]:
        """The same for some people's cells."""
        own = cells.astype(np.intp)
        if self.listed is not None:
            return [[take(chance, own) for chance in events] for events in self.listed]
        places = self.lookup.at(own)
        vanish, survive = ([law[place] for place in places] for law in (self.lookup.vanish, self.lookup.survive))
        return [events.chance(vanish, survive) for events in self.rules]


def simulate_rules(
    joint: JointCells, noises: Sequence[Noise], thresholds: Sequence[float], draws: int, seed: int
) -> dict[str, dict[str, Floats]]:
    """People given away in each of some releases that are only simulated: for each rule, right and named.

    Noise is drawn for every count of every table, and the rules are applied to what is shown.
    """
    generator = np.random.default_rng(seed)
    found = {rule: {"right": np.zeros(draws), "named": np.zeros(draws)} for rule in RULES}
    labels = joint.n_levels
    step = max(1, NUMBERS_AT_ONCE // labels)
    for draw in range(draws):
        shown = []
        for table, noise, threshold in zip(joint.tables, noises, thresholds, strict=True):
            seen = table.counts + noise.sample(generator, table.counts.shape) > threshold
            shown.append(np.concatenate([seen, np.ones((1, labels), bool)]))
        for start in range(0, len(joint.count), step):
            part = slice(start, start + step)
            cells, level = joint.cell[:, part], joint.level[part]
            people = joint.count[part].astype(np.float64)
            views = [each[own] for each, own in zip(shown, cells, strict=True)]
            for rule, names in _apply(views).items():
                right = np.take_along_axis(names, level[:, None].astype(np.int64), axis=1)[:, 0]
                found[rule]["right"][draw] += add_up(people, right)
                found[rule]["named"][draw] += add_up(people, names.sum(axis=1))
    return found


def _apply(views: Sequence[Floats]) -> dict[str, Floats]:
    """Which labels each rule names, from the labels that each table shows: (people, labels)."""
    stays = np.logical_and.reduce(views)
    alone = [view & (view.sum(axis=1, keepdims=True) == 1) for view in views]
    somewhere = np.logical_or.reduce(alone)
    return {
        "elimination": stays & (stays.sum(axis=1, keepdims=True) == 1),
        "any": somewhere,
        "unanimous": somewhere & (somewhere.sum(axis=1, keepdims=True) == 1),
    }
