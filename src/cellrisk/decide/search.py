"""Where a function of epsilon is at most zero: one search for every limit, which does not suppose that it rises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cellrisk.system.arrays import Floats
from cellrisk.system.progress import Progress

STEP = 0.09
"""The widest step of a scan, in log epsilon: about 26 epsilons in each power of ten."""
EDGE = 1e-8
"""Relative width to which an edge is narrowed; the admissible end of that width is returned."""
ROUNDING = 1e-14
"""An edge is moved inwards until the excess is below zero by this: added up in another order it is not above."""
MOST_PAIRS, MOST_PEAKS = 8, 3
"""Of a function that jumps, the most pairs of neighbours near zero, and peaks, that are looked at again."""

Excess = Callable[[Floats], Floats]
"""How far a metric is above its limit, at many epsilons at once."""
Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Admissible:
    """The epsilons in a range at which the excess is at most zero, and where it is least."""

    intervals: Intervals
    """Ascending, both ends included: the excess is at most zero at each end, and above zero 1e-6 beyond it."""
    least: float
    """The smallest excess that was found."""
    where: float
    """The epsilon of the smallest excess."""


def intersect(*several: Intervals) -> Intervals:
    """What is in each of them.

    >>> intersect(((1.0, 3.0), (5.0, 9.0)), ((2.0, 6.0),))
    ((2.0, 3.0), (5.0, 6.0))
    """
    common, *others = several
    for other in others:
        both = [(max(a, c), min(b, d)) for a, b in common for c, d in other]
        common = tuple((low, high) for low, high in both if low <= high)
    return common


def find_admissible(excess: Excess, low: float, high: float, step: float = STEP) -> Admissible:
    """Scan the range evenly in log epsilon, follow every bend to its end, then narrow each edge to its safe side.

    For functions of which nothing is known but that they change over a factor of about two in epsilon or more: the
    usual step is an eighth of that, so two edges can hide between neighbours only at a bend, or at an end of the range,
    which is where it looks closer. An infinite ``step`` is for functions that only rise, or only fall: the ends of the
    range are enough.

    >>> kept = find_admissible(lambda epsilon: (epsilon - 1.0) * (epsilon - 2.0) * (epsilon - 4.0), 0.5, 10.0)
    >>> [(round(low, 6), round(high, 6)) for low, high in kept.intervals]
    [(0.5, 1.0), (2.0, 4.0)]
    """
    epsilon = np.geomspace(low, high, math.ceil(math.log(high / low) / step) + 1 if math.isfinite(step) else 2)
    epsilon[0], epsilon[-1] = low, high
    value = excess(epsilon)
    if math.isfinite(step):
        low_turns = [_find_least(excess, epsilon, place) for place in {*_find_dips(value), int(np.argmin(value))}]
        high_turns = [_find_least(lambda at: -excess(at), epsilon, place) for place in _find_dips(-value)]
        epsilon = np.append(epsilon, [turn for turn, _ in low_turns + high_turns])
        value = np.array([*value, *(least for _, least in low_turns), *(-least for _, least in high_turns)])
    epsilon, kept = np.unique(epsilon, return_index=True)
    return _collect(excess, epsilon, value[kept])


def scan_upwards(
    excess: Excess,
    low: float,
    high: float,
    step: float,
    coarse: float,
    near: float,
    edge: float = EDGE,
    progress: Progress | None = None,
) -> Admissible:
    """Scan a function that jumps up to the first epsilon at which it is above zero, and more coarsely beyond.

    For limits up to which every smaller epsilon must hold: epsilons beyond the first excess only show whether larger
    ones would be within the limit again. Where neighbours come nearer to zero than ``near``, it looks closer.

    >>> kept = scan_upwards(lambda epsilon: (epsilon - 1.0) * (4.0 - epsilon), 0.5, 10.0, 0.1, 0.5, 0.01)
    >>> [(round(low, 6), round(high, 6)) for low, high in kept.intervals]
    [(0.5, 1.0), (4.0, 10.0)]
    """
    known: dict[float, float] = {}

    def at(epsilon: float) -> float:
        if epsilon not in known:
            known[epsilon] = float(excess(np.array([epsilon]))[0])
            if progress is not None:
                progress(0.9 * math.log(epsilon / low) / math.log(high / low))
        return known[epsilon]

    def spread(start: float, width: float) -> list[float]:
        points = np.geomspace(start, high, max(math.ceil(math.log(high / start) / width), 1) + 1)
        return [start, *points[1:-1].tolist(), high]

    last = next((epsilon for epsilon in spread(low, step) if at(epsilon) > 0), high)
    for epsilon in _divide(*_ascending(known), near).tolist():
        at(epsilon)
    epsilons, values = _ascending(known)
    sides = np.diff(values)
    inside = (sides[:-1] >= 0) & (sides[1:] <= 0) & ((sides[:-1] > 0) | (sides[1:] < 0))  # the ends are no peaks
    peaks = np.flatnonzero(inside & (values[1:-1] <= 0) & (values[1:-1] > -near)) + 1
    for place in sorted(peaks.tolist(), key=lambda place: -values[place])[:MOST_PEAKS]:
        at(_find_least(lambda epsilon: -excess(epsilon), epsilons, place)[0])
    for epsilon in spread(last, coarse)[1:] if last < high else ():
        at(epsilon)
    return _collect(excess, *_ascending(known), edge)


def _ascending(known: dict[float, float]) -> tuple[Floats, Floats]:
    """Return the epsilons at which a function is known, ascending, and its values."""
    epsilons = np.array(sorted(known))
    return epsilons, np.array([known[epsilon] for epsilon in epsilons.tolist()])


def _collect(excess: Excess, epsilon: Floats, value: Floats, edge: float = EDGE) -> Admissible:
    """What is admissible, from a function at ascending epsilons that has at most one edge between two of them."""
    fine = value <= 0
    crossings = np.flatnonzero(fine[1:] != fine[:-1])
    edges = [narrow(excess, epsilon[place : place + 2], value[place : place + 2], edge) for place in crossings]
    edges = [*epsilon[:1][fine[:1]].tolist(), *edges, *epsilon[-1:][fine[-1:]].tolist()]
    least = int(np.argmin(value))
    return Admissible(tuple(zip(edges[::2], edges[1::2], strict=True)), float(value[least]), float(epsilon[least]))


def _divide(epsilon: Floats, value: Floats, near: float) -> Floats:
    """Three epsilons between admissible neighbours of which one comes near to zero: a jump above it may be between."""
    admissible = [(at, number) for at, number in zip(epsilon.tolist(), value.tolist(), strict=True) if number <= 0]
    pairs = [(max(one[1], other[1]), (one[0], other[0])) for one, other in pairwise(admissible)]
    nearest = [pair for number, pair in sorted(pairs, reverse=True)[:MOST_PAIRS] if number > -near]
    return np.array([at for pair in nearest for at in np.geomspace(*pair, 5)[1:-1]])


def _find_dips(value: Floats) -> list[int]:
    """Where a function above zero is least among its neighbours, and may be below zero beside them.

    A parabola through three points goes beyond the middle one by at most an eighth of the larger difference: it is
    looked at where that difference is more than the way to zero. The ends of the range count: a dip may be just inside.
    """
    mirrored = np.pad(value, 1, mode="reflect")
    sides = np.stack([mirrored[:-2], mirrored[2:]]) - value
    return np.flatnonzero((value >= 0) & (sides.min(axis=0) >= 0) & (sides.max(axis=0) > value)).tolist()


def _find_least(excess: Excess, epsilon: Floats, place: int) -> tuple[float, float]:
    """Where the function is least between the neighbours of one of these epsilons, and what it is there."""
    from scipy.optimize import minimize_scalar

    around = epsilon[max(place - 1, 0) : place + 2][[0, -1]]
    least = minimize_scalar(lambda log: float(excess(np.exp([log]))[0]), bounds=np.log(around), method="bounded")
    return float(np.clip(math.exp(least.x), *around)), float(least.fun)


def narrow(excess: Excess, epsilon: Floats, value: Floats, edge: float = EDGE) -> float:
    """The last admissible epsilon before the edge between two neighbours, one admissible and one not."""
    from scipy.optimize import brentq

    inner, outer = map(float, epsilon[np.argsort(value)])
    width = abs(math.log(outer / inner))
    known = {0.0: float(value.min()), width: float(value.max())}

    def locate(distance: float) -> float:
        return inner * math.exp(math.copysign(distance, outer - inner))

    def at(distance: float) -> float:
        if distance not in known:
            known[distance] = float(excess(np.array([locate(distance)]))[0])
        return known[distance]

    distance, step = float(brentq(at, 0.0, width, xtol=edge)), edge
    while distance > 0 and at(distance) > -ROUNDING:
        distance, step = max(distance - step, 0.0), 2.0 * step
    return locate(distance)
