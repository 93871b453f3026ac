"""Files and frames in the embedded engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.encodings import EncodedPath, find_encoding, recode
from cellrisk.counts.engine import (
    LONGEST_LINE,
    Relation,
    embedded_engine,
    literal_path,
    make_view,
    name_relation,
    quote_name,
    quote_sql,
    read_parquet,
    stack,
)
from cellrisk.counts.files import (
    LINES,
    PACKED,
    SPREADSHEETS,
    ParquetFile,
    TextFile,
    are_parquet,
    check_columns,
    check_file,
    find_files,
    group_parquet,
    group_text,
    is_foreign,
    is_text,
)
from cellrisk.counts.frames import Unusable, check_exact, find_frame_reader
from cellrisk.counts.resources import Resources
from cellrisk.counts.sqlite import Opener, find_stored, plan_relation, plan_stored
from cellrisk.counts.streams import is_stream, plan_stream
from cellrisk.errors import InvalidInput, argument

if TYPE_CHECKING:
    import pyarrow as pa

ALLOWED = (
    "a path or glob of CSV or Parquet files, a DuckDB file or relation, a pandas, polars or narwhals frame, a pyarrow "
    "table or dataset, any stream of Arrow batches, an Ibis table"
)


def open_embedded(
    source: Any, columns: Sequence[str], table: str | None, resources: Resources, by_declaration: bool = False
) -> AbstractContextManager[Relation]:
    """The columns in use of files or frames, as a table of an embedded DuckDB that lives for the block."""
    return open_planned(plan_source(source, columns, table, by_declaration), resources)


@contextmanager
def open_planned(opener: Opener, resources: Resources) -> Iterator[Relation]:
    """What a plan brings into an embedded DuckDB that lives for the block."""
    with embedded_engine(resources) as (connection, folder):
        yield opener(connection, folder)


def plan_source(source: Any, columns: Sequence[str], table: str | None = None, by_declaration: bool = False) -> Opener:
    """Checks a source before any engine starts; the result brings its columns into the engine."""
    stored = find_stored(source)
    if stored is not None:
        return plan_stored(*stored, columns, table, by_declaration)
    is_path = isinstance(source, str | os.PathLike)
    if table is not None and not (is_path and os.fspath(source).lower().endswith(SPREADSHEETS)):
        raise InvalidInput(
            "names a table of a database, or a sheet of a workbook, and this source is neither",
            option="table",
            got="a file" if is_path else name_type(source),
            fix=f"give a database by its address, such as sqlite://people.db, or leave {argument('table')} out",
        )
    read_frame = find_frame_reader(source)
    if read_frame is not None:
        frame = read_frame(source, columns)
        return lambda connection, _: register(connection, frame)
    if type(source).__name__ == "DuckDBPyRelation":
        return plan_relation(source, columns)
    if is_path:
        encoding = source.encoding if isinstance(source, EncodedPath) else None
        return plan_files(find_files(source), columns, table, encoding, by_declaration)
    if is_stream(source):
        return plan_written(plan_stream(source, columns, by_declaration), len(columns))
    raise InvalidInput("the source is not of a kind that can be read", got=name_type(source), allowed=ALLOWED)


def name_type(source: object) -> str:
    kind = type(source)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def register(connection: Any, frame: pa.Table) -> Relation:
    connection.register("frame", frame)
    return name_relation(connection, "frame")


def plan_files(
    files: Sequence[Path],
    columns: Sequence[str],
    sheet: str | None = None,
    encoding: str | None = None,
    by_declaration: bool = False,
) -> Opener:
    """Files of one kind, checked one by one, as one table."""
    foreign = [path for path in files if is_foreign(path)]
    if foreign:
        if len(files) > 1:
            raise InvalidInput("files of this kind are read one at a time", got=f"{len(files)} files, {foreign[0]} too")
        if encoding is not None:
            raise InvalidInput("only text has an encoding to name", got=foreign[0], fix="leave the encoding out")
        return plan_file_of_others(foreign[0], columns, sheet, by_declaration)
    if encoding is not None or any(find_encoding(path) for path in files):
        return plan_recoded(files, columns, encoding)
    return plan_parquet(files, columns) if are_parquet(files) else plan_text(files, columns)


def plan_file_of_others(path: Path, columns: Sequence[str], sheet: str | None, by_declaration: bool) -> Opener:
    """A file of another program, which goes through a file in the private folder."""
    from cellrisk.counts.other_formats import plan_foreign, unpack

    check_file(path, may_be_empty=by_declaration and path.suffix.lower() in LINES)
    if path.suffix.lower() in PACKED:
        return lambda connection, folder: plan_files([unpack(path, folder)], columns)(connection, folder)
    return plan_written(plan_foreign(path, columns, sheet, by_declaration), len(columns))


def plan_written(write: Callable[[Path], Path], columns: int) -> Opener:
    """What is first written to a Parquet file in the private folder, with so many columns c0, c1, ..."""
    named = [f"c{place}" for place in range(columns)]
    return lambda connection, folder: plan_parquet([write(folder)], named)(connection, folder)


def plan_recoded(files: Sequence[Path], columns: Sequence[str], encoding: str | None) -> Opener:
    """Text in another encoding than UTF-8, through copies in the private folder."""
    for path in files:
        check_file(path)
        if not is_text(path):
            raise InvalidInput("only text has an encoding to name", got=path, fix="leave the encoding out")

    def read(connection: Any, folder: Path) -> Relation:
        copies = [
            recode(path, encoding or find_encoding(path) or "utf-8", folder / f"recoded{number}{_text_ending(path)}")
            for number, path in enumerate(files)
        ]
        return plan_text(copies, columns)(connection, folder)

    return read


def _text_ending(path: Path) -> str:
    return ".tsv" if ".tsv" in path.suffixes else ".csv"


def plan_text(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Delimited text, every field as text, nothing guessed by the engine; files with the same header go together.

    It is parsed once, into a Parquet file in the private folder.
    """
    groups = group_text(files, columns)

    def read(connection: Any, group: Sequence[TextFile], places: Sequence[int]) -> Relation:
        chosen = ", ".join(f"f{old} AS c{new}" for new, old in enumerate(places))
        fields = ", ".join(f"'f{place}': 'VARCHAR'" for place in range(len(group[0].names)))
        paths = ", ".join(quote_sql(literal_path(file.path)) for file in group)
        query = (
            f"SELECT {chosen} FROM read_csv([{paths}], columns={{{fields}}}, "
            f"auto_detect=false, header=true, delim={quote_sql(group[0].delimiter)}, quote='\"', escape='\"', "
            f"compression={quote_sql(group[0].packing)}, max_line_size={LONGEST_LINE})"
        )
        return make_view(connection, query)

    def copy(connection: Any, folder: Path) -> Relation:
        path = folder / "text.parquet"
        parsed = stack([read(connection, *group) for group in groups])
        connection.execute(f"COPY (FROM {parsed.name}) TO {quote_sql(str(path))} (FORMAT parquet)")
        return read_parquet(connection, [path])

    return copy


