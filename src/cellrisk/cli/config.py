"""Settings from a file: defaults for any option, and the policy."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import date, time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from cellrisk.cli.groups import COMMON
from cellrisk.cli.help_panels import OUTPUT
from cellrisk.cli.spelling import walk
from cellrisk.decide.policy_files import SETTINGS_FILE, find_policy_files, read_settings_file
from cellrisk.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies

POLICIES = "cellrisk.policies"


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from --config, or from cellrisk.toml in the working folder; the command line wins.

    Keys are the options' long names; a table named like a command holds for that command alone, and for the commands
    below it. A key that is for no command, or for other commands alone, is refused by its name. A policy that is in
    force holds whichever file the settings come from, and one in that file is added to it.
    """
    file = path or Path(SETTINGS_FILE)
    settings = None if path is None and not os.path.lexists(file) else read_settings_file(file)
    own = settings is not None and settings.policy is not None
    if own or find_policy_files():  # what judges policies is loaded only where there is one
        from cellrisk.decide.policies import Policies

        context.meta[POLICIES] = Policies.in_force(settings if own else None)
    if settings is None:
        return None
    values = {key: value for key, value in settings.values.items() if key != "policy"}
    root, path_of_names = _find_root(context)
    mine = _long_options(context.command)
    check_keys(values, root, mine, file.name)
    defaults: dict[str, Any] = {}
    for key, value in _settings_for(values, root, path_of_names).items():
        if key in mine:
            parameter, negated = mine[key]
            defaults[parameter.name] = _as_option(key, value, parameter, negated)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def check_keys(values: dict[str, Any], root: Any, mine: Collection[str], file: str) -> None:
    """Refuses keys that no command takes, keys that other commands alone take, and plain values named like a command.

    For every command: the options of tables, mechanisms, risks, limits and simulations.
    """
    commands = {command.name: command for command in root.commands.values()}
    known = {key for command in walk(root) for key in _long_options(command)}
    for key, value in values.items():
        takers = [f"[{name}]" for name, command in commands.items() if key in _long_options(command)]
        fix = f"put it under {' or '.join(takers)}" if takers else None
        if key in commands:
            if not isinstance(value, dict):
                what = f"the setting '{key}' in {file} is named like a command"
                raise InvalidInput(what, got=f"a {type(value).__name__}", allowed=f"a table [{key}]", fix=fix)
            _check_table(value, commands[key], key, file)
        elif key not in known:
            allowed = ", ".join(sorted({*COMMON, *mine}))
            raise UnknownName(f"unknown setting in {file}", got=key, allowed=f"{allowed}; tables named like a command")
        elif key not in COMMON and key not in mine:
            raise InvalidInput(f"the setting '{key}' in {file} is not for this command", fix=fix)


def _check_table(values: dict[str, Any], command: Any, name: str, file: str) -> None:
    """Refuses keys of a command's table that neither it nor a command below it takes."""
    inner = getattr(command, "commands", {})
    known = {key for each in walk(command) for key in _long_options(each)}
    for key, value in values.items():
        if key in inner:
            if not isinstance(value, dict):
                what = f"the setting '{key}' under [{name}] in {file} is named like a command"
                raise InvalidInput(what, got=f"a {type(value).__name__}", allowed=f"a table [{name}.{key}]")
            _check_table(value, inner[key], f"{name}.{key}", file)
        elif key not in known:
            raise UnknownName(f"unknown setting under [{name}] in {file}", got=key, allowed=", ".join(sorted(known)))


def _find_root(context: typer.Context) -> tuple[Any, list[str]]:
    """The outermost command, and the names that lead from it to this one."""
    names: list[str] = []
    here: Any = context
    while here.parent is not None:
        names.insert(0, here.command.name or "")
        here = here.parent
    return here.command, names


def _settings_for(values: dict[str, Any], command: Any, names: list[str]) -> dict[str, Any]:
    """What the file says for one command: the settings for all first, then those of the tables that lead to it."""
    inner = getattr(command, "commands", {})
    common = {key: value for key, value in values.items() if key not in inner}
    if not names:
        return common
    own = values.get(names[0], {})
    return {**common, **_settings_for(own, inner[names[0]], names[1:])}


def _long_options(command: Any) -> dict[str, tuple[Any, bool]]:
    """Each long option of a command without its dashes: its parameter, and whether the option switches it off."""
    found = {}
    for parameter in command.params:
        for option in parameter.opts:
            found[option.removeprefix("--")] = (parameter, False)
        for option in parameter.secondary_opts:
            found[option.removeprefix("--")] = (parameter, True)
    return {key: value for key, value in found.items() if key not in ("config", "help", "source")}


