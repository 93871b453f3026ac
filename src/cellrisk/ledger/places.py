"""The two places of a ledger, a SQLite file and a PostgreSQL database: how each is found, locked, and explained."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.tables.databases.database import Place as DatabaseName
from cellrisk.tables.databases.database import explain_connection, forget, read_address

MAGIC = b"SQLite format 3\0"
APPLICATION = 0x63726C67
"""Stands in the header of each ledger's file, where SQLite keeps a number for that use."""
DAMAGES = (MemoryError, UnicodeDecodeError)
"""What Python raises for SQLite at sizes that cannot be, and at a message that quotes what is no text."""
LITTLE_ROOM = 1 << 18
LONGEST_WAIT = 86_400.0
CREATION = 0x63726C6765727370
"""The advisory lock under which tables are made in PostgreSQL."""
GATES: dict[Path, threading.RLock] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=GATES.clear)


class Place(ABC):
    """Where a ledger is, or will be."""

    dialect: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    lock_folder: Path
    """Where those who write leave a file that tells whether they live."""
    writable: bool = True
    trusted: bool = False
    """Whether what is there was seen to be a ledger: before that, nothing may be changed."""

    def __init__(self, wait: float) -> None:
        self.wait = wait

    @abstractmethod
    def find(self, create: bool) -> bool:
        """Whether a ledger seems to be there; refuses what is something else, without a change to it."""

    @abstractmethod
    def connect(self) -> Any:
        """A new connection of the driver."""

    @abstractmethod
    def begin_to_read(self, connection: sa.Connection) -> None:
        """Begins a transaction that sees one moment."""

    @abstractmethod
    def begin_to_write(self, connection: sa.Connection) -> None:
        """Begins a transaction that waits for a lock as long as it may."""

    @abstractmethod
    def lock(self, connection: sa.Connection) -> None:
        """Keeps others from writing until the transaction ends."""

    @abstractmethod
    def holds_ledger(self, connection: sa.Connection) -> bool:
        """Whether the tables are there."""

    @abstractmethod
    def prepare(self, connection: sa.Connection) -> None:
        """Makes sure, before tables are made, that nobody else makes them and that nothing stands in their way."""

    @abstractmethod
    def explain(self, error: BaseException) -> InvalidInput:
        """What can be said of a driver's error without its words."""

    def place_sign(self, identity: str, token: str) -> Path:
        """Where the sign of life of a reservation stands."""
        return self.lock_folder / f".cellrisk-{identity}-{token}.lock"

    def find_signs(self, identity: str) -> dict[str, Path]:
        """The signs of life that are there, by the tokens of their reservations."""
        start, end = self.place_sign(identity, "*").name.split("*")
        with suppress(OSError):
            names = [name for name in os.listdir(self.lock_folder) if name.startswith(start) and name.endswith(end)]
            return {name[len(start) : -len(end)]: self.lock_folder / name for name in names}
        return {}

    @contextmanager
    def gate(self) -> Iterator[None]:
        """Those of one process that must not be inside at once."""
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
        self.lock_folder = self.path.parent
        self._made = False

    def __str__(self) -> str:
        return str(self.path)

    def find(self, create: bool) -> bool:
        self._check_path(create)
        with self.gate():  # to close the file would end the locks that SQLite holds on it in this process
            try:
                with self.path.open("rb") as stream:
                    header = stream.read(100)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise InvalidInput("the ledger cannot be read", got=f"{self} ({error.strerror})") from None
        if header and (not header.startswith(MAGIC) or header[68:72] != APPLICATION.to_bytes(4, "big")):
            raise InvalidInput("the file is no ledger", got=self, fix="choose another name")
        self._made = bool(header)
        if not header and not create:
            raise InvalidInput("the file is empty, and no ledger", got=self)
        self.writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        return self._made

    def _check_path(self, create: bool) -> None:
        if self.path.is_dir():
            raise InvalidInput("the ledger's path is a folder", got=self, fix="give it a file name")
        if not self.path.parent.is_dir():
            raise InvalidInput("the folder of the ledger does not exist", got=self.path.parent, fix="make it first")
        if self.path.exists() and not self.path.is_file():
            raise InvalidInput("the ledger's path is no file", got=self, fix="choose another name")
        if self.path.exists():
            return
        if not create:
            raise InvalidInput("there is no ledger", got=self, fix="check its name")
        if not os.access(self.path.parent, os.W_OK):
            raise InvalidInput("no ledger can be made there", got=self, fix="choose another place")

    def connect(self) -> sqlite3.Connection:
        if self.writable:
            mode = "rw" if self._made else "rwc"
        else:  # without a log beside it the file alone is the ledger, and nothing need be made beside it
            log = Path(f"{self.path}-wal")
            mode = "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"
        address = f"{self.path.as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            address, uri=True, timeout=self.wait, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in ("trusted_schema=OFF", "synchronous=FULL", "fullfsync=ON", "cell_size_check=ON"):
                connection.execute(f"PRAGMA {pragma}")
            if self.writable and self.trusted:
                self._use_log(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Write-ahead logging from now on; where others are at work on a new file, the next connection sees to it."""
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise

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

    def lock(self, connection: sa.Connection) -> None:
        """The transaction itself is the lock."""

    def holds_ledger(self, connection: sa.Connection) -> bool:
        found = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master WHERE name = 'ledger'").scalar()
        return bool(found)

    def prepare(self, connection: sa.Connection) -> None:
        if self.holds_ledger(connection):
            return
        if connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar():
            raise InvalidInput("the file is no ledger", got=self, fix="choose another name")
        # In the transaction that makes the tables, and before there is a log: a file in use always carries it.
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION}")
        self._made = True

    def explain(self, error: BaseException) -> InvalidInput:
        text = str(error).lower()
        if "locked" in text or "busy" in text:
            return self.refuse_lock()
        if "readonly" in text:
            return InvalidInput("the ledger can be read only", got=self, fix="ask for the right to write to it")
        if "full" in text or (("unable to open" in text or "i/o" in text) and self._has_little_room()):
            return InvalidInput("the disk of the ledger is full: nothing was written", got=self, fix="make room")
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
        self.lock_folder = Path(tempfile.gettempdir())

    def __str__(self) -> str:
        return str(self._name)

    def find(self, create: bool) -> bool:
        with self.plain_refusals(), closing(self.connect()) as connection:
            names = ("ledger", "entries", "pending")
            query = f"SELECT {', '.join(f'to_regclass(%s) IS NOT NULL AS {name}' for name in names)}"
            there, *others = connection.execute(query, names).fetchone()
            if there:
                allowed = (
                    "current_setting('transaction_read_only') = 'off' AND has_table_privilege('entries', 'INSERT')"
                )
                if others[0]:
                    self.writable = bool(connection.execute(f"SELECT {allowed}").fetchone()[0])
                return True
        if not create:
            raise InvalidInput("there is no ledger", got=self, fix="check the address")
        if any(others):
            raise InvalidInput("the database has a table of the same name as one of a ledger's", got=self, fix=OTHER)
        return False

    def connect(self) -> Any:
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
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(1000 * self.wait))}")

    def lock(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SELECT id FROM ledger FOR UPDATE")

    def holds_ledger(self, connection: sa.Connection) -> bool:
        return bool(connection.exec_driver_sql("SELECT to_regclass('ledger') IS NOT NULL").scalar())

    def prepare(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION})")

    def explain(self, error: BaseException) -> InvalidInput:
        state = str(getattr(error, "sqlstate", None) or "")
        for start, what, fix in (
            ("25006", "the ledger can be read only", "ask for the right to write to it"),
            ("42501", "this account may not use the ledger so", "ask for the right to read or write its tables"),
            ("53100", "the disk of the ledger is full: nothing was written", "make room"),
            ("53", "the server is out of memory or connections", "try again"),
            ("42", "this is no ledger: it has tables of the same names", OTHER),
            ("3F", "the schema for the ledger's tables does not exist", "make it first"),
            ("40", "the server ended the transaction because of another", "try again"),
        ):
            if state.startswith(start):
                return InvalidInput(what, got=self, fix=fix)
        if state.startswith("55P03"):
            return self.refuse_lock()
        kind = type(error).__name__
        if not state or state.startswith(("08", "57")):
            return InvalidInput(
                "the connection to the ledger was lost",
                got=f"{self} ({kind})",
                fix="look what was written before you try again",
            )
        return InvalidInput(f"the ledger cannot be used ({kind}, {state})", got=self)


OTHER = "choose another database, or another schema with ?options=-csearch_path%3Dname"


def find_place(place: str | os.PathLike[str], wait: float) -> Place:
    """The place that a path or an address names.

    >>> find_place("releases.ledger", 1.0).dialect
    'sqlite+pysqlite://'
    """
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not 0 <= wait <= LONGEST_WAIT:
        raise InvalidInput("wait must be seconds", got=wait, allowed=f"from 0 to {LONGEST_WAIT:g}")
    if not isinstance(place, (str, os.PathLike)) or not os.fspath(place):
        raise InvalidInput("a ledger needs a place", allowed="a path, or postgresql://user:password@host/database")
    text = os.fspath(place)
    if "\0" in text:
        raise InvalidInput("a path cannot hold NUL")
    if isinstance(place, str) and "://" in place:
        return DatabasePlace(place, wait)
    return FilePlace(text, wait)
