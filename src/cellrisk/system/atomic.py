"""Files that are written whole or not at all, and locks that end with the process that holds them."""

from __future__ import annotations

import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cellrisk.errors import InvalidInput

PRIVATE_FILE = 0o600
"""The mode of files with figures of the raw data: only their owner may read them."""

_INPUTS: dict[Path, str] = {}


def keep_inputs(what: str, *paths: str | os.PathLike[str]) -> None:
    """From now on refuse to write over these files, which are read, under any name; ``what`` is for the message."""
    for path in paths:
        with suppress(OSError, ValueError, RuntimeError):
            _INPUTS[Path(path).expanduser().absolute()] = what


def give_up_input(path: str | os.PathLike[str], what: str) -> None:
    """Allow to write over a file that is read as ``what``: the user asked for it."""
    for kept in [kept for kept, named in _INPUTS.items() if named == what and is_same_file(Path(path), kept)]:
        del _INPUTS[kept]


@contextmanager
def inputs_of_one_command() -> Iterator[None]:
    """Forget after the block which files were read in it."""
    before = dict(_INPUTS)
    try:
        yield
    finally:
        _INPUTS.clear()
        _INPUTS.update(before)


def refuse_inputs(target: Path, inputs: Mapping[Path, str] | None = None) -> None:
    """Refuse to write over a file that is an input, under any name of the same file."""
    for path, what in list((_INPUTS if inputs is None else inputs).items()):
        if is_same_file(target, path):
            raise _refuse(f"the output would replace {what}", target, "choose another name")


def _refuse(what: str, path: object, fix: str | None = None) -> InvalidInput:
    return InvalidInput(what, got=path, fix=fix, code="output")


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two names lead to one file, or would if it existed.

    >>> is_same_file(Path("docs/../README.md"), Path("README.md")), is_same_file(Path("a.csv"), Path("b.csv"))
    (True, False)
    """
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        pass
    try:
        one, other = one.resolve(), other.resolve()
        named = os.path.normcase(one.name) == os.path.normcase(other.name)
        return named and (one.parent == other.parent or os.path.samefile(one.parent, other.parent))
    except (OSError, ValueError, RuntimeError):
        return False


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to, before any long work for it begins."""
    target = Path(path)
    if target.is_dir() and not target.is_symlink():
        raise _refuse("the output path is a folder", target, "give it a file name")
    if not target.parent.is_dir():
        raise _refuse("the folder of the output path does not exist", target.parent, "make it first")
    refuse_inputs(target)
    if target.is_symlink():  # to follow it would write elsewhere, and to replace it is not what was asked for
        raise _refuse("the output path is a link", target, "name the file itself, or remove the link")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise _refuse("the output path cannot be written to", target, "choose another place")
    return target


def check_ending(path: str | os.PathLike[str], endings: Sequence[str], what: str, example: str) -> Path:
    """Refuse an ending that names no format, or a path that cannot be written to, before any long work begins."""
    target = Path(path)
    if target.suffix.lower() not in endings:
        got = repr(target.suffix) if target.suffix else "a path without an ending"
        what, allowed = f"the ending of the path names no {what}", ", ".join(endings)
        raise InvalidInput(what, got=got, allowed=allowed, fix=f"for example {example}", code="output")
    return check_writable(target)


def write_whole(path: str | os.PathLike[str], content: str | bytes, *, public: bool = False) -> Path:
    """Write a file beside its place and move it there, so that no reader ever sees half of it.

    Only its owner may read it, or, if it is public, those whom the umask allows, but never more than could read the
    file that it replaces.
    """
    target = check_writable(path)
    mode = public_mode(target) if public else choose_mode(target, PRIVATE_FILE)
    data = content.encode("utf-8") if isinstance(content, str) else content
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(unfinished, mode)
        os.replace(unfinished, target)
        unfinished = ""
    except OSError as error:
        raise _refuse("the output path cannot be written to", f"{target} ({error.strerror})") from None
    finally:
        if unfinished:
            with suppress(OSError):
                os.unlink(unfinished)
    return target


def choose_mode(target: Path, mode: int) -> int:
    """Return a mode without the rights that the file at a place does not give."""
    try:
        return mode & stat.S_IMODE(target.stat().st_mode)
    except OSError:  # there is no file yet
        return mode


def public_mode(target: Path) -> int:
    """Return the mode of a file that is published: as the umask says, without new rights for an old file."""
    umask = os.umask(0)
    os.umask(umask)
    return choose_mode(target, 0o666 & ~umask)


def write_new(path: Path, content: bytes) -> None:
    """Write a private file that does not exist yet, whole or not at all; FileExistsError if it does.

    A process that is killed in between leaves at most a hidden file beside it.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(16)}.new")
    handle = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE)
    try:
        write_through(handle, content)
        try:
            os.link(hidden, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if path.exists():
                raise FileExistsError(path) from None
            os.rename(hidden, path)
    finally:
        os.close(handle)
        with suppress(OSError):
            hidden.unlink()
    make_last(path.parent)


def write_through(handle: int, content: bytes) -> None:
    """Write to an open file and wait until the disk has it."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)


def make_last(folder: Path) -> None:
    """Wait until the disk has the names in a folder, if the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
