"""The commands that give the same numbers as the page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from cellrisk.web import requests
from cellrisk.web.answers import Given
from cellrisk.web.jobs import Report
from cellrisk.web.tables import Recipe

NO_OPTION = "# A column of this table has a name that no option can hold; use cr.tabulate in Python.\n"


def write_commands(report: Report, given: Given, asked: requests.Setting) -> dict[str, str]:
    """The table's assessment, the curve, the choice if there is a limit, and the report."""
    recipe, sensitive, limits = given.recipe, given.sensitive, asked.limits
    delta = given.delta(asked.mechanism, asked.delta)
    method = _options({"mechanism": asked.mechanism, **({"delta": delta} if delta else {})})
    method += [] if asked.neighbours == "add-remove" else ["--neighbours", asked.neighbours]
    epsilon = _options({"epsilon": asked.epsilon})
    choosing = _options({**limits, **(asked.risk if {"max_risk", "margin"} & set(limits) else {})})
    lines = [
        ["assess", *method, *epsilon],
        ["curve", *method, "--measure", asked.measure, "--csv", "curve.csv", "--plot", "curve.svg"],
        *([["choose", *method, *choosing]] if limits else []),
        ["report", *method, *epsilon, *_options({**asked.risk, **limits}), "--output", "report.html"],
    ]
    path = f"./{recipe.command}" if recipe.command.startswith("-") else recipe.command
    table = [path, *_table_options(recipe, sensitive)]
    names = [*recipe.quasi_identifiers, sensitive]
    unusable = any("=" in name for name, _ in recipe.bins) or any("\n" in name or "\r" in name for name in names)
    written = [shlex.join(["cellrisk", command, *table, *options]) for command, *options in lines]
    return {"shell": (NO_OPTION if unusable else "") + "\n".join(written) + "\n"}


def _options(given: Mapping[str, Any]) -> list[str]:
    """Return arguments of Python as options of the command line.

    >>> _options({"max_risk": 0.1, "form": "tight", "epsilon": 1.0})
    ['--max-risk', '0.1', '--form', 'tight', '--epsilon', '1']
    """
    pairs = [(f"--{name.replace('_', '-')}", str(value).removesuffix(".0")) for name, value in given.items()]
    return [part for pair in pairs for part in pair]


def _table_options(recipe: Recipe, sensitive: str) -> Iterator[str]:
    for name in recipe.quasi_identifiers:
        yield from ("--qid", as_field(name))
    yield from ("--sensitive", as_field(sensitive))
    used = {*recipe.quasi_identifiers, sensitive}
    for name, text in recipe.bins:
        if name in used:
            yield from ("--bin", f"{name}={text}")
    if recipe.count is not None:
        yield from ("--count", recipe.count if isinstance(recipe.count, str) else "none")
    if recipe.missing != "category":
        yield from ("--missing", recipe.missing)


def as_field(name: str) -> str:
    """Return a column's name as one field of an option that takes several, comma-separated.

    >>> print(as_field("age"), as_field("salary, yearly"))
    age "salary, yearly"
    """
    plain = re.fullmatch(r'[^\s",]([^",\r\n]*[^\s",])?', name)
    return name if plain else '"' + name.replace('"', '""') + '"'
