"""What must hold for any table, any noise, any measure."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.measures import FORMS, WEIGHTS, Local, Measure
from cellrisk.risk.measures.dirichlet import Dirichlet
from cellrisk.risk.measures.given_total import Expected, MarginalShrinkage, Shrinkage
from cellrisk.risk.measures.marginal import Marginal
from cellrisk.risk.measures.sizes import SizeDistribution
from tests.examples import examples
from tests.risk.measures.cases import negative_binomial_sizes, poisson_sizes

noises = st.builds(
    lambda kind, scale: kind(scale),
    st.sampled_from([LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise]),
    st.floats(0.02, 200.0),
)
tables = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 30), min_size=k, max_size=k), min_size=1, max_size=8).filter(
        lambda cells: any(any(cell) for cell in cells)
    )
)
sizes = st.one_of(
    st.builds(poisson_sizes, st.floats(0.05, 30.0), st.booleans(), st.just("given")),
    st.builds(negative_binomial_sizes, st.floats(0.05, 50.0), st.floats(0.1, 20.0), st.booleans(), st.just("given")),
)


def every_measure(n_levels: int, alpha: float, law: SizeDistribution) -> list[Measure]:
    prior = Dirichlet.given([alpha * (k + 1) for k in range(n_levels)], n_levels)
    return [Local(), Expected(), Shrinkage(prior), Marginal(law), MarginalShrinkage(prior, law)]


@settings(max_examples=examples(60))
@given(tables, st.lists(noises, min_size=1, max_size=3), st.sampled_from([0.5, 3.5]), st.floats(0.01, 20.0), sizes)
def test_range_order_and_average(
    cells: list[list[int]],
    laws: list[Noise],
    threshold: float,
    alpha: float,
    law: SizeDistribution,
) -> None:
    n_levels = len(cells[0])
    profiles = Profiles.from_cells(cells, n_levels)
    channel = AdditiveChannel(tuple(laws), threshold)
    for measure in every_measure(n_levels, alpha, law):
        found = measure.average(profiles, channel)
        for weights in WEIGHTS:
            published, exact, tight = (found[form, weights] for form in FORMS)
            for risk in (published, exact, tight):
                assert risk.shape == (len(laws),)
                assert ((risk >= 0) & (risk <= 1 + 1e-12)).all()
            assert (tight <= exact * (1 + 1e-11) + 1e-16).all()


@settings(max_examples=examples(40))
@given(tables, noises, st.randoms(use_true_random=False))
def test_order_of_levels_and_cells_does_not_matter(cells: list[list[int]], noise: Noise, random: object) -> None:
    shuffled = [random.sample(cell, len(cell)) for cell in random.sample(cells, len(cells))]  # type: ignore[attr-defined]
    n_levels = len(cells[0])
    for measure in (Local(), Expected()):
        first, second = (
            measure.average(Profiles.from_cells(table, n_levels), AdditiveChannel((noise,)))
            for table in (cells, shuffled)
        )
        for key in first:
            assert first[key][0] == second[key][0]  # to the last bit


@settings(max_examples=examples(40))
@given(tables, noises, st.integers(2, 5))
def test_duplicated_cells_change_nothing(cells: list[list[int]], noise: Noise, times: int) -> None:
    n_levels = len(cells[0])
    for measure in (Local(), Expected()):
        once, often = (
            measure.average(Profiles.from_cells(table, n_levels), AdditiveChannel((noise,)))
            for table in (cells, cells * times)
        )
        for key in once:
            assert math.isclose(once[key][0], often[key][0], rel_tol=1e-13)


def test_shrinkage_at_the_limits_is_local_and_pooled_multinomial() -> None:
    channel = AdditiveChannel((LaplaceNoise(1.0), GaussianNoise(4.0)))
    homogeneous = Profiles.from_cells([[3, 0, 0], [1, 0, 0], [0, 7, 0]], 3)
    zero = Shrinkage(Dirichlet((0.5, 0.3, 0.2), 0.0, "mle")).average(homogeneous, channel)
    local = Local().average(homogeneous, channel)
    for key in zero:
        assert np.allclose(zero[key], local[key], rtol=1e-13, atol=0)
    one_cell = Profiles.from_cells([[5, 3, 2]], 3)
    pooled = Shrinkage(Dirichlet((0.5, 0.3, 0.2), math.inf, "mle")).average(one_cell, channel)
    expected = Expected().average(one_cell, channel)
    for key in pooled:
        assert np.allclose(pooled[key], expected[key], rtol=1e-12, atol=0)


def test_many_noises_at_once_are_the_same_as_one_by_one() -> None:
    profiles = Profiles.from_cells([[3, 0, 1], [1, 9, 0], [0, 70, 4], [2, 2, 2]], 3)
    laws = tuple(LaplaceNoise(scale) for scale in np.geomspace(0.01, 1000, 150))
    prior, size_law = Dirichlet.given([0.4, 1.0, 2.0], 3), poisson_sizes(4.0, True, "given")
    for measure in (
        Local(),
        Expected(),
        Shrinkage(prior),
        Marginal(size_law),
        MarginalShrinkage(prior, size_law),
    ):
        together = measure.average(profiles, AdditiveChannel(laws))
        for place in (0, 63, 64, 149):
            alone = measure.average(profiles, AdditiveChannel((laws[place],)))
            for key, value in alone.items():
                assert math.isclose(together[key][place], value[0], rel_tol=1e-12)


def test_large_cells_cost_a_window_not_a_square() -> None:
    """Cells of ten million records: an n^2 table would need 800 TB. Memory grows by what noise reaches, not by n."""
    profiles = Profiles.from_cells([[9_999_000, 990, 10], [10_000_000, 0, 0], [5_000_000, 5_000_000, 0]], 3)
    laws = tuple(LaplaceNoise(scale) for scale in (0.1, 1.0, 1000.0))
    prior = Dirichlet.given([1.0, 0.5, 0.1], 3)
    tracemalloc.start()
    try:
        found = Expected().average(profiles, AdditiveChannel(laws))
        shrunk = Shrinkage(prior).average(profiles, AdditiveChannel(laws[:2]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found["exact", "uniform"] > 0).all()
    assert (shrunk["tight", "records"] > 0).all()
    assert peak < 8 * 10_000_000  # a number for each record of one cell


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="without records"):
        Local().average(Profiles.from_cells([[0, 0]], 2), AdditiveChannel((LaplaceNoise(1.0),)))


def test_profiles_are_checked() -> None:
    with pytest.raises(InvalidInput, match="negative"):
        Profiles.from_cells([[1, -1]], 2)
    with pytest.raises(InvalidInput, match="matrix"):
        Profiles.from_cells([[1, 1, 1]], 2)
