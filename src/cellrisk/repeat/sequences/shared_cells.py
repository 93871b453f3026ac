"""The same cells for every sensitive attribute, found by their keys, and the parents of cells that were split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from cellrisk.counts.cells import Cells, find_distinct, number_keys
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class SharedCells:
    """Every cell that holds a record, in the order of its key, with the place of each attribute's own cells among them.

    >>> from cellrisk.counts.cells import Domain
    >>> sex, one = (Domain("sex", ("f", "m")),), np.array([0])
    >>> cook = Cells("job", ("cook",), sex, np.array([[1]]), one, one, np.array([3]))
    >>> both = Cells("pay", ("low",), sex, np.array([[0], [1]]), np.array([0, 1]), np.array([0, 0]), np.array([2, 3]))
    >>> grid = SharedCells.of([cook, both])
    >>> grid.sizes.tolist(), grid.places["job"].tolist()
    ([2, 3], [1])
    """

    cells: Mapping[str, Cells]
    """The cells of each sensitive attribute, by its name."""
    places: Mapping[str, Integers]
    """For each attribute's own cells: which of all cells it is. A cell without records of the attribute has no such."""
    codes: Integers
    """(cells, quasi-identifiers)"""
    widths: tuple[int, ...]
    """How many values each quasi-identifier has."""
    names: tuple[str, ...]
    sizes: Integers
    """Records in each cell."""

    @staticmethod
    def of(cells: Sequence[Cells]) -> SharedCells:
        """The cells of all these attributes together, which must have the same quasi-identifiers."""
        names = cells[0].names
        if any(each.names != names for each in cells):
            raise InvalidInput("cells can be matched by the same quasi-identifiers only")
        labels = [
            tuple(dict.fromkeys(label for each in cells for label in each.domains[place].labels))
            for place in range(len(names))
        ]
        widths = tuple(len(values) for values in labels)
        codes = np.concatenate([_recoded(each, labels) for each in cells])
        if not len(codes):
            raise InvalidInput("a table without records has no risk")
        first, where = find_distinct(codes.T, widths)
        sizes, places, start = np.zeros(len(first), np.int64), {}, 0
        for each in cells:
            place = places[each.sensitive] = where[start : start + each.n_cells]
            sizes[place] = np.maximum(sizes[place], each.sizes)
            start += each.n_cells
        return SharedCells({each.sensitive: each for each in cells}, places, codes[first], widths, names, sizes)

    @property
    def n_cells(self) -> int:
        return len(self.sizes)

    def coarsen(self, names: Sequence[str]) -> SharedCells:
        """The cells of some of the quasi-identifiers alone."""
        dropped = [name for name in self.names if name not in names]
        return SharedCells.of([reduce(Cells.drop, dropped, each) for each in self.cells.values()]) if dropped else self

    def parents(self, coarser: SharedCells) -> Integers:
        """For each cell, the cell of a coarser grid that it is a part of."""
        columns = [self.names.index(name) for name in coarser.names]
        key = number_keys(np.concatenate([coarser.codes, self.codes[:, columns]]).T, coarser.widths)
        return np.searchsorted(key[: coarser.n_cells], key[coarser.n_cells :])

    def average(self, values: Floats, weights: str) -> Floats:
        """Values of the cells, averaged with each cell alike (``uniform``) or by ``records``."""
        weight = self.sizes.astype(np.float64) if weights == "records" else np.ones(self.n_cells)
        return np.asarray(weight @ values / weight.sum())


def _recoded(cells: Cells, labels: Sequence[Sequence[str]]) -> Integers:
    """The codes of cells among labels that may be more than their own."""
    codes = cells.codes.copy()
    for place, (domain, known) in enumerate(zip(cells.domains, labels, strict=True)):
        if domain.labels != known:
            number = {label: code for code, label in enumerate(known)}
            codes[:, place] = np.array([number[label] for label in domain.labels])[codes[:, place]]
    return codes
