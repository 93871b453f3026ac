"""The domain of a release: the labels of each column, the records inside, and every count that gets noise.

It depends on what was declared alone.

A record is outside where a value is missing in a declared column that was not said to have missing values, or where its
combination was declared impossible. By the table's rule such records are refused, or left out; records with values that
are not among the declared labels were refused or left out when the table was made.

Structural zeros are combinations that cannot occur, and that everybody knows cannot: they get no noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cellrisk.counts.cells import Cells, Domain, group_cells
from cellrisk.counts.columns import MISSING_LABEL, make_label
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.system.arrays import Integers, number_keys
from cellrisk.system.checks import read_texts
from cellrisk.system.formatting import number_of

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

Rule = Mapping[str, str | Sequence[str]]
"""Labels by column. It excludes every combination that has one of them in each of its columns."""
Mask = npt.NDArray[np.bool_]
Box = dict[int, Mask]
"""For each axis that a rule names, which labels it takes."""

MOST_OVERLAPS = 100_000
MOST_PLACES = 2**60
LARGEST_COUNT = 2**60
"""Noisy counts above this one are released as this one."""
PLACES_AT_ONCE = 1_000_000


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
                what = "the exclusions overlap in too many ways to count what they exclude"
                fix = "write them without overlaps, or as fewer rules with more labels each"
                raise InvalidInput(what, got=f"{len(self.boxes):,} rules", fix=fix, code="too-many-overlaps")
            overlaps = [both for later in boxes[place + 1 :] if (both := _intersect(box, later)) is not None]
            sizes = (int(box[axis].sum()) if axis in box else width for axis, width in enumerate(self.widths))
            total += math.prod(sizes) - self._count_union(overlaps, steps)
        return total


def read_rules(rules: Sequence[Rule], axes: Sequence[Domain]) -> Exclusions:
    """Rules as given by a user; unknown columns and labels are refused."""
    if isinstance(rules, Mapping) or not isinstance(rules, Sequence) or isinstance(rules, str):
        allowed = "[{'column': ['label', ...]}, ...]"
        got = type(rules).__name__
        raise InvalidInput("must be a list of rules", option="exclude", got=got, allowed=allowed, code="type")
    return Exclusions(tuple(len(axis) for axis in axes), tuple(_read_rule(rule, axes) for rule in rules))


def _read_rule(rule: Rule, axes: Sequence[Domain]) -> Box:
    if not isinstance(rule, Mapping) or not rule:
        what = "each rule of exclude names labels by column"
        raise InvalidInput(what, allowed="{'column': ['label', ...], ...}", code="type")
    names = [axis.name for axis in axes]
    box = {}
    for name, given in rule.items():
        if name not in names:
            what = "exclude names a column that is not released"
            raise UnknownName(what, got=repr(name), allowed=", ".join(names), code="no-column")
        place = names.index(name)
        labels = [given] if isinstance(given, str) else list(given)
        unknown = len(set(labels) - set(axes[place].labels))
        if unknown or not labels:
            what, got = f"exclude names labels that '{name}' does not have", f"{unknown:,} unknown of {len(labels):,}"
            raise UnknownName(what, got=got, allowed=f"some of its {len(axes[place]):,} labels", code="no-label")
        box[place] = np.isin(np.array(axes[place].labels, dtype=object), labels)
    return box


def _intersect(first: Box, second: Box) -> Box | None:
    """What two boxes have in common, if anything."""
    shared = {axis: first[axis] & second[axis] for axis in first.keys() & second.keys()}
    return {**first, **second, **shared} if all(mask.any() for mask in shared.values()) else None


@dataclass(frozen=True, eq=False)
class ReleasedDomain:
    """The columns of what is published as they were declared, the records inside, and every count that gets noise.

    The counts have places: the numbers of their labels on the axes, read as the digits of one number.
    """

    sensitive: str
    axes: tuple[Domain, ...]
    """The quasi-identifiers, then the sensitive attribute."""
    exclusions: Exclusions
    cells: Cells
    """The records inside. Raw data."""
    may_be_missing: tuple[str, ...]
    undeclared: tuple[str, ...]
    """Columns whose labels are those that occur, which was accepted."""
    unit: Unit

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes[:-1])

    @property
    def n_levels(self) -> int:
        return len(self.axes[-1])

    @property
    def size(self) -> int:
        """Places, the excluded ones too."""
        return math.prod(len(axis) for axis in self.axes)

    @cached_property
    def n_counts(self) -> int:
        """Counts that get noise."""
        return self.size - self.exclusions.size

    def check_size(self) -> None:
        """Refuse a domain that is too large to release, or that is empty."""
        if self.size > MOST_PLACES:
            got, fix = f"about 10^{len(str(self.size)) - 1} counts", "use fewer or coarser quasi-identifiers"
            what = "the domain is too large to release"
            raise InvalidInput(what, got=got, allowed="up to 2^60", fix=fix, code="too-large")
        if self.n_counts == 0:
            raise InvalidInput("everything is excluded: there is nothing to release", code="all-excluded")

    @cached_property
    def positive(self) -> tuple[Integers, Integers]:
        """The places of the positive counts, ascending, and these counts."""
        cells = self.cells
        places = number_keys((*cells.codes[cells.cell].T, cells.level), [len(axis) for axis in self.axes])
        order = np.argsort(places, kind="stable")
        return places[order], cells.count[order]

    def codes(self, places: Integers) -> list[Integers]:
        """The labels at places, as their numbers on each axis."""
        rest, found = places, []
        for axis in reversed(self.axes):
            rest, code = np.divmod(rest, len(axis))
            found.append(code)
        return found[::-1]

    def exclude(self, places: Integers) -> Mask:
        """Which places are excluded."""
        if not self.exclusions.boxes:
            return np.zeros(len(places), bool)
        return self.exclusions.cover(self.codes(places))

    def occupied(self, places: Integers) -> Mask:
        """Which places hold a positive count."""
        positive = self.positive[0]
        where = np.searchsorted(positive, places)
        found = np.zeros(len(places), bool)
        inside = where < len(positive)
        found[inside] = positive[where[inside]] == places[inside]
        return found

    def every_place(self) -> Integers:
        """All places that are not excluded, in the order of `pieces`."""
        return np.concatenate([places for places, _ in self.pieces()])

    def pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """All places that are not excluded with their counts, zeros too, some at a time."""
        positive, positive_counts = self.positive
        for start in range(0, self.size, PLACES_AT_ONCE):
            stop = min(start + PLACES_AT_ONCE, self.size)
            counts = np.zeros(stop - start, np.int64)
            first, last = np.searchsorted(positive, (start, stop))
            counts[positive[first:last] - start] = positive_counts[first:last]
            places = np.arange(start, stop)
            kept = ~self.exclude(places)
            yield places[kept], counts[kept]


def read_domain(
    table: FrequencyTable,
    sensitive: str | None,
    *,
    may_be_missing: str | Sequence[str] = (),
    observed_levels: bool | str | Sequence[str] = (),
    exclude: Sequence[Rule] = (),
) -> ReleasedDomain:
    """The domain that these arguments of `release` declare; refuses columns that are not declared and not accepted."""
    attribute = table.attribute(sensitive)
    columns = (*table.quasi_identifiers, attribute.name)
    missing = _read_columns(may_be_missing, "may_be_missing", columns)
    if missing and table.missing != "category":
        what, got = "needs a table that keeps missing values", f"missing='{table.missing}'"
        raise InvalidInput(what, option="may_be_missing", got=got, fix="leave it out", code="missing-rule")
    if isinstance(observed_levels, bool):
        observed_levels = columns if observed_levels else ()
    accepted = _read_columns(observed_levels, "observed_levels", columns)
    cells, levels = table.cells(attribute.name), attribute.levels.labels
    last = Domain(attribute.name, levels, declared=attribute.declared, missing=attribute.missing_level)
    axes = tuple(_read_axis(axis, axis.name in missing) for axis in (*cells.domains, last))
    undeclared = tuple(axis.name for axis in axes if not axis.declared)
    refused = [name for name in undeclared if name not in accepted]
    if refused:
        what = "the labels of some columns are only those that occur, which would itself reveal something"
        accept = f"accept with {argument('observed_levels')}, naming the columns, that the guarantee does not cover"
        fix = f"declare the labels with {argument('levels')}, or bins by their edges; or {accept} which values exist"
        raise InvalidInput(what, got=", ".join(refused), fix=fix, code="observed-labels")
    exclusions = read_rules(exclude, axes)
    inside = _take_inside(cells, axes, exclusions, table.outside)
    return ReleasedDomain(attribute.name, axes, exclusions, inside, missing, undeclared, table.unit)


def _read_columns(given: str | Sequence[str], option: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Columns that an argument names; others than those of the release are refused."""
    names = (given,) if isinstance(given, str) else read_texts(option, given, "columns")
    for name in names:
        if name not in columns:
            what = f"{option} names a column that is not released"
            raise UnknownName(what, got=repr(name), allowed=", ".join(columns), code="no-column")
    return names


