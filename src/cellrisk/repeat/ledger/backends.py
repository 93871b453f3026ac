"""The database of a ledger, a SQLite file or a PostgreSQL database: how each is found, locked and explained.

An exception of a driver, which may quote a password or what is stored, is replaced by one without its text.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import sqlite3
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger.entry import show_on_one_line
from cellrisk.system.atomic import is_same_file, keep_inputs, write_new
from cellrisk.system.scratch import private_folder

WHAT, VERSION = "cellrisk release ledger", 1
TABLES = {
    "ledger": "CREATE TABLE ledger (id TEXT NOT NULL PRIMARY KEY, what TEXT NOT NULL, schema_version INTEGER NOT NULL, "
    "created TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL)",
    "entries": "CREATE TABLE entries (number INTEGER NOT NULL PRIMARY KEY, previous TEXT NOT NULL, "
    "digest TEXT NOT NULL, body TEXT NOT NULL)",
    "released_files": "CREATE TABLE released_files (number INTEGER NOT NULL PRIMARY KEY, path TEXT NOT NULL, "
    "salt TEXT NOT NULL)",
}
"""Paths of released files are kept beside the entries, which are exported, and are bound to them by digests."""

# In SQLite an INSERT OR REPLACE deletes without the trigger on DELETE, so a third trigger refuses a number again.
TRIGGERS = {
    "sqlite": (
        "CREATE TRIGGER entries_are_not_updated BEFORE UPDATE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END",
        "CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never deleted'); END",
        "CREATE TRIGGER entries_are_not_replaced BEFORE INSERT ON entries "
        "WHEN EXISTS (SELECT 1 FROM entries WHERE number = NEW.number) "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never replaced'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION refuse_to_change_entries() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'entries of a ledger are never changed'; END $$",
        "CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR DELETE ON entries "
        "FOR EACH ROW EXECUTE FUNCTION refuse_to_change_entries()",
        "CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_entries()",
    ),
}
APPLICATION = 0x63726C67
"""The number in the header of each ledger's file, where SQLite keeps one for that use."""
MOST_OBJECTS = 1000
"""Tables, indexes, views and triggers in a file; a ledger has fewer than twenty."""
PRAGMAS = ("trusted_schema=OFF", "synchronous=FULL", "fullfsync=ON", "cell_size_check=ON")
CREATION = 0x63726C6765727370
"""The advisory lock under which tables are made."""
TRIGGER_KINDS = {"entries_are_not_changed": 1 + 2 + 8 + 16, "entries_are_not_emptied": 2 + 32}
"""As PostgreSQL encodes them: 1 for each row, 2 before, 8 delete, 16 update, 32 truncate."""
REFUSALS = (
    ("42501", "this account may not use the ledger in that way", "ask for the right to read or write its tables"),
    ("53", "the server is out of memory or connections", "try again"),
    ("42", "this is not a ledger: it has tables of the same names", ""),
    ("3F", "the schema for the ledger's tables does not exist", "make it first"),
    ("40", "the server ended the transaction because of another", "try again"),
)
DAMAGES = (MemoryError, UnicodeDecodeError)
"""What Python raises for a SQLite file with impossible sizes, or with a message that is not text."""
MAKE = "cellrisk ledger create, or Ledger(location, create=True)"


