"""From a count to what is released of it, and back: how many people the attacker expects behind a released value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cellrisk.noise.distributions import (
    Noise,
    NoNoise,
    first_value,
)
from cellrisk.risk.certainty.beliefs import CountBelief
from cellrisk.system.arrays import Floats, Integers

NUMBERS_AT_ONCE = 1 << 20
FAR = 100.0
"""Terms below e^-FAR of the largest are left out of a posterior mean."""
LARGEST_LOG = 600.0
NONE = 1e-40
"""Noise that changes a count with less probability than this changes none."""
MOST_COUNTS = 1 << 22
"""Counts that a recursion goes through; past them the counts near enough to matter are summed."""
TRIED = 65
"""Counts that are tried at once where an end is looked for."""
NODES = 16
"""Chebyshev points on a panel as long as the noise is wide: interpolation is right to about 1e-12 there."""


class Channel:
    """Counts on their way into a release: rounded noise is added, and what is below the smallest value becomes zero.

    A released value v is a whole number from ``zero`` on: ``zero`` = T - 1 stands for a count that was released as
    zero, any larger one for itself, T the smallest value that is released.
    """

    def __init__(self, noise: Noise, threshold: float) -> None:
        self.noise = NoNoise() if float(noise.cdf(-0.5)) < NONE else noise
        self.zero = first_value(threshold) - 1
        self.reach = noise.tail_radius
        """Rounded noise goes farther with a probability below 1e-17."""

    @cached_property
    def _mass(self) -> Floats:
        return self.noise.mass(np.arange(-self.reach, self.reach + 1.0))

    @cached_property
    def _up_to(self) -> Floats:
        """The same added up, from none of it on."""
        return np.concatenate([[0.0], np.cumsum(self._mass)])

    @cached_property
    def _at_most(self) -> Floats:
        """P(rounded noise <= d), d from -reach - 1, where it is taken for 0, to reach, where it is taken for 1."""
        inner = self.noise.at_most(np.arange(-self.reach, self.reach + 0.0))
        return np.concatenate([[0.0], inner, [1.0]])

    def at_most(self, distance: Integers) -> Floats:
        """P(rounded noise <= d)."""
        return np.asarray(self._at_most[np.clip(distance, -self.reach - 1, self.reach) + self.reach + 1])

    def window(self, count: int) -> tuple[int, int]:
        """The first and the last value that a count may be released as."""
        return max(self.zero, count - self.reach), max(self.zero, count + self.reach)

    def chance(self, counts: Integers, values: Integers) -> Floats:
        """P(value | count): (counts, values), the values ascending."""
        distance = values - counts[:, None]
        found = np.where(
            np.abs(distance) > self.reach, 0.0, self._mass[np.clip(distance, -self.reach, self.reach) + self.reach]
        )
        if len(values) and values[0] == self.zero:
            found[:, 0] = self.at_most(self.zero - counts)
        return np.asarray(found)

    def chance_of(self, counts: Integers, values: Integers) -> Floats:
        """P(value | count) for each count and the value beside it, one that it may be released as."""
        found = self._mass[np.clip(values - counts, -self.reach, self.reach) + self.reach]
        hidden = values == self.zero
        found[hidden] = self.at_most(self.zero - counts[hidden])
        return np.asarray(found)

    def chance_within(self, counts: Integers, first: Integers, last: Integers) -> Floats:
        """P(first <= value <= last | count) for each count and two values beside it that it may be released as.

        Of the two tails, which are alike, the one is looked at in which nothing cancels.
        """
        found = self.at_most(last - counts)
        shown = first > self.zero
        low, high = (first - counts)[shown], (last - counts)[shown]
        above = low + high > 0
        low, high = np.where(above, -high, low), np.where(above, -low, high)
        found[shown] = self._up_to[high + self.reach + 1] - self._up_to[low + self.reach]
        return found

    def values(self, counts: Integers) -> Integers:
        """Every value that any of the counts may be released as, ascending; ``zero`` is always among them."""
        runs = []
        last = self.zero
        for count in np.unique(counts).tolist():
            first, end = self.window(count)
            if end > last:
                runs.append(np.arange(max(first, last + 1), end + 1))
                last = end
        return np.concatenate([[self.zero], *runs]).astype(np.int64)


def expected_counts(believed: CountBelief, channel: Channel, values: Integers) -> Floats:
    """w(v) = E[N | v]: how many people the attacker expects behind each released value.

    w(v) = sum_n n p(n) P(v | n) / sum_n p(n) P(v | n), p what is believed. All terms are positive. It rises with v,
    because the noise is log-concave. The first of the values is the ``zero`` of the channel.

    >>> from cellrisk.noise.distributions import GeometricNoise
    >>> channel = Channel(GeometricNoise(1.0), 0.5)
    >>> expected_counts(CountBelief(0.5, 0.8), channel, np.array([0, 1, 5])).round(6).tolist()
    [0.20852, 0.762045, 4.288137]
    """
    if believed.shape == 0:
        return np.zeros(len(values))
    found = np.empty(len(values))
    found[0] = _behind_zero(believed, channel)
    shown = values[1:]
    if len(shown):
        direct = _by_recursion(believed, channel.noise, shown)
        found[1:] = _by_windows(believed, channel.noise, shown) if direct is None else direct
    return np.maximum.accumulate(found)


def _behind_zero(believed: CountBelief, channel: Channel) -> float:
    """E[N | released as zero]."""

    def logs(counts: Floats) -> Floats:
        return believed.log_chance(counts) + channel.noise.log_at_most(channel.zero - counts)

    likely = believed.last_likely(FAR)
    if believed.shape > 1.0:
        first, last = _span(logs, likely)
    else:
        first, last = 0, math.ceil(min(likely, channel.zero + channel.noise.far(FAR)))
    counts = np.arange(first, last + 1.0)
    return float(weighted_mean(logs(counts), counts))


def _span(logs: Callable[[Floats], Floats], top: float) -> tuple[int, int]:
    """The counts up to ``top`` whose terms are above e^-FAR of the largest, where the logarithms are concave."""

    def last(first: int, end: int, holds: Callable[[Floats], NDArray[np.bool_]]) -> int:
        """The last number of what holds from ``first`` on, many tried at once."""
        while first < end:
            tried = np.unique(np.linspace(first + 1.0, end, TRIED).round())
            good = int(np.count_nonzero(holds(tried)))
            end = int(tried[good]) - 1 if good < len(tried) else end
            first = int(tried[good - 1]) if good else first
        return first

    end = math.ceil(top)
    mode = last(0, end, lambda counts: logs(counts) > logs(counts - 1.0))
    least = float(logs(np.array([float(mode)]))[0]) - FAR
    below = mode - last(0, mode, lambda steps: logs(mode - steps) >= least)
    return below, last(mode, end, lambda counts: logs(counts) >= least)


def weighted_mean(logs: Floats, counts: Floats) -> Floats:
    """The mean of the counts, the logarithms of whose weights are given: one, or one for each row of weights."""
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray((weights * counts).sum(axis=-1) / weights.sum(axis=-1))


def _by_recursion(believed: CountBelief, noise: Noise, values: Integers) -> Floats | None:
    """The same for noise with P(j) = c b^|j| but at 0: sums from either side follow from each other, value by value.

    L(v) = sum_{n <= v} g(n) b^(v - n) = b L(v - 1) + g(v), and U(v) = sum_{n > v} g(n) b^(n - v) from above; both are
    kept over m^v, m = max(b, theta), which keeps them in range. None where they do not stay there.
    """
    if noise.exponential_tails is None:
        return None
    b, centre = noise.exponential_tails
    m = max(b, believed.theta)
    falling = CountBelief(believed.shape, b * believed.theta)
    end = int(values[-1]) + math.ceil(max(-FAR / math.log(b * m), falling.last_likely(FAR))) + 1
    if end > MOST_COUNTS:
        return None
    counts = np.arange(end + 1.0)
    logs = believed.log_chance(counts) - counts * math.log(m)
    if logs.max() > LARGEST_LOG:
        return None
    total = np.exp(logs)
    sums = [_from_both_sides(part, b, m, centre)[values] for part in (total, total * counts)]
    if not (sums[0] > 0).all():
        return None
    return np.asarray(sums[1] / sums[0])


def _by_near_recursion(believed: CountBelief, noise: Noise, values: Integers) -> Floats | None:
    """The same of consecutive values: sums start at the first count that matters to them, which may be far from 0.

    Both are kept over m^v, m between b and 1/b and as near as it may be to the slope of the prior.
    """
    if noise.exponential_tails is None:
        return None
    b, centre = noise.exponential_tails
    low, high = int(values[0]), int(values[-1])
    first = min(_find_window(believed, noise, float(low))[0], low)
    end = max(_find_window(believed, noise, float(high))[1], high + 1)
    if end - first > MOST_COUNTS:
        return None
    beyond = np.arange(end - first + 1.0)
    prior = believed.log_chance(first + beyond)
    log_m = float(np.clip((prior[-1] - prior[0]) / len(prior), math.log(b), -math.log(b)))
    logs = prior - beyond * log_m
    largest = float(logs.max())
    if logs.min() < largest - LARGEST_LOG:
        return None
    part, m, here = np.exp(logs - largest), math.exp(log_m), values - first
    sums = [_from_both_sides(each, b, m, centre)[here] for each in (part, part * beyond)]
    nobody = np.zeros(len(values))
    if first > 0 and believed.shape <= 1.0:  # nobody is likelier by far than somebody
        logs = believed.log_chance(np.zeros(1)) + values * math.log(b) - largest - here * log_m
        nobody = np.exp(np.minimum(logs, 700.0))
    return np.asarray((sums[1] + first * sums[0]) / (sums[0] + nobody))


def _from_both_sides(terms: Floats, b: float, m: float, centre: float) -> Floats:
    """At each place v but the last: the sum over n of terms(n) b^|v - n|; terms are over m^n, and the sum over m^v.

    The term at n = v has the weight ``centre`` in place of 1. It may be small beside 1, so that this term is added by
    itself, and nothing is taken off a larger sum.
    """
    lower = np.concatenate([[0.0], _running(b / m, terms[:-1])[:-1]])
    upper = _running(b * m, terms[::-1])[::-1]
    return np.asarray(b / m * lower + b * m * upper[1:] + centre * terms[:-1])


def _running(ratio: float, terms: Floats) -> Floats:
    """y(n) = ratio y(n - 1) + terms(n): the solution of equations with two diagonals, from the first on."""
    from scipy.linalg import blas

    diagonals = np.empty((2, len(terms)), order="F")
    diagonals[0], diagonals[1] = 1.0, -ratio
    return np.asarray(blas.dtbsv(1, diagonals, terms, lower=1, diag=1))


def _by_windows(believed: CountBelief, noise: Noise, values: Integers) -> Floats:
    """The same for any noise, over the counts near enough to matter."""
    found = np.empty(len(values))
    for run in _runs(values):
        part = values[run].astype(np.float64)
        near = None
        if len(part) > NODES:
            near = _by_near_recursion(believed, noise, values[run])
        if near is not None:
            found[run] = near
        elif noise.exponential_tails is not None or len(part) * noise.scale < 2.0 * NODES * (len(part) + noise.scale):
            # Two-sided noise has its kink at a whole number, where nothing can be interpolated.
            found[run] = _by_window(believed, noise, part)
        else:
            nodes, edges = _lay_nodes(part, noise.scale)
            at_nodes = _by_window(believed, noise, np.sort(nodes.reshape(-1))).reshape(nodes.shape)[:, ::-1]
            found[run] = _interpolate(part, nodes, at_nodes, edges)
    return found


def _by_window(believed: CountBelief, noise: Noise, values: Floats) -> Floats:
    """The same for values that ascend, near ones together: from the counts that matter to the first and the last."""
    found = np.empty(len(values))
    start = 0
    while start < len(values):
        low = float(values[start])
        first, last = _find_window(believed, noise, low)
        near = low + max((last - first) / 4.0, 16.0)
        stop = int(np.searchsorted(values, near, side="right"))
        last = _find_window(believed, noise, float(values[stop - 1]))[1]
        counts, times = _sample_counts(first, last, believed, noise)
        if first > 0 and believed.shape <= 1.0:  # nobody is likelier by far than somebody
            counts, times = np.concatenate([[0.0], counts]), np.concatenate([[1.0], times])
        prior = believed.log_chance(counts) + np.log(times)
        stop = min(stop, start + max(1, NUMBERS_AT_ONCE // len(counts)))
        found[start:stop] = weighted_mean(_log_masses(noise, values[start:stop], counts) + prior, counts)
        start = stop
    return found


def _log_masses(noise: Noise, values: Floats, counts: Floats) -> Floats:
    """log P(rounded noise = v - n) for each value v and count n, both ascending: (values, counts).

    Of whole numbers many pairs are equally far apart: each distance is looked at once.
    """
    least = values[0] - counts[-1]
    distances = int(values[-1] - counts[0] - least) + 1
    if 4 * distances > len(values) * len(counts) or (values % 1).any() or (counts % 1).any():
        return noise.log_mass(values[:, None] - counts)
    table = noise.log_mass(least + np.arange(distances))
    return np.asarray(table[(values - least).astype(np.int64)[:, None] - counts.astype(np.int64)])


def _sample_counts(first: int, last: int, believed: CountBelief, noise: Noise) -> tuple[Floats, Floats]:
    """Points that stand for the counts from the first to the last, and for how many of them each stands.

    Under wide Gaussian noise 16 points stand for a panel of consecutive counts. A panel is at most as long as the noise
    and the prior are wide, as its first count is large, and as neither changes by more than e^8: there the sum is right
    to about 1e-12.
    """
    if noise.exponential_tails is not None or min(last - first, noise.scale) < 4 * NODES:
        return np.arange(first, last + 1.0), np.ones(last - first + 1)
    points, times = [], []
    shape, start = believed.shape, first
    while start <= last:
        slope = abs(math.log(believed.theta) + math.log((shape + start) / (start + 1.0)))
        width = math.sqrt((start + 1.0) * (start + shape) / (shape - 1.0)) if shape > 1.0 else math.inf
        longest = min(noise.scale, start, width, 8.0 / max(slope, 1e-300), last + 1.0 - start)
        if longest < 4 * NODES:
            length = min(2 * NODES, last + 1 - start)
            points.append(np.arange(start, start + length, dtype=np.float64))
            times.append(np.ones(length))
        else:
            length = 1 << int(math.log2(longest))
            place, weight = _sum_rule(length)
            points.append(start + place)
            times.append(weight)
        start += length
    return np.concatenate(points), np.concatenate(times)


@lru_cache(maxsize=64)
def _sum_rule(length: int) -> tuple[Floats, Floats]:
    """Gauss's rule for the sum over 0, 1, ..., length - 1: right for polynomials of a degree below 32.

    Its points are the eigenvalues of a matrix with three diagonals, those of the discrete Chebyshev polynomials.

    >>> points, weights = _sum_rule(64)
    >>> round(float(weights @ points**3)), sum(m**3 for m in range(64))
    (4064256, 4064256)
    """
    k = np.arange(1.0, NODES)
    beside = np.sqrt((k / 2.0) ** 2 * (float(length) ** 2 - k**2) / (4.0 * k**2 - 1.0))
    points, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return points + 0.5 * (length - 1), length * vectors[0] ** 2


def _find_window(believed: CountBelief, noise: Noise, value: float) -> tuple[int, int]:
    """The counts that matter behind a value: both ends rise with it."""
    reach = noise.far(FAR)
    if believed.shape > 1.0:

        def logs(counts: Floats) -> Floats:
            return believed.log_chance(counts) + noise.log_mass(value - counts)

        return _span(logs, max(believed.last_likely(FAR), value) + reach)
    last = math.ceil(value + reach)
    if noise.exponential_tails is None:
        return max(0, math.floor(value - reach + noise.scale**2 * math.log(believed.theta))), last
    # Below the value the terms go as (theta/b)^n: up to it, or down from the first.
    slope = math.log(believed.theta) + 1.0 / noise.scale
    away = FAR / max(abs(slope), FAR / MOST_COUNTS)
    return (max(0, math.floor(value - away)), last) if slope > 0 else (0, math.ceil(min(last, away)))


def _runs(values: Integers) -> Iterator[slice]:
    """Stretches of consecutive values."""
    ends = np.flatnonzero(np.diff(values) > 1) + 1
    bounds = [0, *ends.tolist(), len(values)]
    yield from (slice(start, stop) for start, stop in pairwise(bounds))


def _lay_nodes(values: Floats, longest: float) -> tuple[Floats, Floats]:
    """Panels over a stretch of values, and Chebyshev points on each: (panels, points)."""
    low, high = float(values[0]), float(values[-1])
    n_panels = max(1, math.ceil((high - low) / longest))
    edges = np.linspace(low, high, n_panels + 1)
    points = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    return middle + half * points, edges


def _interpolate(values: Floats, nodes: Floats, at_nodes: Floats, edges: Floats) -> Floats:
    """The polynomial through the points of each panel, in its barycentric form."""
    panel = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(nodes) - 1)
    weights = np.sin(np.pi * (np.arange(NODES) + 0.5) / NODES) * (-1.0) ** np.arange(NODES)
    distance = values[:, None] - nodes[panel]
    exact = np.abs(distance) < 1e-12
    distance[exact] = 1e-12
    terms = weights / distance
    return np.asarray((terms * at_nodes[panel]).sum(axis=1) / terms.sum(axis=1))
