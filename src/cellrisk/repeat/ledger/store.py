"""One ledger's tables: transactions, what can be asked and written inside one, and what is checked before that."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger.backends import DAMAGES, Backend
from cellrisk.repeat.ledger.chain import Head, Row
from cellrisk.repeat.ledger.checkpoints import Checkpoint
from cellrisk.repeat.ledger.entry import LONGEST_BODY, LONGEST_PATH, Whereabouts, write_time
from cellrisk.repeat.ledger.schema import EARLIER, GUARDS, TABLES, VERSION, WHAT

MOST_ENTRIES = 2**53
MOST_RESCUED = 10_000
"""Entries that are asked for by their numbers where a damage hides which there are."""
SELECT = "SELECT number, previous, digest, body FROM entries"


class Session:
    """What can be asked and written inside one transaction."""

    def __init__(self, connection: Any, backend: Backend) -> None:
        self._connection = connection
        self.backend = backend
        self.flaws = backend.find_flaws(connection)
        self.head = self._read_head()

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.backend.execute(self._connection, statement, values)

    def _read_head(self) -> Head:
        """What the ledger says of itself."""
        rows = self.execute("SELECT id, schema_version, created, number, digest, what FROM ledger LIMIT 2")
        kinds = (str, int, str, int, str, str)
        if len(rows) != 1 or not all(isinstance(value, kind) for value, kind in zip(rows[0], kinds, strict=True)):
            raise InvalidInput("the ledger is damaged: it does not say which one it is", got=self.backend, code="head")
        *stated, what = rows[0]
        head = Head(*stated)
        if what == EARLIER:
            raise InvalidInput(
                "the ledger was made by an earlier version of cellrisk, which kept losses without their events",
                got=self.backend,
                fix="begin a new one, and record the earlier releases in it with ledger add",
                code="earlier-version",
            )
        if what != WHAT:
            raise self.backend.refuse("no-ledger")
        if head.schema > VERSION:
            raise InvalidInput(
                "the ledger was written by a newer version of cellrisk",
                got=f"schema {head.schema}",
                allowed=f"schema {VERSION}",
                fix="install that version, or a newer one",
                code="newer-version",
            )
        sound = re.fullmatch("[0-9a-f]{32}", head.id) and re.fullmatch("[0-9a-f]{64}|[0-9a-f]{32}", head.digest)
        if head.schema < 1 or not 0 <= head.number <= MOST_ENTRIES or not sound:
            raise InvalidInput(
                "invalid ledger header (id, schema version or last entry)", got=self.backend, code="head"
            )
        return head

    def rows(self, start: int | None) -> list[Row]:
        """The entries from a number on, in their order; None for all rows, those before the first entry too."""
        if start is None:
            return [_read_row(row) for row in self.execute(f"{SELECT} ORDER BY number")]
        return [_read_row(row) for row in self.execute(f"{SELECT} WHERE number >= ? ORDER BY number", start)]

    def row(self, number: int) -> Row | None:
        """One entry by its number."""
        found = self.execute(f"{SELECT} WHERE number = ?", number)
        return _read_row(found[0]) if found else None

    def rescue_rows(self) -> tuple[list[Row], frozenset[int]]:
        """The entries one by one, where they cannot be read in one go, and the numbers of those that cannot be read."""
        damages = (*self._damages, InvalidInput)
        with suppress(*damages):
            return self.rows(None), frozenset()
        numbers: set[int] = set()
        for order in ("ASC", "DESC"):  # up to the first that cannot be read, from either side
            with suppress(*damages):
                for (number,) in self._connection.execute(f"SELECT number FROM entries ORDER BY number {order}"):
                    numbers |= {number} if isinstance(number, int) else set()
        numbers |= set(range(1, min(self.head.number, MOST_RESCUED) + 1))
        rows, unreadable = [], set()
        for number in sorted(numbers):
            row: Row | None = None
            unreadable.add(number)
            with suppress(*damages):
                row = self.row(number)
                unreadable.discard(number)
            rows += [row] if row is not None else []
        return rows, frozenset(unreadable)

    @property
    def _damages(self) -> tuple[type[Exception], ...]:
        """What a damaged file raises."""
        return (sqlite3.Error, *DAMAGES) if self.backend.name == "sqlite" else DAMAGES

    def whereabouts(self, start: int = 0) -> dict[int, Whereabouts]:
        """Where the files of entries were written, from a number on; what is no text is left out."""
        found = self.execute("SELECT number, path, salt FROM released_files WHERE number >= ?", start)
        return {
            number: Whereabouts(path, salt)
            for number, path, salt in found
            if isinstance(path, str) and isinstance(salt, str) and len(path) <= LONGEST_PATH
        }

    def append(self, row: Row, written: Whereabouts | None = None) -> None:
        """Writes an entry after the last one, and where its file is."""
        self.execute("INSERT INTO entries (number, previous, digest, body) VALUES (?, ?, ?, ?)", *row)
        self.execute("UPDATE ledger SET number = ?, digest = ?", row.number, row.digest)
        if written is not None:
            self.execute("DELETE FROM released_files WHERE number = ?", row.number)
            self.execute("INSERT INTO released_files (number, path, salt) VALUES (?, ?, ?)", row.number, *written)
        self.head = self.head._replace(number=row.number, digest=row.digest)

    def find_faults(self) -> list[str]:
        """What the engine itself finds wrong with its file."""
        if self.backend.name != "sqlite":
            return []
        try:
            found = [str(text) for (text,) in self.execute("PRAGMA integrity_check(5)")]
        except self._damages:
            found = ["the check itself fails"]
        return [] if found == ["ok"] else found


class Store:
    """One ledger's tables."""

    def __init__(
        self,
        backend: Backend,
        *,
        create: bool,
        clock: Callable[[], datetime],
        checkpoints: Sequence[Checkpoint] = (),
    ) -> None:
        self.backend, self.checkpoints, self.new, self._open = backend, checkpoints, create, True
        for file in checkpoints:
            if backend.is_same(file.path):
                raise InvalidInput(
                    "the ledger's head cannot be kept in the ledger", got=file.path, fix="name another file"
                )
        if create:
            for file in checkpoints:
                file.check_room()
            self.id = secrets.token_hex(16)
            backend.create(lambda connection: self._make(connection, clock))
        else:
            backend.find()
            with self.read() as session:
                self.id = session.head.id

    def _make(self, connection: Any, clock: Callable[[], datetime]) -> None:
        """All tables, and the row that says which ledger this is."""
        for statement in (*TABLES.values(), *GUARDS[self.backend.name]):
            self.backend.execute(connection, statement)
        values = (self.id, WHAT, VERSION, write_time(clock()), 0, self.id)
        self.backend.execute(connection, "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", values)

    def close(self) -> None:
        """Ends its use; nothing is open in it."""
        self._open = False

    def remove_unused(self) -> bool:
        """Removes a ledger that was made and never written to; whether it was so."""
        with suppress(CellriskError):
            with self.write() as session:
                if session.head.number:
                    return False
                # Whoever has opened it meanwhile finds, at the next transaction, that this is no ledger.
                session.execute("UPDATE ledger SET what = 'removed'")
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
        """A transaction that nobody else writes beside; all of it is written, or nothing.

        Refused where another ledger was put in its place, where triggers are not as they were made, or where the ledger
        lacks what is noted of it elsewhere.
        """
        self._require_open()
        if not self.backend.writable:
            raise self.backend.refuse("read-only")
        with self.backend.opened(reading=False) as connection:
            session = Session(connection, self.backend)
            if session.head.id != self.id:  # the entries that were read are those of the other
                raise InvalidInput(
                    "another ledger was put in the place of this one",
                    got=self.backend,
                    fix="open it again",
                    code="exchanged",
                )
            if session.flaws:
                raise InvalidInput(
                    f"the ledger was changed by other means, and is not written to: {session.flaws[0]}",
                    got=self.backend,
                    fix="verify tells more; go on with a copy that is as it was written",
                    code="changed",
                )
            for file in self.checkpoints:
                file.check_room()
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

    def has_entry(self, number: int, digest: str) -> bool | None:
        """Whether an entry is written; None where the ledger cannot be asked."""
        try:
            with self.write() as session:  # waits for what a server may still commit, its answer lost
                row = session.row(number)
        except CellriskError:
            return None
        return row is not None and row.digest == digest


def _read_row(found: Sequence[Any]) -> Row:
    row = Row(*found)
    sound = all(isinstance(value, kind) for value, kind in zip(row, (int, str, str, str), strict=True))
    if not sound or len(row.body) > LONGEST_BODY:
        which = f"entry {row.number}" if isinstance(row.number, int) else "an entry without a number"
        raise InvalidInput("the ledger is damaged: an entry cannot be read", got=which, fix="verify tells more")
    return row
