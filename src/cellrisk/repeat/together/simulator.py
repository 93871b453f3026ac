"""Simulated releases of a set of tables, and what attackers find in them.

Noise is drawn for every published count of every table; each attack reads the same releases. The numbers of people over
releases give standard deviations, intervals, and means where no closed form is used, each with its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add, and_, or_
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.together.linkage_attacks import Figures
from cellrisk.system.arrays import Floats, Integers

MOST_NUMBERS = 30_000_000
"""Counts of people's cells that are read in all simulated releases: some tenths of a second."""
FEWEST_DRAWS, MOST_DRAWS = 39, 500
"""With 39 releases, the smallest and the largest number are the ends of a 95% interval."""
NUMBERS_AT_ONCE, ROWS_AT_ONCE = 1 << 18, 1 << 20
INSIDE = 0.95
BITS = np.array([number.bit_count() for number in range(256)], np.uint8)
"""How many labels a byte of labels holds."""


@dataclass(frozen=True)
class Spread:
    """How a number of people varies over releases."""

    deviation: float
    error: float | None
    """The standard error of the deviation; None if it is exact."""
    low: int
    high: int
    """A further release lies between them with a probability of at least 95%."""

    @staticmethod
    def of(numbers: Floats, mean: float, people: int) -> Spread:
        """The spread of simulated numbers, whose mean is known.

        The standard error is that of the variance, from the fourth moment. If all numbers are alike, it is the largest
        deviation that the mean allows: a number from 0 to n has a variance of at most n times its mean. The k-th number
        from either end: of n + 1 independent numbers, the last is as likely to fall into each gap of the others.
        """
        deviation = float(np.std(numbers, ddof=1))
        error = math.sqrt(mean * people)
        if deviation > 0:
            fourth = float(np.mean((numbers - numbers.mean()) ** 4))
            error = math.sqrt(max(fourth - deviation**4, 0.0) / len(numbers)) / (2.0 * deviation)
        outside = int(0.5 * (1.0 - INSIDE) * (len(numbers) + 1))
        ordered = np.sort(numbers)
        return Spread(deviation, error, round(ordered[outside - 1]), round(ordered[-outside]))


