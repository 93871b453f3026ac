"""Numbers and tables as people read them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from cellrisk.errors import visible

CURATOR_NOTE = "Internal: computed from the raw data, not protected. Do not publish."
DIGITS = 5
"""Digits that are shown of an epsilon that was searched for."""


def write_yaml(value: str | float | None) -> str:
    """Return a value of YAML; None and an empty text are written as "to fill".

    A text is quoted as in JSON, which is YAML; a number has a full stop before an exponent, as YAML 1.1 requires.

    >>> write_yaml(1e-7), write_yaml('a "b"'), write_yaml(None)
    ('1.0e-07', '"a \\\\"b\\\\""', '"to fill"')
    """
    if isinstance(value, float | int):
        mantissa, exponent, power = repr(value).partition("e")
        return f"{mantissa if '.' in mantissa or not exponent else mantissa + '.0'}{exponent}{power}"
    return json.dumps(value or "to fill")


def paragraphs(parts: Iterable[str]) -> str:
    """Return the parts of a text with a line between them, and invisible characters escaped."""
    return visible("\n\n".join(parts))


def make_sentence(text: str, end: str = ".") -> str:
    """Return words with a capital letter at their start and a full stop at their end."""
    return f"{text[:1].upper()}{text[1:]}{end}"


def percent(share: float) -> str:
    """Return a share with one decimal, or with more if that would hide a small risk.

    >>> percent(0.29606), percent(0.00002), percent(0.0), percent(0.99999)
    ('29.6%', '0.002%', '0%', 'over 99.9%')
    """
    if share in (0, 1):
        return f"{100 * share:.0f}%"
    if 0 < share < 0.001:
        return f"{100 * share:.1g}%" if share >= 1e-6 else "under 0.0001%"
    return "over 99.9%" if 0.9995 <= share < 1 else f"{100 * share:.1f}%"


def as_given(number: float, places: int = 0) -> str:
    """Return a limit with every digit that was given, its point moved by so many places: two make a percentage.

    >>> as_given(0.2344, 2), as_given(0.3, 2), as_given(5000.0), as_given(0.75)
    ('23.44', '30', '5,000', '0.75')
    """
    return f"{float(Decimal(repr(float(number))).scaleb(places)):,}".removesuffix(".0")


def whole_people(number: float) -> str:
    """Return a number of people without decimals, but no 0 for a number above 0.

    A difference below zero that rounds to 0 keeps a digit.

    >>> whole_people(997.48), whole_people(0.195), whole_people(0.0), whole_people(-0.31), whole_people(-4.1)
    ('997', 'fewer than 1', '0', '-0.3', '-4')
    """
    whole = f"{round(number):,}"
    if whole != "0" or number == 0:
        return whole
    return "fewer than 1" if number > 0 else f"{number:.1g}"


def join_names(names: Sequence[str]) -> str:
    """Return names as in a sentence.

    >>> join_names(["age"]), join_names(["age", "sex", "race"])
    ('age', 'age, sex and race')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def say_people(number: float) -> str:
    """Return a number of people: whole, with decimals below 100.

    >>> say_people(4298.49), say_people(12.8), say_people(0.0312), say_people(1e-9), say_people(0.0)
    ('4,298', '12.8', '0.031', 'under 0.01', '0')
    """
    if number < 0.01:
        return "under 0.01" if number > 0 else "0"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}" if number >= 1 else f"{number:.2g}"


def of_people(number: float, everybody: int, more: str = "", kind: str = "person") -> str:
    """Return an expected number of people, or of records, among all, with its share; of one person, one digit.

    >>> of_people(997.48, 27504), of_people(0.3, 40), of_people(0.3069, 1)
    ('about 997 of 27,504 people (3.6%)', 'fewer than 1 of 40 people (0.8%)', 'about 0.3 of 1 person (30.7%)')
    """
    people = whole_people(number) if everybody != 1 else f"{number:.1g}"
    about = people if people.startswith("fewer") else f"about {people}"
    return f"{about} of {number_of(everybody, kind)} ({percent(number / everybody)}{more})"


