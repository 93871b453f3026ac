"""A release and its entry, written together: both exist or neither does, whatever moment the process dies.

A reservation is a row of the ledger, which counts as spent, and a file that is locked as long as its process lives. The
released pair of files is staged under hidden names; then one commit writes the entry and decides; then the files are
moved into their place and the row is removed. Who finds the row of a dead process takes it back where it was not
decided, and finishes it where it was.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.accounting import Loss
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.ledger.entry import Entry, ReleasedFile, check_text
from cellrisk.ledger.limits import Reserved
from cellrisk.ledger.store import DECIDED, RESERVED, Pending, Session, Store
from cellrisk.locks import try_lock
from cellrisk.releasing.result import Release, check_format
from cellrisk.releasing.saving import Pair, check_free, make_last

if TYPE_CHECKING:
    WriteEntry = Callable[[Session, dict[str, Any], ReleasedFile], Entry]

PAUSE = 0.005
SETTLED, ALIVE, ELSEWHERE = "settled", "alive", "elsewhere"


@dataclass(frozen=True)
class LifeSign:
    """A file that is locked as long as the process lives that holds it; the system unlocks it whatever happens."""

    path: Path
    handle: int

    @staticmethod
    def hold(path: Path) -> LifeSign | None:
        """Locks the file, making it where it is not there; None where somebody else holds it."""
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if not try_lock(handle):
                    os.close(handle)
                    return None
                # Between opening and locking, another may have taken the file for a dead one's and removed it.
                if os.path.samestat(os.stat(path), os.fstat(handle)):
                    return LifeSign(path, handle)
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def release(self) -> None:
        """Removes the file, and with it the lock."""
        with suppress(OSError):
            self.path.unlink()
        os.close(self.handle)


class Reservation:
    """Privacy loss that is set aside for one release, until it is saved or given up."""

    def __init__(self, store: Store, pending: Pending, sign: LifeSign, write_entry: WriteEntry) -> None:
        self._store = store
        self._pending = pending
        self._sign = sign
        self._write_entry = write_entry
        self._pair: Pair | None = None
        self._entry: Entry | None = None
        self._done = False

    @property
    def token(self) -> str:
        """The reservation's name in the ledger and in the hidden names of its files."""
        return self._pending.token

    def save(self, release: Release, path: str | os.PathLike[str], *, force: bool = False) -> Entry:
        """Writes the released counts, their description and the entry: all of them, or nothing.

        The description names the ledger, the entry and its digest. ``force`` replaces files that exist.
        """
        if self._pair is not None:
            raise InvalidInput("a reservation is for one release, which was saved or tried", fix="reserve again")
        self._check_release(release)
        with _plain_refusals(path):
            target = check_free(check_format(path), force).resolve()
        check_text("the output path", str(target), 4096)
        content = release.encode(target.suffix.lower())
        sha256 = hashlib.sha256(content).hexdigest()
        file = ReleasedFile(target.name, str(target), sha256, len(content))
        pair = Pair(target, self.token)
        self._change(RESERVED, target=str(target), sha256=sha256)
        self._pair = pair
        try:
            with _plain_refusals(path):
                pair.stage_file(content)
                self._decide(release, content, file, force)
        except BaseException as error:
            if not self._find_out() or not isinstance(error, CellriskError):
                raise
        try:
            pair.publish()
        except OSError as error:
            raise InvalidInput(
                f"entry {self._written.number} is written, but its file could not be moved into its place",
                got=f"{target} ({error.strerror})",
                fix="it is moved there when the ledger is next opened and the place can be written to",
            ) from None
        pair.finish()
        self._done = True
        with suppress(CellriskError):  # file and entry stand; a row that is left is removed by whoever opens it next
            self._remove_row()
        return self._written

    def close(self) -> None:
        """Ends the reservation: what was not decided is taken back, what was is finished."""
        if self._done:
            self._sign.release()
            return
        if self._find_out() is False:
            if self._pair is not None:
                self._pair.discard()
            with suppress(CellriskError):
                self._remove_row()
        self._sign.release()
        if self._entry is not None:
            with suppress(CellriskError):
                settle(self._store, self._pending)

    @property
    def _written(self) -> Entry:
        if self._entry is None:
            raise InvalidInput("nothing was saved")
        return self._entry

    def _decide(self, release: Release, content: bytes, file: ReleasedFile, force: bool) -> None:
        """The one commit that makes the release part of the ledger."""
        pair = Pair(Path(file.path), self.token)
        with self._store.write() as session:
            check_free(file.path, force)
            for other in session.pendings():
                if other.state == DECIDED and other.body.get("target") == file.path:
                    raise InvalidInput("another release is being written there", got=file.path, fix="try again")
            entry = self._write_entry(session, self._pending.body, file)
            named = {"id": session.head.id, "entry": entry.number, "digest": entry.digest}
            pair.stage_description(release.describe_file(file.name, content, ledger=named))
            make_last(pair.target.parent)
            self._entry = entry
            session.change(self._pending._replace(state=DECIDED))

    def _find_out(self) -> bool | None:
        """Whether the decision stands; None where the ledger cannot be asked, and whoever opens it next finds out."""
        if self._entry is None:
            return False
        try:
            with self._store.write() as session:  # waits for what a server may still commit, its answer lost
                row = session.row(self._entry.number)
        except CellriskError:
            return None
        return row is not None and row.digest == self._entry.digest

    def _change(self, state: str, **more: str) -> None:
        changed = self._pending._replace(state=state, body={**self._pending.body, **more})
        with self._store.write() as session:
            session.change(changed)
        self._pending = changed

    def _remove_row(self) -> None:
        with self._store.write() as session:
            session.settle(self.token)

    def _check_release(self, release: Release) -> None:
        if not isinstance(release, Release):
            raise InvalidInput("only a release can be saved", got=type(release).__name__)
        body = self._pending.body
        reserved = (body["quasi_identifiers"], body["attribute"], Loss.from_dict(body["loss"]))
        if (list(release.quasi_identifiers), release.sensitive, Loss.of(release.mechanism)) != reserved:
            raise InvalidInput(
                "the release is not the one that was reserved",
                fix="reserve its own attribute, quasi-identifiers and mechanism",
            )


