"""Sums over many whole numbers from few of them: the discrete counterpart of Gauss-Legendre panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cellrisk.system.arrays import Floats, Integers

NODES = 16
"""Whole numbers at which a function is evaluated in a panel."""
DENSE = 64
"""A stretch of at most so many whole numbers is summed term by term; so is all of it where noise is this narrow."""
TOLERANCE = 1e-11
"""The estimated error of a sum, above which its panels are halved."""
SPAN = 256
"""Counts this far apart share a range of released values even where noise is narrower."""
STALLED = 0.7
"""Halving the panels divides the error by thousands, or by 2 at a jump; by less, the rest is rounding."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Whole numbers and weights: a weighted sum over these is the sum over every whole number of a range."""

    values: Floats
    weights: Floats
    panels: Integers
    """(panels, 16): where in ``values`` each panel is; whatever is in no panel has weight 1 and no error."""
    checks: Floats
    """(panels, 16): weights that extract the last two orthogonal coefficients of a function on a panel."""

    def error(self, terms: Floats) -> float:
        """Return an estimate of the error, from above, of the largest of these sums: (sums, values) -> number.

        Each panel's rule integrates an interpolating polynomial, so its error is of the order of the first
        coefficients left out, and those are smaller than the last ones kept.
        """
        if not len(self.panels) or not len(terms):
            return 0.0
        return float(np.abs(np.einsum("spn,pn->sp", terms[:, self.panels], self.checks)).sum(axis=1).max())


def lay_lattice(first: int, last: int, breaks: Integers, longest: float) -> Lattice:
    """Return a lattice for the whole numbers first..last, for functions that are smooth except at the breaks.

    No panel contains a break, is longer than ``longest``, or longer than half the number at which it starts (so that
    exp(-x v) is resolved for every x at which it is not negligible).
    """
    inside = breaks[(breaks >= first) & (breaks <= last)]
    values, weights, checks, begins = [], [], [np.zeros((0, NODES))], []
    start, n_values = first, 0
    for stop in np.unique([*inside, *(inside + 1), last + 1]).tolist():  # a break is a stretch of its own
        while start < stop:
            length = min(stop - start, max(DENSE, int(min(longest, 0.5 * start))))
            if length > DENSE:
                offsets, panel_weights, panel_checks = _panel(length)
                begins.append(n_values)
                checks.append(panel_checks[None])
            else:
                length = stop - start if longest <= DENSE else length
                offsets, panel_weights = np.arange(length, dtype=np.float64), np.ones(length)
            values.append(start + offsets)
            weights.append(panel_weights)
            n_values += len(offsets)
            start += length
    panels = np.array(begins, dtype=np.int64)[:, None] + np.arange(NODES)
    return Lattice(np.concatenate(values), np.concatenate(weights), panels, np.concatenate(checks))


@lru_cache(maxsize=4096)
def _panel(length: int) -> tuple[Floats, Floats, Floats]:
    """Return offsets, weights and checks for 0..length-1: Gauss points of that uniform measure, moved to whole numbers.

    The measure's orthogonal (discrete Chebyshev) polynomials p_n obey x p_n = b_(n+1) p_(n+1) + a p_n + b_n p_(n-1)
    with a = (length - 1)/2, b_n^2 = n^2 (length^2 - n^2)/(4 (4 n^2 - 1)). Only p_0 has a sum that is not 0.
    """
    order = np.arange(1.0, NODES + 1)
    off = 0.5 * order * np.sqrt((length - order) * (length + order) / (4.0 * order**2 - 1.0))
    jacobi = np.diag(off[:-1], 1) + np.diag(off[:-1], -1)
    middle = 0.5 * (length - 1)
    offsets = np.rint(middle + np.linalg.eigvalsh(jacobi))
    centred = offsets - middle
    polynomials = np.empty((NODES, NODES))
    polynomials[:, 0] = 1.0 / math.sqrt(length)
    polynomials[:, 1] = centred * polynomials[:, 0] / off[0]
    for n in range(1, NODES - 1):
        ahead = centred * polynomials[:, n] - off[n - 1] * polynomials[:, n - 1]
        polynomials[:, n + 1] = ahead / off[n]
    coefficients = math.sqrt(length) * np.linalg.inv(polynomials)
    return offsets, coefficients[0], coefficients[-2] + coefficients[-1]


def refine(scale: float, attempt: Callable[[float], tuple[Floats, float]]) -> Floats:
    """Return what an attempt finds with panels so short that its own estimate of its error is below 1e-11.

    An attempt takes the longest panel allowed, first the scale of the noise, and returns (total, estimated error).
    Panels as short as 64 are sums of every term, so this ends. It also ends where halving does not help: what is left
    then is the rounding of the terms, which no panel mends.
    """
    longest, before = scale, np.inf
    total, error = attempt(longest)
    while error > TOLERANCE and longest > DENSE and error < STALLED * before:
        longest, before = longest / 2.0, error
        total, error = attempt(longest)
    return total


def split_near(ascending: Integers, radius: int, at_once: int) -> Iterator[slice]:
    """Yield runs of counts near enough to each other to share a range of released values."""
    start = 0
    while start < len(ascending):
        stop = int(np.searchsorted(ascending, ascending[start] + max(radius, SPAN), side="right"))
        stop = min(stop, start + at_once)
        yield slice(start, stop)
        start = stop
