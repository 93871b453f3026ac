"""`simulate`: seeds, comparing, output, and what it refuses. No test is left to luck."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.publish.simulation import simulate
from cellrisk.system.formatting import CURATOR_NOTE
from tests.near import near
from tests.publish.simulation.cases import HOMOGENEOUS, THREE, TWO, make, same
from tests.refusals import refused


def test_same_seed_same_numbers() -> None:
    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    first = simulate(table, mechanism, releases=50, seed=3)
    assert same(first, simulate(make(THREE), mechanism, releases=50, seed=3))
    assert not same(first, simulate(table, mechanism, releases=50, seed=4))


def test_what_was_not_drawn_has_no_standard_error_of_0() -> None:
    """A share of cells that no release has is not known without error: it may be rare."""
    found = cr.simulate(make([[400, 300]]), cr.Geometric(1.0), releases=5)
    assert all(scenario.standard_error == near(0.0) for scenario in found.scenarios)
    lines = found.details.splitlines()
    header = next(place for place, line in enumerate(lines) if line.startswith("scenario"))
    assert [line.endswith("did not vary") for line in lines[header + 1 : header + 9]] == [True] * 8


def test_releases_that_do_not_vary() -> None:
    """Little noise: every release shows the same, and risks of 1 or a hair below are no contradiction."""
    table, mechanism = make(HOMOGENEOUS), cr.Laplace(epsilon=60.0)
    found = simulate(table, mechanism, releases=50)
    assert (found.value().mean, found.value().standard_error) == (1.0, 0.0)


def test_output() -> None:
    found = simulate(make(THREE), cr.AnalyticGaussian(epsilon=1.0, delta=0.05), releases=30)
    frame = found.to_frame()
    assert list(frame.columns) == ["sensitive", "measure", "attack", "form", "weights", "mean", "standard_error"]
    assert len(frame) == 8
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [each["number"] for each in document["scenarios"] if each["exposes"]] == [1, 8]
    assert document["people"]["mean"] == found.people.mean
    assert (document["releases"], document["seed"], document["post_processed"]) == (30, 0, False)
    text = found.details
    assert "In 30 simulated releases at epsilon 1 and delta 0.05, the homogeneity attack reveals " in text
    assert str(found).endswith(CURATOR_NOTE)
    assert "a category alone that is not in it" in text


def test_one_of_several_attributes() -> None:
    frame = pd.DataFrame({"cell": [0, 0, 1, 1], "y": list("aaab"), "z": list("cdcd")})
    table, mechanism = cr.tabulate(frame, "cell", ["y", "z"]), cr.Laplace(epsilon=1.0)
    with refused("no-attribute"):
        simulate(table, mechanism, releases=5)
    found = simulate(table, mechanism, releases=2000, sensitive="z")
    assert found.sensitive == "z"
    (exact,) = (
        row.risk
        for row in cr.assess(table, mechanism, measures="local", forms="tight", weights="records").risks
        if row.sensitive == "z"
    )
    assert abs(found.value().mean - exact) < 4 * found.value().standard_error


def test_attackers_who_apply_bayes_rule_are_left_out_for_the_prior_table() -> None:
    found = simulate(make(TWO), cr.Geometric(epsilon=1.0), releases=5, belief="table")
    assert [row["attack"] for row in found.attackers] == ["homogeneity", "plurality"]
    assert "are not simulated: the prior looks at the table" in str(found)
    for wide in (cr.Geometric(epsilon=1e-8),):
        assert "are not simulated" in str(simulate(make(TWO), wide, releases=5))


def test_a_perturbation() -> None:
    """Counts below 3 become 0 and others are kept: nothing is random, so every number is known by hand."""
    found = simulate(make([[5, 1], [2, 0], [4, 4]]), perturbation="suppress-below:3", releases=3)
    assert (found.people.mean, found.people.standard_error) == (5.0, 0.0)
    assert found.headline.startswith(
        "In 3 simulated releases with suppress-below:3, the homogeneity attack reveals the 'y' of about 5 of 16 people"
    )
    assert found.to_dict()["perturbation"] == found.perturbation.to_dict()
    assert [row["revealed"] for row in found.attackers[:2]] == [5.0, 9.0]
    with pytest.raises(InvalidInput, match="takes the place of a mechanism"):
        simulate(make(TWO), perturbation="round:5", epsilon=1.0)


@pytest.mark.parametrize(
    "settings", [{"releases": 1}, {"releases": 10.0}, {"seed": -1}, {"seed": None}, {"sensitive": "nothing"}]
)
def test_refuses(settings: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, UnknownName)) as refusal:
        simulate(make(TWO), cr.Laplace(epsilon=1.0), **{"releases": 5, **settings})
    assert refusal.value.code in ("range", "type", "no-attribute")


def test_values_that_were_not_simulated() -> None:
    found = simulate(make(TWO), cr.Laplace(epsilon=1.0), releases=5)
    with refused("form"):
        found.value(form="exact", attack="plurality")
    for asked in ({"measure": "expected"}, {"form": "published"}, {"attack": "x"}, {"weights": "x"}):
        with refused("word"):
            found.value(**asked)
