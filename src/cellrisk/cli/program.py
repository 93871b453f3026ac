"""The commands, put together. Each is loaded when it is asked for, so one command does not load the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, ClassVar, cast, get_type_hints

import typer
from typer.core import TyperGroup

from cellrisk.cli.config import keep_given_files
from cellrisk.cli.help import Command, HelpAll
from cellrisk.cli.options import standard_input_as_file
from cellrisk.system.atomic import inputs_of_one_command


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """Return a function with one parameter for each option of the command's groups, as Typer reads it."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, hint in inspect.get_annotations(command, eval_str=True).items():
        if is_dataclass(hint):
            groups[name] = hint
            hints = get_type_hints(hint, include_extras=True)
            parameters += [_parameter(field.name, hints[field.name], field.default) for field in fields(hint)]
        elif name != "return":
            parameters.append(_parameter(name, hint, inspect.signature(command).parameters[name].default))
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)

    def run(**given: Any) -> None:
        with inputs_of_one_command(), standard_input_as_file(given):
            keep_given_files(given)
            for name, kind in groups.items():
                given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            command(**given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=hint)


class LazyCommands(Mapping[str, Any]):
    """The commands of a group by their names; each is made when it is first looked up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            found = self.find(name)
            if isinstance(found, type):
                self._made[name] = found(name=name)
            else:
                alone = typer.Typer(add_completion=False, rich_markup_mode=None)
                alone.command(name, cls=Command)(flatten(found))
                self._made[name] = typer.main.get_command(alone)
        return self._made[name]

    def find(self, name: str) -> Any:
        """Return the function of a command, or the class of a group."""
        module, _, attribute = self._places[name].rpartition(".")
        return getattr(import_module(f"cellrisk.cli.{module}"), attribute)


class Group(HelpAll, TyperGroup):
    """A command with commands below it, printed in panels with the first sentence of their help."""

    panels: ClassVar[dict[str, dict[str, str]]]
    """The module and the function, or the class, of each command by panel and name."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"help": self.__doc__, "rich_markup_mode": None, **given})
        self.known = LazyCommands({name: place for panel in self.panels.values() for name, place in panel.items()})
        self.commands = cast(Any, self.known)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])
        for panel, commands in self.panels.items():
            summaries = [(name, inspect.cleandoc(self.known.find(name).__doc__)) for name in commands]
            with formatter.section(panel):
                formatter.write_dl([(name, " ".join(text.partition("\n\n")[0].split())) for name, text in summaries])


class LedgerGroup(Group):
    """The record of what was released, about which people, and what it cost."""

    names: ClassVar = "create add limit list show verify checkpoint recover export risk plan"
    panels: ClassVar = {"Commands": {name: f"ledgers.{name}_command" for name in names.split()}}

    def __init__(self, **given: Any) -> None:
        super().__init__(no_args_is_help=True, **given)


class SetGroup(Group):
    """Several tables about the same people: cellrisk together SET, or a command below."""

    panels: ClassVar = {"Commands": {name: f"sets.{name}_command" for name in ("assess", "split", "release", "report")}}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "--help-all"):
            args = ["assess", *args]
        return super().parse_args(ctx, args)


class Program(Group):
    """The disclosure risk of frequency tables published with noise."""

    panels: ClassVar = {
        "Start": {"demo": "tables.demo_command", "serve": "serving.serve_command"},
        "Look at a table": {name: f"tables.{name}_command" for name in ("inspect", "assess", "explain")},
        "Decide": {
            "curve": "tables.curve_command",
            "choose": "tables.choose_command",
            "choose-private": "releases.choose_private_command",
            "utility": "tables.utility_command",
            "report": "reports.report_command",
            "simulate": "tables.simulate_command",
        },
        "Publish": {
            "release": "releases.release_command",
            "publish-risk": "releases.publish_risk_command",
            "audit": "releases.audit_command",
        },
        "Several releases": {
            "average": "ledgers.average_command",
            "together": "program.SetGroup",
            "ledger": "program.LedgerGroup",
        },
    }


app = typer.Typer(
    name="cellrisk", cls=Program, help=Program.__doc__, pretty_exceptions_enable=False, rich_markup_mode=None
)


@app.callback(invoke_without_command=True)
def _about(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    if version:
        from cellrisk.system.version import __version__

        typer.echo(f"cellrisk {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
