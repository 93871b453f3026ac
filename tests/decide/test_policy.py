"""The policy: what it asks for is asked for, by every command, whatever else is on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.decide.policies import Policies, Policy
from cellrisk.errors import CellriskError
from tests.near import near, near_epsilon

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
    exposed = cr.assess(table, cr.Laplace(epsilon=1.0), measures="local").figures[0].people.mean
    assert not Policy(max_people=exposed + 1).breaches(table, cr.Laplace(epsilon=1.0))
    assert Policy(max_people=exposed - 1).breaches(table, cr.Laplace(epsilon=1.0))
    assert Policy(margin=0.0).breaches(table, cr.Laplace(epsilon=0.003))


def test_delta_rules(table: cr.FrequencyTable) -> None:
    assert Policy(max_risk=1, delta="1/n").largest_delta(1000) == 1e-3
    assert Policy(max_risk=1, delta="0.1 / n").largest_delta(1000) == near(1e-4)
    assert Policy(max_risk=1, delta="1/n^2").largest_delta(1000) == near(1e-6)
    assert Policy(max_risk=1, delta=1e-5).largest_delta(1000) == 1e-5
    assert Policy(max_risk=1).largest_delta(1000) is None
    policy = Policy(max_risk=1, delta="1/n")
    assert not policy.breaches(table, cr.AnalyticGaussian(epsilon=1, delta=1e-5))
    (breach,) = policy.breaches(table, cr.AnalyticGaussian(epsilon=1, delta=1e-3))
    assert "delta up to" in breach


BAD: dict[str, list[object]] = {
    "no-limit": [{}, {"measure": "local"}],
    "limit-range": [{"max-risk": 2}, {"max-risk": "high"}, {"max-risk": True}, {"max-people": 10**400}],
    "word": [{"max-risk": 0.3, **bad} for bad in ({"measure": "global"}, {"form": 3}, {"weights": ["people"]})],
    "delta-rule": [{"max-risk": 0.3, "delta": bad} for bad in ("small", 2, "1/n^2000", "1/n^0.5", [1])],
    "setting": [{"max-risk": 0.3, "epsilon": 1}],
    "set-by": [{"max-risk": 0.3, "set-by": ""}],
    "set-on": [{"max-risk": 0.3, "set-on": "today"}],
    "table": [0.3],
}


@pytest.mark.parametrize(("code", "values"), [(code, each) for code, every in BAD.items() for each in every])
def test_bad_policies_are_refused(code: str, values: object) -> None:
    with pytest.raises(CellriskError, check=lambda refusal: refusal.code == code):
        Policy.of(values)


@pytest.mark.parametrize("rule", ["1/n", "0.1/n", "1e-100/n^10", "1/n^1.5", "1/n^10"])
@pytest.mark.parametrize("records", [0, 1, 2, 10**6, 10**18])
def test_a_rule_that_is_taken_gives_a_delta_for_every_table(rule: str, records: int) -> None:
    found = Policy(delta=rule).largest_delta(records)
    assert found is not None
    assert 0 < found <= 1


@pytest.mark.slow
def test_a_policy_about_delta_alone(people: Path, capsys: Capture) -> None:
    """It limits delta, fixes no measure, and leaves it to whoever chooses to give a limit on the risk."""
    write(people.parent, '[policy]\ndelta = "0.1/n"\n')
    gaussian = [*BASIC, "--mechanism", "gaussian-analytic"]
    assert main(["assess", str(people), *gaussian, "--epsilon", "1", "--delta", "0.01"]) == 3
    assert capsys.readouterr().err.startswith("cellrisk: the policy allows delta up to 0.001667; got 0.01")
    assert main(["assess", str(people), *gaussian, "--epsilon", "9", "--delta", "0.001", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"]["obeyed"][0]["limits"] == {}
    assert main(["choose", str(people), *gaussian]) == 2
    assert "no limit was given to choose by" in capsys.readouterr().err
    choose = ["choose", str(people), *gaussian, "--max-risk", "0.3", "--measure", "expected"]
    assert main([*choose, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == near(0.1 / 60)
    assert main([*choose, "--delta", "0.01"]) == 2
    report = ["report", str(people), *gaussian, "--output", "report.html", "--releases", "2"]
    report += ["--delta", "0.001"]
    assert main([*report, "--epsilon", "1", "--measure", "expected"]) == 0
    assert main(report) == 2
    assert "a report needs a decision to ask for" in capsys.readouterr().err
    sentences = Policies((Policy(delta="0.1/n"),)).disclosures
    assert len(sentences) == 1
    assert "a delta of at most 0.1/n" in sentences[0]
    assert Policies((Policy(delta=1e-6),)).disclosures == []


def test_assess_obeys(people: Path, capsys: Capture) -> None:
    write(people.parent, "[policy]\nmax-risk = 0.05\n")
    assert main(["assess", str(people), *BASIC, "--epsilon", "1", "--json"]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["risks"]
    assert err.startswith("cellrisk: the policy asks for a risk of at most 5%")
    assert len(err.splitlines()) == 1
    assert main(["assess", str(people), *BASIC, "--epsilon", "1", "--max-risk", "1"]) == 3
    write(people.parent, "[policy]\nmax-risk = 1.0\n")
    assert main(["assess", str(people), *BASIC, "--epsilon", "1"]) == 0
    assert main(["assess", str(people), *BASIC, "--epsilon", "1", "--max-risk", "0"]) == 3


def test_choose_obeys(people: Path, capsys: Capture) -> None:
    write(people.parent, '[policy]\nmeasure = "expected"\nform = "exact"\nmax-risk = 0.3\ndelta = "0.1/n"\n')
    assert main(["choose", str(people), *BASIC, "--json"]) == 0
    chosen = json.loads(capsys.readouterr().out)
    table = cr.tabulate(people, ["q", "r"], "y")
    assert chosen["epsilon"] == near_epsilon(cr.choose(table, max_risk=0.3, measure="expected", form="exact").epsilon)
    assert main(["choose", str(people), *BASIC, "--max-risk", "0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"] == {"max_risk": 0.2}
    assert main(["choose", str(people), *BASIC, "--mechanism", "gaussian-analytic", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == near(0.1 / 60)
    for extra, says in (
        (["--max-risk", "0.4"], "looser than the policy"),
        (["--measure", "local"], "the risk is fixed by the policy"),
        (["--mechanism", "gaussian-analytic", "--delta", "0.1"], "larger than the policy allows"),
    ):
        assert main(["choose", str(people), *BASIC, *extra]) == 2
        assert says in capsys.readouterr().err


def test_a_policy_names_harmful_values() -> None:
    """Tables without those values are judged by all of theirs."""
    file = {"max-certain": 0.01, "harmful": ["ill"], "also-as": ["ill+dead"]}
    policy = Policy.of(file)
    assert [(limit.attacker.harmful, limit.attacker.unions) for limit in policy.limits if limit.attacker] == [
        (("ill",), ("ill+dead",))
    ]
    assert policy.to_dict()["attacker"]["harmful"] == ["ill"]
    groups = pd.DataFrame({"q": ["a"] * 40 + ["b"] * 20, "y": ["well"] * 50 + ["ill"] * 10})
    table = cr.tabulate(groups, ["q"], "y")
    for harmful, breaches in ((None, 1), ("well", 1), ("ill", 0), ("unknown", 1)):
        named = Policy(max_certain=0.5, certainty=0.8, belief="0.5,0.5/0.98", harmful=harmful)
        assert len(named.breaches(table, cr.Geometric(3.0))) == breaches
