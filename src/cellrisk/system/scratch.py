"""Private folders for what engines spill and readers copy, which may hold records.

A folder is removed after its block, however that ends. A process that was killed leaves its folder, but not the
lock on it, and the next process that needs a folder removes it. Folders for temporary files are shared with others, who
can put anything there under any name: only a real folder of this user that nobody else may enter is removed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cellrisk.system.atomic import try_lock

START = "cellrisk-"
LOCK = ".in-use"


@contextmanager
def private_folder(purpose: str = "") -> Iterator[Path]:
    """Make a folder that only this user can read, for the block; remove first what killed processes left.

    >>> with private_folder() as folder:
    ...     _ = (folder / "spilled").write_text("a record")
    >>> folder.exists()
    False
    """
    remove_left_behind(Path(tempfile.gettempdir()))
    start = f"{START}{purpose}-" if purpose else START
    with tempfile.TemporaryDirectory(prefix=start, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        handle = os.open(folder / f"{LOCK}-soon", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            with suppress(OSError):  # a file system without locks: the folder is then never taken for one left behind
                try_lock(handle)
                os.rename(folder / f"{LOCK}-soon", folder / LOCK)  # seen by others only once it is locked
            yield folder
        finally:
            os.close(handle)


def remove_left_behind(temporary: Path) -> None:
    """Remove this user's private folders whose lock nobody holds."""
    with suppress(OSError), os.scandir(temporary) as entries:
        for folder in [Path(entry.path) for entry in entries if entry.name.startswith(START)]:
            with suppress(OSError):
                status = folder.lstat()
                private = not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)
                regular = stat.S_ISDIR(status.st_mode) and stat.S_ISREG((folder / LOCK).lstat().st_mode)
                if private and regular and _is_free(folder):
                    shutil.rmtree(folder, ignore_errors=True)  # which follows no link, not even in its place


def _is_free(folder: Path) -> bool:
    handle = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        return try_lock(handle)
    finally:
        os.close(handle)
