"""Tables in a database: one query groups and counts there, and its rows come here as Arrow batches.

Servers are asked through SQLAlchemy; an SQLite file through Python's own driver, so that it needs no extra. Values come
over in forms that lose nothing: whole numbers, floating-point numbers and truth values as they are, text by its bytes,
and everything else as text. The transaction only reads, and no message carries more of an address than its host and
database: a driver's exception may quote the password or the data.
"""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from cellrisk.counts.columns import ALLOWED, label_number
from cellrisk.counts.engine import Cause, Relation, find_cause, load_stream, quote_name
from cellrisk.counts.schema import locate, unknown_table
from cellrisk.errors import CellriskError, InvalidInput, argument, extra_needed

if TYPE_CHECKING:
    import pyarrow as pa

DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
"""Drivers that are chosen if an address names none; for other databases the choice is SQLAlchemy's."""
ROWS = 50_000
"""Rows that are fetched at a time."""
SETTINGS = ("DateStyle = 'ISO'", "TimeZone = 'UTC'", "extra_float_digits = 3")
"""Texts of dates and numbers must not depend on how a PostgreSQL server is set up."""
EXACT = 2**53
"""Up to here a whole number is exact as a floating-point number too."""
INSTALL = "run: pip install 'cellrisk[postgres]'"
EXPORT = "export the table to Parquet or CSV and read that"
TRY_AGAIN = "try again"


class Form(NamedTuple):
    """How the values of a column come over."""

    expression: Any
    """What the database groups by."""
    type: pa.DataType
    kind: str = ""
    """How a text becomes a label, if it is not a text in the database."""


