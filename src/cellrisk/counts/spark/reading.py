"""Files, tables and frames in Spark, grouped and counted there.

Spark is more lenient than a count may be: it fills and cuts rows of other lengths, skips lines of blanks, replaces what
is not UTF-8, and passes over files by their names. Each of these is looked for and refused.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.binning import Binning, EdgeBinning, WidthBinning
from cellrisk.counts.files import (
    DELIMITERS,
    KINDS,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    TextFile,
    are_parquet,
    exists,
    find_files,
    find_packing,
    group_parquet,
    group_text,
    is_address,
    open_bytes,
)
from cellrisk.counts.grouped import GroupedRows, note_failures
from cellrisk.counts.schema import locate
from cellrisk.counts.spark.counting import SparkTable
from cellrisk.counts.spark.refusals import CANNOT_READ_TEXT, spark_refusals
from cellrisk.counts.spark.session import functions_of, spark_session
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

ALLOWED = "a path or glob of CSV or Parquet files, the name of a Spark table, a Spark DataFrame"
TABLE_NAME = re.compile(r"(\w+\.){0,2}\w+")
ROWS = 1_000_000
"""Rows that leave the cluster at a time."""
TEXT = {
    "columnPruning": "false",  # with it, Spark does not see that a row has too many fields or too few
    "emptyValue": "",
    "encoding": "UTF-8",
    "escape": '"',
    "header": "true",
    "mode": "FAILFAST",
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
def open_spark(
    source: Any, columns: Sequence[str], most: int, bins: Mapping[str, Binning] | None = None
) -> Iterator[GroupedRows | SparkTable]:
    """Group a source by the columns in use on the cluster; the groups come here if there are at most ``most`` of them.

    bins: columns of which only the bin of a value matters, so that the cluster groups by bins. Without it, a source
    with more groups is refused.
    """
    failures: list[BaseException] = []
    with spark_refusals(failures):
        read = plan_source(source, columns)
        with spark_session(getattr(source, "sparkSession", None)) as session:
            frame = read(session)
            frame = frame.select(*(prepare(frame, f"c{place}", name) for place, name in enumerate(columns)))
            for name, binning in (bins or {}).items():
                frame = coarsen(frame, f"c{columns.index(name)}", binning)
            grouped = frame.groupBy(*frame.columns).count().withColumnRenamed("count", "n").persist()
            try:
                rows = grouped.count()
                if rows > most and bins is None:
                    raise InvalidInput(
                        "the source has too many combinations of values to bring here",
                        got=f"{rows:,} in the columns {', '.join(columns)}",
                        allowed=f"up to {most:,}",
                        fix="use fewer or coarser columns",
                        code="too-many-cells",
                    )
                if rows > most:
                    yield SparkTable(grouped, columns, rows)
                else:
                    yield GroupedRows(stream(grouped, rows, failures))
            finally:
                with suppress(Exception):  # a session that is lost keeps nothing
                    grouped.unpersist()


def stream(grouped: Any, rows: int, failures: list[BaseException]) -> pa.RecordBatchReader:
    """The rows, so many at a time; the first come at once."""
    import pyarrow as pa

    fn, parts = functions_of(grouped.sparkSession), max(1, math.ceil(rows / ROWS))
    key = fn.pmod(fn.hash(*grouped.columns), fn.lit(parts))
    tables = (grouped.where(key == part).toArrow() if parts > 1 else grouped.toArrow() for part in range(parts))
    first = next(tables)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        for table in tables:
            yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, note_failures(batches(), failures))


def prepare(frame: Any, column: str, name: str) -> Any:
    """A column that groups by its exact values: no collation, NaN missing, and a column of nothing as text."""
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
    """The frame with one value for each bin of a column: its right edge. What has no bin becomes one value of its kind.

    The edges of bins of one width p/q are k p/q, rounded once, and are found as `WidthBinning` finds them.
    """
    fn, column, kind = functions_of(frame.sparkSession), frame[name], frame.schema[name].dataType.typeName()
    text, kind = kind.startswith("string"), kind.partition("(")[0]
    if not text and kind not in NUMERIC:
        return frame
    number = column.cast("double")
    if kind == "float":
        number = column.cast("string").cast("double")
    if text:
        number = fn.when(column.rlike(NUMBER), fn.replace(column, fn.lit("_"), fn.lit("")).try_cast("double"))
    if isinstance(binning, WidthBinning):
        p, q = float(binning.fraction.numerator), float(binning.fraction.denominator)
        guess = fn.ceil(number * q / p).cast("double")
        edge = guess * p / q
        below, above = (guess - 1.0) * p / q, (guess + 1.0) * p / q
        edge = fn.when(number <= below, below).when(number > edge, above).otherwise(edge)
        edge = fn.when(fn.abs(number) > binning.reach, fn.lit(1e300)).otherwise(edge)
    elif isinstance(binning, EdgeBinning):
        *edges, last = map(float, binning.edges)
        edge = fn.when(number > last, fn.lit(math.nextafter(last, math.inf)))
        for each in (*edges, last):
            edge = edge.when(number <= each, fn.lit(each))
    edge = fn.when(fn.isnan(number) | (fn.abs(number) == math.inf), number).otherwise(edge)
    if text:
        edge = fn.when(column.isNull(), None).when(number.isNull(), "no number").otherwise(edge.cast("string"))
    return frame.withColumn(name, edge)


def plan_source(source: Any, columns: Sequence[str]) -> Callable[[Any], Any]:
    """Check a source before Spark starts; the result brings its columns in use into a session as c0, c1, ..."""
    if hasattr(source, "sparkSession"):
        if source.isStreaming:
            raise InvalidInput("the Spark DataFrame is a stream", allowed="a DataFrame of records that are all there")
        places = locate(columns, source.columns, "the Spark DataFrame")
        return lambda session: take_columns(source, places)
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise InvalidInput("the source is not of a kind that Spark reads", got=kind, allowed=ALLOWED, code="source")
    name = os.fspath(source)
    if is_address(name):
        return plan_address(name, columns)
    if isinstance(source, str) and TABLE_NAME.fullmatch(name) and not has_suffix(name) and not exists(Path(name)):
        return lambda session: open_table(session, name, columns)
    files = [Path(os.path.abspath(path)) for path in find_files(source)]
    for path in files:
        if path.name.startswith(("_", ".")) or ":" in path.name:
            raise InvalidInput(
                "Spark passes over files of such a name", got=path, fix="rename it: no _ or . first, and no colon"
            )
    return plan_parquet(files, columns) if are_parquet(files) else plan_text(files, columns)


def has_suffix(name: str) -> bool:
    return re.sub(r"\.gz$", "", name.lower()).endswith((*TEXT_SUFFIXES, *PARQUET_SUFFIXES))


def take_columns(frame: Any, places: Sequence[int]) -> Any:
    """The columns at those places as c0, c1, ...; by place, because names may repeat or hold dots."""
    plain = frame.toDF(*(f"f{place}" for place in range(len(frame.columns))))
    return plain.select(*(plain[f"f{old}"].alias(f"c{new}") for new, old in enumerate(places)))


def stack(frames: Sequence[Any]) -> Any:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


def open_table(session: Any, name: str, columns: Sequence[str]) -> Any:
    if not session.catalog.tableExists(name):
        raise InvalidInput("there is no such file and no such Spark table", got=name, allowed=f"{KINDS}, a table")
    frame = session.table(name)
    return take_columns(frame, locate(columns, frame.columns, f"the Spark table '{name}'"))


def plan_parquet(files: Sequence[Path], columns: Sequence[str]) -> Callable[[Any], Any]:
    """Parquet files; if they give a column different types, the wider one is used."""
    groups, kinds = group_parquet(files, columns)

    def read(session: Any) -> Any:
        from pyspark.sql.types import StructField, StructType

        wide, frames = [spark_type(name, kind) for name, kind in zip(columns, kinds, strict=True)], []
        for paths, file in groups:
            stored = [spark_type(name, file.kinds[place]) for name, place in zip(columns, file.places, strict=True)]
            reader = session.read.schema(StructType([*map(StructField, columns, stored)]))
            # Spark takes columns from the names of folders below this one, and puts them last.
            reader = reader if file.base is None else reader.option("basePath", f"file://{file.base}")
            frame = reader.parquet(*map(as_address, paths))
            frame = take_columns(frame, [frame.columns.index(name) for name in columns])
            frames.append(
                frame.select(*(frame[f"c{place}"].cast(kind).alias(f"c{place}") for place, kind in enumerate(wide)))
            )
        return stack(frames)

    return read


def spark_type(name: str, kind: pa.DataType) -> Any:
    """The Spark type that holds every value of a column of an Arrow type."""
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
    """A local path for Spark, with its wildcards switched off.

    >>> as_address(Path("/data/a[1]*.csv"))
    'file:///data/a\\\\[1\\\\]\\\\*.csv'
    """
    return "file://" + "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def plan_address(address: str, columns: Sequence[str]) -> Callable[[Any], Any]:
    """Files where only Spark reaches them, such as hdfs://; the kind goes by the end of the name."""
    scheme = address.partition("://")[0]
    if not has_suffix(address):
        raise InvalidInput(
            "the kind of the files is not known from their address",
            got=f"an address that starts with {scheme}://",
            allowed=f"addresses that end in {KINDS}",
        )
    where = f"the source at {scheme}://"

    def read(session: Any) -> Any:
        if address.lower().endswith(PARQUET_SUFFIXES):
            frame = session.read.option("mergeSchema", "true").parquet(address)
            return take_columns(frame, locate(columns, frame.columns, where))
        first = session.read.text(address).first()
        headers = [(next(csv.reader([first[0] if first else ""], delimiter=each), []), each) for each in DELIMITERS]
        names, delimiter = max(headers, key=lambda header: (len(set(columns) & set(header[0])), len(header[0])))
        locate(columns, names, where, first_line=True)
        if len(set(names)) < len(names):
            raise InvalidInput(
                f"{where} has columns of the same name", got=f"{len(names):,} columns", fix="give each its own name"
            )
        return read_text(session, [address], delimiter, names, columns)

    return read


