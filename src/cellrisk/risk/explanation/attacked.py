"""What the attacks reveal in a table of groups, and in each of its groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import LabelledCounts, LevelCounts
from cellrisk.counts.table import Attribute
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.certainty import why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.system.arrays import Floats, Integers

MOST_COUNTS = 2_000_000
"""Groups times categories up to which attacks are explained."""


@dataclass(frozen=True, eq=False)
class AttackedCells:
    """The table of attacks on the groups of a table, and which of its vectors each group has."""

    table: AttackTable
    place: Integers

    @staticmethod
    def of(cells: Cells, channel: CountChannel, attacker: Attacker) -> AttackedCells | None:
        """Return the attacks on these groups, at the attacker's largest certainty; None if they are too many."""
        labels = cells.levels
        if cells.n_cells * len(labels) > MOST_COUNTS:
            return None
        dense = np.zeros((cells.n_cells, len(labels)), np.int64)
        dense[cells.cell, cells.level] = cells.count
        counts, place, times = np.unique(dense, axis=0, return_inverse=True, return_counts=True)
        vectors, levels = LabelledCounts(counts, times), LevelCounts.from_cells(counts, labels, times)
        attribute = Attribute(cells.sensitive, levels, vectors.profiles(), False, False, vectors)
        if why_unknown(attribute) is not None:
            return None
        return AttackedCells(attacker.tables(attribute, channel)[-1], place.reshape(-1))

    def summary(self) -> dict[str, Any]:
        """Return the fields of `AttackSummary`."""
        table = self.table
        own = max(float(table.figures(name).own.sum()) for name in table.names)
        return {"own": own, "largest_own": table.largest_own(), "largest_learnt": table.largest_learnt()}

    def strongest(self) -> tuple[Floats, Floats]:
        """Return, for each group, the people revealed because of their own record and the most that it adds to one.

        Of the attack that reveals most people because of their own record.
        """
        table = self.table
        if table.drowned:
            return np.zeros(len(self.place)), np.zeros(len(self.place))
        name = max(table.names, key=lambda attack: float(table.figures(attack).own.sum()))
        gain = table.success(name).gain.mean(axis=0)
        counts = table.vectors.counts
        people = (counts * gain).sum(axis=1)
        return people[self.place], np.where(counts > 0, gain, 0.0).max(axis=1)[self.place]

    def learnt(self) -> Floats:
        """Return the expected people of each group whose value the informed attacker learns."""
        table = self.table
        if table.drowned or table.prior is None:
            return np.zeros(len(self.place))
        counted = list(table.harmful) or slice(None)
        learnt = table.success("informed", learnt=True).revealed.mean(axis=0)[:, counted]
        return np.asarray((table.vectors.counts[:, counted] * learnt).sum(axis=1)[self.place])
