"""The words of `EqualPerturbation`: the mildest perturbation of a family that reveals no more than a mechanism."""

from __future__ import annotations

from cellrisk.risk.perturbed.families import EqualNumber, EqualPerturbation
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of, percent, whole_people


def headline(found: EqualPerturbation) -> str:
    """A sentence for each sensitive attribute and figure."""
    return "\n".join(sentence(number, found) for number in found.numbers)


def sentence(number: EqualNumber, found: EqualPerturbation) -> str:
    """The perturbation of equal risk, and how far it and the noise lie from the true table."""
    what = "because of their own record" if number.by == "caused" else "to an informed attacker"
    noise = f"{found.mechanism.name.capitalize()} noise at epsilon {claim(found.mechanism.epsilon)}"
    given = (
        f"{noise} reveals the '{number.sensitive}' of {number_of(number.figure, 'person')} {what}, and is "
        f"{percent(number.mechanism_distance)} of the records away from the true table"
    )
    family = found.family
    if number.perturbation is None or number.people is None or number.distance is None:
        return f"{given}; no {family.name} up to {family.rule(family.numbers[-1])} reveals as few."
    return (
        f"{given}; {number.perturbation} is the mildest {family.name} that reveals no more "
        f"({whole_people(number.people)}), and is {percent(number.distance)} away."
    )


def paragraphs(found: EqualPerturbation) -> list[str]:
    """What is printed below the headline."""
    header = ["sensitive", "by", "perturbation", "people", "with noise", "away from truth", "noise away"]
    rows = [
        [
            number.sensitive,
            number.by,
            number.perturbation or "none",
            "-" if number.people is None else f"{number.people:,.1f}",
            f"{number.figure:,.1f}",
            "-" if number.distance is None else percent(number.distance),
            percent(number.mechanism_distance),
        ]
        for number in found.numbers
    ]
    how = (
        f"Searched: {found.family.what}, from {found.family.numbers[0]:g} to {found.family.numbers[-1]:g}, the "
        "smallest first. A larger one may reveal more again."
    )
    return [aligned(header, rows, left=3), how, CURATOR_NOTE]
