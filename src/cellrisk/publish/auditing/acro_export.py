"""The record of an audit for output checkers, in the form that ACRO loads and SACRO's viewer shows.

The table in it and the flags of its cells are what the release shows, whatever the original holds. The figures of the
raw data stand in the words and properties alone: they are for the checker, and do not leave with the table.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.files import read_regular
from cellrisk.system.atomic import check_writable, write_whole
from cellrisk.system.checks import require_within
from cellrisk.system.formatting import as_given, number_of, percent

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.publish.auditing.figures import TableComparison

ACRO_VERSION = "1.0.2"
"""ACRO loads records of its own version alone; this one is tested."""
RESULTS = "results.json"
LARGEST_RESULTS = 1 << 28
MOST_ROWS = 50_000
"""Rows of a table that a person is going to check."""
ALONE, ONE = "shown-alone", "shown-alone-as-1"
FOR_THE_CHECKER = (
    "The figures in this record are computed from the raw data and are not themselves differentially private: they are "
    "for the output checker and must not leave with the table."
)


def show_table(both: TableComparison) -> tuple[pd.DataFrame, dict[str, list[list[int]]]]:
    """What a release shows: a row for each cell and a column for each label that it shows; and the flags of ACRO.

    The flags are the rows and columns of counts that stand alone in their cell, and of those that are then 1 or less.
    Nothing in it is about the original.
    """
    import pandas as pd

    shows = both.shown > 0
    cells, levels = np.unique(both.cell[shows]), np.unique(both.level[shows])
    if len(cells) > MOST_ROWS:
        what, fix = "the release has too many groups for an output checker", "audit a coarser table, or a part of it"
        raise InvalidInput(what, got=f"{len(cells):,}", allowed=f"up to {MOST_ROWS:,}", fix=fix, code="too-many-rows")
    names = [", ".join(f"{name} {label}" for name, label in both.key(cell).items()) for cell in cells.tolist()]
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    inside = np.isin(both.cell, cells) & np.isin(both.level, levels)
    counts = np.zeros((len(cells), len(levels)))
    places = np.searchsorted(cells, both.cell[inside]), np.searchsorted(levels, both.level[inside])
    counts[places] = both.released[inside]
    counts = counts[order]
    if (counts == np.floor(counts)).all():
        counts = counts.astype(np.int64)
    frame = pd.DataFrame(counts, columns=[both.levels[level] for level in levels.tolist()])
    frame.insert(0, ", ".join(both.names), [names[place] for place in order])
    alone = (counts > 0) & ((counts > 0).sum(axis=1) == 1)[:, None]
    return frame, {ALONE: np.argwhere(alone).tolist(), ONE: np.argwhere(alone & (counts <= 1)).tolist()}


def write_record(
    comparison: TableComparison, path: str | os.PathLike[str], *, max_risk: float | None, **described: Any
) -> Path:
    """Write the record and its table, beside the records that are there already; `Audit.save_acro` has the rest."""
    target = check_record_place(path, max_risk)
    with suppress(OSError):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_writable(target)
    results = _read_results(target)
    numbers = range(len(results["results"]) + 1)
    name = next(f"cellrisk_{place}" for place in numbers if f"cellrisk_{place}" not in results["results"])
    frame, flags = show_table(comparison)
    results["results"][name] = _describe(name, comparison, frame, flags, max_risk, **described)
    contents = {
        target.with_name(f"{name}_0.csv"): frame.to_csv(index=False, lineterminator="\n"),
        target: json.dumps(results, indent=4, ensure_ascii=False, allow_nan=False),
    }
    sums = target.parent / "checksums"
    with ExitStack() as undo:
        sums.mkdir(mode=0o700, exist_ok=True)
        for place, content in contents.items():
            checksum = sums / f"{place.name}.txt"
            for file in (place, checksum):
                if not file.exists():
                    undo.callback(file.unlink, missing_ok=True)
            write_whole(checksum, hashlib.sha256(content.encode("utf-8")).hexdigest())
            write_whole(place, content)
        undo.pop_all()
    return target


def check_record_place(path: str | os.PathLike[str], max_risk: float | None = None) -> Path:
    """Refuse a place that ACRO would not look at, or that cannot be written to, before any long work begins."""
    target = Path(path)
    if target.name != RESULTS:
        what, allowed = "ACRO reads records from one file name only", f"a folder, and {RESULTS} in it"
        raise InvalidInput(what, got=target.name, allowed=allowed, code="file-name")
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
        results = json.loads(read_regular(target, LARGEST_RESULTS))
        if isinstance(results["version"], str) and isinstance(results["results"], dict):
            return dict(results)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    fix = "choose another folder"
    raise InvalidInput(f"the {RESULTS} in that folder was not written by ACRO", fix=fix, code="not-acro")


def _describe(
    name: str,
    comparison: TableComparison,
    frame: pd.DataFrame,
    flags: dict[str, list[list[int]]],
    max_risk: float | None,
    *,
    sensitive: str,
    mechanism: Mechanism | None,
    words: Sequence[str],
    exception: str,
    command: str,
) -> dict[str, Any]:
    rows, columns = frame.iloc[:, 0].tolist(), [str(label) for label in frame.columns[1:]]
    outcome = {label: dict.fromkeys(rows, "ok") for label in columns}  # the verdict on each count
    for check, verdict in ((ALONE, f"{ALONE}; "), (ONE, f"{ALONE}; {ONE}; ")):
        for row, column in flags[check]:
            outcome[columns[column]][rows[row]] = verdict
    exposed, records = comparison.n_exposed, int(comparison.n_records)
    share = exposed / records
    status = "pass" if share <= (max_risk or 0) else "review" if max_risk is None else "fail"
    limit = "no limit was set" if max_risk is None else f"the limit is {as_given(max_risk, 2)}%"
    counted = {check: len(cells) for check, cells in flags.items()}
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
        "files": [{"name": f"{name}_0.csv", "sdc": {"summary": counted, "cells": flags}}],
        "outcome": outcome,
        "command": command,
        "summary": (
            f"{status}; {exposed:,} of {number_of(records, 'person')} ({percent(share)}) have their {sensitive} "
            f"revealed, {limit}; {ALONE}: {number_of(counted[ALONE], 'cell')} may need suppressing"
        ),
        "timestamp": datetime.now(timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds"),
        "comments": [FOR_THE_CHECKER, *words],
        "exception": exception,
        "fair": {},
    }
