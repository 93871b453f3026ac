"""What holds of every ceiling, at priors, epsilons and mechanisms drawn at random."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.ceilings import Labels, find_success, total_variation
from tests.examples import examples

ROOM = 1e-11

weights = st.lists(st.floats(0.001, 1.0) | st.just(0.0) | st.just(0.5), min_size=2, max_size=9).filter(any)
epsilons = st.floats(-6.0, 3.0).map(lambda power: 10.0**power)
kinds = st.sampled_from([LaplaceNoise, GeometricNoise, GaussianNoise, DiscreteGaussianNoise])


def normal(parts: list[float]) -> tuple[float, ...]:
    total = math.fsum(parts)
    return tuple(part / total for part in parts)


@settings(deadline=None, max_examples=examples(150))
@given(weights.map(normal), epsilons, kinds, st.booleans())
def test_between_the_prior_and_what_odds_allow(
    priors: tuple[float, ...], epsilon: float, kind: type[Noise], rounded: bool
) -> None:
    found = find_success(kind(1 / epsilon), Labels.of(priors), rounded=rounded)
    best = max(priors)
    assert best - ROOM <= found <= 1
    if kind in (LaplaceNoise, GeometricNoise):
        assert found <= best / (best + (1 - best) * math.exp(-2 * epsilon)) + ROOM


@settings(deadline=None, max_examples=examples(150))
@given(weights.map(normal), epsilons, st.floats(1.0, 10.0), kinds)
def test_more_epsilon_helps_and_rounding_does_not(
    priors: tuple[float, ...], epsilon: float, factor: float, kind: type[Noise]
) -> None:
    labels = Labels.of(priors)
    found = find_success(kind(1 / epsilon), labels)
    assert found <= find_success(kind(1 / (epsilon * factor)), labels) + ROOM
    assert find_success(kind(1 / epsilon), labels, rounded=True) <= found + ROOM


@settings(deadline=None, max_examples=examples(100))
@given(weights.map(normal), epsilons, kinds, st.randoms(use_true_random=False))
def test_names_of_labels_do_not_matter(
    priors: tuple[float, ...], epsilon: float, kind: type[Noise], shuffler: object
) -> None:
    found = find_success(kind(1 / epsilon), Labels.of(priors))
    mixed = list(priors)
    shuffler.shuffle(mixed)  # type: ignore[attr-defined]
    assert abs(find_success(kind(1 / epsilon), Labels.of([*mixed, 0.0])) - found) < ROOM


@settings(deadline=None, max_examples=examples(100))
@given(st.floats(0.0, 1.0), epsilons, kinds)
def test_two_labels_gain_at_most_the_total_variation(prior: float, epsilon: float, kind: type[Noise]) -> None:
    """C = max over tests of pi P(A) + (1 - pi)(1 - Q(A)), and two counts differ by at most twice what one does."""
    noise = kind(1 / epsilon)
    found = find_success(noise, Labels.of((prior, 1 - prior)))
    assert found <= max(prior, 1 - prior) + min(prior, 1 - prior) * min(2 * total_variation(noise), 1.0) + ROOM
    assert found <= find_success(noise, Labels.even(2)) + abs(prior - 0.5) + ROOM


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(2, 400), st.floats(-3.0, 2.0).map(lambda power: 10.0**power), kinds)
def test_more_labels_are_harder_to_tell_apart(labels: int, epsilon: float, kind: type[Noise]) -> None:
    found = [find_success(kind(1 / epsilon), Labels.even(count)) for count in (labels, labels + 1)]
    assert found[1] <= found[0] + ROOM
    assert np.all(np.array(found) >= 1 / (labels + 1) - ROOM)
