"""Where a ledger is kept, a SQLite file or a PostgreSQL database: transactions, locks, and errors in plain words.

Together with the migrations this is all that speaks SQL. A connection lives for one transaction, so nothing stays open
between them. An exception of a driver, which may quote a password or what is stored, never leaves with its text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from cellrisk.errors import InvalidInput
from cellrisk.ledger import migrations
from cellrisk.ledger.chain import Head, Row
from cellrisk.ledger.entry import write_time
from cellrisk.ledger.migrations import ENTRIES, LEDGER, PENDING
from cellrisk.ledger.places import DAMAGES, FilePlace, Place

WHAT = "cellrisk ledger"
RESERVED, DECIDED = "reserved", "decided"
DAMAGED = "the ledger is damaged"
SMALLEST_ENTRY = 64
"""Bytes that an entry takes at least: as many as its digest."""


class Pending(NamedTuple):
    """A release that is being written."""

    token: str
    state: str
    """``reserved``: its loss is taken, its entry does not stand. ``decided``: the entry stands, the files are moved."""
    body: dict[str, Any]


class Session:
    """What can be asked and written inside one transaction."""

    def __init__(self, connection: sa.Connection, place: Place) -> None:
        self.connection = connection
        self.place = place
        self.head = self._read_head()

    def _read_head(self) -> Head:
        """What the ledger says of itself."""
        columns = ("id", "schema_version", "created", "number", "digest", "what")
        rows = self.connection.execute(sa.select(*(LEDGER.c[name] for name in columns)).limit(2)).all()
        kinds = (str, int, str, int, str, str)
        if len(rows) != 1 or not all(isinstance(value, kind) for value, kind in zip(rows[0], kinds, strict=True)):
            raise InvalidInput(f"{DAMAGED}: it does not say which one it is", got=self.place)
        *told, what = rows[0]
        if what != WHAT:
            raise InvalidInput("this is no ledger", got=self.place, fix="choose another place")
        head = Head(*told)
        if head.schema > len(migrations.MIGRATIONS):
            raise InvalidInput(
                "the ledger was written by a newer version of cellrisk",
                got=f"schema {head.schema}",
                allowed=f"up to schema {len(migrations.MIGRATIONS)}",
                fix="install that version, or a newer one",
            )
        if head.schema < 1 or head.number < 0:
            raise InvalidInput(f"{DAMAGED}: what it says of itself cannot be", got=self.place)
        return head

    def rows(self, start: int = 1) -> list[Row]:
        """The entries from a number on, in their order."""
        found = self.connection.execute(sa.select(ENTRIES).where(ENTRIES.c.number >= start).order_by(ENTRIES.c.number))
        return [_read_row(row) for row in found]

    def row(self, number: int) -> Row | None:
        """One entry by its number."""
        found = self.connection.execute(sa.select(ENTRIES).where(ENTRIES.c.number == number)).first()
        return None if found is None else _read_row(found)

    def rescue_rows(self) -> tuple[list[Row], frozenset[int]]:
        """The entries one by one, where they cannot be read in one go, and the numbers of those that cannot be read."""
        if not isinstance(self.place, FilePlace):
            return self.rows(), frozenset()
        with suppress(sa.exc.DBAPIError, *DAMAGES, InvalidInput):
            return self.rows(), frozenset()
        most = min(self.head.number, self.place.path.stat().st_size // SMALLEST_ENTRY)
        found = {number: self._rescue(number) for number in range(1, most + 1)}
        unreadable = frozenset(number for number, row in found.items() if row is False)
        return [row for row in found.values() if isinstance(row, Row)], unreadable

    def _rescue(self, number: int) -> Row | Literal[False] | None:
        """An entry; None where there is none, False where it cannot be read."""
        try:
            return self.row(number)
        except (sa.exc.DBAPIError, *DAMAGES, InvalidInput):
            return False

    def append(self, row: Row) -> None:
        """Writes an entry after the last one."""
        self.connection.execute(sa.insert(ENTRIES).values(row._asdict()))
        self.connection.execute(sa.update(LEDGER).values(number=row.number, digest=row.digest))
        self.head = self.head._replace(number=row.number, digest=row.digest)

    def pendings(self) -> list[Pending]:
        """The releases that are being written; a ledger of the first schema has none."""
        if self.head.schema < 2:
            return []
        found = self.connection.execute(sa.select(PENDING).order_by(PENDING.c.token))
        try:
            pendings = [Pending(token, state, json.loads(body)) for token, state, body in found]
        except (TypeError, ValueError):
            pendings = [Pending("", "", {})]
        for pending in pendings:
            if pending.state not in (RESERVED, DECIDED) or not isinstance(pending.body, dict):
                raise InvalidInput(f"{DAMAGED}: its reservations cannot be read", got=self.place)
        return pendings

    def pending(self, token: str) -> Pending | None:
        """One of them."""
        return next((pending for pending in self.pendings() if pending.token == token), None)

    def reserve(self, pending: Pending) -> None:
        """Adds one."""
        self.connection.execute(sa.insert(PENDING).values({**pending._asdict(), "body": json.dumps(pending.body)}))

    def change(self, pending: Pending) -> None:
        """Writes one anew; refuses where it is gone: somebody took its owner for dead."""
        changed = sa.update(PENDING).where(PENDING.c.token == pending.token)
        done = self.connection.execute(changed.values(state=pending.state, body=json.dumps(pending.body)))
        if done.rowcount != 1:
            raise InvalidInput("the reservation was given up meanwhile", fix="reserve again; nothing was written")

    def settle(self, token: str) -> None:
        """Removes one."""
        self.connection.execute(sa.delete(PENDING).where(PENDING.c.token == token))

    def find_faults(self) -> list[str]:
        """What the engine itself finds wrong with its file."""
        if not isinstance(self.place, FilePlace):
            return []
        try:
            found = [str(text) for (text,) in self.connection.exec_driver_sql("PRAGMA integrity_check(5)")]
        except (sa.exc.DBAPIError, *DAMAGES):
            found = ["the check itself fails"]
        return [] if found == ["ok"] else found


class Store:
    """One ledger's tables."""

    def __init__(self, place: Place, *, create: bool, clock: Callable[[], datetime]) -> None:
        self.place = place
        self._engine: sa.Engine | None = sa.create_engine(
            place.dialect,
            **place.options,
            creator=place.connect,
            poolclass=sa.NullPool,
            pool_reset_on_return=None,
            hide_parameters=True,
        )
        try:
            self._open(create, clock)
            place.trusted = True
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends its use; nothing is open in it."""
        if self._engine is not None:
            self._engine.dispose()
        self._engine = None

    @property
    def writable(self) -> bool:
        return self.place.writable

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that sees one moment, and changes nothing."""
        with self._connected() as connection:
            self.place.begin_to_read(connection)
            yield Session(connection, self.place)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that nobody else writes beside; all of it is written, or nothing."""
        if not self.writable:
            raise InvalidInput("the ledger can be read only", got=self.place, fix="ask for the right to write to it")
        with self._connected() as connection:
            self.place.begin_to_write(connection)
            self.place.lock(connection)
            yield Session(connection, self.place)
            connection.commit()

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        if self._engine is None:
            raise InvalidInput("the ledger is closed", fix="open it again")
        with self.place.gate(), self.place.plain_refusals(), self._engine.connect() as connection:
            try:
                yield connection
            finally:
                with suppress(Exception):  # a connection that is lost cannot be rolled back, and need not be
                    connection.rollback()

    def _open(self, create: bool, clock: Callable[[], datetime]) -> None:
        """Finds the ledger, makes it where there is none, and brings it to the schema of this version."""
        if self.place.find(create):
            with self._connected() as connection:
                self.place.begin_to_read(connection)
                there = self.place.holds_ledger(connection)  # not where a process died when it made this file
                schema = Session(connection, self.place).head.schema if there else 0
            if schema == len(migrations.MIGRATIONS) or (schema and not self.writable):
                return
        with self._connected() as connection:
            self.place.begin_to_write(connection)
            self.place.prepare(connection)
            schema = Session(connection, self.place).head.schema if self.place.holds_ledger(connection) else 0
            for step in migrations.MIGRATIONS[schema:]:
                step(connection)
            if schema:
                connection.execute(sa.update(LEDGER).values(schema_version=len(migrations.MIGRATIONS)))
            else:
                identity = secrets.token_hex(16)
                named = {"id": identity, "what": WHAT, "schema_version": len(migrations.MIGRATIONS)}
                rest = {"created": write_time(clock()), "number": 0, "digest": identity}
                connection.execute(sa.insert(LEDGER).values(**named, **rest))
            connection.commit()


def _read_row(found: Any) -> Row:
    row = Row(*found)
    kinds = (int, str, str, str)
    if not all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
        raise InvalidInput(f"{DAMAGED}: an entry cannot be read", got=f"entry {row.number}", fix="verify tells more")
    return row
