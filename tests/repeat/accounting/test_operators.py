"""Each method beside an independent computation: mpmath, dp-accounting's accountants, exact enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cellrisk.repeat.accounting.composition import COMPOSERS, compose, compose_pld, compose_renyi
from cellrisk.repeat.accounting.composition import find_epsilon as find_epsilon_of_rho
from cellrisk.repeat.accounting.distributions import Moved, Parts, renyi_orders
from cellrisk.repeat.accounting.loss import Loss, add_up

from .cases import approximate, concentrated, events_of, loss_of, pure
from .oracle import exact_epsilon, find_epsilon, mp, randomised_response_outcomes

DELTAS = (1e-3, 1e-6, 1e-12)


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ([0.1] * 3, 0.3),
        ([0.1] * 10_000, 1000.0),
        ([100.0, 1e-17], 100.0),
        ([1e-6] * 7, 7e-6),
        ([1, np.float64(0.2)], 1.2),
        ([], 0.0),
    ],
    ids=["three tenths", "many", "far apart", "deltas", "whole numbers and numpy", "none"],
)
def test_sums_are_decimal(numbers: list[float], total: float) -> None:
    assert add_up(numbers) == total


def test_basic_adds_epsilons_and_deltas() -> None:
    found = compose([approximate(0.1, 1e-6), approximate(0.2, 2e-6)], method="basic")
    assert (found.epsilon, found.delta) == (0.3, 3e-6)


@pytest.mark.parametrize("loss", [pure(0.7), approximate(0.7, 1e-5)], ids=lambda x: x.dp_definition)
def test_one_loss_is_itself_under_basic(loss: Loss) -> None:
    found = compose([loss], method="basic")
    assert (found.epsilon, found.delta, found.dp_definition) == (loss.epsilon, loss.delta, loss.dp_definition)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(
    ("loss", "rho"),
    [
        (Loss.join([concentrated(0.3), concentrated(0.2)]), 0.5),
        (pure(0.4), 0.08),
        (loss_of("laplace", 0.4), 0.08),
        (loss_of("geometric", 0.4, neighbours="replace"), 0.04),
        (pure(1000.0), 500_000.0),
    ],
    ids=["concentrated", "pure", "laplace", "a replaced record", "huge"],
)
def test_rhos_add_up(loss: Loss, rho: float, delta: float) -> None:
    def log_delta(order: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
        return (order - 1) * (order * rho - epsilon) + order * mp.log(1 - 1 / order) - mp.log(order - 1)

    assert loss.total_rho == pytest.approx(rho, rel=1e-12, abs=0)
    found = find_epsilon_of_rho(float(loss.total_rho or 0.0), delta)
    order = mp.findroot(
        lambda log_order: mp.diff(lambda x: log_delta(1 + mp.e**x, mp.mpf(found)), log_order),
        mp.log(math.sqrt(-math.log(delta) / rho)),
        tol=1e-12,
    )
    assert float(log_delta(1 + mp.e**order, mp.mpf(found))) == pytest.approx(math.log(delta), rel=1e-8, abs=0)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_one_discrete_gaussian_gives_back_its_epsilon(epsilon: float, neighbours: str) -> None:
    loss = loss_of("discrete-gaussian", epsilon, 1e-6, neighbours)
    assert find_epsilon_of_rho(float(loss.total_rho or 0.0), 1e-6) == pytest.approx(epsilon, rel=1e-10, abs=0)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 10.0, 300.0])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5, 5.0, 300.0])
def test_renyi_divergences_are_integrals(epsilon: float, order: float) -> None:
    """E[(p/q)^(a-1)] under p, for geometric noise a sum of two kinds of outcome, for Laplace noise an integral."""
    e, a = mp.mpf(epsilon), mp.mpf(order)
    with mp.workdps(60):
        right = 1 / (1 + mp.e**-e)
        pure_moment = right * mp.e ** ((a - 1) * e) + (1 - right) * mp.e ** (-(a - 1) * e)
        inside = (mp.e ** ((a - 1) * e) - mp.e ** (-a * e)) / (2 * (2 * a - 1))
        laplace_moment = mp.e ** ((a - 1) * e) / 2 + mp.e ** (-a * e) / 2 + inside
        expected = [float(mp.log(moment) / (a - 1)) for moment in (pure_moment, laplace_moment)]
    orders = np.array([order])
    found = [float(Moved(kind, epsilon).diverge(orders)[0]) for kind in ("pure", "laplace")]
    assert found[0] == pytest.approx(expected[0], rel=1e-12, abs=0)
    assert found[1] == pytest.approx(expected[1], rel=1e-8, abs=0)


@pytest.mark.parametrize("delta", DELTAS)
def test_renyi_beside_the_accountant_of_dp_accounting(delta: float) -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    losses = [
        loss_of("laplace", 0.3),
        loss_of("geometric", 0.4),
        loss_of("gaussian-pdp", 0.5, 1e-6),
        concentrated(0.02),
    ]
    scale = losses[2].mechanism.scale if losses[2].mechanism else 0.0
    accountant = RdpAccountant(renyi_orders(), dp_accounting.NeighboringRelation.REPLACE_ONE)
    for event in (
        dp_accounting.LaplaceDpEvent(1 / 0.3),
        dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(0.4)), 2),
        dp_accounting.GaussianDpEvent(scale),
        dp_accounting.ZCDpEvent(0.02),
    ):
        accountant.compose(event, 5)
    found = compose_renyi(events_of(losses) * 5, delta)
    assert isinstance(found, float)
    on_the_grid = accountant.get_epsilon(delta)  # ours looks between its orders too
    assert on_the_grid * (1 - 2e-5) <= found <= on_the_grid * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_renyi_of_concentrated_losses_is_zcdp_on_a_grid_of_orders(rho: float, delta: float) -> None:
    by_orders = compose_renyi(concentrated(rho).events, delta)
    solved = find_epsilon_of_rho(rho, delta)
    assert isinstance(by_orders, float)
    assert by_orders == pytest.approx(solved, rel=1e-3, abs=1e-9)
    assert by_orders >= solved * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_one_gaussian_gives_back_its_epsilon(epsilon: float, neighbours: str) -> None:
    loss = loss_of("gaussian-analytic", epsilon, 1e-6, neighbours)
    found = compose([loss], method="pld")
    assert found.dp_definition == loss.dp_definition
    assert found.epsilon == pytest.approx(epsilon, rel=1e-10, abs=0)


@pytest.mark.parametrize("delta", DELTAS)
def test_gaussians_compose_exactly(delta: float) -> None:
    losses = [
        loss_of("gaussian", 0.5, 1e-6),
        loss_of("gaussian-analytic", 2.0, 1e-5),
        loss_of("gaussian-pdp", 1.0, 1e-4),
    ]
    scales = [loss.mechanism.scale for loss in losses if loss.mechanism]
    mu = mp.sqrt(mp.fsum(1 / mp.mpf(scale) ** 2 for scale in scales))

    def delta_of(epsilon: mp.mpf) -> mp.mpf:
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.e**epsilon * mp.ncdf(-mu / 2 - epsilon / mu)

    exact = find_epsilon(delta_of, delta, 100.0)
    assert compose_pld(events_of(losses), delta) == pytest.approx(exact, rel=1e-11, abs=0)


def test_two_gaussians_beside_the_accountant_of_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    loss = loss_of("gaussian-analytic", 0.5, 1e-6)
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(loss.mechanism.scale if loss.mechanism else 0.0), 10)
    found = compose_pld(loss.events * 10, 1e-6)
    assert found == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-4, abs=0)


def test_a_large_delta_needs_no_epsilon() -> None:
    small = loss_of("gaussian-analytic", 0.01, 1e-9)
    for method in (compose_renyi, compose_pld):
        assert method(small.events, 0.5) == 0.0
        assert method(small.events + loss_of("geometric", 1e-3).events, 0.5) == 0.0


@pytest.mark.parametrize(
    ("method", "losses", "delta", "why"),
    [
        ("basic", [concentrated(0.1)], 1e-6, "a concentrated loss has no epsilon that could be added"),
        ("basic", [approximate(0.1, 1e-6)] * 2, 1e-6, "the deltas add up to 2e-06, which is more than 1e-06"),
        ("rdp", [approximate(0.1, 1e-6)], 1e-6, "the deltas of the guarantees use up all of the delta"),
        ("rdp", [pure(0.1)], 0.0, "it needs a delta above 0"),
        ("pld", [pure(0.1)], 0.0, "it needs a delta above 0"),
        ("pld", [concentrated(0.1)], 1e-6, "a concentrated loss says nothing of the distribution that it came from"),
    ],
    ids=["basic: rho", "basic: deltas", "rdp: deltas", "rdp: delta 0", "pld: delta 0", "pld: rho"],
)
def test_an_operator_says_why_it_has_no_answer(method: str, losses: list[Loss], delta: float, why: str) -> None:
    assert COMPOSERS[method](events_of(losses), delta) == why


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize(("epsilon", "times"), [(0.05, 40), (0.5, 20), (2.0, 6)])
@pytest.mark.parametrize("method", ["rdp", "pld"])
def test_guarantees_with_a_delta_are_taken_at_their_worst(
    method: str, epsilon: float, times: int, delta: float
) -> None:
    own = delta / times / 2
    exact = exact_epsilon([randomised_response_outcomes(epsilon, own)] * times, delta)
    found = COMPOSERS[method](approximate(epsilon, own).events * times, delta)
    assert isinstance(found, float)
    assert exact * (1 - 1e-9) <= found <= epsilon * times * (1 + 1e-9)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_few_equal_losses_are_each_counted(times: int) -> None:
    exact = exact_epsilon([randomised_response_outcomes(0.5)] * times, 1e-4)
    found = compose_pld(pure(0.5).events * times, 1e-4)
    assert isinstance(found, float)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-4)


def test_parts_do_not_depend_on_the_order_of_losses() -> None:
    losses = [loss_of("laplace", 0.5), pure(0.5), loss_of("discrete-gaussian", 0.5, 1e-6), concentrated(0.5)]
    assert Parts.of(events_of(losses)) == Parts.of(events_of(losses[::-1]))
    assert [times for _, times in Parts.of(events_of(losses) * 3).moved] == [3] * 4


@pytest.mark.parametrize("name", ["gaussian", "gaussian-pdp", "gaussian-analytic", "discrete-gaussian"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_gaussian_noise_is_concentrated(name: str, neighbours: str) -> None:
    """rho = L2^2 / (2 sigma^2) of each release (Bun and Steinke 2016, Proposition 1.6), and Renyi divergences a rho."""
    loss = loss_of(name, 0.5, 1e-6, neighbours)
    assert loss.mechanism is not None
    rho = (1 if neighbours == "add-remove" else 2) / (2 * loss.mechanism.scale**2)
    assert Loss.join([loss] * 3).total_rho == pytest.approx(3 * rho, rel=1e-12, abs=0)
    orders = np.array([1.5, 20.0])
    assert Parts.of(loss.events * 3).diverge(orders) == pytest.approx(3 * rho * orders, rel=1e-12, abs=0)
