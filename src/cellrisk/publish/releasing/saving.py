"""Files that belong together, written all or none: a release and its description, or the releases of a set."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from cellrisk.errors import InvalidInput, argument
from cellrisk.system.stopping import note_outcome, unfinished
from cellrisk.system.writing import check_writable, make_last, public_mode, refuse_inputs, write_through

FORMATS = (".parquet", ".csv")


def sidecar_of(path: str | os.PathLike[str]) -> Path:
    """Where the description of a file stands: beside it, with ``.json`` after its name.

    >>> sidecar_of("released.csv").name
    'released.csv.json'
    """
    return Path(f"{os.fspath(path)}.json")


def check_format(path: str | os.PathLike[str]) -> Path:
    """Refuses a file name whose ending says no format."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidInput("a release is saved by its ending", got=target.name, allowed=", ".join(FORMATS))
    return target


def check_free(path: str | os.PathLike[str], force: bool, inputs: Mapping[Path, str] = MappingProxyType({})) -> Path:
    """Refuses a place that cannot be written to, that is taken where ``force`` does not allow to replace it, or whose
    file or description is one of the ``inputs``."""
    target = check_writable(path)
    for each in (target, check_writable(sidecar_of(target))):
        refuse_inputs(each, inputs)
        if each.exists() and not force:
            raise InvalidInput(
                "the output path exists",
                got=each,
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


def staged_at(target: Path, token: str) -> Pair | StagedFolder:
    """What is on its way to a place: a folder of releases, or one release."""
    return StagedFolder(target, token) if target.name == MANIFEST else Pair(target, token)


@dataclass(frozen=True)
class StagedFolder:
    """The files of several releases on their way to their place, in a folder with a hidden name: it is moved at once.

    >>> StagedFolder(Path("released/set.json"), "7f3a").new[0].name
    '.released.7f3a.new'
    """

    target: Path
    """The list of files in the folder."""
    token: str

    @property
    def end(self) -> Path:
        """Where the folder belongs."""
        return self.target.parent

    @property
    def outcome(self) -> str:
        """What is said once it stands there."""
        return f"the releases are in their place, with their descriptions: {self.end}"

    @property
    def new(self) -> tuple[Path]:
        """Where the folder is staged."""
        return (self.end.with_name(f".{self.end.name}.{self.token}.new"),)

    def check(self, force: bool) -> None:
        """Refuses a place that is taken; ``force`` is not for folders."""
        check_folder(self.end)

    def stage(self, name: str, content: bytes) -> None:
        """Writes one file into the hidden folder."""
        with suppress(FileExistsError):
            self.new[0].mkdir(0o700)
        _stage(self.new[0] / name, content)

    def publish(self, undo: ExitStack | None = None) -> None:
        """Moves the folder into its place; where that was done already, nothing. One step needs no undoing."""
        (hidden,) = self.new
        if not hidden.exists():
            return
        mode = public_mode(self.target)
        for file in hidden.iterdir():
            os.chmod(file, mode)
        make_last(hidden)
        os.chmod(hidden, mode | (mode & 0o444) >> 2)
        os.rename(hidden, self.end)

    def finish(self) -> None:
        """Makes the move last."""
        make_last(self.end.parent)

    def discard(self) -> None:
        """Removes what is staged, by its exact name."""
        (hidden,) = self.new
        if hidden.is_dir() and not hidden.is_symlink():
            shutil.rmtree(hidden, ignore_errors=True)


@dataclass(frozen=True)
class Pair:
    """A file and its description on their way to their place: whole, under hidden names that hold a token.

    What is staged can be published or thrown away, also by another process that knows the place and the token.

    >>> Pair(Path("released.csv"), "7f3a").new[1].name
    '.released.csv.7f3a.new'
    """

    target: Path
    token: str

    @property
    def end(self) -> Path:
        """Where the file belongs."""
        return self.target

    @property
    def outcome(self) -> str:
        """What is said once both stand there."""
        return f"the release is in its place, with its description: {self.target}"

    @property
    def ends(self) -> tuple[Path, Path]:
        """Where the description and the file belong."""
        return sidecar_of(self.target), self.target

    @property
    def new(self) -> tuple[Path, Path]:
        """Where the new ones are staged."""
        return self._hidden("new")

    @property
    def old(self) -> tuple[Path, Path]:
        """Where those that are replaced are put aside."""
        return self._hidden("old")

    def check(self, force: bool) -> None:
        """Refuses a place that cannot be written to, or that is taken where ``force`` does not allow to replace it."""
        check_free(self.target, force)

    def stage(self, name: str, content: bytes) -> None:
        """Writes the description or the file, whichever has that name, under its hidden name."""
        _stage(self.target.with_name(f".{name}.{self.token}.new"), content)

    def publish(self, undo: ExitStack | None = None) -> None:
        """Moves what is staged into its place; where that was begun already, the rest of it.

        Old ones are put aside, and then the description is moved before the file: a file that stands there is always
        described. undo: what takes the moves back, in its order; without it there is only forward.
        """
        for place, end, aside in reversed(list(zip(self.new, self.ends, self.old, strict=True))):
            if place.exists() and end.exists():
                os.chmod(place, public_mode(end))
                os.replace(end, aside)
                if undo is not None:
                    undo.callback(os.replace, aside, end)
        for place, end, aside in zip(self.new, self.ends, self.old, strict=True):
            if place.exists():
                if not aside.exists():
                    os.chmod(place, public_mode(end))
                os.replace(place, end)
                if undo is not None:
                    undo.callback(_remove, end)

    def finish(self) -> None:
        """Makes the moves last, and forgets what was put aside."""
        make_last(self.target.parent)
        for aside in self.old:
            _remove(aside)

    def discard(self) -> None:
        """Removes what is staged, whole or not, by its exact names."""
        for place in self.new:
            _remove(place)

    def _hidden(self, state: str) -> tuple[Path, Path]:
        description, file = (end.with_name(f".{end.name}.{self.token}.{state}") for end in self.ends)
        return description, file


def write_files(staged: Pair | StagedFolder, files: Mapping[str, bytes], *, force: bool = False) -> Path:
    """Writes files of releases into their place, all or none, so that nobody sees new ones beside old ones.

    Where anything fails, what was there before is put back.
    """
    try:
        with ExitStack() as half_made, ExitStack() as undo:
            undo.callback(staged.discard)
            for place in staged.new:
                half_made.enter_context(unfinished(place))
            for name, content in files.items():
                staged.stage(name, content)
            staged.check(force)
            staged.publish(undo)
            undo.pop_all()
        staged.finish()
        note_outcome(staged.outcome)
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{staged.end} ({error.strerror})") from None
    except KeyboardInterrupt:
        if not _holds(staged.target, files[staged.target.name]):  # what was moved was moved back
            raise
        staged.finish()
        raise KeyboardInterrupt(staged.outcome) from None
    return staged.end


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _stage(path: Path, content: bytes) -> None:
    """Writes a private file under a name that nobody else has."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        write_through(handle, content)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