def change(before: str, after: str) -> str:
    """Return how a printed number changes.

    >>> change("12.5%", "13%"), change("1 person", "1 person")
    ('from 12.5% to 13%', 'to 1 person, as before')
    """
    return f"from {before} to {after}" if before != after else f"to {after}, as before"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a plain table: the first ``left`` columns flush left, the rest flush right.

    >>> print(aligned(["what", "n"], [["cells", "5,009"], ["records", "27,504"]]))
    what          n
    cells     5,009
    records  27,504
    """
    header, rows = [visible(cell, "") for cell in header], [[visible(cell, "") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number_of(number: float, noun: str, several: str | None = None) -> str:
    """Return a number with its noun; an expected number is rounded by `whole_people`.

    >>> number_of(1, "release"), number_of(1200, "loss"), number_of(2, "entry", "entries"), number_of(0.3, "person")
    ('1 release', '1,200 losses', '2 entries', 'fewer than 1 person')
    """
    count = whole_people(number)
    plural = several or ("people" if noun == "person" else noun + ("es" if noun.endswith("s") else "s"))
    return f"{count} {noun if count in ('1', 'fewer than 1') else plural}"


def interval(low: float, high: float) -> str:
    """Return an interval of numbers from 0 on, with its ends rounded outwards.

    Whole numbers from 100 on, one decimal below, and one digit if that would be 0.

    >>> interval(1234.5, 1236.1), interval(3.21, 99.02), interval(0.0, 0.032)
    ('1,234 to 1,237', '3.2 to 99.1', '0 to 0.04')
    """
    places = 0 if high >= 100 else 1 if high >= 0.05 else -math.floor(math.log10(high))
    ends = zip((low, high), (ROUND_FLOOR, ROUND_CEILING), strict=True)
    rounded = (Decimal(repr(float(end))).quantize(Decimal(1).scaleb(-places), way) for end, way in ends)
    return " to ".join(f"{end.normalize():,f}" for end in rounded)


def say_error(error: float) -> str:
    """Return a standard error over simulated releases; what did not vary in them may be rare, not certain."""
    return f"{error:.2g}" if error else "did not vary"


def round_down(epsilon: float, least: float = 0.0, digits: int = DIGITS) -> float:
    """Round an epsilon down to so many digits, or the fewest more, not below ``least``: what is shown is admissible.

    >>> round_down(1.0904253), round_down(0.00123456), round_down(100.0), round_down(1.0904253, 1.09041)
    (1.0904, 0.0012345, 100.0, 1.0904253)
    >>> round_down(0.10228, digits=2), round_down(0.10228, 0.1021, digits=2)
    (0.1, 0.1022)
    """
    for places in range(digits, DIGITS + 1):
        rounded = float(Context(prec=places, rounding=ROUND_FLOOR).create_decimal(repr(float(epsilon))))
        if rounded >= least:
            return rounded
    return float(epsilon)


def round_up(epsilon: float, digits: int = DIGITS) -> float:
    """Round an epsilon up to so many digits.

    >>> round_up(1.0904253)
    1.0905
    """
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(epsilon))))


def show_down(epsilon: float) -> str:
    """Return an epsilon as text, rounded down to five digits.

    >>> show_down(1.64567), show_down(100.0)
    ('1.6456', '100')
    """
    return f"{round_down(epsilon):.{DIGITS}g}"


def show_up(epsilon: float) -> str:
    """Return an epsilon as text, rounded up to five digits."""
    return f"{round_up(epsilon):.{DIGITS}g}"


def show_spans(intervals: Iterable[tuple[float, float]]) -> str:
    """Return intervals of epsilon as text, each rounded inwards to five digits unless it is too narrow.

    >>> show_spans([(0.001, 0.1234567), (2.00001, 2.00002)])
    'from 0.001 to 0.12345, and from 2.00001 to 2.00002'
    """
    inwards = [(low if round_up(low) > high else round_up(low), round_down(high, low)) for low, high in intervals]
    return ", and ".join(f"from {as_given(low)} to {as_given(high)}" for low, high in inwards)


def claim(loss: float) -> str:
    """Return a promised epsilon, delta or rho as text: six digits, rounded up but for rounding errors.

    >>> claim(1.0), claim(1.2345612), claim(0.1 + 0.2)
    ('1', '1.23457', '0.3')
    """
    shown = f"{loss:g}"
    return shown if float(shown) >= loss * (1.0 - 1e-12) else f"{round_up(loss, 6):g}"