def plan_text(files: Sequence[Path], columns: Sequence[str]) -> Callable[[Any], Any]:
    """Delimited text, every field as text; files with the same header go together."""
    packed = next((path for path in files if find_packing(path) == "zstd"), None)
    if packed is not None:
        raise InvalidInput("Spark reads no .zst text", got=packed, fix="use .gz, or the embedded engine")
    groups = [group for group, _ in group_text(files, columns)]

    def read(session: Any) -> Any:
        addresses = [[as_address(file.path) for file in group] for group in groups]
        shapes = [(group[0].delimiter, group[0].names, columns, group) for group in groups]
        return stack([read_text(session, paths, *shape) for paths, shape in zip(addresses, shapes, strict=True)])

    return read


def read_text(
    session: Any,
    paths: list[str],
    delimiter: str,
    names: Sequence[str],
    columns: Sequence[str],
    files: Sequence[TextFile] = (),
) -> Any:
    """Text files of one shape; where they are not local, Spark compares the header of each with the names."""
    facts = survey_text(session, paths, delimiter)
    if facts["foreign"]:
        raise InvalidInput(f"{CANNOT_READ_TEXT}: it is not UTF-8", got=lines(facts["foreign"]), fix="save it as UTF-8")
    if facts["open"] and not (files and all(closes_quotes(file) for file in files)):
        raise InvalidInput(f"{CANNOT_READ_TEXT}: a quotation mark is never closed", fix="correct its quotation marks")
    used = [f"f{place}" for place in range(len(names))] if files else names
    fields = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in used)
    # A field over several lines, or a line of blanks, is only read right when a file is not cut at its lines.
    options = TEXT | {"sep": delimiter, "maxColumns": str(len(names) + 1), "enforceSchema": str(bool(files)).lower()}
    options["multiLine"] = str(bool(facts["ragged"] or facts["blank"])).lower()
    read = session.read.schema(fields).options(**options).csv(paths)
    frame = take_columns(read, locate(columns, names, "the source"))
    if facts["spaced"]:
        fn = functions_of(session)
        doubtful = [frame[name].rlike('^[ \t]+"') for name in frame.columns]
        found = frame.where(fn.coalesce(fn.greatest(*doubtful, fn.lit(False)), fn.lit(False))).count()
        if found:
            fix = "take out the blanks before quotation marks"
            raise InvalidInput(f"{CANNOT_READ_TEXT}: blanks before a quotation mark", got=lines(found), fix=fix)
    return frame


