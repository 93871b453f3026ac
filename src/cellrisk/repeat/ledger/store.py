"""Where a ledger is kept, a SQLite file or a PostgreSQL database: transactions, locks, and errors in plain words.

Together with the migrations this is all that speaks SQL. A connection lives for one transaction, so nothing stays open
between them. An exception of a driver, which may quote a password or what is stored, never leaves with its text.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import migrations
from cellrisk.repeat.ledger.chain import Head, Row
from cellrisk.repeat.ledger.entry import (
    LONGEST_BODY,
    LONGEST_NAME,
    LONGEST_PATH,
    Whereabouts,
    check_cohort,
    check_part_of,
    check_text,
    read_json,
    write_time,
)
from cellrisk.repeat.ledger.heads import HeadFile
from cellrisk.repeat.ledger.journals import NAME
from cellrisk.repeat.ledger.migrations import ENTRIES, LEDGER, PENDING, RELEASED_FILES
from cellrisk.repeat.ledger.places import DAMAGES, FilePlace, Place

WHAT = "cellrisk ledger"
RESERVED, DECIDED = "reserved", "decided"
DAMAGED = "the ledger is damaged"
MOST_ENTRIES = 2**53
MOST_RESCUED = 10_000
"""Entries that are asked for by their numbers where a damage hides which there are."""


class Pending(NamedTuple):
    """A release that is being written."""

    token: str
    state: str
    """``reserved``: its loss is taken, its entry does not stand. ``decided``: the entry stands, the files are moved."""
    body: dict[str, Any]

    @property
    def decided(self) -> bool:
        return self.state == DECIDED

    @property
    def entry(self) -> int | None:
        """The number of its entry, where that is decided."""
        number = self.body.get("entry")
        return number if self.decided and type(number) is int else None


class Session:
    """What can be asked and written inside one transaction."""

    def __init__(self, connection: sa.Connection, place: Place) -> None:
        self.connection = connection
        self.place = place
        self.flaws = place.find_flaws(connection)
        self.head = self._read_head()
        self.flaws += self._find_early()

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
        sound = re.fullmatch("[0-9a-f]{32}", head.id) and re.fullmatch("[0-9a-f]{32}|[0-9a-f]{64}", head.digest)
        if head.schema < 1 or not 0 <= head.number <= MOST_ENTRIES or not sound:
            raise InvalidInput(f"{DAMAGED}: what it says of itself cannot be", got=self.place)
        return head

    def _find_early(self) -> list[str]:
        """Tables that the ledger's schema does not have yet: what stands in them would not be read."""
        schema = self.head.schema
        if schema >= len(migrations.MIGRATIONS):
            return []
        names = set(sa.inspect(self.connection).get_table_names())
        early = [name for name, since in migrations.SINCE.items() if since > schema and name in names]
        return [f"the ledger says that its schema is {schema}, and has the later table {name}" for name in early]

    def rows(self, start: int | None) -> list[Row]:
        """The entries from a number on, in their order; None for all rows, those before the first entry too."""
        asked = sa.select(ENTRIES).order_by(ENTRIES.c.number)
        found = self.connection.execute(asked if start is None else asked.where(ENTRIES.c.number >= start))
        return [_read_row(row) for row in found]

    def row(self, number: int) -> Row | None:
        """One entry by its number."""
        found = self.connection.execute(sa.select(ENTRIES).where(ENTRIES.c.number == number)).first()
        return None if found is None else _read_row(found)

    def rescue_rows(self) -> tuple[list[Row], frozenset[int]]:
        """The entries one by one, where they cannot be read in one go, and the numbers of those that cannot be read."""
        if not isinstance(self.place, FilePlace):
            return self.rows(None), frozenset()
        with suppress(sa.exc.DBAPIError, *DAMAGES, InvalidInput):
            return self.rows(None), frozenset()
        up, down = self._list_numbers(ENTRIES.c.number), self._list_numbers(ENTRIES.c.number.desc())
        low, high = max(up, default=0), min(down, default=self.head.number + 1)
        between = range(low + 1, min(high, low + 1 + MOST_RESCUED))  # behind what cannot be read, from either side
        found = {number: self._rescue(number) for number in sorted({*up, *down, *between})}
        unreadable = frozenset(number for number, row in found.items() if row is False)
        return [row for row in found.values() if isinstance(row, Row)], unreadable

    def _list_numbers(self, order: sa.ColumnElement[int]) -> list[int]:
        """The numbers of the entries that are there, up to the first that cannot be read."""
        numbers: list[int] = []
        with suppress(sa.exc.DBAPIError, *DAMAGES):
            for (number,) in self.connection.execute(sa.select(ENTRIES.c.number).order_by(order)):
                if isinstance(number, int):
                    numbers.append(number)
        return numbers

    def _rescue(self, number: int) -> Row | Literal[False] | None:
        """An entry; None where there is none, False where it cannot be read."""
        try:
            return self.row(number)
        except (sa.exc.DBAPIError, *DAMAGES, InvalidInput):
            return False

    def whereabouts(self, start: int | None = None) -> dict[int, Whereabouts]:
        """Where the files of entries were written, from a number on or all of them; what is no text is left out."""
        if self.head.schema < migrations.SINCE["released_files"]:
            return {}
        asked = sa.select(RELEASED_FILES)
        found = self.connection.execute(asked if start is None else asked.where(RELEASED_FILES.c.number >= start))
        return {
            number: Whereabouts(path, salt)
            for number, path, salt in found
            if isinstance(path, str) and isinstance(salt, str) and len(path) <= LONGEST_PATH
        }

    def append(self, row: Row, written: Whereabouts | None = None) -> None:
        """Writes an entry after the last one, and where its file is."""
        self.connection.execute(sa.insert(ENTRIES).values(row._asdict()))
        self.connection.execute(sa.update(LEDGER).values(number=row.number, digest=row.digest))
        if written is not None:
            named = {"number": row.number, **written._asdict()}
            self.connection.execute(sa.delete(RELEASED_FILES).where(RELEASED_FILES.c.number == row.number))
            self.connection.execute(sa.insert(RELEASED_FILES).values(named))
        self.head = self.head._replace(number=row.number, digest=row.digest)

    def pendings(self) -> list[Pending]:
        """The releases that are being written; refuses where one of them is not as cellrisk writes it."""
        pendings, problems = self.examine_pendings()
        if problems:
            raise InvalidInput(f"{DAMAGED}: {problems[0]}", got=self.place, fix="verify tells more")
        return pendings

    def examine_pendings(self) -> tuple[list[Pending], list[str]]:
        """The releases that are being written, and what is wrong with rows that are not as cellrisk writes them.

        A ledger of an early schema has neither.
        """
        if self.head.schema < migrations.SINCE["pending"]:
            return [], []
        pendings, problems = [], []
        for token, state, body in self.connection.execute(sa.select(PENDING).order_by(PENDING.c.token)):
            if not isinstance(token, str) or not re.fullmatch(NAME, token):
                problems.append("a reservation has a name that cellrisk never gives")
                continue
            try:
                pending = Pending(token, state, read_json(body))
                _check_pending(pending)
                pendings.append(pending)
            except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
                problems.append(f"reservation {token} cannot be read")
        return pendings, problems

    def pending(self, token: str) -> Pending | None:
        """The release of that token, where it is being written."""
        return next((pending for pending in self.pendings() if pending.token == token), None)

    def reserve(self, pending: Pending) -> None:
        """Adds a release that is going to be written: its loss counts as spent from now on."""
        self.connection.execute(sa.insert(PENDING).values({**pending._asdict(), "body": json.dumps(pending.body)}))

    def change(self, pending: Pending) -> None:
        """Writes the row of a release anew; refuses where the row is gone: somebody took its owner for dead."""
        changed = sa.update(PENDING).where(PENDING.c.token == pending.token)
        done = self.connection.execute(changed.values(state=pending.state, body=json.dumps(pending.body)))
        if done.rowcount != 1:
            raise InvalidInput("the reservation was given up meanwhile", fix="reserve again; nothing was written")

    def remove_pending(self, token: str) -> None:
        """Removes the row of a release that is written, or given up."""
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

    def __init__(
        self, place: Place, *, create: bool, clock: Callable[[], datetime], heads: Sequence[HeadFile] = ()
    ) -> None:
        self.place = place
        self.heads = heads
        self.new = create
        for file in heads:
            if place.is_same(file.path):
                raise InvalidInput(
                    "the ledger's head cannot be kept in the ledger", got=file.path, fix="name another file"
                )
        if create:
            for file in heads:
                file.check_room()
            self.id = secrets.token_hex(16)
            place.create(partial(_make, self.id, clock))
        else:
            place.find()
        self._engines = {reading: place.make_engine(reading) for reading in (True, False)}
        if not create:
            with self.read() as session:
                self.id = session.head.id

    def close(self) -> None:
        """Ends its use; nothing is open in it."""
        self._engines = {}

    def remove_unused(self) -> bool:
        """Removes a ledger that was made and never written to; whether it was so."""
        with suppress(CellriskError):
            with self.write() as session:
                if session.head.number or session.pendings():
                    return False
                # Whoever has opened it meanwhile finds, at the next transaction, that this is no ledger.
                session.connection.execute(sa.update(LEDGER).values(what="removed"))
            self.close()
            self.place.remove()
            return True
        return False

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that sees one moment, and can change nothing."""
        with self._connected(reading=True) as connection:
            self.place.begin_to_read(connection)
            yield Session(connection, self.place)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that nobody else writes beside; all of it is written, or nothing.

        The tables are brought to the schema of this version. Refused where another ledger was put in its place, where
        triggers are not as they were made, or where the ledger lacks what is noted of it elsewhere.
        """
        if not self.place.writable:
            raise self.place.refuse_writing()
        with self._connected(reading=False) as connection:
            self.place.begin_to_write(connection)
            session = Session(connection, self.place)
            if session.head.id != self.id:  # the journals, and the entries that were read, are those of the other
                raise InvalidInput(
                    "another ledger was put in the place of this one", got=self.place, fix="open it again"
                )
            if session.flaws:
                raise InvalidInput(
                    f"the ledger was changed by other means, and is not written to: {session.flaws[0]}",
                    got=self.place,
                    fix="verify tells more; go on with a copy that is as it was written",
                )
            for file in self.heads:
                file.check_room()
                file.check(session, self.new)
            before = session.head
            if before.schema < len(migrations.MIGRATIONS):
                for step in migrations.MIGRATIONS[before.schema :]:
                    step(connection)
                connection.execute(sa.update(LEDGER).values(schema_version=len(migrations.MIGRATIONS)))
                session.head = before._replace(schema=len(migrations.MIGRATIONS))
            yield session
            connection.commit()
        if session.head.digest != before.digest:
            for file in self.heads:
                file.note(session.head)

    def has_entry(self, number: int, digest: str) -> bool | None:
        """Whether an entry is written; None where the ledger cannot be asked."""
        try:
            with self.write() as session:  # waits for what a server may still commit, its answer lost
                row = session.row(number)
        except CellriskError:
            return None
        return row is not None and row.digest == digest

    @contextmanager
    def _connected(self, reading: bool) -> Iterator[sa.Connection]:
        if not self._engines:
            raise InvalidInput("the ledger is closed", fix="open it again")
        with self.place.gate(), self.place.plain_refusals(), self._engines[reading].connect() as connection:
            try:
                yield connection
            finally:
                with suppress(Exception):  # a connection that is lost cannot be rolled back, and need not be
                    connection.rollback()


