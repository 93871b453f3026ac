"""`Ledger`: the record of what was released about whom, which is only ever added to."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.unit import Unit
from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing.files import sidecar_of
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger.backends import TABLES, TRIGGERS, VERSION, WHAT, Session, find_backend
from cellrisk.repeat.ledger.checkpoints import VARIABLE, Checkpoint, write_line
from cellrisk.repeat.ledger.cohorts import LedgerState
from cellrisk.repeat.ledger.entry import (
    KINDS,
    LONGEST_BODY,
    Cohort,
    Entry,
    Head,
    Limit,
    ReleasedFile,
    Row,
    compute_digest,
    describe_release,
    find_breaks,
    read_loss,
    write_canonically,
    write_time,
)
from cellrisk.repeat.ledger.staging import Draft, Recovered, plain_refusals, recover
from cellrisk.repeat.ledger.verification import (
    NEWEST,
    Verification,
    compare_files,
    describe_lost,
    digest_description,
    examine,
    list_named,
    name_entry,
    refuse_released,
)
from cellrisk.system.atomic import refuse_inputs, write_whole
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import CompositionMethod, Neighbours, require_word
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import NOT_KNOWN, note_outcome

if TYPE_CHECKING:
    from cellrisk.publish.releasing.release_result import Release
    from cellrisk.repeat.accounting.composition import Composition
    from cellrisk.repeat.together.releasing import TogetherRelease

__all__ = ["Cohort", "Entry", "Ledger", "Limit", "Recovered", "ReleasedFile", "Verification"]

VERIFICATIONS, PAUSE = 40, 0.05
"""How often `verify` repeats itself while files are being moved, and the seconds between."""
RESTORE = (
    "restore the newest copy of the ledger; if there is none, move these files to another folder, and record their "
    "loss with ledger add without naming the file"
)


class Ledger:
    """An append-only record of releases: whom they are about, what was released, with which loss, when, and for what.

    Opening and reading a ledger changes nothing. What dead processes have left in a folder is finished or removed by
    the next `save` into it, or by `recover`. Entries are chained by their digests, so that `verify` finds changes. A
    person is covered by the releases about their cohort and about those that contain it; cohorts of which none is part
    of the other share nobody.

    Parameters
    ----------
    location
        A path of one SQLite file, or postgresql://user:password@host/database.
    create
        Makes a new ledger, and refuses a location that is taken; by default the ledger has to exist.
    wait
        Seconds to wait for a ledger that is locked.
    clock
        Returns the time; the order of entries is that of their numbers, whatever it returns.
    head
        A checkpoint file outside, in which the last entry is noted after every write; without one an older copy of the
        ledger cannot be told from the newest. By default the file that CELLRISK_LEDGER_HEAD names.

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
        location: str | os.PathLike[str],
        *,
        create: bool = False,
        wait: float = 30.0,
        clock: Callable[[], datetime] | None = None,
        head: str | os.PathLike[str] | None = None,
    ) -> None:
        self._clock = clock or (lambda: datetime.now(timezone.utc))
        self._backend = find_backend(location, wait)
        named = None if head is None else os.fspath(head), os.environ.get(VARIABLE)  # each is used
        self._checkpoints = [Checkpoint.open(name) for name in named if name]
        self._new = create
        for file in self._checkpoints:
            if self._backend.is_same(file.path):
                raise InvalidInput(
                    "the checkpoint cannot be kept in the ledger", got=file.path, fix="name another file"
                )
        if create:
            for file in self._checkpoints:
                file.check_writable()
            self.id = secrets.token_hex(16)
            self._backend.create(self._make)
            note_outcome(f"the new ledger {self._backend} is made, and empty")
        else:
            self._backend.find()
            self.id = self.head.id

    def _make(self, connection: Any) -> None:
        for statement in (*TABLES.values(), *TRIGGERS[self._backend.name]):
            self._backend.execute(connection, statement)
        values = (self.id, WHAT, VERSION, write_time(self._clock()), 0, self.id)
        self._backend.execute(connection, "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", values)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the use of the ledger, in which nothing is open between its transactions."""

    def remove_unused(self) -> None:
        """Remove a ledger without entries, so that a refused command leaves nothing behind."""
        with suppress(CellriskError):
            with self._write() as session:
                if session.head.number:
                    return
                session.execute("UPDATE ledger SET what = 'removed'")  # another process that has it open is refused
            self._backend.remove()
            note_outcome("")

    def note_head(self) -> str:
        """Note the last entry in the checkpoint file, if there is one; return the line, to be kept anywhere else.

        A file that has nothing about this ledger yet is begun.
        """
        with self._backend.opened(reading=True) as session:
            for file in self._checkpoints:
                file.check(session, new=self._new or file.is_without(session.head.id))
            for file in self._checkpoints:
                file.note(session.head)
            return write_line(session.head)

    @property
    def location(self) -> str:
        """Where the ledger is, without a password."""
        return str(self._backend)

    @property
    def head(self) -> Head:
        """Its last entry: number and digest. Noted elsewhere, it later shows whether entries were lost or rewritten."""
        with self._backend.opened(reading=True) as session:
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
        """Record a release that was made; refused, and nothing written, if it exceeds a limit.

        Parameters
        ----------
        attribute
            What was released; None for the table of the quasi-identifiers alone.
        quasi_identifiers
            Those of the table that was released.
        loss
            The mechanism, or what is known of its loss.
        cohort
            Whom the release is about; None for the only cohort.
        purpose
            What the release is for, in free words.
        file
            What was released; its SHA-256 is kept.
        new_cohort
            The release is the first about these people, and no other cohort covers any of them.
        part_of
            The cohort that contains the new one.
        """
        spent = read_loss(loss)
        fields = describe_release(attribute, quasi_identifiers, spent, purpose)
        released = None if file is None else ReleasedFile.of(file)
        with self._write() as session:
            state = self._read_state(session)
            declared = state.admit(cohort, spent, new_cohort, part_of)
            return self._write_release(session, state, declared, self._backend.folders, fields, released)

    def add_figure(
        self,
        *,
        epsilon: float,
        neighbours: Neighbours = "add-remove",
        unit: Unit = Unit(),  # noqa: B008 (it cannot be changed)
        **entry: Any,
    ) -> Entry:
        """Record a figure that was computed from a table and has noise of its own, as `add` records a release.

        Parameters
        ----------
        epsilon, neighbours, unit
            What the figure costs, and whom.
        entry
            The other arguments of `add`, about the table that the figure was computed from.
        """
        return self.add(loss=replace(Loss.pure(epsilon, neighbours), unit=unit), **entry)

    def save(
        self,
        release: Release | TogetherRelease,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        cohort: str | None = "everyone",
        purpose: str = "",
        new_cohort: bool = False,
        part_of: str | None = None,
    ) -> Entry:
        """Write a release, its description and its entry: all of them, or nothing.

        Refused, and nothing written, if it exceeds a limit; `check` refuses it before any noise is drawn. Noise that
        nobody has seen costs nothing. The description names the ledger, the entry and its digest.

        Parameters
        ----------
        release
            Made by `release`, or by `release_together`: its tables go into a new folder, with one entry for all.
        path
            The file, or the folder of a set.
        force
            Replaces a file that exists.
        cohort, purpose, new_cohort, part_of
            As in `add`.
        """
        if not (hasattr(release, "check_place") and hasattr(release, "files")):
            raise InvalidInput("only a release can be saved", got=type(release).__name__, code="no-release")
        spent = read_loss(release.loss if hasattr(release, "loss") else release.mechanism)
        fields = describe_release(release.sensitive, release.quasi_identifiers, spent, purpose)
        with plain_refusals(path):
            target = release.check_place(path, force)
            target = target.parent.resolve() / target.name
        state = self.state()
        total = state.say_total(state.admit(cohort, spent, new_cohort, part_of), spent)
        contents, descriptions = release.files(target, total)
        content = contents[target.name]
        described = None if hasattr(release, "tables") else digest_description(descriptions[sidecar_of(target).name])
        file = ReleasedFile(target.name, hashlib.sha256(content).hexdigest(), len(content), described)
        with plain_refusals(path):
            draft = Draft(target, self.id)
        try:
            with plain_refusals(path):
                for name, data in contents.items():
                    draft.stage(name, data)
            with self._write() as session, plain_refusals(path):
                state = self._read_state(session)
                recover(session, draft.folder)
                release.check_place(path, force)
                declared = state.admit(cohort, spent, new_cohort, part_of)
                folders = *self._backend.folders, draft.folder
                entry = self._write_release(session, state, declared, folders, fields, file)
                named = {"id": self.id, "entry": entry.number, "digest": entry.digest}
                for name, text in descriptions.items():
                    draft.stage(name, name_entry(text, named).encode("utf-8"))
                draft.seal(entry.digest)
            note_outcome(
                f"entry {entry.number} is written; cellrisk ledger recover LEDGER {draft.folder} moves its file"
            )
            draft.publish()
            note_outcome(f"entry {entry.number} of the ledger is written, and its file is in its place")
        except OSError as error:
            raise InvalidInput(
                f"entry {entry.number} is written, but its file could not be moved into its place",
                got=f"{target} ({error.strerror})",
                fix=f"repair the folder, then: cellrisk ledger recover LEDGER {draft.folder}",
                code="not-moved",
            ) from None
        except BaseException:
            draft.close()
            if not draft.digest:
                shutil.rmtree(draft.path, ignore_errors=True)
                raise
            with suppress(CellriskError, OSError):  # the entry may be written, although the answer was lost
                self.recover(draft.folder)
            self._note_outcome(draft.digest, ", and its file is in its place")
            raise
        finally:
            draft.close()
        return entry

    def _note_outcome(self, digest: str, more: str = "") -> None:
        """Note for the report of an interruption whether an entry was written."""
        note_outcome(NOT_KNOWN)
        with suppress(CellriskError), self._backend.opened(reading=True) as session:
            row = session.find("digest", digest)
            note_outcome("" if row is None else f"entry {row.number} of the ledger is written{more}")

    def recover(self, folder: str | os.PathLike[str]) -> Recovered:
        """Finish or remove what processes that died have left of releases in a folder.

        A release whose entry was written is moved into its place; files without an entry are removed. What living
        processes are writing is left alone.

        Parameters
        ----------
        folder
            Where releases were written; of a set, the folder that holds the set's own.
        """
        where = Path(folder)
        if not where.is_dir():
            raise InvalidInput("there is no such folder", got=where, code="no-folder")
        with plain_refusals(where), self._write() as session:
            return recover(session, where.resolve())

    def declare(self, cohort: str, *, part_of: str | None = None) -> Entry:
        """Declare a cohort before any release about it: its people are in no other, or in the one it is part of.

        Parameters
        ----------
        cohort
            Its name.
        part_of
            The cohort that contains it, if one does.
        """
        with self._write() as session:
            self._read_state(session).find_declaration(cohort, True, part_of)
            return self._append(session, "cohort", cohort, part_of=part_of)

    def set_limit(
        self, cohort: str | None, *, epsilon: float, delta: float = 0.0, method: CompositionMethod = "tightest"
    ) -> Entry:
        """Limit what a person of a cohort may lose: by releases about it, about what contains it, and about its parts.

        A limit below what is spent is refused. The last limit of a cohort is the one in force.

        Parameters
        ----------
        cohort
            Whose loss is limited; None for the only cohort.
        epsilon, delta
            The limit.
        method
            How losses are composed, as in `compose`.
        """
        with self._write() as session:
            state = self._read_state(session)
            name = state.choose_cohort(cohort)
            limit = Limit(cohort=name, epsilon=epsilon, delta=delta, method=method)
            declared = state.find_declaration(name, False, None)
            state.check_limit(limit)
            if declared is not None:
                self._append(session, "cohort", name, part_of=None)
            return self._append(session, "limit", name, limit=limit.to_dict())

    def entries(self, cohort: str | None = None, kind: str | None = None) -> tuple[Entry, ...]:
        """The entries in their order.

        Parameters
        ----------
        cohort
            Of which cohort; default all.
        kind
            "cohort", "limit" or "release"; default all.
        """
        state = self.state()
        if kind is not None:
            require_word("kind of entry", kind, KINDS)
        if cohort is not None:
            state.require(cohort)
        return tuple(entry for entry in state.entries if cohort in (None, entry.cohort) and kind in (None, entry.kind))

    def entry(self, number: int) -> Entry:
        """One entry by its number."""
        wanted, entries = require_whole_number("the number of an entry", number, least=1), self.state().entries
        if wanted > len(entries):
            raise UnknownName("the ledger has no such entry", got=number, allowed=f"up to {len(entries):,}")
        return entries[wanted - 1]

    def state(self) -> LedgerState:
        """The cohorts, their limits and their losses, at one moment."""
        with self._backend.opened(reading=True) as session:
            return self._read_state(session)

    def spent(self, cohort: str, method: CompositionMethod = "tightest", delta: float | None = None) -> Composition:
        """The most that a person of a cohort has lost so far: the largest over it and the cohorts inside it.

        Parameters
        ----------
        cohort
            Whose loss.
        method, delta
            How losses are composed, as in `compose`.
        """
        state = self.state()
        return state.spend(state.require(cohort), method, delta)

    def check(
        self,
        loss: Mechanism | Loss,
        cohort: str | None = "everyone",
        *,
        new_cohort: bool = False,
        part_of: str | None = None,
    ) -> None:
        """Refuse a release that would exceed a limit, before any noise is drawn.

        Parameters
        ----------
        loss
            The mechanism of the release, or what is known of its loss.
        cohort, new_cohort, part_of
            As in `add`.
        """
        self.state().admit(cohort, read_loss(loss), new_cohort, part_of)

    def verify(
        self, *, head: str | None = None, files: bool = True, folders: Sequence[str | os.PathLike[str]] = ()
    ) -> Verification:
        """Is everything as it was written? Recompute the chain from its first entry to its last; change nothing.

        Parameters
        ----------
        head
            A digest of this ledger that was noted elsewhere; only it, or a checkpoint file, finds a chain that was
            rewritten as a whole.
        files
            Whether released files and the descriptions beside them are compared with the digests in their entries; a
            description of an entry that is missing shows that the ledger is an older copy.
        folders
            Where releases were written, beside the ledger's own folder and ``releases`` in it.
        """
        where = list(dict.fromkeys([*self._backend.folders, *(Path(folder).resolve() for folder in folders)]))
        for _ in range(VERIFICATIONS):  # a file may be replaced, and its entry written, while files are read
            with self._backend.opened(reading=True) as session:
                inside, entries = examine(session, head, self._checkpoints)
            if not files:
                return inside
            found, moving = compare_files(inside, entries, where, self._backend.is_same)
            if not moving and (found.ok or not inside.ok or self.head.digest == found.head):
                break
            time.sleep(PAUSE)
        return found

    def __str__(self) -> str:
        kinds = [entry.kind for entry in self.entries()]
        releases, cohorts = kinds.count("release"), number_of(kinds.count("cohort"), "cohort")
        entries = number_of(len(kinds), "entry", "entries")
        return f"Ledger {self.location}: {entries}, {releases:,} of them releases, about {cohorts}."

    def export(self, path: str | os.PathLike[str], cohort: str | None = None) -> Path:
        """Write entries to a file of JSON lines, whole or not at all.

        Without number, previous and digest, a line with sorted keys is what its digest covers.

        Parameters
        ----------
        path
            A file that ends in .jsonl, and that no entry has released.
        cohort
            Of which cohort; default all.
        """
        target, chosen = Path(path), self.entries(cohort)
        refuse_inputs(target)
        refuse_released(self.entries(), target)
        if target.suffix.lower() != ".jsonl":
            raise InvalidInput(
                "the ending of the file decides the form of an export", got=target.name, allowed=".jsonl"
            )
        return write_whole(target, "".join(f"{json.dumps(one.to_dict(), ensure_ascii=False)}\n" for one in chosen))

    @contextmanager
    def _write(self) -> Iterator[Session]:
        """A transaction without other writers; all of it is written, or nothing. An interruption reports what was.

        Refused if the ledger was exchanged, if its triggers were changed, or if it lacks an entry of a checkpoint.
        """
        if not self._backend.writable:
            raise self._backend.refuse("read-only")
        before: Head | None = None
        head = before
        try:
            with self._backend.opened(reading=False) as session:
                if session.head.id != self.id:
                    raise InvalidInput(
                        "the ledger was exchanged for another", got=self.location, fix="open it again", code="exchanged"
                    )
                if session.flaws:
                    raise InvalidInput(
                        f"the ledger was changed by other means, and is not written to: {session.flaws[0]}",
                        got=self.location,
                        fix="ledger verify shows more; continue with an unchanged copy",
                        code="changed",
                    )
                for file in self._checkpoints:
                    file.check_writable()
                    file.check(session, self._new)
                before = head = session.head
                yield session
                head = session.head
                session.commit()
            if session.head != before:
                for file in self._checkpoints:
                    file.note(session.head)
                note_outcome(f"entry {session.head.number} of the ledger is written")
        except KeyboardInterrupt:
            if head is not None and head != before:
                self._note_outcome(head.digest)
            raise

    def _read_state(self, session: Session) -> LedgerState:
        """The state of the ledger; refused if an entry is not as its digest says."""
        rows = session.rows()
        for problem in find_breaks(rows, session.head):
            where = "its end" if problem.entry is None else f"entry {problem.entry}"
            raise InvalidInput(f"the ledger is damaged or was changed at {where}", fix="ledger verify shows more")
        return LedgerState(tuple(map(Entry.read, rows)))

    def _write_release(
        self,
        session: Session,
        state: LedgerState,
        about: Cohort,
        folders: Iterable[Path],
        fields: Mapping[str, Any],
        file: ReleasedFile | None,
    ) -> Entry:
        """Write a release, and before it the cohort that it declares. Refused if a description in the folders names an
        entry that is lost."""
        digests = {entry.number: entry.digest for entry in state.entries}
        for named in (named for folder in dict.fromkeys(folders) for named in list_named(self.id, folder, NEWEST)):
            if digests.get(named.number) != named.digest:
                raise InvalidInput(describe_lost(named).text, fix=RESTORE, code="lost-entry")
        if about.name not in state.declared:
            self._append(session, "cohort", about.name, part_of=about.part_of)
        return self._append(session, "release", about.name, **fields, file=None if file is None else file.to_dict())

    def _append(self, session: Session, kind: str, cohort: str, **fields: Any) -> Entry:
        """Write an entry after the last one, as it will be read."""
        from cellrisk.system.version import __version__

        head = session.head
        body = {**fields, "kind": kind, "cohort": cohort, "time": write_time(self._clock()), "cellrisk": __version__}
        last = session.find("number", head.number)
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
        session.append(row)
        return Entry.read(row)
