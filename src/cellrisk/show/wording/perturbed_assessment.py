"""The words of `PerturbedAssessment`: what a table with cell keys, rounding or suppression reveals."""

from __future__ import annotations

from collections.abc import Sequence

from cellrisk.risk.perturbed import EqualRisk, PerturbedAssessment, PerturbedFigures
from cellrisk.risk.perturbed.counts import PerturbedClass
from cellrisk.show.wording.attackers import inferred
from cellrisk.show.wording.ceiling import say_most, say_worst_case
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, of_people, percent

NOT_TOLD = (
    "It has no epsilon, so there is no curve, no entry in a ledger and no bound by a guarantee. One publication is "
    "assessed: repeated ones can be averaged unless they repeat the same perturbation, and overlapping ones compared."
)


def headline(assessment: PerturbedAssessment) -> str:
    """What to decide by, for each sensitive attribute."""
    return "\n".join(sentence(figures, assessment.perturbation.name) for figures in assessment.figures)


def sentence(figures: PerturbedFigures, name: str) -> str:
    """Return the figures for readers who read nothing else."""
    own = of_people(abs(figures.caused), figures.records)
    than = "because of their own record" if figures.caused >= 0 else "fewer than with their own record left out"
    parts = [
        f"With {name}, the homogeneity attack reveals the '{figures.sensitive}' of {own} {than}.",
        f"It reveals {percent(figures.people.mean / figures.records)} for any reason, and without the perturbation "
        f"{percent(figures.raw_share)}.",
    ]
    if figures.certainty:
        surest = figures.certainty[-1]
        parts.append(inferred(figures.sensitive, surest.people, surest.certainty))
    parts.append(say_ceiling(figures.ceiling, figures.worst_counts))
    return " ".join([*parts, *(say_equal(equal) for equal in figures.equal)])


def say_ceiling(limit: float, counts: tuple[int, int]) -> str:
    """The ceiling in a sentence, with the counts at which it is reached.

    >>> say_ceiling(7 / 9, (0, 2)).partition("is right ")[2]
    'at most 77.8% of the time, at worst if 0 and 2 others have them (coin toss: 50%).'
    """
    known = " and ".join(f"{count:,}" for count in counts)
    return say_worst_case(f"{say_most(limit)}% of the time, at worst if {known} others have them")


def compare(equal: EqualRisk) -> str:
    """At which epsilons the mechanism reveals no more people."""
    noise = f"{equal.mechanism.capitalize()} noise reveals"
    if not equal.ranges:
        return f"{noise} more people at every epsilon searched"
    ends = (f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in equal.ranges)
    return f"{noise} no more people at epsilon {', '.join(ends)}"


def say_equal(equal: EqualRisk) -> str:
    """What an office gains or loses by moving to differential privacy."""
    what = "because of their own record" if equal.by == "caused" else "to an informed attacker"
    searched = f"searched: {len(equal.scanned)} epsilons from {equal.scanned[0][0]:g} to {equal.scanned[-1][0]:g}"
    compared = (
        f"The perturbation reveals {number_of(equal.figure, 'person')} {what}, and is {percent(equal.distance)} of the "
        f"records away from the true table. {compare(equal)} ({searched})"
    )
    if equal.epsilon is None or equal.mechanism_distance is None:
        return f"{compared}."
    return f"{compared}; at epsilon {equal.epsilon:g} it is {percent(equal.mechanism_distance)} away."


def paragraphs(assessment: PerturbedAssessment) -> list[str]:
    """What is printed below the headline."""
    parts = [f"{assessment.perturbation.describe()}. {NOT_TOLD}"]
    for figures in assessment.figures:
        lines = [
            f"{figures.sensitive}: with {100 * row.certainty:g}% certainty or more {row.people} inferred correctly, "
            f"of {round(row.named):,} inferred."
            for row in figures.certainty
        ]
        if figures.unknown is not None:
            lines.append(f"What an attacker could be sure of is not computed: {figures.unknown}.")
        lines.append(f"People revealed: {figures.people.describe()}.")
        rows = [
            [row.measure, row.weights or "-", row.form, f"{row.risk:.4f}"]
            for row in assessment.risks
            if row.sensitive == figures.sensitive
        ]
        lines.append(aligned(["measure", "weights", "form", "risk"], rows, left=3))
        parts.append("\n".join(lines))
    return [*parts, CURATOR_NOTE]


def say_counts(sensitive: str, classes: Sequence[PerturbedClass], name: str) -> str:
    """Return what becomes of the counts that hold people, and of those that do not."""
    some = [row for row in classes if row.least > 0]
    total = sum(row.counts for row in some)
    same, hidden, moved = (sum(getattr(row, word) for row in some) for word in ("unchanged", "hidden", "moved"))
    start = (
        f"Of {total:,} counts of {sensitive} that hold people, {name} publishes {round(same):,} as they are "
        f"on average, {round(hidden):,} as 0 or not at all, and {round(moved):,} as another count"
    )
    empty = sum(row.moved for row in classes if row.least == 0)
    return f"{start}; it shows {round(empty):,} counts where nobody is." if empty >= 0.5 else f"{start}."
