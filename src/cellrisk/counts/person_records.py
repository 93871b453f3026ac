"""The records of people who may have several: which are kept, and in which groups each person is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.contributions import Contributions, Draw, Numbers, draw_seeded, keep_records
from cellrisk.counts.engine import Relation, quote_sql
from cellrisk.counts.unit import Unit
from cellrisk.system.arrays import Integers, find_distinct

MOST_COUNTS = 100_000_000
"""Counts of all groups, zeros too, that are held to find in which groups people are."""


@dataclass(frozen=True, eq=False)
class PersonRecords:
    """The records of every person, as codes of values: how many of each combination. Raw data.

    Entries are ordered by person, and those of one person by their codes.
    """

    person: Integers
    codes: list[Integers]
    """One array for each column in use."""
    count: Integers
    seeds: Numbers
    """A number of each person, from the seed and the person's identifier alone; 0 if nothing is drawn."""
    identified: int
    """People from this number on are records without an identifier: each a person of its own."""

    def keep(self, unit: Unit, draw: Draw | None = None) -> PersonRecords:
        """Return the entries that are kept: by the seeds, or by another draw without records that name nobody."""
        count = keep_records(self.person, self.count, unit, draw or draw_seeded(self.seeds))
        kept = count > 0 if draw is None else (count > 0) & (self.person < self.identified)
        codes = [code[kept] for code in self.codes]
        return PersonRecords(self.person[kept], codes, count[kept], self.seeds, self.identified)

    def combine(self) -> tuple[list[Integers], Integers, Integers]:
        """Return the distinct combinations in their order, the records of each, and the place of each entry in them."""
        first, place = find_distinct(self.codes, [int(code.max(initial=0)) + 1 for code in self.codes])
        total = np.bincount(place, self.count, len(first)).astype(np.int64)
        return [code[first] for code in self.codes], total, place

    def by_number(self, unit: Unit) -> tuple[tuple[int, int], ...]:
        """Return numbers of records, as far as they fit into single counts, and how many people have so many."""
        count = self.count if unit.most_in_one == unit.contributions else np.minimum(self.count, unit.most_in_one)
        total = np.bincount(self.person, count).astype(np.int64)
        return tuple(zip(*(part.tolist() for part in np.unique(total, return_counts=True)), strict=True))

    @property
    def anonymous(self) -> int:
        return int(self.count[self.person >= self.identified].sum())

    def contributions(self, cell: Integers, level: Integers, n_levels: int, n_cells: int) -> Contributions | None:
        """Return in which cells people are, and with which levels, from those of each entry; None if they are too many
        to be held."""
        if n_cells * n_levels > MOST_COUNTS:
            return None
        return Contributions.from_records(self.person, cell, level, n_levels, self.count)


def read_person_records(relation: Relation, rows: str, unit: Unit, seed: int) -> PersonRecords:
    """Read the records of each person as a list. rows: SQL for the person p, the codes c0, c1, ..., and the records n.

    A row without an identifier may stand for several records: each is of a person of its own.
    """
    record = f"struct_pack({', '.join(f'{name} := {name}' for name in (*relation.types, 'n'))})"
    number = f"md5_number_lower(p || {quote_sql(f' {seed}')})"
    drawn = f"CASE WHEN sum(n) > {unit.contributions} THEN {number} ELSE 0 END"
    named, seeds = _fetch(relation, f"SELECT list({record}), {drawn} FROM ({rows}) WHERE p IS NOT NULL GROUP BY p")
    others, _ = _fetch(relation, f"SELECT [{record}], 0 FROM ({rows}) WHERE p IS NULL")
    fields = [[field.to_numpy() for field in lists.flatten().flatten()] for lists in (named, others)]
    *codes, times = map(np.concatenate, zip(*fields, strict=True))
    identified, last = len(named), len(fields[0][-1])
    several = np.append(np.ones(last, np.int64), times[last:])
    codes = [np.repeat(code, several) for code in codes]
    times = np.append(times[:last], np.ones(int(several[last:].sum())))
    lengths = np.asarray(named.value_lengths()).astype(np.int64)
    person = np.append(np.repeat(np.arange(identified), lengths), identified + np.arange(len(times) - last))
    bounds = [int(column.max(initial=0)) + 1 for column in (person, *codes)]
    first, entry = find_distinct([person, *codes], bounds)
    count = np.bincount(entry, times, len(first)).astype(np.int64)
    seeds = np.pad(seeds, (0, len(times) - last))
    return PersonRecords(person[first], [code[first] for code in codes], count, seeds, identified)


def _fetch(relation: Relation, query: str) -> tuple[Any, Numbers]:
    """Return the lists and the numbers of a query."""
    lists, numbers = relation.connection.sql(query).to_arrow_table().columns
    return lists.combine_chunks(), numbers.to_numpy().astype(np.uint64)
