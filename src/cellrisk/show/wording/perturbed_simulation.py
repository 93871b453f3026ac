"""The words of `PerturbedSimulation`: simulated publications beside the exact figures of a perturbation."""

from __future__ import annotations

from cellrisk.publish.simulation.perturbed import PerturbedSimulation
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, say_error


def headline(simulation: PerturbedSimulation) -> str:
    """What a curator can repeat: how many people the simulated publications exposed."""
    exposed = simulation.figures[0]
    return (
        f"In {number_of(simulation.publications, 'simulated publication')} with {simulation.perturbation.name}, "
        f"the '{simulation.sensitive}' of {number_of(exposed.simulated, 'person')} was revealed on average "
        f"(standard error: {say_error(exposed.standard_error)}); computed exactly, {exposed.assessed:,.1f}."
    )


def paragraphs(simulation: PerturbedSimulation) -> list[str]:
    """What is printed below the headline."""
    rows = [
        [
            row.name["figure"],
            f"{row.simulated:,.4f}",
            say_error(row.standard_error),
            f"{row.assessed:,.4f}",
            f"{0.0 - row.z:+.1f}" if row.standard_error > 0 else "-",
        ]
        for row in simulation.figures
    ]
    return [aligned(["figure", "simulated", "standard error", "exact", "z"], rows), CURATOR_NOTE]
