"""A set of tables from a file: TOML with what all tables share, and one ``[[table]]`` for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cellrisk.counts.files import is_address
from cellrisk.decide.policy_files import parse_settings, read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.together.sets import read_bins, read_levels, refuse_shared_noise
from cellrisk.system.checks import require_kind, require_number

TEXTS = {
    "source": "source",
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
SET_KEYS = (*TEXTS, *NUMBERS, "bin", "levels", "noise", "table")


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
    """The same of the text of a set file. Its source may be left out, and is not looked for if it is there.

    >>> found = read_set_text('sensitive = "income"\\n[[table]]\\nqid = ["age"]', "set.toml")
    >>> found["sensitive"], found["tables"]
    ('income', [{'qid': ['age']}])
    """
    return read_set(parse_settings(text.encode(), "the set file", name), name)


def read_set(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The arguments that the values of a set file are; its source as it is written, its tables as they are."""
    if "belief" in values:
        raise InvalidInput(
            f"'belief' in {name} cannot be used: what an attacker believes of each table of a set is fitted to it",
            fix="leave it out, and ask for --certainty",
        )
    for key in values:
        if key not in SET_KEYS:
            raise UnknownName(f"unknown key in {name}", got=repr(key), allowed=", ".join(SET_KEYS))
    for key, example in (("sensitive", 'sensitive = "income"'), ("table", "[[table]]")):
        if key not in values:
            raise InvalidInput(f"{name} has no '{key}'", fix=f"add it: {example}")
    refuse_shared_noise(values.get("noise"), name)
    arguments: dict[str, Any] = {}
    for key, argument in TEXTS.items():
        if key in values:
            require_kind(f"'{key}' in {name}", values[key], str)
            arguments[argument] = values[key]
    for key in NUMBERS:
        if key in values:
            require_number(f"'{key}' in {name}", values[key])
            arguments[key] = values[key]
    arguments["bins"] = read_bins(values.get("bin"), f"'bin' in {name}")
    arguments["levels"] = read_levels(values.get("levels"), f"'levels' in {name}")
    tables = values["table"]
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise InvalidInput(f"'table' in {name} must be tables", fix="write [[table]] before the keys of each")
    return {**arguments, "tables": tables}


def find_source(given: str, file: Path) -> str:
    """Where the records are: an address as it is; a path, or a glob, from the folder of the set file if anything is
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
