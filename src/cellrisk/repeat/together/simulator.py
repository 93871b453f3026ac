"""Simulated releases of a set of tables, and what attackers find in them.

Noise is drawn for every published count of every table; each attack reads the same releases. The numbers of people over
releases give standard deviations, intervals, and means where no closed form is used, each with its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add, and_, or_
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.system.arrays import Floats, Integers

MOST_NUMBERS = 30_000_000
"""Counts of people's cells that are read in all simulated releases: some tenths of a second."""
FEWEST_DRAWS, MOST_DRAWS = 39, 500
"""With 39 releases, the smallest and the largest number are the ends of a 95% interval."""
NUMBERS_AT_ONCE, ROWS_AT_ONCE = 1 << 18, 1 << 20
INSIDE = 0.95
BITS = np.array([number.bit_count() for number in range(256)], np.uint8)
"""How many labels a byte of labels holds."""


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
    ends = {"low": round(ordered[outside - 1]), "high": round(ordered[-outside])}
    return {"sd": deviation, "sd_error": error, **ends}


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
        step = max(1, NUMBERS_AT_ONCE // max(len(self.joint.count), *(counts.size for counts in self.truth)))
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


def name_ways(tables: int) -> list[str]:
    """The ways of attack that a `Simulator` reads, in their order."""
    return ["elimination", "any", *(f"table {table + 1} alone" for table in range(tables))]


def simulate_rules(
    joint: JointCells,
    mechanisms: Sequence[Mechanism],
    draws: int | None = None,
    seed: int = 0,
    rows: Integers | None = None,
) -> list[Floats]:
    """(releases,): people named correctly in each simulated release, by each way of attack."""
    simulator = Simulator(joint, mechanisms, rows)
    numbers = [simulator.read(shown) for shown in simulator.show(draws or simulator.count_draws(), seed)]
    return list(np.concatenate(numbers)[:, :, 0].T)


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
