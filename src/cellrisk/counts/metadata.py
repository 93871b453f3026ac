"""What a file beside the data declares of its columns: levels and bounds, written down once and used here.

CSV on the Web (W3C), Table Schema and Data Package (Frictionless) are JSON; the metadata of SmartNoise SQL is YAML.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.counts.columns import exact, is_number, scalar
from cellrisk.counts.files import refusals_of_the_system
from cellrisk.errors import InvalidInput, extra_needed

LARGEST_FILE = 1 << 20
MOST_CODES = 1000
"""Whole numbers between two bounds that are taken for the levels of a column."""
PLAIN = re.compile(r"[^\\.^$*+?()\[\]{}|]+")
"""A piece of a pattern that stands for itself."""
WHOLE = ("int", "integer", "long", "short", "byte", "nonNegativeInteger", "positiveInteger")
KINDS = "CSVW or a Table Schema (.json), or SmartNoise's metadata (.yaml)"


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

        A width becomes edges from one bound to the other, so that the bins are declared, too.

        >>> Metadata(levels={"sex": ("f", "m")}, bounds={"age": (18, 33)}).declare(["sex", "age"], {"age": 5}, None)
        ({'age': [15.0, 20.0, 25.0, 30.0, 35.0]}, {'sex': ('f', 'm')})
        """
        all_bins, all_levels = dict(bins or {}), dict(levels or {})
        for name in columns:
            width = scalar(all_bins.get(name))
            if name in self.bounds and is_number(width) and width > 0:
                all_bins[name] = _edges(float(width), *self.bounds[name])
            elif name in self.levels and name not in all_bins:
                all_levels.setdefault(name, self.levels[name])
        return all_bins, all_levels


def _edges(width: float, low: float, high: float) -> list[float]:
    """The multiples of a width from below the one bound to the other or above it."""
    step = Fraction(exact(width))
    first, last = math.ceil(Fraction(exact(low)) / step) - 1, math.ceil(Fraction(exact(high)) / step)
    if last - first > MOST_CODES:
        raise _refuse("has bounds with too many bins of this width", got=f"{last - first:,}", allowed=f"{MOST_CODES:,}")
    return [float(place * step) for place in range(first, last + 1)]


def _refuse(what: str, got: object = None, allowed: str | None = None) -> InvalidInput:
    return InvalidInput(what, option="metadata", got=got, allowed=allowed, code="metadata")


def read_metadata(path: str | os.PathLike[str], source: Any = None) -> Metadata:
    """Return what a file declares.

    Parameters
    ----------
    path
        A JSON or YAML file of one of the four kinds.
    source
        The path of the data, by whose name one of several tables is chosen.
    """
    file = Path(path)
    with refusals_of_the_system(file), file.open("rb") as stream:
        text = stream.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise _refuse("is too large", allowed=f"up to {LARGEST_FILE:,} bytes")
    suffix = file.suffix.lower()
    if suffix == ".json":
        name = Path(os.fspath(source)).name if isinstance(source, str | os.PathLike) else ""
        declared = _list_json_columns(_parse(text, "JSON"), name)
    elif suffix in (".yaml", ".yml"):
        declared = _list_smartnoise_columns(_parse(text, "YAML"))
    else:
        raise _refuse("is of a kind that is not known", f"a file that ends in {suffix!r}", KINDS)
    levels: dict[str, tuple[Any, ...]] = {}
    bounds: dict[str, tuple[float, float]] = {}
    for column in declared:
        if column.name in levels or column.name in bounds:
            raise _refuse("declares a column twice", f"'{column.name}'")
        if column.levels is not None:
            levels[column.name] = column.levels
        low, high = map(_read_number, column.bounds)
        if low is None or high is None:
            continue
        if not low <= high:
            raise _refuse(f"has the bounds of column '{column.name}' the wrong way round")
        bounds[column.name] = (float(low), float(high))
        if column.levels is None and column.whole and high - low < MOST_CODES:
            levels[column.name] = tuple(range(math.ceil(low), math.floor(high) + 1))
    if not levels and not bounds:
        raise _refuse("declares no levels and no bounds", allowed=KINDS)
    return Metadata(levels, bounds)


class Declared(NamedTuple):
    """What a file declares of a column."""

    name: str
    levels: tuple[Any, ...] | None
    bounds: tuple[Any, Any]
    """The least and the largest value as they are written, None for none."""
    whole: bool
    """Whether the values are whole numbers."""


