"""Delete-one and Bayes attackers against the exact figures, and what is said where the sample is too small."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.publish.simulation import simulate
from cellrisk.publish.simulation.attacks import delete_one
from cellrisk.publish.simulation.simulation_result import Difference
from cellrisk.risk.certainty import empirical, find_spread
from tests.publish.simulation.cases import MECHANISMS, THREE, TWO, make

ASKED: dict[str, Any] = {"certainty": [0.6, 0.8], "belief": "negbin"}


@pytest.mark.parametrize("cells", [TWO, THREE], ids=["K=2", "K=3"])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_agrees_with_the_exact_figures(cells: list[list[int]], mechanism: cr.Mechanism) -> None:
    table = make(cells)
    compared = simulate(table, mechanism, releases=3000, seed=3, **ASKED).compare(
        cr.assess(table, mechanism, measures="local", **ASKED)
    )
    assert [tuple(each.name.values()) for each in compared.figures] == [
        *(("caused", None), ("right", 0.6), ("named", 0.6), ("right", 0.8), ("named", 0.8)),
    ]
    assert max(abs(each.z) for each in compared.figures) < 4
    assert compared.agrees
    assert compared.figures[0].tells


@pytest.mark.parametrize("belief", ["table", "0.5,0.2/0.7", {"y": "0.3,0.9/0.5"}])
def test_other_beliefs(belief: Any) -> None:
    table, mechanism = make(TWO), cr.Geometric(epsilon=1.2)
    asked: dict[str, Any] = {"certainty": 0.75, "belief": belief}
    found = simulate(table, mechanism, releases=3000, **asked)
    compared = found.compare(cr.assess(table, mechanism, measures="local", **asked))
    assert len(compared.figures) == 3
    assert max(abs(each.z) for each in compared.figures) < 4


def test_three_labels_and_the_table() -> None:
    table, mechanism = make(THREE), cr.Geometric(epsilon=1.2)
    asked: dict[str, Any] = {"certainty": 0.75, "belief": "table"}
    compared = simulate(table, mechanism, releases=1500, **asked).compare(
        cr.assess(table, mechanism, measures="local", **asked)
    )
    assert max(abs(each.z) for each in compared.figures) < 4


def test_adult(adult: cr.FrequencyTable) -> None:
    mechanism = cr.Laplace(1.0)
    found = simulate(adult, mechanism, releases=60)
    compared = found.compare(cr.assess(adult, mechanism, measures="local"))
    assert [each.assessed for each in compared.figures] == pytest.approx([997.481, 11136.4, 11510.6], rel=6e-6, abs=0)
    assert [each.standard_error for each in compared.figures[:1]] == pytest.approx(
        [32.4588 / math.sqrt(60)], rel=6e-6, abs=0
    )
    assert max(abs(each.z) for each in compared.figures) < 4


def test_a_planted_error_is_found(adult: cr.FrequencyTable) -> None:
    found = simulate(adult, cr.Laplace(1.0), releases=60)
    wrong = cr.assess(adult, cr.Laplace(0.7), measures="local")
    assert [each.agrees for each in found.compare(wrong).figures] == [False, False, False]
    right = cr.assess(adult, cr.Laplace(1.0), measures="local")
    (figures,) = right.figures
    more = dataclasses.replace(figures.caused, people=figures.caused.people * 1.05)
    vars(figures)["caused"] = more  # what was computed is kept there
    assert not found.compare(right).agrees


def test_deviations_are_those_of_many_releases() -> None:
    table, mechanism = make(TWO), cr.Geometric(epsilon=0.9)
    found = simulate(table, mechanism, releases=4000, **ASKED)
    (figures,) = cr.assess(table, mechanism, measures="local", **ASKED).figures
    assert figures.belief is not None
    for certainty in ASKED["certainty"]:
        known = find_spread(table.attribute(), mechanism.channel, certainty, figures.belief)
        rows = [row for row in found.figures if row.name["certainty"] == certainty]
        assert known == pytest.approx([row.standard_error * math.sqrt(4000) for row in rows], rel=0.08, abs=0)


def test_leaving_out_records_one_by_one() -> None:
    """Each record of a small table is really left out, under the same noise."""
    generator = np.random.default_rng(2)
    counts = np.array([[2.0, 1.0, 0.0, 4.0], [0.0, 1.0, 3.0, 1.0]])[:, None, :]
    noise = np.rint(generator.laplace(0.0, 1.5, (2, 200, 4)))
    threshold = 1.5

    def release(held: Any) -> Any:
        shown = held + noise
        return np.where(shown < threshold, 0.0, shown)

    def read(released: Any, label: int, cell: int) -> Any:
        shown = released[:, :, cell] > 0
        return shown[label] & (shown.sum(axis=0) == 1)

    expected = np.zeros(200)
    for label in range(2):
        for cell in range(4):
            held = counts[label, 0, cell]
            less = counts.copy()
            less[label, 0, cell] -= 1
            for _ in range(int(held)):
                expected += read(release(counts), label, cell).astype(float) - read(release(less), label, cell)
    assert expected.sum() > 20
    lessened = np.where(counts + noise - 1 < threshold, 0.0, counts + noise - 1)
    assert delete_one(release(counts), lessened, counts).tolist() == expected.tolist()


def test_too_few_releases_are_said_to_tell_nothing() -> None:
    table, mechanism = make([[1, 0]]), cr.Geometric(epsilon=0.1)
    compared = simulate(table, mechanism, releases=3).compare(cr.assess(table, mechanism, measures="local"))
    assert not compared.figures[0].tells
    assert "Too few releases to tell: caused" in str(compared)
    assert json.loads(json.dumps(compared.to_dict(), allow_nan=False))["figures"][0]["tells"] is False
    assert Difference({"figure": "caused"}, 30.0, 31.0, 1.0, 4.5).tells


def test_the_attacker_gives_up_where_sums_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    table, mechanism = make(TWO), cr.Geometric(epsilon=1.0)
    compared = cr.assess(table, mechanism, measures="local", belief="table")
    monkeypatch.setattr(empirical, "MOST_WORK", 10)
    for made, belief in ((cr.Geometric(epsilon=1e-8), "negbin"), (mechanism, "table")):
        found = simulate(table, made, releases=10, belief=belief)
        assert [row.name["figure"] for row in found.figures] == ["caused"]
        assert "was not simulated: the counts, the noise or the number of different cells" in str(found)
    assert "was not simulated" in str(found.compare(compared))


def test_another_attack_has_another_caused() -> None:
    table, mechanism = make(TWO), cr.Geometric(epsilon=1.0)
    compared = simulate(table, mechanism, releases=50).compare(cr.assess(table, mechanism, attack="plurality"))
    assert [each.name["figure"] for each in compared.figures] == ["right", "named"]


def test_the_commands(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"q": list("aaabbbccd"), "y": list("sstsssttt")}).to_csv("people.csv", index=False)
    basic = ["people.csv", "--qid", "q", "--sensitive", "y", "--epsilon", "1", "--json", "--certainty", "0.7,0.8"]
    assert main(["simulate", *basic, "--releases", "50"]) == 0
    found = json.loads(capsys.readouterr().out)["figures"]
    assert [(row["figure"], row["certainty"]) for row in found] == [
        *(("caused", None), ("right", 0.7), ("named", 0.7), ("right", 0.8), ("named", 0.8)),
    ]
    assert main(["assess", *basic, "--check", "--releases", "200", "--belief", "table"]) == 0
    check = json.loads(capsys.readouterr().out)["check"]["y"]
    assert len(check["figures"]) == 5
    assert all(abs(row["z"]) < 5 for row in check["figures"])
    assert main(["simulate", *basic[:-1], "0.5"]) == 2
