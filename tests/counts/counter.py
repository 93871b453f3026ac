"""Random awkward records, and a plain counter of them: dictionaries, one record at a time, no engine."""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cellrisk.counts.counting import tabulate
from cellrisk.counts.table import FrequencyTable
from cellrisk.errors import CellriskError

MOMENT = dt.datetime(2020, 3, 29, 1, 30)
STEPS = [dt.timedelta(0), dt.timedelta(microseconds=1), dt.timedelta(hours=1), dt.timedelta(days=-20_000)]
PIECES = [
    "a", "A", "b", "é", "e\u0301", "ß", "ss", "İ", "i", " ", "\t", "'", '"', "\\", "%", "$", ",", ";", "\n", "1", "0",
    "-", ".", "_", "\U0001f600", "日", "\u00a0", "\u200b", "NULL", "nan", "None", "true",
]  # fmt: skip


def draw_text(chance: random.Random) -> str:
    return "".join(chance.choices(PIECES, k=chance.choice([0, 1, 1, 1, 2, 3])))


def draw_real(chance: random.Random) -> float:
    edges = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 1 / 3, 5e-324, 1e308, 2.0**53, 2.0**53 + 2, -1.5]
    return chance.choice([*edges, chance.uniform(-2, 2)])


def draw_whole(chance: random.Random) -> int:
    return chance.choice([0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), chance.randrange(-9, 9)])


KINDS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any], str]] = {
    "text": (pa.string(), draw_text, "text"),
    "word": (pa.dictionary(pa.int32(), pa.string()), draw_text, "text"),
    "whole": (pa.int64(), draw_whole, "bigint"),
    "small": (pa.int8(), lambda chance: chance.choice([-128, -1, 0, 1, 127]), "smallint"),
    "huge": (pa.uint64(), lambda chance: chance.choice([0, 1, 2**63, 2**64 - 1, 2**53 + 1]), "numeric"),
    "real": (pa.float64(), draw_real, "double precision"),
    "single": (pa.float32(), lambda chance: chance.choice([0.0, -0.0, math.nan, 0.1, 1.1, 16777216.0]), "real"),
    "truth": (pa.bool_(), lambda chance: chance.random() < 0.5, "boolean"),
    "day": (pa.date32(), lambda chance: (MOMENT + chance.choice(STEPS)).date(), "date"),
    "moment": (pa.timestamp("us"), lambda chance: MOMENT + chance.choice(STEPS), "timestamp"),
    "instant": (
        pa.timestamp("us", "UTC"),
        lambda chance: (MOMENT + chance.choice(STEPS)).replace(tzinfo=dt.timezone.utc),
        "timestamptz",
    ),
    "hour": (pa.time64("us"), lambda chance: (MOMENT + chance.choice(STEPS)).time(), "time"),
    "price": (
        pa.decimal128(38, 3),
        lambda chance: Decimal(chance.choice([0, 1, -1, 10**34, 10**34 + 1, 1500])).scaleb(-3),
        "numeric",
    ),
}
AGES = [None, -5, -1, 0, 1, 4, 5, 6, 17, 18, 65, 66]


@dataclass(frozen=True)
class Case:
    """A table, and what is asked of it."""

    table: pa.Table
    quasi: list[str]
    sensitive: list[str]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, Any]:
        return {"quasi_identifiers": self.quasi, "sensitive": self.sensitive, **self.options}


def draw_case(seed: int, without: Collection[str] = ()) -> Case:
    """Records of random kinds, in which cells have several and values are often missing."""
    chance = random.Random(seed)
    names = chance.sample([kind for kind in KINDS if kind not in without], chance.randrange(2, 6))
    kinds = {f"{name}.{place} {chance.choice(['', 'é', chr(34)])}": name for place, name in enumerate(names)}
    split = chance.randrange(1, len(names))
    quasi, sensitive = list(kinds)[:split], list(kinds)[split:][:2]
    pools = {name: [KINDS[kind][1](chance) for _ in range(chance.choice([2, 3, 8]))] for name, kind in kinds.items()}
    pools = {name: [*pool, *([None] * chance.choice([0, 1, 2]))] for name, pool in pools.items()}
    rows = chance.choice([20, 60, 300])
    columns = {
        name: pa.array([chance.choice(pools[name]) for _ in range(rows)], KINDS[kind][0])
        for name, kind in kinds.items()
    }
    options: dict[str, Any] = {"missing": chance.choice(["category", "category", "drop"])}
    columns["age"] = pa.array([chance.choice(AGES) for _ in range(rows)], pa.int16())
    if chance.random() < 0.5:
        quasi.append("age")
        options["bins"] = {"age": chance.choice([5, 18, 0.5, [0, 5, 17, 65]])}
    if chance.random() < 0.3:
        columns["n"] = pa.array([chance.choice([0, 1, 1, 2, 7]) for _ in range(rows)], pa.int32())
        options["count"] = "n"
    return Case(pa.table(columns), quasi, sensitive, options)


