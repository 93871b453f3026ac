"""Settings from a file: defaults for any option, and the policy. Also the files to protect."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellrisk.decide.policy_files import SETTINGS_FILE, find_policy_files, read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.atomic import keep_inputs

if TYPE_CHECKING:
    pass

POLICIES = "cellrisk.policies"
"""Where a command finds its policies, in the context."""
TABLES = ("bin", "levels", "merge", "alpha")
"""Options that take a table of columns and values."""
OUTPUTS = ("output", "plot", "csv", "save", "registry", "acro", "write")
"""Options that name files to be written."""
A_FILE_READ = "a file that this command reads"


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from --config, or from cellrisk.toml in the working folder; the command line wins.

    Keys are the options' long names; a table named like a command is for that command and those below it. A key that
    no command takes is refused. A policy in force holds whichever file the settings come from, and one in that file is
    added to it.
    """
    file = path or Path(SETTINGS_FILE)
    settings = None if path is None and not os.path.lexists(file) else read_settings_file(file)
    has_policy = settings is not None and settings.policy is not None
    if has_policy or find_policy_files():  # policies are loaded only if there is one
        from cellrisk.decide.policies import Policies

        context.meta[POLICIES] = Policies.in_force(settings if has_policy else None)
    if settings is None:
        return None
    known, table = _long_options(context.command), ""
    values = {key: value for key, value in settings.values.items() if key != "policy"}
    defaults: dict[str, Any] = {}
    level: Any = context
    names = [""]
    while level.parent is not None:
        names, level = [str(level.command.name), *names], level.parent
    group = level.command
    for name in names:
        commands = getattr(group, "commands", {})
        for key, value in values.items():
            if key in commands and not isinstance(value, dict):
                what = f"the setting '{key}' in {file.name} is named like a command"
                raise InvalidInput(what, allowed=f"a table [{table}{key}]")
            if key in known:
                parameter, off = known[key]
                defaults[parameter.name] = _as_option(key, value, parameter, off)
            elif key not in commands and not any(key in _long_options(command) for command in walk(group)):
                where = f"under [{table[:-1]}] in {file.name}" if table else f"in {file.name}"
                raise UnknownName(f"unknown setting {where}", got=key, allowed=", ".join(sorted(known)))
        values, group, table = values.get(name, {}), commands.get(name), f"{table}{name}."
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def walk(command: Any) -> Iterator[Any]:
    """Yield a command and all below it."""
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from walk(inner)


def _long_options(command: Any) -> dict[str, tuple[Any, bool]]:
    """Return each long option of a command without its dashes: its parameter, and whether it switches that off."""
    named = [(name, parameter, False) for parameter in command.params for name in parameter.opts]
    named += [(name, parameter, True) for parameter in command.params for name in parameter.secondary_opts]
    options = {name.removeprefix("--"): (parameter, off) for name, parameter, off in named if name.startswith("--")}
    return {key: value for key, value in options.items() if key not in ("config", "help")}


def _as_option(name: str, value: Any, parameter: Any, off: bool) -> Any:
    """Return a TOML value as the parser of the option takes it."""
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise InvalidInput(f"the setting '{name}' is a switch", allowed="true or false")
        return value != off
    if name in TABLES and isinstance(value, dict):
        return list(_as_text(value, name, 2).items()) if value else []
    parts = value if isinstance(value, list) else [value]
    if name == "exclude":
        return [_as_text(part, name, 2) for part in parts]
    if name == "alpha" and not any(isinstance(part, str) for part in parts):
        return [",".join(map(str, parts))]
    if parameter.multiple or isinstance(value, dict):
        return [_as_text(part, name) for part in parts]
    return value


def _as_text(value: Any, name: str, depth: int = 0) -> Any:
    """Return a value as TOML spells it; of depth 2, the values of a table, and of depth 1 those of a list likewise."""
    if depth == 2 and isinstance(value, dict) and value:
        return {key: _as_text(part, name, 1) for key, part in value.items()}
    if depth == 1 and isinstance(value, list):
        return [_as_text(part, name) for part in value]
    if isinstance(value, dict | list):
        got = "a table" if isinstance(value, dict) else "a list"
        allowed = f"one table for all columns, or a list of texts: {name} = [...]" if name in TABLES else None
        raise InvalidInput(f"the setting '{name}' cannot be read", got=got, allowed=allowed or "texts or numbers")
    return str(value).lower() if isinstance(value, bool) else str(value)


def keep_given_files(given: dict[str, Any]) -> None:
    """Protect every file that a command was given from being written over, except for those that it is to write."""
    variables = {name: os.environ.get(name) for name in ("CELLRISK_POLICY", "CELLRISK_LEDGER_HEAD")}
    for name, value in {**given, **variables}.items():
        with suppress(OSError, ValueError):
            if name not in OUTPUTS and isinstance(value, str | Path) and (name == "ledger" or Path(value).is_file()):
                keep_inputs(A_FILE_READ, value)


FROM_FILE = f"Settings file; without it, {SETTINGS_FILE} in this folder."
CONFIG: Any = typer.Option(metavar="FILE", help=FROM_FILE, callback=read_config, is_eager=True)
Config = Annotated[Path | None, CONFIG]
