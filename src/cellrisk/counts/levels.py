"""Levels: the values that a column can take, in a fixed order, as labels and as engine values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from cellrisk.counts.binning import Binning, exact, is_number, plain, scalar
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.formatting import number_of

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
MOST_LEVELS = 100_000
MISSING_LABEL = "(missing)"
NUMBERS = ("number", "single", "double")
"""Kinds of columns whose values come as the text of a number."""


@dataclass(frozen=True)
class Levels:
    """The levels of one sensitive column."""

    labels: tuple[str, ...]
    places: Mapping[Any, int]
    """The level of each engine value that occurs; None stands for a missing value."""
    declared: bool
    missing: bool
    """Whether the last level is that of missing values."""


def label_key(key: Any, kind: str, binning: Binning | None) -> str:
    """An engine value as a label: bins by their interval, numbers without trailing zeros, the rest as it is.

    Engines write one floating-point number in several ways; the label is the same. All write times in UTC.

    >>> label_key("1.0", "number", None), label_key("1.0", "text", None)
    ('1', '1.0')
    >>> label_key("5.684341886080801E-14", "double", None) == label_key("5.684341886080801e-14", "double", None)
    True
    """
    if binning is not None:
        return binning.label(key)
    if kind == "double":
        key = repr(float(key))
    if kind == "single":
        key = str(np.float32(key))
    return label_number(key) if kind in NUMBERS else str(key)


def label_number(text: str) -> str:
    """One text for one number, however it was written.

    >>> label_number("1.50"), label_number("2e3"), label_number("-0.0")
    ('1.5', '2000', '0')
    """
    number = Decimal(text)
    if not number.is_finite():
        return str(float(number))
    return plain(number) if -10 <= number.adjusted() < 40 or number.is_zero() else str(number)


@dataclass(frozen=True)
class Declaration:
    """The labels that a column was said to have. They are known before any record is looked at."""

    labels: tuple[str, ...]
    spellings: Mapping[str, int]
    """The place of the label that each text in the source counts as; one label may be spelt in several ways."""
    repeated: bool = False
    """Whether a column of this kind cannot tell two of the labels apart, as 007 and 7 in a column of numbers."""


class Sorted(NamedTuple):
    """The values of a column as levels, and the records of those values that are not among the declared levels."""

    levels: Levels
    outside: dict[Any, int]


def declare(name: str, kind: str, binning: Binning | None, given: Sequence[Any] | None) -> Declaration | None:
    """What was declared of a column: levels, or bins by their edges with one more on either side; else None.

    The labels, and whether one is declared twice, are a function of the declaration alone, never of what occurs or of
    how it is stored: "007" and "7" are two levels. Where a column of numbers cannot tell them apart, a value is of the
    level that is written as the value is, or else of the first; ``repeated`` says so.

    >>> declare("paid", "text", None, [True, False]).labels, declare("rooms", "text", None, [1.0, 2.0]).labels
    (('True', 'False'), ('1', '2'))
    """
    if given is None:
        labels = [] if binning is None else [binning.label(index) for index in binning.declared]
        return Declaration(tuple(labels), {label: place for place, label in enumerate(labels)}) if labels else None
    levels = [scalar(level) for level in given]
    if not levels or any(level is None or level != level for level in levels):  # NaN is not itself
        raise InvalidInput(
            f"of column '{name}' are an empty list, or hold a missing value",
            option="levels",
            fix=f"leave it out: {argument('missing')} decides about missing values",
            code="levels",
        )
    declared, spellings = tuple(map(label_level, levels)), dict[str, int]()

    def count_repeats(kind: str) -> int:
        """Add the texts of all levels in a column of some kind; return how many of them are another level's too."""
        forms = [(form, place) for place, level in enumerate(levels) for form in spell(level, kind)]
        return sum(spellings.setdefault(form, place) != place for form, place in forms)

    if count_repeats("text") or len(set(declared)) != len(declared):
        raise declared_twice(name, len(levels))
    return Declaration(declared, spellings, count_repeats("text" if binning else kind) > 0)


def declared_twice(name: str, number: int) -> InvalidInput:
    what = f"of column '{name}' are declared twice"
    return InvalidInput(what, option="levels", got=f"{number} with repeats", code="levels")


