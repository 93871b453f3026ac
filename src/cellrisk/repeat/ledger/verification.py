"""Whether a ledger is as it was written: what is wrong, at which entry, and what deserves a remark."""

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
from cellrisk.repeat.ledger.descriptions import compare_description, compare_tables, digest_regular, find_lost
from cellrisk.repeat.ledger.entry import Entry, Whereabouts, show_on_one_line
from cellrisk.repeat.ledger.limits import find_undeclared
from cellrisk.repeat.ledger.staging import is_staged
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, number_of

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.repeat.ledger.checkpoints import Checkpoint
    from cellrisk.repeat.ledger.store import Session


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The answer of `Ledger.verify`."""

    id: str
    """The ledger's."""
    n_entries: int
    head: str
    """The digest of the last entry, as the ledger notes it: worth noting elsewhere too."""
    problems: tuple[Problem, ...]
    remarks: tuple[Problem, ...]
    """What is no sign of a change, such as a clock that went backwards or a file that is elsewhere now."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    @property
    def headline(self) -> str:
        """What was found, in a sentence."""
        entries = number_of(self.n_entries, "entry", "entries")
        if self.ok:
            return f"The ledger is whole: {entries}, each as it was written, the last digest {self.head}."
        return f"The ledger is NOT as it was written: {number_of(len(self.problems), 'problem')} in {entries}."

    def _numbers(self) -> pd.DataFrame:
        """One row a finding."""
        import pandas as pd

        rows = [("problem", *found) for found in self.problems] + [("remark", *found) for found in self.remarks]
        frame = pd.DataFrame(rows, columns=["kind", "entry", "text"])
        return frame.astype({"entry": "Int64"})

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

    def _paragraphs(self) -> list[str]:
        parts = []
        for title, found in (("problem", self.problems), ("remark", self.remarks)):
            if found:
                rows = [["-" if entry is None else str(entry), text] for entry, text in found]
                parts.append(aligned(["entry", title], rows, left=2))
        return parts


@dataclass(frozen=True)
class Examined:
    """What was found inside a ledger, and what its files can be compared with."""

    found: Verification
    entries: tuple[Entry, ...]


def examine(session: Session, noted: str | None, checkpoints: Sequence[Checkpoint]) -> Examined:
    """Recomputes everything that an open ledger says, and the entries that could be read."""
    head = session.head
    wanted = None if noted is None else _read_digest(noted)
    rows, unreadable = session.rescue_rows()
    problems = list(find_breaks(rows, head, unreadable))
    written = session.whereabouts()
    entries, unread = _read_entries(rows, written, {problem.entry for problem in problems})
    problems += unread
    if not problems:  # else a declaration may be among what is lost
        problems += find_undeclared(entries)
    problems += _find_moved(entries, written)
    problems += [Problem(None, flaw) for flaw in session.flaws]
    remarks = list(_remark_clocks(entries))
    if wanted is not None:
        _compare_head(wanted, rows, head, problems, remarks)
    for fault, last in dict.fromkeys((file.compare(session), file.last(head.id)) for file in checkpoints):
        if fault:
            problems.append(Problem(None, fault))
        elif last is not None and last[0] < head.number:
            more = head.number - last[0]
            remarks.append(
                Problem(last[0] or None, f"is the last that the file of the head notes; {more:,} came after")
            )
    problems += [Problem(None, f"the file of the ledger is damaged: {fault}") for fault in session.find_faults()]
    found = Verification(head.id, len(rows), head.digest, _sorted(problems), tuple(remarks))
    return Examined(found, tuple(entries))


def _sorted(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.entry or 0))


def _read_entries(
    rows: Sequence[Row], written: Mapping[int, Whereabouts], broken: set[int | None]
) -> tuple[list[Entry], list[Problem]]:
    """The entries that can be read, and those that cannot though nothing else is wrong with them."""
    entries, problems = [], []
    for number, row in {row.number: row for row in rows}.items():
        found = written.get(number)
        try:
            entries.append(Entry.read(row, None if found is None else found.path))
        except InvalidInput:
            if number not in broken:
                problems.append(Problem(number, "holds nothing that can be read as an entry"))
    return entries, problems


def _find_moved(entries: Sequence[Entry], written: Mapping[int, Whereabouts]) -> Iterator[Problem]:
    """Notes of where a file was written that are not those of its entry."""
    numbers = set()
    for entry in entries:
        if entry.file is not None and entry.file.place is not None:
            numbers.add(entry.number)
            found = written.get(entry.number)
            if found is None or found.digest != entry.file.place:
                yield Problem(entry.number, "the note of where its file was written was edited or removed")
    for number in sorted(set(written) - numbers):
        yield Problem(None, f"a note of where a file was written belongs to no entry (number {number})")


def _remark_clocks(entries: Sequence[Entry]) -> Iterator[Problem]:
    for entry in entries:
        if entry.clock_behind is not None:
            yield Problem(entry.number, f"the clock was {entry.clock_behind:g} s behind the entry before")


def _read_digest(noted: object) -> str:
    text = noted.strip().lower() if isinstance(noted, str) else ""
    if not re.fullmatch("[0-9a-f]{64}|[0-9a-f]{32}", text):
        raise InvalidInput("a digest is 64 hexadecimal digits", fix="take it from what verify or show prints")
    return text


def _compare_head(
    wanted: str, rows: Sequence[Row], head: Head, problems: list[Problem], remarks: list[Problem]
) -> None:
    """Whether a digest noted elsewhere is still in the chain; entries may have been added since."""
    found = 0 if wanted == head.id else next((row.number for row in rows if row.digest == wanted), None)
    if found is None:
        problems.append(Problem(None, "no entry has the digest that was noted elsewhere: the ledger was rewritten"))
    elif found < head.number:
        remarks.append(
            Problem(found, f"has the digest that was noted elsewhere; {head.number - found:,} came after it")
        )


def compare_files(
    examined: Examined, folders: Iterable[Path], is_ledger: Callable[[Path], bool]
) -> tuple[Verification, bool]:
    """Compares each released file and its description with their digests, and looks for lost entries that descriptions
    name; and whether files are on their way into their place.

    Of several releases to the same place, the last stands there.
    """
    found, entries = examined.found, examined.entries
    problems, remarks = list(found.problems), list(found.remarks)
    moving = False
    paths = {entry.number: _find_path(entry) for entry in entries if entry.file is not None}
    last = {path: number for number, path in paths.items() if path is not None}
    for entry in entries:
        if entry.file is None:
            continue
        name, path = show_on_one_line(entry.file.name), paths[entry.number]
        if path is not None and is_staged(found.id, entry.digest, folder_of(path)):
            moving = True
            told = "is not in its place yet: cellrisk ledger recover LEDGER FOLDER moves it there"
            remarks.append(Problem(entry.number, f"its file {name} {told}"))
            continue
        if path is None:
            remarks.append(Problem(entry.number, f"where its file {name} was written is not known"))
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
    """Where to look for a file. A name of another machine is not asked for: to ask would tell it who asks."""
    text = None if entry.file is None else entry.file.path
    if not text or "\0" in text or text.startswith(("//", "\\\\")) or not os.path.isabs(text):
        return None
    return Path(text)
