"""Sources: whatever holds the records, as a relation of DuckDB with the columns in use, c0, c1, ... in their order.

DuckDB itself reads files and frames. A database or a Spark cluster groups its rows by the columns in use and sends one
row for each combination that occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.counts.binning import Binning
from cellrisk.counts.columns import is_numeric, is_text
from cellrisk.counts.engine import (
    Relation,
    embedded_engine,
    literal_path,
    load_stream,
    quote_name,
    quote_sql,
    read_parquet,
    stack,
)
from cellrisk.counts.files import (
    LINES,
    OTHER_FORMATS,
    SPREADSHEETS,
    EncodedPath,
    ParquetFiles,
    are_parquet,
    check_file,
    find_encoding,
    find_files,
    group_parquet,
    group_text,
    is_address,
    recode,
)
from cellrisk.counts.files import is_text as is_text_file
from cellrisk.counts.frames import check_exact, convert, has_type, is_frame, read_frame, read_ibis, unwrap
from cellrisk.counts.refusals import LONGEST_LINE, redacted
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import AskedColumns, Schema
from cellrisk.counts.sqlite import find_stored, read_relation, read_stored
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.atomic import keep_inputs
from cellrisk.system.choices import EngineName, list_words, require_word

ALLOWED = (
    "a path or glob of CSV or Parquet files, a DuckDB file or relation, a pandas, polars or narwhals frame, a pyarrow "
    "table or dataset, any stream of Arrow batches, an Ibis table"
)
SPANS = {"s": "to_seconds", "ms": "to_milliseconds", "us": "to_microseconds"}
"""Functions of DuckDB for time spans, which are whole numbers in a Parquet file, by their unit."""


class Opened(NamedTuple):
    """A source that is opened."""

    records: Any
    """A relation, or a `SparkTable` if bins were given."""
    others: tuple[str, ...]
    """The names of the columns that are not in use."""


@contextmanager
def open_source(
    source: Any,
    columns: Sequence[str],
    resources: Resources,
    *,
    table: str | None = None,
    engine: str | None = None,
    by_declaration: bool = False,
    bins: Mapping[str, Binning] | None = None,
) -> Iterator[Any]:
    """Open the columns in use as a relation for the length of the block.

    by_declaration: if each value has a type of its own, as in SQLite, a column has the type that was declared for it,
    whatever it holds: no record may decide how the others are read. bins: columns of which only the bin matters; if it
    is given, a source on Spark with very many rows comes as a `SparkTable`, and is refused otherwise.
    """
    if engine is not None:
        require_word("engine", engine, list_words(EngineName))
    source = unwrap(source)
    keep_inputs("the records", *list_files_of(source))
    with redacted(), embedded_engine(resources) as (connection, folder):
        if has_type(source, "ibis", "Table"):
            if table is not None:
                raise InvalidInput(
                    "an Ibis table is one table already", fix=f"leave {argument('table')} out", code="no-tables"
                )
            source = read_ibis(source, columns)
        if engine == "spark" or has_type(source, "pyspark", "DataFrame"):
            from cellrisk.counts.spark.reading import open_spark

            with open_spark(source, columns, bins) as grouped:
                yield grouped if hasattr(grouped, "tally") else load_stream(connection, grouped)
        elif is_address(source) and find_stored(source) is None:
            from cellrisk.counts.database import open_database

            with open_database(source, table, columns) as (batches, kinds):
                relation = load_stream(connection, batches, kinds)
            yield relation
        else:
            yield read_source(connection, folder, source, columns, table, by_declaration)


@contextmanager
def open_records(
    source: Any,
    schema: Schema,
    resources: Resources,
    *,
    table: str | None = None,
    engine: str | None = None,
    bins: Mapping[str, Binning] | None = None,
) -> Iterator[Opened]:
    """Open the columns of a schema; gives also the names of the source's other columns. bins: as for `open_source`."""
    asked, dropping = AskedColumns(schema.stored), schema.outside == "drop"
    with open_source(
        source, asked, resources, table=table, engine=engine, by_declaration=dropping, bins=bins
    ) as records:
        yield Opened(lengthen(records, schema), asked.others)


def lengthen(records: Any, schema: Schema) -> Any:
    """Return a wide table with one row for each cell and level; any other table as it is."""
    if not schema.wide or not isinstance(records, Relation):
        return records
    n_quasi = len(schema.quasi_identifiers)
    names = {f"c{place}": f"c{place}" for place in range(n_quasi)}
    counts = [f"c{n_quasi + place}" for place in range(len(schema.wide))]
    types = {records.types[count] for count in counts}
    if len(types) > 1:
        kind = "DOUBLE" if all(map(is_numeric, types)) else "VARCHAR"
        counts = [f"{count}::{kind}" for count in counts]
    parts = [
        records.select({**names, f"c{n_quasi}": quote_sql(level), f"c{n_quasi + 1}": count})
        for level, count in zip(schema.wide, counts, strict=True)
    ]
    return replace(stack(parts), kinds=records.kinds, grouped=records.grouped)


def list_files_of(source: object) -> list[Path]:
    """Return the files that a source is read from, as far as its name tells: a path, those of a glob, a database's.

    >>> [path.name for path in list_files_of("sqlite://people.db")]
    ['people.db']
    """
    if not isinstance(source, str | os.PathLike):
        return []
    given = os.fspath(source)
    if is_address(given):
        stored = find_stored(given)
        files = set() if stored is None else {str(stored[1]), str(stored[1]).lstrip("/")}
        return [Path(file) for file in sorted(files) if file]
    try:
        return list(find_files(given))
    except InvalidInput:
        return []


