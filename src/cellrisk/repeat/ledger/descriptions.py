"""The descriptions beside released files: they name their ledger and their entry, and so tell what a ledger has lost.

Files are only read here, and only regular ones; a ledger that somebody sent can name any path.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from cellrisk.publish.releasing.saving import MANIFEST, sidecar_of
from cellrisk.repeat.ledger.chain import Problem
from cellrisk.repeat.ledger.entry import BLOCK, Entry, show_on_one_line

LARGEST = 1 << 28
MOST_NAMES = 100_000
ENDINGS = (".csv.json", ".parquet.json")


def digest_description(text: str) -> str | None:
    """The SHA-256 of a description without what it says of its ledger, which is written after it.

    None for a text that is not, letter for letter, as cellrisk writes it.
    """
    try:
        described = json.loads(text)
        if not isinstance(described, dict) or _write(described) != text:
            return None
        described.pop("ledger", None)
        return hashlib.sha256(_write(described).encode("utf-8")).hexdigest()
    except (ValueError, RecursionError):
        return None


def _write(described: Mapping[str, Any]) -> str:
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def read_regular(path: Path) -> bytes | None:
    """The content of a regular file; None where there is none, or where it is something else or too large."""
    with suppress(OSError, ValueError), _open_regular(path) as stream:
        if _size(stream) <= LARGEST:
            return stream.read(LARGEST)
    return None


def digest_regular(path: Path, size: int) -> str | None:
    """The SHA-256 of a regular file of that size; empty where the size is another, None where it cannot be read."""
    with suppress(OSError, ValueError), _open_regular(path) as stream:
        if _size(stream) != size:
            return ""
        digest, left = hashlib.sha256(), size
        while block := stream.read(min(BLOCK, left)):
            digest.update(block)
            left -= len(block)
        return digest.hexdigest()
    return None


def _open_regular(path: Path) -> BinaryIO:
    """Opens a file. To open a pipe or a device can already do something, or wait for ever, so neither is opened."""
    real = os.path.realpath(path)
    if not stat.S_ISREG(os.lstat(real).st_mode):
        raise OSError("no regular file")
    flags = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"))
    stream = os.fdopen(os.open(real, os.O_RDONLY | flags), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # exchanged in between
        stream.close()
        raise OSError("no regular file")
    return stream


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def compare_description(entry: Entry, identity: str, path: Path) -> str:
    """What is wrong with the description beside the file of an entry; empty where nothing is."""
    wanted = entry.file.description if entry.file is not None else None
    if wanted is None:  # recorded by hand, or by a version that did not note it
        return ""
    return _compare(entry, identity, path, wanted)


def compare_tables(entry: Entry, identity: str, path: Path) -> Iterator[str]:
    """What is wrong with the tables of a set and their descriptions, compared with the list of them at a path.

    The list itself was compared with its entry before.
    """
    try:
        listed = json.loads(read_regular(path) or b"")["tables"]
        told = [(str(each["file"]), str(each["sha256"]), str(each["description"])) for each in listed]
    except (ValueError, KeyError, TypeError, RecursionError):
        told = []
    if len(told) != len(entry.tables) or any(Path(name).name != name for name, _, _ in told):
        yield "the list of its tables cannot be read"
        return
    for name, sha256, described in told:
        content = read_regular(path.parent / name)
        shown = show_on_one_line(name)
        if content is None:
            yield f"its file {shown} is not there, or cannot be read: it was deleted"
        elif hashlib.sha256(content).hexdigest() != sha256:
            yield f"its file {shown} is not what was released: it was changed"
        fault = _compare(entry, identity, path.parent / name, described)
        if fault:
            yield fault


def digest_set(path: Path, sha256: str) -> str | None:
    """The digest of the list of a set that a file is in; None where no list beside the file has its digest."""
    listed = read_regular(path.with_name(MANIFEST)) or b""
    return hashlib.sha256(listed).hexdigest() if sha256.encode() in listed else None


def _compare(entry: Entry, identity: str, path: Path, wanted: str) -> str:
    """What is wrong with the description beside a file, whose digest is known."""
    name = show_on_one_line(sidecar_of(path).name)
    content = read_regular(sidecar_of(path))
    if content is None:
        return f"the description {name} of its file is not there, or cannot be read: it was deleted"
    try:
        text = content.decode("utf-8")
        named = json.loads(text)["ledger"]
    except (ValueError, KeyError, TypeError, RecursionError):
        text, named = "", None
    if digest_description(text) != wanted or named != {
        "id": identity,
        "entry": entry.number,
        "digest": entry.digest,
    }:
        return f"the description {name} of its file is not what was released: it was changed"
    return ""


def find_lost(identity: str, digest_of: Callable[[int], str | None], folders: Iterable[Path]) -> Iterator[Problem]:
    """Entries that descriptions name, and that the ledger lacks: those in the folders, and in sets that lie there."""
    for folder in dict.fromkeys(folders):
        for path in _list_descriptions(folder):
            named = _read_name(path, identity)
            if named is None:
                continue
            number, digest = named
            if digest_of(number) != digest:
                name = show_on_one_line(str(path.relative_to(folder)).removesuffix(".json"))
                yield Problem(
                    None,
                    f"the ledger lacks entry {number:,}, which the description of {name} names: it is older than that "
                    "release, restored from a copy, or it was rewritten",
                )


def _list_descriptions(folder: Path) -> list[Path]:
    paths = [folder / name for name in _list_names(folder)]
    for inside in [path for path in paths if (path / MANIFEST).is_file()]:
        paths += [inside / name for name in _list_names(inside)]
    return [path for path in paths if path.name.lower().endswith(ENDINGS)]


def _list_names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            names = [each.name for each, _ in zip(found, range(MOST_NAMES), strict=False)]
    except (OSError, ValueError):
        return []
    return sorted(name for name in names if not name.startswith("."))


def _read_name(path: Path, identity: str) -> tuple[int, str] | None:
    """The entry of this ledger that a description names, and its digest."""
    content = read_regular(path)
    if content is None or identity.encode() not in content:
        return None
    try:
        named = json.loads(content)["ledger"]
        number, digest = named["entry"], named["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if named.get("id") != identity or type(number) is not int or not isinstance(digest, str):
        return None
    return number, digest
