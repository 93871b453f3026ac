"""Every small cell and every neighbour of it: how far one record really moves a risk. Shares no formula with the code.

Masses come from mpmath, by `tests.risk.certainty.oracle`; a cell's risk is summed over its labels as it is defined.
"""

from __future__ import annotations

import math

import numpy as np

from cellrisk.noise.distributions import Noise
from cellrisk.system.arrays import Floats
from tests.risk.certainty.oracle import law


def risks(noise: Noise, threshold: float, n_levels: int, most: int) -> Floats:
    """The risk of every cell whose counts are from 0 to ``most``: one axis a label."""
    steps, chance = law(noise)
    return risks_of(dict(zip(steps.tolist(), chance.tolist(), strict=True)), threshold, n_levels, most)


def risks_of(mass: dict[int, float], threshold: float, n_levels: int, most: int) -> Floats:
    """The same for noise with these masses at whole numbers."""
    first = math.floor(threshold) + 1
    counts = range(most + 1)
    vanish = np.array([math.fsum(p for j, p in mass.items() if n + j < first) for n in counts])
    shown = np.array([n * mass.get(first - n, 0.0) for n in counts])
    total = np.zeros((most + 1,) * n_levels)
    for label in range(n_levels):
        term = np.ones(())
        for other in range(n_levels):
            term = np.multiply.outer(term, shown if other == label else vanish)
        total = total + term
    return total


def moved(risk: Floats) -> float:
    """The largest change of a cell's risk when one record of one label is added."""
    return max(float(np.abs(np.diff(risk, axis=label)).max()) for label in range(risk.ndim))


def moved_by_replacing(risk: Floats) -> float:
    """The largest change when one record goes from a label to another of its cell, or to one of another cell."""
    up = max(float(np.diff(risk, axis=label).max()) for label in range(risk.ndim))
    down = max(float(-np.diff(risk, axis=label).min()) for label in range(risk.ndim))
    within = 0.0
    for one in range(risk.ndim):
        for other in range(risk.ndim):
            if one != other:
                a = np.moveaxis(risk, (one, other), (0, 1))
                within = max(within, float(np.abs(a[1:, :-1] - a[:-1, 1:]).max()))
    return max(up + down, within)  # to another cell: one cell gains a record, one loses it
