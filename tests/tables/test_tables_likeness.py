"""Tables of counts whose column of counts nobody named: refused by every command, and people never are for long."""

from __future__ import annotations

import re
import sqlite3
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.examples import examples

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.count_tables import PLAIN_COUNTS, Numbers, describe_numbers, is_named_like_counts
from cellrisk.errors import CellriskError, InvalidInput

Capture = pytest.CaptureFixture[str]
LOOKS = r"column '{}' looks like counts, and each combination .* occurs once"
KEYS = list(product(["north", "south"], ["f", "m"], ["cook", "smith", "none"]))


def count_table(name: str = "n", counts: list[Any] | None = None) -> pd.DataFrame:
    frame = pd.DataFrame(KEYS, columns=["place", "sex", "job"])
    return frame.assign(**{name: [3, 1, 0, 7, 2, 2, 40, 5, 1, 1, 9, 1] if counts is None else counts})


def as_csv(frame: pd.DataFrame, folder: Path) -> str:
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return str(path)


def as_database(frame: pd.DataFrame, folder: Path) -> str:
    path = folder / "table.sqlite"
    with sqlite3.connect(path) as connection:
        frame.to_sql("people", connection, index=False)
    return f"sqlite://{path}"


@pytest.mark.parametrize("name", ["n", "COUNT(*)", "value"])
def test_a_table_of_counts_is_refused_by_its_column(name: str) -> None:
    with pytest.raises(InvalidInput, match=LOOKS.format(re.escape(name))):
        cr.tabulate(count_table(name), ["place", "sex"], "job")


@pytest.mark.parametrize("name", ["count", "Freq", "n_people", "nPeople", "total", "Anzahl", "x", "Wert"])
def test_names_of_counts_are_known_or_say_nothing(name: str) -> None:
    assert Numbers(name, 12, 12, 12, 12, 7, 0.0, 40.0).look_like_counts(noisy=False)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_frames_and_files_are_refused_alike(kind: str, tmp_path: Path) -> None:
    frame = count_table("patients")
    frame.to_parquet(tmp_path / "table.parquet")
    source = {"frame": frame, "csv": as_csv(frame, tmp_path), "parquet": tmp_path / "table.parquet"}[kind]
    with pytest.raises(InvalidInput, match=LOOKS.format("patients")):
        cr.tabulate(source, ["place", "sex"], "job")
    assert cr.tabulate(source, ["place", "sex"], "job", count="patients").n_records == 72
    assert cr.tabulate(source, ["place", "sex"], "job", count="none").n_records == 12


def test_tables_of_counts_in_databases_are_refused(tmp_path: Path) -> None:
    address = as_database(count_table("patients"), tmp_path)
    with pytest.raises(InvalidInput, match=LOOKS.format("patients")):
        cr.tabulate(address, ["place", "sex"], "job", table="people")
    assert cr.tabulate(address, ["place", "sex"], "job", table="people", count=False).n_records == 12


@pytest.mark.parametrize("use", [{"quasi_identifiers": ["sex"]}, {"sensitive": ["job", "sex"]}, {"bins": {"age": 10}}])
def test_a_part_of_its_columns_several_attributes_and_bins_change_nothing(use: dict[str, Any]) -> None:
    """With a part of the columns, or with bins, combinations repeat; the rows are cells all the same."""
    frame = count_table().assign(age=range(12))
    asked: dict[str, Any] = {"quasi_identifiers": ["place", "sex", "age"], "sensitive": "job", **use}
    if use.keys() & {"sensitive", "quasi_identifiers"}:
        frame = count_table()
        asked["quasi_identifiers"] = use.get("quasi_identifiers", ["place"])
    with pytest.raises(InvalidInput, match=LOOKS.format("n")):
        cr.tabulate(frame, **asked)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("person", list(range(1, 13))),
        ("person", [*range(1012, 1000, -1)]),
        ("age", [31, 45, 19, 31, 62, 7, 45, 80, 3, 22, 22, 31]),
        ("birth", [1987, 1990, 2001, 1987, 1950, 1960, 1999, 2004, 2011, 1976, 1976, 1988]),
        ("zip_code", [10115, 10115, 80331, 20095, 20095, 1067, 50667, 50667, 70173, 4109, 4109, 99084]),
        ("smokes", [0, 1] * 6),
        ("n", [1] * 12),
        ("n", ["a"] * 12),
        ("share", [0.5, 1.5] * 6),
        ("change", [-1, 3] * 6),
    ],
)
def test_other_columns_of_numbers_are_no_counts(name: str, values: list[Any]) -> None:
    found = describe_numbers(count_table(name, values), [name], {})
    assert not any(each.look_like_counts(noisy=False) for each in found)
    assert [each.rows for each in found] == ([12] if len(found) else [])


