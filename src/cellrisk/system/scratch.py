"""Scratch: private folders for what engines spill and pages are handed, which may be anybody's records.

A folder is gone after its block, however that ends. A process that was killed outright cannot tidy up: it leaves its
folder, but not the lock on it, and the next process that needs a folder removes it. Folders for temporary files are
shared with others, who can put anything there under any name: only a real folder of this user that nobody else may
enter is looked into, and no link is followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cellrisk.system.locks import try_lock
from cellrisk.system.stopping import unfinished

START = "cellrisk-"
LOCK = ".in-use"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
A_FOLDER = os.O_RDONLY | NO_LINK | getattr(os, "O_DIRECTORY", 0)
A_LOCK = os.O_RDWR | NO_LINK | getattr(os, "O_NONBLOCK", 0)
BY_HANDLE = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
"""Whether folders can be held open, so that nobody can exchange them meanwhile; Windows cannot."""


@contextmanager
def private_folder(purpose: str = "") -> Iterator[Path]:
    """A folder that only this user can read, for the length of the block; what killed processes left is removed first.

    >>> with private_folder() as folder:
    ...     _ = (folder / "spilled").write_text("a record")
    >>> folder.exists()
    False
    """
    remove_left_behind(Path(tempfile.gettempdir()))
    start = f"{START}{purpose}-" if purpose else START
    with tempfile.TemporaryDirectory(prefix=start, ignore_cleanup_errors=True) as name, unfinished(name):
        folder = Path(name)
        handle = os.open(folder / f"{LOCK}-soon", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            with suppress(OSError):  # a file system without locks: the folder is then never taken for one left behind
                try_lock(handle)
                os.rename(folder / f"{LOCK}-soon", folder / LOCK)  # seen by others only once it is locked
            yield folder
        finally:
            os.close(handle)


def remove_left_behind(place: Path) -> None:
    """Removes this user's private folders there that nobody holds any more."""
    with suppress(OSError), os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(START)]
        for name in names:
            with suppress(OSError):
                _remove_by_handle(place, name) if BY_HANDLE else _remove_by_name(place / name)


def _remove_by_handle(place: Path, name: str) -> None:
    with _opened(place, os.O_RDONLY) as shared, _opened(name, A_FOLDER, shared) as folder:
        if not _is_private(os.fstat(folder)):
            return
        with _opened(LOCK, A_LOCK, folder) as lock:
            if stat.S_ISREG(os.fstat(lock).st_mode) and try_lock(lock):
                _empty(folder)
                os.rmdir(name, dir_fd=shared)  # of a folder that was exchanged meanwhile, only where it is empty


def _empty(folder: int) -> None:
    """Removes everything in an open folder; links are removed, and not followed."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if is_folder:
            with _opened(name, A_FOLDER, folder) as inner:
                _empty(inner)
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _remove_by_name(folder: Path) -> None:
    if not stat.S_ISDIR(folder.lstat().st_mode) or not stat.S_ISREG((folder / LOCK).lstat().st_mode):
        return
    with _opened(folder / LOCK, A_LOCK) as lock:
        free = try_lock(lock)
    if free:
        shutil.rmtree(folder, ignore_errors=True)


def _is_private(folder: os.stat_result) -> bool:
    """Whether this user has made the folder, and nobody else may enter it."""
    return stat.S_ISDIR(folder.st_mode) and folder.st_uid == os.geteuid() and not folder.st_mode & 0o077


@contextmanager
def _opened(name: str | Path, how: int, beside: int | None = None) -> Iterator[int]:
    handle = os.open(name, how | getattr(os, "O_CLOEXEC", 0), dir_fd=beside)
    try:
        yield handle
    finally:
        os.close(handle)
