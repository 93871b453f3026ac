"""What engines take for equal, missing or readable when it is not: counted right, or refused with the true reason."""

from __future__ import annotations

import datetime as dt
import math
import os
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from tests.counts.awkward import facts

NAN = math.nan

NEEDS_DUCKDB_2 = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1.5, for Python 3.10, needs more memory and has fewer types"
)


def profiles(source: Any, quasi: Any = "q", sensitive: str = "y", **options: Any) -> dict[tuple[int, ...], int]:
    return dict(cr.tabulate(source, quasi, sensitive, **options).profiles().rows())


@pytest.mark.parametrize("writer", ["pyarrow", "polars", "pandas", "duckdb"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_nan_in_parquet_is_missing(writer: str, kind: pa.DataType, tmp_path: Path) -> None:
    """Statistics leave NaN out, and an engine that trusts them would find none."""
    path = tmp_path / "a.parquet"
    table = pa.table({"q": pa.array([1.0, NAN, 2.0, NAN], kind), "y": ["a", "b", "b", "b"]})
    if writer == "pyarrow":
        pq.write_table(table, path)
    elif writer == "polars":
        pl.DataFrame(table).write_parquet(path)
    elif writer == "pandas":
        table.to_pandas().to_parquet(path)
    else:
        duckdb.from_arrow(table).write_parquet(str(path))
    found = cr.tabulate(path, "q", "y")
    assert (dict(found.profiles().rows()), found.missing_records) == ({(1,): 2, (2,): 1}, (("q", 2),))
    dropped = cr.tabulate(path, "q", "y", missing="drop")
    assert (dropped.n_records, dropped.dropped_records) == (2, 2)
    with pytest.raises(InvalidInput, match="2 records in 'q'"):
        cr.tabulate(path, "q", "y", missing="error")


TEXTS = [("a", "x", "p"), ("A", "x ", "P"), ("b", "é", "p"), ("b", "e", "q")]


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


def test_truth_values_of_sqlite(tmp_path: Path) -> None:
    source = sqlite_file(tmp_path / "a.db", "truth BOOLEAN, y TEXT", [(1, "a"), (0, "b"), (None, "a")])
    assert cr.tabulate(source, "y", "truth", table="t").attribute().levels.labels == ("False", "True", "(missing)")


def test_text_of_sqlite_that_is_not_utf8(tmp_path: Path) -> None:
    source = sqlite_file(tmp_path / "a.db", "q TEXT, y TEXT", [("a", "b"), ("a", "c")])
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("INSERT INTO t VALUES (CAST(x'53454352455480' AS TEXT), 'b')")
    connection.commit()
    connection.close()
    with pytest.raises(InvalidInput, match="not UTF-8") as refusal:
        cr.tabulate(source, "q", "y", table="t")
    assert "SECRET" not in str(refusal.value)


REFUSED_BY_DUCKDB = ("blob", "geometry", "tuple", "struct", "map", "union")


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
        with pytest.raises(InvalidInput, match="column 'int_array' holds list values"):
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
        with pytest.raises(InvalidInput, match=f"column '{name}' holds {name}"):
            cr.tabulate(path, name, "q", table="t")


def test_spans_of_one_length_are_different_values(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (q INTERVAL, y TEXT)")
        connection.execute(
            "INSERT INTO t VALUES ('1 month', 'a'), ('30 days', 'a'), ('720 hours', 'b'), ('1 day', 'b')"
        )
        assert profiles(connection.table("t")) == {(1,): 4}
    assert profiles(path, table="t") == {(1,): 4}
    labels = cr.tabulate(path, "y", "q", table="t").attribute().levels.labels
    assert labels == ("1 day", "1 month", "30 days", "720:00:00")


def test_durations_alike_from_frames_and_files(tmp_path: Path) -> None:
    table = pa.table({"q": pa.array([dt.timedelta(1), dt.timedelta(2), dt.timedelta(1), None]), "y": list("abab")})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, table.to_pandas(), pl.DataFrame(table), tmp_path / "a.parquet", table.to_reader()):
        assert cr.tabulate(source, "y", "q").attribute().levels.labels == ("24:00:00", "48:00:00", "(missing)")
    fine = pa.table({"q": pa.array([1, 2, 1001], pa.duration("ns")), "y": list("aab")})
    pq.write_table(fine, tmp_path / "b.parquet")
    for source in (fine, tmp_path / "b.parquet"):
        with pytest.raises(InvalidInput, match="column 'q' "):
            cr.tabulate(source, "q", "y")


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("ns")], ids=str)
def test_nanoseconds_are_not_rounded(kind: pa.DataType, tmp_path: Path) -> None:
    """Before version 2, DuckDB rounds those of times and of moments in a zone: they are refused."""
    table = pa.table({"q": pa.array([1, 2, 1001, 2], kind), "y": list("abab")})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        if duckdb.__version__ < "2" and kind != pa.timestamp("ns"):
            with pytest.raises(InvalidInput, match="holds nanoseconds"):
                profiles(source)
            continue
        assert profiles(source) == {(1,): 2, (2,): 1}


