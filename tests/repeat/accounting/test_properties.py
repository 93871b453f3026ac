"""What holds of every composition, whatever the losses."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.repeat.accounting.composition import COMPOSERS, METHODS, compose
from cellrisk.repeat.accounting.loss import Loss
from tests.examples import examples
from tests.near import same

from .cases import ONE_OF_EACH, approximate, concentrated, events_of, loss_of, pure

EPSILONS = st.sampled_from([0.001, 0.05, 0.3, 1.0, 7.5])
DELTAS = st.sampled_from([1e-9, 1e-7])
KNOWN = st.one_of(
    st.builds(pure, EPSILONS),
    st.builds(loss_of, st.sampled_from(["laplace", "geometric"]), EPSILONS),
    st.builds(loss_of, st.sampled_from(["gaussian-pdp", "gaussian-analytic", "discrete-gaussian"]), EPSILONS, DELTAS),
)
STATED = st.builds(approximate, EPSILONS, DELTAS)
ZERO_CONCENTRATED = st.builds(concentrated, st.sampled_from([1e-5, 0.01, 0.5]))
LOSSES = st.one_of(KNOWN, STATED, ZERO_CONCENTRATED)
SOME = st.lists(LOSSES, min_size=2, max_size=6)
few = settings(max_examples=examples(25), deadline=None, phases=(Phase.explicit, Phase.generate))
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


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_known_noise_keeps_its_promise(name: str) -> None:
    loss = ONE_OF_EACH[name]
    answer = COMPOSERS["pld"](loss.events, loss.delta or 1e-6)
    assert isinstance(answer, float)
    assert 0 < answer <= float(loss.epsilon or 0) * (1 + 1e-6)
