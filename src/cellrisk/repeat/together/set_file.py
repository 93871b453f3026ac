"""A set of tables from a file: TOML with what all tables share, and one ``[[table]]`` for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cellrisk.counts.sources import is_address
from cellrisk.decide.policy_files import read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.together.sets import TABLE_KEYS, refuse_shared_noise

PLAIN = {
    "sensitive": "sensitive",
    "count": "count",
    "missing": "missing",
    "mechanism": "mechanism",
    "neighbours": "neighbours",
    "engine": "engine",
    "source-table": "table",
    "memory-limit": "memory_limit",
}
"""Keys that hold a text, and the arguments that they are."""
NUMBERS = ("epsilon", "delta", "threshold")
SET_KEYS = ("source", *PLAIN, *NUMBERS, "bin", "levels", "noise", "table")


def read_set_file(path: str | Path) -> dict[str, Any]:
    """The arguments of `assess_together` that a set file holds.

    Refuses a key that it does not know, a value of another kind, and a file that is no plain TOML of a reasonable size.
    A source that is a path is looked for beside the set file first.
    """
    file = Path(path)
    values = read_settings_file(file, "the set file").values
    for key in values:
        if key not in SET_KEYS:
            raise UnknownName(f"unknown key in {file.name}", got=repr(key), allowed=", ".join(SET_KEYS))
    for key in ("source", "sensitive", "table"):
        if key not in values:
            example = {"source": 'source = "people.parquet"', "sensitive": 'sensitive = "income"'}.get(key, "[[table]]")
            raise InvalidInput(f"{file.name} has no '{key}'", fix=f"add it: {example}")
    refuse_shared_noise(values.get("noise"), file.name)
    arguments = {name: require(values[key], str, key, file.name) for key, name in PLAIN.items() if key in values}
    arguments |= {key: require_number(values[key], key, file.name) for key in NUMBERS if key in values}
    arguments["source"] = find_source(require(values["source"], str, "source", file.name), file)
    arguments["bins"] = read_bins(values.get("bin"), file.name)
    arguments["levels"] = read_levels(values.get("levels"), file.name)
    tables = values["table"]
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise InvalidInput(f"'table' in {file.name} must be tables", fix="write [[table]] before the keys of each")
    arguments["tables"] = [read_table(each, number, file.name) for number, each in enumerate(tables, start=1)]
    return arguments


def read_table(given: Mapping[str, Any], number: int, file: str) -> dict[str, Any]:
    """One ``[[table]]`` with its bins read; what else is wrong with it is refused where tables are made."""
    where = f"table {number} of {file}"
    known = (*TABLE_KEYS, "noise", "neighbours", "sensitive")
    for key in given:
        if key not in known:
            raise UnknownName(f"unknown key in {where}", got=repr(key), allowed=", ".join(TABLE_KEYS))
    found = dict(given)
    for key in ("name", "mechanism", "neighbours", "sensitive"):
        if key in found:
            require(found[key], str, key, where)
    for key in NUMBERS:
        if key in found:
            found[key] = require_number(found[key], key, where)
    if "bin" in found:
        found["bin"] = read_bins(found["bin"], where)
    return found


def find_source(given: str, file: Path) -> str:
    """Where the records are: an address as it is; a path, or a glob, from the folder of the set file where anything is
    there, else from the working folder."""
    if not given:
        raise InvalidInput(f"'source' in {file.name} is empty", fix='name the records: source = "people.parquet"')
    if is_address(given) or "\0" in given or Path(given).is_absolute():
        return given
    beside = file.parent / given
    try:
        found = beside.exists() or any(file.parent.glob(given))
    except (OSError, ValueError, NotImplementedError):
        found = False
    return str(beside) if found else given


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
    if isinstance(given, bool) or not isinstance(given, int | float) or not abs(given) < 1e300:
        raise InvalidInput(f"'{key}' in {where} must be a number", got=f"a {type(given).__name__}")
    return given
