"""The words of `Utility`: how far counts and marginals of a release are from the true ones."""

from __future__ import annotations

from cellrisk.decide.usefulness import SMALLEST_GROUPS, Utility
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import find_precision
from cellrisk.show.wording.attackers import accuracy, fill, name_table, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of

SETTINGS_SHOWN, LONGEST_NAME = 3, 12
"""Settings on the first screen, and characters of a mechanism's name above its columns."""
MEANT = "Mean error: as a share of the true count. Bias: what is published less the true count, on average."
NEXT = "Every setting, and what got noise: --all   Within an error: cellrisk choose ... --max-error 5"


def headline(utility: Utility) -> str:
    """Return what a curator can repeat of the first setting: 2-way marginals if there are any, else the first way."""
    way = 2 if 2 in utility.ways else utility.ways[0]
    mechanism, spread = utility.mechanisms[0], next(row for row in utility.spreads[0] if row["way"] == way)
    return (
        f"At {mechanism.guarantee}, a {way}-way marginal differs from the true one by a TVD of {spread['mean']:.2g} on "
        f"average: the share of records to move."
    )


def screen(utility: Utility) -> list[str]:
    """Return what is printed first: the error of a count, by size and in the smallest groups, and of marginals."""
    shown = range(min(len(utility.mechanisms), SETTINGS_SHOWN))
    errors = [utility.errors_of_counts(place) for place in shown]
    positive = sum(row.number for row in errors[0] if row.low)
    zeros = [cell for place in shown for cell in ("-", _bias(find_precision(utility.mechanisms[place]).at_zero))]
    rows = [["0", f"{utility.domain_size - positive:,}", *zeros]]
    for number, row in enumerate(errors[0]):
        size = f"{row.low:,} to {row.high:,}" if row.high else f"{row.low:,} and more"
        size = size if row.low else f"in groups of up to {SMALLEST_GROUPS}"
        moved = [cell for each in errors for cell in (_share(each[number].relative), _bias(each[number].bias))]
        rows.append([size, f"{row.number:,}", *moved])
    heads = ["true count", "number", *["mean error", "bias"] * len(shown)]
    title = name_table(utility.table, utility.sensitive)
    if len(shown) == 1:
        title, table = f"{title}\n{fill(accuracy(utility.mechanisms[0]))}", aligned(heads, rows)
    else:
        within = [cell for place in shown for cell in (f"{find_precision(utility.mechanisms[place]).within:,}", "")]
        settings = [cell for place in shown for cell in ("", _short(utility.mechanisms[place]))]
        table = aligned(["", "", *settings], [heads, ["95% of noise within", "", *within], *rows])
    return [
        title,
        table,
        f"{MEANT}\n{fill(headline(utility))}",
        f"{NEXT}\n{CURATOR_NOTE} {utility.table.describe_unit()}",
    ]


def _share(number: float) -> str:
    return share(number) if number < 0.1 else f"{100 * number:,.0f}%"


def _bias(number: float) -> str:
    return f"{number:+,.1f}" if abs(number) >= 0.05 else "under 0.1" if abs(number) > 1e-9 else "0"


def _short(mechanism: Mechanism) -> str:
    return f"{mechanism.name[:LONGEST_NAME]} {claim(mechanism.epsilon)}"


def paragraphs(utility: Utility) -> list[str]:
    """Return the rest: how far marginals are from the true ones, and what got noise."""
    drawn = (
        f"Total variation distance (TVD) of marginals from the true ones: estimates from "
        f"{number_of(utility.releases, 'simulated release')}, seed {utility.seed}"
    )
    return [f"{drawn}\n{_spread_table(utility)}", fill(_cells_note(utility))]


def _spread_table(utility: Utility) -> str:
    usual = {"neighbours": "add-remove", "delta": 0.0, "threshold": 0.5}
    shown = [
        name
        for name in ("name", "neighbours", "epsilon", "delta", "threshold")
        if name not in usual or any(getattr(each, name) != usual[name] for each in utility.mechanisms)
    ]
    rows = []
    for mechanism, spreads in zip(utility.mechanisms, utility.spreads, strict=True):
        given = [getattr(mechanism, name) for name in shown]
        words = [value if isinstance(value, str) else claim(value) for value in given]
        for spread in spreads:
            numbers = [f"{spread[name]:.4f}" for name in ("mean", "median", "low", "high")]
            rows.append([*words, f"{spread['way']}", f"{spread['marginals']:,}", *numbers])
    header = ["mechanism", *shown[1:], "way", "marginals", "mean", "median", "5%", "95%"]
    return aligned(header, rows, left=2 if "neighbours" in shown else 1)


def _cells_note(utility: Utility) -> str:
    table, levels = utility.table, utility.table.attribute(utility.sensitive).n_levels
    note = (
        f"Noise on every count of the domain, as a differentially private release requires: {utility.domain_size:,} "
        f"counts of {utility.domain_size // levels:,} combinations of the quasi-identifiers, also the empty ones."
    )
    if not utility.observed:
        return note
    return (
        f"{note} The values of {utility.observed} of the {len(table.quasi_identifiers) + 1} attributes were taken from "
        "the data, not declared. The guarantee does not cover that they occur."
    )