def _read_axis(axis: Domain, may_be_missing: bool) -> Domain:
    """A column as an axis. If its labels are declared, it has one for missing values if some may be missing, and never
    because some are; if they are the observed ones, also if some are missing."""
    if axis.missing and axis.declared and not may_be_missing:
        return replace(axis, labels=axis.labels[:-1], missing=False)
    if may_be_missing and not axis.missing:
        return replace(axis, labels=(*axis.labels, make_label(MISSING_LABEL, axis.labels)), missing=True)
    return axis


def _take_inside(cells: Cells, axes: Sequence[Domain], exclusions: Exclusions, rule: str) -> Cells:
    """The cells on the axes, with the records inside alone; where there are others, ``rule`` decides."""
    codes = [*cells.codes[cells.cell].T, cells.level]
    absent = np.zeros(len(cells.count), bool)
    for code, axis in zip(codes, axes, strict=True):
        absent |= code >= len(axis)
    excluded = np.zeros(len(cells.count), bool)
    if exclusions.boxes:
        excluded[~absent] = exclusions.cover([code[~absent] for code in codes])
    if rule != "drop":
        _refuse_outside(cells, codes, excluded, axes, exclusions)
    kept = ~(absent | excluded)
    domains, levels = tuple(axes[:-1]), axes[-1].labels
    if kept.all():
        return replace(cells, domains=domains, levels=levels)
    chosen = cells.codes[cells.cell[kept]]
    return group_cells(cells.sensitive, levels, domains, chosen, cells.level[kept], cells.count[kept])


def _refuse_outside(
    cells: Cells, codes: Sequence[Integers], excluded: Mask, axes: Sequence[Domain], exclusions: Exclusions
) -> None:
    """Refuse records with a missing value that is not among the labels, or in a combination that is excluded."""
    found = {axis.name: int(cells.count[code >= len(axis)].sum()) for code, axis in zip(codes, axes, strict=True)}
    counted = [f"{number_of(records, 'record')} in '{name}'" for name, records in found.items() if records]
    leave_out = f"leave such records out with {argument('outside', 'drop')}"
    if counted:
        what = "some declared columns hold missing values, which are not among their labels"
        fix = f"name them in {argument('may_be_missing')}, or {leave_out}"
        raise InvalidInput(what, got=", ".join(counted), fix=fix, code="missing-values")
    records = int(cells.count[excluded].sum())
    if records:
        named = dict.fromkeys(axes[axis].name for box in exclusions.boxes for axis in box)
        what = f"exclude names combinations of {', '.join(named)} that do occur"
        fix = f"exclude only what cannot occur, correct the records, or {leave_out}"
        raise InvalidInput(what, got=f"{number_of(records, 'record')} in them", fix=fix, code="excluded-records")
