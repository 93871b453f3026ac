"""The words of `Composition`: what several releases cost together."""

from __future__ import annotations

from collections import Counter

from cellrisk.repeat.accounting.composition import Composition
from cellrisk.system.formatting import aligned, claim, number_of

DESCRIBED = {
    "basic": "Basic composition adds up epsilons and deltas.",
    "rdp": "Composition by Renyi DP adds up the Renyi divergences of all losses.",
    "pld": "The distributions of the privacy losses are convolved and rounded to the safe side.",
}
EXACT = "Gaussian noises compose exactly, to one Gaussian."
NEIGHBOURING = {
    "add-remove": "Tables are neighbours if one record is added or removed: one count changes by 1.",
    "replace": "Tables are neighbours if one record is replaced: two counts change by 1 each.",
}
SET_BEFORE = (
    "Computed for epsilons and deltas set before the first release; if later ones were set by what earlier releases "
    "showed, use the method basic and a limit set before. No method covers an epsilon that was chosen from the raw "
    "data."
)


def headline(found: Composition) -> str:
    """What a curator can repeat."""
    if not found.losses:
        return "Nothing is released: epsilon 0."
    at_delta = f" at delta {claim(found.delta)}" if found.delta else ""
    cost = "costs" if len(found.losses) == 1 else "together cost"
    return (
        f"{number_of(len(found.losses), 'release')} {cost} epsilon {claim(found.epsilon)}{at_delta} "
        f"({found.dp_definition} DP, by {found.chosen.method} composition)."
    )


def statements(found: Composition) -> list[str]:
    """What was composed, how, and what is assumed."""
    if not found.losses:
        return []
    counts = Counter(loss.dp_definition for loss in found.losses)
    method, said = found.chosen.method, [_say_mixture(counts, found.dp_definition)]
    if counts["concentrated"]:
        said.append("A rho-zCDP loss has no epsilon of its own: it implies approximate DP at every delta above 0.")
    if found.dp_definition != "pure":
        own = found.own_delta
        other = ", the sum of the losses' deltas" if found.delta == own else f"; the losses' own add up to {claim(own)}"
        said.append(f"All methods are compared at delta {claim(found.delta)}{other}.")
    said.append(EXACT if found.exact else DESCRIBED[method])
    unknown = sum(event.kind in ("pure", "approximate") for event in found.events)
    if method != "basic" and unknown:
        lost = number_of(unknown, "loss")
        said.append(f"{lost} without a known mechanism: taken at the worst that the guarantee allows.")
    said += [SET_BEFORE] if method != "basic" else []
    return [*said, NEIGHBOURING[found.losses[0].neighbours]]


def paragraphs(found: Composition) -> list[str]:
    """What is printed below the headline."""
    rows = [
        [
            each.method,
            "-" if each.epsilon is None else claim(each.epsilon),
            "chosen" if each == found.chosen else each.why,
        ]
        for each in found.composed
    ]
    return [aligned(["method", "epsilon", ""], rows, left=3), "\n".join(found.statements)]


def say_ceiling(found: Composition) -> str:
    """The ceiling in words, or why it is not known."""
    most, why_not = found.find_ceiling()
    return f"The ceiling is not known: {why_not}." if most is None else most.of_two


def _say_mixture(counts: Counter[str], dp_definition: str) -> str:
    *before, last = [f"{counts[kind]:,} {kind}" for kind in ("pure", "approximate", "concentrated") if counts[kind]]
    mixed = f"{', '.join(before)} and {last}" if before else last
    losses, are = ("loss", "is") if counts.total() == 1 else ("losses", "are")
    zero = ": a pure loss has delta 0" if counts["pure"] and dp_definition != "pure" else ""
    return f"{mixed} {losses} {are} composed as {dp_definition} DP{zero}."
