"""A report for a board on a table that is published with a perturbation: no epsilon, no ledger, no curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cellrisk.counts.table import FrequencyTable
from cellrisk.decide.limits import NO_CHANCE, NO_EPSILON, Limit, RiskDefinition
from cellrisk.decide.policies import Policies
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.perturbed import assess_perturbation
from cellrisk.show.reporting.document import Report, make_report, read_decision
from cellrisk.show.reporting.metadata import (
    describe_table,
    draw_table_sizes,
    explain_cells,
    make_picture,
    name_table,
    pick,
)
from cellrisk.show.reporting.table_report import describe_attackers, draw_icons_of
from cellrisk.show.wording.assessment import NOT_TOLD, say_equal
from cellrisk.show.wording.explanation import KEYS_NOTE
from cellrisk.show.wording.limits import describe_limits
from cellrisk.system.formatting import percent
from cellrisk.system.progress import Progress

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


def report_perturbation(
    table: FrequencyTable,
    made: Perturbation,
    template: str | None,
    metadata: Mapping[str, Any],
    risk: RiskDefinition,
    limits: Sequence[Limit],
    policies: Policies,
    top: int,
    progress: Progress | None,
    **how: Any,
) -> Report:
    """The report on a table that is published with a perturbation; ``how`` goes to `assess_perturbation`."""
    from cellrisk.show.pictures import draw_equal_risk

    broken = tuple(filter(None, (limit.breach(table.attributes, made) for limit in limits)))
    words: dict[str, Any] = {"measures": risk.measure, "forms": risk.form, "weights": risk.weights}
    assessed = assess_perturbation(table, made, **words, priors=risk.priors, **how)
    equal = {each.sensitive: each.equal for each in assessed.figures if each.equal is not None}
    required, name = " and ".join(describe_limits(limits)), name_table(table)
    decided = {"name": name, "perturbation": made.name, "limits": required, "broken": broken, "delta": None}
    probabilities = []  # what the smallest counts are published as, and how often
    for count in range(min(made.last + made.period + 1, ROWS_SHOWN)):
        outcomes = zip(*(part.tolist() for part in made.row(count)), strict=True)
        texts = [f"{value:,} ({percent(probability)})" for value, probability in outcomes]
        more = ", ..." if len(texts) > ROWS_SHOWN else ""
        probabilities.append({"count": count, "outcomes": ", ".join(texts[:ROWS_SHOWN]) + more})
    document = {
        **metadata,
        "title": metadata["title"] or f"Disclosure review of {name}",
        **read_decision("perturbation", False, "broken" if broken else "kept" if required else "open", decided),
        "limits": required,
        "table": describe_table(table),
        **describe_attackers(assessed),
        "headline": [*assessed.headline.split("\n"), *map(say_equal, list(equal.values())[:1])],
        "figures": [pick(each, "sensitive people records raw_share") for each in assessed.figures],
        "risks": assessed.risks,
        "equal": [
            {**pick(each, "figure distance mechanism_distance ranges"), "sensitive": name, "sentence": say_equal(each)}
            for name, each in equal.items()
        ],
        "perturbation": {"description": made.describe(), "probabilities": probabilities},
        "pictures": {
            "equal": make_picture(draw_equal_risk(assessed), " ".join(map(say_equal, list(equal.values())[:1]))),
            "icons": draw_icons_of(assessed),
            "sizes": draw_table_sizes(table),
        },
        "explanations": explain_cells(table, risk, top, perturbation=made),
        "risk": {"measure": "local"},
        "not_told": NOT_TOLD,
        "keys_note": KEYS_NOTE,
    }
    known: dict[str, Any] = {"perturbation": made, "broken": broken, "policies": policies}
    return make_report("perturbation.html.j2", document, template, progress, assessed.headline, **known)
