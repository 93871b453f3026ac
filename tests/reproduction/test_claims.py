"""What is computed: curves against formulas written out here, the paper's numbers, and the verdicts."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from reproduction.claims import AGREES, CLAIMS, DIFFERS, ON_CONDITION, evaluate
from reproduction.experiments import Results
from reproduction.figures import paper_panels

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"


def verdicts_of(results: Results, claims: Any) -> dict[str, str]:
    """The verdict on the one claim that begins with each of these words."""
    statements = list(evaluate(results))
    found = {}
    for start in claims:
        (found[start],) = (each["verdict"] for each in statements if each["claim"].startswith(start))
    return found


@pytest.fixture(scope="module")
def row_sizes() -> Any:
    """Sizes of Adult's rows, counted by pandas."""
    import pandas as pd

    people = cr.datasets.adult_as_published().to_pandas()
    people["age"] = pd.cut(people["age"], range(15, 95, 5))
    people["hours-per-week"] = pd.cut(people["hours-per-week"], range(0, 101, 10))
    columns = ["age", "relationship", "education", "race", "sex", "hours-per-week", "income"]
    return people.groupby(columns, observed=True).size().to_numpy()


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("weights", [0, 1])
def test_adult_as_published_meets_corollary_2(results: Results, row_sizes: Any, epsilon: float, weights: int) -> None:
    """(1 - e^(-eps/2)/2) sum_i w_i (1 - e^((0.5 - n_i) eps)/2), K = 2."""
    survive = 1 - np.exp((0.5 - row_sizes) * epsilon) / 2
    average = np.average(survive, weights=row_sizes if weights else None)
    line = results.rows.weighted()[weights]
    assert line.at(epsilon) == pytest.approx((1 - math.exp(-epsilon / 2) / 2) * average, rel=1e-12, abs=0)


@pytest.mark.parametrize("delta", [0.00003, 0.1])
@pytest.mark.parametrize("mechanism", ["gaussian", "gaussian-pdp"])
def test_adult_as_published_meets_corollary_4(results: Results, row_sizes: Any, mechanism: str, delta: float) -> None:
    """(1 + erf(0.5/(sigma sqrt 2)))/4 sum_i w_i (1 + erf((n_i - 0.5)/(sigma sqrt 2))), K = 2."""
    from scipy.special import erf
    from scipy.stats import norm

    epsilon = 0.1
    z = norm.ppf(delta / 2)
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    if mechanism == "gaussian-pdp":
        sigma = (math.sqrt(z * z + 2 * epsilon) - z) / (2 * epsilon)
    root = sigma * math.sqrt(2)
    expected = (1 + erf(0.5 / root)) / 4 * np.mean(1 + erf((row_sizes - 0.5) / root))
    line = results.rows.weighted(mechanism, delta=delta)[0]
    assert line.at(epsilon) == pytest.approx(float(expected), rel=1e-10, abs=0)


def test_adult_at_one(results: Results) -> None:
    assert [round(line.at(1.0), 4) for line in results.rows.weighted()] == [0.5653, 0.6643]
    forms = ("published", "exact", "tight")
    risks = [[round(line.at(1.0), 4) for line in results.adult.weighted(form=form)] for form in forms]
    assert risks == [[0.5038, 0.4398], [0.4820, 0.3055], [0.4677, 0.2961]]
    assert results.adult.weighted(form="tight")[1].limits.raw == pytest.approx(0.404, abs=0.0005)


def test_every_panel_of_the_paper_has_its_lines(results: Results) -> None:
    deltas = {"laplace": 1, "gaussian": 3, "gaussian-pdp": 3}
    for experiment in results.experiments:
        for _, _, _, lines in paper_panels(experiment, "abcdef", "local"):
            (name,) = {line.setting.name for line in lines.values()}
            assert len(lines) == deltas[name] + (experiment.name == "Adult" and name != "laplace")
            assert all(line.epsilon[-1] == (0.1 if name == "gaussian" else 100.0) for line in lines.values())


