"""Differencing, held to a sum over every value of both noises, and to the published figures."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.noise.distributions import GeometricNoise, LaplaceNoise
from cellrisk.repeat.together import differences
from tests.near import near

PEOPLE = [
    ("a", 30, "x"),
    ("a", 30, "x"),
    ("a", 60, "x"),
    ("a", 60, "y"),
    ("b", 60, "y"),
    ("b", 20, "x"),
    ("b", 61, "y"),
]
LABELS = ("x", "y")


def weigh_geometric(epsilon: float, reach: int) -> dict[int, float]:
    a = math.exp(-epsilon)
    return {e: (1 - a) / (1 + a) * a ** abs(e) for e in range(-reach, reach + 1)}


def weigh_laplace(epsilon: float, reach: int) -> dict[int, float]:
    def below(x: float) -> float:
        return 0.5 * math.exp(x * epsilon) if x < 0 else 1 - 0.5 * math.exp(-x * epsilon)

    return {e: below(e + 0.5) - below(e - 0.5) for e in range(-reach, reach + 1)}


def enumerate_pairs(outer: dict[int, float], inner: dict[int, float], first: int) -> dict[str, float]:
    """Both noises of both labels of each cell, value by value: in the table, in the difference, in either; caused."""
    found = {"in_table": 0.0, "in_difference": 0.0, "either": 0.0, "caused": 0.0}
    for town in ("a", "b"):
        whole = [sum(person[0] == town and person[2] == label for person in PEOPLE) for label in LABELS]
        left = [
            sum(person[0] == town and person[2] == label and person[1] >= 60 for person in PEOPLE) for label in LABELS
        ]
        # For each label: how likely (shown in the table, shown in the difference, shown there with one person less).
        laws: list[dict[tuple[bool, bool, bool], float]] = []
        for n, m in zip(whole, left, strict=True):
            law: dict[tuple[bool, bool, bool], float] = {}
            for (e, p), (other, q) in product(outer.items(), inner.items()):
                key = n + e >= first, m + e - other >= 1, m - 1 + e - other >= 1
                law[key] = law.get(key, 0.0) + p * q
            laws.append(law)
        for own, against in ((0, 1), (1, 0)):
            for (mine, p), (theirs, q) in product(laws[own].items(), laws[against].items()):
                table, difference = mine[0] and not theirs[0], mine[1] and not theirs[1]
                weight = left[own] * p * q
                found["in_table"] += weight * table
                found["in_difference"] += weight * difference
                found["either"] += weight * (table or difference)
                found["caused"] += weight * (difference and not mine[2])
    return found


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize("kind", ["geometric", "laplace"])
def test_every_value_of_both_noises(kind: str, threshold: float) -> None:
    frame = pd.DataFrame(PEOPLE, columns=["town", "age", "job"])
    tables = [
        {"qid": "town", "where": {"age": {"below": 60}}, "epsilon": 1.5},
        {"qid": "town", "mechanism": kind, "epsilon": 1.0, "threshold": threshold},
    ]
    [found] = cr.assess_together(frame, tables, "job").differences
    weights = {"geometric": weigh_geometric, "laplace": weigh_laplace}[kind](1.0, 45)
    expected = enumerate_pairs(weights, weigh_geometric(1.5, 35), int(threshold + 0.5))
    told = found.to_dict()
    assert (told["tables"], told["people"]) == ([2, 1], 4)
    assert {name: told[name] for name in expected} == near(expected)


def test_figures_of_adult() -> None:
    tables = [
        {"qid": ["age", "education"]},
        {"qid": ["education", "age"], "where": {"race": {"not": "Amer-Indian-Eskimo"}}, "name": "without"},
    ]
    found = cr.assess_together(cr.datasets.adult_as_published(), tables, "income", bins={"age": 5}, epsilon=1.0)
    [one] = found.differences
    assert one.people == 271
    assert (one.in_difference, one.caused, one.either, one.in_outer) == pytest.approx(
        (101.084, 10.4028, 106.815, 17.5964), rel=1e-5, abs=0
    )
    sentence = (
        '"without" leaves out 271 people of groups that it shares with table 1: to publish both takes those exposed '
        "among them from 18 to 107;"
    )
    assert sentence in " ".join(found.details.split())
    assert found.to_dict()["differences"][0]["people"] == 271


CONDITIONS: list[dict[str, Any]] = [
    {"b": "x"},
    {"b": {"not": "x"}},
    {"c": "m"},
    {"b": "x", "c": "m"},
    {"age": {"below": 30}},
    {"age": {"below": 40}, "c": "m"},
]


def test_a_difference_is_of_people_whose_cells_both_tables_have() -> None:
    """Who is left out because a condition leaves out the whole cell gains an attacker nothing by subtracting."""
    generator = np.random.default_rng(3)
    assessed = 0
    for where in CONDITIONS * 2:
        frame = pd.DataFrame({"a": generator.choice(list("pq"), 60), "b": generator.choice(list("xyz"), 60)})
        frame = frame.assign(c=generator.choice(list("mn"), 60), age=10 * generator.integers(0, 8, 60) + 5)
        frame = frame.assign(job=generator.choice(list("uv"), 60))
        tables = [{"qid": ["a", "b", "age"]}, {"qid": ["b", "age", "a"], "where": where}]
        found = cr.assess_together(frame, tables, "job", bins={"age": 20}, epsilon=1.0).differences
        inside = pd.Series(True, frame.index)
        for column, value in where.items():
            if value == "x" or value == "m":
                inside &= frame[column] == value
            else:
                inside &= frame[column] != "x" if "not" in value else frame[column] < value["below"]
        may_hold = pd.Series(True, frame.index)
        if where.get("b") == "x":
            may_hold &= frame.b == "x"
        elif "b" in where:
            may_hold &= frame.b != "x"
        if "age" in where:
            may_hold &= frame.age // 20 * 20 < where["age"]["below"]
        people = int((may_hold & ~inside).sum())
        assert sum(each.people for each in found) == people, where
        assert len(found) == bool(people)
        for each in found:
            assert f"leaves out {people} people of groups that it shares with table 1" in each.headline
            assert each.either > each.in_outer
        assessed += bool(people)
    assert 0 < assessed < 2 * len(CONDITIONS)


def test_tables_that_are_not_nested_or_of_other_columns_have_no_difference() -> None:
    frame = pd.DataFrame(PEOPLE, columns=["town", "age", "job"]).assign(sex=list("fmfmfmf"))
    young, old = {"age": {"to": 60}}, {"age": {"from": 30}}

    def ask(*tables: dict[str, Any]) -> cr.TogetherAssessment:
        return cr.assess_together(frame, tables, "job", epsilon=1.0)

    assert ask({"qid": "town", "where": young}, {"qid": "town", "where": old}).differences == ()
    other = ask({"qid": "town"}, {"qid": "sex", "where": old})
    assert other.differences == ()
    assert "on common columns is left out" in " ".join(other.details.split())


def test_noise_less_noise() -> None:
    one, two = (differences.Rounded.of(noise) for noise in (GeometricNoise(5.0), LaplaceNoise(9.0)))
    both = one.less(two)
    assert both.pmf == pytest.approx(np.convolve(one.pmf, two.pmf), rel=0, abs=1e-16)
    assert both.at([-10_000, 0]).tolist() == near([0.0, float(both.pmf.max())])
