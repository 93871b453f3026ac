"""Structural zeros: combinations that cannot occur, and that everybody knows cannot, so that they get no noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cellrisk.counts.cells import Domain
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.arrays import Integers

Rule = Mapping[str, str | Sequence[str]]
"""Labels by column. It excludes every combination that has one of them in each of its columns."""
Mask = npt.NDArray[np.bool_]
Box = dict[int, Mask]
"""For each axis that a rule names, which labels it takes."""

MOST_OVERLAPS = 100_000


@dataclass(frozen=True, eq=False)
class Exclusions:
    """The combinations that rules exclude, among those of some axes.

    >>> axes = Domain("sex", ("f", "m")), Domain("age", ("child", "adult", "old")), Domain("pregnant", ("no", "yes"))
    >>> rules = read_rules([{"sex": "m", "pregnant": "yes"}, {"age": ["child", "old"], "pregnant": "yes"}], axes)
    >>> rules.size, rules.cover([np.array([0, 0, 1]), np.array([1, 0, 1]), np.array([1, 1, 0])]).tolist()
    (5, [False, True, False])
    """

    widths: tuple[int, ...]
    boxes: tuple[Box, ...] = ()

    def __post_init__(self) -> None:
        for box in self.boxes:
            if not box or any(len(mask) != self.widths[axis] or not mask.any() for axis, mask in box.items()):
                raise InvalidInput("each exclusion must take some labels of some columns")

    @property
    def size(self) -> int:
        """How many combinations are excluded."""
        return self._count_union(list(self.boxes), [0])

    def cover(self, codes: Sequence[Integers]) -> Mask:
        """Which combinations are excluded, from the places of their labels on each axis."""
        covered = np.zeros(len(codes[0]), bool)
        for box in self.boxes:
            inside = np.ones(len(covered), bool)
            for axis, mask in box.items():
                inside &= mask[codes[axis]]
            covered |= inside
        return covered

    def _count_union(self, boxes: list[Box], steps: list[int]) -> int:
        """|A or B or ...| = |A| - |A and (B or ...)| + |B or ...|; overlaps that are empty are left out."""
        total = 0
        for place, box in enumerate(boxes):
            steps[0] += 1
            if steps[0] > MOST_OVERLAPS:
                raise InvalidInput(
                    "the exclusions overlap in too many ways to count what they exclude",
                    got=f"{len(self.boxes):,} rules",
                    fix="write them so that they do not overlap, or as fewer rules with more labels each",
                )
            overlaps = [both for later in boxes[place + 1 :] if (both := _intersect(box, later)) is not None]
            total += self._volume(box) - self._count_union(overlaps, steps)
        return total

    def _volume(self, box: Box) -> int:
        return math.prod(int(box[axis].sum()) if axis in box else width for axis, width in enumerate(self.widths))


def read_rules(rules: Sequence[Rule], axes: Sequence[Domain]) -> Exclusions:
    """Rules as given by a user; unknown columns and labels are refused."""
    if isinstance(rules, Mapping) or not isinstance(rules, Sequence) or isinstance(rules, str):
        raise InvalidInput(
            "exclude must be a list of rules",
            got=type(rules).__name__,
            allowed="[{'column': ['label', ...]}, ...]",
        )
    return Exclusions(tuple(len(axis) for axis in axes), tuple(_read_rule(rule, axes) for rule in rules))


def _read_rule(rule: Rule, axes: Sequence[Domain]) -> Box:
    if not isinstance(rule, Mapping) or not rule:
        raise InvalidInput("each rule of exclude names labels by column", allowed="{'column': ['label', ...], ...}")
    names = [axis.name for axis in axes]
    box = {}
    for name, given in rule.items():
        if name not in names:
            raise UnknownName("exclude names a column that is not released", got=repr(name), allowed=", ".join(names))
        place = names.index(name)
        labels = [given] if isinstance(given, str) else list(given)
        unknown = len(set(labels) - set(axes[place].labels))
        if unknown or not labels:
            raise UnknownName(
                f"exclude names labels that '{name}' does not have",
                got=f"{unknown:,} unknown of {len(labels):,}",
                allowed=f"some of its {len(axes[place]):,} labels",
            )
        box[place] = np.isin(np.array(axes[place].labels, dtype=object), labels)
    return box


def _intersect(first: Box, second: Box) -> Box | None:
    """What two boxes have in common, if anything."""
    shared = {axis: first[axis] & second[axis] for axis in first.keys() & second.keys()}
    return {**first, **second, **shared} if all(mask.any() for mask in shared.values()) else None
