"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from cellrisk import stopping
from cellrisk.errors import InvalidInput

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Who may read what holds figures of the raw data: the one who made it."""


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuses a path that cannot be written to, before any long work for it begins."""
    target = Path(path)
    if target.is_dir():
        raise InvalidInput("the output path is a folder", got=target, fix="give it a file name")
    if not target.parent.is_dir():
        raise InvalidInput("the folder of the output path does not exist", got=target.parent, fix="make it first")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InvalidInput("the output path cannot be written to", got=target, fix="choose another place")
    return target


def write_whole(
    path: str | os.PathLike[str],
    content: str | bytes,
    *,
    public: bool = False,
    replaces: str | os.PathLike[str] | None = None,
) -> Path:
    """Writes a file beside its place and moves it there, so that nobody ever sees half of it.

    Only its owner may read it, except where it is for the public: then the umask decides. It never becomes more
    readable than the file that it replaces, at its path or, where the file is moved on from there, at ``replaces``.
    """
    target = check_writable(path)
    mode = choose_mode(target if replaces is None else Path(replaces), 0o666 & ~_umask() if public else PRIVATE_FILE)
    data = content.encode("utf-8") if isinstance(content, str) else content
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with stopping.unfinished(unfinished):
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(unfinished, mode)
            os.replace(unfinished, target)
        unfinished = ""
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{target} ({error.strerror})") from None
    finally:
        if unfinished:
            with suppress(OSError):
                os.unlink(unfinished)
    return target


def choose_mode(target: Path, mode: int) -> int:
    """Who may read and write what takes a place: as many as asked for, and nobody who could not before."""
    try:
        return mode & stat.S_IMODE(target.stat().st_mode)
    except OSError:  # nothing is there
        return mode


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
