"""Settings from a file: defaults for any option, and the policy. Also the options of output, and files to protect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellrisk.cli.options import COMMON, SpreadsheetSafe, Text, option, switch
from cellrisk.cli.output import say, warn_of_formulas
from cellrisk.decide.policy_files import SETTINGS_FILE, find_policy_files, read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.atomic import check_writable, keep_inputs
from cellrisk.system.formatting import CURATOR_NOTE

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies

POLICIES = "cellrisk.policies"
TYPED = "cellrisk.typed"
"""Where a command finds its policies and its typed words, in the context."""
TABLES = ("bin", "levels", "merge", "exclude", "alpha")
"""Options that take a table of columns and values."""
OUTPUTS = ("output", "plot", "csv", "save", "registry", "acro", "write")
"""Options that name files to be written."""
COMMON_KEYS = {field.name.replace("_", "-") for group in COMMON for field in fields(group) if field.name != "source"}
COMMON_KEYS |= {"no-zero-truncation", "json"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from --config, or from cellrisk.toml in the working folder; the command line wins.

    Keys are the options' long names; a table named like a command is for that command and those below it. A key of no
    command, or of other commands only, is refused. A policy in force holds whichever file the settings come from, and
    one in that file is added to it.
    """
    file = path or Path(SETTINGS_FILE)
    settings = None if path is None and not os.path.lexists(file) else read_settings_file(file)
    has_policy = settings is not None and settings.policy is not None
    if has_policy or find_policy_files():  # policies are loaded only if there is one
        from cellrisk.decide.policies import Policies

        context.meta[POLICIES] = Policies.in_force(settings if has_policy else None)
    if settings is None:
        return None
    values = {key: value for key, value in settings.values.items() if key != "policy"}
    names: list[str] = []
    outer: Any = context
    while outer.parent is not None:
        names.insert(0, outer.command.name or "")
        outer = outer.parent
    known = _long_options(context.command)
    _check_keys(values, outer.command, known, file.name)
    command: Any = outer.command
    merged: dict[str, Any] = {}
    for name in (*names, None):
        below = getattr(command, "commands", {})
        merged |= {key: value for key, value in values.items() if key not in below}
        if name is not None:
            values, command = values.get(name, {}), below[name]
    given = {key: _as_option(key, value, *known[key]) for key, value in merged.items() if key in known}
    context.default_map = {**(context.default_map or {}), **{str(known[key][0].name): given[key] for key in given}}
    return file


def walk(command: Any) -> Iterator[Any]:
    """Yield a command and all below it."""
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from walk(inner)


def _check_keys(values: dict[str, Any], group: Any, own: Any, file: str, within: str = "") -> None:
    """Refuse keys that no command takes, keys of other commands only, and plain values named like a command."""
    commands = dict(getattr(group, "commands", {}).items()) if within or set(values) - COMMON_KEYS - set(own) else {}
    where = f"under [{within}] in {file}" if within else f"in {file}"
    for key, value in values.items():
        if key in commands:
            table = f"{within}.{key}" if within else key
            if not isinstance(value, dict):
                what, got = f"the setting '{key}' {where} is named like a command", f"a {type(value).__name__}"
                raise InvalidInput(what, got=got, allowed=f"a table [{table}]", fix=_name_tables(commands, key))
            inner = commands[key]
            _check_keys(value, inner, {name for each in walk(inner) for name in _long_options(each)}, file, table)
        elif key in own or (key in COMMON_KEYS and not within):
            continue
        elif not within and any(key in _long_options(command) for command in walk(group)):
            what = f"the setting '{key}' in {file} is not for this command"
            raise InvalidInput(what, fix=_name_tables(commands, key))
        else:
            allowed = ", ".join(sorted({*own} if within else COMMON_KEYS | {*own}))
            more = "" if within else "; tables named like a command"
            raise UnknownName(f"unknown setting {where}", got=key, allowed=f"{allowed}{more}")


def _name_tables(commands: dict[str, Any], key: str) -> str | None:
    tables = " or ".join(f"[{name}]" for name, command in commands.items() if key in _long_options(command))
    return f"put it under {tables}" if tables else None


def _long_options(command: Any) -> dict[str, tuple[Any, bool]]:
    """Return each long option of a command without its dashes: its parameter, and whether it switches that off."""
    named = [(name, parameter, False) for parameter in command.params for name in parameter.opts]
    named += [(name, parameter, True) for parameter in command.params for name in parameter.secondary_opts]
    options = {name.removeprefix("--"): (parameter, off) for name, parameter, off in named}
    return {key: value for key, value in options.items() if key not in ("config", "help", "source")}


def _as_option(name: str, value: Any, parameter: Any, off: bool) -> Any:
    """Return a TOML value as the parser of the option takes it."""
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise InvalidInput(f"the setting '{name}' is a switch", got=_kind(value), allowed="true or false")
        return value != off
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, dict) for part in parts):
        if name not in TABLES or (isinstance(value, list) and name != "exclude"):
            fix = "give one table for all columns" if name in TABLES else None
            raise InvalidInput(f"the setting '{name}' cannot be {_kind(value)} of this kind", fix=fix)
        if {} in parts and name == "exclude":
            raise InvalidInput(f"the setting '{name}' has an empty table", allowed="a table of columns and values")
        read = [_texts(part, name) for part in parts]
        return read if name == "exclude" else list(read[0].items())
    if not parameter.multiple:
        return value
    if name == "alpha" and len(parts) > 1 and not any(isinstance(part, str) for part in parts):
        return [",".join(map(str, parts))]
    return [_texts(part, name) for part in parts]


