"""The figures to decide by along epsilon: every point is what `assess` gives, the ends are the limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.risk.curves import FIGURES, Line
from cellrisk.show.wording import curve
from tests.near import near

CERTAINTIES = [0.8, 0.95]


@pytest.fixture(scope="module")
def small() -> cr.FrequencyTable:
    frame = pd.DataFrame({"q": list("aaaaabbbccdeff"), "y": list("ssstusstsuusst"), "z": list("01010101010110")})
    return cr.tabulate(frame, "q", ["y", "z"])


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
def test_every_point_is_an_assessment(small: cr.FrequencyTable, name: str, other: dict[str, Any], belief: str) -> None:
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
def test_the_limits_are_where_the_lines_go(
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
            assert row["risk"] == near(row["people"] / 14)
        elif row["measure"] == "certainty":
            assert row["risk"] == near(row["right"] / 14)
        elif row["measure"] == "ceiling":
            assert (row["risk"], row["labels"]) == (near(row["even_two"]), 3 if row["sensitive"] == "y" else 2)
    assert "not protected" in str(found)


def test_progress(small: cr.FrequencyTable) -> None:
    seen: list[float] = []
    cr.curve(small, epsilon=[0.5, 1.0], measures=["local", *FIGURES], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    {
        "half": ({"certainty": 0.5}, "above 0.5"),
        "one": ({"certainty": [0.9, 1.0]}, "below 1"),
        "unknown belief": ({"belief": "none"}, "unknown belief"),
        "shapes of another table": ({"belief": "0.4,0.1,0.1,0.2/0.9"}, "one shape for each label"),
        "impossible belief": ({"belief": {"y": "0.4,0,0.2/0.9"}}, "impossible"),
        "another form": ({"forms": "exact"}, "one form"),
        "another weighting": ({"weights": "uniform"}, "one weighting"),
        "unknown": ({"measures": "risky"}, "unknown measure"),
        "past memory": ({"epsilon": np.geomspace(0.01, 10, 200_000)}, "too many numbers"),
        "past memory of the paper's": ({"epsilon": np.geomspace(0.01, 10, 50_000), "measures": None}, "too many"),
    }.values(),
)
def test_refusals(small: cr.FrequencyTable, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(CellriskError, match=says):
        cr.curve(small, **{"measures": FIGURES, "epsilon": [1.0], **arguments})


def test_one_label_is_refused() -> None:
    frame = pd.DataFrame({"q": [1, 1, 2], "y": ["a"] * 3})
    with pytest.raises(CellriskError, match="level"):
        cr.curve(cr.tabulate(frame, "q", "y"), epsilon=1.0, measures="ceiling")


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
