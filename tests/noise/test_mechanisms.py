"""Each mechanism gives the guarantee it names, on the safe side, and refuses where it gives none."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath as mp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.noise.distributions import InfiniteNoise
from cellrisk.noise.mechanisms import (
    MECHANISMS,
    NEIGHBOURS,
    SAFE,
    Gaussian,
    Mechanism,
    gaussian_log_delta,
    mechanism,
    zcdp_log_delta,
)
from tests.examples import examples
from tests.near import same

DELTAS = {name: None if kind.pure else 1e-5 for name, kind in MECHANISMS.items()}


def make(name: str, epsilon: float = 0.5, **settings: object) -> Mechanism:
    return mechanism(name, epsilon=epsilon, **{"delta": DELTAS[name], **settings})  # type: ignore[arg-type]


def gaussian_delta(sigma: float, epsilon: float) -> mp.mpf:
    """Balle and Wang's exact delta of a Gaussian with sensitivity 1, in 60 digits."""
    with mp.workdps(60):
        s, e = mp.mpf(sigma), mp.mpf(epsilon)
        return mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)


def test_names_are_the_promised_ones() -> None:
    assert set(MECHANISMS) == {
        "laplace",
        "gaussian",
        "gaussian-pdp",
        "gaussian-analytic",
        "geometric",
        "discrete-gaussian",
    }


@pytest.mark.parametrize(
    ("name", "epsilon", "delta", "scale"),
    [
        ("laplace", 0.25, None, 4.0),
        ("geometric", 0.25, None, 4.0),
        ("gaussian", 0.5, 0.01, math.sqrt(2 * math.log(125)) / 0.5),
        ("gaussian-pdp", 1.0, 0.01, (math.sqrt(2.5758293035489004**2 + 2) + 2.5758293035489004) / 2),
    ],
)
def test_scales_by_the_formulas(name: str, epsilon: float, delta: float | None, scale: float) -> None:
    assert math.isclose(mechanism(name, epsilon=epsilon, delta=delta).scale, scale, rel_tol=1e-12)


@settings(max_examples=examples(60))
@given(epsilon=st.floats(-8, 2.5).map(lambda power: 10.0**power), delta=st.floats(-300, -0.01).map(lambda p: 10.0**p))
@example(epsilon=1e-6, delta=1e-30)
@example(epsilon=1e-8, delta=1e-300)
@example(epsilon=1e-8, delta=0.01)
@example(epsilon=1e-3, delta=0.6)
@example(epsilon=60.0, delta=1e-300)
@example(epsilon=1e12, delta=1e-6)
def test_analytic_gaussian_is_smallest_and_safe(epsilon: float, delta: float) -> None:
    """The delta of the sigma that is used, in 60 digits: never above the one asked for, and hardly below.

    A difference of two terms that nearly cancel is rounded up: below an epsilon of 1e-3 that may cost a part in 10^4.
    """
    sigma = mechanism("gaussian-analytic", epsilon=epsilon, delta=delta).scale
    assert gaussian_delta(sigma, epsilon) <= delta
    usual = epsilon >= 1e-3 and delta >= 1e-15
    assert gaussian_delta(sigma * (1 - (1e-9 if usual else 1e-4)), epsilon) > delta


def test_log_delta_agrees_with_mpmath() -> None:
    """Never below, but for the 4e-12 that calibration keeps as a margin, so noise is never less than is promised."""
    for sigma in (0.03, 0.09, 0.1, 0.7, 3.0, 30.0, 1e4, 1e7):
        for epsilon in (1e-9, 1e-4, 0.01, 0.17, 1.0, 1.2, 12.0):
            exact = gaussian_delta(sigma, epsilon)
            if exact > mp.mpf("1e-300"):
                above = gaussian_log_delta(sigma, epsilon) - float(mp.log(exact))
                assert -SAFE <= above <= (1e-9 if exact > mp.mpf("1e-15") and sigma <= 1e4 else 1.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 0.999])
