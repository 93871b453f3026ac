"""What is at the edge of a ledger: the longest texts, the narrowest moments, and what is told of each error."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cellrisk.cli.ledgers import LedgerOptions
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.publish.releasing.saving import Pair
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger, book, descriptions, heads, journals, places, store
from cellrisk.repeat.ledger.entry import LONGEST_PATH, BookedTable, ReleasedFile, check_text, read_json
from cellrisk.repeat.ledger.heads import write_head
from cellrisk.repeat.ledger.places import DatabasePlace, FilePlace
from cellrisk.repeat.ledger.store import Session, Store
from cellrisk.system import stopping
from tests.ledger.conftest import Where
from tests.ledger.deaths import FIELDS
from tests.ledger.test_ledger_pairing import die_before_the_move

# Lengths.


def test_the_longest_texts_are_taken_and_no_longer_ones() -> None:
    assert check_text("x", "a" * 7, 7) == "a" * 7
    with pytest.raises(InvalidInput, match="too long"):
        check_text("x", "a" * 8, 7)
    most = 4 * 1024 * 1024  # four megabytes
    assert len(read_json(f'"{"x" * (most - 2)}"')) == most - 2
    with pytest.raises(InvalidInput, match="too long; got 4,194,305 characters"):
        read_json(f'"{"x" * (most - 1)}"')
    whole: dict[str, Any] = {"name": "a" * LONGEST_PATH, "path": "/" * LONGEST_PATH, "sha256": "0" * 64, "bytes": 0}
    assert ReleasedFile(**whole).bytes == 0
    for wrong in (
        {"name": "a" * (LONGEST_PATH + 1)},
        {"name": 5},
        {"path": "/" * (LONGEST_PATH + 1)},
        {"path": 5},
        {"bytes": -1},
        {"bytes": True},
        {"bytes": 1.0},
        {"sha256": "0" * 63},
        {"sha256": "0" * 63 + "g"},
        {"sha256": 5},
        {"place": "0" * 65},
        {"description": "F" * 64},
    ):
        with pytest.raises(InvalidInput, match="a released file has"):
            ReleasedFile(**{**whole, **wrong})


def test_an_entry_that_is_too_long_is_refused(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_file.open() as ledger:
        ledger.declare("everyone")
        length = len(ledger.add(**FIELDS).body)
        monkeypatch.setattr(book, "LONGEST_BODY", length)
        assert len(ledger.add(**FIELDS).body) == length
        monkeypatch.setattr(book, "LONGEST_BODY", length - 1)
        with pytest.raises(InvalidInput, match=r"the entry is too long; got .* name fewer columns"):
            ledger.add(**FIELDS)
        assert len(ledger.entries()) == 3


def test_a_command_waits_as_long_as_the_library(in_file: Where) -> None:
    with in_file.open() as ledger:
        assert ledger._store.place.wait == LedgerOptions.wait == 30


def test_tables_of_a_set_are_told_on_one_line_each() -> None:
    table = BookedTable(("age", "se\nx"), Loss.pure(0.5), name="the\nold", where="age from 18")
    assert table.describe() == '"the old": age, se x; age from 18, at 0.5-DP'
    assert BookedTable(("age",), Loss.pure(0.5)).describe() == "age, at 0.5-DP"


# Files that a ledger names.


def test_of_a_file_that_grows_only_its_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "grows"
    path.write_bytes(b"0123456789")
    assert descriptions.digest_regular(path, 10) == hashlib.sha256(b"0123456789").hexdigest()
    assert descriptions.digest_regular(path, 9) == ""
    monkeypatch.setattr(descriptions, "BLOCK", 3)
    assert descriptions.digest_regular(path, 10) == hashlib.sha256(b"0123456789").hexdigest()
    monkeypatch.setattr(descriptions, "_size", lambda stream: 4)
    assert descriptions.digest_regular(path, 4) == hashlib.sha256(b"0123").hexdigest()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"0123456789")
    monkeypatch.setattr(descriptions, "LARGEST", 10)
    assert descriptions.read_regular(path) == b"0123456789"
    monkeypatch.setattr(descriptions, "LARGEST", 9)
    assert descriptions.read_regular(path) is None
    assert descriptions.read_regular(tmp_path / "a\0b") is None
    assert descriptions.digest_regular(tmp_path / "a\0b", 1) is None


def test_a_file_that_is_exchanged_for_a_pipe_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, open_file = tmp_path / "file", os.open

    def exchange(name: str, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return open_file(name, flags)

    before = len(os.listdir("/proc/self/fd"))
    for read in (descriptions.read_regular, lambda path: descriptions.digest_regular(path, 0)):
        path.unlink(missing_ok=True)
        path.touch()
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", exchange)
            assert read(path) is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_descriptions_tell_what_is_lost(in_file: Where, tmp_path: Path) -> None:
    with in_file.open() as ledger:
        named = json.dumps({"ledger": {"id": ledger.id, "entry": 9, "digest": "0" * 64}})
        for name in (".a.csv.json", "a.txt", "a.json"):  # what is staged, and what cellrisk does not write
            (tmp_path / name).write_text(named)
        for number, text in enumerate(
            (
                named.replace("9", '"9"'),
                named.replace("9", "true"),
                json.dumps({"ledger": {"id": "0" * 32, "entry": 9, "digest": ledger.id}}),
                json.dumps({"ledger": {"id": ledger.id, "entry": 9, "digest": 5}}),
                json.dumps({"ledger": [ledger.id]}),
                f"{ledger.id} [",
            )
        ):
            (tmp_path / f"{number}.csv.json").write_text(text)
        assert ledger.verify().ok
        (tmp_path / "b.Parquet.JSON").write_text(named)
        assert [problem.text for problem in ledger.verify().problems] == [
            "the ledger lacks entry 9, which the description of b.Parquet.JSON names: it is older than that release, "
            "restored from a copy, or it was rewritten"
        ]


# Heads.


def test_a_head_is_noted_once(in_file: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = tmp_path / "head"
    monkeypatch.setenv(heads.VARIABLE, str(head))  # and named a second time below
    with in_file.open(head=head) as ledger:
        ledger.declare("everyone")
        assert ledger.note_head() == ledger.note_head() == write_head(ledger.head)
        assert head.read_text() == write_head(ledger.head) + "\n"
        head.write_text("f" * 32 + head.read_text()[32:])  # of another ledger
        for each in ledger._store.heads:
            assert each.last(ledger.id) is None
        assert [problem.text for problem in ledger.verify().problems] == [
            "nothing is noted of this ledger in the file that keeps its head: it may have been exchanged"
        ]


def test_a_head_that_cannot_be_noted_stops_those_who_write(
    in_file: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = tmp_path / "head"
    with in_file.open(head=head) as ledger:
        ledger.declare("everyone")
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda path, mode: path != head)
            with pytest.raises(InvalidInput, match="the ledger's head cannot be noted there"):
                ledger.declare("others")
            with pytest.raises(InvalidInput, match="the ledger's head cannot be noted there"):
                Ledger(tmp_path / "new", create=True, head=head)
        assert len(ledger.entries()) == 1
        with monkeypatch.context() as patch:
            patch.setattr(heads, "write_through", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            with pytest.raises(InvalidInput, match=r"entry 2 stands in the ledger, but could not be noted .*No space"):
                ledger.declare("others")
        assert len(ledger.entries()) == 2
        monkeypatch.setattr(heads, "LARGEST", head.stat().st_size)
        ledger.declare("third")
        with pytest.raises(InvalidInput, match="the file of the ledger's head is too large"):
            ledger.declare("fourth")
    assert not (tmp_path / "new").exists()


# Journals.


def test_a_journal_is_closed_once(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that was closed may be another file's when it is closed again."""
    journal = journals.open_journal("0" * 32, "1" * 32, 0)
    closed: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        journal.close()
        journal.close()
    assert len(closed) == 1
    os.close(closed[0])


