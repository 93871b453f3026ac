"""A release and its entry, written together: both exist or neither does, whatever moment the process dies.

A reservation is a row of the ledger, which counts as spent, and a journal, which is locked as long as its process
lives. The released pair of files is staged under hidden names; then one commit writes the entry and decides; then the
files are moved into their place and the row is removed. Who writes next and finds the row of a dead process, with its
journal, takes it back where it was not decided, and finishes it where it was. The row says only that there is a
reservation, and what it costs: which files are meant is said by the journal alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.publish.releasing.release_result import Release
from cellrisk.publish.releasing.saving import Pair, StagedFolder, sidecar_of, staged_at
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger.descriptions import digest_description
from cellrisk.repeat.ledger.entry import LONGEST_PATH, Entry, ReleasedFile, check_text
from cellrisk.repeat.ledger.journals import ForeignJournal, Journal, Note, find_journal, held
from cellrisk.repeat.ledger.store import DECIDED, Pending, Session, Store
from cellrisk.system.stopping import note_outcome
from cellrisk.system.writing import make_last

if TYPE_CHECKING:
    from cellrisk.repeat.together.release_result import TogetherRelease

    WriteEntry = Callable[[Session, dict[str, Any], ReleasedFile], Entry]

SETTLED, ALIVE, ELSEWHERE = "settled", "alive", "elsewhere"


class Reservation:
    """Privacy loss that is set aside for one release, until it is saved or given up."""

    def __init__(self, store: Store, pending: Pending, journal: Journal, write_entry: WriteEntry) -> None:
        self._store = store
        self._pending = pending
        self._journal = journal
        self._write_entry = write_entry
        self._pair: Pair | StagedFolder | None = None
        self._entry: Entry | None = None
        self._done = False
        self._left = False
        self._removed = False

    @property
    def token(self) -> str:
        """The reservation's name in the ledger and in the hidden names of its files."""
        return self._pending.token

    @property
    def ledger(self) -> str:
        """The id of the ledger."""
        return self._store.id

    def save(self, release: Release | TogetherRelease, path: str | os.PathLike[str], *, force: bool = False) -> Entry:
        """Writes the released counts, their description and the entry: all of them, or nothing.

        The description names the ledger, the entry and its digest. ``force`` replaces files that exist. The tables of a
        set go into a new folder, with one entry for all of them.
        """
        if self._pair is not None:
            raise InvalidInput("a reservation is for one release, which was saved or tried", fix="reserve again")
        self._check_release(release)
        with _plain_refusals(path):
            target = release.check_place(path, force)
            target = target.parent.resolve() / target.name
        check_text("the output path", str(target), LONGEST_PATH)
        content = release.encode(target.suffix.lower())
        sha256 = hashlib.sha256(content).hexdigest()
        described = None
        if isinstance(release, Release):
            described = digest_description(release.describe_file(target.name, content))
        file = ReleasedFile(target.name, str(target), sha256, len(content), description=described)
        pair = staged_at(target, self.token)
        interrupted = False
        with _plain_refusals(path):
            self._journal.write(Note(str(self._store.place), target, sha256))
        self._pair = pair
        try:
            with _plain_refusals(path):
                for name, counts in _list_counts(release, target, content).items():
                    pair.stage(name, counts)
                self._decide(release, content, file, pair, force)
        except BaseException as error:
            if not self._find_out():
                raise
            interrupted = not isinstance(error, CellriskError)
        note_outcome(self.outcome)
        try:
            pair.publish()
            pair.finish()
        except OSError as error:
            raise InvalidInput(
                f"entry {self._written.number} is written, but its file could not be moved into its place",
                got=f"{target} ({error.strerror})",
                fix="the next write to the ledger moves it there, or ledger settle, once the place can be written to",
            ) from None
        except KeyboardInterrupt:
            self._finish_late(pair)
            interrupted = True
        self._done = True
        note_outcome(self.outcome)
        try:
            self._remove_row()
        except CellriskError:  # file and entry stand; a row that is left is removed by whoever writes next
            pass
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            raise KeyboardInterrupt(self.outcome)
        return self._written

    def _finish_late(self, pair: Pair | StagedFolder) -> None:
        """Moves the files after an interruption; where that fails too, says what stands."""
        try:
            pair.publish()
            pair.finish()
        except (OSError, KeyboardInterrupt):
            self._left = True
            raise KeyboardInterrupt(self.outcome) from None

    @property
    def outcome(self) -> str:
        """What stands of the release once it was decided, for the one who stops it."""
        start = f"entry {self._written.number} of the ledger stands"
        if self._done:
            return f"{start}, and its file is in its place"
        return f"{start}; the next write to the ledger, or ledger settle, moves its file into its place"

    def close(self) -> None:
        """Ends the reservation: what was not decided is taken back, what was is finished."""
        if self._left:
            self._journal.close()
            return
        try:
            self._finish()
        except KeyboardInterrupt as stopped:
            self._journal.close()
            if not self._done or str(stopped):
                raise
            raise KeyboardInterrupt(self.outcome) from None

    def _finish(self) -> None:
        stands = True if self._done else self._find_out()
        if stands is False:
            if self._pair is not None:
                self._pair.discard()
            with suppress(CellriskError):
                self._remove_row()
        if self._done or stands is False:
            if self._removed:
                self._journal.remove()
            else:  # the removal of the row failed or was interrupted, which does not say whether it still stands
                end_journal(self._store, self._journal, self.token)
            return
        self._journal.close()
        with suppress(CellriskError):
            settle(self._store, self.token)

    @property
    def _written(self) -> Entry:
        if self._entry is None:
            raise InvalidInput("nothing was saved")
        return self._entry

    def _decide(
        self,
        release: Release | TogetherRelease,
        content: bytes,
        file: ReleasedFile,
        pair: Pair | StagedFolder,
        force: bool,
    ) -> None:
        """The one commit that makes the release part of the ledger."""
        with self._store.write() as session:
            pair.check(force)
            decided = {other.entry for other in session.pendings()} - {None}
            written = session.whereabouts().items() if decided else ()
            if any(number in decided and each.path == file.path for number, each in written):
                raise InvalidInput("another release is being written there", got=file.path, fix="try again")
            entry = self._write_entry(session, self._pending.body, file)
            named = {"id": session.head.id, "entry": entry.number, "digest": entry.digest}
            for name, described in _list_descriptions(release, pair.target, content, named).items():
                pair.stage(name, described)
            make_last(pair.new[0].parent)
            self._entry = entry
            session.change(self._pending._replace(state=DECIDED, body={**self._pending.body, "entry": entry.number}))

    def _find_out(self) -> bool | None:
        """Whether the decision stands; None where the ledger cannot be asked, and whoever writes next finds out."""
        return False if self._entry is None else self._store.has_entry(self._entry.number, self._entry.digest)

    def _remove_row(self) -> None:
        with self._store.write() as session:
            session.remove_pending(self.token)
        self._removed = True

    def _check_release(self, release: Release | TogetherRelease) -> None:
        body = self._pending.body
        reserved = (body["quasi_identifiers"], body["attribute"], Loss.from_dict(body["loss"]), body.get("tables"))
        if isinstance(release, Release):
            loss, tables = Loss.of(release.mechanism), None
        else:
            from cellrisk.repeat.together.release_result import TogetherRelease  # most releases are of one table

            if not isinstance(release, TogetherRelease):
                raise InvalidInput("only a release can be saved", got=type(release).__name__)
            loss, tables = release.loss, json.loads(json.dumps(release.entry["tables"]))
        if (list(release.quasi_identifiers), release.sensitive, loss, tables) != reserved:
            raise InvalidInput(
                "the release is not the one that was reserved",
                fix="reserve its own attribute, quasi-identifiers and mechanism",
            )