def closes_quotes(file: TextFile) -> bool:
    """Whether every quotation mark that opens a field is closed; some stand inside fields and open none."""
    with open_bytes(file.path) as stream, io.TextIOWrapper(stream, "utf-8", newline="") as text:
        try:
            for _ in csv.reader(text, delimiter=file.delimiter, strict=True):
                pass
        except csv.Error:
            return False
    return True


def survey_text(session: Any, paths: list[str], delimiter: str) -> dict[str, int]:
    """What Spark's reader would pass over in silence, from one look at the lines, where the files are."""
    fn = functions_of(session)
    line = fn.col("value")
    quotes = fn.length(line) - fn.length(fn.replace(line, fn.lit('"'), fn.lit("")))
    conditions = {
        "foreign": ~fn.is_valid_utf8(line),
        "ragged": quotes % 2 == 1,
        "blank": line.rlike(r"^[\x00-\x20]+\z"),
        "spaced": line.contains('"') & line.rlike(f'(^|{re.escape(delimiter)})[ \t]+"'),
    }
    counts = [fn.count_if(condition).alias(name) for name, condition in conditions.items()]
    by_file = session.read.text(paths).groupBy(fn.input_file_name().alias("file"))
    facts = by_file.agg(fn.sum(quotes).alias("quotes"), *counts)
    sums = [fn.sum(name).alias(name) for name in conditions]
    total = facts.agg(fn.count_if(fn.col("quotes") % 2 == 1).alias("open"), *sums)
    return {name: int(number or 0) for name, number in total.first().asDict().items()}


def lines(number: int) -> str:
    return f"{number:,} such line{'s' if number > 1 else ''}"
