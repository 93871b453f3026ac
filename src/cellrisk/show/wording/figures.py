"""The words of the figures to decide by: revealed because of their own record, certainty, ceiling."""

from __future__ import annotations

import math

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.certainty.inferences import say_named
from cellrisk.risk.figures import DecisionFigures
from cellrisk.system.formatting import about_people, claim, number_of, of_people, percent

ATTACKED = {
    "homogeneity": "have their {sensitive} read off the table correctly",
    "plurality": "have their {sensitive} guessed by naming the largest count of their cell",
    "proportional": "have their {sensitive} guessed by a draw in proportion to the counts of their cell",
}
"""What an attack does to people, after "would" or "to"."""


def sentence(figures: DecisionFigures, mechanism: Mechanism, chance_share: float) -> str:
    """The three figures, each with its meaning; ``mechanism`` has the epsilon as it is shown."""
    caused = figures.caused
    spread = f"; {caused.spread}" if caused.spread else ""
    attacked = ATTACKED[figures.attack].format(sensitive=figures.sensitive)
    parts = [
        f"At {mechanism.guarantee}, {of_people(caused.people, caused.records, spread)} would {attacked} only "
        f"because their own record is in it; "
        f"{about_people(caused.exposed)} ({percent(caused.exposed / caused.records)}) would at all, and "
        f"{percent(chance_share)} {mechanism.by_chance}."
    ]
    if figures.certainty:
        parts.append(say_named(figures.sensitive, figures.certainty[-1].people, figures.certainty[-1].certainty))
    return " ".join([*parts, figures.ceiling.of_two])


def describe_certainty(figures: DecisionFigures) -> str:
    """What the attacker infers, in a sentence for each certainty."""
    if not figures.certainty:
        return f"What an attacker could be sure of is not computed: {figures.unknown}."
    lines = []
    for row in figures.certainty:
        sure = f"{100 * row.certainty:g}%"
        if row.precision is None or row.named_high < 0.5:
            number = "No" if row.precision is None else "Hardly any"
            lines.append(f"{number} {figures.sensitive} would be named with {sure} certainty or more.")
            continue
        error = "" if row.error is None else f" (standard error {row.error:.2g}, simulated)"
        bold = ", less often than he believes: overconfident" if row.overconfident else ""
        lines.append(
            f"With {sure} certainty or more: {row.people} named rightly{error}, of {round(row.named):,} "
            f"named; right {percent(row.precision)} of the time{bold}."
        )
    believed = "" if figures.belief is None else f"The attacker's belief: {figures.belief.describe()}."
    return "\n".join([*lines, believed])


def describe_bounds(figures: DecisionFigures) -> str:
    """What the guarantee alone says of the people revealed because of their own record."""
    this, any_kind = math.ceil(figures.caused.bound), math.ceil(figures.caused.cap)
    if this >= any_kind:  # a guessing attack is often right, so its own bound says less
        most = number_of(any_kind, "person")
        return f"By the guarantee alone, no attack gives away more than {most} because of their own records."
    return (
        f"By the guarantee alone, this attack gives away at most {number_of(this, 'person')} because "
        f"of their own records, and no attack of any kind more than {any_kind:,}."
    )


def say_tables(mechanism: Mechanism, tables: int) -> list[str]:
    """What the tables of several sensitive attributes cost together; nothing for one."""
    if tables < 2:
        return []
    delta = "" if mechanism.pure else f" and delta {claim(tables * mechanism.delta)}"
    return [
        f"Each sensitive attribute is a table of its own about the same people: the {tables} tables cost epsilon "
        f"{claim(tables * mechanism.epsilon)}{delta} together. The worst case above is for one of them alone."
    ]
