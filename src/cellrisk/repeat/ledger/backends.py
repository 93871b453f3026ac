"""Where a ledger is kept: a SQLite file or a PostgreSQL database. How each is found, locked and explained.

An exception of a driver, which may quote a password or what is stored, never leaves with its text.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger.entry import show_on_one_line
from cellrisk.repeat.ledger.schema import GUARDS, TABLES, list_columns
from cellrisk.system.checks import require_within
from cellrisk.system.scratch import private_folder
from cellrisk.system.writing import is_same_file, keep_inputs, write_new

MAGIC = b"SQLite format 3\0"
APPLICATION = 0x63726C67
"""Stands in the header of each ledger's file, where SQLite keeps a number for that use."""
DAMAGES = (MemoryError, UnicodeDecodeError)
"""What Python raises for SQLite at sizes that cannot be, and at a message that quotes what is no text."""
MOST_OBJECTS = 1000
"""Tables, indexes, views and triggers in a file; a ledger has fewer than twenty."""
LONGEST_WAIT = 86_400.0
CREATION = 0x63726C6765727370
"""The advisory lock under which tables are made in PostgreSQL."""
GATES: dict[Path, threading.RLock] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=GATES.clear)
MAKE = "cellrisk ledger create, or Ledger(place, create=True)"
POSTGRES_TRIGGERS = {"entries_are_not_changed": 1 + 2 + 8 + 16, "entries_are_not_emptied": 2 + 32}
"""As PostgreSQL writes their kinds: 1 for each row, 2 before, 8 delete, 16 update, 32 truncate."""
OTHER = "choose another database, or another schema with ?options=-csearch_path%3Dname"


class Backend(ABC):
    """Where a ledger is, or will be."""

    name: str
    writable: bool = True
    made: bool = False
    """Whether the ledger was made here and now, so that one who is stopped can remove it."""

    def __init__(self, wait: float) -> None:
        self.wait = wait

    @abstractmethod
    def find(self) -> None:
        """Refuses a place where there is no ledger, and what is something else, without a change to it."""

    @abstractmethod
    def create(self, make: Callable[[Any], None]) -> None:
        """Makes a ledger, whole or not at all; refuses a place where one is already, or something else."""

    @abstractmethod
    def remove(self) -> None:
        """Removes a ledger that nobody has written to."""

    @abstractmethod
    def connect(self, reading: bool) -> Any:
        """A new connection of the driver, in a transaction; one for reading sees one moment and can change nothing,
        beside one for writing nobody else writes."""

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives, in which ? stands for each value."""
        return list(connection.execute(statement, tuple(values)))

    def commit(self, connection: Any) -> None:
        """Makes last what was written."""
        connection.commit()

    @abstractmethod
    def find_flaws(self, connection: Any) -> list[str]:
        """What of the tables and triggers is not as a ledger has them.

        Where a table is something else, so that it cannot even be asked, that is refused.
        """

    @abstractmethod
    def explain(self, error: BaseException) -> InvalidInput:
        """What can be said of a driver's error without its words."""

    @property
    def folders(self) -> list[Path]:
        """Where releases that it records are often written: beside it, and where the web app keeps them."""
        return []

    def is_same(self, path: Path) -> bool:
        """Whether a path leads to the ledger itself."""
        return False

    @contextmanager
    def opened(self, reading: bool) -> Iterator[Any]:
        """A connection for the length of one transaction; what is not committed is undone."""
        with self.plain_refusals(), closing(self.connect(reading)) as connection:
            yield connection

    @contextmanager
    def plain_refusals(self) -> Iterator[None]:
        """Turns the errors of drivers into one line."""
        try:
            yield
        except CellriskError as refusal:
            _forget(refusal.__context__)
            raise
        except Exception as error:
            theirs = type(error).__module__.partition(".")[0] in ("sqlite3", "psycopg")
            if not theirs and not isinstance(error, DAMAGES):
                raise
            explained = self.explain(error)
            _forget(error)
            raise explained from None

    def refuse(self, kind: str) -> InvalidInput:
        """The refusals that both backends have."""
        what, fix = {
            "read-only": ("the ledger can be read only", "ask for the right to write to it"),
            "full": ("the disk of the ledger is full: nothing was written", "make room"),
            "locked": (
                f"the ledger is locked by another process, and still was after {self.wait:g} seconds",
                "try again, or wait longer",
            ),
            "no-ledger": ("this is no ledger", "choose another file" if self.name == "sqlite" else OTHER),
        }[kind]
        return InvalidInput(what, got=self, fix=fix, code=kind)