def read_source(
    connection: Any, folder: Path, source: Any, columns: Sequence[str], table: str | None, by_declaration: bool
) -> Relation:
    """Bring the columns in use of files or a frame into DuckDB as c0, c1, ...; folder: a private one for copies."""
    stored = find_stored(source)
    if stored is not None:
        return read_stored(connection, *stored, columns, table, by_declaration)
    is_path = isinstance(source, str | os.PathLike)
    kind = type(source)
    named = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if table is not None and not (is_path and os.fspath(source).lower().endswith(SPREADSHEETS)):
        raise InvalidInput(
            "names a table of a database, or a sheet of a workbook, and this source is neither",
            option="table",
            got="a file" if is_path else named,
            fix=f"give a database by its address, such as sqlite://people.db, or leave {argument('table')} out",
            code="no-tables",
        )
    if is_path:
        encoding = source.encoding if isinstance(source, EncodedPath) else None
        return read_files(connection, folder, find_files(source), columns, table, encoding, by_declaration)
    if kind.__name__ == "DuckDBPyRelation":
        return read_relation(connection, folder, source, columns)
    if is_frame(source):
        return load_stream(connection, read_frame(source, columns, by_declaration))
    raise InvalidInput("the source is not of a kind that can be read", got=named, allowed=ALLOWED, code="source")


def read_files(
    connection: Any,
    folder: Path,
    files: Sequence[Path],
    columns: Sequence[str],
    sheet: str | None = None,
    encoding: str | None = None,
    by_declaration: bool = False,
) -> Relation:
    """Read files of one kind, checked one by one, as one table."""
    others = [path for path in files if path.suffix.lower() in OTHER_FORMATS]
    if others and len(files) > 1:
        raise InvalidInput(
            "files of this kind are read one at a time", got=f"{len(files)} files, {others[0]} too", code="file-kind"
        )
    recoded = encoding is not None or any(find_encoding(path) for path in files)
    if recoded and not all(is_text_file(path) for path in files):
        raise InvalidInput("only text has an encoding to name", got=files[0], fix="leave it out", code="encoding")
    if others:
        from cellrisk.counts.other_formats import read_other, unpack

        (path,) = files
        check_file(path, may_be_empty=by_declaration and path.suffix.lower() in LINES)
        if path.suffix.lower() == ".zip":
            return read_files(connection, folder, [unpack(path, folder)], columns)
        table = read_other(path, columns, sheet, by_declaration, folder)
        return read_parquet(connection, [table]) if isinstance(table, Path) else load_stream(connection, table)
    if recoded:
        for path in files:
            check_file(path)
        files = [recode(path, encoding or find_encoding(path) or "utf-8", folder) for path in files]
    if are_parquet(files):
        return read_parquet_files(connection, files, columns)
    return read_text_files(connection, folder, files, columns)


def read_text_files(connection: Any, folder: Path, files: Sequence[Path], columns: Sequence[str]) -> Relation:
    """Read delimited text, every field as text, nothing guessed by DuckDB. It is parsed once, into a Parquet file."""
    parsed = []
    for group in group_text(files, columns):
        chosen = ", ".join(f"f{old} AS c{new}" for new, old in enumerate(group.places))
        fields = ", ".join(f"'f{place}': 'VARCHAR'" for place in range(len(group.names)))
        paths = ", ".join(quote_sql(literal_path(path)) for path in group.paths)
        parsed.append(
            f"SELECT {chosen} FROM read_csv([{paths}], columns={{{fields}}}, "
            f"auto_detect=false, header=true, delim={quote_sql(group.delimiter)}, quote='\"', escape='\"', "
            f"compression={quote_sql(group.packing)}, max_line_size={LONGEST_LINE})"
        )
    path = folder / "text.parquet"
    connection.execute(f"COPY ({' UNION ALL '.join(parsed)}) TO {quote_sql(str(path))} (FORMAT parquet)")
    return read_parquet(connection, [path])


def read_parquet_files(connection: Any, files: Sequence[Path], columns: Sequence[str]) -> Relation:
    """Read Parquet files; if they give a column different types of numbers or times, DuckDB uses the wider one."""
    relations = [read_parquet_group(connection, group, columns) for group in group_parquet(files, columns)]
    for place, name in enumerate(columns):
        if len({is_text(relation.types[f"c{place}"]) for relation in relations}) > 1:
            raise InvalidInput(
                f"the Parquet files give column '{name}' types that do not fit together",
                fix="write them with the same types",
                code="column-type",
            )
    return stack(relations)


def read_parquet_group(connection: Any, group: ParquetFiles, columns: Sequence[str]) -> Relation:
    """Read Parquet files with the same columns, by place: names may repeat but for their case."""
    import pyarrow as pa

    names = [f"/{place}" for place in range(group.n_stored)] + group.names[group.n_stored :]  # no folder has a slash
    chosen = []
    for new, (name, old) in enumerate(zip(columns, group.places, strict=True)):
        kind, value = group.kinds[old], quote_name(names[old])
        convert(name, kind, check_exact)
        if pa.types.is_duration(kind):
            if kind.unit not in SPANS:
                raise InvalidInput(
                    f"column '{name}' holds time spans in nanoseconds",
                    fix="write it with microseconds",
                    code="column-type",
                )
            value = f"{SPANS[kind.unit]}({value})"
        chosen.append(f"{value} AS c{new}")
    hive = {"hive_partitioning": any(old >= group.n_stored for old in group.places)}
    if hive["hive_partitioning"]:
        hive["hive_types_autocast"] = False
    return read_parquet(connection, group.paths, ", ".join(chosen), names[: group.n_stored], **hive)
