"""Ibis tables: DuckDB, SQLite and Spark are read by their own connections, any other engine as a stream of batches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from cellrisk.counts.databases.database import DatabaseName, plain_refusals_of_drivers
from cellrisk.counts.embedded import open_embedded, open_planned
from cellrisk.counts.engine import read_parquet
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import locate
from cellrisk.counts.sqlite import copy_rows, refusals_of_sqlite
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

WHERE = "the Ibis table"


@contextmanager
def open_expression(
    source: ir.Table, columns: Sequence[str], resources: Resources, by_declaration: bool = False
) -> Iterator[ir.Table]:
    """The columns in use of an Ibis table, as an expression that can be run inside the block."""
    if source._find_backends()[1]:
        raise InvalidInput("the Ibis table is not bound to any data", fix="take the table from a connection")
    locate(columns, source.columns, WHERE)
    backend: Any = source.get_backend()
    with plain_refusals_of_drivers(DatabaseName(backend.name, "", ""), ""), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Ibis and the drivers among themselves
        used = source.select(*columns)
        if backend.name in ("duckdb", "sqlite", "pyspark"):
            backend._run_pre_execute_hooks(used)  # brings tables in memory to the engine
        with open_on(backend, used, columns, resources, by_declaration) as table:
            yield table


def open_on(
    backend: Any, used: ir.Table, columns: Sequence[str], resources: Resources, by_declaration: bool = False
) -> AbstractContextManager[ir.Table]:
    """The way that fits the engine."""
    if backend.name == "duckdb":
        return open_embedded(backend.con.sql(backend.compile(used)), columns, None, resources)
    if backend.name == "sqlite":
        rows = f"({backend.compile(used)})"
        declared: dict[str, str] | None = {} if by_declaration else None  # Ibis looks at values to tell a type
        return open_planned(
            lambda connection, folder: read_sqlite(backend, rows, columns, connection, folder, declared), resources
        )
    if backend.name == "pyspark":
        from cellrisk.counts.spark.reading import open_spark

        return open_spark(backend._session.sql(backend.compile(used)), columns)
    return open_embedded(used.to_pyarrow_batches(), columns, None, resources)


def read_sqlite(
    backend: Any, rows: str, columns: Sequence[str], connection: Any, folder: Any, declared: dict[str, str] | None
) -> ir.Table:
    with refusals_of_sqlite():
        return read_parquet(connection, [copy_rows(backend.con, rows, columns, WHERE, folder, declared)])
