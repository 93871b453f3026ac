"""The report on a set of tables: the data of set.html.j2 for a board, and of set_public.html.j2 for the public."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellrisk.decide.limits import Limit
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy
from cellrisk.errors import InvalidInput
from cellrisk.noise.precision import find_precision
from cellrisk.repeat.together import KEPT, NOT_JUDGED, Judged, RuleFigures, TogetherAssessment, judge, list_certainties
from cellrisk.repeat.together.releasing import plan_loss
from cellrisk.repeat.together.sets import Cost, SetTable, find_cost, find_together, try_ceiling
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.reporting.document import Report, make_report, read_decision, read_template
from cellrisk.show.reporting.metadata import (
    FORMULAS,
    NEIGHBOURS,
    RELEASABLE,
    collect_metadata,
    describe_budget,
    describe_guarantee,
    describe_scale,
    describe_threshold,
    describe_use,
    make_picture,
    pick,
)
from cellrisk.show.wording.attackers import own_people, own_share
from cellrisk.show.wording.ceiling import advantage
from cellrisk.show.wording.limits import CHECKED
from cellrisk.show.wording.together import SAYS
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Ledger

MOST_ON_FRONT = 7
"""Tables that the first page shows one by one, and draws; of more, those that reveal most by themselves."""


@dataclass(frozen=True, eq=False)
class SetRequest:
    """What a report on a set is about, and the limits that it has to keep."""

    sensitive: str
    tables: tuple[SetTable, ...]
    cost: Cost
    found: TogetherAssessment | None
    """None if the public is told of a set that no limit is on: no record is read then."""
    limits: tuple[Limit, ...]
    """Those that were asked for, beside the policies'."""
    policies: Policies
    declared: frozenset[str] | None
    """Columns whose values were declared; None if that is not known."""

    def __post_init__(self) -> None:
        found = self.found
        if found is None and self.limited:
            raise InvalidInput("a set is judged by its figures", fix="hand in the answer of assess_together")
        if found is not None and found.certain_unknown is None:
            known = {row.certainty for row in found.certain}
            lacking = [share for share in list_certainties(self.policies, self.limits) if share not in known]
            if lacking:
                raise InvalidInput(
                    f"a limit is on a certainty of {lacking[0]:g}, for which the set was not assessed",
                    fix=f"give assess_together certainty={lacking[0]:g}",
                )

    @property
    def limited(self) -> bool:
        """Whether anything has to be kept."""
        return bool(self.limits or self.policies)

    @property
    def set_name(self) -> str:
        """What the set is of: 3 tables of income."""
        return f"{number_of(len(self.tables), 'table')} of {self.sensitive}"

    @property
    def quasi_identifiers(self) -> list[str]:
        """Those of all tables, each once."""
        return list(dict.fromkeys(name for table in self.tables for name in table.quasi_identifiers))

    @property
    def observed(self) -> list[str]:
        """The columns whose values were not declared; all of them if that is not known."""
        declared = self.declared or ()
        return [name for name in dict.fromkeys((self.sensitive, *self.quasi_identifiers)) if name not in declared]

    @property
    def bins(self) -> list[str]:
        """The bins of the tables, as preparation of the data."""
        lines: dict[str, None] = {}
        for table in self.tables:
            for column, edges in table.bins.items():
                numbers = edges if isinstance(edges, list | tuple) else (edges,)
                lines[f"{column} in bins: {'/'.join(f'{edge:.15g}' for edge in numbers)}"] = None
        return list(lines)

    @cached_property
    def judged(self) -> list[Judged]:
        """Every limit, who set it, what the set has, and whether it is kept: those asked for, then the policies'."""
        return [] if self.found is None else judge(self.found, self.limits, self.policies)

    @property
    def lost(self) -> list[Judged]:
        """The limits that the set does not keep."""
        return [judged for judged in self.judged if judged.state != KEPT]

    def describe_limits(self) -> str:
        """The limits in words, once each; empty if none was set."""
        return " and ".join(dict.fromkeys(judged.limit for judged in self.judged))


