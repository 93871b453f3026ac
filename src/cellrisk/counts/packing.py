"""Packing: the places of a record's values in all columns in use as the digits of one whole number, or of a few."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from cellrisk.counts.validation import Numbering, Values
from cellrisk.system.arrays import LARGEST_KEY, Integers


@dataclass(frozen=True)
class Packing:
    """The places of several columns as the digits of one number, or of a few."""

    numberings: tuple[Numbering, ...]
    """Those of quasi-identifiers, then those of sensitive attributes."""

    @cached_property
    def digits(self) -> list[tuple[int, int]]:
        """For each column, which number holds its place, and what a place counts there."""
        number, unit, digits = 0, 1, []
        for width in reversed([numbering.width for numbering in self.numberings]):
            if unit > 1 and unit * width >= LARGEST_KEY:
                number, unit = number + 1, 1
            digits.append((number, unit))
            unit *= width
        return [(number - own, unit) for own, unit in reversed(digits)]

    @property
    def bound(self) -> int:
        """Combinations that there can be."""
        return prod(numbering.width for numbering in self.numberings)

    @property
    def n_quasi(self) -> int:
        return sum(numbering.column.role[0] == "q" for numbering in self.numberings)

    @cached_property
    def key_columns(self) -> dict[str, str]:
        """The numbers k0, k1, ... of a record, in SQL."""
        digits: dict[int, list[str]] = {}
        for numbering, (number, unit) in zip(self.numberings, self.digits, strict=True):
            digits.setdefault(number, []).append(f"{numbering.code} * {unit}")
        return {f"k{number}": f"({' + '.join(codes)})::BIGINT" for number, codes in digits.items()}

    def sql(self, values: Values) -> str:
        """SQL that groups the records: the numbers k0, k1, ..., and the records n of each combination."""
        keys = [f"{sql} AS {name}" for name, sql in self.key_columns.items()]
        narrow = "INTEGER" if values.records < 2**31 else "BIGINT"
        joins = " ".join(numbering.join for numbering in self.numberings)
        return (
            f"SELECT {', '.join(keys)}, {values.total}::{narrow} AS n FROM {values.relation.name} AS x {joins} "
            "GROUP BY ALL"
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Combinations of values that occur, as packed numbers, and the records of each."""

    packing: Packing
    keys: tuple[Integers, ...]
    count: Integers

    def places(self, column: int) -> Integers:
        """The place of a column's value in each row."""
        number, unit = self.packing.digits[column]
        shifted = self.keys[number] // unit if unit > 1 else self.keys[number]
        first = column == 0 or self.packing.digits[column - 1][0] != number
        return shifted if first else shifted % self.packing.numberings[column].width

    def take(self, chosen: Any) -> Rows:
        return Rows(self.packing, tuple(key[chosen] for key in self.keys), self.count[chosen])

    def sort(self) -> Rows:
        """The rows in the order of their numbers; with the count as last digits if 63 bits suffice, which is faster."""
        unit = int(self.count.max(initial=0)) + 1
        if len(self.keys) > 1 or self.packing.bound * unit >= LARGEST_KEY:
            return self.take(np.lexsort(self.keys[::-1]))
        whole = self.keys[0] * unit
        whole += self.count
        whole.sort()
        count = (whole % unit).astype(self.count.dtype)
        whole //= unit
        return Rows(self.packing, (whole,), count)

    def first_of_cells(self) -> Integers:
        """Where each cell begins in sorted rows."""
        last, unit = self.packing.digits[self.packing.n_quasi - 1]
        new = np.zeros(len(self.count), bool)
        new[:1] = True
        for number, key in enumerate(self.keys[: last + 1]):
            cell = key // unit if number == last else key
            new[1:] |= cell[1:] != cell[:-1]
        return np.flatnonzero(new)
