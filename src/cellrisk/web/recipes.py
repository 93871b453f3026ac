"""How a table was made, so that the server or a worker can make it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cellrisk.counts.cells import Cells
from cellrisk.counts.counting import Homogeneity
from cellrisk.counts.table import FrequencyTable
from cellrisk.counts.tabulation import tabulate
from cellrisk.decide.policy import DELTA_FROM_RECORDS
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism, mechanism
from cellrisk.risk.sweep import usual_delta
from cellrisk.system.checks import read_bins
from cellrisk.system.progress import Progress
from cellrisk.system.words import MechanismName, Neighbours
from cellrisk.web.boxes import known_as


@dataclass(frozen=True)
class Recipe:
    """A file, and what its columns mean: the arguments of `tabulate`."""

    path: str
    name: str
    """What the user calls the file."""
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    bins: tuple[tuple[str, str], ...] = ()
    """As they are written: a width, or edges between slashes."""
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    missing: str = "category"
    count: str | bool | None = None
    outside: str = "error"

    def tabulate(self, progress: Progress | None = None) -> FrequencyTable:
        """Makes the table."""
        with known_as(self.path, self.name):
            table = tabulate(self.path, self.quasi_identifiers, self.sensitive, **self.arguments(), progress=progress)
        incomplete = [name for name, _ in table.missing_records if name in table.sensitive]
        if self.missing == "drop" and len(table.sensitive) > 1 and incomplete:
            raise InvalidInput(
                "dropping missing values of one sensitive attribute would change the numbers of the others",
                got=f"missing values in {', '.join(incomplete)}",
                fix="take one sensitive attribute at a time, or keep missing values as a category",
            )
        return table

    def read_cells(self, place: int) -> Cells:
        """The cells with their keys, and the counts of the sensitive attribute at a place."""
        return self.tabulate().cells(self.sensitive[place])

    def arguments(self) -> dict[str, Any]:
        """The arguments of `tabulate` after the columns that are not the default."""
        given: dict[str, Any] = {
            "bins": {name: read_bins(text, f"each bin of column '{name}'") for name, text in self.bins},
            "levels": {name: list(labels) for name, labels in self.levels},
            "count": self.count,
            "missing": None if self.missing == "category" else self.missing,
            "outside": None if self.outside == "error" else self.outside,
        }
        return {name: value for name, value in given.items() if value or value is False}

    def changed(self, quasi_identifiers: Sequence[str] | None, bins: dict[str, str] | None) -> Recipe:
        """This recipe with other quasi-identifiers or bins; columns that are not used have no bins and no levels."""
        chosen = self.quasi_identifiers if quasi_identifiers is None else tuple(quasi_identifiers)
        used = {*chosen, *self.sensitive}
        given = self.bins if bins is None else tuple(bins.items())
        return replace(
            self,
            quasi_identifiers=chosen,
            bins=tuple((name, text) for name, text in given if name in used),
            levels=tuple((name, labels) for name, labels in self.levels if name in used),
        )


def attach_source(table: FrequencyTable, recipe: Recipe, cells: Mapping[str, Cells]) -> FrequencyTable:
    """The table with a source, which pickling leaves out: cells that were read already, else the file itself."""

    def read(place: int) -> Cells:
        name = table.sensitive[place]
        return cells[name] if name in cells else recipe.read_cells(place)

    return replace(table, read_cells=read)


@dataclass(frozen=True)
class SentTable:
    """A table on its way to a worker, which finds its source again by the recipe and gets a `FrequencyTable`."""

    table: FrequencyTable
    recipe: Recipe
    cells: Mapping[str, Cells]

    def __reduce__(self) -> tuple[Any, ...]:
        return attach_source, (self.table, self.recipe, self.cells)


def narrow(table: FrequencyTable, name: str | None) -> FrequencyTable:
    """The table with one of its sensitive attributes alone."""
    attribute = table.attribute(name)
    if len(table.attributes) == 1:
        return table
    homogeneity = Homogeneity(attribute.profiles.n_homogeneous, 0, attribute.profiles.n_heterogeneous)
    used = {*table.quasi_identifiers, attribute.name}
    return replace(
        table,
        attributes=(attribute,),
        homogeneity=homogeneity,
        missing_records=tuple((column, records) for column, records in table.missing_records if column in used),
        read_cells=lambda _: table.cells(attribute.name),
    )


def find_delta(name: str, delta: float | None, records: int) -> float:
    """The delta that a mechanism gets: none where it takes none, the usual one where none was given."""
    if MECHANISMS[name].pure:
        return 0.0
    return usual_delta(records) if delta is None else delta


def offer_deltas(name: str, records: int) -> list[float]:
    """The deltas that a page offers: the usual one first, then ten and a hundred times smaller.

    >>> offer_deltas("gaussian-analytic", 27504), offer_deltas("laplace", 27504)
    ([3e-05, 3e-06, 3e-07], [0.0])
    """
    if MECHANISMS[name].pure:
        return [0.0]
    return [float(f"{usual_delta(records) / factor:.1g}") for factor in (1, 10, 100)]


def say_delta(name: str, delta: float | None, records: int) -> list[str]:
    """What a delta that was offered from the number of records tells of it.

    >>> say_delta("gaussian-analytic", 3e-06, 27504), say_delta("gaussian-analytic", 1e-6, 27504)
    (['Delta was set from the number of records, and tells its order of magnitude.'], [])
    """
    offered = not MECHANISMS[name].pure and (delta is None or delta in offer_deltas(name, records))
    return [DELTA_FROM_RECORDS] if offered else []


def make_mechanism(
    name: MechanismName, epsilon: float, delta: float | None, neighbours: Neighbours, records: int
) -> Mechanism:
    """The mechanism that a request describes."""
    return mechanism(name, epsilon=epsilon, delta=find_delta(name, delta, records), neighbours=neighbours)
