"""What `--help` shows: options in panels by their subject, true defaults, and two examples for each command."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

from typer.core import TyperCommand

TABLE, NOISE, LIMITS, MEASURES, ATTACKER = "The table", "The noise", "Limits", "Measures of risk", "The attacker"
SIMULATION, PRIVATE, LEDGER = "Simulation", "A choice that may be published", "The ledger"
OUTPUT, OTHER = "Output and settings", "Options"
PANELS = (TABLE, NOISE, LIMITS, OTHER, MEASURES, ATTACKER, SIMULATION, PRIVATE, LEDGER, OUTPUT)
"""The panels, in the order in which they are shown."""
OWN_PANELS = {
    **dict.fromkeys(("plot", "csv", "output", "spreadsheet_safe", "save", "force", "registry", "write"), OUTPUT),
    **dict.fromkeys(("max_caused", "max_certain", "max_ceiling", "max_risk"), LIMITS),
    **dict.fromkeys(("cohort", "new_ledger", "operator", "ledger"), LEDGER),
    "config": OUTPUT,
}
"""Where an option is shown that a command has by itself, and not from a group; the others are among `OTHER`."""

ADULT = "adult.parquet --qid age,sex --sensitive income"
EXAMPLES = {
    "inspect": ("adult.parquet", f"{ADULT} --bin age=5"),
    "assess": (f"{ADULT} --epsilon 1", f"{ADULT} --epsilon 1 --max-caused 0.01 --json"),
    "curve": (f"{ADULT} --plot curve.svg", f"{ADULT} --epsilon 0.01:10:50 --measure caused --csv curve.csv"),
    "choose": (f"{ADULT} --max-caused 0.005", f"{ADULT} --max-risk 0.1 --epsilon 0.01:10 --plot choice.svg"),
    "utility": (f"{ADULT} --epsilon 0.1,1,10", f"{ADULT} --epsilon 1 --ways 1,2 --csv utility.csv"),
    "explain": (f"{ADULT} --epsilon 1 --top 5", f"{ADULT} --epsilon 1 --merge 'age:young=17|18|19|20'"),
    "report": (
        f"{ADULT} --max-caused 0.005 --output report.html",
        "--set set.toml --max-epsilon 3 --output set.html",
    ),
    "release": (
        f"{ADULT} --bin age=0/20/40/60/100 --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' "
        "--epsilon 1 --output released.parquet",
        "adult.parquet --qid sex --sensitive income --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' "
        "--epsilon 0.5 --output sexes.csv --ledger releases.db --purpose yearbook",
    ),
    "publish-risk": (
        "adult.parquet --qid sex --sensitive income --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' "
        "--epsilon 1 --risk-epsilon 0.05",
        "adult.parquet --qid sex --sensitive income --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' "
        "--epsilon 1 --risk-epsilon 0.05 --ledger releases.db --purpose yearbook",
    ),
    "simulate": (f"{ADULT} --epsilon 1 --releases 200", f"{ADULT} --perturbation random-rounding:3 --releases 200"),
    "audit": (
        "adult.parquet sexes.csv --qid sex --sensitive income",
        "adult.parquet sexes.csv --qid sex --sensitive income --top 3",
    ),
    "average": (f"{ADULT} --epsilon 0.5 --releases 12", f"{ADULT} --epsilon 0.5 --releases 12 --operator basic"),
    "together assess": ("set.toml", "set.toml --check --releases 200"),
    "together split": ("set.toml --total-epsilon 2", "set.toml --total-epsilon 2 --use 2,1"),
    "serve": ("", "--folder tables --no-browser"),
    "demo": ("", "--save adult.parquet"),
    "ledger create": ("releases.db", "other.db --head noted.txt"),
    "ledger add": (
        "releases.db --attribute income --qid age,sex --epsilon 0.5 --mechanism geometric --purpose yearbook",
        "other.db --qid age,sex --rho 0.01 --head noted.txt --purpose 'counts by another tool'",
    ),
    "ledger limit": ("releases.db --epsilon 2", "releases.db --epsilon 5 --delta 1e-6 --operator rdp"),
    "ledger list": ("releases.db", "releases.db --kind release --json"),
    "ledger show": ("releases.db", "releases.db 1"),
    "ledger verify": ("releases.db", "releases.db --no-files"),
    "ledger checkpoint": ("releases.db", "other.db --head noted.txt"),
    "ledger recover": ("releases.db .", "releases.db . --json"),
    "ledger export": ("releases.db --output entries.jsonl", "releases.db --output entries.csv --spreadsheet-safe"),
    "ledger risk": ("releases.db adult.parquet", "releases.db adult.parquet --measure local --plot risk.svg"),
    "ledger plan": ("releases.db --epsilon 0.5", "releases.db --max-ceiling 0.75 --attribute income"),
}
"""What is typed after a command; `NOTES` say where the files come from, and tests run them all."""
SET_FILE = """source = "adult.parquet"
sensitive = "income"
epsilon = 1
[[table]]
qid = ["sex"]
[[table]]
qid = ["race"]
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
    """The examples of a command, whole.

    >>> list_examples("demo")
    ['cellrisk demo', 'cellrisk demo --save adult.parquet']
    """
    return [f"cellrisk {command} {rest}".rstrip() for rest in EXAMPLES[command]]


