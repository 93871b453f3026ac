"""Sums over whole numbers in panels: exact for polynomials, and the estimated error is not below the real one."""

from __future__ import annotations

import numpy as np
import pytest

from cellrisk.risk.attacks.lattice import DENSE, TOLERANCE, lay_lattice, refine
from cellrisk.system.arrays import Floats


@pytest.mark.parametrize("longest", [3.0, 70.0, 1000.0, 1e6])
@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 64), (3, 500), (1000, 40_000)])
def test_sums_of_polynomials_are_exact(first: int, last: int, longest: float) -> None:
    lattice = lay_lattice(first, last, np.array([0, 7, 400, 400, 12_000, 90_000]), longest)
    every = np.arange(first, last + 1.0)
    assert lattice.weights.sum() == pytest.approx(len(every), rel=1e-13, abs=0)
    scaled, exact = lattice.values / last, every / last
    for power in (1, 5, 15):
        assert lattice.weights @ scaled**power == pytest.approx((exact**power).sum(), rel=1e-12, abs=0)


def test_values_are_distinct_whole_numbers_and_breaks_stand_alone() -> None:
    lattice = lay_lattice(1, 100_000, np.array([5000, 777]), 3000.0)
    assert (np.diff(lattice.values) > 0).all()
    assert (lattice.values == np.rint(lattice.values)).all()
    assert (lattice.weights > 0).all()
    alone = np.setdiff1d(np.arange(len(lattice.values)), lattice.panels)
    assert {777.0, 5000.0} <= set(lattice.values[alone])
    assert len(lattice.values) < 1500


@pytest.mark.parametrize("scale", [60.0, 150.0, 400.0, 2000.0])
@pytest.mark.parametrize("longest", [300.0, 1000.0, 5000.0])
def test_the_estimate_covers_the_error(scale: float, longest: float) -> None:
    """For a narrow bump that panels may miss; the floor is that of rounding."""
    every = np.arange(1000, 30_000.0)

    def bump(value: Floats) -> Floats:
        return np.exp(-0.5 * ((value - 11_111) / scale) ** 2) / scale

    lattice = lay_lattice(1000, 29_999, np.zeros(0, np.int64), longest)
    terms = bump(lattice.values)
    error = abs(float(lattice.weights @ terms) - bump(every).sum())
    assert error <= lattice.error(terms[None]) + 1e-13


def test_panels_are_halved_until_the_estimate_is_small() -> None:
    tried = []

    def attempt(longest: float) -> tuple[Floats, float]:
        tried.append(longest)
        return np.array([longest]), longest * TOLERANCE if longest > 300 else TOLERANCE / 10

    assert refine(1000.0, attempt).tolist() == [250.0]
    assert tried == [1000.0, 500.0, 250.0]


def test_halving_ends_where_every_term_is_summed() -> None:
    found = refine(1000.0, lambda longest: (np.array([longest]), longest))
    assert found[0] <= DENSE
    assert len(lay_lattice(1, 1000, np.array([40]), float(found[0])).panels) == 0


def test_halving_ends_where_only_rounding_is_left() -> None:
    tried = []

    def attempt(longest: float) -> tuple[Floats, float]:
        tried.append(longest)
        return np.array([longest]), 1.0 if longest > 3e4 else 2e-10

    refine(1e5, attempt)
    assert tried == [1e5, 5e4]
    tried.clear()
    refine(5e4, attempt)
    assert tried == [5e4, 2.5e4, 1.25e4]
