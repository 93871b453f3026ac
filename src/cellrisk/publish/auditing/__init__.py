"""`audit`: given the original table and any release of it, what did the release reveal?"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.auditing.figures import FIGURES, TableComparison, compare_tables, find_figures
from cellrisk.publish.auditing.reading import ReleasedCounts, leave_out_missing, read_release
from cellrisk.publish.auditing.realised_disclosure import NAME_IT, MadeBy, find_attacks, read_method
from cellrisk.publish.releasing.files import find_count_column
from cellrisk.publish.releasing.release_result import Release
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours, require_word
from cellrisk.system.formatting import number_of
from cellrisk.system.results import NOT_KEPT, LeavesKeys, Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["FIGURES", "Audit", "ExposedCell", "audit"]

OF = ("released", "original")
NO_RELEASE = ("ending", "no-description", "changed", "description")
"""Refusals of `Release.load` after which a file is read as that of any other tool."""


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
        require_word("figure of an audit", name, tuple(FIGURES))
        require_word("table of a figure", of, OF)
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
        pairs = np.flatnonzero((both.shown > 0) & (both.named > 0)[both.cell])  # one for each cell
        chosen = pairs[np.argsort(-both.named[both.cell[pairs]], kind="stable")][:top]
        return tuple(
            ExposedCell(both.key(cell), both.levels[level], int(both.sizes[cell]), int(both.named[cell]), released)
            for cell, level, released in zip(
                *(column[chosen].tolist() for column in (both.cell, both.level, both.released)), strict=True
            )
        )

    def save_acro(
        self,
        path: str | os.PathLike[str],
        *,
        max_risk: float | None = None,
        exception: str = "",
        comments: Sequence[str] = (),
        command: str = "cellrisk audit",
    ) -> Path:
        """Write a record of this audit for output checkers, as ACRO loads it and SACRO's viewer shows it.

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
            "unit": self.original.unit.to_dict(),
            "attackers": list(self.attackers),
            "decision": {
                "sensitive": self.sensitive,
                "mechanism": self.made.mechanism and self.made.mechanism.to_dict(),
                "perturbation": self.made.perturbation and self.made.perturbation.to_dict(),
                "ceiling": self.ceiling and self.ceiling.to_dict(),
                "certainty_unknown": self.unknown,
            },
            "figures": {of: {name: self._plain(name, of) for name in FIGURES} for of in OF},
            "people": {"exposed": self.n_exposed, "alone": self.facts["alone"], "records": self.original.n_records},
            "baselines": {"raw": self.value(of="original"), "proportional_guess": self.guess_share},
            "notes": list(self.notes),
            "headline": self.headline,
        }

    def _plain(self, name: str, of: str) -> float | None:
        value = self.value(name, of)
        return None if math.isnan(value) else int(value) if FIGURES[name].is_count else value


