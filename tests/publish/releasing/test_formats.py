"""One record or none, in every kind of source: what was declared is released in the same form, or refused alike."""

from __future__ import annotations

import gzip
import io
import json
import random
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")
pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'files' is not installed")

Capture = pytest.CaptureFixture[str]
SCHEMA = pa.schema([("sex", pa.string()), ("age", pa.float64()), ("job", pa.string())])
RECORDS = [("f", 30.0, "cook"), ("m", 41.0, "smith"), ("f", 70.0, "smith")]
LEVELS = {"sex": ["f", "m"], "job": ["cook", "smith"]}
DECLARED: dict[str, Any] = {"levels": LEVELS, "bins": {"age": [0, 18, 65]}, "outside": "drop"}
Frame = pd.DataFrame


def arrow(frame: Frame) -> pa.Table:
    return pa.Table.from_pandas(frame, SCHEMA, preserve_index=False)


def write_zip(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(name, content)


def to_parquet(frame: Frame) -> bytes:
    pq.write_table(arrow(frame), stream := io.BytesIO())
    return stream.getvalue()


def to_lines(frame: Frame) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in frame.to_dict("records")).encode()


def write_database(path: Path, frame: Frame) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (sex TEXT, age REAL, job TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", frame.itertuples(index=False))


def write_duckdb(path: Path, frame: Frame) -> None:
    with closing(duckdb.connect(path)) as connection:
        connection.register("given", arrow(frame))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")


FILES: dict[str, Callable[[Path, Frame], Any]] = {
    "csv": lambda path, frame: frame.to_csv(path, index=False),
    "tsv": lambda path, frame: frame.to_csv(path, index=False, sep="\t"),
    "txt": lambda path, frame: frame.to_csv(path, index=False, sep=";", encoding="utf-16"),
    "csv.gz": lambda path, frame: path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())),
    "parquet": lambda path, frame: path.write_bytes(to_parquet(frame)),
    "feather": lambda path, frame: pyarrow.feather.write_feather(arrow(frame), path),
    "xlsx": lambda path, frame: frame.to_excel(path, index=False),
    "sav": lambda path, frame: pyreadstat.write_sav(frame, str(path)),
    "dta": lambda path, frame: pyreadstat.write_dta(frame, str(path)),
    "xpt": lambda path, frame: pyreadstat.write_xport(frame, str(path)),
    "jsonl": lambda path, frame: path.write_bytes(to_lines(frame)),
    "csv.zip": lambda path, frame: write_zip(path, "people.csv", frame.to_csv(index=False).encode()),
    "parquet.zip": lambda path, frame: write_zip(path, "people.parquet", to_parquet(frame)),
    "duckdb": write_duckdb,
}
SOURCES: dict[str, Callable[[Path, Frame], Any]] = {
    "pandas": lambda _, frame: frame,
    "polars": lambda _, frame: pl.from_arrow(arrow(frame)),
    "lazy": lambda _, frame: pl.from_arrow(arrow(frame)).lazy(),  # type: ignore[union-attr]
    "arrow": lambda _, frame: arrow(frame),
    "stream": lambda _, frame: arrow(frame).to_reader(),
    "dataset": lambda _, frame: pyarrow.dataset.dataset(arrow(frame)),
    "relation": lambda _, frame: duckdb.from_arrow(arrow(frame)),
    "ibis": lambda _, frame: ibis.memtable(arrow(frame)),
}


def see(source: Any, **more: Any) -> Any:
    """What a reader of a release sees, but for the noise."""
    try:
        table = cr.tabulate(source, ["sex", "age"], "job", **DECLARED, **more)
        found = cr.release(table, cr.Geometric(epsilon=1.0), may_be_missing="sex", dense=True)
    except CellriskError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    labels = [found.frame.columns.tolist(), *found.frame.iloc[:, :-1].astype(str).to_numpy().tolist()]
    return labels, found.to_dict(), {name: str(kind) for name, kind in found.frame.dtypes.items()}


