"""Releases that are only simulated: one loop draws them from a law, chunk by chunk, and shows them to attackers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.simulation.attacks import CellAttacks, Chunk, InformedAttacker
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.progress import StepCounter

COUNTS_AT_ONCE = 1 << 16
"""Counts that are drawn together: part of the order that a seed stands for, so never to be changed."""


class ReleaseLaw(Protocol):
    """How releases are made from counts."""

    @property
    def size(self) -> int | None:
        """The counts that one release needs at once; None if cells can be released a few at a time."""

    def release(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, Floats | None]:
        """Some releases of cells, (levels, releases, cells); and, if asked for and known, of each count what would be
        released with one record less and the same noise. ``counts`` has the same shape, with one release for all."""


@dataclass(frozen=True, eq=False)
class NoisyRelease:
    """Counts with the noise of a mechanism, rounded and zero below its threshold."""

    mechanism: Mechanism
    size: int | None = None

    def release(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, Floats | None]:
        noisy = self.mechanism.noise.sample(generator, (len(counts), releases, counts.shape[2]))
        noisy += counts
        lessened = round_counts(noisy - 1.0, self.mechanism.threshold) if lessen else None
        return round_counts(noisy, self.mechanism.threshold), lessened


@dataclass(frozen=True, eq=False)
class PerturbedRelease:
    """Each count drawn from its row of a perturbation, with one random number for each."""

    perturbation: Perturbation
    size: int | None = None

    def release(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, Floats | None]:
        uniform = generator.random((len(counts), releases, counts.shape[2]))
        every = np.broadcast_to(counts, uniform.shape)
        return self._choose(every, uniform), self._choose(np.maximum(every - 1.0, 0.0), uniform)

    def _choose(self, counts: Floats, uniform: Floats) -> Floats:
        """Each count as the value at which its row's sums pass its random number."""
        released = np.zeros_like(uniform)
        for count in np.unique(counts).tolist():
            values, probabilities = self.perturbation.row(int(count))
            chosen = counts == count
            places = np.searchsorted(np.cumsum(probabilities), uniform[chosen], side="right")
            released[chosen] = values[np.minimum(places, len(values) - 1)]
        return released


@dataclass(frozen=True, eq=False)
class Releases:
    """Releases of one table, drawn and attacked chunk by chunk."""

    cells: Cells
    law: ReleaseLaw
    releases: int

    @cached_property
    def _pieces(self) -> list[slice]:
        """The cells that are drawn together: all of them, but for a table too large for that."""
        step = max(1, COUNTS_AT_ONCE // len(self.cells.levels)) if self.law.size is None else self.cells.n_cells
        return [slice(start, min(start + step, self.cells.n_cells)) for start in range(0, self.cells.n_cells, step)]

    @cached_property
    def _chunks(self) -> list[slice]:
        """The releases that are drawn together: at least one."""
        step = max(1, COUNTS_AT_ONCE // (self.law.size or self.cells.n_cells * len(self.cells.levels)))
        return [slice(start, min(start + step, self.releases)) for start in range(0, self.releases, step)]

    @property
    def steps(self) -> int:
        """How many steps `attack` reports."""
        return len(self._chunks) * len(self._pieces)

    def attack(
        self,
        generator: np.random.Generator,
        report: StepCounter,
        *,
        own_record: bool = False,
        informed: InformedAttacker | None = None,
    ) -> CellAttacks:
        """What the attackers find, one number a release: shares of the cells, and of the records.

        own_record: whether each record is left out in turn under the same noise.
        """
        found = CellAttacks(self.releases)
        counts = self._counts(self._pieces[0])
        for some in self._chunks:
            for rows in self._pieces:
                if len(self._pieces) > 1:
                    counts = self._counts(rows)
                chunk = Chunk(some, counts, *self.law.release(counts, some.stop - some.start, generator, own_record))
                found.read(chunk)
                if informed is not None:
                    informed.read(chunk)
                report.add(1)
        total = {"uniform": self.cells.n_cells, "records": int(self.cells.sizes.sum())}
        found.shares = {key: values / total[key[2]] for key, values in found.shares.items()}
        return found

    def _counts(self, rows: slice) -> Floats:
        """The table's counts in some cells: (levels, 1, cells)."""
        counts = np.zeros((len(self.cells.levels), 1, rows.stop - rows.start))
        some: Integers = np.arange(self.cells.offsets[rows.start], self.cells.offsets[rows.stop])
        counts[self.cells.level[some], 0, self.cells.cell[some] - rows.start] = self.cells.count[some]
        return counts


def round_counts(noisy: Floats, threshold: float) -> Floats:
    """Noisy counts as they are published, in place: rounded, and zero below the threshold.

    >>> round_counts(np.array([-3.2, 0.4, 0.6, 2.3]), 0.5).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    vanished = noisy < threshold
    np.rint(noisy, out=noisy)
    noisy[vanished] = 0.0
    return noisy
