"""The figure that a release's own counts give: without bias, with an error that holds, refused where it misleads."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.publish.noisy_risk.free_figure import estimate_caused, estimate_cells
from cellrisk.risk.caused import count_caused
from tests.decision.oracle import law
from tests.near import near

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")


@pytest.mark.parametrize("epsilon", [0.6, 1.0, 3.0])
def test_its_mean_is_the_figure(epsilon: float) -> None:
    """Over every noise of small cells, an empty one too."""
    mechanism = cr.Geometric(epsilon)
    steps, chance = law(mechanism.noise)
    for cell in ([0, 0], [1, 0], [2, 1], [5, 3]):
        noisy = np.array(list(product(*(count + steps for count in cell))))
        weights = np.multiply.outer(chance, chance).ravel()
        mean = float(weights @ estimate_cells(noisy, math.exp(-epsilon)))
        profiles = cr.Profiles.from_cells([cell], n_levels=2)
        truth = count_caused(profiles, mechanism, 1.0).people if sum(cell) else 0.0
        assert mean == pytest.approx(truth, abs=1e-9)
    assert estimate_cells(np.array([[1, 0], [3, -2], [2, 1], [0, -1]]), 0.5) == near([1.0, 0.25, 0.0, -0.75])


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    draw = np.random.default_rng(1)
    people = pd.DataFrame({"q": draw.integers(0, 600, 700), "y": draw.choice(["a", "b"], 700)})
    return cr.tabulate(people, "q", "y", levels={"q": list(range(600)), "y": ["a", "b"]}, outside="drop")


def test_a_release_tells_it_within_its_error(table: cr.FrequencyTable) -> None:
    mechanism = cr.Geometric(3.0)
    truth = count_caused(table.profiles("y"), mechanism, 1.0).people
    found = [estimate_caused(cr.release(table, mechanism, clamp=False), largest_error=0.2) for _ in range(20)]
    values = np.array([each.value for each in found])
    assert abs(values.mean() - truth) < 5 * found[0].error / math.sqrt(len(found))
    assert values.std() < 1.6 * found[0].error
    assert "costs nothing more" in found[0].headline
    assert found[0].to_dict()["epsilon"] == near(3.0)


def test_what_would_mislead_is_refused(table: cr.FrequencyTable) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": 3.0}, "keep their sign"),
        ({"mechanism": cr.DiscreteGaussian(3.0, delta=0.01), "clamp": False}, "only counts with geometric noise"),
        ({"epsilon": 3.0, "clamp": False, "observed_cells_only": True}, "every count of the domain"),
        ({"epsilon": 0.05, "clamp": False}, "tell too little of its risk"),
    ]
    for given, told in cases:
        with pytest.raises(InvalidInput, match=told):
            estimate_caused(cr.release(table, **given))
    for wrong in (0, "much"):
        with pytest.raises(InvalidInput, match="the largest standard error must be a number above 0"):
            estimate_caused(cr.release(table, epsilon=3.0, clamp=False), largest_error=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="comes from a release"):
        estimate_caused(table)  # type: ignore[arg-type]
