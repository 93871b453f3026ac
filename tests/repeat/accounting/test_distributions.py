"""Privacy loss distributions beside exact enumeration: never below, and close above."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from cellrisk.repeat.accounting.composition import compose, compose_pld, find_rest
from cellrisk.repeat.accounting.distributions import Moved, Parts
from cellrisk.repeat.accounting.loss import Event

from .cases import approximate, loss_of, pure
from .oracle import (
    discrete_gaussian_outcomes,
    exact_epsilon,
    exact_epsilon_of_two_laplaces,
    find_epsilon,
    geometric_outcomes,
    mp,
    randomised_response_outcomes,
)

CLOSE = 1e-4


def require_close_above(found: float, exact: float, close: float = CLOSE) -> None:
    assert found >= exact * (1 - 1e-12)
    assert found <= exact * (1 + close) + 1e-12


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_three_geometric_releases(epsilon: float, delta: float) -> None:
    exact = exact_epsilon([geometric_outcomes(epsilon)] * 3, delta)
    require_close_above(compose([loss_of("geometric", epsilon)] * 3, method="pld", delta=delta).epsilon, exact)


@pytest.mark.parametrize("epsilons", [[0.3, 0.7, 1.1], [0.3, 0.7, 1.1, 0.5], [0.3, 0.45, 0.7, 1.1, 0.9, 0.2, 0.6]])
def test_geometric_releases_of_different_epsilon(epsilons: list[float]) -> None:
    exact = exact_epsilon([geometric_outcomes(epsilon) for epsilon in epsilons], 1e-4)
    found = compose([loss_of("geometric", epsilon) for epsilon in epsilons], method="pld", delta=1e-4)
    require_close_above(found.epsilon, exact)


def test_a_hundred_releases_that_all_differ() -> None:
    """Each has a distribution of its own, whose tails are cut: what all of them lose together stays negligible."""
    parts = Parts(tuple((Moved("pure", 0.1 + 1e-10 * number), 1) for number in range(100)))
    counted = np.arange(101)
    chance, loss = stats.binom(100, 1.0 / (1.0 + math.exp(-0.1))).pmf(counted), 0.1 * (2 * counted - 100)
    exact = optimize.brentq(lambda epsilon: chance @ np.maximum(-np.expm1(epsilon - loss), 0.0) - 1e-6, 0.0, 10.0)
    require_close_above(parts.find_epsilon(1e-6), exact, close=1e-6)


def test_a_replaced_record_changes_two_counts_with_half_of_epsilon_each() -> None:
    loss = loss_of("geometric", 2.0, neighbours="replace")
    exact = exact_epsilon([geometric_outcomes(1.0)] * 4, 1e-3)
    require_close_above(compose([loss] * 2, method="pld", delta=1e-3).epsilon, exact)
    in_one_count = exact_epsilon([randomised_response_outcomes(2.0)] * 2, 1e-3)
    assert exact < in_one_count


@pytest.mark.parametrize("epsilon", [0.001, 0.5, 5.0])
def test_two_laplace_releases(epsilon: float) -> None:
    delta = 1e-4 if epsilon > 0.01 else 1e-5
    exact = exact_epsilon_of_two_laplaces(epsilon, delta)
    require_close_above(compose([loss_of("laplace", epsilon)] * 2, method="pld", delta=delta).epsilon, exact)
    replaced = loss_of("laplace", 2 * epsilon, neighbours="replace")
    require_close_above(compose([replaced], method="pld", delta=delta).epsilon, exact)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_discrete_gaussian_releases(neighbours: str) -> None:
    loss = loss_of("discrete-gaussian", 1.0, 1e-5, neighbours)
    assert loss.mechanism is not None
    counts = 2 if neighbours == "add-remove" else 4
    exact = exact_epsilon([discrete_gaussian_outcomes(loss.mechanism.scale)] * counts, 1e-5)
    require_close_above(compose([loss] * 2, method="pld", delta=1e-5).epsilon, exact)


def test_a_guarantee_without_a_mechanism_is_taken_at_its_worst() -> None:
    losses = [approximate(0.5, 1e-4), approximate(0.8, 2e-4), pure(0.3)]
    worst = [randomised_response_outcomes(float(loss.epsilon or 0), loss.delta) for loss in losses]
    require_close_above(compose(losses, method="pld", delta=1e-3).epsilon, exact_epsilon(worst, 1e-3))


def test_known_and_unknown_mechanisms_together() -> None:
    losses = [approximate(0.5, 1e-4), loss_of("discrete-gaussian", 1.0, 1e-5), loss_of("geometric", 0.4)]
    scale = losses[1].mechanism.scale if losses[1].mechanism else 0.0
    outcomes = [randomised_response_outcomes(0.5, 1e-4), discrete_gaussian_outcomes(scale), geometric_outcomes(0.4)]
    require_close_above(compose(losses, method="pld", delta=1e-3).epsilon, exact_epsilon(outcomes, 1e-3))


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.001, 1), (0.001, 1000), (0.1, 1000), (1.0, 1000), (100.0, 1), (100.0, 100)]
)
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_small_and_large_epsilons_many_times(epsilon: float, times: int, delta: float) -> None:
    """Randomised response many times over is binomial."""
    right = 1 / (1 + mp.e ** -mp.mpf(epsilon))
    losses = [(times - 2 * wrong) * mp.mpf(epsilon) for wrong in range(times + 1)]
    weights = [
        mp.binomial(times, wrong) * right ** (times - wrong) * (1 - right) ** wrong for wrong in range(times + 1)
    ]
    pairs = list(zip(losses, weights, strict=True))

    def delta_of(x: mp.mpf) -> mp.mpf:
        total = mp.mpf(0)
        for loss, weight in pairs:
            if loss <= x:
                break
            total += weight * (1 - mp.e ** (x - loss))
        return total

    exact = find_epsilon(delta_of, delta, epsilon * times)
    require_close_above(Parts(((Moved("pure", epsilon), times),)).find_epsilon(delta), exact)


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_one_gaussian(mu: float, delta: float) -> None:
    def delta_of(epsilon: mp.mpf) -> mp.mpf:
        return mp.ncdf(mp.mpf(mu) / 2 - epsilon / mu) - mp.e**epsilon * mp.ncdf(-mp.mpf(mu) / 2 - epsilon / mu)

    exact = find_epsilon(delta_of, delta, mu * mu + 20 * mu)
    require_close_above(Parts(((Moved("gaussian", mu), 1),)).find_epsilon(delta), exact)


@pytest.mark.parametrize(
    ("delta", "deltas"),
    [(1e-5, [1e-6] * 3), (2e-10, [1e-10] * 2), (0.5, [0.1, 0.2]), (1e-6, [])],
    ids=["some left", "hardly any left", "large", "all left"],
)
def test_the_rest_of_a_delta(delta: float, deltas: list[float]) -> None:
    with mp.workdps(60):  # of two numbers that differ in their twentieth digit
        kept = mp.fprod(1 - mp.mpf(repr(each)) for each in deltas)
        exact = float(1 - (1 - mp.mpf(repr(delta))) / kept)
    assert find_rest(delta, deltas) == pytest.approx(exact, rel=1e-14, abs=0)
    assert find_rest(delta, deltas) <= exact


def test_one_that_cannot_be_listed_is_enough_to_refuse() -> None:
    wide, plain = (Moved("discrete-gaussian", 1e-6), 1), (Moved("pure", 0.1), 1)
    assert "too many outcomes" in Parts((wide, plain)).why_not(1e-6)
    assert "too many outcomes" in Parts((plain, wide)).why_not(1e-6)
    assert Parts((plain, (Moved("discrete-gaussian", 1e-3), 1))).why_not(1e-6) == ""
    assert "rounding errors" in Parts(((Moved("pure", 0.1), 10**9),)).why_not(1e-7)


def test_deltas_of_randomised_response_twice() -> None:
    """Only two right answers have a loss above 0: p^2 - e^epsilon q^2; nothing is left from the largest loss on."""
    twice, e = Parts(((Moved("pure", 1.0), 2),)), math.e
    right = e / (1 + e)
    epsilons = np.array([0.0, 0.5, 1.5, 2.0, 2.5])
    exact = [max(right**2 - math.exp(each) * (1 - right) ** 2, 0.0) for each in epsilons]
    whole = twice.convolve()
    found = twice.find_deltas(whole, epsilons)
    assert found == pytest.approx(exact, abs=1e-5)
    assert (found[:3] >= exact[:3]).all()
    assert found[3:].tolist() == [0.0, 0.0]
    for some in (slice(1, 2), slice(1, 3)):
        assert twice.find_deltas(whole, epsilons[some]) == pytest.approx(exact[some], abs=1e-5)


def test_a_delta_is_never_above_1() -> None:
    """Where next to everything is told, what is added for rounding goes beyond."""
    told = Parts(((Moved("pure", 100.0), 3),))
    assert told.find_deltas(told.convolve(), np.array([0.0, 1.0, 50.0])).max() == 1.0


def test_a_count_that_moves_by_more_than_one() -> None:
    """Geometric and discrete Gaussian noise on counts that a person moves by 2: by enumeration of both."""
    geometric = Event(kind="geometric", epsilon=1.0, scale=2.0, sensitivity=2.0)
    ratio = mp.e ** -mp.mpf(0.5)
    moved = [
        ((1 - ratio) / (1 + ratio) * ratio ** abs(j), (1 - ratio) / (1 + ratio) * ratio ** abs(j - 2))
        for j in range(-150, 153)
    ]
    found = compose_pld((geometric,) * 2, 1e-3)
    assert isinstance(found, float)
    require_close_above(found, exact_epsilon([moved] * 2, 1e-3))