class SqliteFile(Backend):
    """A SQLite file: one file, with two more beside it only while it is in use."""

    name = "sqlite"

    def __init__(self, path: str | os.PathLike[str], wait: float) -> None:
        super().__init__(wait)
        self.path = Path(path).resolve()
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
            raise InvalidInput(
                "there is no ledger", got=self, fix=f"check its name, or make one: {MAKE}", code="missing"
            )
        with self._gate():  # to close the file would end the locks that SQLite holds on it in this process
            try:
                with self.path.open("rb") as stream:
                    header = stream.read(72)
            except OSError as error:
                raise InvalidInput("the ledger cannot be read", got=f"{self} ({error.strerror})") from None
        if not header:
            raise InvalidInput(
                "the file is empty, and no ledger",
                got=self,
                fix=f"restore it from a copy, or remove it and {MAKE}",
                code="empty",
            )
        if not header.startswith(MAGIC) or header[68:72] != APPLICATION.to_bytes(4, "big"):
            raise InvalidInput("the file is no ledger", got=self, fix="choose another name", code="no-ledger")
        self.writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def create(self, make: Callable[[Any], None]) -> None:
        """Made whole in a private folder, and then put into its place, where nothing may be."""
        self._check_path()
        taken = InvalidInput(
            "there is a file already where the ledger was to be made",
            got=self,
            fix="choose another name; a ledger that is there is used without asking for a new one",
            code="exists",
        )
        if os.path.lexists(self.path):
            raise taken
        for beside in self.files[1:]:
            if os.path.lexists(beside):
                raise InvalidInput(
                    "what SQLite keeps beside another ledger was left there, and would be taken for the new one's",
                    got=beside,
                    fix="move it away, or choose another name",
                    code="left-beside",
                )
        with private_folder("ledger") as folder:
            draft = folder / "draft"
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous=OFF")  # only what is put into its place has to last
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN")
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                make(connection)
                connection.execute("COMMIT")
            content = draft.read_bytes()
        self.made = True
        try:
            write_new(self.path, content)
        except OSError as error:
            self.made = False
            if isinstance(error, FileExistsError):
                raise taken from None
            if error.errno == errno.ENOSPC:
                raise self.refuse("full") from None
            raise InvalidInput(
                "no ledger can be made there", got=f"{self} ({error.strerror})", fix="choose another place"
            ) from None

    def remove(self) -> None:
        with self._gate(), suppress(OSError):
            self.path.unlink()

    def _check_path(self) -> None:
        if self.path.is_dir():
            raise InvalidInput("the ledger's path is a folder", got=self, fix="give it a file name")
        if not self.path.parent.is_dir():
            raise InvalidInput("the folder of the ledger does not exist", got=self.path.parent, fix="make it first")
        if self.path.exists() and not self.path.is_file():
            raise InvalidInput("the ledger's path is no file", got=self, fix="choose another name")

    def _check_beside(self) -> None:
        """Refuses what SQLite would obey: a rollback journal can name files that are then deleted."""
        if os.path.lexists(f"{self.path}-journal"):
            raise InvalidInput(
                "a rollback journal stands beside the ledger, which never has one",
                got=f"{self}-journal",
                fix="do not trust it: move it away, and then verify",
                code="rollback-journal",
            )
        for beside in self.files[1:3]:
            if os.path.lexists(beside) and (beside.is_symlink() or not beside.is_file()):
                raise InvalidInput("what stands beside the ledger is no file", got=beside, fix="move it away")

    def connect(self, reading: bool) -> sqlite3.Connection:
        self._check_beside()
        mode = "rw"
        if not self.writable:  # without a log beside it the file alone is the ledger, and nothing need be made there
            log = Path(f"{self.path}-wal")
            mode = "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"
        address = f"{self.path.as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=self.wait, isolation_level=None)
        try:
            pragmas = ("trusted_schema=OFF", "synchronous=FULL", "fullfsync=ON", "cell_size_check=ON")
            for pragma in (*pragmas, "query_only=ON" if reading else "journal_mode=WAL"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def opened(self, reading: bool) -> Iterator[Any]:
        with self._gate(), super().opened(reading) as connection:
            yield connection

    @contextmanager
    def _gate(self) -> Iterator[None]:
        """Serialise access within this process."""
        lock = GATES.setdefault(self.path, threading.RLock())
        if not lock.acquire(timeout=self.wait):
            raise self.refuse("locked")
        try:
            yield
        finally:
            lock.release()

    def find_flaws(self, connection: Any) -> list[str]:
        found = self.execute(connection, f"SELECT type, name, sql FROM sqlite_master LIMIT {MOST_OBJECTS + 1}")
        objects = {(kind, name): sql for kind, name, sql in found}
        if len(found) > MOST_OBJECTS or not {("table", "ledger"), ("table", "entries")} <= set(objects):
            raise self.refuse("no-ledger")
        flaws = []
        for name, wanted in TABLES.items():
            kinds = [kind for kind, other in objects if other == name]
            sql = str(objects.get(("table", name))).split()
            if not kinds or (kinds == ["table"] and sql == wanted.split()):
                continue
            columns = self.execute(connection, f"PRAGMA table_xinfo({name})")
            if (
                kinds != ["table"]
                or sql[:2] != ["CREATE", "TABLE"]
                or [(column[1], column[6]) for column in columns] != [(column, 0) for column in list_columns(name)]
            ):
                raise self.refuse("no-ledger")
            flaws.append(f"the table {name} was made anew, otherwise than cellrisk makes it")
        guards = {statement.split()[2]: statement for statement in GUARDS["sqlite"]}
        for name, statement in guards.items():
            written = objects.get(("trigger", name))
            if written is None:
                flaws.append(f"the trigger {name}, which guards the entries, was removed")
            elif not isinstance(written, str) or written.split() != statement.split():
                flaws.append(f"the trigger {name}, which guards the entries, was changed")
        known = {("trigger", name) for name in guards} | {("table", name) for name in TABLES}
        automatic = {("index", f"sqlite_autoindex_{name}_1") for name in TABLES}
        for kind, name, sql in found:  # SQLite obeys the text, whatever it is listed as
            if (kind, name) not in known and ((kind, name) not in automatic or sql is not None):
                flaws.append(f"a foreign {_shown(kind)} stands in the ledger: {_shown(name)}")
        if len(objects) < len(found):
            flaws.append("something is listed twice in the ledger")
        return flaws

    def explain(self, error: BaseException) -> InvalidInput:
        text = str(error).lower()
        for sign, kind in (("locked", "locked"), ("busy", "locked"), ("readonly", "read-only"), ("full", "full")):
            if sign in text:
                return self.refuse(kind)
        if "unable to open" in text:
            return InvalidInput("the ledger cannot be opened", got=self, fix="check that it is still there, and room")
        if "i/o" in text:
            return InvalidInput("the disk of the ledger reports an error", got=self, fix="check the disk and its room")
        signs = ("malformed", "not a database", "decode", "corrupt", "no such", "too big")
        if isinstance(error, DAMAGES) or any(sign in text for sign in signs):
            return InvalidInput(
                "the ledger is damaged", got=self, fix="restore it from a copy; verify tells more", code="damaged"
            )
        return InvalidInput(f"the ledger cannot be used ({type(error).__name__})", got=self)


class PostgresDatabase(Backend):
    """A PostgreSQL database: the tables stand in the first schema of its search path."""

    name = "postgresql"

    def __init__(self, address: str, wait: float) -> None:
        from cellrisk.counts.databases.database import read_address

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
                raise InvalidInput(
                    "there is no ledger", got=self, fix=f"check the address, or make one: {MAKE}", code="missing"
                )
            if self._has_table(connection, "entries"):
                allowed = "has_table_privilege('entries', 'INSERT') AND NOT pg_is_in_recovery()"
                usual = "current_setting('default_transaction_read_only') = 'off'"
                self.writable = bool(self.execute(connection, f"SELECT {allowed} AND {usual}")[0][0])

    def _has_table(self, connection: Any, name: str) -> bool:
        return bool(self.execute(connection, f"SELECT to_regclass('{name}') IS NOT NULL")[0][0])

    def create(self, make: Callable[[Any], None]) -> None:
        with self.plain_refusals(), closing(self._dial()) as connection:
            self._limit_wait(connection)
            connection.execute(f"SELECT pg_advisory_xact_lock({CREATION})")
            if any(self._has_table(connection, name) for name in TABLES):
                raise InvalidInput(
                    "there is a ledger already, or a table of the same name",
                    got=self,
                    fix=f"use it without asking for a new one, or {OTHER}",
                    code="exists",
                )
            make(connection)
            self.made = True
            connection.commit()

    def remove(self) -> None:
        with self.plain_refusals(), closing(self._dial()) as connection:
            for name in reversed(TABLES):
                connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute("DROP FUNCTION IF EXISTS refuse_to_change_entries()")
            connection.commit()

    def connect(self, reading: bool) -> Any:
        connection = self._dial()
        try:
            if reading:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            else:
                self._limit_wait(connection)
                connection.execute("SELECT id FROM ledger FOR UPDATE")
        except BaseException:
            connection.close()
            raise
        return connection

    def _dial(self) -> Any:
        import psycopg

        from cellrisk.counts.databases.database import explain_connection, forget

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
        refusal = GUARDS["postgresql"][0].split("$$")[1]
        found = {(table, name): rest for table, name, *rest in triggers}
        for name, kind in POSTGRES_TRIGGERS.items():
            rest = found.pop(("entries", name), None)
            if rest is None:
                flaws.append(f"the trigger {name}, which guards the entries, was removed")
            elif rest[0] not in ("O", "A") or rest[1:] != [kind, True, refusal]:
                flaws.append(f"the trigger {name}, which guards the entries, was changed")
        return flaws + [f"a foreign trigger stands in the ledger: {_shown(name)}" for _, name in found]

    def explain(self, error: BaseException) -> InvalidInput:
        state = str(getattr(error, "sqlstate", None) or "")
        if state in (known := {"25006": "read-only", "53100": "full", "55P03": "locked"}):
            return self.refuse(known[state])
        for start, what, fix in (
            ("42501", "this account may not use the ledger so", "ask for the right to read or write its tables"),
            ("53", "the server is out of memory or connections", "try again"),
            ("42", "this is no ledger: it has tables of the same names", OTHER),
            ("3F", "the schema for the ledger's tables does not exist", "make it first"),
            ("40", "the server ended the transaction because of another", "try again"),
        ):
            if state.startswith(start):
                return InvalidInput(what, got=self, fix=fix)
        kind = type(error).__name__
        if not state or state.startswith(("08", "57")):
            return InvalidInput(
                "the connection to the ledger was lost",
                got=f"{self} ({kind})",
                fix="look what was written before you try again",
                code="lost-connection",
            )
        return InvalidInput(f"the ledger cannot be used ({kind}, {state})", got=self)


def _forget(error: BaseException | None) -> None:
    """Empties a driver's exception. Loaded late: most transactions raise none."""
    if error is not None:
        from cellrisk.counts.databases.database import forget

        forget(error)


def _shown(name: object) -> str:
    return show_on_one_line(str(name))[:60]


def find_backend(place: str | os.PathLike[str], wait: float) -> Backend:
    """The backend that a path or an address names.

    >>> find_backend("releases.ledger", 1.0).name
    'sqlite'
    """
    require_within("wait, in seconds,", wait, least=0, most=LONGEST_WAIT)
    if not isinstance(place, (str, os.PathLike)) or not os.fspath(place):
        raise InvalidInput("a ledger needs a place", allowed="a path, or postgresql://user:password@host/database")
    text = os.fspath(place)
    if "\0" in text:
        raise InvalidInput("a path cannot hold NUL")
    if isinstance(place, str) and "://" in place:
        return PostgresDatabase(place, wait)
    return SqliteFile(text, wait)