def _make(identity: str, clock: Callable[[], datetime], connection: sa.Connection) -> None:
    """All tables, and the row that says which ledger this is."""
    for step in migrations.MIGRATIONS:
        step(connection)
    named = {"id": identity, "what": WHAT, "schema_version": len(migrations.MIGRATIONS)}
    rest = {"created": write_time(clock()), "number": 0, "digest": identity}
    connection.execute(sa.insert(LEDGER).values(**named, **rest))


def _check_pending(pending: Pending) -> None:
    """Refuses what cellrisk does not write: its loss counts as spent, so it must be one."""
    body = pending.body
    if pending.state not in (RESERVED, DECIDED):
        raise InvalidInput("a reservation is reserved or decided")
    check_cohort(body["cohort"])
    check_part_of(body["part_of"])
    if not isinstance(body["declares"], bool):
        raise InvalidInput("a reservation declares its cohort or does not")
    Loss.from_dict(body["loss"])
    for name in ("host", "since"):
        check_text(name, body[name], LONGEST_NAME, empty=True)


def _read_row(found: Any) -> Row:
    row = Row(*found)
    kinds = (int, str, str, str)
    sound = all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True))
    if not sound or len(row.body) > LONGEST_BODY:
        raise InvalidInput(f"{DAMAGED}: an entry cannot be read", got=_tell_number(row.number), fix="verify tells more")
    return row


def _tell_number(number: object) -> str:
    return f"entry {number}" if isinstance(number, int) else "an entry without a number"