def report_set(
    tables: Sequence[SetTable],
    sensitive: str,
    found: TogetherAssessment | None,
    *,
    limits: tuple[Limit, ...] = (),
    public: bool = False,
    declared: Collection[str] | None = None,
    disclosures: Sequence[str] = (),
    ledger: Ledger | None = None,
    cohort: str = "everyone",
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    template: str | os.PathLike[str] | None = None,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
    **given: Any,
) -> Report:
    """What a board needs to see of a set, or what the public may know of it.

    ``found`` is what was assessed; the public needs none if no limit is set, and then no record is read. ``given`` is
    printed as it is: title, organisation, source, preparation, audience, date and command.
    """
    policies = Policies.in_force(policy)
    if found is None and not public:
        raise InvalidInput("a board decides by what a set reveals", fix="hand in the answer of assess_together")
    own_template = read_template(template)
    mechanisms, together = [each.mechanism for each in tables], find_together(tables)
    ceiling, _ = try_ceiling(mechanisms, together, 2)
    request = SetRequest(
        sensitive=sensitive,
        tables=tuple(tables),
        cost=find_cost(mechanisms, together),
        found=found,
        limits=limits,
        policies=policies,
        declared=None if declared is None else frozenset(declared),
    )
    printed = dict.fromkeys(("title", "organisation", "source", "audience", "date", "command"))
    printed |= {**given, "preparation": [*request.bins, *given.get("preparation", ())]}
    data = collect_metadata(printed, policies, inputs, ledger, public)
    if ledger is not None and not public:
        try:
            loss: Loss | str = plan_loss(request.tables, sensitive)
        except InvalidInput as refusal:
            loss = str(refusal)
        data |= describe_budget(ledger, cohort, loss)
    data |= _collect(request, data)
    if public or found is None:
        data |= _collect_public(request, ceiling, [*disclosures, *policies.disclosures])
    else:
        data |= _collect_board(request, found, ceiling)
    document = make_report(
        "set_public.html.j2" if public or found is None else "set.html.j2",
        data,
        own_template,
        "" if public or found is None else found.headline,
        setting=None,
        epsilon=request.cost.epsilon,
        public=public,
        policies=policies,
        broken=tuple(judged.breach for judged in request.lost),
        tables=tuple(tables),
    )
    if progress is not None:
        progress(1.0)
    return document


