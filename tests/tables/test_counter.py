"""Every engine against a plain counter, on random awkward records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.tables import counter
from tests.tables.postgres_server import Server, running_server

from cellrisk.counts import condensing, counting, packing, survey, tabulation, vectors
from cellrisk.counts.tabulation import tabulate
from cellrisk.errors import InvalidInput

NOT_ON_SPARK = ("hour", "span")
"""Kinds that Spark's reader of Parquet has no type for, and that are refused there."""
SEEDS = range(int(os.environ.get("CELLRISK_COUNTER_SEEDS", "4")))
"""More of them with CELLRISK_COUNTER_SEEDS=300."""


def check(case: counter.Case, source: Any, view: Any = counter.plain, **where: Any) -> None:
    expected = counter.count(case, view)
    if expected is None:
        with pytest.raises(InvalidInput, match=r"one level only|no record is left|every count"):
            tabulate(source, **case.asked, **where)
        return
    found = tabulate(source, **case.asked, **where)
    assert counter.tally(found) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_and_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = counter.draw_case(seed)
    table = case.table
    if seed % 3 == 1:  # many levels
        monkeypatch.setattr(tabulation, "count_cells", partial(counting.count_cells, dense_levels=0))
    if seed % 2:  # many vectors of counts
        monkeypatch.setattr(vectors, "FEW", 0)
        monkeypatch.setattr(survey, "FEW", 0)
    check(case, table)
    check(case, table.to_reader(max_chunksize=7))
    monkeypatch.setattr(condensing, "SAMPLE", 5)
    monkeypatch.setattr(condensing, "MOST_DIFFERENT", 2)
    check(case, pl.DataFrame(table))
    monkeypatch.setattr(condensing, "MOST_ROWS", 0)  # what was condensed is counted in the engine
    check(case, counter.to_pandas(table, arrow=bool(seed % 2)))
    monkeypatch.setattr(condensing, "SAMPLE", 0)
    check(case, counter.write_csv(table, tmp_path / "a.csv"), counter.as_written)
    check(case, counter.write_duckdb(table, tmp_path / "a.duckdb"), table="t")
    check(case, counter.write_sqlite(table, tmp_path / "a.db"), table="t")
    monkeypatch.setattr(packing, "WORTHWHILE", 0)
    check(case, counter.write_parquet(table, tmp_path / "a.parquet"))
    monkeypatch.setattr(packing, "BYTES_FOR_ROW", 10**15)  # memory is short
    check(case, counter.write_polars(table, tmp_path / "b.parquet"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.mark.parametrize("seed", SEEDS)
def test_postgresql(seed: int, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    case = counter.draw_case(seed)
    if seed % 2 == 0:
        monkeypatch.setattr(vectors, "FEW", 0)
        monkeypatch.setattr(survey, "FEW", 0)
    with server.connect() as connection:
        counter.write_postgres(case.table, connection, f"case{seed}")
    check(case, server.address(), table=f"case{seed}")


FEW_ON_SPARK = (2, 7)
"""Bins, counts, many levels, many vectors."""
QUIET = pytest.mark.filterwarnings("ignore::ResourceWarning")
"""Spark leaves the closing of sockets to Python."""


def check_on_spark(seed: int, session: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = counter.draw_case(seed, NOT_ON_SPARK)
    if seed % 2:
        monkeypatch.setattr(vectors, "FEW", 0)
        monkeypatch.setattr(survey, "FEW", 0)
    if seed % 3 == 1:
        monkeypatch.setattr(tabulation, "count_cells", partial(counting.count_cells, dense_levels=0))
    path = counter.write_parquet(case.table, folder / "a.parquet")
    source = session.read.parquet(str(path)).repartition(3) if seed % 2 else path
    check(case, source, engine="spark")


@QUIET
@pytest.mark.parametrize("seed", FEW_ON_SPARK)
def test_spark(seed: int, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_on_spark(seed, session, tmp_path, monkeypatch)


@QUIET
@pytest.mark.parametrize("seed", [seed for seed in range(max(14, len(SEEDS))) if seed not in FEW_ON_SPARK])
def test_spark_more(seed: int, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_on_spark(seed, session, tmp_path, monkeypatch)
