"""A process that is killed, by SIGKILL, at one line after another of what it does; run as a script.

Each death is one fork. After each, the ledger is opened as anybody would, and what is then there is told as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import cellrisk as cr
from cellrisk.publish.releasing import Release, release
from cellrisk.repeat.ledger import Ledger

PLACES = ("cellrisk/repeat/ledger/", "cellrisk/publish/releasing/saving.py", "cellrisk/system/writing.py")
GEOMETRIC = cr.Geometric(epsilon=0.1)
FIELDS: dict[str, Any] = {"attribute": "job", "quasi_identifiers": ["sex"], "loss": GEOMETRIC}


def make_release() -> Release:
    records = pd.DataFrame({"sex": ["f", "f", "m"], "job": ["cook", "smith", "cook"]})
    table = cr.tabulate(records, ["sex"], "job", levels={"sex": ["f", "m"], "job": ["cook", "smith"]})
    return release(table, GEOMETRIC)


def save(place: str, output: Path, released: Release, force: bool = False) -> None:
    with (
        Ledger(place) as ledger,
        ledger.reserve(**FIELDS) as reservation,
    ):
        reservation.save(released, output, force=force)


def add(place: str) -> None:
    with Ledger(place, create=True) as ledger:
        ledger.add(**FIELDS)


def die_at(line: int, work: Callable[[], None]) -> bool:
    """Does the work in a child that is killed at its n-th line; whether it was."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal seen
            if event == "line":
                seen += 1
                if seen == line:
                    os.kill(os.getpid(), signal.SIGKILL)
            return count

        def choose(frame: Any, event: str, argument: Any) -> Any:
            return count if any(place in frame.f_code.co_filename for place in PLACES) else None

        sys.settrace(choose)
        try:
            work()
        except BaseException as error:
            sys.stderr.write(f"child: {error!r}\n")
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("the child failed by itself")
    return os.WIFSIGNALED(status)


def look(place: str, folder: Path) -> dict[str, Any]:
    """What is there once what was left is settled; a ledger is there, or there is nothing."""
    if "://" not in place and not Path(place).exists():
        return {
            **dict.fromkeys(("entries", "pendings", "spent", "described", "matched"), 0),
            "files": os.listdir(folder),
        } | {name: [] for name in ("problems", "remarks", "named")}
    with Ledger(place) as ledger:
        ledger.settle()
        found = ledger.verify()
        entries = ledger.entries(kind="release")
        told: dict[str, Any] = {"problems": [*map(tuple, found.problems)], "remarks": [*map(tuple, found.remarks)]}
        told |= {"entries": len(entries), "pendings": len(ledger.pendings()), "spent": 0.0}
        if entries:
            told["spent"] = ledger.spent("everyone").epsilon
    told["files"] = sorted(os.listdir(folder))
    told["described"] = told["matched"] = 0
    last = {entry.file.path: entry for entry in entries if entry.file is not None}
    for path, entry in last.items():
        described = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
        sha256 = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        named = {"id": ledger.id, "entry": entry.number, "digest": entry.digest}
        told["described"] += described["ledger"] == named
        told["matched"] += described["sha256"] == sha256 == entry.file.sha256  # type: ignore[union-attr]
    told["named"] = sorted(Path(path).name for path in last)
    return told


def main(scenario: str, place: str, folder: str, stride: str) -> None:
    """A ledger in a file is new for each death; one in a database grows, and with it the lines to go."""
    released, output = make_release(), Path(folder)
    work: dict[str, Callable[[], None]] = {
        "create": lambda: add(place),
        "save": lambda: save(place, output / "released.csv", released, force="://" in place),
        "replace": lambda: save(place, output / "released.csv", released, force=True),
    }
    if "://" in place:
        Ledger(place, create=True).close()
    line, died = 1, True
    while died:
        if "://" not in place:
            for name in os.listdir(output):
                (output / name).unlink()
            if scenario != "create":
                Ledger(place, create=True).close()
            if scenario == "replace":
                save(place, output / "released.csv", released)
        died = die_at(line, work[scenario])
        sys.stdout.write(json.dumps({"line": line, "died": died, **look(place, output)}) + "\n")
        sys.stdout.flush()
        line += int(stride)


if __name__ == "__main__":
    main(*sys.argv[1:])
