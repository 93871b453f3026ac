"""The frequency table: what is left of a source once its cells are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cellrisk.cells import Cells
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.profiles import LevelCounts, Profiles
from cellrisk.results import Result
from cellrisk.tables.schema import listed
from cellrisk.tables.summary import Summary, summarise
from cellrisk.tables.vectors import Homogeneity

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Attribute:
    """One sensitive attribute of a table: its levels in order, and the profiles of the cells."""

    name: str
    levels: LevelCounts
    profiles: Profiles
    declared: bool
    """Whether the levels were declared; else they are the ones observed."""
    missing_level: bool
    """Whether the last level stands for missing values."""

    def __post_init__(self) -> None:
        if len(self.levels.labels) != self.profiles.n_levels:
            raise InvalidInput(
                f"levels and profiles of '{self.name}' do not go together",
                got=f"{len(self.levels.labels)} labels, {self.profiles.n_levels} levels",
            )
        if int(self.levels.totals.sum()) != self.profiles.n_records:
            raise InvalidInput(f"levels and profiles of '{self.name}' hold different numbers of records")

    @property
    def n_levels(self) -> int:
        return self.profiles.n_levels

    @property
    def exposed_share(self) -> float:
        """The share of records whose value the table reveals with no noise at all."""
        return self.profiles.n_exposed / self.profiles.n_records


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyTable(Result):
    """Counts of the sensitive attributes in the cells of the quasi-identifiers, without records and without keys.

    Made by `tabulate`. What needs the keys asks for `cells`, which are read from the source when first asked for.
    Pickling leaves the source and the cells behind: a table that was pickled, and every result that holds it, has no
    record, no key and no address of the source. A copy in the same process is the table itself.
    """

    picture = "draw_sizes"

    quasi_identifiers: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    homogeneity: Homogeneity
    missing: str = "category"
    missing_records: tuple[tuple[str, int], ...] = ()
    """Records with a missing value, for each column in use that has any."""
    dropped_records: int = 0
    """Records that were left out because a value is missing."""
    outside: str = "error"
    """What became of records outside the declared labels: "error" (there was none) or "drop"."""
    outside_records: int = 0
    """Records that were left out because a value of theirs is not among the declared labels."""
    read_cells: Callable[[int], Cells] | None = field(default=None, repr=False)
    """Reads the cells with the counts of the attribute at a place, from the source."""
    _cells: dict[int, Cells] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InvalidInput("a frequency table needs a sensitive attribute")
        cells = self.homogeneity.complete + self.homogeneity.partial + self.homogeneity.none
        for attribute in self.attributes:
            if (attribute.profiles.n_cells, attribute.profiles.n_records) != (cells, self.n_records):
                raise InvalidInput("the attributes of a frequency table must describe the same cells and records")

    @property
    def n_records(self) -> int:
        return self.attributes[0].profiles.n_records

    @property
    def n_cells(self) -> int:
        """Combinations of quasi-identifiers that hold at least one record."""
        return self.attributes[0].profiles.n_cells

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The names of the sensitive attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str | None = None) -> Attribute:
        """The sensitive attribute of that name; the name may be left out where there is one only."""
        if name is None:
            if len(self.attributes) > 1:
                raise InvalidInput(
                    "the table has several sensitive attributes", allowed=listed(self.sensitive), fix="name one of them"
                )
            return self.attributes[0]
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise UnknownName(f"the table has no sensitive attribute '{name}'", allowed=listed(self.sensitive))

    def profiles(self, name: str | None = None) -> Profiles:
        """The profiles of one sensitive attribute; the name may be left out where there is one only."""
        return self.attribute(name).profiles

    def cells(self, name: str | None = None) -> Cells:
        """The cells with their keys and the counts of one sensitive attribute: for the curator alone.

        They are read from the source again, which must still be there and hold the same counts.
        """
        attribute = self.attribute(name)
        place = self.sensitive.index(attribute.name)
        if place not in self._cells:
            if self.read_cells is None:
                raise InvalidInput(
                    "the source of this table is not at hand, as after pickling, so its cells cannot be read",
                    fix="tabulate the source again",
                )
            cells = self.read_cells(place)
            same = cells.profiles().equals(attribute.profiles) if self.n_records else not cells.n_cells
            if not same:
                raise InvalidInput("the source has changed since it was tabulated", fix="tabulate it again")
            self._cells[place] = cells
        return self._cells[place]

    def empty_cells(self) -> int:
        """Combinations of the quasi-identifiers' values, declared or observed, that hold no record."""
        cells = self.cells(self.sensitive[0])
        return cells.domain_size // len(cells.levels) - cells.n_cells

    def summary(self) -> Summary:
        """Records, cells, levels, and what the table reveals before any noise."""
        return summarise(self)

    def without_keys(self) -> dict[str, Any]:
        return {"read_cells": None, "_cells": {}}

    @property
    def headline(self) -> str:
        """Records, cells and attributes, on one line."""
        return (
            f"{self.n_records:,} records in {self.n_cells:,} cells of {', '.join(self.quasi_identifiers)}; "
            f"sensitive: {', '.join(f'{each.name} ({each.n_levels:,} levels)' for each in self.attributes)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the summary."""
        return self.summary().to_dict()

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """The table itself: one row for each positive count, with the values of the quasi-identifiers and the level
        of one sensitive attribute. The keys are read from the source: for the curator alone."""
        import pandas as pd

        cells = self.cells(name)
        columns: dict[str, Any] = {
            domain.name: pd.Categorical.from_codes(codes, categories=list(domain.labels))
            for domain, codes in zip(cells.domains, cells.codes[cells.cell].T, strict=True)
        }
        columns[cells.sensitive] = pd.Categorical.from_codes(cells.level, categories=list(cells.levels))
        count = "count"
        while count in columns:
            count = f"{count}_"
        return pd.DataFrame({**columns, count: cells.count})

    def _numbers(self) -> Any:
        """Those of the summary, in which there is no key."""
        return self.summary().to_frame()

    def _paragraphs(self) -> tuple[str, ...]:
        return ()
