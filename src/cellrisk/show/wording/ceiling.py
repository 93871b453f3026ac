"""The words of `Ceiling`: what one record adds at most, and the worst case."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.choices import Neighbours
from cellrisk.system.formatting import aligned, claim

WORST_CASE = "an attacker who already knows every other record, and finds two values equally likely"
"""Whose success the ceiling of two values is. It does not bound what is learnt from other people's records."""
WORST_CASE_OF_PEOPLE = "an attacker who already knows everybody else's records, and finds two values equally likely"
CHOSEN = "What one record adds at most is not stated, because epsilon was chosen from the data."


def headline(found: Ceiling) -> str:
    """Return what a board can repeat: the advantage, then the worst case of two equally likely values."""
    if found.chosen:
        return CHOSEN
    worst = f"{say_most(found.even_two)}% of the time"
    person = found.unit.contributions > 1
    return say_bounds(advantage(found), worst, found.neighbours, several=found.releases != 1, person=person)


def advantage(found: Ceiling) -> str:
    """Return the advantage in percentage points."""
    return f"{say_most(found.advantage)} percentage points"


def paragraphs(found: Ceiling) -> list[str]:
    """Return what is printed below the headline."""
    bound = "" if found.exact else " (an upper bound)"
    rows = [["two values, equally likely", "0.5", _six_digits(found.even_two)]]
    if found.labels > 2:
        rows.append([f"{found.labels:,} values, equally likely", f"{1 / found.labels:.4g}", _six_digits(found.even)])
    table = aligned([f"worst case: right at most{bound}", "without", "with"], rows)
    lines = ["No data are in these numbers: they follow from the noise alone, and hold for every table."]
    if found.odds is not None:
        lines.append(f"The odds between two values of a person move by a factor of at most {_six_digits(found.odds)}.")
    return [table, "\n".join(lines)]


def say_bounds(gain: str, worst: str, neighbours: Neighbours, *, several: bool = False, person: bool = False) -> str:
    """Return what one record, or those of a ``person``, add at most to any attack, then the worst case."""
    where = "these releases" if several else "this release"
    if person:
        instead = "leaving them out" if neighbours == "add-remove" else "anybody else's records"
        naming = "raises anybody's chance of naming one of that person's values by at most"
        worst_case = f"Worst case for one person: {WORST_CASE_OF_PEOPLE}, is right at most {worst} (coin toss: 50%)."
        return f"Having a person's records in {where}, instead of {instead}, {naming} {gain}. {worst_case}"
    instead = "leaving it out" if neighbours == "add-remove" else "anybody else's record"
    naming = "raises anybody's chance of naming that person's value by at most"
    return f"Having a person's record in {where}, instead of {instead}, {naming} {gain}. {say_worst_case(worst)}"


def say_worst_case(most: str) -> str:
    """Return the ceiling of two equally likely values, with all its conditions."""
    return f"Worst case for one record: {WORST_CASE}, is right at most {most} (coin toss: 50%)."


def say_most(share: float) -> str:
    """Return a share in hundredths to one decimal, never too low.

    >>> say_most(0.724090), say_most(0.500025), say_most(0.99996), say_most(0.1 + 0.2)
    ('72.5', '50.1', '100', '30')
    """
    near = (Decimal(repr(share)) * 100).quantize(Decimal(1).scaleb(-10), rounding=ROUND_HALF_EVEN)  # 0.1 + 0.2 is 0.3
    return f"{near.quantize(Decimal('0.1'), rounding=ROUND_CEILING).normalize():f}"


def say_tables(mechanism: Mechanism, tables: int) -> list[str]:
    """Return what the tables of several sensitive attributes cost together; nothing for one."""
    if tables < 2:
        return []
    delta = "" if mechanism.pure else f" and delta {claim(tables * mechanism.delta)}"
    return [
        f"The {tables} tables, one for each sensitive attribute, together cost epsilon "
        f"{claim(tables * mechanism.epsilon)}{delta}.\nWhat any attack can do at most is stated for one of them alone."
    ]


def _six_digits(number: float) -> str:
    """Return six digits of a bound, rounded up."""
    if number >= 1e9:
        return f"{number:.3g}"
    return f"{Context(prec=6, rounding=ROUND_CEILING).create_decimal(repr(number)):f}"
