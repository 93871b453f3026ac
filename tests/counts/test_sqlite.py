"""DuckDB and SQLite files: what the engines take for equal or missing is counted right, or refused."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from tests.counts.counter import profiles, refused

NEEDS_DUCKDB_2 = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1.5, for Python 3.10, needs more memory and has fewer types"
)


TEXTS = [("a", "x", "p"), ("A", "x ", "P"), ("b", "é", "p"), ("b", "e", "q")]

REFUSED_BY_DUCKDB = ("blob", "geometry", "tuple", "struct", "map", "union", "interval")


@pytest.mark.parametrize("address", ["path", "address", "relation"])
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_collations_of_duckdb_merge_nothing(address: str, collation: str, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        columns = ", ".join(f"{name} TEXT COLLATE {collation}" for name in "qry")
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", TEXTS)
        if address == "relation":
            relation: Any = connection.table("t")
            assert profiles(relation) == {(1,): 2, (1, 1): 1}
            assert profiles(relation, "r") == {(1,): 4}
            return
    source = path if address == "path" else f"duckdb://{path}"
    assert profiles(source, table="t") == {(1,): 2, (1, 1): 1}
    assert profiles(source, "r", table="t") == {(1,): 4}
    assert cr.tabulate(source, "q", "y", table="t").attribute().levels.labels == ("P", "p", "q")


def sqlite_file(path: Path, columns: str, rows: list[tuple[Any, ...]]) -> str:
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    connection.commit()
    connection.close()
    return f"sqlite://{path}"


def test_collations_of_sqlite_merge_nothing(tmp_path: Path) -> None:
    columns = "q TEXT COLLATE NOCASE, r TEXT COLLATE RTRIM, y TEXT COLLATE NOCASE"
    source = sqlite_file(tmp_path / "a.db", columns, TEXTS)
    assert profiles(source, table="t") == {(1,): 2, (1, 1): 1}
    assert profiles(source, "r", table="t") == {(1,): 4}
    assert cr.tabulate(source, "q", "y", table="main.t").attribute().levels.labels == ("P", "p", "q")


@pytest.mark.slow
def test_numbers_and_texts_of_sqlite(tmp_path: Path) -> None:
    rows = [
        (2**53, "1.5", 1, 0.5, 1, b"x", 2**60, "a"),
        (2**53 + 1, " 2 ", 2, 1, "1", b"y", 0.5, "b"),
        (-(2**63), "4e0", 1, 2.5, 1.0, b"z", 1, "a"),
        (None, None, None, None, None, None, None, None),
    ]
    columns = "big INTEGER, digits TEXT, truth BOOLEAN, part NUMERIC, mixed, bytes BLOB, far NUMERIC, y TEXT"
    source = sqlite_file(tmp_path / "a.db", columns, rows)
    labels = cr.tabulate(source, "y", "big", table="t").attribute().levels.labels
    assert labels == ("-9223372036854775808", "9007199254740992", "9007199254740993", "(missing)")
    assert profiles(source, "big", table="t") == {(1,): 4}
    assert profiles(source, "digits", table="t", bins={"digits": 2}) == {(1,): 2, (1, 1): 1}
    assert cr.tabulate(source, "y", "part", table="t").attribute().levels.labels == ("0.5", "1", "2.5", "(missing)")
    for column in ("mixed", "bytes", "far", "truth"):
        with pytest.raises(InvalidInput, match=f"column '{column}' holds values of several types"):
            cr.tabulate(source, column, "y", table="t")
    with pytest.raises(UnknownName, match="did you mean 't'"):
        cr.tabulate(source, "big", "y", table="T")
    (tmp_path / "text.db").write_text("SECRET, this is a text file and no database")
    with pytest.raises(InvalidInput, match="not a SQLite database"):
        cr.tabulate(f"sqlite://{tmp_path}/text.db", "big", "y", table="t")


def test_text_of_sqlite_that_is_not_utf8(tmp_path: Path) -> None:
    source = sqlite_file(tmp_path / "a.db", "q TEXT, y TEXT", [("a", "b"), ("a", "c")])
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("INSERT INTO t VALUES (CAST(x'53454352455480' AS TEXT), 'b')")
    connection.commit()
    connection.close()
    with refused("encoding") as refusal:
        cr.tabulate(source, "q", "y", table="t")
    assert "SECRET" not in str(refusal.value)


@pytest.mark.slow
@NEEDS_DUCKDB_2
def test_every_type_of_duckdb_is_counted_by_its_text_or_refused(tmp_path: Path) -> None:
    """DuckDB's own table of all types: three rows, the least value, the greatest, and none."""
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT *, row_number() OVER () % 2 AS q FROM test_all_types()")
        described = connection.execute("DESCRIBE t").fetchall()
        usable = [
            name
            for name, kind, *_ in described
            if not kind.endswith("]") and name.partition("_")[0] not in (*REFUSED_BY_DUCKDB, "empty", "q")
        ]
        assert len(usable) > 30
        stored = {name: connection.execute(f'SELECT "{name}"::VARCHAR FROM t').fetchall() for name in usable}
        relation = cr.tabulate(connection.table("t"), "q", usable)
        with pytest.raises(InvalidInput, match="column 'int_array' holds array values"):
            cr.tabulate(connection.table("t"), "int_array", "q")
    table = cr.tabulate(path, "q", usable, table="t")
    cells = cr.tabulate(path, usable, "q", table="t")
    assert cells.n_cells == 3
    numbers = ("float", "double", "bool", "dec")
    for found in (table, relation):
        for name in usable:
            labels = found.attribute(name).levels.labels
            expected = {value for (value,) in stored[name] if value is not None}
            assert len(labels) == len(expected) + 1 == 3, name
            if not name.startswith(numbers) and "tz" not in name:
                assert set(labels) == {*expected, "(missing)"}, name
    for name in REFUSED_BY_DUCKDB:
        with pytest.raises(InvalidInput, match=f"column '{name}' holds {'binary' if name == 'blob' else name}"):
            cr.tabulate(path, name, "q", table="t")


def test_a_duckdb_address_is_the_same_as_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine with its limit and its private folder, no extension from elsewhere, nothing beside the user's data."""
    path = tmp_path / "my data.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 'a long text to spill ' || i AS q, i % 2 AS y FROM range(390000) AS r(i)"
        )
    before = (path.read_bytes(), sorted(os.listdir(tmp_path)))
    address = f"duckdb://{tmp_path}/my%20data.db"
    seen: list[Any] = []
    from cellrisk.counts import sources

    real = sources.read_duckdb

    def looked(connection: Any, *given: Any) -> Any:
        names = "'memory_limit', 'temp_directory', 'autoinstall_known_extensions', 'autoload_known_extensions'"
        query = f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})"
        seen.append(dict(connection.execute(query).fetchall()))
        return real(connection, *given)

    monkeypatch.setattr(sources, "read_duckdb", looked)
    assert profiles(address, table="t", memory_limit="200MB") == {(1,): 390_000}
    (settings,) = seen
    assert settings["temp_directory"].endswith("/spill")
    assert settings["memory_limit"].startswith("190.7")
    assert {settings["autoinstall_known_extensions"], settings["autoload_known_extensions"]} == {"false"}
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before
    with refused("no-table"):
        cr.tabulate(address, "q", "y")
