"""How counting grows with the number of records: `make bench`, or `make bench ROWS=100000000` for the largest size.

Every measurement is a process of its own, so that its peak memory is its own; what is compared runs in turn, in one
run, on data that is generated here. A second table has a million
records of several shapes, in one warm process: `--shapes` prints it alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

QIDS = ["region", "occupation", "school", "origin", "status", "age"]
BYTES_PER_ROW = 40
"""The tight memory limit: 4 GB for a hundred million records."""
MOST_ON_SPARK = 10**7


@dataclass(frozen=True)
class Shape:
    """A million records with quasi-identifiers a, b, c and a sensitive y, each the text of SQL."""

    a: str
    b: str
    c: str
    y: str
    bins: dict[str, int] | None = None
    kind: str = "parquet"


def number(values: int) -> str:
    return f"floor(random() * {values})::INT"


def text(start: str, values: int) -> str:
    return f"'{start}-' || floor(random() * random() * {values})::INT"


TEXTS = (text("region", 20), text("school", 12), text("status", 6))
SHAPES = {
    "whole numbers, K = 5": Shape(number(10), number(20), number(50), number(5)),
    "whole numbers, K = 2": Shape(number(2), number(10), number(10), number(2)),
    "whole numbers, almost as many cells as records": Shape(number(100), number(100), number(100), number(5)),
    "short texts, K = 2": Shape(*TEXTS, text("level", 2)),
    "short texts, K = 5": Shape(*TEXTS, text("level", 5)),
    "short texts, K = 50": Shape(*TEXTS, text("level", 50)),
    "short texts and bins, K = 5": Shape(*TEXTS[:2], number(90), text("level", 5), {"c": 5}),
    "short texts, K = 5, CSV": Shape(*TEXTS, text("level", 5), kind="csv"),
}


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_mb: float
    cells: int = 0
    profiles: int = 0


def generate(path: Path, rows: int) -> None:
    """People with six quasi-identifiers, five of them text, skewed; K = 5."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"""COPY (SELECT 'region-' || floor(random() * random() * 20)::INT AS region,
                'occupation-' || floor(random() * random() * 20)::INT AS occupation,
                'school-' || floor(random() * random() * 12)::INT AS school,
                'origin-' || floor(random() * random() * 10)::INT AS origin,
                'status-' || floor(random() * 6)::INT AS status, floor(random() * 90)::INT AS age,
                'level-' || floor(random() * random() * 5)::INT AS income
                FROM range({rows})) TO '{path}' (FORMAT parquet)"""
        )


def distinct(path: str) -> Measured:
    """The bare minimum: a SELECT DISTINCT of the quasi-identifiers."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        start = time.perf_counter()
        query = f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(QIDS)} FROM '{path}')"
        cells = connection.execute(query).fetchall()[0][0]
        return Measured(time.perf_counter() - start, peak(), cells)


def tabulated(path: str, memory_limit: str | None) -> Measured:
    """Records to profiles, after a first small table has loaded the libraries."""
    import pyarrow as pa

    import cellrisk as cr

    cr.tabulate(pa.table({"q": [1, 2], "y": ["a", "b"]}), "q", "y")
    start = time.perf_counter()
    table = cr.tabulate(path, QIDS, "income", memory_limit=memory_limit)
    return Measured(time.perf_counter() - start, peak(), table.n_cells, table.profiles().n_profiles)


def on_spark(path: str) -> Measured:
    """The same on a local Spark with two cores: the second of two tabulations in one session."""
    import cellrisk as cr
    from cellrisk.counts.spark import own_session

    with own_session("local[2]"):
        cr.tabulate(path, QIDS, "income", engine="spark")
        start = time.perf_counter()
        table = cr.tabulate(path, QIDS, "income", engine="spark")
        seconds = time.perf_counter() - start
    return Measured(seconds, peak(resource.RUSAGE_CHILDREN), table.n_cells, table.profiles().n_profiles)


def peak(whose: int = resource.RUSAGE_SELF) -> float:
    return resource.getrusage(whose).ru_maxrss / 1024


def has_spark() -> bool:
    return shutil.which("java") is not None and importlib.util.find_spec("pyspark") is not None


