"""The cells of a table with their keys: what says who is at risk, and what utility is measured on. For the curator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.arrays import Integers, find_starts, number_keys


@dataclass(frozen=True)
class Domain:
    """The values that one quasi-identifier can take, in order."""

    name: str
    labels: tuple[str, ...]
    ordered: bool = False
    """Whether neighbours in that order are neighbours in meaning, as numbers and bins are."""
    declared: bool = False
    """Whether the values were declared; else they are the ones observed."""
    missing: bool = False
    """Whether the last label stands for missing values."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Cells:
    """Every non-empty cell with its key and its counts of one sensitive attribute.

    Cells are in the order of their keys, so the order does not depend on that of the records.

    >>> sex, age = Domain("sex", ("f", "m")), Domain("age", ("young", "old"))
    >>> codes, cell = np.array([[0, 0], [0, 1], [1, 1]]), np.array([0, 1, 1, 2])
    >>> cells = Cells("job", ("cook", "smith"), (sex, age), codes, cell, np.array([0, 0, 1, 1]), np.array([3, 1, 2, 5]))
    >>> cells.n_cells, cells.domain_size, list(cells.drop("sex").profiles().rows())
    (3, 8, [((3,), 1), ((7, 1), 1)])
    """

    sensitive: str
    levels: tuple[str, ...]
    domains: tuple[Domain, ...]
    codes: Integers
    """(cells, quasi-identifiers): the place of each cell's values among the labels."""
    cell: Integers
    """The cell of each positive count, as its place in ``codes``; ascending."""
    level: Integers
    """The level of each positive count, as its place in ``levels``."""
    count: Integers
    """The positive counts themselves."""

    @property
    def n_cells(self) -> int:
        return len(self.codes)

    @property
    def names(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return tuple(domain.name for domain in self.domains)

    @property
    def domain_size(self) -> int:
        """Counts that a release of the whole domain has: every combination of values, times the levels."""
        return math.prod(len(domain) for domain in self.domains) * len(self.levels)

    @cached_property
    def offsets(self) -> Integers:
        """Where each cell's counts begin and end: those of cell i are ``count[offsets[i]:offsets[i + 1]]``."""
        return np.searchsorted(self.cell, np.arange(self.n_cells + 1))

    @cached_property
    def sizes(self) -> Integers:
        """Records in each cell."""
        return np.add.reduceat(self.count, self.offsets[:-1])

    def place(self, name: str) -> int:
        """Where a quasi-identifier stands among the others."""
        if name not in self.names:
            what, names = f"the table has no quasi-identifier '{name}'", ", ".join(self.names)
            raise UnknownName(what, allowed=names, code="no-column")
        return self.names.index(name)

    def key(self, cell: int) -> dict[str, str]:
        """The values of the quasi-identifiers in one cell."""
        return {domain.name: domain.labels[code] for domain, code in zip(self.domains, self.codes[cell], strict=True)}

    def profiles(self) -> Profiles:
        """The profiles of the cells."""
        return Profiles.from_lists(self.count, self.offsets, np.ones(self.n_cells, np.int64), len(self.levels))

    def drop(self, name: str) -> Cells:
        """The same records without one quasi-identifier: cells that differ in it alone become one."""
        place = self.place(name)
        domains = self.domains[:place] + self.domains[place + 1 :]
        return self._regrouped(domains, np.delete(self.codes, place, axis=1))

    def merge(self, name: str, groups: Mapping[str, Sequence[str]]) -> Cells:
        """The same records with some values of a quasi-identifier made one: ``{"new label": ["old", "old"]}``."""
        place = self.place(name)
        domain = self.domains[place]
        merged_values = [(member, label) for label, members in groups.items() for member in members]
        new_label = dict(merged_values)
        if not new_label.keys() <= set(domain.labels):
            what, allowed = f"'{name}' has no such value to merge", f"{len(domain)} values"
            raise UnknownName(what, allowed=allowed, code="merge")
        if len(new_label) < len(merged_values):
            what, fix = f"a value of '{name}' is merged twice", "name each value in one group"
            raise InvalidInput(what, fix=fix, code="merge")
        renamed = [new_label.get(label, label) for label in domain.labels]
        labels = tuple(dict.fromkeys(renamed))
        missing = domain.missing and renamed[-1] == domain.labels[-1] and renamed.count(renamed[-1]) == 1
        number = {label: code for code, label in enumerate(labels)}
        code = np.array([number[label] for label in renamed])
        codes = self.codes.copy()
        codes[:, place] = code[codes[:, place]]
        merged = replace(domain, labels=labels, missing=missing)
        return self._regrouped((*self.domains[:place], merged, *self.domains[place + 1 :]), codes)

    def _regrouped(self, domains: tuple[Domain, ...], codes: Integers) -> Cells:
        return group_cells(self.sensitive, self.levels, domains, codes[self.cell], self.level, self.count)


def group_cells(
    sensitive: str,
    levels: tuple[str, ...],
    domains: tuple[Domain, ...],
    codes: Integers,
    level: Integers,
    count: Integers,
) -> Cells:
    """Cells from one row for each key and level; rows with the same key and level are added up."""
    key = number_keys([*codes.T, level], [*(len(domain) for domain in domains), len(levels)])
    order = np.argsort(key, kind="stable")
    codes, level, count = codes[order], level[order], count[order]
    starts = find_starts([*codes.T, level])
    total = np.add.reduceat(count, starts) if len(starts) else count
    cells = find_starts([*codes[starts].T, np.zeros(len(starts), np.int64)])
    cell = np.repeat(np.arange(len(cells)), np.diff(cells, append=len(starts)))
    return Cells(sensitive, levels, domains, codes[starts][cells], cell, level[starts], total)
