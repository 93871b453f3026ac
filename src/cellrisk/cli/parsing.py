"""What the words on the command line mean."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cellrisk.errors import InvalidInput

MOST_POINTS = 100_000


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


def parse_whole(option: str, text: str) -> int:
    """A whole number.

    >>> parse_whole("--seed", "7"), parse_whole("--releases", "1e6")
    (7, 1000000)
    """
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError, OverflowError):
            if float(text).is_integer():
                return int(float(text))
        raise InvalidInput(f"{option} must be a whole number", got=repr(text)) from None


def parse_numbers(option: str, text: str) -> list[float]:
    """Numbers between commas.

    >>> parse_numbers("--delta", "1e-5,1e-6")
    [1e-05, 1e-06]
    """
    parts = [part.strip() for part in text.split(",")]
    return [parse_number(option, part, "numbers between commas") for part in parts]


def parse_grid(text: str, option: str = "--epsilon") -> list[float]:
    """Numbers between commas, or low:high:points, evenly spaced in the logarithm.

    >>> parse_grid("0.1,1,10"), parse_grid("0.01:1:3")
    ([0.1, 1.0, 10.0], [0.01, 0.1, 1.0])
    """
    if ":" not in text:
        return parse_numbers(option, text)
    allowed = "low:high:points, for example 0.001:100:501"
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidInput(f"{option} cannot be read", got=repr(text), allowed=allowed)
    low, high = (parse_number(option, part, allowed) for part in parts[:2])
    points = parse_whole(f"the number of points of {option}", parts[2])
    if not (0 < low < high < float("inf") and 2 <= points <= MOST_POINTS):
        raise InvalidInput(f"{option} is no range", got=repr(text), allowed=f"{allowed}; 2 to {MOST_POINTS:,} points")
    import numpy as np

    return [float(f"{value:.15g}") for value in np.geomspace(low, high, points)]


def parse_range(option: str, text: str) -> tuple[float, float]:
    """Two numbers, low:high.

    >>> parse_range("--epsilon", "0.01:10")
    (0.01, 10.0)
    """
    low, colon, high = text.partition(":")
    if not colon:
        raise InvalidInput(f"{option} must be a range here", got=repr(text), allowed="low:high, for example 0.01:10")
    return parse_number(option, low), parse_number(option, high)


def parse_merges(values: Sequence[str] | None) -> dict[str, dict[str, list[str]]]:
    """Values of quasi-identifiers to be made one.

    >>> parse_merges(["education:school=9th|10th|11th"])
    {'education': {'school': ['9th', '10th', '11th']}}
    """
    merges: dict[str, dict[str, list[str]]] = {}
    for value in values or []:
        allowed = "column:new=old|old, for example education:school=9th|10th"
        target, text = _pair("--merge", value, allowed)
        column, colon, label = target.partition(":")
        if not (column and colon and label):
            raise InvalidInput("--merge cannot be read", got=repr(value), allowed=allowed)
        merges.setdefault(column, {})[label] = text.split("|")
    return merges


def parse_rules(values: Sequence[str] | None) -> list[dict[str, list[str]]]:
    """Combinations that cannot occur: all columns of a rule must match.

    >>> parse_rules(["sex=m;pregnant=yes", "age=0|1;job=cook"])
    [{'sex': ['m'], 'pregnant': ['yes']}, {'age': ['0', '1'], 'job': ['cook']}]
    """
    allowed = "column=label|label;column=label, for example sex=m;pregnant=yes"
    return [
        {name: text.split("|") for name, text in (_pair("--exclude", part, allowed) for part in value.split(";"))}
        for value in values or []
    ]
