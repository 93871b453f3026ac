"""The words of `Verification`: whether a ledger is as it was written."""

from __future__ import annotations

from cellrisk.repeat.ledger.verification import Verification
from cellrisk.system.formatting import aligned, number_of


def headline(found: Verification) -> str:
    """What was found, in a sentence."""
    entries = number_of(found.n_entries, "entry", "entries")
    if found.ok:
        return f"The ledger is whole: {entries}, each as it was written, the last digest {found.head}."
    return f"The ledger is NOT as it was written: {number_of(len(found.problems), 'problem')} in {entries}."


def paragraphs(found: Verification) -> list[str]:
    """What is printed below the headline."""
    parts = []
    for title, findings in (("problem", found.problems), ("remark", found.remarks)):
        if findings:
            rows = [["-" if entry is None else str(entry), text] for entry, text in findings]
            parts.append(aligned(["entry", title], rows, left=2))
    return parts
