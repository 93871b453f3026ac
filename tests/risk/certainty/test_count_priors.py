"""What an attacker believes: the fit beside another likelihood and another optimiser, its edges, texts and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import LaplaceNoise, NoNoise
from cellrisk.risk.certainty import NegativeBinomial, find_certainty, read_belief
from cellrisk.risk.certainty.count_priors import (
    LARGEST_SHAPE,
    LEAST_SHAPE,
    EmpiricalPrior,
    fit_negative_binomial,
)
from cellrisk.system.arrays import Integers
from tests.near import near
from tests.risk.certainty.test_inferences import make_attribute


def levels_of(cells: Any) -> LevelCounts:
    return LevelCounts.from_cells(cells, [f"label {place}" for place in range(np.shape(cells)[1])])


def log_likelihood(cells: Integers, shape: float, theta: float) -> float:
    """By scipy's law of a count, cell by cell, over the probability that a cell is not empty."""
    shares = cells.sum(axis=0) / cells.sum()
    each = stats.nbinom.logpmf(cells, np.maximum(shape * shares, 1e-300), 1 - theta)
    each = np.where((shares == 0) & (cells == 0), 0.0, each)
    return float(each.sum() - len(cells) * math.log(-math.expm1(shape * math.log1p(-theta))))


def draw(shapes: list[float], theta: float, n_cells: int, seed: int) -> Integers:
    cells = np.random.default_rng(seed).negative_binomial(shapes, 1 - theta, (n_cells, len(shapes)))
    return np.asarray(cells[cells.any(axis=1)])


CASES = {
    "two labels": draw([0.2, 0.07], 0.9, 400, 1),
    "three labels, one of them never seen": np.pad(draw([0.9, 0.4], 0.7, 80, 2), ((0, 0), (0, 1))),
    "twenty labels": draw([0.05] * 20, 0.95, 60, 3),
    "large shapes": draw([30.0, 10.0], 0.5, 100, 4),
}


@pytest.mark.parametrize("case", CASES)
def test_the_fit_is_what_another_optimiser_finds(case: str) -> None:
    cells = CASES[case]
    found = fit_negative_binomial(levels_of(cells), len(cells))

    def loss(point: Any) -> float:
        return -log_likelihood(cells, math.exp(point[0]), 1 / (1 + math.exp(-point[1])))

    best = optimize.minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    shape, theta = math.exp(best.x[0]), 1 / (1 + math.exp(-best.x[1]))
    assert (sum(found.shapes), found.theta) == pytest.approx((shape, theta), rel=1e-4, abs=0)
    assert log_likelihood(cells, sum(found.shapes), found.theta) >= -best.fun - 1e-8
    assert np.array(found.shapes) / sum(found.shapes) == near(cells.sum(axis=0) / cells.sum())


def test_non_empty_cells_have_the_mean_size_of_the_table() -> None:
    cells = CASES["two labels"]
    found = fit_negative_binomial(levels_of(cells), len(cells))
    shape = sum(found.shapes)
    mean = shape * found.theta / (1 - found.theta) / (1 - (1 - found.theta) ** shape)
    assert mean == near(cells.sum() / len(cells))


@pytest.mark.parametrize(
    ("cells", "shape"),
    [
        ([[3, 0], [0, 5], [1, 0], [0, 2]], LEAST_SHAPE),  # every cell has one label: as small a shape as there is
        ([[4, 4]] * 20, LARGEST_SHAPE),  # no cell differs from another: Poisson
        ([[9]], None),  # one label
        ([[7, 2]], None),  # one cell
        ([[1, 0], [0, 1], [1, 0]], None),  # everybody is alone: sizes tell nothing
        ([[900_000, 100_000], [5, 1], [0, 40]], None),
    ],
)
def test_edges_of_the_fit(cells: list[list[int]], shape: float | None) -> None:
    """A fit is there, it is a belief, and nobody near it makes the table likelier."""
    counts = np.array(cells)
    found = fit_negative_binomial(levels_of(cells), len(cells))
    total = sum(found.shapes)
    assert found.fitted
    assert found.name == "negbin"
    assert LEAST_SHAPE * 0.99 <= total <= LARGEST_SHAPE * 1.01
    if shape is not None:
        assert total == pytest.approx(shape, rel=0.8 if shape == LEAST_SHAPE else 0.5, abs=0)
    here = log_likelihood(counts, total, found.theta)
    for factor in (0.7, 1.4):
        if LEAST_SHAPE <= total * factor <= LARGEST_SHAPE:
            odds = found.theta / (1 - found.theta)
            for more in (0.7, 1.0, 1.4):
                other = odds * more / (1 + odds * more)
                assert log_likelihood(counts, total * factor, other) <= here + 1e-6 * (1 + abs(here))
    people = (
        find_certainty(make_attribute(cells), AdditiveChannel((LaplaceNoise(1.0),), 0.5), (0.9,), found)
        if len(cells[0]) > 1
        else ()
    )
    for one in people:
        assert 0 <= one.right_low <= one.right_high <= one.named_high <= counts.sum() + 1e-6


def test_texts_are_read() -> None:
    levels = levels_of([[2, 1]])
    assert read_belief("0.4,0.15/0.9", levels, 1) == NegativeBinomial((0.4, 0.15), 0.9)
    assert read_belief(" 4e-1, 0 / 0.5", levels, 1) == NegativeBinomial((0.4, 0.0), 0.5)
    assert read_belief("table", levels, 1) == EmpiricalPrior()
    given = NegativeBinomial((1.0, 2.0), 0.3)
    assert read_belief(given, levels, 1) is given
    assert given.name == "given"
    assert given.describe() == "negative binomial counts as given (theta 0.3)"
    assert given.to_dict() == {"name": "given", "shapes": [1.0, 2.0], "theta": 0.3}


@pytest.mark.parametrize(
    "given",
    [
        *("", "nb", "0.4,0.15", "0.4,0.15/", "/0.9", "0.4;0.15/0.9", "a,b/0.9", "0.4,0.15/x", "0.4,,0.15/0.9"),
        "0.4,0.15/0.9/2",
        *("0.4,0.15/1", "0.4,0.15/0", "0.4,0.15/nan", "-0.4,0.15/0.9", "0,0/0.9", "inf,1/0.9", "nan,1/0.9"),
        *("0.4/0.9", "0.4,0.15,0.2/0.9", None, 3, ["negbin"]),
    ],
)
def test_texts_that_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"belief") as caught:
        read_belief(given, levels_of([[2, 1]]), 1)
    assert "\n" not in str(caught.value)


def test_a_release_that_the_belief_calls_impossible() -> None:
    """Without noise a label of shape 0 that somebody has is refused; with noise every release is possible."""
    attribute = make_attribute([[2, 1], [0, 3]])
    nobody = NegativeBinomial((0.5, 0.0), 0.9)
    with pytest.raises(InvalidInput, match="impossible under this belief"):
        find_certainty(attribute, AdditiveChannel((NoNoise(),), 0.5), (0.9,), nobody)
    found = find_certainty(attribute, AdditiveChannel((LaplaceNoise(1.0),), 0.5), (0.9,), nobody)[0]
    assert found.right == near(2)  # he names the first label for everybody
    assert found.named == near(6)
    unused = make_attribute([[2, 0], [3, 0]])
    assert find_certainty(unused, AdditiveChannel((NoNoise(),), 0.5), (0.9,), nobody)[0].right == near(5)
