"""A report for a board on a table that is published with a perturbation: no epsilon, no ledger, no curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cellrisk.decide.limits import NO_CHANCE, NO_EPSILON, Limit, RiskDefinition
from cellrisk.risk.perturbed import PerturbedAssessment
from cellrisk.show.reporting import metadata as facts
from cellrisk.show.reporting.document import read_decision
from cellrisk.show.reporting.table_report import SIZES_WORDS, describe_attackers, draw_icons_of
from cellrisk.show.wording.assessment import NOT_TOLD, say_equal
from cellrisk.show.wording.explanation import KEYS_NOTE
from cellrisk.show.wording.limits import describe_limits
from cellrisk.system.formatting import percent

REFUSED = {
    "public": "a statement for the public says which guarantee holds, and a perturbation has none",
    "ledger": "a ledger adds up privacy losses, and a perturbation states none",
    "max_epsilon": NO_EPSILON,
    "margin": NO_CHANCE,
    "harmful": "its informed attacker counts every value",
    "unions": "its informed attacker names single values",
    "max_tvd": "marginals are simulated with noise at an epsilon; section 3 compares distances at equal risk",
}
"""What a report on a perturbation does not take, and why."""
ROWS_SHOWN = 13
"""Counts whose probabilities are printed, and values of each."""


def collect_perturbed(
    assessed: PerturbedAssessment,
    metadata: Mapping[str, Any],
    risk: RiskDefinition,
    limits: Sequence[Limit],
    broken: Sequence[str],
    top: int,
) -> dict[str, Any]:
    """Everything that the board sees; ``broken``: the limits that the perturbation breaks."""
    from cellrisk.show.pictures import draw_equal_risk, draw_sizes

    table, made = assessed.table, assessed.perturbation
    equal = {each.sensitive: each.equal for each in assessed.figures if each.equal is not None}
    first = [say_equal(each) for each in equal.values()][:1]
    required, name = " and ".join(describe_limits(limits)), facts.name_table(table)
    decided = {"name": name, "perturbation": made.name, "limits": required, "broken": broken, "delta": None}
    probabilities = []  # what the smallest counts are published as, and how often
    for count in range(min(made.last + made.period + 1, ROWS_SHOWN)):
        outcomes = zip(*(part.tolist() for part in made.row(count)), strict=True)
        texts = [f"{value:,} ({percent(probability)})" for value, probability in outcomes]
        more = ", ..." if len(texts) > ROWS_SHOWN else ""
        probabilities.append({"count": count, "outcomes": ", ".join(texts[:ROWS_SHOWN]) + more})
    return {
        **metadata,
        "title": metadata["title"] or f"Disclosure review of {name}",
        **read_decision("perturbation", False, "broken" if broken else "kept" if required else "open", decided),
        "limits": required,
        "table": facts.describe_table(table),
        **describe_attackers(assessed),
        "headline": [*assessed.headline.split("\n"), *first],
        "figures": [facts.pick(each, "sensitive people records raw_share") for each in assessed.figures],
        "risks": assessed.risks,
        "equal": [
            {**facts.pick(each, "figure distance mechanism_distance ranges"), "sensitive": attribute}
            | {"sentence": say_equal(each)}
            for attribute, each in equal.items()
        ],
        "perturbation": {"description": made.describe(), "probabilities": probabilities},
        "pictures": {
            "equal": facts.make_picture(draw_equal_risk(assessed), " ".join(first)),
            "icons": draw_icons_of(assessed),
            "sizes": facts.make_picture(draw_sizes(table), SIZES_WORDS),
        },
        "explanations": facts.explain_cells(table, risk, top, perturbation=made),
        "risk": {"measure": "local"},
        "not_told": NOT_TOLD,
        "keys_note": KEYS_NOTE,
    }
