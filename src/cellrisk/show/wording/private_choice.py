"""The words of `PrivateChoice`: which epsilon was chosen, and what the choice costs."""

from __future__ import annotations

from cellrisk.publish.dp_risk.private_choice import DOUBT, WAY, PrivateChoice
from cellrisk.show.wording.published_risk import describe_policies
from cellrisk.system.formatting import aligned, as_given, claim


def why(choice: PrivateChoice) -> str:
    """Why this epsilon, in a sentence."""
    people = "person" if choice.max_caused_people == 1 else "people"
    limit = f"{as_given(choice.max_caused_people)} {people} given away because of their own record"
    if choice.epsilon is None:
        return f"No epsilon of the grid was seen to keep the limit of {limit}."
    return (
        f"At epsilon {choice.epsilon:g}, and at every smaller one of the grid, at most {limit} are expected, with "
        f"{1 - DOUBT:.0%} confidence."
    )


def headline(choice: PrivateChoice) -> str:
    """What may be said in public."""
    chosen = "No epsilon was chosen" if choice.epsilon is None else f"Epsilon {choice.epsilon:g} was chosen"
    cost = f"The choice costs epsilon {claim(choice.private)} of its own."
    return f"{chosen} for {choice.like.name} noise. {choice.why} {cost}"


def statements(choice: PrivateChoice) -> list[str]:
    """What a reader of the choice has to know."""
    return [
        f"Chosen among {len(choice.grid)} public epsilons from {choice.grid[0]:g} to {choice.grid[-1]:g} by "
        f"{WAY}, differentially private with epsilon {claim(choice.private)} for one record "
        f"{choice.like.change}, and sampled exactly.",
        f"The limit was lowered by {choice.error:.4g} people, by which the choice may be off: the largest epsilon "
        "that keeps the limit can be larger than the one chosen.",
        f"A release at the epsilon chosen adds its own: together at most epsilon {claim(choice.total)}, at the "
        "largest of the grid.",
        *choice.notes,
    ]


def paragraphs(choice: PrivateChoice) -> list[str]:
    """What is printed below the headline."""
    head = ["epsilon", "limit (people)", "lowered by", "cost of the choice", "at most in all"]
    chosen = "-" if choice.epsilon is None else f"{choice.epsilon:g}"
    row = [
        chosen,
        as_given(choice.max_caused_people),
        f"{choice.error:.4g}",
        claim(choice.private),
        claim(choice.total),
    ]
    return [aligned(head, [row]), "\n".join(choice.statements), *describe_policies(choice.policies)]
