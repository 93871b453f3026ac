"""Who is at risk: the risk of every cell, the riskiest cells, and the people who share a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import Block, Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.explanation.attacked import AttackedCells
from cellrisk.risk.measures import Local, Measure
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.results import NOT_KEPT, LeavesKeys

SIZES: tuple[tuple[int, int | None], ...] = ((1, 1), (2, 2), (3, 5), (6, 10), (11, None))
"""First and last size of the cells that are counted together; None where there is no last."""


@dataclass(frozen=True)
class _KeyedCell(LeavesKeys):
    """One cell with its key, which is left behind when it is pickled."""

    key: dict[str, str]
    """The values of the quasi-identifiers. Raw data."""

    def without_keys(self) -> dict[str, Any]:
        return {"key": dict.fromkeys(self.key, NOT_KEPT)}


@dataclass(frozen=True)
class RiskyCell(_KeyedCell):
    """One cell: how many people are in it, and how likely its sensitive value is revealed."""

    records: int
    levels: int
    """How many levels of the sensitive attribute occur in it."""
    risk: float
    caused: float
    """Expected number of its people revealed because of their own record."""
    people: float
    """Expected number of its people whose value is revealed: records * tight risk."""


@dataclass(frozen=True)
class LabelStep(LeavesKeys):
    """One count of a cell on its way through a perturbation."""

    label: str
    """The sensitive value. Raw data."""
    count: int
    published: tuple[tuple[int, float], ...]
    """What it may be published as, and how likely; 0 also if it is not published at all."""
    vanishes: float
    alone: float
    """P(this value is shown, and no other of the cell)."""
    people: float
    """Expected number of its people whose value is revealed: count * alone."""
    alone_without: float
    """The same probability for a cell with one record of this value less."""

    def without_keys(self) -> dict[str, Any]:
        return {"label": NOT_KEPT}


@dataclass(frozen=True)
class CellSteps(_KeyedCell):
    """One cell step by step: what each of its counts becomes."""

    labels: tuple[LabelStep, ...]
    """The values that occur in the cell; a perturbation may let others appear, which are not listed."""


@dataclass(frozen=True)
class CausedBySize:
    """The people in cells of one size, or of a range of sizes."""

    least: int
    most: int | None
    """None where the range has no end."""
    cells: int
    records: int
    caused: float
    """Expected number of them revealed because of their own record."""
    people: float
    """Expected number of them revealed, for any reason."""

    @property
    def size(self) -> str:
        """The sizes, in words.

        >>> [CausedBySize(*ends, 1, 3, 0.1, 0.2).size for ends in ((1, 1), (3, 5), (11, None))]
        ['1', '3 to 5', '11 and more']
        """
        if self.most is None:
            return f"{self.least:,} and more"
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class LevelRisk(LeavesKeys):
    """The people who share one value of one quasi-identifier."""

    quasi_identifier: str
    label: str
    cells: int
    records: int
    risk: float
    """Averaged over their cells, with the weights that were chosen."""
    people: float
    """Expected number of them whose value is revealed: the sum of records * tight risk."""
    raw_share: float
    """The share of them whose value is revealed without noise: those in homogeneous cells."""
    caused: float
    """Expected number of them revealed because of their own record by the homogeneity attack."""
    own: float | None = None
    """That of the attack that reveals most people so; None if the table is too large."""
    most: float | None = None
    """The most that one person's own record adds to the probability that this attack names their value."""
    learnt: float | None = None
    """Expected number of them whose value the informed attacker learns."""

    def without_keys(self) -> dict[str, Any]:
        return {"label": NOT_KEPT}