def _texts(value: Any, name: str, inner: tuple[type, ...] = (dict, list)) -> Any:
    """Return a value as TOML spells it, and the values of a table or a list likewise."""
    if isinstance(value, dict) and dict in inner:
        return {key: _texts(part, name, (list,)) for key, part in value.items()}
    if isinstance(value, list) and list in inner:
        return [_texts(part, name, ()) for part in value]
    if isinstance(value, dict | list):
        allowed = "texts, numbers, true or false, or a list of them"
        raise InvalidInput(f"the setting '{name}' cannot be read", got=_kind(value), allowed=allowed)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: Any) -> str:
    """Name the type of a TOML value, without showing it."""
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def policies_of(context: typer.Context) -> Policies:
    """Return the policies that hold for this command; none is false."""
    from cellrisk.decide.policies import Policies

    policies: Policies = context.meta.get(POLICIES) or Policies()
    return policies


def list_typed(context: typer.Context, *names: str) -> list[str]:
    """Return those of these options that were typed; those of a settings file may be meant for other commands."""
    return [name for name in names if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]


def keep_given_files(given: dict[str, Any]) -> None:
    """Protect every file that a command was given from being written over, except for those that it is to write."""
    for name, value in given.items():
        if name in OUTPUTS or not isinstance(value, str | Path):
            continue
        if name == "ledger":
            keep_inputs("the ledger", *(f"{value}{end}" for end in ("", "-wal", "-shm", "-journal")))
        elif name == "source":
            from cellrisk.counts.sources import list_files_of

            keep_inputs("the records", *list_files_of(value))
        else:
            with suppress(OSError, ValueError):
                if Path(value).is_file():
                    keep_inputs(
                        "the set file" if name == "set_file" else f"what --{name.replace('_', '-')} names", value
                    )
    variables = map(os.environ.get, ("CELLRISK_POLICY", "CELLRISK_LEDGER_HEAD"))
    keep_inputs("the settings", *(path for path in variables if path))


FROM_FILE = f"Settings file; without it, {SETTINGS_FILE} in this folder."
CONFIG: Any = typer.Option(metavar="FILE", help=FROM_FILE, callback=read_config, is_eager=True)
Config = Annotated[Path | None, CONFIG]


All = Annotated[bool, switch("--all", "Print everything, not the first screen alone.")]


@dataclass(frozen=True)
class OutputOptions:
    """How the answer is printed, and where further settings come from."""

    as_json: Annotated[bool, switch("--json", "Print one JSON document and nothing else.")] = False
    config: Config = None

    def say(self, document: dict[str, Any], text: str) -> None:
        """Print one JSON document, or its text."""
        say(json.dumps(document, allow_nan=False, ensure_ascii=False) if self.as_json else text)

    def answer(
        self,
        result: Any,
        raw: bool = True,
        policies: Policies | None = None,
        checks: dict[str, Any] | None = None,
        everything: bool = False,
        after: str = "",
        drawn: Any = None,
        **picture: Any,
    ) -> None:
        """Draw a result, and print it and its checks: sentences and tables, or one JSON document.

        ``everything``: not its first screen alone. ``after``: what follows the sentences; not in JSON.
        ``drawn``: what a picture shows, if not the result.

        What was computed from ``raw`` data carries the curator's note. ``policies``: those that were obeyed, if the
        result does not report them itself; JSON also reports that there was none.
        """
        self.draw(result if drawn is None else drawn, **picture)
        if self.as_json:
            checked = {"check": {name: check.to_dict() for name, check in checks.items()}} if checks else {}
            policy = {} if policies is None else {"policy": policies.to_dict()}
            self.say({**result.to_dict(), **checked, **policy, **({"note": CURATOR_NOTE} if raw else {})}, "")
            return
        parts = [result.details if everything else result, *(checks or {}).values()]
        text = "\n\n".join(map(str, [*parts, *([policies.describe()] if policies else [])]))
        say(f"{text}\n\n{CURATOR_NOTE}" if raw and CURATOR_NOTE not in text else text)
        if after:
            say(f"\n{after}")

    def draw(self, result: Any, **how: Any) -> None:
        """Draw nothing; there is no option for it."""


@dataclass(frozen=True)
class PictureOptions(OutputOptions):
    """How the answer is printed and drawn."""

    plot: Annotated[Text, option("Write a picture: .svg, .png or .pdf.", "FILE")] = None

    def __post_init__(self) -> None:
        """Refuse a path that cannot be written before the work begins."""
        if self.plot is not None:
            from cellrisk.show.pictures import check_picture_path

            check_picture_path(self.plot)

    def draw(self, result: Any, **how: Any) -> None:
        if self.plot is not None:
            result.plot(self.plot, **how)


@dataclass(frozen=True)
class NumbersOptions(PictureOptions):
    """How the answer is printed, drawn and written as numbers."""

    csv: Annotated[Text, option("Write the numbers as a CSV file.", "FILE")] = None
    spreadsheet_safe: SpreadsheetSafe = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.csv is not None:
            check_writable(self.csv)

    def draw(self, result: Any, **how: Any) -> None:
        if self.csv is not None:
            warn_of_formulas(result.to_csv(self.csv, spreadsheet_safe=self.spreadsheet_safe))
        super().draw(result, **how)
