"""Sources: whatever holds the records, as a relation of DuckDB with the columns in use, c0, c1, ... in their order.

Files and frames are read by DuckDB itself. A database or a Spark cluster groups its rows by the columns in use, and
what comes here is one row for each combination that occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.counts.columns import is_numeric
from cellrisk.counts.embedded import open_embedded
from cellrisk.counts.engine import Relation, embedded_engine, load_stream, quote_sql, redacted, stack
from cellrisk.counts.files import find_files, is_address
from cellrisk.counts.frames import list_types
from cellrisk.counts.grouped import GroupedRows
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import NO_COUNT, AskedColumns, Schema
from cellrisk.counts.sqlite import find_stored
from cellrisk.counts.streams import unwrap
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.words import EngineName, list_words, require_word
from cellrisk.system.writing import keep_inputs

ENGINES: tuple[EngineName, ...] = list_words(EngineName)


class Opened(NamedTuple):
    """A source that is opened."""

    records: Relation
    schema: Schema
    """The schema, in which the word "none" for a column of counts was read as "no counts", or as a column's name."""
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
) -> Iterator[Relation]:
    """The columns in use, as a relation that can be asked inside the block.

    by_declaration: where each value has a type of its own, as in SQLite, a column has the type that was declared for
    it, whatever it holds: no record may decide how the others are read.
    """
    if engine is not None:
        require_word("engine", engine, ENGINES)
    source = unwrap(source)
    keep_inputs("the records", *list_files_of(source))
    with redacted():
        kinds = list_types(source)
        is_ibis = ("ibis", "Table") in kinds
        if is_ibis and table is not None:
            raise InvalidInput("a table of Ibis has one table only", fix=f"leave {argument('table')} out")
        if engine == "spark" or ("pyspark", "DataFrame") in kinds or _is_remote(source):
            with _open_elsewhere(source, columns, table, engine, resources, by_declaration) as relation:
                yield relation
            return
        with open_embedded(source, columns, table, resources, by_declaration) as relation:
            yield relation


def _is_remote(source: Any) -> bool:
    """Whether a database holds the records: an address, or a table of Ibis."""
    is_ibis = ("ibis", "Table") in list_types(source)
    return is_ibis or (is_address(source) and find_stored(source) is None)


@contextmanager
def _open_elsewhere(
    source: Any, columns: Sequence[str], table: str | None, engine: str | None, resources: Resources, declared: bool
) -> Iterator[Relation]:
    """Rows that a database or Spark has grouped."""
    if ("ibis", "Table") in list_types(source) and (engine != "spark" or source.get_backend().name == "pyspark"):
        from cellrisk.counts.databases.expressions import open_expression

        opened: Any = open_expression(source, columns, resources, declared)
    elif engine == "spark" or ("pyspark", "DataFrame") in list_types(source):  # spark
        from cellrisk.counts.spark.reading import open_spark

        opened = open_spark(source, columns)
    else:  # databases
        from cellrisk.counts.databases.database import open_database

        opened = open_database(source, table, columns)
    with ExitStack() as stack_of_sources:
        found: Any = stack_of_sources.enter_context(opened)
        if isinstance(found, Relation):
            yield found
            return
        with embedded_engine(resources) as (connection, _):
            grouped = found if isinstance(found, GroupedRows) else group_expression(found)
            relation = load_stream(connection, grouped.batches, grouped.kinds)
            stack_of_sources.close()
            yield relation


def group_expression(table: Any) -> GroupedRows:
    """The rows of an Ibis table, grouped where they are; what Arrow has no exact type for comes as text."""
    kinds, chosen = {}, {}
    for name, kind in table.schema().items():
        column = table[name]
        plain = kind.is_integer() or kind.is_boolean() or kind.is_string() or kind.is_floating() or kind.is_date()
        if not plain and not kind.is_nested() and not kind.is_binary():
            kinds[name] = "number" if kind.is_decimal() else "text"
            if kind.is_timestamp() and kind.timezone is not None:
                kinds[name] = "instant"
            column = column.cast("string")
        chosen[name] = column
    selected = table.select(**chosen)
    grouped = selected.group_by(list(chosen)).aggregate(n=selected.count())
    return GroupedRows(grouped.to_pyarrow(), kinds)


@contextmanager
def open_records(
    source: Any, schema: Schema, resources: Resources, *, table: str | None = None, engine: str | None = None
) -> Iterator[Opened]:
    """The columns in use, and what else there is to know of a source that is opened."""
    choices = [replace(schema, count=False), schema] if schema.count == NO_COUNT else [schema]
    for reading in choices:
        asked = AskedColumns(reading.stored)
        declared = schema.outside == "drop"
        with open_source(source, asked, resources, table=table, engine=engine, by_declaration=declared) as records:
            others = asked.others or ()
            if reading is choices[-1] or NO_COUNT not in others:
                yield Opened(lengthen(records, reading), reading, others)
                return


def lengthen(records: Relation, schema: Schema) -> Relation:
    """A wide table with one row for each cell and level; any other table as it is."""
    if not schema.wide:
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
