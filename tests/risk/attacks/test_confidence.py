"""How far a cell that looks homogeneous may be trusted, against the enumeration of what survives."""

from __future__ import annotations

import math

import pytest

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.attacks import find_confidence
from tests.risk.attacks import oracle

TABLES = [
    [(1, 0), (3, 0), (3, 0), (2, 2), (4, 1)],
    [(2, 0, 0), (1, 1, 0), (6, 3, 1), (6, 3, 1)],
    [(1, 0, 0, 0), (2, 1, 0, 0), (3, 1, 1, 0), (2, 1, 1, 1)],
]
NOISES: list[Noise] = [LaplaceNoise(1.1), GaussianNoise(2.0), GeometricNoise(0.8), DiscreteGaussianNoise(1.5)]


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize("table", TABLES)
def test_agrees_with_enumeration(table: list[tuple[int, ...]], threshold: float) -> None:
    """To twelve digits, one answer a noise, with and without empty cells."""
    profiles, channel = Profiles.from_cells(table, len(table[0])), AdditiveChannel(tuple(NOISES), threshold)
    for noise, found in zip(NOISES, find_confidence(profiles, channel, empty=7), strict=True):
        vanish = oracle.vanishing(noise, threshold)
        outcomes = [oracle.looks_homogeneous(cell, vanish) for cell in table]
        looks, right, people_right = (float(sum(outcome[part] for outcome in outcomes)) for part in range(3))
        looking = float(sum(outcome[0] * sum(cell) for outcome, cell in zip(outcomes, table, strict=True)))
        nobody = 7 * float(oracle.looks_homogeneous((0,) * len(table[0]), vanish)[0])
        assert (found.looks, found.right) == pytest.approx((looks, right), rel=1e-12, abs=0)
        assert (found.people_looking, found.people_right) == pytest.approx((looking, people_right), rel=1e-12, abs=0)
        assert found.precision == pytest.approx(right / looks, rel=1e-12, abs=0)
        assert found.people_precision == pytest.approx(people_right / looking, rel=1e-12, abs=0)
        assert found.looks_with_empty == pytest.approx(looks + nobody, rel=1e-12, abs=0)
        assert found.precision_with_empty == pytest.approx(right / (looks + nobody), rel=1e-12, abs=0)


@pytest.mark.parametrize("n_levels", [2, 3, 6])
def test_endless_noise_leaves_chance(n_levels: int) -> None:
    """A cell with c of K labels is right c/K of the time, a person's own value shows 1/K of the time."""
    channel = AdditiveChannel((LaplaceNoise(1e6), GaussianNoise(1e6)))
    for cell in [(1,), (3, 1)]:
        profiles = Profiles.from_cells([cell], n_levels)
        both = find_confidence(profiles, channel, empty=3)
        assert len(both) == 2
        for found in both:
            assert found.looks == pytest.approx(n_levels * 2.0**-n_levels, abs=1e-5)
            assert found.precision == pytest.approx(len(cell) / n_levels, abs=1e-5)
            assert found.people_precision == pytest.approx(1 / n_levels, abs=1e-5)
            assert found.precision_with_empty == pytest.approx(len(cell) / n_levels / 4, abs=1e-5)


def test_what_cannot_be_told_is_not_a_number() -> None:
    """Two counts of a thousand in narrow noise: neither can vanish."""
    found = find_confidence(Profiles.from_cells([(1000, 1000)], 2), AdditiveChannel((GaussianNoise(0.5),)))[0]
    assert found.looks == 0
    assert math.isnan(found.precision)
    assert math.isnan(found.people_precision)


def test_a_table_without_records_is_refused() -> None:
    with pytest.raises(InvalidInput, match="without records"):
        find_confidence(Profiles(2, ()), AdditiveChannel((LaplaceNoise(1.0),)))
