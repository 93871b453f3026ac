"""A real Spark on this machine gives what DuckDB gives, number by number, and refuses what would be counted wrong."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cellrisk
from cellrisk.cli import main
from cellrisk.counts import counting, engine, spark
from cellrisk.counts.counting import tabulate
from tests.counts import counter
from tests.counts.counter import facts, write_csv, write_parquet
from tests.counts.spark_cluster import FAST, need_spark
from tests.counts.test_counter import check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves the closing of sockets to Python
]
SECRET = "Xyzzy7391"


def make_table(rows: int = 300) -> pa.Table:
    """Return rows that differ in how Spark and DuckDB might read them."""
    chance = random.Random(7)
    pools: dict[str, tuple[list[Any], pa.DataType]] = {
        "text": (
            [None, "", " ", "x", "X", "é", "e\u0301", 'q"q', "\\", "1", "01", "a,b", "two\nlines"],
            pa.string(),
        ),
        "real": ([None, 0.0, -0.0, 0.1, 1e23, 5e-324, float("nan"), float("inf")], pa.float64()),
        "age": ([None, 0, 5, 17, 18, 120], pa.int32()),
        "job": (["", "cook", "Cook", "it's", "${env:HOME}"], pa.string()),
        "small": ([None, -128, 0, 127], pa.int8()),
    }
    return pa.table({name: pa.array(chance.choices(pool, k=rows), kind) for name, (pool, kind) in pools.items()})


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parquet(make_table(), tmp_path_factory.mktemp("people") / "a.parquet")


def same(source: Any, embedded: Any, **request: Any) -> None:
    assert facts(tabulate(source, engine="spark", **request)) == facts(tabulate(embedded, **request))


def test_folders_that_name_columns_give_what_duckdb_gives(session: Any, tmp_path: Path) -> None:
    """Leading zeros are kept, escaped letters are read, and the name that stands for a missing value is one."""
    for month, city in product(("01", "1", "10"), ("K%C3%B6ln", "a b", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / "with space" / f"month={month}" / f"city={city}"
        folder.mkdir(parents=True)
        counts = pa.table({"sex": ["f", "m", "f", None], "job": ["a", "b", "a", month]})
        pq.write_table(counts, folder / "part.parquet")
    source = str(tmp_path / "with space" / "*" / "*" / "*.parquet")
    for names in (["month", "sex"], ["sex", "city", "month"], ["sex"]):
        same(source, source, quasi_identifiers=names, sensitive=["job"])
    assert tabulate(source, ["month", "city"], "job", engine="spark").n_cells == 9
    refused("no-column", source, "year", "job")


def test_frames_and_tables_however_they_are_cut(session: Any, people: Path) -> None:
    request: dict[str, Any] = {"quasi_identifiers": ["text", "real"], "sensitive": ["job"]}
    expected = facts(tabulate(people, **request))
    frame = session.read.parquet(str(people))
    frame = frame.repartition(7)
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.sparkContext.setLogLevel("FATAL")
    root = session.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    try:
        assert facts(tabulate(frame, **request)) == expected
        assert facts(tabulate(frame.orderBy("text").coalesce(1), **request)) == expected
        assert session.conf.get("spark.sql.ansi.enabled") == "false"
        assert root.getLevel().toString() == "FATAL"
        assert session.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
        assert not session.sparkContext._jsc.getPersistentRDDs()
    finally:
        session.sparkContext.setLogLevel("OFF")
        session.conf.unset("spark.sql.ansi.enabled")
        for name, value in FAST.items():
            session.conf.set(name, value)


def test_several_files_and_shapes(session: Any, tmp_path: Path) -> None:
    table = make_table(60).select(["text", "age", "job", "small"])
    write_csv(table[:30], tmp_path / "p[1].csv")
    write_csv(table[30:].select(["job", "small", "age", "text"]), tmp_path / "p{2}.csv")
    refused("no-header", tmp_path / "p*.csv", ["text", "age"], "job")
    write_csv(table[30:], tmp_path / "p{2}.csv")
    same(tmp_path / "p*.csv", tmp_path / "p*.csv", quasi_identifiers=["text", "age"], sensitive="job")
    pq.write_table(table[:30], tmp_path / "p1.parquet")
    narrow = table[30:].set_column(1, "age", table[30:]["age"].cast(pa.int64())).select(["job", "age", "text"])
    pq.write_table(narrow, tmp_path / "p 2.parquet")
    refused("column-type", tmp_path / "*.parquet", ["text", "age"], "job")
    pq.write_table(table[30:].select(["job", "age", "text"]), tmp_path / "p 2.parquet")
    same(tmp_path / "*.parquet", tmp_path / "*.parquet", quasi_identifiers=["text", "age"], sensitive="job")


def test_addresses_and_names(session: Any, tmp_path: Path) -> None:
    pq.write_table(make_table(60).select(["text", "small"]), tmp_path / "p1.parquet")
    same(f"file://{tmp_path}/p1.parquet", tmp_path / "p1.parquet", quasi_identifiers="text", sensitive="small")
    (tmp_path / "plain.csv").write_text("a;y\np;u\np;v\n;u\n", encoding="utf-8")
    same(f"file://{tmp_path}/plain.csv", tmp_path / "plain.csv", quasi_identifiers="a", sensitive="y")
    names = pa.table(
        [["p", "p", "r"], ["u", "v", "u"], ["1", "2", "3"], ["4", "5", "6"]], names=["A", "a", "b.c", "x`y"]
    )
    pq.write_table(names, tmp_path / "names.parquet")
    same(tmp_path / "names.parquet", tmp_path / "names.parquet", quasi_identifiers=["A", "b.c"], sensitive=["a", "x`y"])


def test_text_that_is_hard_to_cut(session: Any, tmp_path: Path) -> None:
    for content in (
        b"a\ty\n\t\nx\tu\nx\tv\n\n\t\n",
        b'"a",y\r\n"p\r\nq",u\r\n"p\r\nq",v\r\n"",u\r\n,u\r\n',
        b'\xef\xbb\xbfa,y\n#1,u\n"q""q",v\n\\,u\n 1,v\n',
    ):
        path = tmp_path / ("a.tsv" if b"\t" in content else "a.csv")
        path.write_bytes(content)
        same(path, path, quasi_identifiers="a", sensitive="y")


def refused(code: str, source: Any, *roles: Any, **options: Any) -> None:
    quasi, sensitive = roles or ("a", "y")
    with counter.refused(code) as caught:
        tabulate(source, quasi, sensitive, engine="spark", **options)
    text = str(caught.value)
    assert "\n" not in text, text
    assert SECRET not in text, text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


BAD_TEXT: dict[str, tuple[str, str | bytes]] = {
    "long line": ("damaged", f"a,y,z\n1,u,1\n2,v,{SECRET},3\n"),
    "short line": ("damaged", f"a,y,z\n1,u,1\n2,{SECRET}\n"),
    "line of blanks": ("damaged", f"a,y\n{SECRET},u\n   \n2,v\n"),
    "open quote": ("damaged", f'a,y\n1,u\n2,"{SECRET}\n3,v\n'),
    "quote inside": ("damaged", f'a,y\n1,u\n"{SECRET}"x,v\n"p",u\n'),
    "blank before a quote": ("damaged", f'a,y\n1,u\n "{SECRET}" ,v\n'),
    "late latin": ("damaged", b"a,y\n" + b"1,u\n" * 20000 + SECRET.encode() + b",\xe9\n"),
    "no records": ("no-records", "a,y\n"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text(case: str, session: Any, tmp_path: Path) -> None:
    code, content = BAD_TEXT[case]
    refused(code, put(tmp_path / "a.csv", content))


def test_damaged_and_vanished_files(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": [f"{SECRET}{place}" for place in range(5000)], "y": ["u", "v"] * 2500})
    pq.write_table(table, tmp_path / "a.parquet")
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[100:3000] = b"\xff" * 2900
    refused("damaged", put(tmp_path / "b.parquet", bytes(data)))
    pq.write_table(table.append_column("t", pa.array([1] * 5000, pa.timestamp("ns"))), tmp_path / "c.parquet")
    refused("column-type", tmp_path / "c.parquet", "a", "t")
    read = spark.use_columns

    def vanish(*given: Any) -> Any:
        (tmp_path / "a.parquet").unlink()
        return read(*given)

    monkeypatch.setattr(spark, "use_columns", vanish)
    refused("no-file", tmp_path / "a.parquet")


def test_more_combinations_than_come_here(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted in Spark, and only profiles come here; what needs keys is refused."""
    monkeypatch.setattr(engine, "MOST_CELLS", 2)
    frame = session.createDataFrame([(1, "u"), (2, "v"), (3, "u")], "a int, y string")
    table = tabulate(frame, "a", "y")
    assert dict(table.profiles().rows()) == {(1,): 3}
    with counter.refused("too-many-cells"):
        table.cells()
    with monkeypatch.context() as limited, counter.refused("too-many-levels"):
        limited.setattr(counting, "MOST_LEVELS", 1)
        tabulate(frame, "a", "y")
    for options in ({"where": {"a": 1}}, {"person": "a", "contributions": 2}):
        with counter.refused("too-many-cells"):
            tabulate(frame.withColumn("q", frame["a"]), "q", "y", **options)
    assert not session.sparkContext._jsc.getPersistentRDDs()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [0, 4])
