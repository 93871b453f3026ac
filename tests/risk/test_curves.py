"""Curves: every point is what `assess` gives, the ends are the limits, the outputs agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.risk.sweep import read_epsilons, usual_delta
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


def test_outputs_agree(small: cr.FrequencyTable, tmp_path: Path) -> None:
    found = cr.curve(small, epsilon=[0.1, 1.0], measures="local")
    frame = found.to_frame()
    written = pd.read_csv(found.to_csv(tmp_path / "curve.csv"))
    assert np.array_equal(written.risk, frame.risk)
    rows = json.loads(json.dumps(found.to_dict(), allow_nan=False))["risks"]
    assert [row["risk"] for row in rows] == frame.risk.tolist()
    assert {"sensitive", "attack", "measure", "form", "weights", "risk", "epsilon", "delta", "mechanism"} <= set(
        rows[0]
    )
    text = str(found)
    assert text.startswith("y, geometric")
    assert "not protected" in text


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


def test_progress(small: cr.FrequencyTable) -> None:
    seen: list[float] = []
    cr.curve(small, epsilon=1.0, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


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
    }.values(),
)
def test_refusals(small: cr.FrequencyTable, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(CellriskError, match=says):
        cr.curve(small, **arguments)  # type: ignore[arg-type]


def test_types_refuse() -> None:
    with pytest.raises(UnknownName, match="unknown mechanism"):
        cr.mechanism("uniform", epsilon=1.0)
    with pytest.raises(InvalidInput, match="a list of numbers; got 2 dimensions"):
        read_epsilons([[1.0], [2.0]])


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
