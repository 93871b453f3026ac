"""The groups of a table as releases add quasi-identifiers, and the risk of each of them under one noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.risk.explanation.risky_cells import ProfiledCells
from cellrisk.system.arrays import Integers, find_distinct

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of some quasi-identifiers, and the finest groups, of all of them, that each is made of."""

    names: tuple[str, ...]
    parent: Integers
    """For each of the finest groups, the group that it is a part of."""
    cells: Mapping[str, Cells]
    """The cells of each sensitive attribute."""
    places: Mapping[str, Integers]
    """For each of an attribute's own cells, its group."""

    @cached_property
    def n_groups(self) -> int:
        return int(self.parent.max()) + 1


@dataclass(frozen=True, eq=False)
class FinestGroups:
    """The groups of all quasi-identifiers in which some attribute has a record: attributes may differ in their cells
    and in the values that occur."""

    cells: tuple[Cells, ...]
    """Those of each attribute."""

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The values of each quasi-identifier, of all attributes."""
        return {
            name: tuple(dict.fromkeys(label for cells in self.cells for label in cells.domains[place].labels))
            for place, name in enumerate(self.cells[0].names)
        }

    @cached_property
    def _numbered(self) -> tuple[Integers, Integers]:
        """(codes, records) of every group."""
        codes = np.concatenate([self._recode(cells) for cells in self.cells])
        if not len(codes):
            raise InvalidInput("a table without records has no risk")
        first, where = find_distinct(codes.T, list(map(len, self.labels.values())))
        sizes, start = np.zeros(len(first), np.int64), 0
        for cells in self.cells:
            place = where[start : start + cells.n_cells]
            sizes[place] = np.maximum(sizes[place], cells.sizes)
            start += cells.n_cells
        return codes[first], sizes

    @property
    def sizes(self) -> Integers:
        """Records in each group."""
        return self._numbered[1]

    def _recode(self, cells: Cells) -> Integers:
        """The codes of cells among the labels of all attributes."""
        codes = cells.codes.copy()
        for place, domain in enumerate(cells.domains):
            number = {label: code for code, label in enumerate(self.labels[cells.names[place]])}
            codes[:, place] = np.array([number[label] for label in domain.labels])[codes[:, place]]
        return codes

    def merge(self, names: tuple[str, ...]) -> Groups:
        """The groups of some quasi-identifiers alone, in the order of the table."""
        every = list(self.labels)
        finest = self._numbered[0][:, [every.index(name) for name in names]]
        dropped = [name for name in every if name not in names]
        merged = [reduce(Cells.drop, dropped, cells) for cells in self.cells]
        codes = np.concatenate([finest, *map(self._recode, merged)])
        _, where = find_distinct(codes.T, [len(self.labels[name]) for name in names])
        parent, *places = np.split(where, np.cumsum([len(finest), *(cells.n_cells for cells in merged)])[:-1])
        sensitive = [cells.sensitive for cells in merged]
        return Groups(
            names, parent, dict(zip(sensitive, merged, strict=True)), dict(zip(sensitive, places, strict=True))
        )


def describe_cells(table: FrequencyTable, groups: Groups, name: str) -> tuple[ProfiledCells, Attribute]:
    """The profiles of an attribute's own cells, and the attribute as it would be, had the table been made with the
    quasi-identifiers of these groups."""
    from cellrisk.counts.table import Attribute

    attribute, cells = table.attribute(name), groups.cells[name]
    if groups.names == table.quasi_identifiers:
        return ProfiledCells.of(cells), attribute
    pairs = np.stack([cells.level, cells.count], axis=1)
    distinct, times = np.unique(pairs, axis=0, return_counts=True)
    products = np.bincount(cells.level, cells.count * cells.sizes[cells.cell], minlength=len(cells.levels))
    levels = LevelCounts(cells.levels, distinct[:, 0], distinct[:, 1], times, products.astype(np.float64))
    described = Attribute(attribute.name, levels, cells.profiles(), attribute.declared, attribute.missing_level)
    return ProfiledCells.of(cells), described
