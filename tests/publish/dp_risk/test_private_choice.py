"""An epsilon that is chosen privately: permute-and-flip against its definition, the limit, the price."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.publish.dp_risk import private_choice
from cellrisk.publish.dp_risk.private_choice import (
    USUAL_GRID,
    choose_privately,
    find_error,
    find_exponents,
    permute_and_flip,
)
from cellrisk.publish.dp_risk.sensitivity import UNIT
from cellrisk.risk.people import count_caused
from tests.near import near
from tests.refusals import refused

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

EXPONENTS = find_exponents((30, 55, 90), limit=60, units=10, epsilon=0.8)


def flip_weights(exponents: list[float]) -> list[float]:
    """P(j) of permute-and-flip, by going through every order."""
    from itertools import permutations

    found = [0.0] * len(exponents)
    orders = list(permutations(range(len(exponents))))
    for order in orders:
        left = 1.0
        for place in order:
            found[place] += left * math.exp(-exponents[place]) / len(orders)
            left *= 1.0 - math.exp(-exponents[place])
    return found


def test_choices_come_as_often_as_they_should() -> None:
    number = 3000
    wanted = flip_weights([float(exponent) for exponent in EXPONENTS])
    found = Counter(permute_and_flip(EXPONENTS) for _ in range(number))
    for place, probability in enumerate(wanted):
        assert abs(found[place] / number - probability) < 5 * math.sqrt(probability / number)


def lost(one: Any, other: Any, units: int) -> float:
    """The largest log-ratio between the choices of two neighbours."""
    exponents = (find_exponents(envelope.tolist(), 60, units, 0.8) for envelope in (one, other))
    odds = [flip_weights([float(exponent) for exponent in found]) for found in exponents]
    return max(abs(math.log(a / b)) for a, b in zip(*odds, strict=True))


def test_neighbours_lose_no_more_than_epsilon() -> None:
    """By exact sums over random pairs; a sensitivity that is too small is seen."""
    generator = np.random.default_rng(4)
    pairs = []
    for _ in range(60):
        here = np.sort(generator.integers(0, 120, 3))
        pairs.append((here, np.maximum.accumulate(np.maximum(here + generator.integers(-10, 11, 3), 0))))
    assert 0.3 < max(lost(*pair, units=10) for pair in pairs) <= 0.8 + 1e-12
    assert max(lost(*pair, units=3) for pair in pairs) > 0.8


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    generator = np.random.default_rng(5)
    people = pd.DataFrame({"q": generator.integers(0, 4000, 6000), "y": generator.choice(["a", "b"], 6000)})
    return cr.tabulate(people, "q", "y", levels={"y": ["a", "b"], "q": list(range(4000))}, outside="drop")


def test_the_choice_keeps_the_limit_and_comes_near_it(table: cr.FrequencyTable) -> None:
    grid = [0.05, 0.2, 0.5, 1.0, 2.0, 4.0]
    caused = [count_caused(table.profiles("y"), cr.Geometric(each), 1.0).people for each in grid]
    limit = (caused[3] + caused[4]) / 2
    found = [choose_privately(table, private=2.0, max_caused_people=limit, grid=grid) for _ in range(5)]
    for each in found:
        assert each.error < (caused[4] - caused[3]) / 2
        assert each.epsilon == near(1.0)
        assert "at most" in each.headline
    assert found[0].total == near(6.0)
    assert json.loads(json.dumps(found[0].to_dict()))["lowered_by"] == near(found[0].error)


def test_the_error_is_the_known_one() -> None:
    """Fifty points, epsilon 0.1 and 1 in 20: (2/0.1) ln(51/0.05) people for a sensitivity of one."""
    units = round(1 / UNIT)
    assert find_error(units, 0.1, 50, 0.05) * UNIT == pytest.approx(20 * math.log(51 / 0.05), rel=1e-6, abs=0)


def test_none_and_all(table: cr.FrequencyTable) -> None:
    assert choose_privately(table, private=50.0, max_caused_people=5.0, grid=[1.0, 2.0]).epsilon is None
    found = choose_privately(table, private=50.0, max_caused_people=1e9)
    assert found.epsilon == near(10.0)
    assert len(USUAL_GRID) == 50
    assert "No epsilon" in choose_privately(table, private=50.0, max_caused_people=5.0, grid=[1.0, 2.0]).headline


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"private": 0.0}, "range"),
        ({"private": 5e-324}, "range"),
        ({"max_caused_people": 0}, "range"),
        ({"max_caused_people": 10, "private": 0.01}, "limit-range"),
        ({"grid": lambda table: [1.0]}, "type"),
        ({"grid": "1,2"}, "type"),
        ({"grid": []}, "grid"),
        ({"grid": [1.0, 1.0]}, "grid"),
        ({"grid": [0.0, 1.0]}, "grid"),
        ({"grid": ["a"]}, "grid"),
        ({"purpose": "why"}, "no-ledger"),
    ],
)
def test_bad_requests_are_refused(given: dict[str, Any], code: str, table: cr.FrequencyTable) -> None:
    with refused(code):
        choose_privately(table, **{"private": 0.5, "max_caused_people": 500.0, **given})


def test_the_ledger_is_asked_before_anything_is_drawn(
    table: cr.FrequencyTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cr.Ledger(tmp_path / "ledger", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=0.7)
        choose_privately(table, private=0.5, max_caused_people=500.0, ledger=ledger)
        drawn: list[Any] = []
        monkeypatch.setattr(private_choice, "permute_and_flip", lambda given: drawn.append(given) or 0)
        with refused("limit"):
            choose_privately(table, private=0.5, max_caused_people=500.0, ledger=ledger)
        assert not drawn
        assert ledger.spent("everyone").epsilon == near(0.5)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"q": list("aabbcc"), "y": list("mnmnmm")}).to_csv("people.csv", index=False)
    declared = ["--qid", "q", "--sensitive", "y", "--levels", "y=m|n", "--levels", "q=a|b|c|d"]
    asked = ["choose-private", "people.csv", *declared, "--choice-epsilon", "2"]
    assert main([*asked, "--max-caused-people", "50", "--grid", "0.5,1,2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == near(2.0)
    assert main([*asked, "--max-caused-people", "50", "--ledger", "l.db", "--new-ledger"]) == 0
    assert "Recorded in l.db as entry 2." in capsys.readouterr().out
    for more, told in (
        ((), "--max-caused-people"),
        (("--max-caused-people", "50", "--max-risk", "0.3"), "No such option: --max-risk"),
        (("--max-caused-people", "50", "--epsilon", "0.1"), "No such option: --epsilon"),
    ):
        assert main([*asked, *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert told in err
    assert main([*asked[:-2], "--max-caused-people", "9", "--grid", "1,2"]) == 2
    assert "--choice-epsilon" in capsys.readouterr().err
