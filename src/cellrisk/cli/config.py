"""Settings from a file: defaults for any option, and the policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.policy_files import SETTINGS_FILE, SettingsFile, find_policy_files, read_settings_file

if TYPE_CHECKING:
    from cellrisk.choice import Policies

POLICIES = "cellrisk.policies"


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from --config, or from cellrisk.toml in the working folder; the command line wins.

    Keys are the options' long names; a table named like a command holds for that command alone, and for the commands
    below it. A key that is for no command, or for other commands alone, is refused by its name. A policy that is in
    force holds whichever file the settings come from, and one in that file is added to it.
    """
    file = path or Path(SETTINGS_FILE)
    settings = None if path is None and not file.is_file() else read_settings_file(file)
    keep_policies(context, settings)
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
            defaults[parameter.name] = not value if negated else _as_option(value, parameter.multiple)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def keep_policies(context: typer.Context, settings: SettingsFile | None) -> None:
    """Notes the policies that hold for this command; loads what judges them only where there is one."""
    own = settings is not None and settings.policy is not None
    if own or find_policy_files():
        from cellrisk.choice import Policies

        context.meta[POLICIES] = Policies.in_force(settings if own else None)


def check_keys(values: dict[str, Any], root: Any, mine: Collection[str], file: str) -> None:
    """Refuses keys that no command takes, keys that other commands alone take, and plain values named like a command.

    For every command: the options of tables, mechanisms, risks, limits and simulations.
    """
    from cellrisk.cli.groups import COMMON

    commands = {command.name: command for command in root.commands.values()}
    known = {key for command in _walk(root) for key in _long_options(command)}
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
    known = {key for each in _walk(command) for key in _long_options(each)}
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


def _walk(command: Any) -> Iterator[Any]:
    """A command and all below it."""
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _walk(inner)


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


def _as_option(value: Any, repeatable: bool) -> Any:
    """A TOML value in the shape the command line would give.

    >>> _as_option({"age": 5, "hours": [0, 40, 100]}, True), _as_option([1, 1], True), _as_option("age", True)
    (['age=5', 'hours=0/40/100'], ['1,1'], ['age'])
    """
    if isinstance(value, dict):
        return [f"{name}={_joined(part, '/', '|')}" for name, part in value.items()]
    if not repeatable:
        return value
    if isinstance(value, list) and not _numeric(value):
        return [str(part) for part in value]
    return [_joined(value, ",", ",")]


def _joined(value: Any, between_numbers: str, between_words: str) -> str:
    if isinstance(value, list):
        return (between_numbers if _numeric(value) else between_words).join(str(part) for part in value)
    return str(value)


def _numeric(values: list[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def policy_of(context: typer.Context) -> Policies:
    """The policies that hold for this command; none is false."""
    from cellrisk.choice import Policies

    found: Policies = context.meta.get(POLICIES) or Policies()
    return found
