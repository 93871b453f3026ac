"""A second opinion by simulating whole releases: noise, rounding, clamping, and an attacker who reads the table."""

from __future__ import annotations

import numpy as np
import pytest

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.measures import Local, Measure
from cellrisk.risk.measures.dirichlet import Dirichlet
from cellrisk.risk.measures.given_total import Expected, Shrinkage
from cellrisk.risk.measures.marginal import Marginal
from cellrisk.system.arrays import Floats, Integers
from tests.risk.measures.cases import negative_binomial_sizes, poisson_sizes

CELL = np.array([6, 2, 1, 0])
RELEASES = 200_000
SIZE_MEAN = 3.0


def attack(counts: Integers, noise: Noise, threshold: float, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """For each release of a cell: does it show one label that is there, and the share of records with that label."""
    noisy = np.rint(counts + noise.sample(generator, counts.shape))
    released = np.where(noisy < threshold, 0, noisy)
    alone = (released > 0).sum(axis=1) == 1
    shown = np.take_along_axis(counts, released.argmax(axis=1)[:, None], axis=1)[:, 0]
    total = np.maximum(counts.sum(axis=1), 1)
    return alone & (shown > 0), np.where(alone, shown / total, 0.0)


def counts_for(name: str, generator: np.random.Generator) -> tuple[Measure, Integers]:
    shares, alpha = CELL / CELL.sum(), np.array([0.5, 1.0, 2.0, 0.2])
    same_size = np.full(RELEASES, CELL.sum())
    if name == "local":
        return Local(), np.tile(CELL, (RELEASES, 1))
    if name == "expected":
        return Expected(), generator.multinomial(same_size, shares)
    if name == "shrinkage":
        drawn = generator.dirichlet(alpha, RELEASES)
        return Shrinkage(Dirichlet.given(alpha.tolist(), 4)), generator.multinomial(same_size, drawn)
    if name == "marginal":
        law = poisson_sizes(SIZE_MEAN, True, "given")
        sizes = generator.poisson(SIZE_MEAN, 2 * RELEASES)
    else:
        law = negative_binomial_sizes(1.5, SIZE_MEAN, True, "given")
        sizes = generator.negative_binomial(1.5, 1.5 / (1.5 + SIZE_MEAN), 2 * RELEASES)
    sizes = sizes[sizes > 0][:RELEASES]
    return Marginal(law), generator.multinomial(sizes, shares)


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize(
    "noise", [LaplaceNoise(1.2), GaussianNoise(2.0), GeometricNoise(1.2), DiscreteGaussianNoise(2.0)]
)
@pytest.mark.parametrize("name", ["local", "expected", "shrinkage", "marginal", "marginal-negbin"])
def test_simulated_releases_agree(name: str, noise: Noise, threshold: float) -> None:
    """The mean over 200,000 releases is within 4.5 of its standard errors of the exact value."""
    generator = np.random.default_rng(7)
    measure, counts = counts_for(name, generator)
    exact, tight = attack(counts, noise, threshold, generator)
    found = measure.average(Profiles.from_cells([CELL], 4), AdditiveChannel((noise,), threshold), ("exact", "tight"))
    for form, outcome in (("exact", exact), ("tight", tight)):
        error = outcome.std() / np.sqrt(len(outcome))
        assert abs(outcome.mean() - found[form, "uniform"][0]) < 4.5 * error, form
