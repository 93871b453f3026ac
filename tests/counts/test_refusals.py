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
from cellrisk.errors import CellriskError

SECRET = "Xyzzy7391"
BASE: dict[str, list[Any]] = {
    "age": [20, 30, 40, 50],
    "sex": ["f", "m", "f", SECRET],
    "job": ["a", "b", "a", SECRET],
    "times": [1, 2, 3, 4],
}


def frame(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame({**BASE, **changes})


def refused(code: str, source: Any, *roles: Any, **options: Any) -> str:
    quasi, sensitive = roles or (["age", "sex"], "job")
    with pytest.raises(CellriskError) as caught:
        tabulate(source, quasi, sensitive, **options)
    text = str(caught.value)
    assert caught.value.code == code, text
    assert "\n" not in text, text
    assert SECRET not in text, text
    assert len(text) < 400, text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "unknown column": ("no-column", {"quasi_identifiers": ["age", "sexx"]}),
    "unknown column by case": ("no-column", {"sensitive": "JOB"}),
    "unknown column lists": ("no-column", {"sensitive": "qqq"}),
    "unknown count": ("no-column", {"count": "m"}),
    "repeated": ("names", {"quasi_identifiers": ["age", "age"]}),
    "repeated sensitive": ("names", {"sensitive": ["job", "job"]}),
    "no quasi-identifier": ("names", {"quasi_identifiers": []}),
    "no sensitive": ("names", {"sensitive": []}),
    "empty name": ("names", {"sensitive": ""}),
    "number as name": ("names", {"quasi_identifiers": [3]}),
    "nothing as names": ("names", {"quasi_identifiers": None}),
    "both": ("roles", {"sensitive": ["job", "age"]}),
    "count is a quasi-identifier": ("roles", {"count": "age"}),
    "count is sensitive": ("roles", {"count": "job"}),
    "count is a list": ("names", {"count": ["times"]}),
    "missing": ("rule", {"missing": "ignore"}),
    "bins elsewhere": ("roles", {"bins": {"times": 5}}),
    "bins no mapping": ("names", {"bins": 5}),
    "bins width": ("bins", {"bins": {"age": 0}}),
    "bins edges": ("bins", {"bins": {"age": [5, 1]}}),
    "bins on text": ("unusable-values", {"bins": {"sex": 5}}),
    "levels elsewhere": ("roles", {"levels": {"times": [1]}}),
    "levels of a quasi-identifier": ("outside-levels", {"levels": {"sex": ["x"]}}),
    "levels no mapping": ("names", {"levels": ["a", "b"]}),
    "levels as text": ("levels", {"levels": {"job": "ab"}}),
    "levels twice": ("levels", {"levels": {"job": ["a", "b", "a"]}}),
    "levels empty": ("levels", {"levels": {"job": []}}),
    "levels with none": ("levels", {"levels": {"job": ["a", None]}}),
    "levels with nan": ("levels", {"levels": {"job": ["a", math.nan]}}),
    "levels too few": ("outside-levels", {"levels": {"job": ["a", "z"]}}),
}


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_request(case: str, kind: str, tmp_path: Path) -> None:
    code, options = REQUESTS[case]
    source: Any = frame()
    if kind == "csv":
        source = tmp_path / "people.csv"
        frame().to_csv(source, index=False)
    arguments = {"quasi_identifiers": ["age", "sex"], "sensitive": "job", **options}
    quasi, sensitive = arguments.pop("quasi_identifiers"), arguments.pop("sensitive")
    refused(code, source, quasi, sensitive, **arguments)


COUNTS: dict[str, tuple[str, list[Any]]] = {
    "negative": ("unusable-values", [1, -2, 3, 4]),
    "negative infinite": ("unusable-values", [1, -math.inf, 3, 4]),
    "fractional": ("unusable-values", [1, 2.5, 3, 4]),
    "text": ("unusable-values", ["1", SECRET, "3", "4"]),
    "missing": ("unusable-values", [1, None, 3, 4]),
    "nan": ("unusable-values", [1, math.nan, 3, 4]),
    "infinite": ("unusable-values", [1.0, math.inf, 3, 4]),
    "huge": ("unusable-values", [1, 2**53 + 1, 3, 4]),
    "huge float": ("unusable-values", [1, 1e300, 3, 4]),
    "total": ("too-many-records", [2**53 - 1, 2, 0, 0]),
    "large total": ("too-many-records", [2**53 - 1] * 4),
    "zero": ("no-records", [0, 0, 0, 0]),
    "truth": ("column-type", [True, True, False, True]),
    "dates": ("column-type", [pd.Timestamp("2020-01-01")] * 4),
}


