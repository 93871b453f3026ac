"""A release and its entry, written together: both exist or neither does, at whatever moment the process dies.

The files are staged in a hidden folder beside their target, whose name holds the ledger's id. Then one transaction
finishes what dead processes have left there, checks the budget, inserts the entry and renames the folder to the entry's
digest; then the files are moved into their place, the description first. A hidden folder whose digest is in no entry
comes from a process that died before its commit: it is removed. One whose digest is in an entry is moved into its
place. Both happen inside a write transaction, which excludes other writers. Before that, a lock in the folder shows
whether its process lives. No path that a ledger names is acted on: the user names the folder, and what is moved there
has the digests of its entry.
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
from cellrisk.publish.releasing.files import MANIFEST, folder_of, publish, sidecar_of, write_private
from cellrisk.repeat.ledger.backends import Session
from cellrisk.repeat.ledger.entry import Entry
from cellrisk.repeat.ledger.verification import compare_description, compare_tables, digest_regular
from cellrisk.system.atomic import make_last, try_lock

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
    """Hidden folders that are still being written, or that do not hold what their entry states."""


class Draft:
    """The hidden folder in which the files of one release are staged."""

    def __init__(self, target: Path, ledger: str) -> None:
        """Make the folder, and lock it as long as this process lives."""
        self.target, self._ledger, self.folder, self.digest = target, ledger, folder_of(target), ""
        while True:
            self.path = self.folder / f".{ledger}.{secrets.token_hex(16)}.part"
            self.path.mkdir(0o700)
            with suppress(FileNotFoundError):  # `recover` removed it before it was locked
                self._handle = os.open(self.path / LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                if try_lock(self._handle) and (self.path / LOCK).exists():
                    break
                os.close(self._handle)

    def stage(self, name: str, content: bytes) -> None:
        """Write one private file under the name that it will have."""
        inside = self.path
        if self.target.name == MANIFEST:
            inside = self.path / self.target.parent.name
            with suppress(FileExistsError):
                inside.mkdir(0o700)
        write_private(inside / name, content)

    def seal(self, digest: str) -> None:
        """Rename the folder to the digest of its entry; from here on the transaction protects it."""
        (self.path / LOCK).unlink()
        for inside in [*(path for path in self.path.iterdir() if path.is_dir()), self.path]:
            make_last(inside)
        sealed = self.folder / f".{self._ledger}.{digest}.new"
        os.rename(self.path, sealed)
        self.path, self.digest = sealed, digest
        make_last(self.folder)

    def publish(self) -> None:
        """Move the files into their place."""
        publish(self.path, self.folder)

    def close(self) -> None:
        """Release the lock, once: another thread may have been given the same handle since."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def recover(session: Session, folder: Path) -> Recovered:
    """Finish or remove what dead processes have left of releases in a folder, inside a write transaction."""
    finished: list[str] = []
    removed = left = 0
    with os.scandir(folder) as items:
        names = sorted(item.name for item in items if item.name.startswith(f".{session.head.id}."))
    for name in names:
        path, match = folder / name, STAGED.fullmatch(name)
        if match is None or not path.is_dir() or path.is_symlink():
            continue
        row = session.find("digest", match["digest"]) if match["state"] == "new" else None
        if row is not None and _fits(Entry.read(row), session.head.id, path):
            finished += publish(path, folder)
        elif row is None and (match["state"] == "new" or _remove_dead(path)):
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
        else:
            left += 1
    return Recovered(tuple(finished), removed, left)


def _remove_dead(path: Path) -> bool:
    """Remove a draft whose process is dead; False if the process lives.

    The lock is held while files are removed, so that a process that was about to lock the draft makes another.
    """
    with suppress(OSError):
        path.rmdir()  # not locked yet: if its process lives, it makes another
        return True
    try:
        handle = os.open(path / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:  # its process died while it sealed the draft, in a transaction like this one
        shutil.rmtree(path, ignore_errors=True)
        return True
    except OSError:
        return False
    try:
        dead = try_lock(handle)
        if dead:
            shutil.rmtree(path, ignore_errors=True)
        return dead
    finally:
        os.close(handle)


def _fits(entry: Entry, ledger: str, path: Path) -> bool:
    """Whether what is staged is what the entry states; a part of it may have been moved already."""
    if entry.file is None:
        return False
    try:
        items = {item.name: item for item in path.iterdir()}
        if any(item.is_symlink() for item in path.rglob("*")):  # to make it public would change what it leads to
            return False
    except FileNotFoundError:  # its own process has moved everything meanwhile
        return True
    if entry.of_set:
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


@contextmanager
def plain_refusals(path: object) -> Iterator[None]:
    """Turn errors of the file system into one line."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            "the output path cannot be written to", got=f"{path} ({error.strerror})", code="output"
        ) from None
