"""Checks of what a user gives, that several rooms make."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, TypeGuard

from cellrisk.errors import InvalidInput

MOST_RELEASES = 1_000_000
"""Simulated releases, each of which leaves some numbers in memory."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number, small enough for floating point; True and False are none.

    >>> [is_number(value) for value in (0.5, 2, True, "2", float("inf"), 10**400)]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def require_number(name: str, value: object) -> None:
    """Refuses what is no number at all; the caller then looks at its range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{name} must be a number", got=type(value).__name__)


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
