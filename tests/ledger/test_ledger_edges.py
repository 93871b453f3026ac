"""What is at the edge of a ledger: the longest texts, the narrowest moments, and what is told of each error."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cellrisk.cli.ledgers import LedgerOptions
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger, checkpoints, descriptions
from cellrisk.repeat.ledger import ledger as book
from cellrisk.repeat.ledger.backends import PostgresDatabase
from cellrisk.repeat.ledger.checkpoints import write_line
from cellrisk.repeat.ledger.entry import LONGEST_PATH, BookedTable, ReleasedFile, check_text, read_json
from tests.ledger.conftest import Where
from tests.ledger.deaths import FIELDS

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
        assert ledger._store.backend.wait == LedgerOptions.wait == 30


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
    monkeypatch.setenv(checkpoints.VARIABLE, str(head))  # and named a second time below
    with in_file.open(head=head) as ledger:
        ledger.declare("everyone")
        assert ledger.note_head() == ledger.note_head() == write_line(ledger.head)
        assert head.read_text() == write_line(ledger.head) + "\n"
        head.write_text("f" * 32 + head.read_text()[32:])  # of another ledger
        for each in ledger._store.checkpoints:
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
            patch.setattr(checkpoints, "write_through", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            with pytest.raises(InvalidInput, match=r"entry 2 stands in the ledger, but could not be noted .*No space"):
                ledger.declare("others")
        assert len(ledger.entries()) == 2
        monkeypatch.setattr(checkpoints, "LARGEST", head.stat().st_size)
        ledger.declare("third")
        with pytest.raises(InvalidInput, match="the file of the ledger's head is too large"):
            ledger.declare("fourth")
    assert not (tmp_path / "new").exists()


# Journals.


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
            with ledger._store.backend._gate():
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
        ("schema_version = 0", "invalid ledger header"),
        ("number = -1", "invalid ledger header"),
        (f"number = {2**53 + 1}", "invalid ledger header"),
        (f"id = '{'g' * 32}'", "invalid ledger header"),
        (f"digest = '{'0' * 33}'", "invalid ledger header"),
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
    place = PostgresDatabase("postgresql://me:s3cret@host/census", 0.5)
    for state, message in SERVER_ERRORS.items():
        error = Exception("a word that is not told")
        error.sqlstate = state  # type: ignore[attr-defined]
        told = str(place.explain(error))
        assert told.startswith(message), state
        assert "not told" not in told
        assert "s3cret" not in told


def test_what_is_foreign_is_named(in_file: Where) -> None:
    with in_file.open() as ledger:
        in_file.execute(f'CREATE VIEW "more\n{"x" * 80}" AS SELECT 1')
        assert [problem.text for problem in ledger.verify().problems] == [
            f"a foreign view stands in the ledger: more {'x' * 55}"
        ]


def test_a_refusal_of_the_library_keeps_no_words_of_a_driver(in_file: Where) -> None:
    def refuse() -> None:
        try:
            raise sqlite3.OperationalError("a secret")
        except sqlite3.OperationalError:
            raise InvalidInput("ours")  # noqa: B904

    with in_file.open() as ledger:
        place = ledger._store.backend
        with pytest.raises(CellriskError, match="ours") as told, place.plain_refusals():
            refuse()
        assert isinstance(told.value.__context__, sqlite3.OperationalError)
        assert "secret" not in str(told.value.__context__.args)
        with pytest.raises(ZeroDivisionError), place.plain_refusals():
            raise ZeroDivisionError
