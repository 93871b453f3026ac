"""P(exactly one category is shown): the paper's formula, for categories that are released independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cellrisk.system.arrays import Floats


def exactly_one(q: Sequence[Floats] | Floats, s: Sequence[Floats] | Floats) -> Floats:
    """Return sum_k s_k prod_{j != k} q_j: the probability that one category is shown and all others are not.

    >>> float(exactly_one(np.array([0.5, 0.2]), np.array([0.5, 0.8])))
    0.5
    """
    return np.asarray(join_categories(np.asarray(q), np.asarray(s))[1])


def join_categories(none: Any, one: Any) -> tuple[Any, Any]:
    """Return prod_k q_k and sum_k s_k prod_{j != k} q_j over the first axis of q and s.

    Two halves at a time are joined by "none is shown" and "one is shown", so every term is positive and nothing
    cancels.
    """
    while len(none) > 1:
        half = len(none) // 2
        first, second, rest = slice(0, half), slice(half, 2 * half), slice(2 * half, None)
        joined = one[first] * none[second] + none[first] * one[second]
        both = none[first] * none[second]
        if len(none) % 2:
            joined, both = np.concatenate([joined, one[rest]]), np.concatenate([both, none[rest]])
        none, one = both, joined
    return none[0], one[0]


def each_alone(q: Sequence[Floats] | Floats, s: Sequence[Floats] | Floats, axis: int = 0) -> Floats:
    """Return s_k prod_{j != k} q_j for each category k, an axis: this one is shown and all others are not.

    Products from both sides, so nothing is divided.

    >>> each_alone(np.array([0.5, 0.25]), np.array([0.5, 0.75])).tolist()
    [0.125, 0.375]
    """
    zero, alone = np.moveaxis(np.asarray(q), axis, 0), np.moveaxis(np.array(s), axis, 0)
    alone[1:] *= np.cumprod(zero[:-1], axis=0)
    alone[:-1] *= np.cumprod(zero[:0:-1], axis=0)[::-1]
    return np.moveaxis(alone, 0, axis)
