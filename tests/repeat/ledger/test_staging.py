"""A release and its entry are written together, or neither: at any death, in any race, on any failing disk."""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import Release, files
from cellrisk.repeat.ledger import Entry, Ledger, staging
from cellrisk.repeat.ledger.backends import SqliteFile
from cellrisk.system import atomic
from tests.near import near
from tests.refusals import refused
from tests.repeat.ledger.conftest import Where
from tests.repeat.ledger.deaths import FIELDS, LEVELS, PEOPLE, make_set

ROOT = Path(__file__).resolve().parents[3]
STRIDE = 71
"""Lines between two deaths; all lines: python -m tests.repeat.ledger.deaths save PLACE FOLDER 1 1."""


@pytest.mark.parametrize("where", ["file", pytest.param("database", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize(
    "scenario", ["save", *(pytest.param(name, marks=pytest.mark.slow) for name in ("replace", "set"))]
)
def test_death_at_any_line(where: Where, output: Path, scenario: str) -> None:
    """File, description and entry, or none of them, after `recover` or the next save."""
    command = [
        sys.executable,
        "-m",
        "tests.repeat.ledger.deaths",
        scenario,
        where.address,
        str(output),
        "3",
        str(STRIDE),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert not told[-1]["died"]
    assert len(told) > 10
    before = 1 if scenario == "replace" else 0
    for each in told:
        assert (each["ok"], each["told"], each["hidden"]) == (True, [], []), each
        assert each["entries"] in (before, before + 1), each
        if each["entries"]:
            assert (each["there"], each["same"], each["described"]) == (True, True, True), each
        else:
            assert (each["there"], each["described"]) == (False, False), each
    assert {each["entries"] for each in told} == {before, before + 1}
    assert any(each["left"] for each in told)


def test_a_release_is_saved_with_its_entry(where: Where, released: Release, output: Path) -> None:
    with where.open() as ledger:
        entry = ledger.save(released, output / "released.csv", purpose="yearbook")
        assert (entry.number, entry.purpose, entry.attribute) == (2, "yearbook", "job")
        described = json.loads((output / "released.csv.json").read_text())
        assert described["ledger"] == {"id": ledger.id, "entry": 2, "digest": entry.digest}
        assert ledger.verify(folders=[output]).ok
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_a_set_is_one_entry_with_all_its_events(where: Where, output: Path) -> None:
    several = make_set()
    with where.open() as ledger:
        entry = ledger.save(several, output / "released")
        assert entry.loss is not None
        assert [event.kind for event in entry.loss.events] == ["geometric", "geometric"]
        assert entry.of_set
        assert ledger.verify(folders=[output]).ok
    assert sorted(os.listdir(output)) == ["released"]


@pytest.mark.parametrize(
    "mechanism", [cr.Geometric(epsilon=0.5), cr.DiscreteGaussian(epsilon=0.5, delta=1e-6)], ids=lambda one: one.name
)
@pytest.mark.parametrize("tables", [2, 6])
def test_one_release_has_one_ceiling_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mechanism: cr.Mechanism, tables: int
) -> None:
    """What the release prints, `ledger list` and `ledger plan`; and the same tables booked one by one."""
    people, levels = pd.DataFrame({**PEOPLE, "hand": list("lrr")}), {**LEVELS, "hand": ["l", "r"]}
    columns = ("sex", "town", "hand")
    qids = [*([name] for name in columns), *(list(pair) for pair in itertools.combinations(columns, 2))][:tables]
    used = {name for qid in qids for name in (*qid, "job")}
    several = cr.release_together(
        people,
        [{"qid": qid} for qid in qids],
        "job",
        levels={name: labels for name, labels in levels.items() if name in used},
        mechanism=mechanism,
    )
    assert several.ceiling is not None
    as_set, one_by_one = str(tmp_path / "set.db"), str(tmp_path / "single.db")
    with Ledger(as_set, create=True) as ledger:
        ledger.save(several, tmp_path / "released")
    with Ledger(one_by_one, create=True) as ledger:
        for _ in range(tables):
            ledger.add(attribute="job", quasi_identifiers=["sex"], loss=mechanism)
    found = [several.ceiling.even_two]
    for place in (as_set, one_by_one):
        assert main(["ledger", "list", place, "--json"]) == 0
        [cohort] = json.loads(capsys.readouterr().out)["cohorts"]
        assert main(["ledger", "plan", place, "--epsilon", "0.5", "--json"]) == 0
        before = json.loads(capsys.readouterr().out)["before"]
        found += [cohort["ceiling"]["even_two"], before["ceiling"]["even_two"]]
    assert found == [near(found[0])] * 5


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_eight_writers_at_a_limit(where: Where, released: Release, output: Path, rounds: int) -> None:
    """In each round each tries to release; five fit. Never passed, never lost, and each file has its entry."""

    def write(number: int) -> bool:
        refused = None
        try:
            with Ledger(where.address, wait=120) as mine:
                mine.save(released, output / f"r{number}.csv")
        except InvalidInput as refusal:
            refused = refusal.code
        assert refused in (None, "limit")
        return refused is None

    for done_before in range(0, 5 * rounds, 5):
        with where.open() as ledger:
            ledger.set_limit("everyone", epsilon=(done_before + 5) / 10)
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(write, range(2 * done_before, 2 * done_before + 8)))
        with where.open(create=False) as ledger:
            assert (sum(done), len(ledger.entries(kind="release"))) == (5, done_before + 5)
            assert ledger.spent("everyone").epsilon == (done_before + 5) / 10
    with where.open(create=False) as ledger:
        assert ledger.verify(folders=[output]).ok
    assert len(os.listdir(output)) == 10 * rounds


def test_a_release_past_a_limit_leaves_nothing(where: Where, released: Release, output: Path) -> None:
    with where.open() as ledger:
        ledger.set_limit("everyone", epsilon=0.05)
        with refused("limit"):
            ledger.save(released, output / "released.csv")
        assert len(ledger.entries()) == 2
    assert os.listdir(output) == []


def fail_with(number: int) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("at", ["first file", "description", "renaming"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "fsync fails"])
def test_a_disk_that_fails_before_the_commit(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch, at: str, number: int
) -> None:
    """A clear refusal, and nothing is left: no file, no entry."""
    with where.open() as ledger:
        ledger.declare("everyone")
        if at == "renaming":
            monkeypatch.setattr(staging.Draft, "seal", fail_with(number))
        else:
            calls: list[int] = []

            def write(handle: int, content: bytes) -> None:
                calls.append(handle)
                if len(calls) == (1 if at == "first file" else 2):
                    fail_with(number)()
                atomic.write_through(handle, content)

            monkeypatch.setattr(files, "write_through", write)
        with refused("output"):
            ledger.save(released, output / "released.csv")
        monkeypatch.undo()
        assert os.listdir(output) == []
        assert len(ledger.entries()) == 1
        ledger.save(released, output / "released.csv")
        assert ledger.verify(folders=[output]).ok


def test_files_that_cannot_be_moved_are_finished_by_recover(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with where.open() as ledger:
        monkeypatch.setattr(staging.os, "replace", fail_with(errno.EROFS))
        with refused("not-moved"):
            ledger.save(released, output / "released.csv")
        monkeypatch.undo()
        found = ledger.verify(folders=[output])
        assert found.ok
        assert any("not in its place yet" in remark.text for remark in found.remarks)
        assert ledger.recover(output).finished == ("released.csv",)
        assert ledger.verify(folders=[output]).remarks == ()
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_can_be_read_only(where: Where, released: Release, output: Path) -> None:
    output.chmod(0o500)
    with where.open() as ledger:
        with refused("output"):
            ledger.save(released, output / "released.csv")
        assert ledger.entries() == ()


def test_a_folder_that_takes_no_new_names(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with where.open() as ledger:
        monkeypatch.setattr(Path, "mkdir", fail_with(errno.EROFS))
        with refused("output"):
            ledger.save(released, output / "released.csv")
        monkeypatch.undo()
        assert ledger.entries() == ()
    assert os.listdir(output) == []


def test_an_answer_that_was_lost_is_asked_for(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was done, and its answer did not come: the entry stands, so the file is moved into its place."""
    write = Ledger._write

    @contextmanager
    def lose_answer(ledger: Ledger) -> Any:
        with write(ledger) as session:
            before = session.head.number
            yield session
        if session.head.number > before:
            raise InvalidInput("the connection to the ledger was lost")

    with in_file.open() as ledger:
        ledger.declare("everyone")
        monkeypatch.setattr(Ledger, "_write", lose_answer)
        with pytest.raises(InvalidInput, match="the connection to the ledger was lost"):
            ledger.save(released, output / "released.csv")
        monkeypatch.undo()
        assert len(ledger.entries()) == 2
        assert ledger.verify(folders=[output]).ok
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_what_a_living_process_stages_is_left_alone(in_file: Where, released: Release, output: Path) -> None:
    with in_file.open() as ledger:
        alive = staging.Draft(output / "other.csv", ledger.id)
        alive.stage("other.csv", b"half of it")
        assert ledger.recover(output) == ((), 0, 1)
        ledger.save(released, output / "released.csv")
        assert alive.path.exists()
        alive.close()
        assert ledger.recover(output) == ((), 1, 0)
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_a_draft_is_removed_only_while_nobody_can_lock_it(
    in_file: Where, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process makes its draft, `recover` takes it for dead, and the process goes on with another draft."""
    with in_file.open() as ledger:
        lock, held = staging.try_lock, []

        def lock_late(handle: int) -> bool:
            monkeypatch.setattr(staging, "try_lock", lock)
            held.append(ledger.recover(output))  # between the making of the lock's file and its locking
            return lock(handle)

        monkeypatch.setattr(staging, "try_lock", lock_late)
        draft = staging.Draft(output / "released.csv", ledger.id)
        assert held == [((), 1, 0)]
        draft.stage("released.csv", b"counts")
        assert ledger.recover(output) == ((), 0, 1)
        draft.close()
        for name in ("a" * 32, "b" * 32):  # dead before its lock was made, and while it was sealed
            (output / f".{ledger.id}.{name}.part").mkdir()
        (output / f".{ledger.id}.{'b' * 32}.part" / "released.csv").touch()
        assert ledger.recover(output) == ((), 3, 0)
    assert os.listdir(output) == []


def test_a_release_that_its_own_process_finishes_meanwhile_stops_nobody(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are moved after the commit, while the next writer may already look at them."""
    with where.open() as ledger:
        monkeypatch.setattr(staging.os, "replace", fail_with(errno.EROFS))
        with refused("not-moved"):
            ledger.save(released, output / "first.csv")
        monkeypatch.undo()
        fits = staging._fits

        def finish_first(entry: Entry, identity: str, path: Path) -> bool:
            files.publish(path, path.parent)
            return fits(entry, identity, path)

        monkeypatch.setattr(staging, "_fits", finish_first)
        ledger.save(released, output / "second.csv")
        assert ledger.verify(folders=[output]).ok
    assert sorted(os.listdir(output)) == [f"{name}.csv{end}" for name in ("first", "second") for end in ("", ".json")]


def test_large_files_are_staged_before_the_ledger_is_locked(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    stage, begin = staging.Draft.stage, SqliteFile.begin
    monkeypatch.setattr(staging.Draft, "stage", lambda self, name, data: (seen.append(name), stage(self, name, data)))
    locked = {True: [], False: ["locked"]}
    monkeypatch.setattr(
        SqliteFile, "begin", lambda self, to, reading: (seen.extend(locked[reading]), begin(self, to, reading))[1]
    )
    with in_file.open() as ledger:
        ledger.declare("everyone")
        seen.clear()
        ledger.save(released, output / "released.csv")
    assert seen == ["released.csv", "locked", "released.csv.json"]


def test_a_place_that_is_taken_meanwhile_is_not_replaced(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staging.Draft.stage

    def stage_late(draft: staging.Draft, name: str, data: bytes) -> None:
        stage(draft, name, data)
        (output / "released.csv").write_text("somebody else's")

    monkeypatch.setattr(staging.Draft, "stage", stage_late)
    with in_file.open() as ledger:
        with pytest.raises(InvalidInput, match="the output path exists"):
            ledger.save(released, output / "released.csv")
        assert ledger.entries() == ()
    assert (output / "released.csv").read_text() == "somebody else's"
    assert os.listdir(output) == ["released.csv"]


def test_what_is_staged_is_private(in_file: Where, released: Release, output: Path) -> None:
    with in_file.open() as ledger:
        draft = staging.Draft(output / "released.csv", ledger.id)
        draft.stage("released.csv", b"counts")
        modes = {path.name: path.stat().st_mode & 0o777 for path in (draft.path, draft.path / "released.csv")}
        assert sorted(modes.values()) == [0o600, 0o700]
        draft.close()


@pytest.mark.parametrize("given", [None, 5, "released.csv"])
def test_only_a_release_is_saved(in_file: Where, output: Path, given: Any) -> None:
    with in_file.open() as ledger, refused("no-release"):
        ledger.save(given, output / "released.csv")


def test_the_command(tmp_path: Path, released: Release, capsys: pytest.CaptureFixture[str]) -> None:
    place, folder = str(tmp_path / "l.db"), tmp_path / "out"
    folder.mkdir()
    with Ledger(place, create=True) as ledger:
        ledger.add(**FIELDS)
        draft = staging.Draft(folder / "released.csv", ledger.id)
        draft.close()
    assert main(["ledger", "recover", place, str(folder)]) == 0
    assert "Removed: 1 release without an entry." in capsys.readouterr().out
    assert main(["ledger", "recover", place, str(tmp_path / "nowhere")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
