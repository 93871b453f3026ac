"""The ceiling of several releases: never below enumeration, and close above it; bounds where no mechanism is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import GaussianNoise, LaplaceNoise
from cellrisk.repeat.accounting.ceilings import (
    DeltaCurve,
    bound_guesses,
    bound_success,
    compose_ceiling,
    find_removed,
    find_swapped,
)
from cellrisk.repeat.accounting.distributions import Moved, Parts
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.risk.ceilings import Likelihoods, find_success
from tests.near import near
from tests.refusals import refused
from tests.risk.ceiling_oracle import discrete_gaussian, geometric, guess_among

CLOSE = 3e-5
"""What the rounding of distributions adds at most in these cases: less than is promised."""
PRIORS = {"two": (1 / 2,) * 2, "three": (1 / 3,) * 3}
ONE_OF_EACH = [
    cr.Laplace(0.7),
    cr.Geometric(0.7),
    cr.AnalyticGaussian(0.7, delta=1e-5),
    cr.DiscreteGaussian(0.7, delta=1e-5),
]


def losses_of(*mechanisms: cr.Mechanism) -> list[Loss]:
    return [Loss.of(mechanism) for mechanism in mechanisms]


def curves_of(losses: Sequence[Loss]) -> tuple[DeltaCurve, DeltaCurve]:
    removed = find_removed(losses)
    assert removed is not None
    return DeltaCurve(find_swapped(losses)), DeltaCurve(removed)


def require_close_above(found: float, exact: float, close: float = CLOSE) -> None:
    assert found >= exact - 1e-13
    assert found <= exact + close


def two_worlds(pmf: Any, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of a released count without and with a person."""
    values = range(-most, most + 2)
    return np.array([float(pmf(j)) for j in values]), np.array([float(pmf(j - 1)) for j in values])


