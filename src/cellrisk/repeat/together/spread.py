"""How far the number of people given away varies from release to release: people who share a cell vary together.

A rule is sum_b c_b prod_t 1(event_tb) over the tables that a person is in. Exactly, and without going through pairs of
people,

    Var = sum_{S != {}} sum_{joint cells g of S} sum_{b,b'} A_gb A_gb' prod_{t in S} cov_t(b, b'),
    A_gb = sum over the people of g of c_b prod_{t not in S} P(event_tb).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cellrisk.counts.cells import find_distinct
from cellrisk.counts.joint import JointCells
from cellrisk.noise.distributions import Noise
from cellrisk.repeat.together.rules import NUMBERS_AT_ONCE, RULES, Lookup, multiply
from cellrisk.risk.measures.survival import each_alone
from cellrisk.system.arrays import Floats, Integers

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
    found: dict[str, Spread] = {}
    for rule in RULES:
        events = choose_events(rule, joint.n_levels)
        subsets = 2 ** len(lookups) - 1
        if events is not None and subsets * len(joint.count) * events.count * (events.count + 1) // 2 <= MOST_WORK:
            found[rule] = Spread(math.sqrt(find_variance(joint, lookups, events)))
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


def find_variance(joint: JointCells, lookups: Sequence[Lookup], events: Events) -> float:
    """The sum over all collections S of tables, and over the joint cells of each."""
    tables = range(len(lookups))
    total = 0.0
    for size in range(1, len(lookups) + 1):
        for shared in combinations(tables, size):
            total += _sum_over_cells(joint, lookups, events, shared)
    return max(total, 0.0)


def _sum_over_cells(joint: JointCells, lookups: Sequence[Lookup], events: Events, shared: tuple[int, ...]) -> float:
    rows = np.flatnonzero((joint.cell[list(shared)] >= 0).all(axis=0))
    if not len(rows):
        return 0.0
    cells = joint.cell[:, rows]
    if len(shared) == 1:
        group, n_groups = cells[shared[0]], len(lookups[shared[0]].places) - 1
        own = np.arange(n_groups)[None, :]
    else:
        one, group = find_distinct(cells[list(shared)], [len(lookups[table].places) for table in shared])
        n_groups, own = len(one), cells[list(shared)][:, one]
    weights = np.zeros((events.count, n_groups))
    others = [table for table in range(len(lookups)) if table not in shared]
    level, people = joint.level[rows], joint.count[rows].astype(np.float64)
    for label in range(joint.n_levels):
        here = np.flatnonzero(level == label)
        for part in np.array_split(here, 1 + len(here) // NUMBERS_AT_ONCE):
            chances = [_chance(lookups[table], cells[table, part], events) for table in others]
            for event in np.flatnonzero(events.coefficient[:, label]):
                product = people[part] * events.coefficient[event, label]
                for chance in chances:
                    product = product * chance[event]
                np.add(weights[event], np.bincount(group[part], product, minlength=n_groups), out=weights[event])
    total = 0.0
    for start in range(0, n_groups, NUMBERS_AT_ONCE):
        part_of = slice(start, start + NUMBERS_AT_ONCE)
        chances = [_chance(lookups[table], cell[part_of], events) for table, cell in zip(shared, own, strict=True)]
        for first in range(events.count):
            for second in range(first, events.count):
                found = [events.covariance(chance, first, second) for chance in chances]
                if any(each is None for each in found):
                    continue
                covariance = multiply([each for each in found if each is not None])
                both = float(np.sum(weights[first, part_of] * weights[second, part_of] * covariance))
                total += both if first == second else 2.0 * both
    return total


def _chance(lookup: Lookup, cells: Integers, events: Events) -> list[Floats]:
    places = np.ascontiguousarray(lookup.places[cells].T)
    return events.chance([lookup.vanish[place] for place in places], [lookup.survive[place] for place in places])


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
                found[rule]["right"][draw] += float(people @ right)
                found[rule]["named"][draw] += float(people @ names.sum(axis=1))
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
