"""What `--help` prints: the everyday options and two examples; `--help-all` prints every option, by panels."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

from typer.core import TyperCommand

PANELS = {
    "The table": "qid sensitive count wide bin levels missing outside engine table encoding metadata memory_limit "
    "released_count released_table",
    "The noise": "mechanism epsilon delta rho neighbours threshold perturbation risk_epsilon choice_epsilon grid",
    "Limits": "max_caused max_certain max_person max_ceiling max_posterior max_risk max_epsilon max_error "
    "max_people margin max_caused_people",
    "Options": "",
    "Measures of risk": "measure form weights attack alpha sizes sizes_fit zero_truncation overall",
    "The attacker": "certainty belief harmful unions tempering",
    "Error of marginals": "max_tvd releases seed cells way ways",
    "The ledger": "ledger wait head cohort new_cohort part_of purpose new_ledger method total_delta assess_as",
    "Output and settings": "output plot csv by spreadsheet_safe save force registry write acro as_json config",
}
"""The panels of options, in the order in which they are printed; an option that is not listed is among "Options"."""
EVERYDAY = (
    "qid sensitive risk_epsilon choice_epsilon max_caused_people public total_epsilon attribute epsilon as_json output "
    "bin levels max_caused mechanism everything ledger max_certain max_ceiling purpose cohort top plot releases count"
)
"""Options that `--help` prints, the most common first; ten of each command."""
MOST_SHOWN = 10

ADULT = "adult.parquet --qid age,sex --sensitive income"
DECLARED = "adult.parquet --qid sex --sensitive income --levels 'sex=Female|Male' --levels 'income=<=50K|>50K'"
EXAMPLES = {
    "inspect": ("adult.parquet", f"{ADULT} --bin age=5"),
    "assess": (f"{ADULT} --epsilon 1", f"{ADULT} --epsilon 1 --max-caused 2% --json"),
    "curve": (f"{ADULT} --plot curve.svg", f"{ADULT} --epsilon 0.01:10:50 --measure caused --csv curve.csv"),
    "choose": (f"{ADULT} --max-caused 0.5%", f"{ADULT} --max-risk 0.1 --epsilon 0.01:10 --plot choice.svg"),
    "choose-private": (
        f"{DECLARED} --choice-epsilon 0.1 --max-caused-people 500",
        f"{DECLARED} --choice-epsilon 0.1 --max-caused-people 500 --grid 0.1:5:20",
    ),
    "utility": (f"{ADULT} --epsilon 0.1,1,10", f"{ADULT} --epsilon 1 --ways 1,2 --csv utility.csv"),
    "explain": (f"{ADULT} --epsilon 1 --top 5", f"{ADULT} --epsilon 1 --merge 'age:young=17|18|19|20'"),
    "report": (
        f"{ADULT} --max-caused 0.5% --output report.html",
        f"{ADULT} --epsilon 1 --public --output statement.html",
    ),
    "release": (
        f"{ADULT} --bin age=0/20/40/60/100 --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' "
        "--epsilon 1 --output released.parquet",
        f"{DECLARED} --epsilon 0.5 --output sexes.csv --ledger releases.db --purpose yearbook",
    ),
    "publish-risk": (
        f"{DECLARED} --epsilon 1 --risk-epsilon 0.05",
        f"{DECLARED} --epsilon 1 --risk-epsilon 0.05 --ledger releases.db --purpose yearbook",
    ),
    "simulate": (f"{ADULT} --epsilon 1 --releases 200", f"{ADULT} --perturbation random-rounding:3 --releases 200"),
    "audit": (
        "adult.parquet sexes.csv --qid sex --sensitive income",
        "adult.parquet sexes.csv --qid sex --sensitive income --top 3",
    ),
    "average": (f"{ADULT} --epsilon 0.5 --releases 12", f"{ADULT} --epsilon 0.5 --releases 12 --method basic"),
    "together assess": ("set.toml", "set.toml --certainty 0.95"),
    "together split": ("set.toml --total-epsilon 2", "set.toml --total-epsilon 2 --use 2,1"),
    "together release": ("set.toml --output both", "set.toml --output yearbook --ledger releases.db --format csv"),
    "together report": ("set.toml --max-epsilon 3 --output set.html", "set.toml --split --output split.html"),
    "serve": ("", "--folder tables --no-browser"),
    "demo": ("", "--save adult.parquet"),
    "ledger create": ("releases.db", "other.db --head noted.txt"),
    "ledger add": (
        "releases.db --attribute income --qid age,sex --epsilon 0.5 --mechanism geometric --purpose yearbook",
        "other.db --qid age,sex --rho 0.01 --head noted.txt --purpose 'counts by another tool'",
    ),
    "ledger limit": ("releases.db --epsilon 20", "releases.db --epsilon 25 --delta 1e-6 --method rdp"),
    "ledger list": ("releases.db", "releases.db --kind release --json"),
    "ledger show": ("releases.db", "releases.db 1"),
    "ledger verify": ("releases.db", "releases.db --no-files"),
    "ledger checkpoint": ("releases.db", "other.db --head noted.txt"),
    "ledger recover": ("releases.db .", "releases.db . --json"),
    "ledger export": ("releases.db --output entries.jsonl", "releases.db --output entries.csv --spreadsheet-safe"),
    "ledger risk": ("releases.db adult.parquet", "releases.db adult.parquet --measure local --plot risk.svg"),
    "ledger plan": ("releases.db --epsilon 0.5", "releases.db --max-ceiling 0.99 --attribute income"),
}
"""What is typed after each command; tests run them all, with the files that `NOTES` describe."""
SET_FILE = """source = "adult.parquet"
sensitive = "income"
epsilon = 1
bin = ["age=0/30/60/100"]
levels = {sex = ["Female", "Male"], income = ["<=50K", ">50K"]}
[[table]]
qid = ["sex"]
[[table]]
qid = ["age"]
"""
NOTES = {
    "adult.parquet": "cellrisk demo --save adult.parquet writes the table.",
    "set.toml": f"A set.toml for these examples:\n{indent(SET_FILE, '  ')}".rstrip(),
    "sexes.csv": "cellrisk release --help shows how sexes.csv is made.",
    "releases.db": "cellrisk ledger create releases.db makes the ledger.",
    "other.db": "cellrisk ledger create other.db --head noted.txt makes the other ledger.",
}
"""Where the files that examples read come from."""


def list_examples(command: str) -> list[str]:
    """Return the examples of a command.

    >>> list_examples("demo")
    ['cellrisk demo', 'cellrisk demo --save adult.parquet']
    """
    return [f"cellrisk {command} {rest}".rstrip() for rest in EXAMPLES[command]]


def list_notes(examples: list[str]) -> list[str]:
    """Return where the files come from that examples read, except for those that they write themselves.

    >>> list_notes(["cellrisk inspect adult.parquet"])
    ['cellrisk demo --save adult.parquet writes the table.']
    """
    text = "\n".join(examples)
    if "set.toml" in text:
        text += SET_FILE
    notes = [note for file, note in NOTES.items() if file in text and f"--output {file}" not in text]
    return [note for note in notes if not any(example in note for example in examples)]


def fold(example: str, width: int = 76) -> str:
    """Return an example on lines that are not too long, broken before options; a shell reads them as one.

    >>> print(fold("cellrisk assess people.csv --qid age,sex --sensitive income", width=30))
    cellrisk assess people.csv \\
      --qid age,sex \\
      --sensitive income
    """
    lines = [""]
    for part in re.split(" (?=--)", example):
        if lines[-1] and len(lines[-1]) + len(part) + 1 > width - 2:
            lines.append(f"  {part}")
        else:
            lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return " \\\n".join(lines)


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


def list_arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


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

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*map(name_argument, list_arguments(self)), str(self.options_metavar)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Print arguments, options and examples."""
        arguments = [(name_argument(argument), argument.help or "") for argument in list_arguments(self)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        everyday, panels = choose_everyday(self.params), find_panels(self.params)
        every = [option for options in panels.values() for option in options]
        for panel, options in panels.items() if ctx.meta.get("help-all") else [("Options", everyday)]:
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(panel):
                formatter.write_dl(
                    [(names, re.sub(r"\[default: \((.*)\)\]$", r"[default: \1]", text)) for names, text in records]
                )
        if len(every) > len(everyday) and not ctx.meta.get("help-all"):
            formatter.write(f"\n  --help-all prints all {len(every)} options.\n")
        examples = list_examples(ctx.command_path.partition(" ")[2])
        with formatter.section("Examples"):
            formatter.write(indent("\n".join(map(fold, examples)), "  ") + "\n")
        notes = list_notes(examples)
        if notes:
            formatter.write("\n" + indent("\n".join(notes), "  ") + "\n")
