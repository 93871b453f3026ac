"""The answer of `audit`: a sentence, a table of figures, a frame, a document, and the cells that were given away."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.publish.auditing.comparison import TableComparison
from cellrisk.publish.auditing.deciding import FiguresInHand
from cellrisk.publish.auditing.figures import FIGURES
from cellrisk.system.checks import require_whole_number
from cellrisk.system.results import NOT_KEPT, LeavesKeys, Result
from cellrisk.system.text import CURATOR_NOTE, aligned, number_of, percent

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

OF = ("released", "original")
WHOLE = ("k", "distinct_l")


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
    """What a release gave away. Made by `audit`; prints as a sentence and a table; `value` picks one number."""

    original: FrequencyTable
    sensitive: str
    comparison: TableComparison
    released: Mapping[str, float]
    """The figures of the release, by name."""
    raw: Mapping[str, float]
    """The figures if the original had been released as it is."""
    guess_share: float
    """Guessing each person's value from the overall proportions: sum_k p_k^2."""
    decision: FiguresInHand
    """The figures to decide by."""
    notes: tuple[str, ...] = ()
    """What was assumed, and what is unusual about the release."""

    def __post_init__(self) -> None:
        if list(self.released) != list(FIGURES) or list(self.raw) != list(FIGURES):
            raise InvalidInput("an audit needs every figure, in order")

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
        """People whose value the release gives away."""
        return round(float(self.comparison.named.sum()))

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        share, trusted = self.value(), self.value("tcap")
        people = f"{self.n_exposed:,} of {number_of(self.original.n_records, 'person')}"
        precision = (
            "no cell with people in it shows one value alone"
            if math.isnan(trusted)
            else f"an attacker who believes such cells is right about {percent(trusted)} of the people in them"
        )
        return (
            f"The release gives away the {self.sensitive} of {people} ({percent(share)}), whose cells show their value "
            f"alone; {precision}. The original as it is would give away {percent(self.value(of='original'))}, guessing "
            f"from the overall proportions gets {percent(self.guess_share)}. {self.decision.sentence}"
        )

    def exposed(self, top: int = 20) -> tuple[ExposedCell, ...]:
        """The cells that give away most people, with their keys: for the curator alone."""
        top = require_whole_number("top", top, 1)
        both = self.comparison
        found = np.flatnonzero(both.named > 0)
        chosen = found[np.argsort(-both.named[found], kind="stable")][:top]
        shown = both.shown > 0
        listed = []
        for cell in chosen.tolist():
            start, stop = np.searchsorted(both.cell, [cell, cell + 1])
            pair = start + int(np.argmax(shown[start:stop]))
            listed.append(
                ExposedCell(
                    both.key(cell),
                    both.levels[both.level[pair]],
                    int(both.sizes[cell]),
                    int(both.named[cell]),
                    float(both.released[pair]),
                )
            )
        return tuple(listed)

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
            The largest share of people whose value may be given away: the status is "fail" above it, else "pass".
            Without it, the status is "pass" where nobody's value is given away, else "review".
        exception
            Why the release should be allowed all the same.
        comments
            What else the checker should know, a sentence each.
        command
            What was typed, for the record.
        """
        from cellrisk.publish.auditing.checking_record import CheckedAudit, write_record

        checked = CheckedAudit(
            comparison=self.comparison,
            sensitive=self.sensitive,
            records=self.original.n_records,
            exposed=self.n_exposed,
            share=self.value(),
            mechanism=self.decision.mechanism,
            words=(self.headline, *self.notes, *comments),
            max_risk=max_risk,
            exception=exception,
            command=command,
        )
        return write_record(checked, path)

    def _numbers(self) -> list[dict[str, Any]]:
        rows = [
            {
                "sensitive": self.sensitive,
                "figure": name,
                "source": figure.source,
                "of": of,
                "value": self.value(name, of),
            }
            for name, figure in FIGURES.items()
            for of in OF
        ]
        ours = {"sensitive": self.sensitive, "source": "cellrisk", "of": "released"}
        rows.append({**ours, "figure": "caused", "value": self.decision.caused})
        for row in self.decision.certainty:
            rows.append({**ours, "figure": f"right_{row.certainty:g}", "value": row.right})
            rows.append({**ours, "figure": f"named_{row.certainty:g}", "value": row.named})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk audit --json`` prints; null where a figure is undefined."""
        return {
            "table": {"records": self.original.n_records, "cells": self.original.n_cells, "sensitive": self.sensitive},
            "decision": self.decision.to_dict(),
            "figures": {of: {name: _plain(name, self.value(name, of)) for name in FIGURES} for of in OF},
            "people": {"exposed": self.n_exposed, "records": self.original.n_records},
            "baselines": {"raw": self.value(of="original"), "proportional_guess": self.guess_share},
            "notes": list(self.notes),
            "headline": self.headline,
        }

    def _paragraphs(self) -> list[str]:
        rows = [[name, _show(name, self.released[name]), _show(name, self.raw[name])] for name in FIGURES]
        numbers = aligned(["figure", "released", "original"], rows).splitlines()
        meanings = ["", *(figure.meaning for figure in FIGURES.values())]
        table = [f"{line}  {meaning}".rstrip() for line, meaning in zip(numbers, meanings, strict=True)]
        notes = ["\n".join(self.notes)] if self.notes else []
        return [self.decision.describe_certainty(), "\n".join(table), *notes, CURATOR_NOTE]


def _plain(name: str, value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if FIGURES[name].is_count else value


def _show(name: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    if FIGURES[name].is_count:
        return f"{int(value):,}"
    if name in WHOLE:
        return f"{value:,g}" if value == int(value) else f"{value:,.4f}"
    return f"{value:.4f}"
