"""What documents state about noise: its formula, what its guarantee means to a person, and how to use the counts."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from cellrisk.counts.unit import Unit
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import find_precision
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.reporting.metadata import pick

FORMULAS = {
    "laplace": "Laplace noise of scale b = L1 / epsilon",
    "geometric": "two-sided geometric noise on whole numbers, P(j) proportional to exp(-|j| epsilon / L1)",
    "gaussian": "Gaussian noise, sigma = L2 sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon below 1",
    "gaussian-pdp": (
        "Gaussian noise, sigma = L2 (sqrt(z^2 + 2 epsilon) - z) / (2 epsilon), z the delta/2 quantile of the standard "
        "normal distribution (probabilistic differential privacy)"
    ),
    "gaussian-analytic": "Gaussian noise of the smallest sigma that gives the guarantee (Balle and Wang 2018)",
    "discrete-gaussian": (
        "discrete Gaussian noise on whole numbers, sigma = L2 / sqrt(2 rho), with the largest rho that gives the "
        "guarantee (Canonne, Kamath and Steinke 2020)"
    ),
}
NEIGHBOURS = {
    "add-remove": (
        "Two tables are neighbours if one holds one record that the other does not: one person can change one count "
        "by one (L1 = 1, L2 = 1)."
    ),
    "replace": (
        "Two tables are neighbours if one record has different values: one person can change two counts by one each "
        "(L1 = 2, L2 = sqrt 2)."
    ),
}
RELEASABLE = ("geometric", "discrete-gaussian")


def describe_threshold(threshold: float) -> str:
    """What becomes of a noisy count.

    >>> describe_threshold(10.5)
    'Noisy counts are rounded to whole numbers; those up to 10 are published as zero.'
    """
    below = "those below zero" if threshold == 0.5 else f"those up to {threshold - 0.5:g}"
    return f"Noisy counts are rounded to whole numbers; {below} are published as zero."


def describe_scale(mechanism: Mechanism) -> str:
    """How large the noise is, in counts."""
    kind = "b" if mechanism.name in ("laplace", "geometric") else "sigma"
    return f"{kind} = {mechanism.scale:.6g}"


def describe_neighbours(neighbours: str, unit: Unit) -> str:
    """How neighbouring tables differ."""
    if unit.kind == "record":
        return NEIGHBOURS[neighbours]
    differ = "holds no record of" if neighbours == "add-remove" else "holds other records of"
    return f"Two tables are neighbours if one {differ} one person whom the other holds. {unit.describe()}"


def describe_privacy_unit(unit: Unit) -> str:
    """Whose presence is hidden."""
    if unit.kind == "record":
        return "One record. A person with several records is protected for each record alone."
    return f"One person. {unit.describe()}"


def describe_noise(setting: Mechanism, epsilon: float | None) -> dict[str, Any]:
    """The mechanism as documents have it; its scale is None if no epsilon was chosen."""
    return {
        **pick(setting, "name pure delta neighbours threshold"),
        "formula": FORMULAS[setting.name],
        "neighbours_meaning": describe_neighbours(setting.neighbours, setting.unit),
        "privacy_unit": describe_privacy_unit(setting.unit),
        "rounding": describe_threshold(setting.threshold),
        "scale": None if epsilon is None else describe_scale(setting.with_epsilon(epsilon)),
    }


def describe_guarantee(
    loss: Any, tables: int, neighbours: str, highest: Ceiling | None, *, chosen: bool = False, covered: bool = True
) -> dict[str, Any]:
    """What a loss, with its epsilon and delta, promises to a person: P(S) <= e^epsilon P'(S) + delta, both ways.

    The worst case takes no record to compute. It is left out if epsilon was ``chosen`` from the data, and qualified if
    not everything that is published is ``covered``.
    """
    factor = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(loss.epsilon).exp())
    return {
        **pick(loss, "epsilon delta"),
        "tables": tables,
        "neighbours": neighbours,
        "chosen": chosen,
        "covered": covered,
        "factor": f"{factor:,f}" if factor < 10**9 else f"{factor:e}",
        "worst_case": None if highest is None or chosen else highest.of_two,
    }


def describe_use(mechanism: Mechanism) -> dict[str, Any]:
    """How far counts, and sums of 25 counts, are from the true ones; the noise alone decides that."""
    precision = find_precision(mechanism)
    means = {name: _round_mean(getattr(precision, name)) for name in ("at_zero", "at_hidden")}
    return {**pick(precision, "sd within hidden"), **means, "off_by": 2.0 * precision.of_sum(25)}


def _round_mean(count: float) -> str:
    return "under 0.001" if count < 0.001 else f"{count:.2g}" if count < 9.95 else f"{count:,.0f}"
