"""Least squares held to dense normal equations, to whole releases drawn by hand, and to the published figures."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

import cellrisk as cr
from cellrisk.repeat.together import after_consistency
from cellrisk.repeat.together.after_consistency import ProductFit, variances_left
from tests.near import near

LEVELS = {0: 3, 1: 2, 2: 4}
SETS = {
    "three margins": ([{0, 1}, {0, 2}, {1, 2}], [1.0, 2.0, 0.5]),
    "a margin of another": ([{0}, {0, 1}], [1.0, 3.0]),
    "a tree of three": ([{0}, {0, 1}, {0, 1, 2}], [2.0, 1.0, 0.3]),
    "a total": ([set(), {1, 2}], [1.0, 1.0]),
    "nothing in common but the total": ([{0}, {1, 2}], [1.0, 1.0]),
}


def design(columns: list[set[int]]) -> np.ndarray:
    """One row for each cell of each table: which cells of the finest table it adds up."""
    finest = list(product(*(range(LEVELS[each]) for each in sorted(LEVELS))))
    rows = []
    for own in columns:
        for cell in product(*(range(LEVELS[each]) for each in sorted(own))):
            named = dict(zip(sorted(own), cell, strict=True))
            rows.append([float(all(key[each] == value for each, value in named.items())) for key in finest])
    return np.array(rows)


def solve(columns: list[set[int]], variances: list[float]) -> np.ndarray:
    """The matrix that takes what is published to the least-squares estimates of the same cells."""
    matrix = design(columns)
    sizes = [math.prod(LEVELS[each] for each in own) for own in columns]
    weight = np.diag(np.concatenate([np.full(n, 1 / v) for n, v in zip(sizes, variances, strict=True)]))
    return np.asarray(matrix @ np.linalg.pinv(matrix.T @ weight @ matrix) @ matrix.T @ weight)


@pytest.mark.parametrize("case", SETS)
def test_dense_normal_equations_give_the_same(case: str) -> None:
    columns, variances = SETS[case]
    hat = solve(columns, variances)
    sizes = [math.prod(LEVELS[each] for each in own) for own in columns]
    noise = np.diag(np.concatenate([np.full(n, v) for n, v in zip(sizes, variances, strict=True)]))
    left = np.diag(hat @ noise @ hat.T)[np.cumsum([0, *sizes[:-1]])]  # the first cell of each table
    found = variances_left([frozenset(own) for own in columns], LEVELS, variances)
    assert found == pytest.approx(left, rel=1e-9, abs=0)


def gaussian(sigma: float) -> cr.AnalyticGaussian:
    def off(log_delta: float) -> float:
        return cr.AnalyticGaussian(epsilon=1.0, delta=math.exp(log_delta)).scale - sigma

    return cr.AnalyticGaussian(epsilon=1.0, delta=math.exp(brentq(off, math.log(1e-9), math.log(0.36), xtol=1e-14)))


PAIRS = [["age", "sex"], ["education", "sex"], ["age", "education"]]


def test_figures_of_adult() -> None:
    tables = [{"qid": names, "mechanism": gaussian(3.0)} for names in PAIRS]
    found = cr.assess_together(cr.datasets.adult_as_published(), tables, "income", bins={"age": 5})
    assert found.refinement is not None
    assert found.refinement.shares == pytest.approx((0.914847, 0.911678, 0.889087), abs=5e-7)
    rules = {row.what: row for row in found.refinement.rows}
    assert abs(rules["any"].right - 2163.42) < 5 * rules["any"].error
    assert abs(rules["elimination"].right - 2153.54) < 5 * rules["elimination"].error
    assert abs(rules["elimination"].caused - 10.5713) < 5 * rules["elimination"].caused_error
    assert (found.rule("any").right, found.rule().right) == pytest.approx((2200.00, 2189.45), rel=3e-6, abs=0)
    assert "91.5%, 91.2%, 88.9%" in " ".join(found.details.split())


def make_people() -> pd.DataFrame:
    """Every combination of a, b and c occurs, so that the observed cells are the whole domain."""
    draw = np.random.default_rng(4)
    rows = [(*key, "xy"[draw.integers(0, 2)]) for key in product(range(3), range(2), range(4)) for _ in range(2)]
    return pd.DataFrame(rows, columns=["a", "b", "c", "y"])


def test_what_is_not_computed_says_why() -> None:
    frame = make_people()

    def ask(*tables: dict[str, Any], **more: Any) -> Any:
        return cr.assess_together(frame, tables, "y", **more).refinement

    assert ask({"qid": "a"}, {"qid": "b"}, epsilon=1.0) is None
    assert ask({"qid": ["a", "b"]}, {"qid": "b", "where": {"a": 1}}, epsilon=1.0) is None
    geometric = ask({"qid": ["a", "b"]}, {"qid": "b"}, epsilon=1.0)
    assert geometric.shares[0] == near(1 - 1 / (3 + 1))
    assert geometric.why is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(after_consistency, "MOST_ROWS", 1)
        few = ask({"qid": ["a", "b"]}, {"qid": "b"}, epsilon=1.0)
        assert few.rows == ()
        assert "is not computed: it is computed for up to 1 combinations" in few.headline
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(after_consistency, "MOST_COUNTS", 1)
        assert "up to 1 counts" in ask({"qid": ["a", "b"]}, {"qid": "b"}, epsilon=1.0).headline


NAMES = "abc"
COLUMNS = [{0, 1}, {0, 2}]
"""Tables of a and b, and of a and c; every combination of a, b and c occurs."""


@pytest.mark.parametrize("case", SETS)
def test_components_give_what_dense_normal_equations_do(case: str) -> None:
    columns, variances = SETS[case]
    fit = ProductFit([*map(frozenset, columns)], LEVELS, tuple(variances))
    sizes = [math.prod(LEVELS[each] for each in own) for own in columns]
    published = [np.random.default_rng(size).normal(0, 3, (2, size)) for size in sizes]
    dense = np.concatenate(published, axis=1) @ solve(columns, variances).T
    assert np.concatenate(fit.estimate(published), axis=1) == pytest.approx(dense, rel=1e-9, abs=1e-9)


def by_hand(frame: pd.DataFrame, sample: Any, draws: int = 1200) -> dict[str, tuple[float, float]]:
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
        return np.asarray(values @ hat.T > 0.5 - 1e-9)  # a tie survives

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


@pytest.mark.parametrize("name", ["geometric", "laplace", "gaussian"])
def test_whole_releases_by_hand(name: str) -> None:
    frame, epsilon = make_people(), 0.8
    noise: Any = gaussian(1.5) if name == "gaussian" else name
    tables = [{"qid": [NAMES[each] for each in sorted(own)], "mechanism": noise} for own in COLUMNS]
    refined = cr.assess_together(frame, tables, "y", epsilon=None if name == "gaussian" else epsilon).refinement
    assert refined is not None
    draw = np.random.default_rng(8)

    def sample(shape: tuple[int, ...]) -> np.ndarray:
        if name == "gaussian":
            return draw.normal(0, 1.5, shape)
        if name == "laplace":
            return draw.laplace(0, 1 / epsilon, shape)
        share = 1 - math.exp(-epsilon)
        return np.asarray(draw.geometric(share, shape) - draw.geometric(share, shape), np.float64)

    expected = by_hand(frame, sample)
    by_name = {row.what: row for row in refined.rows}
    for way in ("elimination", "any", "table 1 alone"):
        row = by_name[way]
        (right, error), (caused, caused_error) = expected[way], expected[f"{way}: caused"]
        assert abs(row.right - right) < 5 * math.hypot(row.error, error)
        assert abs(row.caused - caused) < 5 * math.hypot(row.caused_error, caused_error)


def test_noise_that_changes_nothing_is_left_as_it_is() -> None:
    found = cr.assess_together(make_people(), [{"qid": ["a", "b"]}, {"qid": ["b", "c"]}], "y", epsilon=2000.0)
    assert found.refinement is not None
    for row in found.refinement.rows:
        assert (row.right, row.caused) == near((row.plain.right, row.plain.caused))
