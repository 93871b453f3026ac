"""Planning the next release, and the largest epsilon for it, against `assess_sequence` at many epsilons."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.repeat.sequences import NextEpsilon, Step, assess_sequence, largest_epsilon
from tests.near import near
from tests.repeat.sequences.people import make_people, tabulate

ANALYTIC = {"mechanism": "gaussian-analytic", "delta": 1e-3}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return tabulate(make_people(150, seed=5))


def laplace(epsilon: float, *rest: Any) -> Step:
    return Step(cr.Laplace(epsilon=epsilon), *rest)


CASES: dict[str, tuple[list[Step], dict[str, Any], dict[str, Any]]] = {
    "a new attribute": ([laplace(0.3, "job")], {"mechanism": "laplace", "attribute": "pay"}, {}),
    "the same attribute": ([laplace(0.3, "job")], {"mechanism": "geometric", "attribute": "job"}, {}),
    "by sum": (
        [laplace(0.3, "job"), laplace(0.1, "ill")],
        {"mechanism": "laplace", "attribute": "pay"},
        {"kind": "sum"},
    ),
    "each cell alike": ([laplace(0.3, "job")], {"mechanism": "laplace", "attribute": "pay"}, {"weights": "uniform"}),
    "cells that split": (
        [laplace(0.2, "job", "sex"), laplace(0.2, "pay", "town")],
        {"mechanism": "laplace", "attribute": None},
        {},
    ),
    "an attribute and cells that split": (
        [laplace(0.2, "job", "sex")],
        {"mechanism": "laplace", "attribute": "pay", "quasi_identifiers": ["sex", "town"]},
        {"kind": "sum"},
    ),
    "gaussian": ([Step(cr.AnalyticGaussian(epsilon=0.8, delta=1e-3), "job")], {**ANALYTIC, "attribute": "pay"}, {}),
    "gaussian after laplace": (
        [laplace(0.3, "job")],
        {**ANALYTIC, "attribute": "pay"},
        {"assess_as": "gaussian-analytic", "total_delta": 2e-3, "method": "rdp"},
    ),
    "much spent, and basic": (
        [Step(cr.AnalyticGaussian(epsilon=6.0, delta=1e-3), "ill")],
        {**ANALYTIC, "attribute": "pay"},
        {"method": "basic"},
    ),
    "another measure": (
        [laplace(0.3, "job", "sex")],
        {"mechanism": "laplace", "attribute": "pay", "threshold": 1.5, "neighbours": "add-remove"},
        {"measure": "shrinkage", "form": "exact"},
    ),
}


def overall_at(
    table: cr.FrequencyTable, past: list[Step], release: dict[str, Any], how: dict[str, Any], epsilon: float
) -> float:
    """The overall risk with the next release at an epsilon, by the whole sequence."""
    settings = {key: release[key] for key in ("delta", "threshold", "neighbours") if key in release}
    made = cr.mechanism(release["mechanism"], epsilon=epsilon, **settings)
    step = Step(made, release["attribute"], release.get("quasi_identifiers"))
    chosen = {key: value for key, value in how.items() if key not in ("kind", "weights", "total_delta")}
    found = assess_sequence(table, [*past, step], total_delta=how.get("total_delta"), **chosen)
    return found.overall(how.get("weights", "records"), how.get("kind", "max"))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_admissible_set_is_where_the_whole_sequence_is_within_the_limit(
    table: cr.FrequencyTable, case: tuple[list[Step], dict[str, Any], dict[str, Any]]
) -> None:
    """At many epsilons, and on both sides of every end: within it, and one part in a million beyond it."""
    past, release, how = case
    grid = np.geomspace(1e-3, 100.0, 40)
    risk = np.array([overall_at(table, past, release, how, epsilon) for epsilon in grid])
    limit = float(0.4 * risk.min() + 0.6 * risk.max())
    found = largest_epsilon(table, past, max_risk=limit, **release, **how)
    assert found.admissible
    inside = [any(low <= epsilon <= high for low, high in found.admissible) for epsilon in grid]
    assert inside == (risk <= limit).tolist()
    edges = 0
    for ends in found.admissible:
        for end, outward in zip(ends, (-1, 1), strict=True):
            assert overall_at(table, past, release, how, end) <= limit + 1e-12
            if end not in (1e-3, 100.0):
                assert overall_at(table, past, release, how, end * (1 + outward * 1e-6)) > limit
                edges += 1
    assert edges
    assert found.epsilon == found.admissible[-1][1]
    assert found.then("risk") == near(overall_at(table, past, release, how, found.epsilon))


def test_with_no_past_it_is_what_choose_says(adult: cr.FrequencyTable) -> None:
    chosen = cr.choose(adult, "laplace", max_risk=0.28)
    found = largest_epsilon(adult, [], mechanism="laplace", attribute="income", max_risk=0.28)
    assert found.epsilon == pytest.approx(chosen.exact_epsilon, rel=1e-6, abs=0)
    assert found.then("risk") is not None
    assert found.then("risk") <= 0.28


def test_none_will_do_where_the_past_is_above_the_limit(table: cr.FrequencyTable) -> None:
    past = [laplace(5.0, "job")]
    found = largest_epsilon(table, past, mechanism="laplace", attribute="pay", max_risk=0.03)
    before = assess_sequence(table, past).overall()
    assert before > 0.03
    assert (found.epsilon, found.then("risk"), found.sequence, found.admissible) == (None, None, None, ())
    assert found.before.max_records == near(before)
    lowest = min(
        assess_sequence(table, [*past, laplace(epsilon, "pay")]).rows[-1].overall.max_records
        for epsilon in (0.05, 0.1, 50.0)
    )
    assert before <= found.lowest[1] <= lowest
    assert assess_sequence(table, [*past, laplace(found.lowest[0], "pay")]).rows[
        -1
    ].overall.max_records == pytest.approx(found.lowest[1], rel=1e-6, abs=0)
    assert found.headline.startswith(
        "No epsilon from 1e-06 to 100 is admissible that keeps the overall risk (max, records) at 3%"
    )
    assert f"before this release the risk is {100 * before:.1f}%" in found.why
    assert found.to_frame().isna().all(axis=None)


@pytest.mark.parametrize(("limit", "answer"), [(0.9, 100.0), (1e-6, None)], ids=["within", "above"])
def test_counts_of_the_same_cells_change_no_risk_at_any_epsilon(
    table: cr.FrequencyTable, limit: float, answer: float | None
) -> None:
    found = largest_epsilon(table, [laplace(1.0, "job")], mechanism="laplace", attribute=None, max_risk=limit)
    assert found.epsilon == answer
    assert found.lowest[1] == pytest.approx(found.before.max_records, rel=1e-12, abs=0)


def test_the_classical_gaussian_ends_where_the_epsilons_add_up_to_one(table: cr.FrequencyTable) -> None:
    past = [Step(cr.Gaussian(epsilon=0.6, delta=1e-3), "job")]
    found = largest_epsilon(table, past, mechanism="gaussian", delta=1e-3, attribute="pay", max_risk=0.99)
    assert found.epsilon == pytest.approx(0.4, rel=1e-9, abs=0)
    assert found.epsilon == found.searched[1]
    assert "the end of the range searched" in found.why


def test_an_answer_prints_and_converts(table: cr.FrequencyTable) -> None:
    past = [laplace(0.3, "job")]
    found = largest_epsilon(table, past, mechanism="laplace", attribute="pay", max_risk=0.6, kind="sum")
    assert isinstance(found, NextEpsilon)
    assert "(sum, records) at 0.6 or below" in str(found)
    assert "reveals a little about them" in str(found)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["epsilon"] == found.epsilon
    assert document["sequence"]["releases"][-1]["attribute"] == "pay"
    assert found.to_frame().high.max() == found.epsilon
