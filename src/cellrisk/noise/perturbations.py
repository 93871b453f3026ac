"""Ways to publish counts that have no epsilon: cell keys, random rounding, suppression. What each count becomes.

A perturbation is a table of rows P(m -> r): the probability that a count m is published as r. Here 0 stands for a count
that is published as 0 or not at all. A row may hold for larger counts too, shifted: so do the last rows of a table of
cell keys, and those of rounding.
"""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import Row, TransitionTable
from cellrisk.system.arrays import Floats, Integers

SUM_OF_ROW = 1e-6
"""How far the probabilities of a row may add up to something other than 1: files are written with few digits."""
MOST_BYTES = 64_000_000
LARGEST_COUNT = 100_000
"""The largest count of a file, or base of a rule: rows are held for each of them."""
LARGEST_VALUE = 10**9
KEY_TABLE_END, KEY_TABLE_PERIOD = 750, 250
"""A table of cell keys that ends at 750 goes on with its rows 501 to 750 (ONS)."""
NAMED = "cell-key, random-rounding:3, suppress-below:10,round:5, or a CSV file"
ALLOWED = f"{NAMED} with columns count,released,probability, or i,j,p, or pcv,ckey,pvalue"


@dataclass(frozen=True, eq=False)
class Perturbation:
    """What each count is published as, and how often.

    >>> rounded = read_perturbation("random-rounding:3")
    >>> [part.round(4).tolist() for part in rounded.row(4)]
    [[3, 6], [0.6667, 0.3333]]
    >>> rounded.channel.p_zero(np.array([0, 1, 2, 3]))[:, 0].round(4).tolist()
    [1.0, 0.6667, 0.3333, 0.0]
    """

    name: str
    rows: tuple[Row, ...]
    """The rows of the counts 0, 1, ..., ``last``."""
    period: int = 0
    """The last so many rows also hold for larger counts, shifted; 0 where nothing is known of larger counts."""

    def __post_init__(self) -> None:
        if not self.rows or not 0 <= self.period <= len(self.rows):
            raise InvalidInput("a perturbation needs a row for each count from 0 on")
        object.__setattr__(self, "rows", tuple(_check_row(count, *row) for count, row in enumerate(self.rows)))

    @cached_property
    def channel(self) -> TransitionTable:
        """P(published value | true count)."""
        return TransitionTable(self.rows, self.period)

    @property
    def last(self) -> int:
        """The largest count that has a row of its own."""
        return len(self.rows) - 1

    def row(self, count: int) -> Row:
        """Return what a count is published as."""
        return self.channel.row(count)

    def check_reach(self, largest: int) -> None:
        """Refuse a table that ends before the largest count, or while counts may still be hidden."""
        self.row(int(largest))
        if not self.period and float(self.channel.p_zero(self.last)[0]) > 0:
            what = "the last count of the perturbation table may still vanish, and nothing is known of larger ones"
            fix = "add rows up to a count that is always shown"
            raise InvalidInput(what, got=f"the row of {self.last:,}", fix=fix, code="table-ends")

    def describe(self) -> str:
        """Return the perturbation in words."""
        ends = "and larger ones like the last" if self.period else "and nothing is known of larger ones"
        return f"{self.name}: rows for counts from 0 to {self.last:,}, {ends}"

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "last": self.last, "period": self.period}


