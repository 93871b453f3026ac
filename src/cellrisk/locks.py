"""Locks that end with the process that holds them, however it ends."""

from __future__ import annotations

import sys


def try_lock(handle: int) -> bool:
    """Locks an open file; whether nobody else had."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, (BlockingIOError, PermissionError)):
            return False
        raise
    return True