def test_counting_on_spark(seed: int, most: int, session: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beyond the number of combinations that come here; with 4, they may be few enough once they are in bins."""
    case = counter.draw_case(seed, NOT_ON_SPARK)
    path = counter.write_parquet(case.table, tmp_path / "a.parquet")
    monkeypatch.setattr(engine, "MOST_CELLS", most)
    check(case, path, engine="spark")


def test_a_table_of_counts_on_spark(session: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3, 12, 12], "y": ["u", "v", "u", "v", "x"], "n": [2, 3, 0, 2**40, 1]})
    path = write_parquet(table, tmp_path / "a.parquet")
    rules: dict[str, Any] = {"bins": {"a": [0, 5, 20]}, "levels": {"y": ["u", "v"]}, "outside": "drop", "count": "n"}
    here = tabulate(path, "a", "y", **rules)
    monkeypatch.setattr(engine, "MOST_CELLS", 0)
    there = tabulate(path, "a", "y", engine="spark", **rules)
    assert (facts(there), there.outside_records) == (facts(here), 1)


def test_rows_come_in_parts(session: Any, monkeypatch: pytest.MonkeyPatch, people: Path) -> None:
    monkeypatch.setattr(spark, "ROWS", 50)
    same(people, people, quasi_identifiers=["text", "real"], sensitive=["job", "small"])


def test_requests(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame([(1, [2], "u", None)], "a int, b array<int>, y string, v void")
    refused("no-column", frame, "A", "y")
    refused("column-type", frame, "b", "y")
    refused("one-level", frame, "a", "v")
    refused("ambiguous-column", frame.select("a", "a", "y"))
    refused("source", session.readStream.format("rate").load())
    refused("source", pa.table({"a": [1], "y": ["u"]}))
    refused("no-file", f"file://{tmp_path}/none.parquet")
    put(tmp_path / "a.csv", "a,y\n1,u\n")
    put(tmp_path / "b.csv", "y,a\nu,1\n")
    refused("no-header", f"file://{tmp_path}/*.csv")
    refused("path", "hdfs://host/folder")
    refused("no-column", put(tmp_path / "c.csv", f"{SECRET},w\n1,u\n"))
    refused("path", put(tmp_path / "_c.csv", "a,y\n1,u\n"))
    pq.write_table(pa.table({"a": [b"1"], "y": ["u"]}), tmp_path / "a.parquet")
    refused("column-type", tmp_path / "a.parquet")
    refused("damaged", put(tmp_path / "d.csv.gz", "a,y\n1,u\n"))


def test_a_spark_of_our_own_is_silent_and_leaves_nothing(tmp_path: Path) -> None:
    need_spark()
    for name in ("work", "scratch"):
        (tmp_path / name).mkdir()
    put(tmp_path / "work" / "a.csv", "a,y\n1,u\n1,v\n2,u\n")
    code = (
        "import cellrisk, signal, os; table = cellrisk.tabulate('a.csv', 'a', 'y', engine='spark');"
        "print(table.n_cells, signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    home = str(Path(cellrisk.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": home, "TMPDIR": str(tmp_path / "scratch"), "SPARK_MASTER": "local[1]"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path / "work", env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("2 True\n", "")
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["a.csv"]
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
@pytest.mark.parametrize("started", ["java", "a job"])
def test_a_signal_ends_spark_in_one_line(number: int, started: str, tmp_path: Path) -> None:
    """While Java starts, and while Spark counts; no Java and no file is left."""
    need_spark()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rows = "".join(f"{place},{place % 7}\n" for place in range(300_000))
    put(tmp_path / "a.csv", "a,y\n" + rows)
    code = "import sys; from cellrisk.cli import main; sys.exit(main())"
    arguments = ["inspect", str(tmp_path / "a.csv"), "--qid", "a", "--sensitive", "y", "--engine", "spark"]
    home = str(Path(cellrisk.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": home, "TMPDIR": str(scratch), "SPARK_MASTER": "local[1]"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    wanted = "cellrisk-spark-*" if started == "java" else "cellrisk-spark-*/spark-*"
    while not list(scratch.glob(wanted)) and child.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)
    child.send_signal(number)
    assert child.communicate(timeout=60) == ("", "cellrisk: interrupted\n")
    assert list(scratch.iterdir()) == []
    programs = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if is_readable(path)]
    assert not [line for line in programs if str(scratch).encode() in line]


def is_readable(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


@pytest.fixture
def nothing_running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    for name in ("SPARK_REMOTE", "SPARK_MASTER", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return put(tmp_path / "a.csv", f"a,y\n1,u\n{SECRET},v\n")


def test_java_is_missing(nothing_running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(nothing_running.parent))
    refused("no-java", nothing_running)
    monkeypatch.setenv("no-java", str(nothing_running.parent))
    refused("no-java", nothing_running)


def test_pyspark_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    refused("missing-package", put(tmp_path / "a.csv", "a,y\n1,u\n"))


def test_spark_connect_is_refused(nothing_running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:1/;token={SECRET}")
    refused("no-spark", nothing_running)


def test_the_command_line(session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same JSON from both engines, and one line with exit code 2 for what Spark cannot read."""
    path = tmp_path / "people.csv"
    path.write_text("q,y\n1,a\n1,b\n2,a\n,a\n", encoding="utf-8")
    arguments = ["inspect", str(path), "--qid", "q", "--sensitive", "y", "--json"]
    assert main(arguments) == 0
    embedded = capsys.readouterr().out
    assert main([*arguments, "--engine", "spark"]) == 0
    assert capsys.readouterr().out == embedded
    assert main(["inspect", str(path), "--qid", "nope", "--sensitive", "y", "--engine", "spark"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


NOT_ON_SPARK = ("hour", "span")
"""Kinds that Spark's reader of Parquet has no type for, and that are refused there."""


@pytest.mark.parametrize("seed", range(8))
def test_against_a_plain_counter(seed: int, session: Any, tmp_path: Path) -> None:
    case = counter.draw_case(seed, NOT_ON_SPARK)
    path = counter.write_parquet(case.table, tmp_path / "a.parquet")
    source = session.read.parquet(str(path)).repartition(3) if seed % 2 else path
    check(case, source, engine="spark")
