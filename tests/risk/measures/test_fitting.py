"""Fits at the edges of what can be fitted: one record, one category, no variation, rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cellrisk.counts.profiles import LevelCounts, Profiles
from cellrisk.risk.measures.dirichlet import Dirichlet, all_same, fit_dirichlet, labels_drawn
from tests.near import near


def test_a_level_of_one_record_has_a_share() -> None:
    """And one without records has none, wherever it stands."""
    cells = [[4, 0, 0, 0], [0, 3, 0, 1], [1, 2, 0, 0], [5, 1, 0, 0]]
    prior = fit_dirichlet(Profiles.from_cells(cells, 4), LevelCounts.from_cells(cells, list("abcd")))
    assert prior.boundary is None
    assert prior.mean[2] == 0
    assert 0 < prior.mean[3] < min(prior.mean[:2])


@pytest.mark.parametrize("scale", [1, 10**4])
def test_moments_are_exact_however_many_records(scale: int) -> None:
    """By fractions, with numbers of more than 64 bits."""
    cells = np.array([[4, 0, 1], [0, 3, 2], [1, 2, 0], [5, 1, 7]]) * scale
    prior = fit_dirichlet(Profiles.from_cells(cells, 3), LevelCounts.from_cells(cells, list("abc")), "moments")
    sizes, n = [sum(row) for row in cells.tolist()], int(cells.sum())
    shares = [Fraction(sum(column), n) for column in cells.T.tolist()]
    v = sum(share * (1 - share) for share in shares)
    r = sum(
        (count - size * share) ** 2
        for row, size in zip(cells.tolist(), sizes, strict=True)
        for count, share in zip(row, shares, strict=True)
    )
    expected = (v * sum(size * size for size in sizes) - r) / (r - v * n)
    assert prior.concentration == near(float(expected))


def test_no_sizes_have_no_probabilities() -> None:
    for concentration in (0.0, 3.0, math.inf):
        prior = Dirichlet((0.5, 0.5), concentration, "given")
        assert all_same(prior, np.zeros((0, 2), np.int64)).shape == (0, 2)
        assert labels_drawn(prior, np.zeros(0, np.int64)).shape == (0,)
