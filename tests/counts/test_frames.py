"""Frames and streams of Arrow batches: every value is counted right, or refused with the true reason."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from tests.counts.counter import facts, refused


def profiles(source: Any, quasi: Any = "q", sensitive: str = "y", **options: Any) -> dict[tuple[int, ...], int]:
    return dict(cr.tabulate(source, quasi, sensitive, **options).profiles().rows())


def test_time_spans_are_refused(tmp_path: Path) -> None:
    table = pa.table({"q": pa.array([dt.timedelta(1), dt.timedelta(2), None]), "y": list("aba")})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, table.to_pandas(), pl.DataFrame(table), tmp_path / "a.parquet", table.to_reader()):
        with refused("column-type"):
            cr.tabulate(source, "y", "q")


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("ns")], ids=str)
def test_nanoseconds_are_not_rounded(kind: pa.DataType, tmp_path: Path) -> None:
    """Before version 2, DuckDB rounds those of times and of moments in a zone: they are refused."""
    table = pa.table({"q": pa.array([1, 2, 1001, 2], kind), "y": list("abab")})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        if duckdb.__version__ < "2" and kind != pa.timestamp("ns"):
            with pytest.raises(InvalidInput, match="holds nanoseconds"):
                profiles(source)
            continue
        assert profiles(source) == {(1,): 2, (2,): 1}


def test_decimals_of_more_than_38_digits_are_refused(tmp_path: Path) -> None:
    values = [Decimal("1" * 45), Decimal("1" * 44 + "2"), Decimal(1)]
    table = pa.table({"q": pa.array(values, pa.decimal256(50, 0)), "y": list("aba")})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, table.to_reader(), table.to_pandas(), tmp_path / "a.parquet"):
        with refused("column-type"):
            cr.tabulate(source, "q", "y")
    close = [Decimal("1" * 38), Decimal("1" * 37 + "2"), Decimal(1)]
    table = pa.table({"q": pa.array(close, pa.decimal256(38, 0)), "y": list("aba")})
    pq.write_table(table, tmp_path / "b.parquet")
    for source in (table, tmp_path / "b.parquet"):
        assert profiles(source) == {(1,): 3}


class Other:
    """A frame of some other library: all that is known of it is its stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", ["dataset", "files", "scanner", "reader", "narwhals", "narwhals lazy", "other"])
def test_streams_of_arrow_batches(kind: str, people: list[dict[str, Any]], tmp_path: Path) -> None:
    import narwhals

    table = pa.Table.from_pylist(people)
    table = table.set_column(1, "sex", table["sex"].dictionary_encode())
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    sources: dict[str, Any] = {
        "dataset": lambda: pa.dataset.dataset(table),
        "files": lambda: pa.dataset.dataset(tmp_path),
        "scanner": lambda: pa.dataset.dataset(table).scanner(filter=pa.dataset.field("age") > 0),
        "reader": lambda: table.to_reader(max_chunksize=5),
        "narwhals": lambda: narwhals.from_native(table.to_pandas()),
        "narwhals lazy": lambda: narwhals.from_native(pl.LazyFrame(table)),
        "other": lambda: Other(table),
    }
    quasi, sensitive = ["age", "sex", "city"], ["job", "ill"]
    source = sources[kind]()
    found = cr.tabulate(source, quasi, sensitive)
    assert facts(found) == facts(cr.tabulate(table, quasi, sensitive))
    assert found.cells("job").n_cells == found.n_cells
    if kind == "reader":
        with refused("empty-stream"):
            cr.tabulate(source, quasi, sensitive)
    with refused("no-column"):
        cr.tabulate(sources[kind](), "nope", "job")


def test_streams_that_fail_say_nothing_of_the_data() -> None:
    def batches() -> Any:
        yield pa.record_batch({"q": ["a"], "y": ["b"]})
        raise ValueError("SECRET")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("q", pa.string()), ("y", pa.string())]), batches())
    with refused("frame") as refusal:
        cr.tabulate(reader, "q", "y")
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    with refused("column-type"):
        cr.tabulate(Other(pa.table({"q": [b"x"], "y": ["b"]})), "q", "y")
    with refused("frame"):  # a stream of Arrow batches from pandas 3 on
        cr.tabulate(pd.Series([1, 2]), "q", "y")


def test_a_stream_larger_than_a_batch_is_read_to_its_end() -> None:
    batch = pa.record_batch({"q": pa.array(range(50_000)), "y": pa.array([1, 2] * 25_000)})
    reader = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(12)))
    assert profiles(reader) == {(12,): 50_000}


def check_ibis(source: Any, table: pa.Table) -> None:
    quasi, sensitive = ["age", "sex", "city"], ["job", "ill"]
    found = cr.tabulate(source, quasi, sensitive)
    assert facts(found) == facts(cr.tabulate(table, quasi, sensitive))
    assert found.cells("job").n_cells == found.n_cells
    with refused("no-column"):
        cr.tabulate(source, "nope", "job")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_ibis_tables_in_this_process(people: list[dict[str, Any]], tmp_path: Path) -> None:
    import ibis

    table = pa.Table.from_pylist(people)
    more = pa.concat_tables([table, table.slice(0, 3).set_column(0, "age", pa.array([99, 99, 99]))])
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.register("frame", more)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    backends = {
        "duckdb": (ibis.duckdb.connect(tmp_path / "a.duckdb", read_only=True), "people"),
        "polars": (ibis.polars.connect({"people": pl.DataFrame(more)}), "people"),
    }
    for backend, name in backends.values():
        source = backend.table(name)
        check_ibis(source.filter(source.age < 99), table)
        backend.disconnect()
    check_ibis(ibis.memtable(table), table)
    with refused("frame"):
        cr.tabulate(ibis.table({"q": "string", "y": "string"}, name="nowhere"), "q", "y")
