"""A process that is killed at one line after another while it saves a set of tables with a ledger; run as a script."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd

import cellrisk as cr
from cellrisk.repeat.ledger import Ledger
from tests.repeat.ledger import deaths

deaths.PLACES = (*deaths.PLACES, "cellrisk/repeat/together/releasing.py")
WHOLE = ["set.json", "table-1.csv", "table-1.csv.json", "table-2.csv", "table-2.csv.json"]


def make_release() -> cr.TogetherRelease:
    people = pd.DataFrame({"sex": list("ffm"), "town": list("aba"), "job": list("xyy")})
    levels = {"sex": ["f", "m"], "town": ["a", "b"], "job": ["x", "y"]}
    tables = [{"qid": "sex"}, {"qid": "town", "where": {"sex": "f"}}]
    return cr.release_together(people, tables, "job", levels=levels, epsilon=0.1, format="csv")


def save(place: Path, folder: Path, released: cr.TogetherRelease) -> None:
    with Ledger(place) as ledger:
        ledger.save(released, folder)


def look(place: Path, folder: Path) -> dict[str, Any]:
    """What is there after `recover`."""
    with Ledger(place) as ledger:
        ledger.recover(folder.parent)
        found = ledger.verify()
        told: dict[str, Any] = {"problems": [*map(tuple, found.problems)], "remarks": [*map(tuple, found.remarks)]}
        told["entries"] = len(ledger.entries(kind="release"))
    told["files"] = sorted(os.listdir(folder)) if folder.exists() else []
    told["beside"] = sorted(name for name in os.listdir(folder.parent) if name not in ("ledger.db", folder.name))
    return told


def main(base: str, stride: str) -> None:
    released, at = make_release(), Path(base)
    line, died = 1, True
    while died:
        shutil.rmtree(at)
        at.mkdir()
        place, folder = at / "ledger.db", at / "released"
        Ledger(place, create=True).close()
        died = deaths.die_at(line, lambda place=place, folder=folder: save(place, folder, released))  # type: ignore[misc]
        sys.stdout.write(json.dumps({"line": line, "died": died, **look(place, folder)}) + "\n")
        line += int(stride)


if __name__ == "__main__":
    main(*sys.argv[1:])
