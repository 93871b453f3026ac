"""The answer of `assess_together`: what a set of tables gives away as a whole, and each table by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.together.after_consistency import Refinement
from cellrisk.repeat.together.costs import Cost
from cellrisk.repeat.together.differences import Difference
from cellrisk.repeat.together.informed_attacker import Certain
from cellrisk.repeat.together.linkage_attacks import MOST_SUBSETS, Figures
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.results import Result
from cellrisk.system.text import (
    CURATOR_NOTE,
    about_people,
    aligned,
    change,
    claim,
    make_sentence,
    number_of,
    of_people,
    percent,
)

SAYS = {
    "elimination": "the one value that vanishes in none of the person's cells",
    "any": "a value that some table shows alone; several may be",
}


@dataclass(frozen=True)
class RuleFigures:
    """What one rule of attack gives away, in people: all tables together, or one table by itself."""

    rule: str
    right: float
    """People whose value it names rightly, on average over releases. Exact."""
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
    """People among those named rightly who would not be, had their record been left out of all tables. Exact."""
    bound: float
    """What the guarantee alone promises of that."""
    chance: float
    """People it would name rightly if the noise were as large as it can be."""
    raw: int
    """People it would name rightly without noise."""

    def __post_init__(self) -> None:
        if not (self.right >= 0 and self.caused >= 0 and self.sd >= 0):
            raise InvalidInput("numbers of people must not be negative")

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
    """One table of the set: what it gives away by itself, and what the set gives away without it."""

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
class Coarser:
    """What the set would give away by elimination if a table were published without one of its columns."""

    table: SetTable
    column: str
    right: float
    caused: float

    def to_dict(self) -> dict[str, Any]:
        return {"table": self.table.number, "without": self.column, "right": self.right, "caused": self.caused}


@dataclass(frozen=True, repr=False)
class TogetherAssessment(Result):
    """What several tables about the same people give away together. Made by `assess_together`."""

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
    statements: tuple[str, ...]
    coarser: tuple[Coarser, ...] = ()
    """The set if the table that adds most were published without one of its columns, fewest given away first."""
    certain: tuple[Certain, ...] = ()
    """People whose value the informed attacker infers, if that was asked for."""
    certain_unknown: str | None = None
    """Why the informed attacker is not computed, though asked for."""
    check: TogetherCheck | None = None
    """A simulation beside the figures, where it was asked for."""

    def __post_init__(self) -> None:
        if not self.rules or not self.tables:
            raise InvalidInput("a set has a rule and a table at least")

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
        """The tables, by their numbers, by which elimination gives away most people because of their own records. A
        very noisy table hinders elimination, and an attacker would leave it aside."""
        return max(self.collections, key=lambda some: (self.collections[some].caused, len(some)))

    @property
    def adds_most(self) -> TableFigures | None:
        """The table without which the set would give away fewest because of their own records; None for one table."""
        some = [each for each in self.tables if each.without is not None]
        return min(some, key=lambda each: each.without.caused if each.without else 0.0, default=None)

    @property
    def headline(self) -> str:
        """What a board can repeat."""
        lead = self.rule()
        together = "The table gives" if len(self.tables) == 1 else f"Together the {len(self.tables)} tables give"
        said = (
            f"{together} away the {self.sensitive} of {of_people(lead.caused, self.records)} only because their own "
            f"records are in them, and of {about_people(lead.right)} ({percent(lead.right / self.records)}) at "
            f"all, against {percent(lead.chance / self.records)} by chance alone."
        )
        if len(self.tables) == 1:
            return said.replace("in them", "in it")
        worst = max(self.tables, key=lambda each: each.alone.caused)
        alone = sum(each.alone.caused for each in self.tables)
        return (
            f"{said} By itself, {worst.table.title} gives away {say_people(worst.alone.caused)}, more than any other; "
            f"one by one the tables give away {say_people(alone)} in all."
        )

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
        """The same for machines."""
        most = self.adds_most
        return {
            "sensitive": self.sensitive,
            "records": self.records,
            "left_out": self.dropped,
            "labels": self.labels,
            "rules": [each.to_dict() for each in self.rules],
            "tables": [each.to_dict() for each in self.tables],
            "adds_most": None if most is None else most.table.number,
            "coarser": [each.to_dict() for each in self.coarser],
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
            **({} if self.check is None else {"check": self.check.to_dict()}),
        }

    def _paragraphs(self) -> list[str]:
        several = len(self.tables) > 1
        blocks = [self._rules_table() if several else "", self._tables_table(), self.say_parts()]
        blocks.append("\n".join(each.headline for each in self.differences))
        blocks += [] if self.refinement is None else [self.refinement.headline, *self._refined_tables(self.refinement)]
        blocks += [f"{self.cost.headline} {self.say_ceiling()}", "\n".join(f"- {each}" for each in self.statements)]
        blocks.append(self._say_certain())
        blocks += ["" if self.check is None else str(self.check), CURATOR_NOTE]
        return [block for block in blocks if block]

    def _rules_table(self) -> str:
        rows = []
        for each in self.rules:
            precise = "-" if each.precision is None else percent(each.precision)
            numbers = [say_people(each.right), say_people(each.named), precise, each.deviation]
            rows.append([each.rule, *numbers, say_people(each.caused), say_people(each.chance), f"{each.raw:,}"])
        head = ["all tables together", "right", "named", "precision", "sd", "caused", "chance", "raw"]
        meant = "\n".join(f"{each.rule}: {SAYS[each.rule]}." for each in self.rules)
        return f"{aligned(head, rows)}\n\n{meant}\n{self.say_interval()}"

    def say_interval(self) -> str:
        """Between which numbers elimination is right."""
        lead = self.rule()
        return (
            f"Elimination is right for {lead.low:,} to {number_of(lead.high, 'person')} in 95% of releases (simulated)."
        )

    def _tables_table(self) -> str:
        rows = []
        for each in self.tables:
            own = each.alone
            rest = (
                ["-", "-"]
                if each.without is None
                else [say_people(each.without.right), say_people(each.without.caused)]
            )
            name = f"{each.table.number}: {each.table.name or each.table.describe()}"
            numbers = [
                say_people(own.right),
                say_people(own.named),
                own.deviation,
                say_people(own.caused),
                f"{own.raw:,}",
            ]
            rows.append([name, claim(each.table.mechanism.epsilon), f"{each.cells:,}", *numbers, *rest])
        head = ["each table alone", "epsilon", "cells", "right", "named", "sd", "caused", "raw"]
        return aligned([*head, "set without it: right", "caused"], rows)

    def _refined_tables(self, refined: Refinement) -> list[str]:
        """A row for each way of attack after least squares: what it gives away, and how that is known."""
        tables = [("every combination published", refined.rows)]
        tables += [] if refined.observed is None else [("those that occur published", refined.observed.rows)]
        head = ["right", "as published", "caused", "as published", "how (right and caused)"]
        return [
            aligned(
                [f"least squares, {title}", *head],
                [
                    [
                        row.what,
                        *(say_people(number) for number in (row.right, row.plain.right)),
                        *(say_people(number) for number in (row.caused, row.plain.caused)),
                        row.how,
                    ]
                    for row in rows
                ],
            )
            for title, rows in tables
            if rows
        ]

    def _say_certain(self) -> str:
        """The informed attacker."""
        if self.certain_unknown is not None:
            return f"The informed attacker is not computed: {self.certain_unknown}."
        if not self.certain:
            return ""
        rows = [
            [
                *(f"{each.certainty:g}", f"{each.tempering:.3g}{' (fitted)' if each.fitted else ''}"),
                *(say_people(each.right), say_people(each.named)),
                *("-" if each.precision is None else percent(each.precision), each.how),
            ]
            for each in self.certain
        ]
        head = ["certain to", "tempering", "right", "named", "precision", "how"]
        said = (
            "The informed attacker applies Bayes' rule to all tables. Tempering 1 takes the tables for independent "
            "given a person's value, and is overconfident if they are not; a fitted one is that of an attacker who is "
            "helped by the true values. The figures are those of these tables, given the tempering."
        )
        return f"{aligned(head, rows)}\n\n{said}"

    def say_ceiling(self) -> str:
        """The ceiling in words, or why it is not told."""
        return f"No ceiling is told: {self.ceiling_unknown}." if self.ceiling is None else self.ceiling.headline

    def say_parts(self) -> str:
        """Which table adds most, what less of it would do, and which tables do more than all; nothing for one table."""
        lead, most = self.rule(), self.adds_most
        if most is None:
            return ""
        said = []
        if most.without is not None:
            more = lead.caused - most.without.caused
            if more > 0:
                said.append(
                    f"{make_sentence(most.table.title, '')} adds most: without it, the people given away "
                    f"because of their own records would go "
                    f"{change(say_people(lead.caused), say_people(most.without.caused))}, and those given away at all "
                    f"{change(say_people(lead.right), say_people(most.without.right))}."
                )
        if self.coarser and self.coarser[0].caused < lead.caused:
            told = ", ".join(f"{say_people(each.caused)} without {each.column}" for each in self.coarser)
            said.append(f"With fewer columns of it, those given away because of their own records would be {told}.")
        largest = self.largest
        if len(largest) < len(self.tables):
            named = ", ".join(str(number) for number in largest)
            said.append(
                f"{number_of(len(largest), 'table')} of them ({named}) would give away more people because of their "
                f"own records than all: {say_people(self.collections[largest].caused)}. The noise of the others "
                "hinders the attacker, who may leave them aside."
            )
        if len(self.tables) > MOST_SUBSETS:
            said.append(f"Of more than {MOST_SUBSETS} tables, only all, all but one and each by itself were compared.")
        return " ".join(said)


@dataclass(frozen=True)
class Checked:
    """One number of a set and its simulated counterpart, in people."""

    rule: str
    figure: str
    assessed: float
    simulated: float
    standard_error: float
    """Of the simulated number."""

    @property
    def z(self) -> float | None:
        """(assessed - simulated) / standard error; None where too few releases were simulated to have an error.

        >>> Checked("any", "right", 3.0, 2.0, 0.5).z, Checked("any", "named", 0.001, 0.0, 0.0).z
        (2.0, None)
        """
        off = self.assessed - self.simulated
        return off / self.standard_error if self.standard_error > 0 else 0.0 if abs(off) < 1e-9 else None


@dataclass(frozen=True)
class TogetherCheck:
    """Releases of the whole set that were simulated to check the exact means."""

    releases: int
    rows: tuple[Checked, ...]

    def __str__(self) -> str:
        table = []
        for each in self.rows:
            z = "-" if each.z is None else f"{each.z:+.2f}"
            table.append([f"{each.rule}: {each.figure}", f"{each.assessed:,.2f}", f"{each.simulated:,.2f}", z])
        said = f"A check: {self.releases:,} releases of all tables were simulated, and the rules applied to them."
        return f"{said}\n{aligned(['in people', 'computed', 'simulated', 'z'], table)}"

    def to_dict(self) -> dict[str, Any]:
        return {"releases": self.releases, "rows": [{**vars(each), "z": each.z} for each in self.rows]}


def say_people(number: float) -> str:
    """A number of people: whole, and with digits where there are few.

    >>> say_people(4298.49), say_people(12.8), say_people(0.0312), say_people(1e-9), say_people(0.0)
    ('4,298', '12.8', '0.031', 'under 0.01', '0')
    """
    if number < 0.01:
        return "under 0.01" if number > 0 else "0"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}" if number >= 1 else f"{number:.2g}"
