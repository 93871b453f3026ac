"""A table with everything that engines treat differently, and the comparison of two tables number by number."""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from cellrisk.counts.table import FrequencyTable

TEXTS = [
    None, None, "", " ", "x", "X", "x ", "é", "e\u0301", "ß", "ss", "日本", "\U0001f600", "it's", 'q"q', "\\", "\\n",
    "\\u0041", "A", "NULL", "null", "(missing)", "${env:HOME}", "${spark.master}", "%", "1", "01", "a,b",
    "two\nlines", "\u00a0",
]  # fmt: skip
"""None twice, so that whole cells miss a value."""
REALS = [None, math.nan, 0.0, -0.0, 0.1, 1.5, -2.25, 1e23, 2e-3, 5e-324, 5.684341886080802e-14, 2.0**53, math.inf]
MOMENTS = [
    None,
    dt.datetime(2020, 3, 29, 1, 30),
    dt.datetime(2020, 3, 29, 2, 30),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500000),
    dt.datetime(2020, 10, 25, 1, 30, 0, 1),
]
POOLS: dict[str, tuple[list[Any], pa.DataType]] = {
    "text": (TEXTS, pa.string()),
    "job": ([None, "", "cook", "Cook", "smith", "it's", "\\", "${env:HOME}"], pa.string()),
    "code": ([None, *(f"C{place}" for place in range(40)), *TEXTS], pa.string()),
    "whole": ([None, -1, 0, 1, 2**63 - 1, -(2**63), 2**53 + 1], pa.int64()),
    "small": ([None, -128, 0, 127], pa.int8()),
    "unsigned": ([None, 0, 2**64 - 1, 2**63], pa.uint64()),
    "real": (REALS, pa.float64()),
    "single": ([None, math.nan, 0.0, -0.0, 0.1, 1.1, 3.4e38, 1e-45, 16777216.0], pa.float32()),
    "truth": ([None, True, False], pa.bool_()),
    "day": ([None, dt.date(2020, 1, 1), dt.date(1900, 2, 28), dt.date(1582, 10, 4)], pa.date32()),
    "moment": (MOMENTS, pa.timestamp("us")),
    "instant": (MOMENTS, pa.timestamp("us", "Europe/Berlin")),
    "price": ([None, Decimal("0.00"), Decimal("1.50"), Decimal("-7.25"), Decimal("12345678.90")], pa.decimal128(18, 2)),
    "age": ([None, 0, 5, 17, 18, 19, 64, 65, 66, 120], pa.int32()),
    "size": ([None, math.nan, -0.0, 0.1, 0.3, 0.7, 1.1, 2.5, -1.1], pa.float64()),
    "width": ([None, 0.1, 0.3, 1.1, 2.7], pa.float32()),
    "weight": ([0, 0, 1, 2, 3], pa.int64()),
}


def make_table(rows: int = 300, seed: int = 7) -> pa.Table:
    """Rows from the pools; two rows in three repeat the one before in most columns, so that cells have several."""
    chance = random.Random(seed)
    values: dict[str, list[Any]] = {name: [] for name in POOLS}
    for row in range(rows):
        for name, (pool, _) in POOLS.items():
            again = row % 3 and name not in ("job", "code", "weight") and chance.random() < 0.95
            values[name].append(values[name][-1] if again else chance.choice(pool))
    return pa.table({name: pa.array(values[name], kind) for name, (_, kind) in POOLS.items()})


def write_csv(table: pa.Table, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return path


def facts(table: FrequencyTable) -> dict[str, Any]:
    """Every number of a table, in its order."""
    result: dict[str, Any] = {
        "records": table.n_records,
        "cells": table.n_cells,
        "homogeneity": table.homogeneity,
        "missing": table.missing_records,
        "dropped": table.dropped_records,
    }
    for attribute in table.attributes:
        levels = attribute.levels
        result[attribute.name] = {
            "labels": levels.labels,
            "histogram": list(zip(levels.level.tolist(), levels.count.tolist(), levels.cells.tolist(), strict=True)),
            "products": levels.size_products.tolist(),
            "profiles": list(attribute.profiles.rows()),
            "flags": (attribute.declared, attribute.missing_level),
        }
    return result
