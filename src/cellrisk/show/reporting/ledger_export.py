"""A ledger for others to read: JSON lines, CSV, and records for the OpenDP registry of deployments."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import DiscreteGaussian
from cellrisk.repeat.ledger.descriptions import NAMED, read_regular
from cellrisk.repeat.ledger.entry import Entry, show_on_one_line
from cellrisk.show.reporting.metadata import pick
from cellrisk.show.reporting.noise import FORMULAS, NEIGHBOURS, describe_scale, describe_threshold
from cellrisk.show.reporting.registry import write_record
from cellrisk.system.atomic import refuse_inputs, write_whole
from cellrisk.system.spreadsheets import write_rows

COLUMNS = (
    *("number", "time", "kind", "cohort", "part_of", "quasi_identifiers", "attribute", "dp_definition", "epsilon"),
    *("delta", "rho", "neighbours", "mechanism", "scale", "threshold", "method", "purpose", "file", "sha256", "bytes"),
    *("clock_behind", "cellrisk", "previous", "digest"),
)
VARIANTS = {
    "pure": "Pure DP",
    "approximate": "Approximate DP",
    "concentrated": "Zero-concentrated DP",
}


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
        noise = {name: alone.get(name) for name in ("mechanism", "scale", "threshold")}
        row = {**told, **loss, **noise, **limit, "file": file.get("name")}
        row |= {"sha256": file.get("sha256"), "bytes": file.get("bytes")}
        if "quasi_identifiers" in told:
            row["quasi_identifiers"] = json.dumps(told["quasi_identifiers"], ensure_ascii=False)
        rows.append([row.get(name) for name in COLUMNS])
    return write_rows(COLUMNS, rows, spreadsheet_safe=spreadsheet_safe)


def write_registry(entries: Sequence[Entry]) -> str:
    """One YAML document a release, with the fields of the OpenDP registry's template in its order.

    What only the publisher knows is marked as to be filled in.
    """
    releases = [entry for entry in entries if entry.kind == "release"]
    return "".join(f"---\n{write_record(describe_entry(entry, len(releases)))}" for entry in releases)


FORMS: dict[str, Callable[[Sequence[Entry]], str]] = {
    "json-lines": write_json_lines,
    "csv": write_csv,
    "registry": write_registry,
}
ENDINGS = {".jsonl": "json-lines", ".csv": "csv", ".yaml": "registry", ".yml": "registry"}


def refuse_released(entries: Sequence[Entry], target: Path) -> None:
    """Refuses to write over a file that one of the entries has released, or over a description of one."""
    released = {entry.file.sha256: entry for entry in entries if entry.file is not None}
    content = read_regular(target) or b""
    entry = released.get(hashlib.sha256(content).hexdigest())
    if entry is not None or NAMED.search(content):
        what = "a description of a release" if entry is None else f"what entry {entry.number} has released"
        refuse_inputs(target, {target: what})


def export_entries(
    entries: Sequence[Entry], path: str | os.PathLike[str], form: str | None = None, *, spreadsheet_safe: bool = False
) -> Path:
    """Writes entries to a file, whole or not at all, in the form that is named or that its ending says. On request CSV
    has an apostrophe before what spreadsheets would take for formulas."""
    target = Path(path)
    refuse_released(entries, target)
    chosen = ENDINGS.get(target.suffix.lower()) if form is None else form
    if chosen is None:
        raise InvalidInput("an export's form is told by its ending", got=target.name, allowed=", ".join(ENDINGS))
    if chosen not in FORMS:
        raise UnknownName("unknown form of export", got=repr(form), allowed=", ".join(FORMS))
    return write_whole(target, write_csv(entries, spreadsheet_safe) if chosen == "csv" else FORMS[chosen](entries))


def describe_entry(entry: Entry, n_releases: int) -> dict[str, Any]:
    """What the ledger knows of the record of a release."""
    loss = entry.loss
    if loss is None:
        raise InvalidInput("only a release has a record in the registry")
    mechanism, by = loss.mechanism, ", ".join(entry.quasi_identifiers)
    what = f"{entry.attribute} by {by}" if entry.attribute and by else entry.attribute or by
    known: dict[str, Any] = {
        "slug": f"release-{entry.number}",
        "name": show_on_one_line(f"{what} ({entry.cohort})"),
        "description": f"Frequency table of {show_on_one_line(what)}",
        "intended_use": entry.purpose,
        "publication_date": entry.time[:10],
        "variant": VARIANTS[loss.dp_definition],
        "data_domain": f"Records with {', '.join(filter(None, [by, entry.attribute]))}",
        "unit_details": NEIGHBOURS[loss.neighbours],
        **pick(loss, "epsilon delta"),
        "rho": mechanism.rho if isinstance(mechanism, DiscreteGaussian) else loss.rho,
        "parameters_details": f"The loss of this release alone: {loss.describe()}",
        "release_type": "One release" if n_releases == 1 else "Many releases",
        "composition": (
            f"Release {entry.number} in a ledger; releases on the same people compose sequentially, cohorts that "
            "share nobody in parallel"
        ),
        "additional": entry.file and f"SHA-256 {entry.file.sha256}",
    }
    if mechanism is not None:
        known["mechanisms"] = f"{FORMULAS[mechanism.name]}; {describe_scale(mechanism)}, in counts"
        known["post_processing"] = describe_threshold(mechanism.threshold)
    return known
