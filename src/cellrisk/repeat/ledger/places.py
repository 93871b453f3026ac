"""The two places of a ledger, a SQLite file and a PostgreSQL database: how each is found, locked, and explained."""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import shutil
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

from cellrisk.counts.databases.database import DatabaseName, explain_connection, forget, read_address
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger import migrations
from cellrisk.repeat.ledger.entry import show_on_one_line
from cellrisk.system.checks import require_within
from cellrisk.system.scratch import private_folder
from cellrisk.system.writing import is_same_file, keep_inputs, write_new

MAGIC = b"SQLite format 3\0"
APPLICATION = 0x63726C67
"""Stands in the header of each ledger's file, where SQLite keeps a number for that use."""
DAMAGES = (MemoryError, UnicodeDecodeError)
"""What Python raises for SQLite at sizes that cannot be, and at a message that quotes what is no text."""
LITTLE_ROOM = 1 << 18
MOST_OBJECTS = 1000
"""Tables, indexes, views and triggers in a file; a ledger has fewer than twenty."""
LONGEST_WAIT = 86_400.0
QUIET = "cellrisk-ledger"
logging.getLogger(f"sqlalchemy.pool.impl.NullPool.{QUIET}").setLevel(logging.CRITICAL)  # it would print tracebacks
CREATION = 0x63726C6765727370
"""The advisory lock under which tables are made in PostgreSQL."""
GATES: dict[Path, threading.RLock] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=GATES.clear)


class Place(ABC):
    """Where a ledger is, or will be."""

    dialect: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    writable: bool = True
    made: bool = False
    """Whether the ledger was made here and now, so that one who is stopped can remove it."""

    def __init__(self, wait: float) -> None:
        self.wait = wait

    @abstractmethod
    def find(self) -> None:
        """Refuses a place where there is no ledger, and what is something else, without a change to it."""

    @abstractmethod
    def create(self, make: Callable[[sa.Connection], None]) -> None:
        """Makes a ledger, whole or not at all; refuses a place where one is already, or something else."""

    @abstractmethod
    def remove(self) -> None:
        """Removes a ledger that nobody has written to."""

    @abstractmethod
    def connect(self, reading: bool) -> Any:
        """A new connection of the driver; one for reading can change nothing."""

    def make_engine(self, reading: bool) -> sa.Engine:
        """What opens such connections and ends each of them after its use."""
        return sa.create_engine(
            self.dialect,
            **self.options,
            creator=partial(self.connect, reading),
            poolclass=sa.NullPool,
            pool_reset_on_return=None,
            pool_logging_name=QUIET,
            hide_parameters=True,
        )

    @abstractmethod
    def begin_to_read(self, connection: sa.Connection) -> None:
        """Begins a transaction that sees one moment."""

    @abstractmethod
    def begin_to_write(self, connection: sa.Connection) -> None:
        """Begins a transaction that nobody else writes beside; waits for that as long as it may."""

    @abstractmethod
    def find_flaws(self, connection: sa.Connection) -> list[str]:
        """What of the tables and triggers is not as a ledger has them.

        Where a table is something else, so that it cannot even be asked, that is refused.
        """

    @abstractmethod
    def explain(self, error: BaseException) -> InvalidInput:
        """What can be said of a driver's error without its words."""

    @property
    def folders(self) -> list[Path]:
        """Where releases that it records are often written: beside it, and where the web page keeps them."""
        return []

    def is_same(self, path: Path) -> bool:
        """Whether a path leads to the ledger itself."""
        return False

    @contextmanager
    def gate(self) -> Iterator[None]:
        """Lets one thread of this process in at a time, where the place needs that."""
        yield

    @contextmanager
    def plain_refusals(self) -> Iterator[None]:
        """Turns the errors of SQLAlchemy and of the drivers into one line."""
        try:
            yield
        except CellriskError as refusal:
            forget(refusal.__context__)
            raise
        except Exception as error:
            original = getattr(error, "orig", None) or error
            theirs = type(original).__module__.partition(".")[0] in ("sqlalchemy", "sqlite3", "psycopg")
            if not theirs and not isinstance(error, DAMAGES):
                raise
            explained = self.explain(original)
            forget(error)
            forget(original)
            raise explained from None

    def refuse_writing(self) -> InvalidInput:
        return InvalidInput("the ledger can be read only", got=self, fix="ask for the right to write to it")

    def refuse_full(self) -> InvalidInput:
        return InvalidInput("the disk of the ledger is full: nothing was written", got=self, fix="make room")

    def refuse_lock(self) -> InvalidInput:
        return InvalidInput(
            f"the ledger is locked by another process, and still was after {self.wait:g} seconds",
            got=self,
            fix="try again, or wait longer",
        )


