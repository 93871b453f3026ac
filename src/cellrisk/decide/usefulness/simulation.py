"""Releases, drawn as the mechanism draws them, and how far their marginals are from the true ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cellrisk.decide.usefulness.marginals import Attributes, Layout, Margin
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.progress import Progress, StepCounter

COUNTS_AT_ONCE = 1 << 22
"""Counts of several releases that are in memory together, 32 MB; one release at least, however large."""
DRAWN_AT_ONCE = 1 << 20
"""Draws are made in pieces of this many counts: part of the order that a seed stands for, so never to be changed."""


@dataclass(frozen=True, eq=False)
class SimulatedErrors:
    """What simulated releases showed, for each mechanism and marginal."""

    sizes: Integers
    """Cells of each marginal."""
    tvd: Floats
    """(mechanisms, marginals, releases)"""
    absolute_error: Floats
    """(mechanisms, marginals): of a count, averaged over the marginal's cells and the releases."""
    standard_error: Floats
    """The standard error of the absolute error, by how it varies among the releases; not a number for one."""


def simulate_marginals(
    layout: Layout,
    mechanisms: Sequence[Mechanism],
    marginals: Sequence[Attributes],
    releases: int,
    seed: int,
    progress: Progress | None = None,
) -> SimulatedErrors:
    """How far are the marginals of simulated releases from the true ones? Only distances are kept, never a release."""
    number = {attributes: place for place, attributes in enumerate(marginals)}
    sizes = np.zeros(len(marginals), np.int64)
    tvd = np.zeros((len(mechanisms), len(marginals), releases))
    absolute_error, standard_error = np.zeros((2, len(mechanisms), len(marginals)))
    report = StepCounter(progress, tvd.size)
    step = max(1, COUNTS_AT_ONCE // layout.n_counts)
    for place, mechanism in enumerate(mechanisms):
        generator = np.random.default_rng(seed)
        errors = np.zeros((len(marginals), releases))
        for start in range(0, releases, step):
            some = slice(start, min(start + step, releases))
            released = layout.room(some.stop - some.start)
            for release in released:
                draw(layout, mechanism, generator, release)
            totals = released.sum(axis=1)
            for margin in layout.margins(released):
                row = number[margin.attributes]
                sizes[row] = margin.size
                tvd[place, row, some] = distances(margin, totals)
                errors[row, some] = mean_errors(margin, totals, layout.whole)
                report.add(some.stop - some.start)
        absolute_error[place] = errors.mean(axis=1)
        standard_error[place] = _deviation(errors) / math.sqrt(releases) if releases > 1 else math.nan
    return SimulatedErrors(sizes, tvd, absolute_error, standard_error)


def _deviation(errors: Floats) -> Floats:
    """The standard deviation of each row, however large: a power of two is set aside, so that no square overflows."""
    power = np.frexp(np.abs(errors).max(axis=1))[1]
    return np.asarray(np.ldexp(np.ldexp(errors, -power[:, None]).std(axis=1, ddof=1), power))


def draw(layout: Layout, mechanism: Mechanism, generator: np.random.Generator, release: Floats) -> None:
    """Fills one release: each count plus noise, rounded, and zero where that sum is below the threshold."""
    for start in range(0, len(release), DRAWN_AT_ONCE):
        stop = min(start + DRAWN_AT_ONCE, len(release))
        counts = mechanism.noise.sample(generator, (stop - start,))
        first, last = np.searchsorted(layout.places, (start, stop))
        counts[layout.places[first:last] - start] += layout.cells.count[first:last]
        vanished = counts < mechanism.threshold
        np.rint(counts, out=counts)
        counts[vanished] = 0.0
        release[start:stop] = counts


def distances(margin: Margin, totals: Floats) -> Floats:
    """Total variation distance of each release's marginal, given the releases' totals; 1 where nothing is left.

    1/2 sum |p - q| = sum max(p - q, 0), because p and q both add up to 1; so cells that are empty in the true marginal
    need no term.

    >>> margin = Margin((0,), 3, np.array([6.0, 2.0]), np.array([[6.0, 2.0], [3.0, 2.0], [0.0, 0.0]]))
    >>> distances(margin, np.array([8.0, 10.0, 0.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    nothing = totals == 0
    shares = margin.released / np.where(nothing, 1.0, totals)[:, None]
    found = np.maximum(margin.true / margin.true.sum() - shares, 0.0).sum(axis=1)
    return np.where(nothing, 1.0, np.minimum(found, 1.0))  # rounding alone could exceed 1


def mean_errors(margin: Margin, totals: Floats, whole: bool) -> Floats:
    """How far the counts of each release's marginal are from the true ones, averaged over the marginal's cells.

    >>> margin = Margin((0,), 3, np.array([6.0, 2.0]), np.array([[6.0, 2.0], [3.0, 2.0]]))
    >>> mean_errors(margin, np.array([8.0, 11.0]), True).tolist()  # of 11, 6 are in a cell that is truly empty
    [0.0, 3.0]
    """
    errors = np.abs(margin.released - margin.true).sum(axis=1)
    if whole:
        errors = errors + totals - margin.released.sum(axis=1)
    return np.asarray(errors / margin.size)
