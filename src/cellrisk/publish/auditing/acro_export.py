"""The record of an audit for output checkers, in the form that ACRO loads and SACRO's viewer shows.

The table in it and the flags of its cells are what the release shows, whatever the original holds. The figures of the
raw data stand in the words and properties alone: they are for the checker, and do not leave with the table.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.loading import read_regular
from cellrisk.system.atomic import check_writable, write_whole
from cellrisk.system.checks import require_within
from cellrisk.system.formatting import as_given, number_of, percent

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.publish.auditing.comparison import TableComparison

ACRO_VERSION = "1.0.2"
"""ACRO loads records of its own version alone; this one is tested."""
RESULTS = "results.json"
LARGEST_RESULTS = 1 << 28
MOST_ROWS = 50_000
"""Rows of a table that somebody is going to check."""
ALONE, ONE = "shown-alone", "shown-alone-as-1"
FOR_THE_CHECKER = (
    "The figures in this record are computed from the raw data and are not themselves differentially private: they are "
    "for the output checker and must not leave with the table."
)


@dataclass(frozen=True, eq=False)
class ShownTable:
    """What a release shows, as a checker looks at it: a row for each cell, a column for each label.

    Cells and labels that are not shown anywhere are not part of it, so nothing in it is about the original.
    """

    frame: pd.DataFrame
    alone: list[list[int]]
    """Row and column of the counts that stand alone in their cell."""
    ones: list[list[int]]
    """Row and column of the counts that stand alone and are 1, or less."""

    @staticmethod
    def of(both: TableComparison) -> ShownTable:
        import pandas as pd

        shows = both.shown > 0
        rows, levels = np.unique(both.cell[shows]), np.unique(both.level[shows])
        if len(rows) > MOST_ROWS:
            raise InvalidInput(
                "the release has too many cells for an output checker",
                got=f"{len(rows):,}",
                allowed=f"up to {MOST_ROWS:,}",
                fix="audit a coarser table, or a part of it",
            )
        counts = np.zeros((len(rows), len(levels)))
        inside = np.isin(both.cell, rows) & np.isin(both.level, levels)
        places = np.searchsorted(rows, both.cell[inside]), np.searchsorted(levels, both.level[inside])
        counts[places] = both.released[inside]
        names = [", ".join(f"{name} {label}" for name, label in both.key(cell).items()) for cell in rows.tolist()]
        order = sorted(range(len(names)), key=names.__getitem__)
        counts = counts[order]
        if (counts == np.floor(counts)).all():
            counts = counts.astype(np.int64)
        frame = pd.DataFrame(counts, columns=[both.levels[level] for level in levels.tolist()])
        frame.insert(0, ", ".join(both.names), [names[place] for place in order])
        alone = (counts > 0) & ((counts > 0).sum(axis=1) == 1)[:, None]
        return ShownTable(frame, np.argwhere(alone).tolist(), np.argwhere(alone & (counts <= 1)).tolist())

    def outcome(self) -> dict[str, dict[str, str]]:
        """What is said of each count, by column and row, as ACRO has it."""
        rows, columns = self.frame.iloc[:, 0].tolist(), [str(label) for label in self.frame.columns[1:]]
        said = {label: dict.fromkeys(rows, "ok") for label in columns}
        ones = {tuple(place) for place in self.ones}
        for row, column in self.alone:
            one = f" {ONE};" if (row, column) in ones else ""
            said[columns[column]][rows[row]] = f"{ALONE};{one} "
        return said


def write_record(
    comparison: TableComparison, path: str | os.PathLike[str], *, max_risk: float | None, **described: Any
) -> Path:
    """Writes the record and its table, beside the records that are there already; `Audit.save_acro` has the rest."""
    target = check_record_place(path, max_risk)
    with suppress(OSError):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_writable(target)
    results = _read_results(target)
    numbers = range(len(results["results"]) + 1)
    name = next(f"cellrisk_{place}" for place in numbers if f"cellrisk_{place}" not in results["results"])
    table = ShownTable.of(comparison)
    results["results"][name] = _describe(name, comparison, table, max_risk, **described)
    written: list[Path] = []
    try:
        for place, content in (
            (target.with_name(f"{name}_0.csv"), table.frame.to_csv(index=False, lineterminator="\n")),
            (target, json.dumps(results, indent=4, ensure_ascii=False, allow_nan=False)),
        ):
            sums = target.parent / "checksums"
            sums.mkdir(mode=0o700, exist_ok=True)
            digest = hashlib.sha256(content.encode("utf-8")).hexdigest()
            written += [file for file in (place, sums / f"{place.name}.txt") if not file.exists()]
            write_whole(sums / f"{place.name}.txt", digest)
            write_whole(place, content)
    except BaseException:
        for file in written:
            with suppress(OSError):
                file.unlink()
        raise
    return target


def check_record_place(path: str | os.PathLike[str], max_risk: float | None = None) -> Path:
    """Refuses a place that ACRO would not look at, or that cannot be written to, before any long work begins."""
    target = Path(path)
    if target.name != RESULTS:
        raise InvalidInput(
            "ACRO reads records from one file name only", got=target.name, allowed=f"a folder, and {RESULTS} in it"
        )
    if max_risk is not None:
        require_within("max_risk", max_risk, least=0, most=1)
    existing = next(folder for folder in target.absolute().parents if folder.exists())
    check_writable(target if target.parent.exists() else existing / RESULTS)  # folders are made with the record
    return target


def _read_results(target: Path) -> dict[str, Any]:
    """The records that are there; those of another version of ACRO stay as they are, and so does their version."""
    if not os.path.lexists(target):
        return {"version": ACRO_VERSION, "results": {}}
    try:
        found = json.loads(read_regular(target, LARGEST_RESULTS))
        if isinstance(found["version"], str) and isinstance(found["results"], dict):
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InvalidInput(f"the {RESULTS} in that folder was not written by ACRO", fix="choose another folder")


def _describe(
    name: str,
    comparison: TableComparison,
    table: ShownTable,
    max_risk: float | None,
    *,
    sensitive: str,
    mechanism: Mechanism | None,
    words: Sequence[str],
    exception: str,
    command: str,
) -> dict[str, Any]:
    exposed, records = comparison.n_exposed, int(comparison.n_records)
    share = exposed / records
    status = "pass" if share <= (max_risk or 0) else "review" if max_risk is None else "fail"
    limit = "no limit was set" if max_risk is None else f"the limit is {as_given(max_risk, 2)}%"
    flags = {ALONE: table.alone, ONE: table.ones}
    return {
        "uid": name,
        "status": status,
        "type": "table",
        "properties": {
            "method": "cellrisk audit",
            "sensitive": sensitive,
            "quasi_identifiers": list(comparison.names),
            "mechanism": None if mechanism is None else mechanism.to_dict(),
            "records": records,
            "given_away": exposed,
            "share_given_away": share,
            "limit": max_risk,
        },
        "files": [
            {
                "name": f"{name}_0.csv",
                "sdc": {"summary": {check: len(cells) for check, cells in flags.items()}, "cells": flags},
            }
        ],
        "outcome": table.outcome(),
        "command": command,
        "summary": (
            f"{status}; {exposed:,} of {number_of(records, 'person')} ({percent(share)}) have their {sensitive} "
            f"given away, {limit}; {ALONE}: {number_of(len(table.alone), 'cell')} may need suppressing"
        ),
        "timestamp": datetime.now(timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds"),
        "comments": [FOR_THE_CHECKER, *words],
        "exception": exception,
        "fair": {},
    }