def randomised(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The two outcomes of geometric noise that differ: below 1, and from 1 on."""
    likely = 1 / (1 + math.exp(-epsilon))
    return np.array([likely, 1 - likely]), np.array([1 - likely, likely])


def through_all(releases: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of one count through several releases."""
    without, with_person = np.ones(1), np.ones(1)
    for one, other in releases:
        without, with_person = np.multiply.outer(without, one).ravel(), np.multiply.outer(with_person, other).ravel()
    return without, with_person


def enumerate_releases(releases: Sequence[tuple[np.ndarray, np.ndarray]], priors: Sequence[float]) -> float:
    """Every outcome of all counts of all releases, once for each label that the person may have."""
    without, with_person = through_all(releases)
    worlds = []
    for label in range(len(priors)):
        world = np.ones(1)
        for other in range(len(priors)):
            world = np.multiply.outer(world, with_person if other == label else without).ravel()
        worlds.append(world)
    return guess_among(worlds, priors)


@pytest.mark.parametrize("priors", PRIORS.values(), ids=PRIORS)
class TestEnumeration:
    def test_two_geometric_releases(self, priors: tuple[float, ...]) -> None:
        exact = enumerate_releases([randomised(0.5), randomised(1.2)], priors)
        found = compose_ceiling(losses_of(cr.Geometric(0.5), cr.Geometric(1.2)), labels=len(priors))
        require_close_above(found.even, exact)
        assert found.exact
        assert found.releases == 2

    def test_four_geometric_releases_under_replace(self, priors: tuple[float, ...]) -> None:
        exact = enumerate_releases([randomised(0.4)] * 4, priors)
        found = compose_ceiling(losses_of(cr.Geometric(0.8, neighbours="replace")) * 4, labels=len(priors))
        require_close_above(found.even, exact)

    def test_geometric_and_discrete_gaussian(self, priors: tuple[float, ...]) -> None:
        gaussian = cr.DiscreteGaussian(4.0, delta=1e-3)
        most = math.ceil(9 * gaussian.scale)
        exact = enumerate_releases([randomised(0.5), two_worlds(discrete_gaussian(gaussian.scale), most)], priors)
        found = compose_ceiling(losses_of(cr.Geometric(0.5), gaussian), labels=len(priors))
        require_close_above(found.even, exact)


def test_all_counts_of_two_geometric_releases() -> None:
    """Whole numbers, and not their two kinds: four counts of up to sixteen on both sides."""
    exact = enumerate_releases([two_worlds(geometric(2.0), 16)] * 2, (0.5, 0.5))
    require_close_above(compose_ceiling(losses_of(cr.Geometric(2.0)) * 2).even, exact)


def test_two_laplace_releases() -> None:
    """Counts before rounding are sorted into bins, which can only lower what is learnt, and in 400 bins by little."""
    edges = np.linspace(0.0, 1.0, 401)  # outside, the ratio does not change

    def masses(moved: float) -> np.ndarray:
        below = LaplaceNoise(1 / 0.9).cdf(np.concatenate([[-np.inf], edges - moved, [np.inf]]))
        return np.diff(below)

    without, with_person = masses(0.0), masses(1.0)
    one = np.multiply.outer(with_person, without).ravel()
    other = np.multiply.outer(without, with_person).ravel()
    assert 0.5 + np.abs(one - other).sum() / 4 == pytest.approx(cr.ceiling("laplace", epsilon=0.9).even_two, abs=3e-6)
    odds = np.log(one) - np.log(other)
    order = np.argsort(odds)
    above = np.searchsorted(odds[order], -odds)  # in both releases together: from where the sum of the odds is above 0
    ones, others = (np.append(np.cumsum(each[order][::-1])[::-1], 0.0) for each in (one, other))
    binned = 0.5 + float(one @ ones[above] - other @ others[above]) / 2
    require_close_above(compose_ceiling(losses_of(cr.Laplace(0.9)) * 2).even_two, binned)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("mechanism", ONE_OF_EACH, ids=lambda mechanism: mechanism.name)
def test_one_release_by_its_curve_is_that_of_its_noise(mechanism: cr.Mechanism, neighbours: str) -> None:
    mechanism = type(mechanism)(mechanism.epsilon, delta=mechanism.delta, neighbours=neighbours)
    swapped, removed = curves_of([Loss.of(mechanism)])
    for labels in (2, 3, 5):
        require_close_above(bound_guesses(swapped, removed, True, labels), find_success(mechanism.noise, labels))
    asked = cr.ceiling(mechanism)
    require_close_above((swapped if neighbours == "replace" else removed).at_zero, asked.advantage)
    assert compose_ceiling([Loss.of(mechanism)]).to_dict() == asked.to_dict()


def test_gaussian_releases_are_one() -> None:
    mechanisms = [cr.AnalyticGaussian(0.5, delta=1e-5), cr.ProbabilisticGaussian(1.0, delta=1e-5)]
    found = compose_ceiling(losses_of(*mechanisms), labels=4)
    sigma = 1 / math.hypot(*(1 / mechanism.scale for mechanism in mechanisms))
    assert found.even_two == pytest.approx(0.5 * math.erfc(-0.5 / sigma), abs=1e-13)
    assert found.even == near(find_success(GaussianNoise(sigma), 4))
    assert found.advantage == near(math.erf(0.5 / (math.sqrt(2) * sigma)))
    curves = curves_of(losses_of(*mechanisms))
    require_close_above(bound_guesses(*curves, True, 2), found.even_two)
    require_close_above(bound_guesses(*curves, True, 4), found.even)
    replaced = [cr.AnalyticGaussian(0.5, delta=1e-5, neighbours="replace")] * 2
    moved = compose_ceiling(losses_of(*replaced))
    assert moved.advantage == near(2 * moved.even_two - 1)


def test_advantage_is_the_total_variation_of_a_record_left_out() -> None:
    without, with_person = through_all([randomised(0.5), randomised(0.9), randomised(1.3)])
    exact = float(np.abs(without - with_person).sum() / 2)
    found = compose_ceiling(losses_of(cr.Geometric(0.5), cr.Geometric(0.9), cr.Geometric(1.3)))
    assert found.advantage is not None
    require_close_above(found.advantage, exact)
    assert found.odds == near(math.exp(2 * 2.7))
    assert compose_ceiling(losses_of(*[cr.Geometric(177.25)] * 2)).odds == near(math.exp(709.0))
    assert compose_ceiling(losses_of(*[cr.Geometric(178.0)] * 2)).odds == math.inf  # beyond all numbers
    moved = compose_ceiling(losses_of(cr.Geometric(0.5, neighbours="replace"), cr.Geometric(0.9)))
    assert moved.advantage == pytest.approx(2 * moved.even_two - 1, abs=1e-12)


def test_guarantees_about_replaced_and_added_records_together() -> None:
    """One guarantee is about a replaced record, so that only two labels are compared: a guarantee about an added one
    counts twice. Of two answers that may be false, the surer one is believed."""
    unknown = [Loss.pure(0.5, "replace"), Loss.pure(0.4)]
    found = compose_ceiling(unknown)
    require_close_above(found.even_two, 1 / (1 + math.exp(-0.8)))
    assert found.advantage is not None
    require_close_above(found.advantage, math.tanh(0.4))


def test_one_release_that_tells_everything_is_enough() -> None:
    for others in ([cr.Geometric(1.0)], [cr.Geometric(1.0, neighbours="replace")], [cr.Laplace(0.1)] * 3):
        found = compose_ceiling(losses_of(cr.Geometric(2000.0), *others), labels=3)
        assert [found.even, found.even_two, found.advantage] == near([1.0, 1.0, 1.0])


def test_many_releases_of_a_small_epsilon_are_like_a_gaussian() -> None:
    """A thousand releases at 0.01: mu = 0.01 sqrt(1000), and the difference is of the order of mu/1000."""
    found = compose_ceiling(losses_of(cr.Geometric(0.01)) * 1000, labels=3)
    sigma = 1 / (0.01 * math.sqrt(1000))
    assert found.even_two == pytest.approx(find_success(GaussianNoise(sigma), 2), abs=3e-4)
    assert found.even == pytest.approx(find_success(GaussianNoise(sigma), 3), abs=3e-4)


def test_every_release_adds() -> None:
    chosen: list[Loss] = []
    before = compose_ceiling(chosen, labels=4)
    assert (before.even_two, before.even, before.advantage, before.releases) == (0.5, 0.25, 0.0, 0)
    assert "by at most 0 percentage points" in before.headline
    for mechanism in (cr.Geometric(0.3), cr.Laplace(0.5), cr.AnalyticGaussian(0.5, delta=1e-5), cr.Geometric(0.01)):
        chosen.append(Loss.of(mechanism))
        after = compose_ceiling(chosen, labels=4)
        assert after.even > before.even
        assert after.even_two > before.even_two
        assert (after.advantage or 0) > (before.advantage or 0)
        before = after


class TestRhoAlone:
    """A rho bounds the ceiling of every mechanism that has it: Gaussian noise of sigma = 1/sqrt(2 rho) is one."""

    @pytest.mark.parametrize("labels", [2, 3, 7])
    @pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 8.0])
    def test_no_gaussian_beats_it(self, rho: float, labels: int) -> None:
        for neighbours, counts in (("add-remove", 1.0), ("replace", 2.0)):  # so many have noise, and share the rho
            exact = find_success(GaussianNoise(math.sqrt(counts / (2.0 * rho))), labels)
            found = compose_ceiling([Loss.zcdp(rho, neighbours)], labels=labels)
            assert exact <= found.even <= 1.0
            assert not found.exact
        apart = math.erf(0.5 * math.sqrt(rho))  # a record left out: the total variation of two such Gaussians
        assert compose_ceiling([Loss.zcdp(rho)]).advantage >= apart

    def test_a_little_rho_tells_little(self) -> None:
        """Pinsker: half of sqrt(rho/2) above a coin toss, rho that of a swap."""
        assert compose_ceiling([Loss.zcdp(1e-6, "replace")]).even_two <= 0.5 + 0.5 * math.sqrt(1e-6)
        assert compose_ceiling([Loss.zcdp(1e-6)]).even_two <= 0.5 + 0.5 * math.sqrt(4e-6)

    def test_beside_known_noise_it_adds(self) -> None:
        alone = compose_ceiling(losses_of(cr.Geometric(0.5))).even_two
        both = compose_ceiling([Loss.zcdp(0.01), *losses_of(cr.Geometric(0.5))]).even_two
        assert alone < both < 1.0


