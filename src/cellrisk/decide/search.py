"""Where a smooth function of epsilon is at most zero, found without supposing that it rises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cellrisk.noise.distributions import Noise
from cellrisk.system.arrays import Floats

SCANNED = 129
POINTS_AT_A_BEND = 14
EDGE = 1e-8
"""Relative width to which an edge is narrowed; the admissible end of that width is returned."""
ROUNDING = 1e-14
"""An edge is moved inwards until the excess is below zero by this: added up in another order it is not above."""
ROUNDS_AT_A_BEND = 3

Excess = Callable[[Floats], Floats]
"""How far a risk is above its limit, at many epsilons at once."""
Excesses = Callable[[tuple[Noise, ...]], Floats]
"""(limits, noises): how far each risk is above its limit, under many noises at once."""


@dataclass(frozen=True)
class Admissible:
    """The epsilons in a range at which the excess is at most zero, and where it is least."""

    intervals: tuple[tuple[float, float], ...]
    """Ascending, both ends included: the excess is at most zero at each end, and above zero 1e-6 beyond it."""
    least: float
    """The smallest excess that was found. It is looked for closely where nothing is admissible."""
    where: float
    """The epsilon of the smallest excess."""


def find_admissible(excess: Excess, low: float, high: float) -> Admissible:
    """Scans the range evenly in log epsilon, looks closer at every bend, then narrows each edge to its safe side.

    For functions of which nothing is known but that they change over a factor of about two in epsilon or more: the
    step is a tenth of that, so that two edges can hide between neighbours only at a bend, or at an end of the range,
    which is where it looks closer. `find_epsilons` knows more of a risk, and overlooks nothing.

    >>> found = find_admissible(lambda epsilon: (epsilon - 1.0) * (epsilon - 2.0) * (epsilon - 4.0), 0.5, 10.0)
    >>> [(round(low, 6), round(high, 6)) for low, high in found.intervals]
    [(0.5, 1.0), (2.0, 4.0)]
    """
    epsilon = np.geomspace(low, high, SCANNED)
    value = excess(epsilon)
    for _ in range(ROUNDS_AT_A_BEND):
        more = _near_bends(epsilon, value)
        if not len(more):
            break
        epsilon = np.concatenate([epsilon, more])
        value = np.concatenate([value, excess(more)])
        order = np.argsort(epsilon)
        epsilon, value = epsilon[order], value[order]
    fine = value <= 0
    edges = np.flatnonzero(fine[1:] != fine[:-1])
    ends = [narrow(excess, epsilon[place : place + 2], value[place : place + 2]) for place in edges]
    intervals = join(low, high, value, ends)
    for _ in range(0 if intervals else ROUNDS_AT_A_BEND):
        least = int(np.argmin(value))
        around = epsilon[max(least - 1, 0)], epsilon[min(least + 1, len(epsilon) - 1)]
        epsilon = np.geomspace(*around, 2 * POINTS_AT_A_BEND + 1)
        value = excess(epsilon)
    least = int(np.argmin(value))
    return Admissible(intervals, float(value[least]), float(epsilon[least]))


def join(low: float, high: float, value: Floats, ends: list[float]) -> tuple[tuple[float, float], ...]:
    """The intervals between these edges, the ends of the range among them where they are admissible."""
    edges = [*([low] if value[0] <= 0 else []), *ends, *([high] if value[-1] <= 0 else [])]
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _near_bends(epsilon: Floats, value: Floats) -> Floats:
    """More points on both sides of each local extremum that zero may lie just beyond.

    A parabola through three points goes beyond the middle one by at most an eighth of the larger difference. The ends
    of the range count as bends: one may be just inside.
    """
    before, after = np.concatenate([value[1:2], value[:-1]]), np.concatenate([value[1:], value[-2:-1]])
    dip = (value > 0) & (value <= before) & (value <= after)
    peak = (value <= 0) & (value >= before) & (value >= after)
    near = np.abs(value) <= np.maximum(np.abs(before - value), np.abs(after - value))
    new: list[Floats] = []
    for place in np.flatnonzero((dip | peak) & near).tolist():
        sides = (epsilon[max(place - 1, 0)], epsilon[place]), (epsilon[place], epsilon[min(place + 1, len(value) - 1)])
        new += [np.geomspace(low, high, POINTS_AT_A_BEND + 2)[1:-1] for low, high in sides if high / low > 1 + EDGE]
    return np.unique(np.concatenate(new)) if new else np.zeros(0)


def narrow(excess: Excess, epsilon: Floats, value: Floats) -> float:
    """The last admissible epsilon before the edge between two neighbours, one admissible and one not."""
    from scipy.optimize import brentq

    low, high = map(float, epsilon)
    at_low, at_high = map(float, value)
    known = {0.0: at_low, 1.0: at_high}
    width = math.log(high / low)

    def place(part: float) -> float:
        return high if part >= 1.0 else low * math.exp(part * width)

    def at(part: float) -> float:
        return known[part] if part in known else float(excess(np.array([place(part)]))[0])

    tolerance = EDGE / width
    part = float(brentq(at, 0.0, 1.0, xtol=tolerance, rtol=4 * np.finfo(float).eps))
    inside, towards = (0.0, -tolerance) if at_low <= 0 else (1.0, tolerance)
    while at(part) > -ROUNDING and part != inside:
        part = min(max(part + towards, 0.0), 1.0)
        towards *= 2.0
    return place(part)
