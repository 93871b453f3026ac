"""Sources: whatever holds the records, as a relation of DuckDB with the columns in use, c0, c1, ... in their order.

Files and frames are read by DuckDB itself. A database or a Spark cluster groups its rows by the columns in use, and
what comes here is one row for each combination that occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.counts.binning import Binning
from cellrisk.counts.columns import is_numeric
from cellrisk.counts.embedded import open_embedded
from cellrisk.counts.engine import Relation, embedded_engine, load_stream, quote_sql, redacted, stack
from cellrisk.counts.files import find_files, is_address
from cellrisk.counts.frames import list_types, read_ibis, unwrap
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import AskedColumns, Schema
from cellrisk.counts.sqlite import find_stored
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.atomic import keep_inputs
from cellrisk.system.choices import EngineName, list_words, require_word

ENGINES: tuple[EngineName, ...] = list_words(EngineName)


class Opened(NamedTuple):
    """A source that is opened."""

    records: Any
    """A relation, or a `SparkTable` if there may be one."""
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

    by_declaration: if each value has a type of its own, as in SQLite, a column has the type that was declared for it,
    whatever it holds: no record may decide how the others are read. bins: columns of which only the bin matters; if it
    is given, a source on Spark with very many rows comes as a `SparkTable`, and is refused otherwise.
    """
    if engine is not None:
        require_word("engine", engine, ENGINES)
    source = unwrap(source)
    keep_inputs("the records", *list_files_of(source))
    with redacted():
        kinds = list_types(source)
        if ("ibis", "Table") in kinds:
            if table is not None:
                raise InvalidInput("an Ibis table is one table already", fix=f"leave {argument('table')} out")
            source = read_ibis(source, columns)
        if engine == "spark" or ("pyspark", "DataFrame") in kinds:
            from cellrisk.counts.spark.reading import open_spark

            with embedded_engine(resources) as (connection, _), open_spark(source, columns, bins) as grouped:
                yield grouped if hasattr(grouped, "tally") else load_stream(connection, grouped)
        elif is_address(source) and find_stored(source) is None:
            from cellrisk.counts.database import open_database

            with embedded_engine(resources) as (connection, _):
                with open_database(source, table, columns) as (batches, labels):
                    relation = load_stream(connection, batches, labels)
                yield relation
        else:
            with open_embedded(source, columns, table, resources, by_declaration) as relation:
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
    """The columns of a schema, and the names of the source's other columns; ``bins`` as for `open_source`."""
    asked = AskedColumns(schema.stored)
    dropping = schema.outside == "drop"
    with open_source(
        source, asked, resources, table=table, engine=engine, by_declaration=dropping, bins=bins
    ) as records:
        yield Opened(lengthen(records, schema), asked.others)


def lengthen(records: Any, schema: Schema) -> Any:
    """A wide table with one row for each cell and level; any other table as it is."""
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
