"""`cellrisk audit`, run as a person would."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from tests.commands import run
from tests.near import same

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


def test_our_own_release(people: Path, capsys: Capture) -> None:
    pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")
    declared = ["--levels", "sex=f|m", "--levels", f"job=a|b|{SECRET}"]
    assert run(capsys, "release", people, *BASIC, *declared, "--epsilon", "1", "--output", "released.csv")[0] == 0
    code, out, err = run(capsys, "audit", people, "released.csv", *BASIC, "--json")
    assert (code, err) == (0, "")
    table = cr.tabulate(people, ["age", "sex"], "job", bins={"age": [0, 30, 40, 60]})
    expected = cr.audit(table, pd.read_csv("released.csv"), count="count", epsilon=1.0)
    found = json.loads(out)
    assert found["decision"]["mechanism"]["name"] == "geometric"
    assert [row["certainty"] for row in found["attackers"] if row["attack"] == "informed"] == [0.95]
    assert "not protected" in found.pop("note")
    assert same(found, json.loads(json.dumps(expected.to_dict())))
    code, out, _ = run(
        capsys, "audit", people, "released.csv", *BASIC, "--certainty", "0.6", "--belief", "0.4,0.3,0.1/0.9", "--all"
    )
    assert code == 0
    assert "Informed attacker, 60% sure" in out
    Path("g.csv").write_bytes(Path("released.csv").read_bytes())
    Path("g.csv.json").write_text('{"file": "g.csv", "count": "count", "mechanism": {"name": "magic"}}')
    code, out, _ = run(capsys, "audit", people, "released.csv", *BASIC, "--epsilon", "3", "--json")
    assert code == 0
    assert json.loads(out)["decision"]["mechanism"]["epsilon"] == 1.0
    assert any("describes how it was made" in note for note in json.loads(out)["notes"])
    Path("cellrisk.toml").write_text('mechanism = "laplace"\n')  # for other commands
    code, out, _ = run(capsys, "audit", people, "released.csv", *BASIC, "--json")
    assert (code, json.loads(out)["decision"]["mechanism"]["name"]) == (0, "geometric")
    code, out, _ = run(capsys, "audit", people, "g.csv", *BASIC, "--json")
    assert code == 0
    assert json.loads(out)["decision"]["mechanism"] is None


def test_a_description_is_believed_of_its_own_file_only(people: Path, capsys: Capture) -> None:
    """What was rounded, sorted or exchanged after the release was not made by the mechanism that is named beside it."""
    pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")
    declared = ["--levels", "sex=f|m", "--levels", f"job=a|b|{SECRET}"]
    assert run(capsys, "release", people, *BASIC, *declared, "--epsilon", "1", "--output", "released.csv")[0] == 0
    written = Path("released.csv").read_bytes()
    for content, changed in ((written, False), (written.replace(b"\n", b"\r\n"), True)):
        Path("released.csv").write_bytes(content)
        code, out, _ = run(capsys, "audit", people, "released.csv", *BASIC, "--released-count", "count", "--json")
        assert code == 0
        found = json.loads(out)
        assert (found["decision"]["mechanism"] is None) == changed
        assert any("another sha256" in note for note in found["notes"]) == changed
        given = ("--mechanism", "laplace", "--epsilon", "2", "--json")
        code, out, _ = run(capsys, "audit", people, "released.csv", *BASIC, "--released-count", "count", *given)
        assert code == 0
        found = json.loads(out)
        assert found["decision"]["mechanism"]["name"] == ("laplace" if changed else "geometric")
        assert any("another sha256" in note for note in found["notes"]) == changed


def test_records(people: Path, capsys: Capture) -> None:
    frame = pd.read_csv(people)
    frame.sample(60, random_state=1).to_csv("synthetic.csv", index=False)
    code, out, err = run(capsys, "audit", people, "synthetic.csv", *BASIC)
    assert (code, err) == (0, "")
    assert out.startswith("'job' by ")
    assert "is not computed: the release holds records" in out
    everything = frame.assign(job="a")
    everything.to_csv("one.csv", index=False)
    code, out, _ = run(capsys, "audit", people, "one.csv", *BASIC, "--top", "2")
    assert "their keys are raw data" in out
    assert "age (" in out


REFUSED = {
    "no such file": (["nowhere.csv"], "nowhere.csv"),
    "other columns": (["other.csv"], "no column"),
    "unknown levels": (["unknown.csv"], "job"),
    "exception without a record": (["people.csv", "--exception", "They agreed."], "--acro outputs/results.json"),
    "top": (["people.csv", "--top", "many"], "whole number"),
    "certainty without a mechanism": (["people.csv", "--certainty", "0.9"], "depends on the mechanism"),
}


@pytest.mark.parametrize(("extra", "says"), REFUSED.values(), ids=REFUSED)
def test_refusals(people: Path, capsys: Capture, extra: list[str], says: str) -> None:
    frame = pd.read_csv(people)
    frame.rename(columns={"sex": "gender"}).to_csv("other.csv", index=False)
    frame.assign(job=SECRET + "x").to_csv("unknown.csv", index=False)
    code, out, err = run(capsys, "audit", people, *extra, *BASIC)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert says in err
    assert SECRET not in err


HOSTILE = {
    "nested too deeply": b"[" * 200_000,
    "nested too deeply below its name": b'{"file": "released.csv", "more": ' + b'{"a":' * 100_000,
    "no text": b"\xff\xfe\x00",
    "a list": b'["released.csv"]',
    "a number of very many digits": b'{"file": "released.csv", "sha256": ' + b"9" * 10_000 + b"}",
    "a digest that is none": b'{"file": "released.csv", "sha256": ["x"], "mechanism": 7}',
    "a pipe": None,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_description_that_is_made_to_hurt_is_not_believed(kind: str, people: Path, capsys: Capture) -> None:
    Path("released.csv").write_text("age,sex,job,n\n25,f,a,1\n", encoding="utf-8")
    content = HOSTILE[kind]
    if content is not None:
        Path("released.csv.json").write_bytes(content)
    elif hasattr(os, "mkfifo"):
        os.mkfifo("released.csv.json")
    code, out, err = run(capsys, "audit", people, "released.csv", *BASIC, "--released-count", "n", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["decision"]["mechanism"] is None
