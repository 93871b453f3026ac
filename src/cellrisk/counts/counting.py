"""Counting: in memory, where like records were made one and few rows are left, or else inside the engine, for any Ibis
table. From there no cell and no key comes out.

Dense form, for few levels: one conditional count a level in each cell, then a group-by of those counts. Up to 10,000
distinct vectors of counts leave the engine, each with the number of its cells, and are sorted into profiles here; where
there are more, the engine sorts them, and only profiles come out. Sparse form,
for many: a group-by of cell and level, then each cell's counts as a sorted list. NULL is a group of its own in both;
nothing is joined, so no cell with a missing quasi-identifier is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.holding import held, read
from cellrisk.counts.levels import Levels
from cellrisk.counts.packing import pack
from cellrisk.counts.profiles import MOST_NUMBERS, LabelledCounts, LevelCounts, NoProfiles, Profiles
from cellrisk.counts.resources import Resources
from cellrisk.counts.sums import plan_sums, total
from cellrisk.counts.survey import Survey
from cellrisk.counts.vectors import MASK_BITS, FewVectors, Homogeneity, Vectors, integers, opened_vectors, read_profiles
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers, find_distinct

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

DENSE_LEVELS = 32
CHANGED = "the source changed while it was read"


MOST_LABELS = 100
"""Vectors of counts are kept with their labels up to so many levels."""
MOST_HERE = 2_000_000
"""Counts, those of zero too, of cells that are counted here."""
MOST_PAIRS = 5_000_000
"""Positive counts of an attribute with many levels that are brought here for that."""


@dataclass(frozen=True)
class CountedAttribute:
    """What was counted of one sensitive attribute."""

    profiles: Profiles
    levels: LevelCounts
    vectors: LabelledCounts | None
    """None where there are too many of them, or too many levels."""


@dataclass(frozen=True)
class Tally:
    """What was counted: the sensitive attributes, each alone and together."""

    attributes: tuple[CountedAttribute, ...]
    homogeneity: Homogeneity
    missing: tuple[int, ...]
    """Records in which each quasi-identifier is missing."""


def count_cells(
    survey: Survey, resources: Resources, dictionaries: bool = False, dense_levels: int = DENSE_LEVELS
) -> Tally:
    """What the cells of a surveyed source hold. ``dictionaries``: whether its text comes as Parquet stores it."""
    levels = survey.levels
    names = [name for name in survey.coded.columns if name.startswith("q")]
    if not survey.records:
        return tally_nothing(levels, len(names))
    if survey.few and (tally := count_here(read(survey.coded), names, levels)) is not None:
        return tally
    packed = pack(survey.coded, survey.rows or survey.records, levels, resources, dictionaries and survey.rows is None)
    coded, quasi = packed.coded, [name for name in packed.coded.columns if name.startswith("q")]
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
    sums = plan_sums(coded, columns, counts, survey.records)
    cells = coded.group_by(quasi).aggregate(**size, **sums.aggregates, **flags)
    masks = null_masks(cells, quasi)
    cells = cells.select(*size, *sums.aggregates, *flags, **masks)
    vectors = cells.group_by(list(cells.columns)).aggregate(m=cells.count())
    with opened_vectors(vectors, sums, complete) as found:
        histogram = found.histogram(list(counts)) if counts else {}
        results = [
            collect_dense(found, columns[place], histogram, place, each)
            if dense[place]
            else count_sparse(coded, quasi, place, each)
            for place, each in enumerate(levels)
        ]
        homogeneity = found.homogeneity(columns, dense)
        missing = found.missing(quasi) if packed.missing is None else packed.missing
    return Tally(tuple(results), homogeneity, missing)


def count_here(rows: pa.Table, quasi: list[str], levels: Sequence[Levels]) -> Tally | None:
    """The same of rows in memory; None where their cells have too many levels together."""
    import pyarrow as pa

    weights = integers(rows["w"])
    if not weights.all():  # a count table may list empty cells, which are none
        rows, weights = rows.filter(pa.array(weights > 0)), weights[weights > 0]
    numbered = [number_values(rows[name]) for name in quasi]
    first, cell = find_distinct([codes for _, codes in numbered], [len(values) for values, _ in numbered])
    if len(first) * sum(len(each.labels) for each in levels) > MOST_HERE:
        return None
    columns = {"m": np.ones(len(first), np.int64)}
    names = [[f"c{place}_{level}" for level in each.places.values()] for place, each in enumerate(levels)]
    for place, each in enumerate(levels):
        n_levels = len(each.labels)
        pair = cell * n_levels + find_places(rows[f"y{place}"], each)
        # Numbers of records are exact as floating-point numbers too.
        counts = np.bincount(pair, weights, len(first) * n_levels).astype(np.int64).reshape(len(first), n_levels)
        columns |= {f"c{place}_{level}": counts[:, level] for level in each.places.values()}
        columns["n"] = counts.sum(axis=1)
    for place, (values, codes) in enumerate(numbered):
        bit = integers(values.is_null())[codes[first]] << place % MASK_BITS
        columns[f"mask{place // MASK_BITS}"] = columns.get(f"mask{place // MASK_BITS}", 0) + bit
    vectors = FewVectors(columns)
    histogram = vectors.histogram([name for some in names for name in some])
    return Tally(
        tuple(collect_dense(vectors, names[place], histogram, place, each) for place, each in enumerate(levels)),
        vectors.homogeneity(names, [True] * len(names)),
        vectors.missing(quasi),
    )


def number_values(column: pa.ChunkedArray) -> tuple[pa.Array, Integers]:
    """The distinct values of a column, a missing one among them, and the place of each row's value there.

    In this way, as filling a gap with a number makes Arrow load all of pandas.
    """
    whole = column.combine_chunks()
    plain = whole.dictionary_decode() if hasattr(whole, "dictionary_decode") else whole
    encoded = plain.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, integers(encoded.indices)


def tally_nothing(levels: Sequence[Levels], n_quasi: int) -> Tally:
    """What counting finds where there is no record."""
    none = np.zeros(0, np.int64)
    return Tally(
        tuple(
            CountedAttribute(
                NoProfiles(len(each.labels)),
                LevelCounts(each.labels, none, none, none, np.zeros(len(each.labels))),
                LabelledCounts.from_cells(np.zeros((0, len(each.labels)))),
            )
            for each in levels
        ),
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


def collect_dense(
    vectors: Vectors, names: list[str], histogram: Mapping[str, Any], place: int, levels: Levels
) -> CountedAttribute:
    """What there is of one attribute, from the distinct vectors of counts."""
    parts = [(level, *histogram[f"c{place}_{level}"]) for level in levels.places.values()]
    level = np.concatenate([np.full(len(count), level, np.int64) for level, count, _, _ in parts])
    count, cells, sizes = (np.concatenate([part[column] for part in parts]) for column in (1, 2, 3))
    n_levels = len(levels.labels)
    profiles, labelled = vectors.profiles(names, list(levels.places.values()), n_levels)
    kept = labelled if len(names) <= DENSE_LEVELS or n_levels <= MOST_LABELS else None
    return CountedAttribute(profiles, make_level_counts(levels, level, count, cells, sizes), kept)


def count_sparse(coded: ir.Table, quasi: list[str], place: int, levels: Levels) -> CountedAttribute:
    """The same for an attribute with many levels, from one row for each cell and level present in it."""
    key = f"y{place}"
    pairs = coded.group_by([*quasi, key]).aggregate(c=total(coded))
    with held(pairs.filter(pairs.c > 0)) as pairs:
        lists = pairs.group_by(quasi).aggregate(profile=pairs.c.collect())
        lists = lists.select(profile=lists.profile.sort())
        grouped = lists.group_by("profile").aggregate(m=lists.count())
        profiles = read_profiles(grouped, len(levels.labels))
        labelled = label_pairs(pairs, quasi, key, levels)
        sized = pairs.select(key, "c", n=pairs.c.sum().over(group_by=quasi))
        found = read(sized.group_by([key, "c"]).aggregate(cells=sized.count(), sizes=sized.n.sum()))
    count, cells, sizes = (integers(found[name]) for name in ("c", "cells", "sizes"))
    return CountedAttribute(
        profiles, make_level_counts(levels, find_places(found[key], levels), count, cells, sizes), labelled
    )


def label_pairs(pairs: ir.Table, quasi: list[str], key: str, levels: Levels) -> LabelledCounts | None:
    """The vectors of counts with their labels, from one row for each cell and level; None where they are many."""
    import ibis

    n_levels = len(levels.labels)
    if n_levels > MOST_LABELS or read(pairs.aggregate(n=pairs.count()))["n"][0].as_py() > MOST_PAIRS:
        return None
    found = read(pairs.select(key, "c", cell=ibis.dense_rank().over(order_by=quasi)))
    cell = integers(found["cell"])
    cell -= cell.min()
    n_cells = int(cell.max()) + 1
    if n_cells * n_levels > MOST_NUMBERS:
        return None
    counts = np.zeros((n_cells, n_levels), np.int64)
    counts[cell, find_places(found[key], levels)] = integers(found["c"])
    return LabelledCounts.from_cells(counts)


def find_places(column: pa.ChunkedArray, levels: Levels) -> Integers:
    """The place of each value of a column among the levels."""
    values, codes = number_values(column)
    listed = values.to_pylist()
    if not levels.places.keys() >= set(listed):
        raise InvalidInput(CHANGED, fix="try again")
    return np.asarray(np.array([levels.places[value] for value in listed], np.int64)[codes])


def make_level_counts(
    levels: Levels, level: Integers, count: Integers, cells: Integers, sizes: Integers
) -> LevelCounts:
    """The histogram in a fixed order; the sum of n_i n_ik is count times the records of the cells that hold it."""
    order = np.lexsort((count, level))
    level, count, cells, sizes = level[order], count[order], cells[order], sizes[order]
    products = np.zeros(len(levels.labels))
    np.add.at(products, level, count.astype(np.float64) * sizes.astype(np.float64))
    return LevelCounts(levels.labels, level, count, cells, products)