def _as_option(name: str, value: Any, parameter: Any, negated: bool = False) -> Any:
    """A TOML value in the shape the command line would give to the option of that name."""
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise InvalidInput(f"the setting '{name}' is a switch", got=_kind(value), allowed="true or false")
        return value != negated
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(part, dict) for part in value)):
        return _from_tables(name, value)
    if not parameter.multiple:
        return value
    if isinstance(value, list) and not all(_is_number(part) for part in value):
        return [_text(part) for part in value]
    return [",".join(map(str, value)) if isinstance(value, list) else _text(value)]


BETWEEN = {"bin": "/", "levels": "|", "merge": "|", "exclude": "|", "alpha": ","}
"""What stands between several values of one column, for each option that takes a table."""


def _from_tables(name: str, value: Any) -> list[str]:
    """A table in the words of the command line: a pair for each column; for ``exclude`` one rule, several in a list.

    >>> _from_tables("bin", {"age": 5, "hours": [0, 40]}), _from_tables("levels", {"grade": [1, 2]})
    (['age=5', 'hours=0/40'], ['grade=1|2'])
    >>> _from_tables("exclude", {"sex": "m", "age": [1, 2]}), _from_tables("exclude", [{"sex": "m"}, {"age": 2}])
    (['sex=m;age=1|2'], ['sex=m', 'age=2'])
    """
    if name not in BETWEEN:
        raise InvalidInput(f"the setting '{name}' takes no table")
    if name == "exclude":
        return [_rule(each) for each in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        raise InvalidInput(f"the setting '{name}' takes one table for all columns", got="a list of tables")
    return [_column_with_values(name, column, values) for column, values in value.items()]


def _rule(value: Any) -> str:
    """One rule of ``exclude``: a table, all of whose columns must match, or the words of the command line."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not value:
        raise InvalidInput("a rule of the setting 'exclude' must be a table of columns and labels", got=_kind(value))
    parts = [_column_with_values("exclude", column, values) for column, values in value.items()]
    if any(";" in part for part in parts):
        raise InvalidInput("a table in the setting 'exclude' cannot have a semicolon in its columns and labels")
    return ";".join(parts)


def _column_with_values(name: str, column: str, values: Any) -> str:
    """One column with its value or values; refuses what the option would take apart."""
    between = BETWEEN[name]
    what = f"the setting '{name}' cannot be read for the column {column!r}"
    if "=" in column:
        raise InvalidInput(what, fix="a name with an equals sign cannot stand in a table")
    if not isinstance(values, list):
        values = [values] if not isinstance(values, str) else values.split(between)
    for part in values:
        if not isinstance(part, (str, int, float, date, time)):
            raise InvalidInput(what, got=_kind(part), allowed="texts, numbers, true or false, or a list of them")
        if isinstance(part, str) and between in part:
            raise InvalidInput(what, fix=f"a value that holds '{between}' would be taken for several")
    return f"{column}={between.join(_text(part) for part in values)}"


def _text(value: Any) -> str:
    """A value as TOML spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    """What sort of TOML value that is, without telling it."""
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def policy_of(context: typer.Context) -> Policies:
    """The policies that hold for this command; none is false."""
    from cellrisk.decide.policies import Policies

    found: Policies = context.meta.get(POLICIES) or Policies()
    return found


def list_typed(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Those of these options that were typed. A settings file may hold options for every command; they do not count."""
    typed = [name for name in names if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    options = {each.name: each.opts[0] for each in context.command.params if each.opts[0].startswith("--")}
    return [options.get(name, "FILE") for name in typed]


def refuse_typed(context: typer.Context, why: str, *given: Any) -> None:
    """Refuses options that were typed and would be passed over, by their names or by the groups that they are in."""
    groups = [[each] if isinstance(each, str) else [field.name for field in fields(each)] for each in given]
    typed = ", ".join(list_typed(context, chain.from_iterable(groups)))
    if typed:
        raise InvalidInput(why, got=typed, fix=f"leave {typed} out")


TYPED = "cellrisk.typed"
"""Where a command finds what was typed, among what its context knows."""
CONFIG: Any = typer.Option(
    metavar="FILE",
    help=f"Settings file; without it, {SETTINGS_FILE} in this folder.",
    callback=read_config,
    is_eager=True,
)


@dataclass(frozen=True)
class OutputOptions:
    """How the answer is given, and where further settings come from."""

    panel: ClassVar[str] = OUTPUT
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False
    config: Annotated[Path | None, CONFIG] = None
