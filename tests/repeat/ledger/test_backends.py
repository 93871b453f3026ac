"""Ledgers of an older version, locked ones, those that can be read only, full disks, and several processes at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger import Ledger
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
