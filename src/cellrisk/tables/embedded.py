"""Files and frames in the embedded engine."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.tables.engine import embedded_engine
from cellrisk.tables.files import (
    TextFile,
    check_parquet,
    describe_text,
    find_files,
    is_parquet,
    partition_keys,
    refusals_of_the_system,
)
from cellrisk.tables.frames import find_frame_reader
from cellrisk.tables.resources import Resources
from cellrisk.tables.schema import listed, locate

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends.duckdb import Backend

Opener: TypeAlias = "Callable[[Backend, Path], ir.Table]"
"""Brings the columns in use into an engine, which comes with a private folder."""
ALLOWED = "a path or glob of CSV or Parquet files, a DuckDB file or relation, a pandas or polars frame, a pyarrow table"
DATABASE_SUFFIXES = (".duckdb", ".ddb")


@contextmanager
def open_embedded(source: Any, columns: Sequence[str], table: str | None, resources: Resources) -> Iterator[ir.Table]:
    """The columns in use of files or frames, as a table of an embedded DuckDB that lives for the block."""
    opener = plan_source(source, columns, table)
    with embedded_engine(resources) as (connection, folder):
        yield opener(connection, folder)


def plan_source(source: Any, columns: Sequence[str], table: str | None = None) -> Opener:
    """Checks a source before any engine starts; the result brings its columns into the engine."""
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() in DATABASE_SUFFIXES:
        return plan_database(Path(source), columns, table)
    if table is not None:
        raise InvalidInput(
            "table= names a table of a database, and this source is none", got=kind_of(source), fix="leave table= out"
        )
    read_frame = find_frame_reader(source)
    if read_frame is not None:
        frame = read_frame(source, columns)
        return lambda connection, _: register(connection, frame)
    if type(source).__name__ == "DuckDBPyRelation":
        return plan_relation(source, columns)
    if isinstance(source, str | os.PathLike):
        return plan_files(find_files(source), columns)
    raise InvalidInput("the source is not of a kind that can be read", got=kind_of(source), allowed=ALLOWED)


def plan_relation(relation: Any, columns: Sequence[str]) -> Opener:
    """A DuckDB relation lives in its owner's connection: its columns in use go through a file in the private folder."""
    places = locate(columns, relation.columns, "the DuckDB relation")
    chosen = ", ".join(f"{quote_name(relation.columns[old])} AS c{new}" for new, old in enumerate(places))

    def read(connection: Backend, folder: Path) -> ir.Table:
        path = str(folder / "relation.parquet")
        relation.project(chosen).write_parquet(path)
        return connection.read_parquet(path)

    return read


def plan_database(path: Path, columns: Sequence[str], table: str | None) -> Opener:
    """A table or view of a DuckDB file, which is opened for reading only."""
    (path,) = find_files(path)
    if table is None:
        raise InvalidInput("a DuckDB file holds tables: which one?", got=path, fix="name it with table= or --table")
    schema, name = table.rpartition(".")[::2]

    def read(connection: Backend, _: Path) -> ir.Table:
        connection.con.execute(f"ATTACH {quote_sql(str(path))} AS source (READ_ONLY)")
        connection.con.execute("USE source")  # so that its views find their tables
        tables = connection.con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
            "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
        ).fetchall()
        if ((schema or "main"), name) not in tables:
            names = sorted(each if owner == "main" else f"{owner}.{each}" for owner, each in tables)
            near = difflib.get_close_matches(table, names, n=1)
            raise UnknownName(
                f"the DuckDB file has no table '{table}'",
                allowed=listed(names) or "it holds none",
                fix=f"did you mean '{near[0]}'?" if near else None,
            )
        whole = f"source.{quote_name(schema or 'main')}.{quote_name(name)}"
        available = [row[0] for row in connection.con.execute(f"DESCRIBE {whole}").fetchall()]
        places = locate(columns, available, f"table '{table}'")
        chosen = ", ".join(f"{quote_name(available[old])} AS c{new}" for new, old in enumerate(places))
        connection.con.execute(f"CREATE TEMP VIEW stored AS SELECT {chosen} FROM {whole}")
        return connection.table("stored")

    return read


def kind_of(source: object) -> str:
    kind = type(source)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def register(connection: Backend, frame: pa.Table) -> ir.Table:
    connection.con.register("frame", frame)
    return connection.table("frame")


