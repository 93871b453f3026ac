"""Keys: rows of codes as one number each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cellrisk.counts.cells import LARGEST_KEY
from cellrisk.system.arrays import Integers


def number_keys(codes: Integers, widths: Sequence[int]) -> tuple[Integers, Integers]:
    """Where each different key is first, in the order of keys, and the number of each row's key.

    >>> number_keys(np.array([[1, 0], [0, 1], [1, 0]]), [2, 2])
    (array([1, 0]), array([1, 0, 1]))
    """
    key, size = np.zeros(len(codes), np.int64), 1
    for column, width in zip(codes.T, widths, strict=True):
        if size * width >= LARGEST_KEY:
            different, key = np.unique(key, return_inverse=True)
            size = len(different)
        key, size = key * width + column, size * width
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return first, number
