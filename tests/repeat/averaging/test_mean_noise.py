"""The mean of noises: against mpmath, enumeration and draws, and the contract of a noise."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.repeat import averaging as sums
from cellrisk.repeat.averaging import MeanNoise
from tests.refusals import refused
from tests.repeat.averaging import oracle

KINDS = (LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise)
ACCURACY = 1e-9
"""As `MeanNoise` states; a discrete Gaussian is exact to 1e-15."""


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("x", [0.2, 3.0, 40.0])
def test_few_laplace_variables_agree_with_mpmath(number: int, x: float) -> None:
    with mp.workdps(30):
        theirs = oracle.few_laplace_tail(number, x)
        assert abs(float(sums.laplace_sum_tail(np.array([x]), number)[0]) - theirs) <= ACCURACY * theirs


@pytest.mark.parametrize("number", [100, 1000, 10_000])
@pytest.mark.parametrize("deviations", [0.3, 5.0, 30.0])
def test_many_laplace_variables_agree_with_mpmath(number: int, deviations: float) -> None:
    """Thirty deviations out the tail is 1e-194 at 10,000 variables."""
    x = deviations * math.sqrt(2 * number)
    with mp.workdps(40):
        theirs = oracle.many_laplace_tail(number, x)
        assert abs(float(sums.laplace_sum_tail(np.array([x]), number)[0]) - theirs) <= ACCURACY * theirs


@pytest.mark.parametrize(
    ("scale", "number", "n"),
    [(1.0, 100, 68), (1.0, 100, 408), (1.0, 10_000, 679), (1.0, 10_000, 4071), (20.0, 100, 8485)],
)
def test_many_geometric_variables_agree_with_mpmath(scale: float, number: int, n: int) -> None:
    """Five and thirty deviations out."""
    with mp.workdps(40):
        theirs = oracle.many_geometric_tail(scale, number, n)
        assert abs(float(sums.geometric_sum_tail(np.array([float(n)]), number, scale)[0]) - theirs) <= ACCURACY * theirs


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "chance", "scale", "reach"),
    [
        (GeometricNoise, oracle.geometric, 0.01, 2),
        (GeometricNoise, oracle.geometric, 0.4, 20),
        (GeometricNoise, oracle.geometric, 0.5, 24),
        (DiscreteGaussianNoise, oracle.discrete_gaussian, 0.05, 4),
        (DiscreteGaussianNoise, oracle.discrete_gaussian, 0.4, 8),
        (DiscreteGaussianNoise, oracle.discrete_gaussian, 1.3, 13),
        (DiscreteGaussianNoise, oracle.discrete_gaussian, 2.3, 22),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_whole_numbers_agree_with_enumeration(
    kind: type[Noise], chance: object, scale: float, reach: int, number: int
) -> None:
    """Both sides of every threshold, ties among them; the enumeration leaves out less than 1e-20."""
    law = MeanNoise(scale, kind, number)
    with mp.workdps(40):
        sums_of = oracle.enumerate_sums(chance(scale), reach, number)  # type: ignore[operator]
        for count in range(5):
            for threshold in (0.5, 1.5):
                below = mp.fsum(p for n, p in sums_of.items() if count + mp.mpf(n) / number < threshold)
                above = mp.fsum(p for n, p in sums_of.items() if count + mp.mpf(n) / number >= threshold)
                for ours, theirs in ((law.p_zero(count, threshold), below), (law.p_positive(count, threshold), above)):
                    assert abs(float(ours) - theirs) <= ACCURACY * theirs + mp.mpf(10) ** -15


def test_a_tie_is_not_below_the_threshold() -> None:
    """Two whole-number noises that add up to 1 lift an empty count to one half on average."""
    a = math.exp(-1.0)
    tie = 2.0 * ((1 - a) / (1 + a)) ** 2 * sum(a ** (abs(j) + abs(1 - j)) for j in range(1, 60))
    law = MeanNoise(1.0, GeometricNoise, 2)
    assert math.isclose(float(law.p_positive(0)) - float(law.p_zero(1)), tie, rel_tol=1e-12)
    odd = MeanNoise(1.0, GeometricNoise, 3)
    assert math.isclose(float(odd.p_positive(0)), float(odd.p_zero(1)), rel_tol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
@pytest.mark.parametrize("number", [1, 4, 9])
def test_gaussians_average_to_a_gaussian(scale: float, number: int) -> None:
    law, one = MeanNoise(scale, GaussianNoise, number), GaussianNoise(scale / math.sqrt(number))
    counts = np.arange(30)
    assert np.allclose(law.p_zero(counts), one.p_zero(counts), rtol=1e-12, atol=0)
    assert np.allclose(law.p_positive(counts), one.p_positive(counts), rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.01, 0.7, 40.0, 2000.0])
def test_one_release_is_the_noise_itself(kind: type[Noise], scale: float) -> None:
    law, one, counts = MeanNoise(scale, kind, 1), kind(scale), np.arange(40)
    assert np.allclose(law.p_zero(counts), one.p_zero(counts), rtol=1e-12, atol=1e-15)
    assert np.allclose(law.p_positive(counts), one.p_positive(counts), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.001, 0.7, 2000.0])
@pytest.mark.parametrize("number", [2, 3, 10_000])
def test_shape_of_a_distribution(kind: type[Noise], scale: float, number: int) -> None:
    law = MeanNoise(scale, kind, number)
    between = np.arange(-300, 300) + 0.5
    cdf, below = law.cdf(between), law.p_zero(0, between)
    assert ((cdf >= 0) & (cdf <= 1)).all()
    assert (np.diff(cdf) >= 0).all()
    assert np.allclose(below + law.cdf(-between), 1.0, rtol=0, atol=1e-12)
    assert np.allclose(law.p_zero(3) + law.p_positive(3), 1.0, rtol=0, atol=1e-12)
    if kind.is_whole:
        assert (cdf >= below).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [2, 7])
def test_samples_follow_the_cdf(kind: type[Noise], number: int) -> None:
    """200,000 draws: the largest distance between the two cdfs is below 4.5 standard errors."""
    law, draws = MeanNoise(3.0, kind, number), 200_000
    sample = law.sample(np.random.default_rng(20), (draws,))
    for x in np.arange(-5, 5) + 0.5:
        p = float(law.cdf(x))
        assert abs((sample <= x).mean() - p) < 4.5 * math.sqrt(p * (1 - p) / draws)
    assert math.isclose(sample.std(), law.deviation, rel_tol=0.01)


def test_means_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scale of noise"):
        MeanNoise(-1.0, LaplaceNoise, 2)
    with refused("range"):
        MeanNoise(1.0, LaplaceNoise, 0)
    with refused("range", "got 10,001"):
        MeanNoise(1.0, LaplaceNoise, 10_001)