def test_classical_gaussian_gives_its_guarantee(epsilon: float) -> None:
    for delta in (1e-8, 0.01, 0.3):
        assert gaussian_delta(mechanism("gaussian", epsilon=epsilon, delta=delta).scale, epsilon) <= delta


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 9.0])
def test_probabilistic_gaussian_bounds_the_loss(epsilon: float) -> None:
    """The loss is N(1/(2 s^2), 1/s^2); both of its tails past epsilon together hold at most delta."""
    for delta in (1e-8, 0.01, 0.3):
        s = mp.mpf(mechanism("gaussian-pdp", epsilon=epsilon, delta=delta).scale)
        mean, sd = 1 / (2 * s**2), 1 / s
        beyond = mp.ncdf(-(epsilon - mean) / sd) + mp.ncdf((-epsilon - mean) / sd)
        assert beyond <= delta


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-8, 0.01])
def test_discrete_gaussian_gives_its_guarantee(epsilon: float, delta: float) -> None:
    """The exact delta of the discrete Gaussian: the sum over outcomes of max(0, P(j) - e^epsilon P(j - 1))."""
    law = mechanism("discrete-gaussian", epsilon=epsilon, delta=delta)
    sigma, reach = law.scale, int(40 * law.scale) + 5
    weight = {j: mp.exp(-(mp.mpf(j) ** 2) / (2 * mp.mpf(sigma) ** 2)) for j in range(-reach - 1, reach + 2)}
    total = mp.fsum(weight.values())
    terms = [weight[j] - mp.exp(epsilon) * weight[j - 1] for j in range(-reach, reach + 1)]
    assert mp.fsum(max(term, 0) for term in terms) / total <= delta
    assert math.isclose(law.rho, 1 / (2 * sigma**2), rel_tol=1e-12)  # type: ignore[attr-defined]


def test_zcdp_conversion_is_the_least_over_orders() -> None:
    for rho, epsilon in ((0.001, 0.2), (0.1, 1.0), (2.0, 1.0), (5.0, 30.0)):
        orders = [1 + math.exp(k / 500) for k in range(-6000, 6000)]
        grid = min((a - 1) * (a * rho - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1) for a in orders)
        ours = zcdp_log_delta(rho, epsilon)
        assert ours <= min(grid, 0) + 1e-12
        assert ours >= min(grid, 0) - 1e-3


@pytest.mark.parametrize("name", ["gaussian-analytic", "discrete-gaussian"])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_limit_is_where_scales_go(name: str, neighbours: str) -> None:
    """A delta alone bounds what is learnt: as epsilon falls the scale rises to that of epsilon 0, and stops there."""
    for delta in (1e-6, 0.01):
        limit = make(name, delta=delta, neighbours=neighbours).limit_noise
        scales = [make(name, epsilon, delta=delta, neighbours=neighbours).scale for epsilon in (1e-3, 1e-12)]
        assert type(limit) is type(make(name).noise)
        assert scales[0] < limit.scale
        assert math.isclose(scales[1], limit.scale, rel_tol=1e-6)


@pytest.mark.parametrize(
    "name", [name for name in MECHANISMS if name not in ("gaussian-analytic", "discrete-gaussian")]
)
def test_other_noise_grows_without_bound(name: str) -> None:
    assert make(name).limit_noise == InfiniteNoise()
    assert make(name, 1e-9).scale > 1e8


