"""`Priors` is read when it is made, and taken by every function that needs one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput

NOISE = cr.Laplace(epsilon=1.0)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    frame = {"q": list("aaabbbccdd"), "y": list("uvvuuuuvvv"), "z": list("stststssss")}
    return cr.tabulate(pd.DataFrame(frame), "q", ["y", "z"])


def test_priors_of_another_kind_are_refused(table: cr.FrequencyTable) -> None:
    asked: list[tuple[Any, dict[str, Any]]] = [
        (cr.assess, {"mechanism": NOISE}),
        (cr.assess_perturbation, {"perturbation": "round:5"}),
        (cr.average, {"mechanism": NOISE, "releases": 2}),
        (cr.choose, {"max_risk": 0.4}),
        (cr.curve, {}),
        (cr.report, {}),
    ]
    for ask, more in asked:
        with pytest.raises(InvalidInput, match="priors must be a Priors; got dict"):
            ask(table, priors={"alpha": "mle"}, **more)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"alpha": "guess"}, "unknown way to estimate alpha; got 'guess'; allowed: mle, moments"),
        ({"alpha": [1, 0]}, r"alpha must be a word, or .* for each level; got \[1, 0\]"),
        ({"alpha": {"y": [1, -1]}}, "alpha must be a word"),
        ({"alpha": {}}, "got dict"),
        ({"alpha": ["1", "1"]}, "got list"),
        ({"sizes": "normal"}, "unknown family of cell sizes; got 'normal'; allowed: poisson, negbin"),
        ({"sizes_fit": "guess"}, "unknown way to fit cell sizes; got 'guess'; allowed: mle, moments, bayes"),
    ],
)
def test_priors_are_read_when_they_are_made(given: dict[str, Any], says: str) -> None:
    with pytest.raises(CellriskError, match=says):
        cr.Priors(**given)


def test_equal_priors_are_equal_however_they_are_given() -> None:
    assert cr.Priors([1, 2]) == cr.Priors((1.0, 2.0)) == cr.Priors(np.array([1.0, 2.0]))  # type: ignore[arg-type]
    assert hash(cr.Priors([1, 2])) == hash(cr.Priors((1.0, 2.0)))
