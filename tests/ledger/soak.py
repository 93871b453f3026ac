"""What the soak shares: its size, its command, and how things stand in a ledger, read without it and through it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.ledger.conftest import Where

LONG = 600.0
"""Seconds to wait for a lock: nobody gives up because the machine is busy."""
PEOPLE = "sex,job\n" + "f,cook\nf,smith\nm,cook\nm,cook\n" * 3


def make_command(source: object, place: object, output: object, *more: str, new: bool | None = None) -> list[str]:
    """`cellrisk release ... --ledger`, as it is typed; it makes a ledger that is not there, unless ``new`` says."""
    columns = ["--qid", "sex", "--sensitive", "job", "--observed-levels", "sex,job"]
    record = ["--ledger", str(place), "--wait", str(LONG)]
    if (not Path(str(place)).exists() and "://" not in str(place)) if new is None else new:
        record.append("--new-ledger")
    return ["release", str(source), *columns, "--epsilon", "0.1", *record, "--output", str(output), *more]


def chosen(small: Any, full: Any) -> Any:
    """The size of this run."""
    return full if os.environ.get("CELLRISK_SOAK") == "full" else small


@dataclass(frozen=True)
class Image:
    """What stands in the file of a ledger, read by SQLite alone."""

    rows: dict[int, tuple[str, str, str]]
    """For each number: previous digest, digest, body."""
    states: tuple[str, ...] = ()
    """Of the releases that are not finished."""
    places: dict[int, str] = field(default_factory=dict)
    """Where files were written, by the numbers of their entries."""

    @property
    def files(self) -> dict[int, dict[str, Any]]:
        """The released files, by the numbers of their entries."""
        bodies = {number: json.loads(body) for number, (_, _, body) in self.rows.items()}
        return {number: body["file"] for number, body in bodies.items() if body.get("file")}


def read_image(place: Path) -> Image:
    """Reads copies of the file and of the log beside it: nothing of the ledger itself is opened or repaired."""
    if not place.exists():
        return Image({})
    with tempfile.TemporaryDirectory() as folder:
        for end in ("", "-wal", "-journal"):
            if Path(f"{place}{end}").exists():
                shutil.copy(f"{place}{end}", f"{folder}/{place.name}{end}")
        with closing(sqlite3.connect(f"{folder}/{place.name}")) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if "entries" not in names:
                return Image({})
            rows = connection.execute("SELECT number, previous, digest, body FROM entries").fetchall()
            states = connection.execute("SELECT state FROM pending").fetchall()
            places = dict(connection.execute("SELECT number, path FROM released_files").fetchall())
        return Image({number: tuple(rest) for number, *rest in rows}, tuple(state for (state,) in states), places)


def check_outputs(outputs: Path, image: Image) -> None:
    """Every file that stands at an output place is whole, described, and in the ledger."""
    for file in sorted(outputs.glob("[!.]*.csv")):
        described = json.loads(Path(f"{file}.json").read_text(encoding="utf-8"))
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        number, digest = described["ledger"]["entry"], described["ledger"]["digest"]
        assert described["sha256"] == sha256
        assert image.rows[number][1] == digest
        assert (image.places[number], image.files[number]["sha256"]) == (str(file), sha256)
    for description in sorted(outputs.glob("[!.]*.json")):
        assert description.with_suffix("").exists() or "decided" in image.states


def look(place: str, folder: Path | None, outputs: Path) -> tuple[list[tuple[int, str, str, str]], list[Any]]:
    """Opens the ledger as anybody would and checks everything that is there; its rows, and what verify remarks.

    folder: where the ledger is, if it is a file. Files outside the outputs, or beside the ledger, are not expected.
    """
    from cellrisk.repeat.ledger import Ledger

    with Ledger(place, wait=LONG) as ledger:
        ledger.settle()
        found = ledger.verify()
        entries = ledger.entries()
        assert found.problems == ()
        assert ledger.pendings() == ()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        releases = [entry for entry in entries if entry.kind == "release"]
        lost = sum((Decimal(repr(entry.loss.epsilon)) for entry in releases if entry.loss), Decimal(0))
        if releases:
            assert Decimal(repr(ledger.spent("everyone", operator="basic").epsilon)) == lost
    last = {entry.file.path: entry for entry in releases if entry.file}
    for path, entry in last.items():
        described = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
        sha256 = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        assert entry.file is not None
        assert described["sha256"] == sha256 == entry.file.sha256
        assert described["ledger"] == {"id": ledger.id, "entry": entry.number, "digest": entry.digest}
    expected = {name for path in last for name in (path, f"{path}.json")}
    assert {str(path) for path in outputs.iterdir()} == expected
    if folder is not None:
        assert [str(path) for path in folder.iterdir()] == [place]
    remarks = [remark for remark in found.remarks if "was replaced by entry" not in remark.text]
    return [(entry.number, entry.previous, entry.digest, entry.body) for entry in entries], remarks


@dataclass
class Record:
    """One ledger, the releases beside it, and what stood there before the next death."""

    place: str
    outputs: Path
    read: Callable[[], Image]
    book: Path | None = None
    rows: list[tuple[int, str, str, str]] = field(default_factory=list)

    def examine(self, output: Path, code: int | None, errors: str = "") -> str:
        """How far a run had got that is over now; everything is checked before the ledger is opened again."""
        image = self.read()
        assert sorted(image.rows) == list(range(1, len(image.rows) + 1))
        assert [(number, *image.rows[number]) for number, *_ in self.rows] == self.rows
        check_outputs(self.outputs, image)
        new = [(image.places[number], image.files[number]) for number in image.files if number > len(self.rows)]
        assert len(new) <= 1
        if code is not None:
            assert (code, errors, len(new)) == (0, "", 1)
        if not new:
            return "reserved" if "reserved" in image.states else "not_reserved"
        assert new[0][0] == str(output)
        moved = output.exists() and hashlib.sha256(output.read_bytes()).hexdigest() == new[0][1]["sha256"]
        return "moved" if moved else "decided"

    def reopen(self) -> None:
        """Settles what is left: what had been decided, and nothing else, is now there and whole."""
        from cellrisk.repeat.ledger import Ledger

        image = self.read()
        there = "://" in self.place or Path(self.place).exists()  # else the process died before it had made one
        with Ledger(self.place, create=not there, wait=LONG) as ledger:
            ledger.verify()  # which changes nothing
            assert self.read() == image
            ledger.settle()
        rows, remarks = look(self.place, self.book, self.outputs)
        assert remarks == []
        assert rows == [(number, *image.rows[number]) for number in sorted(image.rows)]
        self.rows = rows


def keep_in_file(folder: Path) -> Record:
    """A ledger in a file, with a folder to itself."""
    place, outputs = folder / "book" / "releases.ledger", folder / "released"
    for each in (outputs, place.parent):
        each.mkdir(parents=True)
    return Record(str(place), outputs, partial(read_image, place), place.parent)


def keep_in_database(folder: Path, where: Where) -> Record:
    """A ledger in a database, read by SQL alone when the server is done with clients that are dead."""

    def read() -> Image:
        others = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'cellrisk'"
        deadline = time.monotonic() + LONG
        while where.execute(others):
            assert time.monotonic() < deadline, "a client that is dead is still connected"
            time.sleep(0.005)
        if where.execute("SELECT to_regclass('entries')") == [(None,)]:
            return Image({})
        rows = where.execute("SELECT number, previous, digest, body FROM entries")
        states = where.execute("SELECT state FROM pending")
        places = dict(where.execute("SELECT number, path FROM released_files"))
        return Image({number: tuple(rest) for number, *rest in rows}, tuple(state for (state,) in states), places)

    outputs = folder / "released"
    outputs.mkdir()
    return Record(where.address, outputs, read)