def as_text(value: Any) -> str | None:
    """Write a value as DuckDB writes one of its kind, instants in UTC; the NaN of a decimal number is missing.

    >>> as_text(Decimal("1.50")), as_text(dt.datetime(2020, 1, 2, 3, 4, 5, 500000)), as_text(Decimal("NaN"))
    ('1.50', '2020-01-02 03:04:05.5', None)
    >>> as_text(dt.datetime(2020, 7, 1, 1, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))), as_text(1.0)
    ('2020-06-30 23:30:00+00', '1')
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return label_number(repr(value))
    if isinstance(value, Decimal):
        return None if value.is_nan() else str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return f"{as_text(value.astimezone(dt.timezone.utc).replace(tzinfo=None))}+00"
    text = str(value)
    return re.sub(r"(\.\d*?)0+(?=$|[-+Z])", r"\1", text) if isinstance(value, dt.datetime | dt.time) else text


def load_groups(connection: Any, cursor: Any, forms: Sequence[Form]) -> Relation:
    """Bring the rows of a query that groups to DuckDB: the columns c0, c1, ... and n, how often each combination
    occurs. The first rows are fetched at once: that is when the database counts, and when a signal must end it."""
    import pyarrow as pa

    rows = cursor.fetchmany(ROWS)
    schema = pa.schema([*((f"c{index}", form.type) for index, form in enumerate(forms)), ("n", pa.int64())])

    def write(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        if pa.types.is_boolean(kind):
            values = [None if value is None else bool(value) for value in values]
        return pa.array(map(as_text, values) if pa.types.is_string(kind) else values, kind)

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        while rows:
            columns = zip(*rows, strict=True)
            yield pa.record_batch([write(*column) for column in zip(columns, schema.types, strict=True)], schema=schema)
            rows = cursor.fetchmany(ROWS)

    kinds = {f"c{index}": form.kind for index, form in enumerate(forms) if form.kind}
    return load_stream(connection, pa.RecordBatchReader.from_batches(schema, batches()), kinds)


def read_server(connection: Any, address: str, table: str | None, columns: Sequence[str]) -> Relation:
    """Group a table by the columns in use inside its database.

    address: postgresql://user:password@host:port/database, or another that SQLAlchemy knows, if its driver is
    installed. table: the name of a table or view, with its schema and a full stop in front if it has one.
    """
    dialect, name = read_address(address)
    if not isinstance(table, str) or not table:
        fix = f"name one with {argument('table')}"
        raise InvalidInput("a database's address needs the name of a table", got=name, fix=fix, code="no-table")
    try:
        return group_on_server(connection, address, dialect, name, table, columns)
    except CellriskError as refusal:
        forget(refusal.__context__)
        raise
    except Exception as error:
        if type(error).__module__ == "builtins" and not isinstance(error, OSError | UnicodeError):
            raise
        explained = explain_failure(error, name, table)
        forget(error)
        raise explained from None


def group_on_server(
    connection: Any, address: str, dialect: str, name: str, table: str, columns: Sequence[str]
) -> Relation:
    import sqlalchemy as sa

    cursors: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy warns of types that it does not know
        with open_connection(address, dialect, name) as database:
            source = find_table(database, table, columns, name)
            forms = [read_form(database, source.c[column]) for column in columns]
            check_collations(database, source, columns)
            values = [form.expression for form in forms]
            chosen = [value.label(f"c{index}") for index, value in enumerate(values)]
            query = sa.select(*chosen, sa.func.count().label("n")).select_from(source).group_by(*values)
            sa.event.listen(database, "before_cursor_execute", lambda _, cursor, *rest: cursors.append(cursor))
            try:
                streamed = {"stream_results": True, "max_row_buffer": ROWS}
                return load_groups(connection, database.execute(query, execution_options=streamed), forms)
            finally:
                for cursor in cursors:
                    with suppress(Exception):  # SQLAlchemy leaves it open if the connection was lost
                        cursor.close()


@contextmanager
def open_connection(address: str, dialect: str, name: str) -> Iterator[Any]:
    """Connect in a transaction that only reads and, in PostgreSQL, sees one moment; it is rolled back."""
    import sqlalchemy as sa

    url = sa.make_url(address)
    url = url.set(drivername=DRIVERS.get(url.drivername, url.drivername))
    options: dict[str, Any] = {}
    if url.drivername == "postgresql+psycopg":
        options = {"connect_timeout": 30, "client_encoding": "utf8", "fallback_application_name": "cellrisk"}
    arguments = {key: value for key, value in options.items() if key not in url.query}
    try:
        engine = sa.create_engine(url, poolclass=sa.NullPool, hide_parameters=True, connect_args=arguments)
    except ImportError as error:
        fix = INSTALL if dialect == "postgresql" else f"install the package that brings {error.name}"
        what = f"reading {dialect} databases needs a driver that is not installed"
        raise InvalidInput(what, fix=fix, code="no-driver") from None
    try:
        connection = engine.connect()
    except Exception as error:
        original = getattr(error, "orig", None) or error
        if getattr(original, "sqlstate", None):  # the server answered, and refused the first query
            raise
        raise explain_connection(original, name) from None
    with connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            for setting in SETTINGS:
                connection.exec_driver_sql(f"SET LOCAL {setting}")
        yield connection
        with suppress(Exception):
            connection.rollback()


def find_table(connection: Any, table: str, columns: Sequence[str], where: str) -> Any:
    """Find a table or view by its bare name, or else as schema.table, with the types of the columns in use."""
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    dots = [index for index, letter in enumerate(table) if letter == "."]
    for schema, name in [(None, table), *((table[:dot], table[dot + 1 :]) for dot in dots)]:
        if name and inspector.has_table(name, schema=schema):
            types = {column["name"]: column["type"] for column in inspector.get_columns(name, schema=schema)}
            locate(columns, list(types), f"table '{table}'")
            quoted = [sa.column(sa.quoted_name(column, True), types[column]) for column in columns]
            return sa.table(sa.quoted_name(name, True), *quoted, schema=schema and sa.quoted_name(schema, True))
    names: list[str] = []
    for schema in (None, *inspector.get_schema_names()):
        if schema not in (inspector.default_schema_name, "information_schema"):
            listed = [*inspector.get_table_names(schema=schema), *inspector.get_view_names(schema=schema)]
            names += listed if schema is None else [f"{schema}.{name}" for name in listed]
    raise unknown_table(table, names, where)


def read_form(connection: Any, column: Any) -> Form:
    """Choose the form in which a column comes over, by its declared type; refuse types that have no plain values.

    PostgreSQL compares text by its bytes here, whatever the collation, and a char(n) loses the blanks that pad it. It
    writes times, network addresses and enumerations as text itself, because Python has no date before the year 1.
    """
    import pyarrow as pa
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql

    kind, postgres = column.type, connection.dialect.name == "postgresql"
    while isinstance(kind, postgresql.DOMAIN):
        kind = kind.data_type
    if isinstance(kind, sa.Boolean):
        return Form(column, pa.bool_())
    if isinstance(kind, sa.Integer) and not getattr(kind, "unsigned", False):
        return Form(column, pa.int64())
    if isinstance(kind, sa.Float):
        return Form(column, pa.float32() if postgres and isinstance(kind, sa.REAL) else pa.float64())
    if isinstance(kind, sa.Numeric | sa.Integer):
        return Form(sa.type_coerce(column, kind), pa.string(), "number")
    times, others = (sa.Date, sa.Time, sa.DateTime), (sa.Uuid, postgresql.INET, postgresql.CIDR, postgresql.BIT)
    if isinstance(kind, (sa.String, *times, *others)):
        text = sa.cast(column, sa.Text).collate("C") if postgres else sa.type_coerce(column, kind)
        return Form(text, pa.string())
    array = isinstance(kind, sa.ARRAY)
    named = kind.item_type if array else kind
    shown = "unknown" if isinstance(named, sa.types.NullType) else named.compile(connection.dialect).lower()
    raise InvalidInput(
        f"column '{column.name}' holds {shown}{' array' if array else ''} values", allowed=ALLOWED, code="column-type"
    )


def check_collations(connection: Any, table: Any, columns: Sequence[str]) -> None:
    """Refuse columns in which a database takes texts of different bytes for equal: it would merge groups or values."""
    import sqlalchemy as sa

    if connection.dialect.name == "postgresql":
        return  # `read_form` chooses the collation
    for name in columns:
        if isinstance(table.c[name].type, sa.String):
            exact = sa.cast(table.c[name], sa.LargeBinary)
            numbers = [sa.func.count(sa.distinct(values)) for values in (table.c[name], exact)]
            texts, different = connection.execute(sa.select(*numbers)).one()
            if texts != different:
                what = f"column '{name}' has a collation under which different texts are equal"
                raise InvalidInput(what, fix=f"give it a binary collation, or {EXPORT}", code="collation")


def read_sqlite(connection: Any, path: Path, table: str, columns: Sequence[str], by_declaration: bool) -> Relation:
    """Group a table of a SQLite file by the columns in use, by the types declared for them.

    In SQLite each value has a type of its own. A value of another type than the declared one is refused, or missing if
    by_declaration: then no record decides how the others are read.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as database:
            database.execute("BEGIN")
            listed = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            names = [name for (name,) in listed]
            bare = table if table in names else table.removeprefix("main.")
            if bare not in names:
                raise unknown_table(table, names, "the SQLite file")
            rows = quote_name(bare)
            declared = {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({rows})")}
            locate(columns, list(declared), f"table '{table}'")
            forms = [read_sqlite_form(quote_name(name), declared[name]) for name in columns]
            for name, form in zip(columns, forms, strict=True):
                if not by_declaration:
                    check_sqlite_types(database, rows, name, form)
            values = ", ".join(form.expression for form in forms)
            cursor = database.execute(f"SELECT {values}, count(*) FROM {rows} GROUP BY {values}")
            return load_groups(connection, cursor, forms)
    except sqlite3.Error as error:  # which may quote the data
        what, fix = f"the SQLite file cannot be read ({type(error).__name__})", "check that it is whole and not locked"
        raise find_cause(str(error), SQLITE_FAILURES) or InvalidInput(what, fix=fix, code="damaged") from None


def read_sqlite_form(name: str, declared: str) -> Form:
    """Choose the form of a column by what was declared for it; in the form, values of other types are NULL.

    Where nothing is declared, or dates and times, which SQLite does not have, a value is its text.
    """
    import pyarrow as pa

    kind = declared.upper()
    if kind in ("BOOLEAN", "BOOL"):
        return Form(f"CASE WHEN typeof({name}) = 'integer' AND {name} IN (0, 1) THEN {name} END", pa.bool_())
    if "INT" in kind:
        return Form(f"CASE WHEN typeof({name}) = 'integer' THEN {name} END", pa.int64())
    if any(word in kind for word in ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")):
        whole = f"typeof({name}) = 'integer' AND {name} BETWEEN {-EXACT} AND {EXACT}"
        return Form(f"CASE WHEN typeof({name}) = 'real' OR {whole} THEN CAST({name} AS REAL) END", pa.float64())
    return Form(f"CASE WHEN typeof({name}) <> 'blob' THEN {name} END", pa.string())


def check_sqlite_types(database: Any, rows: str, name: str, form: Form) -> None:
    """Refuse a column with values of other types than the declared one, and one that mixes numbers with texts."""
    import pyarrow as pa

    column = quote_name(name)
    flaws = f"count(CASE WHEN {column} IS NOT NULL AND {form.expression} IS NULL THEN 1 END)"
    (others, kinds), *_ = database.execute(
        f"SELECT {flaws}, count(DISTINCT typeof({column}) = 'text') FROM {rows} WHERE {column} IS NOT NULL"
    )
    if others or (pa.types.is_string(form.type) and kinds > 1):
        what = f"column '{name}' holds values of several types, or of another type than the declared one"
        raise InvalidInput(what, fix="store it as one type, for instance text", code="column-type")


SQLITE_FAILURES: tuple[Cause, ...] = (
    ("decode to UTF-8", "the SQLite file holds text that is not UTF-8", "correct it", "encoding"),
    ("not a database", "the file is not a SQLite database, whatever its name says", "name a SQLite file", "damaged"),
)


def read_address(address: str) -> tuple[str, str]:
    """Return the dialect of an address, and where the database is as far as a message may say.

    >>> read_address("postgresql://me:secret@localhost:5432/census")
    ('postgresql', "database 'census' on localhost")
    """
    with extra_needed():
        import sqlalchemy as sa
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port, parts = "", "", None, SplitResult("", "", "", "", "")
    # A '/', '#' or '?' in a password ends the host too early: then an '@' is left over, and so are parts of it.
    rest = f"{parts.path}{parts.query}{parts.fragment}"
    if not scheme or (parts.netloc and "@" in rest) or (port is None and parts.netloc.endswith(":")):
        raise InvalidInput(
            "the database's address cannot be read",
            allowed="for instance postgresql://user:password@host:5432/database",
            fix="write /, #, ?, @, : and % in a user name or password as %2F, %23, %3F, %40, %3A and %25",
            code="address",
        )
    dialect = None
    with suppress(sa.exc.ArgumentError, sa.exc.NoSuchModuleError):  # which repeat the scheme
        dialect = sa.URL.create(DRIVERS.get(scheme, scheme)).get_dialect().name
    if dialect is None:
        raise InvalidInput(
            "addresses of that kind are not read",
            got=f"an address that starts with {scheme}://",
            allowed="postgresql://, sqlite://, duckdb://, or another dialect of SQLAlchemy that is installed",
            code="address",
        )
    if dialect == "sqlite":
        host, database = "", Path(unquote(f"{parts.netloc}{parts.path}")).name
    else:
        database = unquote(parts.path.strip("/").partition("/")[0])
    named = f"database '{database}'" if database else f"{dialect} database"
    return dialect, f"{named} on {host}" if host else named


def forget(error: BaseException | None) -> None:
    """Empty an exception and those before it: messages, connections and local variables may hold data."""
    while error is not None:
        if not isinstance(error, CellriskError):
            error.args = (type(error).__name__,)
            error.__traceback__ = None
            for name, value in list(vars(error).items()):
                with suppress(AttributeError):
                    setattr(error, name, [] if isinstance(value, list) else None)
        error = error.__cause__ or error.__context__


def explain_connection(error: BaseException, name: str) -> InvalidInput:
    """Return why there is no connection, from the driver's words but not in them."""
    text = re.sub(r'"[^"]*"', "", str(error).lower())  # without the names in it, which may be any word
    causes = [(*cause, NO_CONNECTION) for cause in CONNECTION_FAILURES]
    driver = f"the driver raised {type(error).__name__}"
    cause = find_cause(text, causes) or InvalidInput(driver, fix="check the address", code=NO_CONNECTION)
    return cause.within(f"no connection to {name}")


NO_CONNECTION = "no-connection"
CONNECTION_FAILURES = (
    ("password|authentication|denied|login failed|role ", "this user or password was refused", "check them"),
    ("resolve|host name|name or service|unknown host|getaddrinfo", "no host has that name", "check it"),
    ("does not exist|unknown database", "the server has no such database", "check its name"),
    ("too many|slots|starting up|shutting down", "the server takes no connection now", TRY_AGAIN),
    ("ssl|certificate|pg_hba", "no secure connection could be agreed", "check sslmode and pg_hba.conf"),
    ("refused|no such file|time|unreachable", "nothing answers", "check host, port, and that it runs"),
)


def explain_failure(error: BaseException, name: str, table: str) -> InvalidInput:
    """Return what can be said of a failure in the middle, without the driver's words: the kind of its exception, such
    as DivisionByZero, and an SQLSTATE name the reason, and hold no data."""
    if isinstance(error, UnicodeDecodeError):
        return InvalidInput(f"the {name} holds text that is not UTF-8", fix=EXPORT, code="encoding")
    original = getattr(error, "orig", None) or error
    state, kind = str(getattr(original, "sqlstate", None) or ""), type(original).__name__
    lost = not state and (isinstance(original, OSError) or kind in ("OperationalError", "InterfaceError"))
    if lost or state.startswith(("08", "57P")) or kind == "AdminShutdown":
        return InvalidInput(f"{name}: the connection was lost", fix=TRY_AGAIN, code="connection-lost")
    reason = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower() + (f", {state}" if state else "")
    code, fix = next((known for start, *known in FAILURES if state.startswith(start)), ("query-failed", EXPORT))
    what = "computes something that fails on a record" if code == "failing-view" else "cannot be read"
    return InvalidInput(f"{name}: table '{table}' {what} ({reason})", fix=fix, code=code)


CORRECT_VIEW = "let the view give NULL for such a record, or leave it out"
FAILURES = (
    ("42501", "no-right", "ask its owner for SELECT"),
    ("25006", "failing-view", "give a table that can be read alone"),
    *((start, "failing-view", CORRECT_VIEW) for start in ("22", "2F", "P0")),
    ("57014", "stopped", "raise the server's statement_timeout, or use fewer columns"),
    *((start, "changed", TRY_AGAIN) for start in ("40", "55", "42P01")),
    *((start, "resources", "use fewer or coarser quasi-identifiers") for start in ("53", "54")),
)
"""The start of an SQLSTATE, a code, and what to do."""
