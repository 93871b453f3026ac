"""Curves of measures and of figures: every point is what `assess` gives, the ends are the limits, the outputs agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.risk.curves import FIGURES, Line
from cellrisk.risk.sweep import usual_delta
from cellrisk.show.wording import curve
from tests.near import near


@pytest.fixture(scope="module")
def small() -> cr.FrequencyTable:
    frame = pd.DataFrame({"q": list("aaaaabbbccd"), "y": list("ssstusstsuu"), "z": list("01010101010")})
    return cr.tabulate(frame, "q", ["y", "z"])


@pytest.mark.slow
def test_every_point_is_an_assessment(small: cr.FrequencyTable) -> None:
    epsilons = [0.01, 0.5, 3.0]
    found = cr.curve(
        small, ["laplace", "gaussian", "gaussian-analytic", "geometric"], epsilon=epsilons, delta=[1e-3, 0.1]
    )
    frame = found.to_frame()
    assert set(frame.mechanism) == {"laplace", "gaussian", "gaussian-analytic", "geometric"}
    assert frame[frame.mechanism == "gaussian"].epsilon.max() == 0.5
    for (name, epsilon, delta), rows in frame.groupby(["mechanism", "epsilon", "delta"]):
        assessment = cr.assess(small, cr.mechanism(name, epsilon=epsilon, delta=delta))
        expected = assessment.to_frame().sort_values(["sensitive", "measure", "form", "weights"])
        mine = rows.sort_values(["sensitive", "measure", "form", "weights"])
        assert np.allclose(mine.risk, expected.risk, rtol=1e-12, atol=1e-15)
        assert len(mine) == len(expected) == 2 * 27


def test_the_limits_are_where_the_curve_goes(adult: cr.FrequencyTable) -> None:
    found = cr.curve(adult, epsilon=[1e-9, 1e3])
    for line in found.lines:
        assert line.risk[0] == pytest.approx(line.limits.chance, abs=1e-4)
        assert line.risk[1] == pytest.approx(line.limits.raw, abs=1e-9)
    tight = next(line for line in found.lines if (line.measure, line.form) == ("local", "tight"))
    assert tight.limits.chance == pytest.approx(0.25, abs=1e-12)  # two levels: one survives and the other does not
    records = next(line for line in found.leading)
    assert records.limits.raw == pytest.approx(adult.attribute().exposed_share, abs=1e-12)


def test_default_delta_is_about_one_over_records(adult: cr.FrequencyTable) -> None:
    line = cr.curve(adult, "gaussian-analytic", epsilon=1.0, measures="local", forms="tight").lines[0]
    assert line.setting.delta == 3e-5
    for records in (1, 2, 9, 10, 11, 250, 27_504, 10**8):
        assert 0 < usual_delta(records) <= 1 / records or records == 1
        assert usual_delta(records) * records > 0.49


WORDS = re.compile(
    r"y, geometric: As epsilon falls to 0 the risk tends to (?:under )?(?P<low>[\d.]+)%\. "
    r"As epsilon grows it tends to (?:under )?(?P<high>[\d.]+)%, the risk without noise\. "
    r"(?:At every epsilon computed it is (?:under )?(?P<all>[\d.]+)%\.|Of the epsilons computed, (?P<least_at>\S+) "
    r"has the smallest risk, (?:under )?(?P<least>[\d.]+)%, and "
    r"(?P<most_at>\S+) the largest, (?:under )?(?P<most>[\d.]+)%\.)"
)


def test_words_say_what_a_plain_formula_says() -> None:
    for seed in range(8):
        compare_words(seed)


def compare_words(seed: int) -> None:
    """The words of a random curve, read again, and a formula of their own."""
    generator = np.random.default_rng(seed)
    levels = int(generator.integers(2, 4))
    cells = generator.poisson(generator.choice([0.3, 1.5, 6.0]), (int(generator.integers(1, 9)), levels))
    cells[0] += seed % 3 == 0
    cells[0, 0] += 1
    rows = [(f"g{place}", f"v{label}", int(n)) for (place, label), n in np.ndenumerate(cells)]
    names = [f"v{label}" for label in range(levels)]
    table = cr.tabulate(pd.DataFrame(rows, columns=["q", "y", "n"]), "q", "y", count="n", levels={"y": names})
    epsilons = np.sort(np.round(10 ** generator.uniform(-2, 1.5, int(generator.integers(1, 30))), 5))
    words = cr.curve(table, epsilon=epsilons, measures="local", forms="tight", weights="records").words
    said = WORDS.fullmatch(words)
    assert said is not None, words

    def risk(epsilon: float) -> float:
        a = np.exp(-epsilon)
        gone = a**cells / (1 + a)
        alone = [(1 - gone[:, k]) * np.delete(gone, k, axis=1).prod(axis=1) for k in range(levels)]
        return float((cells * np.stack(alone, axis=1)).sum() / cells.sum())

    risks = [risk(epsilon) for epsilon in epsilons]
    assert float(said["low"]) == pytest.approx(100 / 2**levels, rel=0, abs=0.0501)
    homogeneous = cells[(cells > 0).sum(axis=1) == 1].sum() / cells.sum()
    assert float(said["high"]) == pytest.approx(100 * homogeneous, rel=0, abs=0.0501)
    for name, wanted in (("least", min(risks)), ("most", max(risks))):
        assert float(said[name] or said["all"]) == pytest.approx(100 * wanted, rel=0, abs=0.0501)
        if said[name]:
            place = int(np.argmin(np.abs(epsilons / float(said[f"{name}_at"]) - 1)))
            assert f"{epsilons[place]:.3g}" == said[f"{name}_at"]
            assert risks[place] == near(wanted)


@pytest.mark.parametrize(
    ("arguments", "says"),
    {
        "no epsilon": ({"epsilon": []}, "list of epsilons is empty"),
        "negative": ({"epsilon": [1.0, -1.0]}, "above 0"),
        "nan": ({"epsilon": [float("nan")]}, "finite"),
        "text": ({"epsilon": "many"}, "number or a list"),
        "no delta": ({"mechanism": "gaussian-analytic", "delta": []}, "list of deltas is empty"),
        "delta for laplace": ({"delta": 0.1}, "takes no delta"),
        "delta too large": ({"mechanism": "gaussian-analytic", "delta": 2.0}, "between 0 and 1"),
        "no mechanism": ({"mechanism": []}, "no mechanism"),
        "unknown mechanism": ({"mechanism": "uniform"}, "unknown mechanism"),
        "unknown measure": ({"measures": "global"}, "unknown measure"),
        "unknown attack": ({"attack": "guess"}, "unknown attack"),
        "classical from 1 on": ({"mechanism": "gaussian", "epsilon": [1.0, 2.0]}, "below 1 only"),
        "threshold": ({"threshold": 1.0}, "half-integer"),
        "half": ({"measures": FIGURES, "certainty": 0.5}, "above 0.5"),
        "one": ({"measures": FIGURES, "certainty": [0.9, 1.0]}, "below 1"),
        "unknown belief": ({"measures": FIGURES, "belief": "none"}, "unknown belief"),
        "shapes of another table": ({"measures": FIGURES, "belief": "0.4,0.1,0.1,0.2/0.9"}, "one shape for each label"),
        "impossible belief": ({"measures": FIGURES, "belief": {"y": "0.4,0,0.2/0.9"}}, "impossible"),
        "another form": ({"measures": FIGURES, "forms": "exact"}, "one form"),
        "another weighting": ({"measures": FIGURES, "weights": "uniform"}, "one weighting"),
        "unknown": ({"measures": "risky"}, "unknown measure"),
        "past memory": ({"measures": FIGURES, "epsilon": np.geomspace(0.01, 10, 200_000)}, "too many numbers"),
        "past memory of the paper's": ({"epsilon": np.geomspace(0.01, 10, 50_000)}, "too many"),
    }.values(),
)
def test_refusals(small: cr.FrequencyTable, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(CellriskError, match=says):
        cr.curve(small, **{"epsilon": [1.0], **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("attack", ["homogeneity", "plurality", "proportional"])
@pytest.mark.parametrize("name", ["gaussian-analytic", "discrete-gaussian"])
def test_mechanisms_whose_noise_stays_finite(name: str, attack: str) -> None:
    """With delta fixed, the noise of these two does not grow without bound: all that is said is of their own limit."""
    frame = pd.DataFrame({"q": ["a"] * 40 + ["b"] * 7 + ["c"] * 3, "y": ["s"] * 40 + ["t"] * 7 + ["s", "t", "t"]})
    table = cr.tabulate(frame, "q", "y")
    least = {"epsilon": 1e-9, "delta": 0.05}
    asked = {"epsilon": [1e-9, 0.1, 1.0, 10.0], "delta": 0.05, "attack": attack, "forms": "tight", "weights": "records"}
    found = cr.curve(table, name, measures="local", **asked)  # type: ignore[arg-type]
    (line,) = found.lines
    assert line.limits.chance == pytest.approx(line.risk[0], rel=1e-6, abs=0)
    assert line.limits.chance > 0.3
    assert "delta stays as it is" in found.words
    assert f"{100 * line.risk[0]:.1f}%" in found.words
    at_least = cr.assess(table, cr.mechanism(name, **least), attack=attack, measures="local")  # type: ignore[arg-type]
    assert at_least.figures[0].limits.chance == pytest.approx(line.risk[0], rel=1e-6, abs=0)
    assert "Noise alone" not in at_least.details
    assert "are still revealed" in at_least.details
    pure = cr.curve(table, "laplace", epsilon=[0.1, 1.0], measures="local", attack=attack)
    assert "delta stays" not in pure.words
    choice = cr.choose(table, name, delta=0.05, margin=0.02, attack=attack)
    assert choice.limits.chance == pytest.approx(line.risk[0], rel=1e-6, abs=0)
    assert choice.risk is not None
    assert choice.risk <= line.risk[0] + 0.02 + 1e-9


# Figures to decide by

CERTAINTIES = [0.8, 0.95]


def check_point(line: Line, place: int, figures: Any) -> None:
    """The figure at one epsilon is that of an assessment there."""
    point = line.points[place]
    if line.measure == "caused":
        assert line.risk[place] == near(figures.caused.share)
        assert (point.people, point.exposed) == (near(figures.caused.people), near(figures.caused.exposed))
        assert point.deviation == near(figures.caused.deviation)
        assert (point.bound, point.cap) == (near(figures.caused.bound), near(figures.caused.cap))
    elif line.measure == "certainty":
        (row,) = (row for row in figures.certainty if row.certainty == point.certainty)
        ends = (row.right_low, row.right_high, row.named_low, row.named_high)
        assert (point.right_low, point.right_high, point.named_low, point.named_high) == near(ends)
        assert point.belief == row.belief
        assert line.risk[place] == near(row.right / figures.records)
    else:
        ceiling = figures.ceiling
        assert line.risk[place] == near(ceiling.even_two)
        assert (point.even, point.advantage) == (near(ceiling.even), near(ceiling.advantage))
        assert point.odds == (None if ceiling.odds is None else near(ceiling.odds))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("laplace", {}),
        ("geometric", {"threshold": 1.5}),
        pytest.param("geometric", {"neighbours": "replace"}, marks=pytest.mark.slow),
        pytest.param("gaussian-analytic", {"delta": 0.01}, marks=pytest.mark.slow),
        pytest.param("discrete-gaussian", {"delta": 0.01}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("belief", ["negbin", "table"])
def test_every_point_of_a_figure_is_an_assessment(
    small: cr.FrequencyTable, name: str, other: dict[str, Any], belief: str
) -> None:
    epsilons = [0.3, 1.0, 4.0]
    asked: dict[str, Any] = {"certainty": CERTAINTIES, "belief": belief}
    found = cr.curve(small, name, epsilon=epsilons, measures=FIGURES, **asked, **other)
    assert [line.sensitive for line in found.lines] == ["y"] * 4 + ["z"] * 4
    for place, epsilon in enumerate(epsilons):
        there = cr.assess(small, cr.mechanism(name, epsilon=epsilon, **other), measures="local", **asked)
        for line in found.lines:
            check_point(line, place, next(each for each in there.figures if each.sensitive == line.sensitive))


@pytest.mark.parametrize("attack", ["plurality", "proportional"])
def test_attacks_that_guess(small: cr.FrequencyTable, attack: str) -> None:
    line, _ = cr.curve(small, epsilon=[0.5, 2.0], measures="caused", attack=attack).lines
    for epsilon, point in zip(line.epsilon, line.points, strict=True):
        there = cr.assess(small, epsilon=float(epsilon), attack=attack, measures="local").figures[0].caused
        assert (point.people, point.exposed) == (near(there.people), near(there.exposed))
        assert point.deviation is None
    much, none = (
        cr.curve(small, epsilon=epsilon, measures="caused", attack=attack).lines[0].risk[0] for epsilon in (1e-9, 500.0)
    )
    assert much == pytest.approx(line.limits.chance, abs=1e-6)
    assert none == pytest.approx(line.limits.raw, abs=1e-9)


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize(("name", "other"), [("laplace", {}), ("gaussian-analytic", {"delta": 0.05})])
def test_the_limits_of_figures_are_where_the_lines_go(
    small: cr.FrequencyTable, name: str, other: dict[str, Any], threshold: float
) -> None:
    asked: dict[str, Any] = {"measures": FIGURES, "certainty": CERTAINTIES, "threshold": threshold, **other}
    lines = cr.curve(small, name, epsilon=[1e-9, 1e3], **asked).lines
    assert {line.measure for line in lines} == set(FIGURES)
    for line in lines:
        if line.measure == "certainty":  # a tie as epsilon goes to 0 can go either way
            assert line.risk[1] == pytest.approx(line.limits.raw, abs=1e-6)
        else:
            assert line.risk == pytest.approx([line.limits.chance, line.limits.raw], abs=1e-6)


@pytest.fixture(scope="module")
def found(adult: cr.FrequencyTable) -> dict[Any, Line]:
    epsilons = [0.1, 1.0, 3.0, 10.0, 100.0]
    lines = cr.curve(adult, "laplace", epsilon=epsilons, measures=FIGURES, certainty=CERTAINTIES).lines
    return {line.points[0].certainty if line.measure == "certainty" else line.measure: line for line in lines}


class TestAdult:
    """The figures of Adult as published, to the digits printed."""

    def test_caused(self, found: dict[Any, Line]) -> None:
        line = found["caused"]
        assert line.risk * 27504 == pytest.approx([226.758, 997.481, 1964.77, 2622.12, 2644], rel=6e-6, abs=0)
        assert line.points[1].deviation == pytest.approx(32.4588, rel=6e-6, abs=0)
        assert (line.limits.chance, line.limits.raw * 27504) == (0, near(2644))

    def test_certainty(self, found: dict[Any, Line]) -> None:
        right = {sure: found[sure].risk[:4] * 27504 for sure in CERTAINTIES}
        assert right[0.8] == pytest.approx([12097.3, 15910.2, 16787.9, 16994.7], rel=6e-6, abs=0)
        assert right[0.95] == pytest.approx([3384.23, 11136.4, 12505.9, 12862.8], rel=6e-6, abs=0)
        assert found[0.95].limits.raw * 27504 == near(12894)

    def test_words(self, found: dict[Any, Line]) -> None:
        sentence = curve.say_line(found["caused"], 27504)
        assert "227 (0.8%) at epsilon 0.1, 997 (3.6%) at epsilon 1 and 2,622 (9.5%) at epsilon 10" in sentence
        assert "11,136 (40.5%) at epsilon 1" in curve.say_line(found[0.95], 27504)
        assert "72.5% at epsilon 1" in curve.say_line(found["ceiling"], 27504)


def test_outputs_agree(small: cr.FrequencyTable, tmp_path: Path) -> None:
    found = cr.curve(small, epsilon=[0.1, 1.0], measures=["local", *FIGURES], forms="tight", certainty=CERTAINTIES)
    frame = found.to_frame()
    written = pd.read_csv(found.to_csv(tmp_path / "curve.csv"))
    assert written.risk.tolist() == near(frame.risk.tolist())
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["risk"] for row in document["risks"]] == near(frame.risk.tolist())
    kinds = frame.groupby("measure").size()
    # Two epsilons and two attributes: local by two weights, certainty at two certainties.
    assert kinds.to_dict() == {"caused": 4, "certainty": 8, "ceiling": 4, "local": 8}
    for row in document["risks"]:
        if row["measure"] == "caused":
            assert row["risk"] == near(row["people"] / 11)
        elif row["measure"] == "certainty":
            assert row["risk"] == near(row["right"] / 11)
        elif row["measure"] == "ceiling":
            assert (row["risk"], row["labels"]) == (near(row["even_two"]), 3 if row["sensitive"] == "y" else 2)
    assert "not protected" in str(found)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"q": list("aaabbbccd"), "y": list("sstsssttt")}).to_csv("people.csv", index=False)
    basic = ["curve", "people.csv", "--qid", "q", "--sensitive", "y", "--epsilon", "0.5,1"]
    many = ["--measure", "caused,certainty", "--measure", "ceiling", "--measure", "local", "--certainty", "0.8,0.9"]
    assert main([*basic, *many, "--json", "--csv", "curve.csv", "--plot", "curve.png"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {(row["epsilon"], row["delta"]) for row in document["risks"]} == {(0.5, 0.0), (1.0, 0.0)}
    assert {row["measure"] for row in document["risks"]} == {*FIGURES, "local"}
    assert len(pd.read_csv("curve.csv")) == len(document["risks"])
    assert Path("curve.png").stat().st_size > 10_000
    assert main([*basic, "--measure", "caused"]) == 0
    assert "revealed because of their own record" in " ".join(capsys.readouterr().out.split())
    for bad in (["--certainty", "0.5"], ["--certainty", "1"], ["--belief", "0.4/0.9"], ["--belief", "1,0/0.5"]):
        assert main([*basic, "--measure", "certainty", *bad]) == 2, bad
        assert capsys.readouterr().err.count("\n") == 1
    assert main([*basic[:-1], "0.01:10:100000"]) == 2
    assert "too many numbers" in capsys.readouterr().err
