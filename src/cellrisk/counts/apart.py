"""Reads a file of SPSS, SAS or Stata, or a spreadsheet, in a process of its own: a damaged or hostile file can end the
process in which a library written in C or Rust reads it, or take all of its memory."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts import foreign
from cellrisk.counts.files import SPREADSHEETS
from cellrisk.counts.resources import free_memory
from cellrisk.counts.streams import write_batches
from cellrisk.errors import CellriskError
from cellrisk.system.isolated import listen

if TYPE_CHECKING:
    import pyarrow as pa


def main() -> None:
    """Answer what `foreign.Apart` asks, as JSON: names of columns, or of the file that was written."""
    try:
        asked = json.loads(listen().get())
        faulthandler.dump_traceback_later(asked["seconds"], exit=True, file=sys.stdout)
        foreign.ROWS, foreign.LARGEST_SPREADSHEET = asked["rows"], asked["bytes"]
        for library in (asked["library"], *(["pyarrow.parquet"] if asked["columns"] is not None else [])):
            import_module(library)
        limit_memory(asked["memory"])
        sys.stdout.write(json.dumps(answer(asked)))
        sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(1)


def answer(asked: dict[str, Any]) -> dict[str, list[str]]:
    path, sheet = Path(asked["path"]), asked["sheet"]
    reader = foreign.Spreadsheet() if path.suffix.lower() in SPREADSHEETS else foreign.Statistical()
    try:
        with foreign.refusals_of_the_reader(path):
            if asked["columns"] is None:
                return {"names": reader.names(path, sheet)}
            batches = watched(reader.read(path, asked["columns"], sheet), asked["seconds"])
            written = write_batches(batches, Path(asked["folder"]))
            return {"names": [written.name] if written.exists() else []}
    except CellriskError as refusal:
        return {"refused": [str(refusal)]}


def watched(batches: Iterator[pa.Table], seconds: int) -> Iterator[pa.Table]:
    """Batches, of which each has so much time again."""
    for batch in batches:
        yield batch
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.stdout)


def limit_memory(most: int) -> None:
    """Allow so much memory on top of what is loaded, or what the machine can spare; no copy of it goes to a disk."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        loaded = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (loaded + min(most, free_memory()),) * 2)
