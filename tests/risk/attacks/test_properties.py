"""What must hold of the attacks whatever the numbers: limits, coincidences, order, and simulated releases."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.attacks import GUESSES, Guess, Plurality, Proportional
from cellrisk.risk.measures import Local, Measure
from cellrisk.system.arrays import Floats
from tests.examples import examples

KINDS: list[type[Noise]] = [LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise]
ATTACKERS: list[Measure] = [Plurality(), Proportional()]
RELEASES = 200_000


def risks(attack: Measure, cells: list[tuple[int, ...]], noise: Noise, threshold: float = 0.5) -> tuple[float, float]:
    profiles = Profiles.from_cells(cells, n_levels=len(cells[0]))
    found = attack.average(profiles, AdditiveChannel((noise,), threshold), ("tight",))
    return float(found["tight", "uniform"][0]), float(found["tight", "records"][0])


def simulate(
    attack: str, cell: tuple[int, ...], noise: Noise, threshold: float, generator: np.random.Generator
) -> Floats:
    """For each release of a cell: the share of its records whose label is guessed, the guess averaged over ties."""
    counts = np.array(cell)
    noisy = np.rint(counts + noise.sample(generator, (RELEASES, len(cell))))
    shown = np.where(noisy < threshold, 0.0, noisy)
    if attack == "plurality":
        shown = ((shown == shown.max(axis=1, keepdims=True)) & (shown > 0)).astype(np.float64)
    total = shown.sum(axis=1)
    return np.asarray(np.divide(shown @ (counts / counts.sum()), total, out=np.zeros(RELEASES), where=total > 0))


@pytest.mark.parametrize("attack", GUESSES)
@pytest.mark.parametrize("threshold", [0.5, 10.5])
@pytest.mark.parametrize(
    "noise",
    [LaplaceNoise(1.5), LaplaceNoise(90.0), GaussianNoise(12.0), GeometricNoise(400.0), DiscreteGaussianNoise(75.0)],
    ids=str,
)
def test_simulated_releases_agree(attack: str, noise: Noise, threshold: float) -> None:
    """The mean over 200,000 releases is within 4.5 of its standard errors, for five labels and counts up to 1,000."""
    generator = np.random.default_rng(11)
    for cell in [(1000, 990, 150, 0, 0), (12, 10, 9, 1, 0), (1, 0, 0, 0, 0)]:
        outcome = simulate(attack, cell, noise, threshold, generator)
        found, _ = risks(GUESSES[attack](), [cell], noise, threshold)
        assert abs(outcome.mean() - found) < 4.5 * outcome.std() / np.sqrt(RELEASES) + 1e-9, cell


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attack", ATTACKERS)
def test_without_noise_to_speak_of(attack: Measure, kind: type[Noise]) -> None:
    """The largest count is named, ties are split, and a draw hits sum of squared shares."""
    cells = {(7, 0, 0): (1.0, 1.0), (4, 3, 1): (0.5, 26 / 64), (2, 2, 1): (0.4, 9 / 25), (5, 5, 0): (0.5, 0.5)}
    for cell, (named, drawn) in cells.items():
        want = named if isinstance(attack, Plurality) else drawn
        assert risks(attack, [cell], kind(0.01))[0] == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("attack", ATTACKERS)
def test_coincides_with_homogeneity_where_one_label_can_show(attack: Measure) -> None:
    """Homogeneous cells, or cells with one count above the threshold, in narrow noise: each attack is the same."""
    for cell, threshold in [((1, 0), 0.5), ((9, 0, 0), 0.5), ((3, 2, 1), 2.5), ((40, 0, 0, 0), 10.5)]:
        for noise in (LaplaceNoise(0.01), GaussianNoise(0.05), GeometricNoise(0.02), DiscreteGaussianNoise(0.1)):
            profiles = Profiles.from_cells([cell], len(cell))
            local = Local().average(profiles, AdditiveChannel((noise,), threshold), ("tight",))["tight", "uniform"][0]
            assert risks(attack, [cell], noise, threshold)[0] == pytest.approx(local, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_levels", [2, 3, 8])
@pytest.mark.parametrize("attack", ATTACKERS)
def test_endless_noise_leaves_chance(attack: Measure, n_levels: int, kind: type[Noise]) -> None:
    """(1 - 2^-K)/K: each of K alike labels wins alike unless all vanish. The counts matter by n/scale at most."""
    for cell in [(1,), (3, 1), (2, 2)]:
        padded = cell + (0,) * (n_levels - len(cell))
        for scale in (1e4, 1e5):
            found, _ = risks(attack, [padded], kind(scale))
            assert found == pytest.approx((1 - 2.0**-n_levels) / n_levels, abs=(sum(cell) + 1) / scale)


@pytest.mark.parametrize("attack", ATTACKERS)
def test_many_profiles_and_noises_are_as_one_by_one(attack: Measure) -> None:
    """Cells far apart, in any order, with shared counts, and noises of all scales: to 1e-13 of each alone."""
    cells = [(5, 0, 0), (100_000, 3, 0), (3, 5, 1), (700, 650, 0), (0, 5, 3), (90, 100_000, 4), (2, 2, 2)]
    noises = tuple(kind(scale) for kind in KINDS for scale in (0.05, 2.0, 90.0, 5000.0))
    profiles = Profiles.from_cells(cells, 3)
    found = attack.average(profiles, AdditiveChannel(noises, 1.5), ("tight",))
    for column, noise in enumerate(noises):
        alone = np.array([risks(attack, [cell], noise, 1.5)[0] for cell in cells])
        sizes = np.array([sum(cell) for cell in cells])
        assert found["tight", "uniform"][column] == pytest.approx(alone.mean(), abs=1e-13)
        assert found["tight", "records"][column] == pytest.approx(alone @ sizes / sizes.sum(), abs=1e-13)


@settings(max_examples=examples(60), phases=(Phase.explicit, Phase.generate))
@given(
    cell=st.lists(st.integers(0, 300), min_size=2, max_size=6).filter(any),
    scale=st.floats(0.05, 500.0),
    kind=st.sampled_from(KINDS),
    threshold=st.sampled_from([0.5, 1.5, 10.5]),
    order=st.randoms(use_true_random=False),
)
def test_order_of_labels_range_and_floor(
    cell: list[int], scale: float, kind: type[Noise], threshold: float, order: Random
) -> None:
    """Labels may be shuffled; risks are probabilities; whoever always guesses hits at least what shows alone."""
    shuffled = order.sample(cell, len(cell))
    profiles = Profiles.from_cells([cell], len(cell))
    local = Local().average(profiles, AdditiveChannel((kind(scale),), threshold), ("tight",))["tight", "uniform"][0]
    for attack in ATTACKERS:
        found, _ = risks(attack, [tuple(cell)], kind(scale), threshold)
        assert 0 <= found <= 1 + 1e-12
        assert found >= local - 1e-12
        assert found == pytest.approx(risks(attack, [tuple(shuffled)], kind(scale), threshold)[0], abs=1e-13)


def test_many_categories_do_not_hide_the_largest_count() -> None:
    """That exactly one of 150 categories is shown is all but impossible; the largest count is still that of 50."""
    assert risks(Plurality(), [(50, 3, *[0] * 148)], GeometricNoise(1.0))[0] == pytest.approx(50 / 53, abs=1e-9)


@pytest.mark.parametrize("attack", [Plurality(), Proportional()], ids=lambda each: each.attack)
def test_no_probability_is_above_one(attack: Guess) -> None:
    """Cells whose value is all but certain to be guessed, among them those whose terms add up to a rounding above 1."""
    profiles = Profiles.from_cells([[size] for size in range(1, 300, 7)], n_levels=5)
    noises = tuple(LaplaceNoise(scale) for scale in (5.0, 1.0, 1 / 15))
    for block in profiles.blocks:
        risk = attack.risk(block, 5, AdditiveChannel(noises), ("tight",))["tight"]
        assert risk.max() <= 1.0
        named = attack.prob_named_as([block.counts], block.counts, 5, AdditiveChannel(noises[:1]))
        assert named.sum(axis=2).max() < 1.0 + 1e-12
