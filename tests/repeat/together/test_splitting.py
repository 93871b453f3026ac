"""Sharing a total loss among tables: the figures to meet, a grid of shares beside what is found, the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.repeat.together.splitting import Split
from tests.near import near, same
from tests.repeat.together.oracle import enumerate_caused, geometric

TRIPLES = (
    ["age", "education", "sex"],
    ["age", "relationship", "hours-per-week"],
    ["education", "race", "hours-per-week"],
)
PEOPLE = [
    dict(zip(("a", "b", "c", "y"), each, strict=True))
    for each in ("pqux", "pquy", "prvy", "sqvx", "sruy", "srvx", "sruy")
]
TABLES = [{"qid": "a"}, {"qid": ["b", "c"]}]


def small(**asked: Any) -> Split:
    return cr.split_budget(pd.DataFrame(PEOPLE), TABLES, "y", levels={"y": ["x", "y"]}, **asked)


@pytest.mark.slow
def test_figures_to_meet() -> None:
    """Three tables of Adult, geometric, epsilon 3 in all: even, least error, and least within a quarter more error."""
    found = cr.split_budget(
        cr.datasets.adult_as_published(),
        [{"qid": qid} for qid in TRIPLES],
        "income",
        bins={"age": 5, "hours-per-week": 10},
        total_epsilon=3.0,
    )
    assert found.cells == (480, 900, 800)
    assert (found.even.caused, found.even.error) == pytest.approx((152.094, 0.0224816), rel=5e-6, abs=0)
    rounded = (
        sum(price / math.sinh(part) for price, part in zip(found.cells, (0.8, 1.15, 1.05), strict=True)) / 3 / 27504
    )
    assert rounded == pytest.approx(0.0219600, rel=5e-6, abs=0)
    assert 0.999 * rounded < found.least_error.error <= rounded
    assert found.least_caused.caused <= 142.273
    assert found.least_caused.error <= 1.25 * found.least_error.error * (1 + 2e-6)
    for way in found.ways:
        assert sum(way.parts) == near(3.0)


def oracle(parts: tuple[float, ...]) -> tuple[float, float]:
    """The error and the people given away because of their own records, by hand."""
    keys = [lambda person: person["a"], lambda person: (person["b"], person["c"])]
    caused = enumerate_caused(PEOPLE, keys, "y", "xy", [geometric(part) for part in parts], "elimination")
    errors = [sum(2 * j * math.tanh(part / 2) * math.exp(-part * j) for j in range(1, 2000)) for part in parts]
    return sum(0.5 * cells * 2 * error / (2 * 7) for cells, error in zip((2, 4), errors, strict=True)), caused


def test_least_caused_is_the_least_of_a_grid_and_of_the_table() -> None:
    found = small(total_epsilon=2.0, slack=0.5)
    for way in found.ways:
        assert (way.error, way.caused) == pytest.approx(oracle(way.parts), rel=1e-9, abs=0)
    on_grid = [oracle((part, 2.0 - part)) for part in np.linspace(0.04, 1.96, 49)]
    assert min(error for error, _ in on_grid) >= found.least_error.error * (1 - 1e-9)
    most = max(1.5 * found.least_error.error, found.even.error)
    assert found.least_caused.caused <= min(caused for error, caused in on_grid if error <= most) * 1.0001


@pytest.mark.parametrize("use", [[1, 1, 1], [50, 1, 1], [1, 50, 1], [1, 1, 50]])
@pytest.mark.parametrize("slack", [0.0, 0.25])
def test_the_row_of_the_least_is_the_least_in_the_table(use: list[int], slack: float) -> None:
    """Also if even shares have a larger error than the slack allows."""
    tables = [{"qid": "a"}, {"qid": ["b", "c"]}, {"qid": ["a", "c"]}]
    frame = pd.DataFrame(PEOPLE * 3)
    found = cr.split_budget(frame, tables, "y", levels={"y": ["x", "y"]}, total_epsilon=3.0, use=use, slack=slack)
    assert found.least_caused.caused <= min(found.even.caused, found.least_error.caused) * (1 + 1e-12)
    assert found.least_error.error <= min(found.even.error, found.least_caused.error) * (1 + 1e-9)
    allowed = max((1 + slack) * found.least_error.error, found.even.error)
    assert found.least_caused.error <= allowed * (1 + 2e-6)


def test_weights_of_use_and_what_the_total_is() -> None:
    plain, used = small(total_epsilon=2.0), small(total_epsilon=2.0, use=[9, 1])
    assert used.use == near((0.9, 0.1))
    assert used.least_error.parts[0] > plain.least_error.parts[0]
    assert same(small(epsilon=1.0).to_dict(), plain.to_dict())  # by default what the tables say
    assert small(total_epsilon=2.0, mechanism="laplace").even.mean_errors == near((1.0, 1.0))


def test_more_tables_than_are_scanned() -> None:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(draw.integers(0, 2, (30, 6)), columns=[*"abcdey"])
    found = cr.split_budget(frame, [{"qid": name} for name in "abcde"], "y", total_epsilon=5.0)
    assert found.least_caused.caused <= found.even.caused * (1 + 1e-9)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no total": ({}, "no epsilon was given for table 1"),
    "a total of nothing": ({"total_epsilon": 0.0}, "total_epsilon must be"),
    "too few weights": ({"total_epsilon": 1.0, "use": [1.0]}, "one weight for each table"),
    "weights of nothing": ({"total_epsilon": 1.0, "use": [1.0, 0.0]}, "a weight of use must be a number above 0"),
    "weights that are a text": ({"total_epsilon": 1.0, "use": "12"}, "must be a list of weights"),
    "less than no slack": ({"total_epsilon": 1.0, "slack": -0.1}, "slack"),
    "too much for a mechanism": ({"total_epsilon": 2.0, "mechanism": "gaussian", "delta": 0.1}, "below 1 only"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    asked, reason = WRONG[case]
    with pytest.raises(CellriskError, match=reason):
        small(**asked)


def test_one_table_and_tables_apart_are_refused() -> None:
    frame = pd.DataFrame(PEOPLE)
    with pytest.raises(CellriskError, match="nothing to share"):
        cr.split_budget(frame, TABLES[:1], "y", total_epsilon=1.0)
    apart = [{"qid": "b", "where": {"a": "p"}}, {"qid": "b", "where": {"a": "s"}}]
    with pytest.raises(CellriskError, match="exclude each other"):
        cr.split_budget(frame, apart, "y", total_epsilon=1.0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(PEOPLE).to_csv("people.csv", index=False)
    head = 'source = "people.csv"\nsensitive = "y"\nlevels = ["y=x|y"]\n'
    Path("set.toml").write_text(f'{head}[[table]]\nqid = ["a"]\n[[table]]\nqid = ["b", "c"]\n', encoding="utf-8")
    assert main(["together", "split", "set.toml", "--total-epsilon", "2", "--use", "1,3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert same(told["splits"], json.loads(json.dumps(small(total_epsilon=2.0, use=[1, 3]).to_dict()["splits"])))
    assert main(["together", "split", "set.toml", "--total-epsilon", "2", "--all"]) == 0
    said = capsys.readouterr().out
    assert "least error" in said
    assert "least caused" in said
    assert main(["together", "split", "set.toml"]) == 2
    assert "no epsilon was given for table 1" in capsys.readouterr().err
    assert main(["together", "--json", "assess.toml"]) == 2  # no command of that name, so a set file
    assert "the set file does not exist" in capsys.readouterr().err