def _list_counts(release: Release | TogetherRelease, target: Path, content: bytes) -> dict[str, bytes]:
    """The files of a release, by their names: the one at its place, and of a set the tables that it lists."""
    return {target.name: content} if isinstance(release, Release) else {**release.contents, target.name: content}


def _list_descriptions(
    release: Release | TogetherRelease, target: Path, content: bytes, ledger: dict[str, Any]
) -> dict[str, bytes]:
    """The descriptions, by their names, which say where in the ledger the release stands."""
    if isinstance(release, Release):
        return {sidecar_of(target).name: release.describe_file(target.name, content, ledger=ledger).encode("utf-8")}
    return release.describe_tables(ledger=ledger)


@contextmanager
def _plain_refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{path} ({error.strerror})") from None


def end_journal(store: Store, journal: Journal, token: str) -> None:
    """Removes the journal of a reservation whose row is gone. Where the row may still be there, the journal stays: it
    says what to do about the row."""
    gone = False
    with suppress(CellriskError), store.read() as session:
        gone = session.pending(token) is None
    if gone:
        journal.remove()
    else:
        journal.close()


def settle(store: Store, token: str, *, anywhere: bool = False) -> str:
    """Finishes or takes back a release whose process is dead; leaves it where that lives, or where nobody can tell.

    anywhere: whether a journal counts too that was written for a ledger at another place, such as one that was moved.
    """
    path = find_journal(store.id, token)
    if path is None:
        return ELSEWHERE
    try:
        with held(path) as journal:
            if journal is None:
                return ALIVE
            note = journal.read()
            if not anywhere and note is not None and note.place != str(store.place):
                return ELSEWHERE
            with store.write() as session:  # waits for what a server may still commit for a client that is dead
                if not _end(session, token, note):
                    return ELSEWHERE
                session.remove_pending(token)
            journal.remove()
            return SETTLED
    except FileNotFoundError:  # settled by another
        return SETTLED
    except (OSError, ForeignJournal):
        return ELSEWHERE


def _end(session: Session, token: str, note: Note | None) -> bool:
    """Moves the files of a decided release, and removes those of another; False where that cannot be done from here.

    Where there is no reservation, none was made yet, or it was given up: then files are moved if their entry stands.
    """
    pending = session.pending(token)
    if note is None or note.target is None:
        return pending is None or not pending.decided
    if pending is None:
        there = [number for number, each in session.whereabouts().items() if each.path == str(note.target)]
        decided = any(_stands(session, number, note) for number in there)
    else:
        decided = pending.decided
        if decided and not _stands(session, pending.entry, note):
            return False
    staged = staged_at(note.target, token)
    if decided:
        return _move(staged)
    staged.discard()
    return True


def _stands(session: Session, number: int | None, note: Note) -> bool:
    """Whether an entry is that of the file which the journal means."""
    row = None if number is None else session.row(number)
    try:
        file = None if row is None else Entry.read(row).file
    except InvalidInput:
        file = None
    return file is not None and file.sha256 == note.sha256


def _move(pair: Pair | StagedFolder) -> bool:
    """Moves what is staged into its place; False where that cannot be done from here.

    Where nothing is staged, all was moved already: what became of the file since then, `verify` tells.
    """
    if not pair.new[0].parent.is_dir():
        return False
    try:
        pair.publish()
        pair.finish()
    except OSError:
        return False
    return True
