"""The records of people who may have several: which are kept, and in which groups each person is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from cellrisk.counts.contributions import (
    Contributions,
    Draw,
    Numbers,
    draw_seeded,
    keep_records,
    scramble,
)
from cellrisk.counts.engine import Relation, new_name, quote_sql
from cellrisk.counts.unit import Unit
from cellrisk.system.arrays import LARGEST_KEY, Integers, find_distinct, find_starts, number_keys

MOST_COUNTS = 100_000_000
"""Counts of all groups, zeros too, that are held to find in which groups people are."""
AT_ONCE = 2**18
"""Entries of which records are drawn at once: few enough for the memory of one block to serve the next."""


@dataclass(frozen=True, eq=False)
class PersonRecords:
    """The records of every person, by combinations of values: how many of each. Raw data.

    Entries are ordered by person, and those of one person by their combinations, which are in the order of codes. An
    entry of which nothing is kept has the count 0.
    """

    person: Integers
    combination: Integers
    count: Integers
    codes: list[Integers]
    """The codes of each combination, one array for each column in use."""
    seeds: Numbers
    """A number of each person, from the seed and the person's identifier alone; 0 if nothing is drawn."""
    identified: int
    """People from this number on are records without an identifier: each a person of its own."""

    def keep(self, unit: Unit, draw: Draw | None = None) -> PersonRecords:
        """Return the entries that are kept: by the seeds, or by another draw without records that name nobody."""
        drawn, ends = draw or draw_seeded(self.seeds), np.searchsorted(self.person, self.person[AT_ONCE::AT_ONCE])
        parts = zip(np.split(self.person, ends), np.split(self.count, ends), strict=True)
        count = np.concatenate([keep_records(person, count, unit, drawn) for person, count in parts])
        return replace(self, count=count if draw is None else count * (self.person < self.identified))

    def combine(self) -> tuple[list[Integers], Integers]:
        """Return the combinations of these records, in their order, and the records of each."""
        total = np.bincount(self.combination, self.count, len(self.codes[0])).astype(np.int64)
        return [code[total > 0] for code in self.codes], total[total > 0]

    def by_number(self, unit: Unit) -> tuple[tuple[int, int], ...]:
        """Return numbers of records, as far as they fit into single counts, and how many people have so many."""
        count = self.count if unit.most_in_one == unit.contributions else np.minimum(self.count, unit.most_in_one)
        people = np.bincount(np.bincount(self.person, count).astype(np.int64))
        return tuple((number, int(people[number])) for number in np.flatnonzero(people).tolist())

    @property
    def anonymous(self) -> int:
        return int(self.count[self.person >= self.identified].sum())

    def contributions(self, cell: Integers, level: Integers, n_levels: int) -> Contributions | None:
        """Return in which cells people are, and with which levels, from those of each combination.

        None if the counts are too many to be held.
        """
        if (int(cell.max(initial=0)) + 1) * n_levels > MOST_COUNTS:
            return None
        kept = np.flatnonzero(self.count)
        combination = self.combination[kept]
        return Contributions.from_records(
            self.person[kept], cell[combination], level[combination], n_levels, self.count[kept]
        )


def read_person_records(relation: Relation, rows: str, unit: Unit, seed: int, grouped: bool = True) -> PersonRecords:
    """Read the records of each person. rows: SQL for the person p, the codes c0, c1, ..., and the records n.

    A row stands for one record unless rows are ``grouped``. If it has no identifier, each of its records is of a person
    of its own.
    """
    columns = ", ".join([*relation.types, *(["n"] if grouped else [])])
    table = relation.connection.sql(f"SELECT p, {columns} FROM ({rows})").to_arrow_table()
    codes, times = [table[name].to_numpy() for name in relation.types], table["n"].to_numpy() if grouped else None
    widths = [int(code.max(initial=0)) + 1 for code in codes]
    if prod(widths) <= len(codes[0]):  # few enough to keep those that do not occur
        combination = number_keys(codes, widths)
        codes = [*np.unravel_index(np.arange(prod(widths)), widths)]
    else:
        first, combination = find_distinct(codes, widths)
        codes = [code[first] for code in codes]
    owner, others = table["p"], np.zeros(0, np.int64)
    if owner.null_count:
        named = owner.is_valid().to_numpy()
        others = np.repeat(combination[~named], 1 if times is None else times[~named])
        owner, combination, times = owner.drop_null(), combination[named], None if times is None else times[named]
    shift = max(len(codes[0]) - 1, 1).bit_length()
    number, find_seeds = _number(relation.connection, owner, LARGEST_KEY >> shift, seed)
    number <<= shift
    number |= combination
    key, count = count_keys(number, times)
    number = key >> shift
    starts = find_starts([number])
    total = np.add.reduceat(count, starts) if len(starts) else count
    many = np.flatnonzero(total > unit.contributions)
    seeds = np.zeros(len(starts) + len(others), np.uint64)
    seeds[many] = find_seeds(number[starts[many]])
    key &= (1 << shift) - 1
    entries = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(key))), key, count
    if len(others):
        of_others = len(starts) + np.arange(len(others)), others, np.ones_like(others)
        entries = tuple(np.append(*both) for both in zip(entries, of_others, strict=True))  # type: ignore[assignment]
    return PersonRecords(*entries, codes, seeds, len(starts))


def count_keys(key: Integers, times: Integers | None = None) -> tuple[Integers, Integers]:
    """Return the distinct numbers in their order, and how often each occurs: each counts once, or ``times``.

    Without ``times`` the numbers are sorted where they are.

    >>> [part.tolist() for part in count_keys(np.array([5, 2, 5]), np.array([1, 1, 2]))]
    [[2, 5], [1, 3]]
    """
    if times is None or not len(key):
        key.sort()
        starts = find_starts([key])
        return key[starts], np.diff(starts, append=len(key))
    order = np.argsort(key)
    starts = find_starts([key[order]])
    return key[order][starts], np.add.reduceat(times[order].astype(np.int64), starts)


def _number(connection: Any, owner: Any, most: int, seed: int) -> tuple[Integers, Callable[[Integers], Numbers]]:
    """Return a number of each identifier, below ``most``, and what draws the seeds of the people with some numbers.

    The seed of a person is a function of the identifier and of the seed of the table: of a text by its digest.
    """
    import pyarrow as pa

    if pa.types.is_integer(owner.type) and len(owner):
        whole = owner.to_numpy().astype(np.int64)
        low, high = int(whole.min()), int(whole.max())
        if high - low < most:
            whole -= low
            own = scramble(np.array([seed], np.uint64))
            return whole, lambda numbers: scramble((numbers + low).astype(np.uint64) ^ own)
    encoded = owner.dictionary_encode().combine_chunks()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded

    def draw(numbers: Integers) -> Numbers:
        name, seeds = new_name("names"), np.zeros(len(numbers), np.uint64)
        names = encoded.dictionary.take(pa.array(numbers))
        connection.register(name, pa.table({"i": np.arange(len(numbers)), "p": names}))
        found = connection.sql(f"SELECT i, md5_number_lower(p::VARCHAR || {quote_sql(f' {seed}')}) FROM {name}")
        place, number = (column.to_numpy() for column in found.to_arrow_table().columns)
        connection.unregister(name)
        seeds[place] = number.astype(np.uint64)
        return seeds

    return encoded.indices.to_numpy().astype(np.int64), draw
