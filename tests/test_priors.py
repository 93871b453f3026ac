"""`Priors` is read when it is made, taken by every function that needs one, and its old words say the same."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from tests.near import near

FUNCTIONS = {
    *("assess", "assess_sequence", "average", "choose", "curve", "largest_epsilon", "plan", "report"),
}
NOISE = cr.Laplace(epsilon=1.0)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    frame = {"q": list("aaabbbccdd"), "y": list("uvvuuuuvvv"), "z": list("stststssss")}
    return cr.tabulate(pd.DataFrame(frame), "q", ["y", "z"])


def test_every_public_function_takes_priors_and_none_takes_them_one_by_one() -> None:
    functions = {name: getattr(cr, name) for name in cr.__all__ if inspect.isfunction(getattr(cr, name))}
    found = {name: inspect.signature(each).parameters for name, each in functions.items()}
    others = {"ceiling", "assess_perturbation"}
    assert {name for name, parameters in found.items() if "priors" in parameters} == FUNCTIONS | others
    assert not [name for name, parameters in found.items() if {"alpha", "sizes", "zero_truncation"} & set(parameters)]


@pytest.mark.parametrize(
    "words",
    [{"alpha": [0.5, 2.0]}, {"alpha": {"y": "moments", "z": [1, 1]}}, {"sizes": "negbin", "zero_truncation": False}],
    ids=str,
)
def test_the_old_words_say_the_same(table: cr.FrequencyTable, words: dict[str, Any]) -> None:
    past, planned = [cr.Step(NOISE, "y")], cr.Step(NOISE, "z")
    of: Any = {"measure": "marginal_shrinkage"}

    def after(**priors: Any) -> float:
        return cr.plan(table, past, planned, **of, **priors).after.overall.sum_records

    asked: dict[str, Any] = {
        "assess": lambda **priors: cr.assess(table, NOISE, **priors).value(**of, sensitive="y"),
        "curve": lambda **priors: cr.curve(table, epsilon=1.0, **priors).lines[-1].risk[0],
        "average": lambda **priors: cr.average(table, NOISE, releases=2, **priors).rows[-1].averaging,
        "choose": lambda **priors: cr.choose(table, max_risk=0.4, largest_epsilon=2.0, **of, **priors).risk,
        "plan": after,
    }
    for name, ask in asked.items():
        assert ask(**words) == near(ask(priors=cr.Priors(**words))), name
        assert ask(**words) != ask(), name


def test_words_given_twice_or_of_another_kind_are_refused(table: cr.FrequencyTable) -> None:
    given: Any = {"alpha": "mle", "priors": cr.Priors()}
    with pytest.raises(InvalidInput, match="priors and alpha say the same; give priors= alone"):
        cr.assess(table, NOISE, **given)
    with pytest.raises(InvalidInput, match="priors must be made by Priors; got dict"):
        cr.assess(table, NOISE, priors={"alpha": "mle"})  # type: ignore[arg-type]


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