@contextmanager
def _plain_refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{path} ({error.strerror})") from None


def open_reservation(store: Store, identity: str, token: str) -> LifeSign:
    """The sign of life of a new reservation."""
    path, deadline = store.place.place_sign(identity, token), time.monotonic() + store.place.wait
    try:
        sign = LifeSign.hold(path)
        while sign is None and time.monotonic() < deadline:  # one who sweeps took it for a dead one's, for an instant
            time.sleep(PAUSE)
            sign = LifeSign.hold(path)
    except OSError as error:
        raise InvalidInput(
            "the folder of the ledger cannot be written to", got=f"{store.place.lock_folder} ({error.strerror})"
        ) from None
    if sign is None:
        raise InvalidInput("the reservation's lock is held by somebody else", fix="try again")
    return sign


def describe_owner(sign: LifeSign) -> dict[str, str]:
    """Who reserves, as far as another process needs it to tell whether the owner lives."""
    return {"host": platform.node(), "lock": str(sign.path)}


def read_reserved(pendings: list[Pending]) -> tuple[Reserved, ...]:
    """What is spent by reservations that are not decided."""
    try:
        return tuple(
            Reserved(body["cohort"], Loss.from_dict(body["loss"]), body["declares"], body["part_of"])
            for _, state, body in pendings
            if state == RESERVED
        )
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("the ledger is damaged: its reservations cannot be read", fix="verify tells more") from None


def settle(store: Store, pending: Pending) -> str:
    """Finishes or takes back a release whose process is dead; leaves it where that lives, or where nobody can tell."""
    lock = Path(str(pending.body.get("lock")))
    if not lock.exists() and pending.body.get("host") != platform.node():
        return ELSEWHERE
    try:
        sign = LifeSign.hold(lock)
    except OSError:
        return ELSEWHERE
    if sign is None:
        return ALIVE
    try:
        with store.write() as session:  # waits for what a server may still commit for a client that is dead
            found = session.pending(pending.token)
            if found is None:
                return SETTLED
            target = found.body.get("target")
            if found.state == DECIDED:
                if not _move(Pair(Path(str(target)), found.token)):
                    return ELSEWHERE
            elif target is not None:
                Pair(Path(target), found.token).discard()
            session.settle(found.token)
        return SETTLED
    finally:
        sign.release()


def _move(pair: Pair) -> bool:
    """Moves what is staged into its place; False where that cannot be done from here.

    Where nothing is staged, all was moved already: what became of the file since then, `verify` tells.
    """
    if not pair.target.parent.is_dir():
        return False
    try:
        pair.publish()
        pair.finish()
    except OSError:
        return False
    return True


def sweep(signs: dict[str, Path], known: set[str]) -> None:
    """Removes the signs of processes that died before they had reserved anything."""
    for token, path in signs.items():
        with suppress(OSError):
            sign = None if token in known else LifeSign.hold(path)
            if sign is not None:
                sign.release()