def test_a_set_and_its_tables_one_by_one_have_one_ceiling() -> None:
    tables = losses_of(*[cr.Geometric(0.5)] * 6)
    one_by_one, as_set = compose_ceiling(tables, labels=3), compose_ceiling([Loss.join(tables)], labels=3)
    assert (one_by_one.even_two, one_by_one.even) == (as_set.even_two, as_set.even)
    require_close_above(as_set.even_two, enumerate_releases([randomised(0.5)] * 6, (0.5, 0.5)), 1e-12)
    gaussians = losses_of(*[cr.DiscreteGaussian(0.5, delta=1e-6)] * 3)
    assert compose_ceiling([Loss.join(gaussians)]).even_two == compose_ceiling(gaussians).even_two


class TestGuaranteesAlone:
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
    def test_pure(self, epsilon: float) -> None:
        """Two even labels: 1 - e^-epsilon/2, of a mechanism that tosses a fair coin without the record."""
        found = compose_ceiling([Loss.pure(epsilon)])
        require_close_above(found.even_two, 1 - math.exp(-epsilon) / 2, 1e-11)
        assert not found.exact
        replaced = compose_ceiling([Loss.pure(epsilon, "replace")])
        require_close_above(replaced.even_two, 1 / (1 + math.exp(-epsilon)), 1e-11)

    @pytest.mark.parametrize("labels", [2, 3, 6])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.02), (2.0, 1e-3)])
    def test_a_mechanism_that_keeps_the_guarantee_is_below(self, labels: int, epsilon: float, delta: float) -> None:
        """With probability delta the label is told; else it, or any of the others, with odds as far as they may go."""
        stated = (
            (lambda *more: Loss.approximate(epsilon, delta, *more))
            if delta
            else (lambda *more: Loss.pure(epsilon, *more))
        )
        bound = compose_ceiling([stated()], labels=labels)
        most = math.exp(epsilon) / labels  # without the record every label is named equally often
        told = min(most, 1 - math.exp(-epsilon) * (1 - 1 / labels))
        assert bound.even >= delta + (1 - delta) * told - 1e-12
        swap = compose_ceiling([stated("replace")], labels=labels)
        response = math.exp(epsilon) / (math.exp(epsilon) + labels - 1)  # randomised response with K answers
        assert swap.even >= delta + (1 - delta) * response - 1e-12
        assert swap.advantage is not None

    def test_the_bounds_are_reached(self) -> None:
        """K labels: e^epsilon/K as long as it is not too much, and randomised response under replace."""
        found = compose_ceiling([Loss.pure(0.5)], labels=6)
        require_close_above(found.even, math.exp(0.5) / 6, 1e-11)
        swap = compose_ceiling([Loss.pure(0.5, "replace")], labels=2)
        require_close_above(swap.even, 1 / (1 + math.exp(-0.5)), 1e-11)

    @pytest.mark.parametrize("mechanism", ONE_OF_EACH, ids=lambda mechanism: mechanism.name)
    @pytest.mark.parametrize("labels", [2, 5])
    def test_what_is_known_of_the_noise_only_helps(self, mechanism: cr.Mechanism, labels: int) -> None:
        known, also = Loss.of(mechanism), Loss.of(cr.Geometric(0.4))
        epsilon = known.epsilon or 0.0
        bare = Loss.approximate(epsilon, known.delta) if known.delta else Loss.pure(epsilon)
        for rest in ([], [also]):
            assert compose_ceiling([known, *rest], labels=labels).even <= (
                compose_ceiling([bare, *rest], labels=labels).even + 1e-12
            )

    def test_a_guarantee_about_replacing_says_nothing_of_leaving_out(self) -> None:
        losses = [Loss.pure(0.5, "replace"), Loss.of(cr.Geometric(0.5))]
        assert find_removed(losses) is None
        found = compose_ceiling(losses, labels=3)
        assert 1 / 3 < found.even < 1
        assert found.advantage is not None

    def test_a_swap_fails_where_one_of_two_steps_does(self) -> None:
        """(epsilon, delta) there and back: delta + e^epsilon delta; independent guarantees fail as 1 - prod(1 - d)."""
        one, other = ((Loss.approximate(e, d)) for e, d in ((0.5, 1e-3), (2.0, 2e-2)))
        swapped, removed = curves_of([one, other])
        assert removed.disclosed == near(1 - (1 - 1e-3) * (1 - 2e-2))
        twice = [(1 + math.exp(0.5)) * 1e-3, (1 + math.exp(2.0)) * 2e-2]
        assert swapped.disclosed == near(1 - (1 - twice[0]) * (1 - twice[1]))
        replaced = Loss.approximate(0.5, 1e-3, "replace")
        assert DeltaCurve(find_swapped([replaced, Loss.pure(1.0)])).disclosed == near(1e-3)
        assert DeltaCurve(find_swapped([Loss.approximate(5.0, 0.1), one])).disclosed == near(1.0)

    def test_deltas_that_tell_everything(self) -> None:
        loss = Loss.approximate(3.0, 0.2)  # (1 + e^3) 0.2 is above 1: a swap is not protected
        found = compose_ceiling([loss] * 3)
        removed = 1 - 0.8**3
        assert removed < (found.advantage or 0) <= 1
        assert found.even_two <= 1
        assert compose_ceiling([Loss.approximate(0.1, 0.999)] * 9).even_two == near(1.0)


