"""The commands, put together. Each is loaded when it is asked for: to run one, the options of thirty others need not be
read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import isfunction
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperGroup

from cellrisk.cli.groups import grouped
from cellrisk.cli.help_panels import OTHER, PanelCommand


class LoadedCommands(Mapping[str, Any]):
    """The commands of a group by their names; each is made when it is first looked up."""

    def __init__(self, panels: Mapping[str, Mapping[str, str]]) -> None:
        self._places = {name: place for commands in panels.values() for name, place in commands.items()}
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            found = self.find(name)
            self._made[name] = _make_command(name, found) if isfunction(found) else found(name=name)
        return self._made[name]

    def find(self, name: str) -> Any:
        """The function of a command, or the class of a group of commands."""
        module, _, attribute = self._places[name].rpartition(".")
        return getattr(import_module(f"cellrisk.cli.{module}"), attribute)


def _make_command(name: str, function: Any) -> Any:
    """A function as a command."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=PanelCommand)(grouped(function))
    return typer.main.get_command(alone)


class PanelGroup(TyperGroup):
    """A command with commands below it, which stand in panels too, each with the first sentence of its help."""

    about: ClassVar[str] = ""
    """The help of a group below another."""
    panels: ClassVar[dict[str, dict[str, str]]]
    """Where each command is, by its panel and its name: the module of this room, and the function or the group."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"help": self.about, "rich_markup_mode": None, **given})
        self.known = LoadedCommands(self.panels)
        self.commands = cast(Any, self.known)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, then the commands."""
        records = [each.get_help_record(ctx) for each in self.get_params(ctx)]
        with formatter.section(OTHER):
            formatter.write_dl([record for record in records if record is not None])
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by their panels; what they do is known before their options are."""
        for panel, commands in self.panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name, _first_sentence(self.known.find(name))) for name in commands])


def _first_sentence(command: Any) -> str:
    told = str(command.__doc__ if isfunction(command) else command.about)
    return " ".join(told.partition("\n\n")[0].split())


class Program(PanelGroup):
    """The command `cellrisk` itself."""

    panels: ClassVar = {
        "Start": {"demo": "commands.demo_command", "serve": "serving.serve_command"},
        "Look at a table": {
            "inspect": "commands.inspect_command",
            "assess": "commands.assess_command",
            "explain": "decisions.explain_command",
        },
        "Decide": {
            "curve": "decisions.curve_command",
            "choose": "decisions.choose_command",
            "utility": "decisions.utility_command",
            "report": "reports.report_command",
            "simulate": "releases.simulate_command",
        },
        "Publish": {
            "release": "releases.release_command",
            "publish-risk": "releases.publish_risk_command",
            "audit": "releases.audit_command",
        },
        "Several releases": {
            "average": "planning.average_command",
            "together": "sets.SetGroup",
            "ledger": "ledgers.LedgerGroup",
        },
    }


app = typer.Typer(
    name="cellrisk",
    cls=Program,
    help="What a frequency table that is published with differential privacy still gives away about people.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
