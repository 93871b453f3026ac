"""What `assess --json` holds of attackers, recomputed from its own parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nbinom

import cellrisk as cr
from tests.near import near

FOUR = ["homogeneity", "plurality", "best-guess", "informed"]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "relationship", "sex"], "income", bins={"age": 5})
    return cr.assess(table, "geometric", epsilon=1.0, certainty=[0.8, 0.95]).to_dict()


def test_every_attack_has_its_row(found: dict[str, Any]) -> None:
    assert [row["attack"] for row in found["attackers"]] == [*FOUR, "any", "informed"]
    informed = [row for row in found["attackers"] if row["attack"] == "informed"]
    assert [row["certainty"] for row in informed] == [0.95, 0.8]
    assert {row["prior"] for row in informed} == {"negbin"}


def test_categories_add_up(found: dict[str, Any]) -> None:
    for row in found["attackers"]:
        if row["attack"] == "any":
            assert row["own"] == near(row["most"] * found["table"]["records"])
            continue
        for figure in ("revealed", "own"):
            assert sum(part[figure] for part in row["by_category"].values()) == near(row[figure])
        assert row["without"] == near(row["revealed"] - row["own"])
        assert sum(part["people"] for part in row["by_category"].values()) == found["table"]["records"]


def test_the_figures_that_have_another_way(found: dict[str, Any]) -> None:
    """People exposed, caused, and certain come from other code."""
    rows = {(row["attack"], row.get("certainty")): row for row in found["attackers"]}
    [decision] = found["decision"]
    assert rows["homogeneity", None]["own"] == pytest.approx(decision["caused"]["people"], rel=1e-9, abs=0)
    assert rows["homogeneity", None]["revealed"] == pytest.approx(found["people"]["income"]["mean"], rel=1e-9, abs=0)
    for row in decision["certainty"]:
        assert rows["informed", row["certainty"]]["revealed"] == pytest.approx(row["right"], rel=1e-9, abs=0)


def test_accuracy_is_that_of_the_noise(found: dict[str, Any]) -> None:
    assert found["accuracy"]["within"] == 3
    assert found["accuracy"]["probability"] == 0.95


def test_the_empirical_prior_leaves_the_attackers_with_a_prior_out() -> None:
    table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    rows = cr.assess(table, epsilon=1.0, belief="table").to_dict()["attackers"]
    assert [row["attack"] for row in rows] == ["homogeneity", "plurality", "any"]


def test_the_error_covers_every_figure() -> None:
    """Two of three categories as one value, by enumeration of the releases that are likely."""
    groups = [(3, 7, 0), (0, 0, 1), (0, 4, 0), (1, 2, 0), (9, 0, 0)]
    count, shown, a = np.arange(500), np.arange(25), math.exp(-3.0)
    law = (1 - a) / (1 + a) * a ** np.abs(shown - count[:, None])
    law[:, 0] = a**count / (1 + a)
    means = []
    for shape in (0.3, 0.5, 0.05):
        prior = nbinom.pmf(count, shape, 0.2)
        means.append((count * prior) @ law / (prior @ law))
    union = means[0][:, None, None] + means[1][:, None]
    named = (union >= 0.8 * (union + means[2])).astype(float)
    revealed = without = 0.0
    for group in groups:
        for k in (0, 1):
            less = [n - (j == k) for j, n in enumerate(group)]
            if group[k]:
                revealed += group[k] * float(np.einsum("ijk,i,j,k", named, law[group[0]], law[group[1]], law[group[2]]))
                without += group[k] * float(np.einsum("ijk,i,j,k", named, law[less[0]], law[less[1]], law[less[2]]))
    rows = [(f"g{g}", "xyz"[k]) for g, group in enumerate(groups) for k in range(3) for _ in range(group[k])]
    table = cr.tabulate(pd.DataFrame(rows, columns=["q", "y"]), ["q"], "y")
    found = cr.assess(table, epsilon=3.0, certainty=0.8, belief="0.3,0.5,0.05/0.8", unions="x+y")
    [row] = [each for each in found.to_dict()["attackers"] if each.get("union")]
    assert row["revealed"] == pytest.approx(revealed, rel=0, abs=row["error"] + 1e-9)
    assert row["own"] == pytest.approx(revealed - without, rel=0, abs=row["error"] + 1e-9)
