"""The commands, put together, and their help.

Each is loaded when it is asked for, so one command does not load the others. `--help` prints the everyday options and
two examples; `--help-all` prints every option, by panels.
"""

from __future__ import annotations

import inspect
import re
from collections import UserDict
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any, ClassVar, cast, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from cellrisk.cli.config import keep_given_files
from cellrisk.cli.options import standard_input_as_file
from cellrisk.system.atomic import inputs_of_one_command

PANELS = {
    "The table": "qid sensitive count wide bin levels missing outside engine table encoding metadata memory_limit "
    "person contributions per_group released_count released_table",
    "The noise": "mechanism epsilon delta rho neighbours threshold perturbation risk_epsilon choice_epsilon grid",
    "Limits": "max_caused max_certain max_person max_ceiling max_posterior max_risk max_epsilon max_error "
    "max_people margin max_caused_people",
    "Options": "",
    "Measures of risk": "measure form weights attack alpha sizes sizes_fit zero_truncation overall",
    "The attacker": "certainty belief harmful unions",
    "Error of marginals": "max_tvd releases seed way ways",
    "The ledger": "ledger wait head cohort new_cohort part_of purpose new_ledger method total_delta",
    "Output and settings": "output plot csv by spreadsheet_safe save force registry write acro as_json config",
}
"""The panels of options, in the order in which they are printed; an option that is not listed is among "Options"."""
EVERYDAY = (
    "qid sensitive risk_epsilon choice_epsilon max_caused_people public total_epsilon attribute epsilon as_json output "
    "bin levels max_caused mechanism everything ledger max_certain max_ceiling purpose cohort top plot releases count"
)
"""Options that `--help` prints, the most common first; ten of each command."""
MOST_SHOWN = 10
HELP_ALL = "--help-all"

EXAMPLES = Path(__file__).with_name("examples.sh")
"""Examples of each command as they are printed, with where their files come from; tests run them all."""


def find_examples(command: str) -> str:
    """Return the examples of a command.

    >>> print(find_examples("demo"))
    cellrisk demo
    cellrisk demo --save adult.parquet
    """
    blocks = EXAMPLES.read_text(encoding="utf-8").strip().split("\n\n")
    return next(block for block in blocks if re.match(rf"cellrisk {command}\s", block))


def find_panels(parameters: list[Any]) -> dict[str, list[Any]]:
    """Return the options of a command by panel."""
    home = {name: panel for panel, names in PANELS.items() for name in names.split()}
    panels: dict[str, list[Any]] = {panel: [] for panel in PANELS}
    for parameter in parameters:
        if parameter.param_type_name == "option" and parameter.name != "help":
            panels[home.get(parameter.name, "Options")].append(parameter)
    return {panel: options for panel, options in panels.items() if options}


def choose_everyday(parameters: list[Any]) -> list[Any]:
    """Return the options that `--help` prints, in the order of the panels; all of them if there are few."""
    options = [parameter for panel in find_panels(parameters).values() for parameter in panel]
    if len(options) <= MOST_SHOWN + 2:
        return options
    by_name = {option.name: option for option in options}
    chosen = [name for name in EVERYDAY.split() if name in by_name][:MOST_SHOWN]
    return [option for option in options if option.name in chosen]


def name_argument(argument: Any) -> str:
    """Return an argument as the line of usage names it."""
    name = str(argument.metavar or argument.name).strip("[]").upper()
    return name if argument.required else f"[{name}]"


class Command(TyperCommand):
    """A command whose help has everyday options, panels and examples."""

    @property
    def arguments(self) -> list[Any]:
        return [parameter for parameter in self.params if parameter.param_type_name == "argument"]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*map(name_argument, self.arguments), str(self.options_metavar)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Print arguments, options and examples."""
        panels, everyday = find_panels(self.params), choose_everyday(self.params)
        number = sum(map(len, panels.values()))
        everything = HELP_ALL in (ctx.obj or ())  # the words as they were typed
        if not everything:
            panels = {"Options": everyday}
        if self.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(name_argument(argument), argument.help or "") for argument in self.arguments])
        for panel, options in panels.items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(panel):
                formatter.write_dl(
                    [(names, re.sub(r"\[default: \((.*)\)\]$", r"[default: \1]", text)) for names, text in records]
                )
        if number > len(everyday) and not everything:
            formatter.write(f"\n  --help-all prints all {number} options.\n")
        with formatter.section("Examples"):
            formatter.write(indent(find_examples(ctx.command_path.partition(" ")[2]), "  ") + "\n")


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """Return a function with one parameter for each option of the command's groups, as Typer reads it."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    empty, hints = inspect.Parameter.empty, inspect.get_annotations(command, eval_str=True)
    for name, given in inspect.signature(command).parameters.items():
        options = [(name, hints[name], given.default)]
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            inner = get_type_hints(hints[name], include_extras=True)
            options = [(field.name, inner[field.name], field.default) for field in fields(hints[name])]
        for option, hint, default in options:
            usual = empty if default is MISSING else default
            parameters.append(inspect.Parameter(option, given.KEYWORD_ONLY, default=usual, annotation=hint))
    parameters.sort(key=lambda parameter: parameter.default is not empty)

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


class LazyCommands(UserDict[str, Any]):
    """The commands of a group by their names, given as where they are; each is made when it is first looked up."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(self.data[name], str):
            command = find(self.data[name])
            if isinstance(command, type):
                self.data[name] = command(name=name)
            else:
                alone = typer.Typer(add_completion=False, rich_markup_mode=None)
                alone.command(name, cls=Command)(flatten(command))
                self.data[name] = typer.main.get_command(alone)
        return self.data[name]


def places(module: str, names: str) -> dict[str, str]:
    """Return where the functions of commands are.

    >>> places("releases", "publish-risk")
    {'publish-risk': 'releases.publish_risk_command'}
    """
    return {name: f"{module}.{name.replace('-', '_')}_command" for name in names.split()}


def find(place: str) -> Any:
    """Return the function of a command, or the class of a group."""
    module, _, attribute = place.rpartition(".")
    return getattr(import_module(f"cellrisk.cli.{module}"), attribute)


class Group(TyperGroup):
    """A command with commands below it, printed in panels with the first sentence of their help."""

    panels: ClassVar[dict[str, dict[str, str]]]
    """The module and the function, or the class, of each command by panel and name."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"help": self.__doc__, "rich_markup_mode": None, **given})
        places = {name: place for panel in self.panels.values() for name, place in panel.items()}
        self.commands = cast(Any, LazyCommands(places))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])
        for panel, commands in self.panels.items():
            summaries = [(name, inspect.cleandoc(find(place).__doc__)) for name, place in commands.items()]
            with formatter.section(panel):
                formatter.write_dl([(name, " ".join(text.partition("\n\n")[0].split())) for name, text in summaries])


class Program(Group):
    """The disclosure risk of frequency tables published with noise."""

    panels: ClassVar = {
        "Start": places("tables", "demo serve"),
        "Look at a table": places("tables", "inspect assess explain"),
        "Decide": places("deciding", "curve choose utility report") | places("releases", "choose-private simulate"),
        "Publish": places("releases", "release publish-risk audit"),
        "Several releases": {
            **places("ledgers", "average"),
            "together": "sets.SetGroup",
            "ledger": "ledgers.LedgerGroup",
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


PROGRAM: Any = typer.main.get_command(app)
"""The command `cellrisk`, with all below it."""
