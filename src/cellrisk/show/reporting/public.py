"""The data of a statement for the public on one table with noise, for the template public.html.j2.

No figure in it was computed from the raw data, but for an epsilon that was chosen from them, which it states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.ceilings import ceiling
from cellrisk.show.reporting.decision import Decision, collect_decision
from cellrisk.show.reporting.metadata import describe_table_for_public, pick
from cellrisk.show.reporting.noise import describe_guarantee, describe_use
from cellrisk.show.wording.choice import WITHOUT_DATA
from cellrisk.show.wording.limits import CHECKED

if TYPE_CHECKING:
    from cellrisk.publish.dp_risk import PublishedRisk

CHOSEN = (
    "Epsilon was chosen from the data, so the choice itself discloses something about them; the guarantee does "
    "not cover it. A choice that is covered is made by: cellrisk choose-private."
)


def collect_public(
    decision: Decision, metadata: Mapping[str, Any], published: PublishedRisk | None = None
) -> dict[str, Any]:
    """Everything that the public may see; ``published`` is a figure with noise of its own."""
    request = decision.request
    mechanism = None if decision.epsilon is None else decision.setting.with_epsilon(decision.epsilon)
    notes = [CHOSEN] if decision.chosen_from_data else [CHECKED] if decision.limits_use_data else []
    return {
        **collect_decision(decision, metadata, "Privacy statement for"),
        "epsilon_given": request.epsilon is not None,
        "table": describe_table_for_public(request.table),
        "priors": [],
        "guarantee": None if mechanism is None else _describe_guarantee(decision, mechanism),
        "use": None if mechanism is None else describe_use(mechanism),
        "published": published and pick(published, "headline statements"),
        "notes": [*notes, *request.disclosures],
        "without_data": WITHOUT_DATA,
        "not_protected": decision.unprotected,
    }


def _describe_guarantee(decision: Decision, mechanism: Mechanism) -> dict[str, Any]:
    """The guarantee of the table, or of the tables of several sensitive attributes together."""
    tables = len(decision.request.table.sensitive)
    qualified: dict[str, Any] = {
        "covered": decision.unprotected == "none",
        "chosen": decision.chosen_from_data,
    }
    if tables == 1:
        return describe_guarantee(mechanism, 1, mechanism.neighbours, ceiling(mechanism), **qualified)
    from cellrisk.repeat.together.costs import find_cost, try_ceiling

    together = [mechanism] * tables, [tuple(range(tables))]
    highest, _ = try_ceiling(*together, labels=2)
    return describe_guarantee(find_cost(*together), tables, mechanism.neighbours, highest, **qualified)
