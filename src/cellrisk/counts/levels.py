"""Levels: the values that a column can take, in a fixed order, as labels and as engine values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from cellrisk.counts.cells import Domain
from cellrisk.counts.columns import Binning, exact, is_number, plain, scalar
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Integers
from cellrisk.system.formatting import number_of

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
MISSING_LABEL = "(missing)"
NUMBERS = ("number", "single", "double")
"""Kinds of columns whose values come as the text of a number."""


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


def label_level(level: Any) -> str:
    """The label of a declared level: text as it is, a number without trailing zeros, a truth value as Python says it.

    >>> label_level("1.0"), label_level(1.0), label_level(True)
    ('1.0', '1', 'True')
    """
    return label_number(str(exact(level))) if is_number(level) else str(level)


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


@dataclass(frozen=True, eq=False)
class Column:
    """A column in use: its labels in their order, and the code of each engine value that occurs.

    The code of a value is the place of its label. Missing values have the next code, `missing`, and values that are not
    among the declared labels the one after it, `other`.
    """

    name: str
    labels: tuple[str, ...]
    codes: dict[Any, int]
    records: Mapping[Any, int]
    """How many records have each value; None stands for a missing value."""
    declared: bool
    binned: bool

    @property
    def missing(self) -> int:
        return len(self.labels)

    @property
    def other(self) -> int:
        return len(self.labels) + 1

    def leaves_out(self, missing: str) -> bool:
        """Return whether records are left out because of this column."""
        return self.other in self.codes.values() or (missing == "drop" and None in self.codes)

    def list_codes(self, counted: bool) -> list[int]:
        """Return the codes that occur; those of no record only if they are of a value and need not be ``counted``."""
        values = self.codes.items()
        return [code for value, code in values if self.records[value] or not (counted or value is None)]

    def domain(self, occurring: Iterable[int]) -> tuple[Domain, Integers]:
        """Return the labels of some records, by the codes that occur, and the place of each code among them.

        Declared labels need not occur. The label of missing values comes last.
        """
        seen = set(occurring)
        kept = [code for code in range(self.missing) if self.declared or code in seen]
        labels = [self.labels[code] for code in kept]
        ordered = self.binned or all(map(NUMBER.fullmatch, labels))
        if self.missing in seen:
            labels.append(make_label(MISSING_LABEL, labels))
            kept.append(self.missing)
        place = np.full(self.other + 1, -1, np.int64)
        place[kept] = range(len(kept))
        return Domain(self.name, tuple(labels), ordered, self.declared, self.missing in seen), place


def code_values(
    name: str, seen: Mapping[Any, int], kind: str, binning: Binning | None, given: Sequence[Any] | None, strict: bool
) -> Column:
    """Return a column with labels as they are declared, or else as they occur.

    Without declared levels, bins by their edges are declared, with one more on either side. Declared labels, and
    whether one is declared twice, are a function of the declaration alone, never of what occurs or of how it is stored:
    "007" and "7" are two levels. Where a column of numbers cannot tell them apart, a value is of the level that is
    written as the value is, or else of the first.

    Parameters
    ----------
    seen
        The records of each engine value; None stands for a missing value.
    strict
        Refuses values with records that are not among the declared labels, and levels that the column cannot tell
        apart.

    >>> code_values("paid", {"true": 3, "no": 1}, "text", None, [True, False], strict=False).codes
    {'true': 0, 'no': 3}
    """
    values = [key for key in seen if key is not None]
    if given is not None:
        labels, spellings = _spell_all(name, kind, binning, given, strict)
    else:
        labels = () if binning is None else tuple(map(binning.label, binning.declared))
        spellings = {label: place for place, label in enumerate(labels)}
    declared = given is not None or bool(labels)
    if declared:
        shown = {key: label_key(key, kind, binning) for key in values}
        codes = {key: spellings.get(label, len(labels) + 1) for key, label in shown.items()}
        outside = {key: seen[key] for key, code in codes.items() if code > len(labels) and seen[key]}
        if strict and outside:
            spaces = all(shown[key].strip() in labels for key in outside)
            fix = "strip the spaces around the values" if spaces else f"declare them with {argument('levels')} as well"
            records, others = number_of(sum(outside.values()), "record"), number_of(len(outside), "other value")
            raise InvalidInput(
                f"column '{name}' holds values that are not among its declared levels",
                got=f"{records} with {others}",
                fix=f"{fix}, or leave these records out with {argument('outside', 'drop')}",
                code="outside-levels",
            )
    else:
        listed, codes = observe(values, kind, binning)
        labels = tuple(listed)
    if None in seen:
        codes[None] = len(labels)
    return Column(name, labels, codes, seen, declared, binning is not None)


def _spell_all(
    name: str, kind: str, binning: Binning | None, given: Sequence[Any], strict: bool
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the labels of declared levels, and the place of the label that each text in the source counts as."""
    levels = [scalar(level) for level in given]
    if not levels or any(level is None or level != level for level in levels):  # NaN is not itself
        raise InvalidInput(
            f"of column '{name}' are an empty list, or hold a missing value",
            option="levels",
            fix=f"leave it out: {argument('missing')} decides about missing values",
            code="levels",
        )
    labels, spellings = tuple(map(label_level, levels)), dict[str, int]()

    def count_repeats(kind: str) -> int:
        """Add the texts of all levels in a column of some kind; return how many of them are another level's too."""
        forms = [(form, place) for place, level in enumerate(levels) for form in spell(level, kind)]
        return sum(spellings.setdefault(form, place) != place for form, place in forms)

    repeated = count_repeats("text") or len(set(labels)) != len(labels)
    if repeated or (count_repeats("text" if binning else kind) and strict):
        what, got = f"of column '{name}' are declared twice", f"{len(levels)} with repeats"
        raise InvalidInput(what, option="levels", got=got, code="levels")
    return labels, spellings


def observe(values: Sequence[Any], kind: str, binning: Binning | None) -> tuple[list[str], dict[Any, int]]:
    """Return levels as they occur, bins in order, numbers by size, text by alphabet; and the place of each value."""
    labelled = [(label_key(key, kind, binning), key) for key in values]
    if binning is not None or kind == "integer":
        labelled.sort(key=lambda pair: pair[1])
    elif all(NUMBER.fullmatch(label) or label in ("inf", "-inf") for label, _ in labelled):
        labelled.sort(key=lambda pair: (Decimal(pair[0]), pair[0]))
    else:
        labelled.sort()
    number = {label: place for place, label in enumerate(dict.fromkeys(label for label, _ in labelled))}
    return list(number), {key: number[label] for label, key in labelled}


def make_label(label: str, taken: Sequence[str]) -> str:
    """A new label, in as many brackets as it takes to differ from those that are there.

    >>> make_label(MISSING_LABEL, ["a", "(missing)"])
    '((missing))'
    """
    while label in taken:
        label = f"({label})"
    return label


def check_several(levels: Domain) -> None:
    """Refuse a sensitive column with one level; a declared one, whatever its records are."""
    if len(levels) - (levels.missing and levels.declared) < 2:
        every = " (every value is missing)" if levels.missing and not levels.declared else ""
        raise InvalidInput(
            f"sensitive column '{levels.name}' has one level only{every}: there is nothing to protect",
            allowed="two levels or more",
            fix=f"declare the other levels with {argument('levels')}",
            code="one-level",
        )
