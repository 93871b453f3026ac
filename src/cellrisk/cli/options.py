"""What the commands' options mean: from words on the command line or in cellrisk.toml to arguments."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cellrisk.errors import InvalidInput, UnknownName

CONFIG_FILE = "cellrisk.toml"


def split_names(values: Sequence[str] | None) -> list[str]:
    """Names from a repeatable, comma-separated option; a name with a comma goes in double quotes.

    >>> split_names(["age,sex", '"salary, yearly"'])
    ['age', 'sex', 'salary, yearly']
    """
    names = [name for row in csv.reader(values or [], skipinitialspace=True) for name in row]
    return [name for name in names if name]


def parse_bins(values: Sequence[str] | None) -> dict[str, float | list[float]]:
    """Bins by width or by edges.

    >>> parse_bins(["age=5", "hours=0/35/45/100"])
    {'age': 5.0, 'hours': [0.0, 35.0, 45.0, 100.0]}
    """
    bins: dict[str, float | list[float]] = {}
    for value in values or []:
        name, text = _pair("--bin", value, "column=width or column=edge/edge/edge, for example age=5 or age=0/18/65")
        numbers = [parse_number("--bin", part) for part in text.split("/")]
        bins[name] = numbers[0] if len(numbers) == 1 else numbers
    return bins


def parse_levels(values: Sequence[str] | None) -> dict[str, list[str]]:
    """Declared levels of sensitive attributes.

    >>> parse_levels(["income=<=50K|>50K"])
    {'income': ['<=50K', '>50K']}
    """
    pairs = [_pair("--levels", value, "column=level|level, for example income='<=50K|>50K'") for value in values or []]
    return {name: text.split("|") for name, text in pairs}


def parse_alpha(values: Sequence[str] | None) -> Any:
    """`mle`, `moments` or values in the order of the levels; `attribute=...` for one attribute of several.

    >>> parse_alpha(["1,1,1"]), parse_alpha(["income=moments", "sex=1,2"])
    ([1.0, 1.0, 1.0], {'income': 'moments', 'sex': [1.0, 2.0]})
    """
    if not values:
        return "mle"
    if len(values) == 1 and "=" not in values[0]:
        return _alpha(values[0])
    pairs = [_pair("--alpha", value, "attribute=mle, attribute=moments or attribute=1,1,1") for value in values]
    return {name: _alpha(text) for name, text in pairs}


def _alpha(text: str) -> str | list[float]:
    if text in ("mle", "moments"):
        return text
    return [parse_number("--alpha", part, "mle, moments, or numbers above 0 such as 1,1,1") for part in text.split(",")]


def parse_number(option: str, text: str, allowed: str = "a number") -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{option} must be a number", got=repr(text), allowed=allowed) from None


def _pair(option: str, value: str, allowed: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    if not (name and equals and text):
        raise InvalidInput(f"{option} cannot be read", got=repr(value), allowed=allowed)
    return name, text


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from --config, or from cellrisk.toml in the working folder; the command line wins.

    Keys are the options' long names; a table named like a command holds for that command alone.
    """
    file = path or Path(CONFIG_FILE)
    if path is None and not file.is_file():
        return None
    values = _load_toml(file)
    commands = context.parent.command.commands if context.parent else {}  # type: ignore[attr-defined]
    own = values.get(context.command.name or "", {})
    common = {key: value for key, value in values.items() if key not in commands}
    known = {key for command in commands.values() for key in _long_options(command)}
    mine = _long_options(context.command)
    defaults: dict[str, Any] = {}
    for key, value in {**common, **own}.items():
        if key not in known:
            raise UnknownName(f"unknown setting in {file.name}", got=key, allowed=", ".join(sorted(known)))
        if key in mine:
            parameter, negated = mine[key]
            defaults[parameter.name] = not value if negated else _as_option(value, parameter.multiple)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def _long_options(command: Any) -> dict[str, tuple[Any, bool]]:
    """Each long option of a command without its dashes: its parameter, and whether the option switches it off."""
    found = {}
    for parameter in command.params:
        for option in parameter.opts:
            found[option.removeprefix("--")] = (parameter, False)
        for option in parameter.secondary_opts:
            found[option.removeprefix("--")] = (parameter, True)
    return {key: value for key, value in found.items() if key not in ("config", "help", "source")}