def random_worlds(generator: np.random.Generator) -> Likelihoods:
    """Two worlds that may change places: a ratio as often in one as its inverse in the other."""
    ratios = np.exp(np.sort(generator.uniform(0.1, 2.0, 3)))
    rare = generator.uniform(0.0, 0.03, 3)
    told, sides = 0.01, np.concatenate([-np.log(ratios[::-1]), [0.0], np.log(ratios)])
    middle = 1 - told - rare.sum() - (rare * ratios).sum()
    rising = np.concatenate([[0.0], rare[::-1], [middle], rare * ratios, [told]])
    return Likelihoods(np.concatenate([[-np.inf], sides, [np.inf]]), rising[::-1].copy(), rising)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("swapped", [True, False])
def test_the_steepest_pieces_first_are_a_linear_programme(seed: int, swapped: bool) -> None:
    """How much of each piece is taken is free, their widths add up to 1 at most: a solver finds the same."""
    generator = np.random.default_rng(seed)
    worlds = random_worlds(generator)
    priors = [0.25] * 4
    gains, widths = [], []
    for label, prior in enumerate(priors):
        if swapped and label == 0:
            gains.append(np.array([prior])), widths.append(np.array([1.0]))
        else:
            gains.append(prior * worlds.with_person), widths.append(worlds.without)
    gain, width = np.concatenate(gains), np.concatenate(widths)
    solved = linprog(-gain, A_ub=width[None, :], b_ub=[1.0], bounds=(0, 1))
    found = bound_success(worlds, 4, swapped=swapped)
    assert found == pytest.approx(min(-solved.fun, 1.0), abs=1e-9)
    assert found >= priors[0] - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_no_way_of_naming_labels_beats_the_bound(seed: int) -> None:
    """A mechanism with three labels from one world without the record: its best guess is within the curve's bound."""
    generator = np.random.default_rng(seed)
    labels, outcomes = 3, 8
    without = generator.dirichlet(np.ones(outcomes))
    worlds = [without * np.exp(generator.uniform(-0.6, 0.6, outcomes)) for _ in range(labels)]
    worlds = [world / world.sum() for world in worlds]
    epsilon = max(float(np.abs(np.log(world / without)).max()) for world in worlds)
    swap = max(float(np.abs(np.log(one / other)).max()) for one, other in itertools.permutations(worlds, 2))
    success = guess_among(worlds, (1 / labels,) * labels)
    assert success <= compose_ceiling([Loss.pure(epsilon)], labels=labels).even + 1e-12
    replaced = Loss.pure(swap, "replace")
    assert success <= compose_ceiling([replaced], labels=labels).even + 1e-12


