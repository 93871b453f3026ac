"""`Ledger`: the record of what was released about whom, which is only ever added to."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing.saving import folder_of
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger.chain import Head, Row, check_links, compute_digest, write_canonically
from cellrisk.repeat.ledger.descriptions import find_lost
from cellrisk.repeat.ledger.entry import (
    KINDS,
    LONGEST_BODY,
    LONGEST_NAME,
    Cohort,
    Entry,
    Limit,
    ReleasedFile,
    Whereabouts,
    describe_release,
    read_loss,
    write_time,
)
from cellrisk.repeat.ledger.heads import find_heads, write_head
from cellrisk.repeat.ledger.journals import PAUSE, Note, is_alive, list_journals, open_journal
from cellrisk.repeat.ledger.limits import LedgerState, Reserved
from cellrisk.repeat.ledger.verification import Verification, compare_files, examine
from cellrisk.system.checks import require_whole_number
from cellrisk.system.extras import extra_needed
from cellrisk.system.stopping import NOT_KNOWN, note_outcome
from cellrisk.system.text import number_of
from cellrisk.system.words import Neighbours, Operator, require_word

if TYPE_CHECKING:
    from cellrisk.repeat.accounting.composition import Composition
    from cellrisk.repeat.ledger.pairing import Reservation
    from cellrisk.repeat.ledger.store import Pending, Session

MOST_LOOKS = 5
RESTORE = (
    "restore the newest copy of the ledger; if there is none, move these files to another folder, and record their "
    "loss with ledger add without naming the file"
)


class Ledger:
    """An append-only record of releases: who is covered, what was released, with which loss, when, and for what.

    To open a ledger and to read from it changes nothing: what dead processes have left is finished or taken back by the
    next who writes.

    Entries are chained by their digests, so that `verify` finds what was changed. Releases that are not finished count
    as spent. A person is covered by the releases on the cohort they are in and on those that contain it; cohorts of
    which none is part of the other share nobody.

    Parameters
    ----------
    place
        A path of one SQLite file, or postgresql://user:password@host/database.
    create
        Makes a new ledger there, and refuses where something is already; without it a ledger has to be there.
    wait
        Seconds to wait for a ledger that others have locked.
    clock
        What tells the time; the order of entries is that of their numbers, whatever it says.
    head
        A file outside in which the last entry is noted after every write, and without which an older copy of the ledger
        could not be told from the newest; by default the one that CELLRISK_LEDGER_HEAD names.

    >>> import tempfile
    >>> from cellrisk.noise.mechanisms import mechanism
    >>> with tempfile.TemporaryDirectory() as folder, Ledger(f"{folder}/ledger", create=True) as ledger:
    ...     limit = ledger.set_limit("everyone", epsilon=0.3)
    ...     for attribute in ("job", "income", "illness"):
    ...         entry = ledger.add(
    ...             attribute=attribute, quasi_identifiers=["age", "sex"], loss=mechanism("laplace", epsilon=0.1)
    ...         )
    ...     print(entry.number, ledger.spent("everyone").epsilon, ledger.verify().ok)
    5 0.3 True
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        create: bool = False,
        wait: float = 30.0,
        clock: Callable[[], datetime] | None = None,
        head: str | os.PathLike[str] | None = None,
    ) -> None:
        with extra_needed():
            from cellrisk.repeat.ledger.places import find_place
            from cellrisk.repeat.ledger.store import Store

        self._clock = clock or _tell_time
        self._known: tuple[Entry, ...] = ()
        found, heads = find_place(place, wait), find_heads(head)
        try:
            self._store = Store(found, create=create, clock=self._clock, heads=heads)
            if create:
                note_outcome(f"the new ledger stands, and is empty: {found}")
        except BaseException:
            if found.made:
                with suppress(CellriskError):
                    Store(found, create=False, clock=self._clock).remove_unused()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the use of the ledger; what is on the disk is one file."""
        self._store.close()

    def remove_unused(self) -> None:
        """Removes a ledger that was made and never written to, so that what was refused leaves nothing behind."""
        if self._store.remove_unused():
            note_outcome("")

    def note_head(self) -> str:
        """Notes the last entry in the file that keeps the head, if there is one; returns the line for any other place.

        A ledger of which nothing is noted there yet begins to be watched.
        """
        with self._store.read() as session:
            for file in self._store.heads:
                if self._store.new:
                    file.check(session, new=True)
                else:
                    file.begin(session)
            for file in self._store.heads:
                file.note(session.head)
            return write_head(session.head)

    @property
    def place(self) -> str:
        """Where the ledger is, as far as a message may say."""
        return str(self._store.place)

    @property
    def id(self) -> str:
        """Its random name, which its first entry follows."""
        return self._store.id

    @property
    def writable(self) -> bool:
        """Whether entries can be added."""
        return self._store.place.writable

    @property
    def head(self) -> Head:
        """Its last entry: number and digest. Noted elsewhere, it later shows whether entries were lost or rewritten."""
        with self._store.read() as session:
            return session.head

    def add(
        self,
        *,
        attribute: str | None,
        quasi_identifiers: str | Sequence[str],
        loss: Mechanism | Loss,
        cohort: str | None = "everyone",
        purpose: str = "",
        file: str | os.PathLike[str] | None = None,
        new_cohort: bool = False,
        part_of: str | None = None,
    ) -> Entry:
        """Records a release that was made; refused, and nothing written, where it breaks a limit.

        Parameters
        ----------
        attribute
            What was released; None for the table of the quasi-identifiers alone.
        quasi_identifiers
            Those of the table that was released.
        loss
            The mechanism, or what is known of its loss.
        cohort
            Who is covered; None for the only cohort that there is.
        purpose
            What the release is for, in free words.
        file
            What was released; its SHA-256 is kept.
        new_cohort
            The release is the first on these people, and no other cohort covers any of them.
        part_of
            The cohort that contains the new one.
        """
        spent = read_loss(loss)
        fields = describe_release(attribute, quasi_identifiers, spent, purpose)
        released = None if file is None else ReleasedFile.of(file)
        with self._writing() as (session, state):
            admitted = self._admit(state, cohort, spent, new_cohort, part_of)
            return self._write_release(session, {**fields, **admitted}, released)

    def add_figure(self, *, epsilon: float, neighbours: Neighbours = "add-remove", **entry: Any) -> Entry:
        """Records a figure that was computed from a table and has noise of its own, as `add` records a release.

        Parameters
        ----------
        epsilon, neighbours
            What the figure costs.
        entry
            The other arguments of `add`, about the table that the figure was computed from.
        """
        return self.add(loss=Loss.pure(epsilon, neighbours), **entry)

    @contextmanager
    def reserve(
        self,
        *,
        attribute: str | None,
        quasi_identifiers: str | Sequence[str],
        loss: Mechanism | Loss,
        cohort: str | None = "everyone",
        purpose: str = "",
        new_cohort: bool = False,
        part_of: str | None = None,
        tables: Sequence[dict[str, Any]] = (),
    ) -> Iterator[Reservation]:
        """Sets the loss of a release aside before any noise is drawn; `Reservation.save` then writes file and entry.

        Refused where the release would break a limit. The loss counts as spent from here on, and is given back where
        the block ends without a release that was saved.

        Parameters
        ----------
        attribute, quasi_identifiers, loss, cohort, purpose, new_cohort, part_of
            As in `add`.
        tables
            Those of a set that is released together, as `TogetherRelease` has them; the loss is that of all of them.
        """
        from cellrisk.repeat.ledger.pairing import Reservation, end_journal
        from cellrisk.repeat.ledger.store import RESERVED, Pending

        spent = read_loss(loss)
        fields = describe_release(attribute, quasi_identifiers, spent, purpose, tables)
        token = secrets.token_hex(16)
        journal = open_journal(self._store.id, token, self._store.place.wait)
        try:
            journal.write(Note(self.place))
            with self._writing(token) as (session, state):
                admitted = self._admit(state, cohort, spent, new_cohort, part_of)
                owner = {"host": platform.node()[:LONGEST_NAME], "since": write_time(self._clock())}
                pending = Pending(token, RESERVED, {**fields, **admitted, **owner})
                session.reserve(pending)
        except OSError as error:
            journal.remove()
            raise InvalidInput("no journal of the release can be kept", got=error.strerror, fix="make room") from None
        except BaseException:
            end_journal(self._store, journal, token)  # a lost connection may have made the reservation all the same
            raise
        reservation = Reservation(self._store, pending, journal, self._write_release)
        try:
            yield reservation
        finally:
            reservation.close()

    def declare(self, cohort: str, *, part_of: str | None = None) -> Entry:
        """Declares a cohort before anything is released on it: its people are in no other, or in the one it is part of.

        Parameters
        ----------
        cohort
            Its name.
        part_of
            The cohort that contains it, if one does.
        """
        with self._writing() as (session, state):
            state.find_declaration(cohort, True, part_of)
            return self._append(session, "cohort", cohort, part_of=part_of)

    def set_limit(
        self,
        cohort: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        operator: Operator = "tightest",
    ) -> Entry:
        """Limits what a person of a cohort may lose in all: by releases on it, on what it is part of, and on its parts.

        A limit below what is spent is refused. The last limit of a cohort is the one that holds.

        Parameters
        ----------
        cohort
            Whose loss is limited.
        epsilon, delta
            The limit.
        operator
            How losses are added up, as in `compose`.
        """
        limit = Limit(cohort=cohort, epsilon=epsilon, delta=delta, operator=operator)
        with self._writing() as (session, state):
            declared = state.find_declaration(cohort, False, None)
            state.check_limit(limit)
            if declared is not None:
                self._append(session, "cohort", cohort, part_of=None)
            return self._append(session, "limit", cohort, limit=limit.to_dict())

    def entries(self, cohort: str | None = None, kind: str | None = None) -> tuple[Entry, ...]:
        """The entries in their order.

        Parameters
        ----------
        cohort
            Of which cohort; default all.
        kind
            "cohort", "limit" or "release"; default all.
        """
        if kind is not None:
            require_word("kind of entry", kind, KINDS)
        state = self._read()
        if cohort is not None:
            state.require(cohort)
        return tuple(entry for entry in state.entries if cohort in (None, entry.cohort) and kind in (None, entry.kind))

    def entry(self, number: int) -> Entry:
        """One entry by its number."""
        wanted, entries = require_whole_number("the number of an entry", number, least=1), self._read().entries
        if wanted > len(entries):
            raise UnknownName("the ledger has no such entry", got=number, allowed=f"up to {len(entries):,}")
        return entries[wanted - 1]

    def covering(self, cohort: str) -> tuple[Entry, ...]:
        """The entries on a cohort, and on all that contain it."""
        state = self._read()
        cohorts = set(state.path(cohort))
        return tuple(entry for entry in state.entries if entry.cohort in cohorts)

    def cohorts(self) -> tuple[Cohort, ...]:
        """The cohorts, in the order in which they were declared."""
        return self._read().cohorts

    def choose_cohort(self, named: str | None, *, new: bool = False) -> str:
        """The cohort that is named; where none is, the only one that there is, or "everyone" where there is none.

        Parameters
        ----------
        named
            A name, or None.
        new
            Whether the cohort is to be declared: then it must be named, unless it is the first.
        """
        return self._read().choose_cohort(named, new) if named is None else named

    def losses(self, cohort: str) -> tuple[Loss, ...]:
        """What each release cost that covers the people of a cohort: those on it, and on all that contain it."""
        state = self._read()
        return state.losses(state.require(cohort))

    def spent(self, cohort: str, operator: Operator = "tightest", delta: float | None = None) -> Composition:
        """The most that a person of a cohort has lost so far: the worst over it and the cohorts inside it.

        Parameters
        ----------
        cohort
            Whose loss is asked for.
        operator, delta
            How losses are added up, as in `compose`.
        """
        state = self._read()
        return state.spend(state.require(cohort), operator, delta)

    def limit(self, cohort: str) -> Limit | None:
        """The limit of a cohort itself; those of the cohorts that contain it, and inside it, hold too."""
        state = self._read()
        return state.limits.get(state.require(cohort))

    def check(
        self,
        loss: Mechanism | Loss,
        cohort: str | None = "everyone",
        *,
        new_cohort: bool = False,
        part_of: str | None = None,
    ) -> None:
        """Refuses a release that would break a limit, before any noise is drawn.

        Parameters
        ----------
        loss
            The mechanism of the release, or what is known of its loss.
        cohort, new_cohort, part_of
            As in `add`.
        """
        self._admit(self._read(), cohort, read_loss(loss), new_cohort, part_of)

    def verify(
        self, *, head: str | None = None, files: bool = True, folders: Sequence[str | os.PathLike[str]] = ()
    ) -> Verification:
        """Is everything as it was written? Recomputes the chain from its first entry to its last.

        Parameters
        ----------
        head
            A digest of this ledger that was noted elsewhere; only it, or a file that keeps the head, finds a chain that
            was rewritten as a whole.
        files
            Whether released files and the descriptions beside them are compared with the digests in their entries; a
            description of an entry that is missing shows that the ledger is an older copy.
        folders
            Where to look for further descriptions. Nothing is changed.
        """
        beside = self._store.place.folders
        deadline = time.monotonic() + self._store.place.wait
        for _ in range(MOST_LOOKS):  # a file may be replaced, and its entry written, while files are read
            while True:
                with self._store.read() as session:
                    examined = examine(session, head, self._store.heads)
                if not self._await_moves(examined.decided, deadline):
                    break
            looked = [*beside, *map(Path, folders)]
            found = compare_files(examined, looked, self._store.place.is_same) if files else examined.found
            if found.ok or not examined.found.ok or self.head.digest == found.head:
                break
        return found

    def pendings(self) -> tuple[Pending, ...]:
        """Releases that are reserved or being written, or that dead processes have left so."""
        with self._store.read() as session:
            return tuple(session.pendings())

    def settle(self) -> tuple[Pending, ...]:
        """Finishes or takes back what dead processes of this user, on this machine, have left; returns the others."""
        self._end_dead()
        return self.pendings()

    def abandon(self, token: str) -> bool:
        """Gives up a release whose process is known to be dead, and whose journal is on a machine that is out of reach.

        What was only reserved no longer counts as spent. Where its entry stands already, that stays, and its loss stays
        spent; its file is then in its place only where it can be finished from here. Returns whether an entry stands.
        """
        from cellrisk.repeat.ledger.pairing import ALIVE, ELSEWHERE, settle

        with self._store.read() as session:
            found = session.pending(token)
        if found is None:
            raise UnknownName("the ledger has no such reservation", got=repr(token), fix="verify lists them")
        state = settle(self._store, token, anywhere=True)
        if state == ALIVE:
            raise InvalidInput(
                "the process that made the reservation is still running, and will end it", got=repr(token)
            )
        if state == ELSEWHERE:
            with self._store.write() as session:
                session.remove_pending(token)
        return found.decided

    def __str__(self) -> str:
        state = self._read()
        releases = sum(entry.kind == "release" for entry in state.entries)
        return (
            f"Ledger {self.place}: {number_of(len(state.entries), 'entry', 'entries')}, {releases:,} of them "
            f"releases, on {number_of(len(state.declared), 'cohort')}."
        )

    def _admit(
        self, state: LedgerState, cohort: str | None, loss: Loss, new_cohort: bool, part_of: str | None
    ) -> dict[str, Any]:
        """Refuses a release on an unknown cohort or past a limit; what its body says of the cohort."""
        cohort = state.choose_cohort(cohort, new_cohort)
        declared = state.find_declaration(cohort, new_cohort, part_of)
        state.check_release(declared or Cohort(cohort, state.declared.get(cohort)), loss)
        return {"cohort": cohort, "declares": declared is not None, "part_of": part_of}

    @contextmanager
    def _writing(self, own: str = "") -> Iterator[tuple[Session, LedgerState]]:
        """A transaction in which nobody else writes, and how things stand in it.

        own: the token of the caller's own reservation, whose journal is there and is none that the dead have left.
        """
        if self._store.place.writable:
            self._end_dead(own)
        session: Session | None = None
        before = ""
        try:
            with self._store.write() as session:
                before = session.head.digest
                yield session, self._read_state(session, session.pendings())
            if session.head.digest != before:
                note_outcome(_say_entry(session.head))
        except KeyboardInterrupt as stopped:
            if session is None or session.head.digest == before or str(stopped):
                raise
            raise KeyboardInterrupt(self._find_out(session.head)) from None

    def _find_out(self, head: Head) -> str:
        """What stands of entries whose writing was stopped; empty where they do not."""
        stands = self._store.has_entry(head.number, head.digest)
        return NOT_KNOWN if stands is None else _say_entry(head) if stands else ""

    def _read(self) -> LedgerState:
        """How things stand. An entry whose file is being moved into its place is waited for."""
        deadline = time.monotonic() + self._store.place.wait
        while True:
            with self._store.read() as session:
                pendings = session.pendings()
                state = self._read_state(session, pendings)
            if not self._await_moves(pendings, deadline):
                return state

    def _await_moves(self, pendings: Sequence[Pending], deadline: float) -> bool:
        """Waits a little where somebody moves files into their place at this moment; whether that was so.

        What the dead have left is not waited for.
        """
        moving = any(pending.decided and is_alive(self._store.id, pending.token) for pending in pendings)
        waiting = moving and time.monotonic() <= deadline
        if waiting:
            time.sleep(PAUSE)
        return waiting

    def _read_state(self, session: Session, pendings: list[Pending]) -> LedgerState:
        """The entries and what is reserved. Entries that were not read before are checked against their digests."""
        known, head = self._known, session.head
        if known:
            last = session.row(known[-1].number)
            known = known if last is not None and last.digest == known[-1].digest else ()
        start = len(known) + 1
        rows = session.rows(start)
        check_links(rows, len(known), known[-1].digest if known else head.id, head)
        written = session.whereabouts(start) if rows else {}
        paths = {number: each.path for number, each in written.items()}
        self._known = (*known, *(Entry.read(row, paths.get(row.number)) for row in rows))
        return LedgerState(self._known, tuple(Reserved.of(each) for each in pendings if not each.decided))

    def _end_dead(self, own: str = "") -> None:
        """Finishes or takes back what dead processes have left of releases, but for one's own."""
        tokens = list_journals(self._store.id).keys() - {own}
        if tokens:
            from cellrisk.repeat.ledger.pairing import settle

            for token in sorted(tokens):
                settle(self._store, token)

    def _write_release(self, session: Session, body: dict[str, Any], file: ReleasedFile | None) -> Entry:
        """Writes a release that was admitted; before it a new cohort, where the release declares one. Refused where a
        description beside the ledger or the file names an entry that is lost."""
        state = self._read_state(session, [])
        digests = {entry.number: entry.digest for entry in state.entries}
        folders = self._store.place.folders + [folder_of(Path(each.path)) for each in (file,) if each and each.path]
        for lost in find_lost(self.id, digests.get, folders):
            raise InvalidInput(lost.text, fix=RESTORE)
        if body["declares"] and body["cohort"] not in state.declared:
            self._append(session, "cohort", body["cohort"], part_of=body["part_of"])
        fields = {name: body[name] for name in ("attribute", "quasi_identifiers", "loss", "scale", "purpose")}
        fields |= {"tables": body["tables"]} if body.get("tables") else {}
        fields["file"], written = None, None
        if file is not None:
            written = Whereabouts(str(file.path), secrets.token_hex(16))
            fields["file"] = replace(file, place=written.digest).to_dict()
        return self._append(session, "release", body["cohort"], written, **fields)

    def _append(
        self, session: Session, kind: str, cohort: str, written: Whereabouts | None = None, **fields: Any
    ) -> Entry:
        """Writes an entry after the last one, as it will be read."""
        from cellrisk.system.version import __version__

        head = session.head
        body = {**fields, "kind": kind, "cohort": cohort, "time": write_time(self._clock()), "cellrisk": __version__}
        last = session.row(head.number)
        if last is not None:
            before = datetime.fromisoformat(Entry.read(last).time)
            behind = (before - datetime.fromisoformat(body["time"])).total_seconds()
            if behind > 0:
                body["clock_behind"] = behind
        text = write_canonically(body)
        if len(text) > LONGEST_BODY:
            raise InvalidInput("the entry is too long", got=f"{len(text):,} characters", fix="name fewer columns")
        number = head.number + 1
        row = Row(number, head.digest, compute_digest(number, head.digest, text), text)
        session.append(row, written)
        return Entry.read(row, None if written is None else written.path)


def _say_entry(head: Head) -> str:
    return f"entry {head.number} of the ledger stands"


def _tell_time() -> datetime:
    return datetime.now(timezone.utc)
