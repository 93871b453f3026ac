"""Checks of what a user gives that several packages make."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeGuard

from cellrisk.errors import InvalidInput, mark

if TYPE_CHECKING:
    from cellrisk.system.arrays import Floats

MOST_RELEASES = 1_000_000
"""Simulated releases, each of which leaves some numbers in memory."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number, small enough for floating point; True and False are not.

    >>> [is_number(value) for value in (0.5, 2, True, "2", float("inf"), 10**400)]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _wrong_type(name: str, wanted: str, got: str, fix: str | None = None) -> InvalidInput:
    return InvalidInput(f"{mark(name)} must be {wanted}", got=got, fix=fix, code="type")


def require_number(name: str, value: object) -> None:
    """Refuse what is not a number; the caller checks its range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong_type(name, "a number", type(value).__name__)


def require_within(
    name: str,
    value: object,
    *,
    least: float | None = None,
    above: float = -math.inf,
    most: float | None = None,
    below: float = math.inf,
) -> float:
    """Return the value as a number in a range, whose ends belong to it (least, most) or do not (above, below).

    >>> require_within("delta", 0, least=0, below=1)
    0.0
    """
    low, high = above if least is None else least, below if most is None else most
    if is_number(value) and low <= value <= high and above < value < below:
        return float(value)
    allowed = f"above {above:g}" if least is None else f"from {least:g}"
    if not math.isinf(high):
        allowed += (" and" if least is None else " to") + (
            " below" if most is None else " up to" if least is None else ""
        )
        allowed += f" {high:g}"
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    got = value if known else type(value).__name__
    raise InvalidInput(f"{mark(name)} must be a number {allowed}", got=got, code="range")


def read_number(given: Any, allowed: str | None = None, name: str = "") -> float:
    """Return the number that a text or a value of a settings file stands for; give a name if the caller adds none.

    >>> read_number("1e-3")
    0.001
    """
    try:
        return float(str(given))  # a settings file may hold true, which Python would take for 1
    except ValueError:
        what, got = f"{mark(name)} must be a number".strip(), repr(str(given))[:60]
        raise InvalidInput(what, got=got, allowed=allowed, code="type") from None


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return names from comma-separated texts; a name with a comma needs double quotes.

    >>> split_names(["age, sex", '"salary, yearly"'])
    ['age', 'sex', 'salary, yearly']
    """
    names = [name for row in csv.reader(values or [], skipinitialspace=True) for name in row]
    return [name for name in names if name]


def read_numbers(
    given: Any, between: str = ",", allowed: str = "numbers between commas", name: str = ""
) -> list[float]:
    """Return the numbers of a text with a sign between them.

    >>> read_numbers("1e-5,1e-6"), read_numbers("0/18/65", "/")
    ([1e-05, 1e-06], [0.0, 18.0, 65.0])
    """
    return [read_number(part.strip(), allowed, name) for part in str(given).split(between)]


def read_bins(text: str, name: str = "") -> float | list[float]:
    """Return bins as commands and the web app take them: a width, or edges between slashes.

    >>> read_bins("5"), read_bins("0/18/65")
    (5.0, [0.0, 18.0, 65.0])
    """
    numbers = read_numbers(text, "/", "a width such as 5, or edges such as 0/18/65", name)
    return numbers[0] if len(numbers) == 1 else numbers


def read_list(name: str, given: object, members: str) -> list[Any]:
    """Return the members of a list; ``members`` says what they are. A text is not a list of its letters.

    >>> read_list("losses", (1, 2), "losses")
    [1, 2]
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise _wrong_type(name, f"a list of {members}", type(given).__name__)
    return list(given)


def read_texts(name: str, given: object, members: str) -> tuple[str, ...]:
    """Return the members of a list of texts; ``members`` says what they are.

    >>> read_texts("disclosures", ["Counts are rounded."], "sentences")
    ('Counts are rounded.',)
    """
    texts = tuple(read_list(name, given, members))
    for text in texts:
        if not isinstance(text, str):
            raise _wrong_type(name, f"a list of {members}", f"a list with a {type(text).__name__}")
    return texts


def require_kind(name: str, given: object, kind: type, fix: str | None = None) -> None:
    """Refuse what is not of a kind.

    >>> require_kind("title", "People", str)
    """
    if not isinstance(given, kind):
        raise _wrong_type(name, "a text" if kind is str else f"a {kind.__name__}", type(given).__name__, fix)


def require_path(name: str, given: object) -> None:
    """Refuse what cannot be the name of a file."""
    if not isinstance(given, (str, os.PathLike)):
        raise _wrong_type(name, "the path of a file", type(given).__name__)


def read_array(name: str, given: Any) -> Floats:
    """Return one number or several as an array; the caller checks their range.

    >>> read_array("certainty", 0.95).tolist()
    [0.95]
    """
    import numpy as np

    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise _wrong_type(name, "a number or a list of numbers", type(given).__name__) from None
    if values.ndim != 1:
        raise _wrong_type(name, "a number or a list of numbers", f"{values.ndim} dimensions")
    return values


def require_whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return the value as a whole number in a range.

    >>> require_whole_number("releases", 100, least=1)
    100
    """
    allowed = f"from {least:,} on" if most is None else f"from {least:,} to {most:,}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        what, got = f"{mark(name)} must be a whole number", type(value).__name__
        raise InvalidInput(what, got=got, allowed=allowed, code="type")
    number = int(value)
    if number < least or (most is not None and number > most):
        shown = f"{number:,}" if abs(number) < 10**18 else number
        raise InvalidInput(f"{mark(name)} must be a whole number {allowed}", got=shown, code="range")
    return number
