"""Bad input, and files that are something else: one clear line, and nothing written."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import Laplace
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.backends import APPLICATION
from tests.refusals import refused
from tests.repeat.ledger.conftest import LAPLACE, Where, fill

GOOD: dict[str, Any] = {"attribute": "y", "quasi_identifiers": ["age"], "loss": LAPLACE}


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
