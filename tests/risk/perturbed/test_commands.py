"""Commands with a perturbation in the place of a mechanism: limits, policies, and why some refuse one."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from tests.commands import run
from tests.near import near

Capture = pytest.CaptureFixture[str]
PEOPLE = pd.DataFrame({"q": list("aabbccdddddeeeef"), "y": list("mnmnmmnmmmmmmmnn")})
ASKED = ["people.csv", "--qid", "q", "--sensitive", "y"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    return tmp_path


def test_commands_without_an_epsilon_of_noise_take_no_perturbation(capsys: Capture) -> None:
    for command in ("curve", "choose", "utility", "release", "average"):
        assert "No such option: --perturbation" in run(capsys, command, *ASKED, "--perturbation", "cell-key")[2]


# Limits


def test_limits_are_gates(capsys: Capture) -> None:
    asked = ["assess", *ASKED, "--perturbation", "random-rounding:3", "--measure", "local", "--form", "tight"]
    table = cr.tabulate(PEOPLE, "q", "y")
    found = cr.assess_perturbation(table, "random-rounding:3", measures="local", compare=None)
    share = {
        "--max-ceiling": found.figures[0].worst_case[0],
        "--max-risk": max(row.risk for row in found.risks if row.form == "tight"),
    }
    for option, figure in share.items():
        assert run(capsys, *asked, option, f"{figure * 1.0001:.9f}")[0] == 0
        code, out, err = run(capsys, *asked, option, f"{figure * 0.9999:.9f}")
        assert code == 3
        assert "With random-rounding:3" in out
        assert err.startswith("cellrisk: ")
    assert run(capsys, *asked, "--max-caused", "1")[0] == 0
    assert run(capsys, *asked, "--max-caused", "0.0001")[0] == 3
    assert run(capsys, *asked, "--max-ceiling", "0.4")[0] == 2


def test_the_risk_of_people_is_limited_where_no_measure_is_named(capsys: Capture) -> None:
    figures = cr.assess_perturbation(cr.tabulate(PEOPLE, "q", "y"), "cell-key", compare=None).figures[0]
    assert figures.people.mean == near(0.0)  # nobody: every count is below ten
    assert run(capsys, "assess", *ASKED, "--perturbation", "cell-key", "--max-risk", "0")[0] == 0
    code, _, err = run(capsys, "assess", *ASKED, "--perturbation", "suppress-below:1", "--max-risk", "0.1")
    assert code == 3
    assert "it is 18.75%" in err


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("max-caused = 0.0001", "because of their own record"),
        ("max-ceiling = 0.75", "the worst case is 77.78%"),
        ("max-certain = 0.0001\ncertainty = 0.6", "with 60% certainty"),
        ("max-risk = 0.001", "a risk of at most 0.1%"),
        ("max-people = 0.1", "people revealed on average"),
        ("max-epsilon = 1", "an epsilon of at most 1; a perturbation states no epsilon"),
        ("margin = 0.5", "no chance level"),
        ("max-risk = 0.5\nattack = 'plurality'", "that of the homogeneity attack alone"),
    ],
)
def test_policies_are_judged(capsys: Capture, policy: str, told: str) -> None:
    Path("cellrisk.toml").write_text(f"[policy]\n{policy}\n")
    code, out, err = run(capsys, "assess", *ASKED, "--perturbation", "random-rounding:3", "--json")
    assert code == 3
    assert json.loads(out)["policy"]["obeyed"]
    assert told in err


@pytest.mark.parametrize("policy", ["max-caused = 0.9", "max-ceiling = 0.8", "max-people = 16", "delta = '1/n'"])
def test_policies_that_are_kept(capsys: Capture, policy: str) -> None:
    Path("cellrisk.toml").write_text(f"[policy]\n{policy}\n")
    code, out, _ = run(capsys, "assess", *ASKED, "--perturbation", "random-rounding:3")
    assert code == 0
    assert "Policy obeyed: cellrisk.toml" in out
