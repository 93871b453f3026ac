"""The report on a set of tables, for a board or for the public."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellrisk.decide.limits import Limit
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy
from cellrisk.errors import InvalidInput
from cellrisk.repeat.together.costs import find_cost, try_ceiling
from cellrisk.repeat.together.releasing import plan_entry
from cellrisk.repeat.together.sets import SetTable, find_together
from cellrisk.repeat.together.split_result import Split
from cellrisk.repeat.together.together_result import TogetherAssessment
from cellrisk.show.reporting.document import Letterhead, Report
from cellrisk.show.reporting.particulars import describe_budget, list_digests
from cellrisk.show.reporting.registry import write_record
from cellrisk.show.reporting.set_page import list_set_fields, set_page
from cellrisk.show.reporting.set_request import SetRequest
from cellrisk.show.reporting.set_statement import set_statement
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.repeat.ledger import Ledger


def report_set(
    tables: Sequence[SetTable],
    sensitive: str,
    found: TogetherAssessment | None,
    *,
    limits: tuple[Limit, ...] = (),
    split: Split | None = None,
    public: bool = False,
    declared: Collection[str] | None = None,
    disclosures: Sequence[str] = (),
    ledger: Ledger | None = None,
    cohort: str = "everyone",
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    template: str | os.PathLike[str] | None = None,
    logo: str | os.PathLike[str] | None = None,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
    **told: Any,
) -> Report:
    """What a board needs to see of a set, or what the public may be told of it.

    ``found`` is what was assessed; the public needs none where no limit is set, and then no record is read. ``told``
    is printed as it is.
    """
    policies = Policies.in_force(policy)
    if found is None and not public:
        raise InvalidInput("a board decides by what a set gives away", fix="hand in the answer of assess_together")
    letterhead = Letterhead.read(template, logo)
    mechanisms, together = [each.mechanism for each in tables], find_together(tables)
    ceiling, _ = try_ceiling(mechanisms, together, 2)
    request = SetRequest(
        sensitive=sensitive,
        tables=tuple(tables),
        cost=find_cost(mechanisms, together),
        ceiling=ceiling,
        found=found,
        limits=limits,
        split=split,
        declared=None if declared is None else frozenset(declared),
        disclosures=(*disclosures, *policies.disclosures),
        policies=policies,
        digests=() if public else tuple(list_digests(inputs or {}, policies, ledger)),
        **told,
    )
    if ledger is not None and not public:
        request = replace(request, **describe_budget(ledger, cohort, _find_loss(request)))
    page = set_statement(request) if public or found is None else set_page(request, found)
    document = letterhead.make_report(
        page,
        "" if public or found is None else found.headline,
        record=write_record(list_set_fields(request, public), "release"),
        setting=None,
        epsilon=request.cost.epsilon,
        public=public,
        policies=policies,
        broken=request.find_breaches(),
        tables=tuple(tables),
    )
    if progress is not None:
        progress(1.0)
    return document


def _find_loss(request: SetRequest) -> Any:
    """What a ledger would book for the set, or why it would not."""
    try:
        return plan_entry(request.tables, request.sensitive)["loss"]
    except InvalidInput as refusal:
        return str(refusal)