def read_perturbation(given: str | os.PathLike[str] | Perturbation) -> Perturbation:
    """A perturbation by its rule or its file.

    ``cell-key``: the table that ONS gives with its cell-key-perturbation: below 10 nothing, the rest to the nearest 5.
    ``random-rounding:3``: to a multiple of 3 next to the count, so that the mean stays. ``suppress-below:10``,
    ``round:5`` or both with a comma between: counts below 10 are left out, the rest goes to the nearest multiple of 5,
    halves upwards. Anything else is a CSV file with a header, of one of three forms: ``count,released,probability``;
    ``i,j,p`` as the R package ptable exports it, whose last row holds for all larger counts; ``pcv,ckey,pvalue`` as
    cell-key-perturbation takes it, every key as likely as every other. ``keys.csv,suppress-below:10`` leaves out what
    is below 10 after that, as the threshold of that package does.

    >>> read_perturbation("suppress-below:10,round:5").row(13)[0].tolist()
    [15]
    """
    if isinstance(given, Perturbation):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput("a perturbation is a rule or a file", got=type(given).__name__, allowed=NAMED)
    text = os.fspath(given)
    if text == "cell-key":
        return _suppress_and_round(text, 10, 5)
    words = dict(part.partition(":")[::2] for part in text.split(","))
    if set(words) == {"random-rounding"}:
        base = _whole(text, words["random-rounding"])
        moved = [(np.array([0, base]), np.array([base - count, count]) / base) for count in range(1, base)]
        return Perturbation(text, ((np.array([0]), np.ones(1)), *moved), base)
    if set(words) <= {"suppress-below", "round"}:
        below, base = (_whole(text, words[word]) if word in words else 1 for word in ("suppress-below", "round"))
        return _suppress_and_round(text, below, base)
    file, suppressed, least = text.rpartition(",suppress-below:")
    if suppressed:
        return _suppress(_read_file(Path(file)), _whole(text, least))
    return _read_file(Path(text))


def _suppress(made: Perturbation, below: int) -> Perturbation:
    """Return the perturbation with published values below a threshold left out; rows are spelt out until none is."""
    rows = []
    for count in range(made.last + (below if made.period else 0) + 1):
        values, pmf = made.row(count)
        shown = values >= below
        none = int(not shown.all())
        hidden = [float(pmf[~shown].sum())] * none
        rows.append((np.append(np.zeros(none, np.int64), values[shown]), np.append(hidden, pmf[shown])))
    return Perturbation(f"{made.name}, below {below} left out", tuple(rows), made.period)


