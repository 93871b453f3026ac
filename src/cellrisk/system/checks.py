"""Checks of what a user gives, that several rooms make."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeGuard

from cellrisk.errors import InvalidInput, mark

if TYPE_CHECKING:
    from cellrisk.system.arrays import Floats

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
        raise InvalidInput(f"{mark(name)} must be a number", got=type(value).__name__)


def require_within(
    name: str,
    value: object,
    *,
    least: float | None = None,
    above: float = -math.inf,
    most: float | None = None,
    below: float = math.inf,
) -> float:
    """The value as a number in a range, whose ends belong to it (least, most) or do not (above, below).

    >>> require_within("delta", 0, least=0, below=1)
    0.0
    """
    low, high = above if least is None else least, below if most is None else most
    if is_number(value) and low <= value <= high and above < value < below:
        return float(value)
    said = f"above {above:g}" if least is None else f"from {least:g}"
    if not math.isinf(high):
        said += (" and" if least is None else " to") + (" below" if most is None else " up to" if least is None else "")
        said += f" {high:g}"
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    raise InvalidInput(f"{mark(name)} must be a number {said}", got=value if known else type(value).__name__)


def read_number(given: Any, allowed: str | None = None, name: str = "") -> float:
    """The number that a text says, or a value of a settings file. ``name`` is told where the caller does not add one.

    >>> read_number("1e-3")
    0.001
    """
    try:
        return float(str(given))  # a settings file may hold true, which Python would take for 1
    except ValueError:
        raise InvalidInput(
            f"{mark(name)} must be a number".strip(), got=repr(str(given))[:60], allowed=allowed
        ) from None


def read_numbers(
    given: Any, between: str = ",", allowed: str = "numbers between commas", name: str = ""
) -> list[float]:
    """The numbers that a text says, with a sign between them.

    >>> read_numbers("1e-5,1e-6"), read_numbers("0/18/65", "/")
    ([1e-05, 1e-06], [0.0, 18.0, 65.0])
    """
    return [read_number(part.strip(), allowed, name) for part in str(given).split(between)]


def read_bins(text: str, name: str = "") -> float | list[float]:
    """Bins as commands and pages are told them: a width, or edges between slashes.

    >>> read_bins("5"), read_bins("0/18/65")
    (5.0, [0.0, 18.0, 65.0])
    """
    allowed = "a width such as 5, or edges such as 0/18/65"
    numbers = read_numbers(text, "/", allowed, name)
    return numbers[0] if len(numbers) == 1 else numbers


def read_list(name: str, given: object, members: str) -> list[Any]:
    """The members of a list; ``members`` says what they are. A text is none, though Python would take its letters.

    >>> read_list("losses", (1, 2), "losses")
    [1, 2]
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidInput(f"{mark(name)} must be a list of {members}", got=type(given).__name__)
    return list(given)


def read_texts(name: str, given: object, members: str) -> tuple[str, ...]:
    """The members of a list of texts; ``members`` says what they are.

    >>> read_texts("disclosures", ["Counts are rounded."], "sentences")
    ('Counts are rounded.',)
    """
    texts = tuple(read_list(name, given, members))
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInput(f"{mark(name)} must be a list of {members}", got=f"a list with a {type(text).__name__}")
    return texts


def require_kind(name: str, given: object, kind: type, fix: str | None = None) -> None:
    """Refuses what is not of a kind.

    >>> require_kind("title", "People", str)
    """
    if not isinstance(given, kind):
        said = "a text" if kind is str else f"a {kind.__name__}"
        raise InvalidInput(f"{mark(name)} must be {said}", got=type(given).__name__, fix=fix)


def require_path(name: str, given: object) -> None:
    """Refuses what names no file."""
    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput(f"{mark(name)} must be the path of a file", got=type(given).__name__)


def read_array(name: str, given: Any) -> Floats:
    """One number or several, as numbers; the caller then looks at their range.

    >>> read_array("certainty", 0.95).tolist()
    [0.95]
    """
    import numpy as np

    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{mark(name)} must be a number or a list of numbers", got=type(given).__name__) from None
    if values.ndim != 1:
        raise InvalidInput(f"{mark(name)} must be a number or a list of numbers", got=f"{values.ndim} dimensions")
    return values


def require_whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as a whole number that is large enough, and not too large; refuses anything else.

    >>> require_whole_number("releases", 100, least=1)
    100
    """
    allowed = f"from {least:,} on" if most is None else f"from {least:,} to {most:,}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{mark(name)} must be a whole number", got=type(value).__name__, allowed=allowed)
    number = int(value)
    if number < least or (most is not None and number > most):
        raise InvalidInput(
            f"{mark(name)} must be a whole number {allowed}", got=f"{number:,}" if abs(number) < 10**18 else number
        )
    return number
