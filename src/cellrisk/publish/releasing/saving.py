"""Files that belong together, written all or none: a release and its description, or the releases of a set."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cellrisk.errors import InvalidInput, argument
from cellrisk.system.atomic import check_writable, make_last, public_mode, refuse_inputs, write_through
from cellrisk.system.interrupt import note_outcome

FORMATS = (".parquet", ".csv")
PUBLISHED = "the release is in its place, with its description"


def sidecar_of(path: str | os.PathLike[str]) -> Path:
    """Where the description of a file stands: beside it, with ``.json`` after its name.

    >>> sidecar_of("released.csv").name
    'released.csv.json'
    """
    return Path(f"{os.fspath(path)}.json")


def check_format(path: str | os.PathLike[str]) -> Path:
    """Refuses a file name whose ending names no format of releases."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidInput("a release is saved by its ending", got=target.name, allowed=", ".join(FORMATS))
    return target


def check_free(path: str | os.PathLike[str], force: bool, inputs: Mapping[Path, str] = MappingProxyType({})) -> Path:
    """Refuses a place that cannot be written to, that is taken if ``force`` does not allow to replace it, or whose
    file or description is one of the ``inputs``."""
    target = check_writable(path)
    for file in (target, check_writable(sidecar_of(target))):
        refuse_inputs(file, inputs)
        if file.exists() and not force:
            raise InvalidInput(
                "the output path exists",
                got=file,
                fix=f"choose another name, or replace it with {argument('force', True)}",
            )
    return target


MANIFEST = "set.json"
"""The file in a folder of several releases that says which they are."""


def check_folder(path: str | os.PathLike[str], inputs: Mapping[Path, str] = MappingProxyType({})) -> Path:
    """Refuses a folder that cannot be made, or that is there; returns where its list of files will stand."""
    folder = Path(path)
    if os.path.lexists(folder):
        raise InvalidInput("the output folder exists", got=folder, fix="name one that is not there yet")
    if not folder.name or not folder.parent.is_dir():
        raise InvalidInput("the place of the output folder does not exist", got=folder.parent, fix="make it first")
    refuse_inputs(folder, inputs)
    if not os.access(folder.parent, os.W_OK):
        raise InvalidInput("the output path cannot be written to", got=folder, fix="choose another place")
    return folder / MANIFEST


def folder_of(target: Path) -> Path:
    """The folder that a release is in; of a set, the one that holds the set's own folder."""
    return target.parent.parent if target.name == MANIFEST else target.parent


def write_files(target: Path, files: Mapping[str, bytes], *, force: bool = False) -> Path:
    """Writes the files of a release, or of a set into a new folder, all or none: nobody sees new ones beside old ones.

    target: where the released file belongs, or the list of a set's files. files: the content by file name; of a
    release, the description first. They are staged in a hidden folder. Then the files that they replace are put aside
    there, the file before its description, and they are moved into their place, the description before the file: a
    file that stands there is always described. If anything fails, what was there before is put back.
    """
    of_set = target.name == MANIFEST
    end = target.parent if of_set else target
    outcome = "the releases are in their place, with their descriptions" if of_set else PUBLISHED
    staged = end.with_name(f".{end.name}.{secrets.token_hex(8)}.new")
    moves: list[tuple[Path, Path]] = []
    try:
        staged.mkdir(0o700)
        for name, content in files.items():
            _write_private(staged / name, content)
        if of_set:
            check_folder(end)
        else:
            check_free(target, force)
        moves += _open_folder(staged, target) if of_set else _plan_moves(staged, target, list(files))
        publish(moves)
        make_last(end.parent)
        note_outcome(f"{outcome}: {end}")
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{end} ({error.strerror})") from None
    except KeyboardInterrupt:
        if not _is_published(moves):
            raise
        make_last(end.parent)
        raise KeyboardInterrupt(f"{outcome}: {end}") from None
    finally:
        if not _is_published(moves):
            _undo(moves)
        shutil.rmtree(staged, ignore_errors=True)
    return end


def publish(moves: Sequence[tuple[Path, Path]]) -> None:
    """Moves files, in this order."""
    for source, place in moves:
        os.replace(source, place)


def _is_published(moves: Sequence[tuple[Path, Path]]) -> bool:
    return bool(moves) and not moves[-1][0].exists()


def _undo(moves: Sequence[tuple[Path, Path]]) -> None:
    """Takes back the moves that were made."""
    for source, place in reversed(moves):
        if place.exists() and not source.exists():
            os.replace(place, source)


def _plan_moves(staged: Path, target: Path, names: Sequence[str]) -> list[tuple[Path, Path]]:
    """The moves of a release and its description, which may be read by those who could read what was there."""
    ends = [target.with_name(name) for name in names]
    for end in ends:
        os.chmod(staged / end.name, public_mode(end))
    aside = [(end, staged / f"{end.name}.old") for end in reversed(ends) if end.exists()]
    return aside + [(staged / end.name, end) for end in ends]


def _open_folder(staged: Path, target: Path) -> list[tuple[Path, Path]]:
    """The one move of a folder of releases, which may be read as the umask says."""
    mode = public_mode(target)
    for file in staged.iterdir():
        os.chmod(file, mode)
    make_last(staged)
    os.chmod(staged, mode | (mode & 0o444) >> 2)
    return [(staged, target.parent)]


def _write_private(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        write_through(handle, content)
    finally:
        os.close(handle)
