"""A ledger for others to read: JSON lines."""

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


def refuse_released(entries: Sequence[Entry], target: Path) -> None:
    """Refuse to write over a file that one of the entries has released, or over a description of one."""
    released = {entry.file.sha256: entry for entry in entries if entry.file is not None}
    content = read_end(target) or b""
    entry = released.get(hashlib.sha256(content).hexdigest())
    if entry is not None or NAMED.search(content) or NAMED.search(read_end(sidecar_of(target)) or b""):
        what = "what was released, or its description" if entry is None else f"what entry {entry.number} has released"
        refuse_inputs(target, {target: what})


def export_entries(entries: Sequence[Entry], path: str | os.PathLike[str]) -> Path:
    """Write entries to a file, one a line, whole or not at all.

    Without number, previous and digest, a line with sorted keys is what its digest covers.
    """
    target = Path(path)
    refuse_inputs(target)
    refuse_released(entries, target)
    if target.suffix.lower() != ".jsonl":
        raise InvalidInput("the ending of the file decides the form of an export", got=target.name, allowed=".jsonl")
    return write_whole(target, "".join(f"{json.dumps(entry.to_dict(), ensure_ascii=False)}\n" for entry in entries))
