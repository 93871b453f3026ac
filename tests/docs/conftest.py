"""The site, built once for all tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def build(target: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(target), *options]
    surroundings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        command, cwd=REPOSITORY, env=surroundings, check=False, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the built site. Processes that test side by side share it: the first of them builds it."""
    own = tmp_path_factory.getbasetemp().resolve()
    folder = (own if worker_id == "master" else own.parent) / "documentation"
    while not folder.is_dir():
        try:
            folder.with_suffix(".lock").mkdir()
        except FileExistsError:
            time.sleep(0.1)
            continue
        try:
            unfinished = folder.with_suffix(".unfinished")
            done = build(unfinished)
            assert done.returncode == 0, done.stdout + done.stderr
            unfinished.rename(folder)
        finally:
            folder.with_suffix(".lock").rmdir()
    return folder
