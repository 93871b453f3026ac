"""Counting with and without people: 10^7 records of 4 x 10^6 people, at most 3 records kept of each, in turn.

    .venv/bin/python benchmarks/people.py [FOLDER]

Prints CPU seconds (user and system) of each run, and how often those without people are contained in those with.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cellrisk as cr

RECORDS, PEOPLE, RUNS = 10_000_000, 4_000_000, 5


def write_visits(path: Path) -> None:
    """Write records with the number of a person, three quasi-identifiers and a diagnosis."""
    generator = np.random.default_rng(1)
    columns = {"who": PEOPLE, "age": 100, "area": 300, "sex": 2}
    drawn = {name: generator.integers(0, most, RECORDS).astype("int32") for name, most in columns.items()}
    ill = np.array(["flu", "cold", "none", "other"])[generator.integers(0, 4, RECORDS)]
    pq.write_table(pa.table({**drawn, "ill": pa.array(ill).dictionary_encode()}), path)


def count(path: Path, **more: Any) -> float:
    """Return the CPU seconds of counting once."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    cr.tabulate(path, ["age", "area", "sex"], "ill", bins={"age": 5}, **more)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1] if len(sys.argv) > 1 else folder) / "visits.parquet"
        if not path.exists():
            write_visits(path)
        count(path)
        ratios = []
        for _ in range(RUNS):
            plain, people = count(path), count(path, person="who", contributions=3)
            ratios.append(people / plain)
            print(f"without people {plain:.2f} s, with people {people:.2f} s, {ratios[-1]:.2f} times")
        print(f"median: {np.median(ratios):.2f} times")


if __name__ == "__main__":
    main()
