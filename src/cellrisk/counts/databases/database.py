"""Databases: a table on a server, counted there through Ibis; profiles, histograms and small aggregates come back.

Nothing of the user's is changed, and no message carries more of an address than its host and database: an exception of
a driver, which may quote the password or the data, never leaves this module with its text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from cellrisk.counts.schema import locate, unknown_table
from cellrisk.errors import CellriskError, InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

OTHER_NAMES = {"postgresql": "postgres", "mariadb": "mysql"}
EXPORT = "export the table to Parquet or CSV and read that"
TRY_AGAIN = "try again"
FOLDS = ("mssql", "mysql", "singlestoredb")
"""Engines that by default compare text without regard to case, accents or blanks at its end."""


@dataclass(frozen=True)
class DatabaseName:
    """Where a database is, as far as a message may say."""

    engine: str
    """The name of the engine in Ibis."""
    host: str
    database: str

    def __str__(self) -> str:
        named = f"database '{self.database}'" if self.database else f"{self.engine} database"
        return f"{named} on {self.host}" if self.host else named


@contextmanager
def open_database(address: str, table: str | None, columns: Sequence[str]) -> Iterator[ir.Table]:
    """The columns in use of a table in a database, as a table expression that runs there, inside the block.

    address: postgresql://user:password@host:port/database, or an address of another engine that Ibis knows, where its
    driver is installed. table: its name, with its schema and a full stop before it where it has one.
    """
    place = read_address(address)
    if not isinstance(table, str) or not table:
        raise InvalidInput(
            "a database's address needs the name of a table", got=place, fix="name one with table= or --table"
        )
    with plain_refusals_of_drivers(place), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Ibis and the drivers among themselves
        backend = connect(address, place)
        try:
            if place.engine == "postgres":
                from cellrisk.counts.databases.postgres import read_snapshot

                with read_snapshot(backend, table, columns, str(place)) as expression:
                    yield expression
            else:
                with open_elsewhere(find_columns(backend, table, columns, place), columns) as expression:
                    yield expression
        finally:
            with suppress(Exception):
                backend.disconnect()


def read_address(address: str) -> DatabaseName:
    """Engine, host and database of an address; a refusal quotes nothing of it but the engine.

    >>> print(read_address("postgresql://me:secret@localhost:5432/census"))
    database 'census' on localhost
    """
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port, parts = "", "", None, SplitResult("", "", "", "", "")
    engine = OTHER_NAMES.get(scheme.partition("+")[0], scheme.partition("+")[0])
    # A '/', '#' or '?' in a password ends the host too early: then an '@' is left over, and so are parts of it.
    rest = f"{parts.path}{parts.query}{parts.fragment}"
    if not scheme or (parts.netloc and "@" in rest) or (port is None and parts.netloc.endswith(":")):
        raise InvalidInput(
            "the database's address cannot be read",
            allowed="for instance postgresql://user:password@host:5432/database",
            fix="write /, #, ?, @, : and % in a user name or password as %2F, %23, %3F, %40, %3A and %25",
        )
    known = engines()
    if engine not in known:
        raise InvalidInput(
            "addresses of that kind are not read",
            got=f"an address that starts with {scheme}://",
            allowed=", ".join(f"{'postgresql' if name == 'postgres' else name}://" for name in known),
        )
    if engine in ("sqlite", "duckdb"):
        return DatabaseName(engine, "", Path(unquote(f"{parts.netloc}{parts.path}")).name)
    return DatabaseName(engine, host, unquote(parts.path.strip("/").partition("/")[0]))


def engines() -> list[str]:
    """The engines that Ibis knows, installed or not."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group="ibis.backends")} - {"polars", "datafusion", "pyspark"})


def connect(address: str, place: DatabaseName) -> Any:
    """A connection through Ibis, or one line on why there is none."""
    import ibis

    parts = urlsplit(address)
    plain = f"{place.engine}://{address.partition('://')[2]}"
    try:
        if place.engine == "postgres":
            from cellrisk.counts.databases.postgres import settings

            return ibis.connect(plain, **settings(parts))
        return ibis.connect(plain)
    except ImportError:
        extra = "cellrisk[postgres]" if place.engine == "postgres" else f"ibis-framework[{place.engine}]"
        raise InvalidInput(
            f"reading {place.engine} databases needs a driver that is not installed", fix=f"pip install '{extra}'"
        ) from None
    except CellriskError:
        raise
    except Exception as error:
        raise explain_connection(error, place) from None


def find_columns(backend: Any, table: str, columns: Sequence[str], place: DatabaseName) -> ir.Table:
    """The columns in use of a table, on any engine of Ibis."""
    from ibis.common.exceptions import TableNotFound

    schema, _, name = table.rpartition(".")
    candidates: list[tuple[str, str | tuple[str, ...] | None]] = [(table, None)]
    if schema:
        candidates.append((name, tuple(schema.split(".")) if "." in schema else schema))
    found = None
    for candidate, database in candidates:
        with suppress(TableNotFound):
            found = backend.table(candidate, database=database)
            break
    if found is None:
        names = backend.list_tables(database=candidates[-1][1])
        raise unknown_table(table, [f"{schema}.{each}" if schema else each for each in names], str(place))
    locate(columns, found.columns, f"table '{table}'")
    return found.select(*columns)