@dataclass(frozen=True, eq=False)
class Simulator:
    """Releases of all tables of a set.

    ``places``: for each cell that people are in, its place among the counts of a label that the table publishes; and
    ``sizes``: how many these are. By default the cells that occur are published.
    """

    joint: JointCells
    mechanisms: Sequence[Mechanism]
    sizes: Sequence[int]
    places: Sequence[Integers]

    @staticmethod
    def of(
        joint: JointCells,
        mechanisms: Sequence[Mechanism],
        sizes: Sequence[int] | None = None,
        places: Sequence[Integers] | None = None,
    ) -> Simulator:
        occur = [table.n_cells for table in joint.tables]
        return Simulator(joint, mechanisms, sizes or occur, places or [np.arange(size) for size in occur])

    def count_draws(self, most: int = MOST_DRAWS, share: float = 1.0) -> int:
        """How many releases can be read in some tenths of a second."""
        work = len(self.joint.tables) * len(self.joint.count) + self.joint.n_levels * sum(self.sizes)
        return int(min(max(share * MOST_NUMBERS / work, FEWEST_DRAWS), most))

    def draw(self, draws: int, seed: int) -> Iterator[list[Floats]]:
        """Released counts before any is set to 0, some releases at a time: (releases, labels, counts) of each table."""
        generator = np.random.default_rng(seed)
        labels = self.joint.n_levels
        truth = []
        for table, size, place in zip(self.joint.tables, self.sizes, self.places, strict=True):
            truth.append(np.zeros((labels, size)))
            truth[-1][:, place] = table.counts.T
        step = max(1, NUMBERS_AT_ONCE // max(len(self.joint.count), labels * max(self.sizes)))
        for start in range(0, draws, step):
            drawn = min(step, draws - start)
            yield [
                counts + mechanism.noise.sample(generator, (drawn, *counts.shape))
                for counts, mechanism in zip(truth, self.mechanisms, strict=True)
            ]

    def show(self, released: Sequence[Floats], less: float = 0.0, tie: float = 0.0) -> list[Any]:
        """Which counts are above the threshold of their table, also with ``less`` records."""
        limits = [mechanism.threshold + less - tie for mechanism in self.mechanisms]
        return [counts > limit for counts, limit in zip(released, limits, strict=True)]


@dataclass(frozen=True, eq=False)
class Reader:
    """The linkage attacks on what tables show, for everybody at once. Labels are the bits of one byte or several."""

    level: Integers
    people: Floats
    labels: int
    cells: Sequence[Integers]
    """(rows,): the place of each row's counts in each table; -1 for people who are not in it."""

    @staticmethod
    def split(simulator: Simulator) -> list[Reader]:
        """Everybody, a million rows at a time."""
        joint = simulator.joint
        rows = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(joint.count), ROWS_AT_ONCE)]
        return [
            Reader(
                joint.level[part].astype(np.intp),
                joint.count[part].astype(np.float64),
                joint.n_levels,
                [
                    np.where(cell[part] < 0, -1, place.take(cell[part], mode="wrap"))
                    for place, cell in zip(simulator.places, joint.cell, strict=True)
                ],
            )
            for part in rows
        ]

    @cached_property
    def own_bits(self) -> list[Any]:
        """(rows,): the own label of each row as the bits of each byte."""
        every = range((self.labels + 7) // 8)
        return [np.where(self.level // 8 == byte, 1 << self.level % 8, 0).astype(np.uint8) for byte in every]

    def look(self, shown: Sequence[Any]) -> list[list[Any]]:
        """The labels that people's cells show, from (releases, labels, counts) of each table: (releases, rows)."""
        views = []
        for each, cell in zip(shown, self.cells, strict=True):
            packed = np.packbits(each, axis=1, bitorder="little")
            packed = np.concatenate([packed, np.full((*packed.shape[:2], 1), 255, np.uint8)], axis=2)  # cell -1
            views.append([packed[:, byte].take(cell, axis=1, mode="wrap") for byte in range(packed.shape[1])])
        return views

    def own(self, values: Sequence[Any], outside: Any = True) -> list[Any]:
        """(releases, rows): the entries of each row's own label and cell, from (releases, labels, counts)."""
        found = []
        for each, cell in zip(values, self.cells, strict=True):
            entry = each.reshape(len(each), -1).take(self.level * each.shape[2] + cell, axis=1, mode="wrap")
            found.append(np.where(cell < 0, outside, entry) if (cell < 0).any() else entry)
        return found

    def read(self, views: Sequence[list[Any]], less: Sequence[Any] | None = None) -> Floats:
        """(releases, ways, 1 or 3): people named rightly; with ``less`` also at all, and because of their own records.

        The ways are elimination, any, and each table alone. ``views``: what `look` finds in each table; ``less``:
        (releases, rows), whether the table shows the own label with the own record left out of all tables. Of those
        named rightly, these are the ones who still are: no other label is shown more.
        """
        own = self.own_bits
        stays = [reduce(and_, parts) for parts in zip(*views, strict=True)]
        alone = [_equal(view, own) for view in views]
        right = [_equal(stays, own), reduce(or_, alone), *alone]
        if less is None:
            return np.stack([self._count(each) for each in right], axis=1)[..., None]
        still = [shown & each for shown, each in zip(alone, less, strict=True)]
        without = [right[0] & reduce(and_, less), reduce(or_, still), *still]
        single = [_count_labels(view) == 1 for view in views]
        shown = [
            reduce(or_, (byte * one for byte, one in zip(parts, single, strict=True)))
            for parts in zip(*views, strict=True)
        ]
        named = [_count_labels(stays) == 1, _count_labels(shown), *single]
        counted = [
            np.stack([first, self._count(second), first - self._count(third)], axis=1)
            for first, second, third in ((self._count(a), b, c) for a, b, c in zip(right, named, without, strict=True))
        ]
        return np.stack(counted, axis=1)

    def _count(self, chosen: Any) -> Floats:
        return np.asarray(chosen.astype(np.float64) @ self.people)


def _equal(labels: Sequence[Any], own: Sequence[Any]) -> Any:
    return reduce(and_, [byte == each for byte, each in zip(labels, own, strict=True)])


def _count_labels(labels: Sequence[Any]) -> Any:
    return reduce(add, [BITS.take(byte) for byte in labels])


def name_ways(tables: int) -> list[str]:
    """The ways of attack that a `Reader` counts, in their order."""
    return ["elimination", "any", *(name_alone(table) for table in range(tables))]


def name_alone(table: int) -> str:
    return f"table {table + 1} alone"


def simulate_rules(
    joint: JointCells, mechanisms: Sequence[Mechanism], draws: int | None = None, seed: int = 0, named: bool = False
) -> dict[str, Floats]:
    """People in each simulated release, by way of attack: (releases,), named rightly; with ``named`` (releases, 3)."""
    simulator = Simulator.of(joint, mechanisms)
    readers = Reader.split(simulator)
    found: list[Any] = []
    for released in simulator.draw(draws or simulator.count_draws(), seed):
        shown = simulator.show(released)
        less = simulator.show(released, 1.0) if named else None
        found.append(sum(each.read(each.look(shown), less and each.own(less)) for each in readers))
    numbers = np.concatenate(found)
    ways = name_ways(len(mechanisms))
    return {way: numbers[:, place] if named else numbers[:, place, 0] for place, way in enumerate(ways)}


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


def find_spreads(
    joint: JointCells, mechanisms: Sequence[Mechanism], means: Mapping[str, Figures], seed: int
) -> dict[str, Spread]:
    """How the people vary whom each way of attack names rightly. ``means``: the exact figures of each."""
    drawn = simulate_rules(joint, mechanisms, seed=seed)
    return {way: Spread.of(drawn[way], figures.right, joint.n_records) for way, figures in means.items()}
