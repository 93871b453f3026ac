"""The answer of `split_budget`: three ways to share a total among tables, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cellrisk.repeat.together.sets import SetTable
from cellrisk.system.results import Result


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
    """People whom elimination names correctly."""
    caused: float
    """Those of them whom it names only because of their own records."""
    largest: float
    """The same by the collection of some of the tables that reveals most."""


@dataclass(frozen=True, repr=False)
class Split(Result):
    """Ways to share a total loss among the tables of a set. Made by `split_budget`."""

    wording = "split"

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