def _suppress_and_round(name: str, below: int, base: int) -> Perturbation:
    counts = np.arange(below + 2 * base)
    shown = np.where(counts < below, 0, (2 * counts + base) // (2 * base) * base)
    return Perturbation(name, tuple((value, np.ones(1)) for value in shown[:, None]), base)


def _whole(text: str, digits: str) -> int:
    """Return the whole number above 0 that a rule gives; it may be a text of any length."""
    number = float(digits) if digits.isascii() and digits.isdigit() else 0.0
    if not 0 < number <= LARGEST_COUNT:
        what, allowed = "the number of a rule must be a whole number above 0", f"up to {LARGEST_COUNT:,}"
        raise InvalidInput(what, got=repr(text[:60]), allowed=allowed, fix="give it, as in random-rounding:3")
    return int(number)


def _check_row(count: int, values: Integers, pmf: Floats) -> Row:
    """Return a row whose probabilities add up to 1; refuse what is no row."""
    what, got, total = "", f"the row of {count:,}", math.fsum(pmf.tolist())
    if len(values) == 0 or len(values) != len(pmf) or len(np.unique(values)) < len(values):
        what = "a row of a perturbation has each published value once"
    elif values.min() < 0 or values.max() > LARGEST_VALUE:
        what = f"published values must not be negative, nor beyond all counts, {LARGEST_VALUE:,}"
    elif not (np.isfinite(pmf).all() and pmf.min() >= 0):
        what = "probabilities must be numbers from 0 to 1"
    elif abs(total - 1.0) > SUM_OF_ROW:
        what, got = "the probabilities of a row must add up to 1", f"{total:.9g} in {got}"
    if what:
        raise InvalidInput(what, got=got)
    return values, pmf / total


# Files

FORMS: dict[str, tuple[str, ...]] = {
    "plain": ("count", "released", "probability"),
    "ptable": ("i", "j", "p"),
    "keys": ("pcv", "ckey", "pvalue"),
}


def _read_file(path: Path) -> Perturbation:
    """Return the table in a CSV file. Messages tell the line and never what stands in it."""
    if not path.is_file():
        raise InvalidInput("unknown perturbation, and no such file", got=repr(str(path)[:80]), allowed=ALLOWED)
    if path.stat().st_size > MOST_BYTES:
        raise InvalidInput("the perturbation table is too large", allowed=f"up to {MOST_BYTES // 10**6} MB")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines() or [""]
        delimiter = ";" if lines[0].count(";") > lines[0].count(",") else ","
        first, *table = csv.reader(lines, delimiter=delimiter, strict=True)
    except (OSError, ValueError, csv.Error):
        raise InvalidInput("the perturbation table cannot be read as text, in the form of CSV", got=path.name) from None
    header = [name.strip().strip('"').lower() for name in first]
    form = next((form for form, names in FORMS.items() if set(names) <= set(header)), None)
    if form is None or len(set(header)) < len(header) or (form == "ptable" and "type" in header):
        what = (
            "the perturbation table has other columns; a ptable for magnitudes, with a column type, is not for counts"
        )
        raise InvalidInput(what, got=path.name, allowed=ALLOWED)
    columns = [header.index(name) for name in FORMS[form]]
    numbers = [_read_line(line, row, columns, len(header)) for line, row in enumerate(table, start=2) if row]
    rows = _order_rows(_read_keys(numbers) if form == "keys" else numbers)
    period = {"plain": 0, "ptable": 1, "keys": KEY_TABLE_PERIOD if len(rows) - 1 == KEY_TABLE_END else 0}[form]
    return Perturbation(path.name, rows, period)


def _read_line(line: int, row: Sequence[str], columns: Sequence[int], width: int) -> tuple[int, int, float]:
    """Return two whole numbers and a probability, or three whole numbers."""
    try:
        first, second, third = (float(row[column]) for column in columns)
        whole = len(row) == width and first.is_integer() and second.is_integer() and math.isfinite(third)
        if not whole or max(abs(first), abs(second), abs(third)) > LARGEST_VALUE:
            raise ValueError
    except (ValueError, OverflowError, IndexError):
        what = "a line of the perturbation table is not what its header says"
        raise InvalidInput(what, got=f"line {line:,}", allowed=ALLOWED) from None
    return int(first), int(second), third


def _read_keys(numbers: Sequence[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Return the share of the keys of each count and value; a count of 0 stays, and what falls below 0 is 0."""
    keys = sorted({key for _, key, _ in numbers})
    by_count: dict[int, list[int]] = defaultdict(list)
    shares: dict[tuple[int, int], float] = defaultdict(float, {(0, 0): 1.0})
    for count, key, added in numbers:
        by_count[count].append(key)
        if not added.is_integer():
            raise InvalidInput("what a key adds must be a whole number", got=f"the row of {count:,}")
        shares[count, max(count + int(added), 0)] += 1.0 / len(keys)
    for count, has in by_count.items():
        if sorted(has) != list(range(len(keys))):
            got = f"the row of {count:,}, {len(has):,} keys"
            raise InvalidInput("every count needs every key once, from 0 on without a gap", got=got)
    return [(count, value, share) for (count, value), share in shares.items()]


def _order_rows(numbers: Sequence[tuple[int, int, float]]) -> tuple[Row, ...]:
    """Return the rows of the counts 0, 1, ... of a list of count, value and probability."""
    rows: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for count, value, share in numbers:
        rows[count].append((value, share))
    if not rows:
        raise InvalidInput("the perturbation table has no rows")
    if min(rows) < 0 or max(rows) > LARGEST_COUNT:
        raise InvalidInput("counts of a perturbation table must be from 0 on", allowed=f"up to {LARGEST_COUNT:,}")
    missing = next((count for count in range(max(rows)) if count not in rows), None)
    if missing is not None:
        raise InvalidInput("a count has no row in the perturbation table", got=f"{missing:,}", fix="add it")
    ordered = (np.array(sorted(rows[count])).T for count in range(len(rows)))
    return tuple((values.astype(np.int64), pmf) for values, pmf in ordered)
