"""What the columns of a file are likely to be: a suggestion from their names and from how many values they have."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.count_tables import is_named_like_counts, words_of
from cellrisk.counts.preview import Preview, PreviewedColumn
from cellrisk.system.formatting import aligned, number_of
from cellrisk.system.results import Result

QUASI_IDENTIFIER, SENSITIVE, COUNT, IDENTIFIER, UNLIKELY = (
    "quasi-identifier",
    "sensitive",
    "counts",
    "identifier",
    "none",
)
SENSITIVE_WORDS = """
income salary wage wages earnings wealth debt credit benefit benefits diagnosis diagnoses disease illness condition
icd hiv cancer drug drugs medication treatment outcome test result infection pregnant pregnancy disability mental
smoker smoking alcohol religion faith politics party vote orientation conviction crime offence offense arrest visa
asylum einkommen gehalt diagnose krankheit revenu salaire maladie ingreso renta
"""
IDENTIFIER_WORDS = """
id ids uid uuid key name surname firstname lastname email mail phone ssn nhs passport account iban address
"""
MOST_LEVELS = 100
"""Levels of a column that is suggested as it is; a number with more is suggested in bins."""
FEW_LEVELS = 20
MOST_SUGGESTED = 6
ALMOST_UNIQUE = 0.9


@dataclass(frozen=True, repr=False)
class Columns(Result):
    """What a file holds before anything is counted, and what its columns are likely to be. It holds no value."""

    file: str
    preview: Preview

    @property
    def roles(self) -> dict[str, str]:
        """The likely role of each column."""
        roles = {column.name: suggest_role(column) for column in self.preview.columns}
        if SENSITIVE not in roles.values():
            others = [column for column in self.preview.columns if roles[column.name] == QUASI_IDENTIFIER]
            likely = [
                column.name
                for column in others
                if column.kind in ("text", "truth") and (column.levels or 0) <= FEW_LEVELS
            ]
            if len(others) > 1 and likely:  # by custom, what is to be explained stands last
                roles[likely[-1]] = SENSITIVE
        return roles

    @property
    def suggested(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The quasi-identifiers and the sensitive attribute to begin with: a few of the first, one of the second."""
        roles = self.roles
        quasi = [name for name, role in roles.items() if role == QUASI_IDENTIFIER][:MOST_SUGGESTED]
        sensitive = [name for name, role in roles.items() if role == SENSITIVE][:1]
        return tuple(quasi), tuple(sensitive)

    @property
    def bins(self) -> dict[str, str]:
        """Bins of those quasi-identifiers that are numbers with many values."""
        quasi, _ = self.suggested
        numbers = [column for column in self.preview.columns if column.name in quasi and column.kind == "number"]
        return {column.name: "10" for column in numbers if column.levels is None or column.levels > FEW_LEVELS}

    @property
    def command(self) -> str | None:
        """The command to type next; None where no column could be sensitive, or none could tell people apart."""
        roles, (quasi, sensitive) = self.roles, self.suggested
        if not quasi or not sensitive:
            return None
        words = ["cellrisk", "inspect", self.file, "--qid", ",".join(quasi), "--sensitive", sensitive[0]]
        counts = [name for name, role in roles.items() if role == COUNT]
        words += ["--count", counts[0]] if counts else []
        for name, width in self.bins.items():
            words += ["--bin", f"{name}={width}"]
        return shlex.join(words)

    @property
    def headline(self) -> str:
        """How much there is, and what to do with it."""
        columns = self.preview.columns
        start = f"{number_of(self.preview.rows, 'row')} and {number_of(len(columns), 'column')} in {self.file}."
        if self.command is None:
            return f"{start} Name the quasi-identifiers and the sensitive attribute: --qid and --sensitive."
        return f"{start} If the suggested roles are right, go on with: {self.command}"

    def to_dict(self) -> dict[str, Any]:
        """The columns as JSON-ready values."""
        return {"file": self.file, "rows": self.preview.rows, "columns": self._numbers(), "next": self.command}

    def _numbers(self) -> list[dict[str, Any]]:
        roles = self.roles
        return [
            {
                "column": column.name,
                "kind": column.kind,
                "levels": column.levels,
                "missing": column.missing,
                "likely_role": roles[column.name],
            }
            for column in self.preview.columns
        ]

    def _paragraphs(self) -> Iterable[str]:
        yield aligned(
            ["column", "kind", "likely role", "levels", "missing"],
            [
                (row["column"], row["kind"], row["likely_role"], _say_levels(row["levels"]), f"{row['missing']:,}")
                for row in self._numbers()
            ],
            left=3,
        )
        yield (
            "Roles are guessed from the names of the columns and the number of their values. Whoever knows the people "
            "knows better: a quasi-identifier is what an outsider may know of a person, and the sensitive attribute is "
            "what he wants to learn."
        )


def suggest_role(column: PreviewedColumn) -> str:
    """What a column is likely to be.

    >>> [suggest_role(PreviewedColumn(name, "text", 40, 0, 0.01)) for name in ("region", "diagnosis", "patient_id")]
    ['quasi-identifier', 'sensitive', 'identifier']
    """
    words = words_of(column.name)
    if column.kind == "other":
        return UNLIKELY
    if column.kind == "number" and is_named_like_counts(column.name):
        return COUNT
    many = column.levels is None or column.levels > MOST_LEVELS
    if words & frozenset(IDENTIFIER_WORDS.split()) or (many and column.unique_share > ALMOST_UNIQUE):
        return IDENTIFIER
    if column.levels is not None and column.levels < 2:
        return UNLIKELY
    if many and column.kind != "number":
        return UNLIKELY
    return SENSITIVE if words & frozenset(SENSITIVE_WORDS.split()) and not many else QUASI_IDENTIFIER


def _say_levels(levels: int | None) -> str:
    return "over 10,001" if levels is None else f"{levels:,}"
