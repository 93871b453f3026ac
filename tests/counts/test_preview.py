"""A first look at a file: kinds, distinct values and missing ones, counted by hand or with pandas."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cellrisk.cli import main
from cellrisk.counts import datasets
from cellrisk.counts import preview as module
from cellrisk.counts.preview import Preview, PreviewedColumn, preview_file
from tests.counts.counter import refused

CSV = """text,number,truth,date,mixed,none,spaced
a,1,true,2020-01-01,1,,x y
b,2.50,False,2020-01-02,x,,x y
a,,TRUE,2020-01-01,,, x y
"""


def told(found: Preview) -> dict[str, tuple[str, int | None, int]]:
    return {each.name: (each.kind, each.levels, each.missing) for each in found.columns}


@pytest.fixture(params=["csv", "csv.gz", "semicolons"])
def text_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / ("data.csv.gz" if request.param == "csv.gz" else "data.csv")
    text = CSV.replace(",", ";") if request.param == "semicolons" else CSV
    path.write_bytes(gzip.compress(text.encode()) if request.param == "csv.gz" else text.encode())
    return path


def test_text_is_read_as_what_all_of_it_is(text_file: Path) -> None:
    found = preview_file(text_file)
    assert found.rows == 3
    assert told(found) == {
        "text": ("text", 2, 0),
        "number": ("number", 2, 1),
        "truth": ("truth", 3, 0),
        "date": ("date", 2, 0),
        "mixed": ("text", 2, 1),
        "none": ("text", 0, 3),
        "spaced": ("text", 2, 0),
    }


def test_all_rows_decide_what_text_is_read_as(tmp_path: Path) -> None:
    rows = [
        ("1", "true", "", ""),
        ("2", "false", "", ""),
        *[("3", "true", "2020-01-01", "5")] * 2,
        ("x", "maybe", "", ""),
    ]
    text = "number,truth,late-date,late-number\n" + "".join(",".join(row) + "\n" for row in rows)
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    found = told(preview_file(tmp_path / "data.csv"))
    assert [kind for kind, _, _ in found.values()] == ["text", "text", "date", "number"]


def test_parquet_has_its_own_types(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "whole": [1, 2, 2],
            "fraction": [0.0, -0.0, np.nan],
            "truth": [True, None, False],
            "date": pd.to_datetime(["2020-01-01", None, "2020-01-02"]),
            "category": pd.Categorical(["x", "y", "x"]),
            "list": [[1], [2], None],
        }
    )
    frame.to_parquet(tmp_path / "data.parquet")
    assert told(preview_file(tmp_path / "data.parquet")) == {
        "whole": ("number", 2, 0),
        "fraction": ("number", 1, 1),  # -0 is 0, and NaN is missing
        "truth": ("truth", 2, 1),
        "date": ("date", 2, 1),
        "category": ("text", 2, 0),
        "list": ("other", None, 1),
    }


def test_numbers_are_those_of_pandas() -> None:
    frame = pd.read_parquet(datasets.adult_path())
    found = preview_file(str(datasets.adult_path()))
    assert found.rows == len(frame)
    assert {each.name: (each.levels, each.missing) for each in found.columns} == {
        name: (column.nunique(), column.isna().sum()) for name, column in frame.items()
    }


@pytest.mark.parametrize("distinct", [module.COUNTED - 1, module.COUNTED, module.COUNTED + 1, 3 * module.COUNTED])
def test_levels_are_exact_up_to_a_bound_and_then_left_out(tmp_path: Path, distinct: int) -> None:
    path = tmp_path / "data.csv"
    path.write_text("id\n" + "".join(f"v{row}\nv{row}\n" for row in range(distinct)), encoding="utf-8")
    (column,) = preview_file(path).columns
    assert column.levels == (distinct if distinct <= 10_001 else None)
    assert column.unique_share == pytest.approx(0.5, rel=0.1, abs=0)


@pytest.mark.parametrize(
    ("name", "kind", "levels", "share", "role"),
    [
        ("age", "number", 73, 0.01, "quasi-identifier"),
        ("postcode", "text", 5000, 0.2, "none"),
        ("postcode", "number", None, 0.2, "quasi-identifier"),
        ("Diagnosis", "text", 30, 0.01, "sensitive"),
        ("householdIncome", "number", 9, 0.01, "sensitive"),
        ("income", "number", 9000, 0.3, "quasi-identifier"),
        ("patient_id", "number", None, 1.0, "identifier"),
        ("remark", "text", None, 0.99, "identifier"),
        ("n_people", "number", 40, 0.5, "counts"),
        ("country", "text", 1, 0.01, "none"),
        ("picture", "other", None, 0.0, "none"),
    ],
)
def test_roles(name: str, kind: str, levels: int | None, share: float, role: str) -> None:
    assert PreviewedColumn(name, kind, levels, 0, share).suggest_role() == role


def test_what_is_to_be_explained_stands_last() -> None:
    columns = [PreviewedColumn(name, "text", 3, 0, 0.1) for name in ("sex", "region", "opinion")]
    found = Preview("people.csv", 30, (*columns, PreviewedColumn("day", "date", 3, 0, 0.1)))
    assert found.roles == {"sex": "quasi-identifier", "region": "quasi-identifier", "opinion": "sensitive"} | {
        "day": "quasi-identifier"
    }
    assert found.command == "cellrisk inspect people.csv --qid sex,region,day --sensitive opinion"


def test_nothing_to_suggest() -> None:
    found = Preview("people.csv", 30, (PreviewedColumn("sex", "text", 2, 0, 0.1),))
    assert found.command is None
    assert "1 column in people.csv. Name the quasi-identifiers and the sensitive attribute" in found.headline


def test_the_next_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "people and counts.csv"
    rows = [f"{age},{'fm'[age % 2]},{'ab'[age % 3 == 0]},{age % 4 + 1}" for age in range(20, 60)]
    path.write_text("\n".join(["age,sex,diagnosis,patients", *rows]))
    assert main(["inspect", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 40
    assert [each["likely_role"] for each in found["columns"]] == [*["quasi-identifier"] * 2, "sensitive", "counts"]
    assert main(shlex.split(found["next"])[1:]) == 0
    assert "100 records in" in capsys.readouterr().out
    assert main(["inspect", str(path)]) == 0
    assert "If the suggested roles are right, go on with: cellrisk inspect" in capsys.readouterr().out


class TestRefusals:
    def test_more_than_one_file(self, tmp_path: Path) -> None:
        for name in "ab":
            (tmp_path / f"{name}.csv").write_text("x\n1\n", encoding="utf-8")
        with refused("file-kind"):
            preview_file(tmp_path / "*.csv")

    def test_columns_of_one_name(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("secret,secret\n1,2\n", encoding="utf-8")
        with refused("ambiguous-column") as refusal:
            preview_file(tmp_path / "a.csv")
        assert "secret" not in str(refusal.value)

    def test_too_many_columns(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_COLUMNS", 2)
        (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n", encoding="utf-8")
        with refused("too-many-columns"):
            preview_file(tmp_path / "a.csv")


# `inspect FILE --write cellrisk.toml`: a draft that loads, with levels as they occur, and never over another file


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOWNS = [f"town {number:02d}" for number in range(87)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [(TOWNS[place % 87], place % 60, place % 4, "yes" if place % 3 else 'no "never"') for place in range(400)]
    path = tmp_path / "people.csv"
    pd.DataFrame(rows, columns=["town", "age", "rooms", "diagnosis"]).to_csv(path, index=False)
    return path


def draft(*arguments: str) -> dict[str, Any]:
    assert main(["inspect", "people.csv", "--write", "cellrisk.toml", *arguments]) == 0
    return tomllib.loads(Path("cellrisk.toml").read_text(encoding="utf-8"))


def test_the_draft_declares_every_column_that_can_be(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = draft()
    assert settings["qid"] == ["town", "age", "rooms"]
    assert settings["sensitive"] == ["diagnosis"]
    levels = {"town": TOWNS, "rooms": ["0", "1", "2", "3"], "diagnosis": ['no "never"', "yes"]}
    assert settings["levels"] == levels
    assert settings["bin"] == {}
    text = Path("cellrisk.toml").read_text(encoding="utf-8")
    assert '# "age" = [' in text
    assert "must be checked against a public list" in text
    assert "check them against a public list. Write the bins or levels of age." in capsys.readouterr().out


def test_the_draft_loads(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft("--qid", "town,rooms", "--sensitive", "diagnosis")
    capsys.readouterr()
    assert main(["inspect", "people.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sensitive"]["diagnosis"]["declared"]
    assert found["cells"] == len({(place % 87, place % 4) for place in range(400)})
    assert main(["release", "people.csv", "--epsilon", "1", "--output", "released.csv"]) == 0
    path = Path("cellrisk.toml")
    path.unlink()
    draft()
    path.write_text(path.read_text(encoding="utf-8").replace('# "age" = ', '"age" = '), encoding="utf-8")
    assert main(["release", "people.csv", "--epsilon", "1", "--output", "filled.csv"]) == 0, "with bins filled in"


def test_nothing_is_replaced_without_force(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cellrisk.toml").write_text("epsilon = 1\n", encoding="utf-8")
    assert main(["inspect", "people.csv", "--write", "cellrisk.toml"]) == 2
    assert "--force" in capsys.readouterr().err
    assert Path("cellrisk.toml").read_text(encoding="utf-8") == "epsilon = 1\n"
    assert draft("--force")["sensitive"] == ["diagnosis"]
    for name in ("people.csv", "x.txt", "x"):
        assert main(["inspect", "people.csv", "--write", name, "--force"]) == 2
        assert "allowed: .toml" in capsys.readouterr().err
    assert not Path("x.txt").exists()


def test_names_and_values_may_hold_any_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    columns = {"a=b": ["f", "m|x"] * 9, "town\u007f": ["a", '"b"', "c\\"] * 6, "diagnosis": list("xyz") * 6}
    pd.DataFrame(columns).to_csv("people.csv", index=False)
    settings = draft("--qid", "a=b,town\u007f", "--sensitive", "diagnosis")
    assert {name: set(levels) for name, levels in settings["levels"].items()} == {
        name: set(values) for name, values in columns.items()
    }
    assert main(["inspect", "people.csv"]) == 0
