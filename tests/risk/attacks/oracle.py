"""An independent opinion on the attacks: every released vector of a small cell is enumerated and read.

Nothing here shares a formula with the package. The law of a released count comes from mpmath's distribution functions
or sums, to thirty digits, and its tails are cut where they hold less than 1e-18.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import mpmath as mp
import numpy as np

from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.system.arrays import Floats
from tests.risk.measures import oracle as measures_oracle

LAWS: dict[type[Noise], Callable[[float, float], measures_oracle.Probability]] = {
    LaplaceNoise: measures_oracle.laplace,
    GaussianNoise: measures_oracle.gaussian,
    GeometricNoise: measures_oracle.geometric,
    DiscreteGaussianNoise: measures_oracle.discrete_gaussian,
}
TAIL = mp.mpf("1e-18")


@cache
def vanishing(noise: Noise, threshold: float) -> measures_oracle.Probability:
    """P(count + noise < threshold) as a function of the count."""
    return cache(LAWS[type(noise)](noise.scale, threshold))


@cache
def released(count: int, noise: Noise, threshold: float) -> tuple[Floats, Floats]:
    """The values a count is released as, zero first, and their probabilities."""
    with mp.workdps(30):
        below = vanishing(noise, threshold)(count)
        values, chances = [0.0], [float(below)]
        value = int(threshold + 0.5)
        while 1 - below > TAIL:
            up_to = vanishing(noise, value + 0.5)(count)
            values.append(float(value))
            chances.append(float(up_to - below))
            below, value = up_to, value + 1
    return np.array(values), np.array(chances)


def enumerate_attacks(counts: tuple[int, ...], noise: Noise, threshold: float) -> dict[str, float]:
    """Both attacks on every released vector of a cell; counts has one entry a level, zeros included."""
    laws = [released(count, noise, threshold) for count in counts]
    shown = np.meshgrid(*(values for values, _ in laws), indexing="ij", sparse=True)
    chance = np.ones(())
    for factor in np.meshgrid(*(chances for _, chances in laws), indexing="ij", sparse=True):
        chance = chance * factor
    largest, total = np.zeros(()), np.zeros(())
    for values in shown:
        largest, total = np.maximum(largest, values), total + values
    tied = np.zeros(largest.shape)
    named, drawn = np.zeros(largest.shape), np.zeros(largest.shape)
    for count, values in zip(counts, shown, strict=True):
        wins = (values == largest) & (largest > 0)
        tied += wins
        named += wins * (count / sum(counts))
        drawn += values * (count / sum(counts))
    guess = largest > 0
    return {
        "plurality": float((chance * np.divide(named, tied, out=np.zeros_like(named), where=guess)).sum()),
        "proportional": float((chance * np.divide(drawn, total, out=np.zeros_like(drawn), where=guess)).sum()),
    }


def looks_homogeneous(counts: tuple[int, ...], vanish: measures_oracle.Probability) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """P(one label shows), P(it shows and is there), and the expected people whose own label it is."""
    looks, right, people = mp.mpf(0), mp.mpf(0), mp.mpf(0)
    for survives in itertools.product((False, True), repeat=len(counts)):
        if sum(survives) != 1:
            continue
        chance = mp.mpf(1)
        for count, alive in zip(counts, survives, strict=True):
            chance *= 1 - vanish(count) if alive else vanish(count)
        shown = counts[survives.index(True)]
        looks, right, people = looks + chance, right + chance * (shown > 0), people + chance * shown
    return looks, right, people
