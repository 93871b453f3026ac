"""How a ledger bears deaths, crowds, full disks, damaged bytes and bad clocks.

Small in `make check`; `make soak` sets CELLRISK_SOAK=full and runs the sizes that reliability is stated for.
"""

from __future__ import annotations

import json
import pickle
import random
import statistics
from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import Entry, Ledger
from tests.ledger.conftest import Where
from tests.ledger.deaths import GEOMETRIC
from tests.ledger.launcher import Launcher, Run, launched
from tests.ledger.soak import LONG, PEOPLE, chosen, keep_in_database, keep_in_file, look, make_command

SEED = 6

Report = Callable[..., None]


@pytest.fixture
def report(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Report:
    """Numbers for the record, and on one line of the terminal."""

    def tell(what: str, **numbers: object) -> None:
        for name, number in numbers.items():
            record_property(name, number)
        shown = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in numbers.items())
        terminal, capture = map(request.config.pluginmanager.get_plugin, ("terminalreporter", "capturemanager"))
        if terminal is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                terminal.write_line(f"\nsoak: {what}: {shown}")

    return tell


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    with launched(tmp_path_factory.mktemp("scratch")) as found:
        yield found


@pytest.fixture(autouse=True)
def state(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journals stand where the launcher's processes have them."""
    folder = launcher.scratch / "state"
    monkeypatch.setenv("CELLRISK_STATE", str(folder))
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "people.csv"
    path.write_text(PEOPLE, encoding="utf-8")
    return path


# Death at any moment.


SPANS: dict[str | None, float] = {None: 0.35, "reserve": 0.2, "save": 0.2, "decide": 0.25}
"""From where on deaths are spread evenly, until all is saved, and how large a share of them."""


DEATHS = {"reserve": "not_reserved", "save": "reserved", "decide": "reserved", "decided": "decided", "saved": "moved"}
"""What is left by a death at the very mark."""
OUTCOMES = {
    None: {"not_reserved"},
    "reserve": {"not_reserved", "reserved"},
    "save": {"reserved"},
    "decide": {"reserved", "decided"},
    "decided": {"decided", "moved"},
    "saved": {"moved"},
}
"""What may be left by a death after a mark and before the next one."""


class Pace:
    """How long each span takes undisturbed, by the last runs that came to their end: the machine may be busy or not."""

    def __init__(self) -> None:
        self.runs: deque[Run] = deque(maxlen=5)

    def draw(self, mark: str | None, draw: random.Random) -> float:
        """A moment, any as likely as any other."""
        spans = [run.marks["saved"] - (run.marks[mark] if mark else 0.0) for run in self.runs]
        return draw.uniform(0, statistics.median(spans))


@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_death_at_any_moment_leaves_file_and_entry_or_neither(
    launcher: Launcher,
    source: Path,
    tmp_path: Path,
    report: Report,
    request: pytest.FixtureRequest,
    kind: str,
) -> None:
    in_file, draw = kind == "file", random.Random(SEED)
    wanted = chosen(12, 500) if in_file else chosen(len(DEATHS), 60)
    if in_file:
        lasting = keep_in_file(tmp_path / "lasting")
    else:
        lasting = keep_in_database(tmp_path, request.getfixturevalue("in_database"))
        Ledger(lasting.place, create=True).close()
    pace = Pace()
    pace.runs.append(launcher.run(make_command(source, lasting.place, lasting.outputs / "first.csv")))
    lasting.reopen()
    checking = launcher.run(["ledger", "settle", lasting.place]).marks["end"]
    outcomes: Counter[str] = Counter(dict.fromkeys([*DEATHS.values(), "finished", "while_recovering"], 0))
    for mark, left in DEATHS.items():
        output = lasting.outputs / f"{mark}.csv"
        run = launcher.run(make_command(source, lasting.place, output), mark, 0)
        assert (run.code, lasting.examine(output, None)) == (None, left)
        outcomes[left] += 1
        cleaner = launcher.run(["ledger", "settle", lasting.place], "settle", 0)
        assert (cleaner.code, lasting.examine(output, None)) == (None, left)
        outcomes["while_recovering"] += 1
        lasting.reopen()
        assert output.exists() == (left in ("decided", "moved"))
    number = 0
    while sum(outcomes[name] for name in {*DEATHS.values()}) < wanted:
        number += 1
        record = keep_in_file(tmp_path / f"new{number}") if draw.random() < 0.1 and in_file else lasting
        again = draw.random() < 0.25  # a file that is there is replaced
        output = record.outputs / ("replaced.csv" if again else f"released{number}.csv")
        mark = draw.choices(list(SPANS), list(SPANS.values()))[0]
        command = make_command(source, record.place, output, *["--force"] * again)
        run = launcher.run(command, mark, pace.draw(mark, draw) if number % 25 else None)
        outcome = record.examine(output, run.code, run.errors)
        passed = [mark for mark in OUTCOMES if mark in run.marks]
        assert outcome in OUTCOMES[passed[-1] if passed else None], passed
        assert run.code is None or passed == [*DEATHS]
        outcomes[outcome if run.code is None else "finished"] += 1
        if run.code is not None:
            pace.runs.append(run)
        if draw.random() < 0.2 and record.rows:  # who cleans up may die too
            cleaner = launcher.run(["ledger", "settle", record.place], after=draw.uniform(0, checking))
            assert (cleaner.code, cleaner.errors) in ((None, ""), (0, ""))
            outcomes["while_recovering"] += cleaner.code is None
            record.examine(output, None)
        record.reopen()
    assert launcher.run(make_command(source, lasting.place, lasting.outputs / "last.csv")).code == 0
    lasting.reopen()
    assert list((launcher.scratch / "state").rglob("*-*")) == []
    report(f"kill -9 during release --ledger, {kind}", kills=wanted, entries=len(lasting.rows), **outcomes)


# Many at once.


def make_jobs(source: Path, place: str, outputs: Path, batch: int, number: int) -> list[tuple[str, list[str]]]:
    """A mix: entries and releases, through the API and by command."""
    draw, jobs = random.Random(batch), []
    ways = ["add"] * 5 + ["save"] * 3 + ["add by command", "release by command"]
    if batch % chosen(4, 1):  # a command takes as long as many calls
        ways[-2:] = ["add", "save"]
    for each in range(number):
        way, output = ways[each % len(ways)], outputs / f"released{batch}-{each}.csv"
        given = {
            "save": [str(output)],
            "release by command": make_command(source, place, output),
            "add by command": [
                *("ledger", "add", place, "--attribute", "job", "--qid", "sex"),
                *("--mechanism", "geometric", "--epsilon", "0.1", "--wait", str(LONG)),
            ],
        }
        jobs.append((way, given.get(way, [])))
    draw.shuffle(jobs)
    return jobs


def add_together(
    launcher: Launcher, source: Path, released: Release, tmp_path: Path, place: str, processes: int, each: int
) -> tuple[list[tuple[str, list[str]]], list[tuple[int, str]]]:
    """What was to be done by processes that all begin at once, and how it ended."""
    (tmp_path / "released.pickle").write_bytes(pickle.dumps(released))
    outputs = tmp_path / "released"
    outputs.mkdir()
    batches = [make_jobs(source, place, outputs, batch, each) for batch in range(processes)]
    ends = launcher.order("together", place=place, batches=batches, released=str(tmp_path / "released.pickle"))
    assert None not in ends
    return [job for batch in batches for job in batch], [(code, errors) for batch in ends for code, errors in batch]


@pytest.mark.parametrize(
    ("kind", "limited"),
    [("file", False), ("file", True), ("database", False), ("database", True)],
    ids=["file", "file with a limit", "database", "database with a limit"],
)
def test_many_processes_add_at_once(
    launcher: Launcher,
    source: Path,
    released: Release,
    tmp_path: Path,
    report: Report,
    request: pytest.FixtureRequest,
    kind: str,
    limited: bool,
) -> None:
    book = tmp_path / "book"
    book.mkdir()
    database: Where | None = request.getfixturevalue("in_database") if kind == "database" else None
    place = database.address if database else str(book / "releases.ledger")
    processes, each = (4, 10) if database else chosen((4, 10), (8, 125))
    wanted = processes * each
    allowed = wanted * 3 // 5 if limited else wanted
    with Ledger(place, create=True) as ledger:
        if limited:
            ledger.set_limit("everyone", epsilon=allowed / 10)
    jobs, ends = add_together(launcher, source, released, tmp_path, place, processes, each)
    rows, remarks = look(place, None if database else book, tmp_path / "released")
    assert remarks == []
    assert Counter(code for code, _ in ends) == Counter({0: allowed, 2: wanted - allowed})
    assert sum(json.loads(body)["kind"] == "release" for *_, body in rows) == allowed
    assert len(rows) == allowed + (2 if limited else 1)
    for code, errors in ends:
        assert [line for line in errors.splitlines() if "would exceed the limit" in line] == errors.splitlines()
        assert len(errors.splitlines()) == (1 if code else 0)
    saved = sum(
        code == 0 and ("save" in way or "release" in way) for (way, _), (code, _) in zip(jobs, ends, strict=True)
    )
    assert len(list((tmp_path / "released").iterdir())) == 2 * saved
    report(
        f"{processes} processes at once, {kind}{', limit' if limited else ''}",
        tried=wanted,
        entered=allowed,
        with_files=saved,
        refused=wanted - allowed,
    )


# A full disk.

ROOM = {"both": chosen((0, 12, 20), range(48)), "ledger": chosen((), range(48)), "output": chosen((), range(12))}
"""How many blocks are left, release after release."""


@pytest.mark.parametrize("full", [name for name, room in ROOM.items() if room])
def test_a_disk_that_fills(launcher: Launcher, source: Path, tmp_path: Path, report: Report, full: str) -> None:
    """A disk that is really full: that of the ledger, of the output, or of both."""
    if not launcher.has_disk:
        pytest.skip("no small disk can be mounted: user namespaces are not permitted here")
    book = (tmp_path if full == "output" else launcher.disk) / f"{full}-book"
    outputs = (tmp_path if full == "ledger" else launcher.disk) / f"{full}-released"
    place, codes = book / "releases.ledger", Counter[int | None]()
    for folder in (book, outputs):
        launcher.order("make", folder=str(folder))

    def see() -> list[Any]:
        rows = launcher.order("look", place=str(place), folder=str(book), outputs=str(outputs))
        assert isinstance(rows, list), rows
        return rows

    assert launcher.run(make_command(source, place, outputs / "first.csv", new=True)).code == 0
    rows = see()
    for blocks in ROOM[full]:
        left = launcher.order("fill", folder=str(launcher.disk), left=4096 * blocks)
        run = launcher.run(make_command(source, place, outputs / f"released{blocks}.csv", new=False))
        launcher.order("clear", folder=str(launcher.disk))
        before, rows = rows, see()
        codes[run.code] += 1
        assert left == 4096 * blocks
        assert rows[: len(before)] == before
        if run.code == 0:
            assert (run.errors, len(rows)) == ("", len(before) + 1)
        else:
            assert (run.code, len(run.errors.splitlines())) == (2, 1), run.errors
            assert rows == before, f"{blocks} blocks left: {run.errors}"
    assert codes.keys() == {0, 2}
    last = launcher.run(make_command(source, place, outputs / "last.csv", new=False))
    assert (last.code, last.errors, len(see())) == (0, "", len(rows) + 1)
    report(f"a full disk, {full}", refused=codes[2], written=codes[0] + 2)


# A byte that changed.


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, tuple[Entry, ...]]:
    """The file of a ledger with all kinds of entries, on several pages."""
    path = tmp_path_factory.mktemp("sound") / "sound.ledger"
    with Ledger(path, create=True) as ledger:
        ledger.set_limit("everyone", epsilon=100)
        ledger.declare("north", part_of="everyone")
        for number in range(40):
            cohort = "north" if number % 3 else "everyone"
            ledger.add(attribute=f"y{number}", quasi_identifiers=["age"], loss=GEOMETRIC, cohort=cohort)
        entries = ledger.entries()
    return path.read_bytes(), entries


