"""The words of `Comparison`: how far assessed numbers are from simulated ones."""

from __future__ import annotations

from cellrisk.publish.simulation.simulation_result import Comparison, Difference
from cellrisk.system.formatting import CURATOR_NOTE, aligned


def headline(comparison: Comparison) -> str:
    """Whether the two agree, in one sentence."""
    verdict = (
        "chance explains them"
        if comparison.agrees
        else "farther than a right number is once in 10,000 times, which chance does not explain"
    )
    subject = "post-processed releases" if comparison.post_processed else "releases"
    return (
        f"The {len(comparison.every):,} assessed numbers are at most {comparison.largest_z:.1f} standard errors from "
        f"those of {comparison.releases:,} simulated {subject}: {verdict}."
    )


def paragraphs(comparison: Comparison) -> list[str]:
    """What is printed below the headline."""
    body = [
        [*(word or "-" for word in row.name.values()), *_show_numbers(row, ".4f")] for row in comparison.differences
    ]
    header = ["measure", "attack", "form", "weights", "assessed", "simulated", "standard error", "z"]
    parts = [aligned(header, body, left=4)]
    if comparison.figures:
        body = [[name_figure(row), *_show_numbers(row, ",.1f")] for row in comparison.figures]
        parts.append(aligned(["people", "assessed", "simulated", "standard error", "z"], body))
    few = [name_figure(row) for row in comparison.figures if not row.tells]
    if few:
        parts.append(
            f"Too few releases to tell: {'; '.join(few)}. Chance explains a difference as large as the figure."
        )
    if comparison.unknown:
        parts.append(f"The attacker who does the mathematics was not simulated: {comparison.unknown}.")
    return [*parts, CURATOR_NOTE]


def name_figure(row: Difference) -> str:
    """A figure to decide by, in words."""
    figure, certainty = row.name["figure"], row.name["certainty"]
    return str(figure) if certainty is None else f"{figure}, {100 * certainty:g}% sure"


def _show_numbers(row: Difference, form: str) -> list[str]:
    return [f"{row.assessed:{form}}", f"{row.simulated:{form}}", f"{row.standard_error:.2g}", f"{row.z:+.2f}"]
