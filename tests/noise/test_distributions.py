"""The contract of a noise, run on every kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import (
    DiscreteGaussianNoise,
    GaussianNoise,
    GeometricNoise,
    InfiniteNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
    first_value,
)
from tests.risk.measures import cases, oracle

KINDS = [LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise]


@pytest.mark.parametrize("noise", cases.NOISES)
def test_vanish_and_survive_agree_with_mpmath(noise: str) -> None:
    law, threshold, vanish = cases.NOISES[noise]
    for count in range(12):
        ours = float(law.p_zero(count, threshold))
        theirs = vanish(count)
        assert abs(ours - theirs) <= 1e-13 * theirs
        survives = float(law.p_positive(count, threshold))
        assert abs(survives - (1 - theirs)) <= 1e-13 * (1 - theirs)


@pytest.mark.parametrize("noise", cases.NOISES)
def test_one_record_less_agrees_with_mpmath(noise: str) -> None:
    law, threshold, vanish = cases.NOISES[noise]
    for count in range(1, 12):
        ours = float(law.p_pivotal(count, threshold))
        theirs = vanish(count - 1) - vanish(count)
        assert abs(ours - theirs) <= 1e-12 * theirs


def mass_by_mpmath(kind: type[Noise], scale: float, away: int) -> float:
    with mp.workdps(40):
        b, d = mp.mpf(scale), abs(away)
        if kind is GeometricNoise:
            return float((1 - mp.exp(-1 / b)) / (1 + mp.exp(-1 / b)) * mp.exp(-d / b))
        if kind is DiscreteGaussianNoise:
            return float(mp.exp(-(mp.mpf(d) ** 2) / (2 * b**2)) / mp.jtheta(3, 0, mp.exp(-1 / (2 * b**2))))
        if kind is LaplaceNoise:
            if d == 0:
                return float(1 - mp.exp(-1 / (2 * b)))
            return float((mp.exp(-(d - mp.mpf(0.5)) / b) - mp.exp(-(d + mp.mpf(0.5)) / b)) / 2)
        return float(mp.ncdf((mp.mpf(0.5) - d) / b) - mp.ncdf((-mp.mpf(0.5) - d) / b))


@pytest.mark.parametrize("scale", [30.0, 201.0, 1500.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_mass_of_one_value_keeps_its_digits_where_noise_is_wide(kind: type[Noise], scale: float) -> None:
    away = [0, 1, -1, 17, -round(scale), round(4 * scale), round(8 * scale)]
    exact = [mass_by_mpmath(kind, scale, each) for each in away]
    found = kind(scale).mass(np.array(away, dtype=float))
    assert found == pytest.approx(exact, rel=2e-14 if scale > 200 else 1e-10, abs=0)  # a difference at 201 loses more


@pytest.mark.parametrize("kind", KINDS)
def test_the_chance_of_at_most_a_value_is_a_sum_of_masses(kind: type[Noise]) -> None:
    far = np.arange(-8.0, 9.0)
    masses = {away: mass_by_mpmath(kind, 1.3, away) for away in range(-120, 9)}
    exact = [math.fsum(mass for away, mass in masses.items() if away <= most) for most in far]
    assert kind(1.3).cdf(far + 0.5) == pytest.approx(exact, rel=1e-12, abs=0)


@dataclass(frozen=True)
class Logistic(Noise):
    """A noise that the package does not have: all that a new one must bring is ``cdf`` and ``sample``."""

    def cdf(self, x: Any) -> np.ndarray:
        return np.asarray(special.expit(np.asarray(x) / self.scale))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return generator.logistic(0.0, self.scale, shape)


@pytest.mark.parametrize("scale", [0.8, 300.0])
def test_a_new_noise_has_its_masses_from_its_cdf(scale: float) -> None:
    away = np.array([0.0, 1.0, -1.0, 5.0, -40.0])
    exact = math.sinh(0.5 / scale) / (np.cosh(away / scale) + math.cosh(0.5 / scale))
    assert Logistic(scale).mass(away) == pytest.approx(exact, rel=1e-11, abs=0)
    assert Logistic(scale).p_pivotal(np.array([1, 2])) == pytest.approx(exact[:2], rel=1e-11, abs=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.3, 2.0, 1500.0])
def test_past_its_reach_there_is_next_to_no_noise(kind: type[Noise], scale: float) -> None:
    law = kind(scale)
    assert float(law.cdf(-0.5 - law.tail_radius)) < 1e-17
    assert law.tail_radius == 1 or float(law.cdf(0.5 - law.tail_radius)) >= 1e-17


def test_the_smallest_released_value() -> None:
    assert [first_value(threshold) for threshold in (0.5, 1.5, 10.5)] == [1, 2, 11]


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise, DiscreteGaussianNoise])
def test_tails_keep_their_digits(kind: type[Noise]) -> None:
    """Thirty scales out, where 1 - cdf would be 0."""
    make = {LaplaceNoise: oracle.laplace, GaussianNoise: oracle.gaussian}.get(kind)
    scale = 2.0
    with mp.workdps(400):
        if make is None:
            total = mp.nsum(lambda j: mp.exp(-(j**2) / 8), [-mp.inf, mp.inf])
            theirs = mp.fsum(mp.exp(-(mp.mpf(j) ** 2) / 8) for j in range(60, 400)) / total
        else:
            theirs = make(scale)(60)
        ours = float(kind(scale).p_zero(60))
        assert abs(ours - theirs) <= 1e-12 * theirs
        assert ours > 0


@pytest.mark.parametrize("scale", [999.0, 1001.0, 30000.0])
def test_wide_discrete_gaussian_has_no_seam(scale: float) -> None:
    """Past a scale of 1000 the tail is summed by a formula instead of term by term."""
    law = DiscreteGaussianNoise(scale)
    for count in (0, 1, int(scale), int(6 * scale)):
        first = max(1, count)
        terms = np.exp(-0.5 * (np.arange(first, int(first + 12 * scale)) / scale) ** 2)
        tail = math.fsum(terms) / (scale * math.sqrt(2 * math.pi))
        expected = 1 - tail if count == 0 else tail
        assert math.isclose(float(law.p_zero(count)), expected, rel_tol=1e-11)


@pytest.mark.parametrize("scale", [900.0, 1001.0, 1600.0])
@pytest.mark.parametrize("deviations", [3.0, 20.0, 33.0])
def test_far_tail_of_a_wide_discrete_gaussian(scale: float, deviations: float) -> None:
    """Terms relative to the first, so that none underflows: the corrections of the formula count most out there."""
    first = round(deviations * scale)
    terms = np.exp(-(np.arange(0, 10 * scale) * (np.arange(0, 10 * scale) + 2 * first)) / (2 * scale**2))
    with mp.workdps(40):
        total = scale * mp.sqrt(2 * mp.pi)  # Poisson's formula: the next term is exp(-2 pi^2 scale^2)
        expected = mp.exp(-(mp.mpf(first) ** 2) / (2 * mp.mpf(scale) ** 2)) * math.fsum(terms) / total
        ours = mp.mpf(float(DiscreteGaussianNoise(scale).p_zero(first)))
        assert abs(ours - expected) <= 1e-12 * expected


@pytest.mark.parametrize("scale", [0.001, 0.01, 0.0255])
def test_hardly_any_discrete_gaussian_noise_is_none(scale: float) -> None:
    law, counts = DiscreteGaussianNoise(scale), np.array([0, 1, 2, 50])
    assert law.p_zero(counts).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert law.p_positive(counts).tolist() == [0.0, 1.0, 1.0, 1.0]
    assert float(law.p_zero(1)) == 0.0


def test_the_ends_of_noise() -> None:
    """None at all, where every count is what it is; and more than any count, where each vanishes half of the time."""
    counts = np.array([0, 1, 2, 3, 1000])
    assert NoNoise().p_zero(counts, 1.5).tolist() == [1, 1, 0, 0, 0]
    assert NoNoise().p_positive(counts, 1.5).tolist() == [0, 0, 1, 1, 1]
    assert NoNoise().sample(np.random.default_rng(1), (2, 3)).tolist() == [[0.0] * 3] * 2
    assert (NoNoise().scale, InfiniteNoise().scale) == (0.0, math.inf)
    assert InfiniteNoise().p_zero(counts).tolist() == InfiniteNoise().p_positive(counts).tolist() == [0.5] * 5
    assert NoNoise().mass(np.array([-1.0, 0.0, 1.0])).tolist() == [0.0, 1.0, 0.0]
    assert InfiniteNoise().mass(np.array([-1.0, 0.0, 1.0])).tolist() == [0.0, 0.0, 0.0]
    assert NoNoise().cdf(np.array([-1e-9, 0.0, 1e-9])).tolist() == [0.0, 1.0, 1.0]
    for kind in (NoNoise, InfiniteNoise):
        with pytest.raises(TypeError, match="takes 1 positional argument"):
            kind(1.0)  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="cannot be drawn"):
        InfiniteNoise().sample(np.random.default_rng(1), (2,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.01, 0.7, 40.0, 2000.0])
def test_shape_of_a_distribution(kind: type[Noise], scale: float) -> None:
    law = kind(scale)
    between = np.arange(-300, 300) + 0.5
    cdf = law.cdf(between)
    assert ((cdf >= 0) & (cdf <= 1)).all()
    assert (np.diff(cdf) >= 0).all()
    assert np.allclose(cdf + law.cdf(-between), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_follow_the_cdf(kind: type[Noise]) -> None:
    """200,000 draws: the largest distance between the two cdfs is below 4.5 standard errors."""
    law, draws = kind(3.0), 200_000
    sample = law.sample(np.random.default_rng(20), (draws,))
    for x in np.arange(-12, 12) + 0.5:
        p = float(law.cdf(x))
        assert abs((sample <= x).mean() - p) < 4.5 * math.sqrt(p * (1 - p) / draws)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_scale_is_checked(kind: type[Noise], scale: float) -> None:
    with pytest.raises(InvalidInput, match="scale"):
        kind(scale)


@pytest.mark.parametrize("scale", [9e15, 2e16, 1e19, 1e300])
def test_geometric_draws_of_any_scale(scale: float) -> None:
    """Draws cut off at 2^63 would have the difference 0. |N| over such a scale is exponential, mean and deviation 1."""
    drawn = GeometricNoise(scale).sample(np.random.default_rng(7), (4000,)) / scale
    assert np.abs(drawn).mean() == pytest.approx(1.0, abs=5 / 4000**0.5)
    assert (drawn > 0).mean() == pytest.approx(0.5, abs=2.5 / 4000**0.5)


@pytest.mark.parametrize("scale", [900.0, 1100.0, 1e9, 1e300])
def test_discrete_gaussian_draws_of_any_scale(scale: float) -> None:
    """Whole numbers with the deviation of the scale, however wide; the largest arrays would not fit into memory."""
    drawn = DiscreteGaussianNoise(scale).sample(np.random.default_rng(7), (4000,))
    assert (drawn == np.rint(drawn)).all()
    assert ((drawn / scale) ** 2).mean() == pytest.approx(1.0, abs=5 * (2 / 4000) ** 0.5)
    assert (drawn > 0).mean() == pytest.approx(0.5, abs=2.5 / 4000**0.5)
