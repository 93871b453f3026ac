"""Two files that belong together, written both or neither."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path

from cellrisk.errors import InvalidInput
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


def write_pair(path: str | os.PathLike[str], content: bytes, description: str, *, force: bool = False) -> Path:
    """Writes a file and its description, so that nobody sees one of a new pair beside one of an old pair.

    Both are written whole under other names, old ones are put aside, and then the description is moved before the file:
    a file that stands there is always described. Where anything fails, what was there before is put back.
    """
    target = check_free(path, force)
    token = secrets.token_hex(8)
    ends = (sidecar_of(target), target)
    new, old = ([end.with_name(f".{end.name}.{token}.{state}") for end in ends] for state in ("new", "old"))
    try:
        with ExitStack() as undo:
            for place in new:
                undo.callback(_remove, place)
            write_whole(new[0], description)
            write_whole(new[1], content)
            check_free(target, force)
            for end, aside in ((ends[1], old[1]), (ends[0], old[0])):  # the file first: it is never undescribed
                if end.exists():
                    os.replace(end, aside)
                    undo.callback(os.replace, aside, end)
            for place, end in zip(new, ends, strict=True):
                os.replace(place, end)
                undo.callback(_remove, end)
            undo.pop_all()
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{target} ({error.strerror})") from None
    for aside in old:
        _remove(aside)
    return target


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
