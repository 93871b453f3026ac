"""How far one record moves a risk: what noise on that risk has to hide.

With f the mass of the rounded noise, T the smallest value that is released, q(m) = P(m vanishes), K labels and

    h(m) = m f(m - T),    H = max_m |h(m + 1) - h(m)|,    kappa = max_m h(m) / (q(0) - q(m)),

one record that is added or removed moves D, the people revealed because of their own record, by at most
q(0)^(K-1) max(H, kappa f(0)). Where T = 1, kappa is 1 and H is at least f(0), so that it is q(0)^(K-1) H, which an
empty cell attains. The chapter "Figures that may be published" of the documentation has the proof.

The risk itself is a sum over cells in whole units, so that one record moves it by what was proved and by nothing else.
A floating-point sum depends in its last digits on every cell, and noise that is calibrated for one cell would not hide
that. Here each cell has a value that depends on its own counts alone, rounded to whole units, and whole numbers are
added up. Functions of a count are computed one count at a time, because a processor may round an exponential otherwise
with other numbers beside it; products and sums are rounded alike everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise, first_value
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.measures.local import each_alone
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

WIDEST = 1e5
"""The largest scale of noise whose masses are gone through one by one."""
UNIT = 2.0**-30
"""The part of a person in which sums are counted."""
MARGIN = 2
"""Units, and also parts in 10^9, that a sensitivity is rounded up by: more than a cell's floating-point error."""
MOST_UNITS = 2**60


@dataclass(frozen=True)
class Sensitivity:
    """How far one record moves a figure at most."""

    value: float
    exact: bool
    """Whether some table attains it; otherwise it is a bound that was proved."""


def find_sensitivity(mechanism: Mechanism, n_levels: int) -> Sensitivity:
    """Return how far one record moves the expected number of people revealed because of their own record, at most.

    It holds whatever the table. If neighbouring tables replace a record, one is removed and another added: twice as
    far.

    >>> from cellrisk import Laplace
    >>> round(find_sensitivity(Laplace(epsilon=1.0), n_levels=2).value, 6)
    0.274144
    """
    noise, first = mechanism.noise, first_value(mechanism.threshold)
    others = float(noise.p_zero(0, mechanism.threshold)) ** (n_levels - 1)
    found = bound_caused(find_masses(noise, first), first, others)
    return Sensitivity(2.0 * found.value, exact=False) if mechanism.neighbours == "replace" else found


def find_masses(noise: Noise, first: int) -> Floats:
    """f(m - T) for m = 0, 1, ..., to where nothing is left of it that matters."""
    if not noise.log_concave:  # then h falls for good once it falls
        what = "how far one record moves a risk is not proved for this noise"
        raise InvalidInput(what, got=type(noise).__name__, allowed="noise of the six mechanisms", code="not-proved")
    if noise.scale > WIDEST:
        what, got = "the noise is too wide to check how far one record moves a risk", f"scale {noise.scale:.3g}"
        raise InvalidInput(what, got=got, allowed=f"up to {WIDEST:g}", fix="choose a larger epsilon", code="too-wide")
    return noise.mass(np.arange(first + noise.tail_radius + 2, dtype=np.float64) - first)


def bound_caused(masses: Floats, first: int, others: float) -> Sensitivity:
    """q(0)^(K-1) max(H, kappa f(0)), for f symmetric and falling on both sides of 0.

    ``masses`` are f(m - T) for m = 0, 1, ..., and past their end m f(m - T) only falls; ``others`` is q(0)^(K-1).
    """
    h = np.arange(len(masses)) * masses
    steepest = float(np.abs(np.diff(h)).max())
    if not (h[-1] <= h[-2] and h[-1] <= steepest):
        what = "the masses of the noise end too early to say how far one record moves a risk"
        raise InvalidInput(what, code="not-proved")
    if first == 1:
        return Sensitivity(others * steepest, exact=True)
    kappa = float(np.max(h[1:] / np.cumsum(masses[1:])))  # q(0) - q(m) is f(1 - T) + ... + f(m - T)
    return Sensitivity(others * max(steepest, kappa * float(masses[first])), exact=False)


def count_units(sensitivity: Sensitivity) -> int:
    """The units that one record moves a sum at most, with the rounding of the cells in it.

    Two numbers at a distance d, each rounded to whole numbers, are at most the next whole number above d apart.
    """
    return int(sensitivity.value / UNIT * (1.0 + 1e-9 * MARGIN)) + 1 + MARGIN


def sum_cells(profiles: Profiles, mechanism: Mechanism) -> int:
    """Return the people revealed because of their own record, in units: exact but for half a unit a cell.

    >>> from cellrisk import Geometric
    >>> cells = Profiles.from_cells([[1, 0]], n_levels=2)
    >>> round(sum_cells(cells, Geometric(epsilon=1.0)) * UNIT, 6)
    0.337835
    """
    total = 0
    for block in profiles.blocks:
        step = max(1, NUMBERS_AT_ONCE // block.counts.shape[1])
        for start in range(0, len(block), step):
            part = block[start : start + step]
            units = np.floor(_cell_values(part.counts, profiles.n_levels, mechanism) / UNIT + 0.5)
            total += sum(int(unit) * cells for unit, cells in zip(units.tolist(), part.cells.tolist(), strict=True))
    return min(total, MOST_UNITS)


def _cell_values(counts: Integers, n_levels: int, mechanism: Mechanism) -> Floats:
    noise, threshold = mechanism.noise, mechanism.threshold
    distinct, place = np.unique(counts, return_inverse=True)
    place = place.reshape(counts.shape)
    vanish = np.array([float(noise.p_zero(np.array([float(count)]), threshold)[0]) for count in distinct.tolist()])
    lone = np.array([count * float(noise.p_pivotal(count, threshold)) for count in distinct.tolist()])
    absent = float(noise.p_zero(np.zeros(1), threshold)[0]) ** (n_levels - counts.shape[1])
    value = np.zeros(len(counts))
    for alone in each_alone(list(vanish[place].T), list(lone[place].T)):
        value = value + alone
    return np.asarray(value * absent)
