"""The risk of every cell after some releases, and after one more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.explanation.risky_cells import ProfiledCells
from cellrisk.risk.measures import FORMS, MEASURES, Measure
from cellrisk.risk.priors import Priors
from cellrisk.system.arrays import Floats, Integers, find_distinct, number_keys
from cellrisk.system.choices import OverallKind, list_words, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

KINDS: tuple[OverallKind, ...] = list_words(OverallKind)
"""How the attributes of a cell are taken together: bounded, and unbounded."""


@dataclass(frozen=True, eq=False)
class SharedCells:
    """Every cell with a record, in the order of its key, and where each attribute's own cells are among them.

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
    """For each of an attribute's own cells, its index among all cells."""
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


def _recoded(cells: Cells, labels: Sequence[Sequence[str]]) -> Integers:
    """The codes of cells among labels that may be more than their own."""
    codes = cells.codes.copy()
    for place, (domain, known) in enumerate(zip(cells.domains, labels, strict=True)):
        if domain.labels != known:
            number = {label: code for code, label in enumerate(known)}
            codes[:, place] = np.array([number[label] for label in domain.labels])[codes[:, place]]
    return codes


@dataclass(frozen=True, eq=False)
class CellRisk:
    """One risk of every cell, by its name, with the priors that it needs fitted to the cells it is asked of."""

    table: FrequencyTable
    measure: str
    form: str
    priors: Priors
    pivotal: bool = False
    """Whether it is asked under the pivotal channel, where the tight local risk is the share caused."""
    _known: dict[tuple[tuple[str, ...], str], tuple[ProfiledCells, Measure]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        require_word("measure", self.measure, tuple(MEASURES))
        require_word("form", self.form, FORMS)

    def at(self, grid: SharedCells, name: str, channel: CountChannel) -> Floats:
        """The risk of one attribute in each cell under one noise; 0 in a cell that has no record of it."""
        key = grid.names, name
        if key not in self._known:
            self._known[key] = ProfiledCells.of(grid.cells[name]), self._fit(grid, name)
        profiled, measure = self._known[key]
        found = np.zeros(grid.n_cells)
        found[grid.places[name]] = measure.risks(profiled.profiles, channel, self.form)[profiled.place, 0]
        return found

    def _fit(self, grid: SharedCells, name: str) -> Measure:
        attribute = self.table.attribute(name)
        if grid.names != self.table.quasi_identifiers:
            attribute = describe_cells(attribute, grid.cells[name])
        return self.priors.fit(attribute, [self.measure]).measure(self.measure)


def describe_cells(attribute: Attribute, cells: Cells) -> Attribute:
    """The attribute as it would be, had the table been made with the quasi-identifiers of these cells."""
    from cellrisk.counts.table import Attribute

    pairs = np.stack([cells.level, cells.count], axis=1)
    distinct, times = np.unique(pairs, axis=0, return_counts=True)
    products = np.bincount(cells.level, cells.count * cells.sizes[cells.cell], minlength=len(cells.levels))
    levels = LevelCounts(cells.levels, distinct[:, 0], distinct[:, 1], times, products.astype(np.float64))
    return Attribute(attribute.name, levels, cells.profiles(), attribute.declared, attribute.missing_level)


@dataclass(frozen=True, eq=False)
class RisksSoFar:
    """For each attribute released, its largest risk so far in every cell, or the largest share caused there."""

    cell_risk: CellRisk
    grid: SharedCells
    risks: Mapping[str, Floats] = field(default_factory=dict)
    anew: tuple[str, ...] = ()
    """The attributes that the next release assesses."""

    def before(self, grid: SharedCells, attribute: str | None) -> RisksSoFar:
        """The risks before one more release, in the cells as they are after it.

        Where the cells are split, a child starts from its parent's risks, and every attribute released so far is
        assessed anew; else the one that is released, if any.
        """
        released = () if attribute is None else (attribute,)
        if self.grid.names == grid.names:
            return replace(self, anew=released)
        parents = grid.parents(self.grid)
        held = {name: risk[parents] for name, risk in self.risks.items()}
        return replace(self, grid=grid, risks=held, anew=tuple(dict.fromkeys((*held, *released))))

    def after(self, channel: CountChannel) -> tuple[RisksSoFar, dict[str, Floats]]:
        """The cells after the release, under one noise; and the risks as assessed now, of each attribute.

        What was revealed stays revealed: an attribute keeps the larger of its old risk and its new one.
        """
        used = channel.pivotal if self.cell_risk.pivotal else channel
        now = {name: self.cell_risk.at(self.grid, name, used) for name in self.anew}
        kept = {name: np.maximum(self.risks.get(name, 0.0), risk) for name, risk in now.items()}
        return replace(self, risks={**self.risks, **kept}), now

    def average(self, kind: str, weights: str) -> float:
        """The overall risk, averaged with each cell alike (``uniform``) or by ``records``: of a cell, the largest of
        its attributes' risks (``max``), or their sum (``sum``)."""
        combine = np.maximum if kind == "max" else np.add
        overall: Floats = reduce(combine, self.risks.values(), np.zeros(self.grid.n_cells))
        return float(np.average(overall, weights=self.grid.sizes if weights == "records" else None))
