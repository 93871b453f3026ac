"""Files, tables and frames in Spark: the distributed engine. Counting happens there; only small aggregates come back.

Spark is more lenient than a count may be: it fills and cuts rows of other lengths, skips lines of blanks, replaces what
is not UTF-8, and passes over files by their names. Each of these is looked for and refused.
"""

from __future__ import annotations

import csv
import io
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cellrisk.counts.files import (
    DELIMITERS,
    KINDS,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    ParquetFile,
    TextFile,
    are_parquet,
    exists,
    find_files,
    find_packing,
    group_parquet,
    group_text,
    is_address,
    is_too_long,
    open_bytes,
    refusals_of_the_system,
)
from cellrisk.counts.schema import locate
from cellrisk.counts.spark.dialect import connect
from cellrisk.counts.spark.partitions import Partitions, partitions_of
from cellrisk.counts.spark.refusals import CANNOT_READ_TEXT, spark_refusals
from cellrisk.counts.spark.session import functions_of, spark_session
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

Opener: TypeAlias = "Callable[[Any], Any]"
"""From a session to a Spark frame with the columns c0, c1, ..."""
ALLOWED = "a path or glob of CSV or Parquet files, the name of a Spark table, a Spark DataFrame"
TABLE_NAME = re.compile(r"(\w+\.){0,2}\w+")
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


@contextmanager
def open_spark(source: Any, columns: Sequence[str]) -> Iterator[ir.Table]:
    """The columns in use of a source, as a table of a Spark session."""
    with spark_refusals():
        opener, files = plan_source(source, columns)
        before = [stamp(path) for path in files]
        given = source.sparkSession if hasattr(source, "sparkSession") else None
        with spark_session(given) as session, partitions_of(session) as partitions:
            if before:
                partitions.fit_bytes(sum(size for _, size, _ in before))
            with registered(session, opener(session), columns, partitions, sized=bool(before)) as table:
                yield table
        if before != [stamp(path) for path in files]:
            raise InvalidInput("a file of the source changed while it was read", fix="try again when it is complete")


def plan_source(source: Any, columns: Sequence[str]) -> tuple[Opener, Sequence[Path]]:
    """Checks a source before Spark starts; the result brings it into a session. With it, the local files in use."""
    if hasattr(source, "sparkSession"):
        if source.isStreaming:
            raise InvalidInput("the Spark DataFrame is a stream", allowed="a DataFrame of records that are all there")
        places = locate(columns, source.columns, "the Spark DataFrame")
        return (lambda session: take_columns(source, places)), ()
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise InvalidInput("the source is not of a kind that Spark reads", got=kind, allowed=ALLOWED)
    name = os.fspath(source)
    if is_address(name):
        return plan_address(name, columns), ()
    if isinstance(source, str) and TABLE_NAME.fullmatch(name) and not has_suffix(name) and not exists(Path(name)):
        return (lambda session: open_table(session, name, columns)), ()
    files = [Path(os.path.abspath(path)) for path in find_files(source)]
    parquet = are_parquet(files)
    for path in files:
        if path.name.startswith(("_", ".")) or ":" in path.name:
            raise InvalidInput(
                "Spark passes over files of such a name", got=path, fix="rename it: no _ or . first, and no colon"
            )
    return (plan_parquet(files, columns) if parquet else plan_text(files, columns)), files


def has_suffix(name: str) -> bool:
    return re.sub(r"\.gz$", "", name.lower()).endswith((*TEXT_SUFFIXES, *PARQUET_SUFFIXES))


def stamp(path: Path) -> tuple[int, int, int]:
    """When a file was changed, how large it is, and which it is."""
    with refusals_of_the_system(path):
        status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


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


