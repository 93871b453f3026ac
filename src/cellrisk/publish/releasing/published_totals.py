"""Totals that are published already, and the counts of a release that must add up to them.

Users call them parents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.columns import MISSING_LABEL, NUMBER, label_number, make_label
from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing.consistency import MOST_TOTAL
from cellrisk.publish.releasing.domain import ReleasedDomain
from cellrisk.system.arrays import Floats, Integers, number_keys

if TYPE_CHECKING:
    import pandas as pd

MOST_GROUPS = 100_000_000
COUNT = "count"
"""The usual name of the column of counts."""


@dataclass(frozen=True, eq=False)
class LabelledColumn:
    """One column of a release: its different labels, and the place of each row's label among them."""

    name: str
    labels: tuple[str | None, ...]
    """None stands for a missing value."""
    codes: Integers

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels):
            raise InvalidInput(f"the labels of released column '{self.name}' must differ", code="labels-twice")

    @property
    def missing(self) -> Any:
        """Which rows have a missing value."""
        return self.codes == (self.labels.index(None) if None in self.labels else -1)


def match_column(column: LabelledColumn, labels: tuple[str, ...], missing: bool) -> tuple[tuple[str, ...], Integers]:
    """The original's labels and after them those that it does not have, and the place of each row's label among them.

    ``missing``: whether the last of the original's labels stands for missing values. A label is matched by its text;
    else by the number or truth value that it spells, where that leaves no doubt.

    >>> column = LabelledColumn("rooms", ("2.0", "3", None), np.array([0, 1, 2, 0]))
    >>> labels, codes = match_column(column, ("1", "2", "(missing)"), missing=True)
    >>> labels, codes.tolist()
    (('1', '2', '(missing)', '3'), [1, 3, 2, 1])
    """
    place = {label: number for number, label in enumerate(labels)}
    released = _spell([label for label in column.labels if label is not None])
    by_meaning = {plain: place[label] for label, plain in _spell(labels).items()}
    found: list[int] = []
    new: list[str] = []
    for label in column.labels:
        if label is None and missing:
            found.append(len(labels) - 1)
        elif label in place:
            found.append(place[label])
        elif label in released and released[label] in by_meaning:
            found.append(by_meaning[released[label]])
        else:
            found.append(len(labels) + len(new))
            new.append(make_label(MISSING_LABEL, [*place, *new]) if label is None else label)
    codes = np.array(found, np.int64)[column.codes] if found else column.codes
    return (*labels, *new), codes


def _spell(labels: Sequence[str]) -> dict[str, str]:
    """One spelling for all of a number, or of a truth value, for the labels that alone have their meaning.

    >>> _spell(["2.50", "TRUE", "(20, 25]", "1", "1.0"])
    {'2.50': '2.5', 'TRUE': 'true'}
    """
    spelled = {label: label_number(label) for label in labels if NUMBER.fullmatch(label)}
    spelled |= {label: label.lower() for label in labels if label.lower() in ("true", "false")}
    times = Counter(spelled.values())
    return {label: plain for label, plain in spelled.items() if times[plain] == 1}