CODES = {"harmless": 0, "refused": 2, "reported": 3}
"""How `ledger verify` ends, by what is found."""
KNOWN = {0: "refused", 80: "harmless"}
"""Bytes of SQLite's header: the first of its name, and one that is kept for later and not read."""


def test_a_byte_that_changed_is_reported_or_harmless(
    sound: tuple[bytes, tuple[Entry, ...]], tmp_path: Path, report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    content, expected = sound
    spans = {entry.number: (content.index(entry.body.encode()), len(entry.body)) for entry in expected}
    assert expected
    assert all(content.count(entry.body.encode()) == 1 for entry in expected)
    wanted, draw, path = chosen(25, 300), random.Random(SEED), tmp_path / "damaged.ledger"
    outcomes: Counter[str] = Counter(dict.fromkeys([*CODES, "in_a_body"], 0))
    for flip in range(wanted):
        if flip < len(KNOWN):
            place = list(KNOWN)[flip]
        elif flip % 2:
            start, length = spans[draw.choice(list(spans))]
            place = start + draw.randrange(length)
        else:
            place = draw.randrange(len(content))
        hit = [number for number, (start, length) in spans.items() if start <= place < start + length]
        damaged = bytearray(content)
        damaged[place] ^= draw.randrange(1, 256)
        path.write_bytes(damaged)
        outcome, named = examine_damage(path, expected)
        outcomes[outcome] += 1
        assert outcome == KNOWN.get(place, outcome)
        if flip % 5 == 0:
            path.write_bytes(damaged)
            code = main(["ledger", "verify", str(path)])
            said = capsys.readouterr()
            assert (code, len(said.err.splitlines())) == (CODES[outcome], 1 if code else 0), said
        if hit:
            outcomes["in_a_body"] += 1
            assert (outcome, named) == ("reported", set(hit)), f"byte {place}"
        for beside in tmp_path.glob("damaged.ledger*"):
            beside.unlink()
    assert outcomes["reported"] >= outcomes["in_a_body"] >= (wanted - len(KNOWN)) // 2
    assert sum(outcomes[outcome] for outcome in CODES) == wanted
    report("one byte changed", flips=wanted, **outcomes)


def examine_damage(path: Path, expected: tuple[Entry, ...]) -> tuple[str, set[int | None]]:
    """What is said of a damaged file, and which entries are named; anything but a refusal would come through."""
    try:
        with Ledger(path, create=False, wait=1) as ledger:
            found = ledger.verify()
            if not found.ok:
                assert str(found)
                return "reported", {problem.entry for problem in found.problems}
            assert [entry.body for entry in ledger.entries()] == [entry.body for entry in expected]
            assert ledger.entries() == expected
    except CellriskError as refusal:
        return "refused" if len(str(refusal).splitlines()) == 1 else "refused at length", set()
    return "harmless", set()


# A clock that goes backwards.


def test_a_clock_that_goes_backwards(tmp_path: Path, released: Release, report: Report) -> None:
    wanted, draw = chosen(30, 300), random.Random(SEED)
    now, told = datetime(2026, 1, 1, tzinfo=timezone.utc), []

    def tell_time() -> datetime:
        nonlocal now
        now += timedelta(seconds=draw.choice([3600.0, 1.5, 0.0, -0.25, -86400.0]))
        return now

    place, outputs = tmp_path / "book" / "releases.ledger", tmp_path / "released"
    for folder in (outputs, place.parent):
        folder.mkdir()
    Ledger(place, create=True).close()
    for number in range(wanted):
        with Ledger(place, clock=tell_time) as ledger:
            if number % 5 == 0:
                told.append(ledger.set_limit("everyone", epsilon=100 + number))
            elif number % 5 == 1:
                fields = {"attribute": "job", "quasi_identifiers": ["sex"], "loss": GEOMETRIC}
                with ledger.reserve(**fields) as reservation:
                    told.append(reservation.save(released, outputs / f"released{number}.csv"))
            else:
                told.append(ledger.add(attribute="job", quasi_identifiers=["sex"], loss=GEOMETRIC, purpose=str(number)))
    rows, remarks = look(str(place), place.parent, outputs)
    with Ledger(place) as ledger:
        entries, limit = ledger.entries(), ledger.limit("everyone")
    assert [*entries[1:]] == told  # the cohort stands first
    assert limit is not None
    assert limit.epsilon == 100 + (wanted - 1) // 5 * 5
    behind = [after.number for before, after in pairwise(entries) if after.time < before.time]
    assert behind
    assert [remark.entry for remark in remarks] == behind
    assert all("the clock was" in remark.text for remark in remarks)
    report("a clock that goes backwards", entries=len(rows), backwards=len(behind))
