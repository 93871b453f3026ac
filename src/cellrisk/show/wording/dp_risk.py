"""The words of `PublishedRisk` and `PrivateChoice`: figures with noise of their own, which may be published."""

from __future__ import annotations

from cellrisk.publish.dp_risk import CONFIDENCE, FIGURE, MEANING, PublishedRisk
from cellrisk.publish.dp_risk.private_choice import DOUBT, WAY, PrivateChoice
from cellrisk.show.wording.attackers import fill
from cellrisk.system.formatting import aligned, as_given, claim, interval, number_of

NEXT_RISK = "An epsilon chosen without these data: cellrisk choose ... --max-ceiling 0.75"


def headline(found: PublishedRisk | PrivateChoice) -> str:
    """Return what may be said in public."""
    if isinstance(found, PrivateChoice):
        chosen = "No epsilon was chosen" if found.epsilon is None else f"Epsilon {found.epsilon:g} was chosen"
        cost = f"The choice costs epsilon {claim(found.private)} of its own."
        return f"{chosen} for {found.like.name} noise. {found.why} {cost}"
    about = f"A release of {found.sensitive} by {', '.join(found.quasi_identifiers)} at {found.mechanism.guarantee}"
    reveals = f"reveals the values of {number_of(max(found.value, 0.0), 'person')} because of their own record"
    own = f"This figure has noise, and costs epsilon {claim(found.epsilon)} of its own."
    interval_words = f"{CONFIDENCE:.0%} interval"
    if found.high > 0:
        shown = f"{interval_words} {interval(found.low, found.high)}"
    else:  # noise has drawn it below 0 as a whole
        shown = f"noise made it {found.value:,.1f}, with its whole {interval_words} below 0: it says only that few are"
    return f"{about} ({found.mechanism.name} noise) {reveals} ({shown}). {own}"


def why(choice: PrivateChoice) -> str:
    """Return why this epsilon, in a sentence."""
    people = "person" if choice.max_caused_people == 1 else "people"
    limit = f"{as_given(choice.max_caused_people)} {people} revealed because of their own record"
    if choice.epsilon is None:
        return f"No epsilon of the grid was seen to keep the limit of {limit}."
    return (
        f"At epsilon {choice.epsilon:g}, and at every smaller one of the grid, at most {limit} are expected, with "
        f"{1 - DOUBT:.0%} confidence."
    )


def statements(found: PublishedRisk | PrivateChoice) -> list[str]:
    """Return what a reader of the figure has to know."""
    if isinstance(found, PrivateChoice):
        return [
            f"Chosen among {len(found.grid)} public epsilons from {found.grid[0]:g} to {found.grid[-1]:g} by {WAY}.",
            f"The choice is differentially private with epsilon {claim(found.private)} for one record "
            f"{found.like.change}, and sampled exactly.",
            f"The limit was lowered by {found.error:.4g} people, by which the choice may be off.",
            "The largest epsilon that keeps the limit can be larger than the one chosen.",
            "A release at the epsilon chosen adds its own: "
            f"together at most epsilon {claim(found.total)}, at the largest of the grid.",
            *found.notes,
        ]
    attained = ", and some tables attain it" if found.sensitivity.exact else ""
    return [
        f"The figure is the expected number of {MEANING}, by the homogeneity attack.",
        "The noise of the release is what is random. The interval comes from the noise on this figure alone.",
        f"One record {found.mechanism.change} moves it by at most {claim(found.sensitivity.value)} people, whatever "
        f"the table{attained}.",
        f"Discrete Laplace noise of scale {found.scale:.6g} people, sampled exactly from secure random bits, makes it "
        f"differentially private with epsilon {claim(found.epsilon)}. Publishing the table adds its own epsilon.",
        *found.notes,
    ]


def screen(found: PublishedRisk | PrivateChoice) -> list[str]:
    """Return everything, in lines that fit a screen."""
    if isinstance(found, PublishedRisk):
        head = ["figure", "value", f"{CONFIDENCE:.0%} interval", "scale of noise", "epsilon"]
        shown = interval(found.low, found.high) if found.high > 0 else "below 0"
        row, command = [FIGURE, f"{found.value:,.3f}", shown, f"{found.scale:.4g}", claim(found.epsilon)], NEXT_RISK
    else:
        head = ["epsilon", "limit (people)", "lowered by", "cost of the choice", "at most in all"]
        chosen = "-" if found.epsilon is None else f"{found.epsilon:g}"
        row = [chosen, as_given(found.max_caused_people), f"{found.error:.4g}"]
        row += [claim(found.private), claim(found.total)]
        command = "Another limit: --max-caused-people" if found.epsilon is None else "Release: cellrisk release ..."
    parts = [fill(found.headline), aligned(head, [row]), "\n".join(map(fill, found.statements))]
    obeyed = [text for text in (found.policies.describe(), found.policies.not_judged) if text and found.policies]
    return [*parts, *(["\n".join(obeyed)] if obeyed else []), command]


def paragraphs(found: PublishedRisk | PrivateChoice) -> list[str]:
    """Return nothing: the first screen is everything."""
    return []