class TestCurves:
    PIECES = (
        ((Moved("pure", 0.7), 1),),
        ((Moved("pure", 0.3), 2), (Moved("laplace", 0.9), 1)),
        ((Moved("gaussian", 0.5), 1),),
        ((Moved("laplace", 30.0), 2),),
    )

    @pytest.mark.parametrize("pieces", PIECES, ids=str)
    def test_a_curve_becomes_two_worlds_and_is_found_in_them_again(self, pieces: tuple) -> None:
        curve = DeltaCurve(Parts(pieces))
        worlds = curve.likelihoods()
        assert worlds.without.sum() == pytest.approx(1.0, abs=1e-9)
        assert worlds.with_person.sum() == pytest.approx(1.0, abs=1e-9)
        assert np.all(worlds.without >= 0)
        for epsilon in (0.0, 0.1, 0.55, 1.3):
            told = worlds.with_person - math.exp(epsilon) * worlds.without
            again = float(told[told > 0].sum())
            assert again == pytest.approx(float(curve.at(np.array([epsilon]))[0]), abs=2e-6)

    @pytest.mark.parametrize("disclosed", [0.02, 0.3, 0.9])
    @pytest.mark.parametrize("losses", [(0.7,), (0.3, 0.3)], ids=str)
    def test_what_may_be_told_outright_is_an_outcome_of_its_own(
        self, losses: tuple[float, ...], disclosed: float
    ) -> None:
        """Answers that are true with odds e^epsilon, and beside them, now and then, the world itself."""
        true = [math.exp(epsilon) / (1.0 + math.exp(epsilon)) for epsilon in losses]
        answers = list(itertools.product([True, False], repeat=len(losses)))
        one = [math.prod(p if each else 1 - p for p, each in zip(true, answer, strict=True)) for answer in answers]
        other = [math.prod(1 - p if each else p for p, each in zip(true, answer, strict=True)) for answer in answers]
        curve = DeltaCurve(Parts(((Moved("pure", losses[0]), len(losses)),), (disclosed,)))
        for epsilon in (0.0, 0.2, 0.5, 2.0):
            told = [p - math.exp(epsilon) * q for p, q in zip(one, other, strict=True)]
            delta = disclosed + (1.0 - disclosed) * sum(each for each in told if each > 0)
            found = float(curve.at(np.array([epsilon]))[0])
            assert delta - 1e-9 <= found <= delta + 1e-4


class TestRefusals:
    def test_what_is_no_loss(self) -> None:
        with refused("no-loss"):
            compose_ceiling([1.0])  # type: ignore[list-item]

    def test_noise_with_too_many_outcomes(self) -> None:
        wide = Loss.of(cr.DiscreteGaussian(1e-5, delta=1e-6))
        with pytest.raises(InvalidInput, match="a discrete Gaussian wider than 100000 has too many outcomes to list"):
            compose_ceiling([wide, wide])

    def test_without_dp_accounting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> None:
            raise ImportError

        monkeypatch.setattr("cellrisk.repeat.accounting.distributions.load_distributions", fail)
        with pytest.raises(InvalidInput, match="dp-accounting is not installed"):
            compose_ceiling(losses_of(cr.Laplace(1.0), cr.Geometric(1.0)))
        assert compose_ceiling(losses_of(cr.Geometric(1.0), cr.Geometric(1.0))).even > 0.7
        assert compose_ceiling(losses_of(cr.Geometric(1.0))).even > 0.7
        assert compose_ceiling(losses_of(*[cr.AnalyticGaussian(1.0, delta=1e-5)] * 2)).even > 0.5
