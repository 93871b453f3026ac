"""`inspect FILE --write cellrisk.toml`: a draft that loads, with levels as they occur, and never over another file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cellrisk.cli import main

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


def test_bins_that_are_filled_in_load(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft()
    path = Path("cellrisk.toml")
    path.write_text(path.read_text(encoding="utf-8").replace('# "age" = ', '"age" = '), encoding="utf-8")
    capsys.readouterr()
    assert main(["release", "people.csv", "--epsilon", "1", "--output", "released.csv"]) == 0


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
