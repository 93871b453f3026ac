"""Where records come from: uploads in a private folder, files of the named folder, the example that is shipped."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio import to_thread

from cellrisk.counts import datasets
from cellrisk.counts.files import KINDS, PACKED, PARQUET_SUFFIXES, TEXT_SUFFIXES
from cellrisk.errors import InvalidInput
from cellrisk.web.guard import TooLarge

ENDINGS = (*PARQUET_SUFFIXES, *(f"{ending}{packing}" for ending in TEXT_SUFFIXES for packing in ("", PACKED)))
MOST_UPLOADS = 20
LISTED = (".csv", ".csv.gz", ".parquet")
MOST_LISTED = 1000
MOST_AT_ONCE = 4
ADULT: dict[str, Any] = {
    "quasi_identifiers": ["age", "relationship", "education", "race", "sex", "hours-per-week"],
    "sensitive": ["income"],
    "bins": {"age": "5", "hours-per-week": "10"},
    "counts": [],
}


@dataclass(frozen=True)
class Origin:
    """One source: where it is, and how a user finds it again."""

    id: str
    name: str
    bytes: int
    find: Callable[[], Path]
    """Return the path, checked again each time."""
    command: str
    """The path for a command line."""
    kind: str
    """file, example or upload."""
    suggested: dict[str, Any] | None = None

    def stamp(self) -> tuple[int, int]:
        """Return what changes when the file does."""
        stat = self.find().stat()
        return stat.st_size, stat.st_mtime_ns

    def to_dict(self) -> dict[str, Any]:
        return {"source": self.id, "name": self.name, "bytes": self.bytes, "kind": self.kind}


class Sources:
    """The sources that pages have loaded. Uploads beyond the last twenty, or beyond twice the limit, are removed."""

    def __init__(self, private: Path, folder: Path | None, upload_limit: int) -> None:
        self._private, self._folder, self._limit = private, folder, upload_limit
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._lock = threading.Lock()
        self._arriving = 0

    def find(self, source: str) -> Origin | None:
        return self._origins.get(source)

    def open_example(self) -> Origin:
        path = datasets.adult_path()
        return self._add("adult", lambda: path, "adult.parquet", "example", ADULT)

    def open_file(self, given: str) -> Origin:
        """Return a file of the folder; the same file gives the same source."""
        folder = self._folder
        if folder is None:
            raise InvalidInput("the server has no folder", fix="start it with --folder, or upload the file")
        stat = find_file(folder, given).stat()
        return self._add(f"{given} {stat.st_size} {stat.st_mtime_ns}", lambda: find_file(folder, given), given, "file")

    def _add(
        self, key: str, find: Callable[[], Path], name: str, kind: str, suggested: dict[str, Any] | None = None
    ) -> Origin:
        identity, path = hashlib.sha256(key.encode()).hexdigest()[:32], find()
        origin = Origin(identity, name, path.stat().st_size, find, str(path), kind, suggested)
        return self._origins.setdefault(identity, origin)

    async def receive(self, given: str, length: int, chunks: AsyncIterator[bytes]) -> Origin:
        """Take an upload in as it arrives, straight to the private folder; stop if it gets too large."""
        name, identity, size = clean_name(given), secrets.token_urlsafe(16), 0
        path = self._private / f"{identity}{ending_of(name)}"
        unfinished = path.with_suffix(".unfinished")
        if length > self._limit:
            raise TooLarge
        if self._arriving >= MOST_AT_ONCE:
            raise InvalidInput("too many uploads at once", allowed=f"{MOST_AT_ONCE}", fix="wait for the others")
        self._arriving += 1
        try:
            with unfinished.open("xb") as stream:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._limit:
                        raise TooLarge
                    await to_thread.run_sync(stream.write, chunk)
            unfinished.rename(path)
        except OSError as error:
            raise InvalidInput(f"the upload cannot be kept: {error.strerror or type(error).__name__}") from None
        finally:
            self._arriving -= 1
            unfinished.unlink(missing_ok=True)
        origin = Origin(identity, name, size, lambda: path, name, "upload")
        with self._lock:
            self._origins[identity] = origin
            self._remove_old_uploads()
        return origin

    def _remove_old_uploads(self) -> None:
        uploads = [origin for origin in self._origins.values() if origin.kind == "upload"]
        while len(uploads) > 1 and (
            len(uploads) > MOST_UPLOADS or sum(origin.bytes for origin in uploads) > 2 * self._limit
        ):
            oldest = uploads.pop(0)
            del self._origins[oldest.id]
            oldest.find().unlink(missing_ok=True)


def clean_name(given: str) -> str:
    """Return the name of a file as it is shown: no folders, nothing that does not print.

    >>> clean_name("C:\\\\data\\\\people\\x00.csv"), clean_name("../../people.csv")
    ('people.csv', 'people.csv')
    """
    last = given.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[-120:].lstrip(".- ") or "upload"


def ending_of(name: str) -> str:
    """Return the part of a file's name that says its kind; refuse other kinds."""
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.lower().endswith(ending):
            return ending
    raise InvalidInput("the kind of the file is not known from its name", allowed=KINDS)


def list_files(folder: Path) -> dict[str, Path]:
    """Return the tables below a folder by their relative paths with forward slashes, sorted, at most a thousand.

    Links are not followed into folders, and a link to a file counts only if the file is in the folder and not hidden.
    """
    found: dict[str, Path] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(root, name) for name in sorted(names) if name.lower().endswith(LISTED)):
            name, real = path.relative_to(folder).as_posix(), Path(os.path.realpath(path))
            inside = real.relative_to(folder).parts if real.is_file() and real.is_relative_to(folder) else (".",)
            if name.isprintable() and not any(part.startswith(".") for part in (path.name, *inside)):
                found[name] = real
        if len(found) >= MOST_LISTED:
            break
    return dict(sorted(found.items())[:MOST_LISTED])


def find_file(folder: Path, given: str) -> Path:
    """Return the file that a listed path names; refuse anything else with the same words, which reveal nothing."""
    path = list_files(folder).get(given)
    if path is None:
        raise InvalidInput("there is no such file in the folder", fix="choose one of those that are listed")
    return path
