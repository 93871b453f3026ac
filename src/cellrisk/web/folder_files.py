"""Paths under the named folder: nothing above it, nothing hidden, no link that leads out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from cellrisk.errors import InvalidInput

ENDINGS = (".csv", ".csv.gz", ".parquet")
MOST_FILES = 1000
MOST_VISITED = 100_000


def list_files(folder: Path) -> list[tuple[str, int]]:
    """Return the tables below a folder: relative paths with forward slashes, and bytes; sorted, at most a thousand.

    Links are not followed into folders, and a link to a file counts only if the file is in the folder too.
    """
    paths = [path for path in islice(_walk(folder), MOST_VISITED) if path.name.lower().endswith(ENDINGS)]
    named = [(path.relative_to(folder).as_posix(), path) for path in paths if _is_inside(folder, path)]
    return sorted((name, path.stat().st_size) for name, path in named if _is_text(name))[:MOST_FILES]


def find_file(folder: Path, given: str) -> Path:
    """Return the file that a relative path names; refuse anything else with the same words, which reveal nothing."""
    parts = given.split("/")
    plain = _is_text(given) and "\0" not in given and "\\" not in given and given.lower().endswith(ENDINGS)
    path = folder.joinpath(*parts) if plain and not any(part == "" or part.startswith(".") for part in parts) else None
    if path is None or not _is_inside(folder, path):
        raise InvalidInput("there is no such file in the folder", fix="choose one of those that are listed")
    return path.resolve()


def _is_inside(folder: Path, path: Path) -> bool:
    """Return whether this is a regular file below the folder once every link is followed, and no part is hidden."""
    try:
        real = path.resolve(strict=True)
        below = real.relative_to(folder.resolve(strict=True))
        return real.is_file() and not any(part.startswith(".") for part in below.parts)
    except (OSError, ValueError, RuntimeError):  # gone, outside, or a circle of links
        return False


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(files) if not name.startswith("."))


def _is_text(name: str) -> bool:
    return name.isprintable() and name.encode("utf-8", "replace").decode() == name
