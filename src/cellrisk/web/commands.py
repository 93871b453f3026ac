"""The command line and the Python code that give the same numbers as the page; and a set as its file spells it."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.system.checks import read_bins
from cellrisk.web.answer_models import Commands, SetCommands
from cellrisk.web.recipes import Recipe, find_delta
from cellrisk.web.request_models import LIMITS, EpsilonRequest, PerturbedRequest, SetChoice, SetTableChoice

OF_THE_RISK = {"max_risk", "margin"}
"""Limits that are on the risk in the words of the page; the others have words of their own."""
NO_OPTION = "# A column or level of this table has a name that no option can hold; use the Python code.\n"
SHARED = ("mechanism", "epsilon", "threshold")
USUAL = {"missing": "category", "outside": "error", "neighbours": "add-remove"}


def write_commands(recipe: Recipe, path: str, asked: EpsilonRequest, sensitive: str, records: int) -> Commands:
    """Shell and Python for the table, its assessment, the curve, the choice where there is a limit, and the report."""
    epsilon, others = {"epsilon": asked.epsilon}, _find_delta(asked, records)
    others |= {"neighbours": asked.neighbours} if asked.neighbours != "add-remove" else {}
    risk, limits = _find_risk(asked), given_limits(asked)
    about = risk if OF_THE_RISK & set(limits) else {}
    table = [as_argument(path), *_table_options(recipe, sensitive), "--mechanism", asked.mechanism, *_options(others)]
    shell = [
        ["assess", *table, *_options(epsilon)],
        ["curve", *table, "--measure", asked.measure, "--csv", "curve.csv", "--plot", "curve.svg"],
        *([["choose", *table, *_options({**about, **limits})]] if limits else []),
        ["report", *table, *_options({**epsilon, **risk, **limits}), "--output", "report.html"],
    ]
    name = repr(asked.mechanism)
    report = {**epsilon, **others, **risk, **limits, **_tell_source(recipe, sensitive)}
    python = [
        f"print(cr.assess(table, cr.mechanism({name}{_keywords({**epsilon, **others})})))",
        f"curve = cr.curve(table, {name}{_keywords({**others, 'measures': asked.measure})})",
        'curve.to_csv("curve.csv")',
        'curve.plot("curve.svg")',
        *([f"print(cr.choose(table, {name}{_keywords({**limits, **about, **others})}))"] if limits else []),
        f'cr.report(table, {name}{_keywords(report)}).save("report.html")',
    ]
    return _put_together(recipe, path, sensitive, shell, python)


def write_perturbed_commands(
    recipe: Recipe, path: str, perturbation: str, asked: PerturbedRequest, sensitive: str, records: int
) -> Commands:
    """The same for a perturbation: its assessment with the picture at equal risk, the riskiest cells, the report."""
    delta, risk, limits = _find_delta(asked, records), _find_risk(asked), given_limits(asked)
    table = [as_argument(path), *_table_options(recipe, sensitive), "--perturbation", perturbation]
    compared = _options({"mechanism": asked.mechanism, **delta})
    shell = [
        ["assess", *table, *compared, "--plot", "equal-risk.svg"],
        ["explain", *table],
        ["report", *table, *compared, *_options({**risk, **limits}), "--output", "report.html"],
    ]
    report = {**delta, **risk, **limits, **_tell_source(recipe, sensitive)}
    python = [
        f"found = cr.assess_perturbation(table, {perturbation!r}, compare={asked.mechanism!r}{_keywords(delta)})",
        "print(found)",
        'found.plot("equal-risk.svg")',
        f"print(cr.explain(table, perturbation={perturbation!r}))",
        f"report = cr.report(table, {asked.mechanism!r}, perturbation={perturbation!r}{_keywords(report)})",
        'report.save("report.html")',
    ]
    return _put_together(recipe, path, sensitive, shell, python)


def _put_together(recipe: Recipe, path: str, sensitive: str, shell: list[list[str]], python: list[str]) -> Commands:
    """The commands as they are typed, and the code after the line that makes the table."""
    warning = "" if _can_be_options(recipe) else NO_OPTION
    made = ["import cellrisk as cr", "", f"table = {write_tabulate(recipe, path, sensitive)}"]
    return Commands(
        shell=warning + "".join(f"{shlex.join(['cellrisk', *line])}\n" for line in shell),
        python="\n".join([*made, *python]) + "\n",
    )


def _find_delta(asked: EpsilonRequest | PerturbedRequest, records: int) -> dict[str, Any]:
    delta = find_delta(asked.mechanism, asked.delta, records)
    return {"delta": delta} if delta else {}


def _find_risk(asked: EpsilonRequest | PerturbedRequest) -> dict[str, str]:
    return {"measure": asked.measure, "form": asked.form, "weights": asked.weights}


def _tell_source(recipe: Recipe, sensitive: str) -> dict[str, Any]:
    return {"source": recipe.name, "preparation": list_preparation(recipe, sensitive)}


def _options(given: Mapping[str, Any]) -> list[str]:
    """Arguments of Python as options of the command line.

    >>> _options({"max_risk": 0.1, "form": "tight"})
    ['--max-risk', '0.1', '--form', 'tight']
    """
    return [
        part
        for name, value in given.items()
        for part in (f"--{name.replace('_', '-')}", value if isinstance(value, str) else number(value))
    ]


def given_limits(asked: EpsilonRequest | PerturbedRequest) -> dict[str, float]:
    """The limits of the page, by the names that `choose` gives them."""
    found = {name: getattr(asked, name, None) for name in LIMITS}
    return {name: most for name, most in found.items() if most is not None}


def _table_options(recipe: Recipe, sensitive: str) -> Iterator[str]:
    for name in recipe.quasi_identifiers:
        yield from ("--qid", as_field(name))
    yield from ("--sensitive", as_field(sensitive))
    used = {*recipe.quasi_identifiers, sensitive}
    for name, text in recipe.bins:
        if name in used:
            yield from ("--bin", f"{name}={text}")
    for name, labels in recipe.levels:
        if name in used:
            yield from ("--levels", f"{name}={'|'.join(labels)}")
    if recipe.count is not None:
        yield from ("--count", recipe.count if isinstance(recipe.count, str) else "none")
    if recipe.missing != "category":
        yield from ("--missing", recipe.missing)
    if recipe.outside != "error":
        yield from ("--outside", recipe.outside)


def _can_be_options(recipe: Recipe) -> bool:
    names = [name for name, _ in (*recipe.bins, *recipe.levels)]
    labels = [label for _, labels in recipe.levels for label in labels]
    every = [*recipe.quasi_identifiers, *recipe.sensitive]
    return not (
        any("=" in name for name in names)
        or any("|" in label for label in labels)
        or any("\n" in name or "\r" in name for name in every)
    )


def write_tabulate(recipe: Recipe, path: str, sensitive: str) -> str:
    """How the table is made, in Python."""
    used = {*recipe.quasi_identifiers, sensitive}
    given: dict[str, Any] = recipe.arguments()
    for name in ("bins", "levels"):
        given[name] = {column: value for column, value in given.get(name, {}).items() if column in used}
    return f"cr.tabulate({path!r}, {list(recipe.quasi_identifiers)!r}, {sensitive!r}{_keywords(given)})"


def list_preparation(recipe: Recipe, sensitive: str) -> list[str]:
    """What was done to the columns in use, as a report tells it."""
    used = {*recipe.quasi_identifiers, sensitive}
    return [f"{name} in bins: {text}" for name, text in recipe.bins if name in used]


def _keywords(given: dict[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in given.items() if value or value == 0.0)


def as_field(name: str) -> str:
    """A column's name as one field of an option that takes several between commas.

    >>> print(as_field("age"), as_field("salary, yearly"))
    age "salary, yearly"
    """
    buffer = io.StringIO()
    padded = name != name.strip()
    csv.writer(buffer, lineterminator="", quoting=csv.QUOTE_ALL if padded else csv.QUOTE_MINIMAL).writerow([name])
    return buffer.getvalue()


def as_argument(path: str) -> str:
    """A path that is not taken for an option."""
    return f"./{path}" if path.startswith("-") else path


def number(value: float) -> str:
    """The shortest text that gives the same number.

    >>> number(1.0), number(0.1), number(3e-05)
    ('1', '0.1', '3e-05')
    """
    text = repr(float(value))
    return text.removesuffix(".0")


def spell_set(choice: SetChoice) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What holds for all tables, and each table, with the keys of a set file.

    Bins that every table with a column shares stand with what holds for all. A delta does too, where every mechanism
    takes one; else it stands at the tables whose mechanism does.
    """
    tables = [_spell_table(number, each, choice) for number, each in enumerate(choice.tables, start=1)]
    common: dict[str, Any] = {}
    for column in dict.fromkeys(name for each in tables for name in each["bin"]):
        given = [each["bin"].get(column) for each in tables if column in each["qid"]]
        if all(each == given[0] for each in given):
            common[column] = given[0]
    for each in tables:
        own = {name: bins for name, bins in each.pop("bin").items() if name not in common}
        each |= {"bin": own} if own else {}
    shared: dict[str, Any] = {"sensitive": choice.sensitive}
    shared |= {name: getattr(choice, name) for name in SHARED if getattr(choice, name) is not None}
    deltas = [each.get("delta") for each in tables]
    if choice.delta is not None and all(each == choice.delta for each in deltas):
        shared["delta"] = choice.delta
        for each in tables:
            del each["delta"]
    shared |= {name: getattr(choice, name) for name, usual in USUAL.items() if getattr(choice, name) != usual}
    shared |= {"count": "none" if choice.count is False else choice.count} if choice.count is not None else {}
    shared |= {"levels": choice.levels} if choice.levels else {}
    return shared | ({"bin": common} if common else {}), tables


