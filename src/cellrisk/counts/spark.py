"""Files and frames in Spark, grouped there by the columns in use.

One row for each combination of values comes here, up to a number of them. If there are more, values are numbered there,
cells are grouped by their counts, and only profiles come here.

Spark is more lenient than a count may be: it replaces what is not UTF-8, closes quotation marks that stay open, and
skips files by their names. Each of these is looked for and refused.
"""

from __future__ import annotations

import csv
import importlib
import logging
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from cellrisk.counts.engine import CSV, OUT_OF_MEMORY, Cause, Relation, find_cause, has_type, load_stream
from cellrisk.counts.files import DELIMITERS, KINDS, PARQUET_SUFFIXES, TEXT_SUFFIXES, check_file, find_files, is_address
from cellrisk.counts.schema import locate
from cellrisk.errors import CellriskError, InvalidInput, extra_needed
from cellrisk.system.arrays import Integers
from cellrisk.system.scratch import private_folder

if TYPE_CHECKING:
    import pyarrow as pa

ALLOWED = "a path or glob of CSV or Parquet files, a Spark DataFrame"
SUFFIXES = tuple(f"{suffix}{packing}" for suffix in (*TEXT_SUFFIXES, *PARQUET_SUFFIXES) for packing in ("", ".gz"))
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


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Combinations of values that stay in Spark: a frame with the columns c0, c1, ..., and n, the records of each."""

    connection: Any
    """The DuckDB in which the values of single columns are numbered."""
    kept: list[Any]
    """Frames to forget at the end."""
    frame: Any = None
    size: int = 0

    def keep(self, frame: Any) -> SparkRows:
        """Return other rows, which are computed once."""
        self.kept.append(frame.persist())
        return replace(self, frame=frame, size=frame.count())

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in which {rows} stands for these."""
        return [tuple(row) for row in self.frame.sparkSession.sql(query, rows=self.frame).collect()]

    def stream(self) -> pa.RecordBatchReader:
        """Return the rows as Arrow, so many at a time; the first come at once."""
        import pyarrow as pa
        from pyspark.sql import functions as fn

        parts = max(1, math.ceil(self.size / ROWS))
        key = fn.pmod(fn.hash(*self.frame.columns), fn.lit(parts))
        first = self.frame.where(key == 0).toArrow()
        later = (self.frame.where(key == part).toArrow() for part in range(1, parts))
        batches = (batch for table in chain([first], later) for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(first.schema, batches)

    def list_values(self, name: str, most: int | None = None) -> Relation:
        """Return the values of a column, and how many records have each; of too many, enough to refuse them."""
        from pyspark.sql import functions as fn

        values = self.frame.groupBy(name).agg(fn.sum("n").alias("n"))
        if most is not None:
            values = values.limit(most + 2)  # one more, and a missing value
        return load_stream(self.connection, values.toArrow())

    def replace_values(self, name: str, query: str) -> SparkRows:
        """Replace each value v of a column by a whole number i, from a query of DuckDB that gives both."""
        table = self.connection.sql(query).to_arrow_table()
        schema = f"v {self.frame.schema[name].dataType.simpleString()}, i bigint"
        numbers = self.frame.sparkSession.createDataFrame(table, schema)
        joined = self.frame.join(numbers, self.frame[name].eqNullSafe(numbers["v"]))
        columns = [joined["i"].alias(name) if column == name else joined[column] for column in self.frame.columns]
        return replace(self, frame=joined.select(*columns))

    def count_vectors(self, where: str, n_quasi: int) -> tuple[list[Integers], Integers, Integers]:
        """Group the combinations that satisfy a condition into cells, and the cells by their counts.

        Returns columns of codes, of which the first numbers the cells that differ in their counts; the records of each
        row; and how many cells each number stands for.
        """
        from pyspark.sql import functions as fn

        quasi, others = self.frame.columns[:n_quasi], self.frame.columns[n_quasi:]
        counts = fn.sort_array(fn.collect_list(fn.struct(*others))).alias("counts")
        vectors = self.frame.where(where).groupBy(*quasi).agg(counts).groupBy("counts").count().toArrow()
        lists = vectors["counts"].combine_chunks()
        *codes, count = (column.to_numpy(zero_copy_only=False) for column in lists.flatten().flatten())
        number = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy(zero_copy_only=False))
        return [number, *codes], count, vectors["count"].to_numpy()


@contextmanager
def open_spark(connection: Any, source: Any, columns: Sequence[str], most: int, may_stay: bool) -> Iterator[SparkRows]:
    """Group a source by the columns in use on the cluster, for the length of the block.

    may_stay: whether the caller counts on the cluster if there are more combinations than ``most``; else the source is
    refused.
    """
    with extra_needed():
        from pyspark.sql import functions as fn
    rows = SparkRows(connection, [])
    with spark_refusals():
        read = plan_source(source, columns)
        with spark_session(getattr(source, "sparkSession", None)) as session:
            frame = read(session)
            frame = frame.select(*(prepare(frame, f"c{index}", name) for index, name in enumerate(columns)))
            try:
                rows = rows.keep(frame.groupBy(*frame.columns).agg(fn.count("*").alias("n")))
                if rows.size > most and not may_stay:
                    what = "what is asked needs all combinations of values here, and Spark has too many of them"
                    got, allowed = f"{rows.size:,} in {', '.join(columns)}", f"up to {most:,} with this memory"
                    fix = "choose the records and limit those of each person on Spark, or use fewer columns"
                    raise InvalidInput(what, got=got, allowed=allowed, fix=fix, code="too-many-cells")
                yield rows
            finally:
                for kept in rows.kept:
                    with suppress(Exception):  # a session that is lost keeps nothing
                        kept.unpersist()