@pytest.mark.parametrize("name", MECHANISMS)
def test_replacing_a_record_needs_more_noise(name: str) -> None:
    ratio = make(name, neighbours="replace").scale / make(name).scale
    assert math.isclose(ratio, 2.0 if MECHANISMS[name].pure else math.sqrt(2), rel_tol=1e-9)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_is_checked(name: str, epsilon: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be"):
        make(name, epsilon)
    if name != "gaussian":  # which takes no epsilon above 1
        with pytest.raises(InvalidInput, match=r"epsilon is too large; got 1e\+101; allowed: up to 1e\+100"):
            make(name, 1e101)
        assert make(name, 1e100).epsilon == 1e100


@settings(max_examples=examples(100))
@given(epsilon=st.floats(1e-6, 50.0), delta=st.floats(1e-9, 0.9))
@example(epsilon=0.1 + 0.2, delta=1e-6)
@example(epsilon=1.0000004, delta=0.01000004)
def test_no_guarantee_is_told_smaller_than_it_is(epsilon: float, delta: float) -> None:
    _, one, _, _, other = make("gaussian-analytic", epsilon, delta=delta).guarantee.split()
    for told, true in ((one, epsilon), (other, delta)):
        assert true * (1.0 - 1e-12) <= float(told) <= true * (1.0 + 1e-5)


@pytest.mark.parametrize("name", [name for name, kind in MECHANISMS.items() if not kind.pure])
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan, None])
def test_delta_is_checked(name: str, delta: float | None) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        make(name, delta=delta)


@pytest.mark.parametrize("name", ["laplace", "geometric"])
def test_pure_mechanisms_take_no_delta(name: str) -> None:
    with pytest.raises(InvalidInput, match="gaussian-analytic"):
        make(name, delta=0.01)


@pytest.mark.parametrize("epsilon", [1.0, 1.5, 100.0])
def test_classical_gaussian_refuses_and_names_the_one_that_serves(epsilon: float) -> None:
    with pytest.raises(InvalidInput, match="gaussian-analytic"):
        make("gaussian", epsilon)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.5, 0.7, 1e12 + 0.5, 1e300, math.nan, math.inf])
def test_threshold_is_checked(threshold: float) -> None:
    with pytest.raises(InvalidInput, match=r"half-integer; got .*; allowed: 0.5, 1.5, ..., below 1e\+12$"):
        make("laplace", threshold=threshold)


def test_unknown_words_are_refused() -> None:
    with pytest.raises(UnknownName, match="laplace"):
        mechanism("laplaec", epsilon=1.0)
    with pytest.raises(UnknownName, match="add-remove"):
        make("laplace", neighbours="swap")
    with pytest.raises(CellriskError, match="must be a number"):
        mechanism("laplace", epsilon="1")  # type: ignore[arg-type]
    for wrong in ({"delta": True}, {"threshold": "0.5"}):
        with pytest.raises(CellriskError, match="must be a number"):
            make("gaussian-analytic", **wrong)


def test_unknown_name_is_a_key_error_with_a_plain_message() -> None:
    with pytest.raises(KeyError) as refusal:
        mechanism("nope", epsilon=1.0)
    assert str(refusal.value).startswith("unknown mechanism; got 'nope'; allowed: laplace")


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 0.01])
def test_discrete_gaussian_has_the_largest_rho_that_will_do(epsilon: float, delta: float) -> None:
    rho = make("discrete-gaussian", epsilon, delta=delta).rho  # type: ignore[attr-defined]
    assert zcdp_log_delta(rho, epsilon) <= math.log(delta) < zcdp_log_delta(rho * (1 + 1e-8), epsilon)


@pytest.mark.parametrize(("rho", "epsilon"), [(40.0, 1.0), (500.0, 1e-3)])
def test_a_delta_is_a_probability(rho: float, epsilon: float) -> None:
    """Where no Renyi order says anything, delta is 1."""
    assert zcdp_log_delta(rho, epsilon) == 0.0


@pytest.mark.parametrize("name", MECHANISMS)
def test_noises_at_many_epsilons_are_those_of_each(name: str) -> None:
    like = MECHANISMS[name](0.5, delta=0.0 if MECHANISMS[name].pure else 1e-6, neighbours="replace")
    epsilons = [0.01, 0.3, 0.99]
    each = tuple(replace(like, epsilon=epsilon).noise for epsilon in epsilons)
    assert same(like.channel_at(epsilons).noises, each)
    assert like.channel_at([]).noises == ()


@pytest.mark.parametrize("epsilons", [[0.5, 1.5], [0.5, 0.0], [-1.0, 0.5]])
def test_noises_where_there_is_no_guarantee_are_refused(epsilons: list[float]) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        Gaussian(0.5, delta=0.01).channel_at(epsilons)