@pytest.mark.parametrize("case", COUNTS)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_counts(case: str, kind: str, tmp_path: Path) -> None:
    code, values = COUNTS[case]
    source: Any = frame(times=values)
    if kind == "csv":
        source.to_csv(tmp_path / "a.csv", index=False)
        source, code = tmp_path / "a.csv", "unusable-values" if code == "column-type" else code
    refused(code, source, count="times")


def test_the_largest_total_is_allowed() -> None:
    assert tabulate(frame(times=[2**53 - 1, 1, 0, 0]), "age", "job", count="times").n_records == 2**53
    assert tabulate(frame(times=["7", " 2 ", "3.0", "1e2"]), "age", "job", count="times").n_records == 112


def test_one_level(tmp_path: Path) -> None:
    text = refused("one-level", frame(job=[SECRET] * 4))
    assert "with levels" in text
    refused("one-level", frame(job=[None] * 4))
    refused("one-level", frame(job=["a"] * 4), levels={"job": ["a"]})
    assert (
        tabulate(frame(job=["a"] * 4), "age", "job", levels={"job": ["a", "b"]}, count=False).profiles().n_levels == 2
    )


def test_missing_values() -> None:
    holes = frame(sex=["f", None, None, "m"], job=["a", "b", None, "a"])
    text = refused("missing-values", holes, missing="error")
    assert "2 records in 'sex', 1 record in 'job'" in text
    assert "missing='drop'" in text
    text = refused("missing-values", holes, missing="error", count="times")
    assert "5 records in 'sex', 3 records in 'job'" in text
    refused("no-records", frame(sex=[None] * 4), missing="drop")
    table = tabulate(holes, ["age", "sex"], "job", missing="drop", levels={"job": ["a", "b"]}, count=False)
    assert (table.n_records, table.dropped_records) == (2, 2)
    assert tabulate(frame(), "age", "job", missing="error", count=False).n_records == 4


def test_levels_with_spaces_around_the_values() -> None:
    refused("outside-levels", frame(job=[" a", "b", "b", "a "]), levels={"job": ["a", "b"]})


def test_bins_on_bad_columns() -> None:
    refused("unusable-values", frame(age=["20", "30", SECRET, "50"]), bins={"age": 5})
    refused("unusable-values", frame(age=[1, 2, math.inf, 3]), bins={"age": 5})
    refused("unusable-values", frame(age=[1, 2, -math.inf, 3]), bins={"age": [0, 5]})
    refused("unusable-values", frame(age=[1, 2, 1e30, 3]), bins={"age": 0.1})
    refused("column-type", frame(age=pd.to_datetime(["2020-01-01"] * 4)), bins={"age": 5})
    refused("column-type", frame(age=[True, False, True, False]), bins={"age": 5})


def test_too_many_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_LEVELS", 2)
    text = refused("too-many-levels", frame(job=["a", "b", "c", SECRET]))
    assert "bins" in text


def test_frames(tmp_path: Path) -> None:
    refused("column-type", frame(job=[1, SECRET, 2.5, None]))
    refused("column-type", frame(job=[True, 1, "a", SECRET]))
    refused("column-type", frame(job=pd.Categorical(["a", 1, SECRET, "a"])))
    twice = pd.concat([frame(), frame()[["sex"]]], axis=1)
    refused("ambiguous-column", twice)
    assert tabulate(twice, "age", "job", count=False).n_records == 4
    arrow = pa.table([pa.array(["a", "b"])] * 3, names=["age", "job", "job"])
    refused("ambiguous-column", arrow, "age", "job")
    refused("column-type", pa.table({"age": [[1], [2]], "job": ["a", "b"]}), "age", "job")
    refused("column-type", pa.table({"age": [b"1", b"2"], "job": ["a", "b"]}), "age", "job")
    refused("no-records", frame()[:0])
    refused("no-records", pl.DataFrame({"age": [], "sex": [], "job": []}))
    objects = pl.DataFrame({"age": [1, 2], "job": pl.Series([object(), object()], dtype=pl.Object)})
    refused("column-type", objects, "age", "job")
    lazy = pl.LazyFrame({"age": ["1", SECRET], "job": ["a", "b"]}).with_columns(pl.col("age").cast(pl.Int64))
    refused("frame", lazy, "age", "job")
    refused("column-type", frame(job=pd.Series(["a", "b", "\ud800", SECRET], dtype=object)))
    for other in (None, 5, [{"age": 1}], BASE):
        refused("source", other)
    refused("frame", pd.Series([1]))  # a stream of Arrow batches from pandas 3 on


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("code", "name"), [("no-file", "none.csv"), ("no-file", "*.csv"), ("folder", "."), ("path", "")]
)
def test_sources_that_are_no_files(name: str, code: str, tmp_path: Path) -> None:
    refused(code, tmp_path / name if name else "")


def test_addresses_that_are_not_read() -> None:
    refused("no-table", f"postgresql://me:{SECRET}@host/db")
    refused("address", "s3://bucket/a.parquet")
    refused("path", "a\0.csv")