def plan_files(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Files of one kind, checked one by one, as one table."""
    kinds = {is_parquet(path) for path in files}
    if len(kinds) > 1:
        raise InvalidInput("the pattern matches both text and Parquet files", fix="read one kind at a time")
    return plan_parquet(files, columns) if kinds == {True} else plan_text(files, columns)


def plan_text(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Delimited text, every field as text, nothing guessed by the engine; files with the same header go together."""
    groups: dict[tuple[object, ...], list[TextFile]] = {}
    for path in files:
        file = describe_text(path, columns)
        groups.setdefault((file.packed, file.delimiter, file.names), []).append(file)
    places = {
        key: locate(columns, file.names, f"'{file.path.name}'", NO_HEADER if file.looks_headless(columns) else None)
        for key, (file, *_) in groups.items()
    }

    def read(connection: Backend, number: int, group: Sequence[TextFile], places: Sequence[int]) -> ir.Table:
        chosen = ", ".join(f"f{old} AS c{new}" for new, old in enumerate(places))
        fields = ", ".join(f"'f{place}': 'VARCHAR'" for place in range(len(group[0].names)))
        paths = ", ".join(quote_sql(literal_path(file.path)) for file in group)
        # Written out, because Ibis takes seconds to describe a file of a few thousand columns.
        connection.con.execute(
            f"CREATE TEMP VIEW text{number} AS SELECT {chosen} FROM read_csv([{paths}], columns={{{fields}}}, "
            f"auto_detect=false, header=true, delim={quote_sql(group[0].delimiter)}, quote='\"', escape='\"', "
            f"compression={quote_sql('gzip' if group[0].packed else 'none')})"
        )
        return connection.table(f"text{number}")

    return lambda connection, _: stack(
        [read(connection, number, group, places[key]) for number, (key, group) in enumerate(groups.items())]
    )


NO_HEADER = "its first line names none of the columns asked for: check that it is a header, and how the names are spelt"


def plan_parquet(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Parquet files; where they give a column different types, the wider one is used.

    A column that the files do not hold but their folders do (``year=2020/``) is text, as in a CSV file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    groups: dict[str, tuple[list[Path], list[str], pa.Schema]] = {}
    for path in files:
        check_parquet(path)
        with refusals_of_the_system(path):
            schema = pq.read_schema(path)
        folders = [key for key in partition_keys(path) if key not in schema.names]
        kinds = [*schema.types, *(pa.string() for _ in folders)]
        places = locate(columns, [*schema.names, *folders], f"'{path.name}'")
        names = [f"column {old}" if old < len(schema.names) else folders[old - len(schema.names)] for old in places]
        used = pa.schema([(f"c{new}", value_type(kinds[old])) for new, old in enumerate(places)])
        groups.setdefault(f"{schema.names} {schema.types} {folders}", ([], names, used))[0].append(path)
    try:
        wide = pa.unify_schemas([used for _, _, used in groups.values()], promote_options="permissive")
    except pa.ArrowException:
        raise InvalidInput(
            "the Parquet files give the columns in use types that do not go together",
            fix="write them with the same types, or read them apart",
        ) from None

    def read(connection: Backend, paths: Sequence[Path], names: Sequence[str]) -> ir.Table:
        from ibis.expr.datatypes import DataType

        hive = any(not name.startswith("column ") for name in names)
        settings = {"hive_types_autocast": False} if hive else {}
        table = connection.read_parquet([literal_path(path) for path in paths], hive_partitioning=hive, **settings)
        chosen = {
            f"c{new}": table[table.columns[int(name.removeprefix("column "))]] if "column " in name else table[name]
            for new, name in enumerate(names)
        }
        if len(groups) > 1:
            chosen = {
                name: column.cast(DataType.from_pyarrow(wide.field(name).type)) for name, column in chosen.items()
            }
        return table.select(**chosen)

    return lambda connection, _: stack([read(connection, paths, names) for paths, names, _ in groups.values()])


def value_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def stack(tables: Sequence[ir.Table]) -> ir.Table:
    import ibis

    return tables[0] if len(tables) == 1 else ibis.union(*tables, distinct=False)


def literal_path(path: Path) -> str:
    """The path with the engine's own wildcards switched off.

    >>> literal_path(Path("a[1]*.csv"))
    'a[[]1][*].csv'
    """
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def quote_sql(text: str) -> str:
    """A text as an SQL literal.

    >>> quote_sql("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A name as an SQL identifier.

    >>> print(quote_name("hours per week"))
    "hours per week"
    """
    return '"' + name.replace('"', '""') + '"'