def _spell_table(number: int, table: SetTableChoice, choice: SetChoice) -> dict[str, Any]:
    names = {name: getattr(table, name) for name in ("name", *SHARED)}
    delta = None if MECHANISMS[table.mechanism or choice.mechanism].pure else table.delta or choice.delta
    noise = None if choice.noise == "independent" else choice.noise
    own = {**names, "where": table.where, "delta": delta, "noise": noise}
    bins = {
        column: _shorten(read_bins(text, f"“Bins” of {column} in table {number}"))
        for column, text in table.bins.items()
        if column in table.quasi_identifiers
    }
    given = {name: value for name, value in own.items() if value is not None}
    return {"qid": list(table.quasi_identifiers), **given, "bin": bins}


def _shorten(bins: float | list[float]) -> Any:
    """Whole numbers without a point, as people write them."""
    if isinstance(bins, list):
        return [_shorten(each) for each in bins]
    return int(bins) if bins.is_integer() and abs(bins) < 2**53 else bins


def find_arguments(choice: SetChoice) -> dict[str, Any]:
    """The arguments of `assess_together` after the source."""
    shared, tables = spell_set(choice)
    named = {"bins" if name == "bin" else name: value for name, value in shared.items()}
    if choice.count is False:
        named["count"] = False
    sensitive = named.pop("sensitive")
    return {"tables": tables, "sensitive": sensitive, **named}


