"""Files, tables and frames in Spark, grouped there by the columns in use; one row for each combination comes here.

Spark is more lenient than a count may be: it replaces what is not UTF-8, closes quotation marks that stay open, and
skips files by their names. Each of these is looked for and refused.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.files import (
    DELIMITERS,
    KINDS,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    check_file,
    exists,
    find_files,
    is_address,
)
from cellrisk.counts.refusals import CSV, OUT_OF_MEMORY, Cause, comes_from, find_cause
from cellrisk.counts.schema import locate
from cellrisk.counts.spark_session import spark_session
from cellrisk.errors import CellriskError, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

ALLOWED = "a path or glob of CSV or Parquet files, the name of a Spark table, a Spark DataFrame"
TABLE_NAME = re.compile(r"(\w+\.){0,2}\w+")
SUFFIXES = tuple(f"{suffix}{packing}" for suffix in (*TEXT_SUFFIXES, *PARQUET_SUFFIXES) for packing in ("", ".gz"))
MOST_ROWS = 100_000_000
"""Combinations of values that are brought here."""
ROWS = 1_000_000
"""Rows that leave the cluster at a time."""
TEXT = {
    "columnPruning": "false",  # with it, Spark does not see that a row has too many fields or too few
    "emptyValue": "",
    "encoding": "UTF-8",
    "enforceSchema": "false",  # each header is compared with the names
    "escape": '"',
    "header": "true",
    "mode": "FAILFAST",
    "multiLine": "true",  # else it cuts a field over several lines, and skips lines of blanks
    "nullValue": "",
    "quote": '"',
    "unescapedQuoteHandling": "RAISE_ERROR",
}
WHOLE = ("byte", "integer", "long", "short")
USABLE = (*WHOLE, "boolean", "date", "decimal", "double", "float", "string", "timestamp", "timestamp_ntz")


@contextmanager
def open_spark(source: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatchReader]:
    """Group a source by the columns in use on the cluster; give an Arrow stream of the groups, and n rows of each."""
    with spark_refusals():
        read = plan_source(source, columns)
        with spark_session(getattr(source, "sparkSession", None)) as session:
            frame = read(session)
            frame = frame.select(*(prepare(frame, f"c{place}", name) for place, name in enumerate(columns)))
            grouped = frame.groupBy(*frame.columns).count().withColumnRenamed("count", "n").persist()
            try:
                rows = grouped.count()
                if rows > MOST_ROWS:
                    raise InvalidInput(
                        "the source has too many combinations of values to bring here",
                        got=f"{rows:,} in the columns {', '.join(columns)}",
                        allowed=f"up to {MOST_ROWS:,}",
                        fix="cut numbers into bins on Spark, or use fewer columns",
                        code="too-many-cells",
                    )
                yield stream(grouped, rows)
            finally:
                with suppress(Exception):  # a session that is lost keeps nothing
                    grouped.unpersist()


def stream(grouped: Any, rows: int) -> pa.RecordBatchReader:
    """Return the rows, so many at a time; the first come at once."""
    import pyarrow as pa
    from pyspark.sql import functions as fn

    parts = max(1, math.ceil(rows / ROWS))
    key = fn.pmod(fn.hash(*grouped.columns), fn.lit(parts))
    first = grouped.where(key == 0).toArrow()
    later = (grouped.where(key == part).toArrow() for part in range(1, parts))
    batches = (batch for table in chain([first], later) for batch in table.to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, batches)


def prepare(frame: Any, column: str, name: str) -> Any:
    """Return a column that groups by its exact values: no collation, NaN missing, and a column of nothing as text."""
    from pyspark.sql import functions as fn

    kind = frame.schema[column].dataType
    named = kind.typeName().partition("(")[0].partition(" ")[0]
    if named in ("void", "char", "varchar"):
        return frame[column].cast("string").alias(column)
    if named not in USABLE:
        raise InvalidInput(
            f"column '{name}' holds {named} values, which cannot be used on Spark",
            allowed="text, numbers, truth values, dates and timestamps",
            fix="convert it to text",
            code="column-type",
        )
    if named == "string" and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return fn.collate(frame[column], "UTF8_BINARY").alias(column)
    return fn.nanvl(frame[column], fn.lit(None)).alias(column) if named in ("double", "float") else frame[column]


def plan_source(source: Any, columns: Sequence[str]) -> Callable[[Any], Any]:
    """Check a source before Spark starts; the result brings its columns in use into a session as c0, c1, ..."""
    if hasattr(source, "sparkSession"):
        if source.isStreaming:
            allowed = "one whose records are all there"
            raise InvalidInput("the Spark DataFrame is a stream", allowed=allowed, code="source")
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
        return lambda session: read_files(session, [name], columns, f"the source at {name.partition('://')[0]}://")
    if TABLE_NAME.fullmatch(name) and not name.lower().endswith(SUFFIXES) and not exists(Path(name)):
        return lambda session: read_table(session, name, columns)
    files = [Path(os.path.abspath(path)) for path in find_files(source)]
    for path in files:
        check_file(path)
        if path.name.startswith(("_", ".")) or ":" in path.name or not path.name.lower().endswith(SUFFIXES):
            what, fix = "Spark skips or cannot read files of such a name", "rename it: no _ or . first, no colon"
            raise InvalidInput(what, got=path, allowed=KINDS, fix=fix, code="path")
    folders = files[0].parts[:-1]
    first = next((place for place, folder in enumerate(folders) if "=" in folder[1:]), None)
    options = {} if first is None else {"basePath": as_address(Path(*folders[:first]))}  # folders below name columns
    return lambda session: read_files(session, [*map(as_address, files)], columns, f"'{files[0].name}'", **options)


def as_address(path: Path) -> str:
    """Return a local path for Spark, with its wildcards switched off.

    >>> as_address(Path("/data/a[1]*.csv"))
    'file:///data/a\\\\[1\\\\]\\\\*.csv'
    """
    return "file://" + "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def read_files(session: Any, addresses: Sequence[str], columns: Sequence[str], where: str, **options: str) -> Any:
    """Return the columns in use of files that Spark reads by their addresses; the kind goes by the end of the name."""
    if addresses[0].lower().endswith(PARQUET_SUFFIXES):
        return use_columns(session.read.options(mergeSchema="true", **options).parquet(*addresses), columns, where)
    first = session.read.text(addresses[0]).first()
    line = [first[0].removeprefix("\ufeff") if first else ""]
    headers = [(next(csv.reader(line, delimiter=delimiter), []), delimiter) for delimiter in DELIMITERS]
    names, delimiter = max(headers, key=lambda header: (len(set(columns) & set(header[0])), len(header[0])))
    locate([*columns, *names], names, where, first_line=True)
    check_text(session.read.text(list(addresses)), delimiter)
    fields = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in names)
    options = TEXT | {"sep": delimiter, "maxColumns": str(len(names) + 1)}
    return use_columns(session.read.schema(fields).options(**options).csv(list(addresses)), columns, where)


def check_text(lines: Any, delimiter: str) -> None:
    """Refuse files of which Spark would replace or guess a part."""
    from pyspark.sql import functions as fn

    line = fn.col("value")
    quotes = fn.length(line) - fn.length(fn.replace(line, fn.lit('"'), fn.lit("")))
    spaced = line.contains('"') & line.rlike(f'(^|{re.escape(delimiter)})[ \t]+"')
    facts = lines.groupBy(fn.input_file_name().alias("file")).agg(
        fn.max(fn.when(~fn.is_valid_utf8(line), 1)).alias("it is not UTF-8"),
        fn.max(fn.when(spaced, 1)).alias("it has blanks before a quotation mark"),
        (fn.sum(quotes) % 2).alias("a quotation mark is never closed"),
    )
    flaws = facts.agg(*(fn.max(name).alias(name) for name in facts.columns[1:])).first().asDict()
    for flaw, number in flaws.items():
        if number:
            raise InvalidInput(f"{CSV}: {flaw}", fix="correct it, or use the embedded engine", code="damaged")


def read_table(session: Any, name: str, columns: Sequence[str]) -> Any:
    if not session.catalog.tableExists(name):
        what = "there is no such file and no such Spark table"
        raise InvalidInput(what, got=name, allowed=f"{KINDS}, a table", code="no-file")
    return use_columns(session.table(name), columns, f"the Spark table '{name}'")


def use_columns(frame: Any, columns: Sequence[str], where: str) -> Any:
    """Return the columns in use as c0, c1, ...; by place, because other names may repeat or hold dots."""
    places = locate(columns, frame.columns, where)
    plain = frame.toDF(*(f"f{place}" for place in range(len(frame.columns))))
    return plain.select(*(plain[f"f{old}"].alias(f"c{new}") for new, old in enumerate(places)))


@contextmanager
def spark_refusals() -> Iterator[None]:
    """Turn Spark's exceptions, which quote records, into one line: the first known cause that a chain of them names."""
    try:
        yield
    except CellriskError:
        raise
    except Exception as error:
        if not comes_from(error, ("py4j", "pyspark")):
            raise
        texts, cause = [], error
        while cause is not None:
            texts.append(str(cause))
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        condition = re.match(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))  # further on it may be a value that Spark quotes
        why = condition[1] if condition else type(error).__name__
        raise find_cause("\n".join(texts), CAUSES) or InvalidInput(
            f"Spark could not read the source ({why})", fix="check that the files are whole", code="spark"
        ) from None


