"""Reports on a table that is published with a perturbation: page one, the limits, and what they do not take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.show.reporting.perturbed import REFUSED
from cellrisk.show.wording.assessment import say_equal
from cellrisk.show.wording.attackers import accuracy, attack_rows, shown_attacks
from tests.refusals import refused
from tests.risk.perturbed.test_assess_perturbation import make_table

CELLS = [[1, 0], [2, 1], [0, 3], [12, 1], [5, 0], [2, 0]]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return make_table(CELLS)


def words_of(html: str) -> str:
    body = re.sub(r"<(style|svg).*?</\1>", " ", html, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split()).replace("&gt;", ">").replace("&#39;", "'")


def test_page_one_holds_the_attacks_the_error_of_a_count_and_equal_risk(table: cr.FrequencyTable) -> None:
    found = cr.report(table, perturbation="random-rounding:3", title="Review", organisation="Office", date="today")
    assessed = cr.assess_perturbation(table, "random-rounding:3", measures="local")
    figures = assessed.figures[0]
    told = words_of(found.html)
    front = told[: told.index("Sign-off")]
    assert found.verdict == "open"
    assert assessed.headline in front
    assert accuracy(assessed.perturbation) in front
    attackers = assessed.attackers["y"][-1]
    for cells in attack_rows(attackers, shown_attacks(attackers), figures.advantage):
        assert " ".join([cells[0], *cells[2:4]]).strip() in front
    assert say_equal(figures.equal) in front
    assert found.html.count("<svg") >= 2  # at equal risk, and the sizes
    for absent in (
        "epsilon asked",
        "Risk along epsilon",
        "Published before",
        "budget",
        "Registry",
        "Guarantee: epsilon",
    ):
        assert absent not in told
    for present in ("Who is at risk", "Perturbation and versions", "today", "Office"):
        assert present in told
    assert (found.epsilon, found.mechanism, found.setting) == (None, None, None)
    assert json.loads(json.dumps(found.to_dict()))["perturbation"]["name"] == "random-rounding:3"


def test_limits_and_policies(table: cr.FrequencyTable) -> None:
    asked: dict[str, Any] = {"perturbation": "random-rounding:3"}
    kept = cr.report(table, **asked, max_caused=0.9, max_ceiling=0.8, max_people=100)
    assert (kept.verdict, kept.broken) == ("kept", ())
    broken = cr.report(table, **asked, max_ceiling=0.75, max_people=0.5, policy=cr.Policy(max_epsilon=1.0))
    assert broken.verdict == "broken"
    assert len(broken.broken) == 3
    assert "an epsilon of at most 1; a perturbation states no epsilon" in words_of(broken.html)
    assert "at most 0.5 people revealed on average (local risk, tight, by records); it is 18.67" in broken.headline


def test_a_ledger_and_an_epsilon_are_refused(table: cr.FrequencyTable, tmp_path: Path) -> None:
    with (
        cr.Ledger(tmp_path / "ledger.db", create=True) as ledger,
        refused("not-taken"),
    ):
        cr.report(table, perturbation="cell-key", ledger=ledger)
    for beside in ({"epsilon": 1.0}, {"mechanism": cr.Laplace(1.0)}, {"threshold": 1.5}):
        with pytest.raises(InvalidInput, match="takes the place of a mechanism"):
            cr.report(table, perturbation="cell-key", **beside)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"q": list("aabbccdddd"), "y": list("mnmnmmnmmm")}).to_csv("people.csv", index=False)
    asked = ["report", "people.csv", "--qid", "q", "--sensitive", "y", "--perturbation", "random-rounding:3"]
    assert main([*asked, "--output", "report.html"]) == 0
    assert "random-rounding:3" in Path("report.html").read_text()
    assert "Written to report.html" in capsys.readouterr().out
    main(["ledger", "create", "ledger.db"])
    for more, told in (
        (("--public",), REFUSED["public"]),
        (("--ledger", "ledger.db"), REFUSED["ledger"]),
        (("--max-epsilon", "1"), REFUSED["max_epsilon"]),
        (("--margin", "0.1"), REFUSED["margin"]),
        (("--max-tvd", "0.1"), REFUSED["max_tvd"]),
        (("--epsilon", "1"), "--epsilon"),
    ):
        capsys.readouterr()
        assert main([*asked, "--output", "other.html", *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert told in err
        assert not Path("other.html").exists()
    Path("cellrisk.toml").write_text("[policy]\nmax-ceiling = 0.75\n")
    assert main([*asked, "--output", "report.html", "--json"]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "broken"
    assert "the worst case is 77.78%" in err
