"""The files of releases: written all or none, and read as hostile until their digests say otherwise."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from cellrisk.errors import InvalidInput, argument
from cellrisk.system.atomic import check_writable, make_last, public_mode, refuse_inputs, write_through, write_whole
from cellrisk.system.progress import note_outcome

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".parquet", ".csv")
MANIFEST = "set.json"
"""The file in a folder of several releases that says which they are."""
LARGEST_DESCRIPTION, LARGEST_FILE = 1 << 28, 1 << 33


def sidecar_of(path: str | os.PathLike[str]) -> Path:
    """Where the description of a file stands: beside it, with ``.json`` after its name.

    >>> sidecar_of("released.csv").name
    'released.csv.json'
    """
    return Path(f"{os.fspath(path)}.json")


def check_format(path: str | os.PathLike[str]) -> Path:
    """Refuse a file name whose ending names no format of releases."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        what, allowed = "a release is saved by its ending", ", ".join(FORMATS)
        raise InvalidInput(what, got=target.name, allowed=allowed, code="ending")
    return target


def check_free(path: str | os.PathLike[str], force: bool, inputs: Mapping[Path, str] = MappingProxyType({})) -> Path:
    """Refuse a place for a release that cannot be written to, that is taken if ``force`` does not allow to replace it,
    or whose file or description is one of the ``inputs``."""
    target = check_writable(check_format(path))
    for file in (target, check_writable(sidecar_of(target))):
        refuse_inputs(file, inputs)
        if file.exists() and not force:
            fix = f"choose another name, or replace it with {argument('force', True)}"
            raise InvalidInput("the output path exists", got=file, fix=fix, code="taken")
    return target


def check_folder(path: str | os.PathLike[str], inputs: Mapping[Path, str] = MappingProxyType({})) -> Path:
    """Refuse a folder that cannot be made, or that is there; return where its list of files will stand."""
    folder = Path(path)
    if os.path.lexists(folder):
        raise InvalidInput("the output folder exists", got=folder, fix="name one that is not there yet", code="taken")
    if not folder.name or not folder.parent.is_dir():
        what = "the place of the output folder does not exist"
        raise InvalidInput(what, got=folder.parent, fix="make it first", code="no-folder")
    refuse_inputs(folder, inputs)
    if not os.access(folder.parent, os.W_OK):
        fix = "choose another place"
        raise InvalidInput("the output path cannot be written to", got=folder, fix=fix, code="not-writable")
    return folder / MANIFEST


def folder_of(target: Path) -> Path:
    """The folder that a release is in; of a set, the one that holds the set's own folder."""
    return target.parent.parent if target.name == MANIFEST else target.parent


def write_files(
    target: Path, contents: Mapping[str, bytes], descriptions: Mapping[str, str], *, force: bool = False
) -> Path:
    """Write the files of a release, or of a set into a new folder, all or none: nobody sees new ones beside old ones.

    target: where the released file belongs, or the list of a set's files. The files, each by its name, are staged in a
    hidden folder and then moved into their place. If anything fails, what was there before is put back.
    """
    of_set = target.name == MANIFEST
    end = target.parent if of_set else target
    what = "the releases are in their place, with their descriptions"
    outcome = f"{what if of_set else 'the release is in its place, with its description'}: {end}"
    staged, described = end.with_name(f".{end.name}.{secrets.token_hex(8)}.new"), sidecar_of(target)
    last, before, moving = staged / end.name, None, False
    try:
        staged.mkdir(0o700)
        if of_set:
            last.mkdir(0o700)
        for name, content in {**contents, **{name: text.encode() for name, text in descriptions.items()}}.items():
            write_private((last if of_set else staged) / name, content)
        if of_set:
            check_folder(end)
            make_last(last)
        else:
            check_free(target, force)
            before = described.read_bytes() if described.exists() else None
        moving = True
        publish(staged, end.parent)
        note_outcome(outcome)
    except OSError as error:
        got = f"{end} ({error.strerror})"
        raise InvalidInput("the output path cannot be written to", got=got, code="not-writable") from None
    except KeyboardInterrupt:
        if not moving or last.exists():
            raise
        make_last(end.parent)
        raise KeyboardInterrupt(outcome) from None
    finally:
        if moving and last.exists() and not (of_set or (staged / described.name).exists()):
            described.unlink() if before is None else write_whole(described, before, public=True)
        shutil.rmtree(staged, ignore_errors=True)
    return end


def publish(staged: Path, folder: Path) -> list[str]:
    """Move what is staged into a folder, descriptions before files, so that a file there always has a description.

    What another process has moved meanwhile is in its place.
    """
    moved = []
    with suppress(FileNotFoundError):
        for item in sorted(staged.iterdir(), key=lambda item: (not item.name.endswith(".json"), item.name)):
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
        staged.rmdir()
    make_last(folder)
    return [name for name in moved if not name.endswith(".json")]


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read, and wait until the disk has it."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        write_through(handle, content)
    finally:
        os.close(handle)


def open_regular(path: Path) -> BinaryIO:
    """Open a file. To open a pipe or a device can already do something, or wait for ever, so neither is opened."""
    real = os.path.realpath(path)
    if not stat.S_ISREG(os.lstat(real).st_mode):
        raise OSError(0, "not a regular file")
    flags = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"))
    stream = os.fdopen(os.open(real, os.O_RDONLY | flags), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # exchanged in between
        stream.close()
        raise OSError(0, "not a regular file")
    return stream


def read_regular(path: Path, largest: int) -> bytes:
    """The content of a regular file; OSError for another, or a larger one."""
    with open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size > largest:
            raise OSError(0, "too large")
        return stream.read()


def read_description(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The description beside a file that `release` wrote; None for any other file."""
    try:
        described = json.loads(read_regular(sidecar_of(path), LARGEST_DESCRIPTION))
        return dict(described) if described["file"] == Path(path).name else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def find_count_column(path: str | os.PathLike[str]) -> str | None:
    """The column of counts of a file that `release` wrote, as its description says; None for any other file."""
    name = (read_description(path) or {}).get("count")
    return name if isinstance(name, str) else None


def read_content(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_FILE)
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InvalidInput("the released table cannot be read", got=got, code="unreadable") from None


def decode(file: Path, content: bytes) -> pd.DataFrame:
    """The frame of a released file; texts of a CSV file stay texts."""
    import pandas as pd

    try:
        if file.suffix.lower() == ".csv":
            return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, encoding="utf-8")
        return pd.read_parquet(io.BytesIO(content))
    except (ValueError, OSError, MemoryError):  # pandas' and Arrow's own errors are of these kinds
        got = file.name
        raise InvalidInput(f"the released table is no {file.suffix.lower()} file", got=got, code="format") from None
