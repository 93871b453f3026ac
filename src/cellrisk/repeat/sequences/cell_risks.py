"""The risk of every cell after some releases, and after one more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
NUMBERS_AT_ONCE = 1 << 22
"""Cells times noises that are worked on together."""


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


@dataclass(frozen=True, eq=False)
class CellRisk:
    """One risk of every cell, by its name, with the priors that it needs fitted to the cells it is asked of."""

    table: FrequencyTable
    measure: str
    form: str
    priors: Priors
    pivotal: bool = False
    """Whether it is asked under the pivotal channel, where it is the share caused."""
    _known: dict[tuple[tuple[str, ...], str], tuple[ProfiledCells, Measure]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        require_word("measure", self.measure, tuple(MEASURES))
        require_word("form", self.form, FORMS)

    def at(self, grid: SharedCells, name: str, channel: CountChannel) -> Floats:
        """(cells, noises): the risk of one attribute in each cell; 0 in a cell that has no record of it."""
        key = grid.names, name
        if key not in self._known:
            self._known[key] = ProfiledCells.of(grid.cells[name]), self._fit(grid, name)
        profiled, measure = self._known[key]
        risk = profiled.risk(measure, channel, self.form)
        place = grid.places[name]
        if len(place) == grid.n_cells:
            return np.asarray(risk[profiled.place])
        found = np.zeros((grid.n_cells, len(channel)))
        found[place] = risk[profiled.place]
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
    """For each attribute released, its largest risk so far in every cell."""

    grid: SharedCells
    risks: Mapping[str, Floats]

    def overall(self, kind: str) -> Floats:
        """The overall risk of each cell: the largest of its attributes' risks (``max``), or their sum (``sum``)."""
        combine = np.maximum if kind == "max" else np.add
        return reduce(combine, self.risks.values(), np.zeros(self.grid.n_cells))

    def average(self, kind: str, weights: str) -> float:
        return float(self.grid.average(self.overall(kind), weights))


@dataclass(frozen=True, eq=False)
class Advance:
    """One more release: the cells after it, their risks before it, and the attributes that it assesses anew.

    Where the cells are split, a child starts from its parent's risks, and every attribute released so far is assessed
    anew; else the one that is released, if any.
    """

    cell_risk: CellRisk
    before: RisksSoFar
    """The risks before the release, in the cells as they are after it."""
    anew: tuple[str, ...]

    @property
    def caused(self) -> bool:
        """Whether the shares caused are followed, not the risks: by the same risk under the pivotal channel."""
        return self.cell_risk.pivotal

    @staticmethod
    def of(cell_risk: CellRisk, before: RisksSoFar | None, grid: SharedCells, attribute: str | None) -> Advance:
        released = () if attribute is None else (attribute,)
        if before is None:
            return Advance(cell_risk, RisksSoFar(grid, {}), released)
        if before.grid.names == grid.names:
            return Advance(cell_risk, before, released)
        parents = grid.parents(before.grid)
        held = RisksSoFar(grid, {name: risk[parents] for name, risk in before.risks.items()})
        return Advance(cell_risk, held, tuple(dict.fromkeys((*before.risks, *released))))

    def apply(self, channel: CountChannel) -> tuple[RisksSoFar, dict[str, Floats]]:
        """The cells after it, under the first noise; and the risks as assessed now, of each attribute.

        What was revealed stays revealed: an attribute keeps the larger of its old risk and its new one.
        """
        grid, held = self.before.grid, self.before.risks
        now = {name: self.cell_risk.at(grid, name, channel)[:, 0] for name in self.anew}
        kept = {name: np.maximum(held[name], risk) if name in held else risk for name, risk in now.items()}
        return RisksSoFar(grid, {**held, **kept}), now

    def overall(self, channel: CountChannel, kind: str, weights: str) -> Floats:
        """The average overall risk after it, under each noise."""
        grid = self.before.grid
        step = max(1, NUMBERS_AT_ONCE // grid.n_cells)
        parts = []
        for start in range(0, len(channel), step):
            few = channel[start : start + step]
            parts.append(grid.average(self._overall(few, kind), weights))
        return np.concatenate(parts)

    def _overall(self, few: CountChannel, kind: str) -> Floats:
        grid, held = self.before.grid, self.before.risks
        others = RisksSoFar(grid, {name: risk for name, risk in held.items() if name not in self.anew})
        total = np.repeat(others.overall(kind)[:, None], len(few), axis=1)
        for name in self.anew:
            risk = self.cell_risk.at(grid, name, few)
            if name in held:
                np.maximum(risk, held[name][:, None], out=risk)
            (np.maximum if kind == "max" else np.add)(total, risk, out=total)
        return total
