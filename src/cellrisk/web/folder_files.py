"""Paths under the named folder: nothing above it, nothing hidden, no link that leads out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cellrisk.errors import InvalidInput

ENDINGS = (".csv", ".csv.gz", ".parquet")
MOST_FILES = 1000
MOST_VISITED = 100_000
REFUSED = "there is no such file in the folder"
FIX = "choose one of those that are listed"


def list_files(folder: Path) -> list[tuple[str, int]]:
    """The tables below a folder: relative paths with forward slashes, and bytes; sorted, at most a thousand.

    Links are not followed into folders, and a link to a file counts only where the file is in the folder too.
    """
    found = []
    for visited, path in enumerate(_walk(folder)):
        if visited >= MOST_VISITED:
            break
        if path.name.lower().endswith(ENDINGS) and _is_inside(folder, path):
            try:
                found.append((path.relative_to(folder).as_posix(), path.stat().st_size))
            except OSError:  # gone since
                continue
    readable = [(name, size) for name, size in found if _is_text(name)]
    return sorted(readable)[:MOST_FILES]


def find_file(folder: Path, given: str) -> Path:
    """The file that a relative path names; anything else is refused with the same words, so that nothing is learnt."""
    refusal = InvalidInput(REFUSED, fix=FIX)
    parts = given.split("/")
    if "\0" in given or "\\" in given or not _is_text(given) or Path(given).is_absolute():
        raise refusal
    if any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise refusal
    if not parts[-1].lower().endswith(ENDINGS):
        raise refusal
    path = folder.joinpath(*parts)
    if not _is_inside(folder, path):
        raise refusal
    return path.resolve()


def _is_inside(folder: Path, path: Path) -> bool:
    """Whether this is a regular file below the folder once every link is followed, and no part of it is hidden."""
    try:
        real = path.resolve(strict=True)
        below = real.relative_to(folder.resolve(strict=True))
        return real.is_file() and not any(part.startswith(".") for part in below.parts)
    except (OSError, ValueError, RuntimeError):  # gone, outside, or a circle of links
        return False


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(place) / name


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