def _collect(request: SetRequest, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What follows from the tables that were asked for and from their noise: anybody may see it."""
    mechanisms = dict.fromkeys(table.mechanism.name for table in request.tables)
    document = "Privacy statement for" if metadata["public"] else "Disclosure review of"
    return {
        "title": metadata["title"] or f"{document} {request.set_name}",
        "sensitive": request.sensitive,
        "quasi_identifiers": request.quasi_identifiers,
        "tables": [_describe_table(table) for table in request.tables],
        "formulas": [(name, FORMULAS[name]) for name in mechanisms],
        "releasable": all(name in RELEASABLE for name in mechanisms),
        "neighbours_meaning": NEIGHBOURS[request.tables[0].mechanism.neighbours],
        "rounding": list(dict.fromkeys(describe_threshold(table.mechanism.threshold) for table in request.tables)),
        "observed": None if request.declared is None else request.observed,
        "cost": pick(request.cost, "epsilon delta apart headline method"),
        "limits": request.describe_limits(),
        **_decide(request, metadata["public"]),
    }


def _describe_table(table: SetTable) -> dict[str, Any]:
    mechanism = table.mechanism
    return {
        "name": name_set_table(table),
        "number": table.number,
        "mechanism": mechanism.name,
        **pick(mechanism, "epsilon delta pure"),
        "scale": describe_scale(mechanism),
        **pick(find_precision(mechanism), "sd within at_zero"),
    }


def _collect_public(request: SetRequest, ceiling: Ceiling | None, disclosures: list[str]) -> dict[str, Any]:
    """What the public sees beside the tables and their noise."""
    mechanisms = [table.mechanism for table in request.tables]
    covered = not (request.limited or disclosures or request.observed)
    return {
        "guarantee": describe_guarantee(
            request.cost, len(mechanisms), mechanisms[0].neighbours, ceiling, covered=covered
        ),
        "use": describe_use(max(mechanisms, key=lambda each: each.scale)),
        "notes": [*([CHECKED] if request.limited else []), *disclosures],
    }


def _collect_board(request: SetRequest, found: TogetherAssessment, ceiling: Ceiling | None) -> dict[str, Any]:
    """What the board sees: the figures of the whole beside each table, and what each table adds."""
    from cellrisk.show.pictures import draw_together

    count, most, largest = len(found.tables), found.adds_most, found.largest
    by_caused = sorted(found.tables, key=lambda each: -each.alone.caused)
    on_front = by_caused[: MOST_ON_FRONT if count <= MOST_ON_FRONT else MOST_ON_FRONT - 1] if count > 1 else []
    growth = f"How what is revealed grows as tables are added. {found.headline}"
    tables = [
        {
            **_describe_table(each.table),
            **pick(each, "records cells alone without"),
            "worst_case": advantage(each.ceiling) if each.ceiling else "not known",
            "front": _describe_front(each.alone, each.records),
            "shown": each in on_front,
            **_describe_growth(found, place),
        }
        for place, each in enumerate(found.tables)
    ]
    return {
        **pick(found, "records headline rules certain certain_unknown statements"),
        "meanings": SAYS,
        "worst_case": advantage(ceiling) if ceiling else "not known",
        "front": _describe_front(found.rule(), found.records),
        "tables": tables,
        "n_not_shown": count - len(on_front) if count > 1 else 0,
        "growth": make_picture(draw_together(found), growth) if count > 1 else None,
        "judged": request.judged,
        "adds_most": most and {**pick(most.table, "number title"), "without": most.without},
        "largest": [f"{number}" for number in largest] if len(largest) < count else [],
        "largest_caused": found.collections[largest].caused,
        "differences": [
            {"outer": each.outer.number, "inner": each.inner.number}
            | pick(each, "headline people in_outer in_difference caused either")
            for each in found.differences
        ],
        "refinement": found.refinement
        and {"headline": found.refinement.headline, "rules": {row.what: row for row in found.refinement.rows[:2]}},
    }


def _describe_front(rule: RuleFigures, records: int) -> dict[str, str]:
    """What page one has of a rule: whole numbers of people, and their shares."""
    return {
        name: f"{own_people(number, records)} ({own_share(number, records)})"
        for name, number in (("caused", rule.caused), ("right", rule.right))
    }


def _decide(request: SetRequest, public: bool) -> dict[str, Any]:
    """What is asked, and the answer."""
    data = {
        "tables": len(request.tables),
        "sensitive": request.sensitive,
        "mechanisms": list(dict.fromkeys(table.mechanism.name for table in request.tables)),
        **pick(request.cost, "epsilon delta"),
        "limits": request.describe_limits(),
        "n_limits": len(request.judged),
        "lost": [judged.limit for judged in request.lost],
        "not_judged": any(judged.state == NOT_JUDGED for judged in request.lost),
    }
    kind = "broken" if request.lost else "kept" if request.limited else "open"
    return read_decision("set", public, kind, data)


def _describe_growth(found: TogetherAssessment, place: int) -> dict[str, Any]:
    """The set up to a table, and what this table adds to those above it; None if that was not computed."""
    so_far = found.collections.get(tuple(range(1, place + 2)))
    before = found.collections.get(tuple(range(1, place + 1)))
    adds = None
    if so_far is not None and (before is not None or not place):
        adds = {name: getattr(so_far, name) - getattr(before, name, 0.0) for name in ("caused", "right")}
    return {"so_far": so_far, "adds": adds}


def name_set_table(table: SetTable) -> str:
    """A table by its number, its name if it has one, its columns and its people."""
    described = table.describe()
    return f"{table.number}: {described}" if table.name is None else f"{table.number}: {table.name} ({described})"
