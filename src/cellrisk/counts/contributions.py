"""Which records of a person are kept, and in which groups people with several records are."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellrisk.counts.engine import Relation, new_name, quote_sql
from cellrisk.counts.unit import Unit
from cellrisk.system.arrays import LARGEST_KEY, Floats, Integers, find_distinct, find_starts, number_keys

Numbers = NDArray[np.uint64]
Draw = Callable[[Integers, Integers, Integers], Numbers]
"""A random number for each record: from the person, the place of its values among the person's own, and its copy."""


def keep_records(person: Integers, count: Integers, unit: Unit, draw: Draw) -> Integers:
    """Return how many records of each entry are kept.

    An entry is a person with a combination of values, and how many records of the person have it; entries are ordered
    by person, and those of one person by their values. Each count is first cut to C. If more than M records of a person
    are left, M are drawn from them alone, so what is kept of one person never depends on another.

    >>> person, count = np.array([0, 0, 1]), np.array([3, 1, 2])
    >>> keep_records(person, count, Unit(contributions=4, per_group=2), draw_securely).tolist()
    [2, 1, 2]
    >>> int(keep_records(person, count, Unit(contributions=2), draw_securely)[:2].sum())
    2
    """
    kept = np.minimum(count, unit.most_in_one)
    starts = find_starts([person])
    if not len(starts):
        return kept
    lengths = np.diff(starts, append=len(person))
    too_many = np.add.reduceat(kept, starts) > unit.contributions
    rows = np.flatnonzero(np.repeat(too_many, lengths))
    if not len(rows):
        return kept
    place = rows - np.repeat(starts[too_many], lengths[too_many])
    times, kept[rows] = kept[rows], 0
    first = np.cumsum(times) - times
    row = np.repeat(np.arange(len(rows)), times)
    copy = np.arange(len(row)) - first[row]
    drawn = draw(person[rows[row]], place[row], copy)
    # Numbers of people above, and as many random bits as there is room for below: the order is by person, then random.
    of_person = np.add.reduceat(times, find_starts([person[rows]]))
    number = np.repeat(np.arange(len(of_person), dtype=np.uint64), of_person)
    bits = np.uint64(len(of_person).bit_length())
    order = np.argsort((number << (np.uint64(64) - bits)) | (drawn >> bits))
    begins = np.cumsum(of_person) - of_person
    chosen = order[(begins[:, None] + np.arange(unit.contributions)).reshape(-1)]
    kept[rows] = np.bincount(row[chosen], minlength=len(rows))
    return kept


def draw_securely(person: Integers, place: Integers, copy: Integers) -> Numbers:
    """Return random numbers from the system's secure source: for releases."""
    return np.frombuffer(secrets.token_bytes(8 * len(person)), np.uint64)


def draw_seeded(seeds: Numbers) -> Draw:
    """Return a draw that repeats itself, from a number of each person: for what is assessed or simulated.

    A person's number is to depend on the seed and on the person alone; the draw then does too.

    >>> draw = draw_seeded(np.array([7, 9], np.uint64))
    >>> zero = np.zeros(2, np.int64)
    >>> bool(draw(np.array([1]), zero[:1], zero[:1])[0] == draw(np.array([0, 1]), zero, zero)[1])
    True
    """

    def draw(person: Integers, place: Integers, copy: Integers) -> Numbers:
        of_record = place.astype(np.uint64) * np.uint64(0xD1342543DE82EF95) + copy.astype(np.uint64)
        return scramble(seeds[person] + of_record * np.uint64(0x9FB21C651E98DF25))

    return draw


