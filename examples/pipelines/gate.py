"""Is the table within its limits? One step of a pipeline: it runs the command, and reads the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WITHIN, ABOVE = 0, 3


def run_gate(source: str, document: str, *options: str) -> bool:
    """True within the limits, False above one; raises where the command cannot tell, with its one line.

    The figures are computed from the raw data: they go to a document that its owner alone can read, and neither to the
    answer nor to the log, which many people can read in a scheduler.
    """
    command = [sys.executable, "-m", "cellrisk", "assess", source, *options, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode not in (WITHIN, ABOVE):
        raise RuntimeError(run.stderr.strip())
    Path(document).unlink(missing_ok=True)
    with os.fdopen(os.open(document, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(run.stdout)
    return run.returncode == WITHIN
