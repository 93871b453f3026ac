"""Every refusal fires, in one line, with the right class, and without a data value."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cellrisk.counts import counting
from cellrisk.counts.counting import tabulate
from cellrisk.errors import CellriskError, InvalidInput, UnknownName

SECRET = "Xyzzy7391"
BASE: dict[str, list[Any]] = {
    "age": [20, 30, 40, 50],
    "sex": ["f", "m", "f", SECRET],
    "job": ["a", "b", "a", SECRET],
    "times": [1, 2, 3, 4],
}


def frame(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame({**BASE, **changes})


def refused(kind: type[CellriskError], words: str, source: Any, *roles: Any, **options: Any) -> str:
    quasi, sensitive = roles or (["age", "sex"], "job")
    with pytest.raises(CellriskError) as caught:
        tabulate(source, quasi, sensitive, **options)
    text = str(caught.value)
    assert type(caught.value) is kind, (type(caught.value), text)
    assert words in text, text
    assert "\n" not in text, text
    assert SECRET not in text, text
    assert len(text) < 400, text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


REQUESTS: dict[str, tuple[type[CellriskError], str, dict[str, Any]]] = {
    "unknown column": (UnknownName, "did you mean 'sex'?", {"quasi_identifiers": ["age", "sexx"]}),
    "unknown column by case": (UnknownName, "did you mean 'job'?", {"sensitive": "JOB"}),
    "unknown column lists": (UnknownName, "allowed: age, sex, job, times", {"sensitive": "qqq"}),
    "unknown count": (UnknownName, "has no column 'm'", {"count": "m"}),
    "repeated": (InvalidInput, "'age' more than once", {"quasi_identifiers": ["age", "age"]}),
    "repeated sensitive": (InvalidInput, "'job' more than once", {"sensitive": ["job", "job"]}),
    "no quasi-identifier": (InvalidInput, "quasi_identifiers must hold one column name", {"quasi_identifiers": []}),
    "no sensitive": (InvalidInput, "sensitive must hold one column name", {"sensitive": []}),
    "empty name": (InvalidInput, "an empty name", {"sensitive": ""}),
    "number as name": (InvalidInput, "got a int", {"quasi_identifiers": [3]}),
    "nothing as names": (InvalidInput, "got a NoneType", {"quasi_identifiers": None}),
    "both": (InvalidInput, "can have one role", {"sensitive": ["job", "age"]}),
    "count is a quasi-identifier": (InvalidInput, "can have one role", {"count": "age"}),
    "count is sensitive": (InvalidInput, "can have one role", {"count": "job"}),
    "count is a list": (InvalidInput, "one column", {"count": ["times"]}),
    "missing": (InvalidInput, "category, drop, error", {"missing": "ignore"}),
    "bins elsewhere": (InvalidInput, "'times', which is not", {"bins": {"times": 5}}),
    "bins no mapping": (InvalidInput, "bins must map", {"bins": 5}),
    "bins width": (InvalidInput, "positive", {"bins": {"age": 0}}),
    "bins edges": (InvalidInput, "increase", {"bins": {"age": [5, 1]}}),
    "bins on text": (InvalidInput, "got 4 such rows of 4", {"bins": {"sex": 5}}),
    "levels elsewhere": (InvalidInput, "'times', which is not", {"levels": {"times": [1]}}),
    "levels of a quasi-identifier": (InvalidInput, "'sex' holds values that are not", {"levels": {"sex": ["x"]}}),
    "levels no mapping": (InvalidInput, "levels must map", {"levels": ["a", "b"]}),
    "levels as text": (InvalidInput, "must be a list", {"levels": {"job": "ab"}}),
    "levels twice": (InvalidInput, "declared twice", {"levels": {"job": ["a", "b", "a"]}}),
    "levels empty": (InvalidInput, "empty list", {"levels": {"job": []}}),
    "levels with none": (InvalidInput, "missing value", {"levels": {"job": ["a", None]}}),
    "levels with nan": (InvalidInput, "missing value", {"levels": {"job": ["a", math.nan]}}),
    "levels too few": (InvalidInput, "got 2 records with 2 other values", {"levels": {"job": ["a", "z"]}}),
}


OF_FIRST_LINES = {
    "unknown column": "got 4 columns; column 2 has a name much like it",
    "unknown column by case": "got 4 columns; column 3 has a name much like it",
    "unknown column lists": "got 4 columns; check how the names of its columns are spelt",
}
"""What is said of text files, whose first line may be a record."""


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_request(case: str, kind: str, tmp_path: Path) -> None:
    error, words, options = REQUESTS[case]
    source: Any = frame()
    if kind == "csv":
        words = OF_FIRST_LINES.get(case, words)
        source = tmp_path / "people.csv"
        frame().to_csv(source, index=False)
    arguments = {"quasi_identifiers": ["age", "sex"], "sensitive": "job", **options}
    quasi, sensitive = arguments.pop("quasi_identifiers"), arguments.pop("sensitive")
    refused(error, words, source, quasi, sensitive, **arguments)


COUNTS: dict[str, tuple[str, list[Any]]] = {
    "negative": ("are not counts", [1, -2, 3, 4]),
    "negative infinite": ("are not counts", [1, -math.inf, 3, 4]),
    "fractional": ("are not counts", [1, 2.5, 3, 4]),
    "text": ("are not counts", ["1", SECRET, "3", "4"]),
    "missing": ("are not counts", [1, None, 3, 4]),
    "nan": ("are not counts", [1, math.nan, 3, 4]),
    "infinite": ("are not counts", [1.0, math.inf, 3, 4]),
    "huge": ("are not counts", [1, 2**53 + 1, 3, 4]),
    "huge float": ("are not counts", [1, 1e300, 3, 4]),
    "total": ("too many records", [2**53 - 1, 2, 0, 0]),
    "large total": ("too many records", [2**53 - 1] * 4),
    "zero": ("is zero", [0, 0, 0, 0]),
    "truth": ("holds no numbers", [True, True, False, True]),
    "dates": ("holds no numbers", [pd.Timestamp("2020-01-01")] * 4),
}


@pytest.mark.parametrize("case", COUNTS)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_counts(case: str, kind: str, tmp_path: Path) -> None:
    words, values = COUNTS[case]
    source: Any = frame(times=values)
    if kind == "csv":
        source.to_csv(tmp_path / "a.csv", index=False)
        source, words = tmp_path / "a.csv", "are not counts" if words == "holds no numbers" else words
    refused(InvalidInput, words, source, count="times")


def test_the_largest_total_is_allowed() -> None:
    assert tabulate(frame(times=[2**53 - 1, 1, 0, 0]), "age", "job", count="times").n_records == 2**53
    assert tabulate(frame(times=["7", " 2 ", "3.0", "1e2"]), "age", "job", count="times").n_records == 112


def test_one_level(tmp_path: Path) -> None:
    text = refused(InvalidInput, "nothing to protect", frame(job=[SECRET] * 4))
    assert "with levels" in text
    refused(InvalidInput, "every value is missing", frame(job=[None] * 4))
    refused(InvalidInput, "one level only", frame(job=["a"] * 4), levels={"job": ["a"]})
    assert (
        tabulate(frame(job=["a"] * 4), "age", "job", levels={"job": ["a", "b"]}, count=False).profiles().n_levels == 2
    )


def test_missing_values() -> None:
    holes = frame(sex=["f", None, None, "m"], job=["a", "b", None, "a"])
    text = refused(InvalidInput, "2 records in 'sex', 1 record in 'job'", holes, missing="error")
    assert "missing='drop'" in text
    weighted = refused(InvalidInput, "5 records in 'sex', 3 records in 'job'", holes, missing="error", count="times")
    assert "category" in weighted
    refused(InvalidInput, "no record is left", frame(sex=[None] * 4), missing="drop")
    table = tabulate(holes, ["age", "sex"], "job", missing="drop", levels={"job": ["a", "b"]}, count=False)
    assert (table.n_records, table.dropped_records) == (2, 2)
    assert tabulate(frame(), "age", "job", missing="error", count=False).n_records == 4


def test_levels_with_spaces_around_the_values() -> None:
    refused(InvalidInput, "strip the spaces", frame(job=[" a", "b", "b", "a "]), levels={"job": ["a", "b"]})


def test_bins_on_bad_columns() -> None:
    refused(InvalidInput, "1 such row of 4", frame(age=["20", "30", SECRET, "50"]), bins={"age": 5})
    refused(InvalidInput, "infinity", frame(age=[1, 2, math.inf, 3]), bins={"age": 5})
    refused(InvalidInput, "infinity", frame(age=[1, 2, -math.inf, 3]), bins={"age": [0, 5]})
    refused(InvalidInput, "too large", frame(age=[1, 2, 1e30, 3]), bins={"age": 0.1})
    refused(InvalidInput, "not numeric", frame(age=pd.to_datetime(["2020-01-01"] * 4)), bins={"age": 5})
    refused(InvalidInput, "not numeric", frame(age=[True, False, True, False]), bins={"age": 5})


def test_too_many_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_LEVELS", 2)
    text = refused(InvalidInput, "more than 2 values", frame(job=["a", "b", "c", SECRET]))
    assert "bins" in text


def test_frames(tmp_path: Path) -> None:
    refused(InvalidInput, "or mixes values", frame(job=[1, SECRET, 2.5, None]))
    refused(InvalidInput, "or mixes values", frame(job=[True, 1, "a", SECRET]))
    refused(InvalidInput, "or mixes values", frame(job=pd.Categorical(["a", 1, SECRET, "a"])))
    twice = pd.concat([frame(), frame()[["sex"]]], axis=1)
    refused(InvalidInput, "more than one column named 'sex'", twice)
    assert tabulate(twice, "age", "job", count=False).n_records == 4
    arrow = pa.table([pa.array(["a", "b"])] * 3, names=["age", "job", "job"])
    refused(InvalidInput, "more than one column named 'job'", arrow, "age", "job")
    refused(InvalidInput, "holds array values", pa.table({"age": [[1], [2]], "job": ["a", "b"]}), "age", "job")
    refused(InvalidInput, "holds binary values", pa.table({"age": [b"1", b"2"], "job": ["a", "b"]}), "age", "job")
    refused(InvalidInput, "no records", frame()[:0])
    refused(InvalidInput, "no records", pl.DataFrame({"age": [], "sex": [], "job": []}))
    objects = pl.DataFrame({"age": [1, 2], "job": pl.Series([object(), object()], dtype=pl.Object)})
    refused(InvalidInput, "column 'job' holds binary values", objects, "age", "job")
    lazy = pl.LazyFrame({"age": ["1", SECRET], "job": ["a", "b"]}).with_columns(pl.col("age").cast(pl.Int64))
    refused(InvalidInput, "cannot be read", lazy, "age", "job")
    refused(InvalidInput, "cannot be read", frame(job=pd.Series(["a", "b", "\ud800", SECRET], dtype=object)))
    for other in (None, 5, [{"age": 1}], BASE):
        refused(InvalidInput, "not of a kind that can be read", other)
    refused(InvalidInput, "be read", pd.Series([1]))  # a stream of Arrow batches from pandas 3 on


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SOURCES: dict[str, Any] = {
    "no such file": "none.csv",
    "no file matches": "*.csv",
    "*.parquet": ".",
    "must be the name of a file": None,
}


@pytest.mark.parametrize("words", SOURCES)
def test_sources_that_are_no_files(words: str, tmp_path: Path) -> None:
    refused(InvalidInput, words, "" if SOURCES[words] is None else tmp_path / SOURCES[words])


def test_addresses_that_are_not_read() -> None:
    refused(InvalidInput, "name one with table", f"postgresql://me:{SECRET}@host/db")
    refused(InvalidInput, "s3://", "s3://bucket/a.parquet")
    refused(InvalidInput, "must be the name of a file", "a\0.csv")


HEAD = "age,sex,job\n"
FILES: dict[str, tuple[str, str, str | bytes]] = {
    "other kind": ("not known", "a.docx", "a,b"),
    "no suffix": ("not known", "a", "a,b"),
    "empty": ("is empty", "a.csv", ""),
    "blank": ("is empty", "a.csv", " \n\n"),
    "empty parquet": ("is empty", "a.parquet", ""),
    "packed nothing": ("is empty", "a.csv.gz", gzip.compress(b"")),
    "not gzip": ("gzip", "a.csv.gz", f"{HEAD}1,f,{SECRET}\n"),
    "cut gzip": ("gzip", "a.csv.gz", gzip.compress(HEAD.encode() * 99)[:30]),
    "blank first line": ("first line", "a.csv", f"\n{HEAD}1,f,a\n"),
    "header only": ("no records", "a.csv", HEAD),
    "header without end": ("no records", "a.csv", HEAD.strip()),
    "binary": ("binary", "a.csv", HEAD + "\0\1\2"),
    "latin": ("UTF-8", "a.csv", HEAD.encode() + b"1,f,\xe9\n"),
    "late latin": ("line 20,002 is not UTF-8", "a.csv", (HEAD + "1,f,a\n" * 20000 + SECRET).encode() + b",f,\xe9\n"),
    "half of utf-16": ("not utf-16 text", "a.csv", f"{HEAD}1,f,a\n".encode("utf-16")[:-1]),
    "not parquet": ("not Parquet", "a.parquet", f"{HEAD}1,f,{SECRET}"),
    "parquet as csv": ("is binary", "a.csv", "PAR1abcdPAR1"),
    "cut parquet": ("cut short", "a.parquet", f"PAR1{SECRET}"),
    "encrypted": ("encrypted", "a.parquet", "PARExxxxxxxxPARE"),
    "broken parquet": ("cannot be read", "a.parquet", b"PAR1" + SECRET.encode() * 9 + b"\x20\0\0\0PAR1"),
    "long line": ("line 3 has 4 fields, the header has 3", "a.csv", f"{HEAD}1,f,a\n2,f,{SECRET},b\n"),
    "short line": ("line 3 has 2 fields, the header has 3", "a.csv", f"{HEAD}1,f,a\n2,{SECRET}\n"),
    "open quote": ("never closed", "a.csv", f'{HEAD}1,f,a\n2,f,"{SECRET}\n'),
    "open quote in the header": ("of the header of the file is too long", "a.csv", f'"{HEAD}' + "1,f,a\n" * 40000),
    "mixed line ends": ("line endings", "a.csv", f"{HEAD}1,f,a\r\n2,m,{SECRET}\n"),
}


@pytest.mark.parametrize("case", FILES)
def test_files(case: str, tmp_path: Path) -> None:
    words, name, content = FILES[case]
    refused(InvalidInput, words, put(tmp_path / name, content))


def test_a_file_without_a_header(tmp_path: Path) -> None:
    refused(UnknownName, "names none of the columns", put(tmp_path / "a.csv", f"x,f,{SECRET}\ny,m,b\n"))


def test_bad_lines_are_seen_whichever_columns_are_used(tmp_path: Path) -> None:
    for bad in (f"1,2,3,4,{SECRET}", "1,2,3", f'1,2,3,"{SECRET}'):
        path = put(tmp_path / "a.csv", "a,b,c,d\n" + "1,2,3,4\n2,3,4,5\n" * 50 + bad + "\n")
        for columns in (("a", "b"), ("c", "d"), ("a", "d")):
            refused(InvalidInput, "line 102", path, *columns)


def test_packed_files_are_checked_to_their_end(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"age,sex,job\n" + b"1,f,a\n2,m,b\n" * 20000))
    assert tabulate(put(tmp_path / "a.csv.gz", bytes(data)), "age", "job").n_records == 40000
    assert (
        tabulate(put(tmp_path / "a.csv.gz", bytes(data) + gzip.compress(b"3,f,c\n")), "age", "job").n_records == 40001
    )
    data[-6] ^= 255
    refused(InvalidInput, "gzip", put(tmp_path / "a.csv.gz", bytes(data)))


def test_mixed_and_unlike_files(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().to_parquet(tmp_path / "b.parquet")
    refused(InvalidInput, "both text and Parquet", tmp_path / "*")
    frame(job=[1, 2, 3, 4]).to_parquet(tmp_path / "c.parquet")
    refused(InvalidInput, "do not fit together", tmp_path / "*.parquet")
    put(tmp_path / "b.csv", "age,sex\n1,f\n")
    refused(UnknownName, "'b.csv' has no column 'job'", tmp_path / "*.csv")
    put(tmp_path / "b.csv", "")
    refused(InvalidInput, "is empty", tmp_path / "*.csv")
    pq.write_table(pa.table([pa.array(["a", "b"])] * 3, names=["age", "job", "job"]), tmp_path / "d.parquet")
    refused(InvalidInput, "more than one column named 'job'", tmp_path / "d.parquet", "age", "job")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.csv", "age,sex,job\n1,f,a\n")

    def deny(*arguments: Any, **options: Any) -> Any:
        raise PermissionError(13, SECRET)

    monkeypatch.setattr(Path, "open", deny)
    refused(InvalidInput, "no permission", path)


@pytest.mark.slow
def test_a_schema_of_many_columns_is_not_listed_in_full(tmp_path: Path) -> None:
    wide = pa.table({f"c{place}": [1] for place in range(5000)})
    refused(UnknownName, "and 4,970 more", wide, "c1", "d1")
    path = put(tmp_path / "a.csv", ",".join(f"c{place}" for place in range(5000)) + "\n" + "1," * 4999 + "1\n")
    assert tabulate(path, "c1", "c4999", levels={"c4999": [1, 2]}).n_records == 1
