"""`simulate`: seeds, comparing, output, and what it refuses. No test is left to luck."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.publish.simulation import Comparison, simulate
from cellrisk.publish.simulation.simulation_result import Difference
from cellrisk.system.formatting import CURATOR_NOTE
from tests.near import near
from tests.publish.simulation.cases import HOMOGENEOUS, THREE, TWO, make, same


def test_same_seed_same_numbers() -> None:
    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    first = simulate(table, mechanism, releases=50, seed=3)
    assert same(first, simulate(make(THREE), mechanism, releases=50, seed=3))
    assert not same(first, simulate(table, mechanism, releases=50, seed=4))


def test_compare_finds_a_planted_error(adult: cr.FrequencyTable) -> None:
    found = simulate(adult, cr.Laplace(epsilon=1.0), releases=100)
    compared = found.compare(cr.assess(adult, cr.Laplace(epsilon=1.1), measures="local"))
    assert compared.largest_z > 8
    assert not compared.agrees
    assert "which chance does not explain" in str(compared)


def test_compare_shows_every_number() -> None:
    table, mechanism = make(TWO), cr.Laplace(epsilon=1.0)
    compared = simulate(table, mechanism, releases=500).compare(cr.assess(table, mechanism))
    frame = compared.to_frame()
    assert list(frame.columns) == [
        *("measure", "attack", "form", "weights", "assessed", "simulated", "standard_error", "z", "certainty"),
    ]
    assert frame["measure"].tolist() == ["local"] * 4 + ["caused", "right", "named"]
    assert frame["z"].abs().max() == compared.largest_z
    assert json.loads(json.dumps(compared.to_dict(), allow_nan=False))["agrees"] is True
    assert str(compared).endswith(CURATOR_NOTE)
    assert compared.headline.startswith("The 7 assessed numbers are at most ")


def test_what_was_not_drawn_has_no_standard_error_of_0() -> None:
    """A share of cells that no release has is not known without error: it may be rare."""
    found = cr.simulate(make([[400, 300]]), cr.Geometric(1.0), releases=5)
    assert all(scenario.standard_error == near(0.0) for scenario in found.scenarios)
    lines = str(found).splitlines()
    header = next(place for place, line in enumerate(lines) if line.startswith("scenario"))
    assert [line.endswith("did not vary") for line in lines[header + 1 : header + 9]] == [True] * 8


def test_releases_that_do_not_vary() -> None:
    """Little noise: every release shows the same, and risks of 1 or a hair below are no contradiction."""
    table, mechanism = make(HOMOGENEOUS), cr.Laplace(epsilon=60.0)
    found = simulate(table, mechanism, releases=50)
    assert (found.value().mean, found.value().standard_error) == (1.0, 0.0)
    assert found.compare(cr.assess(table, mechanism, measures="local")).largest_z < 0.01
    assert found.compare(cr.assess(table, cr.Laplace(epsilon=1.0), measures="local")).largest_z > 4


RARE = {
    "a large cell that seldom shows": ([[60_000, 4], *[[3, 1]] * 5], cr.Laplace(epsilon=2.5), 200),
    "hardly any noise": ([[5000, 0], [1, 1], [900, 1]], cr.Laplace(epsilon=9.0), 60),
    "small cells": (TWO, cr.Laplace(epsilon=0.7), 100),
}


@pytest.mark.parametrize(("cells", "mechanism", "releases"), RARE.values(), ids=RARE)
def test_right_assessments_agree(cells: list[list[int]], mechanism: cr.Mechanism, releases: int) -> None:
    """Sixty seeds, four numbers each: a right number is refused once in 10,000 times at most, so never here.

    A rare large exposure that no release drew leaves a standard error of the sample far too small.
    """
    table = make(cells)
    assessment = cr.assess(table, mechanism, measures="local")
    refused = [
        seed
        for seed in range(60)
        if not simulate(table, mechanism, releases=releases, seed=seed).compare(assessment).agrees
    ]
    assert refused == []


def test_errors_are_those_of_many_simulations() -> None:
    """The known standard error against the spread of means over seeds, for every number."""
    table, mechanism, releases, seeds = make(THREE), cr.Laplace(epsilon=0.9), 20, 60
    assessment = cr.assess(table, mechanism, measures="local")
    found = [simulate(table, mechanism, releases=releases, seed=seed) for seed in range(seeds)]
    compared = [each.compare(assessment) for each in found]
    for place, first in enumerate(compared[0].differences):
        spread = np.std([each.differences[place].simulated for each in compared], ddof=1)
        slack = 1 + 4 / math.sqrt(2 * seeds)
        assert first.standard_error / slack <= spread <= first.standard_error * slack, first


@pytest.mark.parametrize(
    ("assessed", "simulated", "error", "z"),
    [
        (0.5, 0.4, 0.05, 2.0),
        (0.4, 0.5, 0.05, -2.0),
        (1e-20, 0.0, 0.0, 0.0),
        (0.0, 0.5, 0.0, -math.inf),
        (1.0, 1.0, 0.0, 0.0),
    ],
)
def test_z(assessed: float, simulated: float, error: float, z: float) -> None:
    difference = Difference({"measure": "local"}, assessed, simulated, error, 4 * error)
    assert difference.z == near(z)
    if math.isinf(z):
        assert Comparison((difference,), 100).to_dict()["largest_z"] is None


def test_compare_refuses() -> None:
    table, mechanism = make(TWO), cr.Laplace(epsilon=1.0)
    found = simulate(table, mechanism, releases=5)
    with pytest.raises(InvalidInput, match="another table"):
        found.compare(cr.assess(make(HOMOGENEOUS), mechanism))
    with pytest.raises(InvalidInput, match="no number in common"):
        found.compare(cr.assess(table, mechanism, forms="published"))
    with pytest.raises(InvalidInput, match="needs an assessment; got dict"):
        found.compare({})  # type: ignore[arg-type]


def test_output() -> None:
    found = simulate(make(THREE), cr.AnalyticGaussian(epsilon=1.0, delta=0.05), releases=30)
    frame = found.to_frame()
    assert list(frame.columns) == ["sensitive", "measure", "attack", "form", "weights", "mean", "standard_error"]
    assert len(frame) == 8
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [each["number"] for each in document["scenarios"] if each["exposes"]] == [1, 8]
    assert document["people"]["mean"] == found.people.mean
    assert (document["releases"], document["seed"], document["post_processed"]) == (30, 0, False)
    text = str(found)
    assert text.startswith("At epsilon 1 and delta 0.05, 30 simulated releases reveal ")
    assert text.endswith(CURATOR_NOTE)
    assert "a label alone that is not in it" in text


def test_one_of_several_attributes() -> None:
    frame = pd.DataFrame({"cell": [0, 0, 1, 1], "y": list("aaab"), "z": list("cdcd")})
    table, mechanism = cr.tabulate(frame, "cell", ["y", "z"]), cr.Laplace(epsilon=1.0)
    with pytest.raises(InvalidInput, match="several sensitive attributes"):
        simulate(table, mechanism, releases=5)
    found = simulate(table, mechanism, releases=2000, sensitive="z")
    compared = found.compare(cr.assess(table, mechanism))
    assert len(compared.differences) == 4
    assert compared.agrees


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"releases": 1}, "releases must be a whole number from 2 to 1,000,000; got 1"),
        ({"releases": 10.0}, "releases must be a whole number; got float"),
        ({"releases": True}, "releases must be a whole number; got bool"),
        ({"seed": -1}, "seed must be a whole number from 0 on; got -1"),
        ({"seed": None}, "seed must be a whole number; got NoneType"),
        ({"sensitive": "nothing"}, "no sensitive attribute 'nothing'"),
        ({"mechanism": "laplace"}, "no epsilon was given for laplace"),
        ({"mechanism": 1.0}, "a mechanism is an object or a name; got float"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refuses(settings: dict[str, Any], message: str) -> None:
    given = {"mechanism": cr.Laplace(epsilon=1.0), "releases": 5, **settings}
    with pytest.raises((InvalidInput, UnknownName)) as refusal:
        simulate(make(TWO), **given)
    assert message in str(refusal.value)


def test_values_that_were_not_simulated() -> None:
    found = simulate(make(TWO), cr.Laplace(epsilon=1.0), releases=5)
    with pytest.raises(UnknownName, match="that risk was not simulated"):
        found.value(form="exact", attack="plurality")
    for asked in ({"measure": "expected"}, {"form": "published"}, {"attack": "x"}, {"weights": "x"}):
        with pytest.raises(UnknownName, match="unknown "):
            found.value(**asked)
