"""What a set gives away after least squares, held to dense normal equations, to whole releases that are simulated by
hand, and to laws in closed form."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import cellrisk as cr
from cellrisk.repeat.together import least_squares
from cellrisk.repeat.together.least_squares import integrate_orthant, orthant
from cellrisk.repeat.together.refined import LaplaceSum, ProductFit, Refined, weigh_cells
from tests.near import near
from tests.together.test_least_squares import LEVELS, SETS, design, gaussian, make_people, solve

NAMES = "abc"
COLUMNS = [{0, 1}, {0, 2}]
"""Tables of a and b, and of a and c; every combination of a, b and c occurs."""


@pytest.mark.parametrize("case", SETS)
def test_components_give_what_dense_normal_equations_do(case: str) -> None:
    columns, variances = SETS[case]
    joint: Any = SimpleNamespace(tables=[SimpleNamespace(columns=tuple(sorted(own))) for own in columns])
    fit = ProductFit(joint, LEVELS, tuple(variances))
    sizes = [math.prod(LEVELS[each] for each in own) for own in columns]
    assert fit.sizes == tuple(sizes)
    published = [np.random.default_rng(size).normal(0, 3, (2, size)) for size in sizes]
    dense = np.concatenate(published, axis=1) @ solve(columns, variances).T
    assert np.concatenate(fit.estimate(published), axis=1) == pytest.approx(dense, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", SETS)
def test_the_weights_of_one_cell_are_those_of_the_dense_matrix(case: str) -> None:
    columns, variances = SETS[case]
    hat, starts = (
        solve(columns, variances),
        np.cumsum([0, *(math.prod(LEVELS[each] for each in own) for own in columns)]),
    )
    sets = [frozenset(own) for own in columns]
    for table in range(len(columns)):
        found = weigh_cells(sets, LEVELS, variances, table)
        for other in range(len(columns)):
            mine = sorted(weight for place, weight, times in found if place == other for _ in range(times))
            theirs = sorted(hat[starts[table], starts[other] : starts[other + 1]])
            assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def test_a_sum_of_laplace_noises() -> None:
    """Two of the same scale: P(sum > x) = e^-x (2 + x)/4; and draws of many."""
    two = LaplaceSum(np.array([1.0]), np.array([2.0]))
    x = np.array([0.0, 0.3, 1.0, 5.0, 20.0])
    assert two.error < 1e-12
    assert two.above(x) == near(np.exp(-x) * (2 + x) / 4)
    assert two.above(-x) == near(1 - np.exp(-x) * (2 + x) / 4)
    scales, times = np.array([0.9, 0.05, 0.2]), np.array([1.0, 30.0, 4.0])
    draw = np.random.default_rng(1)
    drawn = sum(
        draw.laplace(0, scale, (100_000, int(number))).sum(axis=1) for scale, number in zip(scales, times, strict=True)
    )
    for value in (-1.0, 0.4, 2.0):
        share = float(np.mean(drawn > value))
        assert abs(float(LaplaceSum(scales, times).above(np.array([value]))[0]) - share) < 5 * 0.5 / math.sqrt(100_000)


def test_integrals_in_four_dimensions() -> None:
    draw = np.random.default_rng(2)
    root = draw.normal(0, 1, (4, 6))
    matrix = root @ root.T
    matrix /= np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    bounds = draw.normal(0, 1, (4, 5))
    found = np.array([integrate_orthant(bounds, matrix, 400, shift) for shift in range(8)])
    error = found.std(axis=0, ddof=1) / math.sqrt(8)
    law = multivariate_normal(np.zeros(4), matrix, maxpts=10**6, abseps=1e-8, releps=1e-8)
    expected = np.array([law.cdf(-bounds[:, place]) for place in range(5)])
    assert np.all(np.abs(found.mean(axis=0) - expected) < 6 * error + 1e-6)
    assert error.max() < 2e-3
    three = np.mean([integrate_orthant(bounds[:3], matrix[:3, :3], 400, shift) for shift in range(8)], axis=0)
    assert three == pytest.approx(orthant(bounds[:3], matrix[:3, :3]), abs=2e-3)


def by_hand(frame: pd.DataFrame, sample: Any, clamp: bool, draws: int = 1200) -> dict[str, tuple[float, float]]:
    """Elimination, any and the first table alone: right and because of their own record, each with its error.

    Whole releases with everybody, and again, with the same noise, without each person: least squares on both.
    """
    hat, matrix = solve(COLUMNS, [1.0, 1.0]), design(COLUMNS)
    finest = list(product(*(range(LEVELS[each]) for each in range(3))))
    atom = [finest.index((row.a, row.b, row.c)) for row in frame.itertuples(index=False)]
    truth = {
        y: matrix @ np.bincount([atom[i] for i in range(len(frame)) if frame["y"][i] == y], minlength=24) for y in "xy"
    }
    noise = {y: sample((draws, len(matrix))) for y in "xy"}

    def show(y: str, less: np.ndarray | None = None) -> np.ndarray:
        values = truth[y] - (0 if less is None else less) + noise[y]
        return np.asarray(
            (np.where(values > 0.5, values, 0.0) if clamp else values) @ hat.T > 0.5 - 1e-9
        )  # a tie survives

    shown = {y: show(y) for y in "xy"}
    right = {name: np.zeros(draws) for name in ("elimination", "any", "table 1 alone")}
    caused = {name: np.zeros(draws) for name in right}
    for place, y in zip(atom, frame["y"], strict=True):
        mine = np.flatnonzero(matrix[:, place])
        other = shown["y" if y == "x" else "x"][:, mine]
        before, after = (each[:, mine] for each in (shown[y], show(y, matrix[:, place])))
        named = [
            {
                "elimination": own.all(axis=1) & ~other.all(axis=1),
                "any": (own & ~other).any(axis=1),
                "table 1 alone": own[:, 0] & ~other[:, 0],
            }
            for own in (before, after)
        ]
        for name in right:
            right[name] += named[0][name]
            caused[name] += named[0][name] * 1.0 - named[1][name]
    found = {}
    for name in right:
        for what, numbers in ((name, right[name]), (f"{name}: caused", caused[name])):
            found[what] = float(numbers.mean()), float(numbers.std() / math.sqrt(draws))
    return found


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
def test_whole_releases_by_hand(mechanism: str) -> None:
    """Noise that is not Gaussian: rows are simulated and say so, but each table alone under Laplace noise is exact."""
    frame, epsilon = make_people(), 0.8
    tables = [{"qid": [NAMES[each] for each in sorted(own)]} for own in COLUMNS]
    refined = cr.assess_together(frame, tables, "y", mechanism=mechanism, epsilon=epsilon).refinement
    assert refined is not None
    assert refined.observed is not None
    if mechanism == "geometric":  # every combination occurs, so that the two are one: whole numbers and their ties
        for one, other in zip(refined.rows, refined.observed.rows, strict=True):
            assert (one.right, one.named, one.caused) == near((other.right, other.named, other.caused))
    draw = np.random.default_rng(8)

    def sample(shape: tuple[int, ...]) -> np.ndarray:
        if mechanism == "laplace":
            return draw.laplace(0, 1 / epsilon, shape)
        share = 1 - math.exp(-epsilon)
        return np.asarray(draw.geometric(share, shape) - draw.geometric(share, shape), np.float64)

    for clamp, ending in ((False, ""), (True, ", clamped")):
        expected = by_hand(frame, sample, clamp)
        for rows in (refined.rows, refined.observed.rows):
            told = {row.what: row for row in rows}
            for name in ("elimination", "any", *([] if clamp else ["table 1 alone"])):
                row = told[name + ending]
                (right, error), (caused, caused_error) = expected[name], expected[f"{name}: caused"]
                assert abs(row.right - right) < 5 * math.hypot(row.error, error)
                assert abs(row.caused - caused) < 5 * math.hypot(row.caused_error, caused_error)
                exact = mechanism == "laplace" and "alone" in name and rows is refined.rows
                assert row.how.startswith("exact" if exact else "simulated, +- ")
                assert row.plain.right > 0


def test_four_gaussian_tables_beside_a_simulation() -> None:
    """Integrals with their error; the same set simulated is near them; too many integrals are simulated instead."""
    frame = make_people()
    tables = [{"qid": qid, "mechanism": gaussian(1.5)} for qid in (["a", "b"], ["b", "c"], ["a", "c"], "b")]
    found = cr.assess_together(frame, tables, "y").refinement
    assert found is not None
    told = {row.what: row for row in found.rows}
    assert told["elimination"].how.startswith("exact to +- ")
    assert told["table 4 alone"].how == "exact"
    least = least_squares.GENZ_NUMBERS
    try:
        least_squares.GENZ_NUMBERS = 0
        other = cr.assess_together(frame, tables, "y").refinement
    finally:
        least_squares.GENZ_NUMBERS = least
    assert other is not None
    for row in other.rows:
        assert row.how.startswith("simulated")
        exact = told[row.what]
        assert abs(row.right - exact.right) < 5 * math.hypot(row.error, exact.error) + 1e-9
        assert abs(row.caused - exact.caused) < 5 * math.hypot(row.caused_error, exact.caused_error) + 1e-9


def test_each_row_says_how_it_is_known() -> None:
    figures = cr.repeat.together.rules.Figures(1.0, 2.0, 0.5)
    assert Refined("any", 3.0, 4.0, 1.0, figures).how == "exact"
    assert Refined("any", 3.0, 4.0, 1.0, figures, 0.01, 0.001).how == "exact to +- 0.01 and 0.001"
    assert Refined("any", 3.0, 4.0, 1.0, figures, 0.01, 0.001, True).how == "simulated, +- 0.01 and 0.001"
    frame = make_people()
    found = cr.assess_together(frame, [{"qid": ["a", "b"]}, {"qid": ["b", "c"]}], "y", epsilon=1.0)
    said = str(found)
    assert "least squares, every combination published" in said
    assert "least squares, those that occur published" in said
    assert said.count("simulated, +- ") >= 8
    rows = found.to_dict()["least_squares"]["rows"]
    assert [row["what"] for row in rows] == [
        *("elimination", "any", "table 1 alone", "table 2 alone", "elimination, clamped", "any, clamped")
    ]
    assert all(row["simulated"] and row["error"] > 0 and row["plain"]["right"] > 0 for row in rows)
    again = cr.assess_together(frame, [{"qid": ["a", "b"]}, {"qid": ["b", "c"]}], "y", epsilon=1.0)
    assert again.refinement == found.refinement