def test_people_with_a_number_are_people() -> None:
    assert cr.tabulate(count_table("person", list(range(1, 13))), ["place", "sex"], "job").n_records == 12


def test_rows_that_repeat_are_people() -> None:
    people = pd.concat([count_table("children")] * 2)
    assert cr.tabulate(people, ["place", "sex"], "job").n_records == 24
    assert cr.tabulate(pd.concat([count_table("n")] * 2), ["place", "sex"], "job").n_records == 24
    several = count_table("children").assign(wing=["a", "b"] * 6)
    assert cr.tabulate(pd.concat([several] * 2), "place", ["job", "sex", "wing"]).n_records == 24


def test_one_row_is_one_person() -> None:
    levels = {"job": ["cook", "smith"]}
    assert cr.tabulate(count_table().head(1), ["place", "sex"], "job", levels=levels).n_records == 1


def test_a_column_may_be_named_none(tmp_path: Path, capsys: Capture) -> None:
    frame = count_table("none")
    assert cr.tabulate(frame, ["place", "sex"], "job", count="none").n_records == 72
    assert cr.tabulate(frame, ["place", "sex"], "job", count=False).n_records == 12
    assert (
        main(["inspect", as_csv(frame, tmp_path), "--qid", "place,sex", "--sensitive", "job", "--count", "none"]) == 0
    )
    with pytest.raises(InvalidInput, match="name of a column"):
        cr.tabulate(frame, ["place", "sex"], "job", count=True)


def test_a_name_that_may_be_a_value_is_not_told() -> None:
    with pytest.raises(InvalidInput, match="a column without a proper name looks like counts") as refusal:
        cr.tabulate(count_table("4711 Example Street"), ["place", "sex"], "job")
    assert "4711" not in str(refusal.value)


def test_columns_that_cannot_be_read_do_not_matter() -> None:
    frame = count_table("patients").assign(mixed=[1, "a", 2.0] * 4, nested=[[1]] * 12)
    with pytest.raises(InvalidInput, match=LOOKS.format("patients")):
        cr.tabulate(frame, ["place", "sex"], "job")
    assert cr.tabulate(frame.drop(columns="patients"), ["place", "sex"], "job").n_records == 12


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
    assert "name it with --released-count count," in told
    with pytest.raises(InvalidInput, match=r"count=\.\.\."):
        cr.audit(table, released)
    assert cr.audit(table, released, count="count").value() == 1.0
    assert main(["audit", original, str(released), *asked, "--released-count", "none"]) == 0
    assert cr.audit(table, released, count=False).comparison.shown_sizes.max() == 3


@pytest.mark.parametrize("counts", [[0.5, -1.25] * 6, [-1, 4, 0] * 4], ids=["fractions", "negative"])
@pytest.mark.parametrize("name", ["count", "published"])
def test_released_counts_may_be_any_numbers(name: str, counts: list[float]) -> None:
    table = cr.tabulate(count_table(), ["place", "sex"], "job", count="n")
    with pytest.raises(InvalidInput, match=LOOKS.format(name)):
        cr.audit(table, count_table(name, counts))


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    cells=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=4, max_size=30, unique=True),
    name=st.sampled_from(["n", "patients", "value", "zahl"]),
    data=st.data(),
)
def test_people_counted_are_people_or_a_refusal(cells: list[Any], name: str, data: st.DataObject) -> None:
    """However people are counted into a table, it is never answered for as many people as it has rows; and the people
    themselves are answered for, in any order, wherever two of them are alike."""
    assume(len({level for _, _, level in cells}) > 1)  # one level alone is refused
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(cells), max_size=len(cells)))
    frame = pd.DataFrame([tuple(map(str, key)) for key in cells], columns=["a", "b", "y"]).assign(**{name: counts})
    people = frame.loc[frame.index.repeat(counts)].drop(columns=name)
    assert cr.tabulate(people.sample(frac=1, random_state=1), ["a", "b"], "y").n_records == sum(counts)
    numbered = sorted(counts) == list(range(min(counts), min(counts) + len(counts))) and name in ("value", "zahl")
    if max(counts) > 1 and not numbered:
        with pytest.raises(CellriskError, match="looks like counts"):
            cr.tabulate(frame, ["a", "b"], "y")
    assert cr.tabulate(frame, ["a", "b"], "y", count=name).n_records == sum(counts)


