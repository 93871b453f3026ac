"""Simulated releases: one loop draws them from a law, chunk by chunk.

The laws: noise of a mechanism, a perturbation, and noise whose counts add up to totals that are published already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.releasing import read_totals
from cellrisk.publish.releasing.consistency import project_whole
from cellrisk.publish.releasing.domain import read_domain
from cellrisk.publish.releasing.published_totals import check_constrained, find_groups
from cellrisk.system.arrays import Floats, number_keys
from cellrisk.system.progress import Progress, StepCounter

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

COUNTS_AT_ONCE = 1 << 16
"""Counts that are drawn together. It is part of the order that a seed stands for, so it must not change."""
MOST_COUNTS = 20_000_000
"""Counts of one release that are drawn and sorted in memory, if they have to add up to totals."""
Law = Callable[[Floats, int, np.random.Generator], tuple[Floats, Floats | None]]
"""From the true counts of cells, (levels, 1, cells), and a number of releases: what is released, (levels, releases,
cells), and what would be released of each count with one record less and the same noise; None if that is not known."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some cells of some releases: arrays of levels, releases and cells."""

    releases: slice
    counts: Floats
    """The true counts; one release stands for all."""
    released: Floats
    lessened: Floats | None
    """What would be released of each count with one record less and the same noise; None if that is not known."""


def noisy_release(mechanism: Mechanism) -> Law:
    """Counts with the noise of a mechanism, rounded and zero below its threshold."""

    def release(counts: Floats, releases: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        noisy = mechanism.noise.sample(generator, (len(counts), releases, counts.shape[2]))
        noisy += counts
        lessened = round_counts(noisy - 1.0, mechanism.threshold)
        return round_counts(noisy, mechanism.threshold), lessened

    return release


def perturbed_release(perturbation: Perturbation) -> Law:
    """Each count drawn from its row of a perturbation, with one random number for each."""

    def choose(counts: Floats, uniform: Floats) -> Floats:
        """Each count as the value at which its row's sums pass its random number."""
        released = np.zeros_like(uniform)
        for count in np.unique(counts).tolist():
            values, probabilities = perturbation.row(int(count))
            same = counts == count
            places = np.searchsorted(np.cumsum(probabilities), uniform[same], side="right")
            released[same] = values[np.minimum(places, len(values) - 1)]
        return released

    def release(counts: Floats, releases: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        uniform = generator.random((len(counts), releases, counts.shape[2]))
        true = np.broadcast_to(counts, uniform.shape)
        return choose(true, uniform), choose(np.maximum(true - 1.0, 0.0), uniform)

    return release


def constrained_release(
    table: FrequencyTable, mechanism: Mechanism, sensitive: str, parents: Any, parent_count: str | None, **declared: Any
) -> tuple[Cells, Law, int]:
    """The cells that attackers read, the law of releases that add up to published totals, and the size of each.

    The law adds noise to every count of the domain, rounds, and takes the nearest whole numbers that add up to the same
    totals.
    """
    check_constrained(mechanism, clamp=True, dense=True)
    domain = read_domain(table, sensitive, observed_levels=True, **declared)
    domain.check_size()
    cells = domain.cells
    if domain.size > MOST_COUNTS:
        what, fix = "the domain is too large to simulate whole releases", "use fewer or coarser quasi-identifiers"
        got = f"{domain.size:,} counts"
        raise InvalidInput(what, got=got, allowed=f"up to {MOST_COUNTS:,}", fix=fix, code="too-large")
    groups, totals = find_groups(read_totals(parents, parent_count), domain)
    true = np.concatenate([counts for _, counts in domain.pieces()]).astype(np.float64)
    *widths, n_levels = (len(axis) for axis in domain.axes)
    places = number_keys(cells.codes.T, widths) * n_levels + np.arange(n_levels)[:, None]  # (levels, cells)
    listed = domain.every_place()
    where = np.minimum(np.searchsorted(listed, places), len(listed) - 1)
    excluded = listed[where] != places

    def release(counts: Floats, releases: int, generator: np.random.Generator) -> tuple[Floats, None]:
        noisy = mechanism.noise.sample(generator, (releases, len(true)))
        noisy += true
        whole = np.rint(noisy).astype(np.int64).ravel()
        own_groups = groups + len(totals) * np.arange(releases)[:, None]
        published = project_whole(whole, own_groups.ravel(), np.tile(totals, releases), generator.random)
        released = np.take(published.reshape(releases, -1), where, axis=1)
        released[:, excluded] = 0
        return np.ascontiguousarray(np.moveaxis(released, 1, 0), np.float64), None

    return cells, release, len(true)


def draw_releases(
    cells: Cells,
    law: Law,
    releases: int,
    generator: np.random.Generator,
    progress: Progress | None = None,
    size: int | None = None,
) -> Iterator[Chunk]:
    """Releases of a table, chunk by chunk.

    ``size``: the counts that one release needs at once; None if cells can be released a few at a time.
    """
    n_cells, n_levels = cells.n_cells, len(cells.levels)
    pieces = _slices(n_cells, COUNTS_AT_ONCE // n_levels if size is None else n_cells)
    chunks = _slices(releases, COUNTS_AT_ONCE // (size or n_cells * n_levels))
    report = StepCounter(progress, len(chunks) * len(pieces))
    for chunk in chunks:
        for piece in pieces:
            counts = np.zeros((n_levels, 1, piece.stop - piece.start))
            rows = slice(cells.offsets[piece.start], cells.offsets[piece.stop])
            counts[cells.level[rows], 0, cells.cell[rows] - piece.start] = cells.count[rows]
            yield Chunk(chunk, counts, *law(counts, chunk.stop - chunk.start, generator))
            report.add(1)


def _slices(number: int, step: int) -> list[slice]:
    step = max(1, step)
    return [slice(start, min(start + step, number)) for start in range(0, number, step)]


def round_counts(noisy: Floats, threshold: float) -> Floats:
    """Noisy counts as they are published, in place: rounded, and zero below the threshold.

    >>> round_counts(np.array([-3.2, 0.4, 0.6, 2.3]), 0.5).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    vanished = noisy < threshold
    np.rint(noisy, out=noisy)
    noisy[vanished] = 0.0
    return noisy
