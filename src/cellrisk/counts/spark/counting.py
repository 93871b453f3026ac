"""Counting on the cluster, for tables with more combinations of values than one machine takes: only profiles come out.

Values that need a decision (levels, bins, conditions, counts) are few. Each distinct one goes through the embedded
engine, as if it were a table of its own, and comes back to the cluster as a number: Spark and DuckDB cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.counting import CountedAttribute, Homogeneity, Tally
from cellrisk.counts.levels import Levels, check_several
from cellrisk.counts.profiles import MOST_NUMBERS, LevelCounts, Profiles
from cellrisk.counts.schema import Schema
from cellrisk.counts.spark.session import functions_of
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Integers

if TYPE_CHECKING:
    import pyarrow as pa

    from cellrisk.counts.filters import Part

MOST_VALUES = 1_000_000
"""Distinct values of a column that are brought here for a decision."""
MOST_VECTORS = 1_000_000
"""Distinct vectors of counts with their labels that come out; of more, only profiles and level counts do."""
OUTSIDE = -1
ROW, LEVEL = "row of the cluster", "level of the cluster"
"""Names of columns beside the one that is decided about."""


@dataclass(frozen=True)
class Decided:
    """What becomes of the distinct values of a column."""

    labels: tuple[str, ...]
    declared: bool
    missing: bool
    """Whether the last label is that of missing values."""
    codes: Integers
    """The place of each value among the labels, or OUTSIDE."""


@dataclass(frozen=True)
class SparkTable:
    """A source that is grouped by its columns in use, c0, c1, ..., with n rows of the source in each group."""

    grouped: Any
    columns: Sequence[str]
    binned: frozenset[str]
    """The columns whose values are already one for each bin."""
    rows: int
    """How many groups there are."""

    def count(self, schema: Schema, part: Part) -> Tally:
        """What the cells hold, without their keys."""
        if schema.wide:
            raise InvalidInput("a wide table has too many rows for Spark", got=f"{self.rows:,} different rows")
        fn, frame = functions_of(self.grouped.sparkSession), self.grouped
        for condition in part.conditions:
            decided = self.decide(
                frame, condition.column, {"where": type(part)((condition,)), "outside": schema.outside}
            )
            frame = self.attach(frame, condition.column, decided, "member").where("member >= 0").drop("member")
        weight = fn.col("n")
        if isinstance(schema.count, str):
            frame = self.attach(frame, schema.count, self.decide(frame, schema.count, {}, counts=True), "times")
            weight = fn.when(fn.col("times") < 0, 0).otherwise(fn.col("times")) * fn.col("n")
        used = (*schema.quasi_identifiers, *schema.sensitive)
        declared = {name: schema.declared(name) for name in used if schema.declared(name) is not None}
        choices = set(schema.sensitive) | set(declared) | set(schema.bins or {})
        keys, found = {}, {}
        for place, name in enumerate(used):
            key = f"{'y' if name in schema.sensitive else 'q'}{place}"
            if name in choices:
                asked = {"bins": {name: schema.binning(name)} if schema.binning(name) else None}
                asked["levels"] = {name: declared[name]} if name in declared else {}
                found[name] = self.decide(frame, name, asked)
                frame = self.attach(frame, name, found[name], key)
            else:
                frame = frame.withColumn(key, fn.col(self.column(name)))
            keys[name] = key
        frame = frame.select(*keys.values(), weight.alias("w"))
        return self.tally(frame, keys, found, schema)

    def column(self, name: str) -> str:
        return f"c{list(self.columns).index(name)}"

    def decide(self, frame: Any, name: str, asked: Mapping[str, Any], counts: bool = False) -> tuple[Any, Decided]:
        """The distinct values of a column, and what the embedded engine makes of them."""
        import pyarrow as pa

        from cellrisk.counts.tabulation import tabulate

        values = frame.select(frame[self.column(name)].alias("value")).distinct().limit(MOST_VALUES + 1)
        listed = values.toArrow()["value"]
        if len(listed) > MOST_VALUES:
            raise InvalidInput(
                f"column '{name}' has more than {MOST_VALUES:,} values",
                fix=f"bin it with {argument('bins')}, or leave it out",
                code="too-many-levels",
            )
        rows = pa.table({ROW: pa.array(range(len(listed))), name: listed, LEVEL: ["a"] * len(listed)})
        levels = {LEVEL: ["a", "b"], **(asked.get("levels") or {})}
        if counts:
            table = tabulate(rows, ROW, LEVEL, levels=levels, count=name)
            labels, declared, missing = (), False, False
        else:
            options = {"outside": "drop", "count": False, **asked, "levels": levels}
            table = tabulate(rows, [ROW, name], LEVEL, **options)
            domain = table.cells().domains[1]
            labels, declared, missing = domain.labels, domain.declared, domain.missing
        cells = table.cells()
        row = np.array([int(label) for label in cells.domains[0].labels], np.int64)[cells.codes[:, 0]]
        codes = np.full(len(listed), OUTSIDE, np.int64)
        codes[row] = cells.sizes if counts else cells.codes[:, 1]
        return listed, Decided(labels, declared, missing, codes)

    def attach(self, frame: Any, name: str, decided: tuple[Any, Decided], code: str) -> Any:
        """The frame with the number of each value of a column; NULL for a missing value."""
        import pyarrow as pa
        from pyspark.sql.types import LongType, StructField, StructType

        values, found = decided
        fn, column = functions_of(frame.sparkSession), self.column(name)
        missing = np.array([], np.int64) if not found.missing else np.flatnonzero(found.codes == len(found.labels) - 1)
        numbers = pa.array(found.codes, mask=np.isin(np.arange(len(found.codes)), missing))
        table = pa.table({"value": values, code: numbers})
        schema = StructType([StructField("value", frame.schema[column].dataType), StructField(code, LongType())])
        listed = fn.broadcast(frame.sparkSession.createDataFrame(table, schema))
        return frame.join(listed, frame[column].eqNullSafe(listed["value"])).drop("value")

    def tally(
        self, frame: Any, keys: Mapping[str, str], found: Mapping[str, tuple[Any, Decided]], schema: Schema
    ) -> Tally:
        """Count the cells of coded records: keys q0, q1, ... and levels y2, y3, ..., w records in each row."""
        fn = functions_of(frame.sparkSession)
        inside = ~reduce(or_, [fn.coalesce(fn.col(keys[name]) == OUTSIDE, fn.lit(False)) for name in found])
        present = reduce(and_, [fn.col(key).isNotNull() for key in keys.values()])
        kept = inside & present if schema.missing == "drop" else inside

        def total(condition: Any) -> Any:
            return fn.coalesce(fn.sum(fn.when(condition, fn.col("w"))), fn.lit(0))

        sums = [total(inside & fn.col(key).isNull()).alias(name) for name, key in keys.items()]
        whole, *absent, n_inside, records = frame.agg(fn.sum("w"), *sums, total(inside), total(kept)).first()
        missing = {name: int(number) for name, number in zip(keys, absent, strict=True) if number}
        if whole > n_inside and schema.outside != "drop":
            raise InvalidInput(
                "the source has values outside the declared levels and bins",
                got=f"{int(whole - n_inside):,} records",
                fix=f"leave them out with {argument('outside', 'drop')}",
                code="outside",
            )
        if missing and schema.missing == "error":
            raise InvalidInput(
                "the source has missing values",
                got=", ".join(f"{number:,} in '{name}'" for name, number in missing.items()),
                fix=f"use {argument('missing', 'category')} or {argument('missing', 'drop')}",
                code="missing",
            )
        if not records:
            raise InvalidInput("no record is left", got=f"{int(whole):,} records left out", code="no-records")
        quasi = [keys[name] for name in schema.quasi_identifiers]
        counted, single = [], []
        for name in schema.sensitive:
            level = keys[name]
            pairs = frame.where(kept).groupBy(*quasi, level).agg(fn.sum("w").alias("c"))
            totals = pairs.groupBy(level).agg(fn.sum("c")).collect()  # one without records is a level, if it has a name
            numbers = [number for number, records in totals if records or number is not None]
            pairs = pairs.where("c > 0")
            pair = fn.struct(fn.coalesce(fn.col(level), fn.lit(len(found[name][1].labels) - 1)).alias("l"), fn.col("c"))
            cells = pairs.groupBy(*quasi).agg(fn.sort_array(fn.collect_list(pair)).alias("v")).persist()
            levels = list_levels(found[name][1], numbers)
            check_several(name, levels)
            counted.append(count_attribute(cells, levels, found[name][1], fn))
            single.append(cells.select(*quasi, (fn.size("v") == 1).cast("int").alias("one")))
        by_cell = (
            reduce(lambda one, other: one.unionAll(other), single).groupBy(*quasi).agg(fn.sum("one").alias("ones"))
        )
        ones = {row["ones"]: row["count"] for row in by_cell.groupBy("ones").count().collect()}
        complete, none = ones.get(len(single), 0), ones.get(0, 0)
        homogeneity = Homogeneity(complete, sum(ones.values()) - complete - none, none)
        left_out = int(n_inside - records)
        return Tally(tuple(counted), homogeneity, missing, int(records), int(whole - n_inside), left_out)


def list_levels(decided: Decided, numbers: Sequence[int | None]) -> Levels:
    """The levels of a sensitive column: those declared, or those that occur among the records that are counted."""
    named = decided.labels[: len(decided.labels) - decided.missing]
    shown = [place for place in range(len(named)) if decided.declared or place in set(numbers)]
    missing = None in numbers
    labels = (*(named[place] for place in shown), *(decided.labels[-1:] if missing else ()))
    places: dict[Any, int] = {place: new for new, place in enumerate(shown)}
    return Levels(labels, {**places, **({None: len(shown)} if missing else {})}, decided.declared, missing)


def count_attribute(cells: Any, levels: Levels, decided: Decided, fn: Any) -> CountedAttribute:
    """The distinct vectors of counts that cells have; if those are many, their profiles and level counts alone."""
    n_levels = len(levels.labels)
    last = len(decided.labels) - 1
    place = np.array(
        [levels.places.get(None if decided.missing and old == last else old, -1) for old in range(last + 1)]
    )
    vectors = cells.groupBy("v").count().limit(MOST_VECTORS + 1).toArrow()
    if len(vectors) <= MOST_VECTORS:
        offsets, level, count = unfold(vectors["v"], place)
        times = vectors["count"].to_numpy()
        if len(vectors) * n_levels <= MOST_NUMBERS:
            dense = np.zeros((len(vectors), n_levels), np.int64)
            dense[np.repeat(np.arange(len(vectors)), np.diff(offsets)), level] = count
            return CountedAttribute.from_vectors(levels, dense, times)
    profiles = cells.groupBy(fn.sort_array(fn.col("v.c")).alias("p")).count().toArrow()
    lists = profiles["p"].combine_chunks()
    counts = Profiles.from_lists(
        lists.flatten().to_numpy(), lists.offsets.to_numpy(), profiles["count"].to_numpy(), n_levels
    )
    size = fn.aggregate("v", fn.lit(0).cast("long"), lambda total, pair: total + pair["c"])
    each = cells.select(fn.explode("v").alias("pair"), size.alias("size")).select("pair.l", "pair.c", "size")
    spread = each.groupBy("l", "c").agg(fn.count("*").alias("cells"), fn.sum("size").alias("sizes")).toArrow()
    level, count, number, sizes = (spread[name].to_numpy() for name in ("l", "c", "cells", "sizes"))
    order = np.lexsort((count, place[level]))
    products = np.zeros(n_levels)
    np.add.at(products, place[level], count.astype(np.float64) * sizes)
    histogram = LevelCounts(levels.labels, place[level][order], count[order], number[order], products)
    return CountedAttribute(levels, counts, histogram, None)


def unfold(vectors: pa.ChunkedArray, place: Integers) -> tuple[Integers, Integers, Integers]:
    """Lists of pairs as offsets, levels and counts."""
    lists = vectors.combine_chunks()
    pairs = lists.flatten()
    return lists.offsets.to_numpy(), place[pairs.field("l").to_numpy()], pairs.field("c").to_numpy()
