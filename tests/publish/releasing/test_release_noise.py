"""`release`: the distribution of what comes out, dense and sparse, and that it keeps the privacy promise."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cellrisk as cr
import cellrisk.publish.releasing as package
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import GeometricNoise, Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing import measurement, release
from tests.publish.releasing.evidence import FALSE_ALARM, SIDE, all_counts, breaks_promise, chance_of, misfit, square

pytest.importorskip("opendp")

MECHANISMS = [
    cr.Geometric(epsilon=1.0),
    cr.Geometric(epsilon=0.7, neighbours="replace"),
    cr.DiscreteGaussian(epsilon=1.0, delta=0.05),
]
PROMISES = [cr.Geometric(epsilon=0.7), cr.DiscreteGaussian(epsilon=0.3, delta=0.02)]


def name_of(mechanism: Mechanism) -> str:
    return f"{mechanism.name}-{mechanism.neighbours}"


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=name_of)
def test_noise_has_the_distribution_of_the_mechanism(mechanism: Mechanism) -> None:
    released = release(square(7), mechanism, clamp=False)
    noise = all_counts(released.frame) - [7, 0]
    chance, reach = chance_of(mechanism), math.ceil(20 * mechanism.scale)
    assert released.dense
    assert released.frame["count"].min() < 0
    for level in range(2):
        support = range(-reach, reach + 1)
        assert misfit(noise[:, level], support, [chance(j) for j in support]) > FALSE_ALARM


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("threshold", [0.5, pytest.param(2.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mechanism", MECHANISMS[1:], ids=name_of)
def test_dense_and_sparse_releases_have_one_distribution(mechanism: Mechanism, threshold: float, dense: bool) -> None:
    mechanism = dataclasses.replace(mechanism, threshold=threshold)
    released = release(square(2, share=0.5), mechanism, dense=dense)
    if not dense:
        assert released.frame["count"].min() > threshold
    counts = all_counts(released.frame)
    half = len(counts) // 2
    chance, reach = chance_of(mechanism), math.ceil(20 * mechanism.scale) + 5
    for true, sample in ((2, counts[:half, 0]), (0, counts[:half, 1]), (0, counts[half:].ravel())):
        zero = math.fsum(chance(j - true) for j in range(-reach, math.ceil(threshold)))
        support = range(math.ceil(threshold), reach)
        assert misfit(sample, [0, *support], [zero, *(chance(j - true) for j in support)]) > FALSE_ALARM


def test_empty_counts_that_come_out_positive_are_spread_evenly() -> None:
    released = release(square(1, share=0.01), cr.Geometric(epsilon=1.0, threshold=1.5), dense=False)
    places = np.flatnonzero(all_counts(released.frame).ravel()[round(0.01 * SIDE**2) * 2 :])
    blocks = places * 60 // (2 * SIDE**2)
    chances = np.bincount(np.arange(round(0.99 * 2 * SIDE**2)) * 60 // (2 * SIDE**2), minlength=60)
    assert misfit(blocks, range(60), chances / chances.sum()) > FALSE_ALARM
    assert (np.diff(released.frame.a.cat.codes.to_numpy(int) * SIDE + released.frame.b.cat.codes) >= 0).all()


def neighbours_released(mechanism: Mechanism, dense: bool) -> list[np.ndarray]:
    """Many releases of a count of 0, of 1 and of 2: tables that differ in one record have such a pair at one place."""
    once, twice = (all_counts(release(square(n, share=0.5), mechanism, dense=dense).frame) for n in (1, 2))
    half = SIDE**2 // 2
    return [np.concatenate([once[half:].ravel(), once[:half, 1]]), once[:half, 0], twice[:half, 0]]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("threshold", [0.5, pytest.param(1.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mechanism", PROMISES, ids=name_of)
def test_neighbours_are_hard_to_tell_apart(mechanism: Mechanism, threshold: float, dense: bool) -> None:
    mechanism = dataclasses.replace(mechanism, threshold=threshold)
    for first, second in pairwise(neighbours_released(mechanism, dense)):
        assert not breaks_promise(first, second, mechanism.epsilon, mechanism.delta)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("mechanism", PROMISES, ids=name_of)
def test_half_the_noise_is_caught(mechanism: Mechanism, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measurement.calibrate(mechanism)
    monkeypatch.setattr(package, "calibrate", lambda _: dataclasses.replace(whole, scale=whole.scale / 2))
    pairs = pairwise(neighbours_released(mechanism, dense))
    assert any(breaks_promise(first, second, mechanism.epsilon, mechanism.delta) for first, second in pairs)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=name_of)
def test_no_noise_of_numpy_reaches_a_release(
    mechanism: Mechanism, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("noise of numpy was drawn")

    for kind in Noise.__subclasses__():
        monkeypatch.setattr(kind, "sample", refuse)
    monkeypatch.setattr(np.random, "default_rng", refuse)
    assert len(release(square(3, share=0.01), mechanism, dense=dense).frame)


def test_the_package_names_no_other_source_of_noise() -> None:
    paths = [*Path(package.__file__).parent.rglob("*.py")]
    assert Path(package.__file__) in paths
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert not [word for word in ("np.random", "numpy.random", "import random", ".sample(") if word in text], path


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1 / 3, 1.0, 1.7, 7.0])
def test_the_loss_by_opendp_is_within_the_budget(epsilon: float, neighbours: str) -> None:
    pure = cr.Geometric(epsilon=epsilon, neighbours=neighbours)
    approximate = cr.DiscreteGaussian(epsilon=epsilon, delta=1e-6, neighbours=neighbours)
    for mechanism, budget in ((pure, epsilon), (approximate, approximate.rho)):
        found = measurement.calibrate(mechanism)
        assert budget * (1 - 1e-12) <= found.loss <= budget
        assert mechanism.scale <= found.scale <= mechanism.scale * (1 + 1e-12)


def test_a_mechanism_with_too_little_noise_is_refused() -> None:
    class Halved(cr.Geometric):
        def noise_at(self, epsilon: float) -> Noise:
            return GeometricNoise(0.5 * self.l1 / epsilon)

    with pytest.raises(InvalidInput, match="too small for what it promises"):
        release(square(3), Halved(epsilon=1.0))
