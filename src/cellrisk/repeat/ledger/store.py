"""One ledger's tables: transactions, what is read and written inside one, and what is checked before that."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger.backends import TABLES, TRIGGERS, VERSION, WHAT, Backend, PostgresDatabase, SqliteFile
from cellrisk.repeat.ledger.chain import Head, Row
from cellrisk.repeat.ledger.checkpoints import Checkpoint
from cellrisk.repeat.ledger.entry import LONGEST_BODY, LONGEST_PATH, WrittenPath, write_time
from cellrisk.system.checks import require_within

LONGEST_WAIT = 86_400.0
MOST_ENTRIES = 2**53
SELECT = "SELECT number, previous, digest, body FROM entries"


def find_backend(location: str | os.PathLike[str], wait: float) -> Backend:
    """The backend of a path or an address.

    >>> find_backend("releases.ledger", 1.0).name
    'sqlite'
    """
    require_within("wait, in seconds,", wait, least=0, most=LONGEST_WAIT)
    if not isinstance(location, (str, os.PathLike)) or not os.fspath(location):
        raise InvalidInput("a ledger needs a location", allowed="a path, or postgresql://user:password@host/database")
    text = os.fspath(location)
    if "\0" in text:
        raise InvalidInput("a path cannot hold NUL")
    return PostgresDatabase(text, wait) if isinstance(location, str) and "://" in text else SqliteFile(text, wait)


class Session:
    """What can be read and written inside one transaction."""

    def __init__(self, connection: Any, backend: Backend) -> None:
        self._connection, self.backend = connection, backend
        try:
            self.flaws = backend.find_flaws(connection)
        except InvalidInput:
            self._refuse_earlier()
            raise
        self.head = self._read_head()

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.backend.execute(self._connection, statement, values)

    def _refuse_earlier(self) -> None:
        """Refuse the ledgers of versions that stored losses differently, with the reason."""
        what: list[tuple[Any, ...]] = []
        with suppress(Exception):
            what = self.execute("SELECT what FROM ledger LIMIT 1")
        if what and str(what[0][0]).startswith("cellrisk ledger"):
            raise InvalidInput(
                "the ledger was made by an earlier version of cellrisk, which stored losses differently",
                got=self.backend,
                fix="make a new one, and record the earlier releases in it with ledger add",
                code="earlier-version",
            )

    def _read_head(self) -> Head:
        rows = self.execute("SELECT what, schema_version, id, created, number, digest FROM ledger LIMIT 2")
        what, version, *stated = rows[0] if len(rows) == 1 else ("", 0)
        if what != WHAT:
            self._refuse_earlier()
            raise self.backend.refuse("no-ledger")
        if version != VERSION:
            raise InvalidInput(
                "the ledger was written by a newer version of cellrisk",
                got=f"schema {str(version)[:20]}",
                allowed=f"schema {VERSION}",
                fix="install that version, or a newer one",
                code="newer-version",
            )
        head = Head(*stated)
        texts = all(isinstance(text, str) for text in (head.id, head.created, head.digest))
        sound = texts and isinstance(head.number, int) and 0 <= head.number <= MOST_ENTRIES
        if not sound or not re.fullmatch("[0-9a-f]{32} ([0-9a-f]{64}|[0-9a-f]{32})", f"{head.id} {head.digest}"):
            raise InvalidInput(
                "invalid ledger header (id, schema version or last entry)", got=self.backend, code="head"
            )
        return head

    def rows(self, start: int) -> Iterator[Row]:
        """The entries from a number on, in their order."""
        for found in self.execute(f"{SELECT} WHERE number >= ? ORDER BY number", start):
            yield _read_row(found)

    def row(self, number: int) -> Row | None:
        """One entry by its number."""
        return self._find("number", number)

    def find_digest(self, digest: str) -> Row | None:
        """One entry by its digest."""
        return self._find("digest", digest)

    def _find(self, column: str, value: Any) -> Row | None:
        return next((_read_row(found) for found in self.execute(f"{SELECT} WHERE {column} = ?", value)), None)

    def rescue_rows(self) -> tuple[list[Row], str]:
        """All entries that can be read; and what hides the others in a damaged file, empty if nothing does."""
        rows: list[Row] = []
        try:
            with self.backend.plain_refusals():
                rows.extend(map(_read_row, self._connection.execute(f"{SELECT} ORDER BY number")))
        except InvalidInput:
            after = f"after entry {rows[-1].number:,}" if rows else "from the first entry on"
            return rows, f"the ledger cannot be read {after}: its file is damaged"
        return rows, ""

    def paths(self, start: int = 0) -> dict[int, WrittenPath]:
        """Where the files of entries were written, from a number on; what is not text is left out."""
        found = self.execute("SELECT number, path, salt FROM released_files WHERE number >= ?", start)
        return {
            number: WrittenPath(path, salt)
            for number, path, salt in found
            if isinstance(path, str) and isinstance(salt, str) and len(path) <= LONGEST_PATH
        }

    def append(self, row: Row, written: WrittenPath | None = None) -> None:
        """Write an entry after the last one, and where its file is."""
        self.execute("INSERT INTO entries (number, previous, digest, body) VALUES (?, ?, ?, ?)", *row)
        self.execute("UPDATE ledger SET number = ?, digest = ?", row.number, row.digest)
        if written is not None:
            self.execute("DELETE FROM released_files WHERE number = ?", row.number)
            self.execute("INSERT INTO released_files (number, path, salt) VALUES (?, ?, ?)", row.number, *written)
        self.head = self.head._replace(number=row.number, digest=row.digest)

    def find_faults(self) -> list[str]:
        """What the database itself finds wrong with its file."""
        return self.backend.find_faults(self._connection)


class Store:
    """One ledger's tables."""

    def __init__(
        self, backend: Backend, *, create: bool, clock: Callable[[], datetime], checkpoints: Sequence[Checkpoint] = ()
    ) -> None:
        self.backend, self.checkpoints, self.new, self._open = backend, checkpoints, create, True
        for file in checkpoints:
            if backend.is_same(file.path):
                raise InvalidInput(
                    "the checkpoint cannot be kept in the ledger", got=file.path, fix="name another file"
                )
        if create:
            for file in checkpoints:
                file.check_writable()
            self.id = secrets.token_hex(16)
            backend.create(lambda connection: self._make(connection, clock))
        else:
            backend.find()
            with self.read() as session:
                self.id = session.head.id

    def _make(self, connection: Any, clock: Callable[[], datetime]) -> None:
        for statement in (*TABLES.values(), *TRIGGERS[self.backend.name]):
            self.backend.execute(connection, statement)
        values = (self.id, WHAT, VERSION, write_time(clock()), 0, self.id)
        self.backend.execute(connection, "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", values)

    def close(self) -> None:
        """End its use; nothing is open in it."""
        self._open = False

    def remove_unused(self) -> bool:
        """Remove a ledger without entries; whether it had none."""
        with suppress(CellriskError):
            with self.write() as session:
                if session.head.number:
                    return False
                session.execute("UPDATE ledger SET what = 'removed'")  # another process that has it open is refused
            self.close()
            self.backend.remove()
            return True
        return False

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that sees one moment, and can change nothing."""
        self._require_open()
        with self.backend.opened(reading=True) as connection:
            yield Session(connection, self.backend)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction without other writers; all of it is written, or nothing.

        Refused if the ledger was exchanged, if its triggers were changed, or if it lacks an entry of a checkpoint.
        """
        self._require_open()
        if not self.backend.writable:
            raise self.backend.refuse("read-only")
        with self.backend.opened(reading=False) as connection:
            session = Session(connection, self.backend)
            if session.head.id != self.id:
                raise InvalidInput(
                    "the ledger was exchanged for another", got=self.backend, fix="open it again", code="exchanged"
                )
            if session.flaws:
                raise InvalidInput(
                    f"the ledger was changed by other means, and is not written to: {session.flaws[0]}",
                    got=self.backend,
                    fix="ledger verify shows more; continue with an unchanged copy",
                    code="changed",
                )
            for file in self.checkpoints:
                file.check_writable()
                file.check(session, self.new)
            before = session.head
            yield session
            self.backend.commit(connection)
        if session.head.digest != before.digest:
            for file in self.checkpoints:
                file.note(session.head)

    def _require_open(self) -> None:
        if not self._open:
            raise InvalidInput("the ledger is closed", fix="open it again", code="closed")


def _read_row(found: Sequence[Any]) -> Row:
    row = Row(*found)
    sound = all(isinstance(value, kind) for value, kind in zip(row, (int, str, str, str), strict=True))
    if not sound or len(row.body) > LONGEST_BODY:
        which = f"entry {row.number}" if isinstance(row.number, int) else "an entry without a number"
        raise InvalidInput("the ledger is damaged: an entry cannot be read", got=which, fix="ledger verify shows more")
    return row
