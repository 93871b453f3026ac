"""What the words on the command line mean. Typer calls these functions with a text, or a value of a settings file.

Typer's own parsers would not print what was given, nor read 1e6 or 5%. What a settings file gives as a table is a pair
of a column and its values already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_bins, read_number, read_numbers
from cellrisk.system.choices import AlphaEstimate, list_words

MOST_POINTS = 100_000


def parse_share(given: Any) -> float:
    """Return a share, also if it is written in percent.

    >>> parse_share("0.005"), parse_share("0.5%")
    (0.005, 0.005)
    """
    text = str(given).strip()
    if not text.endswith("%"):
        return read_number(text)
    return float(f"{read_number(text[:-1].strip(), 'a share such as 0.005 or 0.5%') / 100:.15g}")


def parse_whole(given: Any) -> int:
    """Return a whole number.

    >>> parse_whole("7"), parse_whole("1e6")
    (7, 1000000)
    """
    if str(given).isdecimal():  # with all its digits
        return int(str(given))
    number = read_number(given, "a whole number")
    if not number.is_integer():
        raise InvalidInput("must be a whole number", got=repr(str(given)))
    return int(number)


def parse_numbers(given: Any, parse: Callable[[str], Any] = read_number) -> list[Any]:
    """Return comma-separated numbers.

    >>> parse_numbers("1e-5,1e-6"), parse_numbers([1, 2]), parse_numbers("0.8, 95%", parse_share)
    ([1e-05, 1e-06], [1.0, 2.0], [0.8, 0.95])
    """
    return [parse(part.strip()) for part in _join(given).split(",")]


parse_shares = partial(parse_numbers, parse=parse_share)
parse_whole_numbers = partial(parse_numbers, parse=parse_whole)


def parse_points(given: Any) -> list[float]:
    """Return comma-separated numbers, the two ends of low:high, or the numbers of low:high:points, evenly spaced in the
    logarithm.

    >>> parse_points("0.1,1,10"), parse_points("0.01:10"), parse_points("0.01:1:3")
    ([0.1, 1.0, 10.0], [0.01, 10.0], [0.01, 0.1, 1.0])
    """
    text = _join(given)
    if ":" not in text:
        return parse_numbers(text)
    allowed = "low:high, or low:high:points, for example 0.001:100:501"
    low, high, *points = (read_number(part, allowed) for part in text.split(":"))
    number = points[0] if len(points) == 1 else 2 if not points else 0
    if not (0 < low < high < float("inf") and 2 <= number <= MOST_POINTS and number == int(number)):
        raise InvalidInput("is not a range", got=repr(text), allowed=f"{allowed}; 2 to {MOST_POINTS:,} points")
    import numpy as np

    return [float(f"{value:.15g}") for value in np.geomspace(low, high, int(number))]


def parse_range(given: Any) -> list[float]:
    """Return the two ends of low:high.

    >>> parse_range("0.01:10")
    [0.01, 10.0]
    """
    ends = parse_points(given)
    if len(ends) != 2:
        raise InvalidInput("is not a range", got=repr(_join(given)), allowed="low:high, for example 0.01:10")
    return ends


def parse_bins(value: Any) -> tuple[str, float | list[float]]:
    """Return a column with the width of its bins, or with their edges.

    >>> parse_bins("age=5"), parse_bins("hours=0/35/45/100"), parse_bins(("age", [0, 18]))
    (('age', 5.0), ('hours', [0.0, 35.0, 45.0, 100.0]), ('age', [0.0, 18.0]))
    """
    name, given = _pair(value, "column=width or column=edge/edge/edge, for example age=5 or age=0/18/65")
    return name, [read_number(edge) for edge in given] if isinstance(given, list) else read_bins(str(given))


def parse_levels(value: Any) -> tuple[str, list[str]]:
    """Return a column with its declared levels.

    >>> parse_levels("income=<=50K|>50K")
    ('income', ['<=50K', '>50K'])
    """
    name, given = _pair(value, "column=level|level, for example income='<=50K|>50K'")
    return name, _labels(given)


def parse_alpha(value: Any) -> tuple[str, str | list[float]]:
    """Return `mle`, `moments` or values in the order of the levels, after the name of the attribute if there is one.

    >>> parse_alpha("1,1,1"), parse_alpha("income=moments")
    (('', [1.0, 1.0, 1.0]), ('income', 'moments'))
    """
    allowed = "mle, moments or numbers such as 1,1,1; of one attribute: attribute=mle"
    name, given = _pair(value, allowed) if isinstance(value, tuple) or "=" in value else ("", value)
    return name, given if given in list_words(AlphaEstimate) else read_numbers(_join(given), allowed=allowed)


def parse_merge(value: Any) -> tuple[str, str, list[str]]:
    """Return a quasi-identifier, a new value of it, and the values that it replaces.

    >>> parse_merge("education:school=9th|10th|11th")
    ('education', 'school', ['9th', '10th', '11th'])
    """
    allowed = "column:new=old|old, for example education:school=9th|10th"
    target, given = _pair(value, allowed)
    column, colon, label = target.partition(":")
    if not (column and colon and label):
        raise InvalidInput("cannot be read", got=repr(value), allowed=allowed)
    return column, label, _labels(given)


def parse_rule(value: Any) -> dict[str, list[str]]:
    """Return a combination that cannot occur: all of its columns must match.

    >>> parse_rule("sex=m;age=0|1")
    {'sex': ['m'], 'age': ['0', '1']}
    """
    allowed = "column=label|label;column=label, for example sex=m;pregnant=yes"
    pairs = value.items() if isinstance(value, dict) else [_pair(part, allowed) for part in value.split(";")]
    if not pairs:
        raise InvalidInput("names no column", allowed=allowed)
    return {name: _labels(given) for name, given in pairs}


def _join(given: Any) -> str:
    """Return the text of a value of a settings file."""
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


def _labels(given: Any) -> list[str]:
    """Return labels from a list of a settings file, or from a text with bars."""
    return list(given) if isinstance(given, list) else str(given).split("|")


def _pair(value: Any, allowed: str) -> tuple[str, Any]:
    if isinstance(value, tuple):
        return value
    name, equals, text = value.partition("=")
    if not (name and equals and text):
        raise InvalidInput("cannot be read", got=repr(value), allowed=allowed)
    return name, text
