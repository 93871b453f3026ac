"""Counts made consistent with totals that are published already: the nearest that are not negative and add up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from cellrisk.system.arrays import Integers

MOST_TOTAL = 2**36
"""Totals up to this can be shared among as many counts as a release lists without overflow."""
LARGEST_KEY = 2**62
FARTHEST = 2**60
"""Counts farther from 0 than this are taken for this, so that differences do not overflow."""

Keys = Callable[[int], Any]
"""So many random numbers, independent and alike, whose order decides between counts of equal cost."""


def project_whole(counts: Integers, groups: Integers, totals: Integers, keys: Keys) -> Integers:
    """The nearest whole numbers x to counts y, in least squares, that are not negative and add up in each group. Exact.

    groups: the number of each count's group, from 0 on; totals: one for each group, up to `MOST_TOTAL`. The unit that
    lifts x_i from j - 1 to j costs 2 (j - y_i) - 1, so the cheapest units are taken: x_i = max(y_i - t, 0), and one
    more for some of the counts with y_i >= t, to which it costs the same. Which of them get it is left to ``keys``, so
    that none is favoured. Here t is tau = (sum of the k largest y - total)/k rounded up, for the largest k at which the
    k-th largest y is above tau, by the Karush-Kuhn-Tucker conditions. Sorted once for all groups.

    >>> project_whole(np.array([5, -1, 2, 7]), np.array([0, 0, 0, 1]), np.array([5, 3]), secure_keys).tolist()
    [4, 0, 1, 3]
    >>> sorted(project_whole(np.array([2, 2, 2]), np.array([0, 0, 0]), np.array([2]), secure_keys).tolist())
    [0, 1, 1]
    """
    totals = np.asarray(totals, np.int64)
    y = np.clip(np.asarray(counts, np.int64), -FARTHEST, FARTHEST)
    y = y - _largest(y, groups, len(totals))[groups]  # a constant for a group changes nothing
    y = np.maximum(y, -totals[groups])  # below, x is 0 for certain
    sums, sizes = _find_positive(y, groups, totals)
    t = -((totals - sums) // np.maximum(sizes, 1))  # (sums - totals)/sizes, rounded up
    x: Integers = np.where(totals[groups] > 0, np.maximum(y - t[groups], 0), 0)
    left = totals - _add_up(x, groups, len(totals))
    open_to = np.flatnonzero((y >= t[groups]) & (left[groups] > 0))
    shuffled = open_to[np.lexsort((keys(len(open_to)), groups[open_to]))]
    x[shuffled[_ranks(groups[shuffled]) < left[groups[shuffled]]]] += 1
    return x


def secure_keys(number: int) -> Any:
    """Keys for a release, from the operating system's secure random bits."""
    return np.frombuffer(os.urandom(8 * number), np.uint64)


def _find_positive(y: Integers, groups: Integers, totals: Integers) -> tuple[Integers, Integers]:
    """The counts with y above tau, where the total is positive: for each group their sum and number."""
    order = _order(y, groups, totals)
    sorted_groups, sorted_y = groups[order], y[order]
    ranks = _ranks(sorted_groups)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(sorted_y)])
    sums = before[1:] - before[np.arange(len(y)) - ranks]  # of the largest so far; exact, modulo 2^64
    kept = (ranks + 1) * sorted_y > sums - totals[sorted_groups]
    sizes = np.bincount(sorted_groups[kept], minlength=len(totals))
    ends = np.zeros(len(totals), np.int64)
    ends[sorted_groups[kept]] = sums[kept]  # the last one stays
    return ends, sizes


def _order(y: Integers, groups: Integers, totals: Integers) -> Integers:
    """The order by group, largest first. Counts, all from -total to 0 here, are sorted as one number each: faster."""
    if float(totals.sum(dtype=np.float64)) + len(totals) < LARGEST_KEY:
        starts = np.cumsum(totals + 1) - totals
        return np.argsort(starts[groups] - y)
    return np.lexsort((-y, groups))


def _ranks(sorted_groups: Integers) -> Integers:
    """The place of each in its group, from 0 on, where groups stand together."""
    places = np.arange(len(sorted_groups))
    first = np.ones(len(sorted_groups), bool)
    first[1:] = sorted_groups[1:] != sorted_groups[:-1]
    return places - np.maximum.accumulate(np.where(first, places, 0))


def _largest(y: Integers, groups: Integers, n_groups: int) -> Integers:
    """The largest of each group; 0 for a group without counts."""
    least = np.iinfo(np.int64).min
    largest = np.full(n_groups, least)
    np.maximum.at(largest, groups, y)
    return np.where(largest == least, 0, largest)


def _add_up(x: Integers, groups: Integers, n_groups: int) -> Integers:
    """Exact sums of whole numbers; bincount's are floating-point numbers, and exact up to 2^53."""
    return np.rint(np.bincount(groups, x, minlength=n_groups)).astype(np.int64)
