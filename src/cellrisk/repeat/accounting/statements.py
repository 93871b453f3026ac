"""What a composition says of itself in words: what was mixed, through what it was turned, what is assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cellrisk.repeat.accounting.loss import FLAVOURS, Loss
from cellrisk.repeat.accounting.operators import add_up
from cellrisk.repeat.accounting.pieces import kind_of
from cellrisk.system.text import number_of

STRENGTH = {"pure": 3, "probabilistic": 2, "approximate": 1, "concentrated": 1}

DESCRIBED = {
    "basic": "Basic composition adds up epsilons and deltas.",
    "advanced": "Advanced composition (Kairouz, Oh, Viswanath 2015) bounds the sum of the privacy losses.",
    "zcdp": "Composition by zCDP adds up the rhos of all losses.",
    "rdp": "Composition by Renyi DP adds up the Renyi divergences of all losses.",
    "gaussian": "Gaussian noises compose exactly, to one Gaussian.",
    "pld": "The distributions of the privacy losses are convolved and rounded to the safe side.",
}
NEIGHBOURING = {
    "add-remove": "Tables are neighbours where one record is added or removed: one count changes by 1.",
    "replace": "Tables are neighbours where one record is replaced: two counts change by 1 each.",
}


def implies(flavour: str, other: str) -> bool:
    """Whether one flavour implies another at the same parameters; zCDP implies approximate DP at any delta above 0.

    >>> implies("pure", "probabilistic"), implies("approximate", "probabilistic")
    (True, False)
    """
    return STRENGTH[flavour] >= STRENGTH[other]


def state(losses: Sequence[Loss], flavour: str, delta: float, operator: str) -> tuple[str, ...]:
    """The statements of a composition of at least one loss; of none, there is nothing to say."""
    if not losses:
        return ()
    counts = Counter(loss.flavour for loss in losses)
    stated = [_say_what_was_mixed(counts, flavour)]
    if flavour == "approximate" and counts["probabilistic"]:
        stated.append("Probabilistic DP implies approximate DP at the same epsilon and delta.")
    if counts["concentrated"]:
        stated.append(
            "A rho-zCDP loss has no epsilon of its own: at every delta above 0 it implies approximate DP with another."
        )
    if flavour == "probabilistic":
        stated.append("Probabilistic DP need not outlast further processing of a release; approximate DP does.")
    if flavour != "pure":
        stated.append(_say_which_delta(losses, delta))
    stated.append(DESCRIBED[operator])
    unknown = sum(kind_of(loss) is None for loss in losses)
    if operator in {"zcdp", "rdp", "pld"} and unknown > counts["concentrated"]:
        stated.append(
            f"{number_of(unknown - counts['concentrated'], 'loss')} without a known mechanism: taken at the worst that "
            "the guarantee allows."
        )
    if operator != "basic":
        stated.append(
            "A release may depend on what earlier ones showed, its parameters may not; where they did, basic "
            "composition alone holds, up to a limit that was set before."
        )
    return (*stated, NEIGHBOURING[losses[0].neighbours])


def _say_what_was_mixed(counts: Counter[str], flavour: str) -> str:
    present = [(kind, counts[kind]) for kind in FLAVOURS if counts[kind]]
    *before, last = [f"{count:,} {kind}" for kind, count in present]
    mixed = f"{', '.join(before)} and {last}" if before else last
    total = counts.total()
    losses, are = ("loss", "is") if total == 1 else ("losses", "are")
    zero = ": a pure loss has delta 0" if counts["pure"] and flavour != "pure" else ""
    return f"{mixed} {losses} {are} composed as {flavour} DP{zero}."


def _say_which_delta(losses: Sequence[Loss], delta: float) -> str:
    deltas = add_up([loss.delta for loss in losses])
    compared = f"All operators are compared at delta {delta:g}"
    if delta == deltas:
        return f"{compared}, the sum of the losses' deltas."
    return f"{compared}; the losses' own add up to {deltas:g}."
