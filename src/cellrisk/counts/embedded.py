"""Files and frames in the embedded DuckDB."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cellrisk.counts.columns import is_text as is_text_type
from cellrisk.counts.engine import (
    LONGEST_LINE,
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
    is_text,
    recode,
)
from cellrisk.counts.frames import check_exact, convert, is_frame, read_frame
from cellrisk.counts.resources import Resources
from cellrisk.counts.sqlite import find_stored, read_relation, read_stored
from cellrisk.errors import InvalidInput, argument

ALLOWED = (
    "a path or glob of CSV or Parquet files, a DuckDB file or relation, a pandas, polars or narwhals frame, a pyarrow "
    "table or dataset, any stream of Arrow batches, an Ibis table"
)
SPANS = {"s": "to_seconds", "ms": "to_milliseconds", "us": "to_microseconds"}
"""Functions of DuckDB for time spans, which are whole numbers in a Parquet file, by their unit."""


@contextmanager
def open_embedded(
    source: Any, columns: Sequence[str], table: str | None, resources: Resources, by_declaration: bool = False
) -> Iterator[Relation]:
    """The columns in use of files or frames, as a table of an embedded DuckDB that lives for the block."""
    with embedded_engine(resources) as (connection, folder):
        yield read_source(connection, folder, source, columns, table, by_declaration)


def read_source(
    connection: Any, folder: Path, source: Any, columns: Sequence[str], table: str | None, by_declaration: bool
) -> Relation:
    """Bring the columns in use of a source into DuckDB as c0, c1, ...; folder: a private one for copies."""
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
    """Files of one kind, checked one by one, as one table."""
    others = [path for path in files if path.suffix.lower() in OTHER_FORMATS]
    if others and len(files) > 1:
        raise InvalidInput(
            "files of this kind are read one at a time", got=f"{len(files)} files, {others[0]} too", code="file-kind"
        )
    recoded = encoding is not None or any(find_encoding(path) for path in files)
    if recoded and not all(is_text(path) for path in files):
        raise InvalidInput("only text has an encoding to name", got=files[0], fix="leave it out", code="encoding")
    if others:
        from cellrisk.counts.other_formats import read_other, unpack

        (path,) = files
        check_file(path, may_be_empty=by_declaration and path.suffix.lower() in LINES)
        if path.suffix.lower() == ".zip":
            return read_files(connection, folder, [unpack(path, folder)], columns)
        found = read_other(path, columns, sheet, by_declaration, folder)
        return read_parquet(connection, [found]) if isinstance(found, Path) else load_stream(connection, found)
    if recoded:
        for path in files:
            check_file(path)
        files = [recode(path, encoding or find_encoding(path) or "utf-8", folder) for path in files]
    if are_parquet(files):
        return read_parquet_files(connection, files, columns)
    return read_text_files(connection, folder, files, columns)


def read_text_files(connection: Any, folder: Path, files: Sequence[Path], columns: Sequence[str]) -> Relation:
    """Delimited text, every field as text, nothing guessed by DuckDB. It is parsed once, into a Parquet file."""
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
    """Parquet files; if they give a column different types of numbers or times, DuckDB uses the wider one."""
    import pyarrow as pa

    def read(group: ParquetFiles) -> Relation:
        for name, place in zip(columns, group.places, strict=True):
            convert(name, group.kinds[place], check_exact)
        # By place, as names may repeat but for their case. No folder, and so no column of one, has such a name.
        names = [f"/{place}" for place in range(group.n_stored)] + group.names[group.n_stored :]
        forms = [quote_name(names[old]) for old in group.places]
        for new, old in enumerate(group.places):
            if pa.types.is_duration(group.kinds[old]):
                if group.kinds[old].unit not in SPANS:
                    what, fix = f"column '{columns[new]}' holds time spans in nanoseconds", "write it with microseconds"
                    raise InvalidInput(what, fix=fix, code="column-type")
                forms[new] = f"{SPANS[group.kinds[old].unit]}({forms[new]})"
        chosen = ", ".join(f"{form} AS c{new}" for new, form in enumerate(forms))
        hive = any(old >= group.n_stored for old in group.places)
        settings = {"hive_types_autocast": False} if hive else {}
        return read_parquet(
            connection, group.paths, chosen, names[: group.n_stored], hive_partitioning=hive, **settings
        )

    relations = [read(group) for group in group_parquet(files, columns)]
    for place, name in enumerate(columns):
        if len({is_text_type(relation.types[f"c{place}"]) for relation in relations}) > 1:
            raise InvalidInput(
                f"the Parquet files give column '{name}' types that do not fit together",
                fix="write them with the same types",
                code="column-type",
            )
    return stack(relations)
