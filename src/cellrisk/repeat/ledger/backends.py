"""The database of a ledger, a SQLite file or a PostgreSQL database: how each is found, locked, read and explained.

Both are used through their own drivers: journals, locks, triggers, privileges and error codes differ, and nothing else
is asked of them. An exception of a driver, which may quote a password or what is stored, is replaced by one without its
text.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import sqlite3
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger.entry import LONGEST_BODY, Head, Row
from cellrisk.system.atomic import is_same_file, keep_inputs, write_new
from cellrisk.system.checks import require_within
from cellrisk.system.scratch import private_folder

WHAT, VERSION = "cellrisk release ledger", 2
TABLES = {
    "ledger": "CREATE TABLE ledger (id TEXT NOT NULL PRIMARY KEY, what TEXT NOT NULL, schema_version INTEGER NOT NULL, "
    "created TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL)",
    "entries": "CREATE TABLE entries (number INTEGER NOT NULL PRIMARY KEY, previous TEXT NOT NULL, "
    "digest TEXT NOT NULL, body TEXT NOT NULL)",
}
SELECT = "SELECT number, previous, digest, body FROM entries"

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
TRIGGER_KINDS = {"entries_are_not_changed": 1 + 2 + 8 + 16, "entries_are_not_emptied": 2 + 32}
"""As PostgreSQL encodes them: 1 for each row, 2 before, 8 delete, 16 update, 32 truncate."""
CHANGED = "the triggers that guard the entries were changed, or something foreign was added"
APPLICATION = 0x63726C67
"""The number in the header of each ledger's file, where SQLite keeps one for that use."""
MOST_OBJECTS = 1000
"""Tables, indexes, views and triggers in a file; a ledger has fewer than twenty."""
PRAGMAS = ("trusted_schema=OFF", "synchronous=FULL", "fullfsync=ON", "cell_size_check=ON")
LISTED = ", ".join(f"to_regclass('{name}')" for name in TABLES)
CREATION = 0x63726C6765727370
"""The advisory lock under which tables are made."""
SIGNS = {
    "locked": "locked",
    "busy": "locked",
    "readonly": "read-only",
    "full": "full",
    "not a database": "no-ledger",
    "no such table": "no-ledger",
    **dict.fromkeys(("malformed", "decode", "corrupt", "no such", "too big"), "damaged"),
    **dict.fromkeys(("unable to open", "i/o"), "disk"),
}
"""What the messages of SQLite contain, and what it means."""
STATES = {
    "25006": "read-only",
    "53100": "full",
    "55P03": "locked",
    "42501": "not-allowed",
    "42": "no-ledger",
    "3F": "no-schema",
    **dict.fromkeys(("53", "40"), "again"),
    **dict.fromkeys(("08", "57"), "lost-connection"),
}
"""How the error codes of PostgreSQL begin, and what it means; the more specific first."""
DAMAGES = (MemoryError, UnicodeDecodeError)
"""What Python raises for a SQLite file with impossible sizes, or with a message that is not text."""
MAKE = "cellrisk ledger create, or Ledger(location, create=True)"


def find_backend(location: str | os.PathLike[str], wait: float) -> Backend:
    """The backend of a path or an address.

    >>> find_backend("releases.ledger", 1.0).name
    'sqlite'
    """
    require_within("wait, in seconds,", wait, least=0, most=86_400.0)
    if not isinstance(location, (str, os.PathLike)) or not os.fspath(location):
        raise InvalidInput("a ledger needs a location", allowed="a path, or postgresql://user:password@host/database")
    text = os.fspath(location)
    if "\0" in text:
        raise InvalidInput("a path cannot hold NUL")
    return PostgresDatabase(text, wait) if isinstance(location, str) and "://" in text else SqliteFile(text, wait)


class Session:
    """What can be read and written inside one transaction."""

    def __init__(self, connection: Any, backend: Backend) -> None:
        self.connection, self.backend = connection, backend
        self.flaws = backend.find_flaws(connection)
        rows = self.execute("SELECT what, schema_version, id, created, number, digest FROM ledger LIMIT 2")
        if len(rows) != 1 or rows[0][:2] != (WHAT, VERSION):
            raise backend.refuse("no-ledger")
        self.head = head = Head(*rows[0][2:])
        texts = all(isinstance(text, str) for text in (head.id, head.created, head.digest))
        sound = texts and isinstance(head.number, int) and 0 <= head.number <= 2**53
        if not sound or not re.fullmatch("[0-9a-f]{32} ([0-9a-f]{64}|[0-9a-f]{32})", f"{head.id} {head.digest}"):
            raise InvalidInput("invalid ledger header (id, schema version or last entry)", got=backend, code="head")

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.backend.execute(self.connection, statement, values)

    def rows(self) -> list[Row]:
        """The entries in their order."""
        return list(map(_read_row, self.execute(f"{SELECT} ORDER BY number")))

    def find(self, column: Literal["number", "digest"], value: int | str) -> Row | None:
        """One entry by its number or its digest."""
        return next(map(_read_row, self.execute(f"{SELECT} WHERE {column} = ?", value)), None)

    def rescue_rows(self) -> tuple[list[Row], str]:
        """All entries that can be read; and what hides the others in a damaged file, empty if nothing does."""
        rows: list[Row] = []
        try:
            with self.backend.plain_refusals():
                rows.extend(map(_read_row, self.connection.execute(f"{SELECT} ORDER BY number")))
        except InvalidInput:
            after = f"after entry {rows[-1].number:,}" if rows else "from the first entry on"
            return rows, f"the ledger cannot be read {after}: its file is damaged"
        return rows, ""

    def append(self, row: Row) -> None:
        """Write an entry after the last one."""
        self.execute("INSERT INTO entries (number, previous, digest, body) VALUES (?, ?, ?, ?)", *row)
        self.execute("UPDATE ledger SET number = ?, digest = ?", row.number, row.digest)
        self.head = self.head._replace(number=row.number, digest=row.digest)

    def commit(self) -> None:
        """Make permanent what was written."""
        self.connection.commit()


