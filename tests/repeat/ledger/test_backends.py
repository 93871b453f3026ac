"""Ledgers that are older, locked, read-only or something else; bad input, full disks, several processes at once."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import Laplace
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.backends import APPLICATION
from tests.counts.postgres_server import ENCODED, PASSWORD, Server
from tests.refusals import refused
from tests.repeat.ledger.conftest import LAPLACE, Where, fill

GOOD: dict[str, Any] = {"attribute": "z", "quasi_identifiers": ["age"], "loss": LAPLACE}
SOURCE = str(Path(cr.__file__).parents[1])


def test_a_ledger_of_an_earlier_version_is_refused_in_one_line(where: Where) -> None:
    """Such ledgers kept one loss for a set, without its events: what they say cannot be added up as it should."""
    with where.open() as ledger:
        fill(ledger)
    where.execute("UPDATE ledger SET what = 'cellrisk ledger', schema_version = 3")
    where.execute("CREATE TABLE pending (token TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL, body TEXT NOT NULL)")
    with refused("no-ledger", "or not of this version of cellrisk") as refusal:
        where.open(create=False)
    assert "\n" not in str(refusal.value)


def test_a_locked_file_is_waited_for_and_then_told(in_file: Where) -> None:
    assert in_file.file is not None
    with in_file.open() as ledger:
        fill(ledger)
    with closing(sqlite3.connect(in_file.file, isolation_level=None)) as other, in_file.open(wait=0.1) as ledger:
        other.execute("BEGIN IMMEDIATE")
        assert len(ledger.entries()) == 5  # to read is no trouble
        for attempt in (lambda: ledger.add(**GOOD), lambda: ledger.declare("x")):
            with refused("locked"):
                attempt()
        other.execute("ROLLBACK")
        ledger.add(**GOOD)
        other.execute("BEGIN EXCLUSIVE")
    with closing(sqlite3.connect(in_file.file, isolation_level=None)) as other, in_file.open(wait=20) as ledger:
        other.execute("BEGIN IMMEDIATE")
        patient = threading.Thread(target=lambda: ledger.add(**GOOD))
        patient.start()
        patient.join(0.3)
        assert patient.is_alive()
        other.execute("ROLLBACK")
        patient.join()
        assert len(ledger.entries()) == 7
    assert sorted(os.listdir(in_file.file.parent)) == ["releases.ledger"]


def test_a_locked_database_is_waited_for_and_then_told(in_database: Where, server: Server) -> None:
    schema = in_database.address.rpartition("%3D")[2]
    with in_database.open(wait=0.1) as ledger, server.connect() as other:
        fill(ledger)
        with other.transaction():
            other.execute(f"SELECT * FROM {schema}.ledger FOR UPDATE")
            assert len(ledger.entries()) == 5
            with refused("locked"):
                ledger.add(**GOOD)
        ledger.add(**GOOD)


def test_a_connection_that_is_lost_is_told_without_a_word_of_the_driver(
    in_database: Where, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cellrisk'"
    with in_database.open() as ledger:
        fill(ledger)

        def lose() -> Any:
            with server.connect() as other:
                other.execute(end)
            return real()

        real, ledger._clock = ledger._clock, lose
        with refused("lost-connection") as refusal:
            ledger.add(**GOOD)
        ledger._clock = real
        assert all(word not in str(refusal.value) for word in (PASSWORD, ENCODED, "INSERT", "terminat"))
        told: BaseException | None = refusal.value.__context__
        while told is not None:
            assert all(word not in str(told.args) for word in (PASSWORD, "INSERT", "entries"))
            told = told.__context__
        assert len(ledger.entries()) == 5
        assert ledger.verify().ok
    assert capfd.readouterr() == ("", "")


def test_an_account_that_may_only_read(in_database: Where, server: Server) -> None:
    schema = in_database.address.rpartition("%3D")[2]
    with in_database.open() as ledger:
        fill(ledger)
        expected = ledger.entries()
    reader = server.address("reader", rest=f"?options=-csearch_path%3D{schema}")
    with refused("missing"):
        Ledger(reader, create=False)
    with server.connect() as owner:
        owner.execute(
            f"GRANT USAGE ON SCHEMA {schema} TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader"
        )
    for address in (reader, f"{in_database.address}%20-cdefault_transaction_read_only%3Don"):
        with Ledger(address) as ledger:
            assert ledger.entries() == expected
            assert ledger.verify().ok
            for attempt in (lambda: ledger.add(**GOOD), lambda: ledger.declare("a")):
                with pytest.raises(InvalidInput) as refusal:
                    attempt()
                assert refusal.value.code in ("read-only", "not-allowed")


def test_tables_of_the_same_name_are_left_alone(in_database: Where) -> None:
    in_database.execute("CREATE TABLE entries (number integer)")
    with refused("exists"):
        in_database.open()
    in_database.execute("CREATE TABLE ledger (id integer)")
    with refused("no-ledger"):
        in_database.open()
    with refused("no-ledger"):
        in_database.open(create=False)
    assert in_database.execute("SELECT count(*) FROM ledger") == [(0,)]


def test_a_password_that_is_wrong_is_told_without_it(server: Server) -> None:
    with pytest.raises(InvalidInput, match="this user or password was refused") as refusal:
        Ledger(server.address(password="wr0ng"))
    assert "wr0ng" not in str(refusal.value)


ALONE = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
PRELUDE = """
import os, sys
from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger import Ledger
from cellrisk.noise.mechanisms import mechanism
GOOD = dict(attribute="z", quasi_identifiers=["age"], loss=mechanism("laplace", epsilon=0.1))
def refused(work):
    try:
        work()
    except InvalidInput as refusal:
        return str(refusal)
    sys.exit("not refused")
