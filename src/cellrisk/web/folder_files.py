"""Files of the named folder: nothing above it, nothing hidden, no link that leads out."""

from __future__ import annotations

import os
from pathlib import Path

from cellrisk.errors import InvalidInput

ENDINGS = (".csv", ".csv.gz", ".parquet")
MOST_FILES = 1000


def list_files(folder: Path) -> dict[str, Path]:
    """Return the tables below a folder by their relative paths with forward slashes, sorted, at most a thousand.

    Links are not followed into folders, and a link to a file counts only if the file is in the folder and not hidden.
    """
    found: dict[str, Path] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(place, name) for name in sorted(names) if name.lower().endswith(ENDINGS)):
            name, real = path.relative_to(folder).as_posix(), Path(os.path.realpath(path))
            inside = real.relative_to(folder).parts if real.is_file() and real.is_relative_to(folder) else (".",)
            if name.isprintable() and not any(part.startswith(".") for part in (path.name, *inside)):
                found[name] = real
        if len(found) >= MOST_FILES:
            break
    return dict(sorted(found.items())[:MOST_FILES])


def find_file(folder: Path, given: str) -> Path:
    """Return the file that a listed path names; refuse anything else with the same words, which reveal nothing."""
    path = list_files(folder).get(given)
    if path is None:
        raise InvalidInput("there is no such file in the folder", fix="choose one of those that are listed")
    return path
