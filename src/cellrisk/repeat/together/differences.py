"""Differencing: two tables of the same columns, of which one leaves some people out, are a third table of those people.

Where the people of table B are among those of table A, A - B counts the rest in the cells of B, with noise e_A - e_B in
every count. The attacker subtracts what is released, taken as it is before counts below the threshold are set to 0; of
clamped counts they see less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from scipy import fft

from cellrisk.counts.joint import JointCells
from cellrisk.noise.distributions import Noise, first_value
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.measures.local import each_alone
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.formatting import change, make_sentence, number_of, whole_people

FARTHEST = 2_000_000
"""Noise that reaches further is not subtracted: it reveals next to nothing of a few people."""
NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Difference:
    """What the difference of two tables reveals of the people who are in the larger one alone."""

    outer: SetTable
    inner: SetTable
    people: int
    """Those who are left out of the smaller table, in cells that both tables have."""
    in_outer: float
    """How many of them the larger table shows alone by itself."""
    in_difference: float
    """How many of them the difference shows alone."""
    caused: float
    """How many of these only because of their own record."""
    either: float
    """How many of them the larger table or the difference shows alone."""

    @property
    def headline(self) -> str:
        """Return what a board can repeat."""
        left_out = (
            f"{make_sentence(self.inner.title, '')} leaves out {number_of(self.people, 'person')} of groups that "
        )
        before, after = whole_people(self.in_outer), whole_people(self.either)
        both = f"it shares with {self.outer.title}: to publish both takes those exposed among them"
        return f"{left_out}{both} {change(before, after)}; the difference is a table of them alone."

    def to_dict(self) -> dict[str, Any]:
        return {
            "tables": [self.outer.number, self.inner.number],
            "people": self.people,
            "in_table": self.in_outer,
            "in_difference": self.in_difference,
            "caused": self.caused,
            "either": self.either,
            "sentence": self.headline,
        }


@dataclass(frozen=True, eq=False)
class Rounded:
    """The law of rounded noise on whole numbers from ``-reach`` to ``reach``."""

    pmf: Floats
    reach: int

    @staticmethod
    def of(noise: Noise) -> Rounded:
        reach = noise.tail_radius
        return Rounded(noise.mass(np.arange(-reach, reach + 1, dtype=np.float64)), reach)

    def less(self, other: Rounded) -> Rounded:
        """The law of this noise minus another, both symmetric."""
        whole = len(self.pmf) + len(other.pmf) - 1
        pmf = fft.irfft(fft.rfft(self.pmf, whole) * fft.rfft(other.pmf, whole), whole)
        return Rounded(np.maximum(pmf, 0.0), self.reach + other.reach)

    def at(self, values: Any) -> Floats:
        """P(noise = value)."""
        places = np.asarray(values) + self.reach
        far = (places < 0) | (places >= len(self.pmf))
        return np.asarray(np.where(far, 0.0, self.pmf[np.where(far, 0, places)]))

    def at_most(self, values: Any) -> Floats:
        """P(noise <= value), by a sum of the smaller tail."""
        sums = np.concatenate([[0.0], np.cumsum(self.pmf)])
        return np.asarray(sums[np.clip(np.asarray(values) + self.reach + 1, 0, len(self.pmf))])

    def at_least(self, values: Any) -> Floats:
        """P(noise >= value): the noise is symmetric."""
        return self.at_most(-np.asarray(values))


def find_differences(joint: JointCells, asked: Sequence[SetTable]) -> tuple[Difference, ...]:
    """Every pair of tables of the same columns whose people are nested, assessed."""
    near = [table.mechanism.noise.tail_radius <= FARTHEST for table in asked]
    members, found = joint.cell >= 0, []
    for outer, inner in permutations(range(len(asked)), 2):
        if (members[inner] & ~members[outer]).any() or not (members[outer] & ~members[inner]).any():
            continue  # not everybody in the second is in the first, or nobody is left out of it
        if set(joint.tables[outer].columns) == set(joint.tables[inner].columns) and near[outer] and near[inner]:
            rest = _find_rest(joint, asked, outer, inner)
            found += [_assess(joint, asked, outer, inner, rest)] if len(rest) else []
    return tuple(found)


def _find_rest(joint: JointCells, asked: Sequence[SetTable], outer: int, inner: int) -> Integers:
    """The rows that the smaller table leaves out of its cells.

    A cell that it lacks as a whole, by a condition on one of its own columns, has nothing to be subtracted.
    """
    rest = np.flatnonzero((joint.cell[outer] >= 0) & (joint.cell[inner] < 0))
    whole, part = joint.tables[outer], joint.tables[inner]
    for name, number in zip(asked[inner].quasi_identifiers, part.columns, strict=True):
        if name in asked[inner].part.columns:
            codes = whole.codes[joint.cell[outer, rest], whole.columns.index(number)]
            rest = rest[np.isin(codes, part.codes[:, part.columns.index(number)])]
    return rest


def _assess(joint: JointCells, asked: Sequence[SetTable], outer: int, inner: int, rest: Integers) -> Difference:
    cells, cell = np.unique(joint.cell[outer, rest], return_inverse=True)
    labels = joint.n_levels
    flat = np.bincount(cell * labels + joint.level[rest], joint.count[rest], minlength=len(cells) * labels)
    left = np.rint(flat).astype(np.int64).reshape(len(cells), labels)
    whole = joint.tables[outer].counts[cells].astype(np.int64)
    mechanism = asked[outer].mechanism
    own, other = Rounded.of(mechanism.noise), Rounded.of(asked[inner].mechanism.noise)
    both = own.less(other)
    first = first_value(mechanism.threshold)
    shown_there = each_alone(own.at_most(first - 1 - whole), own.at_least(first - whole), axis=1)
    vanish = both.at_most(-left)
    shown = each_alone(vanish, both.at_least(1 - left), axis=1)
    pivotal = each_alone(vanish, both.at(left - 1), axis=1)
    together = each_alone(*_joint_law(own, other, whole, left, first), axis=1)
    people = left.astype(np.float64)

    def add_up(chance: Floats) -> float:
        return float(np.sum(people * chance))

    in_outer, in_difference = add_up(shown_there), add_up(shown)
    return Difference(
        asked[outer],
        asked[inner],
        int(left.sum()),
        in_outer,
        in_difference,
        add_up(pivotal),
        in_outer + in_difference - add_up(together),
    )


def _joint_law(own: Rounded, other: Rounded, whole: Integers, left: Integers, first: int) -> tuple[Floats, Floats]:
    """Return how likely a count vanishes, and survives, in the table and in the difference at once.

    The difference has the table's own noise e in it: with n people of a label in the table and m of them left out of
    the other, both vanish where n + e < T and m + e - e' < 1, a sum over e.
    """
    pairs, place = np.unique(np.stack([whole.ravel(), left.ravel()]), axis=1, return_inverse=True)
    noise = np.arange(-own.reach, own.reach + 1)
    vanish, survive = np.zeros(pairs.shape[1]), np.zeros(pairs.shape[1])
    step = max(1, NUMBERS_AT_ONCE // len(noise))
    for start in range(0, pairs.shape[1], step):
        n, m = pairs[:, start : start + step, None]
        gone = n + noise < first
        vanish[start : start + step] = np.sum(np.where(gone, own.pmf * other.at_least(m + noise), 0.0), axis=1)
        survive[start : start + step] = np.sum(np.where(gone, 0.0, own.pmf * other.at_most(m + noise - 1)), axis=1)
    return vanish[place.ravel()].reshape(whole.shape), survive[place.ravel()].reshape(whole.shape)
