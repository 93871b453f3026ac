"""The report for a board on a set of tables: the data of set.html.j2."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from cellrisk.decide.limits import Limit
from cellrisk.decide.policies import Policies, Policy
from cellrisk.errors import InvalidInput
from cellrisk.noise.precision import find_precision
from cellrisk.repeat.together import KEPT, NOT_JUDGED, RuleFigures, TogetherAssessment, judge, list_certainties
from cellrisk.repeat.together.sets import SetTable, book_loss, find_cost, find_together, try_ceiling
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.reporting import metadata as facts
from cellrisk.show.reporting.document import Report, make_report, read_decision, read_template
from cellrisk.show.wording.attackers import own_people, own_share
from cellrisk.show.wording.ceiling import advantage
from cellrisk.show.wording.together import SAYS
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Ledger

MOST_ON_FRONT = 7
"""The first page shows up to so many tables one by one, and draws them; of more, the whole set alone."""


def report_set(
    found: TogetherAssessment,
    *,
    limits: tuple[Limit, ...] = (),
    declared: Collection[str] | None = None,
    ledger: Ledger | None = None,
    cohort: str = "everyone",
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    template: str | os.PathLike[str] | None = None,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
    **given: Any,
) -> Report:
    """Return what a board needs to see of a set.

    ``declared``: the columns whose values were declared, if that is known. ``given`` is printed as it is: title,
    organisation, source, preparation, audience, date and command.
    """
    policies, own_template = Policies.in_force(policy), read_template(template)
    tables = [assessed.table for assessed in found.tables]
    mechanisms, together = [each.mechanism for each in tables], find_together(tables)
    (ceiling, _), cost = try_ceiling(mechanisms, together, 2), find_cost(mechanisms, together)
    known_certainties = {row.certainty for row in found.certain}
    lacking = [share for share in list_certainties(policies, limits) if share not in known_certainties]
    if lacking and found.certain_unknown is None:
        what = f"a limit is on a certainty of {lacking[0]:g}, for which the set was not assessed"
        raise InvalidInput(what, fix=f"give assess_together certainty={lacking[0]:g}", code="certainty")
    judged = judge(found, limits, policies)
    lost = [each for each in judged if each.state != KEPT]
    printed = dict.fromkeys(("title", "organisation", "source", "audience", "date", "command"))
    edges = [(column, bins) for table in tables for column, bins in table.bins.items()]
    numbers = [(column, bins if isinstance(bins, list | tuple) else (bins,)) for column, bins in edges]
    bins = [f"{column} in bins: {'/'.join(f'{edge:.15g}' for edge in given_edges)}" for column, given_edges in numbers]
    printed |= {**given, "preparation": [*dict.fromkeys(bins), *given.get("preparation", ())]}
    data = facts.collect_metadata(printed, policies, inputs, ledger, public=False)
    if ledger is not None:
        try:
            loss: Loss | str = book_loss(mechanisms, together)
        except InvalidInput as refusal:
            loss = str(refusal)
        data |= facts.describe_budget(ledger, cohort, loss)
    kinds = list(dict.fromkeys(mechanism.name for mechanism in mechanisms))
    names = list(dict.fromkeys(name for table in tables for name in table.quasi_identifiers))
    observed = None if declared is None else [name for name in (found.sensitive, *names) if name not in declared]
    data |= {
        "sensitive": found.sensitive,
        "quasi_identifiers": names,
        "formulas": [(name, facts.FORMULAS[name]) for name in kinds],
        "mechanisms": kinds,
        "releasable": all(name in facts.RELEASABLE for name in kinds),
        **facts.describe_unit(mechanisms[0]),
        "rounding": list(dict.fromkeys(facts.describe_threshold(each.threshold) for each in mechanisms)),
        "observed": observed,
        "cost": facts.pick(cost, "epsilon delta apart headline method"),
        "limits": " and ".join(dict.fromkeys(each.limit for each in judged)),
    }
    data["title"] = data["title"] or f"Disclosure review of {number_of(len(tables), 'table')} of {found.sensitive}"
    told = {**data, "tables": len(tables), "epsilon": cost.epsilon, "delta": cost.delta, "n_limits": len(judged)}
    told |= {"lost": [each.limit for each in lost], "not_judged": any(each.state == NOT_JUDGED for each in lost)}
    kind = "broken" if lost else "kept" if limits or policies else "open"
    data |= read_decision("set", False, kind, told)
    uncovered = ["values of columns that were not declared"]
    if observed is not None:
        uncovered = [f"the values that occur of {', '.join(observed)}"] if observed else []
    uncovered += ["whether the limits are kept, which was found from the data"] if limits or policies else []
    uncovered += [sentence.removesuffix(".") for sentence in policies.disclosures]
    data["label"] = facts.describe_label(data, mechanisms, cost, ceiling, "; ".join(uncovered) or "none")
    data |= {**_collect_board(found, ceiling), "judged": judged}
    known: dict[str, Any] = {"epsilon": cost.epsilon, "policies": policies, "tables": tuple(tables)}
    known["broken"] = tuple(each.breach for each in lost)
    return make_report("set.html.j2", data, own_template, progress, found.headline, **known)


def _describe_table(table: SetTable) -> dict[str, Any]:
    mechanism, described = table.mechanism, table.describe()
    return {
        "name": f"{table.number}: {described}" if table.name is None else f"{table.number}: {table.name} ({described})",
        "number": table.number,
        "mechanism": mechanism.name,
        **facts.pick(mechanism, "epsilon delta pure"),
        "scale": facts.describe_scale(mechanism),
        **facts.pick(find_precision(mechanism), "sd within at_zero"),
    }


def _collect_board(found: TogetherAssessment, ceiling: Ceiling | None) -> dict[str, Any]:
    """Return what the board sees: the figures of the whole beside each table, and what each table adds."""
    from cellrisk.show.pictures import draw_together

    count, most, largest = len(found.tables), found.adds_most, found.largest
    growth = f"How what is revealed grows as tables are added. {found.headline}"
    tables = [
        {
            **_describe_table(each.table),
            **facts.pick(each, "records cells alone without"),
            "worst_case": advantage(each.ceiling) if each.ceiling else "not known",
            "front": _describe_front(each.alone, each.records),
            "so_far": found.collections.get(tuple(range(1, place + 1))),
        }
        for place, each in enumerate(found.tables, 1)
    ]
    return {
        **facts.pick(found, "records headline rules certain certain_unknown statements"),
        "meanings": SAYS,
        "worst_case": advantage(ceiling) if ceiling else "not known",
        "front": _describe_front(found.rule(), found.records),
        "tables": tables,
        "on_front": 1 < count <= MOST_ON_FRONT,
        "growth": facts.make_picture(draw_together(found), growth) if count > 1 else None,
        "adds_most": most and {**facts.pick(most.table, "number title"), "without": most.without},
        "largest": [f"{number}" for number in largest] if len(largest) < count else [],
        "largest_caused": found.collections[largest].caused,
        "differences": [
            {"outer": each.outer.number, "inner": each.inner.number}
            | facts.pick(each, "headline people in_outer in_difference caused either")
            for each in found.differences
        ],
        "refinement": found.refinement
        and {"headline": found.refinement.headline, "rules": {row.what: row for row in found.refinement.rows[:2]}},
    }


def _describe_front(rule: RuleFigures, records: int) -> dict[str, str]:
    """Return what page one has of a rule: whole numbers of people, and their shares."""
    return {
        name: f"{own_people(number, records)} ({own_share(number, records)})"
        for name, number in (("caused", rule.caused), ("right", rule.right))
    }
