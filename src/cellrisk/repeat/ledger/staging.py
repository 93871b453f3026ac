"""A release and its entry, written together: both exist or neither does, whatever moment the process dies.

The files are staged in a hidden folder beside their target, whose name holds the ledger's id. Then one transaction
finishes what dead processes have left there, checks the budget, inserts the entry and gives the folder the entry's
digest as its name; then the files are moved into their place, the description first. A hidden folder whose digest no
entry has is of a process that died before its commit: it is removed. One whose digest an entry has is moved into its
place. Both happen inside a write transaction, beside which nobody seals a folder. Before that, a lock in the folder
tells the living from the dead. Nothing is done to a path that a ledger names: the user names the folder, and what is
moved there has the digests of its entry.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.saving import MANIFEST, sidecar_of
from cellrisk.repeat.ledger.descriptions import compare_description, compare_tables, digest_regular
from cellrisk.repeat.ledger.entry import Entry
from cellrisk.repeat.ledger.store import Session
from cellrisk.system.locks import try_lock
from cellrisk.system.stopping import unfinished
from cellrisk.system.writing import make_last, public_mode, write_through

STAGED = re.compile(r"\.(?P<ledger>[0-9a-f]{32})\.(?P<digest>[0-9a-f]{64}|[0-9a-f]{32})\.(?P<state>part|new)")
"""A draft has a random token, 32 digits, and the state ``part``; a sealed folder its entry's digest, and ``new``."""
LOCK = "lock"


class Recovered(NamedTuple):
    """What `recover` did in a folder."""

    finished: tuple[str, ...]
    """Names of files, or of folders of sets, that were moved into their place."""
    removed: int
    """Releases without an entry whose files were removed."""
    left: int
    """Hidden folders that are still being written, or that do not hold what their entry says."""


class Draft:
    """The hidden folder in which the files of one release are staged."""

    def __init__(self, target: Path, ledger: str) -> None:
        """Makes the folder, and locks it as long as this process lives."""
        self.target, self._ledger = target, ledger
        self.folder = target.parent.parent if target.name == MANIFEST else target.parent
        while True:
            self.path = self.folder / f".{ledger}.{secrets.token_hex(16)}.part"
            self.path.mkdir(0o700)
            with suppress(FileNotFoundError):  # taken for dead before it was locked
                self._handle = os.open(self.path / LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                if try_lock(self._handle) and (self.path / LOCK).exists():
                    break
                os.close(self._handle)

    @contextmanager
    def written(self) -> Iterator[None]:
        """The time in which the folder is removed where the process must end."""
        with unfinished(self.path):
            yield

    def stage(self, name: str, content: bytes) -> None:
        """Writes one file that is private, under the name that it will have."""
        inside = self.path
        if self.target.name == MANIFEST:
            inside = self.path / self.target.parent.name
            with suppress(FileExistsError):
                inside.mkdir(0o700)
        handle = os.open(inside / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            write_through(handle, content)
        finally:
            os.close(handle)

    def seal(self, digest: str) -> None:
        """Gives the folder the name of its entry; from here on the transaction protects it."""
        (self.path / LOCK).unlink()
        for inside in [*(path for path in self.path.iterdir() if path.is_dir()), self.path]:
            make_last(inside)
        sealed = self.folder / f".{self._ledger}.{digest}.new"
        os.rename(self.path, sealed)
        self.path = sealed
        make_last(self.folder)

    def publish(self) -> None:
        """Moves the files into their place."""
        _publish(self.path, self.folder)

    def discard(self) -> None:
        """Removes what is staged."""
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        """Lets go of the lock."""
        with suppress(OSError):
            os.close(self._handle)


def recover(session: Session, folder: Path) -> Recovered:
    """Finishes or removes what dead processes have left of releases in a folder, inside a write transaction."""
    finished: list[str] = []
    removed = left = 0
    for name in _list_staged(session.head.id, folder):
        path, match = folder / name, STAGED.fullmatch(name)
        if match is None or not path.is_dir() or path.is_symlink():
            continue
        if match["state"] == "part":
            alive = _is_alive(path)
        else:
            entry = _find_entry(session, match["digest"])
            if entry is not None:
                if _fits(entry, session.head.id, path):
                    finished += _publish(path, folder)
                else:
                    left += 1
                continue
            alive = False
        if alive:
            left += 1
        else:
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
    return Recovered(tuple(finished), removed, left)


def is_staged(ledger: str, digest: str, folder: Path) -> bool:
    """Whether the files of an entry have not been moved into their place yet."""
    return (folder / f".{ledger}.{digest}.new").is_dir()


def _list_staged(ledger: str, folder: Path) -> list[str]:
    with os.scandir(folder) as found:
        return sorted(item.name for item in found if item.name.startswith(f".{ledger}."))


def _is_alive(path: Path) -> bool:
    """Whether the process that stages files in a folder still holds its lock."""
    try:
        handle = os.open(path / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)


def _find_entry(session: Session, digest: str) -> Entry | None:
    found = session.execute("SELECT number FROM entries WHERE digest = ?", digest)
    row = session.row(found[0][0]) if found else None
    return None if row is None else Entry.read(row)


def _fits(entry: Entry, ledger: str, path: Path) -> bool:
    """Whether what is staged is what the entry says; a part of it may have been moved already."""
    if entry.file is None:
        return False
    items = {item.name: item for item in path.iterdir()}
    if entry.tables:
        if not items:
            return True
        (inside, *others) = items.values()
        listed = inside / MANIFEST
        same = not others and digest_regular(listed, entry.file.bytes) == entry.file.sha256
        return same and not list(compare_tables(entry, ledger, listed))
    file, described = path / entry.file.name, sidecar_of(path / entry.file.name)
    if not set(items) <= {file.name, described.name}:
        return False
    if file.name in items and digest_regular(file, entry.file.bytes) != entry.file.sha256:
        return False
    return described.name not in items or not compare_description(entry, ledger, file)


def _publish(path: Path, folder: Path) -> list[str]:
    """Moves what is staged into a folder, descriptions before files, so that a file that stands there is described.

    What another process has moved meanwhile is in its place.
    """
    moved = []
    with suppress(FileNotFoundError):
        for item in sorted(path.iterdir(), key=lambda item: (not item.name.endswith(".json"), item.name)):
            target = folder / item.name
            if item.is_dir():
                mode = public_mode(target / MANIFEST)
                for file in item.iterdir():
                    os.chmod(file, mode)
                os.chmod(item, mode | (mode & 0o444) >> 2)
                os.rename(item, target)
            else:
                os.chmod(item, public_mode(target))
                os.replace(item, target)
            moved.append(item.name)
        path.rmdir()
    make_last(folder)
    return [name for name in moved if not name.endswith(".json")]


@contextmanager
def plain_refusals(path: object) -> Iterator[None]:
    """Turns the errors of the file system into one line."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            "the output path cannot be written to", got=f"{path} ({error.strerror})", code="output"
        ) from None
