"""A set as its file spells it, for the question itself, and as the command line and Python ask the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.system.checks import read_bins
from cellrisk.web.answer_models import SetCommands
from cellrisk.web.set_models import SetChoice, SetTableChoice

SHARED = ("mechanism", "epsilon", "threshold")
USUAL = {"missing": "category", "outside": "error", "neighbours": "add-remove"}


def spell_set(choice: SetChoice) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What holds for all tables, and each table, with the keys of a set file.

    Bins that every table with a column shares stand with what holds for all. A delta does too, where every mechanism
    takes one; else it stands at the tables whose mechanism does.
    """
    tables = [_spell_table(number, each, choice) for number, each in enumerate(choice.tables, start=1)]
    common: dict[str, Any] = {}
    for column in dict.fromkeys(name for each in tables for name in each["bin"]):
        given = [each["bin"].get(column) for each in tables if column in each["qid"]]
        if all(each == given[0] for each in given):
            common[column] = given[0]
    for each in tables:
        own = {name: bins for name, bins in each.pop("bin").items() if name not in common}
        each |= {"bin": own} if own else {}
    shared: dict[str, Any] = {"sensitive": choice.sensitive}
    shared |= {name: getattr(choice, name) for name in SHARED if getattr(choice, name) is not None}
    deltas = [each.get("delta") for each in tables]
    if choice.delta is not None and all(each == choice.delta for each in deltas):
        shared["delta"] = choice.delta
        for each in tables:
            del each["delta"]
    shared |= {name: getattr(choice, name) for name, usual in USUAL.items() if getattr(choice, name) != usual}
    shared |= {"count": "none" if choice.count is False else choice.count} if choice.count is not None else {}
    shared |= {"levels": choice.levels} if choice.levels else {}
    return shared | ({"bin": common} if common else {}), tables


def _spell_table(number: int, table: SetTableChoice, choice: SetChoice) -> dict[str, Any]:
    names = {name: getattr(table, name) for name in ("name", *SHARED)}
    delta = None if MECHANISMS[table.mechanism or choice.mechanism].pure else table.delta or choice.delta
    noise = None if choice.noise == "independent" else choice.noise
    own = {**names, "where": table.where, "delta": delta, "noise": noise}
    bins = {
        column: _shorten(read_bins(text, f"“Bins” of {column} in table {number}"))
        for column, text in table.bins.items()
        if column in table.quasi_identifiers
    }
    given = {name: value for name, value in own.items() if value is not None}
    return {"qid": list(table.quasi_identifiers), **given, "bin": bins}


def _shorten(bins: float | list[float]) -> Any:
    """Whole numbers without a point, as people write them."""
    if isinstance(bins, list):
        return [_shorten(each) for each in bins]
    return int(bins) if bins.is_integer() and abs(bins) < 2**53 else bins


def find_arguments(choice: SetChoice) -> dict[str, Any]:
    """The arguments of `assess_together` after the source."""
    shared, tables = spell_set(choice)
    named = {"bins" if name == "bin" else name: value for name, value in shared.items()}
    if choice.count is False:
        named["count"] = False
    sensitive = named.pop("sensitive")
    return {"tables": tables, "sensitive": sensitive, **named}


def write_set_commands(choice: SetChoice, path: str) -> SetCommands:
    """The set file, the command that reads it, and the same in Python."""
    return SetCommands(
        set_file=write_set_file(choice, path),
        shell="cellrisk together set.toml\n",
        python=write_set_python(choice, path),
    )


def write_set_file(choice: SetChoice, path: str) -> str:
    """The set as TOML."""
    shared, tables = spell_set(choice)
    blocks = [_write_lines({"source": path, **shared})]
    blocks += [f"[[table]]\n{_write_lines(each)}" for each in tables]
    return "\n".join(blocks)


def write_set_python(choice: SetChoice, path: str) -> str:
    arguments = find_arguments(choice)
    tables, sensitive = arguments.pop("tables"), arguments.pop("sensitive")
    rows = "".join(f"    {each!r},\n" for each in tables)
    given = "".join(f", {name}={value!r}" for name, value in arguments.items())
    return (
        f"import cellrisk as cr\n\ntables = [\n{rows}]\n"
        f"print(cr.assess_together({path!r}, tables, {sensitive!r}{given}))\n"
    )


def _write_lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{_write_key(key)} = {write_value(value)}\n" for key, value in values.items())


def _write_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else write_value(key)


def write_value(value: Any) -> str:
    """A value as TOML spells it. A text is spelt as in JSON, and what TOML alone escapes is escaped too.

    >>> print(write_value({"sex": ["f", "m"], "age group": {"from": 18, "below": 65.5}}))
    { sex = ["f", "m"], "age group" = { from = 18, below = 65.5 } }
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_write_key(key)} = {write_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(write_value, value))}]"
    return repr(value)
