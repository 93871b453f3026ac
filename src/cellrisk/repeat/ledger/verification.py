"""Whether a ledger is as it was written: what is wrong, at which entry, and remarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger.cohorts import find_undeclared
from cellrisk.repeat.ledger.descriptions import (
    compare_description,
    compare_tables,
    describe_lost,
    digest_regular,
    list_named,
)
from cellrisk.repeat.ledger.entry import Entry, Problem, find_breaks, show_on_one_line
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.repeat.ledger.backends import Session
    from cellrisk.repeat.ledger.checkpoints import Checkpoint


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