def test_a_journal_that_is_held_for_an_instant_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that is made for it, and that nobody else can read."""
    real, tried = journals.hold, []

    def hold(path: Path, *, make: bool) -> journals.Journal | None:
        tried.append(path)
        return real(path, make=make) if len(tried) > 1 else None

    monkeypatch.setenv(journals.STATE, str(tmp_path / "new" / "state"))
    monkeypatch.setattr(journals, "hold", hold)
    journal = journals.open_journal("0" * 32, "1" * 32, 30.0)
    assert tried == [journal.path, journal.path]
    folders = [journal.path.parent, journal.path.parent.parent]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (journal.path, *folders)] == [0o600, 0o700, 0o700]
    journal.remove()
    assert os.listdir(tmp_path / "new" / "state") == []


def test_a_journal_that_cannot_be_locked_is_told(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    before = len(os.listdir("/proc/self/fd"))
    with in_file.open() as ledger:
        monkeypatch.setattr(journals, "try_lock", fail)
        with pytest.raises(InvalidInput, match=r"no journal .*No locks available"), ledger.reserve(**FIELDS):
            pass
        assert ledger.pendings() == ()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_journal_that_cannot_be_written_leaves_nothing(
    in_file: Where, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(InvalidInput, match="No space left on device"), ledger.reserve(**FIELDS):
                pass
        assert ledger.pendings() == ()
    assert os.listdir(state) == []


def test_a_journal_stays_where_nobody_knows_whether_the_reservation_stands(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise InvalidInput("the connection to the ledger was lost")

    with in_file.open() as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(Session, "reserve", fail)
            patch.setattr(Store, "read", fail)
            with pytest.raises(InvalidInput, match="connection"), ledger.reserve(**FIELDS):
                pass
        ((_, path),) = journals.list_journals(ledger.id).items()
        assert not journals.is_held(path)
        ledger.declare("everyone")
        assert journals.list_journals(ledger.id) == {}


def test_a_link_is_no_journal(tmp_path: Path, state: Path) -> None:
    journal = journals.open_journal("0" * 32, "1" * 32, 0)
    assert journals.is_held(journal.path)
    link = journal.path.with_name(f"{'0' * 32}-{'2' * 32}")
    link.symlink_to(journal.path)
    assert journals.is_held(link) is False
    with pytest.raises(OSError, match="symbolic links"):
        journals.hold(link)
    assert journals.find_journal("0" * 32, "2" * 32) is None
    assert journals.find_journal("0" * 32, "1" * 32) == journal.path
    assert journals.find_journal("0" * 32, "../" + "1" * 29) is None
    assert journals.find_journal("../" + "0" * 29, "1" * 32) is None
    link.unlink()
    journal.remove()
    assert os.listdir(state) == []


def test_state_is_kept_where_the_system_has_it_and_leaves_no_folder(
    in_file: Where, released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(journals.STATE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    with in_file.open() as ledger:
        with ledger.reserve(**FIELDS) as reservation:
            kept = tmp_path / "xdg" / "cellrisk"
            assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, kept / "reservations")] == [0o700, 0o700]
            reservation.save(released, tmp_path / "released.csv")
        assert os.listdir(tmp_path / "xdg") == []
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert journals.state_folder() == tmp_path / "home" / ".local" / "state" / "cellrisk"


# Moments.


def test_who_reads_sees_one_moment(where: Where) -> None:
    with where.open() as ledger, where.open() as other:
        ledger.declare("everyone")
        with ledger._store.read() as session:
            other.declare("others")
            assert len(session.rows(None)) == session.head.number == 1
        assert len(ledger.entries()) == 2


def test_a_fork_does_not_wait_for_a_thread_of_its_parent(in_file: Where) -> None:
    """The thread that was in the ledger is not there in the child, and would never leave it."""
    entered, leave = threading.Event(), threading.Event()
    with in_file.open(wait=0.0) as ledger:

        def stay() -> None:
            with ledger._store.place.gate():
                entered.set()
                leave.wait(60)

        thread = threading.Thread(target=stay)
        thread.start()
        entered.wait(60)
        with warnings.catch_warnings():  # of forks where there are threads
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            with suppress(BaseException):
                ledger.entries()
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        with pytest.raises(InvalidInput, match="locked"):
            ledger.entries()
        leave.set()
        thread.join()
        assert os.waitstatus_to_exitcode(status) == 0


def test_two_releases_that_go_to_one_place_at_once(
    in_file: Where, released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry of the first stands, and its file is not there yet: the second would be taken for it."""
    publish, refused = Pair.publish, []

    def publish_late(pair: Pair) -> None:
        monkeypatch.setattr(Pair, "publish", publish)
        with in_file.open() as other, other.reserve(**FIELDS) as second:
            with pytest.raises(InvalidInput, match="another release is being written there"):
                second.save(released, tmp_path / "released.csv", force=True)
            refused.append(pair)
        with in_file.open() as other, other.reserve(**FIELDS) as third:
            third.save(released, tmp_path / "beside.csv")
        publish(pair)

    with in_file.open() as ledger:
        with ledger.reserve(**FIELDS) as reservation:
            reservation.save(released, tmp_path / "released.csv")  # nothing else is on its way
        monkeypatch.setattr(Pair, "publish", publish_late)
        with ledger.reserve(**FIELDS) as reservation:
            reservation.save(released, tmp_path / "released.csv", force=True)
        assert len(refused) == 1
        assert [entry.file.name for entry in ledger.entries(kind="release") if entry.file] == [
            *("released.csv", "released.csv", "beside.csv")
        ]
        assert ledger.verify().ok


