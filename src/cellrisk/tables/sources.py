"""Sources: whatever holds the records, as an Ibis table with the columns in use, named c0, c1, ... in their order.

One more kind of source is one more branch in `plan_source`; counting takes a table of any Ibis engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cellrisk.errors import InvalidInput
from cellrisk.tables.engine import embedded_engine, plain_refusals
from cellrisk.tables.files import TextFile, check_parquet, describe_text, find_files, is_parquet, refusals_of_the_system
from cellrisk.tables.frames import find_frame_reader
from cellrisk.tables.schema import locate

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends.duckdb import Backend

Opener: TypeAlias = "Callable[[Backend], ir.Table]"
ALLOWED = "a path or glob of CSV or Parquet files, a pandas or polars frame, a pyarrow table"


@contextmanager
def open_source(source: Any, columns: Sequence[str]) -> Iterator[ir.Table]:
    """The columns in use, as a table expression that can be run inside the block."""
    with plain_refusals():
        opener = plan_source(source, columns)
        with embedded_engine() as connection:
            yield opener(connection)


def plan_source(source: Any, columns: Sequence[str]) -> Opener:
    """Checks a source before any engine starts; the result brings its columns into the engine."""
    read_frame = find_frame_reader(source)
    if read_frame is not None:
        frame = read_frame(source, columns)
        return lambda connection: register(connection, frame)
    if isinstance(source, str | os.PathLike):
        return plan_files(find_files(source), columns)
    raise InvalidInput("the source is not of a kind that can be read", got=kind_of(source), allowed=ALLOWED)


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

    return lambda connection: stack(
        [read(connection, number, group, places[key]) for number, (key, group) in enumerate(groups.items())]
    )


NO_HEADER = "its first line names none of the columns asked for: check that it is a header, and how the names are spelt"


def plan_parquet(files: Sequence[Path], columns: Sequence[str]) -> Opener:
    """Parquet files; where they give a column different types, the wider one is used."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    groups: dict[str, tuple[list[Path], list[int], pa.Schema]] = {}
    for path in files:
        check_parquet(path)
        with refusals_of_the_system(path):
            schema = pq.read_schema(path)
        places = locate(columns, schema.names, f"'{path.name}'")
        used = pa.schema([(f"c{new}", value_type(schema.types[old])) for new, old in enumerate(places)])
        groups.setdefault(f"{schema.names} {schema.types}", ([], places, used))[0].append(path)
    try:
        wide = pa.unify_schemas([used for _, _, used in groups.values()], promote_options="permissive")
    except pa.ArrowException:
        raise InvalidInput(
            "the Parquet files give the columns in use types that do not go together",
            fix="write them with the same types, or read them apart",
        ) from None

    def read(connection: Backend, paths: Sequence[Path], places: Sequence[int]) -> ir.Table:
        from ibis.expr.datatypes import DataType

        table = connection.read_parquet([literal_path(path) for path in paths], hive_partitioning=False)
        chosen = {f"c{new}": table[table.columns[old]] for new, old in enumerate(places)}
        if len(groups) > 1:
            chosen = {
                name: column.cast(DataType.from_pyarrow(wide.field(name).type)) for name, column in chosen.items()
            }
        return table.select(**chosen)

    return lambda connection: stack([read(connection, paths, places) for paths, places, _ in groups.values()])


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
