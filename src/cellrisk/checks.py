"""Checks of what a user gives, that several rooms make."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from cellrisk.errors import InvalidInput


def require_whole_number(name: str, value: Any, least: int) -> int:
    """The value as a whole number that is large enough; refuses anything else.

    >>> require_whole_number("releases", 100, least=1)
    100
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{name} must be a whole number", got=type(value).__name__, allowed=f"from {least} on")
    if value < least:
        raise InvalidInput(f"{name} must be a whole number from {least} on", got=value)
    return int(value)
