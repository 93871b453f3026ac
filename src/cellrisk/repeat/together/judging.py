"""Whether a set of tables keeps limits: those that are asked for, and those of policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.decide.figure_limits import CausedLimit, CeilingLimit, CertainLimit, EpsilonLimit, FigureLimit
from cellrisk.decide.policies import Policies
from cellrisk.decide.requirement import Requirement
from cellrisk.repeat.together.together_result import TogetherAssessment, say_people
from cellrisk.system.text import claim, percent

NAMED = "people whom elimination names rightly"


def find_breaches(
    found: TogetherAssessment, limits: Sequence[FigureLimit], required: Requirement | None = None
) -> Iterator[str]:
    """The limits that the set breaks, a line for each.

    Of people given away because of their own records, the collection of tables counts that gives away most; of
    epsilon, what the set costs; of the ceiling, that of the set; of certainty, the tempering that names most. The risk
    is the share of people whom elimination names rightly, all tables together.
    """
    for limit in limits:
        figure = find_figure(found, limit)
        if figure is None:
            yield f"asked for was {limit.describe()}; {_why_unknown(found, limit)}"
        elif figure > limit.most:
            yield f"asked for was {limit.describe()}; {limit.say(figure)}"
    if required is not None:
        lead = found.rule()
        risk, chance = lead.right / found.records, lead.chance / found.records
        figures = {
            "max_risk": (risk, percent(risk)),
            "margin": (risk - chance, f"{percent(risk - chance)} above"),
            "max_people": (lead.right, say_people(lead.right)),
        }
        for name, (figure, said) in figures.items():
            most = getattr(required, name)
            if most is not None and figure > most:
                yield f"asked for was {Requirement(**{name: most}).describe()} ({NAMED}); it is {said}"


def find_figure(found: TogetherAssessment, limit: FigureLimit) -> float | None:
    """The figure of a set that a limit is about; None where it is not known."""
    if isinstance(limit, CausedLimit):
        return found.collections[found.largest].caused / found.records
    if isinstance(limit, CeilingLimit):
        return None if found.ceiling is None else found.ceiling.even_two
    if isinstance(limit, EpsilonLimit):
        return found.cost.epsilon
    if isinstance(limit, CertainLimit):
        named = [each.right for each in found.certain if each.certainty == limit.certainty]
        return max(named) / found.records if named else None
    return None


def _why_unknown(found: TogetherAssessment, limit: FigureLimit) -> str:
    told = found.ceiling_unknown if isinstance(limit, CeilingLimit) else found.certain_unknown
    return f"of this set it is not known{'' if told is None else f': {told}'}"


def list_certainties(policies: Policies, limits: Sequence[FigureLimit]) -> tuple[float, ...]:
    """The certainties that must be looked at to judge."""
    every = (*limits, *policies.figure_limits)
    return tuple(sorted({limit.certainty for limit in every if isinstance(limit, CertainLimit)}))


def find_policy_breaches(found: TogetherAssessment, policies: Policies) -> Iterator[str]:
    """The limits of policies that the set breaks, a line for each.

    Limits on the risk are judged by elimination. A limit on a measure that a set does not have is named too.
    """
    for each in policies.obeyed:
        policy, named = each.policy, each.describe()
        required = policy.requirement
        if required is not None and (policy.measure, policy.attack) != ("local", "homogeneity"):
            yield f"{named} limits the {policy.measure} risk, which a set of tables does not have: it cannot be judged"
            required = None
        for line in find_breaches(found, policy.figure_limits, required):
            yield f"{line}; by {named}"
        most = policy.largest_delta(found.records)
        if most is not None and found.cost.delta > most:
            yield f"asked for was a delta of at most {most:g}; the set has {claim(found.cost.delta)}; by {named}"
