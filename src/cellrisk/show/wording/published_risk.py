"""The words of `PublishedRisk`: a figure with noise, and what a reader of it has to know."""

from __future__ import annotations

from cellrisk.decide.policies import Policies
from cellrisk.publish.dp_risk import CONFIDENCE, FIGURE, MEANING, PublishedRisk
from cellrisk.system.formatting import aligned, claim, interval, number_of


def headline(risk: PublishedRisk) -> str:
    """What may be said in public."""
    mechanism, value = risk.mechanism, max(risk.value, 0.0)
    about = f"A release of {risk.sensitive} by {', '.join(risk.quasi_identifiers)} at {mechanism.guarantee}"
    gives = f"reveals the values of {number_of(value, 'person')} because of their own record"
    own = f"this figure has noise, and costs epsilon {claim(risk.epsilon)} of its own"
    return f"{about} ({mechanism.name} noise) {gives} ({_say_interval(risk)}); {own}."


def _say_interval(risk: PublishedRisk) -> str:
    """The interval; if noise has drawn it below 0 as a whole, what that means."""
    named = f"{CONFIDENCE:.0%} interval"
    if risk.high > 0:
        return f"{named} {interval(risk.low, risk.high)}"
    return f"noise made it {risk.value:,.1f}, with its whole {named} below 0: it says only that few are"


def statements(risk: PublishedRisk) -> list[str]:
    """What a reader of the figure has to know."""
    attained = "attained by some tables: " if risk.sensitivity.exact else ""
    return [
        f"The figure is the expected number of {MEANING}, the noise of the release being what is "
        "random. The interval is for that number; it comes from the noise on this figure alone.",
        f"One record {risk.mechanism.change} moves it by at most {claim(risk.sensitivity.value)} people, whatever "
        f"the table ({attained}{risk.sensitivity.condition}). Discrete Laplace noise of scale {risk.scale:.6g} "
        f"people, sampled exactly from secure random bits, makes it differentially private with epsilon "
        f"{claim(risk.epsilon)}; publishing the table adds its own epsilon.",
        *risk.notes,
    ]


def paragraphs(risk: PublishedRisk) -> list[str]:
    """What is printed below the headline."""
    head = ["figure", "value", f"{CONFIDENCE:.0%} interval", "scale of noise", "epsilon"]
    shown = interval(risk.low, risk.high) if risk.high > 0 else "below 0"
    row = [FIGURE, f"{risk.value:,.3f}", shown, f"{risk.scale:.4g}", claim(risk.epsilon)]
    return [aligned(head, [row]), "\n".join(risk.statements), *describe_policies(risk.policies)]


def describe_policies(policies: Policies) -> list[str]:
    """Which policies were obeyed, and what of them was not judged; nothing if there is none."""
    if not policies:
        return []
    return ["\n".join([policies.describe(), *([policies.not_judged] if policies.not_judged else [])])]
