"""The words of `Audit` and `Simulation`: what attackers find in a release, or in simulated ones."""

from __future__ import annotations

import math

from cellrisk.publish.auditing import Audit
from cellrisk.publish.auditing.figures import FIGURES
from cellrisk.publish.simulation import Simulation
from cellrisk.show.wording.attackers import fill, name_attack, name_table, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, of_people, percent, say_error

NEXT_SIMULATION = "Risks by simulation, and eight scenarios: --all   Exact figures: cellrisk assess ..."
WHOLE, OF = ("k", "distinct_l"), ("released", "original")
NOTES_SHOWN = 2
SHOWN = {
    "homogeneity_tight_records": "revealed by the homogeneity attack",
    "plurality": "named correctly by the largest count of their group",
    "tcap": "right, of those named by the homogeneity attack (TCAP)",
}
"""Figures of the first screen, with what they say."""


def headline(found: Audit | Simulation) -> str:
    """Return what a curator can repeat: how many people a release, or simulated ones, reveal."""
    if isinstance(found, Simulation):
        return _say_simulation(found)
    share = f"{found.n_exposed:,} of {_count(found, found.original.n_records)} ({percent(found.value())})"
    sentences = [f"The release reveals the '{found.sensitive}' of {share}: their group shows their value alone."]
    if not found.made.perturbation:  # noise makes the smallest count of nobody else
        people = found.facts["alone"]
        safe = ", and would not be without their own record" if found.made.mechanism and people else ""
        number, are = f"{people:,}" if people else "None", "is" if people == 1 else "are"
        sentences.append(f"{number} of them {are} shown alone as a count of {found.made.smallest}{safe}.")
    informed = [row for row in found.attackers if row["attack"] == "informed" and "union" not in row]
    for row in informed[:1]:
        who = f"'{found.sensitive}' of {_count(found, row['revealed'])}"
        sentences.append(
            f"An informed attacker could infer the {who} and be at least {100 * row['certainty']:g}% sure."
        )
    if not informed:
        sentences.append(f"What an informed attacker infers is not computed: {found.unknown}.")
    return " ".join(sentences)


def _say_simulation(simulation: Simulation) -> str:
    people, mechanism, made = simulation.people, simulation.mechanism, simulation.perturbation
    setting = "" if mechanism is None else f" at {mechanism.guarantee}"
    if made is not None:
        setting = f" with {made.name}"
    elif mechanism is not None and simulation.post_processed:
        setting = f" with noise of {mechanism.guarantee}"
    processed = "post-processed " if simulation.post_processed else ""
    releases = number_of(simulation.releases, f"simulated {processed}release")
    return (
        f"In {releases}{setting}, the homogeneity attack reveals the '{simulation.sensitive}' of "
        f"{of_people(people.mean, simulation.table.n_records)} on average. "
        f"In 95% of releases it is {people.low:,} to {people.high:,}."
    )


def screen(found: Audit | Simulation) -> list[str]:
    """Return what is printed first: who is revealed, the main figures, what to do next."""
    if isinstance(found, Simulation):
        title = f"{name_table(found.table, found.sensitive)}\n{fill(_say_simulation(found))}"
        unknown = f"\nAttackers who apply Bayes' rule are not simulated: {found.unknown}." if found.unknown else ""
        simulated = [
            [name_attack(row)]
            + [text for part in ("revealed", "own") for text in (f"{row[part]:,.1f}", say_error(row[f"{part}_error"]))]
            for row in found.attackers
        ]
        heads = ["people", "revealed", "standard error", "own record", "standard error"]
        table = [] if found.post_processed else [f"{aligned(heads, simulated)}{unknown}"]
        return [title, *table, f"{NEXT_SIMULATION}\n{CURATOR_NOTE}"]
    audit = found
    rows = []
    for name, what in SHOWN.items():
        values = [audit.value(name, of) for of in OF]
        rows.append([what, *("-" if math.isnan(value) else share(value) for value in values)])
    rows.append(["smallest group (k)", *(_show("k", audit.value("k", of)) for of in OF)])
    return [
        f"{name_table(audit.original, audit.sensitive)}\n{fill(headline(audit))}",
        aligned([f"of the {audit.original.revealed_name}", "release", "original"], rows),
        *(["\n".join(audit.notes[:NOTES_SHOWN])] if audit.notes else []),
        f"Every figure: --all   Groups that reveal most: --top 20   Check before a release: cellrisk assess ...\n"
        f"{CURATOR_NOTE}",
    ]


