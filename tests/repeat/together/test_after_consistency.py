"""Least squares held to dense normal equations, to whole releases drawn by hand, and to the published figures."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

import cellrisk as cr
from cellrisk.repeat.together import after_consistency
from cellrisk.repeat.together.after_consistency import ObservedFit, ProductFit, variances_left
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
    rules = found.refinement.rules
    assert abs(rules["any"].right - 2163.42) < 5 * rules["any"].error
    assert abs(rules["elimination"].right - 2153.54) < 5 * rules["elimination"].error
    assert abs(rules["elimination"].caused - 10.5713) < 5 * rules["elimination"].caused_error
    assert (found.rule("any").right, found.rule().right) == pytest.approx((2200.00, 2189.45), rel=3e-6, abs=0)
    assert "leaves 91.5%, 91.2%, 88.9% of the variance" in found.details


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
        assert (few.rows, few.observed) == ((), None)
        assert "is not computed: it is computed for up to 1 combinations" in few.headline
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(after_consistency, "MOST_COUNTS", 1)
        assert "up to 1 counts" in ask({"qid": ["a", "b"]}, {"qid": "b"}, epsilon=1.0).headline


def observed_fit(cell: np.ndarray, sizes: list[int], variances: list[float]) -> ObservedFit:
    joint: Any = SimpleNamespace(tables=[SimpleNamespace(n_cells=size) for size in sizes], cell=cell)
    return ObservedFit(joint, tuple(variances))


def test_a_tree_in_closed_form() -> None:
    """c(r1(a, b), r2(d, e, f)), every variance 1: what is left of a node is 1/(1/up + 1/out), worked out by hand."""
    cell = np.array([[0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 2, 3, 4]])
    fit = observed_fit(cell, [1, 2, 5], [1.0, 1.0, 1.0])
    expected = [0.586207, 0.482759, 0.517241, 0.620690, 0.620690, 0.724138, 0.724138, 0.724138]
    assert 1 - (fit.basis**2).sum(axis=1) == pytest.approx(expected, abs=5e-7)


PLACES = ["Aa", "Aa", "Ab", "Bc", "Bc", "Bd", "Be", "Aa"]
"""Regions and their districts, and an age: nested geography, of which not every combination occurs."""
AGES = "xyyxyxxy"
JOBS = "mnmnnmmn"


def test_only_cells_that_occur_by_dense_normal_equations() -> None:
    """Districts in regions, and ages: each cell has the variance that the normal equations leave it."""
    region, district, age = (
        [*map(sorted(set(column)).index, column)]
        for column in (
            [place[0] for place in PLACES],
            [place[1] for place in PLACES],
            AGES,
        )
    )
    cell, sizes, variances = np.array([region, district, age]), [2, 5, 2], [1.0, 2.0, 0.5]
    fit = observed_fit(cell, sizes, variances)
    atoms = sorted(set(zip(region, district, age, strict=True)))
    rows = [[float(atom[table] == value) for atom in atoms] for table in range(3) for value in range(sizes[table])]
    matrix, weight = np.array(rows), np.diag(1 / np.repeat(variances, sizes))
    hat = matrix @ np.linalg.pinv(matrix.T @ weight @ matrix) @ matrix.T @ weight
    counts = np.split(np.random.default_rng(2).normal(0, 3, (4, 9)), [2, 7], axis=1)
    estimates = np.concatenate(fit.estimate(counts), axis=1)
    assert estimates == pytest.approx(np.concatenate(counts, axis=1) @ hat.T, rel=1e-8, abs=1e-8)


def test_nested_geography_beside_the_plain_figures() -> None:
    """Regions and districts are found to be nested; the rules at the refined variance are those of a simulation."""
    frame = pd.DataFrame({"region": [p[0] for p in PLACES], "district": [p[1] for p in PLACES], "job": [*JOBS]})
    noise = cr.AnalyticGaussian(epsilon=1.0, delta=0.05)
    tables = [{"qid": "region", "mechanism": noise}, {"qid": "district", "mechanism": noise}]
    found = cr.assess_together(frame, tables, "job", levels={"job": ["m", "n"]})
    assert found.refinement is not None
    observed = found.refinement.observed
    assert observed is not None
    sigma = noise.scale
    children = {"A": 2, "B": 3}  # v_c (1 - v_c/(C v_c + v_p)) of a district, 1/(1/v_p + 1/(C v_c)) of a region
    left = [np.mean([1 / (1 + 1 / children[p[0]]) for p in PLACES])]
    left.append(np.mean([1 - 1 / (children[p[0]] + 1) for p in PLACES]))
    assert observed.shares == pytest.approx(left, rel=1e-9, abs=0)
    generator = np.random.default_rng(3)
    draws, right = 40_000, 0.0
    regions, districts = "AB", "abcde"
    matrix = np.array([[float(p == r) for p in "AABBB"] for r in regions] + np.eye(5).tolist())
    hat = matrix @ np.linalg.inv(matrix.T @ matrix) @ matrix.T
    shown = {}
    for job in "mn":
        counts = [sum(p[0] == r and j == job for p, j in zip(PLACES, JOBS, strict=True)) for r in regions]
        counts += [sum(p[1] == d and j == job for p, j in zip(PLACES, JOBS, strict=True)) for d in districts]
        shown[job] = (np.array(counts) + generator.normal(0, sigma, (draws, 7))) @ hat.T > 0.5
    for place, job in zip(PLACES, JOBS, strict=True):
        own = [regions.index(place[0]), 2 + districts.index(place[1])]
        stays = {each: shown[each][:, own].all(axis=1) for each in "mn"}
        other = "n" if job == "m" else "m"
        right += float(np.mean(stays[job] & ~stays[other]))
    error = math.hypot(8 * 0.5 / math.sqrt(draws), observed.rules["elimination"].error)
    assert abs(observed.rules["elimination"].right - right) < 5 * error
    assert 0 < observed.rules["elimination"].caused <= observed.rules["elimination"].right
    assert "If only the combinations that occur are published" in found.details


NAMES = "abc"
COLUMNS = [{0, 1}, {0, 2}]
"""Tables of a and b, and of a and c; every combination of a, b and c occurs."""


@pytest.mark.parametrize("case", SETS)
def test_components_give_what_dense_normal_equations_do(case: str) -> None:
    columns, variances = SETS[case]
    joint: Any = SimpleNamespace(tables=[SimpleNamespace(columns=tuple(sorted(own))) for own in columns])
    fit = ProductFit(joint, LEVELS, tuple(variances))
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
    assert refined.observed is not None
    if name == "geometric":  # every combination occurs, so the two are one: whole numbers and their ties
        for one, other in zip(refined.rows, refined.observed.rows, strict=True):
            assert (one.right, one.named, one.caused) == near((other.right, other.named, other.caused))
    draw = np.random.default_rng(8)

    def sample(shape: tuple[int, ...]) -> np.ndarray:
        if name == "gaussian":
            return draw.normal(0, 1.5, shape)
        if name == "laplace":
            return draw.laplace(0, 1 / epsilon, shape)
        share = 1 - math.exp(-epsilon)
        return np.asarray(draw.geometric(share, shape) - draw.geometric(share, shape), np.float64)

    expected = by_hand(frame, sample)
    for rows in (refined.rows, refined.observed.rows):
        by_name = {row.what: row for row in rows}
        for way in ("elimination", "any", "table 1 alone"):
            row = by_name[way]
            (right, error), (caused, caused_error) = expected[way], expected[f"{way}: caused"]
            assert abs(row.right - right) < 5 * math.hypot(row.error, error)
            assert abs(row.caused - caused) < 5 * math.hypot(row.caused_error, caused_error)


def test_each_row_prints_its_error() -> None:
    frame = make_people()
    found = cr.assess_together(frame, [{"qid": ["a", "b"]}, {"qid": ["b", "c"]}], "y", epsilon=1.0)
    printed = found.details
    assert "least squares, every combination published" in printed
    assert "least squares, those that occur published" in printed
    rows = found.to_dict()["least_squares"]["rows"]
    assert [row["what"] for row in rows] == ["elimination", "any", "table 1 alone", "table 2 alone"]
    assert all(row["error"] > 0 and row["how"] in printed for row in rows)


def test_noise_that_changes_nothing_is_left_as_it_is() -> None:
    found = cr.assess_together(make_people(), [{"qid": ["a", "b"]}, {"qid": ["b", "c"]}], "y", epsilon=2000.0)
    assert found.refinement is not None
    for row in found.refinement.rows:
        assert (row.right, row.caused) == near((row.plain.right, row.plain.caused))
