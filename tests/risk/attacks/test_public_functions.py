"""The attacks through the front doors: assess, curve, choose, people, the command line, and simulation beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.risk.attacks import GUESSES
from cellrisk.risk.people import count_people
from tests.near import near

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("attack", GUESSES)
def test_assess_curve_and_choose_agree(adult: cr.FrequencyTable, attack: str) -> None:
    assessment = cr.assess(adult, epsilon=1.0, attack=attack)
    assert {(row.attack, row.measure, row.form) for row in assessment.risks} == {(attack, "local", "tight")}
    line = cr.curve(adult, epsilon=[0.5, 1.0], attack=attack, weights="records").lines[0]
    assert line.at(1.0) == near(assessment.value())
    exact = GUESSES[attack]().average(adult.profiles(), cr.Geometric(epsilon=1.0).channel, ("tight",))
    assert assessment.value(weights="uniform") == near(exact["tight", "uniform"][0])
    people = assessment.figures[0].people.mean
    assert people / adult.n_records == pytest.approx(assessment.value(), rel=1e-12, abs=0)
    choice = cr.choose(adult, max_risk=assessment.value(), attack=attack, least_epsilon=0.5, largest_epsilon=2.0)
    assert choice.epsilon == pytest.approx(1.0, rel=1e-5, abs=0)
    by_people = cr.choose(
        adult, max_people=assessment.figures[0].people.mean, attack=attack, least_epsilon=0.5, largest_epsilon=2.0
    )
    assert by_people.epsilon == pytest.approx(1.0, rel=1e-5, abs=0)


@pytest.mark.parametrize("attack", GUESSES)
def test_ends(adult: cr.FrequencyTable, attack: str) -> None:
    (line,) = cr.curve(adult, epsilon=[1e-3, 50.0], attack=attack, weights="records").lines
    assert line.limits.chance == near(0.375)
    assert line.risk[0] == pytest.approx(0.375, abs=0.02)
    assert line.risk[1] == pytest.approx(line.limits.raw, abs=1e-6)
    assert cr.assess(adult, cr.Laplace(epsilon=1.0), attack=attack).figures[0].raw_share == near(line.limits.raw)


@pytest.mark.parametrize("attack", ["homogeneity", *GUESSES])
def test_simulation_agrees(adult: cr.FrequencyTable, attack: str) -> None:
    mechanism = cr.Geometric(epsilon=0.7)
    assessment = cr.assess(adult, mechanism, measures="local", forms="tight", attack=attack)
    found = cr.simulate(adult, mechanism, releases=400, seed=8)
    for row in assessment.risks:
        estimate = found.value(form=row.form, weights=row.weights, attack=attack)
        assert abs(estimate.mean - row.risk) < 4 * estimate.standard_error


@pytest.mark.parametrize("attack", GUESSES)
def test_people_of_a_guess(attack: str) -> None:
    cells = np.array([[6, 2, 0], [1, 1, 1], [0, 9, 3]])
    frame = pd.DataFrame(
        [{"q": row, "y": "abc"[label], "n": cells[row, label]} for row in range(3) for label in range(3)]
    )
    table = cr.tabulate(frame, "q", "y", count="n")
    mechanism, releases = cr.Laplace(epsilon=0.8), 40_000
    generator = np.random.default_rng(2)
    noisy = cells + mechanism.noise.sample(generator, (releases, 3, 3))
    released = np.where(noisy < 0.5, 0.0, np.rint(noisy))
    if attack == "plurality":
        best = released == released.max(axis=2, keepdims=True)
        chance = best / best.sum(axis=2, keepdims=True) * (released.max(axis=2, keepdims=True) > 0)
    else:
        total = released.sum(axis=2, keepdims=True)
        chance = np.divide(released, total, out=np.zeros_like(released), where=total > 0)
    spin = generator.random((releases, 3, 1))
    edges = np.cumsum(chance, axis=2)
    named = (spin < edges) & (spin >= edges - chance)
    right = (named * cells).sum(axis=(1, 2))
    found = count_people(table.profiles(), mechanism.channel, attack)
    assert abs(right.mean() - found.mean) < 4.5 * found.deviation / np.sqrt(releases)
    assert right.std() == pytest.approx(found.deviation, rel=0.02, abs=0)
    inside = np.mean((right >= found.low) & (right <= found.high))
    assert inside >= 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / releases)
    assert found.exact


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"attack": "plurality", "measures": "expected"}, "has one measure; got expected; allowed: local"),
        ({"attack": "proportional", "forms": ["exact", "tight"]}, "has one form; got exact; allowed: tight"),
        ({"attack": "guess"}, "unknown attack"),
    ],
)
def test_refusals(adult: cr.FrequencyTable, arguments: dict[str, object], says: str) -> None:
    for function in (cr.assess, cr.curve):
        with pytest.raises(CellriskError, match=says):
            function(adult, cr.Laplace(epsilon=1.0) if function is cr.assess else "laplace", **arguments)  # type: ignore[operator]


def test_command_line(tmp_path: Path, capsys: Capture) -> None:
    rows = [{"q": number % 7, "y": "stu"[number % 5 % 3]} for number in range(80)]
    path = tmp_path / "people.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    basic = [str(path), "--qid", "q", "--sensitive", "y", "--epsilon", "1"]
    assert main(["assess", *basic, "--attack", "plurality"]) == 0
    assert "the plurality attack reveals" in capsys.readouterr().out
    assert main(["assess", *basic, "--attack", "proportional", "--max-risk", "0.1"]) == 3
    assert main(["assess", *basic, "--attack", "plurality", "--measure", "expected"]) == 2