def test_distances_cover_every_marginal(results: Results) -> None:
    observed, domain = results.distances
    assert observed.tvd.shape == (36, 6 + 15 + 20, 2)
    assert domain.mean_tvd(3)[2] > observed.mean_tvd(3)[2]  # more counts get noise


ADULT_VERDICTS = {
    "Table 1: records": AGREES,
    "Table 1: groups": AGREES,
    "Table 1: people": AGREES,
    "Adult: individuals": AGREES,
    "Adult: non-empty cells": DIFFERS,
    "Adult: each cell is homogeneous": DIFFERS,
    "Adult: cell sizes": ON_CONDITION,
    "Adult: cells with more than 120": ON_CONDITION,
    "Adult: Poisson rate": ON_CONDITION,
    "Adult: the risk as epsilon grows": ON_CONDITION,
    "Adult: one over": AGREES,
    "The closed form is above": ON_CONDITION,
    "The term of heterogeneous cells decreases": AGREES,
    "1 - exp((0.5 - n) epsilon)/2 for cells of 4": ON_CONDITION,
    "1 - exp((0.5 - n) epsilon)/2 for cells of 3": ON_CONDITION,
    "1 - exp((0.5 - n) epsilon)/2 for cells of 2": ON_CONDITION,
    "Thresholding: the upper": ON_CONDITION,
    "Thresholding: the lower": AGREES,
    "The classical Gaussian": ON_CONDITION,
    "The geometric mechanism": ON_CONDITION,
    # The invented records are 250 too, and nothing else of them is as in the paper.
    "Bankruptcy: observations": AGREES,
    "Bankruptcy: non-empty cells": DIFFERS,
    "Bankruptcy: Poisson rate": DIFFERS,
    "Bankruptcy subset: local risk, by records, as epsilon grows": DIFFERS,
}


def test_verdicts_on_adult_the_formulas_and_other_data(results: Results) -> None:
    assert verdicts_of(results, ADULT_VERDICTS) == ADULT_VERDICTS


BY_ENUMERATION = {
    ("local", "published", "laplace", 0.1): (0.191652, 0.212287),
    ("local", "published", "laplace", 1.0): (0.358505, 0.351947),
    ("expected", "published", "laplace", 0.1): (0.186378, 0.207321),
    ("expected", "published", "laplace", 1.0): (0.370516, 0.364783),
    ("local", "exact", "laplace", 1.0): (0.334622, 0.306487),
    ("local", "tight", "laplace", 1.0): (0.312364, 0.282627),
    ("local", "tight", "geometric", 1.0): (0.346178, 0.309410),
}


def test_subset_meets_figures_by_enumeration(real: Results) -> None:
    for (measure, form, mechanism, epsilon), expected in BY_ENUMERATION.items():
        lines = real.subset.weighted(mechanism, measure=measure, form=form)
        assert [line.at(epsilon) for line in lines] == pytest.approx(list(expected), abs=1e-6)


def test_claims_are_explained_unless_they_agree(results: Results) -> None:
    statements = list(evaluate(results))
    assert len(statements) == len(CLAIMS) == 70
    assert len({each["claim"] for each in statements}) == 70
    assert all(each["why"] for each in statements if each["verdict"] != AGREES)
    adult = list(evaluate(Results(results.rows, results.adult)))
    assert len(adult) == 39
    assert not [each for each in adult if each["claim"].startswith("Bankruptcy")]


def test_the_statements_on_the_page_are_true(real: Results) -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| ")][1:]
    statements = list(evaluate(real))
    true = [f"| {each['claim']} | {each['paper']} | {each['ours']} | {each['verdict']} |" for each in statements]
    assert len(shown) >= 15
    assert [line for line in shown if line not in true] == []
    verdicts = [each["verdict"] for each in statements]
    (quoted,) = re.findall(r"> Of (\d+) [^,]*, (\d+) agree [^,]*, (\d+) agree [^>]*> and (\d+) do not", page)
    counts = [verdicts.count(verdict) for verdict in (AGREES, ON_CONDITION, DIFFERS)]
    assert [int(number) for number in quoted] == [len(verdicts), *counts]
