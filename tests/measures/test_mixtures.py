"""The pieces of the Poisson mixtures that no law shows by itself; test_sizes holds the mixtures to their laws."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import gammaincc

from cellrisk.risk.measures.mixtures import _log_beyond, _upper_fraction, _upper_tail, legendre_rule


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


def test_rules_are_kept_and_cannot_be_changed() -> None:
    assert legendre_rule(5) is legendre_rule(5)
    with pytest.raises(ValueError, match="read-only"):
        legendre_rule(5)[0][0] = 0.0
