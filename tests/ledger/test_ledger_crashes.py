"""Processes that end in the middle, and notes that do not fit: what is left is finished, taken back, or left alone."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.publish.releasing.saving import Pair, StagedFolder
from cellrisk.repeat.ledger import Ledger, journals, pairing, store
from cellrisk.repeat.ledger.chain import Head, Row, compute_digest, find_breaks
from cellrisk.repeat.ledger.descriptions import compare_tables
from cellrisk.repeat.ledger.entry import LONGEST_PATH
from cellrisk.repeat.ledger.journals import Note
from cellrisk.repeat.ledger.store import Session
from tests.ledger.conftest import Where
from tests.ledger.deaths import FIELDS
from tests.ledger.test_ledger_pairing import Death, Fails
from tests.together.test_releasing import make


def die(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, release: Any, path: Path) -> None:
    """A process that saves a release and dies at the first call of a function."""
    fields = release.entry if hasattr(release, "entry") else FIELDS
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, Fails(getattr(owner, name), 1, Death()).as_method())
        reserving = ledger.reserve(**fields)
        reservation = reserving.__enter__()
        with pytest.raises(Death):
            reservation.save(release, path)
        reservation._journal.close()
        patch.setattr(type(reservation), "close", lambda reservation: None)
        reserving.__exit__(None, None, None)


def test_a_release_that_was_not_decided_is_taken_back(
    in_file: Where, released: Release, output: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        die(ledger, monkeypatch, Session, "change", released, output / "released.csv")
        assert len(os.listdir(output)) == 2  # both hidden
        assert ledger.settle() == ()
        assert ledger.entries() == ledger.pendings() == ()
    assert os.listdir(output) == os.listdir(state) == []


def test_a_journal_that_is_left_hides_no_file_that_was_changed(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process died after the move, so nothing is on its way any more."""
    with in_file.open() as ledger:
        die(ledger, monkeypatch, Session, "remove_pending", released, output / "released.csv")
        assert ledger.verify().ok
        (output / "released.csv").write_text("changed")
        assert [tuple(problem) for problem in ledger.verify().problems] == [
            (2, "its file released.csv is not what was released: it was changed")
        ]
        assert ledger.settle() == ()


def test_a_copy_does_not_take_back_what_is_only_reserved(in_file: Where, tmp_path: Path) -> None:
    assert in_file.file is not None
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        shutil.copy(in_file.file, tmp_path / "copy.ledger")
        reservation._journal.close()  # as if its process had died
        with Ledger(tmp_path / "copy.ledger") as copy:
            assert [pending.token for pending in copy.settle()] == [reservation.token]
        assert reservation._journal.path.exists()
        assert ledger.settle() == ()