@dataclass(frozen=True, eq=False)
class CellRisks:
    """Every cell with its local risk in one form, exact, and with the people whom it is expected to reveal.

    >>> from cellrisk import Laplace
    >>> from cellrisk.counts.cells import Domain
    >>> codes, cell, level = np.array([[0], [1]]), np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> cells = Cells("job", ("cook", "smith"), (Domain("sex", ("f", "m")),), codes, cell, level, np.array([1, 2, 3]))
    >>> CellRisks(cells, Laplace(epsilon=1.0).channel, "exact").risk.round(4).tolist()
    [0.3472, 0.6681]
    >>> risks = CellRisks(cells, Laplace(epsilon=1.0).channel, "tight")
    >>> [(found.key, found.records, round(found.people, 4)) for found in risks.riskiest(1)]
    [({'sex': 'm'}, 3, 2.0044)]
    """

    cells: Cells
    channel: CountChannel
    form: str

    @cached_property
    def _profiled(self) -> ProfiledCells:
        return ProfiledCells.of(self.cells)

    def _find(self, channel: CountChannel, form: str) -> Floats:
        return np.asarray(self._profiled.risk(Local(), channel, form)[self._profiled.place, 0])

    @cached_property
    def risk(self) -> Floats:
        """How likely each released cell reveals its label, in the chosen form."""
        return self._find(self.channel, self.form)

    @cached_property
    def people(self) -> Floats:
        """Expected number in each cell whose value is revealed."""
        tight = self.risk if self.form == "tight" else self._find(self.channel, "tight")
        return np.asarray(self.cells.sizes * tight)

    @cached_property
    def caused(self) -> Floats:
        """Expected number in each cell revealed because of their own record."""
        return np.asarray(self.cells.sizes * self._find(self.channel.pivotal, "tight"))

    @cached_property
    def levels(self) -> Integers:
        """How many levels of the sensitive attribute occur in each cell."""
        return np.diff(self.cells.offsets)

    @cached_property
    def exposed(self) -> Integers:
        """Records in each cell revealed without noise: all if it is homogeneous, else none."""
        return np.asarray(np.where(self.levels == 1, self.cells.sizes, 0))

    def riskiest(self, top: int) -> Iterator[RiskyCell]:
        """The riskiest cells: by risk, then by records, both descending, then in the order of their keys."""
        return map(self._cell, np.lexsort((-self.cells.sizes, -self.risk))[:top].tolist())

    def most_caused(self, top: int) -> Iterator[RiskyCell]:
        """The cells with most people revealed because of their own record; then the smaller first."""
        return map(self._cell, np.lexsort((self.cells.sizes, -self.caused))[:top].tolist())

    def _cell(self, cell: int) -> RiskyCell:
        counts = int(self.cells.sizes[cell]), int(self.levels[cell])
        return RiskyCell(
            self.cells.key(cell),
            *counts,
            risk=float(self.risk[cell]),
            caused=float(self.caused[cell]),
            people=float(self.people[cell]),
        )

    def walk_through(self, perturbation: Perturbation) -> CellSteps:
        """The cell with most people revealed because of their own record, count by count."""
        cells, channel = self.cells, perturbation.channel
        cell = int(np.lexsort((cells.sizes, -self.caused))[0])
        inside = slice(*cells.offsets[cell : cell + 2].tolist())
        counts, places = cells.count[inside], cells.level[inside]
        vanish = channel.p_zero(counts)[..., 0]
        empty = float(channel.q0[0]) ** (len(cells.levels) - len(counts))
        steps = []
        for place, (count, level) in enumerate(zip(counts.tolist(), places.tolist(), strict=True)):
            others = empty * float(np.prod(np.delete(vanish, place)))
            values, chances = perturbation.row(count)
            alone, alone_without = (float(channel.p_positive(each)[0]) * others for each in (count, count - 1))
            published = tuple(zip(values.tolist(), chances.tolist(), strict=True))
            vanishes = float(vanish[place])
            steps.append(
                LabelStep(cells.levels[level], count, published, vanishes, alone, count * alone, alone_without)
            )
        return CellSteps(cells.key(cell), tuple(steps))

    def caused_by_size(self) -> Iterator[CausedBySize]:
        """The people revealed because of their own record, by the size of their cell."""
        sizes = self.cells.sizes
        for least, most in SIZES:
            inside = (sizes >= least) & (sizes <= (most or sizes.max()))
            if inside.any():
                sums = (float(amounts[inside].sum()) for amounts in (self.caused, self.people))
                yield CausedBySize(least, most, int(inside.sum()), int(sizes[inside].sum()), *sums)

    def by_level(self, weights: str, attacked: AttackedCells | None = None) -> Iterator[LevelRisk]:
        """The people who share a value, for each value of each quasi-identifier that occurs."""
        own, most = (None, None) if attacked is None else attacked.strongest()
        learnt = None if attacked is None else attacked.learnt()
        sizes = self.cells.sizes
        weight = sizes if weights == "records" else np.ones(len(sizes))
        for domain, code in zip(self.cells.domains, self.cells.codes.T, strict=True):
            cells = np.bincount(code, minlength=len(domain))
            records, exposed, people, caused, total, weighted = (
                np.bincount(code, amounts, minlength=len(domain))
                for amounts in (sizes, self.exposed, self.people, self.caused, weight, weight * self.risk)
            )
            by_value: list[dict[str, float]] = [{} for _ in range(len(domain))]
            if own is not None and most is not None and learnt is not None:
                largest = np.zeros(len(domain))
                np.maximum.at(largest, code, most)
                sums = (np.bincount(code, amounts, minlength=len(domain)) for amounts in (own, learnt))
                by_value = [
                    {"own": float(own_there), "learnt": float(learnt_there), "most": float(most_there)}
                    for own_there, learnt_there, most_there in zip(*sums, largest, strict=True)
                ]
            for level in np.flatnonzero(cells).tolist():
                yield LevelRisk(
                    domain.name,
                    domain.labels[level],
                    int(cells[level]),
                    int(records[level]),
                    risk=float(weighted[level] / total[level]),
                    people=float(people[level]),
                    raw_share=float(exposed[level] / records[level]),
                    caused=float(caused[level]),
                    **by_value[level],
                )


@dataclass(frozen=True, eq=False)
class ProfiledCells:
    """The profiles of a table, and which of them every cell has: on that alone its risk depends."""

    profiles: Profiles
    place: Integers
    """For each cell, the place of its profile among those of all blocks, one block after the other."""

    @staticmethod
    def of(cells: Cells) -> ProfiledCells:
        blocks: list[Block] = []
        place, before = np.empty(cells.n_cells, np.int64), 0
        present = np.diff(cells.offsets)
        for length in np.unique(present):
            rows = np.flatnonzero(present == length)
            counts = -np.sort(-cells.count[cells.offsets[rows][:, None] + np.arange(length)], axis=1)
            first, which = find_distinct(counts.T, (counts.max(axis=0) + 1).tolist())
            counts, times = counts[first], np.bincount(which)
            blocks.append(Block(counts, times, times * counts.sum(axis=1)))
            place[rows] = before + which
            before += len(first)
        return ProfiledCells(Profiles(len(cells.levels), tuple(blocks)), place)

    def risk(self, measure: Measure, channel: CountChannel, form: str) -> Floats:
        """The risk of each profile under each noise: (profiles, noises)."""
        return measure.risks(self.profiles, channel, form)