def sort_values(seen: Mapping[Any, int], kind: str, binning: Binning | None, declaration: Declaration | None) -> Sorted:
    """Return the levels of a column from what was declared, or else from what was seen; missing values come last.

    seen: the records of each engine value; None stands for a missing value.
    """
    values = [key for key in seen if key is not None]
    outside: dict[Any, int] = {}
    if declaration is None:
        labels, places = observe(values, kind, binning)
    else:
        labels, places = list(declaration.labels), {}
        for key in values:
            place = declaration.spellings.get(label_key(key, kind, binning))
            if place is not None:
                places[key] = place
            elif seen[key] > 0:
                outside[key] = seen[key]
    missing = seen.get(None, 0) > 0
    if missing:
        places[None] = len(labels)
        labels.append(make_label(MISSING_LABEL, labels))
    return Sorted(Levels(tuple(labels), places, declaration is not None, missing), outside)


def make_label(label: str, taken: Sequence[str]) -> str:
    """A new label, in as many brackets as it takes to differ from those that are there.

    >>> make_label(MISSING_LABEL, ["a", "(missing)"])
    '((missing))'
    """
    while label in taken:
        label = f"({label})"
    return label


def check_inside(name: str, values: Sorted, kind: str, binning: Binning | None) -> None:
    """Refuse values that are not among the declared levels."""
    if not values.outside:
        return
    spaces = all(label_key(key, kind, binning).strip() in values.levels.labels for key in values.outside)
    fix = "strip the spaces around the values" if spaces else f"declare them with {argument('levels')} as well"
    records = number_of(sum(values.outside.values()), "record")
    raise InvalidInput(
        f"column '{name}' holds values that are not among its declared levels",
        got=f"{records} with {number_of(len(values.outside), 'other value')}",
        fix=f"{fix}, or leave these records out with {argument('outside', 'drop')}",
        code="outside-levels",
    )


def check_several(name: str, levels: Levels) -> None:
    """Refuses a sensitive column with one level; for a declared one, whatever its records are."""
    if len(levels.labels) - (levels.missing and levels.declared) < 2:
        every = " (every value is missing)" if levels.missing and not levels.declared else ""
        raise InvalidInput(
            f"sensitive column '{name}' has one level only{every}: there is nothing to protect",
            allowed="two levels or more",
            fix=f"declare the other levels with {argument('levels')}",
            code="one-level",
        )


def observe(values: Sequence[Any], kind: str, binning: Binning | None) -> tuple[list[str], dict[Any, int]]:
    """Return levels as they occur, bins in order, numbers by size, text by alphabet; and the place of each value."""
    labelled = [(label_key(key, kind, binning), key) for key in values]
    if binning is not None:
        labelled.sort(key=lambda pair: pair[1])
    elif all(NUMBER.fullmatch(label) or label in ("inf", "-inf") for label, _ in labelled):
        labelled.sort(key=lambda pair: (Decimal(pair[0]), pair[0]))
    else:
        labelled.sort()
    number = {label: place for place, label in enumerate(dict.fromkeys(label for label, _ in labelled))}
    return list(number), {key: number[label] for label, key in labelled}


def label_level(level: Any) -> str:
    """The label of a declared level: text as it is, a number without trailing zeros, a truth value as Python says it.

    >>> label_level("1.0"), label_level(1.0), label_level(True)
    ('1.0', '1', 'True')
    """
    if is_number(level):
        return label_number(str(exact(level)))
    return str(level)


def spell(level: Any, kind: str) -> list[str]:
    """The texts that count as a declared level in a column of some kind.

    >>> spell(True, "text"), spell(1.0, "text"), spell("1.0", "number")
    (['True', 'true', 'TRUE'], ['1', '1.0'], ['1'])
    """
    text = str(level)
    if isinstance(level, bool):
        return [text, text.lower(), text.upper()]
    if kind == "boolean":
        return [text.strip().capitalize()]
    if kind in ("integer", *NUMBERS) and isinstance(level, str) and NUMBER.fullmatch(text.strip()):
        return [label_number(text.strip())]
    return list(dict.fromkeys([label_level(level), text]))