def _read_row(found: Sequence[Any]) -> Row:
    row = Row(*found)
    sound = all(isinstance(value, kind) for value, kind in zip(row, (int, str, str, str), strict=True))
    if not sound or len(row.body) > LONGEST_BODY:
        which = f"entry {row.number}" if isinstance(row.number, int) else "an entry without a number"
        raise InvalidInput("the ledger is damaged: an entry cannot be read", got=which, fix="ledger verify shows more")
    return row


class Backend(ABC):
    """The database of a ledger, which may not exist yet."""

    name: str
    other: str
    """What to do about a location with something else."""
    writable: bool = True
    folders: tuple[Path, ...] = ()
    """Where releases are often written: beside the ledger, and where the web app keeps them."""

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
    def classify(self, error: BaseException) -> str:
        """The kind of a driver's error, a key of the refusals; empty if it has none."""

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement, in which ? stands for each value."""
        return list(connection.execute(statement, tuple(values)))

    def find_faults(self, connection: Any) -> list[str]:
        """What the database itself finds wrong with its file."""
        return []

    def is_same(self, path: Path) -> bool:
        """Whether a path leads to the ledger itself."""
        return False

    @contextmanager
    def opened(self, reading: bool) -> Iterator[Session]:
        """A connection with one transaction; what is not committed is undone."""
        with self.plain_refusals(), closing(self.connect()) as connection:
            self.begin(connection, reading)
            yield Session(connection, self)

    @contextmanager
    def plain_refusals(self) -> Iterator[None]:
        """Turn errors of the driver into one line."""
        try:
            yield
        except CellriskError as refusal:
            if refusal.__context__ is not None:
                _forget(refusal.__context__)
            raise
        except Exception as error:
            driver = type(error).__module__.partition(".")[0] in ("sqlite3", "psycopg")
            if not driver and not isinstance(error, DAMAGES):
                raise
            explained = self.refuse("damaged" if isinstance(error, DAMAGES) else self.classify(error), error)
            _forget(error)
            raise explained from None

    def refuse(self, kind: str, error: BaseException | None = None) -> InvalidInput:
        """The refusals of both backends."""
        what, fix = {
            "read-only": ("the ledger can be read only", "ask for the right to write to it"),
            "full": ("the disk of the ledger is full: nothing was written", "free some space"),
            "locked": (f"the ledger is still locked by another process after {self.wait:g} seconds", "try again later"),
            "no-ledger": ("this is not a ledger, or not of this version of cellrisk", self.other),
            "missing": ("there is no ledger", f"check its name, or make one: {MAKE}"),
            "exists": ("there is something already where the ledger was to be made", f"use it, or {self.other}"),
            "damaged": ("the ledger is damaged", "restore it from a copy; ledger verify shows more"),
            "disk": ("the ledger cannot be opened or its disk fails", "check path and disk"),
            "not-allowed": ("this account may not use the ledger in that way", "ask for the right to use its tables"),
            "no-schema": ("the schema for the ledger's tables does not exist", "make it first"),
            "again": ("the server is out of resources, or ended the transaction because of another", "try again"),
            "lost-connection": ("the connection to the ledger was lost", "ledger list shows what was written"),
        }.get(kind, (f"the ledger cannot be used ({type(error).__name__})", None))
        return InvalidInput(what, got=self, fix=fix, code=kind or None)


class SqliteFile(Backend):
    """A SQLite file. It is opened by SQLite alone: to close it otherwise would end SQLite's locks in this process."""

    name, other = "sqlite", "choose another file"

    def __init__(self, path: str | os.PathLike[str], wait: float) -> None:
        super().__init__(wait)
        self.given = Path(path)
        self.path = self.given.resolve()
        self.files = [Path(f"{self.path}{end}") for end in ("", "-wal", "-shm", "-journal")]  # SQLite's own beside it
        self.folders = self.path.parent, self.path.parent / "releases"
        keep_inputs("the ledger", *self.files)

    def __str__(self) -> str:
        return str(self.path)

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

    def connect(self) -> sqlite3.Connection:
        """Open the file; refuse what SQLite would obey beside it: a rollback journal can name files that are then
        deleted."""
        if os.path.lexists(self.files[3]):
            raise InvalidInput(
                "a rollback journal is beside the ledger, which never has one",
                got=self.files[3],
                fix="do not trust it: move it away, and then verify",
                code="rollback-journal",
            )
        mode = "rw" if self.writable else "ro&immutable=1"  # without a log the file alone is the ledger
        for beside in self.files[1:3]:
            with suppress(FileNotFoundError):  # one look: another process may remove it between two
                found = beside.lstat()
                if not stat.S_ISREG(found.st_mode):
                    raise InvalidInput("what is beside the ledger is not a file", got=beside, fix="move it away")
                if not self.writable and found.st_size and beside == self.files[1]:
                    mode = "ro"
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
        objects = [(str(kind), str(name), " ".join(str(sql).split())) for kind, name, sql in found]
        tables = [("table", name, sql) for name, sql in TABLES.items()]
        triggers = [("trigger", sql.split()[2], sql) for sql in TRIGGERS["sqlite"]]
        if len(found) > MOST_OBJECTS or not set(tables) <= set(objects):
            raise self.refuse("no-ledger")
        indexes = [
            made for made in objects if made in {("index", f"sqlite_autoindex_{name}_1", "None") for name in TABLES}
        ]
        return [] if sorted(objects) == sorted([*tables, *triggers, *indexes]) else [CHANGED]

    def find_faults(self, connection: Any) -> list[str]:
        try:
            found = [str(text) for (text,) in self.execute(connection, "PRAGMA integrity_check(5)")]
        except (sqlite3.Error, *DAMAGES):
            found = ["the check itself fails"]
        return [] if found == ["ok"] else found

    def classify(self, error: BaseException) -> str:
        text = str(error).lower()
        return next((kind for sign, kind in SIGNS.items() if sign in text), "")