def test_what_stands_is_noted_before_the_files_are_moved(
    in_file: Where, released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the move takes too long for a signal, the process is ended, and says what was noted."""
    noted: list[list[str]] = []
    publish = Pair.publish
    monkeypatch.setattr(Pair, "publish", lambda pair: (noted.append([*stopping._outcome]), publish(pair))[1])
    with in_file.open() as ledger:
        with ledger.reserve(**FIELDS) as reservation:
            reservation.save(released, tmp_path / "released.csv")
        noted.append([*stopping._outcome])
        ledger.declare("others")
        noted.append([*stopping._outcome])
    assert noted == [
        ["entry 2 of the ledger stands; the next write to the ledger, or ledger settle, moves its file into its place"],
        ["entry 2 of the ledger stands, and its file is in its place"],
        ["entry 3 of the ledger stands"],
    ]
    with Ledger(tmp_path / "new", create=True) as ledger:
        assert stopping._outcome == [f"the new ledger stands, and is empty: {tmp_path / 'new'}"]
        ledger.remove_unused()
    assert stopping._outcome == []


def test_a_ledger_in_use_is_not_removed(in_file: Where) -> None:
    with in_file.open() as ledger, in_file.open() as other:
        with other.reserve(**FIELDS):
            assert ledger._store.remove_unused() is False
            assert in_file.is_there()
        assert other.entries() == ()
        other._store.place.writable = False
        assert other._store.remove_unused() is False
        assert ledger._store.remove_unused() is True
        assert not in_file.is_there()


@pytest.mark.parametrize("left", ["nothing", "a torn note", "another digest", "no folder", "a foreign note"])
def test_a_decided_release_that_cannot_be_finished_from_here(
    in_file: Where, released: Release, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """It stays until it is given up; then its entry stands, and what is staged is not touched."""
    output = tmp_path / "output"
    output.mkdir()
    with in_file.open() as ledger:
        token = die_before_the_move(ledger, released, output / "released.csv", monkeypatch)
        (journal,) = state.rglob("*-*")
        if left == "a torn note":
            journal.write_text(journal.read_text()[:20])
        elif left == "another digest":
            told = json.loads(journal.read_text())
            journal.write_text(json.dumps({**told, "sha256": "0" * 64}))
        elif left == "no folder":
            shutil.move(output, tmp_path / "away")
        elif left == "a foreign note":
            journal.write_text("[]")
        if left == "nothing":
            assert ledger.settle() == ()
            assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]
            return
        assert [pending.token for pending in ledger.settle()] == [token]
        assert journal.exists()
        if left != "no folder":
            assert all(name.startswith(".") for name in os.listdir(output))
        assert ledger.abandon(token) is True
        assert ledger.pendings() == ()
        assert len(ledger.entries(kind="release")) == 1


def test_a_move_that_fails_is_tried_again(
    in_file: Where, released: Release, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several that died, one whose place cannot be written to keeps nobody else waiting."""
    tokens = {}
    with in_file.open() as ledger:
        ledger.declare("everyone")
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
            with monkeypatch.context() as patch:
                patch.setattr(Ledger, "_end_dead", lambda ledger, own: None)
                token = die_before_the_move(ledger, released, tmp_path / name / "a.csv", patch)
            tokens[name] = token
        replace = os.replace

        def fail(source: Path, target: Path) -> None:
            if "two" in str(target):
                raise OSError(13, "Permission denied")
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", fail)
            assert [pending.token for pending in ledger.settle()] == [tokens["two"]]
            in_file.execute("DELETE FROM pending")  # given up by somebody who could not finish it
            ledger.declare("others")
            assert len(list(state.rglob("*-*"))) == 1
        assert sorted(os.listdir(tmp_path / "one")) == sorted(os.listdir(tmp_path / "three")) == ["a.csv", "a.csv.json"]
        ledger.declare("third")
        assert sorted(os.listdir(tmp_path / "two")) == ["a.csv", "a.csv.json"]
        assert ledger.verify().remarks == ()
    assert os.listdir(state) == []


def test_a_release_that_another_settles_in_between(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    from cellrisk.repeat.ledger import pairing

    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        path = reservation._journal.path
        with monkeypatch.context() as patch:
            patch.setattr(pairing, "find_journal", lambda identity, token: path.with_name("gone"))
            assert pairing.settle(ledger._store, reservation.token) == pairing.SETTLED


def test_a_forged_note_of_a_place_stops_no_release(in_file: Where, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    with in_file.open() as ledger:
        ledger.declare("everyone")
        in_file.execute("INSERT INTO released_files VALUES (2, '/elsewhere.csv', 'salt'), (0, '/a.csv', 'salt')")
        assert [tuple(problem) for problem in ledger.verify().problems] == [
            (None, f"a note of where a file was written belongs to no entry (number {number})") for number in (0, 2)
        ]
        in_file.execute("DELETE FROM released_files WHERE number = 0")
        entry = ledger.add(**FIELDS, file=tmp_path / "a.csv")
        assert entry.file is not None
        assert entry.file.path == str(tmp_path / "a.csv")
        assert ledger.verify().ok
        in_file.execute(f"UPDATE released_files SET path = '/{'x' * 300}'")  # no file has so long a name
        found = ledger.verify()
        assert [problem.entry for problem in found.problems] == [2]
        assert [tuple(remark) for remark in found.remarks] == [(2, "its file a.csv is not where it was written")]


def test_a_name_that_no_database_keeps_is_refused(in_file: Where, released: Release, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"rel\xff.csv")
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        with pytest.raises(InvalidInput, match="the output path holds a character"):
            reservation.save(released, path)
        assert os.listdir(tmp_path) == ["releases.ledger"]


# Rows that are not as cellrisk writes them.


@pytest.mark.parametrize("column", ["number", "previous", "digest", "body"])
def test_a_column_of_another_type_is_told(in_file: Where, column: str) -> None:
    with in_file.open() as ledger:
        ledger.declare("everyone")
        ledger.declare("others")
    in_file.disarm()
    rows = in_file.execute("SELECT * FROM entries")
    in_file.execute("DROP TABLE entries")
    in_file.execute("CREATE TABLE entries (number, previous, digest, body)")
    for number, previous, digest, body in rows:
        in_file.execute(f"INSERT INTO entries VALUES ({number}, '{previous}', '{digest}', '{body}')")
    in_file.execute(f"UPDATE entries SET {column} = x'ff' WHERE number = 2")
    in_file.arm()
    with in_file.open() as ledger:
        assert not ledger.verify().ok
        told = "an entry without a number" if column == "number" else "entry 2"
        with pytest.raises(InvalidInput, match=f"an entry cannot be read; got {told}; verify tells more"):
            ledger.entries()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("schema_version = 0", "what it says of itself cannot be"),
        ("number = -1", "what it says of itself cannot be"),
        (f"number = {2**53 + 1}", "what it says of itself cannot be"),
        (f"id = '{'g' * 32}'", "what it says of itself cannot be"),
        (f"digest = '{'0' * 33}'", "what it says of itself cannot be"),
        ("created = x'ff'", "it does not say which one it is"),
        ("what = 'removed'", "this is no ledger; got"),
    ],
)
def test_a_ledger_that_says_what_cannot_be_is_refused(in_file: Where, change: str, message: str) -> None:
    in_file.open().close()
    in_file.execute(f"UPDATE ledger SET {change}")
    with pytest.raises(InvalidInput, match=message):
        in_file.open()


def test_a_ledger_that_says_two_things_is_refused(in_file: Where) -> None:
    in_file.open().close()
    in_file.execute(
        f"INSERT INTO ledger SELECT '{'0' * 32}', what, schema_version, created, number, digest FROM ledger"
    )
    with pytest.raises(InvalidInput, match="it does not say which one it is"):
        in_file.open()


# What is told of errors.


FILE_ERRORS: list[tuple[str, int, str]] = [
    ("database is locked", 1, "the ledger is locked by another process, and still was after 0.5 seconds; "),
    ("database table is busy", 1, "the ledger is locked by another process, "),
    ("attempt to write a readonly database", 1, "the ledger can be read only; "),
    ("database or disk is full", 1, "the disk of the ledger is full: nothing was written; "),
    ("unable to open database file", 0, "the disk of the ledger is full: nothing was written; "),
    ("unable to open database file", 1, "the ledger cannot be opened; "),
    ("disk I/O error", 0, "the disk of the ledger is full: nothing was written; "),
    ("disk I/O error", 1, "the disk of the ledger reports an error; "),
    ("database disk image is malformed", 1, "the ledger is damaged; "),
    ("file is not a database", 0, "the ledger is damaged; "),
    ("string or blob too big", 0, "the ledger is damaged; "),
    ("something new", 0, "the ledger cannot be used (OperationalError); "),
]


def test_errors_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = FilePlace(tmp_path / "a", 0.5)
    for error, room, message in FILE_ERRORS:
        monkeypatch.setattr(shutil, "disk_usage", lambda path, room=room: SimpleNamespace(free=room << 20))
        assert str(place.explain(sqlite3.OperationalError(error))).startswith(message), error
    assert str(place.explain(MemoryError())).startswith("the ledger is damaged; ")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (_ for _ in ()).throw(OSError(2, "gone")))
    assert str(place.explain(sqlite3.OperationalError("disk I/O error"))).startswith("the disk of the ledger reports")


