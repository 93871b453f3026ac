"""The words of a ledger: of an `Entry`, of what cohorts have spent, and of a `Verification`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.ledger.entry import Entry, Limit, show_on_one_line
from cellrisk.repeat.ledger.verification import Verification
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.wording.ceiling import say_most
from cellrisk.system.formatting import aligned, claim, number_of, show_down

if TYPE_CHECKING:
    from cellrisk.repeat.ledger import Ledger

COHORTS_SHOWN, ENTRIES_SHOWN, LONGEST_LINE = 3, 6, 88
"""Cohorts and entries on the first screen, and characters of an entry."""
CohortState = tuple[str, Composition | None, Limit | None, Ceiling | None]
"""A cohort: its name, what it has spent if that has a sum, its limit, and its worst case if that is known."""


def headline(found: Entry | Verification) -> str:
    """Return an entry, or whether a ledger is as it was written, in a sentence."""
    if isinstance(found, Verification):
        entries = number_of(found.n_entries, "entry", "entries")
        if found.ok:
            return f"The ledger is whole: {entries}, each as it was written. The last digest: {found.head}."
        return f"The ledger is NOT as it was written: {number_of(len(found.problems), 'problem')} in {entries}."
    cohort = f"'{show_on_one_line(found.cohort)}'"
    if found.kind == "cohort":
        part = f", part of '{show_on_one_line(found.part_of)}'" if found.part_of else ""
        return f"Cohort {cohort}{part}."
    if found.limit is not None:
        return f"Limit: {found.limit.describe()}."
    by = ", ".join(map(show_on_one_line, found.quasi_identifiers))
    what = f"{show_on_one_line(found.attribute)} by {by}" if found.attribute and by else found.attribute or by
    what = f"a set of tables of {what}" if found.of_set else what
    loss = f" at {found.loss.describe()}" if found.loss is not None else ""
    return f"Release of {show_on_one_line(what)} about cohort {cohort}{loss}."


def paragraphs(found: Verification) -> list[str]:
    """Return the problems and remarks of a verification."""
    parts = []
    for title, findings in (("problem", found.problems), ("remark", found.remarks)):
        if findings:
            rows = [["-" if entry is None else str(entry), text] for entry, text in findings]
            parts.append(aligned(["entry", title], rows, left=2))
    return parts


def describe(entry: Entry) -> str:
    """The entry as it is printed: its sentence, and a table of its fields."""
    rows = [["entry", str(entry.number)], ["time", entry.time], ["cohort", show_on_one_line(entry.cohort)]]
    if entry.loss is not None:
        mechanism = entry.loss.mechanism
        rows += [["loss", entry.loss.describe()], ["neighbours", entry.loss.neighbours]]
        unit = entry.loss.unit
        rows += [["unit", f"one person. {unit.describe()}"]] if unit.kind == "person" else []
        rows += [["mechanism", mechanism.name if mechanism else "not known"]]
        scale = entry.loss.events[0].scale if len(entry.loss.events) == 1 else None
        rows += [] if scale is None else [["scale of the noise", f"{scale:.6g}"]]
    if entry.purpose:
        rows.append(["purpose", show_on_one_line(entry.purpose)])
    if entry.file is not None:
        rows += [["file", show_on_one_line(entry.file.name)], ["SHA-256", entry.file.sha256]]
    if entry.clock_behind is not None:
        rows.append(["clock", f"{entry.clock_behind:g} s behind the entry before"])
    rows += [["written by", f"cellrisk {entry.version}"], ["previous", entry.previous], ["digest", entry.digest]]
    return f"{headline(entry)}\n\n{aligned(rows[0], rows[1:], left=2)}"


def list_entries(about: str, cohorts: Sequence[CohortState], entries: Sequence[Entry], everything: bool = False) -> str:
    """Return what `ledger list` prints: what each cohort has spent of its limit, then the last entries, or all."""
    parts = [about]
    rows = [
        [
            *(show_on_one_line(name), "not known" if spent is None else claim(spent.epsilon)),
            f"{spent.delta:g}" if spent is not None and spent.delta else "",
            *(*_left(spent, limit), "not known" if worst is None else f"{say_most(worst.even_two)}%"),
        ]
        for name, spent, limit, worst in (cohorts if everything else cohorts[:COHORTS_SHOWN])
    ]
    if rows:
        parts.append(aligned(["cohort", "epsilon spent", "delta", "limit", "left", "worst case"], rows))
    shown = entries if everything else entries[-ENTRIES_SHOWN:]
    lines = []
    for entry in shown:
        text = entry.headline
        text = text if everything or len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."
        lines.append([f"{entry.number}", entry.time[:16].replace("T", " "), text])
    if lines:
        parts.append(aligned(["entry", "time (UTC)", ""], lines, left=3))
    hidden = number_of(len(entries) - len(shown), "earlier entry", "earlier entries") + ": --all   "
    following = "By each method: cellrisk ledger show ...   One more release: cellrisk ledger plan ..."
    return "\n\n".join([*parts, f"{hidden if len(shown) < len(entries) else ''}{following}"])


def say_budget(ledger: Ledger, cohort: str) -> str:
    """Return what a cohort, and each cohort that contains it, has spent and has left; a sentence each, one per line."""
    sentences, state = [], ledger.state()
    for name in state.path(cohort):
        shown, spent, limit = f"Cohort '{show_on_one_line(name)}'", state.spend_by_limit(name), state.limits.get(name)
        if spent is None:
            sentences.append(f"{shown} has spent what has no sum by itself: cellrisk ledger show LEDGER --delta 1e-6.")
            continue
        delta = f", delta {claim(spent.delta)}" if spent.delta else ""
        most, left = _left(spent, limit)
        remaining = "nothing" if left in ("-", "0") else f"epsilon {left}"
        rest = "no limit is set" if limit is None else f"the limit is epsilon {most}, so {remaining} is left"
        sentences.append(f"{shown} has spent epsilon {claim(spent.epsilon)}{delta}; {rest}.")
    return "\n".join(sentences)


def _left(spent: Composition | None, limit: Limit | None) -> list[str]:
    if limit is None:
        return ["none", ""]
    if spent is None:
        return [f"{limit.epsilon:g}", "not known"]
    left = limit.epsilon - spent.epsilon
    return [f"{limit.epsilon:g}", "-" if spent.delta > limit.delta else show_down(left) if left > 0 else "0"]
