"""The informed attacker on several tables: every value that noise can lead to, listed by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import cycle, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts.joint import JointCells, count_together
from cellrisk.errors import CellriskError
from cellrisk.repeat.together import informed_attacker
from cellrisk.repeat.together.informed_attacker import find_certain
from cellrisk.repeat.together.sets import SetTable, read_tables
from cellrisk.risk.certainty import NegativeBinomial

ROWS = ["pux", "puy", "pvx", "pvx", "suy", "suy", "svy", "svx", "puy"]
THREE = [*ROWS, "puz", "svz", "svz"]
EPSILON, REACH = 2.0, 16


def prepare(rows: list[str], where: Any = None) -> tuple[JointCells, tuple[SetTable, ...]]:
    frame = pd.DataFrame([[*row] for row in rows], columns=["a", "b", "y"])
    tables: list[dict[str, Any]] = [{"qid": "a"}, {"qid": "b", **({"where": where} if where else {})}]
    asked = read_tables(tables, "y", epsilon=EPSILON)
    return count_together(frame, [each.asked for each in asked], "y"), asked


def believe(labels: int) -> list[NegativeBinomial]:
    return [NegativeBinomial((0.6, 0.9, 0.4)[:labels], 0.7), NegativeBinomial((1.1, 0.5, 0.8)[:labels], 0.6)]


def likely(value: int, count: int) -> float:
    """P(a count is released as that value): geometric noise, and what is below 1 becomes 0."""
    a = math.exp(-EPSILON)
    if value > 0:
        return (1 - a) / (1 + a) * a ** abs(value - count)
    return sum((1 - a) / (1 + a) * a ** abs(e) for e in range(-60, 61) if count + e < 1)


def behind(value: int, shape: float, theta: float) -> float:
    """E[N | value], by sums over the counts."""
    prior = [math.exp(math.lgamma(shape + n) - math.lgamma(shape) - math.lgamma(n + 1)) * theta**n for n in range(120)]
    weights = [own * likely(value, n) for n, own in enumerate(prior)]
    return sum(n * weight for n, weight in enumerate(weights)) / sum(weights)


def enumerate_certain(
    rows: list[str], beliefs: list[NegativeBinomial], certainty: float, tempering: float, outside: str = ""
) -> tuple[float, float]:
    """Right and named: for each person, every combination of values in his two cells. ``outside``: whose a is so is not
    in the second table."""
    labels = sorted({row[2] for row in rows})
    overall = Counter(row[2] for row in rows)
    counts = [Counter((row[0], row[2]) for row in rows), Counter((row[1], row[2]) for row in rows if row[0] != outside)]
    known = {
        (table, label, value): behind(value, belief.shapes[label], belief.theta)
        for table, belief in enumerate(beliefs)
        for label in range(len(labels))
        for value in range(REACH + 8)
    }
    priors = np.array([overall[label] / len(rows) for label in labels])
    right = named = 0.0
    for row, times in Counter(rows).items():
        chance, logs = np.ones(1), np.log(priors)[None, :]  # of each combination; and of its labels
        for table in [0] if row[0] == outside else [0, 1]:
            own = [counts[table][row[table], label] for label in labels]
            listed = [*product(*(range(n + REACH // len(labels) + 1) for n in own))]
            told = np.array([[known[table, k, value] for k, value in enumerate(values)] for values in listed])
            of_these = np.array([math.prod(map(likely, values, own)) for values in listed])
            moved = tempering * np.log(told / told.sum(axis=1, keepdims=True) / priors)
            chance = np.outer(chance, of_these).ravel()
            logs = (logs[:, None, :] + moved[None, :, :]).reshape(-1, len(labels))
        shares = np.exp(logs)
        certain = shares.max(axis=1) / shares.sum(axis=1) >= certainty - 1e-12
        hit = certain & (shares.argmax(axis=1) == labels.index(row[2]))
        named += times * float(chance[certain].sum())
        right += times * float(chance[hit].sum())
    return right, named


@pytest.mark.parametrize(
    ("rows", "tempering", "certainty", "where"),
    [(ROWS, 1.0, 0.8, None), (ROWS, 0.5, 0.7, None), (ROWS, 0.8, 0.7, "p"), (THREE, 0.8, 0.7, None)],
)
def test_every_value_by_enumeration(
    rows: list[str], tempering: float, certainty: float, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = len({row[2] for row in rows})
    joint, asked = prepare(rows, where and {"a": where})
    expected = enumerate_certain(rows, believe(labels), certainty, tempering, outside="s" if where else "")
    beliefs = cycle(believe(labels))
    monkeypatch.setattr(informed_attacker, "fit_negative_binomial", lambda *_: next(beliefs))
    monkeypatch.setattr(informed_attacker, "_fit", lambda _: tempering)
    numbers = [find_certain(joint, asked, [certainty], seed)[1] for seed in range(20)]
    right, named = np.array([(found.right, found.named) for found in numbers]).T
    error = math.sqrt(sum(found.error**2 for found in numbers)) / 20
    assert abs(right.mean() - expected[0]) < 5 * error
    assert abs(named.mean() - expected[1]) < 5 * named.std(ddof=1) / math.sqrt(20)
    assert right.std() < 3 * np.mean([found.error for found in numbers])  # the errors are those of the numbers


def test_figures_to_meet() -> None:
    """The first two tables of Adult, geometric 1, fitted beliefs."""
    tables = [{"qid": ["age", "education", "sex"]}, {"qid": ["age", "relationship", "hours-per-week"]}]
    found = cr.assess_together(
        cr.datasets.adult_as_published(),
        tables,
        "income",
        bins={"age": 5, "hours-per-week": 10},
        epsilon=1.0,
        certainty=[0.8, 0.9, 0.95, 0.99],
    )
    expected = [(16625.9, 18048.5), (13345.3, 13934.2), (11482.4, 11807.7), (7789.58, 7877.94)]
    assert len(found.certain) == 8
    for row, numbers in zip(found.certain[:4], expected, strict=True):
        assert abs(row.right - numbers[0]) < 5 * row.error
        assert row.named == pytest.approx(numbers[1], rel=0.01, abs=0)
        assert row.error < 20
    assert "Tempering 1 takes the tables as independent" in found.details
    assert found.to_dict()["certainty"][0]["tempering"] == 1.0


def test_the_tempering_is_told() -> None:
    frame = pd.DataFrame([[*row] for row in THREE], columns=["a", "b", "y"])
    found = cr.assess_together(frame, [{"qid": "a"}, {"qid": "b"}], "y", epsilon=2.0, certainty=[0.6, 0.9])
    assert [(row.certainty, row.fitted) for row in found.certain] == [
        *((0.6, False), (0.9, False)),
        *((0.6, True), (0.9, True)),
    ]
    assert all(row.error is not None and row.how.startswith("simulated") for row in found.certain)
    assert found.certain[0].tempering == 1.0
    assert 0 < found.certain[2].tempering <= 1.0
    again = cr.assess_together(frame, [{"qid": "a"}, {"qid": "b"}], "y", epsilon=2.0, certainty=[0.6, 0.9])
    assert again.certain == found.certain


def test_nested_tables_are_never_multiplied() -> None:
    frame = pd.DataFrame([[*row] for row in ROWS], columns=["a", "b", "y"])
    found = cr.assess_together(frame, [{"qid": "a"}, {"qid": ["a", "b"]}], "y", epsilon=1.0, certainty=0.9)
    assert found.certain == ()
    assert "never independent" in found.details


def test_what_is_refused() -> None:
    frame = pd.DataFrame([[*row] for row in ROWS], columns=["a", "b", "y"])
    with pytest.raises(CellriskError, match=r"above 0\.5 and below 1"):
        cr.assess_together(frame, [{"qid": "a"}, {"qid": "b"}], "y", epsilon=1.0, certainty=0.4)