SERVER_ERRORS = {
    "25006": "the ledger can be read only; ",
    "42501": "this account may not use the ledger so; ",
    "53100": "the disk of the ledger is full: nothing was written; ",
    "53300": "the server is out of memory or connections; ",
    "42P01": "this is no ledger: it has tables of the same names; ",
    "3F000": "the schema for the ledger's tables does not exist; ",
    "40001": "the server ended the transaction because of another; ",
    "55P03": "the ledger is locked by another process, and still was after 0.5 seconds; ",
    "57P01": "the connection to the ledger was lost; ",
    "08006": "the connection to the ledger was lost; ",
    None: "the connection to the ledger was lost; ",
    "22000": "the ledger cannot be used (Exception, 22000); ",
}


def test_errors_of_a_server() -> None:
    pytest.importorskip("psycopg", reason="the driver is not installed: pip install 'cellrisk[postgres]'")
    place = DatabasePlace("postgresql://me:s3cret@host/census", 0.5)
    for state, message in SERVER_ERRORS.items():
        error = Exception("a word that is not told")
        error.sqlstate = state  # type: ignore[attr-defined]
        told = str(place.explain(error))
        assert told.startswith(message), state
        assert "not told" not in told
        assert "s3cret" not in told


def test_a_view_in_place_of_a_table_of_a_database(in_database: Where) -> None:
    in_database.open().close()
    in_database.execute("ALTER TABLE pending RENAME TO kept")
    in_database.execute("CREATE VIEW pending AS SELECT * FROM kept")
    with pytest.raises(InvalidInput, match="one of its tables is something else"):
        in_database.open()


