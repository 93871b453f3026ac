"""Whether a set of tables keeps limits: those that are asked for, and those of policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.decide.limits import Limit
from cellrisk.decide.policies import Policies
from cellrisk.repeat.together.together_result import TogetherAssessment
from cellrisk.system.formatting import as_given, claim

NAMED = "people whom elimination names correctly"
OF_PEOPLE = {
    "max_caused": ("at most {}% of people revealed because of their own records", "{}% of people are"),
    "max_certain": ("at most {}% of people inferred correctly and {}% sure", "{}% of people are"),
}
"""Limits on shares of all people of a set, and what those are, in words; of one table they are on each category."""


def find_breaches(found: TogetherAssessment, limits: Sequence[Limit]) -> Iterator[str]:
    """The limits that the set breaks, a line for each.

    Of people revealed because of their own records, the collection of tables counts that reveals most; of
    epsilon, what the set costs; of the ceiling, that of the set; of certainty, the tempering that names most. The risk
    is the share of people whom elimination names correctly, all tables together.
    """
    for limit in limits:
        figure = find_figure(found, limit)
        if figure is None:
            unknown = {"max_ceiling": found.ceiling_unknown, "max_certain": found.certain_unknown}.get(limit.name)
            yield f"asked for was {name_limit(limit)}; of this set it is not known{f': {unknown}' if unknown else ''}"
        elif figure > limit.maximum:
            yield f"asked for was {name_limit(limit)}; {_say_figure(limit, figure)}"


def name_limit(limit: Limit) -> str:
    """A limit in words; of a set, shares are of all people, and a risk is that of elimination."""
    if limit.name in OF_PEOPLE:
        asked, _ = OF_PEOPLE[limit.name]
        return asked.format(as_given(limit.maximum, 2), as_given(limit.certainty or 0.0, 2))
    return f"{limit.describe()} ({NAMED})" if limit.risk is not None else limit.describe()


def _say_figure(limit: Limit, figure: float) -> str:
    if limit.name not in OF_PEOPLE:
        return limit.say(figure)
    return OF_PEOPLE[limit.name][1].format(f"{100 * figure:.4g}")


def find_figure(found: TogetherAssessment, limit: Limit) -> float | None:
    """The figure of a set that a limit is about; None where it is not known."""
    name, lead = limit.name, found.rule()
    if name == "max_caused":
        return found.collections[found.largest].caused / found.records
    if name == "max_ceiling":
        return None if found.ceiling is None else found.ceiling.even_two
    if name == "max_epsilon":
        return found.cost.epsilon
    if name == "max_certain":
        named = [each.right for each in found.certain if each.certainty == limit.certainty]
        return max(named) / found.records if named else None
    if name in ("max_person", "max_posterior", "max_error"):
        return None
    if name == "max_people":
        return lead.right
    if name == "margin":
        return (lead.right - lead.chance) / found.records
    return lead.right / found.records


def is_of_sets(limit: Limit) -> bool:
    """Whether a set of tables has what a limit is on: of risks, the local one of the homogeneity attack alone."""
    risk = limit.risk
    return risk is None or (risk.measure, risk.attack) == ("local", "homogeneity")


def list_certainties(policies: Policies, limits: Sequence[Limit]) -> tuple[float, ...]:
    """The certainties that must be looked at to judge."""
    found = {limit.certainty for limit in (*limits, *policies.limits) if limit.name == "max_certain"}
    return tuple(sorted(certainty for certainty in found if certainty is not None))


def find_policy_breaches(found: TogetherAssessment, policies: Policies) -> Iterator[str]:
    """The limits of policies that the set breaks, a line for each.

    Limits on the risk are judged by elimination. A limit on a measure that a set does not have is named too.
    """
    for policy in policies.obeyed:
        named = policy.describe()
        judged = [limit for limit in policy.limits if is_of_sets(limit)]
        if len(judged) < len(policy.limits):
            yield f"{named} limits the {policy.measure} risk, which a set of tables does not have: it cannot be judged"
        for line in find_breaches(found, judged):
            yield f"{line}; by {named}"
        most = policy.largest_delta(found.records)
        if most is not None and found.cost.delta > most:
            yield f"asked for was a delta of at most {most:g}; the set has {claim(found.cost.delta)}; by {named}"