def test_decimals_of_more_than_38_digits_are_refused(tmp_path: Path) -> None:
    values = [Decimal("1" * 45), Decimal("1" * 44 + "2"), Decimal(1)]
    table = pa.table({"q": pa.array(values, pa.decimal256(50, 0)), "y": list("aba")})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, table.to_reader(), table.to_pandas(), tmp_path / "a.parquet"):
        with pytest.raises(InvalidInput, match=r"column 'q' holds decimals of (45|50) digits, and 38"):
            cr.tabulate(source, "q", "y")
    close = [Decimal("1" * 38), Decimal("1" * 37 + "2"), Decimal(1)]
    table = pa.table({"q": pa.array(close, pa.decimal256(38, 0)), "y": list("aba")})
    pq.write_table(table, tmp_path / "b.parquet")
    for source in (table, tmp_path / "b.parquet"):
        assert profiles(source) == {(1,): 3}


def test_a_column_in_the_file_and_in_its_folders_is_refused(tmp_path: Path) -> None:
    for value in "12":
        folder = tmp_path / f"x={value}" / f"z={value}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": ["7", "8"], "y": ["a", "b"]}), folder / "f.parquet")
    pattern = tmp_path / "**" / "*.parquet"
    assert profiles(pattern, "z") == {(1, 1): 2}
    for quasi in ("x", ["x", "z"]):
        with pytest.raises(InvalidInput, match="column 'x' is both in the file and in the names of its folders"):
            cr.tabulate(pattern, quasi, "y")


@pytest.mark.parametrize("name", ["f0", "c0", "files", "column 0", 'a "quoted" name'])
def test_columns_of_a_file_and_of_its_folders_may_have_any_names(name: str, tmp_path: Path) -> None:
    for value in "12":
        folder = tmp_path / f"{name}={value}"
        folder.mkdir()
        pq.write_table(pa.table({"Q": [1, 1], "q": [1, 2], "y": ["a", "b"]}), folder / "x.parquet")
    pattern = tmp_path / "**" / "*.parquet"
    assert profiles(pattern, "Q", count=False) == {(2, 2): 1}
    assert profiles(pattern, "q", count=False) == {(2,): 2}
    assert profiles(pattern, ["q", name], count=False) == {(1,): 4}
    assert profiles(pattern, [name, "Q"], count=False) == {(1, 1): 2}


