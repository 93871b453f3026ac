"""Counting inside the engine: only profiles with their multiplicities come out, for any Ibis table.

Dense form, for few levels: one conditional count a level in each cell, then a group-by of those counts. Sparse form,
for many: a group-by of cell and level, then each cell's counts as a sorted list. NULL is a group of its own in both;
nothing is joined, so no cell with a missing quasi-identifier is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, and_
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.profiles import Integers, LevelCounts, NoProfiles, Profiles
from cellrisk.tables.engine import held
from cellrisk.tables.levels import Levels
from cellrisk.tables.sums import plan_sums, total

if TYPE_CHECKING:
    import ibis.expr.types as ir

DENSE_LEVELS = 32
MASK_BITS = 60
CHANGED = "the source changed while it was read"


@dataclass(frozen=True)
class Homogeneity:
    """Cells by how many of the sensitive attributes take one value only in them (Definitions 4 and 5)."""

    complete: int
    """Every attribute has one value in the cell."""
    partial: int
    """Some have, some have not."""
    none: int
    """No attribute has."""

    def __post_init__(self) -> None:
        if min(self.complete, self.partial, self.none) < 0:
            raise InvalidInput("numbers of cells must not be negative")


@dataclass(frozen=True)
class Tally:
    """What was counted: for each sensitive attribute its profiles and its levels."""

    profiles: tuple[Profiles, ...]
    levels: tuple[LevelCounts, ...]
    homogeneity: Homogeneity
    missing: tuple[int, ...]
    """Records in which each quasi-identifier is missing."""


def count_cells(coded: ir.Table, levels: Sequence[Levels], records: int, dense_levels: int = DENSE_LEVELS) -> Tally:
    """Profiles of a table with quasi-identifiers q0, q1, ..., sensitive y0, y1, ... and, maybe, counts w.

    ``records``: how many there are.
    """
    quasi = [name for name in coded.columns if name.startswith("q")]
    dense = [len(each.places) <= dense_levels and all(is_plain(key) for key in each.places) for each in levels]
    counts: dict[str, ir.BooleanValue] = {}
    columns: list[list[str]] = []
    flags: dict[str, Any] = {}
    for place, each in enumerate(levels):
        value = coded[f"y{place}"]
        columns.append([])
        if dense[place]:
            for key, level in each.places.items():
                counts[f"c{place}_{level}"] = holds(value, key, each)
                columns[place].append(f"c{place}_{level}")
        else:
            flags[f"h{place}"] = takes_one_value(coded, value)
    complete = next((names for names in columns if names), None)  # every record is in one of these counts
    size = {} if complete else {"n": total(coded)}
    sums = plan_sums(coded, columns, counts, records)
    cells = coded.group_by(quasi).aggregate(**size, **sums.aggregates, **flags)
    masks = null_masks(cells, quasi)
    cells = cells.select(*size, *sums.aggregates, *flags, **masks)
    with held(cells.group_by(list(cells.columns)).aggregate(m=cells.count())) as vectors:
        vectors = sums.read(vectors)
        if complete:
            vectors = vectors.mutate(n=reduce(add, [vectors[name] for name in complete]))
        # A count table may list empty cells; so may a source with new levels since its survey, refused later on.
        vectors = vectors.filter(vectors.n > 0)
        histogram = unfold(vectors, list(counts)) if counts else {}
        results = [
            collect_dense(vectors, columns[place], histogram, place, each)
            if dense[place]
            else count_sparse(coded, quasi, place, each)
            for place, each in enumerate(levels)
        ]
        homogeneity = compare(vectors, columns, dense)
        missing = count_missing(vectors, quasi)
    return Tally(tuple(first for first, _ in results), tuple(second for _, second in results), homogeneity, missing)


def tally_nothing(levels: Sequence[Levels], n_quasi: int) -> Tally:
    """What counting finds where there is no record."""
    none = np.zeros(0, np.int64)
    return Tally(
        tuple(NoProfiles(len(each.labels)) for each in levels),
        tuple(LevelCounts(each.labels, none, none, none, np.zeros(len(each.labels))) for each in levels),
        Homogeneity(0, 0, 0),
        (0,) * n_quasi,
    )


def null_masks(cells: ir.Table, quasi: Sequence[str]) -> dict[str, ir.IntegerValue]:
    """For each cell, which quasi-identifiers are missing: a bit each, up to sixty to a number."""
    bits = [cells[name].isnull().cast("int64") * 2 ** (place % MASK_BITS) for place, name in enumerate(quasi)]
    return {
        f"mask{start // MASK_BITS}": reduce(add, bits[start : start + MASK_BITS])
        for start in range(0, len(bits), MASK_BITS)
    }


def count_missing(vectors: ir.Table, quasi: Sequence[str]) -> tuple[int, ...]:
    """Records in which each quasi-identifier is missing."""
    records = [0] * len(quasi)
    for start in range(0, len(quasi), MASK_BITS):
        mask = f"mask{start // MASK_BITS}"
        some = vectors.filter(vectors[mask] > 0)
        found = some.group_by(mask).aggregate(records=(some.n * some.m).sum()).to_pyarrow()
        for bits, number in zip(found[mask].to_pylist(), found["records"].to_pylist(), strict=True):
            for place in range(start, min(start + MASK_BITS, len(quasi))):
                records[place] += int(number) if int(bits) >> (place - start) & 1 else 0
    return tuple(records)


def holds(value: ir.Value, key: Any, levels: Levels) -> ir.BooleanValue:
    """Whether a record has that level; never NULL, so that every engine counts alike."""
    if key is None:
        return value.isnull()
    return (value == key).fill_null(False) if levels.missing else value == key


def is_plain(key: Any) -> bool:
    """Whether the value can stand in a query on every engine."""
    return not isinstance(key, str) or "\0" not in key


def takes_one_value(coded: ir.Table, value: ir.Value) -> ir.BooleanValue:
    """Whether the records of a cell share one value, a missing one counting as a value."""
    counted = coded["w"] > 0 if "w" in coded.columns else None
    absent = value.isnull() if counted is None else value.isnull() & counted
    rows, missing = coded.count(where=counted), coded.count(where=absent)
    same = (value.min(where=counted) == value.max(where=counted)).fill_null(False)
    return (missing == rows) | ((missing == 0) & same)


def unfold(vectors: ir.Table, names: list[str]) -> dict[str, tuple[Integers, Integers, Integers]]:
    """For each count column: its distinct positive counts, the cells that hold each, and the records of those cells."""
    from ibis import selectors

    # Columns by their number: of a name, Ibis brings the quotation marks along from PostgreSQL.
    long = vectors.pivot_longer(selectors.cols(*names), names_to="column", names_transform=names.index, values_to="c")
    long = long.filter(long.c > 0)
    found = long.group_by(["column", "c"]).aggregate(cells=long.m.sum(), sizes=(long.n * long.m).sum()).to_pyarrow()
    column, count, cells, sizes = (integers(found[name]) for name in ("column", "c", "cells", "sizes"))
    return {
        name: (count[column == place], cells[column == place], sizes[column == place])
        for place, name in enumerate(names)
    }


def collect_dense(
    vectors: ir.Table, names: list[str], histogram: Mapping[str, Any], place: int, levels: Levels
) -> tuple[Profiles, LevelCounts]:
    """Profiles and level counts of one attribute, from the distinct vectors of counts."""
    import ibis

    lists = ibis.array([vectors[name] for name in names]).filter(lambda count: count > 0).sort()
    grouped = vectors.select(profile=lists, m=vectors.m).group_by("profile").aggregate(m=lambda table: table.m.sum())
    parts = [(level, *histogram[f"c{place}_{level}"]) for level in levels.places.values()]
    level = np.concatenate([np.full(len(count), level, np.int64) for level, count, _, _ in parts])
    count, cells, sizes = (np.concatenate([part[column] for part in parts]) for column in (1, 2, 3))
    return read_profiles(grouped, levels), make_level_counts(levels, level, count, cells, sizes)


def count_sparse(coded: ir.Table, quasi: list[str], place: int, levels: Levels) -> tuple[Profiles, LevelCounts]:
    """The same for an attribute with many levels, from one row for each cell and level present in it."""
    key = f"y{place}"
    pairs = coded.group_by([*quasi, key]).aggregate(c=total(coded))
    with held(pairs.filter(pairs.c > 0)) as pairs:
        lists = pairs.group_by(quasi).aggregate(profile=pairs.c.collect())
        lists = lists.select(profile=lists.profile.sort())
        grouped = lists.group_by("profile").aggregate(m=lists.count())
        profiles = read_profiles(grouped, levels)
        sized = pairs.select(key, "c", n=pairs.c.sum().over(group_by=quasi))
        found = sized.group_by([key, "c"]).aggregate(cells=sized.count(), sizes=sized.n.sum()).to_pyarrow()
    values = found[key].to_pylist()
    if not levels.places.keys() >= set(values):
        raise InvalidInput(CHANGED, fix="try again")
    level = np.array([levels.places[value] for value in values], dtype=np.int64)
    count, cells, sizes = (integers(found[name]) for name in ("c", "cells", "sizes"))
    return profiles, make_level_counts(levels, level, count, cells, sizes)


def read_profiles(grouped: ir.Table, levels: Levels) -> Profiles:
    """A column of lists and their multiplicities, as profiles."""
    found = grouped.to_pyarrow()
    lists = found["profile"].combine_chunks()
    offsets = integers(lists.offsets)
    values = integers(lists.values)
    return Profiles.from_lists(values, offsets, integers(found["m"]), len(levels.labels))


def make_level_counts(
    levels: Levels, level: Integers, count: Integers, cells: Integers, sizes: Integers
) -> LevelCounts:
    """The histogram in a fixed order; the sum of n_i n_ik is count times the records of the cells that hold it."""
    order = np.lexsort((count, level))
    level, count, cells, sizes = level[order], count[order], cells[order], sizes[order]
    products = np.zeros(len(levels.labels))
    np.add.at(products, level, count.astype(np.float64) * sizes.astype(np.float64))
    return LevelCounts(levels.labels, level, count, cells, products)


def compare(vectors: ir.Table, columns: Sequence[Sequence[str]], dense: Sequence[bool]) -> Homogeneity:
    """Cells by how many attributes take one value in them."""
    single = [
        reduce(add, [(vectors[name] > 0).cast("int64") for name in names]) == 1
        if dense[place]
        else vectors[f"h{place}"]
        for place, names in enumerate(columns)
    ]
    every = reduce(and_, single)
    no = reduce(and_, [~flag for flag in single])
    found = vectors.aggregate(
        every=vectors.m.sum(where=every).fill_null(0), no=vectors.m.sum(where=no).fill_null(0), all=vectors.m.sum()
    ).to_pyarrow()
    complete, none, cells = (int(found[name][0].as_py()) for name in ("every", "no", "all"))
    return Homogeneity(complete, cells - complete - none, none)


def integers(column: Any) -> Integers:
    """An Arrow column as a numpy array of its own."""
    return np.array(column.to_numpy(zero_copy_only=False) if not is_chunked(column) else column.to_numpy(), np.int64)


def is_chunked(column: Any) -> bool:
    return hasattr(column, "chunks")