# What a value is, whatever the engine


def plain(value: Any) -> Any:
    """None where the value is missing; 0 is one value with either sign."""
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    return value


def as_written(value: Any) -> Any:
    """A value in a text file: its text, and nothing where that is empty."""
    return None if value is None or str(value) == "" else str(value)


def bin_of(value: int | None, bins: Any) -> Any:
    if value is None:
        return None
    if isinstance(bins, list):
        return sum(value > edge for edge in bins)
    return math.ceil(value / bins)


@dataclass(frozen=True)
class Tally:
    """The counts that a table must have."""

    records: int
    dropped: int
    missing: dict[str, int]
    kinds: tuple[int, int, int]
    profiles: dict[str, dict[tuple[int, ...], int]]
    levels: dict[str, Counter[tuple[int, ...]]]
    """For each sensitive column, how often a level has that histogram: counts of records and of cells in turn."""
    pairs: dict[str, Counter[tuple[Any, ...]]]
    """For each sensitive column, how often two levels have those pairs of counts, over all cells: `pair_up`."""


def pair_up(columns: list[list[int]]) -> Counter[tuple[Any, ...]]:
    """Which counts stand side by side in a cell, for every two levels; the order of levels and of cells is nobody's."""
    found: Counter[tuple[Any, ...]] = Counter()
    for one, other in combinations([column for column in columns if any(column)], 2):
        both = sorted(zip(one, other, strict=True)), sorted(zip(other, one, strict=True))
        found[tuple(min(both))] += 1
    return found


def count(case: Case, view: Callable[[Any], Any] = plain) -> Tally | None:
    """The case counted record by record; None where a sensitive column has fewer than two levels."""
    bins, weight = case.options.get("bins", {}), case.options.get("count")
    used = [*case.quasi, *case.sensitive]
    cells: dict[tuple[Any, ...], list[Counter[Any]]] = defaultdict(lambda: [Counter() for _ in case.sensitive])
    missing: Counter[str] = Counter()
    records = dropped = 0
    seen: list[set[Any]] = [set() for _ in case.sensitive]
    for row in case.table.to_pylist():
        times = row[weight] if weight else 1
        values = [bin_of(row[name], bins[name]) if name in bins else view(row[name]) for name in used]
        lacking = [name for name, value in zip(used, values, strict=True) if value is None]
        missing.update(dict.fromkeys(lacking, times))
        if lacking and case.options["missing"] == "drop":
            dropped += times
            continue
        records += times
        for place, value in enumerate(values[len(case.quasi) :]):
            if value is not None or times:
                seen[place].add(value)
            if times:
                cells[tuple(values[: len(case.quasi)])][place][value] += times
    if not records or min(len(each) for each in seen) < 2:
        return None
    single = [[len(counts) == 1 for counts in cell] for cell in cells.values()]
    every, none = sum(map(all, single)), sum(not any(flags) for flags in single)
    profiles, levels, pairs = {}, {}, {}
    for place, name in enumerate(case.sensitive):
        profiles[name] = dict(Counter(tuple(sorted(cell[place].values(), reverse=True)) for cell in cells.values()))
        histogram: dict[Any, Counter[int]] = defaultdict(Counter)
        for cell in cells.values():
            for value, times in cell[place].items():
                histogram[value][times] += 1
        levels[name] = Counter(tuple(sum(sorted(each.items()), ())) for each in histogram.values())
        pairs[name] = pair_up([[cell[place][value] for cell in cells.values()] for value in histogram])
    absent = {name: number for name, number in missing.items() if number}
    return Tally(records, dropped, absent, (every, len(single) - every - none, none), profiles, levels, pairs)