class FilePlace(Place):
    """A SQLite file: one file, with two more beside it only while it is in use."""

    dialect = "sqlite+pysqlite://"

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
            raise InvalidInput("there is no ledger", got=self, fix=f"check its name, or make one: {MAKE}")
        with self.gate():  # to close the file would end the locks that SQLite holds on it in this process
            try:
                with self.path.open("rb") as stream:
                    header = stream.read(72)
            except OSError as error:
                raise InvalidInput("the ledger cannot be read", got=f"{self} ({error.strerror})") from None
        if not header:
            raise InvalidInput(
                "the file is empty, and no ledger", got=self, fix=f"restore it from a copy, or remove it and {MAKE}"
            )
        if not header.startswith(MAGIC) or header[68:72] != APPLICATION.to_bytes(4, "big"):
            raise InvalidInput("the file is no ledger", got=self, fix="choose another name")
        self.writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def create(self, make: Callable[[sa.Connection], None]) -> None:
        """Made whole in a private folder, and then put into its place, where nothing may be."""
        self._check_path()
        if self.path.exists() or self.path.is_symlink():
            raise self._refuse_other()
        for beside in self.files[1:]:
            if os.path.lexists(beside):
                raise InvalidInput(
                    "what SQLite keeps beside another ledger was left there, and would be taken for the new one's",
                    got=beside,
                    fix="move it away, or choose another name",
                )
        with private_folder("ledger") as folder:
            draft = folder / "draft"
            engine = sa.create_engine(f"{self.dialect}/{draft}", poolclass=sa.NullPool)
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA synchronous=OFF")  # only what is put into its place has to last
                connection.exec_driver_sql("BEGIN")
                connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION}")
                make(connection)
                connection.commit()
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            content = draft.read_bytes()
        self.made = True
        try:
            write_new(self.path, content)
        except OSError as error:
            self.made = False
            if isinstance(error, FileExistsError):
                raise self._refuse_other() from None
            if error.errno == errno.ENOSPC:
                raise self.refuse_full() from None
            raise InvalidInput(
                "no ledger can be made there", got=f"{self} ({error.strerror})", fix="choose another place"
            ) from None

    def remove(self) -> None:
        with self.gate(), suppress(OSError):
            self.path.unlink()

    def _refuse_other(self) -> InvalidInput:
        return InvalidInput(
            "there is a file already where the ledger was to be made",
            got=self,
            fix="choose another name; a ledger that is there is used without asking for a new one",
        )

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
            )
        for end in ("-wal", "-shm"):
            beside = Path(f"{self.path}{end}")
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
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def gate(self) -> Iterator[None]:
        lock = GATES.setdefault(self.path, threading.RLock())
        if not lock.acquire(timeout=self.wait):
            raise self.refuse_lock()
        try:
            yield
        finally:
            lock.release()

    def begin_to_read(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    def begin_to_write(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def find_flaws(self, connection: sa.Connection) -> list[str]:
        asked = f"SELECT type, name, sql FROM sqlite_master LIMIT {MOST_OBJECTS + 1}"
        found = connection.exec_driver_sql(asked).all()
        objects = {(kind, name): sql for kind, name, sql in found}
        if len(found) > MOST_OBJECTS:
            raise InvalidInput("this is no ledger: too much stands in it", got=self, fix=OTHER_FILE)
        flaws = []
        for name, wanted in _write_tables().items():
            kinds = [kind for kind, each in objects if each == name]
            sql = str(objects.get(("table", name))).split()
            if not kinds or (kinds == ["table"] and sql == wanted):
                continue
            if kinds != ["table"] or sql[:2] != ["CREATE", "TABLE"]:
                raise InvalidInput("this is no ledger: one of its tables is something else", got=self, fix=OTHER_FILE)
            columns = connection.exec_driver_sql(f"PRAGMA table_xinfo({name})").all()
            told = [(column[1], column[6]) for column in columns]
            if told != [(column.name, 0) for column in migrations.TABLES[name].columns]:
                raise InvalidInput("this is no ledger: one of its tables has other columns", got=self, fix=OTHER_FILE)
            flaws.append(f"the table {name} was made anew, otherwise than cellrisk makes it")
        if not {("table", "ledger"), ("table", "entries")} <= set(objects):
            raise InvalidInput("this is no ledger: its tables are missing", got=self, fix=OTHER_FILE)
        guards = {statement.split()[2]: statement for statement in migrations.GUARDS["sqlite"]}
        for name, statement in guards.items():
            written = objects.get(("trigger", name))
            if written is None:
                flaws.append(f"the trigger {name}, which guards the entries, was removed")
            elif not isinstance(written, str) or written.split() != statement.split():
                flaws.append(f"the trigger {name}, which guards the entries, was changed")
        known = {("trigger", name) for name in guards} | {("table", name) for name in migrations.TABLES}
        automatic = {("index", f"sqlite_autoindex_{name}_1") for name in migrations.TABLES}
        for kind, name, sql in found:  # SQLite obeys the text, whatever it is listed as
            if (kind, name) not in known and ((kind, name) not in automatic or sql is not None):
                flaws.append(f"a foreign {_shown(kind)} stands in the ledger: {_shown(name)}")
        if len(objects) < len(found):
            flaws.append("something is listed twice in the ledger")
        return flaws

    def explain(self, error: BaseException) -> InvalidInput:
        text = str(error).lower()
        if "locked" in text or "busy" in text:
            return self.refuse_lock()
        if "readonly" in text:
            return self.refuse_writing()
        if "full" in text or (("unable to open" in text or "i/o" in text) and self._has_little_room()):
            return self.refuse_full()
        if "unable to open" in text:
            return InvalidInput("the ledger cannot be opened", got=self, fix="check that it is still there")
        if "i/o" in text:
            return InvalidInput("the disk of the ledger reports an error", got=self, fix="check the disk")
        signs = ("malformed", "not a database", "decode", "corrupt", "no such", "too big")
        if isinstance(error, DAMAGES) or any(sign in text for sign in signs):
            return InvalidInput("the ledger is damaged", got=self, fix="restore it from a copy; verify tells more")
        return InvalidInput(f"the ledger cannot be used ({type(error).__name__})", got=self)

    def _has_little_room(self) -> bool:
        try:
            return shutil.disk_usage(self.path.parent).free < LITTLE_ROOM
        except OSError:
            return False


class DatabasePlace(Place):
    """A PostgreSQL database: the tables stand in the first schema of its search path."""

    dialect = "postgresql+psycopg://"
    options: ClassVar[dict[str, Any]] = {"use_native_hstore": False}

    def __init__(self, address: str, wait: float) -> None:
        super().__init__(wait)
        self._name: DatabaseName = read_address(address)
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

    def find(self) -> None:
        with self.plain_refusals(), closing(self.connect(reading=True)) as connection:
            there = connection.execute("SELECT to_regclass('ledger') IS NOT NULL").fetchone()[0]
            if not there:
                raise InvalidInput("there is no ledger", got=self, fix=f"check the address, or make one: {MAKE}")
            allowed = "current_setting('transaction_read_only') = 'off' AND has_table_privilege('entries', 'INSERT')"
            if connection.execute("SELECT to_regclass('entries') IS NOT NULL").fetchone()[0]:
                self.writable = bool(connection.execute(f"SELECT {allowed}").fetchone()[0])

    def create(self, make: Callable[[sa.Connection], None]) -> None:
        with self.plain_refusals(), self.make_engine(reading=False).connect() as connection:
            self._limit_wait(connection)
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION})")
            names = [
                name
                for name in migrations.TABLES
                if connection.exec_driver_sql(f"SELECT to_regclass('{name}') IS NOT NULL").scalar()
            ]
            if "ledger" in names:
                raise InvalidInput(
                    "there is a ledger already, or a table of that name",
                    got=self,
                    fix=f"use it without asking for a new one, or {OTHER}",
                )
            if names:
                raise InvalidInput(
                    "the database has a table of the same name as one of a ledger's", got=self, fix=OTHER
                )
            make(connection)
            self.made = True
            connection.commit()

    def remove(self) -> None:
        with self.plain_refusals(), closing(self.connect(reading=False)) as connection:
            for name in reversed(migrations.TABLES):
                connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute("DROP FUNCTION IF EXISTS refuse_to_change_entries()")
            connection.commit()

    def connect(self, reading: bool) -> Any:
        import psycopg

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

    def begin_to_read(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def begin_to_write(self, connection: sa.Connection) -> None:
        self._limit_wait(connection)
        connection.exec_driver_sql("SELECT id FROM ledger FOR UPDATE")

    def _limit_wait(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(1000 * self.wait))}")

    def find_flaws(self, connection: sa.Connection) -> list[str]:
        names = tuple(migrations.TABLES)
        listed = ", ".join(f"to_regclass('{name}')" for name in names)
        kinds = connection.exec_driver_sql(
            "SELECT c.relname, c.relkind::text, c.relrowsecurity, "
            "EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid) FROM pg_class c "
            f"WHERE c.oid IN (SELECT unnest(ARRAY[{listed}]::oid[]))"
        ).all()
        if any(kind != "r" for _, kind, _, _ in kinds):
            raise InvalidInput("this is no ledger: one of its tables is something else", got=self, fix=OTHER)
        flaws = [f"the table {name} has rules or hides rows" for name, _, secured, ruled in kinds if secured or ruled]
        triggers = connection.exec_driver_sql(
            "SELECT c.relname, t.tgname, t.tgenabled::text, t.tgtype::int, t.tgqual IS NULL, p.prosrc "
            "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
            f"WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT unnest(ARRAY[{listed}]::oid[]))"
        ).all()
        found = {(table, name): rest for table, name, *rest in triggers}
        for name, kind in POSTGRES_TRIGGERS.items():
            rest = found.pop(("entries", name), None)
            if rest is None:
                flaws.append(f"the trigger {name}, which guards the entries, was removed")
            elif rest[0] not in ("O", "A") or rest[1:] != [kind, True, POSTGRES_REFUSAL]:
                flaws.append(f"the trigger {name}, which guards the entries, was changed")
        return flaws + [f"a foreign trigger stands in the ledger: {_shown(name)}" for _, name in found]

    def explain(self, error: BaseException) -> InvalidInput:
        state = str(getattr(error, "sqlstate", None) or "")
        if state in (known := {"25006": self.refuse_writing, "53100": self.refuse_full, "55P03": self.refuse_lock}):
            return known[state]()
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
            )
        return InvalidInput(f"the ledger cannot be used ({kind}, {state})", got=self)