def make(number: int) -> Frame:
    return arrow(pd.DataFrame(RECORDS[:number], columns=SCHEMA.names)).to_pandas()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.slow] if kind in ("sav", "dta", "xpt") else [])
        for kind in (*FILES, *SOURCES, "sqlite")
    ],
)
def test_nobody_is_released_as_somebody_is(kind: str, tmp_path: Path) -> None:
    seen = []
    for number in (3, 1, 0):
        path = tmp_path / str(number) / f"people.{kind.removeprefix('csv.zip')}"
        path = path.with_suffix(".zip") if kind.endswith("zip") else path
        path.parent.mkdir()
        if kind == "sqlite":
            write_database(path, make(number))
            seen.append(see(f"sqlite://{path}", table="people"))
        elif kind in FILES:
            FILES[kind](path, make(number))
            seen.append(see(path, **({"table": "people"} if kind == "duckdb" else {})))
        else:
            seen.append(see(SOURCES[kind](path, make(number))))
    assert not isinstance(seen[0], str), seen[0]
    assert [each == seen[0] for each in seen] == [True] * 3, seen


@pytest.mark.parametrize("kind", ["several", "wide", "counts"])
def test_nobody_in_tables_of_another_shape(kind: str, tmp_path: Path) -> None:
    seen = []
    for number in (3, 1, 0):
        folder = tmp_path / str(number)
        folder.mkdir()
        frame = make(number)
        more: dict[str, Any] = {}
        if kind == "several":
            for place in range(2):
                frame[place::2].to_csv(folder / f"{place}.csv", index=False)
        elif kind == "counts":
            frame.assign(n=2).to_csv(folder / "0.csv", index=False)
            more = {"count": "n"}
        else:
            frame.drop(columns="job").assign(cook=1, smith=0).to_csv(folder / "0.csv", index=False)
            table = cr.tabulate(
                folder / "0.csv", ["sex", "age"], "job", wide=["cook", "smith"], levels={"sex": ["f", "m"]},
                bins={"age": [0, 18, 65]}, outside="drop",
            )  # fmt: skip
            found = cr.release(table, cr.Geometric(epsilon=1.0), dense=True)
            seen.append([found.frame.iloc[:, :-1].astype(str).to_numpy().tolist(), found.to_dict()])
            continue
        seen.append(see(str(folder / "*.csv"), **more))
    assert not isinstance(seen[0], str), seen[0]
    assert [each == seen[0] for each in seen] == [True] * 3, seen


@pytest.mark.parametrize("write", [lambda frame: frame.to_csv(index=False).encode(), to_parquet])
def test_nobody_on_standard_input(
    write: Callable[[Frame], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    seen = []
    declared = ["--qid", "sex", "--sensitive", "job", "--levels", "sex=f|m", "--levels", "job=cook|smith"]
    for number in (3, 1, 0):
        monkeypatch.chdir(tmp_path)
        given = SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(write(make(number))))
        monkeypatch.setattr(sys, "stdin", given)
        code = main(["release", "-", *declared, "--epsilon", "1", "--force", "--output", "out.csv"])
        described = json.loads(Path("out.csv.json").read_text())
        seen.append((code, capsys.readouterr(), {**described, "sha256": ""}))
    assert seen[0][0] == 0
    assert [each == seen[0] for each in seen] == [True] * 3


STRANGE = [
    *({}, {"sex": "f"}, {"other": 1, "count": 7}, {"sex": None, "age": None, "job": None}, {"sex": ["f"], "job": {}}),
    *({"sex": "f", "age": 10**5000, "job": "cook"}, {"sex": 1.5, "age": "x", "job": True}, {"": ""}),
]


def test_the_keys_of_no_record_decide_on_a_release_of_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "set_int_max_str_digits", lambda _: None)
    usual = to_lines(make(3)).decode()
    lines = [json.dumps(record, default=str) if record.get("age") != 10**5000 else '{"age": 1' + "0" * 5000 + "}"
             for record in STRANGE]  # fmt: skip
    draw = random.Random(3)
    contents = ["", "\n\n", *lines[:2], *(draw.choice((f"{usual}{line}", f"{line}\n{usual}")) for line in lines)]
    expected = see(arrow(make(3)))
    for place, content in enumerate(contents):
        path = tmp_path / f"{place}.jsonl"
        path.write_text(content, encoding="utf-8")
        assert see(path) == expected, content[:200]
