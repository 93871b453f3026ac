"""Types of arrays, and rows of codes as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NUMBERS_AT_ONCE = 1 << 18
"""Numbers in a working array of eight bytes each: about as many as the processor's cache holds."""
LARGEST_KEY = 2**62
ROOM, ADDRESSES = 4, 1 << 16
"""Distinct rows are found by address up to so many addresses a row, or in all, and by sorting beyond."""


def number_keys(columns: Iterable[Integers], widths: Iterable[int]) -> Integers:
    """One number for each row of codes: equal where rows are equal, and in their order.

    columns: the codes, a column at a time; widths: each column's codes are below its width. Where the product of the
    widths is below `LARGEST_KEY`, the number is the row's address in an array of these widths.

    >>> number_keys(np.array([[1, 0], [0, 2], [1, 0]]).T, [2, 3]).tolist()
    [3, 2, 3]
    """
    key, bound = np.zeros(1, np.int64), 1
    for column, width in zip(columns, widths, strict=True):
        if bound * width >= LARGEST_KEY:  # beyond 64 bits, so the numbers are taken that occur
            distinct, key = np.unique(key, return_inverse=True)
            bound = len(distinct)
            if bound == len(column):  # rows that all differ stay as they are, whatever the other columns hold
                return key
        if bound * width >= LARGEST_KEY:
            distinct, column = np.unique(column, return_inverse=True)
            width = len(distinct)
        if key.shape == np.shape(column):  # in place: for millions of rows, making room takes longest
            key *= width
            key += column
        else:
            key = key * width + column
        bound *= width
    return key


def find_starts(columns: Sequence[Integers]) -> Integers:
    """Where each run of equal rows of codes begins.

    >>> find_starts([np.array([4, 4, 7, 7]), np.array([1, 1, 1, 2])]).tolist()
    [0, 2, 3]
    """
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def find_distinct(columns: Iterable[Integers], widths: Sequence[int]) -> tuple[Integers, Integers]:
    """Where each distinct row of codes is first, in the order of rows, and which of these each row is.

    >>> find_distinct(np.array([[1, 0], [0, 1], [1, 0]]).T, [2, 2])
    (array([1, 0]), array([1, 0, 1]))
    """
    key, addresses = number_keys(columns, widths), prod(widths)
    if addresses <= max(ROOM * len(key), ADDRESSES):
        taken = np.zeros(addresses, bool)
        taken[key] = True
        number = (np.cumsum(taken) - 1)[key]
    else:
        _, number = np.unique(key, return_inverse=True)
    first = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return first, number


def count_distinct(
    columns: Sequence[Integers], widths: Sequence[int], times: Integers | None = None
) -> tuple[Integers, Integers]:
    """Each distinct row of codes, in their order, and how often it occurs; each row counts once, or ``times``.

    >>> count_distinct(np.array([[1, 0], [0, 1], [1, 0]]).T, [2, 2])
    (array([[0, 1],
           [1, 0]]), array([1, 2]))
    """
    key, addresses = number_keys(columns, widths), prod(widths)
    if addresses <= max(ROOM * len(key), ADDRESSES):  # which takes less memory
        counts = np.bincount(key, times)
        key = np.flatnonzero(counts)
        return np.stack(np.unravel_index(key, widths), axis=1), counts[key].astype(np.int64)
    first, number = find_distinct(columns, widths)
    rows = np.stack([np.asarray(column)[first] for column in columns], axis=1).astype(np.int64)
    return rows, np.bincount(number, times).astype(np.int64)
