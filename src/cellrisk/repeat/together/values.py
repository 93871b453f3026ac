"""Values as a set file spells them: bins, levels, texts and numbers; refused with where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cellrisk.errors import InvalidInput


def read_bins(given: Any, where: str) -> dict[str, Any]:
    """Bins as a list of texts, ``["age=5", "hours=0/35/45"]``, or as a table, ``{age = 5, hours = [0, 35, 45]}``.

    >>> read_bins(["age=5", "hours=0/35/45"], "set.toml") == read_bins({"age": 5, "hours": [0, 35, 45]}, "set.toml")
    True
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {column: _read_bin(column, value, where) for column, value in given.items()}
    found: dict[str, Any] = {}
    for text in [given] if isinstance(given, str) else require(given, list, "bin", where):
        column, equals, bins = require(text, str, "bin", where).partition("=")
        if not (column and equals and bins):
            raise InvalidInput(f"'bin' in {where} cannot be read", got=repr(text), allowed="age=5, or age=0/18/65")
        if column in found:
            raise InvalidInput(f"'bin' in {where} names column '{column}' twice")
        found[column] = _read_bin(column, [_as_number(part, where) for part in bins.split("/")], where)
    return found


def _read_bin(column: str, given: Any, where: str) -> Any:
    numbers = given if isinstance(given, list) else [given]
    for number in numbers:
        require_number(number, f"bin of {column}", where)
    return numbers[0] if len(numbers) == 1 else numbers


def _as_number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput(
            f"'bin' in {where} must hold numbers", got=repr(text), allowed="age=5, or age=0/18/65"
        ) from None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def read_levels(given: Any, where: str) -> dict[str, list[Any]]:
    """Declared levels: ``{income = ["low", "high"]}``, or texts as the command line has them, ``["income=low|high"]``.

    >>> read_levels(["income=low|high"], "set.toml")
    {'income': ['low', 'high']}
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {column: list(require(values, list, f"levels of {column}", where)) for column, values in given.items()}
    found: dict[str, list[Any]] = {}
    for text in [given] if isinstance(given, str) else require(given, list, "levels", where):
        column, equals, levels = require(text, str, "levels", where).partition("=")
        if not (column and equals and levels):
            raise InvalidInput(f"'levels' in {where} cannot be read", got=repr(text), allowed="income=low|high")
        found[column] = levels.split("|")
    return found


def require(given: Any, kind: type, key: str, where: str) -> Any:
    """The value, of that kind; refuses another without telling it."""
    if not isinstance(given, kind):
        named = "text" if kind is str else "list"
        raise InvalidInput(f"'{key}' in {where} must be a {named}", got=f"a {type(given).__name__}")
    return given


def require_number(given: Any, key: str, where: str) -> Any:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidInput(f"'{key}' in {where} must be a number", got=f"a {type(given).__name__}")
    if not abs(given) < 1e300:
        raise InvalidInput(f"'{key}' in {where} must be a number", got="one that is not finite, or too large")
    return given