MAKE = "cellrisk ledger create, or Ledger(place, create=True)"
OTHER_FILE = "choose another file"
POSTGRES_TRIGGERS = {"entries_are_not_changed": 1 + 2 + 8 + 16, "entries_are_not_emptied": 2 + 32}
"""As PostgreSQL writes their kinds: 1 for each row, 2 before, 8 delete, 16 update, 32 truncate."""
POSTGRES_REFUSAL = migrations.GUARDS["postgresql"][0].split("$$")[1]
OTHER = "choose another database, or another schema with ?options=-csearch_path%3Dname"


@cache
def _write_tables() -> dict[str, list[str]]:
    """How SQLite keeps the tables of a ledger, word for word."""
    made = {name: CreateTable(table).compile(dialect=sqlite.dialect()) for name, table in migrations.TABLES.items()}
    return {name: str(statement).split() for name, statement in made.items()}


def _shown(name: object) -> str:
    return show_on_one_line(str(name))[:60]


def find_place(place: str | os.PathLike[str], wait: float) -> Place:
    """The place that a path or an address names.

    >>> find_place("releases.ledger", 1.0).dialect
    'sqlite+pysqlite://'
    """
    require_within("wait, in seconds,", wait, least=0, most=LONGEST_WAIT)
    if not isinstance(place, (str, os.PathLike)) or not os.fspath(place):
        raise InvalidInput("a ledger needs a place", allowed="a path, or postgresql://user:password@host/database")
    text = os.fspath(place)
    if "\0" in text:
        raise InvalidInput("a path cannot hold NUL")
    if isinstance(place, str) and "://" in place:
        return DatabasePlace(place, wait)
    return FilePlace(text, wait)
