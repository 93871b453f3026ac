"""The records of people who may have several: which are kept, and in which groups each person is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.contributions import Contributions, Draw, Numbers, draw_seeded, keep_records
from cellrisk.counts.engine import quote_sql
from cellrisk.counts.levels import Levels
from cellrisk.counts.packing import Packing, Rows
from cellrisk.counts.unit import Unit
from cellrisk.counts.validation import Values
from cellrisk.system.arrays import Integers

MOST_COUNTS = 100_000_000
"""Counts of all groups, zeros too, that are held to find in which groups people are."""


@dataclass(frozen=True, eq=False)
class PersonRecords:
    """The records of every person, as packed numbers: how many of each combination. Raw data.

    Entries are ordered by person, and those of one person by their numbers.
    """

    person: Integers
    keys: tuple[Integers, ...]
    count: Integers
    seeds: Numbers
    """A number of each person, from the seed and the person's identifier alone; 0 if nothing is drawn."""
    identified: int
    """People from this number on are records without an identifier: each a person of its own."""

    def keep(self, unit: Unit, draw: Draw | None = None) -> PersonRecords:
        """Return the entries that are kept: by the seeds, or by another draw without records that name nobody."""
        count = keep_records(self.person, self.count, unit, draw or draw_seeded(self.seeds))
        kept = count > 0 if draw is None else (count > 0) & (self.person < self.identified)
        keys = tuple(key[kept] for key in self.keys)
        return PersonRecords(self.person[kept], keys, count[kept], self.seeds, self.identified)

    def combine(self) -> tuple[tuple[Integers, ...], Integers, Integers]:
        """Return the distinct combinations in their order, the records of each, and the place of each entry in them."""
        order = np.lexsort(self.keys[::-1]) if len(self.keys) > 1 else np.argsort(self.keys[0])
        new = np.zeros(len(order), bool)
        new[:1] = True
        for key in self.keys:
            new[1:] |= np.diff(key[order]) != 0
        first, place = np.flatnonzero(new), np.zeros(len(order), np.int64)
        place[order] = np.cumsum(new) - 1
        total = np.bincount(place, self.count, len(first)).astype(np.int64)
        return tuple(key[order][first] for key in self.keys), total, place

    @property
    def anonymous(self) -> int:
        return int(self.count[self.person >= self.identified].sum())

    def contributions(
        self, rows: Rows, levels: Sequence[tuple[Levels, Integers]], place: Integers
    ) -> list[Contributions | None]:
        """Return in which groups people are, for each sensitive attribute; None if the counts are too many to be held.

        ``rows`` are the combinations in their order, ``place`` the one of each entry, and ``levels`` those of each
        attribute, with the level of each place.
        """
        starts = rows.first_of_cells()
        cell = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows.count)))
        return [
            Contributions.from_records(
                self.person, cell[place], level_of[rows.places(column)][place], len(of_attribute.labels), self.count
            )
            if len(starts) * len(of_attribute.labels) <= MOST_COUNTS
            else None
            for column, (of_attribute, level_of) in enumerate(levels, rows.packing.n_quasi)
        ]


def read_person_records(values: Values, packing: Packing, unit: Unit, seed: int) -> PersonRecords:
    """Read the records inside the domain, as lists of packed numbers, one for each person."""
    relation, dropping = values.relation, values.schema.missing == "drop"
    joins = " ".join(numbering.join for numbering in packing.numberings)
    left_out = [f"{each.code} <> {each.other}" for each in packing.numberings if each.others]
    left_out += [f"{each.code} <> {each.size}" for each in packing.numberings if each.missing and dropping]
    where = f"WHERE {' AND '.join(left_out)}" if left_out else ""
    names = list(packing.key_columns)
    chosen = [f"{sql} AS {name}" for name, sql in packing.key_columns.items()]
    if relation.grouped:
        chosen, names = [*chosen, "w AS n"], [*names, "n"]
    rows = f"(SELECT p, {', '.join(chosen)} FROM {relation.name} AS x {joins} {where})"
    record = names[0] if len(names) == 1 else f"struct_pack({', '.join(f'{name} := {name}' for name in names)})"
    records = "sum(n)" if relation.grouped else "count(*)"
    number = f"md5_number_lower(p || {quote_sql(f' {seed}')})"
    drawn = f"CASE WHEN {records} > {unit.contributions} THEN {number} ELSE 0 END"
    named, seeds = _fetch(values, f"SELECT list({record}), {drawn} FROM {rows} WHERE p IS NOT NULL GROUP BY p")
    others, none = _fetch(values, f"SELECT [{record}], 0 FROM {rows} WHERE p IS NULL")
    identified, seeds = len(named), np.concatenate([seeds, none])
    lengths = np.concatenate([np.asarray(lists.value_lengths()) for lists in (named, others)]).astype(np.int64)
    columns = zip(*(_flatten(lists, len(names)) for lists in (named, others)), strict=True)
    person, merged = np.repeat(np.arange(len(lengths)), lengths), [np.concatenate(column) for column in columns]
    keys, times = merged[: len(packing.key_columns)], merged[-1] if relation.grouped else np.ones(len(person), np.int64)
    last = int(lengths[:identified].sum())
    if relation.grouped:  # a row without an identifier stands for several records, each a person of its own
        several = np.append(np.ones(last, np.int64), times[last:])
        keys, times = [np.repeat(key, several) for key in keys], np.append(times[:last], np.ones(several[last:].sum()))
        person = np.append(person[:last], identified + np.arange(len(times) - last))
    order = np.lexsort((*keys[::-1], person))
    person, keys, times = person[order], [key[order] for key in keys], times[order].astype(np.int64)
    new = np.ones(len(person), bool)
    new[1:] = np.diff(person) != 0
    for key in keys:
        new[1:] |= np.diff(key) != 0
    starts = np.flatnonzero(new)
    count = np.add.reduceat(times, starts) if len(starts) else times
    seeds = np.pad(seeds, (0, int(person.max(initial=-1)) + 1 - len(seeds)))
    return PersonRecords(person[starts], tuple(key[starts] for key in keys), count, seeds, identified)


def _fetch(values: Values, query: str) -> tuple[Any, Numbers]:
    """Return the lists and the numbers of a query."""
    lists, numbers = values.relation.connection.sql(query).to_arrow_table().columns
    return lists.combine_chunks(), numbers.to_numpy().astype(np.uint64)


def _flatten(lists: Any, columns: int) -> list[Integers]:
    flat = lists.flatten()
    return [flat.to_numpy()] if columns == 1 else [field.to_numpy() for field in flat.flatten()]