@dataclass(frozen=True, eq=False)
class PublishedTotals:
    """A published table of counts: some of the columns of a release, and one row for each combination."""

    columns: tuple[LabelledColumn, ...]
    counts: Integers
    """Whole numbers from 0 to `MOST_TOTAL`."""
    complete: bool
    """Whether every combination is listed; else those that are not are zero."""
    name: str
    """The name of the file, or what was given instead of one."""
    sha256: str | None = None
    """The digest of the file; None if no file was given."""
    path: Path | None = field(default=None, repr=False)
    guarantee: Mechanism | None = None
    """A mechanism with the epsilon, the delta and the neighbours of their guarantee; None if it is not known."""
    exceptions: tuple[str, ...] = ()
    """What their guarantee does not cover, a sentence each."""

    def compose(self, mechanism: Mechanism) -> Mechanism | None:
        """A mechanism with the guarantee of a release that adds up to these counts: epsilons and deltas add up.

        If both are pure, its noise hides no more than both noises do: each count of a release and of its parents is
        randomised response, and two of these show less than one with the sum of their epsilons (Kairouz, Oh, Viswanath
        2015). None if the guarantee of these counts is not known.
        """
        if self.guarantee is None:
            return None
        if self.guarantee.neighbours != mechanism.neighbours:
            what = "the parents and this release have guarantees for different neighbours, which do not add up"
            fix = f"release with {argument('neighbours', self.guarantee.neighbours)}"
            got = f"{self.guarantee.neighbours} and {mechanism.neighbours}"
            raise InvalidInput(what, got=got, fix=fix, code="mixed-neighbours")
        units = self.guarantee.unit, mechanism.unit
        if units[0].kind != units[1].kind:
            what = "the parents and this release have guarantees for a record and for a person, which do not add up"
            got, fix = f"{units[0].kind} and {units[1].kind}", "release both for the same unit of privacy"
            raise InvalidInput(what, got=got, fix=fix, code="mixed-units")
        weaker = mechanism if self.guarantee.pure else self.guarantee
        loss = {name: getattr(self.guarantee, name) + getattr(mechanism, name) for name in ("epsilon", "delta")}
        return replace(weaker, **loss, unit=max(units, key=lambda unit: unit.contributions))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"name": self.name, "sha256": self.sha256, "columns": [column.name for column in self.columns]}


def read_frame(frame: pd.DataFrame, count: str | None, name: str, complete: bool = True) -> PublishedTotals:
    """The totals of a frame, whose column of counts is ``count``, or else called "count"."""
    import pandas as pd

    count = COUNT if count is None else count
    names = [str(column) for column in frame.columns]
    if count not in names:
        what, fix = "the parent table has no such column of counts", f"name it with {argument('parent_count')}"
        raise UnknownName(what, got=repr(count), allowed=", ".join(names), fix=fix, code="no-column")
    if len(set(names)) != len(names):
        raise InvalidInput("the columns of the parent table must differ", got=", ".join(names), code="labels-twice")
    columns = []
    for place, column in enumerate(names):
        if column != count:
            codes, values = pd.factorize(frame.iloc[:, place], use_na_sentinel=False)
            labels = tuple(None if pd.isna(value) else str(value) for value in values)
            columns.append(LabelledColumn(column, labels, codes.astype(np.int64)))
    counts = read_counts(count, frame.iloc[:, names.index(count)], totals=True).astype(np.int64)
    return PublishedTotals(tuple(columns), counts, complete, name)


def read_counts(name: str, given: Any, totals: bool = False) -> Floats:
    """Counts of a published table as numbers; refuses a column of another type, and what counts, or ``totals``, cannot
    be."""
    import pandas as pd

    column = pd.Series(given)
    if pd.api.types.is_bool_dtype(column.infer_objects()) or pd.api.types.is_datetime64_any_dtype(column):
        got = f"type {column.dtype}"
        raise InvalidInput(f"the count column '{name}' holds no numbers", got=got, code="count-values")
    number: Floats = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    flaws = [
        (column.isna().to_numpy(), "has missing counts", "leave suppressed counts out, or publish them as 0"),
        (~np.isfinite(number), "holds counts that are not finite numbers", "correct them"),
    ]
    if totals:
        flaws += [
            (number < 0, "holds negative parent counts", "use a parent release with clamp, which has none"),
            (number != np.rint(number), "holds parent counts that are not whole numbers", "round them first"),
            (number > MOST_TOTAL, "holds parent counts that are too large", f"use counts up to {MOST_TOTAL:,}"),
        ]
    for wrong, what, fix in flaws:
        rows = int(np.count_nonzero(wrong))
        if rows:
            got = f"{rows:,} of {len(number):,} rows"
            raise InvalidInput(f"the count column '{name}' {what}", got=got, fix=fix, code="count-values")
    return number