def prepare(frame: Any, column: str, name: str) -> Any:
    """Return a column that groups by its exact values: no collation, NaN missing, and a column of nothing as text."""
    from pyspark.sql import functions as fn

    kind = frame.schema[column].dataType
    named = kind.typeName().partition("(")[0].partition(" ")[0]
    if named in ("void", "char", "varchar"):
        return frame[column].cast("string").alias(column)
    if named not in USABLE:
        what, allowed = f"column '{name}' holds {named} values", "text, numbers, truth values, dates and timestamps"
        raise InvalidInput(what, allowed=allowed, fix="convert it to text", code="column-type")
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
            what = "the kind of the files is not known from their address"
            raise InvalidInput(what, got=got, allowed=KINDS, code="path")
        return lambda session: read_files(session, [name], columns, f"the source at {name.partition('://')[0]}://")
    files = [Path(os.path.abspath(path)) for path in find_files(source)]
    for path in files:
        check_file(path)
        if path.name.startswith(("_", ".")) or ":" in path.name or not path.name.lower().endswith(SUFFIXES):
            what, fix = "Spark skips or cannot read files of such a name", "rename it: no _ or . first, no colon"
            raise InvalidInput(what, got=path, allowed=KINDS, fix=fix, code="path")
    folders = files[0].parts[:-1]
    first = next((index for index, folder in enumerate(folders) if "=" in folder[1:]), None)
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


def use_columns(frame: Any, columns: Sequence[str], where: str) -> Any:
    """Return the columns in use as c0, c1, ...; by place, because other names may repeat or hold dots."""
    places = locate(columns, frame.columns, where)
    plain = frame.toDF(*(f"f{index}" for index in range(len(frame.columns))))
    return plain.select(*(plain[f"f{old}"].alias(f"c{new}") for new, old in enumerate(places)))


@contextmanager
def spark_refusals() -> Iterator[None]:
    """Turn Spark's exceptions, which quote records, into one line: the first known cause that a chain of them names."""
    try:
        yield
    except CellriskError:
        raise
    except Exception as error:
        if not has_type(error, ("py4j", "pyspark")):
            raise
        texts, cause = [], error
        while cause is not None:
            texts.append(str(cause))
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        condition = re.match(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))  # further on it may be a value that Spark quotes
        why = condition[1] if condition else type(error).__name__
        what, fix = f"Spark could not read the source ({why})", "check that the files are whole"
        raise find_cause("\n".join(texts), CAUSES) or InvalidInput(what, fix=fix, code="spark") from None


MEMORY = "use fewer or coarser quasi-identifiers, or give Spark more memory (SPARK_DRIVER_MEMORY) and disk"
FIELDS = f"{CSV}: it has lines with more or fewer fields than the header, or misplaced quotation marks"
TYPES = r"PARQUET_TYPE|PARQUET_COLUMN_DATA_TYPE|Illegal Parquet|SchemaColumnConvert|\(NANOS|CANNOT_MERGE_SCHEMAS"
UNREAD = "the Parquet source has types that Spark does not read, such as nanoseconds, or that do not fit together"
LOST = "Connection refused|shut down|Py4JNetworkError|Answer from Java side is empty"
CAUSES: tuple[Cause, ...] = (
    ("No space left on device|OutOfMemoryError|Java heap space", OUT_OF_MEMORY, MEMORY, "out-of-memory"),
    ("FILE_NOT_EXIST|FileNotFound|PATH_NOT_FOUND", "a file does not exist, or vanished", "check the path", "no-file"),
    ("CSV header does not conform|CSV header: ", f"{CSV}: headers differ", "read its files one by one", "no-header"),
    ("MALFORMED_CSV|MALFORMED_RECORD|TextParsingException", FIELDS, "correct those lines", "damaged"),
    (TYPES, UNREAD, "write it with the same types and microseconds, or as text", "column-type"),
    ("FOOTER|[pP]arquet", "the Parquet source cannot be read: a file is damaged", "write it again", "damaged"),
    (LOST, "the connection to Spark was lost", "check that it runs and has memory, and try again", "connection-lost"),
    ("FAILED_READ_FILE", "Spark could not read a file", "check that the files are whole", "damaged"),
)