def plan_text(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Delimited text, every field as text; files with the same header go together."""
    packed = next((path for path in files if find_packing(path) == "zstd"), None)
    if packed is not None:
        raise InvalidInput("Spark reads no .zst text", got=packed, fix="use .gz, or the embedded engine")
    groups = group_text(files, columns)
    return lambda session: stack(
        [
            read_text(
                session, [as_address(file.path) for file in group], group[0].delimiter, group[0].names, columns, group
            )
            for group, _ in groups
        ]
    )


def read_text(
    session: Any,
    paths: list[str],
    delimiter: str,
    names: Sequence[str],
    columns: Sequence[str],
    files: Sequence[TextFile] = (),
) -> Any:
    """Text files of one shape; where they are not local, Spark compares the header of each with the names."""
    from pyspark.sql.types import StringType, StructField, StructType

    facts = survey_text(session, paths, delimiter)
    if facts["foreign"]:
        raise InvalidInput(f"{CANNOT_READ_TEXT}: it is not UTF-8", got=rows(facts["foreign"]), fix="save it as UTF-8")
    if facts["open"] and not (files and all(closes_quotes(file) for file in files)):
        raise InvalidInput(f"{CANNOT_READ_TEXT}: a quotation mark is never closed", fix="correct its quotation marks")
    used = [f"f{place}" for place in range(len(names))] if files else names
    fields = StructType([StructField(name, StringType()) for name in used])
    # A field over several lines, or a line of blanks, is only read right when a file is not cut at its lines.
    options = TEXT | {"sep": delimiter, "maxColumns": str(len(names) + 1), "enforceSchema": str(bool(files)).lower()}
    options["multiLine"] = str(bool(facts["ragged"] or facts["blank"])).lower()
    frame = take_columns(
        session.read.schema(fields).options(**options).csv(paths), locate(columns, names, "the source")
    )
    if facts["spaced"]:
        fn = functions_of(session)
        doubtful = [frame[name].rlike('^[ \t]+"') for name in frame.columns]
        found = frame.where(fn.coalesce(fn.greatest(*doubtful, fn.lit(False)), fn.lit(False))).count()
        if found:
            fix = "take out the blanks before quotation marks"
            raise InvalidInput(f"{CANNOT_READ_TEXT}: blanks before a quotation mark", got=rows(found), fix=fix)
    return frame


def closes_quotes(file: TextFile) -> bool:
    """Whether every quotation mark that opens a field is closed; some stand inside fields and open none."""
    with refusals_of_the_system(file.path), open_bytes(file.path) as stream:
        try:
            for _ in csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""), delimiter=file.delimiter, strict=True):
                pass
        except csv.Error as error:
            if is_too_long(error):
                raise InvalidInput(
                    f"{CANNOT_READ_TEXT} on Spark: a field is longer than {csv.field_size_limit():,} letters",
                    got=f"'{file.path.name}'",
                    fix="convert the file to Parquet",
                ) from None
            return False
    return True


def survey_text(session: Any, paths: list[str], delimiter: str) -> dict[str, int]:
    """What Spark's reader would pass over in silence, from one look at the lines, where the files are."""
    fn = functions_of(session)
    line = fn.col("value")
    quotes = fn.length(line) - fn.length(fn.replace(line, fn.lit('"'), fn.lit("")))
    spaced = line.contains('"') & line.rlike(f'(^|{re.escape(delimiter)})[ \t]+"')
    each = {
        "foreign": ~fn.is_valid_utf8(line),
        "ragged": quotes % 2 == 1,
        "blank": line.rlike(r"^[\x00-\x20]+\z"),
        "spaced": spaced,
    }
    lines = session.read.text(paths).groupBy(fn.input_file_name().alias("file"))
    by_file = lines.agg(fn.sum(quotes).alias("quotes"), *(fn.count_if(what).alias(name) for name, what in each.items()))
    total = by_file.agg(
        fn.count_if(fn.col("quotes") % 2 == 1).alias("open"), *(fn.sum(name).alias(name) for name in each)
    )
    return {name: int(number or 0) for name, number in total.first().asDict().items()}


def rows(number: int) -> str:
    return f"{number:,} such line{'s' if number > 1 else ''}"


def plan_parquet(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Parquet files; where they give a column different types, the wider one is used."""
    groups, kinds = group_parquet(files, columns)
    stored = [
        [spark_type(name, file.kinds[place]) for name, place in zip(columns, file.places, strict=True)]
        for _, file in groups
    ]
    wide = [spark_type(name, kind) for name, kind in zip(columns, kinds, strict=True)]

    def read(session: Any, paths: Sequence[Path], file: ParquetFile, types: Sequence[str]) -> Any:
        chosen = ", ".join(f"{quote(name)} {kind}" for name, kind in zip(columns, types, strict=True))
        reader = session.read.schema(chosen)
        # Spark takes columns from the names of folders below this one, and puts them last.
        reader = reader if file.base is None else reader.option("basePath", f"file://{file.base}")
        frame = reader.parquet(*(as_address(path) for path in paths))
        frame = take_columns(frame, [frame.columns.index(name) for name in columns])
        if len(groups) > 1:
            frame = frame.select(*(frame[f"c{place}"].cast(kind).alias(f"c{place}") for place, kind in enumerate(wide)))
        return frame

    return lambda session: stack([read(session, *group, types) for group, types in zip(groups, stored, strict=True)])


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spark_type(name: str, stored: pa.DataType) -> str:
    """The Spark type that holds every value of a column of an Arrow type; refuses what has none."""
    from pyarrow import types

    kind = stored.value_type if types.is_dictionary(stored) else stored
    known = SPARK_TYPES.get(str(kind))
    if known is not None:
        return known
    if types.is_decimal(kind) and kind.precision <= 38 and kind.scale >= 0:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    raise unusable(name, str(kind).partition("<")[0].partition("[")[0])


SPARK_TYPES = {
    "bool": "BOOLEAN", "date32[day]": "DATE", "double": "DOUBLE", "float": "FLOAT", "int16": "SMALLINT",
    "int32": "INT", "int64": "BIGINT", "int8": "TINYINT", "large_string": "STRING", "null": "INT", "string": "STRING",
    "string_view": "STRING", "uint16": "INT", "uint32": "BIGINT", "uint64": "DECIMAL(20, 0)", "uint8": "SMALLINT",
}  # fmt: skip


def unusable(name: str, kind: str) -> InvalidInput:
    return InvalidInput(
        f"column '{name}' holds {kind} values, which cannot be used on Spark",
        allowed="text, numbers, truth values, dates and timestamps",
        fix="convert it to text",
    )


def as_address(path: Path) -> str:
    """A local path for Spark, with its wildcards switched off.

    >>> as_address(Path("/data/a[1]*.csv"))
    'file:///data/a\\\\[1\\\\]\\\\*.csv'
    """
    return "file://" + "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def plan_address(address: str, columns: Sequence[str]) -> Opener:
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


@contextmanager
def registered(
    session: Any, frame: Any, columns: Sequence[str], partitions: Partitions | None = None, sized: bool = False
) -> Iterator[ir.Table]:
    """A Spark frame under a name of its own, as an Ibis table. ``sized``: whether the partitions fit it already."""
    import ibis

    frame = frame.select(*(prepare(frame, f"c{place}", name) for place, name in enumerate(columns)))
    view = f"cellrisk_{uuid.uuid4().hex}"
    frame.createTempView(view)
    try:
        if partitions is not None and not sized:
            partitions.fit_plan(view)
        table = connect(session, partitions).table(view)
        instants = [field.name for field in frame.schema if field.dataType.typeName() == "timestamp"]
        kinds = {name: "timestamp('UTC')" if name in instants else kind for name, kind in table.schema().items()}
        yield table.op().copy(schema=ibis.schema(kinds)).to_expr()
    finally:
        with suppress(Exception):  # a session that is lost has no views
            session.catalog.dropTempView(view)


def prepare(frame: Any, column: str, name: str) -> Any:
    """A column that groups by its exact values: no collation, and a column of nothing as text."""
    kind = frame.schema[column].dataType
    if kind.typeName().startswith("string"):
        plain = getattr(kind, "collation", "UTF8_BINARY") == "UTF8_BINARY"
        if plain:
            return frame[column]
        return functions_of(frame.sparkSession).collate(frame[column], "UTF8_BINARY").alias(column)
    if kind.typeName() == "void":
        return frame[column].cast("string").alias(column)
    if kind.typeName().partition("(")[0] not in USABLE:
        raise unusable(name, kind.typeName().partition("(")[0])
    return frame[column]


USABLE = (
    "boolean", "byte", "date", "decimal", "double", "float", "integer", "long", "short", "timestamp", "timestamp_ntz",
)  # fmt: skip
