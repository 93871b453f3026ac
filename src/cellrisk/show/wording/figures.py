"""The words of the figures to decide by: what the informed attacker infers, and what the guarantee alone bounds."""

from __future__ import annotations

import math

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.figures import DecisionFigures
from cellrisk.system.formatting import claim, number_of, percent


def describe_certainty(figures: DecisionFigures) -> str:
    """Return what the attacker infers, in a sentence for each certainty."""
    if not figures.certainty:
        return f"What an attacker could be sure of is not computed: {figures.unknown}."
    lines = []
    for row in figures.certainty:
        sure = f"{100 * row.certainty:g}%"
        if row.precision is None or row.named_high < 0.5:
            number = "No" if row.precision is None else "Hardly any"
            lines.append(f"{number} '{figures.sensitive}' would be inferred with {sure} certainty or more.")
            continue
        error = "" if row.error is None else f" (standard error {row.error:.2g}, simulated)"
        bold = ", less often than the prior implies: overconfident" if row.overconfident else ""
        lines.append(
            f"With {sure} certainty or more: {row.people} inferred correctly{error}, of {round(row.named):,} "
            f"inferred; correct {percent(row.precision)} of the time{bold}."
        )
    believed = "" if figures.belief is None else f"The attacker's prior: {figures.belief.describe()}."
    return "\n".join([*lines, believed])


def describe_bounds(figures: DecisionFigures) -> str:
    """Return what the guarantee alone says of the people revealed because of their own record."""
    this, any_kind = math.ceil(figures.caused.bound), math.ceil(figures.caused.cap)
    if this >= any_kind:  # a guessing attack is often right, so its own bound says less
        most = number_of(any_kind, "person")
        return f"By the guarantee alone, any attack reveals at most {most} because of their own record."
    return (
        f"By the guarantee alone, this attack reveals at most {number_of(this, 'person')} because "
        f"of their own record, and any attack at most {any_kind:,}."
    )


def say_tables(mechanism: Mechanism, tables: int) -> list[str]:
    """Return what the tables of several sensitive attributes cost together; nothing for one."""
    if tables < 2:
        return []
    delta = "" if mechanism.pure else f" and delta {claim(tables * mechanism.delta)}"
    return [
        f"Each sensitive attribute is a table of its own about the same people: the {tables} tables cost epsilon "
        f"{claim(tables * mechanism.epsilon)}{delta} together. The worst case above is for one of them alone."
    ]