def audit(
    original: FrequencyTable,
    released: Any,
    *,
    sensitive: str | None = None,
    count: str | bool | None = None,
    bins: Mapping[str, Any] | None = None,
    table: str | None = None,
    engine: str | None = None,
    mechanism: Mechanism | MechanismName | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    perturbation: str | Perturbation | None = None,
    certainty: float | None = None,
    belief: str | CountPrior | None = None,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
) -> Audit:
    """What did this release disclose about the people in the original table?

    The release may be ours or another tool's: counts, whose signs and fractions are taken as they are, or records, such
    as synthetic ones. The attacks of `assess` come first, as realised: the people they name correctly, and those named
    because of their own record; best guess and informed attacker if the mechanism is known. Then the eight scenarios of
    Liu and Zhao, and the figures that synthpop, SDMetrics and ARX define, each by its own definition
    (`cellrisk.publish.auditing.figures`, docs/peers.md). All are exact for these two tables.

    Three women are cooks; of four men one is a cook and three are smiths; one other person is a smith. The release
    shows women as cooks alone and men as smiths alone: the values of 3 + 3 of 8 people are revealed correctly, and one
    man is taken for a smith who is a cook.

    Parameters
    ----------
    original
        Made by `tabulate`; its quasi-identifiers and labels are those that the release is read with.
    released
        A source as `tabulate` takes it (files, frames, databases with ``table``), or the answer of `release`. Columns
        are found by name and others ignored. Values are matched by their text, and numbers by their value; keys that
        the original does not have are allowed, and noted.
    sensitive
        Which sensitive attribute; may be left out where the original has one.
    count
        The column of counts. False, or "none" where no column has that name, says that each row is a record; where
        nothing is said, the description beside a file that `release` saved names it, and other rows that look like a
        table of counts are refused.
    bins
        As for `tabulate`, where the release holds numbers and the original bins; labels of bins stay as they are.
    table, engine
        As for `tabulate`, of the release.
    mechanism
        What made the release, as an object, or as its name with ``epsilon`` beside it. May be left out for the answer
        of `release` and for its files as they were written, which say it themselves and are believed. Where it is not
        known, or the release holds records, what an attacker can be sure of is not known either.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    perturbation
        What made the table, in the place of a mechanism, as in `assess_perturbation`: counts that it never makes of the
        true ones are refused.
    certainty, belief, harmful, unions
        Those of the informed attacker, as for `assess`.

    >>> import cellrisk as cr, pandas
    >>> people = pandas.DataFrame({"sex": [*"fffmmmmx"], "job": ["cook"] * 4 + ["smith"] * 4})
    >>> release = pandas.DataFrame(
    ...     [("f", "cook", 2), ("m", "smith", 4), ("x", "cook", 1), ("x", "smith", 1)], columns=["sex", "job", "n"]
    ... )
    >>> found = audit(cr.tabulate(people, "sex", "job"), release, count="n")
    >>> [found.value(name) for name in ("homogeneity_tight_records", "dis", "cap", "scenario_8")]
    [0.75, 0.875, 0.1875, 1.0]
    >>> found.value(of="original")
    0.5
    """
    require_table(original, "original")
    if original.beyond_records:
        what = "which records of a person a release has kept is not known, so those of an audit may be others"
        got = f"{number_of(original.beyond_records, 'record')} beyond the bound"
        state = f"leave {argument('person')} out, and state the bound with {argument('contributions')}"
        raise InvalidInput(what, got=got, fix=f"{state}: an audit then counts records", code="several-records")
    attribute = original.attribute(sensitive)
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    loaded, changed = released if isinstance(released, Release) else None, False
    if isinstance(released, str | os.PathLike):
        try:
            loaded = Release.load(released)
        except InvalidInput as refusal:
            if refusal.code not in NO_RELEASE:
                raise
            changed = refusal.code == "changed"
    made = read_method(loaded, mechanism, beside, perturbation)
    if not made.known and (certainty is not None or belief is not None):
        what = "what an attacker can be sure of depends on the mechanism, which is not known"
        raise InvalidInput(what, fix=NAME_IT, code="unknown-mechanism")
    attacker = Attacker.of(USUAL_CERTAINTY if certainty is None else certainty, belief or USUAL_BELIEF, harmful, unions)
    attacker.check([attribute])
    if loaded is not None and count is None and not bins:
        released, bins = loaded, None
    elif count is None and isinstance(released, str | os.PathLike):
        count = find_count_column(released)
    read = read_release(
        released, original.quasi_identifiers, attribute.name, count=count, bins=bins, table=table, engine=engine
    )
    if read.is_microdata:
        if made.perturbation is not None:
            what = "a perturbation makes counts, and the published table holds records"
            fix = f"name the column of {argument('count')}s, or leave {argument('perturbation')} out"
            raise InvalidInput(what, fix=fix, code="records")
        made = MadeBy(records=True)
    kept, left_out = leave_out_missing(read, original.missing)
    both = compare_tables(original.cells(attribute.name), kept, attribute.missing_level)
    attackers, unknown = find_attacks(attribute, both, made, attacker)
    stated, shares = None if made.adjusted else made.mechanism, attribute.levels.shares
    return Audit(
        original=original,
        sensitive=attribute.name,
        comparison=both,
        released=find_figures(both),
        raw=find_figures(both.as_it_is()),
        guess_share=float(shares @ shares),
        made=made,
        attackers=tuple({"sensitive": attribute.name, **row} for row in attackers),
        unknown=unknown,
        ceiling=None if stated is None else ceiling(stated, labels=max(attribute.n_levels, 2)),
        facts={"changed": changed, "left_out": left_out, **_find_facts(kept, both, made)},
    )


def _find_facts(released: ReleasedCounts, both: TableComparison, made: MadeBy) -> dict[str, int]:
    """Return what is unusual about a release: numbers of counts, of cells and of people."""
    count, shows, people = released.count, both.shown_sizes > 0, both.sizes > 0
    alone = (both.n_shown == 1) & (both.shown_sizes == made.smallest)
    return {
        "alone": int(both.named[alone].sum()),
        "contradicted": made.contradicted,
        "counts": len(count),
        "negative": int((count < 0).sum()),
        "fractional": int((count != np.floor(count)).sum()),
        "shown": int(shows.sum()),
        "nothing": not shows.any(),
        "unknown": int((shows & ~people).sum()),
        "absent": int((people & ~shows).sum()),
        "hidden": int(both.sizes[people & ~shows].sum()),
        "all_different": released.is_microdata and len(count) > 1 and bool((count == 1).all()),
    }
