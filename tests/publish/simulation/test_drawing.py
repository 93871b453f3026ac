"""`simulate` against closed forms and enumeration. Seeds are fixed: no test is left to luck."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.publish.simulation import simulate
from cellrisk.risk.people import count_people
from tests.publish.simulation.cases import MECHANISMS, THREE, TWO, make


def z_scores(found: cr.Simulation, assessed: cr.Assessment) -> list[float]:
    """How far each exact or tight local risk is from the simulated one, in standard errors."""
    scores = []
    for row in assessed.risks:
        if row.form in ("exact", "tight"):
            estimate = found.value(form=row.form, weights=str(row.weights))
            scores.append((row.risk - estimate.mean) / estimate.standard_error)
    return scores


def outcomes(counts: list[int], mechanism: cr.Mechanism, reach: int = 60) -> Any:
    """Every release of a cell with its probability, for integer noise: P(released = v) from the noise's cdf."""
    chances = []
    for count in counts:
        at = np.arange(1, reach)
        chance = mechanism.noise.cdf(at - count + 0.5) - mechanism.noise.cdf(at - count - 0.5)
        chance[at < mechanism.threshold] = 0.0  # these vanish
        chances.append([float(mechanism.noise.p_zero(count, mechanism.threshold)), *chance])
    for released in itertools.product(range(reach), repeat=len(counts)):
        yield released, math.prod(chance[value] for chance, value in zip(chances, released, strict=True))


@pytest.mark.parametrize("cells", [TWO, THREE], ids=["K=2", "K=3"])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_agrees_with_every_closed_form(cells: list[list[int]], mechanism: cr.Mechanism) -> None:
    table = make(cells)
    found = simulate(table, mechanism, releases=2500, seed=5)
    scores = z_scores(found, cr.assess(table, mechanism, measures="local"))
    assert len(scores) == 2 * 2
    assert max(map(abs, scores)) < 4


@pytest.mark.slow
def test_many_seeds_spread_as_standard_errors_say() -> None:
    """Over 60 seeds, z-scores of one number have mean near 0 and deviation near 1."""
    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    assessed = cr.assess(table, mechanism, measures="local", forms="tight", weights="records")
    z = [z_scores(simulate(table, mechanism, releases=200, seed=seed), assessed)[0] for seed in range(60)]
    assert abs(np.mean(z)) < 4 / math.sqrt(60)
    assert 0.7 < np.std(z) < 1.35


@pytest.mark.parametrize("cells", [TWO, THREE], ids=["K=2", "K=3"])
@pytest.mark.parametrize(
    "mechanism", [cr.Laplace(epsilon=0.8), cr.Geometric(epsilon=2.0)], ids=["laplace", "geometric"]
)
def test_people(cells: list[list[int]], mechanism: cr.Mechanism) -> None:
    table = make(cells)
    found, exact = simulate(table, mechanism, releases=5000), count_people(table.profiles(), mechanism.channel)
    assert abs(found.people.mean - exact.mean) < 4 * found.people.standard_error
    assert found.people.deviation == pytest.approx(exact.deviation, rel=4 / math.sqrt(2 * 5000), abs=0)
    assert abs(found.people.low - exact.low) <= 1
    assert abs(found.people.high - exact.high) <= 1
    assert found.people.mean / table.n_records == pytest.approx(found.value().mean, rel=1e-12, abs=0)


@pytest.mark.parametrize("cells", [[[3, 0], [2, 1], [0, 1]], THREE], ids=["K=2", "K=3"])
def test_scenarios_against_enumeration(cells: list[list[int]]) -> None:
    """Each cell's outcomes by which labels survive, sorted into the eight cases by hand."""
    mechanism = cr.Laplace(epsilon=0.9)
    expected = dict.fromkeys(range(1, 9), 0.0)
    for counts in cells:
        survive = [float(mechanism.noise.p_positive(count)) for count in counts]
        present = {place for place, count in enumerate(counts) if count}
        for pattern in itertools.product((False, True), repeat=len(counts)):
            chance = math.prod(s if up else 1 - s for s, up in zip(survive, pattern, strict=True))
            shown = {place for place, up in enumerate(pattern) if up}
            if len(present) == 1:
                number = {0: 4, 1: 1 if shown == present else 2}.get(len(shown), 3)
            else:
                number = {0: 6, 1: 8 if shown <= present else 7}.get(len(shown), 5)
            expected[number] += chance / len(cells)
    found = simulate(make(cells), mechanism, releases=5000)
    assert math.fsum(each.mean for each in found.scenarios) == pytest.approx(1, abs=1e-12)
    for each in found.scenarios:
        assert abs(each.mean - expected[each.name["number"]]) <= 4 * each.standard_error, each.name["number"]
    exposing = math.fsum(each.mean for each in found.scenarios if each.name["exposes"])
    assert exposing == pytest.approx(found.value(form="exact", weights="uniform").mean, rel=1e-12, abs=0)


@pytest.mark.parametrize("mechanism", [cr.Geometric(epsilon=0.9), cr.Geometric(epsilon=1.2, threshold=1.5)])
def test_other_attacks_against_enumeration(mechanism: cr.Mechanism) -> None:
    cells = [[3, 1], [2, 2], [0, 4]]
    named: dict[str, list[float]] = {"plurality": [], "proportional": []}
    for counts in cells:
        plurality = proportional = 0.0
        for released, chance in outcomes(counts, mechanism):
            if sum(released):
                tied = [count for count, value in zip(counts, released, strict=True) if value == max(released)]
                plurality += chance * sum(tied) / len(tied)
                proportional += chance * float(np.dot(counts, released)) / sum(released)
        named["plurality"].append(plurality)
        named["proportional"].append(proportional)
    found = simulate(make(cells), mechanism, releases=8000)
    for attack, records in named.items():
        by_cell = np.array(records) / [sum(counts) for counts in cells]
        for weights, exact in (("uniform", by_cell.mean()), ("records", sum(records) / np.sum(cells))):
            estimate = found.value(attack=attack, weights=weights)
            assert abs(estimate.mean - exact) < 4 * estimate.standard_error, (attack, weights)
