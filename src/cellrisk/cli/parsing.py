"""What the words on the command line mean. Typer calls these functions, and a refusal is told with the option's name.

Each takes a text, or a value of a settings file. Typer's own readers would not say what was given, nor take 1e6.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_bins, read_number, read_numbers
from cellrisk.system.words import AlphaEstimate, list_words

MOST_POINTS = 100_000


def split_names(values: Sequence[str] | None) -> list[str]:
    """Names from a repeatable, comma-separated option; a name with a comma goes in double quotes.

    >>> split_names(["age,sex", '"salary, yearly"'])
    ['age', 'sex', 'salary, yearly']
    """
    names = [name for row in csv.reader(values or [], skipinitialspace=True) for name in row]
    return [name for name in names if name]


def parse_whole(given: Any, allowed: str | None = None) -> int:
    """A whole number.

    >>> parse_whole("7"), parse_whole("1e6")
    (7, 1000000)
    """
    text = str(given)
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError, OverflowError):
            if float(text).is_integer():
                return int(float(text))
        raise InvalidInput("must be a whole number", got=repr(text), allowed=allowed) from None


def parse_word(given: Any, kind: Any) -> str:
    """A word of a closed list.

    >>> from cellrisk.system.words import Weights
    >>> parse_word("records", Weights)
    'records'
    """
    if given not in list_words(kind):
        raise InvalidInput("must be a known word", got=repr(given)[:60], allowed=", ".join(list_words(kind)))
    return str(given)


def parse_whole_numbers(given: Any) -> list[int]:
    """Whole numbers between commas.

    >>> parse_whole_numbers("1,2,3")
    [1, 2, 3]
    """
    return [parse_whole(part.strip(), "whole numbers between commas") for part in str(given).split(",")]


def parse_points(given: Any) -> list[float]:
    """Numbers between commas, or low:high:points, evenly spaced in the logarithm.

    >>> parse_points("0.1,1,10"), parse_points("0.01:1:3")
    ([0.1, 1.0, 10.0], [0.01, 0.1, 1.0])
    """
    text = str(given)
    if ":" not in text:
        return read_numbers(text)
    allowed = "low:high:points, for example 0.001:100:501"
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidInput("cannot be read", got=repr(text), allowed=allowed)
    low, high = (read_number(part, allowed) for part in parts[:2])
    points = parse_whole(parts[2], allowed)
    if not (0 < low < high < float("inf") and 2 <= points <= MOST_POINTS):
        raise InvalidInput("is no range", got=repr(text), allowed=f"{allowed}; 2 to {MOST_POINTS:,} points")
    import numpy as np

    return [float(f"{value:.15g}") for value in np.geomspace(low, high, points)]


def parse_range(given: Any) -> list[float]:
    """Two numbers, low:high.

    >>> parse_range("0.01:10")
    [0.01, 10.0]
    """
    allowed = "low:high, for example 0.01:10"
    low, colon, high = str(given).partition(":")
    if not colon:
        raise InvalidInput("must be a range here", got=repr(str(given)), allowed=allowed)
    return [read_number(low, allowed), read_number(high, allowed)]


def parse_bins(value: str) -> tuple[str, float | list[float]]:
    """A column with the width of its bins, or with their edges.

    >>> parse_bins("age=5"), parse_bins("hours=0/35/45/100")
    (('age', 5.0), ('hours', [0.0, 35.0, 45.0, 100.0]))
    """
    name, text = _pair(value, "column=width or column=edge/edge/edge, for example age=5 or age=0/18/65")
    return name, read_bins(text)


def parse_levels(value: str) -> tuple[str, list[str]]:
    """A sensitive attribute with its declared levels.

    >>> parse_levels("income=<=50K|>50K")
    ('income', ['<=50K', '>50K'])
    """
    name, text = _pair(value, "column=level|level, for example income='<=50K|>50K'")
    return name, text.split("|")


def parse_alpha(value: str) -> tuple[str, str | list[float]]:
    """`mle`, `moments` or values in the order of the levels, after the name of the attribute where there are several.

    >>> parse_alpha("1,1,1"), parse_alpha("income=moments")
    (('', [1.0, 1.0, 1.0]), ('income', 'moments'))
    """
    allowed = "mle, moments or numbers such as 1,1,1; of one attribute: attribute=mle"
    name, text = _pair(value, allowed) if "=" in value else ("", value)
    return name, text if text in list_words(AlphaEstimate) else read_numbers(text, allowed=allowed)


def parse_merge(value: str) -> tuple[str, str, list[str]]:
    """A quasi-identifier, a new value of it, and the values that are made one.

    >>> parse_merge("education:school=9th|10th|11th")
    ('education', 'school', ['9th', '10th', '11th'])
    """
    allowed = "column:new=old|old, for example education:school=9th|10th"
    target, text = _pair(value, allowed)
    column, colon, label = target.partition(":")
    if not (column and colon and label):
        raise InvalidInput("cannot be read", got=repr(value), allowed=allowed)
    return column, label, text.split("|")


def parse_rule(value: str) -> dict[str, list[str]]:
    """A combination that cannot occur: all columns of it must match.

    >>> parse_rule("sex=m;age=0|1")
    {'sex': ['m'], 'age': ['0', '1']}
    """
    allowed = "column=label|label;column=label, for example sex=m;pregnant=yes"
    return {name: text.split("|") for name, text in (_pair(part, allowed) for part in value.split(";"))}


def _pair(value: str, allowed: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    if not (name and equals and text):
        raise InvalidInput("cannot be read", got=repr(value), allowed=allowed)
    return name, text
