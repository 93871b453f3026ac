"""A ledger for others to read: JSON lines and CSV."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.files import sidecar_of
from cellrisk.repeat.ledger.descriptions import NAMED, read_end
from cellrisk.repeat.ledger.entry import Entry
from cellrisk.system.atomic import refuse_inputs, write_whole
from cellrisk.system.spreadsheets import write_rows

COLUMNS = (
    *("number", "time", "kind", "cohort", "part_of", "quasi_identifiers", "attribute", "dp_definition", "epsilon"),
    *("delta", "rho", "neighbours", "unit", "contributions", "per_group", "mechanism", "scale", "threshold", "method"),
    *("purpose", "file", "sha256", "bytes", "clock_behind", "cellrisk", "previous", "digest"),
)


def write_json_lines(entries: Sequence[Entry]) -> str:
    """One entry a line. Without number, previous and digest, a line with sorted keys is what its digest covers."""
    return "".join(f"{json.dumps(entry.to_dict(), ensure_ascii=False)}\n" for entry in entries)


def write_csv(entries: Sequence[Entry], spreadsheet_safe: bool = False) -> str:
    """One entry a row, for spreadsheets; several quasi-identifiers are a JSON list, numbers are as exact as kept."""
    rows = []
    for entry in entries:
        told = entry.to_dict()
        loss, limit, file = (told.pop(name, None) or {} for name in ("loss", "limit", "file"))
        events = loss.get("events", [])
        alone = events[0] if len(events) == 1 else {}
        unit = loss.get("unit", {})
        loss = {**loss, **unit, "unit": unit.get("kind")}
        loss.pop("kind", None)
        noise = {name: alone.get(name) for name in ("mechanism", "scale", "threshold")}
        row = {**told, **loss, **noise, **limit, "file": file.get("name")}
        row |= {"sha256": file.get("sha256"), "bytes": file.get("bytes")}
        if "quasi_identifiers" in told:
            row["quasi_identifiers"] = json.dumps(told["quasi_identifiers"], ensure_ascii=False)
        rows.append([row.get(name) for name in COLUMNS])
    return write_rows(COLUMNS, rows, spreadsheet_safe=spreadsheet_safe)


def refuse_released(entries: Sequence[Entry], target: Path) -> None:
    """Refuse to write over a file that one of the entries has released, or over a description of one."""
    released = {entry.file.sha256: entry for entry in entries if entry.file is not None}
    content = read_end(target) or b""
    entry = released.get(hashlib.sha256(content).hexdigest())
    if entry is not None or NAMED.search(content) or NAMED.search(read_end(sidecar_of(target)) or b""):
        what = "what was released, or its description" if entry is None else f"what entry {entry.number} has released"
        refuse_inputs(target, {target: what})


def export_entries(entries: Sequence[Entry], path: str | os.PathLike[str], *, spreadsheet_safe: bool = False) -> Path:
    """Write entries to a file, whole or not at all, in the form that its ending says. On request CSV has an apostrophe
    before what spreadsheets would take for formulas."""
    target = Path(path)
    refuse_released(entries, target)
    if target.suffix.lower() == ".csv":
        return write_whole(target, write_csv(entries, spreadsheet_safe))
    if target.suffix.lower() == ".jsonl":
        return write_whole(target, write_json_lines(entries))
    raise InvalidInput("the ending of the file decides the form of an export", got=target.name, allowed=".jsonl, .csv")
