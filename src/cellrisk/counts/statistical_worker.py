"""Reads a file of SPSS, SAS or Stata, or a spreadsheet, in a process of its own: a damaged or hostile file can end the
process in which a library written in C or Rust reads it, or take all of its memory."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from cellrisk.counts import other_formats
from cellrisk.counts.files import SPREADSHEETS
from cellrisk.counts.resources import free_memory
from cellrisk.counts.streams import write_batches
from cellrisk.errors import CellriskError
from cellrisk.system.isolated import listen


def main() -> None:
    """Answer what `other_formats.ask_apart` asks, as JSON: names of columns, or of the file that was written."""
    try:
        asked = listen().get()
        faulthandler.dump_traceback_later(asked["seconds"], exit=True, file=sys.stdout)
        other_formats.ROWS, other_formats.LARGEST_SPREADSHEET = asked["rows"], asked["bytes"]
        sys.stdout.write(json.dumps(answer(asked)))
        sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(1)


def answer(asked: dict[str, Any]) -> dict[str, list[str]]:
    path, sheet, columns = Path(asked["path"]), asked["sheet"], asked["columns"]
    reader = other_formats.Spreadsheet() if path.suffix.lower() in SPREADSHEETS else other_formats.Statistical()
    for library in (other_formats.APART[path.suffix.lower()], *(["pyarrow.parquet"] if columns else [])):
        import_module(library)
    limit_memory(asked["memory"])
    try:
        with other_formats.refusals_of_the_reader(path):
            if columns is None:
                return {"names": reader.names(path, sheet)}
            batches = reader.read(path, columns, sheet)
            return {"names": [write_batches(batches, Path(asked["folder"]), len(columns)).name]}
    except CellriskError as refusal:
        return {"refused": [refusal.marked]}


def limit_memory(most: int) -> None:
    """Allow so much memory on top of what is loaded, or what the machine can spare; no copy of it goes to a disk."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        loaded = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (loaded + min(most, free_memory()),) * 2)
