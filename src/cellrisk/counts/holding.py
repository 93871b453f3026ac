"""Expressions that are computed once and asked several times."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cellrisk.counts.engine import embedded_engine, name_table
from cellrisk.counts.resources import Resources
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


@contextmanager
def held(expression: ir.Table) -> Iterator[ir.Table]:
    """The expression computed once, for the length of the block.

    On DuckDB the table is made and dropped here: Ibis 12 writes a DROP without a name under sqlglot 30.18 and later
    (ibis issue 12101), which breaks the end of its own `cache()`.
    """
    backend: Any = expression.get_backend()
    if backend.name == "pyspark":
        with expression.cache() as table:
            yield table
        return
    if backend.name != "duckdb":
        with held_in_database(expression) as table:
            yield table
        return
    with made_here(backend, expression) as name:
        yield name_table(backend, name)


@contextmanager
def made_here(backend: Any, expression: ir.Table) -> Iterator[str]:
    """The name of a table of DuckDB that holds the expression."""
    name = f"held_{uuid.uuid4().hex}"
    backend.con.execute(f"CREATE TEMP TABLE {name} AS {backend.compile(expression)}")
    yield name
    backend.con.execute(f"DROP TABLE {name}")


@contextmanager
def read_or_held(expression: ir.Table, most: int) -> Iterator[tuple[pa.Table | None, Callable[[], ir.Table]]]:
    """The expression computed once: its rows, or None where there are more than so many, and how to get it as a table.

    DuckDB is asked for the rows directly: compiling another expression takes longer than such a query.
    """
    backend: Any = expression.get_backend()
    if backend.name == "duckdb":
        with made_here(backend, expression) as name:
            found = backend.con.sql(f"SELECT * FROM {name} LIMIT {most + 1}").to_arrow_table()
            yield (found if len(found) <= most else None), lambda: name_table(backend, name)
        return
    with held(expression) as table:
        found = table.limit(most + 1).to_pyarrow()
        yield (found if len(found) <= most else None), lambda: table


def read(expression: ir.Table) -> pa.Table:
    """The rows of an expression, with its own types.

    DuckDB is asked directly: Ibis loads all of pandas before it asks, which takes longer than most queries.
    """
    backend: Any = expression.get_backend()
    if backend.name != "duckdb" or any(kind.is_null() for kind in expression.schema().types):
        return expression.to_pyarrow()
    return expression.__pyarrow_result__(backend.con.sql(backend.compile(expression)).to_arrow_table())


def expect(table: ir.Table, records: int) -> None:
    """Tells an engine that cuts its work into parts how many records are going to be counted."""
    backend: Any = table.get_backend()
    if backend.name == "pyspark" and backend.partitions is not None:
        backend.partitions.fit_records(records)


@contextmanager
def held_in_database(expression: ir.Table) -> Iterator[ir.Table]:
    """The expression computed once, for the length of the block, without a trace in the database.

    Counts without keys come over into an embedded engine; what has keys stays where it is, and is computed again.
    """
    backend: Any = expression.get_backend()
    if any(name.startswith("q") for name in expression.columns):
        check_lists(backend)
        yield expression
        return
    rows = expression.to_pyarrow()
    with embedded_engine(Resources.of(None)) as (connection, _):
        connection.con.register("held", rows)
        yield name_table(connection, "held")


def check_lists(backend: Any) -> None:
    import ibis.expr.operations as ops

    from cellrisk.counts.databases.database import EXPORT

    if not (backend.has_operation(ops.ArrayCollect) and backend.has_operation(ops.ArraySort)):
        raise InvalidInput(
            f"a {backend.name} database cannot count a sensitive column with that many levels", fix=EXPORT
        )
