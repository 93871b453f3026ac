"""`cellrisk audit`, run as a person would."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main

SECRET = "Zanzibar-7"
Capture = pytest.CaptureFixture[str]
BASIC = ["--qid", "age,sex", "--sensitive", "job", "--bin", "age=0/30/40/60"]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    jobs = ["a", "b", SECRET]
    rows = [{"age": 20 + number % 30, "sex": "fm"[number % 2], "job": jobs[number % 10 // 4]} for number in range(90)]
    pd.DataFrame(rows).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "people.csv"


def run(capsys: Capture, *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_our_own_release(people: Path, capsys: Capture) -> None:
    pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")
    declared = ["--levels", "sex=f|m", "--levels", f"job=a|b|{SECRET}"]
    assert run(capsys, "release", people, *BASIC, *declared, "--epsilon", "1", "--output", "released.csv")[0] == 0
    code, out, err = run(capsys, "audit", people, "released.csv", *BASIC, "--json")
    assert (code, err) == (0, "")
    table = cr.tabulate(people, ["age", "sex"], "job", bins={"age": [0, 30, 40, 60]})
    expected = cr.audit(table, pd.read_csv("released.csv"), count="count")
    found = json.loads(out)
    assert "not themselves differentially private" in found.pop("note")
    assert found == json.loads(json.dumps(expected.to_dict()))


def test_records(people: Path, capsys: Capture) -> None:
    frame = pd.read_csv(people)
    frame.sample(60, random_state=1).to_csv("synthetic.csv", index=False)
    code, out, err = run(capsys, "audit", people, "synthetic.csv", *BASIC)
    assert (code, err) == (0, "")
    assert out.startswith("The release gives away the job of ")
    everything = frame.assign(job="a")
    everything.to_csv("one.csv", index=False)
    code, out, _ = run(capsys, "audit", people, "one.csv", *BASIC, "--top", "2")
    assert "their keys are raw data" in out
    assert "age (" in out


REFUSED = {
    "no such file": (["nowhere.csv"], "nowhere.csv"),
    "other columns": (["other.csv"], "no column"),
    "unknown levels": (["unknown.csv"], "job"),
    "no count column": (["people.csv", "--released-count", "n"], "no column 'n'"),
    "duplicates": (["twice.csv", "--released-count", "n"], "more than once"),
    "top": (["people.csv", "--top", "many"], "whole number"),
}


@pytest.mark.parametrize(("extra", "says"), REFUSED.values(), ids=REFUSED)
def test_refusals(people: Path, capsys: Capture, extra: list[str], says: str) -> None:
    frame = pd.read_csv(people)
    frame.rename(columns={"sex": "gender"}).to_csv("other.csv", index=False)
    frame.assign(job=SECRET + "x").to_csv("unknown.csv", index=False)
    pd.concat([frame.head(2)] * 2).assign(n=1).to_csv("twice.csv", index=False)
    code, out, err = run(capsys, "audit", people, *extra, *BASIC)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert says in err
    assert SECRET not in err
