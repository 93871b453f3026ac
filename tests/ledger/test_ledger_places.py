"""The two places of a ledger, each asked directly: what is opened how, what is refused, and what is told of it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger import Ledger, migrations, places
from cellrisk.repeat.ledger.places import DatabasePlace, FilePlace, Place, find_place

pytest.importorskip("psycopg", reason="the driver is not installed: pip install 'cellrisk[postgres]'")
ADDRESS = "postgresql://me:s3cret@host/census"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger(tmp_path / "a.ledger", create=True).close()
    return tmp_path / "a.ledger"


class Asked:
    """A connection that notes what is said to it, and answers as it is told to."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.said: list[str] = []
        self.closed = False

    def exec_driver_sql(self, statement: str) -> Any:
        self.said.append(statement)
        answer = self.answers.pop(0) if self.answers else []
        return SimpleNamespace(all=lambda: answer, scalar=lambda: answer, fetchone=lambda: (answer,))

    execute = exec_driver_sql

    def commit(self) -> None:
        self.said.append("commit")

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_a_place_is_a_path_or_an_address(tmp_path: Path) -> None:
    assert isinstance(find_place(str(tmp_path / "a"), 0), FilePlace)
    assert isinstance(find_place(Path("postgresql://host/census"), 0), FilePlace)  # a path, whatever it looks like
    assert isinstance(find_place(ADDRESS, 1.5), DatabasePlace)
    assert find_place("a", 1.5).wait == find_place(ADDRESS, 1.5).wait == 1.5
    place: Any
    for place in ("", None, 5, b"a"):
        with pytest.raises(
            InvalidInput, match=r"^a ledger needs a place; allowed: a path, or postgresql://user:password@"
        ):
            find_place(place, 0)
    with pytest.raises(InvalidInput, match=r"^a path cannot hold NUL$"):
        find_place("a\0b", 0)


def test_a_ledger_is_waited_for_up_to_a_day() -> None:
    assert find_place("a", 86_400).wait == 86_400
    for wait in (86_401, -0.001):
        with pytest.raises(InvalidInput, match=r"^wait, in seconds, must be a number from 0 to 86400"):
            find_place("a", wait)


def test_which_files_are_those_of_a_ledger(path: Path, tmp_path: Path) -> None:
    place = FilePlace(path, 0)
    assert [each.name for each in place.files] == ["a.ledger", "a.ledger-wal", "a.ledger-shm", "a.ledger-journal"]
    (tmp_path / "link").symlink_to(path)
    for name in ("a.ledger", "a.ledger-wal", "a.ledger-shm", "a.ledger-journal", "link"):
        assert place.is_same(tmp_path / name) is True
    assert place.is_same(tmp_path / "b.ledger") is False
    assert place.folders == [tmp_path, tmp_path / "releases"]
    database = DatabasePlace(ADDRESS, 0)
    assert (database.is_same(path), database.folders) == (False, [])


def test_the_file_of_a_ledger_says_what_it_is(path: Path) -> None:
    """Sixteen bytes of SQLite, and four of ours at the place that SQLite has for them: no version may change these."""
    content = path.read_bytes()
    assert content[:16] == b"SQLite format 3\0"
    assert content[68:72] == b"crlg"
    FilePlace(path, 0).find()
    for at in (0, 15, 68, 71):
        path.write_bytes(content[:at] + b"x" + content[at + 1 :])
        with pytest.raises(InvalidInput, match=r"^the file is no ledger; got .*a\.ledger; choose another name$"):
            FilePlace(path, 0).find()


def test_versions_that_make_ledgers_side_by_side_wait_for_each_other() -> None:
    """They take the same lock of the server, so that its number may never change."""
    assert places.CREATION.to_bytes(8, "big") == b"crlgersp"


def test_a_file_or_folder_that_cannot_be_written_to_is_only_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for refused, writable in ((None, True), (path, False), (path.parent, False)):
        monkeypatch.setattr(os, "access", lambda asked, mode, refused=refused: mode != os.W_OK or asked != refused)
        place = FilePlace(path, 0)
        place.find()
        assert place.writable is writable
    assert Place.writable is True


