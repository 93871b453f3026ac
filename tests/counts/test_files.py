"""The first line of a text file may be a record: no message repeats it. And files that no engine should be given."""

from __future__ import annotations

import gzip
import random
import string
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cellrisk.cli import main
from cellrisk.counts import files
from cellrisk.counts.preview import preview_file
from cellrisk.counts.refusals import redact
from cellrisk.counts.spark.refusals import explain_spark_failure
from cellrisk.counts.tabulation import tabulate
from cellrisk.errors import CellriskError, InvalidInput, UnknownName

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
    with pytest.raises(UnknownName, match="check how the names of its columns are spelt"):
        tabulate(path, "sex", "height")


def test_a_schema_is_named_where_it_looks_like_one(tmp_path: Path) -> None:
    named = pd.DataFrame({"age": [1, 2], "hours-per-week": [1, 2]})
    record = pd.DataFrame({"age": [1, 2], "Zanzibar@7": [1, 2], "1985": [1, 2]})
    pq.write_table(pa.Table.from_pandas(record, preserve_index=False), tmp_path / "people.parquet")
    with pytest.raises(UnknownName, match="allowed: age, hours-per-week; did you mean 'hours-per-week'"):
        tabulate(named, "age", "hours per week")
    for source in (record, pl.from_pandas(record), pa.Table.from_pandas(record), tmp_path / "people.parquet"):
        with pytest.raises(UnknownName, match="has no column 'job'; got 3 columns") as refusal:
            tabulate(source, "age", "job")
        assert not [cell for cell in ("Zanzibar", "1985") if cell in str(refusal.value)]


def test_what_engines_quote_is_not_repeated() -> None:
    class SparkError(Exception):
        pass

    SparkError.__module__ = "pyspark.errors"
    assert "SMITH" not in str(explain_spark_failure(SparkError("the value [SMITH] cannot be cast")))
    assert "CAST_INVALID" in str(explain_spark_failure(SparkError("[CAST_INVALID] the value [SMITH] cannot be cast")))
    assert "too long" in str(redact(ValueError("The Parallel CSV Reader currently does not support SMITH")))


def test_too_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_COLUMNS", 50)
    names = [f"c{place}" for place in range(51)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" * 51) + "\n", encoding="utf-8")
    pq.write_table(pa.table({name: [1] for name in names}), tmp_path / "wide.parquet")
    for name in ("wide.csv", "wide.parquet"):
        with pytest.raises(InvalidInput, match="too many columns; got 51"):
            tabulate(tmp_path / name, "c0", "c1")


def test_a_hundred_thousand_columns_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{place}" for place in range(100_000)) + "\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="too many columns; got 100,000"):
        tabulate(path, "c0", "c1")


LONG_LINES = {
    "the first line": b"a,b" * 40_000,
    "a line without an end": b"a,b\n1," + b"x" * 200_000,
    "a line within quotation marks": b'a,b\n1,"' + b"x" * 200_000 + b'"',
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", LONG_LINES)
def test_lines_that_are_too_long(case: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 100_000)
    monkeypatch.setattr(files, "LONGEST_HEADER", 100_000)
    monkeypatch.setattr(files, "CHUNK", 10_000)
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    content = LONG_LINES[case]
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InvalidInput, match=r"too long; got .*; allowed: up to 100,000 bytes"):
        tabulate(path, "a", "b", memory_limit="200MB")


def test_a_packed_file_is_unpacked_no_further_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty million letters in twenty thousand bytes: the line is refused after one million."""
    monkeypatch.setattr(files, "LONGEST_LINE", 10**6)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1," + b"x" * 20_000_000, compresslevel=1))
    read: list[int] = []
    real = gzip.GzipFile.read

    def count(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        data = real(self, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(gzip.GzipFile, "read", count)
    with pytest.raises(InvalidInput, match="too long"):
        tabulate(path, "a", "b", memory_limit="200MB")
    assert sum(read) < files.LONGEST_HEADER + files.LONGEST_LINE + 2 * files.CHUNK
