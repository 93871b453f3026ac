"""Databases: the same table as from the embedded engine, counted on the server, and no word of who logs in."""

from __future__ import annotations

import logging
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cellrisk.counts import database
from cellrisk.counts.counting import tabulate
from cellrisk.counts.database import read_address
from cellrisk.errors import UnknownName
from tests.counts.counter import facts, refused
from tests.counts.postgres_server import ENCODED, PASSWORD, RECORDS, SOURCE, Server, running_server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


CASES: dict[str, tuple[list[str], str | list[str], dict[str, Any]]] = {
    "text": (["place"], "job", {}),
    "text and numbers": (["place", "Age"], "job", {}),
    "floating point": (["height", "size"], "job", {}),
    "truth, dates, decimals": (["flag", "born", "pay"], "job", {}),
    "moments and padded text": (["seen", "code"], "job", {}),
    "whole numbers as levels": (["place"], "rank", {}),
    "padded text as levels": (["rank"], "code", {"levels": {"code": ["", "a", "ab", "ab c", "absent"]}}),
    "bins": (["Age", "height"], "job", {"bins": {"Age": 5, "height": [-1, 0, 1, 2]}}),
    "bins of text": (["text of number", "flag"], "job", {"bins": {"text of number": 2}}),
    "counts with bins": (["place", "Age"], ["job", "rank"], {"count": "weight", "bins": {"Age": 10}}),
    "many and few": (["place", "flag"], ["many", "job"], {"count": "weight"}),
    "outside": (
        ["place", "height", "text of number"],
        ["job", "rank", "pay"],
        {
            "outside": "drop",
            "levels": {"place": ["Ulm", "nowhere"], "height": [0, 1.5, -0.5, 2], "rank": [1, 2.0, 9, 0]},
            "bins": {"text of number": [1, 3], "pay": [0, 1]},
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_postgresql_gives_what_the_embedded_engine_gives(server: Server, name: str) -> None:
    """An account that may only read the table is enough."""
    quasi, sensitive, options = CASES[name]
    here = tabulate(SOURCE, quasi, sensitive, **options)
    there = tabulate(server.address("reader"), quasi, sensitive, table="people", **options)
    assert facts(there) == facts(here)


@pytest.mark.parametrize("table", ["people", "public.people", "Other.place.People", "seen_people", "kept_people"])
def test_tables_by_name_and_schema_and_views(server: Server, table: str) -> None:
    here = tabulate(SOURCE, ["place", "Age"], "job")
    assert facts(tabulate(server.address(), ["place", "Age"], "job", table=table)) == facts(here)


def test_a_read_only_session_will_do(server: Server) -> None:
    rest = "?options=-c%20default_transaction_read_only%3Don%20-c%20DateStyle%3DGerman"
    here = tabulate(SOURCE, ["place"], ["born", "many"])
    assert facts(tabulate(server.address(rest=rest), ["place"], ["born", "many"], table="people")) == facts(here)


LABELS = {
    "mood": ("merry", "sad"),
    "whole": ("0", "1", "2", "3"),
    "net": ("10.0.0.0/32", "10.0.0.1/32"),
    "free": ("0.001", "1", "(missing)"),
}


@pytest.mark.parametrize("column", LABELS)
def test_types_of_postgresql_alone(server: Server, column: str) -> None:
    assert tabulate(server.address(), "q", column, table="kinds").attribute().levels.labels == LABELS[column]


@pytest.mark.parametrize(("column", "kind"), [("list", "integer array"), ("document", "jsonb"), ("bytes", "bytea")])
def test_types_without_plain_values_are_refused(server: Server, column: str, kind: str) -> None:
    with refused("column-type"):
        tabulate(server.address(), "q", column, table="kinds")


def test_nothing_is_left_on_the_server(server: Server) -> None:
    with server.connect() as connection:
        query = "SELECT oid, relname, relfilenode FROM pg_class WHERE oid >= 16384 AND relname !~ '^pg_' ORDER BY oid"
        before = connection.execute(query).fetchall()
        tabulate(server.address(), ["place", "Age"], ["job", "many"], table="people")
        assert connection.execute(query).fetchall() == before
        wait_for_no_session(connection)


def wait_for_no_session(connection: Any) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cellrisk'"
    deadline = time.monotonic() + 60
    while connection.execute(query).fetchone() != (0,):
        assert time.monotonic() < deadline, "a session is still open"
        time.sleep(0.02)


def after_the_first_statement(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    find_table = database.find_table

    def found_table(*given: Any) -> Any:
        found = find_table(*given)
        act()
        return found

    monkeypatch.setattr(database, "find_table", found_table)


def test_one_moment_for_every_query(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS moving; CREATE TABLE moving AS SELECT place, job FROM people")
        insert = "INSERT INTO moving VALUES ('Ulm', 'cook'), ('new', 'new')"
        here = tabulate(SOURCE, "place", "job")
        after_the_first_statement(monkeypatch, lambda: connection.execute(insert))
        assert facts(tabulate(server.address(), "place", "job", table="moving")) == facts(here)
        assert connection.execute("SELECT count(*) FROM moving").fetchone() == (len(RECORDS) + 2,)


def kill_sessions(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cellrisk'")
        wait_for_no_session(connection)


Act = Callable[[Server], object]


def plain(server: Server, table: str | None = "people", **parts: str) -> object:
    return tabulate(server.address(**parts), "place", "job", table=table)


REFUSALS: dict[str, tuple[str, Act]] = {
    "wrong password": ("no-connection", lambda s: plain(s, password=ENCODED + "x")),
    "wrong user": ("no-connection", lambda s: plain(s, user="nobody%40home")),
    "unknown database": ("no-connection", lambda s: plain(s, database="password")),
    "unknown host": ("no-connection", lambda s: at("nowhere.invalid")),
    "refused port": ("no-connection", lambda s: at("127.0.0.1:1")),
    "unknown option": ("no-connection", lambda s: plain(s, rest=f"?secret={ENCODED}")),
    "no table": ("no-table", lambda s: plain(s, None)),
    "unknown table": ("no-table", lambda s: plain(s, "peeple")),
    "table of another case": ("no-table", lambda s: plain(s, "PEOPLE")),
    "injected table": ("no-table", lambda s: plain(s, 'people"; DROP TABLE people; --')),
    "unreadable table": ("no-right", lambda s: plain(s, "hidden", user="reader")),
    "unknown column": ("no-column", lambda s: tabulate(s.address(), "Place", "job", table="people")),
    "time limit": ("stopped", lambda s: plain(s, rest="?options=-c%20statement_timeout%3D1ms")),
    "slash in password": ("address", lambda s: plain(s, password="12/s3kret")),
    "bracket in password": ("address", lambda s: plain(s, password="s3kret[1")),
    "other engine": ("address", lambda s: tabulate("s3kret2://me:s3kret@h/d", "a", "b", table="t")),
}


def at(host: str) -> object:
    return tabulate(f"postgresql://owner:{ENCODED}@{host}/census", "place", "job", table="people")


def everything_said(error: BaseException) -> str:
    said = "".join(traceback.format_exception(error))
    link: BaseException | None = error
    while link is not None:
        said += f"{link!r} {link} {link.args!r} {vars(link)!r}"
        link = link.__cause__ or link.__context__
    return said


def check_refusal(code: str, act: Callable[[], object], watch: Any, output: Any) -> str:
    watch.set_level(logging.DEBUG)
    with refused(code) as caught:
        act()
    assert "\n" not in str(caught.value)
    captured = output.readouterr()
    lines = [
        line for line in everything_said(caught.value).splitlines() if "lambda" not in line and "plain(s" not in line
    ]
    said = "\n".join(lines) + watch.text + captured.out + captured.err
    for secret in ("s3kret", PASSWORD, ENCODED):
        assert secret not in said.replace("s3kret2://", "")
    return str(caught.value)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_one_line_without_secrets(server: Server, name: str, caplog: Any, capsys: Any) -> None:
    code, act = REFUSALS[name]
    check_refusal(code, lambda: act(server), caplog, capsys)


def test_a_connection_that_ends_while_rows_come(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: Any, capsys: Any
) -> None:
    """DuckDB and Arrow hide why a stream ended; the refusal says it."""
    monkeypatch.setattr(database, "ROWS", 7)

    load = database.load_stream

    def kill_and_load(*given: Any) -> Any:
        kill_sessions(server)
        return load(*given)

    monkeypatch.setattr(database, "load_stream", kill_and_load)
    read = partial(tabulate, server.address(), ["place", "Age"], "job", table="people")
    check_refusal("connection-lost", read, caplog, capsys)


FAILING_VIEWS = {
    "division by zero": "1 / (length(job) - 2)",
    "numeric value out of range": "2147483647 + length(job)",
    "invalid text representation": "job::integer",
    "substring error": "substring(job from 1 for length(job) - 9)",
}


@pytest.mark.parametrize("words", FAILING_VIEWS)
def test_a_view_that_fails_on_a_record_is_refused_with_the_reason(
    server: Server, words: str, caplog: Any, capsys: Any
) -> None:
    with server.connect() as connection:
        rows = "(VALUES ('s3kret'), ('ab')) AS t(job)"
        connection.execute(
            "DROP VIEW IF EXISTS failing; "
            f"CREATE VIEW failing AS SELECT {FAILING_VIEWS[words]} AS place, job FROM {rows}"
        )
    assert words in check_refusal("failing-view", lambda: plain(server, "failing"), caplog, capsys)


HARD_NUMBERS = ["1e400", "1e-400", "NaN", "Infinity", "-Infinity", "9" * 60, f"0.{'0' * 50}1", "9007199254740993", "5"]


def test_decimals_of_any_size(server: Server) -> None:
    """Each is a level of its own and NaN is missing; in bins, what is no finite number is outside."""
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS hard; CREATE TABLE hard (number numeric, job text)")
        rows = [(number, job) for number in HARD_NUMBERS for job in "ab"]
        connection.cursor().executemany("INSERT INTO hard VALUES (%s::numeric, %s)", rows)
    found = tabulate(server.address(), "number", "job", table="hard")
    assert (found.n_cells, found.missing_records) == (len(HARD_NUMBERS), (("number", 2),))
    binned = tabulate(server.address(), "number", "job", table="hard", bins={"number": [0, 10]}, outside="drop")
    kept = ["1e-400", "NaN", "9" * 60, f"0.{'0' * 50}1", "9007199254740993", "5"]
    assert (binned.n_records, binned.outside_records) == (2 * len(kept), 2 * (len(HARD_NUMBERS) - len(kept)))
    assert binned.cells().domains[0].labels[:4] == ("up to 0", "(0, 10]", "above 10", "(missing)")


def test_dates_that_python_does_not_know(server: Server) -> None:
    with server.connect() as connection:
        connection.execute(
            "DROP TABLE IF EXISTS far; CREATE TABLE far AS SELECT day::date, moment::timestamptz, job FROM (VALUES "
            "('infinity', '-infinity', 'a'), ('0044-03-15 BC', '12026-01-01 12:00+02', 'b'), (NULL, NULL, 'a')) "
            "AS t(day, moment, job)"
        )
    assert tabulate(server.address(), ["day", "moment"], "job", table="far").n_cells == 3


def test_an_interrupt_stops_the_query_on_the_server(server: Server) -> None:
    with server.connect() as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW slow AS SELECT pg_sleep(1)::text AS place, i AS job FROM generate_series(1, 600) i"
        )
        code = "import sys, cellrisk; cellrisk.tabulate(sys.argv[1], 'place', 'job', table='slow')"
        child = subprocess.Popen([sys.executable, "-c", code, server.address()], stderr=subprocess.PIPE, text=True)
        try:
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cellrisk' AND wait_event = 'PgSleep'"
            )
            deadline = time.monotonic() + 60
            while connection.execute(query).fetchone() == (0,):
                assert time.monotonic() < deadline, "the query did not start"
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=60)
        finally:
            child.kill()
        assert "KeyboardInterrupt" in err
        wait_for_no_session(connection)


def test_addresses_say_host_and_database_at_most() -> None:
    address = f"postgresql+psycopg://me:{ENCODED}@Host:1/my%20db/schema?password=s3kret"
    assert read_address(address) == ("postgresql", "database 'my db' on host")


def test_a_pickled_table_has_forgotten_its_address(server: Server) -> None:
    table = tabulate(server.address(), "place", "job", table="people")
    assert table.cells().n_cells == table.n_cells
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(table, protocol)
        assert not [secret for secret in (PASSWORD, ENCODED, "127.0.0.1") if secret.encode() in pickled]
    assert not [secret for secret in (PASSWORD, ENCODED) if secret in f"{table!r} {table} {vars(table)}"]
    with refused("no-cells"):
        pickle.loads(pickled).cells()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a%20b.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE people (place TEXT, Age INTEGER, job TEXT, many TEXT, height REAL, weight INTEGER)"
        )
        rows = [[record[name] for name in ("place", "Age", "job", "many", "height", "weight")] for record in RECORDS]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


@pytest.mark.parametrize("options", [{}, {"count": "weight"}, {"bins": {"Age": 10}}, {"missing": "drop"}], ids=str)
@pytest.mark.parametrize("quasi", [["place", "Age"], ["Age", "height"]], ids=str)
def test_a_sqlite_file_gives_the_same(file: Path, quasi: list[str], options: dict[str, Any]) -> None:
    here = tabulate(SOURCE, quasi, "job", **options)
    before = file.read_bytes()
    assert facts(tabulate(f"sqlite://{quote(str(file))}", quasi, "job", table="people", **options)) == facts(here)
    assert (file.read_bytes(), [path.name for path in file.parent.iterdir()]) == (before, [file.name])


def test_refusals_of_a_sqlite_file(file: Path) -> None:
    address = f"sqlite://{quote(str(file))}"
    with pytest.raises(UnknownName, match="did you mean 'people'"):
        tabulate(address, "place", "job", table="peopel")
    with refused("no-file"):
        tabulate(f"{address}x", "place", "job", table="people")
    assert not Path(f"{file}x").exists()


def test_any_dialect_of_sqlalchemy_is_read(file: Path) -> None:
    """SQLAlchemy's own driver for SQLite stands for databases that are not tested here."""
    here = tabulate(SOURCE, ["place", "Age"], "job", count="weight", bins={"Age": 10})
    there = tabulate(
        f"sqlite+pysqlite:///{quote(str(file))}",
        ["place", "Age"],
        "job",
        table="people",
        count="weight",
        bins={"Age": 10},
    )
    assert facts(there) == facts(here)


def test_a_collation_that_merges_texts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (place TEXT COLLATE NOCASE, job TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [("Ulm", "a"), ("ULM", "b")])
    connection.close()
    with refused("collation"):
        tabulate(f"sqlite+pysqlite:///{path}", "place", "job", table="people")


def test_a_missing_driver_is_named() -> None:
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        with refused("no-driver") as caught:
            tabulate("mysql://me:s3kret@host/db", "place", "job", table="people")
        assert "s3kret" not in str(caught.value)
    else:
        pytest.skip("the driver for MySQL is installed here")
