"""Two files that belong together, written both or neither."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from cellrisk.errors import InvalidInput
from cellrisk.stopping import unfinished
from cellrisk.writing import check_writable, write_whole


def sidecar_of(path: str | os.PathLike[str]) -> Path:
    """Where the description of a file stands: beside it, with ``.json`` after its name.

    >>> sidecar_of("released.csv").name
    'released.csv.json'
    """
    return Path(f"{os.fspath(path)}.json")


def find_count_column(path: str | os.PathLike[str]) -> str | None:
    """The column of counts of a file that `release` wrote, as its description says; None for any other file."""
    try:
        described = json.loads(sidecar_of(path).read_text(encoding="utf-8"))
        name = described["count"] if described["file"] == Path(path).name else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def check_free(path: str | os.PathLike[str], force: bool) -> Path:
    """Refuses a place that cannot be written to, or that is taken where ``force`` does not allow to replace it."""
    target = check_writable(path)
    for each in (target, check_writable(sidecar_of(target))):
        if each.exists() and not force:
            raise InvalidInput(
                "the output path exists", got=each, fix="choose another name, or replace it with force=True (--force)"
            )
    return target


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

    def stage_description(self, description: str) -> None:
        """Writes the description under its hidden name."""
        write_whole(self.new[0], description, public=True, replaces=self.ends[0])

    def stage_file(self, content: bytes) -> None:
        """Writes the file under its hidden name."""
        write_whole(self.new[1], content, public=True, replaces=self.ends[1])

    def publish(self, undo: ExitStack | None = None) -> None:
        """Moves what is staged into its place; where that was begun already, the rest of it.

        Old ones are put aside, and then the description is moved before the file: a file that stands there is always
        described. undo: what takes the moves back, in its order; without it there is only forward.
        """
        for place, end, aside in reversed(list(zip(self.new, self.ends, self.old, strict=True))):
            if place.exists() and end.exists():
                os.replace(end, aside)
                if undo is not None:
                    undo.callback(os.replace, aside, end)
        for place, end in zip(self.new, self.ends, strict=True):
            if place.exists():
                os.replace(place, end)
                if undo is not None:
                    undo.callback(_remove, end)

    def finish(self) -> None:
        """Makes the moves last, and forgets what was put aside."""
        make_last(self.target.parent)
        for aside in self.old:
            _remove(aside)

    def discard(self) -> None:
        """Removes what is staged, and what a death in the middle of staging may have left."""
        with suppress(OSError):
            for name in os.listdir(self.target.parent):
                if name.startswith(".") and self.token in name:
                    _remove(self.target.parent / name)

    def _hidden(self, state: str) -> tuple[Path, Path]:
        description, file = (end.with_name(f".{end.name}.{self.token}.{state}") for end in self.ends)
        return description, file


def make_last(folder: Path) -> None:
    """Names in a folder outlive a loss of power from here on, where the system can see to that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_pair(path: str | os.PathLike[str], content: bytes, description: str, *, force: bool = False) -> Path:
    """Writes a file and its description, so that nobody sees one of a new pair beside one of an old pair.

    Where anything fails, what was there before is put back.
    """
    target = check_free(path, force)
    pair = Pair(target, secrets.token_hex(8))
    try:
        with ExitStack() as staged, ExitStack() as undo:
            for place in pair.new:
                undo.callback(_remove, place)
                staged.enter_context(unfinished(place))
            pair.stage_description(description)
            pair.stage_file(content)
            check_free(target, force)
            pair.publish(undo)
            undo.pop_all()
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{target} ({error.strerror})") from None
    pair.finish()
    return target


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