def in_a_process(*arguments: str) -> Measured:
    command = [sys.executable, __file__, "--one", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(**json.loads(done.stdout))


def median(found: list[Measured]) -> Measured:
    """The run with the median time, with the largest peak of all."""
    middle = sorted(found, key=lambda each: each.seconds)[len(found) // 2]
    return Measured(
        statistics.median(each.seconds for each in found),
        max(each.peak_mb for each in found),
        middle.cells,
        middle.profiles,
    )


def measure(rows: int, repeats: int, folder: Path) -> list[str]:
    """Table rows for one size."""
    path = folder / f"people-{rows}.parquet"
    generate(path, rows)
    limit = max(rows * BYTES_PER_ROW, 200_000_000)
    ways = {
        "DuckDB, bare SELECT DISTINCT": ("distinct", str(path)),
        "tabulate, DuckDB, in memory": ("tabulate", str(path)),
        f"tabulate, DuckDB, limit {limit / 1e9:.1f} GB": ("tabulate", str(path), f"{limit // 10**6}MB"),
    }
    if rows <= MOST_ON_SPARK and has_spark():
        ways["tabulate, Spark, local[2]"] = ("spark", str(path))
    found: dict[str, list[Measured]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, arguments in ways.items():
            found[name].append(in_a_process(*arguments))
    path.unlink()
    bare = median(found["DuckDB, bare SELECT DISTINCT"]).seconds
    lines = []
    for name, runs in found.items():
        each = median(runs)
        profiles = f"{each.profiles:,}" if each.profiles else ""
        lines.append(
            f"| {rows:,} | {name} | {each.cells:,} | {profiles} | {each.seconds:.2f} | {each.seconds / bare:.2f} | "
            f"{each.peak_mb:,.0f} |"
        )
    return lines


def measure_shape(name: str, shape: Shape, rows: int, repeats: int, folder: Path) -> str:
    """A table row: what tabulating takes beside a SELECT DISTINCT of the same columns, and beside opening an engine for
    it too. Processor time, as what is measured takes milliseconds and other programs run."""
    import duckdb

    import cellrisk as cr

    path = folder / f"shape.{shape.kind}"
    columns = ", ".join(f"{getattr(shape, column)} AS {column}" for column in "abcy")
    duckdb.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT {shape.kind})")
    stored = f"read_csv('{path}', all_varchar = true)" if shape.kind == "csv" else f"'{path}'"

    def distinct(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        connection.execute(f"SELECT count(*) FROM (SELECT DISTINCT a, b, c, y FROM {stored})").fetchall()

    def open_and_distinct() -> None:
        with duckdb.connect() as connection:
            distinct(connection)

    with duckdb.connect() as warm:
        ways: list[Callable[[], object]] = [
            lambda: distinct(warm),
            open_and_distinct,
            lambda: cr.tabulate(path, ["a", "b", "c"], "y", bins=shape.bins),
        ]
        found: list[list[float]] = [[] for _ in ways]
        for _ in range(repeats + 1):
            for way, times in zip(ways, found, strict=True):
                start = time.process_time()
                way()
                times.append(time.process_time() - start)
    path.unlink()
    bare, opened, took = (statistics.median(times[1:]) for times in found)
    milliseconds = " | ".join(f"{each * 1e3:.0f}" for each in (bare, opened, took))
    return f"| {name} | {milliseconds} | {took / bare:.2f} | {took / opened:.2f} |"


def measure_shapes(repeats: int, rows: int = 10**6) -> None:
    print(f"\n{rows:,} records, processor time in milliseconds:\n")
    print("| shape | SELECT DISTINCT | with a new engine | tabulate | times | times with a new engine |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            print(measure_shape(name, shape, rows, repeats, Path(folder)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="the largest number of records")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shapes", action="store_true", help="only the table of shapes")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, path, *limit = given.one
        if kind == "spark":
            measured = on_spark(path)
        else:
            measured = distinct(path) if kind == "distinct" else tabulated(path, limit[0] if limit else None)
        print(json.dumps(vars(measured)))
        return
    measure_shapes(2 * given.repeats + 1)
    if given.shapes:
        return
    print("| records | what | cells | profiles | seconds | times the bare SELECT DISTINCT | peak MB |")
    print("|---:|---|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for rows in (10**6, 10**7, 10**8):
            if rows <= given.rows:
                print("\n".join(measure(rows, given.repeats, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