def test_the_check_asks_nothing_more_of_people_who_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting knows that somebody occurs twice; the source is not opened again."""
    opened = []
    monkeypatch.setattr(
        "cellrisk.counts.count_tables.open_source",
        lambda *given, **named: opened.append(given) or pytest.fail("opened"),
    )
    people = pd.concat([count_table("children")] * 2)
    assert cr.tabulate(people, ["place", "sex"], "job").n_records == 24
    assert cr.tabulate(count_table(), ["place", "sex"], "job", count=False).n_records == 12
    assert not opened


def test_three_numbers_in_a_row_are_counts_unless_they_start_at_one() -> None:
    assert Numbers("x", 3, 3, 3, 3, 3, 4.0, 6.0).look_like_counts(noisy=False)
    assert not Numbers("x", 3, 3, 3, 3, 3, 1.0, 3.0).look_like_counts(noisy=False)


@pytest.mark.parametrize("name", ["n_people", "total", "Anzahl", "people", "number", "count_total", "frequenza", "N"])
def test_names_of_counts_decide_where_records_must_not(name: str) -> None:
    levels = {"place": ["north", "south"], "sex": ["f", "m"], "job": ["cook", "smith", "none"]}
    asked: dict[str, Any] = {"quasi_identifiers": ["place", "sex"], "sensitive": "job", "levels": levels}
    with pytest.raises(InvalidInput, match="is named like counts, and is not in use"):
        cr.tabulate(count_table(name), **asked, outside="drop")
    assert cr.tabulate(count_table(name), **asked, outside="drop", count="none").n_records == 12


def test_ordinary_columns_of_people_are_not_named_like_counts() -> None:
    names = [
        *["education-num", "number_of_children", "num_visits", "phone_number", "person_id", "n_siblings", "pop_music"]
    ]
    names += [
        *[
            "total_income",
            "hours-per-week",
            "patient_number",
            "capital-gain",
            "fnlwgt",
            "age",
            "house_number",
            "sample_size",
        ]
    ]
    assert [name for name in [*names, *cr.datasets.adult().column_names] if is_named_like_counts(name)] == []
    assert all(is_named_like_counts(name) for name in PLAIN_COUNTS)


@pytest.mark.parametrize("value", [-1, 0.5, "<5", "1,000", None])
@pytest.mark.parametrize("name", ["n", "Count", "freq"])
def test_a_plain_name_is_enough_whatever_one_value_is(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=LOOKS.format(name)):
        cr.tabulate(count_table(name, [3, 1, value, *[2] * 9]), ["place", "sex"], "job")


def test_nobody_is_told_to_say_none_where_that_is_a_column() -> None:
    frame = count_table().assign(none="x")
    asked: dict[str, Any] = {"quasi_identifiers": ["place", "sex"], "sensitive": "job"}
    for more in ({}, {"outside": "drop"}):
        with pytest.raises(InvalidInput, match="or rename column 'none' and say --count none"):
            cr.tabulate(frame, **asked, **more)
    with pytest.raises(InvalidInput, match=r"column of that very name; or, .*rename it or say count=False"):
        cr.tabulate(frame, **asked, count="none")
    with pytest.raises(InvalidInput, match=r"column of that very name; or, .*rename it or say count=False"):
        cr.audit(cr.tabulate(frame, **asked, count="n"), frame, count="none")
    assert cr.tabulate(frame, **asked, count=False).n_records == 12
    in_use = cr.tabulate(frame, ["place", "none"], "job", count="none")
    assert (in_use.n_records, in_use.cells().domains[1].labels) == (12, ("x",))
