"""A set of tables from a file: TOML with what all tables share, and one ``[[table]]`` for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cellrisk.counts.files import is_address
from cellrisk.decide.policy_files import parse_settings, read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.together.sets import (
    TABLE_KEYS,
    read_bins,
    read_levels,
    refuse_shared_noise,
    require,
    require_number,
)

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
    arguments = read_set(read_settings_file(file, "the set file").values, file.name)
    if "source" not in arguments:
        raise InvalidInput(f"{file.name} has no 'source'", fix='add it: source = "people.parquet"')
    arguments["source"] = find_source(arguments["source"], file)
    return arguments


def read_set_text(text: str, name: str) -> dict[str, Any]:
    """The same of the text of a set file. Its source may be left out, and is not looked for where it is there.

    >>> found = read_set_text('sensitive = "income"\\n[[table]]\\nqid = ["age"]', "set.toml")
    >>> found["sensitive"], found["tables"]
    ('income', [{'qid': ['age']}])
    """
    return read_set(parse_settings(text.encode(), "the set file", name), name)


def read_set(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The arguments that the values of a set file are; its source as it is written."""
    if "belief" in values:
        raise refuse_belief(values["belief"], name)
    for key in values:
        if key not in SET_KEYS:
            raise UnknownName(f"unknown key in {name}", got=repr(key), allowed=", ".join(SET_KEYS))
    for key, example in (("sensitive", 'sensitive = "income"'), ("table", "[[table]]")):
        if key not in values:
            raise InvalidInput(f"{name} has no '{key}'", fix=f"add it: {example}")
    refuse_shared_noise(values.get("noise"), name)
    texts = {"source": "source", **PLAIN}
    arguments = {argument: require(values[key], str, key, name) for key, argument in texts.items() if key in values}
    arguments |= {key: require_number(values[key], key, name) for key in NUMBERS if key in values}
    arguments["bins"] = read_bins(values.get("bin"), name)
    arguments["levels"] = read_levels(values.get("levels"), name)
    tables = values["table"]
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise InvalidInput(f"'table' in {name} must be tables", fix="write [[table]] before the keys of each")
    arguments["tables"] = [read_table(each, number, name) for number, each in enumerate(tables, start=1)]
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
