"""`assess`: the numbers, the sentence, the frame and the JSON document."""

from __future__ import annotations

import json
import math
import re

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS
from tests.risk.measures.test_figures import BANKRUPTCY_SUBSET


def people(cells: dict[tuple[int, ...], int], labels: str = "abc") -> pd.DataFrame:
    """A count table with these profiles, one QID value a cell."""
    rows = []
    for counts, times in cells.items():
        for _ in range(times):
            cell = len(rows)
            rows += [{"cell": cell, "y": label, "n": count} for label, count in zip(labels, counts, strict=False)]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def subset() -> cr.FrequencyTable:
    return cr.tabulate(people(BANKRUPTCY_SUBSET), "cell", "y", levels={"y": list("abc")}, count="n")


def test_all_of_it_by_default(subset: cr.FrequencyTable) -> None:
    found = cr.assess(subset, cr.Laplace(epsilon=1.0), priors=cr.Priors([1, 1, 1]))
    assert len(found.risks) == 4 * 3 * 2 + 3
    frame = found.to_frame()
    assert list(frame.columns) == ["sensitive", "attack", "measure", "form", "weights", "risk"]
    assert len(frame) == 27
    for measure in MEASURES:
        for form in FORMS:
            for weights in WEIGHTS:
                assert 0 < found.value(measure=measure, form=form, weights=weights) < 1


def test_sentence(subset: cr.FrequencyTable) -> None:
    found = cr.assess(subset, cr.Laplace(epsilon=1.0), measures="local")
    assert found.headline.startswith(
        "At epsilon 1, the 'y' of at least 36 of 250 people (14.6%) is revealed because of their own record. "
    )
    assert "finds two values equally likely, is right at most 72.5% of the time (coin toss: 50%)." in found.headline
    assert (
        "At epsilon 1, the homogeneity attack reveals the 'y' of about 71 of 250 people (28.3%; 46 to 96 in 95% of "
        "releases). Without noise it reveals 56.8%."
    ) in " ".join(found.details.split())
    assert str(found).startswith(
        "'y' by cell: 250 people in 78 groups\nLaplace noise, epsilon 1: a published count is "
    )
    noisy = cr.assess(subset, cr.Gaussian(epsilon=0.5, delta=0.01), measures="local")
    assert noisy.headline.startswith("At epsilon 0.5 and delta 0.01, the 'y' of at least ")


def test_few_people_are_not_called_none() -> None:
    """Where the expected number rounds to 0 and its share does not, no sentence and no table says 0."""
    small = cr.tabulate(people({(4, 3): 1, (5, 3): 4}, "ab"), "cell", "y", count="n")
    found = cr.assess(small, epsilon=1.0)
    assert 0 < found.figures[0].caused.people < 0.5
    assert re.search(
        r"^At epsilon 1, the 'y' of (fewer than 1|at least [1-9]\d*) of 39 people \(\d+\.\d%\) is ", found.headline
    )
    choice = cr.choose(small, max_caused=0.005)
    shown = cr.report(small, max_caused=0.005)
    curve = cr.curve(small, epsilon=[0.1, 1.0], measures="caused")
    assert " and fewer than 1 (0.0" in curve.headline
    assert "fewer than 1" in shown.html
    for told in (str(found), str(choice), str(curve), shown.html):
        assert not re.search(r"(?<![\d.])0 (of 39 people |people )?\((?!0%)[\d.]+%", told)


def test_json_document_is_the_promised_one(subset: cr.FrequencyTable) -> None:
    document = json.loads(json.dumps(cr.assess(subset, cr.Laplace(epsilon=1.0)).to_dict(), allow_nan=False))
    assert document["table"] == {
        "records": 250,
        "cells": 78,
        "sensitive": {"y": {"levels": 3, "homogeneous": 54, "heterogeneous": 24, "unique": 18, "profiles": 17}},
    }
    assert document["mechanism"] == {
        "name": "laplace",
        "epsilon": 1.0,
        "delta": 0.0,
        "scale": 1.0,
        "neighbours": "add-remove",
    }
    assert document["risks"]
    assert all(list(row) == ["sensitive", "attack", "measure", "form", "weights", "risk"] for row in document["risks"])
    words = ["sensitive", "attack", "measure", "form", "weights"]
    assert [[row[word] for word in words] for row in document["limits"]] == [
        [row[word] for word in words] for row in document["risks"]
    ]
    shrunk = [row for row in document["risks"] if row["measure"] == "marginal_shrinkage"]
    assert len(shrunk) == 3
    assert all(row["weights"] is None for row in shrunk)
    assert set(document["fitted"]["y"]) == {"alpha", "sizes"}


def test_threshold_and_neighbours_matter(subset: cr.FrequencyTable) -> None:
    plain = cr.assess(subset, cr.Laplace(epsilon=1.0), measures="local").value()
    suppressed = cr.assess(subset, cr.Laplace(epsilon=1.0, threshold=10.5), measures="local")
    assert suppressed.value() < plain / 3
    assert suppressed.to_dict()["mechanism"]["threshold"] == 10.5
    assert "counts below 10.5 suppressed" in suppressed.details
    replaced = cr.assess(subset, cr.Laplace(epsilon=1.0, neighbours="replace"), measures="local").value()
    assert replaced == cr.assess(subset, cr.Laplace(epsilon=0.5), measures="local").value()