HEAD = "age,sex,job\n"
FILES: dict[str, tuple[str, str, str | bytes]] = {
    "other kind": ("file-kind", "a.docx", "a,b"),
    "no suffix": ("file-kind", "a", "a,b"),
    "empty": ("no-records", "a.csv", ""),
    "blank": ("no-records", "a.csv", " \n\n"),
    "empty parquet": ("no-records", "a.parquet", ""),
    "packed nothing": ("no-records", "a.csv.gz", gzip.compress(b"")),
    "not gzip": ("damaged", "a.csv.gz", f"{HEAD}1,f,{SECRET}\n"),
    "cut gzip": ("damaged", "a.csv.gz", gzip.compress(HEAD.encode() * 99)[:30]),
    "blank first line": ("no-header", "a.csv", f"\n{HEAD}1,f,a\n"),
    "header only": ("no-records", "a.csv", HEAD),
    "header without end": ("no-records", "a.csv", HEAD.strip()),
    "binary": ("file-kind", "a.csv", HEAD + "\0\1\2"),
    "latin": ("encoding", "a.csv", HEAD.encode() + b"1,f,\xe9\n"),
    "late latin": ("encoding", "a.csv", (HEAD + "1,f,a\n" * 20000 + SECRET).encode() + b",f,\xe9\n"),
    "half of utf-16": ("encoding", "a.csv", f"{HEAD}1,f,a\n".encode("utf-16")[:-1]),
    "not parquet": ("damaged", "a.parquet", f"{HEAD}1,f,{SECRET}"),
    "parquet as csv": ("file-kind", "a.csv", "PAR1abcdPAR1"),
    "cut parquet": ("damaged", "a.parquet", f"PAR1{SECRET}"),
    "encrypted": ("damaged", "a.parquet", "PARExxxxxxxxPARE"),
    "broken parquet": ("unreadable", "a.parquet", b"PAR1" + SECRET.encode() * 9 + b"\x20\0\0\0PAR1"),
    "long line": ("damaged", "a.csv", f"{HEAD}1,f,a\n2,f,{SECRET},b\n"),
    "short line": ("damaged", "a.csv", f"{HEAD}1,f,a\n2,{SECRET}\n"),
    "open quote": ("damaged", "a.csv", f'{HEAD}1,f,a\n2,f,"{SECRET}\n'),
    "open quote in the header": ("too-long", "a.csv", f'"{HEAD}' + "1,f,a\n" * 40000),
    "mixed line ends": ("damaged", "a.csv", f"{HEAD}1,f,a\r\n2,m,{SECRET}\n"),
}


@pytest.mark.parametrize("case", FILES)
def test_files(case: str, tmp_path: Path) -> None:
    code, name, content = FILES[case]
    refused(code, put(tmp_path / name, content))


def test_bad_lines_are_seen_whichever_columns_are_used(tmp_path: Path) -> None:
    for bad in (f"1,2,3,4,{SECRET}", "1,2,3", f'1,2,3,"{SECRET}'):
        path = put(tmp_path / "a.csv", "a,b,c,d\n" + "1,2,3,4\n2,3,4,5\n" * 50 + bad + "\n")
        for columns in (("a", "b"), ("c", "d"), ("a", "d")):
            refused("damaged", path, *columns)


def test_packed_files_are_checked_to_their_end(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"age,sex,job\n" + b"1,f,a\n2,m,b\n" * 20000))
    assert tabulate(put(tmp_path / "a.csv.gz", bytes(data)), "age", "job").n_records == 40000
    assert (
        tabulate(put(tmp_path / "a.csv.gz", bytes(data) + gzip.compress(b"3,f,c\n")), "age", "job").n_records == 40001
    )
    data[-6] ^= 255
    refused("damaged", put(tmp_path / "a.csv.gz", bytes(data)))


def test_mixed_and_unlike_files(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().to_parquet(tmp_path / "b.parquet")
    refused("file-kind", tmp_path / "*")
    frame(job=[1, 2, 3, 4]).to_parquet(tmp_path / "c.parquet")
    refused("column-type", tmp_path / "*.parquet")
    put(tmp_path / "b.csv", "age,sex\n1,f\n")
    refused("no-column", tmp_path / "*.csv")
    put(tmp_path / "b.csv", "")
    refused("no-records", tmp_path / "*.csv")
    pq.write_table(pa.table([pa.array(["a", "b"])] * 3, names=["age", "job", "job"]), tmp_path / "d.parquet")
    refused("ambiguous-column", tmp_path / "d.parquet", "age", "job")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.csv", "age,sex,job\n1,f,a\n")

    def deny(*arguments: Any, **options: Any) -> Any:
        raise PermissionError(13, SECRET)

    monkeypatch.setattr(Path, "open", deny)
    refused("unreadable", path)
