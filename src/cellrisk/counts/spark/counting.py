"""Counting on the cluster, for tables with more combinations of values than one machine takes: only profiles come out.

Values that need a decision (levels, bins, conditions, counts) are not many. Each distinct one goes through the embedded
engine, as a table of its own, and comes back to the cluster as a number, so Spark and DuckDB cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.counting import make_table, name_vectors, refuse_cells
from cellrisk.counts.levels import Levels, check_several
from cellrisk.counts.profiles import MOST_NUMBERS, LabelledCounts, LevelCounts, Profiles
from cellrisk.counts.schema import Schema
from cellrisk.counts.spark.session import functions_of
from cellrisk.counts.table import Attribute, FrequencyTable, Homogeneity
from cellrisk.counts.validation import check_missing
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.arrays import Integers

if TYPE_CHECKING:
    from cellrisk.counts.filters import Part

MOST_VALUES = 1_000_000
"""Distinct values of a column that are brought here for a decision."""
MOST_VECTORS = 1_000_000
"""Distinct vectors of counts with their labels that come out; of more, only profiles and level counts do."""
OUTSIDE = -1
ROW, LEVEL = "row of the cluster", "level of the cluster"
"""Names of columns beside the one that is decided about."""


@dataclass(frozen=True)
class CodedValues:
    """What becomes of the distinct values of a column."""

    values: Any
    codes: Integers
    """The place of each value among the labels, or OUTSIDE; of counts, the count."""
    labels: tuple[str, ...] = ()
    declared: bool = False
    missing: bool = False
    """Whether the last label is that of missing values."""


@dataclass(frozen=True)
class SparkTable:
    """A source that is grouped by its columns in use, c0, c1, ..., with n rows of the source in each group."""

    grouped: Any
    columns: Sequence[str]
    rows: int
    """How many groups there are."""

    def count(self, schema: Schema, part: Part, tabulate: Callable[..., Any]) -> FrequencyTable:
        """Count the cells, without their keys. tabulate: the function that makes a frequency table in DuckDB."""
        decide = partial(self.decide, tabulate)
        if schema.person is not None:
            raise InvalidInput(
                "the cluster has too many rows to limit the records of each person: all come to one machine for that",
                got=f"{self.rows:,} different rows on Spark",
                fix="keep so many records of each person on the cluster, and state it with "
                f"{argument('contributions')} alone",
                code="too-many-cells",
            )
        if schema.wide:
            raise InvalidInput(
                "the wide table has too many rows", got=f"{self.rows:,} different rows on Spark", code="too-many-cells"
            )
        fn, frame = functions_of(self.grouped.sparkSession), self.grouped
        for condition in part.conditions:
            asked = {"where": type(part)((condition,)), "outside": schema.outside}
            frame = self.attach(frame, condition.column, decide(frame, condition.column, asked), "member")
            frame = frame.where(fn.coalesce("member", fn.lit(0)) >= 0).drop("member")
        weight = fn.col("n")
        if isinstance(schema.count, str):
            frame = self.attach(frame, schema.count, decide(frame, schema.count, {"count": schema.count}), "times")
            weight = fn.greatest("times", fn.lit(0)) * fn.col("n")
        keys, decided = {}, {}
        for place, name in enumerate((*schema.quasi_identifiers, *schema.sensitive)):
            keys[name], declared, binning = f"k{place}", schema.declared(name), schema.binning(name)
            if name not in schema.sensitive and declared is None and binning is None:
                frame = frame.withColumn(keys[name], fn.col(self.column(name)))
                continue
            asked = {"levels": {name: declared} if declared else {}, "bins": {name: binning} if binning else None}
            decided[name] = decide(frame, name, asked)
            frame = self.attach(frame, name, decided[name], keys[name])
        return self.tally(frame.select(*keys.values(), weight.alias("w")), keys, decided, schema)

    def column(self, name: str) -> str:
        return f"c{list(self.columns).index(name)}"

    def decide(self, tabulate: Callable[..., Any], frame: Any, name: str, asked: Mapping[str, Any]) -> CodedValues:
        """Let the embedded engine decide about each distinct value of a column."""
        import pyarrow as pa

        distinct = frame.select(frame[self.column(name)].alias("value")).distinct()
        values = distinct.limit(MOST_VALUES + 1).toArrow()["value"]
        if len(values) > MOST_VALUES:
            raise InvalidInput(
                f"column '{name}' has more than {MOST_VALUES:,} values",
                fix=f"bin it with {argument('bins')}, or leave it out",
                code="too-many-levels",
            )
        counts = "count" in asked
        rows = pa.table({ROW: pa.array(range(len(values))), name: values, LEVEL: ["a"] * len(values)})
        options = {"count": False} if counts else {"outside": "drop", "count": False}
        options |= {**asked, "levels": {LEVEL: ["a", "b"], **asked.get("levels", {})}}
        cells = tabulate(rows, [ROW] if counts else [ROW, name], LEVEL, **options).cells()
        row = np.array([int(label) for label in cells.domains[0].labels], np.int64)[cells.codes[:, 0]]
        codes = np.full(len(values), OUTSIDE, np.int64)
        codes[row] = cells.sizes if counts else cells.codes[:, 1]
        if counts:
            return CodedValues(values, codes)
        return CodedValues(values, codes, cells.domains[1].labels, cells.domains[1].declared, cells.domains[1].missing)

    def attach(self, frame: Any, name: str, decided: CodedValues, code: str) -> Any:
        """Add the number of each value of a column to the frame; NULL for a missing value."""
        import pyarrow as pa
        from pyspark.sql.types import LongType, StructField, StructType

        fn, column = functions_of(frame.sparkSession), self.column(name)
        absent = decided.codes == (len(decided.labels) - 1 if decided.missing else OUTSIDE - 1)
        table = pa.table({"value": decided.values, code: pa.array(decided.codes, mask=absent)})
        schema = StructType([StructField("value", frame.schema[column].dataType), StructField(code, LongType())])
        listed = fn.broadcast(frame.sparkSession.createDataFrame(table, schema))
        return frame.join(listed, frame[column].eqNullSafe(listed["value"])).drop("value")

    def tally(
        self, frame: Any, keys: Mapping[str, str], decided: Mapping[str, CodedValues], schema: Schema
    ) -> FrequencyTable:
        """Count the cells of records with their values as numbers, w records in each row."""
        fn = functions_of(frame.sparkSession)
        inside = ~reduce(or_, [fn.coalesce(fn.col(keys[name]) == OUTSIDE, fn.lit(False)) for name in decided])
        present = reduce(and_, [fn.col(key).isNotNull() for key in keys.values()])
        kept = inside & present if schema.missing == "drop" else inside

        def total(condition: Any) -> Any:
            return fn.coalesce(fn.sum(fn.when(condition, fn.col("w"))), fn.lit(0))

        sums = [total(inside & fn.col(key).isNull()) for key in keys.values()]
        whole, n_inside, n_kept, *absent = map(int, frame.agg(fn.sum("w"), total(inside), total(kept), *sums).first())
        missing = {name: number for name, number in zip(keys, absent, strict=True) if number}
        if whole > n_inside and schema.outside != "drop":
            raise InvalidInput(
                "the source has values outside the declared levels and bins",
                got=f"{whole - n_inside:,} such records",
                fix=f"leave them out with {argument('outside', 'drop')}",
                code="outside",
            )
        check_missing(missing, schema)
        if not n_kept:
            raise InvalidInput("no record is left", got=f"{whole:,} records left out", code="no-records")
        quasi, counted, single = [keys[name] for name in schema.quasi_identifiers], [], []
        for name in schema.sensitive:
            pairs = frame.where(kept).groupBy(*quasi, fn.col(keys[name]).alias("l")).agg(fn.sum("w").alias("c"))
            totals = dict(map(tuple, pairs.groupBy("l").agg(fn.sum("c")).collect()))
            levels, place = list_levels(decided[name], totals)
            check_several(name, levels)
            last = fn.lit(len(decided[name].labels) - 1)  # the label of missing values
            pair = fn.struct(fn.coalesce("l", last).alias("l"), fn.col("c"))
            cells = pairs.where("c > 0").groupBy(*quasi).agg(fn.sort_array(fn.collect_list(pair)).alias("v"))
            counted.append(count_attribute(name, cells, levels, place, fn))
            single.append(cells.select(*quasi, (fn.size("v") == 1).cast("int").alias("one")))
        cells = reduce(lambda one, other: one.unionAll(other), single).groupBy(*quasi).agg(fn.sum("one").alias("ones"))
        ones = dict(map(tuple, cells.groupBy("ones").count().collect()))
        complete, none = ones.get(len(single), 0), ones.get(0, 0)
        homogeneity = Homogeneity(complete, sum(ones.values()) - complete - none, none)
        outside, dropped = whole - n_inside, n_inside - n_kept
        read_cells = refuse_cells(self.rows)
        return make_table(schema, tuple(counted), homogeneity, missing, dropped, outside, read_cells)


def list_levels(decided: CodedValues, totals: Mapping[int | None, int]) -> tuple[Levels, Integers]:
    """The levels of a sensitive column, those declared or those that occur, and the place of each label among them.

    A level that a count table lists with zeros only is a level; missing values of no record are none.
    """
    named = len(decided.labels) - decided.missing
    shown = [label for label in range(named) if decided.declared or label in totals]
    missing = bool(totals.get(None))
    shown += [named] if missing else []
    place = np.full(len(decided.labels), -1, np.int64)
    place[shown] = range(len(shown))
    places: dict[Any, int] = {None if label == named else label: number for number, label in enumerate(shown)}
    return Levels(tuple(decided.labels[label] for label in shown), places, decided.declared, missing), place


def count_attribute(name: str, cells: Any, levels: Levels, place: Integers, fn: Any) -> Attribute:
    """The distinct vectors of counts that cells have; if those are many, their profiles and level counts alone.

    cells: the pairs v of a level l and its count c in each cell. place: where a level stands among the levels.
    """
    n_levels = len(levels.labels)
    vectors = cells.groupBy("v").count().limit(min(MOST_VECTORS, MOST_NUMBERS // n_levels) + 1).toArrow()
    if len(vectors) <= min(MOST_VECTORS, MOST_NUMBERS // n_levels):
        lists = vectors["v"].combine_chunks()
        level, count = (lists.flatten().field(name).to_numpy() for name in "lc")
        dense = np.zeros((len(vectors), n_levels), np.int64)
        dense[np.repeat(np.arange(len(vectors)), lists.value_lengths().to_numpy()), place[level]] = count
        return name_vectors(name, levels, LabelledCounts.from_cells(dense, vectors["count"].to_numpy()))
    profiles = cells.groupBy(fn.sort_array("v.c").alias("counts")).agg(fn.count("*").alias("m")).toArrow()
    size = fn.aggregate("v", fn.lit(0).cast("long"), lambda total, pair: total + pair["c"])
    spread = cells.select(fn.explode("v").alias("pair"), size.alias("size")).groupBy("pair.l", "pair.c")
    spread = spread.agg(fn.count("*").alias("cells"), fn.sum("size").alias("sizes")).toArrow()
    level, *numbers = (spread[name].to_numpy() for name in ("l", "c", "cells", "sizes"))
    counts = profiles["counts"].combine_chunks()
    offsets = np.append(0, np.cumsum(counts.value_lengths().to_numpy()))
    lists = Profiles.from_lists(counts.flatten().to_numpy(), offsets, profiles["m"].to_numpy(), n_levels)
    return Attribute(
        name, LevelCounts.from_pairs(levels.labels, place[level], *numbers), lists, levels.declared, levels.missing
    )
