"""What `--help` prints: the everyday options and two examples; `--help-all` prints every option, by panels."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent
from typing import Any

from typer.core import TyperCommand

PANELS = {
    "The table": "qid sensitive count wide bin levels missing outside engine table encoding metadata memory_limit "
    "person contributions per_group released_count released_table",
    "The noise": "mechanism epsilon delta rho neighbours threshold perturbation risk_epsilon choice_epsilon grid",
    "Limits": "max_caused max_certain max_person max_ceiling max_posterior max_risk max_epsilon max_error "
    "max_people margin max_caused_people",
    "Options": "",
    "Measures of risk": "measure form weights attack alpha sizes sizes_fit zero_truncation overall",
    "The attacker": "certainty belief harmful unions",
    "Error of marginals": "max_tvd releases seed cells way ways",
    "The ledger": "ledger wait head cohort new_cohort part_of purpose new_ledger method total_delta assess_as",
    "Output and settings": "output plot csv by spreadsheet_safe save force write acro as_json config",
}
"""The panels of options, in the order in which they are printed; an option that is not listed is among "Options"."""
EVERYDAY = (
    "qid sensitive risk_epsilon choice_epsilon max_caused_people public total_epsilon attribute epsilon as_json output "
    "bin levels max_caused mechanism everything ledger max_certain max_ceiling purpose cohort top plot releases count"
)
"""Options that `--help` prints, the most common first; ten of each command."""
MOST_SHOWN = 10

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


class HelpAll:
    """Makes --help-all ask for help with every option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--help-all"] or ("--help-all" in args and isinstance(self, TyperCommand)):
            ctx.meta["help-all"], args = True, ["--help"]
        return super().parse_args(ctx, args)  # type: ignore[misc,no-any-return]


class Command(HelpAll, TyperCommand):
    """A command whose help has everyday options, panels and examples."""

    @property
    def arguments(self) -> list[Any]:
        return [parameter for parameter in self.params if parameter.param_type_name == "argument"]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*map(name_argument, self.arguments), str(self.options_metavar)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Print arguments, options and examples."""
        panels, everyday = find_panels(self.params), choose_everyday(self.params)
        hidden = sum(map(len, panels.values())) - len(everyday)
        if not ctx.meta.get("help-all"):
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
        if hidden and not ctx.meta.get("help-all"):
            formatter.write(f"\n  --help-all prints all {hidden + len(everyday)} options.\n")
        with formatter.section("Examples"):
            formatter.write(indent(find_examples(ctx.command_path.partition(" ")[2]), "  ") + "\n")
