"""The words of `Utility`: how far marginals of a release are from the true ones."""

from __future__ import annotations

from cellrisk.decide.usefulness import Utility
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, percent


def headline(utility: Utility) -> str:
    """What a curator can repeat of the first setting: 2-way marginals where there are any, else the first way."""
    way = 2 if 2 in utility.ways else utility.ways[0]
    mechanism, spread = utility.mechanisms[0], utility.spreads[0, way]
    return (
        f"At {mechanism.guarantee}, a {way}-way marginal of a released table differs from the true "
        f"one by a TVD of {spread.mean:.2g} on average ({spread.low:.2g} to {spread.high:.2g} in 90% of releases "
        f"and marginals): {percent(spread.mean)} of the records would have to move."
    )


def paragraphs(utility: Utility) -> list[str]:
    """What is printed below the headline."""
    drawn = (
        f"Total variation distance (TVD) of marginals from the true ones: estimates from {utility.releases:,} "
        f"simulated {'release' if utility.releases == 1 else 'releases'}, seed {utility.seed}"
    )
    unit = [utility.table.describe_unit()] if utility.table.unit.kind == "person" else []
    return [f"{drawn}\n{_spread_table(utility)}", _cells_note(utility), " ".join([CURATOR_NOTE, *unit])]


def _spread_table(utility: Utility) -> str:
    usual = {"neighbours": "add-remove", "delta": 0.0, "threshold": 0.5}
    shown = [
        name
        for name in ("name", "neighbours", "epsilon", "delta", "threshold")
        if name not in usual or any(getattr(each, name) != usual[name] for each in utility.mechanisms)
    ]
    rows = []
    for (place, way), spread in utility.spreads.items():
        given = [getattr(utility.mechanisms[place], name) for name in shown]
        words = [value if isinstance(value, str) else claim(value) for value in given]
        numbers = [f"{number:.4f}" for number in (spread.mean, spread.median, spread.low, spread.high)]
        rows.append([*words, f"{way}", f"{utility.count_marginals(way):,}", *numbers])
    header = ["mechanism", *shown[1:], "way", "marginals", "mean", "median", "5%", "95%"]
    return aligned(header, rows, left=2 if "neighbours" in shown else 1)


def _cells_note(utility: Utility) -> str:
    table, levels = utility.table, utility.table.attribute(utility.sensitive).n_levels
    if utility.cells == "observed":
        return (
            f"Noise on the {table.n_cells:,} non-empty cells times {levels:,} levels alone: {utility.n_counts:,} "
            f"counts of the {utility.domain_size:,} in the domain. Which cells hold records is then published as it "
            "is: the guarantee of differential privacy does not cover it."
        )
    note = (
        f"Noise on every count of the domain: {utility.domain_size // levels:,} combinations of the "
        f"quasi-identifiers times {levels:,} levels, {utility.domain_size:,} counts, empty ones too, as a "
        "differentially private release needs."
    )
    if not utility.observed:
        return note
    return (
        f"{note} The values of {utility.observed} of the {len(table.quasi_identifiers) + 1} attributes were "
        "taken from the data, not declared; that they occur is not covered by the guarantee."
    )