class PostgresDatabase(Backend):
    """A PostgreSQL database. A writer locks the row of the table ``ledger``."""

    name = "postgresql"
    other = "choose another database, or another schema with ?options=-csearch_path%3Dname"

    def __init__(self, address: str, wait: float) -> None:
        from cellrisk.counts.database import read_address

        super().__init__(wait)
        dialect, self._name = read_address(address)
        if dialect != "postgresql":
            raise InvalidInput(
                "a ledger is a file or a PostgreSQL database",
                got=f"an address of {dialect}",
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
        with self.plain_refusals(), closing(self.connect()) as connection:
            self.begin(connection, reading=True)
            if self.execute(connection, "SELECT to_regclass('ledger')") == [(None,)]:
                raise self.refuse("missing")

    def create(self, make: Callable[[Any], None]) -> None:
        with self.plain_refusals(), closing(self.connect()) as connection:
            self._limit_wait(connection)
            connection.execute(f"SELECT pg_advisory_xact_lock({CREATION})")
            if self.execute(connection, f"SELECT coalesce({LISTED})") != [(None,)]:
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

        from cellrisk.counts.database import explain_connection

        try:
            return psycopg.connect(
                self._address,
                connect_timeout=max(2, round(self.wait)),
                client_encoding="utf8",
                fallback_application_name="cellrisk",
            )
        except psycopg.Error as error:
            explained = explain_connection(error, self._name)
            _forget(error)
        raise explained

    def _limit_wait(self, connection: Any) -> None:
        connection.execute(f"SET LOCAL lock_timeout = {max(1, round(1000 * self.wait))}")

    def find_flaws(self, connection: Any) -> list[str]:
        tables = self.execute(
            connection,
            "SELECT c.relkind::text, c.relrowsecurity OR EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid) "
            f"FROM pg_class c WHERE c.oid IN (SELECT unnest(ARRAY[{LISTED}]::oid[]))",
        )
        if any(kind != "r" for kind, _ in tables):
            raise self.refuse("no-ledger")
        triggers = self.execute(
            connection,
            "SELECT t.tgname::text, t.tgtype::int, c.relname::text, t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL, "
            "p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
            f"WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT unnest(ARRAY[{LISTED}]::oid[])) ORDER BY t.tgname",
        )
        refusal = TRIGGERS["postgresql"][0].split("$$")[1]
        usual = [(name, kind, "entries", True, refusal) for name, kind in TRIGGER_KINDS.items()]
        return [] if triggers == usual and not any(changed for _, changed in tables) else [CHANGED]

    def classify(self, error: BaseException) -> str:
        state = str(getattr(error, "sqlstate", None) or "08")
        return next((kind for start, kind in STATES.items() if state.startswith(start)), "")


def _forget(error: BaseException | None) -> None:
    """Empty a driver's exception."""
    from cellrisk.counts.database import forget

    forget(error)
