"""A report on a set of tables: what is asked, and whether the set keeps its limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cellrisk.decide.limits import Limit
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy
from cellrisk.errors import InvalidInput
from cellrisk.repeat.together.costs import Cost
from cellrisk.repeat.together.judging import (
    find_breaches,
    find_figure,
    find_policy_breaches,
    is_of_sets,
    list_certainties,
    name_limit,
)
from cellrisk.repeat.together.sets import SetTable
from cellrisk.repeat.together.splitting import Split
from cellrisk.repeat.together.together_result import TogetherAssessment
from cellrisk.system.formatting import claim, join_names, number_of

KEPT, BROKEN, NOT_JUDGED = "kept", "broken", "cannot be judged"
ASKED = "applicant"


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
    split: Split | None
    """Other ways to share the total among the tables, if they were asked for."""
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
        if self.split is not None and tuple(table.content for table in self.split.tables) != tuple(
            table.content for table in self.tables
        ):
            raise InvalidInput("the split is that of another set", fix="split the set that the report is about")

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

    def find_breaches(self) -> tuple[str, ...]:
        """The limits that the set breaks, and those that cannot be judged."""
        if self.found is None:
            return ()
        own = find_breaches(self.found, self.limits)
        return (*own, *find_policy_breaches(self.found, self.policies))

    def judge(self) -> list[dict[str, str]]:
        """Every limit, who set it, what the set has, and whether it is kept: those asked for, then the policies'."""
        if self.found is None:
            return []
        judged = [*_judge_all(self.found, self.limits, ASKED)]
        for policy in self.policies.obeyed:
            judged += _judge_policy(self.found, policy)
        return judged

    def describe_limits(self) -> str:
        """The limits in words, once each; empty if none was set."""
        return " and ".join(dict.fromkeys(judged["limit"] for judged in self.judge()))


def name_set_table(table: SetTable) -> str:
    """A table by its number, its name if it has one, its columns and its people."""
    described = table.describe()
    return f"{table.number}: {described}" if table.name is None else f"{table.number}: {table.name} ({described})"


def _judge(limit: str, by: str, figure: str, state: str) -> dict[str, str]:
    return {"limit": limit, "by": by, "figure": figure, "state": state}


def _judge_policy(found: TogetherAssessment, policy: Policy) -> Iterator[dict[str, str]]:
    file = "a policy given in Python" if policy.file is None else policy.file.name
    named = ", ".join(filter(None, (file, policy.origin)))
    for limit in policy.limits:
        if not is_of_sets(limit):
            yield _judge(limit.describe(), named, f"a set of tables has no {policy.measure} risk", NOT_JUDGED)
    yield from _judge_all(found, [limit for limit in policy.limits if is_of_sets(limit)], named)
    most = policy.largest_delta(found.records)
    if most is not None:
        state = BROKEN if found.cost.delta > most else KEPT
        yield _judge(f"a delta of at most {most:g}", named, f"delta is {claim(found.cost.delta)}", state)


def _judge_all(found: TogetherAssessment, limits: Sequence[Limit], by: str) -> Iterator[dict[str, str]]:
    for limit in limits:
        broken, figure = [*find_breaches(found, [limit])], find_figure(found, limit)
        if figure is None:
            yield _judge(limit.describe(), by, broken[0].partition("; ")[2], NOT_JUDGED)
            continue
        fewer = limit.name == "max_caused" and len(found.largest) < len(found.tables)
        tables = f" (by tables {join_names([f'{number}' for number in found.largest])} alone)" if fewer else ""
        yield _judge(name_limit(limit), by, f"{limit.say(figure)}{tables}", BROKEN if broken else KEPT)
