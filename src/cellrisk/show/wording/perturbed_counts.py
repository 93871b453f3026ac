"""The words of `PerturbedCountsSummary`: what a perturbation does to the counts of a table."""

from __future__ import annotations

from cellrisk.risk.perturbed.counts import PerturbedAttribute, PerturbedCountsSummary
from cellrisk.system.formatting import CURATOR_NOTE, aligned


def headline(found: PerturbedCountsSummary) -> str:
    """The summary of the table, then a sentence for each sensitive attribute."""
    sentences = [sentence(attribute, found.perturbation.name) for attribute in found.attributes]
    return "\n".join([found.summary.headline, *sentences])


def sentence(attribute: PerturbedAttribute, name: str) -> str:
    """What becomes of the counts that hold people, and of those that do not."""
    some = [row for row in attribute.classes if row.least > 0]
    total = sum(row.counts for row in some)
    same, hidden, moved = (sum(getattr(row, word) for row in some) for word in ("unchanged", "hidden", "moved"))
    start = (
        f"Of {total:,} counts of {attribute.sensitive} that hold people, {name} publishes {round(same):,} as they are "
        f"on average, {round(hidden):,} as 0 or not at all, and {round(moved):,} as another count"
    )
    empty = sum(row.moved for row in attribute.classes if row.least == 0)
    return f"{start}; it shows {round(empty):,} counts where nobody is." if empty >= 0.5 else f"{start}."


def paragraphs(found: PerturbedCountsSummary) -> list[str]:
    """What is printed below the headline."""
    header = ["counts of", "there are", "unchanged", "as 0 or not at all", "as another", "published"]
    parts = [part for part in found.summary._paragraphs() if part != CURATOR_NOTE]
    parts.append(f"{found.perturbation.describe()}.")
    for attribute in found.attributes:
        rows = [
            [
                row.size,
                f"{row.counts:,}",
                *(f"{number:,.1f}" for number in (row.unchanged, row.hidden, row.moved, row.after)),
            ]
            for row in attribute.classes
        ]
        parts.append(f"What becomes of counts of {attribute.sensitive}, on average\n{aligned(header, rows)}")
    return [*parts, CURATOR_NOTE]
