"""Both attacks under every mechanism against the enumeration of released vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import MECHANISMS, mechanism
from cellrisk.risk.attacks import GUESSES, Plurality, Proportional
from cellrisk.risk.attacks.guesses import inverse_rule
from cellrisk.risk.measures import Measure
from cellrisk.system.arrays import Floats
from tests.risk.attacks import oracle

CELLS = [(1, 0), (6, 0), (1, 1), (5, 2), (4, 0, 0), (3, 1, 0), (2, 2, 1), (6, 3, 1)]
FOUR_LEVELS = [(3, 0, 0, 0), (2, 1, 0, 0), (6, 2, 1, 1)]
KINDS: list[type[Noise]] = [LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise]


def risk_of(attack: Measure, cell: tuple[int, ...], noise: Noise, threshold: float = 0.5) -> float:
    """The package's risk of one cell."""
    profiles = Profiles.from_cells([cell], n_levels=len(cell))
    return float(attack.average(profiles, AdditiveChannel((noise,), threshold), ("tight",))["tight", "uniform"][0])


def noise_of(name: str, epsilon: float) -> Noise:
    return mechanism(name, epsilon=epsilon, delta=None if MECHANISMS[name].pure else 0.05).noise


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize("epsilon", [0.9, 0.4])
@pytest.mark.parametrize("name", MECHANISMS)
def test_agrees_with_enumeration(name: str, epsilon: float, threshold: float) -> None:
    """To 1e-12, where 1e-10 is promised."""
    noise = noise_of(name, epsilon)
    for cell in CELLS:
        theirs = oracle.enumerate_attacks(cell, noise, threshold)
        for attack, kind in GUESSES.items():
            assert risk_of(kind(), cell, noise, threshold) == pytest.approx(theirs[attack], rel=0, abs=1e-12), cell


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize("kind", KINDS)
def test_four_levels_agree_with_enumeration(kind: type[Noise], threshold: float) -> None:
    """To 1e-12; narrow noise, so that the released vectors of four labels stay countable."""
    for scale in (0.2, 0.7):
        for cell in FOUR_LEVELS:
            theirs = oracle.enumerate_attacks(cell, kind(scale), threshold)
            for attack, measure in GUESSES.items():
                ours = risk_of(measure(), cell, kind(scale), threshold)
                assert ours == pytest.approx(theirs[attack], rel=0, abs=1e-12), (attack, cell)


class LogisticNoise(Noise):
    """A noise that the attacks know nothing of but its cdf."""

    def cdf(self, x: Floats) -> Floats:
        return np.asarray(special.expit(np.asarray(x) / self.scale))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.logistic(0.0, self.scale, shape)


@pytest.mark.parametrize("kind", [*KINDS, LogisticNoise])
@pytest.mark.parametrize("n_levels", [2, 3, *(pytest.param(each, marks=pytest.mark.slow) for each in (9, 50))])
@pytest.mark.parametrize("attack", [Plurality(), Proportional()])
def test_equal_counts_share_what_is_not_all_zero(attack: Measure, n_levels: int, kind: type[Noise]) -> None:
    """By symmetry each of K equal counts wins with probability (1 - q^K)/K, at any scale and count; to 1e-12."""
    scales = [1e-3, 0.3, 40.0, 70.0, 230.0, 1500.0] + ([1e5] if kind is not LogisticNoise else [])
    for scale in scales:
        for count in (1, 30, 1_000_000):
            for threshold in (0.5, 10.5):
                share = -np.expm1(n_levels * special.xlog1py(1.0, -kind(scale).p_positive(count, threshold))) / n_levels
                found = risk_of(attack, (count,) * n_levels, kind(scale), threshold)
                assert found == pytest.approx(float(share), rel=0, abs=1e-12), (scale, count)