def tally(table: FrequencyTable, vectors: bool = True) -> Tally:
    """The same of a table that was tabulated; ``vectors``: whether it must have counts with their labels."""
    levels, pairs = {}, {}
    for attribute in table.attributes:
        if (attribute.vectors is None) == vectors:
            raise AssertionError(f"labelled counts of {attribute.name}: {attribute.vectors}")
        if attribute.vectors is not None:
            every = np.repeat(attribute.vectors.counts, attribute.vectors.cells, axis=0)
            pairs[attribute.name] = pair_up(every.T.tolist())
        histogram: dict[int, list[int]] = defaultdict(list)
        each = attribute.levels
        for level, number, cells in zip(each.level.tolist(), each.count.tolist(), each.cells.tolist(), strict=True):
            histogram[level] += [number, cells]
        levels[attribute.name] = Counter(map(tuple, histogram.values()))
    kinds = (table.homogeneity.complete, table.homogeneity.partial, table.homogeneity.none)
    profiles = {each.name: dict(each.profiles.rows()) for each in table.attributes}
    missing = dict(table.missing_records)
    return Tally(table.n_records, table.dropped_records, missing, kinds, profiles, levels, pairs)


def profiles(source: Any, quasi: Any = "q", sensitive: str = "y", **options: Any) -> dict[tuple[int, ...], int]:
    return dict(tabulate(source, quasi, sensitive, **options).profiles().rows())


def facts(table: FrequencyTable) -> dict[str, Any]:
    """Every number of a table, in its order, to compare it with another."""
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


# The same records in every engine


def write_csv(table: pa.Table, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return path


def write_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path, row_group_size=50)
    return path


def write_duckdb(table: pa.Table, path: Path) -> Path:
    """Text under a collation that would merge a and A."""
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", table)
        described = connection.execute("DESCRIBE frame").fetchall()
        columns = ", ".join(
            f"{quote(name)} {'VARCHAR COLLATE NOCASE.NOACCENT' if kind.startswith(('VARCHAR', 'ENUM')) else kind}"
            for name, kind, *_ in described
        )
        connection.execute(f"CREATE TABLE t ({columns}); INSERT INTO t SELECT * FROM frame")
    return path


def write_sqlite(table: pa.Table, path: Path) -> str:
    """What SQLite has no type for is text there; text is under a collation that would merge a and A."""
    kinds = {"whole": "INTEGER", "small": "INTEGER", "real": "REAL", "single": "REAL", "truth": "BOOLEAN"}
    kinds |= {"age": "INTEGER", "n": "INTEGER"}
    declared = {name: kinds.get(name.partition(".")[0], "TEXT COLLATE NOCASE") for name in table.column_names}
    rows = [
        [value if value is None or not declared[name].startswith("TEXT") else str(value) for name, value in row.items()]
        for row in table.to_pylist()
    ]
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE t ({', '.join(f'{quote(name)} {kind}' for name, kind in declared.items())})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(declared))})", rows)
    connection.commit()
    connection.close()
    return f"sqlite://{path}"


def write_postgres(table: pa.Table, connection: Any, name: str) -> None:
    from psycopg import sql

    kinds = {"age": "smallint", "n": "integer"}
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(each), sql.SQL(kinds.get(each) or KINDS[each.partition(".")[0]][2]))
        for each in table.column_names
    ]
    into = sql.Identifier(name)
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(into, sql.SQL(", ").join(columns)))
    places = sql.SQL(", ").join([sql.Placeholder()] * len(columns))
    rows = [tuple(row.values()) for row in table.to_pylist()]
    connection.cursor().executemany(sql.SQL("INSERT INTO {} VALUES ({})").format(into, places), rows)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def to_pandas(table: pa.Table, arrow: bool) -> pd.DataFrame:
    """With Arrow's types, or as pandas has them, whole numbers beside missing ones as objects."""
    if arrow:
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    return table.to_pandas(integer_object_nulls=True, types_mapper={pa.uint64(): pd.UInt64Dtype()}.get)


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[CellriskError]]:
    """What the block does is refused with this code."""
    with pytest.raises(CellriskError) as refusal:
        yield refusal
    assert refusal.value.code == code
