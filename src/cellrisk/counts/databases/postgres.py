"""PostgreSQL: one snapshot for all queries, columns in the types that counting knows, temporary tables, no trace."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qs, unquote

from cellrisk.counts.schema import locate, unknown_table
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from psycopg.sql import Composable, Composed

CONNECT_SECONDS = 30
PLAIN = {
    "bool": "boolean",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "float4": "float32",
    "float8": "float64",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp(6)",
    "timestamptz": "timestamp('UTC', 6)",
}
"""Types that are counted as they are, by their name in PostgreSQL."""
TEXT_CATEGORIES = "SETIVD"
"""Strings, enumerations, time spans, network addresses, bit strings, and the other dates and times: counted as text."""
NUMBER = (
    r"^[ \t\n\r\f\v]*([-+]?([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)(e[-+]?0*[0-9]{1,2})?"
    r"|nan|[-+]?inf(inity)?)[ \t\n\r\f\v]*$"
)
"""Text that becomes a number without an error, as in the embedded engine; one beyond the range would be an error."""
MOST_DIGITS = 200


def settings(parts: SplitResult) -> dict[str, Any]:
    """What a connection is opened with, beside what follows ? in the address; percent signs are read everywhere."""
    given = {"user": parts.username, "password": parts.password, "database": parts.path.strip("/").partition("/")[0]}
    chosen: dict[str, Any] = {name: unquote(value) for name, value in given.items() if value}
    standard = {"connect_timeout": CONNECT_SECONDS, "client_encoding": "utf8", "fallback_application_name": "cellrisk"}
    asked = parse_qs(parts.query)
    return chosen | {name: value for name, value in standard.items() if name not in asked}


@contextmanager
def read_snapshot(backend: Any, table: str, columns: Sequence[str], where: str) -> Iterator[ir.Table]:
    """The columns in use of a table as c0, c1, ..."""
    from psycopg.sql import Identifier

    with snapshot(backend) as connection:
        oid, schema, name = find_table(connection, table, where)
        attributes = connection.execute(
            "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped "
            "ORDER BY attnum",
            [oid],
        ).fetchall()
        locate(columns, [attribute for (attribute,) in attributes], f"table '{table}'")
        query, types = select_columns(connection, Identifier(schema, name), columns)
        yield backend.sql(query.as_string(connection), schema=types)


@contextmanager
def read_query(backend: Any, query: str, columns: Sequence[str]) -> Iterator[ir.Table]:
    """The columns in use of a query as c0, c1, ..."""
    from psycopg.sql import SQL

    with snapshot(backend) as connection:
        chosen, types = select_columns(connection, SQL("({}) AS given").format(SQL(query)), columns)
        yield backend.sql(chosen.as_string(connection), schema=types)


@contextmanager
def snapshot(backend: Any) -> Iterator[Any]:
    """A connection whose queries all see one moment; at the end everything is rolled back.

    Within a transaction of somebody else's, that moment is as the transaction has it.
    """
    from psycopg import IsolationLevel
    from psycopg.pq import TransactionStatus

    connection, compiler = backend.con, backend.compiler
    backend.compiler = guarded_compiler()()
    before, idle = connection.isolation_level, connection.info.transaction_status == TransactionStatus.IDLE
    if idle:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        with connection.transaction(force_rollback=True):
            # Texts of dates and numbers must not depend on the server's configuration.
            connection.execute("SET LOCAL DateStyle = 'ISO'")
            connection.execute("SET LOCAL IntervalStyle = 'postgres'")
            connection.execute("SET LOCAL extra_float_digits = 3")
            connection.execute("SET LOCAL standard_conforming_strings = on")
            yield connection
    finally:
        backend.compiler = compiler
        if idle and not connection.closed:
            connection.isolation_level = before


def find_table(connection: Any, table: str, where: str) -> tuple[int, str, str]:
    """Number, schema and name of a table, view or foreign table: first by its bare name, then as schema.table."""
    rows = connection.execute(
        "SELECT c.oid, n.nspname, c.relname, pg_table_is_visible(c.oid), has_schema_privilege(n.oid, 'USAGE') "
        "AND has_any_column_privilege(c.oid, 'SELECT') FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') "
        "AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'"
    ).fetchall()
    bare = [row for row in rows if row[3] and row[2] == table]
    for oid, schema, name, _, readable in bare or [row for row in rows if f"{row[1]}.{row[2]}" == table]:
        if not readable:
            raise InvalidInput(f"{where}: this account may not read table '{table}'", fix="ask its owner for SELECT")
        return oid, schema, name
    names = [name if visible else f"{schema}.{name}" for _, schema, name, visible, readable in rows if readable]
    raise unknown_table(table, names, where)


def select_columns(connection: Any, source: Composable, columns: Sequence[str]) -> tuple[Composed, dict[str, str]]:
    """The query that gives the columns in use in types that counting knows, and those types in Ibis's words."""
    from psycopg.sql import SQL, Identifier

    # The server's own description looks through domains to the types below them.
    bare = SQL("SELECT {} FROM {} LIMIT 0").format(SQL(", ").join(map(Identifier, columns)), source)
    codes = [column.type_code for column in connection.execute(bare).description]
    known = connection.execute("SELECT oid, typname, typcategory FROM pg_catalog.pg_type WHERE oid = ANY(%s)", [codes])
    kinds = {number: (kind, category) for number, kind, category in known.fetchall()}
    chosen, types = [], {}
    for place, (column, code) in enumerate(zip(columns, codes, strict=True)):
        form, types[f"c{place}"] = plain_form(column, *kinds[code])
        chosen.append(SQL(form).format(column=Identifier(column)) + SQL(" AS {}").format(Identifier(f"c{place}")))
    return SQL("SELECT {} FROM {}").format(SQL(", ").join(chosen), source), types


