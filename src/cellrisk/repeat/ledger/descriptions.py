"""The descriptions beside released files: each names its ledger and its entry, and so shows what a ledger has lost.

Files are only read here, and only regular ones: a ledger from somebody else can name any path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.publish.releasing.files import MANIFEST, open_regular, sidecar_of
from cellrisk.repeat.ledger.entry import BLOCK, Entry, Problem, show_on_one_line
from cellrisk.system.atomic import refuse_inputs

LARGEST = 1 << 28
MOST_NAMES = 100_000
NEWEST = 100
"""Descriptions that a save looks at in a folder, newest first: those of lost entries are the newest."""
ENDINGS = (".csv.json", ".parquet.json")
NAMED = re.compile(
    rb'"ledger": \{\s*"id": "([0-9a-f]{32})",\s*"entry": ([0-9]{1,15}),\s*"digest": "([0-9a-f]{64})"\s*\}\s*\}\s*\Z'
)
"""The end of a description: the entry that it names."""
TAIL = 512


def digest_description(text: str) -> str | None:
    """The SHA-256 of a description without its ledger entry, which is added later.

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


def name_entry(text: str, ledger: Mapping[str, Any]) -> str:
    """Return a description with the ledger's id, entry and digest at its end."""
    return _write({**json.loads(text), "ledger": ledger})


def _write(described: Mapping[str, Any]) -> str:
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def read_end(path: Path, last: int = LARGEST) -> bytes | None:
    """The last bytes of a regular file, by default all; None if it is something else, too large or missing."""
    with suppress(OSError, ValueError), open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= LARGEST or last < LARGEST:
            stream.seek(max(size - last, 0))
            return stream.read(last)
    return None


def digest_regular(path: Path, size: int) -> str | None:
    """The SHA-256 of a regular file of that size; empty if the size is another, None if it cannot be read."""
    with suppress(OSError, ValueError), open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size != size:
            return ""
        digest, left = hashlib.sha256(), size
        while block := stream.read(min(BLOCK, left)):
            digest.update(block)
            left -= len(block)
        return digest.hexdigest()
    return None


def compare_description(entry: Entry, identity: str, path: Path, wanted: str | None = None) -> str:
    """What is wrong with the description beside the file at a path; empty if nothing is.

    wanted: the digest of the description; default that of the entry. A file that was recorded by hand has none.
    """
    wanted = wanted or (entry.file.description if entry.file is not None else None)
    if wanted is None:
        return ""
    name = show_on_one_line(sidecar_of(path).name)
    content = read_end(sidecar_of(path))
    if content is None:
        return f"the description {name} of its file is not there, or cannot be read: it was deleted"
    try:
        text = content.decode("utf-8")
        named = json.loads(text)["ledger"]
    except (ValueError, KeyError, TypeError, RecursionError):
        text, named = "", None
    stated = {"id": identity, "entry": entry.number, "digest": entry.digest}
    if digest_description(text) != wanted or named != stated:
        return f"the description {name} of its file is not what was released: it was changed"
    return ""


def compare_tables(entry: Entry, identity: str, path: Path) -> Iterator[str]:
    """What is wrong with the tables of a set and their descriptions, compared with the list of them at a path.

    The list itself was compared with its entry before.
    """
    try:
        tables = json.loads(read_end(path) or b"")["tables"]
        listed = [(str(table["file"]), str(table["sha256"]), str(table["description"])) for table in tables]
    except (ValueError, KeyError, TypeError, RecursionError):
        listed = []
    if not listed or any(Path(name).name != name for name, _, _ in listed):
        yield "the list of its tables cannot be read"
        return
    for name, sha256, described in listed:
        content = read_end(path.parent / name)
        if content is None:
            yield f"its file {show_on_one_line(name)} is not there, or cannot be read: it was deleted"
        elif hashlib.sha256(content).hexdigest() != sha256:
            yield f"its file {show_on_one_line(name)} is not what was released: it was changed"
        fault = compare_description(entry, identity, path.parent / name, described)
        if fault:
            yield fault


def digest_set(path: Path, sha256: str) -> str | None:
    """The digest of the list of a set that a file is in; None if no list beside the file has its digest."""
    listed = read_end(path.with_name(MANIFEST)) or b""
    return hashlib.sha256(listed).hexdigest() if sha256.encode() in listed else None


def refuse_released(entries: Sequence[Entry], target: Path) -> None:
    """Refuse to write over a file that one of the entries has released, or over a description of one."""
    released = {entry.file.sha256: entry for entry in entries if entry.file is not None}
    content = read_end(target) or b""
    entry = released.get(hashlib.sha256(content).hexdigest())
    if entry is not None or NAMED.search(content) or NAMED.search(read_end(sidecar_of(target)) or b""):
        what = "what was released, or its description" if entry is None else f"what entry {entry.number} has released"
        refuse_inputs(target, {target: what})


class Named(NamedTuple):
    """A description that names an entry of a ledger."""

    path: Path
    """The file that it describes."""
    name: str
    """The file in its folder, to be shown."""
    number: int
    digest: str


def list_named(identity: str, folder: Path, newest: int = MOST_NAMES) -> Iterator[Named]:
    """The newest descriptions in a folder, and in its newest folders that are a set's, that name entries of a ledger.

    Of each description the end is read.
    """
    dated: list[tuple[int, Path]] = []
    with suppress(OSError, ValueError), os.scandir(folder) as items:
        for item, _ in zip(items, range(MOST_NAMES), strict=False):
            with suppress(OSError, ValueError):
                if item.name.startswith("."):
                    continue
                if item.name.lower().endswith(ENDINGS):
                    dated.append((item.stat().st_mtime_ns, folder / item.name))
                elif item.is_dir() and (folder / item.name / MANIFEST).is_file():
                    names = sorted(name for name in os.listdir(item.path) if name.lower().endswith(ENDINGS))
                    dated += [(item.stat().st_mtime_ns, folder / item.name / name) for name in names]
    for _, path in sorted(dated, reverse=True)[:newest]:
        named = NAMED.search(read_end(path, TAIL) or b"")
        if named is not None and named[1].decode() == identity:
            name = show_on_one_line(str(path.with_suffix("").relative_to(folder)))
            yield Named(path.with_suffix(""), name, int(named[2]), named[3].decode())


def describe_lost(named: Named) -> Problem:
    """An entry that a description names and the ledger lacks."""
    return Problem(
        None,
        f"the ledger lacks entry {named.number:,}, which the description of {named.name} names: "
        "it is older than that release, restored from a copy, or it was rewritten",
    )
