"""Sums over whole numbers in panels: exact for polynomials, and the estimated error is not below the real one."""

from __future__ import annotations

import numpy as np
import pytest

from cellrisk.risk.attacks.lattice import lay_lattice
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
