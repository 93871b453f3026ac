"""The first line of a text file may be a record: no message repeats it. And files that no engine should be given."""

from __future__ import annotations

import gzip
import math
import random
import string
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts import files
from cellrisk.counts.counting import tabulate
from cellrisk.counts.engine import redact
from cellrisk.counts.preview import preview_file
from cellrisk.counts.spark import spark_refusals
from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from tests.counts.counter import profiles, refused

ASKED = ("age", "job")
KINDS = (
    lambda draw: str(draw.randrange(10**6, 10**8)),
    lambda draw: f"{draw.randrange(1900, 2020)}-0{draw.randrange(1, 10)}-1{draw.randrange(10)}",
    lambda draw: f"{word(draw)}@{word(draw)}.org",
    lambda draw: f"{word(draw).title()} {word(draw).title()}",
    lambda draw: word(draw).upper(),
    lambda draw: " ".join(word(draw) for _ in range(12)),
    lambda draw: f"{word(draw)}\u202e{word(draw)}",
    lambda draw: f"job{word(draw)[:2]}",
)


def word(draw: random.Random) -> str:
    return "".join(draw.choice(string.ascii_lowercase) for _ in range(7))


def make_record(draw: random.Random) -> tuple[list[str], list[str]]:
    """A record in which one cell is a name that is asked for, and its other cells."""
    others = [draw.choice(KINDS)(draw) for _ in range(draw.randrange(1, 6))]
    if draw.random() < 0.3:
        others += others[:1]
    record = list(others)
    record.insert(draw.randrange(len(record) + 1), draw.choice(ASKED))
    return record, others