SETTINGS = {
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What a result depends on, and what joins small partitions, for the length of one tabulation."""
JAVA_PACKAGE = "openjdk-17-jre-headless"
PATIENCE = 10.0
"""Seconds to wait for a Java of our own to end."""


@contextmanager
def spark_session(given: Any = None) -> Iterator[Any]:
    """The session of a given frame, else one that runs already, else a new one, which is stopped at the end."""
    from pyspark.sql import SparkSession

    session = given or SparkSession.getActiveSession()
    if type(session).__module__.startswith("pyspark.sql.connect") or (session is None and "SPARK_REMOTE" in os.environ):
        fix = "name the cluster with SPARK_MASTER instead of SPARK_REMOTE, or write the table to Parquet files"
        raise InvalidInput("Spark Connect is not supported", fix=fix, code="no-spark")
    opened: Any = nullcontext(session) if session else own_session(os.environ.get("SPARK_MASTER") or "local[*]")

    def is_not_of_py4j(record: logging.LogRecord) -> bool:
        """Return whether a line of the log is not py4j's, which writes a traceback if a signal interrupts a call."""
        return "py4j" not in record.pathname

    logging.getLogger().addFilter(is_not_of_py4j)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas 3, of which nothing is used here
            with opened as session, with_settings(session):
                yield session
    finally:
        logging.getLogger().removeFilter(is_not_of_py4j)


@contextmanager
def with_settings(session: Any) -> Iterator[None]:
    """The settings that results depend on, for the length of the block; the session has its own again afterwards.

    Nothing is logged in it, since Spark quotes records that it cannot read. An interrupt ends the jobs of the block.
    """
    before = {key: session.conf.get(key, None) for key in SETTINGS}
    context, group = session.sparkContext, f"cellrisk {threading.get_ident()}"
    level = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    context.setJobGroup(group, "cellrisk", interruptOnCancel=True)
    try:
        for key, value in SETTINGS.items():
            session.conf.set(key, value)
        yield
    except BaseException:
        with suppress(Exception):
            context.cancelJobGroup(group)
        raise
    finally:
        with suppress(Exception):  # a session that is lost has no settings to put back
            for key, old in before.items():
                session.conf.unset(key) if old is None else session.conf.set(key, old)
            context.setLocalProperty("spark.jobGroup.id", None)
            context.setLogLevel(level)


@contextmanager
def own_session(master: str) -> Iterator[Any]:
    """A Spark of our own: silent, its scratch in a private folder, and gone at the end with its Java."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        raise no_java("the Spark engine needs Java, which is not found" + (" where JAVA_HOME points" if home else ""))
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    started: list[Any] = []

    def start(*given: Any, **named: Any) -> Any:
        """Start a program and note it at once, so that a signal while Java starts leaves no Java behind."""
        started.append(subprocess.Popen(*given, **named))
        return started[-1]

    with private_folder("spark") as folder:
        (folder / "log4j2.properties").write_text("rootLogger.level = off\n", encoding="utf-8")
        java_options = (f'"-D{option}{folder}"' for option in ("java.io.tmpdir=", "derby.system.home="))
        settings = {
            "spark.app.name": "cellrisk",
            "spark.log.level": "OFF",
            "spark.master": master,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": f"{' '.join(java_options)} -XX:-UsePerfData "
            f'"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties"',
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        if master.startswith("local"):
            settings |= {f"spark.driver.{name}": "127.0.0.1" for name in ("bindAddress", "host")}
            settings |= {"spark.local.dir": str(folder)}
            if "SPARK_DRIVER_MEMORY" not in os.environ and hasattr(os, "sysconf"):
                memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
                settings["spark.driver.memory"] = f"{max(1024, memory // 2**21)}m"
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        try:
            try:
                # PySpark's file of the port goes where nothing stays: interrupted, PySpark may leave it.
                with patch.object(java_gateway, "Popen", start), patch.object(tempfile, "tempdir", str(folder)):
                    gateway = java_gateway.launch_gateway(conf, quiet)  # type: ignore[no-untyped-call]
                # Spark's own handler of SIGINT calls Java, fails while the context starts, and hides the interrupt.
                with patch.object(importlib.import_module(SparkContext.__module__), "signal"):
                    session = SparkSession(SparkContext(conf=conf, gateway=gateway))
            except Exception as error:  # Spark's own text is long and names hosts and paths
                if master.startswith("local"):
                    raise no_java(f"Spark could not be started ({type(error).__name__})") from None
                fix = "check SPARK_MASTER, and that the server runs; without it Spark runs on this machine"
                what = f"Spark cannot be reached ({type(error).__name__})"
                raise InvalidInput(what, fix=fix, code="no-connection") from None
            yield session
            with suppress(Exception):
                session.stop()
                gateway.shutdown()
        finally:
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
            for process in started:
                end_java(process)


def no_java(what: str) -> InvalidInput:
    fix = f"check JAVA_HOME; on Debian or Ubuntu: apt install {JAVA_PACKAGE}"
    return InvalidInput(what, allowed="Java 17 or 21", fix=fix, code="no-java")


def end_java(process: Any) -> None:
    """End the Java that was started, so that the next session starts one with a folder of its own."""
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(PATIENCE if sys.exc_info()[0] is None else 0)  # after a failure nothing of it is needed
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # with the program that starts it
        process.wait()
