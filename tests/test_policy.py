"""The policy: what it asks for is asked for, by every command, whatever else is on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.choice.policy import Policy
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from tests.near import near_epsilon

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return cr.tabulate(cr.datasets.adult_as_published(), ["age", "education", "sex"], "income", bins={"age": 5})


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty people in a file, in a folder of their own, which is the working folder."""
    rows = [
        {"q": number % 12, "r": "ab"[number % 2], "y": "stu"[number % 12 % 3 if number else 1]} for number in range(60)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "people.csv"


def write(folder: Path, text: str) -> None:
    (folder / "cellrisk.toml").write_text(text, encoding="utf-8")


BASIC = ["--qid", "q,r", "--sensitive", "y"]


@pytest.mark.parametrize("limit", [0.01, 0.3])
def test_breaches_are_what_assess_says(table: cr.FrequencyTable, limit: float) -> None:
    policy = Policy(max_risk=limit, measure="expected", form="exact", weights="uniform")
    for epsilon in (0.1, 1.0, 10.0):
        mechanism = cr.Laplace(epsilon=epsilon)
        risk = cr.assess(table, mechanism).value("expected", "exact", "uniform")
        assert bool(policy.breaches(table, mechanism)) == (risk > limit)


def test_people_and_margin(table: cr.FrequencyTable) -> None:
    exposed = cr.assess(table, cr.Laplace(epsilon=1.0), measures="local").exposures[0].people.mean
    assert not Policy(max_people=exposed + 1).breaches(table, cr.Laplace(epsilon=1.0))
    assert Policy(max_people=exposed - 1).breaches(table, cr.Laplace(epsilon=1.0))
    assert Policy(margin=0.0).breaches(table, cr.Laplace(epsilon=0.003))


def test_delta_rules(table: cr.FrequencyTable) -> None:
    assert Policy(max_risk=1, delta="1/n").largest_delta(1000) == 1e-3
    assert Policy(max_risk=1, delta="0.1 / n").largest_delta(1000) == pytest.approx(1e-4)
    assert Policy(max_risk=1, delta="1/n^2").largest_delta(1000) == pytest.approx(1e-6)
    assert Policy(max_risk=1, delta=1e-5).largest_delta(1000) == 1e-5
    assert Policy(max_risk=1).largest_delta(1000) is None
    policy = Policy(max_risk=1, delta="1/n")
    assert not policy.breaches(table, cr.AnalyticGaussian(epsilon=1, delta=1e-5))
    (breach,) = policy.breaches(table, cr.AnalyticGaussian(epsilon=1, delta=1e-3))
    assert "delta up to" in breach


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "no limit"),
        ({"max-risk": 2}, "must be a share"),
        ({"max-risk": "high"}, "must be a share"),
        ({"max-risk": 0.3, "measure": "global"}, "unknown measure"),
        ({"max-risk": 0.3, "form": "loose"}, "unknown form"),
        ({"max-risk": 0.3, "weights": "people"}, "unknown weights"),
        ({"max-risk": 0.3, "delta": "small"}, "delta cannot be read"),
        ({"max-risk": 0.3, "delta": 2}, "delta cannot be read"),
        ({"max-risk": 0.3, "epsilon": 1}, "unknown setting in \\[policy\\]"),
        (0.3, "must be a table"),
    ],
)
def test_bad_policies_are_refused(values: object, says: str) -> None:
    with pytest.raises(CellriskError, match=says):
        Policy.of(values)


def test_assess_obeys(people: Path, capsys: Capture) -> None:
    write(people.parent, "[policy]\nmax-risk = 0.05\n")
    assert main(["assess", str(people), *BASIC, "--epsilon", "1", "--json"]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["risks"]
    assert err.startswith("cellrisk: the policy asks for a risk of at most 5.0%")
    assert len(err.splitlines()) == 1
    assert main(["assess", str(people), *BASIC, "--epsilon", "1", "--max-risk", "1"]) == 3
    write(people.parent, "[policy]\nmax-risk = 1.0\n")
    assert main(["assess", str(people), *BASIC, "--epsilon", "1"]) == 0
    assert main(["assess", str(people), *BASIC, "--epsilon", "1", "--max-risk", "0"]) == 3


def test_assess_obeys_the_rule_for_delta(people: Path, capsys: Capture) -> None:
    write(people.parent, '[policy]\nmax-risk = 1.0\ndelta = "0.1/n"\n')
    gaussian = ["--mechanism", "gaussian-analytic", "--epsilon", "1"]
    assert main(["assess", str(people), *BASIC, *gaussian, "--delta", "0.01"]) == 3
    assert "delta up to 0.001667" in capsys.readouterr().err
    assert main(["assess", str(people), *BASIC, *gaussian, "--delta", "0.001"]) == 0


def test_choose_obeys(people: Path, capsys: Capture) -> None:
    write(people.parent, '[policy]\nmeasure = "expected"\nform = "exact"\nmax-risk = 0.3\ndelta = "0.1/n"\n')
    assert main(["choose", str(people), *BASIC, "--json"]) == 0
    chosen = json.loads(capsys.readouterr().out)
    table = cr.tabulate(people, ["q", "r"], "y")
    assert chosen["epsilon"] == near_epsilon(cr.choose(table, max_risk=0.3, measure="expected", form="exact").epsilon)
    assert main(["choose", str(people), *BASIC, "--max-risk", "0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"] == {"max_risk": 0.2}
    assert main(["choose", str(people), *BASIC, "--mechanism", "gaussian-analytic", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == pytest.approx(0.1 / 60)
    for extra, says in (
        (["--max-risk", "0.4"], "looser than the policy"),
        (["--measure", "local"], "the policy fixes --measure"),
        (["--mechanism", "gaussian-analytic", "--delta", "0.1"], "larger than the policy allows"),
    ):
        assert main(["choose", str(people), *BASIC, *extra]) == 2
        assert says in capsys.readouterr().err


def test_report_obeys(people: Path, capsys: Capture) -> None:
    write(people.parent, "[policy]\nmax-risk = 0.05\n")
    output = people.parent / "report.html"
    assert main(["report", str(people), *BASIC, "--epsilon", "1", "--output", str(output)]) == 3
    assert "the policy asks for" in capsys.readouterr().err
    assert output.exists()
    assert main(["report", str(people), *BASIC, "--epsilon", "1", "--max-risk", "0.4", "--output", str(output)]) == 2
    write(people.parent, "[policy]\nmax-risk = 1.0\n")
    assert main(["report", str(people), *BASIC, "--epsilon", "1", "--output", str(output)]) == 0


def test_a_bad_policy_stops_every_command(people: Path, capsys: Capture) -> None:
    write(people.parent, "[policy]\nmax-risk = 7\n")
    for command in ("inspect", "assess", "choose"):
        assert main([command, str(people), *BASIC, *(["--epsilon", "1"] if command == "assess" else [])]) == 2
        assert "must be a share" in capsys.readouterr().err
