"""Whether a ledger is as it was written, and whether the files that it has released and their descriptions are.

Each description names its ledger and its entry, and so shows what a ledger has lost. Files are only read here, and only
regular ones: a ledger from somebody else can name any path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.files import MANIFEST, open_regular, sidecar_of
from cellrisk.repeat.ledger.cohorts import find_undeclared
from cellrisk.repeat.ledger.entry import BLOCK, Entry, Problem, find_breaks, show_on_one_line
from cellrisk.system.atomic import refuse_inputs
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.repeat.ledger.backends import Session
    from cellrisk.repeat.ledger.checkpoints import Checkpoint

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


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The answer of `Ledger.verify`."""

    wording = "ledger"

    id: str
    """The ledger's."""
    n_entries: int
    head: str
    """The digest of the last entry, as the ledger notes it; a copy elsewhere makes a later check stronger."""
    problems: tuple[Problem, ...]
    remarks: tuple[Problem, ...]
    """What is not a sign of a change, such as a clock that went backwards or a file that was moved."""

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def _numbers(self) -> pd.DataFrame:
        """One row a finding."""
        import pandas as pd

        rows = [("problem", *found) for found in self.problems] + [("remark", *found) for found in self.remarks]
        return pd.DataFrame(rows, columns=["kind", "entry", "text"]).astype({"entry": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "ok": self.ok,
            "sentence": self.headline,
            "ledger": self.id,
            "n_entries": self.n_entries,
            "head": self.head,
            "problems": [found._asdict() for found in self.problems],
            "remarks": [found._asdict() for found in self.remarks],
        }


def examine(
    session: Session, noted: str | None, checkpoints: Sequence[Checkpoint]
) -> tuple[Verification, tuple[Entry, ...]]:
    """Recompute everything that an open ledger states; and the entries that could be read."""
    head = session.head
    rows, damage = session.rescue_rows()
    problems = [Problem(None, damage)] if damage else list(find_breaks(rows, head))
    remarks: list[Problem] = []
    entries, blamed = [], {problem.entry for problem in problems}
    for row in rows:
        with suppress(InvalidInput):
            entries.append(Entry.read(row))
            continue
        if row.number not in blamed:
            problems.append(Problem(row.number, "cannot be read as an entry"))
    if not problems:  # else a declaration may be among what is lost
        problems += find_undeclared(entries)
    problems += [Problem(None, flaw) for flaw in session.flaws]
    remarks += [
        Problem(entry.number, f"the clock was {entry.clock_behind:g} s behind the entry before")
        for entry in entries
        if entry.clock_behind is not None
    ]
    if noted is not None:  # entries may have been added since
        wanted = noted.strip().lower() if isinstance(noted, str) else ""
        if not re.fullmatch("[0-9a-f]{64}|[0-9a-f]{32}", wanted):
            raise InvalidInput("a digest is 64 hexadecimal digits", fix="copy it from what verify or show prints")
        number = 0 if wanted == head.id else next((row.number for row in rows if row.digest == wanted), None)
        if number is None:
            problems.append(Problem(None, "no entry has the digest that was noted elsewhere: the ledger was rewritten"))
        elif number < head.number:
            after = f"has the digest that was noted elsewhere; {head.number - number:,} came after it"
            remarks.append(Problem(number, after))
    for fault, last in dict.fromkeys((file.compare(session), file.last(head.id)) for file in checkpoints):
        if fault:
            problems.append(Problem(None, fault))
        elif last is not None and last[0] < head.number:
            after = f"is the last entry of the checkpoint; {head.number - last[0]:,} came after"
            remarks.append(Problem(last[0] or None, after))
    problems += [
        Problem(None, f"the file of the ledger is damaged: {fault}")
        for fault in session.backend.find_faults(session.connection)
    ]
    return Verification(head.id, len(rows), head.digest, _sorted(problems), tuple(remarks)), tuple(entries)


def _sorted(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.entry or 0))


def compare_files(
    found: Verification, entries: Sequence[Entry], folders: Sequence[Path], is_ledger: Callable[[Path], bool]
) -> tuple[Verification, bool]:
    """Compare the released files in some folders with the digests of their entries; and whether files are still being
    moved into their place.

    The description beside a file names its entry. A file without one, recorded by hand, is known by its name.
    """
    problems, remarks = list(found.problems), list(found.remarks)
    staged = {path.name for folder in folders for path in folder.glob(f".{found.id}.*.new")}
    known = {entry.number: entry for entry in entries}
    seen: set[int] = set()
    claimed: set[Path] = set()
    for named in (named for folder in folders for named in list_named(found.id, folder)):
        entry = known.get(named.number)
        if entry is None or entry.digest != named.digest or entry.file is None:
            problems.append(describe_lost(named))
            continue
        path = named.path.with_name(entry.file.name) if entry.of_set else named.path
        sha256, name = None if is_ledger(path) else digest_regular(path, entry.file.bytes), show_on_one_line(path.name)
        if sha256 is None:  # a file can be taken elsewhere without its description, the list of a set cannot
            found_missing = problems if entry.of_set else remarks
            found_missing.append(Problem(entry.number, f"its file {name} was deleted or moved, or cannot be read"))
        elif sha256 != entry.file.sha256:
            problems.append(Problem(entry.number, f"its file {name} is not what was released: it was changed"))
        elif entry.of_set:
            problems += [Problem(entry.number, fault) for fault in compare_tables(entry, found.id, path)]
        fault = "" if entry.of_set else compare_description(entry, found.id, path)
        problems += [Problem(entry.number, fault)] if fault else []
        seen.add(entry.number)
        claimed.add(named.path)
    for entry in reversed(entries):  # of several of one name, the last is there
        if entry.file is None or entry.number in seen:
            continue
        name = show_on_one_line(entry.file.name)
        if f".{found.id}.{entry.digest}.new" in staged:
            fix = "cellrisk ledger recover LEDGER FOLDER moves it there"
            remarks.append(Problem(entry.number, f"its file {name} is not in its place yet: {fix}"))
            continue
        paths = (folder / entry.file.name for folder in folders)
        there = next((path for path in paths if path.exists() and not is_ledger(path)), None)
        if there is None or there in claimed:
            what = "is not in a folder that was looked at" if there is None else "was replaced by a later release"
            remarks.append(Problem(entry.number, f"its file {name} {what}"))
            continue
        claimed.add(there)
        sha256 = digest_regular(there, entry.file.bytes)
        if sha256 is None:
            remarks.append(Problem(entry.number, f"its file {name} cannot be read"))
        elif sha256 != entry.file.sha256:
            problems.append(Problem(entry.number, f"its file {name} is not what was released: it was changed"))
        elif entry.file.description is not None:
            fault = f"the description {name}.json of its file is not there, or not what was released: it was changed"
            problems.append(Problem(entry.number, fault))
    return replace(found, problems=_sorted(problems), remarks=_sorted(remarks)), bool(staged)


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
