"""The answer of `assess_together`: what a set of tables reveals as a whole, and each table by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cellrisk.errors import UnknownName
from cellrisk.repeat.together.after_consistency import Refinement
from cellrisk.repeat.together.costs import Cost
from cellrisk.repeat.together.differences import Difference
from cellrisk.repeat.together.informed_attacker import Certain
from cellrisk.repeat.together.linkage_attacks import Figures
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.results import Result, find_words


@dataclass(frozen=True)
class RuleFigures:
    """What one rule of attack reveals, in people: all tables together, or one table by itself."""

    rule: str
    right: float
    """People whose value it names correctly, on average over releases. Exact."""
    named: float
    """People for whom it names a value; by "any", values that it names."""
    sd: float
    """The standard deviation of the first number over releases."""
    sd_error: float | None
    """The standard error of the deviation, which is simulated; None for one table alone, where it is exact."""
    low: int
    high: int
    """The number lies between them in 95% of releases; from simulated releases."""
    caused: float
    """People among those named correctly who would not be, had their record been left out of all tables. Exact."""
    bound: float
    """What the guarantee alone promises of that."""
    chance: float
    """People it would name correctly if the noise were as large as it can be."""
    raw: int
    """People it would name correctly without noise."""

    @property
    def precision(self) -> float | None:
        """How often what it names is right; None where it names nothing."""
        return self.right / self.named if self.named > 0 else None

    @property
    def deviation(self) -> str:
        """The deviation as it is printed."""
        error = self.sd_error
        return f"{self.sd:,.1f}" if error is None else f"{self.sd:,.1f} (+- {error:,.{0 if error >= 10 else 1}f})"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "precision": self.precision}


@dataclass(frozen=True)
class TableFigures:
    """One table of the set: what it reveals by itself, and what the set reveals without it."""

    table: SetTable
    records: int
    cells: int
    alone: RuleFigures
    without: Figures | None
    """The set without this table, by elimination; None where it is the only one."""
    ceiling: Ceiling | None = None
    """The ceiling of this table alone; None where it cannot be told."""

    def to_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in self.alone.to_dict().items() if name != "rule"}
        rest = None if self.without is None else {"right": self.without.right, "caused": self.without.caused}
        ceiling = None if self.ceiling is None else self.ceiling.to_dict()
        figures = {"records": self.records, "cells": self.cells, **own, "ceiling": ceiling, "set_without_it": rest}
        return {**self.table.to_dict(), **figures}


@dataclass(frozen=True)
class Structure:
    """What the figures rest on: labels, records that were left out, and how the tables lie to each other."""

    declared: bool
    """Whether the labels of the sensitive attribute were declared."""
    missing: str
    outside: int
    """Records that were left out of a table because a value of theirs is not among the declared labels."""
    relations: tuple[tuple[str, SetTable, SetTable], ...]
    """Pairs of tables, of which the first is a margin of the second, or whose people are nested, or overlap."""
    common: bool
    """Whether tables share columns, so least squares would make them more precise, and that is not assessed."""


@dataclass(frozen=True, repr=False)
class TogetherAssessment(Result):
    """What several tables about the same people reveal together. Made by `assess_together`."""

    wording = "together"

    picture = "draw_together"

    sensitive: str
    labels: int
    records: int
    """People who are in one of the tables at least."""
    dropped: int
    rules: tuple[RuleFigures, ...]
    tables: tuple[TableFigures, ...]
    collections: Mapping[tuple[int, ...], Figures]
    """Elimination by sub-collections of the tables, by their numbers from 1: all of them, up to six tables."""
    ceiling: Ceiling | None
    ceiling_unknown: str | None
    cost: Cost
    differences: tuple[Difference, ...]
    """Pairs of tables of the same columns, of which one leaves some people out."""
    refinement: Refinement | None
    """Least squares over common margins; None where the tables have none, or are not all of the same people."""
    structure: Structure
    certain: tuple[Certain, ...] = ()
    """People whose value the informed attacker infers, if that was asked for."""
    certain_unknown: str | None = None
    """Why the informed attacker is not computed, though asked for."""

    def rule(self, name: str = "elimination") -> RuleFigures:
        """The figures of one rule.

        Parameters
        ----------
        name
            "elimination" or "any".
        """
        for each in self.rules:
            if each.rule == name:
                return each
        raise UnknownName("unknown rule", got=repr(name), allowed=", ".join(each.rule for each in self.rules))

    @property
    def largest(self) -> tuple[int, ...]:
        """The tables, by their numbers, by which elimination reveals most people because of their own records. A
        very noisy table hinders elimination, and an attacker would leave it aside."""
        return max(self.collections, key=lambda some: (self.collections[some].caused, len(some)))

    @property
    def adds_most(self) -> TableFigures | None:
        """The table without which the set would reveal fewest because of their own records; None for one table."""
        some = [each for each in self.tables if each.without is not None]
        return min(some, key=lambda each: each.without.caused if each.without else 0.0, default=None)

    @property
    def statements(self) -> tuple[str, ...]:
        """What the figures assume, and what they leave out."""
        return tuple(find_words("together").statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: ``tables`` is "all", or the number of a table by itself."""
        names = ("right", "named", "sd", "caused", "bound", "chance", "raw")
        rows = [("all", each) for each in self.rules] + [(str(each.table.number), each.alone) for each in self.tables]
        return [
            {"tables": tables, "rule": each.rule, "figure": name, "people": float(getattr(each, name))}
            for tables, each in rows
            for name in names
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict, for JSON."""
        most = self.adds_most
        return {
            "sensitive": self.sensitive,
            "records": self.records,
            "left_out": self.dropped,
            "labels": self.labels,
            "rules": [each.to_dict() for each in self.rules],
            "tables": [each.to_dict() for each in self.tables],
            "adds_most": None if most is None else most.table.number,
            "largest": {"tables": list(self.largest), "caused": self.collections[self.largest].caused},
            "collections": [
                {"tables": list(some), "right": found.right, "named": found.named, "caused": found.caused}
                for some, found in self.collections.items()
            ],
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            **({} if self.ceiling_unknown is None else {"ceiling_unknown": self.ceiling_unknown}),
            "cost": self.cost.to_dict(),
            "differences": [each.to_dict() for each in self.differences],
            "least_squares": None if self.refinement is None else self.refinement.to_dict(),
            "sentence": self.headline,
            "statements": list(self.statements),
            **({"certainty": [each.to_dict() for each in self.certain]} if self.certain else {}),
            **({} if self.certain_unknown is None else {"certainty_unknown": self.certain_unknown}),
        }
