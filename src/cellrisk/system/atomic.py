"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cellrisk.errors import InvalidInput

PRIVATE_FILE = 0o600
"""Who may read what holds figures of the raw data: the one who made it."""
HANDLES = "/proc/self/fd"


_INPUTS: dict[Path, str] = {}


def keep_inputs(what: str, *paths: str | os.PathLike[str]) -> None:
    """From now on nothing is written over these files, whatever name is given for them: they are read, or recorded in.

    what: what they are, for the message.
    """
    for path in paths:
        with suppress(OSError, ValueError, RuntimeError):
            _INPUTS[Path(path).expanduser().absolute()] = what


def give_up_input(path: str | os.PathLike[str], what: str) -> None:
    """A file that is read as ``what`` may be written over after all: somebody said so."""
    for kept in [kept for kept, named in _INPUTS.items() if named == what and is_same_file(Path(path), kept)]:
        del _INPUTS[kept]


@contextmanager
def inputs_of_one_command() -> Iterator[None]:
    """The length of a command: what it reads is kept no longer than that."""
    before = dict(_INPUTS)
    try:
        yield
    finally:
        _INPUTS.clear()
        _INPUTS.update(before)


def refuse_inputs(target: Path, inputs: Mapping[Path, str] | None = None) -> None:
    """Refuses to write over a file that is an input, under any name of the same file."""
    for path, what in list((_INPUTS if inputs is None else inputs).items()):
        if is_same_file(target, path):
            raise InvalidInput(f"the output would replace {what}", got=target, fix="choose another name")


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two names lead to one file, or would where it is not there yet.

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
    """Refuses a path that cannot be written to, before any long work for it begins."""
    target = Path(path)
    if target.is_dir() and not target.is_symlink():
        raise InvalidInput("the output path is a folder", got=target, fix="give it a file name")
    if not target.parent.is_dir():
        raise InvalidInput("the folder of the output path does not exist", got=target.parent, fix="make it first")
    refuse_inputs(target)
    if target.is_symlink():  # neither followed, which writes elsewhere, nor replaced, which nobody asked for
        raise InvalidInput("the output path is a link", got=target, fix="name the file itself, or remove the link")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InvalidInput("the output path cannot be written to", got=target, fix="choose another place")
    return target


def check_ending(path: str | os.PathLike[str], endings: Sequence[str], what: str, example: str) -> Path:
    """Refuses an ending that names no format, or a path that cannot be written to, before any long work begins."""
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise InvalidInput(
            f"the ending of the path names no {what}",
            got=repr(target.suffix) if target.suffix else "a path without an ending",
            allowed=", ".join(endings),
            fix=f"for example {example}",
        )
    return check_writable(target)


def write_whole(path: str | os.PathLike[str], content: str | bytes, *, public: bool = False) -> Path:
    """Writes a file beside its place and moves it there, so that nobody ever sees half of it.

    Only its owner may read it, except where it is for the public: then the umask decides. It never becomes more
    readable than the file that it replaces.
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


def write_new(path: Path, content: bytes) -> None:
    """Writes a private file that is not there yet, whole or not at all; FileExistsError where something is there.

    Where the system can, the file has no name until it is whole, so that a death leaves nothing.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(16)}.new")
    nameless = getattr(os, "O_TMPFILE", 0) if os.path.isdir(HANDLES) else 0
    handle = -1
    if nameless:
        with suppress(OSError):  # a file system that cannot
            handle = os.open(path.parent, nameless | os.O_RDWR, 0o600)
    named = handle < 0
    if named:
        handle = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        write_through(handle, content)
        if named:
            _link(hidden, path)
        else:
            handles = os.open(HANDLES, os.O_RDONLY)
            try:
                os.link(str(handle), path, src_dir_fd=handles, follow_symlinks=True)
            finally:
                os.close(handles)
    finally:
        os.close(handle)
        if named:
            with suppress(OSError):
                hidden.unlink()
    make_last(path.parent)


def _link(hidden: Path, path: Path) -> None:
    try:
        os.link(hidden, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(hidden, path)


def write_through(handle: int, content: bytes) -> None:
    """Writes to an open file so that it outlives a loss of power."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)


def make_last(folder: Path) -> None:
    """Names in a folder outlive a loss of power from here on, where the system can see to that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def public_mode(target: Path) -> int:
    """Who may read what is published at a place: as the umask says, and nobody who could not read what was there."""
    return choose_mode(target, 0o666 & ~_umask())


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
