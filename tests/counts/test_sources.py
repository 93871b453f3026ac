"""Every kind of source gives the same table, and leaves nothing behind."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import os
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.counting import tabulate
from cellrisk.errors import CellriskError, InvalidInput
from tests.counts.counter import facts, profiles, refused

QUASI = ["age", "sex", "city"]
NAMES = ["age", "sex", "city", "job", "ill"]
Records = list[dict[str, Any]]


def write_text(path: Path, records: Records, delimiter: str = ",", names: list[str] = NAMES, start: str = "") -> Path:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as stream:
        stream.write(start)
        writer = csv.DictWriter(stream, names, delimiter=delimiter, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)
    return path


def make(kind: str, records: Records, folder: Path) -> Any:
    frame = pd.DataFrame(records)
    arrow = pa.Table.from_pylist(records)
    half = len(records) // 2
    if kind == "csv with a mark":
        return write_text(folder / "a.csv", records, start="\ufeff")
    if kind == "glob of csv with other orders":
        write_text(folder / "p1.csv", records[:half])
        write_text(folder / "p2.csv", records[half:], names=NAMES[::-1])
        (folder / "p3.csv").mkdir()
        return str(folder / "p*.csv")
    if kind == "glob of parquet with other types":
        pq.write_table(arrow[:half], folder / "p1.parquet")
        narrow = arrow[half:].set_column(0, "age", arrow[half:]["age"].cast(pa.int16()))
        pq.write_table(narrow.select(NAMES[::-1]), folder / "p2.parquet")
        return folder / "*.parquet"
    if kind == "hive folders":
        for year, part in ((1, arrow[:half]), (2, arrow[half:])):
            (folder / f"year={year}").mkdir()
            pq.write_table(part, folder / f"year={year}" / "x.parquet")
        return folder / "**" / "*.parquet"
    if kind == "path with wildcards in its name":
        write_text(folder / "a1.csv", records[:1])
        return write_text(folder / "a[1]*.csv", records)
    if kind == "parquet of dictionaries":
        frame.astype("category").to_parquet(folder / "a.pq")
        return str(folder / "a.pq")
    simple: dict[str, Any] = {
        "semicolons": lambda: write_text(folder / "a.csv", records, ";"),
        "tabs": lambda: write_text(folder / "a.tsv", records, "\t"),
        "packed csv": lambda: write_text(folder / "a.csv.gz", records),
        "pandas categories": lambda: frame.astype("category"),
        "pandas nullable": frame.convert_dtypes,
        "pandas arrow": lambda: frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars lazy": lambda: pl.LazyFrame(records),
        "arrow chunks": lambda: pa.concat_tables([arrow[:3], arrow[3:3], arrow[3:]]),
        "arrow dictionaries": lambda: pa.table({name: arrow[name].dictionary_encode() for name in NAMES}),
        "arrow batch": lambda: arrow.combine_chunks().to_batches()[0],
    }
    return simple[kind]()


KINDS = """csv with a mark|semicolons|tabs|packed csv|glob of csv with other orders
path with wildcards in its name|parquet of dictionaries|glob of parquet with other types|hive folders
pandas categories|pandas nullable|pandas arrow|polars lazy
arrow chunks|arrow dictionaries|arrow batch""".replace("\n", "|").split("|")


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same(
    kind: str, people: Records, tmp_path: Path, by_hand: Any, as_counted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make(kind, people, tmp_path)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    table = tabulate(source, QUASI, ["job", "ill"])
    assert as_counted(table, "job") == by_hand(people, QUASI, "job")
    assert as_counted(table, "ill") == by_hand(people, QUASI, "ill")
    assert table.attribute("job").levels.labels == ("clerk", "cook", "smith", "(missing)")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_text_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,y\n007,a\n7,a\n007,b\n7.0,b\n", encoding="utf-8")
    table = tabulate(tmp_path / "a.csv", "zip", "y")
    assert dict(table.profiles().rows()) == {(1, 1): 1, (1,): 2}


def test_quoted_lines_and_carriage_returns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'"q,\r\n1",y\r\n"a\r\nb",u\r\n"a\r\nb",v\r\n"",u\r\n,u\r\n')
    table = tabulate(tmp_path / "a.csv", "q,\r\n1", "y")
    assert dict(table.profiles().rows()) == {(1, 1): 1, (2,): 1}


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    frame = pd.DataFrame({"A": ["p", "p", "r"], "a": ["u", "v", "u"], "c0": ["x", "y", "z"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, tmp_path / "a.csv", tmp_path / "a.parquet", pl.DataFrame(frame)):
        assert dict(tabulate(source, "A", "a").profiles().rows()) == {(1, 1): 1, (1,): 1}
        assert tabulate(source, ["a", "A"], "c0").n_cells == 3


def test_pandas_intervals_and_periods() -> None:
    ages = pd.cut(pd.Series([3, 8, 12, None]), [0, 5, 10, 15])
    frame = pd.DataFrame({"age": ages, "y": pd.PeriodIndex(["2020", "2021", "2020", None], freq="Y")})
    table = tabulate(frame, "age", "y")
    assert table.n_cells == 4
    assert table.attribute("y").levels.labels == ("2020", "2021", "(missing)")


@pytest.mark.parametrize("missing", ["category", "drop"])
def test_nothing_is_left_after_a_refusal(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a,y\np,u\nSECRET\n", encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with pytest.raises(CellriskError, match="line 3 has 1 fields"):
        tabulate(tmp_path / "a.csv", "a", "y", missing=missing)
    assert list(scratch.iterdir()) == []


def test_what_is_heavy_is_loaded_late(tmp_path: Path) -> None:
    """Nothing with the package, and no pandas to count a file."""
    (tmp_path / "a.csv").write_text("a,y\n1,u\n1,v\n2,u\n", encoding="utf-8")
    code = (
        "import sys, cellrisk.counts; assert not {'duckdb', 'pandas', 'polars', 'pyarrow'} & set(sys.modules); "
        "import cellrisk as cr; print(cr.assess(cr.tabulate('a.csv', 'a', 'y'), epsilon=1.0, measures='local')); "
        "assert 'pandas' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(cr.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment, timeout=300)


# Frames and streams of Arrow batches: every value is counted right, or refused with the true reason


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


# A wide table, with a column of counts for each level, is the same table as a long one


LEVELS = ["flu", "diabetes", "depression"]


@pytest.fixture
def wide() -> pd.DataFrame:
    counts = np.random.default_rng(3).poisson(1.5, (12, 3))
    frame = pd.DataFrame(counts, columns=LEVELS)
    frame.insert(0, "age", np.arange(12) % 6 * 10 + 3)
    frame.insert(1, "sex", ["f", "m"] * 6)
    return frame


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "mixed types"])
def test_a_wide_table_is_a_long_one(wide: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    long = wide.melt(["age", "sex"], var_name="illness", value_name="n")
    declared: Any = {"levels": {"illness": LEVELS}, "bins": {"age": 20}}
    expected = cr.tabulate(long, ["age", "sex"], "illness", count="n", **declared)
    source: Any = wide.astype({"flu": "float64"}) if kind == "mixed types" else wide
    if kind in ("csv", "parquet"):
        source = tmp_path / f"wide.{kind}"
        wide.to_csv(source, index=False) if kind == "csv" else wide.to_parquet(source)
    table = cr.tabulate(source, ["age", "sex"], "illness", wide=LEVELS, bins={"age": 20})
    assert facts(table) == facts(expected)
    assert table.cells().domains == expected.cells().domains


def test_the_command(wide: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.csv"
    wide.to_csv(path, index=False)
    wanted = ["--qid", "sex", "--sensitive", "illness", "--wide", "flu,diabetes", "--wide", "depression"]
    assert main(["inspect", str(path), *wanted]) == 0
    assert f"{wide[LEVELS].to_numpy().sum()} records in 2 groups" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"wide": ["flu"]}, "wide"),
        ({"wide": ["flu", "sex"]}, "roles"),
        ({"wide": LEVELS, "sensitive": "flu"}, "roles"),
        ({"wide": LEVELS, "sensitive": ["a", "b"]}, "wide"),
        ({"wide": LEVELS, "count": "age"}, "wide"),
        ({"wide": LEVELS, "levels": {"illness": ["flu"]}}, "wide"),
        ({"wide": ["flu", "gout"]}, "no-column"),
        ({"wide": ["flu", "flu"]}, "names"),
    ],
    ids=str,
)
def test_refusals(wide: pd.DataFrame, given: dict[str, Any], code: str) -> None:
    with refused(code):
        cr.tabulate(wide, ["sex"], **{"sensitive": "illness", **given})
