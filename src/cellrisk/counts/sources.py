"""Sources: whatever holds the records, as a relation of DuckDB with the columns in use, c0, c1, ... in their order.

Files and frames are read by DuckDB itself. A database or a Spark cluster groups its rows by the columns in use, and
what comes here is one row for each combination that occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.counts.binning import Binning
from cellrisk.counts.columns import is_numeric
from cellrisk.counts.embedded import open_embedded
from cellrisk.counts.engine import Relation, embedded_engine, load_stream, quote_sql, redacted, stack
from cellrisk.counts.files import find_files, is_address
from cellrisk.counts.frames import list_types
from cellrisk.counts.grouped import MOST_CELLS, GroupedRows
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

    records: Any
    """A relation, or a `SparkTable` if there may be one."""
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
    bins: Mapping[str, Binning] | None = None,
) -> Iterator[Any]:
    """The columns in use, as a relation that can be asked inside the block.

    by_declaration: where each value has a type of its own, as in SQLite, a column has the type that was declared for
    it, whatever it holds: no record may decide how the others are read. bins: columns of which only the bin matters; if
    it is given, a source on Spark with very many rows comes as a `SparkTable`, and is refused otherwise.
    """
    if engine is not None:
        require_word("engine", engine, ENGINES)
    source = unwrap(source)
    keep_inputs("the records", *list_files_of(source))
    with redacted():
        kinds = list_types(source)
        if ("ibis", "Table") in kinds:
            from cellrisk.counts.databases.ibis_tables import read_expression

            if table is not None:
                raise InvalidInput("an Ibis table is one table already", fix=f"leave {argument('table')} out")
            source = read_expression(source, columns)
        opened: AbstractContextManager[Any]
        if engine == "spark" or ("pyspark", "DataFrame") in kinds:
            from cellrisk.counts.spark.reading import open_spark

            opened = open_spark(source, columns, MOST_CELLS, bins)
        elif is_address(source) and find_stored(source) is None:
            from cellrisk.counts.databases.database import open_database

            opened = open_database(source, table, columns)
        else:
            opened = open_embedded(source, columns, table, resources, by_declaration)
        with ExitStack() as closing:
            found = closing.enter_context(opened)
            if not isinstance(found, GroupedRows):
                yield found
                return
            with embedded_engine(resources) as (connection, _):
                relation = load_stream(connection, found.batches, found.kinds)
                closing.close()  # a connection is not kept open while rows are counted here
                yield relation


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
    """The columns in use, and what else there is to know of a source that is opened; ``bins`` as for `open_source`."""
    choices = [replace(schema, count=False), schema] if schema.count == NO_COUNT else [schema]
    for reading in choices:
        asked = AskedColumns(reading.stored)
        declared = schema.outside == "drop"
        with open_source(
            source, asked, resources, table=table, engine=engine, by_declaration=declared, bins=bins
        ) as records:
            others = asked.others or ()
            if reading is choices[-1] or NO_COUNT not in others:
                yield Opened(lengthen(records, reading) if reading.wide else records, reading, others)
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
