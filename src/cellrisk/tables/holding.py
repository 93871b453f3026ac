"""Expressions that are computed once and asked several times."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.tables.databases.database import EXPORT
from cellrisk.tables.engine import embedded_engine
from cellrisk.tables.resources import Resources

if TYPE_CHECKING:
    import ibis.expr.types as ir


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
    name = f"held_{uuid.uuid4().hex}"
    backend.con.execute(f"CREATE TEMP TABLE {name} AS {backend.compile(expression)}")
    yield backend.table(name)
    backend.con.execute(f"DROP TABLE {name}")


@contextmanager
def held_in_database(expression: ir.Table) -> Iterator[ir.Table]:
    """The expression computed once, for the length of the block, without a trace in the database.

    In PostgreSQL it is a temporary table. Elsewhere, or where the account may make none, counts without keys come over
    into an embedded engine; what has keys stays where it is, and is computed again each time.
    """
    backend: Any = expression.get_backend()
    if backend.name == "postgres":
        from cellrisk.tables.databases.postgres import hold, may_hold

        if may_hold(backend):
            with hold(backend, expression) as table:
                yield table
            return
    if any(name.startswith("q") for name in expression.columns):
        check_lists(backend)
        yield expression
        return
    rows = expression.to_pyarrow()
    with embedded_engine(Resources.of(None)) as (connection, _):
        connection.con.register("held", rows)
        yield connection.table("held")


def check_lists(backend: Any) -> None:
    import ibis.expr.operations as ops

    if not (backend.has_operation(ops.ArrayCollect) and backend.has_operation(ops.ArraySort)):
        raise InvalidInput(
            f"a {backend.name} database cannot count a sensitive column with that many levels", fix=EXPORT
        )