@pytest.mark.parametrize(
    ("kind", "log"),
    [
        ("Delta", "_delta_log/00000000000000000000.json"),
        ("Iceberg", "metadata/v1.metadata.json"),
        ("Hudi", ".hoodie/hoodie.properties"),
    ],
)
def test_tables_with_a_log_are_refused_by_name(kind: str, log: str, tmp_path: Path) -> None:
    table = tmp_path / "people"
    (table / "data").mkdir(parents=True)
    pq.write_table(pa.table({"q": [1, 2], "y": ["a", "b"]}), table / "data" / "removed.parquet")
    assert profiles(table / "data" / "*.parquet") == {(1,): 2}
    (table / log).parent.mkdir()
    (table / log).write_text("{}")
    for source in (table, table / "data" / "*.parquet", table / "data" / "removed.parquet"):
        with pytest.raises(InvalidInput, match=f"table of {kind}") as refusal:
            cr.tabulate(source, "q", "y")
        assert "for instance" not in str(refusal.value)


@NEEDS_DUCKDB_2
@pytest.mark.parametrize("quoted", [False, True])
def test_long_fields_of_text(quoted: bool, tmp_path: Path) -> None:
    mark, path = '"' if quoted else "", tmp_path / "a.csv"
    field = mark + ("x\n" if quoted else "xx") * 2_500_000 + mark
    path.write_text(f"q,y\n{field},a\n{field},b\nc,b\n", encoding="utf-8")
    assert profiles(path, memory_limit="200MB") == {(1, 1): 1, (1,): 1}
    path.write_text(f"q,y\n{field * 8},a\n{field * 8},b\nc,b\n".replace('""', ""), encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 2 is longer than 32 MB"):
        cr.tabulate(path, "q", "y")
    path.write_text(f"{'x' * 200_000},q,y\n1,c,b\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="a field of the header of the file is too long"):
        cr.tabulate(path, "q", "y")


def test_text_packed_by_zstd(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zst"
    content = pa.compress(b"q,y\n1,a\n1,b\n2,a\n" + b"3,a\n" * 10_000, "zstd", asbytes=True)
    path.write_bytes(content)
    assert profiles(path) == {(1, 1): 1, (1,): 1, (10_000,): 1}
    for damaged in (content[:-5], b"q,y\n1,a\n"):
        path.write_bytes(damaged)
        with pytest.raises(InvalidInput, match="not whole zstd"):
            cr.tabulate(path, "q", "y")


def test_a_duckdb_address_is_the_same_as_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine with its limit and its private folder, no extension from elsewhere, nothing beside the user's data."""
    path = tmp_path / "my data.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 'a long text to spill ' || i AS q, i % 2 AS y FROM range(900000) AS r(i)"
        )
    before = (path.read_bytes(), sorted(os.listdir(tmp_path)))
    address = f"duckdb://{tmp_path}/my%20data.db"
    seen: list[Any] = []
    from cellrisk.counts import sources

    real = sources.read_stored

    def looked(connection: Any, *given: Any) -> Any:
        names = "'memory_limit', 'temp_directory', 'autoinstall_known_extensions', 'autoload_known_extensions'"
        query = f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})"
        seen.append(dict(connection.execute(query).fetchall()))
        return real(connection, *given)

    monkeypatch.setattr(sources, "read_stored", looked)
    assert profiles(address, table="t", memory_limit="200MB") == {(1,): 900_000}
    (settings,) = seen
    assert settings["temp_directory"].endswith("/spill")
    assert settings["memory_limit"].startswith("190.7")
    assert {settings["autoinstall_known_extensions"], settings["autoload_known_extensions"]} == {"false"}
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before
    with pytest.raises(InvalidInput, match="which one"):
        cr.tabulate(address, "q", "y")


# Streams of Arrow batches


