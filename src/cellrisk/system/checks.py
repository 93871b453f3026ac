"""Checks of what a user gives, that several rooms make."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from cellrisk.errors import InvalidInput

MOST_RELEASES = 1_000_000
"""Simulated releases, each of which leaves some numbers in memory."""


def require_whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as a whole number that is large enough, and not too large; refuses anything else.

    >>> require_whole_number("releases", 100, least=1)
    100
    """
    allowed = f"from {least:,} on" if most is None else f"from {least:,} to {most:,}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{name} must be a whole number", got=type(value).__name__, allowed=allowed)
    number = int(value)
    if number < least or (most is not None and number > most):
        got = f"{number:,}" if abs(number) < 10**18 else "a number of more than 18 digits"
        raise InvalidInput(f"{name} must be a whole number {allowed}", got=got)
    return number
