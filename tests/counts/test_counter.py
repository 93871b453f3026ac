"""Every engine against a plain counter, on random awkward records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cellrisk.counts import counting, engine
from cellrisk.counts.counting import tabulate
from cellrisk.errors import InvalidInput
from tests.counts import counter
from tests.counts.postgres_server import Server, running_server

SEEDS = range(int(os.environ.get("CELLRISK_COUNTER_SEEDS", "4")))
"""More of them with CELLRISK_COUNTER_SEEDS=300."""


def check(case: counter.Case, source: Any, view: Any = counter.plain, vectors: bool = True, **where: Any) -> None:
    expected = counter.count(case, view)
    if expected is None:
        with pytest.raises(InvalidInput) as refusal:
            tabulate(source, **case.asked, **where)
        assert refusal.value.code in ("one-level", "no-records")
        return
    found = tabulate(source, **case.asked, **where)
    assert counter.tally(found, vectors) == (expected if vectors else replace(expected, pairs={}))


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_and_files(seed: int, tmp_path: Path) -> None:
    case = counter.draw_case(seed)
    table = case.table
    check(case, table)
    check(case, table.to_reader(max_chunksize=7))
    check(case, pl.DataFrame(table))
    check(case, counter.to_pandas(table, arrow=bool(seed % 2)))
    check(case, counter.write_csv(table, tmp_path / "a.csv"), counter.as_written)
    check(case, counter.write_duckdb(table, tmp_path / "a.duckdb"), table="t")
    check(case, counter.write_sqlite(table, tmp_path / "a.db"), table="t")
    check(case, counter.write_parquet(table, tmp_path / "a.parquet"))


@pytest.mark.parametrize("seed", SEEDS)
def test_without_keys(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with more cells than memory holds: distinct vectors, and lists of counts if levels are many."""
    case = counter.draw_case(seed)
    monkeypatch.setattr(engine, "MOST_CELLS", 0)
    monkeypatch.setattr(counting, "MOST_IN_PART", 40)
    check(case, case.table)
    monkeypatch.setattr(counting, "MOST_LABELS", 0)
    check(case, case.table, vectors=False)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.mark.parametrize("seed", SEEDS)
def test_postgresql(seed: int, server: Server) -> None:
    case = counter.draw_case(seed)
    with server.connect() as connection:
        counter.write_postgres(case.table, connection, f"case{seed}")
    check(case, server.address(), table=f"case{seed}")
