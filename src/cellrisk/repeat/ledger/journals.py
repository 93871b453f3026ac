"""Journals: what the processes of this user note, on this machine, about releases that they are writing.

A reservation has one file in a private folder of the user. It is locked as long as its process lives, and says where
the release goes. Only it is believed in that: of the ledger, which somebody may have sent, a validated name is taken
and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cellrisk.errors import InvalidInput
from cellrisk.system.locks import try_lock
from cellrisk.system.scratch import NO_LINK
from cellrisk.system.writing import make_last, write_through

STATE = "CELLRISK_STATE"
"""The variable that names the folder in which state is kept, where it is not the user's own."""
FOLDER = "reservations"
NAME = "[0-9a-f]{32}"
NOTED = ("place", "target", "sha256")
LONGEST = 65_536
PAUSE = 0.005


@dataclass(frozen=True)
class Note:
    """What a journal says: whose reservation it is, and where its file goes once that is known."""

    place: str
    """The ledger's, so that a copy of the ledger does not end what the ledger itself has begun."""
    target: Path | None = None
    sha256: str = ""


class ForeignJournal(Exception):
    """A journal that cellrisk has not written: it is left alone."""


class Journal:
    """The file of one reservation, locked by the process that holds it."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle = handle

    def write(self, note: Note) -> None:
        """Puts a note into the file, so that it outlives a loss of power."""
        target = None if note.target is None else os.fspath(note.target)
        told = {"place": note.place, "target": target, "sha256": note.sha256}
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.ftruncate(self._handle, 0)
        write_through(self._handle, f"{json.dumps(told)}\n".encode())
        make_last(self.path.parent)

    def read(self) -> Note | None:
        """The note; None where its process died before it was whole, and so before anything was staged.

        Refuses what is whole and not as cellrisk writes it: somebody else has put that there.
        """
        os.lseek(self._handle, 0, os.SEEK_SET)
        try:
            told = json.loads(os.read(self._handle, LONGEST).decode("ascii"))
        except ValueError:
            return None
        except RecursionError:
            raise ForeignJournal from None
        place, target, sha256 = (told.get(name, 0) if isinstance(told, dict) else 0 for name in NOTED)
        if not isinstance(place, str) or not isinstance(sha256, str):
            raise ForeignJournal
        if target is None:
            return Note(place, None, sha256)
        if not isinstance(target, str) or not _is_file_name(Path(target)):
            raise ForeignJournal
        return Note(place, Path(target), sha256)

    def close(self) -> None:
        """Ends the lock, and leaves the file where it was not removed."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def remove(self) -> None:
        """Removes the file, and the folders where nothing else is in them; ends the lock."""
        with suppress(OSError):
            self.path.unlink()
        self.close()
        with suppress(OSError):
            self.path.parent.rmdir()
            if not os.environ.get(STATE):
                self.path.parent.parent.rmdir()


def open_journal(identity: str, token: str, wait: float) -> Journal:
    """The journal of a new reservation, held by this process."""
    deadline = time.monotonic() + wait
    try:
        while True:
            journal = hold(_make_folder() / _name(identity, token), make=True)
            if journal is not None:
                return journal
            if time.monotonic() > deadline:
                raise InvalidInput("the reservation's journal is held by somebody else", fix="try again")
            time.sleep(PAUSE)  # one who looks for what is left behind holds it for an instant
    except OSError as error:
        raise InvalidInput(
            "no journal of the release can be kept",
            got=f"{state_folder()} ({error.strerror})",
            fix=f"make room there, or name a private folder in {STATE}",
        ) from None


def find_journal(identity: str, token: str) -> Path | None:
    """Where the journal of a reservation is; None where it is not on this machine, or not this user's."""
    if not re.fullmatch(NAME, identity) or not re.fullmatch(NAME, token):
        return None
    with suppress(OSError, InvalidInput):
        path = _check_folder(state_folder() / FOLDER) / _name(identity, token)
        if stat.S_ISREG(path.lstat().st_mode):
            return path
    return None


def list_journals(identity: str) -> dict[str, Path]:
    """The journals of a ledger's reservations, by their tokens."""
    with suppress(OSError, InvalidInput):
        folder = _check_folder(state_folder() / FOLDER)
        found = (re.fullmatch(f"({NAME})-({NAME})", name) for name in os.listdir(folder))
        return {each[2]: folder / each[0] for each in found if each is not None and each[1] == identity}
    return {}


def hold(path: Path, *, make: bool = False) -> Journal | None:
    """Locks a journal; None where somebody else holds it. One that is not there is made only where that is wanted."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | (os.O_CREAT if make else 0) | NO_LINK, 0o600)
        except FileNotFoundError:
            if not make:
                raise
            _make_folder()
            continue
        try:
            if not try_lock(handle):
                os.close(handle)
                return None
            # Between opening and locking, another may have taken the file for a dead one's and removed it.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(handle)):
                    return Journal(path, handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def is_alive(identity: str, token: str) -> bool:
    """Whether the process of a reservation is seen to live, on this machine."""
    path = find_journal(identity, token)
    return path is not None and is_held(path)


def is_held(path: Path) -> bool:
    """Whether the process lives that wrote a journal; nothing is changed."""
    try:
        handle = os.open(path, os.O_RDWR | NO_LINK)
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)


@contextmanager
def held(path: Path) -> Iterator[Journal | None]:
    """A journal that is there, for the length of the block; None where its process lives."""
    journal = hold(path)
    try:
        yield journal
    finally:
        if journal is not None:
            journal.close()


def state_folder() -> Path:
    """Where this user's state is kept: the folder that is named in the environment, or the system's place for it."""
    named = os.environ.get(STATE)
    if named:
        return Path(named).absolute()
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "cellrisk"
        usual = os.environ.get("XDG_STATE_HOME") or ""
        return (Path(usual) if os.path.isabs(usual) else Path.home() / ".local" / "state") / "cellrisk"
    except RuntimeError:
        raise InvalidInput(
            "no journal of the release can be kept: this user has no home", fix=f"name a private folder in {STATE}"
        ) from None


def _name(identity: str, token: str) -> str:
    return f"{identity}-{token}"


def _is_file_name(path: Path) -> bool:
    """Whether a path can be that of a released file: from the root on, with a name that a file can have."""
    try:
        return path.is_absolute() and bool(path.name) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _make_folder() -> Path:
    folder = state_folder() / FOLDER
    while True:
        with suppress(FileNotFoundError):  # removed by another, which had found nothing in it
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            return _check_folder(folder)


def _check_folder(folder: Path) -> Path:
    """Refuses a folder that others could write to: what stands in it would not be this user's word."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise InvalidInput("the folder of journals is no folder", got=folder, fix=f"name another in {STATE}")
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
        raise InvalidInput(
            "the folder of journals is not private", got=folder, fix=f"chmod 700, or name another in {STATE}"
        )
    return folder
