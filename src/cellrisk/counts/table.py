"""The frequency table, what is left of a source once its cells are counted, and its summary before any noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.counting import Homogeneity
from cellrisk.counts.profiles import SIZE_CLASSES, LabelledCounts, LevelCounts, Profiles, name_sizes
from cellrisk.counts.schema import listed
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, number_of, percent

if TYPE_CHECKING:
    import pandas as pd


MOST_SHOWN = 12
WHOLE_TABLE = ("records", "cells", "dropped_records", "outside_records")


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
    vectors: LabelledCounts | None = None
    """The counts of the cells with their labels; None where there are too many of them to hold."""

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
    """Counts of the sensitive attributes in the cells of the quasi-identifiers, without records.

    Made by `tabulate`. What needs the keys asks for `cells`. Pickling leaves the cells behind: a table that was
    pickled, and every result that holds it, has no record and no key. A copy in the same process is the table itself.
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
    """Gives the cells with the counts of the attribute at a place."""
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
        """The cells with their keys and the counts of one sensitive attribute: for the curator alone."""
        attribute = self.attribute(name)
        place = self.sensitive.index(attribute.name)
        if place not in self._cells:
            if self.read_cells is None:
                raise InvalidInput(
                    "the cells of this table are not at hand, as after pickling",
                    fix="tabulate the source again",
                )
            cells = self.read_cells(place)
            if (cells.n_cells, int(cells.count.sum())) != (self.n_cells, self.n_records):
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
        attributes = [f"{each.name} ({number_of(each.n_levels, 'level')})" for each in self.attributes]
        return (
            f"{number_of(self.n_records, 'record')} in {number_of(self.n_cells, 'cell')} of "
            f"{', '.join(self.quasi_identifiers)}; sensitive: {', '.join(attributes)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the summary."""
        return self.summary().to_dict()

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """The table itself: one row for each positive count, with the values of the quasi-identifiers and the level
        of one sensitive attribute. With keys: for the curator alone."""
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
        """The numbers of the summary, in which there is no key."""
        return self.summary().to_frame()

    def _paragraphs(self) -> tuple[str, ...]:
        return ()


def require_table(given: object, name: str = "table") -> None:
    """Refuses what is no frequency table, such as the records that one is made of.

    >>> require_table("adult.parquet")
    Traceback (most recent call last):
    cellrisk.errors.InvalidInput: table must be a frequency table; got str; make one with cellrisk.tabulate
    """
    if not isinstance(given, FrequencyTable):
        raise InvalidInput(
            f"{name} must be a frequency table", got=type(given).__name__, fix="make one with cellrisk.tabulate"
        )


@dataclass(frozen=True)
class AttributeSummary:
    """One sensitive attribute in numbers."""

    name: str
    level_labels: tuple[str, ...]
    declared: bool
    missing_level: bool
    homogeneous: int
    heterogeneous: int
    unique: int
    profiles: int
    exposed_records: int
    exposed_share: float

    def __post_init__(self) -> None:
        if not 0 <= self.exposed_share <= 1:
            raise InvalidInput("a share must lie between 0 and 1", got=self.exposed_share)

    @property
    def levels(self) -> int:
        return len(self.level_labels)

    def to_dict(self) -> dict[str, Any]:
        return {
            "levels": self.levels,
            "homogeneous": self.homogeneous,
            "heterogeneous": self.heterogeneous,
            "unique": self.unique,
            "profiles": self.profiles,
            "exposed_records": self.exposed_records,
            "exposed_share": self.exposed_share,
            "level_labels": list(self.level_labels),
            "declared": self.declared,
        }


@dataclass(frozen=True)
class SizeSummary:
    """How many records the cells hold."""

    smallest: int
    median: float
    mean: float
    largest: int
    distribution: tuple[tuple[str, int], ...]
    """Cells in each bucket of sizes."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "min": self.smallest,
            "median": self.median,
            "mean": self.mean,
            "max": self.largest,
            "distribution": dict(self.distribution),
        }


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """A frequency table in numbers. It prints as text; `to_frame` and `to_dict` give the same numbers."""

    records: int
    cells: int
    quasi_identifiers: tuple[str, ...]
    attributes: tuple[AttributeSummary, ...]
    completely_homogeneous: int
    partially_homogeneous: int
    completely_heterogeneous: int
    cell_sizes: SizeSummary
    dropped_records: int
    outside_records: int
    missing: str
    assumptions: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.completely_homogeneous + self.partially_homogeneous + self.completely_heterogeneous != self.cells:
            raise InvalidInput("the kinds of cells do not add up to the cells", got=f"{self.cells} cells")

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON-ready values."""
        return {
            "records": self.records,
            "cells": self.cells,
            "quasi_identifiers": list(self.quasi_identifiers),
            "sensitive": {each.name: each.to_dict() for each in self.attributes},
            "over_all_attributes": {
                "completely_homogeneous": self.completely_homogeneous,
                "partially_homogeneous": self.partially_homogeneous,
                "completely_heterogeneous": self.completely_heterogeneous,
            },
            "cell_sizes": self.cell_sizes.to_dict(),
            "dropped_records": self.dropped_records,
            "outside_records": self.outside_records,
            "missing": self.missing,
            "assumptions": list(self.assumptions),
        }

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: the sensitive attribute (none for the table as a whole), the quantity, the value."""
        return [{"sensitive": name, "quantity": what, "value": value} for name, what, value in self._quantities()]

    def _quantities(self) -> Iterator[tuple[str | None, str, float]]:
        document = self.to_dict()
        yield from ((None, name, float(document[name])) for name in WHOLE_TABLE)
        yield from ((None, name, float(value)) for name, value in document["over_all_attributes"].items())
        sizes = document["cell_sizes"]
        yield from ((None, f"cell_size_{name}", float(sizes[name])) for name in ("min", "median", "mean", "max"))
        yield from ((None, f"cells_of_size_{bucket}", float(value)) for bucket, value in sizes["distribution"].items())
        for name, numbers in document["sensitive"].items():
            for quantity, value in numbers.items():
                if not isinstance(value, bool | list):
                    yield name, quantity, float(value)

    def _paragraphs(self) -> list[str]:
        blocks = [self._attribute_table()]
        if len(self.attributes) > 1:
            blocks.append(self._overall_table())
        blocks += [self._size_table(), self._level_lines()]
        if self.assumptions:
            blocks.append("\n".join(["Assumed:", *(f"- {assumption}" for assumption in self.assumptions)]))
        return blocks

    @property
    def headline(self) -> str:
        """What the table holds, and what it exposes before any noise."""
        exposed = ", ".join(
            f"{each.name} for {each.exposed_records:,} of them ({percent(each.exposed_share)})"
            for each in self.attributes
        )
        columns = number_of(len(self.quasi_identifiers), "quasi-identifier")
        return (
            f"{number_of(self.records, 'record')} in {number_of(self.cells, 'cell')} of {columns}; "
            f"the raw table already exposes {exposed}."
        )

    def _attribute_table(self) -> str:
        rows: list[Sequence[str]] = [
            ("sensitive", "levels", "homogeneous", "heterogeneous", "unique", "profiles", "exposed records", "share")
        ]
        for each in self.attributes:
            numbers = (each.levels, each.homogeneous, each.heterogeneous, each.unique, each.profiles)
            rows.append(
                (
                    each.name,
                    *(f"{number:,}" for number in numbers),
                    f"{each.exposed_records:,}",
                    percent(each.exposed_share),
                )
            )
        return aligned(rows[0], rows[1:])

    def _overall_table(self) -> str:
        return aligned(
            ("cells, over all attributes", ""),
            [
                ("completely homogeneous", f"{self.completely_homogeneous:,}"),
                ("partially homogeneous", f"{self.partially_homogeneous:,}"),
                ("completely heterogeneous", f"{self.completely_heterogeneous:,}"),
            ],
        )

    def _size_table(self) -> str:
        sizes = self.cell_sizes
        distribution = [(bucket, cells) for bucket, cells in sizes.distribution if cells]
        return (
            aligned(("records in a cell", "cells"), [(bucket, f"{cells:,}") for bucket, cells in distribution])
            + f"\nsmallest {sizes.smallest:,}, median {sizes.median:,.6g}, mean {sizes.mean:,.2f}, "
            f"largest {sizes.largest:,}"
        )

    def _level_lines(self) -> str:
        lines = []
        for each in self.attributes:
            shown = ", ".join(label or "''" for label in each.level_labels[:MOST_SHOWN])
            more = f", and {each.levels - MOST_SHOWN:,} more" if each.levels > MOST_SHOWN else ""
            origin = "declared" if each.declared else "observed, not declared"
            lines.append(" ".join(f"Levels of {each.name} ({origin}): {shown}{more}".split()))
        return "\n".join(lines)


def summarise(table: FrequencyTable) -> Summary:
    """The summary of a table."""
    return Summary(
        records=table.n_records,
        cells=table.n_cells,
        quasi_identifiers=table.quasi_identifiers,
        attributes=tuple(describe_attribute(attribute) for attribute in table.attributes),
        completely_homogeneous=table.homogeneity.complete,
        partially_homogeneous=table.homogeneity.partial,
        completely_heterogeneous=table.homogeneity.none,
        cell_sizes=describe_sizes(table.attributes[0].profiles),
        dropped_records=table.dropped_records,
        outside_records=table.outside_records,
        missing=table.missing,
        assumptions=tuple(list_assumptions(table)),
    )


def describe_attribute(attribute: Attribute) -> AttributeSummary:
    profiles = attribute.profiles
    return AttributeSummary(
        name=attribute.name,
        level_labels=attribute.levels.labels,
        declared=attribute.declared,
        missing_level=attribute.missing_level,
        homogeneous=profiles.n_homogeneous,
        heterogeneous=profiles.n_heterogeneous,
        unique=profiles.n_unique,
        profiles=profiles.n_profiles,
        exposed_records=profiles.n_exposed,
        exposed_share=attribute.exposed_share,
    )


def describe_sizes(profiles: Profiles) -> SizeSummary:
    """Cell sizes by bucket; the median is that of the cells, not of the records."""
    size, cells = profiles.sizes
    ends = np.cumsum(cells)
    middle = [int(size[np.searchsorted(ends, place, side="right")]) for place in ((ends[-1] - 1) // 2, ends[-1] // 2)]
    distribution = []
    for low, high in SIZE_CLASSES:
        inside = (size >= low) & (size <= high if high else True)
        distribution.append((name_sizes(low, high), int(cells[inside].sum())))
    mean = profiles.n_records / profiles.n_cells
    return SizeSummary(int(size[0]), sum(middle) / 2, mean, int(size[-1]), tuple(distribution))


def list_assumptions(table: FrequencyTable) -> Iterator[str]:
    """What the numbers take for granted."""
    for each in table.attributes:
        if not each.declared:
            yield (
                f"The levels of {each.name} are the {each.n_levels:,} observed ones, not declared: "
                "a level that exists but does not occur is not counted."
            )
        if each.missing_level:
            extra = " in addition to the declared ones" if each.declared else ""
            yield f"Missing values of {each.name} are a level of their own, the last{extra}."
    quasi = {name: n for name, n in table.missing_records if name in table.quasi_identifiers}
    if quasi and table.missing == "category":
        listed = ", ".join(f"{name} ({number_of(number, 'record')})" for name, number in quasi.items())
        yield f"Missing values of quasi-identifiers are a category of their own: {listed}."
    if table.missing == "drop":
        yield f"Records with a missing value in a column in use were dropped: {table.dropped_records:,}."
    if table.outside == "drop":
        yield f"Records with a value outside the declared labels were left out: {table.outside_records:,}."