def _as_option(value: Any, repeatable: bool) -> Any:
    """A TOML value in the shape the command line would give.

    >>> _as_option({"age": 5, "hours": [0, 40, 100]}, True), _as_option([1, 1], True), _as_option("age", True)
    (['age=5', 'hours=0/40/100'], ['1,1'], ['age'])
    """
    if isinstance(value, dict):
        return [f"{name}={_joined(part, '/', '|')}" for name, part in value.items()]
    if not repeatable:
        return value
    if isinstance(value, list) and not _numeric(value):
        return [str(part) for part in value]
    return [_joined(value, ",", ",")]


def _joined(value: Any, between_numbers: str, between_words: str) -> str:
    if isinstance(value, list):
        return (between_numbers if _numeric(value) else between_words).join(str(part) for part in value)
    return str(value)


def _numeric(values: list[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _load_toml(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise InvalidInput("the configuration file does not exist", got=str(file)) from None
    except OSError as error:
        raise InvalidInput("the configuration file cannot be read", got=f"{file} ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InvalidInput("the configuration file is not valid TOML", got=str(file)) from None


Source = Annotated[
    str, typer.Argument(metavar="FILE", help="CSV, Parquet or DuckDB file, a glob in quotes, or a database's address.")
]
Qid = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Quasi-identifier; repeat it or separate by commas.")
]
Sensitive = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Sensitive attribute; repeat it or separate by commas.")
]
Count = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of counts, if rows are cells.")]
Bin = Annotated[list[str] | None, typer.Option(metavar="COLUMN=BINS", help="age=5, or age=0/18/65/120 for edges.")]
Levels = Annotated[list[str] | None, typer.Option(metavar="COLUMN=LEVELS", help="Declared: income='<=50K|>50K'.")]
Missing = Annotated[str, typer.Option(metavar="RULE", help="Missing values: category, drop or error.")]
Engine = Annotated[str | None, typer.Option(metavar="NAME", help="Where counting happens: duckdb or spark.")]
Table = Annotated[str | None, typer.Option(metavar="NAME", help="Table of a DuckDB file or of a database's address.")]
MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory for counting, for example 4GB; past it, it spills to disk."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"Settings file; {CONFIG_FILE} in this folder otherwise.",
        callback=read_config,
        is_eager=True,
    ),
]
MechanismName = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="laplace, gaussian, gaussian-pdp, gaussian-analytic, geometric or discrete-gaussian."
    ),
]
Epsilon = Annotated[str | None, typer.Option(metavar="NUMBER", help="Privacy loss.")]
Delta = Annotated[str | None, typer.Option(metavar="NUMBER", help="For the Gaussian mechanisms.")]
Neighbours = Annotated[str, typer.Option(metavar="RULE", help="add-remove or replace.")]
Threshold = Annotated[str, typer.Option(metavar="NUMBER", help="Counts below this half-integer after noise become 0.")]
MeasureNames = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="local, expected, shrinkage, marginal, marginal_shrinkage; default all."),
]
FormNames = Annotated[list[str] | None, typer.Option(metavar="NAME", help="published, exact, tight; default all.")]
WeightNames = Annotated[list[str] | None, typer.Option(metavar="NAME", help="uniform, records; default both.")]
AlphaValues = Annotated[
    list[str] | None,
    typer.Option(metavar="ALPHA", help="Dirichlet prior: mle (default), moments, or 1,1,1 in the order of the levels."),
]
SizesName = Annotated[str, typer.Option(metavar="NAME", help="Cell sizes: poisson or negbin.")]
SizesFit = Annotated[str, typer.Option(metavar="NAME", help="How sizes are fitted: mle, moments or bayes.")]
ZeroTruncation = Annotated[bool, typer.Option(help="Empty cells are not seen: fit sizes from 1 on.")]
Attack = Annotated[str, typer.Option(metavar="NAME", help="homogeneity.")]
MaxRisk = Annotated[str | None, typer.Option(metavar="R", help="Exit with code 3 where the risk is above R.")]