folder = sys.argv[1]
path = folder + "/releases.ledger"
"""


def run_alone(mount: str, script: str, folder: Path) -> list[str]:
    """Runs a script with a folder mounted in a way of its own, where the system permits that."""
    try:
        subprocess.run([*ALONE, mount, "sh", str(folder)], check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no folder can be mounted: user namespaces are not permitted here")
    done = subprocess.run(
        [
            *ALONE,
            f'{mount} && shift 0 && exec "$2" -W error -c "$3" "$1"',
            "sh",
            str(folder),
            sys.executable,
            PRELUDE + script,
        ],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_disk_that_can_be_read_only(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with Ledger(folder / "releases.ledger", create=True) as ledger:
        fill(ledger)
    script = """
with Ledger(path) as ledger:
    print(len(ledger.entries()), ledger.verify().ok, ledger.spent("everyone").epsilon)
    print(refused(lambda: ledger.add(**GOOD)))
    print(refused(lambda: ledger.declare("x")))
print(refused(lambda: Ledger(folder + "/other.ledger", create=True)))
print(os.listdir(folder))
"""
    told = run_alone('mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"', script, folder)
    assert told[0] == "5 True 0.3"
    assert told[1].startswith("the ledger can be read only; got ")
    assert "Read-only file system" in told[2] or "read only" in told[2]
    assert told[3].startswith("no ledger can be made there; got ")
    assert told[4] == "['releases.ledger']"


@pytest.mark.slow
def test_a_disk_that_fills(tmp_path: Path) -> None:
    """Entries until the disk is full: the last is refused in one line, the others stand, and with room it goes on."""
    folder = tmp_path / "disk"
    folder.mkdir()
    script = """
with Ledger(path, create=True) as ledger:
    ledger.declare("everyone")
    with open(folder + "/filling", "wb") as filling:
        filling.write(b"x" * 600_000)
    written = 0
    message = ""
    while written < 1000 and not message:
        before = ledger.head
        try:
            ledger.add(**GOOD, purpose="x" * 10_000)
            written += 1
        except InvalidInput as refusal:
            message = str(refusal)
print(message)
os.unlink(folder + "/filling")
with Ledger(path) as ledger:
    print(ledger.head == before, ledger.verify().ok, len(ledger.entries(kind="release")) == written, written > 3)
    ledger.add(**GOOD)
    print(ledger.verify().ok)
print(os.listdir(folder))
"""
    told = run_alone('mount -t tmpfs -o size=1m none "$1"', script, folder)
    assert told[0].startswith("the disk of the ledger is full: nothing was written; got ")
    assert told[1:] == ["True True True True", "True", "['releases.ledger']"]


WORKER = """
import sys
from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger import Ledger
from cellrisk.noise.mechanisms import mechanism
place, name, entries = sys.argv[1], sys.argv[2], int(sys.argv[3])
refused = 0
try:
    Ledger(place, create=True).close()
except InvalidInput as refusal:
    if "already" not in str(refusal):
        raise
with Ledger(place) as ledger:
    ledger.set_limit("everyone", epsilon=3.5)
    for number in range(entries):
        try:
            ledger.add(attribute=f"{name}{number}", quasi_identifiers=[], loss=mechanism("laplace", epsilon=0.1))
        except InvalidInput as refusal:
            if "exceed the limit" not in str(refusal):
                raise
            refused += 1
