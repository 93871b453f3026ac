"""Sources: whatever holds the records, as an Ibis table with the columns in use, named c0, c1, ... in their order.

One more engine is one more module with a function like `open_embedded`, and one more branch here. Counting takes a
table of any Ibis engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cellrisk.counts.embedded import open_embedded
from cellrisk.counts.engine import plain_refusals
from cellrisk.counts.files import PARQUET_SUFFIXES, find_files, is_address
from cellrisk.counts.frames import find_frame_reader, list_types
from cellrisk.counts.grouped import GroupedRows
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import NO_COUNT, AskedColumns, Schema
from cellrisk.counts.stored import find_stored
from cellrisk.counts.streams import unwrap
from cellrisk.errors import InvalidInput
from cellrisk.system.words import EngineName, list_words, require_word
from cellrisk.system.writing import keep_inputs

if TYPE_CHECKING:
    import ibis.expr.types as ir

ENGINES: tuple[EngineName, ...] = list_words(EngineName)


class Opened(NamedTuple):
    """A source that is opened."""

    records: ir.Table
    schema: Schema
    """The schema, in which the word "none" for a column of counts was read as "no counts", or as a column's name."""
    others: tuple[str, ...]
    """The names of the columns that are not in use."""
    held: Any
    """What is kept of the source, to read cells from later."""


@contextmanager
def open_source(
    source: Any,
    columns: Sequence[str],
    resources: Resources,
    *,
    table: str | None = None,
    engine: str | None = None,
    by_declaration: bool = False,
) -> Iterator[ir.Table]:
    """The columns in use, as a table expression that can be run inside the block.

    by_declaration: where each value has a type of its own, as in SQLite, a column has the type that was declared for
    it, whatever it holds: no record may decide how the others are read.
    """
    if engine is not None:
        require_word("engine", engine, ENGINES)
    source = unwrap(source)
    keep_inputs("the records", *list_files_of(source))
    with plain_refusals():
        kinds = list_types(source)
        opened: AbstractContextManager[ir.Table]
        if ("ibis", "Table") in kinds and (engine != "spark" or source.get_backend().name == "pyspark"):
            from cellrisk.counts.databases.expressions import open_expression

            if table is not None:
                raise InvalidInput("the Ibis table needs no table=", fix="leave table= out")
            opened = open_expression(source, columns, resources, by_declaration)
        elif engine == "spark" or ("pyspark", "DataFrame") in kinds:
            from cellrisk.counts.spark.reading import open_spark

            opened = open_spark(source, columns)
        elif is_address(source) and find_stored(source) is None:
            from cellrisk.counts.databases.database import open_database

            opened = open_grouped(open_database(source, table, columns), resources)
        else:
            opened = open_embedded(source, columns, table, resources, by_declaration)
        with opened as expression:
            yield read_nothing_as_text(expression)


@contextmanager
def open_grouped(opened: AbstractContextManager[GroupedRows], resources: Resources) -> Iterator[ir.Table]:
    """The records behind grouped rows, in the embedded engine."""
    from cellrisk.counts.engine import embedded_engine, make_view

    with embedded_engine(resources) as (connection, _):
        with opened as rows:
            connection.con.register("batches", rows.batches)
            connection.con.execute("CREATE TEMP TABLE grouped AS FROM batches")
            connection.con.unregister("batches")
        names = [name for name in connection.con.table("grouped").columns if name != "n"]
        chosen = ", ".join(
            as_decimal(connection.con, name)
            if rows.kinds.get(name) == "number"
            else f"{name}::TIMESTAMPTZ AS {name}"
            if rows.kinds.get(name) == "instant"
            else name
            for name in names
        )
        yield make_view(connection, f"SELECT {chosen} FROM grouped, range(n)")


def as_decimal(connection: Any, name: str) -> str:
    """Text of numbers as decimals, if all of them fit."""
    digits, scale, odd = connection.execute(
        f"SELECT max(length(split_part(ltrim({name}, '-'), '.', 1))), "
        f"max(length(rtrim(split_part({name}, '.', 2), '0'))),"
        f" count(*) FILTER (NOT regexp_full_match({name}, '-?[0-9]+([.][0-9]+)?')) FROM grouped"
    ).fetchall()[0]
    if odd or (digits or 0) + (scale or 0) > 38:
        return name
    return f"{name}::DECIMAL(38, {scale or 0}) AS {name}"


def read_nothing_as_text(table: ir.Table) -> ir.Table:
    """The table with text in the place of columns of the type of nothing, in which every value is missing."""
    import ibis.expr.datatypes as dt

    def holds_nothing(kind: Any) -> bool:
        if isinstance(kind, dt.Unknown):  # as Ibis calls DuckDB's type of nothing
            return str(getattr(kind.raw_type, "args", {}).get("kind")).strip('"') == "NULL"
        return bool(kind.is_null())

    empty = [name for name, kind in table.schema().items() if holds_nothing(kind)]
    return table.mutate(**{name: table[name].cast("string") for name in empty}) if empty else table


def hold_source(source: Any, columns: Sequence[str]) -> Any:
    """What a table keeps of its source, to read cells from later: of a frame in memory, the columns in use alone."""
    read_frame = find_frame_reader(source)
    if read_frame is None:
        return source
    with plain_refusals():
        return read_frame(source, columns).rename_columns(list(columns))


@contextmanager
def open_records(
    source: Any, schema: Schema, resources: Resources, *, table: str | None = None, engine: str | None = None
) -> Iterator[Opened]:
    """The columns in use, and what else there is to know of a source that is opened."""
    choices = [replace(schema, count=False), schema] if schema.count == NO_COUNT else [schema]
    for reading in choices:
        asked = AskedColumns(reading.stored)
        held = hold_source(source, asked) if table is None and engine != "spark" else source
        columns = asked if asked.others is None else reading.stored
        by_declaration = schema.outside == "drop"
        with open_source(
            held, columns, resources, table=table, engine=engine, by_declaration=by_declaration
        ) as records:
            others = asked.others or ()
            if reading is choices[-1] or NO_COUNT not in others:
                yield Opened(lengthen(records, reading), reading, others, held)
                return


def lengthen(records: ir.Table, schema: Schema) -> ir.Table:
    """A wide table with one row for each cell and level; any other table as it is."""
    if not schema.wide:
        return records
    import ibis

    n_quasi = len(schema.quasi_identifiers)
    names = [f"c{place}" for place in range(n_quasi)]
    counts = [records[f"c{n_quasi + place}"] for place in range(len(schema.wide))]
    if len({str(count.type()) for count in counts}) > 1:
        numeric = all(count.type().is_numeric() for count in counts)
        counts = [count.cast("float64" if numeric else "string") for count in counts]
    parts = [
        records.select(**{name: records[name] for name in names}, level=ibis.literal(level), n=count).rename(
            {f"c{n_quasi}": "level", f"c{n_quasi + 1}": "n"}
        )
        for level, count in zip(schema.wide, counts, strict=True)
    ]
    return ibis.union(*parts, distinct=False)


def list_files_of(source: object) -> list[Path]:
    """The files that a source is read from, as far as its name tells: a path, those that a glob matches, a database's.

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


def has_dictionaries(source: object) -> bool:
    """Whether text comes with each value stored once: Parquet files."""
    return isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(PARQUET_SUFFIXES)
