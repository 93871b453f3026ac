"""The labels of a release among those of the original table: the same text, or the same number or truth value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers


@dataclass(frozen=True, eq=False)
class LabelledColumn:
    """One column of a release: its different labels, and the place of each row's label among them."""

    name: str
    labels: tuple[str | None, ...]
    """None stands for a missing value."""
    codes: Integers

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels):
            raise InvalidInput(f"the labels of released column '{self.name}' must differ")

    @property
    def missing(self) -> Any:
        """Which rows have a missing value."""
        return self.codes == (self.labels.index(None) if None in self.labels else -1)


@dataclass(frozen=True, eq=False)
class Matched:
    """A column of a release in the labels of the original, and after them those that the original does not have."""

    name: str
    labels: tuple[str, ...]
    known: int
    """How many of the labels are the original's."""
    codes: Integers


def match_column(column: LabelledColumn, labels: tuple[str, ...], missing: bool) -> Matched:
    """The place of each released label among the original's; others come after them.

    ``missing``: whether the last of the original's labels stands for missing values. A label is matched by its text;
    else by the number or truth value that it spells, where that leaves no doubt.

    >>> column = LabelledColumn("rooms", ("2.0", "3", None), np.array([0, 1, 2, 0]))
    >>> found = match_column(column, ("1", "2", "(missing)"), missing=True)
    >>> found.labels, found.codes.tolist()
    (('1', '2', '(missing)', '3'), [1, 3, 2, 1])
    """
    place = {label: number for number, label in enumerate(labels)}
    released = _spell(label for label in column.labels if label is not None)
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
            new.append(_name_missing(place, new) if label is None else label)
    codes = np.array(found, np.int64)[column.codes] if found else column.codes
    return Matched(column.name, (*labels, *new), len(labels), codes)


def spell_plainly(label: str) -> str | None:
    """One spelling for all of a number, or of a truth value; None for other text.

    >>> spell_plainly("2.50"), spell_plainly("TRUE"), spell_plainly("(20, 25]")
    ('2.5', 'true', None)
    """
    from cellrisk.counts.levels import NUMBER, label_number

    if NUMBER.fullmatch(label):
        return label_number(label)
    return label.lower() if label.lower() in ("true", "false") else None


def _spell(labels: Iterable[str]) -> dict[str, str]:
    """The plain spelling of the labels that alone have their meaning."""
    spelled = {label: spell_plainly(label) for label in labels}
    times = Counter(spelled.values())
    return {label: plain for label, plain in spelled.items() if plain is not None and times[plain] == 1}


def _name_missing(known: dict[str, int], new: list[str]) -> str:
    from cellrisk.counts.levels import MISSING_LABEL

    label = MISSING_LABEL
    while label in known or label in new:
        label = f"({label})"
    return label
