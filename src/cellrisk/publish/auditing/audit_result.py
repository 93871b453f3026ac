"""The answer of `audit`: a sentence, a table of figures, a frame, a document, and the cells that were revealed."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.errors import UnknownName
from cellrisk.publish.auditing.comparison import TableComparison
from cellrisk.publish.auditing.figures import FIGURES
from cellrisk.publish.auditing.realised_disclosure import MadeBy
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.checks import require_whole_number
from cellrisk.system.results import NOT_KEPT, LeavesKeys, Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

OF = ("released", "original")


@dataclass(frozen=True)
class ExposedCell(LeavesKeys):
    """One released cell that shows a label alone which people in it have."""

    key: dict[str, str]
    """The values of the quasi-identifiers. Raw data."""
    shown: str
    """The label that is shown alone."""
    records: int
    """How many records of the original the cell holds."""
    exposed: int
    """How many of these records have the label that is shown."""
    released: float
    """The released count."""

    def without_keys(self) -> dict[str, Any]:
        return {"key": dict.fromkeys(self.key, NOT_KEPT)}


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """What a release disclosed. Made by `audit`; prints as a sentence and a table; `value` picks one number."""

    wording: ClassVar[str] = "audit"

    original: FrequencyTable
    sensitive: str
    comparison: TableComparison
    released: Mapping[str, float]
    """The figures of the release, by name."""
    raw: Mapping[str, float]
    """The figures if the original had been released as it is."""
    guess_share: float
    """Guessing each person's value from the overall proportions: sum_k p_k^2."""
    made: MadeBy
    """How the release was made, as far as that is known."""
    attackers: tuple[Mapping[str, Any], ...]
    """The attacks of `assess` on these counts; without a known mechanism, the two that need none; none of records."""
    unknown: str | None
    """Why the attackers who apply Bayes' rule are left out."""
    ceiling: Ceiling | None
    """None if the mechanism is not known, or if the counts show parents that they add up to."""
    facts: Mapping[str, int]
    """What was assumed, and what is unusual about the release."""

    def value(self, name: str = "homogeneity_tight_records", of: str = "released") -> float:
        """One figure of the release, or of the original; NaN where undefined.

        Parameters
        ----------
        name
            One of the figures that `to_dict` lists.
        of
            "released", or "original" for the original as it is.
        """
        if name not in FIGURES:
            raise UnknownName("an audit has no such figure", got=repr(name), allowed=", ".join(FIGURES))
        if of not in OF:
            raise UnknownName(
                "figures are of the released or of the original table", got=repr(of), allowed=", ".join(OF)
            )
        return (self.released if of == "released" else self.raw)[name]

    @property
    def n_exposed(self) -> int:
        """People whose value the release shows alone in their cell."""
        return self.comparison.n_exposed

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, and what is unusual about the release, a sentence each."""
        return tuple(find_words(self.wording).notes(self))

    def exposed(self, top: int = 20) -> tuple[ExposedCell, ...]:
        """The cells that reveal most people, with their keys: for the curator alone."""
        top = require_whole_number("top", top, 1)
        both = self.comparison
        found = np.flatnonzero(both.named > 0)
        chosen = found[np.argsort(-both.named[found], kind="stable")][:top]
        shown = both.shown > 0

        def describe(cell: int) -> ExposedCell:
            start, stop = np.searchsorted(both.cell, [cell, cell + 1])
            pair = start + int(np.argmax(shown[start:stop]))
            label, released = both.levels[both.level[pair]], float(both.released[pair])
            return ExposedCell(both.key(cell), label, int(both.sizes[cell]), int(both.named[cell]), released)

        return tuple(describe(cell) for cell in chosen.tolist())

    def save_acro(
        self,
        path: str | os.PathLike[str],
        *,
        max_risk: float | None = None,
        exception: str = "",
        comments: Sequence[str] = (),
        command: str = "cellrisk audit",
    ) -> Path:
        """Writes a record of this audit for output checkers, as ACRO loads it and SACRO's viewer shows it.

        The table of the record, and its flags of counts that are shown alone, say what the release shows and nothing of
        the original. Its words and properties hold figures of the raw data, for the checker alone.

        Parameters
        ----------
        path
            A folder and ``results.json`` in it; the table and checksums are put beside it. Where it holds records
            already, this one is added to them.
        max_risk
            The largest share of people whose value may be revealed: the status is "fail" above it, else "pass".
            Without it, the status is "pass" if no value is revealed, else "review".
        exception
            Why the release should be allowed all the same.
        comments
            What else the checker should know, a sentence each.
        command
            What was typed, for the record.
        """
        from cellrisk.publish.auditing.acro_export import write_record

        return write_record(
            self.comparison,
            path,
            sensitive=self.sensitive,
            mechanism=self.made.mechanism,
            words=(self.headline, *self.notes, *comments),
            max_risk=max_risk,
            exception=exception,
            command=command,
        )

    def _numbers(self) -> list[dict[str, Any]]:
        rows: list[tuple[str, str, str, float]] = [
            (name, figure.source, of, self.value(name, of)) for name, figure in FIGURES.items() for of in OF
        ]
        for row in self.attackers:
            name = " ".join([row["attack"], *row.get("union", ())])
            rows += [
                (f"{name}, {part}", "cellrisk", "released", row[part]) for part in ("revealed", "own") if part in row
            ]
        columns = ("figure", "source", "of", "value")
        return [{"sensitive": self.sensitive, **dict(zip(columns, values, strict=True))} for values in rows]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk audit --json`` prints; null where a figure is undefined."""
        return {
            "table": {"records": self.original.n_records, "cells": self.original.n_cells, "sensitive": self.sensitive},
            "attackers": list(self.attackers),
            "decision": {
                "sensitive": self.sensitive,
                "mechanism": self.made.mechanism and self.made.mechanism.to_dict(),
                "perturbation": self.made.perturbation and self.made.perturbation.to_dict(),
                "ceiling": self.ceiling and self.ceiling.to_dict(),
                "certainty_unknown": self.unknown,
            },
            "figures": {of: {name: _plain(name, self.value(name, of)) for name in FIGURES} for of in OF},
            "people": {"exposed": self.n_exposed, "alone": self.facts["alone"], "records": self.original.n_records},
            "baselines": {"raw": self.value(of="original"), "proportional_guess": self.guess_share},
            "notes": list(self.notes),
            "headline": self.headline,
        }


def _plain(name: str, value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if FIGURES[name].is_count else value
