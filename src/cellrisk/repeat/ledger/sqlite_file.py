"""A ledger in one SQLite file, with two more beside it only while it is in use."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger.backends import DAMAGES, Backend
from cellrisk.repeat.ledger.entry import show_on_one_line
from cellrisk.repeat.ledger.schema import TABLES, TRIGGERS
from cellrisk.system.atomic import is_same_file, keep_inputs, write_new
from cellrisk.system.scratch import private_folder

APPLICATION = 0x63726C67
"""The number in the header of each ledger's file, where SQLite keeps one for that use."""
MOST_OBJECTS = 1000
"""Tables, indexes, views and triggers in a file; a ledger has fewer than twenty."""
PRAGMAS = ("trusted_schema=OFF", "synchronous=FULL", "fullfsync=ON", "cell_size_check=ON")


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

    def connect(self, reading: bool) -> sqlite3.Connection:
        self._check_beside()
        mode = "rw"
        if not self.writable:  # without a log beside it the file alone is the ledger, and nothing need be made there
            mode = "ro&immutable=1"
            with suppress(FileNotFoundError):
                mode = "ro" if Path(f"{self.path}-wal").stat().st_size else mode
        address = f"{self.path.as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=self.wait, isolation_level=None)
        try:
            for pragma in (*PRAGMAS, "query_only=ON" if reading else "journal_mode=WAL"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        except BaseException:
            connection.close()
            raise
        return connection

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