def plan_parquet(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Parquet files; where they give a column different types, the wider one is used.

    A column that the files do not hold but their folders do (``year=2020/``) is text, as in a CSV file.
    """
    import pyarrow as pa

    groups, kinds = group_parquet(files, columns)
    for paths, file in groups:
        check_columns(paths[0], file.n_stored)
        for name, place in zip(columns, file.places, strict=True):
            check_stored(name, file.kinds[place])

    def read(connection: Any, paths: Sequence[Path], file: ParquetFile, types: Sequence[str]) -> Relation:
        # By place, as names may repeat but for their case. No folder, and so no column of one, has such a name.
        names = [f"/{place}" for place in range(file.n_stored)] + file.names[file.n_stored :]
        forms = [quote_name(names[old]) for old in file.places]
        spans = {
            new: file.kinds[old].unit for new, old in enumerate(file.places) if pa.types.is_duration(file.kinds[old])
        }
        for new, unit in spans.items():
            forms[new] = f"{DURATIONS[unit]}({forms[new]})"
        if len(groups) > 1:
            forms = [f"CAST({form} AS {kind})" for form, kind in zip(forms, types, strict=True)]
        chosen = ", ".join(f"{form} AS c{new}" for new, form in enumerate(forms))
        hive = any(old >= file.n_stored for old in file.places)
        settings = {"hive_types_autocast": False} if hive else {}
        return read_parquet(connection, paths, chosen, names[: file.n_stored], hive_partitioning=hive, **settings)

    def read_all(connection: Any, _: Path) -> Relation:
        types: list[str] = []
        if len(groups) > 1:
            empty = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)]).empty_table()
            connection.register("kinds", empty)
            types = list(name_relation(connection, "kinds").types.values())
        return stack([read(connection, *group, types) for group in groups])

    return read_all


DURATIONS = {"s": "to_seconds", "ms": "to_milliseconds", "us": "to_microseconds"}
"""Durations are whole numbers in a Parquet file."""


def check_stored(name: str, kind: pa.DataType) -> None:
    """Refuses a type that the engine would round when it reads it from a Parquet file."""
    import pyarrow as pa

    try:
        check_exact(kind)
        if pa.types.is_duration(kind) and kind.unit == "ns":
            raise Unusable("holds durations in nanoseconds", "write it with microseconds, or as text")
    except Unusable as reason:
        raise InvalidInput(f"column '{name}' {reason}", fix=reason.fix) from None