def check_constrained(mechanism: Mechanism, clamp: bool, dense: bool | None) -> None:
    """Refuse settings of a release that cannot be combined with published totals."""
    if not clamp:
        what, fix = "counts that are consistent with parents are not negative", f"leave {argument('clamp', False)} out"
        raise InvalidInput(what, fix=fix, code="parents")
    if dense is False:
        what = "parents are shared among every count of the domain, the empty ones too"
        raise InvalidInput(what, fix=f"leave {argument('dense', False)} out", code="parents")
    if mechanism.threshold != USUAL_THRESHOLD:
        what = "a threshold would take counts away from their parents"
        raise InvalidInput(what, got=mechanism.threshold, allowed=f"{USUAL_THRESHOLD}", code="parents")


def find_groups(totals: PublishedTotals, domain: ReleasedDomain) -> tuple[Integers, Integers]:
    """The group of each count that gets noise, and the total of each group.

    Refused: labels and combinations that are not those of the domain.
    """
    axes = {axis.name: place for place, axis in enumerate(domain.axes)}
    unknown = [column.name for column in totals.columns if column.name not in axes]
    if unknown:
        what = "the parent table has columns that the release has not"
        raise UnknownName(what, got=", ".join(unknown), allowed=", ".join(axes), code="no-column")
    if len(totals.columns) == len(axes):
        what = "the parent table has all columns of the release, so nothing is left to release"
        raise InvalidInput(what, fix="give a table with fewer of them", code="no-column-left")
    chosen = [axes[column.name] for column in totals.columns]
    widths = [1, *(len(domain.axes[place]) for place in chosen)]  # without a column, all counts are one group
    if math.prod(widths) > MOST_GROUPS:
        what, allowed = "the parent table's domain is too large", f"up to {MOST_GROUPS:,}"
        raise InvalidInput(what, got=f"{math.prod(widths):,}", allowed=allowed, code="too-large")
    matched = []
    for column, axis in zip(totals.columns, (domain.axes[place] for place in chosen), strict=True):
        labels, codes_of_rows = match_column(column, axis.labels, axis.missing)
        if len(labels) > len(axis):
            what = f"the parent table has labels of '{column.name}' that the release has not"
            got, allowed = f"{len(labels) - len(axis):,} of them", f"the {len(axis):,} labels of the release"
            fix = "declare the same levels or bins for both"
            raise InvalidInput(what, got=got, allowed=allowed, fix=fix, code="other-labels")
        matched.append(codes_of_rows)
    places = domain.every_place()
    codes = domain.codes(places)
    listed = number_keys([np.zeros_like(totals.counts), *matched], widths)
    groups = number_keys([np.zeros_like(places), *(codes[place] for place in chosen)], widths)
    amounts = np.zeros(math.prod(widths), np.int64)
    np.add.at(amounts, listed, totals.counts)
    times, children = np.bincount(listed, minlength=len(amounts)), np.bincount(groups, minlength=len(amounts))
    twice = int(np.count_nonzero(times > 1))
    absent = int(np.count_nonzero((children > 0) & (times == 0))) if totals.complete else 0
    childless = int(np.count_nonzero((amounts > 0) & (children == 0)))
    if twice:
        what = "the parent table lists combinations more than once"
        raise InvalidInput(what, got=f"{twice:,} of them", allowed="one row each", code="counted-twice")
    if absent:
        what = "the parent table does not list every combination that the release has counts for"
        fix = "list them with their counts, 0 if there is none, or exclude them from the release too"
        got = f"{absent:,} missing of {int(np.count_nonzero(children)):,}"
        raise InvalidInput(what, got=got, fix=fix, code="not-listed")
    if childless:
        what = "parent counts are positive where the release excludes every count"
        fix = "exclude only what the parent table shows as zero"
        raise InvalidInput(what, got=f"{childless:,} of {len(amounts):,}", fix=fix, code="excluded-records")
    return groups, amounts
