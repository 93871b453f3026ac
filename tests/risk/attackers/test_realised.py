"""The four attacks on releases in hand: their mean over releases is the expected figure, as computed by other code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr

GROUPS = [[1, 0, 0], [2, 0, 0], [3, 1, 0], [0, 4, 1], [0, 0, 2], [6, 1, 1], [0, 1, 0]]
BELIEF = "0.5,0.3,0.2/0.8"


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    groups, values = np.nonzero(GROUPS)
    rows = pd.DataFrame({"q": groups, "y": values, "n": np.array(GROUPS)[groups, values]})
    return cr.tabulate(rows, "q", "y", levels={"y": [0, 1, 2]}, count="n")


ASKED: dict[str, Any] = {"certainty": 0.7, "belief": BELIEF, "harmful": ["1", "2"], "unions": ["1+2"]}


@pytest.mark.parametrize(
    "mechanism", [cr.Geometric(1.5), cr.Laplace(1.0, threshold=1.5), cr.DiscreteGaussian(1.0, delta=0.1)]
)
def test_simulated_releases_agree(table: cr.FrequencyTable, mechanism: cr.Mechanism) -> None:
    expected = [row for row in cr.assess(table, mechanism, **ASKED).to_dict()["attackers"] if row["attack"] != "any"]
    simulated = cr.simulate(table, mechanism, releases=20_000, seed=3, **ASKED).to_dict()["attackers"]
    assert [(row["attack"], row.get("union")) for row in simulated] == [
        (row["attack"], row.get("union")) for row in expected
    ]
    assert len(simulated) == 5
    for one, other in zip(simulated, expected, strict=True):
        for figure in {"revealed", "own", "learnt"} & one.keys():
            error = 4.5 * one[f"{figure}_error"] + other["error"] + 1e-6
            assert one[figure] == pytest.approx(other[figure], rel=0, abs=error), (one["attack"], figure)
        assert sum(part["revealed"] for part in one["by_category"].values()) == pytest.approx(
            one["revealed"], rel=1e-9, abs=0
        )
    assert simulated[3]["harmful"] == ["1", "2"]
    assert simulated[3]["by_category"]["0"]["learnt"] == 0.0


def test_an_audit_has_the_attacks_on_the_release(table: cr.FrequencyTable) -> None:
    released = pd.DataFrame({"q": [0, 3, 3, 4], "y": [0, 1, 2, 2], "n": [1, 3, 1, 4]})
    rows = cr.audit(table, released, count="n", mechanism=cr.Geometric(1.5), **ASKED).to_dict()["attackers"]
    found = {row["attack"]: row for row in rows if "union" not in row}
    assert list(found) == ["homogeneity", "plurality", "best-guess", "informed"]
    assert (found["homogeneity"]["revealed"], found["homogeneity"]["own"]) == (3.0, 1.0)  # groups 0 and 4
    assert found["plurality"]["revealed"] == 7.0
    assert found["plurality"]["own"] == 1.0  # in group 3 two stay the largest
    unknown = cr.audit(table, released, count="n").to_dict()["attackers"]
    assert [row["attack"] for row in unknown] == ["homogeneity", "plurality"]