def plain_form(column: str, kind: str, category: str) -> tuple[Any, str]:
    """How a column of that type is read, and its type in Ibis's words; types that have no plain values are refused.

    Text is compared by its bytes, whatever the collation. A char(n) loses the blanks that pad it. The decimals of a
    numeric are those that matter, so that 1.0 and 1.00 are one value, and its NaN is missing.
    """
    if kind in PLAIN:
        return "{column}", PLAIN[kind]
    if kind in ("numeric", "money"):
        return "NULLIF(trim_scale({column}::numeric), 'NaN')", "decimal"
    if kind == "oid":
        return "{column}::bigint", "int64"
    if kind in ("text", "varchar"):
        return '{column} COLLATE "C"', "string"
    if kind == "uuid" or category in TEXT_CATEGORIES:
        return '{column}::text COLLATE "C"', "string"
    raise InvalidInput(
        f"column '{column}' holds {kind.lstrip('_')}{' array' if category == 'A' else ''} values",
        allowed="text, numbers, truth values, dates and times",
    )


def may_hold(backend: Any) -> bool:
    """Whether this account may make temporary tables here and now; a replica has none, nor a read-only session."""
    row = backend.con.execute(
        "SELECT has_database_privilege(current_database(), 'TEMP') AND current_setting('transaction_read_only') = 'off'"
    ).fetchone()
    return bool(row[0])


@contextmanager
def hold(backend: Any, expression: ir.Table) -> Iterator[ir.Table]:
    """The expression as a temporary table. Made by CREATE TABLE AS, which unlike INSERT may use several processes."""
    name = f"cellrisk_{uuid.uuid4().hex}"
    types = expression.schema()
    # A sum of bigint is numeric, which is slower to group and to fetch than the bigint that it fits into.
    columns = ", ".join(f'"{each}"::bigint' if kind.is_integer() else f'"{each}"' for each, kind in types.items())
    query = backend.compile(expression)
    with backend.con.transaction():
        backend.con.execute(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS SELECT {columns} FROM ({query}) AS made")
    yield backend.sql(f"SELECT * FROM {name}", schema=types)
    backend.con.execute(f"DROP TABLE {name}")


@cache
def guarded_compiler() -> Any:
    """Ibis's compiler for PostgreSQL, with what it leaves out.

    Its try_cast is a plain cast, which fails on the first text that is no number; and a truth value has a cast to
    integer, but none to bigint.
    """
    import ibis.expr.datatypes as dt
    import sqlglot.expressions as sge
    from ibis.backends.sql.compilers.postgres import PostgresCompiler

    class GuardedCompiler(PostgresCompiler):  # type: ignore[misc]
        __slots__ = ()

        def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:  # noqa: N802
            if op.arg.dtype.is_boolean() and to.is_integer():
                arg = self.cast(arg, dt.int32)
            return super().visit_Cast(op, arg=arg, to=to)

        def visit_TryCast(self, op: Any, *, arg: Any, to: Any) -> Any:  # noqa: N802
            if not (op.arg.dtype.is_string() and to.is_floating()):
                return self.visit_Cast(op, arg=arg, to=to)
            number = sge.RegexpILike(this=arg, expression=sge.convert(NUMBER))
            short = self.f.length(arg) <= sge.convert(MOST_DIGITS)
            return self.cast(self.if_(sge.and_(short, number), self.f.replace(arg, "_", ""), sge.Null()), to)

    return GuardedCompiler
