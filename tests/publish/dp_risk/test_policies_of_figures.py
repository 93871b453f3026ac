"""Figures that may be published obey policies before anything is spent, and a release's own counts have a door."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from tests.commands import run
from tests.near import near

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

Capture = pytest.CaptureFixture[str]
ASKED = ["people.csv", "--qid", "q", "--sensitive", "y", "--levels", "q=" + "|".join(map(str, range(300)))]
ASKED += ["--levels", "y=a|b"]
FIGURE = ["publish-risk", *ASKED, "--epsilon", "1", "--risk-epsilon", "0.5"]
CHOICE = ["choose-private", *ASKED, "--choice-epsilon", "0.5", "--max-caused-people", "300"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(1)
    pd.DataFrame({"q": draw.integers(0, 300, 350), "y": draw.choice(["a", "b"], 350)}).to_csv("people.csv", index=False)
    return tmp_path


def forbid(policy: str) -> None:
    Path("cellrisk.toml").write_text(f"[policy]\n{policy}\n")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("max-epsilon = 0.9", "an epsilon of at most 0.9; epsilon is 1"),
        ("max-epsilon = 0.4", "that of the figure is 0.5"),
        ("max-ceiling = 0.6", "a worst case of at most 60%"),
    ],
)
def test_a_figure_that_a_policy_forbids_costs_nothing(capsys: Capture, policy: str, told: str) -> None:
    assert run(capsys, "ledger", "create", "ledger.db")[0] == 0
    forbid(policy)
    code, out, err = run(capsys, *FIGURE, "--ledger", "ledger.db")
    assert (code, out) == (3, "")
    assert told in err
    with cr.Ledger("ledger.db") as ledger:
        assert not list(ledger.entries())


def test_limits_that_look_at_the_records_are_not_judged(capsys: Capture) -> None:
    """Whether they are kept would tell of the records: the exit code too."""
    forbid("max-caused = 0.000001\nmax-epsilon = 2\ndelta = '1/n'")
    for command in (FIGURE, [*CHOICE, "--grid", "0.1,1"]):
        code, out, _ = run(capsys, *command, "--json")
        assert code == 0
        found = json.loads(out)
        assert found["policy"]["obeyed"][0]["limits"] == {"max_caused": near(1e-6), "max_epsilon": near(2.0)}
        assert "would tell of the records: at most 0.0001% of any category" in found["policy_not_judged"]
        assert "delta" in found["policy_not_judged"]
        assert "Policy obeyed: cellrisk.toml" in run(capsys, *command)[1]


@pytest.mark.slow
def test_a_private_choice_stays_within_policies(capsys: Capture) -> None:
    forbid("max-epsilon = 2")
    code, out, _ = run(capsys, *CHOICE, "--json")
    assert code == 0
    assert max(json.loads(out)["grid"]) <= 2
    assert json.loads(out)["total"] <= 2.5
    for more in (["--grid", "0.1,1,3"], ["--grid", "3"]):
        code, out, err = run(capsys, *CHOICE, *more)
        assert (code, out) == (2, "")
        assert "the grid goes beyond what the policy allows; got epsilon 3; allowed: up to 2" in err
    forbid("max-epsilon = 0.4")
    code, out, err = run(capsys, *CHOICE, "--grid", "0.1,0.2")
    assert (code, out) == (2, "")
    assert "that of the figure is 0.5" in err
    forbid("max-ceiling = 0.6")
    code, out, _ = run(capsys, *CHOICE, "--json")
    assert 0.38 < max(json.loads(out)["grid"]) <= np.log(0.6 / 0.4)
