"""The first page of a report for a board: the three figures, one picture, the limits, and the threat model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cellrisk.show.reporting.blocks import Block, Facts, Section, TableBlock, Words
from cellrisk.show.reporting.phrases import join_names
from cellrisk.show.reporting.registry import TO_FILL
from cellrisk.system.text import percent

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies
    from cellrisk.risk.assessment import Assessment
    from cellrisk.risk.figures import DecisionFigures
    from cellrisk.show.reporting.decision import Decision, ReportRequest


def figures_table(assessment: Assessment) -> TableBlock:
    """The three figures for each sensitive attribute, with what each is the answer to."""
    header = (
        "Sensitive attribute",
        "Given away because of their own record",
        "Given away at all",
        "An attacker is sure of, and right",
        "Nobody is right more often than",
    )
    rows = tuple(tuple(_figures_row(each)) for each in assessment.figures)
    return TableBlock("Three figures to decide by", header, rows, texts=tuple(range(len(header))))


def _figures_row(figures: DecisionFigures) -> Iterator[str]:
    caused = figures.caused
    yield figures.sensitive
    interval = f"; {caused.low:,} to {caused.high:,}" if caused.low is not None else ""
    yield f"{round(caused.people):,} people ({percent(caused.share)}{interval})"
    yield f"{round(caused.exposed):,} people ({percent(caused.exposed / caused.records)})"
    if figures.certainty:
        surest = figures.certainty[-1]
        yield f"{surest.people}, with {100 * surest.certainty:g}% certainty"
    else:
        yield "not computed"
    success, prior = figures.ceiling.times
    yield f"{success} in 100, instead of {prior}"


def threat_facts(request: ReportRequest) -> Facts:
    """Who is guarded against, and what was assumed of him; what only the house knows is left to fill in."""
    known = join_names(request.table.quasi_identifiers)
    return Facts(
        (
            ("Who gets the table", request.audience or f"{TO_FILL}: everybody, or whom (--audience)"),
            (
                "What they are assumed to know",
                f"A person's {known}, that the person is in the table, and how the noise was made. For the last "
                "figure, everything about everybody else.",
            ),
            ("What they are assumed to hold", "This table alone, unless something was published before."),
            ("Published before", request.earlier or f"{TO_FILL}: no ledger was given (--ledger)"),
            *request.budget,
        )
    )


def limit_facts(decision: Decision) -> Facts:
    """Which limits were set, by whom, and whether they bind."""
    request = decision.request
    limits = request.describe_limits()
    return Facts(
        (
            ("Limits", limits or "none was set"),
            ("Set by", say_who(request.policies, bool(limits))),
        )
    )


def say_who(policies: Policies, limited: bool) -> str:
    """Who has set the limits, and when, as far as the policies say."""
    obeyed = "; ".join(", ".join(filter(None, (each.describe(), each.policy.origin))) for each in policies.obeyed)
    if obeyed:
        return f"{obeyed}; what goes beyond it, by whoever asked for this report"
    return "Whoever asked for this report; no policy was in force." if limited else "Nobody; no policy was in force."


def provenance_section(date: str | None, command: str | None, digests: Sequence[tuple[str, str]]) -> Section:
    """How the report was made: date, command and digests, as they were given."""
    told = [(name, value) for name, value in (("Date", date), ("Command", command)) if value]
    told += [(f"SHA-256 of {name}", digest) for name, digest in digests]
    block: Block = Words(("Date, command and digests of the inputs were not given.",))
    if told:
        block = Facts(tuple(told))
    return Section("provenance", "How this report was made", (), (block,))
