"""How far one record moves a risk, against every neighbour of every small cell."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.noise.distributions import Noise
from cellrisk.publish.dp_risk.sensitivity import (
    UNIT,
    bound_caused,
    count_units,
    find_masses,
    find_sensitivity,
    sum_cells,
)
from cellrisk.risk.people import count_caused
from tests.near import near
from tests.publish.dp_risk.brute_force import moved, moved_by_replacing, risks, risks_of
from tests.refusals import refused
from tests.risk.certainty.oracle import law

MECHANISMS = {
    "laplace": cr.Laplace(1.0),
    "laplace, wide": cr.Laplace(0.2),
    "laplace, narrow": cr.Laplace(6.0),
    "geometric": cr.Geometric(1.0),
    "geometric, narrow": cr.Geometric(4.0),
    "gaussian": cr.Gaussian(0.9, delta=0.1),
    "gaussian-pdp": cr.ProbabilisticGaussian(1.0, delta=0.01),
    "gaussian-analytic": cr.AnalyticGaussian(2.0, delta=0.05),
    "gaussian-analytic, narrow": cr.AnalyticGaussian(40.0, delta=0.05),
    "discrete-gaussian": cr.DiscreteGaussian(2.0, delta=0.05),
}
LATER = {
    "laplace": cr.Laplace(1.0, threshold=1.5),
    "laplace, late": cr.Laplace(1.0, threshold=5.5),
    "geometric": cr.Geometric(0.5, threshold=2.5),
    "geometric, narrow": cr.Geometric(6.0, threshold=4.5),
    "gaussian-analytic": cr.AnalyticGaussian(2.0, delta=0.05, threshold=3.5),
    "discrete-gaussian": cr.DiscreteGaussian(3.0, delta=0.05, threshold=2.5),
}


@pytest.mark.parametrize("n_levels", [2, 3])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_sensitivity_is_the_largest_change(name: str, n_levels: int) -> None:
    mechanism = MECHANISMS[name]
    found = find_sensitivity(mechanism, n_levels)
    every = risks(mechanism.noise, mechanism.threshold, n_levels, 30 if n_levels == 2 else 10)
    assert found.exact
    assert found.value == near(moved(every))


@pytest.mark.parametrize("n_levels", [2, 3])
@pytest.mark.parametrize("name", LATER)
def test_a_later_threshold_has_a_bound(name: str, n_levels: int) -> None:
    mechanism = LATER[name]
    found = find_sensitivity(mechanism, n_levels)
    largest = moved(risks(mechanism.noise, mechanism.threshold, n_levels, 24 if n_levels == 2 else 12))
    assert not found.exact
    assert largest <= found.value * (1 + 1e-12)
    assert found.value <= 2.5 * largest  # a bound that is of use


@pytest.mark.parametrize("name", LATER)
def test_the_bound_is_the_one_that_is_proved(name: str) -> None:
    """No smaller one is: max(H, kappa f(0)) q(0)^(K-1), here from the masses of mpmath."""
    mechanism = LATER[name]
    first = int(mechanism.threshold + 0.5)
    steps, chance = law(mechanism.noise)
    mass = dict(zip(steps.tolist(), chance.tolist(), strict=True))
    h = [m * mass.get(m - first, 0.0) for m in range(first + len(steps))]
    gone = [sum(p for j, p in mass.items() if m + j < first) for m in range(first + len(steps))]
    largest = max(abs(after - before) for before, after in pairwise(h))
    kappa = max(h[m] / (gone[0] - gone[m]) for m in range(1, len(h)))
    wanted = max(largest, kappa * mass[0]) * gone[0] ** 2
    assert find_sensitivity(mechanism, 3).value == pytest.approx(wanted, rel=1e-9, abs=0)
    if name == "gaussian-analytic":
        assert kappa * mass[0] > largest * 1.01  # so that the two can be told apart


def test_the_known_figure() -> None:
    found = find_sensitivity(cr.Laplace(epsilon=1.0), 2)
    assert found.value == pytest.approx(0.274144, abs=5e-7)


@pytest.mark.parametrize("name", ["laplace", "geometric", "gaussian-analytic"])
def test_a_replaced_record_moves_it_twice_as_far_at_most(name: str) -> None:
    from dataclasses import replace

    mechanism = replace(MECHANISMS[name], neighbours="replace")
    found = find_sensitivity(mechanism, 2)
    every = risks(mechanism.noise, mechanism.threshold, 2, 30)
    assert moved_by_replacing(every) <= found.value * (1 + 1e-12)
    assert found.value == near(2 * moved(every))


def test_the_largest_step_is_searched_for_and_not_taken_for_the_middle() -> None:
    """Uniform noise on -2..2, K = 2: 0.36, and not the 0.12 that f(0) would give."""
    masses = np.array([0.2] * 4 + [0.0] * 3)  # f(m - 1), m = 0, 1, ...
    found = bound_caused(masses, 1, 0.6)
    every = risks_of(dict.fromkeys(range(-2, 3), 0.2), 0.5, 2, 8)
    assert (found.value, moved(every)) == (near(0.36), near(0.36))
    with refused("not-proved"):
        bound_caused(masses[:3], 1, 0.6)


@dataclass(frozen=True)
class Strange(Noise):
    """Noise of which nothing is proved."""

    def cdf(self, x: Any) -> Any:
        return np.clip(0.5 + np.asarray(x) / 10, 0, 1)

    def sample(self, generator: Any, shape: Any) -> Any:
        raise NotImplementedError


def test_refusals() -> None:
    with refused("not-proved"):
        find_masses(Strange(1.0), 1)
    with refused("too-wide"):
        find_sensitivity(cr.Laplace(1e-6), 2)


@pytest.mark.parametrize("mechanism", [cr.Laplace(1.0), cr.Geometric(0.3, threshold=3.5), cr.Gaussian(0.5, delta=0.01)])
def test_the_sum_is_the_figure_that_is_assessed(mechanism: cr.Mechanism) -> None:
    cells = np.random.default_rng(1).integers(0, 9, (500, 4))
    profiles = Profiles.from_cells(cells, n_levels=4)
    caused = count_caused(profiles, mechanism, exposed=1.0).people
    assert sum_cells(profiles, mechanism) * UNIT == pytest.approx(caused, abs=500 * UNIT)


def test_a_cell_counts_the_same_whatever_stands_beside_it() -> None:
    """Whole numbers: the sum of two tables is exactly that of their cells together."""
    generator, mechanism = np.random.default_rng(2), cr.AnalyticGaussian(1.0, delta=1e-3)
    cells = generator.integers(0, 200, (300, 3))
    whole = sum_cells(Profiles.from_cells(cells, n_levels=3), mechanism)
    parts = [Profiles.from_cells(cells[place : place + 1], n_levels=3) for place in range(len(cells))]
    assert sum(sum_cells(part, mechanism) for part in parts) == whole


def test_units_cover_the_rounding_of_cells() -> None:
    """Over every neighbour of small cells, in the units that noise is added to."""
    for mechanism in (cr.Laplace(1.0), cr.Geometric(2.0, threshold=1.5)):
        most = count_units(find_sensitivity(mechanism, 2))
        grid = {
            (a, b): sum_cells(Profiles.from_cells([[a, b]], n_levels=2), mechanism) if a or b else 0
            for a in range(9)
            for b in range(9)
        }
        changes = [abs(grid[a, b] - grid[a - 1, b]) for a in range(1, 9) for b in range(9)]
        assert max(changes) <= most
        assert most - max(changes) <= 8
