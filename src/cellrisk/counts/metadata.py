"""What a file beside the data declares of its columns: levels and bounds, written down once and used here.

CSV on the Web (W3C), Table Schema and Data Package (Frictionless) are JSON.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from cellrisk.counts.columns import exact, is_number, scalar
from cellrisk.counts.files import refusals_of_the_system
from cellrisk.errors import InvalidInput

LARGEST_FILE = 1 << 20
MOST_CODES = 1000
"""Whole numbers between two bounds that are taken for the levels of a column."""
PLAIN = re.compile(r"[^\\.^$*+?()\[\]{}|]+")
"""A piece of a pattern that stands for itself."""
WHOLE = ("int", "integer", "long", "short", "byte", "nonNegativeInteger", "positiveInteger")
KINDS = "CSVW or a Table Schema (.json)"


@dataclass(frozen=True)
class Metadata:
    """What is declared of each column."""

    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The least and the largest value."""

    def declare(
        self, columns: Sequence[str], bins: Mapping[str, Any] | None, levels: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return bins and levels of the columns in use: those that are given, or else those that are declared.

        A width becomes edges, its multiples from one bound to the other, so the bins are declared as well.

        >>> Metadata(levels={"sex": ("f", "m")}, bounds={"age": (18, 33)}).declare(["sex", "age"], {"age": 5}, None)
        ({'age': [15.0, 20.0, 25.0, 30.0, 35.0]}, {'sex': ('f', 'm')})
        """
        all_bins, all_levels = dict(bins or {}), dict(levels or {})
        for name in columns:
            width = scalar(all_bins.get(name))
            if name in self.bounds and is_number(width) and width > 0:
                step, (low, high) = Fraction(exact(width)), (Fraction(exact(bound)) for bound in self.bounds[name])
                first, last = math.ceil(low / step) - 1, math.ceil(high / step)
                if last - first > MOST_CODES:
                    what, got = "has bounds with too many bins of this width", f"{last - first:,}"
                    raise _refuse(what, got=got, allowed=f"{MOST_CODES:,}")
                all_bins[name] = [float(multiple * step) for multiple in range(first, last + 1)]
            elif name in self.levels and name not in all_bins:
                all_levels.setdefault(name, self.levels[name])
        return all_bins, all_levels


def _refuse(what: str, got: object = None, allowed: str | None = None) -> InvalidInput:
    return InvalidInput(what, option="metadata", got=got, allowed=allowed, code="metadata")


def read_metadata(path: str | os.PathLike[str]) -> Metadata:
    """Return what a JSON file declares of the columns of one table: CSVW, a Table Schema or a Data Package."""
    file = Path(path)
    with refusals_of_the_system(file), file.open("rb") as stream:
        text = stream.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise _refuse("is too large", allowed=f"up to {LARGEST_FILE:,} bytes")
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        raise _refuse("is not JSON that can be read", allowed=KINDS) from None
    for key in ("tables", "resources", "tableSchema", "schema"):
        inner = table.get(key) if isinstance(table, dict) else None
        if isinstance(inner, list) and len(inner) != 1:
            raise _refuse("must describe one table", f"{len(inner)} tables")
        table = inner[0] if isinstance(inner, list) else inner if isinstance(inner, dict) else table
    listed = (table.get("columns") or table.get("fields")) if isinstance(table, dict) else None
    if not isinstance(listed, list):
        raise _refuse("lists no columns", allowed=KINDS)
    levels: dict[str, tuple[Any, ...]] = {}
    bounds: dict[str, tuple[float, float]] = {}
    for column in listed:
        _read_column(column if isinstance(column, dict) else {}, levels, bounds)
    if not levels and not bounds:
        raise _refuse("declares no levels and no bounds", allowed=KINDS)
    return Metadata(levels, bounds)


def _read_column(
    column: Mapping[str, Any], levels: dict[str, tuple[Any, ...]], bounds: dict[str, tuple[float, float]]
) -> None:
    """Note what is declared of a column of CSVW or a field of a Table Schema, if it has a name.

    Its levels are a list, a pattern that is a list of words, or the whole numbers between two bounds if they are few.
    """
    given = column.get("name") or column.get("titles")
    name = given[0] if isinstance(given, list) and given else given
    if not isinstance(name, str):
        return
    if name in levels or name in bounds:
        raise _refuse("declares a column twice", f"'{name}'")
    kind, limits = (part if isinstance(part, dict) else {} for part in map(column.get, ("datatype", "constraints")))
    base, pattern = str(kind.get("base", "string")), kind.get("format")
    listed = limits.get("enum", column.get("categories"))
    if isinstance(listed, list) and listed:
        levels[name] = tuple(value.get("value") if isinstance(value, dict) else value for value in listed)
        if not all(isinstance(value, str | int | float) for value in levels[name]):
            raise _refuse(f"has levels of column '{name}' that are not texts or numbers")
    elif base in ("string", "token", "boolean") and (words := _split_pattern(str(pattern))):
        levels[name] = words
    keys = ("minimum", "maximum")
    low, high = (_read_number(limits.get(key, kind.get(key, kind.get(f"{key[:3]}Inclusive")))) for key in keys)
    if low is None or high is None:
        return
    if not low <= high:
        raise _refuse(f"has the bounds of column '{name}' the wrong way round")
    bounds[name] = (float(low), float(high))
    if name not in levels and (base in WHOLE or column.get("type") == "integer") and high - low < MOST_CODES:
        levels[name] = tuple(range(math.ceil(low), math.floor(high) + 1))


def _split_pattern(pattern: str) -> tuple[str, ...] | None:
    """Return the words of a pattern that allows a list of them and nothing else; None for any other pattern.

    >>> _split_pattern("^(north|south)$"), _split_pattern("[a-z]+"), _split_pattern("Y|N")
    (('north', 'south'), None, ('Y', 'N'))
    """
    inner = pattern.removeprefix("^").removesuffix("$")
    inner = inner[1:-1] if inner.startswith("(") and inner.endswith(")") else inner
    words = inner.removeprefix("?:").split("|")
    return tuple(words) if len(words) > 1 and all(PLAIN.fullmatch(word) for word in words) else None


def _read_number(given: Any) -> float | int | None:
    """Return a bound as a number, which CSVW allows as text; None if it is not finite."""
    if not isinstance(given, str | int | float) or isinstance(given, bool):
        return None
    try:
        number = float(given)
    except (OverflowError, ValueError):
        return None
    return (given if isinstance(given, int) else number) if math.isfinite(number) else None