@pytest.mark.parametrize("seed", range(40))
def test_no_message_repeats_a_record_that_stands_first(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    record, others = make_record(draw)
    path = tmp_path / ("a.csv", "a.tsv")[seed % 2]
    path.write_text("\n".join([draw.choice(",;\t|").join(record)] * 3) + "\n", encoding="utf-8")
    said = []
    for quasi, sensitive, count in (("age", "job", None), ("job", "age", None), ("age", "town", "job")):
        with pytest.raises(CellriskError) as refusal:
            tabulate(path, quasi, sensitive, count=count)
        said.append(str(refusal.value))
    assert not [(cell, line) for cell in others for line in said if cell in line]
    assert all(f"'{name}'" in line or "named" in line for line in said for name in ("age", "job") if name in line)


def test_no_command_repeats_such_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Zanzibar,jobs,job,1985-03-02\nUlm,2,cook,1985-03-02\n", encoding="utf-8")
    columns = ("--qid", "age", "--sensitive", "job")
    for command in (["inspect", str(path), *columns], ["audit", str(path), str(path), *columns]):
        assert main(command) == 2
    for command in ("assess", "explain", "simulate"):
        assert main([command, str(path), *columns, "--epsilon", "1"]) == 2
    assert main(["release", str(path), *columns, "--epsilon", "1", "--output", str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr()
    assert said.err.count("has no column 'age'; got 4 columns") == 6
    assert not [cell for cell in ("Zanzibar", "jobs", "1985", "Ulm") if cell in said.out + said.err]


def test_a_preview_that_is_refused_repeats_no_record(tmp_path: Path) -> None:
    for content in (
        "Zanzibar,Zanzibar,7\n",
        "Zanzibar," + ",".join(map(str, range(3000))),
        'Zanzibar,"' + "x" * 200_000,
    ):
        path = tmp_path / "people.csv"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(CellriskError) as refusal:
            preview_file(path)
        assert "Zanzibar" not in str(refusal.value)


def test_what_is_near_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Age ,sex,occupation\n34,f,cook\n35,m,smith\n", encoding="utf-8")
    with pytest.raises(UnknownName, match="no column 'age'; got 3 columns; column 1 has a name much like it"):
        tabulate(path, "age", "sex")
    with pytest.raises(UnknownName, match="column 3 has a name much like it"):
        tabulate(path, "sex", "ocupation")
    with refused("no-column"):
        tabulate(path, "sex", "height")


def test_a_schema_is_named_where_it_looks_like_one(tmp_path: Path) -> None:
    named = pd.DataFrame({"age": [1, 2], "hours-per-week": [1, 2]})
    record = pd.DataFrame({"age": [1, 2], "Zanzibar@7": [1, 2], "1985": [1, 2]})
    pq.write_table(pa.Table.from_pandas(record, preserve_index=False), tmp_path / "people.parquet")
    with pytest.raises(UnknownName, match="allowed: age, hours-per-week; did you mean 'hours-per-week'"):
        tabulate(named, "age", "hours per week")
    for source in (record, pl.from_pandas(record), pa.Table.from_pandas(record), tmp_path / "people.parquet"):
        with refused("no-column") as refusal:
            tabulate(source, "age", "job")
        assert not [cell for cell in ("Zanzibar", "1985") if cell in str(refusal.value)]


def test_what_engines_quote_is_not_repeated() -> None:
    class SparkError(Exception):
        pass

    SparkError.__module__ = "pyspark.errors"
    for text in ("the value [SMITH] cannot be cast", "[CAST_INVALID] the value [SMITH] cannot be cast"):
        with pytest.raises(InvalidInput) as refusal, spark_refusals():
            raise SparkError(text)
        assert "SMITH" not in str(refusal.value)
        assert ("CAST_INVALID" in str(refusal.value)) == ("CAST_INVALID" in text)
    assert "too long" in str(redact(ValueError("The Parallel CSV Reader currently does not support SMITH")))


LONG_LINES = {
    "the first line": b"a,b" * 40_000,
    "a line": b"a,b\n1," + b"x" * 200_000,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", LONG_LINES)
def test_lines_that_are_too_long(case: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB skips such a line if it is the last."""
    monkeypatch.setattr(files, "LONGEST_LINE", 100_000)
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    content = LONG_LINES[case]
    path.write_bytes(gzip.compress(content) if packed else content)
    with refused("too-long"):
        tabulate(path, "a", "b", memory_limit="200MB")


NEEDS_DUCKDB_2 = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1.5, for Python 3.10, needs more memory and has fewer types"
)


@pytest.mark.parametrize("writer", ["pyarrow", "polars", "pandas", "duckdb"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_nan_in_parquet_is_missing(writer: str, kind: pa.DataType, tmp_path: Path) -> None:
    """Statistics leave NaN out, and an engine that trusts them would find none."""
    path = tmp_path / "a.parquet"
    table = pa.table({"q": pa.array([1.0, math.nan, 2.0, math.nan], kind), "y": ["a", "b", "b", "b"]})
    if writer == "pyarrow":
        pq.write_table(table, path)
    elif writer == "polars":
        pl.DataFrame(table).write_parquet(path)
    elif writer == "pandas":
        table.to_pandas().to_parquet(path)
    else:
        duckdb.from_arrow(table).write_parquet(str(path))
    found = cr.tabulate(path, "q", "y")
    assert (dict(found.profiles().rows()), found.missing_records) == ({(1,): 2, (2,): 1}, (("q", 2),))
    dropped = cr.tabulate(path, "q", "y", missing="drop")
    assert (dropped.n_records, dropped.dropped_records) == (2, 2)
    with refused("missing-values"):
        cr.tabulate(path, "q", "y", missing="error")


def test_a_column_in_the_file_and_in_its_folders_is_refused(tmp_path: Path) -> None:
    for value in "12":
        folder = tmp_path / f"x={value}" / f"z={value}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": ["7", "8"], "y": ["a", "b"]}), folder / "f.parquet")
    pattern = tmp_path / "**" / "*.parquet"
    assert profiles(pattern, "z") == {(1, 1): 2}
    for quasi in ("x", ["x", "z"]):
        with refused("ambiguous-column"):
            cr.tabulate(pattern, quasi, "y")


@pytest.mark.parametrize("name", ["f0", "c0", "files", "column 0", 'a "quoted" name'])
def test_columns_of_a_file_and_of_its_folders_may_have_any_names(name: str, tmp_path: Path) -> None:
    for value in "12":
        folder = tmp_path / f"{name}={value}"
        folder.mkdir()
        pq.write_table(pa.table({"Q": [1, 1], "q": [1, 2], "y": ["a", "b"]}), folder / "x.parquet")
    pattern = tmp_path / "**" / "*.parquet"
    assert profiles(pattern, "Q", count=False) == {(2, 2): 1}
    assert profiles(pattern, "q", count=False) == {(2,): 2}
    assert profiles(pattern, ["q", name], count=False) == {(1,): 4}
    assert profiles(pattern, [name, "Q"], count=False) == {(1, 1): 2}


@pytest.mark.slow
@NEEDS_DUCKDB_2
@pytest.mark.parametrize("quoted", [False, True])
def test_long_fields_of_text(quoted: bool, tmp_path: Path) -> None:
    mark, path = '"' if quoted else "", tmp_path / "a.csv"
    field = mark + ("x\n" if quoted else "xx") * 800_000 + mark
    path.write_text(f"q,y\n{field},a\n{field},b\nc,b\n", encoding="utf-8")
    assert profiles(path, memory_limit="200MB") == {(1, 1): 1, (1,): 1}
    path.write_text(f"q,y\n{field * 8},a\n{field * 8},b\nc,b\n".replace('""', ""), encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 2 is longer than 2 MB"):
        cr.tabulate(path, "q", "y")
    path.write_text(f"{'x' * 200_000},q,y\n1,c,b\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="a field of the header of the file is too long"):
        cr.tabulate(path, "q", "y")
