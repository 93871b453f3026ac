"""Limits on a set as a whole: gates of the command, policies, and records outside of what was declared."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from tests.near import near

ROWS = [("fm"[i % 2], "abc"[i % 3], "xy"[i * i % 5 % 2]) for i in range(30)]
SET = """
source = "people.csv"
sensitive = "job"
epsilon = 1.0
[[table]]
qid = ["sex"]
[[table]]
qid = ["town"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pd.DataFrame(ROWS, columns=["sex", "town", "job"]).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "set.toml").write_text(SET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def find() -> cr.TogetherAssessment:
    return cr.assess_together("people.csv", [{"qid": "sex"}, {"qid": "town"}], "job", epsilon=1.0)


@pytest.mark.parametrize("gate", ["caused", "ceiling", "epsilon", "risk", "people"])
def test_a_gate_lets_through_what_it_may_and_nothing_above(
    folder: Path, capsys: pytest.CaptureFixture[str], gate: str
) -> None:
    found = find()
    assert found.ceiling is not None
    figure = {
        "caused": found.collections[found.largest].caused / 30,
        "ceiling": found.ceiling.even_two,
        "epsilon": 2.0,
        "risk": found.rule().right / 30,
        "people": found.rule().right,
    }[gate]
    assert main(["together", "set.toml", f"--max-{gate}", repr(figure * (1 + 1e-6))]) == 0
    capsys.readouterr()
    assert main(["together", "set.toml", f"--max-{gate}", repr(figure * (1 - 1e-6)), "--json"]) == 3
    told = capsys.readouterr()
    assert json.loads(told.out)["rules"][0]["rule"] == "elimination"
    assert told.err.startswith("cellrisk: asked for was ")
    assert len(told.err.splitlines()) == 1


def test_a_gate_on_certainty_looks_at_the_attacker_who_does_the_mathematics(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["together", "set.toml", "--certainty", "0.6", "--json"]
    assert main(arguments) == 0
    named = json.loads(capsys.readouterr().out)["certainty"][0]["right"]
    assert named > 0
    assert main([*arguments, "--max-certain", repr(named / 30 * 0.999)]) == 3
    assert main([*arguments, "--max-certain", repr(named / 30 * 1.001)]) == 0


def test_a_policy_judges_the_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cellrisk.toml").write_text("[policy]\nmax-epsilon = 1.5\nmax-people = 0.0001\n", encoding="utf-8")
    assert main(["together", "set.toml"]) == 3
    told = capsys.readouterr()
    assert "epsilon is 2; by" in told.err
    assert "at most 0.0001 people revealed on average" in told.err
    assert "by cellrisk.toml" in told.err
    assert "obeyed" not in told.out
    Path("cellrisk.toml").write_text("[policy]\nmax-epsilon = 2.0\n", encoding="utf-8")
    assert main(["together", "set.toml"]) == 0
    Path("cellrisk.toml").write_text('[policy]\nmax-risk = 0.9\nmeasure = "expected"\n', encoding="utf-8")
    assert main(["together", "set.toml"]) == 3
    assert "cannot be judged" in capsys.readouterr().err


def test_records_outside_the_declared_labels_are_refused_or_left_out(folder: Path) -> None:
    rows = [*ROWS, ("f", "a", "unheard"), ("other", "b", "x")]
    frame = pd.DataFrame(rows, columns=["sex", "town", "job"])
    declared = {"job": ["x", "y"], "sex": ["f", "m"]}
    tables = [{"qid": "sex"}, {"qid": "town"}]
    with pytest.raises(InvalidInput, match="not among its declared levels"):
        cr.assess_together(frame, tables, "job", levels=declared, epsilon=1.0)
    found = cr.assess_together(frame, tables, "job", levels=declared, epsilon=1.0, outside="drop")
    assert found.records == 31
    assert [each.records for each in found.tables] == [30, 31]
    some = frame[frame["job"] != "unheard"]
    by_hand = [{"qid": "sex", "where": {"sex": ["f", "m"]}}, {"qid": "town"}]
    whole = cr.assess_together(some, by_hand, "job", epsilon=1.0)
    for rule in ("elimination", "any"):
        assert found.rule(rule).right == near(whole.rule(rule).right)
    assert "2 records with a value that is not among the declared labels" in found.details
    assert "left out of the tables that have the column" in " ".join(found.details.split())
    frame.to_csv("people.csv", index=False)
    text = SET.replace("epsilon = 1.0", 'epsilon = 1.0\nlevels = ["job=x|y", "sex=f|m"]\noutside = "drop"', 1)
    Path("set.toml").write_text(text, encoding="utf-8")
    assert main(["together", "set.toml"]) == 0
