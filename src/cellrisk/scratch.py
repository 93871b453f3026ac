"""Scratch: private folders for what engines spill and pages are handed, which may be anybody's records.

A folder is gone after its block, however that ends. A process that was killed outright cannot tidy up: it leaves its
folder, but not the lock on it, and the next process that needs a folder removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cellrisk.locks import try_lock

START = "cellrisk-"
LOCK = ".in-use"


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
    with tempfile.TemporaryDirectory(prefix=start, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        handle = os.open(folder / f"{LOCK}-soon", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            with suppress(OSError):  # a file system without locks: the folder is then never taken for one left behind
                try_lock(handle)
                os.rename(folder / f"{LOCK}-soon", folder / LOCK)  # seen by others only once it is locked
            yield folder
        finally:
            os.close(handle)


def remove_left_behind(place: Path) -> None:
    """Removes the private folders there that nobody holds any more."""
    for lock in place.glob(f"{START}*/{LOCK}"):
        with suppress(OSError):
            handle = os.open(lock, os.O_RDWR)
            try:
                if try_lock(handle):
                    shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(handle)
