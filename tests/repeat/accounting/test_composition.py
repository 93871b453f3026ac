"""Each method of composition beside an independent computation; what `compose` chooses, says and refuses."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.composition import COMPOSERS, METHODS, compose, compose_pld, compose_renyi
from cellrisk.repeat.accounting.composition import find_epsilon as find_epsilon_of_rho
from cellrisk.repeat.accounting.distributions import RENYI_ORDERS, Moved, Parts
from cellrisk.repeat.accounting.loss import Loss, add_up
from tests.examples import examples
from tests.near import near_epsilon, same

from .cases import approximate, concentrated, events_of, loss_of, pure
from .oracle import exact_epsilon, find_epsilon, mp, randomised_response_outcomes

GAUSSIAN = loss_of("gaussian-pdp", 0.5, 1e-6)


@pytest.mark.parametrize("method", ["tightest", *METHODS])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_nothing_costs_nothing(method: str, delta: float | None) -> None:
    found = compose([], method=method, delta=delta)
    assert (found.epsilon, found.delta, found.dp_definition) == (0.0, 0.0, "pure")
    assert found.headline == "Nothing is released: epsilon 0."
    assert found.statements == ()
    assert all(each.epsilon == 0 for each in found.composed)


@pytest.mark.parametrize(
    ("losses", "delta", "dp_definition"),
    [
        ([pure(0.1)], None, "pure"),
        ([pure(0.1)], 0.0, "pure"),
        ([pure(0.1)], 1e-6, "approximate"),
        ([loss_of("laplace", 0.1), GAUSSIAN], 1e-7, "approximate"),
        ([GAUSSIAN], 1e-7, "approximate"),
        ([pure(0.1), approximate(0.1, 1e-6)], None, "approximate"),
        ([pure(0.1), concentrated(0.1)], 1e-6, "approximate"),
    ],
    ids=[
        *("pure", "delta 0", "pure at a delta", "a smaller delta"),
        *("a smaller delta of Gaussians", "both", "concentrated"),
    ],
)
def test_the_strongest_flavour_that_all_imply(losses: list[Loss], delta: float | None, dp_definition: str) -> None:
    found = compose(losses, delta=delta)
    assert found.dp_definition == dp_definition
    assert {each.dp_definition for each in found.composed} == {dp_definition}


def test_below_the_sum_of_deltas_noise_may_still_compose() -> None:
    found = compose([GAUSSIAN, loss_of("laplace", 0.1)], delta=1e-7)
    by_name = {each.method: each for each in found.composed}
    assert by_name["basic"].epsilon is None
    assert by_name["rdp"].epsilon is not None
    assert found.chosen.method == "pld"


def test_of_equals_the_first_is_chosen() -> None:
    one = compose([loss_of("gaussian-analytic", 0.5, 1e-6)])
    assert one.chosen.method == "basic"
    assert one.epsilon == 0.5
    assert compose([loss_of("gaussian-analytic", 0.5, 1e-6)] * 2).chosen.method == "pld"


@pytest.mark.parametrize(
    ("losses", "options", "kind", "message"),
    [
        ([pure(0.1)], {"method": "best"}, UnknownName, "unknown method; got 'best'; allowed: tightest, basic"),
        ([0.1], {}, InvalidInput, "only losses can be composed; got float"),
        ([pure(0.1)], {"delta": 1.0}, InvalidInput, "delta must be a number from 0 to below 1; got 1.0"),
        ([pure(0.1)], {"delta": float("nan")}, InvalidInput, "delta must be a number from 0 to below 1; got nan"),
        ([pure(0.1)], {"delta": True}, InvalidInput, "delta must be a number from 0 to below 1; got bool"),
        ([pure(0.1)], {"delta": "0.1"}, InvalidInput, "delta must be a number from 0 to below 1; got str"),
        (
            [pure(0.1), loss_of("laplace", 0.1, neighbours="replace")],
            {},
            InvalidInput,
            "a replaced record is one removed and one added; got 1 of 2 under neighbours='replace'",
        ),
        ([concentrated(0.1)], {}, InvalidInput, "concentrated losses compose to an epsilon at a delta"),
        ([concentrated(0.1)], {"delta": 0.0}, InvalidInput, "give a delta above 0"),
        ([approximate(0.1, 0.5)] * 2, {}, InvalidInput, "the deltas of the losses add up to 1 or more"),
        (
            [pure(0.1)],
            {"method": "pld"},
            InvalidInput,
            "pld composition has no answer for these losses: it gives approximate DP, not pure DP",
        ),
        (
            [approximate(0.1, 1e-6)] * 2,
            {"delta": 1e-6},
            InvalidInput,
            "no method has an answer for these losses at delta 1e-06 (basic: the deltas add up to 2e-06",
        ),
    ],
    ids=str,
)
def test_refusals(losses: list[Loss], options: dict, kind: type[CellriskError], message: str) -> None:
    with pytest.raises(kind) as refused:
        compose(losses, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("epsilon", [740.0, 750.0, 800.0, 1e10, 1e100])
@pytest.mark.parametrize("name", ["geometric", "laplace"])
def test_losses_beyond_floating_point_tell_everything(name: str, epsilon: float) -> None:
    """e^-epsilon is 0 there, and nothing is left of a distribution."""
    losses = [loss_of(name, epsilon)] * 3
    for delta in (None, 1e-6):
        assert compose(losses, delta=delta).epsilon == near_epsilon(3 * epsilon)
    found = compose_ceiling(losses, labels=4)
    assert (found.even_two, found.even, found.advantage, found.odds) == (1.0, 1.0, 1.0, math.inf)
    assert compose_ceiling([pure(epsilon)] * 2).even_two == 1.0
    assert compose([pure(1e200)] * 2, delta=1e-6).epsilon == near_epsilon(2e200)


def test_a_rho_and_a_stated_delta_compose() -> None:
    """By Renyi divergences, at what the stated delta leaves: no more than both alone at halves of it."""
    both = compose([approximate(0.1, 1e-6), concentrated(0.01)], delta=1e-5)
    assert both.chosen.method == "rdp"
    assert both.epsilon <= 0.1 + compose([concentrated(0.01)], delta=9e-6).epsilon
    assert both.epsilon > compose([concentrated(0.01)], delta=1e-5).epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0000004 / 3, 0.77777749, 1e-4 / 3])
@pytest.mark.parametrize("number", [1, 3, 7])
def test_no_sum_is_told_smaller_than_it_is(epsilon: float, number: int) -> None:
    found = compose([approximate(epsilon, 1.23456749e-6)] * number)
    words = found.headline.split()
    for name, true in (("epsilon", found.epsilon), ("delta", found.delta)):
        told = float(words[words.index(name) + 1])
        assert true * (1.0 - 1e-12) <= told <= true * (1.0 + 1e-5)


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
    accountant = RdpAccountant(RENYI_ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE)
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


EPSILONS = st.sampled_from([0.001, 0.05, 0.3, 1.0, 7.5])
DRAWN_DELTAS = st.sampled_from([1e-9, 1e-7])
KNOWN = st.one_of(
    st.builds(pure, EPSILONS),
    st.builds(loss_of, st.sampled_from(["laplace", "geometric"]), EPSILONS),
    st.builds(
        loss_of, st.sampled_from(["gaussian-pdp", "gaussian-analytic", "discrete-gaussian"]), EPSILONS, DRAWN_DELTAS
    ),
)
STATED = st.builds(approximate, EPSILONS, DRAWN_DELTAS)
ZERO_CONCENTRATED = st.builds(concentrated, st.sampled_from([1e-5, 0.01, 0.5]))
LOSSES = st.one_of(KNOWN, STATED, ZERO_CONCENTRATED)
SOME = st.lists(LOSSES, min_size=2, max_size=6)
few = settings(max_examples=examples(25), phases=(Phase.explicit, Phase.generate))
ALMOST = 1 + 1e-4
"""The grid of privacy loss distributions differs between compositions."""


@few
@given(SOME)
def test_the_tightest_is_below_all_others(losses: list[Loss]) -> None:
    found = compose(losses, delta=1e-5)
    assert len(found.composed) == len(METHODS)
    for each in found.composed:
        assert (each.epsilon is None) == bool(each.why)
        assert each.epsilon is None or found.epsilon <= each.epsilon * (1 + 1e-9)


@few
@given(SOME)
def test_one_more_release_never_lowers_epsilon(losses: list[Loss]) -> None:
    """With the same dp_definition and delta, for every method that has an answer for both."""
    for method in METHODS:
        before, after = (COMPOSERS[method](events_of(some), 1e-5) for some in (losses[1:], losses))
        if isinstance(before, float) and isinstance(after, float):
            assert before <= after * ALMOST
    least = [compose(some, delta=1e-5).epsilon for some in (losses[1:], losses)]
    assert least[0] <= least[1] * ALMOST


@few
@given(SOME, st.randoms(use_true_random=False))
def test_order_does_not_matter(losses: list[Loss], generator: random.Random) -> None:
    shuffled = list(losses)
    generator.shuffle(shuffled)
    assert same(compose(losses, delta=1e-5).composed, compose(shuffled, delta=1e-5).composed)


@few
@given(LOSSES)
def test_a_larger_delta_never_raises_epsilon(loss: Loss) -> None:
    for method in METHODS:
        answers = [COMPOSERS[method](loss.events * 3, delta) for delta in (1e-3, 1e-6, 1e-8)]
        epsilons = [answer for answer in answers if isinstance(answer, float)]
        assert all(less <= more * (1 + 1e-9) for less, more in itertools.pairwise(epsilons))