def scramble(numbers: Numbers) -> Numbers:
    """Return numbers that look independent of the given ones: the finaliser of SplitMix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


@dataclass(frozen=True, eq=False)
class Contributions:
    """In which groups people are, and with how many records of each category: without keys, each kind of person once.

    A pair is a group's counts n with the counts v of one person in it, 0 <= v <= n, v > 0 somewhere.

    >>> person, group, category = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1])
    >>> kinds = Contributions.from_records(person, group, category, categories=2)
    >>> kinds.people.tolist(), [kinds.pair[start:end].tolist() for start, end in zip(kinds.offsets, kinds.offsets[1:])]
    ([1, 1, 1], [[0], [1], [0, 1]])
    >>> kinds.counts.tolist(), kinds.own.tolist()
    ([[0, 2], [2, 0]], [[0, 1], [1, 0]])
    """

    counts: Integers
    """n of each pair: (pairs, categories)."""
    own: Integers
    """v of each pair: (pairs, categories)."""
    pair: Integers
    """The pairs of each kind of person, one kind after another."""
    offsets: Integers
    """Kind i has ``pair[offsets[i]:offsets[i + 1]]``."""
    people: Integers
    """How many people are of each kind."""

    @staticmethod
    def from_records(
        person: Integers, group: Integers, category: Integers, categories: int, count: Integers | None = None
    ) -> Contributions:
        """Return the kinds of people from numbered records, those of a person together and in the order of groups.

        Each row has the numbers of its person, group and category, from 0, and the number of such records: default 1.
        """
        times = np.ones(len(person), np.int64) if count is None else count.astype(np.int64)
        n_groups = int(group.max(initial=-1)) + 1
        of_group = [np.bincount(group[category == k], times[category == k], n_groups) for k in range(categories)]
        totals = np.stack(of_group, axis=1).astype(np.int64)
        first_group, vector = find_distinct(totals.T, [int(column.max(initial=0)) + 1 for column in totals.T])
        rows = find_starts([person, group])
        place = np.repeat(np.arange(len(rows)), np.diff(rows, append=len(person)))
        own = [np.bincount(place[category == k], times[category == k], len(rows)) for k in range(categories)]
        columns = [vector[group[rows]], *(column.astype(np.int64) for column in own)]
        first, pair = find_distinct(columns, [len(first_group), *(int(c.max(initial=0)) + 1 for c in columns[1:])])
        lengths = np.diff(np.append(np.flatnonzero(np.diff(person[rows], prepend=-1)), len(rows)))
        pair = pair[np.lexsort((pair, person[rows]))]
        starts = np.cumsum(lengths) - lengths
        kinds: list[Integers] = []
        people: list[Integers] = []
        for length in np.unique(lengths).tolist():
            lists = pair[starts[lengths == length][:, None] + np.arange(length)]
            one, kind = find_distinct(lists.T, [len(first)] * length)
            kinds.append(lists[one])
            people.append(np.bincount(kind))
        return Contributions(
            counts=totals[group[rows[first]]],
            own=np.stack([column[first] for column in columns[1:]], axis=1),
            pair=np.concatenate([kind.reshape(-1) for kind in kinds]) if kinds else np.zeros(0, np.int64),
            offsets=np.cumsum([0, *(kind.shape[1] for kind in kinds for _ in range(len(kind)))]),
            people=np.concatenate(people) if people else np.zeros(0, np.int64),
        )

    @property
    def n_people(self) -> int:
        return int(self.people.sum())

    @cached_property
    def records(self) -> Integers:
        """The records of each category."""
        kind = np.repeat(self.people, np.diff(self.offsets))
        return np.asarray(kind @ self.own[self.pair])

    @cached_property
    def with_category(self) -> Integers:
        """People of each kind, if they have a record of each category: (kinds, categories)."""
        has = np.logical_or.reduceat((self.own > 0)[self.pair], self.offsets[:-1], axis=0)
        return np.asarray(self.people[:, None] * has)

    def in_some_group(self, named: Floats) -> Floats:
        """Return 1 - prod_g (1 - S_g) for each kind, the groups g being released independently: (..., kinds)."""
        missed = np.multiply.reduceat(1.0 - named[..., self.pair], self.offsets[:-1], axis=-1)
        return np.asarray(1.0 - missed)


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
        cell, level = cell[self.combination[kept]], level[self.combination[kept]]
        return Contributions.from_records(self.person[kept], cell, level, n_levels, self.count[kept])


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
            of_seed = scramble(np.array([seed], np.uint64))
            return whole, lambda numbers: scramble((numbers + low).astype(np.uint64) ^ of_seed)
    encoded = owner.dictionary_encode().combine_chunks()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded

    def draw(numbers: Integers) -> Numbers:
        name, seeds = new_name("names"), np.zeros(len(numbers), np.uint64)
        names = encoded.dictionary.take(pa.array(numbers))
        connection.register(name, pa.table({"i": np.arange(len(numbers)), "p": names}))
        drawn = connection.sql(f"SELECT i, md5_number_lower(p::VARCHAR || {quote_sql(f' {seed}')}) FROM {name}")
        place, number = (column.to_numpy() for column in drawn.to_arrow_table().columns)
        connection.unregister(name)
        seeds[place] = number.astype(np.uint64)
        return seeds

    return encoded.indices.to_numpy().astype(np.int64), draw
