"""Tables of counts whose column of counts nobody named: refused by every command, and people never are for long."""

from __future__ import annotations

import sqlite3
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.schema import PLAIN_COUNTS, is_named_like_counts
from cellrisk.errors import InvalidInput
from tests.counts.counter import refused

Capture = pytest.CaptureFixture[str]
KEYS = list(product(["north", "south"], ["f", "m"], ["cook", "smith", "none"]))


def count_table(name: str = "n", counts: list[Any] | None = None) -> pd.DataFrame:
    frame = pd.DataFrame(KEYS, columns=["place", "sex", "job"])
    return frame.assign(**{name: [3, 1, 0, 7, 2, 2, 40, 5, 1, 1, 9, 1] if counts is None else counts})


def as_csv(frame: pd.DataFrame, folder: Path) -> str:
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "sqlite"])
def test_frames_and_files_are_refused_alike(kind: str, tmp_path: Path) -> None:
    frame = count_table("patients")
    frame.to_parquet(tmp_path / "table.parquet")
    with sqlite3.connect(tmp_path / "table.sqlite") as connection:
        frame.to_sql("people", connection, index=False)
    sources = {"frame": frame, "csv": as_csv(frame, tmp_path), "parquet": tmp_path / "table.parquet"}
    source = sources.get(kind, f"sqlite://{tmp_path}/table.sqlite")
    asked: Any = {"quasi_identifiers": ["place", "sex"], "sensitive": "job"}
    asked["table"] = "people" if kind == "sqlite" else None
    with refused("count-table"):
        cr.tabulate(source, **asked)
    assert cr.tabulate(source, **asked, count="patients").n_records == 72
    assert cr.tabulate(source, **asked, count="none").n_records == 12


COMMANDS = {
    "inspect": [],
    "assess": ["--epsilon", "1", "--measure", "local"],
    "curve": ["--measure", "local", "--epsilon", "1"],
    "choose": ["--max-risk", "0.9"],
    "utility": ["--epsilon", "1", "--releases", "2"],
    "explain": ["--epsilon", "1"],
    "report": ["--epsilon", "1", "--releases", "2", "--output", "report.html"],
    "release": ["--epsilon", "1", "--observed-levels", "place,sex,job", "--output", "released.csv"],
    "simulate": ["--epsilon", "1", "--releases", "10"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_and_obeys_the_word_none(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [command, as_csv(count_table(), tmp_path), "--qid", "place,sex", "--sensitive", "job", *COMMANDS[command]]
    assert main(asked) == 2
    told = capsys.readouterr().err
    assert "name it with --count n," in told
    assert "--count none" in told
    assert len(told.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert main([*asked, "--count", "none"]) == 0


def test_a_released_table_of_counts_is_never_read_as_records(tmp_path: Path, capsys: Capture) -> None:
    """Two people in each cell, one value in each: all is given away, whatever became of the description."""
    rows = [key for place, key in enumerate(KEYS) if place in (0, 4, 8, 9) for _ in range(2)]
    people = pd.DataFrame(rows, columns=["place", "sex", "job"])
    table = cr.tabulate(people, ["place", "sex"], "job")
    original = as_csv(people, tmp_path)
    asked = ["--qid", "place,sex", "--sensitive", "job", "--levels", "job=cook|smith|none"]
    asked += ["--levels", "place=north|south", "--levels", "sex=f|m"]
    released = tmp_path / "released.csv"
    assert main(["release", original, *asked, "--epsilon", "50", "--output", str(released)]) == 0
    assert main(["audit", original, str(released), *asked]) == 0
    (tmp_path / "released.csv.json").unlink()
    capsys.readouterr()
    assert main(["audit", original, str(released), *asked]) == 2
    told = capsys.readouterr().err
    assert "name it with --released-count count " in told
    with pytest.raises(InvalidInput, match=r"in Python count"):
        cr.audit(table, released)
    assert cr.audit(table, released, count="count").value() == 1.0
    assert main(["audit", original, str(released), *asked, "--released-count", "none"]) == 0
    assert cr.audit(table, released, count=False).comparison.shown_sizes.max() == 3


@pytest.mark.parametrize("name", ["n_people", "total", "Anzahl", "people", "number", "count_total", "frequenza", "N"])
def test_names_of_counts_decide_where_records_must_not(name: str) -> None:
    levels = {"place": ["north", "south"], "sex": ["f", "m"], "job": ["cook", "smith", "none"]}
    asked: dict[str, Any] = {"quasi_identifiers": ["place", "sex"], "sensitive": "job", "levels": levels}
    for outside in ("drop", "error"):
        with refused("count-table"):
            cr.tabulate(count_table(name), **asked, outside=outside)
    assert cr.tabulate(count_table(name), **asked, outside="drop", count="none").n_records == 12


def test_ordinary_columns_of_people_are_not_named_like_counts() -> None:
    names = [
        "education-num", "number_of_children", "num_visits", "phone_number", "person_id", "n_siblings", "pop_music",
        "total_income", "hours-per-week", "patient_number", "capital-gain", "fnlwgt", "age", "house_number",
    ]  # fmt: skip
    assert [name for name in [*names, *cr.datasets.adult().column_names] if is_named_like_counts(name)] == []
    assert all(is_named_like_counts(name) for name in PLAIN_COUNTS)