class Other:
    """A frame of some other library: all that is known of it is its stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", ["dataset", "files", "scanner", "reader", "narwhals", "narwhals lazy", "other"])
def test_streams_of_arrow_batches(kind: str, people: list[dict[str, Any]], tmp_path: Path) -> None:
    import narwhals

    table = pa.Table.from_pylist(people)
    table = table.set_column(1, "sex", table["sex"].dictionary_encode())
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    sources: dict[str, Any] = {
        "dataset": lambda: pa.dataset.dataset(table),
        "files": lambda: pa.dataset.dataset(tmp_path),
        "scanner": lambda: pa.dataset.dataset(table).scanner(filter=pa.dataset.field("age") > 0),
        "reader": lambda: table.to_reader(max_chunksize=5),
        "narwhals": lambda: narwhals.from_native(table.to_pandas()),
        "narwhals lazy": lambda: narwhals.from_native(pl.LazyFrame(table)),
        "other": lambda: Other(table),
    }
    quasi, sensitive = ["age", "sex", "city"], ["job", "ill"]
    source = sources[kind]()
    found = cr.tabulate(source, quasi, sensitive)
    assert facts(found) == facts(cr.tabulate(table, quasi, sensitive))
    assert found.cells("job").n_cells == found.n_cells
    if kind == "reader":
        with pytest.raises(InvalidInput, match="a stream can be read only once"):
            cr.tabulate(source, quasi, sensitive)
    with pytest.raises(UnknownName, match="no column 'nope'"):
        cr.tabulate(sources[kind](), "nope", "job")


def test_streams_that_fail_say_nothing_of_the_data() -> None:
    def batches() -> Any:
        yield pa.record_batch({"q": ["a"], "y": ["b"]})
        raise ValueError("SECRET")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("q", pa.string()), ("y", pa.string())]), batches())
    with pytest.raises(InvalidInput, match=r"the frame or stream cannot be read") as refusal:
        cr.tabulate(reader, "q", "y")
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    with pytest.raises(InvalidInput, match="column 'q' holds binary values"):
        cr.tabulate(Other(pa.table({"q": [b"x"], "y": ["b"]})), "q", "y")
    with pytest.raises(InvalidInput, match="be read"):  # a stream of Arrow batches from pandas 3 on
        cr.tabulate(pd.Series([1, 2]), "q", "y")


def test_a_stream_larger_than_a_batch_is_read_to_its_end() -> None:
    batch = pa.record_batch({"q": pa.array(range(50_000)), "y": pa.array([1, 2] * 25_000)})
    reader = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(12)))
    assert profiles(reader) == {(12,): 50_000}


# Ibis tables, each through its own backend


def check_ibis(source: Any, table: pa.Table) -> None:
    quasi, sensitive = ["age", "sex", "city"], ["job", "ill"]
    found = cr.tabulate(source, quasi, sensitive)
    assert facts(found) == facts(cr.tabulate(table, quasi, sensitive))
    assert found.cells("job").n_cells == found.n_cells
    with pytest.raises(UnknownName, match="the Ibis table has no column 'nope'"):
        cr.tabulate(source, "nope", "job")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_ibis_tables_in_this_process(people: list[dict[str, Any]], tmp_path: Path) -> None:
    import ibis

    table = pa.Table.from_pylist(people)
    more = pa.concat_tables([table, table.slice(0, 3).set_column(0, "age", pa.array([99, 99, 99]))])
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.register("frame", more)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    backends = {
        "duckdb": (ibis.duckdb.connect(tmp_path / "a.duckdb", read_only=True), "people"),
        "polars": (ibis.polars.connect({"people": pl.DataFrame(more)}), "people"),
    }
    for backend, name in backends.values():
        source = backend.table(name)
        check_ibis(source.filter(source.age < 99), table)
        backend.disconnect()
    check_ibis(ibis.memtable(table), table)
    with pytest.raises(InvalidInput, match="not bound to any data"):
        cr.tabulate(ibis.table({"q": "string", "y": "string"}, name="nowhere"), "q", "y")
    with pytest.raises(InvalidInput, match="leave table out"):
        cr.tabulate(ibis.memtable(table), "age", "job", table="people")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_ibis_tables_with_a_collation(tmp_path: Path) -> None:
    import ibis

    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t (q TEXT COLLATE NOCASE, r TEXT, y TEXT)")
    for text, other, level in TEXTS:
        backend.con.execute("INSERT INTO t VALUES (?, ?, ?)", (text, other.replace("é", "E"), level))
    table = backend.table("t")
    assert profiles(table) == {(1,): 2, (1, 1): 1}
    backend.disconnect()