print(refused)
"""


@pytest.mark.slow
def test_several_processes_at_once(where: Where) -> None:
    """Four processes that make the ledger, set the same limit and add ten entries each; there is room for 35 of 40."""
    command = [sys.executable, "-W", "error", "-c", WORKER, where.address]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    workers = [
        subprocess.Popen([*command, name, "10"], env={**os.environ, "PYTHONPATH": SOURCE}, **streams) for name in "abcd"
    ]
    told = [worker.communicate(timeout=300) for worker in workers]
    assert [(worker.returncode, errors) for worker, (_, errors) in zip(workers, told, strict=True)] == [(0, "")] * 4
    assert sum(int(answer) for answer, _ in told) == 5
    with where.open(create=False) as ledger:
        assert ledger.verify().ok
        assert [entry.number for entry in ledger.entries()] == list(range(1, 41))
        assert len({entry.attribute for entry in ledger.entries(kind="release")}) == 35
        assert len(ledger.entries(kind="limit")) == 4
        assert ledger.spent("everyone").epsilon == 3.5


class Quiet(Laplace):
    """A mechanism that cellrisk does not know."""

    name: ClassVar[str] = "quiet"


BAD_RELEASES: dict[str, tuple[dict[str, Any], str]] = {
    "no columns": ({"attribute": None, "quasi_identifiers": []}, "has an attribute or quasi-identifiers"),
    "empty attribute": ({"attribute": ""}, "the attribute is empty"),
    "blank column": ({"quasi_identifiers": [" "]}, "a quasi-identifier is empty"),
    "attribute of another type": ({"attribute": 5}, "the attribute must be text; got int"),
    "column twice": ({"quasi_identifiers": ["age", "age"]}, "a column is named twice; got age, age"),
    "NUL in a column": ({"attribute": "a\0b"}, "holds a character that no database keeps"),
    "long column": ({"attribute": "a" * 201}, "the attribute is too long; got 201 characters; allowed: up to 200"),
    "long purpose": (
        {"purpose": "a" * 10_001},
        "the purpose is too long; got 10,001 characters; allowed: up to 10,000",
    ),
    "no loss": ({"loss": None}, "a release needs its privacy loss; got NoneType"),
    "unknown mechanism": ({"loss": Quiet(epsilon=1.0)}, "unknown kind of event; got 'quiet'; allowed: laplace"),
    "empty cohort": ({"cohort": ""}, "the name of the cohort is empty"),
    "line break in a cohort": ({"cohort": "a\nb"}, "must be printable, on one line"),
    "space around a cohort": ({"cohort": " a"}, "without spaces around it"),
    "file that is not there": ({"file": "nowhere.csv"}, "there is no such file"),
    "part of itself": ({"cohort": "a", "new_cohort": True, "part_of": "a"}, "has no cohort 'a'"),
}


@pytest.mark.parametrize("name", BAD_RELEASES)
def test_a_release_that_cannot_be_written_is_refused(in_file: Where, name: str) -> None:
    changed, message = BAD_RELEASES[name]
    with in_file.open() as ledger:
        for empty in (True, False):
            before = ledger.entries()
            with pytest.raises(CellriskError, match=message) as refusal:
                ledger.add(**{**GOOD, **changed})
            assert "\n" not in str(refusal.value)
            assert ledger.entries() == before
            if empty:
                ledger.declare("everyone")
    assert os.listdir(Path(in_file.address).parent) == ["releases.ledger"]


def another_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE entries (number)")


def tables_under_our_number(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE something (id)")
        connection.execute(f"PRAGMA application_id={APPLICATION}")


def a_duckdb_file(path: Path) -> None:
    import duckdb

    duckdb.connect(str(path)).close()


def a_newer_ledger(path: Path) -> None:
    Ledger(path, create=True).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE ledger SET schema_version = 4")


def a_ledger_that_says_nothing(path: Path) -> None:
    Ledger(path, create=True).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM ledger")


SOMETHING_ELSE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "text": (lambda path: path.write_text("age,sex\n31,f\n"), "this is not a ledger"),
    "bytes": (lambda path: path.write_bytes(bytes(range(256)) * 40), "this is not a ledger"),
    "another database": (another_database, "this is not a ledger"),
    "tables under our number": (tables_under_our_number, "this is not a ledger"),
    "DuckDB": (a_duckdb_file, "this is not a ledger"),
    "a newer ledger": (a_newer_ledger, "not of this version of cellrisk"),
    "a ledger that says nothing": (a_ledger_that_says_nothing, "this is not a ledger"),
    "a folder": (lambda path: path.mkdir(), "the ledger's path is a folder"),
    "a pipe": (os.mkfifo, "the ledger's path is not a file"),
}


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("name", SOMETHING_ELSE)
def test_what_is_something_else_is_refused_and_left_as_it_is(tmp_path: Path, name: str, create: bool) -> None:
    make, message = SOMETHING_ELSE[name]
    path = tmp_path / "releases.ledger"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    there = "there is something already" if create and "path is" not in message else message
    with pytest.raises(InvalidInput, match=there) as refusal:
        Ledger(path, create=create)
    assert "\n" not in str(refusal.value)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert os.listdir(tmp_path) == ["releases.ledger"]


def test_a_ledger_is_made_only_where_that_is_asked_for_and_nothing_is_there(tmp_path: Path) -> None:
    path = tmp_path / "releases.ledger"
    with refused("missing"):
        Ledger(path)
    assert os.listdir(tmp_path) == []
    path.touch()
    with refused("empty"):
        Ledger(path)
    with refused("exists"):
        Ledger(path, create=True)
    assert path.stat().st_size == 0
    path.unlink()
    path.symlink_to("elsewhere.ledger")
    with refused("missing"):
        Ledger(path)
    with refused("exists"):  # a dangling link is not followed
        Ledger(path, create=True)
    assert os.listdir(tmp_path) == ["releases.ledger"]
    path.unlink()
    with Ledger(path, create=True) as ledger:
        fill(ledger)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with refused("exists"):
        Ledger(path, create=True)
    with Ledger(path) as ledger:
        assert len(ledger.entries()) == 5
    assert os.listdir(tmp_path) == ["releases.ledger"]


def test_a_database_gets_a_ledger_only_where_that_is_asked_for(in_database: Where) -> None:
    with refused("missing"):
        Ledger(in_database.address)
    assert not in_database.is_there()
    Ledger(in_database.address, create=True).close()
    with refused("exists"):
        Ledger(in_database.address, create=True)


def test_a_ledger_that_was_not_written_to_can_be_removed(where: Where) -> None:
    """Others that have opened it find that it is none any more, and never write to what is removed."""
    with where.open() as ledger, where.open() as other:
        ledger.remove_unused()
        assert not where.is_there()
        with pytest.raises(InvalidInput, match=r"cannot be opened|not a ledger|no ledger"):
            other.add(**GOOD)
    with where.open() as ledger:
        ledger.declare("everyone")
        ledger.remove_unused()
        assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "a ledger needs a location"),
        (None, "a ledger needs a location"),
        (5, "a ledger needs a location"),
        ("nowhere/releases.ledger", "the folder of the ledger does not exist"),
        ("a\0b", "a path cannot hold NUL"),
        ("mysql://me:s3cret@localhost/census", "a ledger is a file or a PostgreSQL database; got an address of mysql"),
        ("sqlite:///releases.ledger", "got an address of sqlite"),
        ("nonsense://me:s3cret@host", "addresses of that kind are not read"),
        ("postgresql://me:s3cret/@host/census", "the database's address cannot be read"),
        ("postgresql://me:s3cret@127.0.0.1:1/census", "no connection to database 'census' on 127.0.0.1"),
        ("postgresql://me:s3cret@no-such-host.invalid/census", "no host has that name"),
    ],
)
def test_places_that_are_none(place: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refusal:
        Ledger(place)
    assert "s3cret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "1", True, None, 1e9])
def test_a_wait_that_is_none(tmp_path: Path, wait: Any) -> None:
    with refused("range", "wait, in seconds"):
        Ledger(tmp_path / "a.ledger", create=True, wait=wait)
    assert os.listdir(tmp_path) == []


def test_a_file_that_vanishes_is_not_made_again(in_file: Where, tmp_path: Path) -> None:
    assert in_file.file is not None
    with in_file.open() as ledger:
        fill(ledger)
        in_file.file.unlink()
        for use in (ledger.entries, lambda: ledger.add(**GOOD)):
            with refused("disk"):
                use()
    assert os.listdir(tmp_path) == []


def test_a_file_by_another_name_is_the_same_ledger(in_file: Where, tmp_path: Path) -> None:
    (tmp_path / "link.ledger").symlink_to("releases.ledger")
    with in_file.open() as ledger, Ledger(tmp_path / "link.ledger") as linked:
        fill(ledger)
        linked.add(**GOOD)
        assert ledger.entries() == linked.entries()
    with Ledger(tmp_path / "100% of?#.ledger", create=True) as ledger:
        fill(ledger)
    assert sorted(os.listdir(tmp_path)) == ["100% of?#.ledger", "link.ledger", "releases.ledger"]


def test_a_digest_of_the_whole_file_does_not_change_by_reading(in_file: Where) -> None:
    assert in_file.file is not None
    with in_file.open() as ledger:
        fill(ledger)
    before = hashlib.sha256(in_file.file.read_bytes()).hexdigest()
    with in_file.open(create=False) as ledger:
        ledger.entries()
        ledger.verify()
        ledger.check(LAPLACE)
    assert hashlib.sha256(in_file.file.read_bytes()).hexdigest() == before


MAKERS: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_bytes(b"old"),
    "empty": Path.touch,
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_no_ledger_is_made_beside_what_another_left(tmp_path: Path, end: str) -> None:
    for name, make in MAKERS.items():
        place = tmp_path / f"{name}.db"
        make(Path(f"{place}{end}"))
        with refused("left-beside"):
            Ledger(place, create=True)
    assert len(os.listdir(tmp_path)) == len(MAKERS)
