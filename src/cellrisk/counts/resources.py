"""What counting may use of the machine, and whom to report how far it is."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.system.progress import Progress

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST_MEMORY = 200 * 10**6
SHARE_OF_MACHINE = 0.7
SECONDS_BETWEEN_REPORTS = 0.25


@dataclass(frozen=True)
class Resources:
    """Limits for one tabulation."""

    memory: int
    """Bytes that DuckDB may hold; past that it spills to a private folder."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.memory < LEAST_MEMORY:
            raise InvalidInput(
                "the memory limit is too small to count in",
                got=f"{self.memory / 10**6:.0f} MB",
                allowed=f"{LEAST_MEMORY // 10**6} MB or more",
                code="memory-limit",
            )

    @staticmethod
    def of(memory_limit: str | int | None, progress: Progress | None = None) -> Resources:
        """Limits as a user gives them; by default a share of the memory that is free.

        >>> Resources.of("4GB").memory
        4000000000
        """
        return Resources(free_memory() if memory_limit is None else read_bytes(memory_limit), progress)


def read_bytes(given: str | int) -> int:
    """Return a number of bytes, given as 4GB, 500 MB or 2GiB."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", str(given))
    if not match or match[2].upper() not in UNITS:
        raise InvalidInput(
            "the memory limit cannot be read",
            got=repr(given),
            allowed="for example 4GB, 500MB or 2GiB",
            code="memory-limit",
        )
    return int(float(match[1]) * UNITS[match[2].upper()])


def free_memory() -> int:
    """Return a share of the memory that is available: what the container allows, or what the machine has."""
    available = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file, pattern, unit in (
        ("/proc/meminfo", r"MemAvailable:\s+(\d+) kB", 1024),
        ("/sys/fs/cgroup/memory.max", r"(\d+)", 1),
    ):
        try:
            match = re.search(pattern, Path(file).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        if match:
            available.append(int(match[1]) * unit)
    return max(LEAST_MEMORY, int(SHARE_OF_MACHINE * min(available)))


@contextmanager
def reported(connection: Any, progress: Progress | None) -> Iterator[None]:
    """Report from a thread how far the running query of a DuckDB connection is.

    DuckDB knows this only if its own progress bar is switched on, which is never printed. In a notebook without
    ipywidgets it cannot be switched, and nothing is reported.
    """
    import duckdb

    try:
        connection.execute("SET enable_progress_bar_print = false")
        connection.execute(f"SET enable_progress_bar = {progress is not None}")
    except duckdb.InvalidInputException:
        progress = None
    if progress is None:
        yield
        return
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(SECONDS_BETWEEN_REPORTS):
            percent = connection.query_progress()
            if percent >= 0:
                progress(percent / 100)

    watcher = threading.Thread(target=watch, name="cellrisk-progress")
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
