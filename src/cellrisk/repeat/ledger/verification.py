"""Whether a ledger is as it was written: what is wrong, at which entry, and remarks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.saving import folder_of, sidecar_of
from cellrisk.repeat.ledger.chain import Head, Problem, Row, find_breaks
from cellrisk.repeat.ledger.cohorts import find_undeclared
from cellrisk.repeat.ledger.descriptions import compare_description, compare_tables, digest_regular, find_lost
from cellrisk.repeat.ledger.entry import Entry, WrittenPath, show_on_one_line
from cellrisk.repeat.ledger.staging import is_staged
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.repeat.ledger.checkpoints import Checkpoint
    from cellrisk.repeat.ledger.store import Session


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The answer of `Ledger.verify`."""

    wording = "verification"

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
    problems = [Problem(None, damage)] if damage else []
    remarks: list[Problem] = []
    problems += () if damage else find_breaks(rows, head)
    written = session.paths()
    entries, blamed = [], {problem.entry for problem in problems}
    for row in rows:
        path = written.get(row.number)
        try:
            entries.append(Entry.read(row, None if path is None else path.path))
        except InvalidInput:
            if row.number not in blamed:
                problems.append(Problem(row.number, "cannot be read as an entry"))
    if not problems:  # else a declaration may be among what is lost
        problems += find_undeclared(entries)
    problems += _find_moved(entries, written)
    problems += [Problem(None, flaw) for flaw in session.flaws]
    remarks += [
        Problem(entry.number, f"the clock was {entry.clock_behind:g} s behind the entry before")
        for entry in entries
        if entry.clock_behind is not None
    ]
    if noted is not None:
        _compare_digest(noted, rows, head, problems, remarks)
    for fault, last in dict.fromkeys((file.compare(session), file.last(head.id)) for file in checkpoints):
        if fault:
            problems.append(Problem(None, fault))
        elif last is not None and last[0] < head.number:
            after = f"is the last entry of the checkpoint; {head.number - last[0]:,} came after"
            remarks.append(Problem(last[0] or None, after))
    problems += [Problem(None, f"the file of the ledger is damaged: {fault}") for fault in session.find_faults()]
    return Verification(head.id, len(rows), head.digest, _sorted(problems), tuple(remarks)), tuple(entries)


def _sorted(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.entry or 0))


def _find_moved(entries: Sequence[Entry], written: Mapping[int, WrittenPath]) -> Iterator[Problem]:
    """Paths of files that are not those of their entries."""
    numbers = set()
    for entry in entries:
        if entry.file is not None and entry.file.path_commitment is not None:
            numbers.add(entry.number)
            path = written.get(entry.number)
            if path is None or path.commitment != entry.file.path_commitment:
                yield Problem(entry.number, "the path of its file was edited or removed")
    for number in sorted(set(written) - numbers):
        yield Problem(None, f"a path of a file belongs to no entry (number {number})")


def _compare_digest(
    noted: object, rows: Sequence[Row], head: Head, problems: list[Problem], remarks: list[Problem]
) -> None:
    """Whether a digest noted elsewhere is still in the chain; entries may have been added since."""
    wanted = noted.strip().lower() if isinstance(noted, str) else ""
    if not re.fullmatch("[0-9a-f]{64}|[0-9a-f]{32}", wanted):
        raise InvalidInput("a digest is 64 hexadecimal digits", fix="copy it from what verify or show prints")
    number = 0 if wanted == head.id else next((row.number for row in rows if row.digest == wanted), None)
    if number is None:
        problems.append(Problem(None, "no entry has the digest that was noted elsewhere: the ledger was rewritten"))
    elif number < head.number:
        remarks.append(
            Problem(number, f"has the digest that was noted elsewhere; {head.number - number:,} came after it")
        )


def compare_files(
    found: Verification, entries: Sequence[Entry], folders: Iterable[Path], is_ledger: Callable[[Path], bool]
) -> tuple[Verification, bool]:
    """Compare each released file and its description with their digests, and look for lost entries that descriptions
    name; and whether files are still being moved into their place.

    Of several releases to the same path, the last is there.
    """
    problems, remarks, moving = list(found.problems), list(found.remarks), False
    paths = {entry.number: _find_path(entry) for entry in entries if entry.file is not None}
    last = {path: number for number, path in paths.items() if path is not None}
    for entry in entries:
        if entry.file is None:
            continue
        name, path = show_on_one_line(entry.file.name), paths[entry.number]
        if path is None:
            remarks.append(Problem(entry.number, f"where its file {name} was written is not known"))
        elif is_staged(found.id, entry.digest, folder_of(path)):
            moving = True
            fix = "cellrisk ledger recover LEDGER FOLDER moves it there"
            remarks.append(Problem(entry.number, f"its file {name} is not in its place yet: {fix}"))
        elif last[path] != entry.number:
            remarks.append(Problem(entry.number, f"its file {name} was replaced by entry {last[path]}"))
        else:
            there = os.path.exists(path)
            sha256 = digest_regular(path, entry.file.bytes) if there and not is_ledger(path) else None
            if sha256 is None:
                what = "cannot be read" if there else "is not where it was written"
                remarks.append(Problem(entry.number, f"its file {name} {what}"))
            elif sha256 != entry.file.sha256:
                problems.append(Problem(entry.number, f"its file {name} is not what was released: it was changed"))
            if sha256 is not None or os.path.exists(sidecar_of(path)):
                fault = compare_description(entry, found.id, path)
                problems += [Problem(entry.number, fault)] if fault else []
            if entry.tables and sha256 == entry.file.sha256:
                problems += [Problem(entry.number, fault) for fault in compare_tables(entry, found.id, path)]
    digests = {entry.number: entry.digest for entry in entries}
    problems += find_lost(found.id, digests.get, [*map(folder_of, last), *folders])
    return replace(found, problems=_sorted(problems), remarks=tuple(remarks)), moving


def _find_path(entry: Entry) -> Path | None:
    """Where to look for a file. A path on another machine is not looked at: that machine would notice."""
    text = None if entry.file is None else entry.file.path
    if not text or "\0" in text or text.startswith(("//", "\\\\")) or not os.path.isabs(text):
        return None
    return Path(text)
