"""Counts made consistent with totals that are published already: the nearest that are not negative and add up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats, Integers

MOST_TOTAL = 2**36
"""Totals up to this can be shared among as many counts as a release lists without overflow."""
LARGEST_KEY = 2**62

Keys = Callable[[int], Any]
"""So many random numbers, independent and alike, whose order decides between counts of equal cost."""


def project(counts: Floats, groups: Integers, totals: Floats) -> Floats:
    """The least-squares projection of counts y onto {x >= 0, the x of each group add up to its total}. Exact.

    groups: the number of each count's group, from 0 on; totals: one for each group. In a group x = max(y - tau, 0),
    with tau = (sum of the k largest y - total)/k for the largest k at which the k-th largest y is above that: these are
    the Karush-Kuhn-Tucker conditions. Sorted once for all groups.

    >>> project(np.array([5.0, -1.0, 2.0, 7.0]), np.array([0, 0, 0, 1]), np.array([5.0, 3.0])).tolist()
    [4.0, 0.0, 1.0, 3.0]
    """
    totals = np.asarray(totals, np.float64)
    _check(groups, totals)
    y = np.asarray(counts, np.float64)
    y = y - _largest(y, groups, len(totals))[groups]  # a constant for a group changes nothing
    y = np.maximum(y, -totals[groups])  # below, x is 0 for certain
    order, _, sizes = _find_positive(y, groups, totals)
    taken = np.bincount(groups[order], y[order], minlength=len(totals))
    tau = (taken - totals) / np.maximum(sizes, 1)
    return np.where(totals[groups] > 0, np.maximum(y - tau[groups], 0.0), 0.0)


def project_whole(counts: Integers, groups: Integers, totals: Integers, keys: Keys) -> Integers:
    """The nearest whole numbers, in least squares, that are not negative and add up in each group. Exact.

    The unit that lifts x_i from j - 1 to j costs 2 (j - y_i) - 1, so the cheapest units are taken:
    x_i = max(y_i - t, 0), with t = tau of `project` rounded up, and one more for some of the counts with y_i >= t, to
    which it costs the same. Which of them get it is left to ``keys``, so that none is favoured.

    >>> project_whole(np.array([5, -1, 2, 7]), np.array([0, 0, 0, 1]), np.array([5, 3]), secure_keys).tolist()
    [4, 0, 1, 3]
    >>> sorted(project_whole(np.array([2, 2, 2]), np.array([0, 0, 0]), np.array([2]), secure_keys).tolist())
    [0, 1, 1]
    """
    totals = np.asarray(totals, np.int64)
    _check(groups, totals)
    if len(totals) and totals.max() > MOST_TOTAL:
        raise InvalidInput("a parent count is too large to be shared out", allowed=f"up to {MOST_TOTAL:,}")
    y = np.asarray(counts, np.int64)
    y = y - _largest(y, groups, len(totals))[groups]
    y = np.maximum(y, -totals[groups])
    _, sums, sizes = _find_positive(y, groups, totals)
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


def _find_positive(y: Any, groups: Integers, totals: Any) -> tuple[Integers, Any, Integers]:
    """The counts with x > 0 where the total is positive: which they are, and for each group their sum and number."""
    order = _order(y, groups, totals)
    sorted_groups, sorted_y = groups[order], y[order]
    ranks = _ranks(sorted_groups)
    before = np.concatenate([np.zeros(1, y.dtype), np.cumsum(sorted_y)])
    sums = before[1:] - before[np.arange(len(y)) - ranks]  # of the largest so far; for whole numbers exact, modulo 2^64
    kept = (ranks + 1) * sorted_y > sums - totals[sorted_groups]
    sizes = np.bincount(sorted_groups[kept], minlength=len(totals))
    ends = np.zeros(len(totals), y.dtype)
    ends[sorted_groups[kept]] = sums[kept]  # the last one stays
    return order[kept], ends, sizes


def _order(y: Any, groups: Integers, totals: Any) -> Integers:
    """The order by group, largest first. Whole numbers, all from -total to 0 here, are sorted as one each: faster."""
    if y.dtype.kind == "i" and float(totals.sum(dtype=np.float64)) + len(totals) < LARGEST_KEY:
        starts = np.cumsum(totals + 1) - totals
        return np.argsort(starts[groups] - y)
    return np.lexsort((-y, groups))


def _ranks(sorted_groups: Integers) -> Integers:
    """The place of each in its group, from 0 on, where groups stand together."""
    places = np.arange(len(sorted_groups))
    first = np.ones(len(sorted_groups), bool)
    first[1:] = sorted_groups[1:] != sorted_groups[:-1]
    return places - np.maximum.accumulate(np.where(first, places, 0))


def _largest(y: Any, groups: Integers, n_groups: int) -> Any:
    """The largest of each group; 0 for a group without counts."""
    least = np.iinfo(np.int64).min if y.dtype.kind == "i" else -np.inf
    largest = np.full(n_groups, least, y.dtype)
    np.maximum.at(largest, groups, y)
    return np.where(largest == least, 0, largest)


def _add_up(x: Integers, groups: Integers, n_groups: int) -> Integers:
    """Exact sums of whole numbers; bincount's are floating-point numbers, and exact up to 2^53."""
    return np.rint(np.bincount(groups, x, minlength=n_groups)).astype(np.int64)


def _check(groups: Integers, totals: Any) -> None:
    """Refuses totals that no counts can add up to."""
    negative = int(np.count_nonzero(totals < 0))
    if negative:
        raise InvalidInput("totals cannot be negative", got=f"{negative:,} of {len(totals):,}")
    childless = (totals > 0) & (np.bincount(groups, minlength=len(totals)) == 0)
    if childless.any():
        raise InvalidInput(
            "a positive total has no count to share it",
            got=f"{int(np.count_nonzero(childless)):,} such totals of {len(totals):,}",
        )
