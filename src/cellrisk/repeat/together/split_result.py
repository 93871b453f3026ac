"""The answer of `split_budget`: three ways to share a total among tables, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.together.sets import SetTable
from cellrisk.repeat.together.together_result import say_people
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, percent


@dataclass(frozen=True)
class Share:
    """One way to share the total."""

    name: str
    parts: tuple[float, ...]
    """What each table gets of the total."""
    epsilons: tuple[float, ...]
    """The epsilon of each table: its part, or, of a rho, the epsilon at the table's own delta."""
    mean_errors: tuple[float, ...]
    """E|e| of the counts of each table."""
    error: float
    """The bound on the total variation distance of the tables, weighted by their use."""
    right: float
    """People whom elimination names rightly."""
    caused: float
    """Those of them whom it names because of their own records."""
    largest: float
    """The same by the collection of some of the tables that gives away most."""

    def __post_init__(self) -> None:
        if not (self.error > 0 and self.caused >= 0 and all(part > 0 for part in self.parts)):
            raise InvalidInput("shares, their error and numbers of people must not be negative")


@dataclass(frozen=True, repr=False)
class Split(Result):
    """Ways to share a total loss among the tables of a set. Made by `split_budget`."""

    sensitive: str
    records: int
    tables: tuple[SetTable, ...]
    unit: str
    """Of the total: "epsilon" or "rho"."""
    total: float
    use: tuple[float, ...]
    """Weights of the tables' errors; they add up to 1."""
    cells: tuple[int, ...]
    """Combinations of the values of each table's columns that occur somewhere: those that are published."""
    slack: float
    even: Share
    least_error: Share
    least_caused: Share

    @property
    def ways(self) -> tuple[Share, Share, Share]:
        return self.even, self.least_error, self.least_caused

    @property
    def headline(self) -> str:
        """What a board can repeat."""
        even, least, fewest = self.ways
        more, less = fewest.error / least.error - 1.0, even.caused - fewest.caused
        shared = (
            f"Of {self.unit} {self.total:g} in all, even shares give away the {self.sensitive} of "
            f"{say_people(even.caused)} people because of their own records"
        )
        if less <= 0.005 * even.caused:
            return f"{shared}, and no shares were found that give away noticeably fewer within the error allowed."
        return (
            f"{shared}; the shares that give away fewest, {_list(fewest.parts)}, give away "
            f"{say_people(fewest.caused)}, with an error {percent(more)} above the least."
        )

    def _numbers(self) -> list[dict[str, Any]]:
        return [
            {"way": way.name, "table": table.number, "figure": name, "value": value}
            for way in self.ways
            for table, part, epsilon, size in zip(self.tables, way.parts, way.epsilons, way.mean_errors, strict=True)
            for name, value in (("part", part), ("epsilon", epsilon), ("mean_error", size))
        ] + [
            {"way": way.name, "table": None, "figure": name, "value": float(getattr(way, name))}
            for way in self.ways
            for name in ("error", "right", "caused", "largest")
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "sensitive": self.sensitive,
            "records": self.records,
            "total": {self.unit: self.total},
            "slack": self.slack,
            "tables": [
                {**table.to_dict(), "mechanism": table.mechanism.name, "use": use, "cells": cells}
                for table, use, cells in zip(self.tables, self.use, self.cells, strict=True)
            ],
            "splits": [
                {**vars(way), **{name: list(getattr(way, name)) for name in ("parts", "epsilons", "mean_errors")}}
                for way in self.ways
            ],
            "sentence": self.headline,
        }

    def _paragraphs(self) -> list[str]:
        names = [table.name or f"table {table.number}" for table in self.tables]
        rows = [
            [
                *(way.name, *(f"{part:.3g}" for part in way.parts), f"{way.error:.4g}"),
                *(say_people(way.right), say_people(way.caused), say_people(way.largest)),
            ]
            for way in self.ways
        ]
        head = [f"shares of {self.unit} {self.total:g}", *names, "error", "right", "caused", "by some tables"]
        return [aligned(head, rows), self._say_tables(), self._say_bounds(), CURATOR_NOTE]

    def _say_tables(self) -> str:
        head = ["mean error of a count", "use", "cells", *(way.name for way in self.ways)]
        rows = [
            [f"{table.number}: {table.name or table.describe()}", f"{use:.3g}", f"{cells:,}"]
            + [f"{way.mean_errors[place]:.3g}" for way in self.ways]
            for place, (table, use, cells) in enumerate(zip(self.tables, self.use, self.cells, strict=True))
        ]
        said = aligned(head, rows)
        if self.unit == "rho":
            said += "\nIn the set file, as epsilon at each table's delta: " + "; ".join(
                f"{way.name} {_list(way.epsilons)}" for way in self.ways
            )
            said += "."
        return said

    def _say_bounds(self) -> str:
        return (
            "error: the bound on the total variation distance of each table from the true one, weighted by use.\n"
            "least caused: the best shares found whose error is at most "
            f"{percent(self.slack)} above the least, or that of even shares.\n"
            "right and caused are of elimination by all tables; by some tables: the most that some of them do."
        )


def _list(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)