class Backend(ABC):
    """The database of a ledger, which may not exist yet."""

    name: str
    other: str
    """What to do about a location with something else."""
    writable: bool = True

    def __init__(self, wait: float) -> None:
        self.wait = wait

    @abstractmethod
    def find(self) -> None:
        """Refuse a location without a ledger, without changing anything."""

    @abstractmethod
    def create(self, make: Callable[[Any], None]) -> None:
        """Make a ledger, whole or not at all; refuse a location that is taken."""

    @abstractmethod
    def remove(self) -> None:
        """Remove a ledger without entries."""

    @abstractmethod
    def connect(self) -> Any:
        """A new connection."""

    @abstractmethod
    def begin(self, connection: Any, reading: bool) -> None:
        """Begin a transaction: one for reading sees one moment and can change nothing, one for writing excludes other
        writers."""

    @abstractmethod
    def find_flaws(self, connection: Any) -> list[str]:
        """What differs from the tables and triggers of a ledger; refuse tables that are something else."""

    @abstractmethod
    def explain(self, error: BaseException) -> InvalidInput:
        """A driver's error without its words."""

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement, in which ? stands for each value."""
        return list(connection.execute(statement, tuple(values)))

    def commit(self, connection: Any) -> None:
        """Make permanent what was written."""
        connection.commit()

    def find_faults(self, connection: Any) -> list[str]:
        """What the database itself finds wrong with its file."""
        return []

    @property
    def folders(self) -> list[Path]:
        """Where releases are often written: beside the ledger, and where the web app keeps them."""
        return []

    def is_same(self, path: Path) -> bool:
        """Whether a path leads to the ledger itself."""
        return False

    @contextmanager
    def opened(self, reading: bool) -> Iterator[Any]:
        """A connection for one transaction; what is not committed is undone."""
        with self.plain_refusals(), closing(self.connect()) as connection:
            self.begin(connection, reading)
            yield connection

    @contextmanager
    def plain_refusals(self) -> Iterator[None]:
        """Turn errors of the driver into one line."""
        try:
            yield
        except CellriskError as refusal:
            _forget(refusal.__context__)
            raise
        except Exception as error:
            driver = type(error).__module__.partition(".")[0] in ("sqlite3", "psycopg")
            if not driver and not isinstance(error, DAMAGES):
                raise
            explained = self.explain(error)
            _forget(error)
            raise explained from None

    def refuse(self, kind: str) -> InvalidInput:
        """The refusals of both backends."""
        what, fix = {
            "read-only": ("the ledger can be read only", "ask for the right to write to it"),
            "full": ("the disk of the ledger is full: nothing was written", "free some space"),
            "locked": (f"the ledger is still locked by another process after {self.wait:g} seconds", "try again later"),
            "no-ledger": ("this is not a ledger", self.other),
            "missing": ("there is no ledger", f"check its name, or make one: {MAKE}"),
            "exists": ("there is something already where the ledger was to be made", f"use it, or {self.other}"),
            "damaged": ("the ledger is damaged", "restore it from a copy; ledger verify shows more"),
        }[kind]
        return InvalidInput(what, got=self, fix=fix, code=kind)


class SqliteFile(Backend):
    """A SQLite file. It is opened by SQLite alone: to close it otherwise would end SQLite's locks in this process."""

    name, other = "sqlite", "choose another file"

    def __init__(self, path: str | os.PathLike[str], wait: float) -> None:
        super().__init__(wait)
        self.given = Path(path)
        self.path = self.given.resolve()
        keep_inputs("the ledger", *self.files)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def folders(self) -> list[Path]:
        return [self.path.parent, self.path.parent / "releases"]

    @property
    def files(self) -> list[Path]:
        """Its file, and those that SQLite may keep beside it."""
        return [Path(f"{self.path}{end}") for end in ("", "-wal", "-shm", "-journal")]

    def is_same(self, path: Path) -> bool:
        return any(is_same_file(path, file) for file in self.files)

    def find(self) -> None:
        self._check_path()
        if not self.path.exists():
            raise self.refuse("missing")
        if not self.path.stat().st_size:
            raise InvalidInput("the file is empty", got=self, fix="restore the ledger from a copy", code="empty")
        self.writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def create(self, make: Callable[[Any], None]) -> None:
        """Make the ledger in a private folder, and then put it into its place, which must be free."""
        self._check_path()
        if self.given.is_symlink() or os.path.lexists(self.path):
            raise self.refuse("exists")
        for beside in self.files[1:]:
            if os.path.lexists(beside):
                raise InvalidInput(
                    "a file of another ledger is there, which SQLite would read as part of the new one",
                    got=beside,
                    fix="move it away, or choose another name",
                    code="left-beside",
                )
        with private_folder("ledger") as folder:
            draft = folder / "draft"
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN")
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                make(connection)
                connection.execute("COMMIT")
            content = draft.read_bytes()
        try:
            write_new(self.path, content)
        except OSError as error:
            kind = {errno.EEXIST: "exists", errno.ENOSPC: "full"}.get(error.errno or 0)
            if kind is not None:
                raise self.refuse(kind) from None
            raise InvalidInput("no ledger can be made there", got=f"{self} ({error.strerror})") from None

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink()

    def _check_path(self) -> None:
        if self.path.is_dir():
            raise InvalidInput("the ledger's path is a folder", got=self, fix="give it a file name")
        if not self.path.parent.is_dir():
            raise InvalidInput("the folder of the ledger does not exist", got=self.path.parent, fix="make it first")
        if self.path.exists() and not self.path.is_file():
            raise InvalidInput("the ledger's path is not a file", got=self, fix="choose another name")

    def _check_beside(self) -> None:
        """Refuse what SQLite would obey: a rollback journal can name files that are then deleted."""
        if os.path.lexists(f"{self.path}-journal"):
            raise InvalidInput(
                "a rollback journal is beside the ledger, which never has one",
                got=f"{self}-journal",
                fix="do not trust it: move it away, and then verify",
                code="rollback-journal",
            )
        for beside in self.files[1:3]:
            with suppress(FileNotFoundError):  # one look: another process may remove it between two
                if not stat.S_ISREG(beside.lstat().st_mode):
                    raise InvalidInput("what is beside the ledger is not a file", got=beside, fix="move it away")

    def connect(self) -> sqlite3.Connection:
        self._check_beside()
        mode = "rw"
        if not self.writable:  # without a log beside it the file alone is the ledger, and nothing need be made there
            mode = "ro&immutable=1"
            with suppress(FileNotFoundError):
                mode = "ro" if Path(f"{self.path}-wal").stat().st_size else mode
        address = f"{self.path.as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=self.wait, isolation_level=None)

    def begin(self, connection: Any, reading: bool) -> None:
        for pragma in (*PRAGMAS, "query_only=ON" if reading else "journal_mode=WAL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")

    def find_flaws(self, connection: Any) -> list[str]:
        if self.execute(connection, "PRAGMA application_id") != [(APPLICATION,)]:
            raise self.refuse("no-ledger")
        found = self.execute(connection, f"SELECT type, name, sql FROM sqlite_master LIMIT {MOST_OBJECTS + 1}")
        objects = {(kind, name): " ".join(str(sql).split()) for kind, name, sql in found}
        known = {("trigger", sql.split()[2]): sql for sql in TRIGGERS["sqlite"]}
        tables = {("table", name): sql for name, sql in TABLES.items()}
        indexes = {("index", f"sqlite_autoindex_{name}_1"): "None" for name in TABLES}
        if len(found) > MOST_OBJECTS or any(objects.get(key) != sql for key, sql in tables.items()):
            raise self.refuse("no-ledger")
        flaws = [
            f"the trigger {name}, which guards the entries, was {'changed' if (kind, name) in objects else 'removed'}"
            for (kind, name), sql in known.items()
            if objects.get((kind, name)) != sql
        ]
        foreign = [key for key, sql in objects.items() if key not in {*known, *tables} and indexes.get(key) != sql]
        flaws += [f"a foreign {_shown(kind)} is in the ledger: {_shown(name)}" for kind, name in foreign]
        return flaws if len(objects) == len(found) else [*flaws, "something is listed twice in the ledger"]

    def find_faults(self, connection: Any) -> list[str]:
        try:
            found = [str(text) for (text,) in self.execute(connection, "PRAGMA integrity_check(5)")]
        except (sqlite3.Error, *DAMAGES):
            found = ["the check itself fails"]
        return [] if found == ["ok"] else found

    def explain(self, error: BaseException) -> InvalidInput:
        text = str(error).lower()
        for sign, kind in (
            *(("locked", "locked"), ("busy", "locked"), ("readonly", "read-only"), ("full", "full")),
            *(("not a database", "no-ledger"), ("no such table", "no-ledger"), ("malformed", "damaged")),
            *(("decode", "damaged"), ("corrupt", "damaged"), ("no such", "damaged"), ("too big", "damaged")),
        ):
            if sign in text:
                return self.refuse(kind)
        if isinstance(error, DAMAGES):
            return self.refuse("damaged")
        if "unable to open" in text or "i/o" in text:
            return InvalidInput("the ledger cannot be opened or its disk fails", got=self, fix="check path and disk")
        return InvalidInput(f"the ledger cannot be used ({type(error).__name__})", got=self)