def write_set_commands(choice: SetChoice, path: str) -> SetCommands:
    """The set file, the command that reads it, and the same in Python."""
    return SetCommands(
        set_file=write_set_file(choice, path),
        shell="cellrisk together set.toml\n",
        python=write_set_python(choice, path),
    )


def write_set_file(choice: SetChoice, path: str) -> str:
    """The set as TOML."""
    shared, tables = spell_set(choice)
    blocks = [_write_lines({"source": path, **shared})]
    blocks += [f"[[table]]\n{_write_lines(each)}" for each in tables]
    return "\n".join(blocks)


def write_set_python(choice: SetChoice, path: str) -> str:
    arguments = find_arguments(choice)
    tables, sensitive = arguments.pop("tables"), arguments.pop("sensitive")
    rows = "".join(f"    {each!r},\n" for each in tables)
    given = "".join(f", {name}={value!r}" for name, value in arguments.items())
    return (
        f"import cellrisk as cr\n\ntables = [\n{rows}]\n"
        f"print(cr.assess_together({path!r}, tables, {sensitive!r}{given}))\n"
    )


def _write_lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{_write_key(key)} = {write_value(value)}\n" for key, value in values.items())


def _write_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else write_value(key)


def write_value(value: Any) -> str:
    """A value as TOML spells it. A text is spelt as in JSON, and what TOML alone escapes is escaped too.

    >>> print(write_value({"sex": ["f", "m"], "age group": {"from": 18, "below": 65.5}}))
    { sex = ["f", "m"], "age group" = { from = 18, below = 65.5 } }
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_write_key(key)} = {write_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(write_value, value))}]"
    return repr(value)