MEMORY = "use fewer or coarser quasi-identifiers, or give Spark more memory (SPARK_DRIVER_MEMORY) and disk"
FIELDS = f"{CSV}: it has lines with more or fewer fields than the header, or misplaced quotation marks"
TYPES = r"PARQUET_TYPE|PARQUET_COLUMN_DATA_TYPE|Illegal Parquet|SchemaColumnConvert|\(NANOS|CANNOT_MERGE_SCHEMAS"
UNREAD = "the Parquet source has types that Spark does not read, such as nanoseconds, or that do not fit together"
LOST = "Connection refused|shut down|Py4JNetworkError|Answer from Java side is empty"
CAUSES: tuple[Cause, ...] = (
    ("No space left on device|OutOfMemoryError|Java heap space", OUT_OF_MEMORY, MEMORY, "out-of-memory"),
    (
        "FILE_NOT_EXIST|FileNotFound|PATH_NOT_FOUND",
        "there is no such file, or it vanished",
        "check the path",
        "no-file",
    ),
    ("CSV header does not conform|CSV header: ", f"{CSV}: headers differ", "read its files one by one", "no-header"),
    ("MALFORMED_CSV|MALFORMED_RECORD|TextParsingException", FIELDS, "correct those lines", "damaged"),
    (TYPES, UNREAD, "write it with the same types and microseconds, or as text", "column-type"),
    ("FOOTER|[pP]arquet", "the Parquet source cannot be read: a file is damaged", "write it again", "damaged"),
    (LOST, "the connection to Spark was lost", "check that it runs and has memory, and try again", "connection-lost"),
    ("FAILED_READ_FILE", "Spark could not read a file", "check that the files are whole", "damaged"),
)