@contextmanager
def open_elsewhere(used: ir.Table, columns: Sequence[str]) -> Iterator[ir.Table]:
    """The table on an engine that is known through Ibis alone."""
    if used.get_backend().name in FOLDS:
        check_texts(used, columns)
    yield used.select(**{f"c{place}": used[name] for place, name in enumerate(columns)})


def check_texts(table: ir.Table, columns: Sequence[str]) -> None:
    """Refuses columns in which the engine takes texts of different bytes for equal: it would merge cells or levels."""
    texts = [name for name in columns if table[name].type().is_string()]
    if not texts:
        return
    numbers = {f"n{place}": table[name].nunique() for place, name in enumerate(texts)}
    exact = {f"m{place}": table[name].cast("binary").nunique() for place, name in enumerate(texts)}
    found = table.aggregate(**numbers, **exact).to_pyarrow().to_pylist()[0]
    for place, name in enumerate(texts):
        if found[f"n{place}"] != found[f"m{place}"]:
            raise InvalidInput(
                f"column '{name}' has a collation under which different texts are equal",
                fix=f"give it a binary collation, or {EXPORT}",
            )


@contextmanager
def plain_refusals_of_drivers(place: DatabaseName) -> Iterator[None]:
    """Turns a driver's exception into one line without credentials or data, also further back in its chain."""
    try:
        yield
    except CellriskError as refusal:
        forget(refusal.__context__)
        raise
    except UnicodeDecodeError as error:
        forget(error)
        raise InvalidInput(f"the {place} holds text that is not UTF-8", fix=EXPORT) from None
    except Exception as error:
        if type(error).__module__ == "builtins" and not isinstance(error, OSError):
            raise
        explained = explain_database_failure(error, place)
        forget(error)
        raise explained from None


def forget(error: BaseException | None) -> None:
    """Empties an exception and those before it: a message, a connection and the variables on its way may tell."""
    while error is not None:
        if not isinstance(error, CellriskError):
            error.args = (type(error).__name__,)
            error.__traceback__ = None
            for name in set(vars(error)) - {"__notes__"}:
                with suppress(AttributeError):
                    setattr(error, name, None)
        error = error.__cause__ or error.__context__


def explain_connection(error: Exception, place: DatabaseName) -> InvalidInput:
    """Why there is no connection, from the driver's words but not in them."""
    text = re.sub(r'"[^"]*"', "", str(error).lower())  # without the names in it, which may be any word
    for words, reason, fix in (
        (("password", "authentication", "access denied", "login failed", "role "), REFUSED, "check user and password"),
        (("resolve", "translate host", "name or service", "unknown host", "getaddrinfo"), NO_HOST, "check the host"),
        (("refused", "no such file"), NO_SERVER, "check host and port, and that the server runs"),
        (
            ("timeout", "timed out", "unreachable"),
            NO_ANSWER,
            "check host and port, and that a firewall lets it through",
        ),
        (("does not exist", "unknown database", "cannot open database"), NO_DATABASE, "check its name"),
        (("too many", "slots"), "it has no connection left", TRY_AGAIN),
        (("ssl", "certificate"), "no secure connection could be agreed", "check sslmode and the certificates"),
        (("pg_hba",), "the server admits no such connection from here", "ask its administrator"),
        (("starting up", "shutting down"), "the server is starting or stopping", TRY_AGAIN),
        (("invalid connection option", "unexpected keyword", "invalid sslmode"), "an option is not known", OPTIONS),
    ):
        if any(word in text for word in words):
            return InvalidInput(f"no connection to {place}: {reason}", fix=fix)
    return InvalidInput(f"no connection to {place} ({type(error).__name__})", fix="check the address")


REFUSED = "the server refused this user or password"
NO_HOST = "there is no host of that name"
NO_SERVER = "nothing answers at that host and port"
NO_ANSWER = "the server did not answer in time"
NO_DATABASE = "the server has no such database"
OPTIONS = "check what follows ? in the address"


def explain_database_failure(error: Exception, place: DatabaseName) -> InvalidInput:
    """What can be said of a failure in the middle, without the driver's words."""
    kind, module = type(error).__name__, type(error).__module__.partition(".")[0]
    if module == "ibis":
        return InvalidInput(f"a {place.engine} database cannot count this table by itself ({kind})", fix=EXPORT)
    state = str(getattr(error, "sqlstate", None) or "")
    for start, reason, fix in (
        ("42501", "this account may not read the table or one of its columns", "ask its owner for SELECT"),
        ("57014", "the server stopped the query", "raise its statement_timeout, or use fewer quasi-identifiers"),
        ("57P", "the server ended the connection", TRY_AGAIN),
        ("08", "the connection was lost", TRY_AGAIN),
        ("40", "the server stopped the query because the table was being changed", TRY_AGAIN),
        ("55", "the table is locked or being changed", TRY_AGAIN),
        ("53", "the server is out of memory, disk or connections", "use fewer or coarser quasi-identifiers"),
        ("54", "the query is too large for the server", "use fewer quasi-identifiers or levels"),
        ("42P01", "the table was dropped or renamed while it was read", TRY_AGAIN),
    ):
        if state.startswith(start):
            return InvalidInput(f"{place}: {reason}", fix=fix)
    if isinstance(error, OSError) or (not state and kind in ("OperationalError", "InterfaceError", "AdminShutdown")):
        return InvalidInput(f"{place}: the connection was lost", fix=TRY_AGAIN)
    return InvalidInput(f"{place}: the query failed ({kind}{', ' + state if state else ''})", fix=EXPORT)
