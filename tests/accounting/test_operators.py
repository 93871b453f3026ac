"""Each operator beside an independent computation: mpmath, dp-accounting's accountants, exact enumeration."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from cellrisk.repeat.accounting.composition import compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.accounting.operators import (
    add_up,
    compose_advanced,
    compose_basic,
    compose_concentrated,
    compose_gaussians,
    compose_pld,
    compose_renyi,
)
from cellrisk.repeat.accounting.pieces import LaplacePiece, PurePiece, take_apart

from .cases import approximate, concentrated, loss_of, probabilistic, pure
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
    found = compose([approximate(0.1, 1e-6), approximate(0.2, 2e-6)], operator="basic")
    assert (found.epsilon, found.delta) == (0.3, 3e-6)


@pytest.mark.parametrize("loss", [pure(0.7), probabilistic(0.7, 1e-5), approximate(0.7, 1e-5)], ids=lambda x: x.flavour)
def test_one_loss_is_itself_under_basic(loss: Loss) -> None:
    found = compose([loss], operator="basic")
    assert (found.epsilon, found.delta, found.flavour) == (loss.epsilon, loss.delta, loss.flavour)


def advanced_in_many_digits(losses: Sequence[Loss], delta: float) -> float:
    """Theorem 3.5 of Kairouz, Oh and Viswanath, term by term as printed."""
    epsilons = [mp.mpf(repr(loss.epsilon)) for loss in losses]
    kept = mp.fprod(1 - mp.mpf(repr(loss.delta)) for loss in losses)
    slack = 1 - (1 - mp.mpf(repr(delta))) / kept
    drift = mp.fsum((mp.e**e - 1) * e / (mp.e**e + 1) for e in epsilons)
    root = mp.sqrt(mp.fsum(e**2 for e in epsilons))
    first = mp.fsum(epsilons)
    second = drift + mp.sqrt(mp.fsum(2 * e**2 * mp.log(mp.e + root / slack) for e in epsilons))
    third = drift + mp.sqrt(mp.fsum(2 * e**2 * mp.log(1 / slack) for e in epsilons))
    return float(min(first, second, third))


@pytest.mark.parametrize(
    ("losses", "delta"),
    [
        ([pure(0.01)] * 1000, 1e-6),
        ([pure(2.0)] * 50, 1e-6),
        ([pure(0.1)] * 3, 1e-6),
        ([pure(0.01), pure(0.02), approximate(0.05, 1e-7)] * 100, 2e-5),
        ([approximate(0.01, 1e-9)] * 400, 4e-7),
        ([approximate(0.001, 1e-11)] * 2000, 2e-8),
    ],
    ids=["small", "large", "few", "different", "the sum of deltas", "a tiny slack"],
)
def test_advanced_is_the_theorem(losses: list[Loss], delta: float) -> None:
    assert compose_advanced(losses, "approximate", delta) == pytest.approx(
        advanced_in_many_digits(losses, delta), rel=1e-12, abs=0
    )


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize(("epsilon", "times"), [(0.05, 40), (0.5, 20), (2.0, 6)])
def test_advanced_covers_the_worst_there_is(epsilon: float, times: int, delta: float) -> None:
    own = delta / times / 2
    exact = exact_epsilon([randomised_response_outcomes(epsilon, own)] * times, delta)
    found = compose_advanced([approximate(epsilon, own)] * times, "approximate", delta)
    assert isinstance(found, float)
    assert exact <= found <= epsilon * times


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(
    ("losses", "rho"),
    [
        ([concentrated(0.3), concentrated(0.2)], 0.5),
        ([pure(0.4)], 0.08),
        ([loss_of("laplace", 0.4)], 0.08),
        ([loss_of("geometric", 0.4, neighbours="replace")], 0.04),
        ([pure(1000.0)], 500_000.0),
    ],
    ids=["concentrated", "pure", "laplace", "a replaced record", "huge"],
)
def test_rhos_add_up(losses: list[Loss], rho: float, delta: float) -> None:
    def log_delta(order: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
        return (order - 1) * (order * rho - epsilon) + order * mp.log(1 - 1 / order) - mp.log(order - 1)

    found = compose_concentrated(losses, "approximate", delta)
    assert isinstance(found, float)
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
    assert compose([loss], operator="zcdp").epsilon == pytest.approx(epsilon, rel=1e-10, abs=0)


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
    found = [float(kind(epsilon).diverge(orders)[0]) for kind in (PurePiece, LaplacePiece)]
    assert found[0] == pytest.approx(expected[0], rel=1e-12, abs=0)
    assert found[1] == pytest.approx(expected[1], rel=1e-8, abs=0)


@pytest.mark.parametrize("delta", DELTAS)
def test_renyi_beside_the_accountant_of_dp_accounting(delta: float) -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    from cellrisk.repeat.accounting.operators import _orders

    losses = [
        loss_of("laplace", 0.3),
        loss_of("geometric", 0.4),
        loss_of("gaussian-pdp", 0.5, 1e-6),
        concentrated(0.02),
    ]
    scale = losses[2].mechanism.scale if losses[2].mechanism else 0.0
    accountant = RdpAccountant(_orders(), dp_accounting.NeighboringRelation.REPLACE_ONE)
    for event in (
        dp_accounting.LaplaceDpEvent(1 / 0.3),
        dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(0.4)), 2),
        dp_accounting.GaussianDpEvent(scale),
        dp_accounting.ZCDpEvent(0.02),
    ):
        accountant.compose(event, 5)
    found = compose_renyi(losses * 5, "approximate", delta)
    assert found == pytest.approx(accountant.get_epsilon(delta), rel=1e-9, abs=0)


@pytest.mark.parametrize("rho", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_renyi_of_concentrated_losses_is_zcdp_on_a_grid_of_orders(rho: float, delta: float) -> None:
    by_orders = compose_renyi([concentrated(rho)], "approximate", delta)
    solved = compose_concentrated([concentrated(rho)], "approximate", delta)
    assert isinstance(solved, float)
    assert by_orders == pytest.approx(solved, rel=1e-3, abs=1e-9)
    assert by_orders >= solved * (1 - 1e-9)


@pytest.mark.parametrize("name", ["gaussian-analytic", "gaussian-pdp"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_one_gaussian_gives_back_its_epsilon(name: str, epsilon: float, neighbours: str) -> None:
    loss = loss_of(name, epsilon, 1e-6, neighbours)
    found = compose([loss], operator="gaussian")
    assert found.flavour == loss.flavour
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
    assert compose_gaussians(losses, "approximate", delta) == pytest.approx(exact, rel=1e-11, abs=0)


def test_probabilistic_gaussians_keep_the_probability() -> None:
    """The loss of all together is normal with mean mu^2/2 and deviation mu, under the other table mirrored."""
    losses = [loss_of("gaussian-pdp", 0.5, 1e-6), loss_of("gaussian-pdp", 1.0, 1e-5)]
    found = compose(losses, operator="gaussian")
    mu = mp.sqrt(mp.fsum(1 / mp.mpf(loss.mechanism.scale) ** 2 for loss in losses if loss.mechanism))
    above = mp.ncdf((mu**2 / 2 - found.epsilon) / mu)
    below = mp.ncdf((-(mu**2) / 2 - found.epsilon) / mu)
    assert found.flavour == "probabilistic"
    assert float(above) == pytest.approx(found.delta / 2, rel=1e-9, abs=0)
    assert above + below <= found.delta
    assert found.epsilon < 1.5


def test_two_gaussians_beside_the_accountant_of_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    loss = loss_of("gaussian-analytic", 0.5, 1e-6)
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(loss.mechanism.scale if loss.mechanism else 0.0), 10)
    found = compose_gaussians([loss] * 10, "approximate", 1e-6)
    assert found == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-4, abs=0)


def test_a_large_delta_needs_no_epsilon() -> None:
    small = [loss_of("gaussian-analytic", 0.01, 1e-9)]
    for operator in (compose_concentrated, compose_renyi, compose_gaussians, compose_pld):
        assert operator(small, "approximate", 0.5) == 0.0


@pytest.mark.parametrize(
    ("operator", "losses", "flavour", "delta", "why"),
    [
        ("basic", [concentrated(0.1)], "approximate", 1e-6, "a concentrated loss has no epsilon that could be added"),
        (
            "basic",
            [approximate(0.1, 1e-6)] * 2,
            "approximate",
            1e-6,
            "the deltas add up to 2e-06, which is more than 1e-06",
        ),
        (
            "advanced",
            [concentrated(0.1)],
            "approximate",
            1e-6,
            "a concentrated loss has no epsilon, which advanced composition needs",
        ),
        (
            "advanced",
            [approximate(0.1, 1e-6)],
            "approximate",
            1e-6,
            "the deltas of the losses leave no delta for the slack that it needs",
        ),
        ("advanced", [pure(0.1)], "pure", 0.0, "it gives approximate DP, not pure DP"),
        ("advanced", [pure(0.1)], "approximate", 0.0, "it needs a delta above 0"),
        (
            "zcdp",
            [approximate(0.1, 1e-6)],
            "approximate",
            1e-6,
            "a loss with a delta and no known mechanism has no bounded Renyi divergence",
        ),
        ("zcdp", [pure(0.1)], "probabilistic", 1e-6, "it gives approximate DP, not probabilistic DP"),
        ("zcdp", [pure(1e200)], "approximate", 1e-6, "the losses are too large for their squares"),
        (
            "rdp",
            [probabilistic(0.1, 1e-6)],
            "approximate",
            1e-6,
            "a loss with a delta and no known mechanism has no bounded Renyi divergence",
        ),
        ("rdp", [pure(0.1)], "approximate", 0.0, "it needs a delta above 0"),
        (
            "gaussian",
            [pure(0.1)],
            "approximate",
            1e-6,
            "not every loss is known to come from continuous Gaussian noise",
        ),
        (
            "gaussian",
            [loss_of("gaussian-pdp", 0.1, 1e-6)],
            "approximate",
            0.0,
            "Gaussian noise needs a delta above 0",
        ),
        ("pld", [pure(0.1)], "pure", 0.0, "it gives approximate DP, not pure DP"),
        (
            "pld",
            [concentrated(0.1)],
            "approximate",
            1e-6,
            "a concentrated loss says nothing of the distribution that it came from",
        ),
    ],
    ids=[
        *("basic: concentrated", "basic: too many deltas"),
        *("advanced: concentrated", "advanced: no slack", "advanced: pure", "advanced: delta 0"),
        *("zcdp: no mechanism", "zcdp: probabilistic", "zcdp: huge", "rdp: no mechanism", "rdp: delta 0"),
        *("gaussian: other noise", "gaussian: delta 0", "pld: pure", "pld: concentrated"),
    ],
)
def test_an_operator_says_why_it_has_no_answer(
    operator: str, losses: list[Loss], flavour: str, delta: float, why: str
) -> None:
    from cellrisk.repeat.accounting.operators import COMPOSERS

    assert COMPOSERS[operator](losses, flavour, delta) == why


def test_basic_is_the_same_whatever_the_flavour() -> None:
    assert {compose_basic([pure(0.1)] * 3, flavour, 0.0) for flavour in ("pure", "probabilistic", "approximate")} == {
        0.3
    }


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_few_equal_losses_are_each_counted(times: int) -> None:
    exact = exact_epsilon([randomised_response_outcomes(0.5)] * times, 1e-4)
    found = compose_pld([pure(0.5)] * times, "approximate", 1e-4)
    assert isinstance(found, float)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-4)


def test_pieces_do_not_depend_on_the_order_of_losses() -> None:
    losses = [loss_of("laplace", 0.5), pure(0.5), loss_of("discrete-gaussian", 0.5, 1e-6), concentrated(0.5)]
    assert take_apart(losses) == take_apart(losses[::-1])
    assert [times for _, times in take_apart(losses * 3)] == [3] * 4


@pytest.mark.parametrize("name", ["gaussian", "gaussian-pdp", "gaussian-analytic", "discrete-gaussian"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_gaussian_noise_is_concentrated(name: str, neighbours: str) -> None:
    """rho = L2^2 / (2 sigma^2) of each release (Bun and Steinke 2016, Proposition 1.6), and Renyi divergences a rho."""
    loss = loss_of(name, 0.5, 1e-6, neighbours)
    assert loss.mechanism is not None
    rho = (1 if neighbours == "add-remove" else 2) / (2 * loss.mechanism.scale**2)
    pieces = take_apart([loss] * 3)
    assert math.fsum(times * piece.rho for piece, times in pieces) == pytest.approx(3 * rho, rel=1e-12, abs=0)
    orders = np.array([1.5, 20.0])
    assert sum(times * piece.diverge(orders) for piece, times in pieces) == pytest.approx(
        3 * rho * orders, rel=1e-12, abs=0
    )


def test_gaussians_compose_exactly_only_among_themselves() -> None:
    gaussian, laplace = loss_of("gaussian-analytic", 0.5, 1e-6), loss_of("laplace", 0.5)
    for losses in ([gaussian, laplace], [laplace, gaussian], [laplace], [gaussian, pure(0.5)]):
        assert "not every loss" in str(compose_gaussians(losses, "approximate", 1e-5))
    assert isinstance(compose_gaussians([gaussian], "approximate", 1e-5), float)
