"""The risk of every group after some releases: what was revealed stays revealed, also if groups are split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Literal

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.explanation.risky_cells import ProfiledCells
from cellrisk.risk.measures import FORMS, MEASURES, Local, Measure
from cellrisk.risk.priors import Priors
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.choices import OverallKind, list_words, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

KINDS: tuple[OverallKind, ...] = list_words(OverallKind)
"""How the attributes of a group are taken together: bounded, and unbounded."""
Figure = Literal["risk", "caused"]
FIGURES: tuple[Figure, ...] = ("risk", "caused")
"""What every group has of each attribute: its risk, and the share of its people revealed because of their record."""


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
class GroupRisks:
    """One risk of every group, with the priors that it needs fitted to the groups it is asked of."""

    table: FrequencyTable
    measure: str
    form: str
    priors: Priors
    attributes: tuple[str, ...]
    """The attributes that some release releases."""
    _groups: dict[tuple[str, ...], Groups] = field(default_factory=dict, init=False, repr=False)
    _known: dict[tuple[tuple[str, ...], str], tuple[ProfiledCells, Measure]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        require_word("measure", self.measure, tuple(MEASURES))
        require_word("form", self.form, FORMS)

    @cached_property
    def _cells(self) -> tuple[Cells, ...]:
        return tuple(self.table.cells(name) for name in self.attributes or self.table.sensitive[:1])

    @cached_property
    def _labels(self) -> dict[str, tuple[str, ...]]:
        """The values of each quasi-identifier, of all attributes."""
        return {
            name: tuple(dict.fromkeys(label for cells in self._cells for label in cells.domains[place].labels))
            for place, name in enumerate(self.table.quasi_identifiers)
        }

    @cached_property
    def _finest(self) -> tuple[Integers, Integers]:
        """(codes, records) of every group with a record."""
        codes = np.concatenate([self._recode(cells) for cells in self._cells])
        if not len(codes):
            raise InvalidInput("a table without records has no risk")
        first, where = find_distinct(codes.T, list(map(len, self._labels.values())))
        sizes, start = np.zeros(len(first), np.int64), 0
        for cells in self._cells:
            place = where[start : start + cells.n_cells]
            sizes[place] = np.maximum(sizes[place], cells.sizes)
            start += cells.n_cells
        return codes[first], sizes

    @property
    def sizes(self) -> Integers:
        """Records in each of the finest groups."""
        return self._finest[1]

    def _recode(self, cells: Cells) -> Integers:
        """The codes of cells among the labels of all attributes."""
        codes = cells.codes.copy()
        for place, domain in enumerate(cells.domains):
            number = {label: code for code, label in enumerate(self._labels[cells.names[place]])}
            codes[:, place] = np.array([number[label] for label in domain.labels])[codes[:, place]]
        return codes

    def groups(self, names: tuple[str, ...]) -> Groups:
        """The groups of some quasi-identifiers, in the order of the table."""
        if names not in self._groups:
            every = self.table.quasi_identifiers
            finest = self._finest[0][:, [every.index(name) for name in names]]
            dropped = [name for name in every if name not in names]
            cells = [reduce(Cells.drop, dropped, each) for each in self._cells]
            codes = np.concatenate([finest, *map(self._recode, cells)])
            _, where = find_distinct(codes.T, [len(self._labels[name]) for name in names])
            parent, *places = np.split(where, np.cumsum([len(finest), *(each.n_cells for each in cells)])[:-1])
            by_name = {each.sensitive: (each, place) for each, place in zip(cells, places, strict=True)}
            self._groups[names] = Groups(
                names,
                parent,
                {name: each for name, (each, _) in by_name.items()},
                {name: place for name, (_, place) in by_name.items()},
            )
        return self._groups[names]

    def profile(self, groups: Groups, name: str) -> tuple[ProfiledCells, Measure]:
        """The profiles of an attribute's own cells, and the measure with its priors fitted to them."""
        key = groups.names, name
        if key not in self._known:
            attribute = self.table.attribute(name)
            if groups.names != self.table.quasi_identifiers:
                attribute = describe_cells(attribute, groups.cells[name])
            measure = self.priors.fit(attribute, [self.measure]).measure(self.measure)
            self._known[key] = ProfiledCells.of(groups.cells[name]), measure
        return self._known[key]

    def at(self, groups: Groups, name: str, channel: CountChannel, figure: Figure) -> Floats:
        """A figure of one attribute in each of its own cells under one noise."""
        profiled, measure = self.profile(groups, name)
        if figure == "caused":  # the tight local risk under the pivotal channel
            return np.asarray(Local().risks(profiled.profiles, channel.pivotal, "tight")[profiled.place, 0])
        return np.asarray(measure.risks(profiled.profiles, channel, self.form)[profiled.place, 0])


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
    """The largest figures so far of each attribute released, in each of the finest groups."""

    risks: GroupRisks
    groups: Groups
    kept: Mapping[tuple[Figure, str], Floats] = field(default_factory=dict)
    anew: tuple[str, ...] = ()
    """The attributes that the next release assesses."""

    def before(self, names: Sequence[str], attribute: str | None) -> RisksSoFar:
        """The figures before one more release, by the groups after it.

        If groups are split, every attribute released so far is assessed anew; else the one that is released, if any.
        """
        groups = self.risks.groups(tuple(names))
        earlier = [name for figure, name in self.kept if figure == "risk"] if groups is not self.groups else []
        anew = dict.fromkeys([*earlier, *(() if attribute is None else (attribute,))])
        return replace(self, groups=groups, anew=tuple(anew))

    def after(self, channel: CountChannel, figures: Sequence[Figure] = FIGURES) -> RisksSoFar:
        """The figures after the release, under one noise: an attribute keeps the larger of its old and its new one."""
        kept = dict(self.kept)
        for figure in figures:
            for name in self.anew:
                found = np.zeros(self.groups.n_groups)
                found[self.groups.places[name]] = self.risks.at(self.groups, name, channel, figure)
                kept[figure, name] = np.maximum(kept.get((figure, name), 0.0), found[self.groups.parent])
        return replace(self, kept=kept)

    def average(self, figure: Figure, kind: str, weights: str) -> float:
        """The overall figure, averaged with each group alike (``uniform``) or by ``records``: of a group, the largest
        of its attributes' (``max``), or their sum (``sum``)."""
        combine = np.maximum if kind == "max" else np.add
        each = [values for (name, _), values in self.kept.items() if name == figure]
        overall: Floats = reduce(combine, each, np.zeros(len(self.risks.sizes)))
        if weights == "records":
            return float(np.average(overall, weights=self.risks.sizes))
        return float(np.average(overall, weights=1.0 / np.bincount(self.groups.parent)[self.groups.parent]))
