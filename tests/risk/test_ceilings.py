"""The ceiling of one release: enumeration, integrals in 30 digits, closed forms, draws, limits and figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import (
    DiscreteGaussianNoise,
    GaussianNoise,
    GeometricNoise,
    InfiniteNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
)
from cellrisk.risk.ceilings import MOST_LABELS, WIDE, find_success, odds_bound, total_variation
from cellrisk.show.wording.ceiling import say_most
from tests.examples import examples
from tests.near import near
from tests.risk.ceiling_oracle import (
    discrete_gaussian,
    enumerate_success,
    geometric,
    integrate_gaussian,
    integrate_laplace,
    rounded_gaussian,
    rounded_laplace,
)

PRIORS = {"two": (1 / 2,) * 2, "three": (1 / 3,) * 3, "four": (1 / 4,) * 4}


def of(priors: tuple[float, ...], noise: Noise) -> float:
    return find_success(noise, len(priors))


@pytest.mark.parametrize("priors", PRIORS.values(), ids=PRIORS)
class TestEnumeration:
    """Every released vector of whole numbers that has any probability to speak of."""

    def most(self, priors: tuple[float, ...]) -> int:
        return 40 if len(priors) < 4 else 16

    @pytest.mark.parametrize("epsilon", [1.3, 2.5])
    def test_geometric(self, priors: tuple[float, ...], epsilon: float) -> None:
        epsilon = epsilon if len(priors) < 4 else 2 * epsilon
        found = enumerate_success(geometric(epsilon), priors, self.most(priors))
        assert of(priors, GeometricNoise(1 / epsilon)) == pytest.approx(found, abs=1e-12)

    @pytest.mark.parametrize("sigma", [0.2, 0.99, 1.0, 2.3])
    def test_discrete_gaussian(self, priors: tuple[float, ...], sigma: float) -> None:
        found = enumerate_success(discrete_gaussian(sigma), priors, min(self.most(priors), 20))
        assert of(priors, DiscreteGaussianNoise(sigma)) == pytest.approx(found, abs=1e-11)


@pytest.mark.parametrize("priors", [(1 / 2,) * 2, (1 / 3,) * 3, (0.1,) * 10], ids=str)
class TestIntegrals:
    """Noise before rounding, and closed forms, in 30 digits."""

    @pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.7, 3.0, 20.0])
    def test_laplace(self, priors: tuple[float, ...], epsilon: float) -> None:
        assert of(priors, LaplaceNoise(1 / epsilon)) == pytest.approx(
            integrate_laplace(epsilon, priors), rel=2e-13, abs=0
        )

    @pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
    def test_gaussian(self, priors: tuple[float, ...], sigma: float) -> None:
        assert of(priors, GaussianNoise(sigma)) == pytest.approx(integrate_gaussian(sigma, priors), rel=2e-13, abs=0)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 4.0, 60.0, 1000.0])
def test_two_even_labels_have_closed_forms(epsilon: float) -> None:
    even = 2
    geometric_form = 1 / (1 + math.exp(-epsilon))
    laplace_form = 1 - math.exp(-epsilon) * (1 + epsilon / 2) / 2
    gaussian_form = 0.5 * math.erfc(-0.5 * epsilon)
    assert find_success(GeometricNoise(1 / epsilon), even) == pytest.approx(geometric_form, rel=1e-14, abs=0)
    assert find_success(LaplaceNoise(1 / epsilon), even) == pytest.approx(laplace_form, rel=1e-14, abs=0)
    assert find_success(GaussianNoise(1 / epsilon), even) == pytest.approx(gaussian_form, rel=1e-14, abs=0)


@pytest.mark.parametrize("labels", [100, 3000])
def test_many_labels(labels: int) -> None:
    """Of many even labels: one integral of one power, and for geometric noise a sum."""
    even = labels
    a = math.exp(-1.0)
    none = (1 / (1 + a)) ** labels
    assert find_success(GeometricNoise(1.0), even) == pytest.approx(
        (none * a + (1 - none) / a) / labels, rel=1e-12, abs=0
    )
    w = np.linspace(math.exp(-1.0), 1.0, 200_001)
    curve = -np.expm1(labels * np.log1p(-w / 2)) / w**3
    simpson = (w[1] - w[0]) / 3 * (curve[0] + curve[-1] + 4 * curve[1:-1:2].sum() + 2 * curve[2:-1:2].sum())
    assert find_success(LaplaceNoise(1.0), even) == pytest.approx(a / labels * (1 + 2 * simpson), rel=1e-11, abs=0)
    import mpmath as mp

    found = mp.quad(lambda z: mp.npdf(z) * mp.ncdf(z + 1) ** (labels - 1), [-9, -4, -2, 0, 1, 2, 3, 4, 5, 7, 10])
    # The points along a Gaussian have one distance, whatever the number of labels: 4e-14 is lost at 3,000.
    assert find_success(GaussianNoise(1.0), even) == pytest.approx(float(found), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("priors", [(1 / 2,) * 2, (1 / 4,) * 4], ids=["two", "four"])
def test_whole_numbers_of_wide_noise_are_like_continuous_ones(priors: tuple[float, ...]) -> None:
    """Rounding costs an attacker 1/sigma^3 or so, up to the width from which it is not looked at."""
    for sigma in (500.0, 0.99 * WIDE):
        whole = of(priors, DiscreteGaussianNoise(sigma))
        assert of(priors, GaussianNoise(sigma)) == pytest.approx(whole, abs=0.1 / sigma**3 + 1e-13)
    assert of(priors, DiscreteGaussianNoise(1.01 * WIDE)) == of(priors, GaussianNoise(1.01 * WIDE))


NAMED = [
    cr.Laplace(1.0),
    cr.Geometric(1.0),
    cr.Gaussian(0.5, delta=1e-5),
    cr.ProbabilisticGaussian(1.0, delta=1e-5),
    cr.AnalyticGaussian(1.0, delta=1e-5),
    cr.DiscreteGaussian(1.0, delta=1e-5),
]


@pytest.mark.parametrize("mechanism", NAMED, ids=lambda mechanism: mechanism.name)
def test_every_mechanism_through_its_noise(mechanism: cr.Mechanism) -> None:
    found = cr.ceiling(mechanism, labels=3)
    assert found.even_two == near(find_success(mechanism.noise, 2))
    assert found.even == near(find_success(mechanism.noise, 3))
    assert found.mechanism == mechanism
    replaced = type(mechanism)(mechanism.epsilon, delta=mechanism.delta, neighbours="replace")
    assert cr.ceiling(replaced, labels=3).even == find_success(replaced.noise, 3)
    assert cr.ceiling(replaced).even < cr.ceiling(mechanism).even


def test_replacing_at_twice_epsilon_is_adding_at_epsilon() -> None:
    for name in ("laplace", "geometric"):
        one = cr.ceiling(name, epsilon=0.7, labels=4)
        two = cr.ceiling(name, epsilon=1.4, neighbours="replace", labels=4)
        assert one.even == near(two.even)
        assert one.odds == near(two.odds)


class TestFigures:
    """Numbers that were worked out elsewhere, to all their digits."""

    @pytest.mark.parametrize(
        ("epsilon", "geometric", "laplace"),
        [
            (0.1, 0.524979, 0.524960),
            (0.5, 0.622459, 0.620918),
            (1.0, 0.731059, 0.724090),
            (3.0, 0.952574, 0.937766),
        ],
    )
    def test_even(self, epsilon: float, geometric: float, laplace: float) -> None:
        assert round(cr.ceiling(epsilon=epsilon).even_two, 6) == geometric
        assert round(cr.ceiling("laplace", epsilon=epsilon).even_two, 6) == laplace

    def test_gaussian(self) -> None:
        even = 2
        assert round(find_success(GaussianNoise(1.0), even), 6) == 0.760250
        assert round(find_success(DiscreteGaussianNoise(1.0), even), 6) == 0.750898


class TestAdvantage:
    """Total variation of one count with and without 1."""

    @pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
    def test_is_half_the_sum_of_differences(self, scale: float) -> None:
        values = range(-200, 202)
        cases = [
            (GeometricNoise(scale), geometric(1 / scale)),
            (LaplaceNoise(scale), rounded_laplace(1 / scale)),
            (GaussianNoise(scale), rounded_gaussian(scale)),
            (DiscreteGaussianNoise(scale), discrete_gaussian(scale)),
        ]
        for noise, pmf in cases:
            apart = math.fsum(float(abs(pmf(j) - pmf(j - 1))) for j in values) / 2
            assert total_variation(noise) == pytest.approx(apart, abs=1e-12)
            assert total_variation(noise) == pytest.approx(float(pmf(0)), abs=1e-12)

    def test_a_record_elsewhere_moves_two_counts(self) -> None:
        mechanism = cr.Laplace(2.0, neighbours="replace")
        assert total_variation(mechanism) == near(2 * cr.ceiling(mechanism).even_two - 1)
        assert total_variation(mechanism) > total_variation(mechanism.noise)
        assert cr.ceiling(mechanism).advantage == total_variation(mechanism)

    def test_odds(self) -> None:
        assert odds_bound(cr.Geometric(1.5)) == near(math.exp(3.0))
        assert odds_bound(cr.Laplace(1.5, neighbours="replace")) == near(math.exp(1.5))
        assert odds_bound(cr.AnalyticGaussian(1.0, delta=1e-5)) is None
        assert odds_bound(cr.Geometric(1000.0)) == math.inf
        assert cr.ceiling(epsilon=1000.0).to_dict()["odds"] is None


def test_without_noise_and_with_noise_without_end() -> None:
    assert find_success(NoNoise(), 5) == 1.0
    assert find_success(InfiniteNoise(), 5) == 0.2


@pytest.mark.parametrize("name", ["laplace", "geometric", "gaussian", "discrete-gaussian"])
def test_both_ends(name: str) -> None:
    """A small epsilon adds a share of epsilon to an even prior: E[max] of R = 1 + epsilon S. A large one tells all."""
    kinds = {"laplace": LaplaceNoise, "geometric": GeometricNoise}
    kinds |= {"gaussian": GaussianNoise, "discrete-gaussian": DiscreteGaussianNoise}
    small = {"laplace": 0.5, "geometric": 0.5, "gaussian": 1 / math.sqrt(math.pi), "discrete-gaussian": None}
    for epsilon in (1e-6, 1e-5, 1e-4):
        noise = kinds[name](1 / epsilon)
        half = small[name] or 1 / math.sqrt(math.pi)
        assert find_success(noise, 2) == pytest.approx(0.5 + epsilon * half / 2, abs=epsilon**2 + 2e-12)
    for epsilon in (1e2, 1e3):
        noise = kinds[name](1 / epsilon)
        assert find_success(noise, 1000) == near(1.0)


class TestWords:
    def test_headline(self) -> None:
        found = cr.ceiling("laplace", epsilon=1.0)
        assert found.headline == (
            "Having a person's record in this release, instead of leaving it out, raises anybody's chance of naming "
            "that person's value by at most 39.4 percentage points. Worst case for one record: an attacker who already "
            "knows every other record, and finds two values equally likely, is right at most 72.5% of the time (coin "
            "toss: 50%)."
        )
        assert repr(found) == found.headline
        assert cr.ceiling(epsilon=1.0, labels=5).headline == cr.ceiling(epsilon=1.0).headline
        assert "0.445497" in str(cr.ceiling(epsilon=1.0, labels=5))
        assert cr.ceiling(epsilon=1.0).headline.endswith("right at most 73.2% of the time (coin toss: 50%).")  # 73.106
        replaced = cr.ceiling(epsilon=1.0, neighbours="replace")
        assert "instead of anybody else's record, raises" in replaced.headline

    @pytest.mark.parametrize(
        ("share", "said"),
        [
            (0.731059, "73.2"),
            (0.73, "73"),
            (0.730000001, "73.1"),
            (0.1 + 0.2, "30"),
            (0.505, "50.5"),
            (0.50000025, "50.1"),
            (0.999, "99.9"),
            (0.99999, "100"),
            (1.0, "100"),
            (0.0, "0"),
            (0.0004, "0.1"),
        ],
    )
    def test_bounds_are_rounded_up(self, share: float, said: str) -> None:
        assert say_most(share) == said
        assert float(said) >= 100 * share - 1e-9


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        (1, "labels must be a whole number from 2 to 10,000,000; got 1"),
        (MOST_LABELS + 1, "labels must be a whole number from 2 to 10,000,000; got 10,000,001"),
        (2.0, "labels must be a whole number; got float"),
    ],
)
def test_refusals(labels: float, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        cr.ceiling(epsilon=1.0, labels=labels)  # type: ignore[arg-type]


# At labels, epsilons and noises drawn at random

ROOM = 1e-11

numbers = st.integers(2, 300)
epsilons = st.floats(-6.0, 3.0).map(lambda power: 10.0**power)
kinds = st.sampled_from([LaplaceNoise, GeometricNoise, GaussianNoise, DiscreteGaussianNoise])


@settings(max_examples=examples(150))
@given(numbers, epsilons, kinds)
def test_between_the_prior_and_what_odds_allow(labels: int, epsilon: float, kind: type[Noise]) -> None:
    found = find_success(kind(1 / epsilon), labels)
    best = 1 / labels
    assert best - ROOM <= found <= 1
    if kind in (LaplaceNoise, GeometricNoise):
        assert found <= best / (best + (1 - best) * math.exp(-2 * epsilon)) + ROOM


@settings(max_examples=examples(150))
@given(numbers, epsilons, st.floats(1.0, 10.0), kinds)
def test_more_epsilon_helps(labels: int, epsilon: float, factor: float, kind: type[Noise]) -> None:
    found = find_success(kind(1 / epsilon), labels)
    assert found <= find_success(kind(1 / (epsilon * factor)), labels) + ROOM


@settings(max_examples=examples(100))
@given(epsilons, kinds)
def test_two_labels_gain_at_most_the_total_variation(epsilon: float, kind: type[Noise]) -> None:
    """C = max over tests of (P(A) + 1 - Q(A))/2, and two counts differ by at most twice what one does."""
    noise = kind(1 / epsilon)
    assert find_success(noise, 2) <= 0.5 + 0.5 * min(2 * total_variation(noise), 1.0) + ROOM


@settings(max_examples=examples(60))
@given(st.integers(2, 400), st.floats(-3.0, 2.0).map(lambda power: 10.0**power), kinds)
def test_more_labels_are_harder_to_tell_apart(labels: int, epsilon: float, kind: type[Noise]) -> None:
    found = [find_success(kind(1 / epsilon), count) for count in (labels, labels + 1)]
    assert found[1] <= found[0] + ROOM
    assert np.all(np.array(found) >= 1 / (labels + 1) - ROOM)
