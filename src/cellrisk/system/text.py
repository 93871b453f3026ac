"""Numbers and tables as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from cellrisk.errors import visible

CURATOR_NOTE = (
    "For the curator: these figures are computed from the raw data and are not themselves differentially private."
)
DIGITS = 5
"""Digits that are shown of an epsilon that was searched for."""


def paragraphs(parts: Iterable[str]) -> str:
    """What a result prints: its parts with a line between them, and nothing hidden in them."""
    return visible("\n\n".join(parts))


def make_sentence(text: str, end: str = ".") -> str:
    """Words with a capital letter at their start, and a full stop at their end."""
    return f"{text[:1].upper()}{text[1:]}{end}"


def percent(share: float) -> str:
    """A share with one decimal, and more where that would hide a small risk.

    >>> percent(0.29606), percent(0.00002), percent(0.0)
    ('29.6%', '0.002%', '0.0%')
    """
    if 0 < share < 0.001:
        return f"{100 * share:.1g}%" if share >= 1e-6 else "under 0.0001%"
    return f"{100 * share:.1f}%"


def whole_people(number: float) -> str:
    """A number of people without decimals: never a 0 beside a share that is above it.

    A difference below zero that rounds to none keeps a digit.

    >>> whole_people(997.48), whole_people(0.195), whole_people(0.0), whole_people(-0.31), whole_people(-4.1)
    ('997', 'fewer than 1', '0', '-0.3', '-4')
    """
    told = f"{round(number):,}"
    if told != "0" or number == 0:
        return told
    return "fewer than 1" if number > 0 else f"{number:.1g}"


def about_people(number: float) -> str:
    """The same in a sentence.

    >>> about_people(997.48), about_people(0.195), about_people(0.0), about_people(-0.31)
    ('about 997', 'fewer than 1', 'about 0', 'about -0.3')
    """
    told = whole_people(number)
    return told if told.startswith("fewer") else f"about {told}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A plain table: the first ``left`` columns flush left, the rest flush right.

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


def number_of(count: int, noun: str, several: str | None = None) -> str:
    """A count with its noun.

    >>> number_of(1, "release"), number_of(1200, "loss"), number_of(2, "entry", "entries")
    ('1 release', '1,200 losses', '2 entries')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {several or noun + ('es' if noun.endswith('s') else 's')}"


def round_down(epsilon: float, digits: int = DIGITS) -> float:
    """An epsilon to five digits, or another number of them, not above it: what is shown is what is used.

    >>> round_down(1.0904253), round_down(0.00123456), round_down(100.0)
    (1.0904, 0.0012345, 100.0)
    """
    return float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(epsilon))))


def round_up(epsilon: float, digits: int = DIGITS) -> float:
    """An epsilon to five digits, or another number of them, not below it.

    >>> round_up(1.0904253)
    1.0905
    """
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(epsilon))))


def show_down(epsilon: float) -> str:
    """An epsilon as text, to five digits, not above it.

    >>> show_down(1.64567), show_down(100.0)
    ('1.6456', '100')
    """
    return f"{round_down(epsilon):.{DIGITS}g}"


def show_up(epsilon: float) -> str:
    """An epsilon as text, to five digits, not below it."""
    return f"{round_up(epsilon):.{DIGITS}g}"


def claim(loss: float) -> str:
    """An epsilon, delta or rho that is promised: to six digits, and no smaller than it is, but for rounding errors.

    >>> claim(1.0), claim(1.2345612), claim(0.1 + 0.2)
    ('1', '1.23457', '0.3')
    """
    shown = f"{loss:g}"
    return shown if float(shown) >= loss * (1.0 - 1e-12) else f"{round_up(loss, 6):g}"
