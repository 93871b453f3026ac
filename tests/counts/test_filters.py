"""Tables are said to have nobody in common only if no record can be in both, however values are written and stored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.filters import read_part
from cellrisk.counts.joint import Asked, count_together
from cellrisk.repeat.together.releasing import plan_loss
from tests.counts.conditions import check_exclusive, draw_columns, draw_parts
from tests.near import near

COLUMNS = draw_columns(1)
SOME = ["text", "whole", "double", "truth"]


def test_no_record_is_in_two_parts_that_exclude_each_other_in_a_frame() -> None:
    excluded, shared = check_exclusive(COLUMNS, COLUMNS.column_names, draw_parts(1, 60))
    assert min(excluded, shared) > 300


def save_csv(folder: Path) -> dict[str, Any]:
    pyarrow.csv.write_csv(COLUMNS.select(SOME), folder / "people.csv")
    return {"source": folder / "people.csv"}


def save_duckdb(folder: Path) -> dict[str, Any]:
    with duckdb.connect(folder / "people.duckdb") as connection:
        connection.register("given", COLUMNS)
        connection.execute('CREATE TABLE people AS SELECT * REPLACE ("text" COLLATE nocase AS "text") FROM given')
    return {"source": folder / "people.duckdb", "table": "people"}


def save_sqlite(folder: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(folder / "people.db")) as connection:
        connection.execute("CREATE TABLE people (text TEXT COLLATE NOCASE, whole INTEGER, double REAL, truth BOOLEAN)")
        rows = zip(*(COLUMNS[name].to_pylist() for name in SOME), strict=True)
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    return {"source": f"sqlite://{folder / 'people.db'}", "table": "people"}


def test_nor_in_files_and_frames(tmp_path: Path) -> None:
    parts = draw_parts(2, 40)
    for save in (save_csv, save_duckdb, save_sqlite, lambda _: {"source": COLUMNS.select(SOME).to_pandas()}):
        excluded, shared = check_exclusive(columns=SOME, parts=parts, **save(tmp_path))
        assert min(excluded, shared) > 100


SPELT = ["0" * zeros + "1" for zeros in range(20)]
TWENTY = [{"qid": "sex", "where": {"region": text}} for text in SPELT]
ASKED: dict[str, Any] = {"epsilon": 1.0, "levels": {"sex": ["f", "m"], "job": ["x", "y"]}}
PEOPLE = pd.DataFrame({"region": [1] * 6 + [2] * 4, "sex": list("fm") * 5, "job": list("xyxyyxyxyx")})


def test_one_number_written_in_twenty_ways_costs_twenty_times() -> None:
    released = cr.release_together(PEOPLE, TWENTY[:3], "job", **ASKED)
    assert released.loss.epsilon == released.cost.epsilon == near(3.0)
    assert not released.cost.apart
    assert plan_loss(TWENTY, "job", epsilon=1.0).epsilon == near(20.0)
    by_accident = [{"qid": "sex", "where": {"region": value}} for value in (1, "1.0")]
    assert cr.release_together(PEOPLE, by_accident, "job", **ASKED).loss.epsilon == near(2.0)
    apart = [{"qid": "sex", "where": {"region": value}} for value in (1, 2)]
    assert cr.release_together(PEOPLE, apart, "job", **ASKED).loss.epsilon == near(1.0)
    assessed = cr.assess_together(PEOPLE, [TWENTY[0], {**TWENTY[1], "qid": "region"}], "job", epsilon=1.0)
    assert assessed.cost.epsilon == near(2.0)


def test_a_limit_and_a_policy_of_one_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    tables = "".join(f'[[table]]\nqid = ["sex"]\nwhere = {{region = "{text}"}}\n' for text in SPELT)
    head = 'source = "people.csv"\nsensitive = "job"\nepsilon = 1.0\nlevels = ["job=x|y", "sex=f|m"]\n'
    Path("set.toml").write_text(head + tables, encoding="utf-8")
    assert main(["ledger", "create", "ledger.db"]) == 0
    assert main(["ledger", "limit", "ledger.db", "--epsilon", "1"]) == 0
    capsys.readouterr()
    release = ["together", "release", "set.toml", "--output", "released"]
    assert main([*release, "--ledger", "ledger.db"]) == 2
    assert "epsilon 20 in all" in capsys.readouterr().err
    Path("cellrisk.toml").write_text("[policy]\nmax-epsilon = 1\n", encoding="utf-8")
    assert main(release) == 3
    assert "the policy asks for an epsilon of at most 1" in capsys.readouterr().err
    assert not Path("released").exists()


def test_a_number_and_a_truth_value_choose_different_people() -> None:
    """Python takes 1, 1.0 and True for equal; each table counts its own people all the same."""
    frame = pa.table({"a": ["1", "true", "1.0", "x", "True"], "s": list("ffmmf"), "job": list("xyxyx")})
    tables = [Asked(("s",), {}, read_part({"a": value})) for value in (1, True, 1.0)]
    found = count_together(frame, tables, "job")
    assert [int(table.counts.sum()) for table in found.tables] == [2, 2, 2]
    assert (found.cell[0] != found.cell[1]).any()
