"""Three tables of the same 20 million people, beside what the engine takes to group and join them: `make bench`.

Every measurement is a process of its own, so that its peak memory is its own; what is compared runs in turn, in one
run, on a file that is generated here and deleted in the end. Processor time is compared (all threads, user and
system), and with it the ratio does not depend on what else the machine does. The engine's own work is the grouping by
all columns and the label, the cells of each table with their counts, and the joins that bring these counts back to
each group; it adds up what is joined, and neither writes it down nor hands it over.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TABLES = [["age", "education", "sex"], ["age", "region", "hours"], ["education", "race", "hours"]]
BINS = {"age": 5, "hours": 10}
VALUES = {"region": 400, "education": 16, "sex": 2, "race": 5, "income": 2, "age": 95, "hours": 99}
"""Even shares of so many values: 13.8 million groups of 20 million people."""
LIMIT = "2GB"
GOAL = 1.5


@dataclass(frozen=True)
class Measured:
    processor: float
    clock: float
    peak_mb: float
    groups: int = 0


def generate(path: Path, rows: int) -> None:
    import duckdb

    columns = [
        f"floor(random() * {values})::INT AS {name}"
        if name in BINS
        else f"'{name} ' || floor(random() * {values})::INT AS {name}"
        for name, values in VALUES.items()
    ]
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY (SELECT {', '.join(columns)} FROM range({rows})) TO '{path}' (FORMAT parquet)")


def engine(path: str, limit: str | None) -> int:
    """DuckDB by itself; how many groups there are."""
    import duckdb

    binned = [f"ceil({name} / {BINS[name]}.0)::INT AS {name}" if name in BINS else name for name in VALUES]
    with duckdb.connect() as connection, tempfile.TemporaryDirectory() as folder:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{folder}'")
        if limit:
            connection.execute(f"SET memory_limit = '{limit}'")
        connection.execute(
            f"CREATE TEMP TABLE base AS SELECT {', '.join(binned)}, count(*) AS w FROM '{path}' GROUP BY ALL"
        )
        for number, names in enumerate(TABLES):
            own = ", ".join(names)
            counts = ", ".join(
                f"sum(w) FILTER (income = 'income {label}') AS n{number}{label}" for label in range(VALUES["income"])
            )
            connection.execute(f"CREATE TEMP TABLE t{number} AS SELECT {own}, {counts} FROM base GROUP BY {own}")
        joins = " ".join(f"JOIN t{number} USING ({', '.join(names)})" for number, names in enumerate(TABLES))
        sums = [f"sum(n{number}{label})" for number in range(len(TABLES)) for label in range(VALUES["income"])]
        found = connection.execute(f"SELECT count(*), sum(w), {', '.join(sums)} FROM base {joins}").fetchall()
        return int(found[0][0])


def count(path: str, limit: str | None) -> int:
    """The same groups and cells, counted here."""
    from cellrisk.counts.joint import Asked, count_together

    tables = [Asked(tuple(names), {name: BINS[name] for name in names if name in BINS}) for names in TABLES]
    return len(count_together(path, tables, "income", memory_limit=limit).count)


def assess(path: str, limit: str | None) -> int:
    """The whole assessment: two rules, deviations, each table alone, coarser tables."""
    import cellrisk as cr

    cr.assess_together(path, [{"qid": names} for names in TABLES], "income", bins=BINS, epsilon=1.0, memory_limit=limit)
    return 0


WAYS = {"engine": engine, "count": count, "assess": assess}


def measure(way: str, path: str, limit: str | None) -> Measured:
    """One run, after a small one that loads the libraries."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.parquet"
        generate(small, 1000)
        WAYS[way](str(small), None)
    before, start = spent(), time.perf_counter()
    groups = WAYS[way](path, limit)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(spent() - before, time.perf_counter() - start, peak, groups)


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def in_a_process(way: str, path: Path, limit: str | None) -> Measured:
    command = [sys.executable, __file__, "--one", way, str(path), *([limit] if limit else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="people")
    parser.add_argument("--limit", default=LIMIT, help="the memory limit of the second round")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        way, path, *limit = given.one
        print(json.dumps(vars(measure(way, path, limit[0] if limit else None))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        generate(path, given.rows)
        for limit in (None, given.limit):
            own = in_a_process("engine", path, limit)
            within = f", within {limit}" if limit else ""
            print(
                f"{given.rows:,} people, {own.groups:,} groups, {len(TABLES)} tables{within}: DuckDB's own grouping "
                f"and joins {own.processor:.1f} s of processor time, {own.clock:.1f} s, peak {own.peak_mb:,.0f} MB",
                flush=True,
            )
            for way, what in (("count", "counted"), ("assess", "assessed")):
                each = in_a_process(way, path, limit)
                print(
                    f"  {what}: {each.processor:.1f} s, {each.processor / own.processor:.2f} times (goal {GOAL}), "
                    f"{each.clock:.1f} s, peak {each.peak_mb:,.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
