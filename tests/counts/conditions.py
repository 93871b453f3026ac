"""Conditions and values that look alike: which records satisfy them, and which are said to exclude each other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import combinations
from typing import Any

import pyarrow as pa

from cellrisk.counts.engine import Resources
from cellrisk.counts.filters import Part, read_part
from cellrisk.counts.sources import open_source

NUMBERS: list[int | float] = [
    *(0, 1, 2, -1, 10, 1000, 2**53, 2**53 + 1, 10**18, 10**400),
    *(1.0, -0.0, 1.5, 0.1, 0.3, 0.30000000000000004, 1e22, 1e-7, 16777217.0, 0.12345678901249999, 0.1234567890125),
]
ODD_TEXTS = [
    "", " ", "f", "F", "m", "f ", "Köln", "Ko\u0308ln", "KÖLN", "straße", "STRASSE", "\ufb01n", "fin", "a\u200bb", "ab",
    "true", "True", "TRUE", " tRUE", "t", "yes", "false", "False", "nan", "NaN", "-nan", "inf", "Infinity", "-inf",
    "1e400", "1e500", "1_0", "1d", "1f", "0x1", "0x1p0", "+-1", "\uff11", "\u0661", "1,0", "\u22121", "1 0", "1.", ".5",
    "2020-01-01", "2020-01-01 00:00:00", "2020-01-01 00:00:00+00", "1 day", "$1.00", "12:30:00",
]  # fmt: skip
MOMENT = datetime(2020, 1, 1)
OTHERS: list[Any] = [
    *(True, False, date(2020, 1, 1), date(2020, 1, 2), MOMENT, MOMENT.replace(tzinfo=timezone.utc)),
    datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
]


def write_otherwise(draw: random.Random, number: int | float) -> str:
    """A number as text, in one of the ways that somebody or something reads as that number."""
    text = repr(number)
    ways = [text, f"0{text}", f"000{text}", f"+{text}", f" {text}", f"{text} ", f"\t{text}\n", f"\u00a0{text}"]
    ways += [f"{text}e0", f"{text}E+00", f"{text.upper()}", text.replace("1", "\uff11"), text.replace("1", "\u0661")]
    if "e" not in text:
        ways += [f"{text}.0", f"{text}."] if "." not in text else [f"{text}0", f"{text}000"]
    return draw.choice(ways).replace("0-", "-0").replace("+-", "-")


def draw_value(draw: random.Random) -> Any:
    kind = draw.random()
    number = draw.choice(NUMBERS[: draw.choice((4, len(NUMBERS)))])
    if kind < 0.3:
        return number if abs(number) < 10**300 else 10
    if kind < 0.6:
        return write_otherwise(draw, number)
    return draw.choice(ODD_TEXTS if kind < 0.85 else OTHERS)


def draw_condition(draw: random.Random) -> Any:
    """A condition on one column as `where` takes it."""
    kind = draw.random()
    values = [draw_value(draw) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    if kind < 0.7:
        return values if len(values) > 1 else values[0]
    if kind < 0.85:
        return {"not": values}
    ends = [end for end in NUMBERS if abs(end) < 2**53]
    words = draw.sample(("from", "above", "to", "below"), draw.choice((1, 2)))
    return {word: draw.choice(ends) for word in words}


def draw_parts(seed: int, number: int) -> list[Part]:
    draw = random.Random(seed)
    return [read_part({"value": draw_condition(draw)}) for _ in range(number)]


def draw_columns(seed: int) -> pa.Table:
    """One column of every type, with the values that conditions are drawn from as far as the type has them."""
    draw = random.Random(seed)
    texts = [*ODD_TEXTS, "2", "2.0", "02", "1", *(write_otherwise(draw, one) for one in NUMBERS for _ in range(6))]
    whole = [int(number) for number in NUMBERS if number == int(number) and abs(number) < 2**63]
    small = [number for number in whole if abs(number) < 2**31]
    real = [float(number) for number in NUMBERS if abs(number) < 1e300]
    decimals = [Decimal(repr(number)) for number in NUMBERS if abs(number) < 2**54 and len(repr(number)) < 17]
    moments = [MOMENT, MOMENT + timedelta(hours=2), MOMENT + timedelta(days=1)]
    columns: dict[str, tuple[list[Any], Any]] = {
        "text": (texts, pa.string()),
        "whole": (whole, pa.int64()),
        "small": (small, pa.int32()),
        "natural": ([number for number in whole if number >= 0], pa.uint64()),
        "double": ([*real, float("nan"), float("inf"), float("-inf")], pa.float64()),
        "single": ([*real, float("nan"), float("inf")], pa.float32()),
        "decimal": (decimals, pa.decimal128(38, 18)),
        "truth": ([True, False], pa.bool_()),
        "day": ([moment.date() for moment in moments], pa.date32()),
        "moment": (moments, pa.timestamp("us")),
        "instant": (moments, pa.timestamp("us", "UTC")),
    }
    length = max(len(values) for values, _ in columns.values())
    return pa.table(
        {
            name: pa.array([*values, *[None] * (length - len(values))], kind, from_pandas=False)
            for name, (values, kind) in columns.items()
        }
    )


def find_members(source: Any, column: str, parts: Sequence[Part], **opened: Any) -> list[list[bool]]:
    """For each record, which parts it belongs to, by the filter that counting uses."""
    with open_source(source, [column], Resources.of(None, None), **opened) as records:
        value = {"value": ("c0", records.types["c0"])}
        chosen = ", ".join(part.holds(value, strict=False) for part in parts)
        return [list(row) for row in records.fetch(f"SELECT {chosen} FROM {records.name}")]


def check_exclusive(source: Any, columns: Sequence[str], parts: Sequence[Part], **opened: Any) -> tuple[int, int]:
    """No record is in two parts that are said to exclude each other; how many pairs exclude, and how many overlap."""
    excluded = {
        (first, second)
        for first, second in combinations(range(len(parts)), 2)
        if parts[first].excludes(parts[second]) or parts[second].excludes(parts[first])
    }
    shared: set[tuple[int, int]] = set()
    for column in columns:
        for record in find_members(source, column, parts, **opened):
            both = set(combinations([place for place, inside in enumerate(record) if inside], 2))
            for first, second in both & excluded:
                raise AssertionError(f"a record of {column} is in both: {parts[first]}, {parts[second]}")
            shared |= both
    return len(excluded), len(shared)