def test_what_was_made_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = FilePlace(tmp_path / "b", 0)
    assert place.made is False
    made: list[Any] = []
    place.create(made.append)
    assert (place.made, len(made)) == (True, 1)
    other = FilePlace(tmp_path / "c", 0)
    monkeypatch.setattr(places, "write_new", lambda *_: (_ for _ in ()).throw(OSError(13, "Permission denied")))
    with pytest.raises(InvalidInput, match="no ledger can be made there"):
        other.create(made.append)
    assert other.made is False
    place.remove()
    place.remove()
    assert os.listdir(tmp_path) == []


def test_what_sqlite_would_obey_beside_a_ledger_is_refused(path: Path) -> None:
    for reading in (True, False):
        FilePlace(path, 0).connect(reading).close()
    beside = Path(f"{path}-journal")
    beside.symlink_to("nowhere")
    with pytest.raises(InvalidInput) as refused:
        FilePlace(path, 0).connect(True)
    assert str(refused.value) == (
        f"a rollback journal stands beside the ledger, which never has one; got {path}-journal; "
        "do not trust it: move it away, and then verify"
    )
    beside.unlink()
    for end in ("-wal", "-shm"):
        beside = Path(f"{path}{end}")
        for make, undo in ((partial(beside.symlink_to, path), beside.unlink), (beside.mkdir, beside.rmdir)):
            make()
            with pytest.raises(
                InvalidInput, match=rf"^what stands beside the ledger is no file; got .*{end}; move it away$"
            ):
                FilePlace(path, 0).connect(True)
            undo()


def test_how_a_file_is_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, Any]] = []
    connections: list[Asked] = []

    def connect(address: str, **options: Any) -> Asked:
        assert options == {"uri": True, "timeout": 1.5, "isolation_level": None}
        connections.append(Asked())
        opened.append((address.partition("?mode=")[2], connections[-1]))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", connect)
    place, log = FilePlace(path, 1.5), Path(f"{path}-wal")
    safe = [
        f"PRAGMA {each}" for each in ("trusted_schema=OFF", "synchronous=FULL", "fullfsync=ON", "cell_size_check=ON")
    ]
    place.connect(True)
    place.connect(False)
    place.writable = False
    place.connect(True)
    log.touch()
    place.connect(True)
    log.write_bytes(b"log")
    place.connect(True)
    assert [mode for mode, _ in opened] == ["rw", "rw", "ro&immutable=1", "ro&immutable=1", "ro"]
    ends = ["query_only=ON", "journal_mode=WAL", *["query_only=ON"] * 3]
    assert [each.said for each in connections] == [[*safe, f"PRAGMA {end}"] for end in ends]
    assert not any(each.closed for each in connections)
    monkeypatch.setattr(Asked, "execute", lambda *_: (_ for _ in ()).throw(sqlite3.DatabaseError("damaged")))
    with pytest.raises(sqlite3.DatabaseError):
        place.connect(True)
    assert connections[-1].closed


def test_what_is_stored_is_in_no_message_of_the_engine(path: Path) -> None:
    for place in (FilePlace(path, 0), DatabasePlace(ADDRESS, 0)):
        assert place.make_engine(True).hide_parameters is True


def test_one_thread_at_a_time_is_let_in(path: Path) -> None:
    place, same = FilePlace(path, 0.0), FilePlace(path, 0.0)
    told: list[str] = []

    def enter() -> None:
        try:
            with same.gate():
                told.append("in")
        except InvalidInput as refusal:
            told.append(str(refusal))

    def enter_in_a_thread() -> None:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()

    with place.gate(), same.gate():
        enter_in_a_thread()
    enter_in_a_thread()
    with pytest.raises(ZeroDivisionError), place.gate():
        raise ZeroDivisionError
    enter_in_a_thread()
    locked = (
        f"the ledger is locked by another process, and still was after 0 seconds; got {path}; try again, or wait longer"
    )
    assert told == [locked, "in", "in"]
    with DatabasePlace(ADDRESS, 0).gate():
        pass


def test_how_transactions_begin(path: Path) -> None:
    said = []
    for place in (FilePlace(path, 2), DatabasePlace(ADDRESS, 2)):
        for begin in (place.begin_to_read, place.begin_to_write):
            connection: Any = Asked()
            begin(connection)
            said.append(connection.said)
    assert said == [
        ["BEGIN"],
        ["BEGIN IMMEDIATE"],
        ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"],
        ["SET LOCAL lock_timeout = 2000", "SELECT id FROM ledger FOR UPDATE"],
    ]


