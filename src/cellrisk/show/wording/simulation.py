"""The words of `Simulation`: what attackers found in simulated releases."""

from __future__ import annotations

from cellrisk.publish.simulation.simulation_result import Simulation
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, of_people, say_error

FIGURES = {
    "caused": "revealed because of their own record",
    "right": "named correctly",
    "named": "named, correctly or not",
}


def headline(simulation: Simulation) -> str:
    """What a curator can repeat: how many people the simulated releases exposed."""
    people = simulation.people
    at, processed = ("With noise of", "post-processed ") if simulation.post_processed else ("At", "")
    return (
        f"{at} {simulation.mechanism.guarantee}, {simulation.releases:,} simulated {processed}releases reveal the "
        f"'{simulation.sensitive}' of {of_people(people.mean, simulation.table.n_records)} on average, "
        f"{people.low:,} to {people.high:,} in 95% of releases."
    )


def paragraphs(simulation: Simulation) -> list[str]:
    """What is printed below the headline."""
    drawn = (
        f"Estimates from {simulation.releases:,} simulated releases of {number_of(simulation.table.n_cells, 'cell')}, "
        f"seed {simulation.seed}; {simulation.mechanism.name}, noise scale {simulation.mechanism.scale:.4g}"
    )
    risks = [
        [*(word or "-" for word in row.name.values()), f"{row.mean:.4f}", say_error(row.standard_error)]
        for row in simulation.estimates
    ]
    scenarios = [
        [f"{row.number}", row.original, row.released, f"{row.share:.4f}", say_error(row.standard_error)]
        for row in simulation.scenarios
    ]
    risk_table = aligned(["measure", "attack", "form", "weights", "risk", "standard error"], risks, left=4)
    scenario_table = aligned(
        ["scenario", "the cell holds", "its release shows", "share of cells", "standard error"], scenarios, left=3
    )
    return [
        f"{drawn}\n{risk_table}",
        *_show_figures(simulation),
        scenario_table,
        CURATOR_NOTE,
    ]


def _show_figures(simulation: Simulation) -> list[str]:
    if not simulation.figures:
        return []
    rows = [
        [
            FIGURES[row.name["figure"]] + _say_certainty(row.name["certainty"]),
            f"{row.mean:,.1f}",
            say_error(row.standard_error),
        ]
        for row in simulation.figures
    ]
    unknown = (
        f"\nWhat an attacker could be sure of was not simulated: {simulation.unknown}." if simulation.unknown else ""
    )
    return [aligned(["people", "mean", "standard error"], rows) + unknown]


def _say_certainty(certainty: float | None) -> str:
    return "" if certainty is None else f", {100 * certainty:g}% sure or more"