def _parse(text: bytes, kind: str) -> Any:
    failures: tuple[type[Exception], ...] = (ValueError, RecursionError)
    load: Callable[[bytes], Any] = json.loads
    if kind == "YAML":
        with extra_needed():
            import yaml
        failures, load = (*failures, yaml.YAMLError), yaml.safe_load
    try:
        return load(text)
    except failures:
        raise _refuse(f"is not {kind} that can be read") from None


def _list_json_columns(described: Any, source: str) -> Iterator[Declared]:
    """The columns of a table: of CSVW, of a Table Schema, or of a Data Package."""
    if not isinstance(described, dict):
        raise _refuse("describes no table", type(described).__name__, KINDS)
    listed = described.get("tables") or described.get("resources")
    tables = [table for table in listed if isinstance(table, dict)] if isinstance(listed, list) else [described]
    if len(tables) > 1:
        tables = [table for table in tables if Path(str(table.get("url") or table.get("path"))).name == source]
    if len(tables) != 1:
        what = "describes several tables, and the data must have the name of exactly one of them"
        raise _refuse(what, f"{len(tables)} that fit")
    (table,) = tables
    schema = next((table[key] for key in ("tableSchema", "schema") if isinstance(table.get(key), dict)), table)
    listed = schema.get("columns") or schema.get("fields")
    if not isinstance(listed, list):
        raise _refuse("lists no columns", allowed=KINDS)
    return filter(None, map(_read_column, listed))


def _read_column(column: Any) -> Declared | None:
    """A column of CSVW or a field of a Table Schema; None if it has no name.

    Its levels are a list, a pattern that is a list of words, or the two words of a truth value.
    """
    column = column if isinstance(column, dict) else {}
    given = column.get("name") or column.get("titles")
    name = given[0] if isinstance(given, list) and given else given
    if not isinstance(name, str):
        return None
    kind, limits = (part if isinstance(part, dict) else {} for part in map(column.get, ("datatype", "constraints")))
    base, pattern, levels = str(kind.get("base", "string")), kind.get("format"), None
    listed = limits.get("enum", column.get("categories"))
    if isinstance(listed, list) and listed:
        levels = tuple(value.get("value") if isinstance(value, dict) else value for value in listed)
        if not all(isinstance(value, str | int | float) for value in levels):
            raise _refuse(f"has levels of column '{name}' that are not texts or numbers")
    elif base in ("string", "token", "boolean") and pattern:
        levels = _split_pattern(str(pattern))
    low, high = (limits.get(key, kind.get(key, kind.get(f"{key[:3]}Inclusive"))) for key in ("minimum", "maximum"))
    return Declared(name, levels, (low, high), base in WHOLE or column.get("type") == "integer")


def _split_pattern(pattern: str) -> tuple[str, ...] | None:
    """The words of a pattern that allows a list of them and nothing else; None for any other pattern.

    >>> _split_pattern("^(north|south)$"), _split_pattern("[a-z]+"), _split_pattern("Y|N")
    (('north', 'south'), None, ('Y', 'N'))
    """
    inner = pattern.removeprefix("^").removesuffix("$")
    inner = inner[1:-1] if inner.startswith("(") and inner.endswith(")") else inner
    words = inner.removeprefix("?:").split("|")
    return tuple(words) if len(words) > 1 and all(PLAIN.fullmatch(word) for word in words) else None


def _list_smartnoise_columns(described: Any) -> Iterator[Declared]:
    """The columns of the one table of SmartNoise's metadata: database, schema, table, columns."""
    parts = [described]
    for _ in range(3):
        parts = [value for part in parts if isinstance(part, dict) for value in part.values()]
    tables = [
        {name: column for name, column in table.items() if isinstance(column, dict) and "type" in column}
        for table in parts
        if isinstance(table, dict)
    ]
    tables = [table for table in tables if table]
    if len(tables) != 1:
        raise _refuse("must describe exactly one table", f"{len(tables)} tables", "one, as SmartNoise has")
    for name, column in tables[0].items():
        yield Declared(str(name), None, (column.get("lower"), column.get("upper")), column["type"] == "int")


def _read_number(given: Any) -> float | int | None:
    """A bound as a number, which CSVW allows as text; None if it is not finite."""
    if not isinstance(given, str | int | float) or isinstance(given, bool):
        return None
    try:
        number = float(given)
    except (OverflowError, ValueError):
        return None
    return (given if isinstance(given, int) else number) if math.isfinite(number) else None
