"""Who is at risk: the risk of every cell, the riskiest cells, and the people who share a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import Block, LabelledCounts, LevelCounts, Profiles
from cellrisk.counts.table import Attribute
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.certainty import why_unknown
from cellrisk.risk.measures import Local
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.results import NOT_KEPT, LeavesKeys

MOST_COUNTS = 2_000_000
"""Groups times categories up to which attacks are explained."""

AttackedCells = tuple[AttackTable, Integers]
"""The attacks on the groups of a table, and which of their vectors each group has."""


@dataclass(frozen=True)
class RiskyCell(LeavesKeys):
    """One cell: how many people are in it, and how likely its sensitive value is revealed."""

    key: dict[str, str]
    """The values of the quasi-identifiers. Raw data, which is left behind when it is pickled."""
    records: int
    levels: int
    """How many levels of the sensitive attribute occur in it."""
    risk: float
    caused: float
    """Expected number of its people revealed because of their own record."""
    people: float
    """Expected number of its people whose value is revealed: records * tight risk."""

    def without_keys(self) -> dict[str, Any]:
        return {"key": dict.fromkeys(self.key, NOT_KEPT)}


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
    """Every cell with its local risk in one form, exact, and with the people whom it is expected to reveal."""

    cells: Cells
    channel: CountChannel
    form: str

    @cached_property
    def _profiled(self) -> tuple[Profiles, Integers]:
        return profile_cells(self.cells)

    def _find(self, form: str) -> Floats:
        profiles, row = self._profiled
        return np.asarray(Local().risks(profiles, self.channel, form)[row, 0])

    @cached_property
    def risk(self) -> Floats:
        """How likely each released cell reveals its label, in the chosen form."""
        return self._find(self.form)

    @cached_property
    def people(self) -> Floats:
        """Expected number in each cell whose value is revealed."""
        tight = self.risk if self.form == "tight" else self._find("tight")
        return np.asarray(self.cells.sizes * tight)

    @cached_property
    def caused(self) -> Floats:
        """Expected number in each cell revealed because of their own record."""
        return np.asarray(self.cells.sizes * self._find("own"))

    def riskiest(self, top: int) -> Iterator[RiskyCell]:
        """The riskiest cells: by risk, then by records, both descending, then in the order of their keys."""
        return self._cells(np.lexsort((-self.cells.sizes, -self.risk))[:top])

    def most_caused(self, top: int) -> Iterator[RiskyCell]:
        """The cells with most people revealed because of their own record; then the smaller first."""
        return self._cells(np.lexsort((self.cells.sizes, -self.caused))[:top])

    def _cells(self, chosen: Integers) -> Iterator[RiskyCell]:
        levels = np.diff(self.cells.offsets)
        for cell in chosen.tolist():
            risks = (float(part[cell]) for part in (self.risk, self.caused, self.people))
            yield RiskyCell(self.cells.key(cell), int(self.cells.sizes[cell]), int(levels[cell]), *risks)

    def by_level(self, weights: str, attacked: AttackedCells | None = None) -> Iterator[LevelRisk]:
        """The people who share a value, for each value of each quasi-identifier that occurs."""
        sizes = self.cells.sizes
        weight = sizes if weights == "records" else np.ones(len(sizes))
        alone = np.where(np.diff(self.cells.offsets) == 1, sizes, 0)  # revealed without noise
        amounts = {"people": self.people, "caused": self.caused}
        gain = np.zeros(len(sizes))
        if attacked is not None:
            amounts["own"], gain, amounts["learnt"] = _strongest(*attacked)
        for domain, code in zip(self.cells.domains, self.cells.codes.T, strict=True):
            cells, records, exposed, total, weighted, *sums = (
                np.bincount(code, part, minlength=len(domain))
                for part in (None, sizes, alone, weight, weight * self.risk, *amounts.values())
            )
            most = np.zeros(len(domain))
            np.maximum.at(most, code, gain)
            for level in np.flatnonzero(cells).tolist():
                yield LevelRisk(
                    domain.name,
                    domain.labels[level],
                    int(cells[level]),
                    int(records[level]),
                    risk=float(weighted[level] / total[level]),
                    raw_share=float(exposed[level] / records[level]),
                    most=None if attacked is None else float(most[level]),
                    **{name: float(part[level]) for name, part in zip(amounts, sums, strict=True)},
                )


def profile_cells(cells: Cells) -> tuple[Profiles, Integers]:
    """Return the profiles of a table, on which alone the risk of a cell depends, and which of them every cell has.

    A row is that among the profiles of all blocks, one block after the other.
    """
    blocks: list[Block] = []
    row, before = np.empty(cells.n_cells, np.int64), 0
    present = np.diff(cells.offsets)
    for length in np.unique(present):
        rows = np.flatnonzero(present == length)
        counts = -np.sort(-cells.count[cells.offsets[rows][:, None] + np.arange(length)], axis=1)
        first, which = find_distinct(counts.T, (counts.max(axis=0) + 1).tolist())
        counts, times = counts[first], np.bincount(which)
        blocks.append(Block(counts, times, times * counts.sum(axis=1)))
        row[rows] = before + which
        before += len(first)
    return Profiles(len(cells.levels), tuple(blocks)), row


def attack_cells(cells: Cells, channel: CountChannel, attacker: Attacker) -> AttackedCells | None:
    """Return the attacks on these groups, at the attacker's largest certainty; None if they are too many."""
    labels = cells.levels
    if cells.n_cells * len(labels) > MOST_COUNTS:
        return None
    dense = np.zeros((cells.n_cells, len(labels)), np.int64)
    dense[cells.cell, cells.level] = cells.count
    counts, row, times = np.unique(dense, axis=0, return_inverse=True, return_counts=True)
    vectors, levels = LabelledCounts(counts, times), LevelCounts.from_cells(counts, labels, times)
    attribute = Attribute(cells.sensitive, levels, vectors.profiles(), False, False, vectors)
    if why_unknown(attribute) is not None:
        return None
    return attacker.tables(attribute, channel)[-1], row.reshape(-1)


def _strongest(table: AttackTable, row: Integers) -> tuple[Floats, Floats, Floats]:
    """Return for each group the people revealed because of their own record, and the most that it adds to one of them,
    both by the attack that so reveals most people; and the people whose value the informed attacker learns."""
    if table.drowned:
        return np.zeros(len(row)), np.zeros(len(row)), np.zeros(len(row))
    counts, counted = table.vectors.counts, list(table.harmful) or slice(None)
    gain = table.success(max(table.names, key=lambda attack: table.figures(attack).own)).gain.mean(axis=0)
    learnt = np.zeros(counts.shape)
    if table.prior is not None:
        learnt = table.success("informed", learnt=True).revealed.mean(axis=0)
    people, most = (counts * gain).sum(axis=1), np.where(counts > 0, gain, 0.0).max(axis=1)
    return people[row], most[row], (counts * learnt)[:, counted].sum(axis=1)[row]
