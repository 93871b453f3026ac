"""The words of limits and policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cellrisk.decide.limits import Limit, RiskDefinition
from cellrisk.show.wording.attackers import share
from cellrisk.system.formatting import as_given, percent

if TYPE_CHECKING:
    from cellrisk.counts.unit import Unit
    from cellrisk.decide.policies import Policies, Policy

ABOUT = {
    "max_caused": "own records",
    "max_certain": "people learnt",
    "max_person": "one person",
    "max_ceiling": "the ceiling",
    "max_posterior": "the posterior",
    "max_epsilon": "epsilon",
    "max_error": "the error",
    "max_risk": "the risk",
    "margin": "the risk",
    "max_people": "the risk",
}
"""What is limited, after "the limit on"."""
ASKED = {
    "max_caused": "at most {}% of any category revealed because of their own record",
    "max_certain": "at most {}% of any {harmful}category learnt with {sure} certainty",
    "max_person": "at most {}% for any person because of their own record",
    "max_ceiling": "a worst case of at most {}%",
    "max_posterior": "a suspicion of {suspected} raised to at most {}% by what one person's data add",
    "max_epsilon": "an epsilon of at most {}",
    "max_error": "a published count within {} of the true one in 95% of cases",
    "max_risk": "a risk of at most {}%",
    "margin": "a risk at most {}% above blind noise",
    "max_people": "at most {} {people} revealed on average",
}
"""A limit, after "asks for", "keeps" or "gives"."""
STATED = {
    "max_caused": "{}% of a category are revealed because of their own record",
    "max_certain": "{}% of a {harmful}category are learnt with {sure} certainty",
    "max_person": "one person's own record adds {}%",
    "max_ceiling": "the worst case is {}%",
    "max_posterior": "it can become {}%",
    "max_epsilon": "epsilon is {}",
    "max_error": "it is within {}",
    "max_risk": "it is {}%",
    "margin": "it is {}% above",
    "max_people": "it is {}",
}
"""What a metric is somewhere, as a clause."""
MEASURED = {
    "max_caused": "largest share of a category revealed because of their own record",
    "max_certain": "largest share of a {harmful}category learnt",
    "max_person": "the most that one person's own record adds",
    "max_ceiling": "worst case for one record",
    "max_posterior": "suspicion of {suspected} raised to at most",
    "margin": "risk above blind noise",
}
"""What a picture shows of a limit, as the name of an axis."""
WITHIN = "within every limit"
NO_POLICY = "No policy was in force."
CHECKED = "Whether the limits are kept was found from the data, which the guarantee does not cover."


def describe(limit: Limit) -> str:
    """Return the limit in words, after "asks for", "keeps" or "gives"."""
    return _fill(ASKED, limit, limit.maximum)


def show_value(limit: Limit, value: float) -> str:
    """Return a value of the metric that is limited as a cell of a table."""
    if "{}%" not in ASKED[limit.name]:
        return f"{value:,.4g}"
    return percent(value) if value < 0.001 else share(value)


def show_maximum(limit: Limit) -> str:
    """Return a limit as it was given."""
    return f"{as_given(limit.maximum, 2)}%" if "{}%" in ASKED[limit.name] else as_given(limit.maximum)


def say(limit: Limit, value: float) -> str:
    """What the metric is somewhere, as a clause: to four digits, or as many as distinguish it from the limit."""
    rounded = (float(f"{value:.{digits}g}") for digits in range(4, 18))
    shown = next((each for each in rounded if (each > limit.maximum) == (value > limit.maximum)), value)
    return _fill(STATED, limit, shown)


def name_metric(limit: Limit) -> str:
    """Return what a picture shows of a limit, as the name of an axis."""
    if limit.name == "max_risk" and limit.risk is not None:
        return name_risk(limit.risk)
    return _fill(MEASURED, limit, limit.maximum)


def say_unit(required: str, unit: Unit) -> str:
    """The unit of privacy that a policy requires, and the one there is."""
    stated = "the most records of one person are stated (contributions)"
    limited = "the records of each person are limited (person, contributions)"
    return f"the policy requires that {stated if required == 'person' else limited}; {unit}"


def say_breach(limit: Limit, value: float) -> str:
    """The limit, and the value that breaks it."""
    risk = "" if limit.risk is None else f" ({name_risk(limit.risk)})"
    return f"{describe(limit)}{risk}; {say(limit, value)}"


def _fill(words: dict[str, str], limit: Limit, number: float) -> str:
    text = words[limit.name]
    sure, suspected = (
        "" if share is None else f"{as_given(share, 2)}%" for share in (limit.certainty, limit.suspected)
    )
    people = "person" if limit.maximum == 1 else "people"
    harmful = "harmful " if limit.attacker is not None and limit.attacker.harmful else ""
    named = {"sure": sure, "suspected": suspected, "people": people, "harmful": harmful}
    return text.format(as_given(number, 2 if "{}%" in text else 0), **named)


def describe_limits(limits: Sequence[Limit]) -> list[str]:
    """The limits in words; one on another risk than the first is followed by the name of that risk."""
    first = next((limit.risk for limit in limits if limit.risk is not None), None)
    return [
        describe(limit) if limit.risk is None or limit.risk == first else f"{describe(limit)} ({name_risk(limit.risk)})"
        for limit in limits
    ]


def name_risk(risk: RiskDefinition) -> str:
    weights = {"uniform": ", each group alike", "records": ", by records"}[risk.weights]
    attack = "" if risk.attack == "homogeneity" else f"{risk.attack} attack, "
    weighting = "" if risk.measure == "marginal_shrinkage" else weights
    return f"{attack}{risk.measure.replace('_', ' ')} risk, {risk.form}{weighting}"


def verdict(broken: Sequence[str] | None) -> str:
    """The verdict on an epsilon that breaks the limits of these names; None where no limit was set."""
    if broken is None:
        return "no limit was set"
    about = dict.fromkeys(ABOUT.get(name, name) for name in broken)
    return f"breaks the limit on {' and '.join(about)}" if about else WITHIN


def describe_policies(policies: Policies) -> str:
    """Which policies were obeyed, in a sentence."""
    if not policies:
        return NO_POLICY
    plural = "Policy" if len(policies.obeyed) == 1 else "Policies"
    return f"{plural} obeyed: {', '.join(policy.describe() for policy in policies.obeyed)}."


def disclose(policy: Policy) -> list[str]:
    """Sentences on what the public learns about the raw data from the fact that this policy is kept."""
    rules = [describe(limit) for limit in policy.limits if limit.kind.uses_data]
    if isinstance(policy.delta, str):
        rules.append(f"a delta of at most {policy.delta.strip()}, n being the number of records")
    return [f"{CHECKED.removesuffix('.')}: the policy asks for {' and '.join(rules)}."] if rules else []


def say_not_judged(policies: Policies) -> str | None:
    """Which limits use the records, in a sentence for those who publish a figure; None if none does."""
    names = [describe(limit) for limit in policies.limits if limit.kind.uses_data]
    names += ["a delta by the number of records" for policy in policies.obeyed if isinstance(policy.delta, str)][:1]
    if not names:
        return None
    return (
        f"Not judged here, because whether it is kept would tell of the records: {'; '.join(names)}. release and "
        "assess judge it, for the curator."
    )
