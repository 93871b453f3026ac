"""Whether a ledger is as it was written: what is wrong, at which entry, and what deserves a remark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.ledger.chain import Head, Problem, Row, find_breaks
from cellrisk.ledger.entry import Entry, ReleasedFile, show_on_one_line
from cellrisk.text import aligned

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.ledger.store import Session


@dataclass(frozen=True)
class Verification:
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
    def sentence(self) -> str:
        """What was found, in a sentence."""
        entries = f"{self.n_entries:,} {'entry' if self.n_entries == 1 else 'entries'}"
        if self.ok:
            return f"The ledger is whole: {entries}, each as it was written, the last digest {self.head}."
        found = f"{len(self.problems):,} {'problem' if len(self.problems) == 1 else 'problems'}"
        return f"The ledger is NOT as it was written: {found} in {entries}."

    def to_frame(self) -> pd.DataFrame:
        """One row a finding."""
        import pandas as pd

        rows = [("problem", *found) for found in self.problems] + [("remark", *found) for found in self.remarks]
        frame = pd.DataFrame(rows, columns=["kind", "entry", "text"])
        return frame.astype({"entry": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "ok": self.ok,
            "sentence": self.sentence,
            "ledger": self.id,
            "n_entries": self.n_entries,
            "head": self.head,
            "problems": [found._asdict() for found in self.problems],
            "remarks": [found._asdict() for found in self.remarks],
        }

    def __str__(self) -> str:
        parts = [self.sentence]
        for title, found in (("problem", self.problems), ("remark", self.remarks)):
            if found:
                rows = [["-" if entry is None else str(entry), text] for entry, text in found]
                parts.append(aligned(["entry", title], rows, left=2))
        return "\n\n".join(parts)


def examine(session: Session, noted: str | None) -> tuple[Verification, list[Entry]]:
    """Recomputes everything that an open ledger says, and the entries that could be read."""
    head = session.head
    wanted = None if noted is None else _read_digest(noted)
    rows, unreadable = session.rescue_rows()
    problems = list(find_breaks(rows, head, unreadable))
    entries, unread = _read_entries(rows, {problem.entry for problem in problems})
    problems += unread
    if not problems:  # else a declaration may be among what is lost
        problems += _find_undeclared(entries)
    remarks = [*_remark_clocks(entries), *_remark_pendings(session, problems)]
    if wanted is not None:
        _compare_head(wanted, rows, head, problems, remarks)
    problems += [Problem(None, f"the file of the ledger is damaged: {fault}") for fault in session.find_faults()]
    return Verification(head.id, len(rows), head.digest, _sorted(problems), tuple(remarks)), entries


def _sorted(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.entry or 0))


def _read_entries(rows: Sequence[Row], broken: set[int | None]) -> tuple[list[Entry], list[Problem]]:
    found = {row.number: _read_entry(row) for row in rows}
    unread = [number for number, entry in found.items() if entry is None and number not in broken]
    problems = [Problem(number, "holds nothing that can be read as an entry") for number in unread]
    return [entry for entry in found.values() if entry is not None], problems


def _read_entry(row: Row) -> Entry | None:
    try:
        return Entry.read(row)
    except InvalidInput:
        return None


def _find_undeclared(entries: Sequence[Entry]) -> Iterator[Problem]:
    declared: set[str | None] = {None}
    for entry in entries:
        if entry.kind == "cohort":
            if entry.part_of not in declared:
                yield Problem(entry.number, "is about a cohort that is part of one never declared")
            declared.add(entry.cohort)
        elif entry.cohort not in declared:
            yield Problem(entry.number, "is about a cohort that was not declared before it")


def _remark_clocks(entries: Sequence[Entry]) -> Iterator[Problem]:
    for entry in entries:
        if entry.clock_behind is not None:
            yield Problem(entry.number, f"the clock was {entry.clock_behind:g} s behind the entry before")


def _remark_pendings(session: Session, problems: list[Problem]) -> Iterator[Problem]:
    try:
        pendings = session.pendings()
    except InvalidInput as refusal:
        problems.append(Problem(None, refusal.message))
        return
    for pending in pendings:
        host, since = (show_on_one_line(str(pending.body.get(name))) for name in ("host", "since"))
        what = "reserved, and counts as spent" if pending.state == "reserved" else "decided, its file not yet in place"
        yield Problem(None, f"reservation {pending.token} is being written since {since} on {host}: {what}")


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


def compare_files(found: Verification, entries: Sequence[Entry]) -> Verification:
    """Each released file against its digest; of several releases to the same place, the last stands there."""
    problems, remarks = list(found.problems), list(found.remarks)
    last = {entry.file.path: entry for entry in entries if entry.file is not None}
    for entry in entries:
        if entry.file is None:
            continue
        name = show_on_one_line(entry.file.name)
        if last[entry.file.path].number != entry.number:
            remarks.append(
                Problem(entry.number, f"its file {name} was replaced by entry {last[entry.file.path].number}")
            )
            continue
        if not Path(entry.file.path).exists():
            remarks.append(Problem(entry.number, f"its file {name} is not where it was written"))
            continue
        try:
            same = ReleasedFile.of(entry.file.path).sha256 == entry.file.sha256
        except InvalidInput:
            remarks.append(Problem(entry.number, f"its file {name} cannot be read"))
            continue
        if not same:
            problems.append(Problem(entry.number, f"its file {name} is not what was released: it was changed"))
    return replace(found, problems=_sorted(problems), remarks=tuple(remarks))
