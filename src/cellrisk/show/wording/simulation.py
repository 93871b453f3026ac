"""The words of `Simulation`: what attackers found in simulated releases."""

from __future__ import annotations

from cellrisk.publish.simulation import Simulation
from cellrisk.show.wording.attackers import name_attack
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, of_people, say_error


def headline(simulation: Simulation) -> str:
    """Return what a curator can repeat: how many people the simulated releases reveal."""
    people, mechanism, made = simulation.people, simulation.mechanism, simulation.perturbation
    setting = f"With {made.name}" if made is not None else f"At {mechanism.guarantee}" if mechanism is not None else ""
    if mechanism is not None and simulation.post_processed:
        setting = f"With noise of {mechanism.guarantee}"
    processed = "post-processed " if simulation.post_processed else ""
    return (
        f"{setting}, {simulation.releases:,} simulated {processed}releases reveal the "
        f"'{simulation.sensitive}' of {of_people(people.mean, simulation.table.n_records)} on average, "
        f"{people.low:,} to {people.high:,} in 95% of releases."
    )


def paragraphs(simulation: Simulation) -> list[str]:
    """Return what is printed below the headline: the local risk, the four attacks, the eight scenarios."""
    mechanism = simulation.mechanism
    noise = "" if mechanism is None else f"; {mechanism.name}, noise scale {mechanism.scale:.4g}"
    drawn = (
        f"Estimates from {simulation.releases:,} simulated releases of {number_of(simulation.table.n_cells, 'cell')}, "
        f"seed {simulation.seed}{noise}"
    )
    risks = [[*row.name.values(), f"{row.mean:.4f}", say_error(row.standard_error)] for row in simulation.estimates]
    scenarios = [
        [*map(str, list(row.name.values())[:3]), f"{row.mean:.4f}", say_error(row.standard_error)]
        for row in simulation.scenarios
    ]
    heads = ["scenario", "the cell holds", "its release shows", "share of cells", "standard error"]
    return [
        f"{drawn}\n{aligned(['measure', 'attack', 'form', 'weights', 'risk', 'standard error'], risks, left=4)}",
        *_show_attackers(simulation),
        aligned(heads, scenarios, left=3),
        CURATOR_NOTE,
    ]


def _show_attackers(simulation: Simulation) -> list[str]:
    if simulation.post_processed:
        return []
    rows = [
        [name_attack(row), *(text for part in ("revealed", "own") for text in _show(row[part], row[f"{part}_error"]))]
        for row in simulation.attackers
    ]
    parts = [aligned(["people", "revealed", "standard error", "own record", "standard error"], rows)]
    if simulation.unknown:
        parts.append(f"Attackers who apply Bayes' rule are not simulated: {simulation.unknown}.")
    return ["\n".join(parts)]


def _show(mean: float, error: float) -> list[str]:
    return [f"{mean:,.1f}", say_error(error)]
