"""A risk as a sum over cells in whole units, so that one record moves it by what was proved and by nothing else.

A floating-point sum depends in its last digits on every cell, and noise that is calibrated for one cell would not hide
that. Here each cell has a value that depends on its own counts alone, rounded to whole units, and whole numbers are
added up. Functions of a count are computed one count at a time, because a processor may round an exponential otherwise
with other numbers beside it; products and sums are rounded alike everywhere.
"""

from __future__ import annotations

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.noisy_risk.sensitivity import Sensitivity
from cellrisk.risk.measures.measure import NUMBERS_AT_ONCE
from cellrisk.risk.measures.survival import each_alone
from cellrisk.system.arrays import Floats, Integers

UNIT = 2.0**-30
"""The part of a person, or of a cell, in which sums are counted."""
MARGIN = 2
"""Units, and also parts in 10^9, that a sensitivity is rounded up by: more than a cell's floating-point error."""
MOST_UNITS = 2**60


def count_units(sensitivity: Sensitivity) -> int:
    """The units that one record moves a sum at most, with the rounding of the cells in it.

    Two numbers at a distance d, each rounded to whole numbers, are at most the next whole number above d apart.
    """
    return int(sensitivity.value / UNIT * (1.0 + 1e-9 * MARGIN)) + 1 + MARGIN


def sum_cells(figure: str, profiles: Profiles, mechanism: Mechanism) -> int:
    """The figure in units: of ``caused`` and ``local``, exact but for half a unit a cell.

    >>> from cellrisk import Geometric
    >>> cells = Profiles.from_cells([[1, 0]], n_levels=2)
    >>> round(sum_cells("caused", cells, Geometric(epsilon=1.0)) * UNIT, 6)
    0.337835
    """
    total = 0
    for block in profiles.blocks:
        step = max(1, NUMBERS_AT_ONCE // block.counts.shape[1])
        for start in range(0, len(block), step):
            part = block[start : start + step]
            units = np.floor(_cell_values(figure, part.counts, profiles.n_levels, mechanism) / UNIT + 0.5)
            total += sum(int(unit) * cells for unit, cells in zip(units.tolist(), part.cells.tolist(), strict=True))
    return min(total, MOST_UNITS)


def _cell_values(figure: str, counts: Integers, n_levels: int, mechanism: Mechanism) -> Floats:
    noise, threshold = mechanism.noise, mechanism.threshold
    distinct, place = np.unique(counts, return_inverse=True)
    place = place.reshape(counts.shape)
    vanish = np.array([float(noise.vanish(np.array([float(count)]), threshold)[0]) for count in distinct.tolist()])
    shown = np.array([_shown(figure, count, noise, threshold) for count in distinct.tolist()])
    absent = float(noise.vanish(np.zeros(1), threshold)[0]) ** (n_levels - counts.shape[1])
    value = np.zeros(len(counts))
    for alone in each_alone(list(vanish[place].T), list(shown[place].T)):
        value = value + alone
    return np.asarray(value * absent)


def _shown(figure: str, count: int, noise: Noise, threshold: float) -> float:
    """h(m), or s(m)."""
    if figure == "caused":
        return count * float(noise.lose(count, threshold))
    return float(noise.survive(np.array([float(count)]), threshold)[0])
