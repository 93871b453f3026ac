"""The two ends of noise: closed forms where it has grown without bound, and none at all."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, InfiniteNoise, LaplaceNoise, NoNoise
from cellrisk.noise.mechanisms import mechanism
from cellrisk.risk.measures import FORMS
from cellrisk.risk.measures.dirichlet import Dirichlet, labels_drawn
from tests.risk.measures import cases, oracle

FINITE = {"gaussian-analytic": GaussianNoise, "discrete-gaussian": DiscreteGaussianNoise}


def cells_for(measure: str) -> list[tuple[int, ...]]:
    return [(3, 1)] if "/" in measure else cases.CELLS


def tolerance(measure: str) -> float:
    """Random sizes are enumerated until less than 1e-9 of their probability is left."""
    return 2e-9 if "/" in measure else 1e-14


def half(count: int) -> mp.mpf:
    return mp.mpf(1) / 2


BELOW: dict[float, oracle.Probability] = {
    threshold: lambda count, threshold=threshold: mp.mpf(1 if count < threshold else 0)  # type: ignore[misc]
    for threshold in (0.5, 2.5)
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("measure", cases.MEASURES)
def test_endless_noise_agrees_with_enumeration(measure: str, form: str) -> None:
    for cell in cells_for(measure):
        ours = cases.ours(measure, cell, InfiniteNoise(), 0.5, form)
        theirs = cases.theirs(measure, cell, half, form)
        assert abs(ours - theirs) <= tolerance(measure), cell


@pytest.mark.parametrize("threshold", BELOW)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("measure", cases.MEASURES)
def test_no_noise_agrees_with_enumeration(measure: str, form: str, threshold: float) -> None:
    for cell in cells_for(measure):
        ours = cases.ours(measure, cell, NoNoise(), threshold, form)
        theirs = cases.theirs(measure, cell, BELOW[threshold], form)
        assert abs(ours - theirs) <= tolerance(measure), cell


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("measure", cases.MEASURES)
def test_closed_forms_are_the_sums_that_they_replace(measure: str, form: str) -> None:
    """`risk` sums over counts under any noise; `chance` does not. Both at sizes that no enumeration reaches."""
    cell = (400, 90, 3, 1)
    made = cases.measures_for(4)[measure]
    reduced = made.reduce(Profiles.from_cells([cell], n_levels=4))
    channel = AdditiveChannel((InfiniteNoise(),))
    block = reduced.blocks[0]
    summed = made.risk(block, 4, channel, (form,))[form][0, 0]
    closed = made.limit(block, 4, channel, (form,))[form][0, 0]
    assert abs(summed - closed) <= 1e-12 * closed


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise])
@pytest.mark.parametrize("measure", cases.MEASURES)
def test_wide_noise_tends_to_the_closed_forms(measure: str, kind: type[LaplaceNoise]) -> None:
    for form in FORMS:
        ours = cases.ours(measure, (7, 3, 1), InfiniteNoise(), 1.5, form)
        assert abs(cases.ours(measure, (7, 3, 1), kind(1e9), 1.5, form) - ours) <= 1e-7


def test_endless_noise_stands_among_others() -> None:
    """Noises keep their order, whichever of them has grown without bound."""
    profiles = Profiles.from_cells([[7, 2, 1], [4, 0, 0]], n_levels=3)
    noises = [InfiniteNoise(), LaplaceNoise(2.0), LaplaceNoise(0.5), InfiniteNoise(), NoNoise()]
    for measure in cases.measures_for(3).values():
        together = measure.average(profiles, AdditiveChannel(tuple(noises)))
        for column, noise in enumerate(noises):
            alone = measure.average(profiles, AdditiveChannel((noise,)))
            for key, values in together.items():
                assert values[column] == pytest.approx(alone[key][0], rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("size", [1, 17, 104_087, 10**7])
@pytest.mark.parametrize("alpha", [(0.06, 0.98, 0.2), (1e-7, 1e-6), (3e8, 1e9, 5.0), (2.0,)])
def test_labels_drawn_agree_with_mpmath(size: int, alpha: tuple[float, ...]) -> None:
    ours = labels_drawn(Dirichlet.given(alpha, len(alpha)), np.array([size]))[0]
    with mp.workdps(60):
        total = mp.fsum(alpha)
        theirs = mp.mpf(0)
        for a in alpha:
            rest = total - mp.mpf(a)
            none = mp.gammaprod([rest + size, total], [total + size, rest]) if rest else mp.mpf(0)
            theirs += 1 - none
    assert abs(ours - theirs) <= 1e-12 * theirs


def test_endless_noise_is_not_drawn_and_none_is_nothing() -> None:
    with pytest.raises(InvalidInput, match="cannot be drawn"):
        InfiniteNoise().sample(np.random.default_rng(1), (3,))
    assert NoNoise().sample(np.random.default_rng(1), (3,)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("delta", [0.9, 1e-3, 1e-12, 1e-30])
def test_limit_of_the_analytic_gaussian_agrees_with_mpmath(delta: float) -> None:
    sigma = mechanism("gaussian-analytic", epsilon=1.0, delta=delta).limit_noise.scale
    with mp.workdps(60):
        reached = mp.erf(1 / (2 * mp.sqrt(2) * mp.mpf(sigma)))
        assert abs(reached - mp.mpf(delta)) <= 1e-13 * mp.mpf(delta)