def _shown(name: object) -> str:
    return show_on_one_line(str(name))[:60]


class PostgresDatabase(Backend):
    """A PostgreSQL database. A writer locks the row of the table ``ledger``."""

    name = "postgresql"
    other = "choose another database, or another schema with ?options=-csearch_path%3Dname"

    def __init__(self, address: str, wait: float) -> None:
        from cellrisk.counts.database import read_address

        super().__init__(wait)
        self._name = read_address(address)
        if self._name.engine != "postgres":
            raise InvalidInput(
                "a ledger is a file or a PostgreSQL database",
                got=f"an address of {self._name.engine}",
                allowed="a path, or postgresql://user:password@host/database",
            )
        if importlib.util.find_spec("psycopg") is None:
            raise InvalidInput(
                "a ledger in PostgreSQL needs a driver that is not installed", fix="pip install 'cellrisk[postgres]'"
            )
        self._address = f"postgresql://{address.partition('://')[2]}"

    def __str__(self) -> str:
        return str(self._name)

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        asked = statement.replace("?", "%s") if values else statement
        found = connection.execute(asked, tuple(values) or None)
        return list(found) if found.description else []

    def find(self) -> None:
        with self.opened(reading=True) as connection:
            if not self._has_table(connection, "ledger"):
                raise self.refuse("missing")
            if self._has_table(connection, "entries"):
                allowed = "has_table_privilege('entries', 'INSERT') AND NOT pg_is_in_recovery()"
                usual = "current_setting('default_transaction_read_only') = 'off'"
                self.writable = bool(self.execute(connection, f"SELECT {allowed} AND {usual}")[0][0])

    def _has_table(self, connection: Any, name: str) -> bool:
        return bool(self.execute(connection, f"SELECT to_regclass('{name}') IS NOT NULL")[0][0])

    def create(self, make: Callable[[Any], None]) -> None:
        with self.plain_refusals(), closing(self.connect()) as connection:
            self._limit_wait(connection)
            connection.execute(f"SELECT pg_advisory_xact_lock({CREATION})")
            if any(self._has_table(connection, name) for name in TABLES):
                raise self.refuse("exists")
            make(connection)
            connection.commit()

    def remove(self) -> None:
        with self.plain_refusals(), closing(self.connect()) as connection:
            for name in reversed(TABLES):
                connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute("DROP FUNCTION IF EXISTS refuse_to_change_entries()")
            connection.commit()

    def begin(self, connection: Any, reading: bool) -> None:
        if reading:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        else:
            self._limit_wait(connection)
            connection.execute("SELECT id FROM ledger FOR UPDATE")

    def connect(self) -> Any:
        import psycopg

        from cellrisk.counts.database import explain_connection, forget

        try:
            return psycopg.connect(
                self._address,
                connect_timeout=max(2, round(self.wait)),
                client_encoding="utf8",
                fallback_application_name="cellrisk",
            )
        except psycopg.Error as error:
            explained = explain_connection(error, self._name)
            forget(error)
        raise explained

    def _limit_wait(self, connection: Any) -> None:
        connection.execute(f"SET LOCAL lock_timeout = {max(1, round(1000 * self.wait))}")

    def find_flaws(self, connection: Any) -> list[str]:
        listed = ", ".join(f"to_regclass('{name}')" for name in TABLES)
        kinds = self.execute(
            connection,
            "SELECT c.relname, c.relkind::text, c.relrowsecurity, "
            "EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid) FROM pg_class c "
            f"WHERE c.oid IN (SELECT unnest(ARRAY[{listed}]::oid[]))",
        )
        if any(kind != "r" for _, kind, _, _ in kinds):
            raise self.refuse("no-ledger")
        flaws = [f"the table {name} has rules or hides rows" for name, _, secured, ruled in kinds if secured or ruled]
        triggers = self.execute(
            connection,
            "SELECT c.relname, t.tgname, t.tgenabled::text, t.tgtype::int, t.tgqual IS NULL, p.prosrc "
            "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
            f"WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT unnest(ARRAY[{listed}]::oid[]))",
        )
        refusal = TRIGGERS["postgresql"][0].split("$$")[1]
        found = {(table, name): rest for table, name, *rest in triggers}
        for name, kind in TRIGGER_KINDS.items():
            rest = found.pop(("entries", name), None)
            if rest is None or rest[0] not in ("O", "A") or rest[1:] != [kind, True, refusal]:
                flaws.append(f"the trigger {name}, which guards the entries, was {'changed' if rest else 'removed'}")
        return flaws + [f"a foreign trigger is in the ledger: {show_on_one_line(str(name))[:60]}" for _, name in found]

    def explain(self, error: BaseException) -> InvalidInput:
        state, kind = str(getattr(error, "sqlstate", None) or ""), type(error).__name__
        if state in (known := {"25006": "read-only", "53100": "full", "55P03": "locked"}):
            return self.refuse(known[state])
        for start, what, fix in REFUSALS:
            if state.startswith(start):
                return InvalidInput(what, got=self, fix=fix or self.other)
        if not state or state.startswith(("08", "57")):
            return InvalidInput(
                "the connection to the ledger was lost",
                got=f"{self} ({kind})",
                fix="ledger list shows what was written",
                code="lost-connection",
            )
        return InvalidInput(f"the ledger cannot be used ({kind}, {state})", got=self)


def _forget(error: BaseException | None) -> None:
    """Empty a driver's exception."""
    if error is not None:
        from cellrisk.counts.database import forget

        forget(error)
