"""The pieces of the Poisson mixtures that no law shows by itself; test_sizes holds the mixtures to their laws."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit, gammaincc
from scipy.stats import gamma

from cellrisk.risk.measures.mixtures import (
    _grid,
    _log_beyond,
    _upper_fraction,
    _upper_tail,
    gamma_mixture,
    gamma_size_biased,
    legendre_rule,
)


def test_the_upper_tail_of_the_size_biased_density_agrees_with_mpmath() -> None:
    """t so large that the incomplete Gamma function underflows: shape 2.5, mean 5000."""
    shape, scale = 2.5, 2000.0
    for t in (100.0, 3000.0, 8000.0, 60000.0):
        with mpmath.workdps(40):
            x = mpmath.mpf(t) * (1 + 1 / mpmath.mpf(scale))
            expected = t - shape * mpmath.log1p(scale) + mpmath.log(mpmath.gammainc(shape, x, regularized=True))
        actual = _log_beyond(shape, scale, np.array([t * (1 + 1 / scale)]))
        assert float(actual[0]) == pytest.approx(float(expected), abs=1e-11)


@pytest.mark.parametrize("shape", [1e-8, 0.5, 1.0, 40.0, 399.0])
def test_the_continued_fraction_agrees_with_the_incomplete_gamma_function(shape: float) -> None:
    x = shape + 3 * math.sqrt(shape) + np.array([3.0, 10.0, 200.0])
    for value, actual in zip(x, _upper_fraction(shape, x), strict=True):
        with mpmath.workdps(40):
            point = mpmath.mpf(value)
            expected = mpmath.gammainc(shape, point) / (point**shape * mpmath.exp(-point))
        assert float(actual) == pytest.approx(float(expected), rel=1e-13, abs=0)


def test_the_integrated_tail_of_a_large_gamma_law() -> None:
    shape = 1000.0
    excess = np.array([-200.0, -30.0, 0.0, 30.0, 100.0])
    actual = _upper_tail(shape, excess, 9.5 * math.sqrt(shape))
    np.testing.assert_allclose(actual, gammaincc(shape, shape + excess), atol=1e-13)
    short = _upper_tail(shape, excess, 120.0)
    np.testing.assert_allclose(short, gammaincc(shape, shape + excess) - gammaincc(shape, shape + 120.0), atol=1e-13)


def test_rules_are_kept_and_cannot_be_changed() -> None:
    assert legendre_rule(5) is legendre_rule(5)
    with pytest.raises(ValueError, match="read-only"):
        legendre_rule(5)[0][0] = 0.0


# nodes


def enough(shape: float, mean: float) -> float:
    """What a node must add to be kept: 1e-18 of the probability that a cell is not empty."""
    return math.log(1e-18) + math.log(-math.expm1(-shape * math.log1p(mean / shape)))


@pytest.mark.parametrize(
    ("shape", "mean"), [(1e-8, 1e-7), (0.3, 3.0), (4.0, 0.02), (4.0, 70.0), (80.0, 300.0), (400.0, 3.0)]
)
def test_nodes_are_those_of_an_endless_grid_that_add_enough(shape: float, mean: float) -> None:
    """x = softplus(y)^2 at every 0.3 of y, up to a shape of 400."""
    y = -22.5 + 0.3 * np.arange(-100, 1000)
    root = np.logaddexp(0.0, y)
    rates = root**2 * (mean / (shape + mean))
    with np.errstate(under="ignore"):
        logs = gamma.logpdf(rates, shape, scale=mean / shape) + np.log(0.3 * rates * 2 * expit(y) / root)
    kept = logs + np.minimum(0.0, np.log(rates)) > enough(shape, mean)
    found, weights = gamma_mixture(shape, mean)
    assert len(found) == np.count_nonzero(kept)
    assert found == pytest.approx(rates[kept], rel=1e-11, abs=0)
    assert weights == pytest.approx(np.exp(logs[kept]), rel=1e-9, abs=0)


@pytest.mark.parametrize("mean", [0.02, 3.0, 700.0, 40_000.0])
@pytest.mark.parametrize("shape", [400.1, 900.0, 50_000.0])
def test_large_shapes_have_nodes_evenly_round_the_square_root_of_their_mean(shape: float, mean: float) -> None:
    root = math.sqrt(shape + mean)
    offset = 0.3 * np.arange(-math.floor(0.9 * root / 0.3), 3000)
    rates = mean * (1 + offset / root) ** 2
    logs = gamma.logpdf(rates, shape, scale=mean / shape) + np.log(0.3 * 2 * rates / (root + offset))
    kept = logs + np.minimum(0.0, np.log(rates)) > enough(shape, mean)
    found, weights = gamma_mixture(shape, mean)
    assert len(found) == np.count_nonzero(kept)
    assert found == pytest.approx(rates[kept], rel=1e-11, abs=0)
    assert weights == pytest.approx(np.exp(logs[kept]), rel=1e-9, abs=0)


@pytest.mark.parametrize(("shape", "mean"), [(1e-8, 1e-7), (0.3, 500.0), (4.0, 0.02), (80.0, 300.0), (200.0, 8.0)])
def test_nodes_with_a_record_aside_are_those_that_add_enough(shape: float, mean: float) -> None:
    shrink = mean / (shape + mean)
    found, weights = gamma_size_biased(shape, mean)
    total = -math.expm1(-shape * math.log1p(mean / shape))
    assert float(weights.sum()) == pytest.approx(total, rel=1e-13, abs=0)
    y = np.log(np.expm1(np.sqrt(found / shrink)))
    assert np.diff(y) == pytest.approx(0.3, abs=1e-6)
    places = [0, len(y) // 3, len(y) - 1]
    logs = []
    for each in (y[0] - 0.3, *y[places], y[-1] + 0.3):
        with mpmath.workdps(30):
            root = mpmath.log1p(mpmath.exp(each))
            beyond = mpmath.gammainc(shape, root**2, regularized=True)
            slope = 2 * root / (1 + mpmath.exp(-each))
            log = root**2 * shrink - shape * mpmath.log1p(mean / shape) + mpmath.log(beyond * slope * 0.3 * shrink)
            logs.append(float(log))
    kept = np.array(logs) > enough(shape, mean)
    assert kept.tolist() == [False, True, True, True, False]
    assert weights[places] == pytest.approx(np.exp(logs[1:-1]), rel=1e-9, abs=0)


@pytest.mark.parametrize(("lowest", "start"), [(0.0, -22.5), (1.0, -22.5), (1.44, 0.2), (100.0, 9.0)])
def test_grids_run_from_the_lowest_to_what_a_gamma_law_can_reach(lowest: float, start: float) -> None:
    """Past x = shape + sqrt(90 shape) + 45 a law has less than exp(-45); the square of softplus(y) is above y's."""
    y, x = _grid(40.0, 0.25, lowest)
    assert y[0] == pytest.approx(start, rel=1e-12, abs=0)
    assert np.diff(y) == pytest.approx(0.3, abs=1e-12)
    highest = math.sqrt((40.0 + 60.0 + 45.0) * 1.25)
    assert highest <= y[-1] < highest + 0.3 + 1e-9
    assert x == pytest.approx(np.log1p(np.exp(y)) ** 2, rel=1e-9, abs=0)
