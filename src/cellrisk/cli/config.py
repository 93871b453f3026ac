"""Settings from a file: defaults for any option, and the policy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cellrisk.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from cellrisk.choice import Policy

CONFIG_FILE = "cellrisk.toml"
POLICY = "cellrisk.policy"


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from --config, or from cellrisk.toml in the working folder; the command line wins.

    Keys are the options' long names; a table named like a command holds for that command alone, and for the commands
    below it.
    """
    file = path or Path(CONFIG_FILE)
    if path is None and not file.is_file():
        return None
    values = _load_toml(file)
    if "policy" in values:
        from cellrisk.choice import Policy

        context.meta[POLICY] = Policy.of(values.pop("policy"))
    root, path_of_names = _find_root(context)
    known = {key for command in _walk(root) for key in _long_options(command)}
    mine = _long_options(context.command)
    defaults: dict[str, Any] = {}
    for key, value in _settings_for(values, root, path_of_names).items():
        if key not in known:
            raise UnknownName(f"unknown setting in {file.name}", got=key, allowed=", ".join(sorted(known)))
        if key in mine:
            parameter, negated = mine[key]
            defaults[parameter.name] = not value if negated else _as_option(value, parameter.multiple)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


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
    if not isinstance(own, dict):
        raise InvalidInput(f"the setting '{names[0]}' is named like a command", allowed="a table of settings")
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


def _load_toml(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise InvalidInput("the configuration file does not exist", got=str(file)) from None
    except OSError as error:
        raise InvalidInput("the configuration file cannot be read", got=f"{file} ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InvalidInput("the configuration file is not valid TOML", got=str(file)) from None


def policy_of(context: typer.Context) -> Policy | None:
    """The policy of the settings file in use, if it has one."""
    policy: Policy | None = context.meta.get(POLICY)
    return policy