def test_fitted_parameters_and_boundaries_are_told(subset: cr.FrequencyTable) -> None:
    fitted = cr.assess(subset, cr.Laplace(epsilon=1.0))
    assert "Dirichlet" in fitted.details
    assert "Poisson" in fitted.details
    homogeneous = cr.tabulate(people({(3,): 4, (1,): 2, (0, 2): 2}, "ab"), "cell", "y", count="n")
    at_zero = cr.assess(homogeneous, cr.Laplace(epsilon=1.0))
    assert at_zero.fitted["y"].prior is not None
    assert at_zero.fitted["y"].prior.boundary == "zero"
    for form in FORMS:
        for weights in WEIGHTS:
            shrunk = at_zero.value(measure="shrinkage", form=form, weights=weights)
            assert math.isclose(shrunk, at_zero.value(measure="local", form=form, weights=weights), rel_tol=1e-12)
    even = cr.tabulate(people({(5, 5): 9}, "ab"), "cell", "y", count="n")
    at_infinity = cr.assess(even, cr.Laplace(epsilon=1.0))
    assert at_infinity.fitted["y"].prior is not None
    assert at_infinity.fitted["y"].prior.boundary == "infinite"
    json.dumps(at_infinity.to_dict(), allow_nan=False)


@pytest.mark.parametrize("sizes", ["poisson", "negbin"])
@pytest.mark.parametrize("fit", ["mle", "moments", "bayes"])
@pytest.mark.parametrize("truncated", [True, False])
def test_every_fit_of_sizes_serves(subset: cr.FrequencyTable, sizes: str, fit: str, truncated: bool) -> None:
    found = cr.assess(
        subset,
        cr.Laplace(epsilon=1.0),
        measures=["marginal", "marginal_shrinkage"],
        priors=cr.Priors("moments", sizes, fit, truncated),  # type: ignore[arg-type]
    )
    assert found.risks
    assert all(0 < row.risk < 1 for row in found.risks)


def test_several_attributes() -> None:
    frame = pd.DataFrame({"q": [1, 1, 2, 3], "a": ["x", "y", "x", "x"], "b": ["u", "u", "v", "w"]})
    table = cr.tabulate(frame, ["q"], ["a", "b"])
    found = cr.assess(table, cr.Geometric(epsilon=2.0), priors=cr.Priors({"a": "mle", "b": [1, 1, 2]}))
    assert {row.sensitive for row in found.risks} == {"a", "b"}
    assert len(found.headline.splitlines()) == 2
    assert found.value(sensitive="a") != found.value(sensitive="b")
    with pytest.raises(UnknownName, match="no sensitive attribute 'c'"):
        found.value(sensitive="c")
    with pytest.raises(UnknownName, match="alpha"):
        cr.assess(table, cr.Geometric(epsilon=2.0), priors=cr.Priors({"a": "mle"}))


def test_alpha_follows_the_order_of_levels() -> None:
    frame = people({(3, 1): 2, (1,): 1}, "ab")
    mechanism = cr.Laplace(epsilon=1.0)

    def shrunk(levels: list[str], alpha: list[float]) -> float:
        table = cr.tabulate(frame, "cell", "y", count="n", levels={"y": levels})
        return cr.assess(table, mechanism, measures="shrinkage", priors=cr.Priors(alpha)).value("shrinkage", "exact")

    assert cr.tabulate(frame, "cell", "y", count="n").attribute("y").levels.labels == ("a", "b")
    assert shrunk(["a", "b", "c"], [5, 1, 0.1]) == pytest.approx(shrunk(["c", "b", "a"], [0.1, 1, 5]), rel=1e-13, abs=0)


@pytest.mark.parametrize(
    ("settings", "kind", "says"),
    [
        ({"measures": "locla"}, UnknownName, "unknown measure"),
        ({"forms": "loose"}, UnknownName, "unknown form"),
        ({"weights": "people"}, UnknownName, "unknown weights"),
        ({"measures": []}, InvalidInput, "no measure"),
        ({"priors": cr.Priors([1, 1])}, InvalidInput, "alpha"),
        ({"attack": "linkage"}, UnknownName, "attack"),
    ],
)
def test_bad_choices_are_refused(
    subset: cr.FrequencyTable, settings: dict[str, object], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        cr.assess(subset, cr.Laplace(epsilon=1.0), **settings)  # type: ignore[arg-type]


def test_chance_stands_beside_every_risk(subset: cr.FrequencyTable) -> None:
    drowned = cr.assess(subset, cr.Laplace(epsilon=1e-10))
    bare = cr.assess(subset, cr.Laplace(epsilon=1e3))
    found = cr.assess(subset, cr.Laplace(epsilon=1.0))
    assert len(found.limits) == len(found.risks) == 27
    for ends, chance, raw in zip(found.limits, drowned.risks, bare.risks, strict=True):
        assert ends.chance == pytest.approx(chance.risk, abs=1e-6)
        assert ends.raw == pytest.approx(raw.risk, abs=1e-9)
    assert "tight: blind" in found.details
    assert "0.1250" in found.details
