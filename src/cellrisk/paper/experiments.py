"""The paper's experiments as tables: Adult in both readings, Bankruptcy, and its subset."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.paper.bankruptcy import Records
from cellrisk.paper.panels import READINGS
from cellrisk.risk.measures import fit_sizes
from cellrisk.system.words import require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

ADULT, BANKRUPTCY, SUBSET = "Adult", "Bankruptcy", "Bankruptcy subset"
PUBLISHED, DEFINED = READINGS
ADULT_QIDS = ("age", "relationship", "education", "race", "sex", "hours-per-week")
ADULT_BINS = {"age": 5, "hours-per-week": 10}
BANKRUPTCY_QIDS = ("IR", "MR", "FF", "CR", "CO", "OR")
SUBSET_QIDS = ("IR", "MR", "CR", "CO", "OR")
ADULT_DELTAS = (0.00003, 0.001, 0.01, 0.1)
"""The deltas of the authors' published code, github.com/zhao-xingyuan/DR-HA."""
BANKRUPTCY_DELTAS = (0.001, 0.01, 0.1)


@dataclass(frozen=True, eq=False)
class Experiment:
    """One table of the paper, in one reading."""

    name: str
    reading: str
    table: FrequencyTable
    deltas: tuple[float, ...]
    source: str
    digest: str
    """SHA-256 of the data."""

    def __post_init__(self) -> None:
        require_word("reading of a table", self.reading, READINGS)
        if not self.deltas or not all(0 < delta < 1 for delta in self.deltas):
            raise InvalidInput("an experiment needs deltas between 0 and 1")

    @property
    def label(self) -> str:
        """The name, with the reading where there are two."""
        return f"{self.name} {self.reading}" if self.name == ADULT else self.name

    @property
    def stem(self) -> str:
        """The name as a part of file names."""
        return self.label.lower().replace(" ", "-")

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The Poisson rate of the cell sizes by maximum likelihood: plain, and truncated at zero."""
        profiles = self.table.profiles()
        plain, truncated = (fit_sizes(profiles, "poisson", "mle", each).parameters["rate"] for each in (False, True))
        return plain, truncated

    def to_dict(self) -> dict[str, object]:
        """The table in numbers."""
        profiles = self.table.profiles()
        return {
            "experiment": self.name,
            "reading": self.reading,
            "records": self.table.n_records,
            "cells": self.table.n_cells,
            "levels": profiles.n_levels,
            "homogeneous": profiles.n_homogeneous,
            "heterogeneous": profiles.n_heterogeneous,
            "rate_plain": self.rates[0],
            "rate_zero_truncated": self.rates[1],
            "deltas": list(self.deltas),
            "source": self.source,
            "sha256": self.digest,
        }


def adult_experiments() -> tuple[Experiment, ...]:
    """Adult as published, where each pair of a cell and an income is a cell, and as defined.

    The authors took the 5,974 rows of their count table, cells times income, for cells. A copy of income among the
    quasi-identifiers does the same: every cell is then homogeneous.

    >>> [each.table.n_cells for each in adult_experiments()]
    [5974, 5009]
    """
    from cellrisk.counts import datasets
    from cellrisk.counts.tabulation import tabulate

    records = datasets.adult_as_published()
    doubled = records.append_column("income of the row", records["income"])
    digest = hashlib.sha256(datasets.adult_path().read_bytes()).hexdigest()
    tables = (
        (PUBLISHED, tabulate(doubled, [*ADULT_QIDS, "income of the row"], "income", bins=ADULT_BINS)),
        (DEFINED, tabulate(records, list(ADULT_QIDS), "income", bins=ADULT_BINS)),
    )
    source = "UCI Adult, shipped with cellrisk"
    return tuple(Experiment(ADULT, reading, table, ADULT_DELTAS, source, digest) for reading, table in tables)


def bankruptcy_experiments(records: Records) -> tuple[Experiment, ...]:
    """Bankruptcy with its class, and the subset of its attributes with financial flexibility (FF), as sensitive."""
    from cellrisk.counts.tabulation import tabulate

    frame = records.to_frame()
    tables = (
        (BANKRUPTCY, tabulate(frame, list(BANKRUPTCY_QIDS), "class")),
        (SUBSET, tabulate(frame[[*SUBSET_QIDS, "FF"]], list(SUBSET_QIDS), "FF")),
    )
    source = f"UCI Qualitative Bankruptcy, from {records.source}"
    return tuple(
        Experiment(name, PUBLISHED, table, BANKRUPTCY_DELTAS, source, records.digest) for name, table in tables
    )