def test_a_place_that_cannot_be_written_to_gets_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, message in (
        (PermissionError(13, "Permission denied"), r"no ledger can be made there; got .*\(Permission denied\); choose"),
        (OSError(errno.ENOSPC, "No space left"), "the disk of the ledger is full: nothing was written"),
        (FileExistsError(17, "File exists"), "there is a file already where the ledger was to be made"),
    ):
        monkeypatch.setattr(places, "write_new", lambda path, content, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(InvalidInput, match=message):
            Ledger(tmp_path / "a.ledger", create=True)
        assert os.listdir(tmp_path) == []


def test_what_is_foreign_is_named(in_file: Where) -> None:
    with in_file.open() as ledger:
        in_file.execute(f'CREATE VIEW "more\n{"x" * 80}" AS SELECT 1')
        assert [problem.text for problem in ledger.verify().problems] == [
            f"a foreign view stands in the ledger: more {'x' * 55}"
        ]


def test_an_engine_that_fails_to_check_a_file_says_so(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_file.open() as ledger, ledger._store.read() as session:
        assert session.find_faults() == []
        monkeypatch.setattr(
            type(session.connection), "exec_driver_sql", lambda *_: (_ for _ in ()).throw(MemoryError())
        )
        assert session.find_faults() == ["the check itself fails"]


def test_many_entries_behind_a_damage_are_not_all_asked_for(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between what is read from the front and from the back, a few numbers are tried, and not more."""
    with in_file.open() as ledger:
        for name in "abcdef":
            ledger.declare(name)
        asked: list[int] = []
        real = Session.row

        def row(session: Session, number: int) -> Any:
            asked.append(number)
            return real(session, number)

        def rows(session: Session, start: int | None) -> Any:
            raise InvalidInput("damaged")

        monkeypatch.setattr(Session, "row", row)
        monkeypatch.setattr(Session, "rows", rows)
        monkeypatch.setattr(Session, "_list_numbers", lambda session, order: [6] if "DESC" in str(order) else [1])
        monkeypatch.setattr(store, "MOST_RESCUED", 2)
        with ledger._store.read() as session:
            found, unreadable = session.rescue_rows()
        assert asked == [each.number for each in found] == [1, 2, 3, 6]
        assert unreadable == frozenset()
        monkeypatch.setattr(Session, "_list_numbers", lambda session, order: [])
        monkeypatch.setattr(store, "MOST_RESCUED", 100)
        with ledger._store.read() as session:
            assert [each.number for each in session.rescue_rows()[0]] == [1, 2, 3, 4, 5, 6]


def test_a_wait_for_files_ends(
    in_file: Where, released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads waits for the files of a release that is being moved; not for ever, and not for the dead."""
    slept: list[float] = []
    publish = Pair.publish

    def look(pair: Pair) -> None:
        with in_file.open(wait=0.0) as other:
            assert len(other.entries(kind="release")) == 1
        monkeypatch.setattr(book.time, "sleep", lambda seconds: (slept.append(seconds), publish(pair), end(pair)))
        with in_file.open(wait=20.0) as other:
            found = other.verify()
            assert (found.ok, found.remarks) == (True, ())
        assert slept == [journals.PAUSE]

    def end(pair: Pair) -> None:
        in_file.execute("DELETE FROM pending")

    monkeypatch.setattr(Pair, "publish", look)
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        reservation.save(released, tmp_path / "released.csv")


def test_a_refusal_of_the_library_keeps_no_words_of_a_driver(in_file: Where) -> None:
    def refuse() -> None:
        try:
            raise sqlite3.OperationalError("a secret")
        except sqlite3.OperationalError:
            raise InvalidInput("ours")  # noqa: B904

    with in_file.open() as ledger:
        place = ledger._store.place
        with pytest.raises(CellriskError, match="ours") as told, place.plain_refusals():
            refuse()
        assert isinstance(told.value.__context__, sqlite3.OperationalError)
        assert "secret" not in str(told.value.__context__.args)
        with pytest.raises(ZeroDivisionError), place.plain_refusals():
            raise ZeroDivisionError
