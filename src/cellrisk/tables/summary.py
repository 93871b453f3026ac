"""The summary of a frequency table: what it holds, and what it reveals before any noise is added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.profiles import SIZE_CLASSES, name_sizes
from cellrisk.results import Result

if TYPE_CHECKING:
    from cellrisk.profiles import Profiles
    from cellrisk.tables.table import Attribute, FrequencyTable

MOST_SHOWN = 12
WHOLE_TABLE = ("records", "cells", "dropped_records", "outside_records")


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
class CellSizes:
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
    cell_sizes: CellSizes
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
            f"{each.name} for {each.exposed_records:,} of them ({each.exposed_share:.1%})" for each in self.attributes
        )
        plural = "quasi-identifier" if len(self.quasi_identifiers) == 1 else "quasi-identifiers"
        return (
            f"{self.records:,} records in {self.cells:,} cells of {len(self.quasi_identifiers)} {plural}; "
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
                    f"{each.exposed_share:.1%}",
                )
            )
        return align(rows)

    def _overall_table(self) -> str:
        return align(
            [
                ("cells, over all attributes", ""),
                ("completely homogeneous", f"{self.completely_homogeneous:,}"),
                ("partially homogeneous", f"{self.partially_homogeneous:,}"),
                ("completely heterogeneous", f"{self.completely_heterogeneous:,}"),
            ]
        )

    def _size_table(self) -> str:
        sizes = self.cell_sizes
        distribution = [(bucket, cells) for bucket, cells in sizes.distribution if cells]
        return (
            align([("records in a cell", "cells"), *((bucket, f"{cells:,}") for bucket, cells in distribution)])
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


def describe_sizes(profiles: Profiles) -> CellSizes:
    """Cell sizes by bucket; the median is that of the cells, not of the records."""
    size, cells = profiles.sizes
    ends = np.cumsum(cells)
    middle = [int(size[np.searchsorted(ends, place, side="right")]) for place in ((ends[-1] - 1) // 2, ends[-1] // 2)]
    distribution = []
    for low, high in SIZE_CLASSES:
        inside = (size >= low) & (size <= high if high else True)
        distribution.append((name_sizes(low, high), int(cells[inside].sum())))
    mean = profiles.n_records / profiles.n_cells
    return CellSizes(int(size[0]), sum(middle) / 2, mean, int(size[-1]), tuple(distribution))


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
        listed = ", ".join(f"{name} ({number:,} records)" for name, number in quasi.items())
        yield f"Missing values of quasi-identifiers are a category of their own: {listed}."
    if table.missing == "drop":
        yield f"Records with a missing value in a column in use were dropped: {table.dropped_records:,}."
    if table.outside == "drop":
        yield f"Records with a value outside the declared labels were left out: {table.outside_records:,}."


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns: the first to the left, the others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
