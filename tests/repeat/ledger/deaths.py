"""A process that is killed, by SIGKILL, at one line after another of a save; run as a script.

Each death is one fork. After each, what is there is told as JSON: after `recover`, or after the next save.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import cellrisk as cr
from cellrisk.publish.releasing import Release, release
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.backends import find_backend

PLACES = ("cellrisk/repeat/ledger/", "cellrisk/publish/releasing/files.py", "cellrisk/system/atomic.py")
GEOMETRIC = cr.Geometric(epsilon=0.1)
FIELDS: dict[str, Any] = {"attribute": "job", "quasi_identifiers": ["sex"], "loss": GEOMETRIC}
PEOPLE = {"sex": ["f", "f", "m"], "town": ["a", "b", "b"], "job": ["cook", "smith", "cook"]}
LEVELS = {"sex": ["f", "m"], "town": ["a", "b"], "job": ["cook", "smith"]}


def make_release() -> Release:
    records = pd.DataFrame({name: PEOPLE[name] for name in ("sex", "job")})
    table = cr.tabulate(records, ["sex"], "job", levels={name: LEVELS[name] for name in ("sex", "job")})
    return release(table, GEOMETRIC)


def make_set() -> Any:
    tables = [{"qid": "sex"}, {"qid": "town"}]
    return cr.release_together(pd.DataFrame(PEOPLE), tables, "job", levels=LEVELS, mechanism=GEOMETRIC)


def die_at(line: int, work: Callable[[], object]) -> bool:
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


def look(place: str, folder: Path, name: str) -> dict[str, Any]:
    """The entries of a name, and whether the last has its file and description; everything else that is there."""
    with Ledger(place) as ledger:
        found = ledger.verify(folders=[folder])
        of_name = "released.csv" if name.endswith(".csv") else "set.json"
        entries = [entry for entry in ledger.entries(kind="release") if entry.file and entry.file.name == of_name]
    target = folder / name
    listed = target / "set.json" if target.is_dir() else target
    there = listed.exists()
    return {
        "ok": found.ok,
        "told": [text for _, text in (*found.problems, *found.remarks) if "was replaced by" not in text],
        "entries": len(entries),
        "there": there,
        "same": there and hashlib.sha256(listed.read_bytes()).hexdigest() == entries[-1].file.sha256,  # type: ignore[union-attr]
        "described": listed != target or Path(f"{target}.json").exists(),
        "hidden": [item for item in os.listdir(folder) if item.startswith(".")],
    }


def begin(place: str, output: Path) -> None:
    """A new ledger, and an empty folder."""
    for item in output.iterdir():
        shutil.rmtree(item) if item.is_dir() else item.unlink()
    if "://" in place:
        find_backend(place, 30.0).remove()
    else:
        Path(place).unlink(missing_ok=True)
    with Ledger(place, create=True) as ledger:
        ledger.declare("everyone")


def main(scenario: str, place: str, folder: str, first: str, stride: str) -> None:
    """Every second death is followed by a save into the folder, the others by `recover`."""
    released = make_set() if scenario == "set" else make_release()
    output, line, died = Path(folder), int(first), True
    name = "released" if scenario == "set" else "released.csv"

    def save() -> None:
        with Ledger(place) as ledger:
            ledger.save(released, output / name, force=scenario == "replace")

    while died:
        begin(place, output)
        if scenario == "replace":
            save()
        died = die_at(line, save)
        left = [item for item in os.listdir(output) if item.startswith(".")]
        with Ledger(place) as ledger:
            if line % 2:
                ledger.recover(output)
            else:
                ledger.save(make_release(), output / "next.csv")
        told = look(place, output, name)
        sys.stdout.write(json.dumps({"line": line, "died": died, "left": len(left), **told}) + "\n")
        sys.stdout.flush()
        line += int(stride)


if __name__ == "__main__":
    main(*sys.argv[1:])
