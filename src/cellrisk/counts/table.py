"""The frequency table, what is left of a source once its cells are counted, and its summary before any noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.contributions import Contributions
from cellrisk.counts.profiles import SIZE_CLASSES, LabelledCounts, LevelCounts, Profiles, name_sizes
from cellrisk.counts.schema import listed
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, UnknownName, argument, mark
from cellrisk.system.formatting import aligned, number_of, percent
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import pandas as pd


MOST_SHOWN = 12
RECORDS_SHOWN = (*range(11), *(step * 10**power for power in range(1, 18) for step in (2, 5, 10)))
"""Numbers of records of a person at which rows of `Summary.kept_records` end."""


class Homogeneity(NamedTuple):
    """Cells in which all sensitive attributes, some of them, or none takes one value only (Definitions 4 and 5)."""

    complete: int
    partial: int
    none: int


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
    find_people: Callable[[], Contributions | None] | None = field(default=None, repr=False)
    several: bool = False
    """Whether people may have several records."""

    @cached_property
    def people(self) -> Contributions | None:
        """In which cells people with several records are; None if each has one, or it is not known whose they are."""
        return self.find_people() if self.find_people else None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the records behind, and take what is found in them along."""
        return {**vars(self), "people": self.people, "find_people": None}

    @property
    def n_levels(self) -> int:
        return self.profiles.n_levels

    @property
    def exposed_share(self) -> float:
        """The share of records whose value the table reveals with no noise at all."""
        return self.profiles.n_exposed / self.profiles.n_records

    def describe(self) -> dict[str, Any]:
        """Return the attribute in numbers, JSON-ready."""
        profiles = self.profiles
        return {
            "levels": self.n_levels,
            "homogeneous": profiles.n_homogeneous,
            "heterogeneous": profiles.n_heterogeneous,
            "unique": profiles.n_unique,
            "profiles": profiles.n_profiles,
            "exposed_records": profiles.n_exposed,
            "exposed_share": self.exposed_share,
            "level_labels": list(self.levels.labels),
            "declared": self.declared,
        }


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
    """Gives the cells with the counts of the attribute at an index."""
    unit: Unit = Unit()  # noqa: RUF009 (it cannot be changed)
    """What a neighbouring table has more or less: a record, or a person with several."""
    seed: int = 0
    """By which records of people who have too many were drawn."""
    beyond_records: int = 0
    """Records that were left out because a person has more than may be kept."""
    anonymous_records: int = 0
    """Records that name no person: each counts as a person of its own."""
    people_by_records: tuple[tuple[int, int], ...] = ()
    """Numbers of records, as far as they fit into single counts, and how many people have so many."""
    draw_again: Callable[[], FrequencyTable] | None = field(default=None, repr=False)
    """Makes the table with other records of people who have too many, drawn by secure random bits, and none that name
    nobody: for a release."""

    @property
    def n_records(self) -> int:
        return self.attributes[0].profiles.n_records

    @property
    def n_cells(self) -> int:
        """Combinations of quasi-identifiers that hold at least one record."""
        return self.attributes[0].profiles.n_cells

    @property
    def revealed_name(self) -> str:
        """What the paper's measures count, as a key of JSON: "people", or "records" if people may have several."""
        return "people" if self.unit.contributions == 1 else "records"

    def describe_unit(self) -> str:
        """Return the unit of privacy in a sentence, with the seed by which records were drawn if any were."""
        seed = f" They were drawn with seed {self.seed}." if self.beyond_records else ""
        return f"{self.unit.describe()}{seed}"

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The names of the sensitive attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str | None = None) -> Attribute:
        """The sensitive attribute of that name; the name may be left out where there is one only."""
        names = listed(self.sensitive)
        if name is None and len(self.attributes) > 1:
            what = "the table has several sensitive attributes"
            raise InvalidInput(what, allowed=names, fix="name one of them", code="no-attribute")
        for attribute in self.attributes:
            if name in (None, attribute.name):
                return attribute
        raise UnknownName(f"the table has no sensitive attribute '{name}'", allowed=names, code="no-attribute")

    def profiles(self, name: str | None = None) -> Profiles:
        """The profiles of one sensitive attribute; the name may be left out where there is one only."""
        return self.attribute(name).profiles

    def cells(self, name: str | None = None) -> Cells:
        """The cells with their keys and the counts of one sensitive attribute: for the curator alone."""
        index = self.sensitive.index(self.attribute(name).name)
        if self.read_cells is None:
            what = "the cells of this table are not at hand, as after pickling"
            raise InvalidInput(what, fix="tabulate the source again", code="no-cells")
        return self.read_cells(index)

    def summary(self) -> Summary:
        """Records, cells, levels, and what the table reveals before any noise."""
        return Summary(self)

    def without_keys(self) -> dict[str, Any]:
        return {"read_cells": None, "draw_again": None}

    @property
    def headline(self) -> str:
        """Records, cells and attributes, on one line."""
        attributes = [f"{attribute.name} ({number_of(attribute.n_levels, 'level')})" for attribute in self.attributes]
        return (
            f"{number_of(self.n_records, 'record')} in {number_of(self.n_cells, 'group')} of "
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
        return self.summary().to_frame()

    def _paragraphs(self) -> tuple[str, ...]:
        return ()


def require_table(given: object, name: str = "table", *, single: str = "") -> None:
    """Refuse what is not a frequency table, such as the records that one is made of.

    ``single`` names figures that are known for people with one record each alone: then, others are refused.

    >>> require_table("adult.parquet")
    Traceback (most recent call last):
    cellrisk.errors.InvalidInput: table must be a frequency table; got str; make one with cellrisk.tabulate
    """
    if not isinstance(given, FrequencyTable):
        what, fix = f"{mark(name)} must be a frequency table", "make one with cellrisk.tabulate"
        raise InvalidInput(what, got=type(given).__name__, fix=fix, code="no-table")
    if single and given.unit.contributions > 1:
        what = f"{single} are known for people with one record each alone"
        fix = f"keep one record of each person, with {argument('contributions', 1)}"
        raise InvalidInput(what, got=str(given.unit), fix=fix, code="several-records")


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """A frequency table in numbers. It prints as text; `to_frame` and `to_dict` give the same numbers."""

    table: FrequencyTable

    @property
    def cell_sizes(self) -> dict[str, Any]:
        """How many records the cells hold; the median is that of the cells, not of the records."""
        size, cells = self.table.attributes[0].profiles.sizes
        ends = np.cumsum(cells)
        middle = size[np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")]
        inside = [(size >= low) & (size <= (high or size[-1])) for low, high in SIZE_CLASSES]
        classes = {name_sizes(*ends): int(cells[here].sum()) for ends, here in zip(SIZE_CLASSES, inside, strict=True)}
        return {
            "min": int(size[0]),
            "median": float(middle.sum()) / 2,
            "mean": self.table.n_records / self.table.n_cells,
            "max": int(size[-1]),
            "distribution": classes,
        }

    @property
    def kept_records(self) -> list[dict[str, Any]]:
        """How many people have how many records, and which share of all records a bound of that many would keep."""
        records, people = np.array(self.table.people_by_records, np.int64).reshape(-1, 2).T
        total, rows = self.table.n_records + self.table.beyond_records, []
        for before, last in pairwise(RECORDS_SHOWN):
            if before < records.max(initial=0):
                number = int(people[(before < records) & (records <= last)].sum())
                kept = float(people @ np.minimum(records, last)) / total
                rows.append({"from": before + 1, "to": last, "people": number, "kept": kept})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON-ready values."""
        table, kinds = self.table, ("completely_homogeneous", "partially_homogeneous", "completely_heterogeneous")
        return {
            "records": table.n_records,
            "cells": table.n_cells,
            "quasi_identifiers": list(table.quasi_identifiers),
            "sensitive": {attribute.name: attribute.describe() for attribute in table.attributes},
            "over_all_attributes": dict(zip(kinds, table.homogeneity, strict=True)),
            "cell_sizes": self.cell_sizes,
            "dropped_records": table.dropped_records,
            "outside_records": table.outside_records,
            "missing": table.missing,
            "unit": table.unit.to_dict(),
            "beyond_records": table.beyond_records,
            **({"kept_records": self.kept_records} if table.people_by_records else {}),
            "assumptions": list(list_assumptions(table)),
        }

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: the sensitive attribute (none for the table as a whole), the quantity, the value."""
        document = self.to_dict()
        names = ("records", "cells", "dropped_records", "outside_records")
        sizes, whole = document["cell_sizes"], {name: document[name] for name in names}
        whole |= document["over_all_attributes"]
        whole |= {f"cell_size_{name}": sizes[name] for name in ("min", "median", "mean", "max")}
        whole |= {f"cells_of_size_{bucket}": cells for bucket, cells in sizes["distribution"].items()}
        return [
            {"sensitive": name, "quantity": quantity, "value": float(value)}
            for name, numbers in [(None, whole), *document["sensitive"].items()]
            for quantity, value in numbers.items()
            if not isinstance(value, bool | list)
        ]

    @property
    def headline(self) -> str:
        """What the table holds, and what it reveals without noise."""
        revealed = ", ".join(
            f"'{attribute.name}' of {attribute.profiles.n_exposed:,} of them ({percent(attribute.exposed_share)})"
            for attribute in self.table.attributes
        )
        columns = number_of(len(self.table.quasi_identifiers), "quasi-identifier")
        return (
            f"{number_of(self.table.n_records, 'record')} in {number_of(self.table.n_cells, 'group')} of {columns}; "
            f"without noise, the groups reveal {revealed}."
        )

    def _paragraphs(self) -> Iterator[str]:
        document = self.to_dict()
        sizes = document["cell_sizes"]
        quantities = ("levels", "homogeneous", "heterogeneous", "unique", "profiles", "exposed_records")
        rows = [
            (name, *(f"{numbers[what]:,}" for what in quantities), percent(numbers["exposed_share"]))
            for name, numbers in document["sensitive"].items()
        ]
        yield aligned(("sensitive", *quantities[:-1], "records revealed", "share"), rows)
        if len(self.table.attributes) > 1:
            kinds = document["over_all_attributes"].items()
            pairs = [(name.replace("_", " "), f"{number:,}") for name, number in kinds]
            yield aligned(("groups, over all attributes", ""), pairs)
        buckets = [(bucket, f"{cells:,}") for bucket, cells in sizes["distribution"].items() if cells]
        yield (
            f"{aligned(('records in a group', 'groups'), buckets)}\nsmallest {sizes['min']:,}, "
            f"median {sizes['median']:,.6g}, mean {sizes['mean']:,.2f}, largest {sizes['max']:,}"
        )
        levels = []
        for attribute in self.table.attributes:
            shown = ", ".join(label or "''" for label in attribute.levels.labels[:MOST_SHOWN])
            more = f", and {attribute.n_levels - MOST_SHOWN:,} more" if attribute.n_levels > MOST_SHOWN else ""
            origin = "declared" if attribute.declared else "observed, not declared"
            levels.append(" ".join(f"Levels of {attribute.name} ({origin}): {shown}{more}".split()))
        yield "\n".join(levels)
        if self.table.people_by_records:
            bounds = self.kept_records
            kept = [(name_sizes(one["from"], one["to"]), f"{one['people']:,}", percent(one["kept"])) for one in bounds]
            header = ("records of a person", "people", "records kept at this bound")
            yield (
                f"{aligned(header, kept)}\nA bound chosen from these data reveals a little about them. Choose it from "
                "what is known of such records, or from earlier data."
            )
        if document["assumptions"]:
            yield "\n".join(["Assumed:", *(f"- {assumption}" for assumption in document["assumptions"])])


def list_assumptions(table: FrequencyTable) -> Iterator[str]:
    """What the numbers take for granted."""
    for attribute in table.attributes:
        if not attribute.declared:
            yield (
                f"The levels of {attribute.name} are the {attribute.n_levels:,} observed ones, not declared: "
                "a level that exists but does not occur is not counted."
            )
        if attribute.missing_level:
            extra = " in addition to the declared ones" if attribute.declared else ""
            yield f"Missing values of {attribute.name} are a level of their own, the last{extra}."
    quasi = {name: n for name, n in table.missing_records if name in table.quasi_identifiers}
    if quasi and table.missing == "category":
        listed = ", ".join(f"{name} ({number_of(number, 'record')})" for name, number in quasi.items())
        yield f"Missing values of quasi-identifiers are a category of their own: {listed}."
    if table.missing == "drop":
        yield f"Records with a missing value in a column in use were dropped: {table.dropped_records:,}."
    if table.outside == "drop":
        yield f"Records with a value outside the declared labels were left out: {table.outside_records:,}."
    if table.unit != Unit():
        yield table.unit.describe()
    if table.unit.enforced:
        yield f"Records beyond that were left out, drawn with seed {table.seed}: {table.beyond_records:,}."
    if table.anonymous_records:
        yield f"Records that name no person count as a person of their own each: {table.anonymous_records:,}."
