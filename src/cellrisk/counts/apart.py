"""Reads a file of SPSS, SAS or Stata in a process of its own: a damaged file can end the process in which the library
for them, written in C, reads it."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from cellrisk.counts import foreign
from cellrisk.counts.streams import write_batches
from cellrisk.errors import CellriskError


def main() -> None:
    """What `foreign.StatisticalApart` asks for, as JSON: names of columns, or that a file was written."""
    asked = json.loads(sys.argv[1])
    limit_memory()
    foreign.ROWS = asked["rows"]
    reader, path = foreign.Statistical(), Path(asked["path"])
    try:
        with foreign.refusals_of_the_reader(path):
            if asked["columns"] is None:
                answer = {"names": reader.names(path, None)}
            else:
                written = write_batches(reader.read(path, asked["columns"], None), Path(asked["folder"]))
                answer = {"names": [written.name] if written.exists() else []}
    except CellriskError as refusal:
        answer = {"refused": [str(refusal)]}
    sys.stdout.write(json.dumps(answer))


def limit_memory() -> None:
    """No more than the machine has, and no copy of the memory on a disk where the process is ended."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import os
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
