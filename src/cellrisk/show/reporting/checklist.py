"""Where a report answers what standards and review boards ask: each heading with its place, or what is to fill in."""

from __future__ import annotations

from collections.abc import Mapping

from cellrisk.show.reporting.blocks import Section, TableBlock
from cellrisk.show.reporting.registry import TO_FILL

STANDARD = (
    ("Context: purpose of the release, recipients, controls on them", "first page: threat model", "purpose, controls"),
    ("Data: source, population, attributes and their roles", "assumptions: the domain; the table's size", "population"),
    ("Attacks: who, with which knowledge and means", "first page: threat model; assumptions", ""),
    ("Risk: what is measured, by which model", "first page: three figures; risk before, after and by chance", ""),
    ("Threshold: the risk that is tolerable, and why", "first page: limits", "reasons for the limits"),
    ("Mitigation: what was done to the data", "mechanism; assumptions: rounding, suppression, preparation", ""),
    ("Usefulness of what is published", "usefulness", ""),
    ("Residual risk, and what would lower it", "who is at risk, and what would help", ""),
    ("Governance: who decides, who is told, when it is reviewed", "first page: sign-off", "review date, complaints"),
)
"""Headings in the order of ISO/IEC 27559:2022, in words of our own."""
BOARD = (
    ("Is the unit of protection a person?", "assumptions: privacy unit", ""),
    ("Are small or dominated cells shown?", "sizes of the cells; who is at risk", ""),
    (
        "Can it be linked or differenced with earlier releases?",
        "first page: published before",
        "other publishers' tables",
    ),
    ("Is the budget sufficient, and what is left?", "first page: budget", ""),
    ("Are labels and domains public knowledge?", "assumptions: the domain", ""),
    ("Is the software known, and its version?", "mechanism and versions", ""),
    ("Can the result be repeated?", "provenance: command and digests", ""),
)
"""What disclosure review boards commonly ask."""


SET_PLACES = {
    "Data": "first page: the tables; assumptions",
    "Attacks": "first page: threat model; two ways to put the tables together",
    "Risk": "first page: three figures; the tables by themselves",
    "Residual risk": "what each table adds, and what would help",
    "Are small": "not cell by cell: report each table by itself",
    "Can it be linked": "first page: published before; differences of tables, and common margins",
    "Are labels": "assumptions: values of the columns",
}
"""Where a report on a set answers a heading that begins so, in the place of a report on one table."""


def checklist_section(places: Mapping[str, str] | None = None, budget: bool = True) -> Section:
    """Which heading is answered where; ``places`` names other places, and a perturbation has no budget."""
    asked = BOARD if budget else tuple(row for row in BOARD if "budget" not in row[0])
    return Section(
        "checklist",
        "Where standards and boards find their answers",
        ("What a report cannot know is marked, and belongs in the application.",),
        (
            _table("ISO/IEC 27559: data de-identification framework", STANDARD, places or {}),
            _table("Checklist of a review board", asked, places or {}),
        ),
    )


def _table(caption: str, rows: tuple[tuple[str, str, str], ...], places: Mapping[str, str]) -> TableBlock:
    def find(asked: str, usual: str) -> str:
        return next((place for start, place in places.items() if asked.startswith(start)), usual)

    told = tuple(
        (asked, find(asked, usual), f"{TO_FILL}: {missing}" if missing else "") for asked, usual, missing in rows
    )
    return TableBlock(caption, ("Asked", "Answered in", "Left"), told, texts=(0, 1, 2))
