"""Files, tables and frames in Spark, grouped and counted there.

Spark is more lenient than a count may be: it replaces what is not UTF-8, closes quotation marks that stay open, and
skips files by their names. Each of these is looked for and refused.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.binning import Binning, EdgeBinning, WidthBinning
from cellrisk.counts.counting import MOST_CELLS
from cellrisk.counts.files import (
    DELIMITERS,
    KINDS,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    ParquetFiles,
    are_parquet,
    exists,
    find_files,
    group_parquet,
    group_text,
    is_address,
)
from cellrisk.counts.refusals import CSV
from cellrisk.counts.schema import locate
from cellrisk.counts.spark.counting import SparkTable
from cellrisk.counts.spark.refusals import spark_refusals
from cellrisk.counts.spark.session import functions_of, spark_session
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

ALLOWED = "a path or glob of CSV or Parquet files, the name of a Spark table, a Spark DataFrame"
TABLE_NAME = re.compile(r"(\w+\.){0,2}\w+")
SUFFIXES = tuple(f"{suffix}{packing}" for suffix in (*TEXT_SUFFIXES, *PARQUET_SUFFIXES) for packing in ("", ".gz"))
ROWS = 1_000_000
"""Rows that leave the cluster at a time."""
TEXT = {
    "columnPruning": "false",  # with it, Spark does not see that a row has too many fields or too few
    "emptyValue": "",
    "encoding": "UTF-8",
    "escape": '"',
    "header": "true",
    "mode": "FAILFAST",
    "multiLine": "true",  # else it cuts a field over several lines, and skips lines of blanks
    "nullValue": "",
    "quote": '"',
    "unescapedQuoteHandling": "RAISE_ERROR",
}
NUMBER = (
    r"^[ \t\n\x0B\f\r]*([-+]?([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)([eE][-+]?[0-9]+)?"
    r"|[-+]?[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])[ \t\n\x0B\f\r]*$"
)
"""Text that DuckDB takes for a number; Spark would take 1d and 0x1p3 for numbers too, and 1_000 for none."""
NUMERIC = ("byte", "decimal", "double", "float", "integer", "long", "short")
USABLE = (*NUMERIC, "boolean", "date", "string", "timestamp", "timestamp_ntz")


@contextmanager
def open_spark(source: Any, columns: Sequence[str], bins: Mapping[str, Binning] | None = None) -> Iterator[Any]:
    """Group a source by the columns in use on the cluster; give an Arrow stream of the groups, and n rows of each.

    bins: columns of which only the bin of a value matters, so that the cluster groups by bins; a source with very many
    groups then stays there as a `SparkTable`. Without it, such a source is refused.
    """
    with spark_refusals():
        read = plan_source(source, columns)
        with spark_session(getattr(source, "sparkSession", None)) as session:
            frame = read(session)
            frame = frame.select(*(prepare(frame, f"c{place}", name) for place, name in enumerate(columns)))
            for name, binning in (bins or {}).items():
                frame = coarsen(frame, f"c{columns.index(name)}", binning)
            grouped = frame.groupBy(*frame.columns).count().withColumnRenamed("count", "n").persist()
            try:
                rows = grouped.count()
                if rows > MOST_CELLS and bins is None:
                    raise InvalidInput(
                        "the source has too many combinations of values to bring here",
                        got=f"{rows:,} in the columns {', '.join(columns)}",
                        allowed=f"up to {MOST_CELLS:,}",
                        fix="use fewer or coarser columns",
                        code="too-many-cells",
                    )
                yield SparkTable(grouped, columns, rows) if rows > MOST_CELLS else stream(grouped, rows)
            finally:
                with suppress(Exception):  # a session that is lost keeps nothing
                    grouped.unpersist()


def stream(grouped: Any, rows: int) -> pa.RecordBatchReader:
    """Return the rows, so many at a time; the first come at once."""
    import pyarrow as pa

    fn, parts = functions_of(grouped.sparkSession), max(1, math.ceil(rows / ROWS))
    key = fn.pmod(fn.hash(*grouped.columns), fn.lit(parts))
    first = grouped.where(key == 0).toArrow()
    later = (grouped.where(key == part).toArrow() for part in range(1, parts))
    batches = (batch for table in chain([first], later) for batch in table.to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, batches)


def prepare(frame: Any, column: str, name: str) -> Any:
    """Return a column that groups by its exact values: no collation, NaN missing, and a column of nothing as text."""
    fn, kind = functions_of(frame.sparkSession), frame.schema[column].dataType
    named = kind.typeName().partition("(")[0].partition(" ")[0]
    if named in ("void", "char", "varchar"):
        return frame[column].cast("string").alias(column)
    if named not in USABLE:
        raise unusable(name, named)
    if named == "string" and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return fn.collate(frame[column], "UTF8_BINARY").alias(column)
    return fn.nanvl(frame[column], fn.lit(None)).alias(column) if named in ("double", "float") else frame[column]


def coarsen(frame: Any, name: str, binning: Binning) -> Any:
    """Return the frame with one value for each bin of a column, its right edge; what has no bin is one value by kind.

    The edges of bins of one width p/q are k p/q, rounded once, and are found as `WidthBinning` finds them.
    """
    fn, column, kind = functions_of(frame.sparkSession), frame[name], frame.schema[name].dataType.typeName()
    text, kind = kind.startswith("string"), kind.partition("(")[0]
    if not text and kind not in NUMERIC:
        return frame
    number = column.cast("string").cast("double") if kind == "float" else column.cast("double")
    if text:
        number = fn.when(column.rlike(NUMBER), fn.replace(column, fn.lit("_"), fn.lit("")).try_cast("double"))
    if isinstance(binning, WidthBinning):
        p, q = float(binning.fraction.numerator), float(binning.fraction.denominator)
        guess = fn.ceil(number * q / p).cast("double")
        below, edge, above = ((guess + step) * p / q for step in (-1.0, 0.0, 1.0))
        edge = fn.when(number <= below, below).when(number > edge, above).otherwise(edge)
        edge = fn.when(fn.abs(number) > binning.reach, fn.lit(1e300)).otherwise(edge)
    elif isinstance(binning, EdgeBinning):
        edges = [*map(float, binning.edges)]
        edge = fn.when(number > edges[-1], fn.lit(math.nextafter(edges[-1], math.inf)))
        for right in edges:
            edge = edge.when(number <= right, fn.lit(right))
    edge = fn.when(fn.isnan(number) | (fn.abs(number) == math.inf), number).otherwise(edge)
    if text:
        edge = fn.when(column.isNull(), None).when(number.isNull(), "no number").otherwise(edge.cast("string"))
    return frame.withColumn(name, edge)


def plan_source(source: Any, columns: Sequence[str]) -> Callable[[Any], Any]:
    """Check a source before Spark starts; the result brings its columns in use into a session as c0, c1, ..."""
    if hasattr(source, "sparkSession"):
        if source.isStreaming:
            raise InvalidInput(
                "the Spark DataFrame is a stream", allowed="one whose records are all there", code="source"
            )
        return lambda session: use_columns(source, columns, "the Spark DataFrame")
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise InvalidInput("the source is not of a kind that Spark reads", got=kind, allowed=ALLOWED, code="source")
    name = os.fspath(source)
    if is_address(name):
        if not name.lower().endswith(SUFFIXES):
            got = f"an address that starts with {name.partition('://')[0]}://"
            raise InvalidInput(
                "the kind of the files is not known from their address", got=got, allowed=KINDS, code="path"
            )
        return lambda session: read_address(session, name, columns)
    is_name = isinstance(source, str) and TABLE_NAME.fullmatch(name) and not name.lower().endswith(SUFFIXES)
    if is_name and not exists(Path(name)):
        return lambda session: read_table(session, name, columns)
    files = [Path(os.path.abspath(path)) for path in find_files(source)]
    skipped = [path for path in files if path.name.startswith(("_", ".")) or ":" in path.name or path.suffix == ".zst"]
    if skipped:
        what = "Spark skips or cannot read files of such a name"
        raise InvalidInput(what, got=skipped[0], fix="rename it: no _ or . first, no colon, no .zst", code="path")
    if are_parquet(files):
        tables = group_parquet(files, columns)
        return lambda session: stack(read_parquet(session, group, columns) for group in tables)
    texts = group_text(files, columns)
    return lambda session: stack(
        read_text(session, [*map(as_address, group.paths)], group.delimiter, group.names, columns, local=True)
        for group in texts
    )


def read_parquet(session: Any, group: ParquetFiles, columns: Sequence[str]) -> Any:
    """Read local Parquet files with the types that pyarrow finds: Spark refuses files with types that it lacks."""
    from pyspark.sql.types import StructField, StructType

    kinds = [spark_type(name, group.kinds[place]) for name, place in zip(columns, group.places, strict=True)]
    reader = session.read.schema(StructType([*map(StructField, columns, kinds)]))
    # Spark takes columns from the names of folders below this one, and puts them last.
    reader = reader if group.base is None else reader.option("basePath", f"file://{group.base}")
    frame = reader.parquet(*map(as_address, group.paths))
    return take_columns(frame, [frame.columns.index(name) for name in columns])


def use_columns(frame: Any, columns: Sequence[str], where: str) -> Any:
    """Return the columns in use as c0, c1, ...; refuse a frame without them."""
    return take_columns(frame, locate(columns, frame.columns, where))


def take_columns(frame: Any, places: Sequence[int]) -> Any:
    """Return the columns at those places as c0, c1, ...; by place, because names may repeat or hold dots."""
    plain = frame.toDF(*(f"f{place}" for place in range(len(frame.columns))))
    return plain.select(*(plain[f"f{old}"].alias(f"c{new}") for new, old in enumerate(places)))


def stack(frames: Any) -> Any:
    return reduce(lambda one, other: one.unionAll(other), frames)


def read_table(session: Any, name: str, columns: Sequence[str]) -> Any:
    if not session.catalog.tableExists(name):
        what = "there is no such file and no such Spark table"
        raise InvalidInput(what, got=name, allowed=f"{KINDS}, a table", code="no-file")
    return use_columns(session.table(name), columns, f"the Spark table '{name}'")


def spark_type(name: str, kind: pa.DataType) -> Any:
    """Return the Spark type that holds every value of a column of an Arrow type."""
    import pyarrow as pa
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import DecimalType

    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    wider = {"uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "null": pa.int32()}
    wider |= {"string_view": pa.string(), "large_string": pa.string()}
    try:
        return DecimalType(20, 0) if pa.types.is_uint64(plain) else from_arrow_type(wider.get(str(plain), plain), True)
    except PySparkTypeError:
        raise unusable(name, str(plain).partition("<")[0].partition("[")[0]) from None


def unusable(name: str, kind: str) -> InvalidInput:
    return InvalidInput(
        f"column '{name}' holds {kind} values, which cannot be used on Spark",
        allowed="text, numbers, truth values, dates and timestamps",
        fix="convert it to text",
        code="column-type",
    )


def as_address(path: Path) -> str:
    """Return a local path for Spark, with its wildcards switched off.

    >>> as_address(Path("/data/a[1]*.csv"))
    'file:///data/a\\\\[1\\\\]\\\\*.csv'
    """
    return "file://" + "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def read_address(session: Any, address: str, columns: Sequence[str]) -> Any:
    """Read files where only Spark reaches them, such as hdfs://; the kind goes by the end of the name."""
    where = f"the source at {address.partition('://')[0]}://"
    if address.lower().endswith(PARQUET_SUFFIXES):
        return use_columns(session.read.option("mergeSchema", "true").parquet(address), columns, where)
    first = session.read.text(address).first()
    line = [first[0] if first else ""]
    headers = [(next(csv.reader(line, delimiter=delimiter), []), delimiter) for delimiter in DELIMITERS]
    names, delimiter = max(headers, key=lambda header: (len(set(columns) & set(header[0])), len(header[0])))
    locate([*columns, *names], names, where, first_line=True)
    return read_text(session, [address], delimiter, names, columns, local=False)


