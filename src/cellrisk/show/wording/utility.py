"""The words of `Utility`: how far counts and marginals of a release are from the true ones."""

from __future__ import annotations

from cellrisk.decide.usefulness import SMALLEST_GROUPS, Utility
from cellrisk.noise.precision import find_precision
from cellrisk.show.wording.attackers import accuracy, fill, name_table, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of

SETTINGS_SHOWN = 3
"""Settings on the first screen."""
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
        rows.append([size, f"{row.number:,}"])
        for relative, bias in ((each[number].relative, each[number].bias) for each in errors):
            rows[-1] += [share(relative) if relative < 0.1 else f"{100 * relative:,.0f}%", _bias(bias)]
    heads = ["true count", "number", *["mean error", "bias"] * len(shown)]
    title = name_table(utility.table, utility.sensitive)
    if len(shown) == 1:
        title, table = f"{title}\n{fill(accuracy(utility.mechanisms[0]))}", aligned(heads, rows)
    else:
        within = [cell for place in shown for cell in (f"{find_precision(utility.mechanisms[place]).within:,}", "")]
        settings = [cell for each in utility.mechanisms for cell in ("", f"{each.name[:12]} {claim(each.epsilon)}")]
        table = aligned(["", "", *settings[: 2 * len(shown)]], [heads, ["95% of noise within", "", *within], *rows])
    return [
        title,
        table,
        f"{MEANT}\n{fill(headline(utility))}",
        f"{NEXT}\n{CURATOR_NOTE} {utility.table.describe_unit()}",
    ]


def _bias(number: float) -> str:
    return f"{number:+,.1f}" if abs(number) >= 0.05 else "under 0.1" if abs(number) > 1e-9 else "0"


def paragraphs(utility: Utility) -> list[str]:
    """Return the rest: how far marginals are from the true ones, and what got noise."""
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
    drawn = (
        f"Total variation distance (TVD) of marginals from the true ones: estimates from "
        f"{number_of(utility.releases, 'simulated release')}, seed {utility.seed}"
    )
    levels = utility.table.attribute(utility.sensitive).n_levels
    note = (
        f"Noise on every count of the domain, as a differentially private release requires: {utility.domain_size:,} "
        f"counts of {utility.domain_size // levels:,} combinations of the quasi-identifiers, also the empty ones."
    )
    if utility.observed:
        note += (
            f" The values of {utility.observed} of the {len(utility.table.quasi_identifiers) + 1} attributes were "
            "taken from the data, not declared. The guarantee does not cover that they occur."
        )
    return [f"{drawn}\n{aligned(header, rows, left=2 if 'neighbours' in shown else 1)}", fill(note)]