def test_a_lock_of_a_server_is_never_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL takes 0 for no limit at all, and counts in milliseconds; of a connection, in seconds from 2 on."""
    opened: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr("psycopg.connect", lambda address, **options: opened.append((address, options)))
    for wait, lock, connect in ((0.0, 1, 2), (0.0004, 1, 2), (0.5, 500, 2), (2.6, 2600, 3), (30, 30_000, 30)):
        connection: Any = Asked()
        place = DatabasePlace("postgres://me:s3cret@host/census", wait)
        place._limit_wait(connection)
        assert connection.said == [f"SET LOCAL lock_timeout = {lock}"]
        place.connect(True)
        assert opened.pop() == (
            ADDRESS,
            {"connect_timeout": connect, "client_encoding": "utf8", "fallback_application_name": "cellrisk"},
        )


# What stands in a file.


@pytest.fixture
def objects(path: Path) -> list[tuple[str, str, str | None]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()


def find_flaws(path: Path, *answers: Any) -> list[str]:
    connection: Any = Asked(*answers)
    found = FilePlace(path, 0).find_flaws(connection)
    assert connection.said[0] == "SELECT type, name, sql FROM sqlite_master LIMIT 1001"
    return found


def test_objects_of_a_file_that_are_not_as_they_were_made(path: Path, objects: Any) -> None:
    assert find_flaws(path, objects) == find_flaws(path, objects[::-1]) == []
    guards = [each for each in objects if each[0] == "trigger"]
    assert len(guards) == 3
    for guard in guards:
        others = [each for each in objects if each is not guard]
        name = f"the trigger {guard[1]}, which guards the entries, was"
        assert find_flaws(path, others) == [f"{name} removed"]
        for changed in (guard[2] + " ;", 5):
            assert find_flaws(path, [*others, (*guard[:2], changed)]) == [f"{name} changed"]
        assert find_flaws(path, [*others, (*guard[:2], guard[2].replace(" ", "\n "))]) == []  # words count
        assert find_flaws(path, [*objects, guard]) == ["something is listed twice in the ledger"]
    for foreign in (("view", "more\n" + "x" * 80, "CREATE"), ("index", "sqlite_autoindex_more_1", None)):
        shown = " ".join(foreign[1].split())[:60]
        assert find_flaws(path, [*objects, foreign]) == [f"a foreign {foreign[0]} stands in the ledger: {shown}"]
    automatic = next(each for each in objects if each[0] == "index")
    others = [each for each in objects if each is not automatic]
    assert find_flaws(path, others) == []
    assert find_flaws(path, [*others, (*automatic[:2], "CREATE")]) == [
        f"a foreign index stands in the ledger: {automatic[1]}"
    ]


def test_a_file_of_which_too_much_or_too_little_stands_there(path: Path, objects: Any) -> None:
    """A ledger has fewer than twenty objects; a thousand are still listed one by one."""
    views = [("view", f"more{number}", "CREATE") for number in range(1001 - len(objects))]
    assert len(find_flaws(path, [*objects, *views[1:]])) == len(views) - 1
    with pytest.raises(InvalidInput, match=r"^this is no ledger: too much stands in it; got .*; choose another file$"):
        find_flaws(path, [*objects, *views])
    for missing in ("ledger", "entries"):
        with pytest.raises(
            InvalidInput, match=r"^this is no ledger: its tables are missing; got .*; choose another file$"
        ):
            find_flaws(path, [each for each in objects if each[1] != missing])
    assert find_flaws(path, [each for each in objects if each[1] not in ("pending", "released_files")]) == []


@pytest.mark.parametrize("table", sorted(migrations.TABLES))
def test_a_table_that_was_made_otherwise(path: Path, objects: Any, table: str) -> None:
    made = next(each for each in objects if each[:2] == ("table", table))
    others = [each for each in objects if each is not made]
    columns = [(0, column.name, "", 0, None, 0, 0) for column in migrations.TABLES[table].columns]
    anew = [f"the table {table} was made anew, otherwise than cellrisk makes it"]
    other = ("table", table, made[2] + " STRICT")
    assert find_flaws(path, [*others, other], columns) == anew
    hidden = [*columns[:-1], (*columns[-1][:6], 1)]
    for wrong in (columns[1:], columns[::-1], [*columns, columns[0]], hidden, []):
        with pytest.raises(
            InvalidInput, match=r"^this is no ledger: one of its tables has other columns; got .*; choose"
        ):
            find_flaws(path, [*others, other], wrong)
    for something in (
        [("view", table, made[2])],
        [made, ("view", table, made[2])],
        [("table", table, "CREATE VIRTUAL TABLE")],
        [("table", table, None)],
    ):
        with pytest.raises(
            InvalidInput, match=r"^this is no ledger: one of its tables is something else; got .*; choose"
        ):
            find_flaws(path, [*others, *something], columns)


# What stands in a database.

KINDS = [(name, "r", False, False) for name in migrations.TABLES]
REFUSAL = " BEGIN RAISE EXCEPTION 'entries of a ledger are never changed'; END "
TRIGGERS = [
    ("entries", "entries_are_not_changed", "O", 27, True, REFUSAL),
    ("entries", "entries_are_not_emptied", "O", 34, True, REFUSAL),
]


def find_flaws_of_a_database(kinds: Any, triggers: Any) -> list[str]:
    connection: Any = Asked(kinds, triggers)
    return DatabasePlace(ADDRESS, 0).find_flaws(connection)


def test_objects_of_a_database_that_are_not_as_they_were_made() -> None:
    """As PostgreSQL writes the kinds of triggers: 1 for each row, 2 before, 8 delete, 16 update, 32 truncate."""
    assert find_flaws_of_a_database(KINDS, TRIGGERS) == find_flaws_of_a_database(KINDS[:2], TRIGGERS) == []
    for place, trigger in enumerate(TRIGGERS):
        others = TRIGGERS[:place] + TRIGGERS[place + 1 :]
        name = f"the trigger {trigger[1]}, which guards the entries, was"
        assert find_flaws_of_a_database(KINDS, others) == [f"{name} removed"]
        assert find_flaws_of_a_database(KINDS, [*others, (*trigger[:2], "A", *trigger[3:])]) == []
        for at, value in ((2, "D"), (2, "R"), (3, trigger[3] + 1), (4, False), (5, "BEGIN END")):
            changed = (*trigger[:at], value, *trigger[at + 1 :])
            assert find_flaws_of_a_database(KINDS, [*others, changed]) == [f"{name} changed"]
        assert find_flaws_of_a_database(KINDS, [*others, ("pending", *trigger[1:])]) == [
            f"{name} removed",
            f"a foreign trigger stands in the ledger: {trigger[1]}",
        ]
    for secured, ruled in ((True, False), (False, True)):
        assert find_flaws_of_a_database([*KINDS[1:], ("ledger", "r", secured, ruled)], TRIGGERS) == [
            "the table ledger has rules or hides rows"
        ]
    for kind in ("v", "m", "f", "p"):
        with pytest.raises(InvalidInput, match=r"^this is no ledger: one of its tables is something else; got "):
            find_flaws_of_a_database([*KINDS[1:], ("ledger", kind, False, False)], TRIGGERS)


def test_a_database_is_asked_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for answers, writable in (((True, True, True), True), ((True, True, False), False), ((True, False), True)):
        connection = Asked(*answers)
        monkeypatch.setattr(DatabasePlace, "connect", lambda place, reading, connection=connection: connection)
        place = DatabasePlace(ADDRESS, 0)
        place.find()
        assert place.writable is writable
        assert connection.closed
        assert len(connection.said) == len(answers)
    connection = Asked(False)
    monkeypatch.setattr(DatabasePlace, "connect", lambda place, reading: connection)
    with pytest.raises(InvalidInput) as refused:
        place.find()
    assert str(refused.value) == (
        f"there is no ledger; got {place}; check the address, or make one: "
        "cellrisk ledger create, or Ledger(place, create=True)"
    )


def test_tables_are_made_in_a_database_where_none_of_them_is(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(migrations.TABLES)
    opened: list[bool] = []

    def create(there: list[str]) -> tuple[DatabasePlace, Asked]:
        connection = Asked(None, None, *(name in there for name in names))
        monkeypatch.setattr(
            DatabasePlace,
            "make_engine",
            lambda place, reading: (opened.append(reading), SimpleNamespace(connect=lambda: connection))[1],
        )
        place = DatabasePlace(ADDRESS, 0)
        place.create(lambda given: given.said.append("made"))  # type: ignore[attr-defined]
        return place, connection

    place, connection = create([])
    assert place.made is True
    assert opened == [False]
    assert connection.said[:2] == ["SET LOCAL lock_timeout = 1", f"SELECT pg_advisory_xact_lock({places.CREATION})"]
    assert connection.said[2:] == [*(f"SELECT to_regclass('{name}') IS NOT NULL" for name in names), "made", "commit"]
    with pytest.raises(
        InvalidInput, match=r"^there is a ledger already, or a table of that name; got .*; use it without"
    ):
        create(["ledger", "pending"])
    with pytest.raises(InvalidInput, match=r"^the database has a table of the same name as one of a ledger's; got "):
        create(["pending"])
    connection = Asked()
    monkeypatch.setattr(DatabasePlace, "connect", lambda place, reading: connection if not reading else None)
    place.remove()
    assert connection.said == [
        *(f"DROP TABLE IF EXISTS {name}" for name in ("released_files", "pending", "entries", "ledger")),
        *("DROP FUNCTION IF EXISTS refuse_to_change_entries()", "commit"),
    ]
    assert connection.closed


def test_what_is_no_ledgers_database_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput) as refused:
        DatabasePlace("mysql://me:s3cret@host/census", 0)
    assert str(refused.value) == (
        "a ledger is a file or a PostgreSQL database; got an address of mysql; "
        "allowed: a path, or postgresql://user:password@host/database"
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"needs a driver that is not installed; pip install 'cellrisk\[postgres\]'"):
        DatabasePlace(ADDRESS, 0)


# Errors.


def walk(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_an_error_of_a_driver_leaves_without_its_words(path: Path) -> None:
    """Not in its message, nor in those it came from, whose statement and parameters may hold what is stored."""
    original = sqlite3.OperationalError("a secret")
    wrapped = sa.exc.OperationalError("SELECT secret", {"a": "secret"}, original)
    for error in (
        wrapped,
        original,
        sqlite3.DatabaseError("a secret"),
        UnicodeDecodeError("utf-8", b"secret", 0, 1, "x"),
    ):
        with pytest.raises(InvalidInput) as told, FilePlace(path, 0).plain_refusals():
            raise error
        for each in walk(told.value):
            assert "secret" not in f"{each!r} {each.args} {vars(each)}"
    assert wrapped.statement is None
    assert original.args == ("OperationalError",)
    for ours in (ZeroDivisionError("kept"), KeyError("kept")):
        with pytest.raises(type(ours), match="kept"), FilePlace(path, 0).plain_refusals():
            raise ours


def test_less_than_256_kilobytes_of_room_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite needs that much for a log; it then says only that it cannot open, or that the disk fails."""
    for free, told in (((256 << 10) - 1, "the disk of the ledger is full"), (256 << 10, "the ledger cannot be opened")):
        monkeypatch.setattr(shutil, "disk_usage", lambda folder, free=free: SimpleNamespace(free=free))
        assert str(FilePlace(path, 0).explain(sqlite3.OperationalError("unable to open"))).startswith(told)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: (_ for _ in ()).throw(OSError(2, "gone")))
    assert FilePlace(path, 0)._has_little_room() is False


def test_every_sign_of_damage_is_known(path: Path) -> None:
    damaged = f"the ledger is damaged; got {path}; restore it from a copy; verify tells more"
    for text in ("malformed", "Not a database", "could not decode", "corrupt", "no such table", "too big"):
        assert str(FilePlace(path, 0).explain(sqlite3.DatabaseError(f"x {text} y"))) == damaged
    for error in (MemoryError("x"), UnicodeDecodeError("utf-8", b"x", 0, 1, "y")):
        assert str(FilePlace(path, 0).explain(error)) == damaged
    assert str(FilePlace(path, 0).explain(ValueError("x"))) == f"the ledger cannot be used (ValueError); got {path}"