def test_a_set_that_was_decided_is_finished(in_file: Where, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = make()
    with in_file.open() as ledger:
        die(ledger, monkeypatch, StagedFolder, "publish", tables, output / "released")
        (hidden,) = os.listdir(output)
        assert hidden.startswith(".")
        assert ledger.settle() == ()
        assert os.listdir(output) == ["released"]
        found = ledger.verify()
        assert (found.ok, found.remarks) == (True, ())
        (entry,) = ledger.entries(kind="release")
        assert entry.headline.startswith("Release of 2 tables of job by ")
        shown = str(entry).splitlines()
        assert [line.split()[:2] for line in shown if line.strip().startswith("table")] == [
            ["table", "1"],
            ["table", "2"],
        ]
        listed = output / "released" / "set.json"
        kept = listed.read_text(encoding="utf-8")
        listed.write_text(kept.replace("table-1.csv", "../table-1.csv"), encoding="utf-8")
        assert [problem.text for problem in ledger.verify().problems] == [
            "its file set.json is not what was released: it was changed"
        ]
        told = json.loads(kept)
        for text in ("", "[]", "{", json.dumps({"tables": told["tables"][:1]}), listed.read_text(encoding="utf-8")):
            listed.write_text(text, encoding="utf-8")  # whose digest an entry would have that somebody forged
            assert [*compare_tables(entry, ledger.id, listed)] == ["the list of its tables cannot be read"]
        listed.write_text(kept, encoding="utf-8")
        assert [*compare_tables(entry, ledger.id, listed)] == []


def test_a_place_that_is_taken_meanwhile_is_not_replaced(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Pair.stage
    taken = "another's"
    monkeypatch.setattr(Pair, "stage", lambda pair, *given: (stage(pair, *given), pair.target.write_text(taken))[0])
    with in_file.open() as ledger:
        with ledger.reserve(**FIELDS) as reservation, pytest.raises(InvalidInput, match="the output path exists"):
            reservation.save(released, output / "released.csv")
        assert ledger.entries() == ()
    assert os.listdir(output) == ["released.csv"]
    assert (output / "released.csv").read_text() == "another's"


def test_what_is_staged_lasts_before_it_is_decided(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    last, change = pairing.make_last, Session.change
    monkeypatch.setattr(pairing, "make_last", lambda folder: (done.append(str(folder)), last(folder))[1])
    monkeypatch.setattr(Session, "change", lambda *given: (done.append("decided"), change(*given))[1])
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        reservation.save(released, output / "released.csv")
    assert done == [str(output), "decided"]


def test_who_is_interrupted_before_anything_was_saved_is_told_nothing(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        reserving = ledger.reserve(**FIELDS)
        reservation = reserving.__enter__()
        with pytest.raises(InvalidInput, match="nothing was saved"):
            _ = reservation.outcome
        with monkeypatch.context() as patch:
            patch.setattr(Session, "remove_pending", Fails(Session.remove_pending, 1, KeyboardInterrupt()).as_method())
            with pytest.raises(KeyboardInterrupt) as stopped:
                reserving.__exit__(None, None, None)
        assert str(stopped.value) == ""
        assert ledger.settle() == ()


def test_journals_that_are_left_are_looked_at_one_by_one(in_file: Where, output: Path) -> None:
    """One that is another ledger's and one that is held stay; those of the dead go, with a reservation or without."""
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        made = {}
        for number, place in enumerate(("/another/place.ledger", ledger.place, ledger.place, ledger.place)):
            journal = journals.open_journal(ledger.id, f"{number:032x}", 0)
            journal.write(Note(place, output / "released.csv", "0" * 64))
            made[f"{number:032x}"] = journal
        for journal in (*list(made.values())[:1], *list(made.values())[2:]):
            journal.close()
        reservation._journal.close()
        looked = {reservation.token: reservation._journal.path, **{token: each.path for token, each in made.items()}}
        with ledger._store.write() as session:
            row = session.pendings()[0]
            session.reserve(row._replace(token=f"{2:032x}"))
        assert ledger.settle() == ()
        assert [path.exists() for path in looked.values()] == [False, True, True, False, False]
        for journal in made.values():
            journal.remove()


def test_a_reservation_that_is_left_says_who_and_since_when(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    noon = datetime(2024, 3, 31, 12, tzinfo=timezone.utc)
    monkeypatch.setattr("platform.node", lambda: "h" * 300)
    with in_file.open(clock=lambda: noon) as ledger:
        ledger.declare("everyone")
        with ledger.reserve(**FIELDS) as reservation:
            assert [tuple(remark) for remark in ledger.verify().remarks] == [
                (
                    None,
                    f"reservation {reservation.token} is being written since 2024-03-31T12:00:00.000000+00:00 on "
                    f"{'h' * 200}: reserved, and counts as spent",
                )
            ]
        assert ledger.verify().headline.startswith("The ledger is whole: 1 entry, each as it was written")


def test_a_clock_that_is_a_little_behind_is_noted(in_file: Where) -> None:
    noon = datetime(2024, 3, 31, 12, tzinfo=timezone.utc)
    times = iter([noon, noon, noon - timedelta(seconds=0.25)])
    with in_file.open(clock=lambda: next(times)) as ledger:
        ledger.declare("first")
        assert ledger.declare("second").clock_behind == pytest.approx(0.25, abs=1e-9)


TABLES = {
    "ledger": "id TEXT, what TEXT, schema_version INTEGER, created TEXT, number INTEGER, digest TEXT",
    "entries": "number INTEGER, previous TEXT, digest TEXT, body TEXT",
    "pending": "token TEXT, state TEXT, body TEXT",
    "released_files": "number INTEGER, path TEXT, salt TEXT",
}


def test_tables_stay_as_they_were_published(in_file: Where) -> None:
    """Ledgers of earlier versions have them letter for letter; others would be told as made anew."""
    in_file.open().close()
    for name, columns in TABLES.items():
        ((made,),) = in_file.execute(f"SELECT sql FROM sqlite_master WHERE type = 'table' AND name = '{name}'")
        told = ", ".join(f"{column} NOT NULL" for column in columns.split(", "))
        assert made.split() == f"CREATE TABLE {name} ( {told}, PRIMARY KEY ({columns.split()[0]}) )".split()


def test_the_format_of_a_ledger_stays(in_file: Where, tmp_path: Path) -> None:
    """What files of earlier versions have: the letters in their header, and salts that nobody guesses."""
    assert in_file.file is not None
    (tmp_path / "a.csv").write_text("1\n")
    with in_file.open() as ledger:
        assert in_file.file.read_bytes()[68:72] == b"crlg"
        ledger.add(**FIELDS, file=tmp_path / "a.csv")
        ((salt,),) = in_file.execute("SELECT salt FROM released_files")
        assert len(bytes.fromhex(salt)) == 16
        in_file.execute("PRAGMA journal_mode=DELETE")  # as VACUUM INTO leaves a copy
        ledger.declare("others")
        assert in_file.execute("PRAGMA journal_mode") == [("wal",)]


def test_rows_that_are_too_long_or_no_text_are_passed_over(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = "/" * LONGEST_PATH
    with in_file.open() as ledger:
        length = len(ledger.declare("everyone").body)
        in_file.execute(
            f"INSERT INTO released_files VALUES (2, '{longest}', 's'), (3, '{longest}/', 's'), (4, x'ff', 's'), "
            "(5, '/a', x'ff')"
        )
        with ledger._store.read() as session:
            assert list(session.whereabouts()) == list(session.whereabouts(2)) == [2]
            assert session.whereabouts(3) == {}
        monkeypatch.setattr(store, "LONGEST_BODY", length)
    with in_file.open() as ledger:
        assert len(ledger.entries()) == 1
        monkeypatch.setattr(store, "LONGEST_BODY", length - 1)
    with in_file.open() as ledger, pytest.raises(InvalidInput, match="an entry cannot be read; got entry 1"):
        ledger.entries()


def make_chain(length: int) -> list[Row]:
    rows, previous = [], "7f" * 16
    for number in range(1, length + 1):
        body = json.dumps({"n": number})
        rows.append(Row(number, previous, compute_digest(number, previous, body), body))
        previous = rows[-1].digest
    return rows


@pytest.mark.parametrize("moved", [-1, 1, 2, 6])
def test_entries_that_were_moved_are_known_without_the_one_before(moved: int) -> None:
    """Entry 3 is gone, so nothing says which number the next had; it is tried out."""
    rows = make_chain(6)
    left = [*rows[:2], *(row._replace(number=row.number + moved) for row in rows[3:])]
    head = Head("7f" * 16, 3, "", 6 + moved, rows[-1].digest)
    told = {problem.entry: problem.text for problem in find_breaks(left, head)}
    for row in rows[3:]:
        assert told[row.number + moved] == f"was written as entry {row.number}: entries were moved"


def test_what_is_logged_of_a_ledger_holds_nothing_of_it(in_file: Where, caplog: pytest.LogCaptureFixture) -> None:
    """An application that lets SQLAlchemy tell what it does gets statements, and nothing that stands in the ledger."""
    with in_file.open() as ledger, caplog.at_level("INFO", logger="sqlalchemy"):
        ledger.add(**FIELDS, purpose="a purpose of our own")
    assert "INSERT INTO entries" in caplog.text
    assert "of our own" not in caplog.text


def test_where_state_is_kept_on_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(journals.STATE)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", "win32")
        patch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        assert journals.state_folder() == tmp_path / "local" / "cellrisk"
        patch.delenv("LOCALAPPDATA")
        assert journals.state_folder() == tmp_path / "AppData" / "Local" / "cellrisk"

    def fail() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(InvalidInput, match="this user has no home; name a private folder in CELLRISK_STATE"):
        journals.state_folder()
