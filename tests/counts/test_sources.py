"""Every kind of source gives the same table, and leaves nothing behind."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cellrisk
from cellrisk.counts.counting import tabulate
from cellrisk.errors import CellriskError
from tests.counts.counter import refused

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
    if kind == "parquet":
        pq.write_table(arrow, folder / "a.parquet")
        return folder / "a.parquet"
    if kind == "parquet of dictionaries":
        frame.astype("category").to_parquet(folder / "a.pq")
        return str(folder / "a.pq")
    simple: dict[str, Any] = {
        "csv": lambda: write_text(folder / "a.csv", records),
        "semicolons": lambda: write_text(folder / "a.csv", records, ";"),
        "tabs": lambda: write_text(folder / "a.tsv", records, "\t"),
        "packed csv": lambda: write_text(folder / "a.csv.gz", records),
        "pandas": lambda: frame,
        "pandas categories": lambda: frame.astype("category"),
        "pandas nullable": frame.convert_dtypes,
        "pandas arrow": lambda: frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars": lambda: pl.DataFrame(records),
        "polars lazy": lambda: pl.LazyFrame(records),
        "arrow": lambda: arrow,
        "arrow chunks": lambda: pa.concat_tables([arrow[:3], arrow[3:3], arrow[3:]]),
        "arrow dictionaries": lambda: pa.table({name: arrow[name].dictionary_encode() for name in NAMES}),
        "arrow batch": lambda: arrow.combine_chunks().to_batches()[0],
    }
    return simple[kind]()


KINDS = """csv|csv with a mark|semicolons|tabs|packed csv|glob of csv with other orders
path with wildcards in its name|parquet|parquet of dictionaries|glob of parquet with other types|hive folders
pandas|pandas categories|pandas nullable|pandas arrow|polars|polars lazy
arrow|arrow chunks|arrow dictionaries|arrow batch""".replace("\n", "|").split("|")


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


def test_repeated_names_matter_only_where_used(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,y,x,x\np,u,1,2\np,v,1,2\n", encoding="utf-8")
    assert tabulate(tmp_path / "a.csv", "a", "y").n_cells == 1
    with refused("ambiguous-column"):
        tabulate(tmp_path / "a.csv", "a", "x")


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
    environment = {**os.environ, "PYTHONPATH": str(Path(cellrisk.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment, timeout=300)
