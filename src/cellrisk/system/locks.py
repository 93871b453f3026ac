"""Locks that end with the process that holds them, however it ends."""

from __future__ import annotations

import sys
import time

PAUSE = 0.002


def try_lock(handle: int) -> bool:
    """Lock an open file; return whether it was free."""
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


def wait_for_lock(handle: int) -> None:
    """Lock an open file once it is free; locks are held only for an instant."""
    while not try_lock(handle):
        time.sleep(PAUSE)
