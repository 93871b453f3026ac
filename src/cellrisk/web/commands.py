"""The command line and the Python code that give the same numbers as the page."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from cellrisk.web import requests
from cellrisk.web.answers import Given
from cellrisk.web.jobs import Report
from cellrisk.web.tables import Recipe

NO_OPTION = "# A column of this table has a name that no option can hold; use the Python code.\n"


def write_commands(report: Report, given: Given, asked: requests.Setting) -> dict[str, str]:
    """Shell and Python for the table, its assessment, the curve, the choice if there is a limit, and the report."""
    delta = given.delta(asked.mechanism, asked.delta)
    others: dict[str, Any] = {"delta": delta} if delta else {}
    if given.perturbation is not None:
        return _write_perturbed(given, asked, others)
    others |= {"neighbours": asked.neighbours} if asked.neighbours != "add-remove" else {}
    epsilon, risk, limits = {"epsilon": asked.epsilon}, asked.risk, asked.limits
    choosing = {**limits, **(risk if {"max_risk", "margin"} & set(limits) else {})}
    name, mechanism = repr(asked.mechanism), ["--mechanism", asked.mechanism, *_options(others)]
    shell = [
        ["assess", *mechanism, *_options(epsilon)],
        ["curve", *mechanism, "--measure", asked.measure, "--csv", "curve.csv", "--plot", "curve.svg"],
        *([["choose", *mechanism, *_options(choosing)]] if limits else []),
        ["report", *mechanism, *_options({**epsilon, **risk, **limits}), "--output", "report.html"],
    ]
    python = [
        f"print(cr.assess(table, cr.mechanism({name}{_keywords({**epsilon, **others})})))",
        f"curve = cr.curve(table, {name}{_keywords({**others, 'measures': asked.measure})})",
        'curve.to_csv("curve.csv")',
        'curve.plot("curve.svg")',
        *([f"print(cr.choose(table, {name}{_keywords({**choosing, **others})}))"] if limits else []),
        f"cr.report(table, {name}{_keywords({**epsilon, **others, **risk, **limits, **_source(given)})})"
        '.save("report.html")',
    ]
    return _put_together(given, shell, python)


def _write_perturbed(given: Given, asked: requests.Setting, delta: dict[str, Any]) -> dict[str, str]:
    """The same for a perturbation: its assessment with the picture at equal risk, the riskiest cells, the report."""
    name = "" if given.perturbation is None else given.perturbation.name
    perturbation = ["--perturbation", name]
    compared = _options({"mechanism": asked.mechanism, **delta})
    shell = [
        ["assess", *perturbation, *compared, "--plot", "equal-risk.svg"],
        ["explain", *perturbation],
        ["report", *perturbation, *compared, *_options({**asked.risk, **asked.limits}), "--output", "report.html"],
    ]
    python = [
        f"found = cr.assess_perturbation(table, {name!r}, compare={asked.mechanism!r}{_keywords(delta)})",
        "print(found)",
        'found.plot("equal-risk.svg")',
        f"print(cr.explain(table, perturbation={name!r}))",
        f"report = cr.report(table, {asked.mechanism!r}, perturbation={name!r}"
        f"{_keywords({**delta, **asked.risk, **asked.limits, **_source(given)})})",
        'report.save("report.html")',
    ]
    return _put_together(given, shell, python)


def _put_together(given: Given, shell: list[list[str]], python: list[str]) -> dict[str, str]:
    """The commands as they are typed, and the code after the line that makes the table."""
    recipe, sensitive = given.recipe, given.sensitive
    path = f"./{recipe.command}" if recipe.command.startswith("-") else recipe.command
    table = [path, *_table_options(recipe, sensitive)]
    names = [*recipe.quasi_identifiers, sensitive]
    unusable = any("=" in name for name, _ in recipe.bins) or any("\n" in name or "\r" in name for name in names)
    arguments = _keywords(recipe.arguments(sensitive))
    tabulate = f"cr.tabulate({recipe.command!r}, {list(recipe.quasi_identifiers)!r}, {sensitive!r}{arguments})"
    lines = [shlex.join(["cellrisk", command, *table, *options]) for command, *options in shell]
    return {
        "shell": (NO_OPTION if unusable else "") + "\n".join(lines) + "\n",
        "python": "\n".join(["import cellrisk as cr", "", f"table = {tabulate}", *python]) + "\n",
    }


def _source(given: Given) -> dict[str, Any]:
    return {"source": given.recipe.name, "preparation": given.recipe.preparation(given.sensitive)}


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


def _keywords(given: dict[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in given.items() if value or value == 0.0)


def as_field(name: str) -> str:
    """Return a column's name as one field of an option that takes several, comma-separated.

    >>> print(as_field("age"), as_field("salary, yearly"))
    age "salary, yearly"
    """
    buffer = io.StringIO()
    padded = name != name.strip()
    csv.writer(buffer, lineterminator="", quoting=csv.QUOTE_ALL if padded else csv.QUOTE_MINIMAL).writerow([name])
    return buffer.getvalue()