def list_notes(examples: list[str]) -> list[str]:
    """Where the files come from that the examples of a command read; those that they write themselves need no note.

    >>> list_notes(["cellrisk inspect adult.parquet"])
    ['cellrisk demo --save adult.parquet writes the table.']
    """
    shown = "\n".join(examples)
    if "set.toml" in shown:
        shown += SET_FILE
    notes = [note for file, note in NOTES.items() if file in shown and f"--output {file}" not in shown]
    return [note for note in notes if not any(example in note for example in examples)]


def fold(example: str, width: int = 76) -> str:
    """An example on lines that are not too long, broken before options; a shell reads them as one.

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
    """The options of a command by their panels, in the order of these; what has none is among `OTHER`."""
    found: dict[str, list[Any]] = {panel: [] for panel in PANELS}
    for each in parameters:
        if each.param_type_name == "option" and not each.hidden:
            found[getattr(each, "rich_help_panel", None) or OTHER].append(each)
    return {panel: options for panel, options in found.items() if options}


def show_default(record: str) -> str:
    """The help of an option; a default that is told in words has no parentheses of its own.

    >>> show_default("Which.  [default: (all)]")
    'Which.  [default: all]'
    """
    return re.sub(r"\[default: \((.*)\)\]$", r"[default: \1]", record)


def name_argument(argument: Any) -> str:
    """An argument as the line of usage names it."""
    name = str(argument.metavar or argument.name).strip("[]").upper()
    return name if argument.required else f"[{name}]"


class PanelCommand(TyperCommand):
    """A command whose help has panels and examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands after the command: the arguments' names as they are shown below, then the options."""
        arguments = [each for each in self.params if each.param_type_name == "argument"]
        return [*map(name_argument, arguments), str(self.options_metavar)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then each panel of options, then the examples."""
        parameters: list[Any] = self.get_params(ctx)
        arguments = [each for each in parameters if each.param_type_name == "argument"]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(name_argument(each), each.help or "") for each in arguments])
        for panel, options in find_panels(parameters).items():
            records = [each.get_help_record(ctx) for each in options]
            with formatter.section(panel):
                formatter.write_dl([(names, show_default(told)) for names, told in records])
        examples = list_examples(ctx.command_path.partition(" ")[2])
        with formatter.section("Examples"):
            formatter.write(indent("\n".join(map(fold, examples)), "  ") + "\n")
        notes = list_notes(examples)
        if notes:
            formatter.write("\n" + indent("\n".join(notes), "  ") + "\n")