def released(count: int, noise: Noise, last: int) -> Floats:
    """P(released = 0, 1, ..., last), from the cdf, both tails as lower tails."""
    value = np.arange(1, last + 1)
    above = noise.cdf(count - value + 0.5) - noise.cdf(count - value - 0.5)
    under = noise.cdf(value + 0.5 - count) - noise.cdf(value - 0.5 - count)
    return np.concatenate([[noise.cdf(0.5 - count)], np.where(value > count, above, under)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", [(1, 0), (700, 0), (700, 640), (700, 1)])
def test_wide_noise_agrees_with_every_pair_of_values(kind: type[Noise], cell: tuple[int, int]) -> None:
    """Where the package sums in panels: to 1e-12 of a sum over all pairs of released values."""
    noise = kind(80.0)
    last = 700 + (3200 if kind in (LaplaceNoise, GeometricNoise) else 800)
    first, second = (released(count, noise, last) for count in cell)
    strictly_less = np.concatenate([[0.0], np.cumsum(second)[:-1]])
    named = float((first * (strictly_less + 0.5 * second))[1:].sum())
    named_second = float((second * (np.concatenate([[0.0], np.cumsum(first)[:-1]]) + 0.5 * first))[1:].sum())
    value = np.arange(last + 1.0)
    drawn = drawn_second = 0.0
    for start in range(0, last + 1, 500):
        few = slice(start, start + 500)
        total = value[few, None] + value
        share = np.divide(value[few, None], total, out=np.zeros_like(total), where=total > 0)
        drawn += float(first[few] @ share @ second)
        drawn_second += float(second[few] @ share @ first)
    shares = np.array(cell) / sum(cell)
    assert risk_of(Plurality(), cell, noise) == pytest.approx(shares @ [named, named_second], rel=0, abs=1e-12)
    assert risk_of(Proportional(), cell, noise) == pytest.approx(shares @ [drawn, drawn_second], rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("noise", "largest"),
    [
        pytest.param(LaplaceNoise(1e5), 10**6, marks=pytest.mark.slow),
        (GaussianNoise(1e4), 10**5),
        (GeometricNoise(1e4), 10**5),
        pytest.param(DiscreteGaussianNoise(1e4), 10**5, marks=pytest.mark.slow),
        (GaussianNoise(70.0), 10**6),
    ],
)
def test_many_records_in_very_wide_noise(noise: Noise, largest: int) -> None:
    """The largest of three counts, up to a million, scales up to 100,000: to 1e-11 of the sum over every value."""
    cell = (largest, largest - int(noise.scale), 0)
    value = np.arange(max(1.0, largest - 37.0 * noise.scale), largest + 37.0 * noise.scale)
    found = 0.0
    for label, count in enumerate(cell):
        inside = np.diff(noise.cdf(np.append(value - 0.5, value[-1] + 0.5) - count))
        product = np.zeros(len(value))
        for point, weight in zip(0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0), (0.5, 0.5), strict=True):
            others = [other for place, other in enumerate(cell) if place != label]
            factors = [
                (1 - point) * noise.cdf(value - 0.5 - other) + point * noise.cdf(value + 0.5 - other)
                for other in others
            ]
            product += weight * factors[0] * factors[1]
        found += count / sum(cell) * float(inside @ product)
    assert risk_of(Plurality(), cell, noise) == pytest.approx(found, rel=0, abs=1e-11)


@pytest.mark.parametrize(("smallest", "largest"), [(1, 2), (1, 10_000), (11, 10**7), (1, 10**9)])
def test_the_rule_for_inverses_is_right_at_every_total(smallest: int, largest: int) -> None:
    points, weights = inverse_rule(smallest, largest)
    totals = np.geomspace(smallest, largest, 2000)
    assert np.abs(totals * (np.exp(-totals[:, None] * points) @ weights) - 1).max() < 1e-13


@pytest.mark.parametrize("attack", [Plurality(), Proportional()])
def test_tables_without_records_are_refused(attack: Measure) -> None:
    with pytest.raises(InvalidInput, match="without records"):
        attack.average(Profiles(2, ()), AdditiveChannel((LaplaceNoise(1.0),)), ("tight",))
