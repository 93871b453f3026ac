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
from cellrisk.repeat.together.after_consistency import ProductFit, project_observed, refine
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
    covariance = hat @ noise @ hat.T
    first = np.cumsum([0, *sizes[:-1]])  # the cells of one person: the first value of every column
    assert refine([frozenset(own) for own in columns], LEVELS, variances) == pytest.approx(
        covariance[np.ix_(first, first)], rel=1e-9, abs=0
    )


def test_parent_and_children() -> None:
    """v_c (1 - v_c/(C v_c + v_p)) and 1/(1/v_p + 1/(C v_c))."""
    found = refine([frozenset({0}), frozenset({0, 1})], {0: 7, 1: 5}, [2.0, 3.0])
    assert found[1, 1] == near(3 * (1 - 3 / (5 * 3 + 2)))
    assert found[0, 0] == near(1 / (1 / 2 + 1 / (5 * 3)))


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
    assert "leaves 91.5%, 91.2%, 88.9% of the variance" in str(found)


def make_people() -> pd.DataFrame:
    """Every combination of a, b and c occurs, so that the observed cells are the whole domain."""
    draw = np.random.default_rng(4)
    rows = [(*key, "xy"[draw.integers(0, 2)]) for key in product(range(3), range(2), range(4)) for _ in range(2)]
    return pd.DataFrame(rows, columns=["a", "b", "c", "y"])


def test_a_simulated_attacker_who_solves_the_normal_equations() -> None:
    """Noise is drawn, the equations are solved, the rules applied: the mean is what was computed."""
    frame, columns, names = make_people(), [{0, 1}, {0, 2}], ["a", "b", "c"]
    sigma, draws = 1.5, 4000
    tables: list[dict[str, Any]] = [
        {"qid": [names[each] for each in sorted(own)], "mechanism": gaussian(sigma)} for own in columns
    ]
    found = cr.assess_together(frame, tables, "y").refinement
    assert found is not None
    hat, matrix = solve(columns, [1.0, 1.0]), design(columns)
    finest = [tuple(key) for key in product(range(3), range(2), range(4))]
    truth = {
        label: matrix
        @ np.array([sum((frame[names] == list(key)).all(axis=1) & (frame["y"] == label)) for key in finest])
        for label in "xy"
    }
    draw = np.random.default_rng(9)
    shown = {label: truth[label] + draw.normal(0, sigma, (draws, len(matrix))) @ hat.T > 0.5 for label in "xy"}
    right = {"elimination": np.zeros(draws), "any": np.zeros(draws)}
    for row in frame.itertuples(index=False):
        mine = [int(np.flatnonzero(part)[0]) for part in _cells_of(matrix, finest.index((row.a, row.b, row.c)))]
        own, other = (shown[row.y][:, mine], shown["y" if row.y == "x" else "x"][:, mine])
        right["elimination"] += own.all(axis=1) & ~other.all(axis=1)
        right["any"] += (own & ~other).any(axis=1)
    for rule, numbers in right.items():
        error = math.hypot(numbers.std() / math.sqrt(draws), found.rules[rule].error)
        assert abs(numbers.mean() - found.rules[rule].right) < 5 * error


def _cells_of(matrix: np.ndarray, place: int) -> list[np.ndarray]:
    """For each table, which of the published rows holds one cell of the finest table."""
    found, start = [], 0
    for size in (6, 12):
        part = np.zeros(len(matrix), bool)
        part[start : start + size] = matrix[start : start + size, place] > 0
        found.append(part)
        start += size
    return found


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


def test_a_tree_in_closed_form() -> None:
    """c(r1(a, b), r2(d, e, f)), every variance 1: what is left of a node is 1/(1/up + 1/out), worked out by hand."""
    cell = np.array([[0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 2, 3, 4]])
    found = np.diag(project_observed(cell, [1, 2, 5], [1.0, 1.0, 1.0]))
    expected = [0.586207, 0.482759, 0.517241, 0.620690, 0.620690, 0.724138, 0.724138, 0.724138]
    assert found == pytest.approx(expected, abs=5e-7)


PLACES = ["Aa", "Aa", "Ab", "Bc", "Bc", "Bd", "Be", "Aa"]
"""Regions and their districts, and an age below: nested geography, of which not every combination occurs."""
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
    whole = project_observed(cell, sizes, variances)
    atoms = sorted(set(zip(region, district, age, strict=True)))
    rows = [[float(atom[table] == value) for atom in atoms] for table in range(3) for value in range(sizes[table])]
    matrix, spread = np.array(rows), np.repeat(variances, sizes)
    dense = matrix @ np.linalg.pinv(matrix.T @ np.diag(1 / spread) @ matrix) @ matrix.T
    starts = [0, 2, 7]
    for row in range(len(PLACES)):
        own = [start + cell[table, row] for table, start in enumerate(starts)]
        assert whole[np.ix_(own, own)] == pytest.approx(dense[np.ix_(own, own)], rel=1e-8, abs=1e-10)


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
    assert "If only the combinations that occur are published" in str(found)


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
    """Noise that is not Gaussian: rows are simulated and say so."""
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
                assert row.how.startswith("simulated, +- ")
                assert row.plain.right > 0


def test_each_row_says_how_it_is_known() -> None:
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
