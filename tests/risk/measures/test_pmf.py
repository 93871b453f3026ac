"""Poisson and negative binomial probabilities against mpmath at 60 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from cellrisk.risk.measures.pmf import (
    negative_binomial_log_pmf,
    poisson_log_pmf,
    stirling_error,
    window,
)


def mp_poisson(m: int, mean: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        rate = mpmath.mpf(mean)
        return mpmath.exp(m * mpmath.log(rate) - rate - mpmath.loggamma(m + 1))


def mp_negative_binomial(m: int, shape: float, mean: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        a, mu = mpmath.mpf(shape), mpmath.mpf(mean)
        log = mpmath.loggamma(a + m) - mpmath.loggamma(a) - mpmath.loggamma(m + 1)
        return mpmath.exp(log + a * mpmath.log(a / (a + mu)) + m * mpmath.log(mu / (a + mu)))


def near_and_far(mean: float) -> list[int]:
    """Counts from the lower tail, through the mode, to the upper tail, where the probability is above e^-600."""
    width = np.sqrt(mean + 1)
    centre = [mean + step * width for step in (-30, -10, -3, -1, 0, 0.3, 1, 3, 10, 30)]
    return sorted({0, 1, 2, *(int(value) for value in centre if value >= 0)})


@pytest.mark.parametrize("mean", [1e-12, 1e-3, 0.7, 1.0, 9.99, 10.0, 47.3, 1e3, 123456.789, 1e7, 3.3e9])
def test_poisson_agrees_with_mpmath(mean: float) -> None:
    for m in near_and_far(mean):
        expected = mp_poisson(m, mean)
        if expected > 1e-280:
            assert abs(mpmath.mpf(float(np.exp(poisson_log_pmf(m, mean)))) / expected - 1) < 2e-13, (m, mean)


@pytest.mark.parametrize("shape", [1e-9, 1e-4, 0.3, 1.0, 8.5, 250.0, 1e6, 1e12])
@pytest.mark.parametrize("mean", [1e-9, 0.01, 1.0, 33.3, 1e4, 1e7])
def test_negative_binomial_agrees_with_mpmath(shape: float, mean: float) -> None:
    spread = np.sqrt(mean + mean * mean / shape) if shape > 1 else mean
    counts = {0, 1, 2, 10, *(int(max(0.0, mean + step * spread)) for step in (-9, -3, -1, 0, 0.5, 1, 3, 9))}
    for m in sorted(counts):
        expected = mp_negative_binomial(m, shape, mean)
        if expected > 1e-280:
            actual = mpmath.mpf(float(np.exp(negative_binomial_log_pmf(m, shape, mean))))
            assert abs(actual / expected - 1) < 2e-13, (m, shape, mean)


@pytest.mark.parametrize("x", [1e-9, 1e-3, 0.5, 1.0, 3.7, 9.999999, 10.0, 15.0, 1e4, 1e12])
def test_stirling_error_agrees_with_mpmath(x: float) -> None:
    with mpmath.workdps(60):
        value = mpmath.mpf(x)
        stirling = mpmath.log(2 * mpmath.pi * value) / 2 + value * (mpmath.log(value) - 1)
        expected = float(mpmath.loggamma(value + 1) - stirling)
    assert float(stirling_error(x)) == pytest.approx(expected, abs=2e-14 if x < 10 else 5e-17)


def test_edges() -> None:
    assert np.exp(poisson_log_pmf([0, 1, 5], 0.0)).tolist() == [1.0, 0.0, 0.0]
    assert np.exp(negative_binomial_log_pmf([0, 1, 5], 2.0, 0.0)).tolist() == [1.0, 0.0, 0.0]
    assert poisson_log_pmf(np.zeros(0, np.int64), 1.0).shape == (0,)
    assert float(poisson_log_pmf(0, 1e4)) == -1e4
    assert float(negative_binomial_log_pmf(10**7, 1e-300, 1.0)) < -690


@pytest.mark.parametrize("shape", [0.005, 0.4, 30.0, 1e5, np.inf])
@pytest.mark.parametrize("mean", [0.01, 3.0, 300.0, 1e6])
def test_windows_leave_out_next_to_nothing(mean: float, shape: float) -> None:
    """By scipy's own tails, which share no code: below e^-42 on either side."""
    first, last = (int(end) for end in window(mean, shape))
    law = stats.poisson(mean) if np.isinf(shape) else stats.nbinom(shape, shape / (shape + mean))
    assert law.sf(last) < 6e-19
    assert law.cdf(first - 1) < 6e-19
    assert first == 0 or law.cdf(int(mean - 0.5 * (mean - first))) > 1e-60  # and not much more than is needed
