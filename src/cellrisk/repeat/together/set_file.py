"""A set of tables from a file: TOML with what all tables share, and one ``[[table]]`` for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cellrisk.counts.sources import is_address
from cellrisk.decide.policy_files import read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.together.sets import TABLE_KEYS, refuse_shared_noise
from cellrisk.repeat.together.values import read_bins, read_levels, require, require_number

PLAIN = {
    "sensitive": "sensitive",
    "count": "count",
    "missing": "missing",
    "outside": "outside",
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
    if "belief" in values:
        raise refuse_belief(values["belief"], file.name)
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


def refuse_belief(given: Any, file: str) -> InvalidInput:
    """Why an attacker's belief is not taken for a set."""
    reason = "what an attacker believes of each table of a set is fitted to it"
    if given == "table":
        reason = "the belief 'table' over several tables would hold their finest combination, which nobody publishes"
    return InvalidInput(f"'belief' in {file} cannot be used: {reason}", fix="leave it out, and ask for --certainty")


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
