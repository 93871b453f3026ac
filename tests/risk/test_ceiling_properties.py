"""What holds of every ceiling, at priors, epsilons and mechanisms drawn at random."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.ceilings import find_success, total_variation
from tests.examples import examples

ROOM = 1e-11

numbers = st.integers(2, 300)
epsilons = st.floats(-6.0, 3.0).map(lambda power: 10.0**power)
kinds = st.sampled_from([LaplaceNoise, GeometricNoise, GaussianNoise, DiscreteGaussianNoise])


@settings(max_examples=examples(150))
@given(numbers, epsilons, kinds, st.booleans())
def test_between_the_prior_and_what_odds_allow(labels: int, epsilon: float, kind: type[Noise], rounded: bool) -> None:
    found = find_success(kind(1 / epsilon), labels, rounded=rounded)
    best = 1 / labels
    assert best - ROOM <= found <= 1
    if kind in (LaplaceNoise, GeometricNoise):
        assert found <= best / (best + (1 - best) * math.exp(-2 * epsilon)) + ROOM


@settings(max_examples=examples(150))
@given(numbers, epsilons, st.floats(1.0, 10.0), kinds)
def test_more_epsilon_helps_and_rounding_does_not(
    labels: int, epsilon: float, factor: float, kind: type[Noise]
) -> None:
    found = find_success(kind(1 / epsilon), labels)
    assert found <= find_success(kind(1 / (epsilon * factor)), labels) + ROOM
    assert find_success(kind(1 / epsilon), labels, rounded=True) <= found + ROOM


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
