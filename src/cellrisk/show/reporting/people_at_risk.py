"""The section on who is at risk, and what would help: raw data, for the board alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.risk.explanation import Explanation
from cellrisk.risk.explanation.explaining import KEYS_NOTE
from cellrisk.show.reporting.blocks import Block, Section, TableBlock, Words
from cellrisk.system.text import percent

TITLE = "Who is at risk, and what would help"
LEVELS_SHOWN = 10
MOST_COLUMNS = 7


def people_at_risk_section(explanations: Sequence[Explanation], measure: str) -> Section:
    """Section 7: the riskiest cells and values, and what would lower the risk."""
    if not explanations:
        text = "The table has no source to read its cells from, so they cannot be shown."
        return Section("at-risk", TITLE, (text,))
    many = len(explanations) > 1
    lead = tuple(f"{found.sensitive}: {found.headline}" if many else found.headline for found in explanations)
    blocks: list[Block] = []
    if measure != "local":
        blocks.append(Words(("All figures of this section are of the local risk.",)))
    for found in explanations:
        blocks += _tables(found, f" ({found.sensitive})" if many else "")
    return Section("at-risk", TITLE, lead, (*blocks, Words((KEYS_NOTE,))))


def _tables(found: Explanation, of: str) -> Iterator[TableBlock]:
    yield _cells(found, of)
    yield _levels(found, of)
    now = f"{of}; the risk is {percent(found.baseline)} as it is"
    yield TableBlock(
        f"Without a quasi-identifier{now}",
        ("Dropped", "Cells", "Risk", "Change, in points"),
        tuple(
            (each.quasi_identifier, f"{each.cells:,}", percent(each.risk), describe_points(each.change))
            for each in found.without
        ),
    )
    if found.coarser:
        rows = tuple(
            (
                each.quasi_identifier,
                each.how,
                f"{each.labels:,} of {each.labels_before:,}",
                f"{each.cells:,}",
                percent(each.risk),
                describe_points(each.change),
            )
            for each in found.coarser
        )
        header = ("Coarser", "What is merged", "Values left", "Cells", "Risk", "Change, in points")
        yield TableBlock(f"With a coarser quasi-identifier{now}", header, rows, texts=(0, 1))


def _cells(found: Explanation, of: str) -> TableBlock:
    """A column for each quasi-identifier, or one for all where a page is too narrow for that."""
    names = tuple(found.riskiest[0].key)
    apart = len(names) <= MOST_COLUMNS
    rows = tuple(
        (
            *(cell.key.values() if apart else ["; ".join(f"{name}: {value}" for name, value in cell.key.items())]),
            f"{cell.records:,}",
            percent(cell.risk),
            f"{cell.people:,.1f}",
        )
        for cell in found.riskiest
    )
    words = names if apart else ("Cell",)
    header = (*words, "Records", "Risk", "People exposed")
    return TableBlock(f"The riskiest cells{of}", header, rows, texts=tuple(range(len(words))))


def _levels(found: Explanation, of: str) -> TableBlock:
    levels = sorted(found.by_level, key=lambda level: (-level.risk, -level.people))[:LEVELS_SHOWN]
    rows = tuple(
        (
            level.quasi_identifier,
            level.label,
            f"{level.records:,}",
            percent(level.risk),
            f"{level.people:,.1f}",
            percent(level.raw_share),
        )
        for level in levels
    )
    header = ("Quasi-identifier", "Value", "Records", "Risk", "People exposed", "Raw table")
    return TableBlock(
        f"The riskiest values{of}, {len(levels):,} of {len(found.by_level):,}", header, rows, texts=(0, 1)
    )


def describe_points(change: float) -> str:
    """A change of a share in percentage points, with its sign.

    >>> describe_points(-0.0412), describe_points(0.00001)
    ('-4.1', '0.0')
    """
    text = f"{100 * change:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text