def paragraphs(found: Audit | Simulation) -> list[str]:
    """Return the rest: every figure with its meaning; of simulations the local risk and the eight scenarios."""
    if isinstance(found, Simulation):
        return _list_simulated(found)
    audit, people = found, found.original.n_records
    rows = [[name, _show(name, audit.released[name]), _show(name, audit.raw[name])] for name in FIGURES]
    numbers = aligned(["figure", "released", "original"], rows).splitlines()
    meanings = ["", *(figure.meaning for figure in FIGURES.values())]
    table = [f"{line}  {meaning}".rstrip() for line, meaning in zip(numbers, meanings, strict=True)]
    attacks = [
        [name_attack(row), f"{row['revealed']:,.6g}", share(row["revealed"] / people)]
        + [f"{row[part]:,.6g}" if part in row else "-" for part in ("own", "learnt")]
        for row in audit.attackers
    ]
    heads = ["named correctly", audit.original.revealed_name, "share", "own record", "learnt"]
    first = [aligned(heads, attacks)] if attacks else []
    bound = [] if audit.ceiling is None else [fill(audit.ceiling.headline)]
    return ["\n".join(part) for part in (first, table, bound, audit.notes[NOTES_SHOWN:]) if part]


def _count(audit: Audit, number: float) -> str:
    """Return a number of people, or of records if people may have several."""
    return number_of(number, "person" if audit.original.unit.contributions == 1 else "record")


def notes(audit: Audit) -> list[str]:
    """What was assumed about the release, and what is unusual about it."""
    facts = audit.facts
    number = {name: f"{count:,}" for name, count in facts.items()}
    said = {
        "contradicted": "The release describes how it was made; the mechanism that was given is ignored.",
        "changed": "The description beside the file was written for another file (another sha256) and is ignored.",
        "negative": f"Negative counts, which unbiased noise makes, are read as zero: {number['negative']} of "
        f"{number['counts']}.",
        "fractional": f"Fractional counts show their category wherever they are above zero: {number['fractional']} of "
        f"{number['counts']}.",
        "nothing": "The release shows no positive count.",
        "unknown": f"Groups that the release shows and the original does not have: {number['unknown']} of "
        f"{number['shown']}.",
        "absent": f"Groups of the original that are not shown: {number['absent']}, with {number['hidden']} of its "
        "records.",
        "left_out": f"Rows of the release with missing values are left out, as in the original: {number['left_out']}.",
        "all_different": "Each row of the release is read as one record, and no two are alike; if it holds counts, "
        "name their column.",
    }
    return [sentence for name, sentence in said.items() if facts[name]]


def _show(name: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    if FIGURES[name].is_count:
        return f"{int(value):,}"
    if name in WHOLE:
        return f"{value:,g}" if value == int(value) else f"{value:,.4f}"
    return f"{value:.4f}"


def _list_simulated(simulation: Simulation) -> list[str]:
    mechanism = simulation.mechanism
    noise = "" if mechanism is None else f"; {mechanism.name}, noise scale {mechanism.scale:.4g}"
    drawn = (
        f"Estimates from {simulation.releases:,} simulated releases of {number_of(simulation.table.n_cells, 'group')}, "
        f"seed {simulation.seed}{noise}"
    )
    risks = [[*row.name.values(), f"{row.mean:.4f}", say_error(row.standard_error)] for row in simulation.estimates]
    scenarios = [
        [*map(str, list(row.name.values())[:3]), f"{row.mean:.4f}", say_error(row.standard_error)]
        for row in simulation.scenarios
    ]
    heads = ["scenario", "the group holds", "its release shows", "share of groups", "standard error"]
    return [
        f"{drawn}\n{aligned(['measure', 'attack', 'form', 'weights', 'risk', 'standard error'], risks, left=4)}",
        aligned(heads, scenarios, left=3),
    ]