def read_text(
    session: Any, paths: list[str], delimiter: str, names: Sequence[str], columns: Sequence[str], *, local: bool
) -> Any:
    """Read text files of one shape, every field as text; if not local, Spark compares each header with the names."""
    fn, line = functions_of(session), functions_of(session).col("value")
    quotes = fn.length(line) - fn.length(fn.replace(line, fn.lit('"'), fn.lit("")))
    spaced = line.contains('"') & line.rlike(f'(^|{re.escape(delimiter)})[ \t]+"')
    by_file = session.read.text(paths).groupBy(fn.input_file_name().alias("file"))
    facts = by_file.agg(
        fn.max(fn.when(~fn.is_valid_utf8(line), 1)).alias("it is not UTF-8"),
        fn.max(fn.when(spaced, 1)).alias("it has blanks before a quotation mark"),
        (fn.sum(quotes) % 2).alias("a quotation mark is never closed"),
    )
    flaws = facts.agg(*(fn.max(name).alias(name) for name in facts.columns[1:])).first().asDict()
    flaw = next((name for name, number in flaws.items() if number), None)
    if flaw is not None:
        raise InvalidInput(f"{CSV}: {flaw}", fix="correct it, or use the embedded engine", code="damaged")
    used = [f"f{place}" for place in range(len(names))] if local else names
    fields = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in used)
    options = TEXT | {"sep": delimiter, "maxColumns": str(len(names) + 1), "enforceSchema": str(local).lower()}
    read = session.read.schema(fields).options(**options).csv(paths)
    return take_columns(read, locate(columns, names, "the source"))
