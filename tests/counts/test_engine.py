"""Limits of the machine: memory, spilling, packing, progress, interruption; DuckDB files, relations, partitions."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts import counting, engine, sources
from cellrisk.counts.engine import Resources
from cellrisk.errors import InvalidInput, UnknownName
from tests import near
from tests.counts.counter import facts, refused
from tests.system.test_progress import BOUND, RUN, START

QIDS = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    generator = np.random.default_rng(3)
    n = 5000
    frame = pd.DataFrame(
        {
            "a": generator.choice(["x", "X", "", "é", "x y", None], n),
            "b": generator.integers(-3, 4, n),
            "c": generator.choice([0.5, 1.0, -0.0, 0.0, np.nan], n),
            "d": pd.to_datetime("2020-01-01") + pd.to_timedelta(generator.integers(0, 9, n), unit="D"),
            "e": generator.choice([True, False, None], n),
            "y": generator.choice(["p", "q", "r", None], n, p=[0.7, 0.2, 0.05, 0.05]),
        }
    )
    frame["times"] = generator.integers(0, 4, n)
    return frame


def same(first: cr.FrequencyTable, second: cr.FrequencyTable) -> bool:
    return facts(first) == facts(second)


@pytest.fixture(scope="module")
def many_cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells of long text, which spill under a small memory limit unless they are packed."""
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    duckdb.sql(
        "SELECT 'some long text value ' || (range % 390001) AS a, range % 13 AS b, 'y' || (range % 3) AS y "
        "FROM range(5000000)"
    ).write_parquet(str(path))
    return path


@pytest.mark.slow
def test_spilling_gives_the_same_answer_and_leaves_nothing(
    many_cells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    roomy = cr.tabulate(many_cells, ["a", "b"], "y", memory_limit="8GB")
    tight = cr.tabulate(many_cells, ["a", "b"], "y", memory_limit="300MB")
    assert same(roomy, tight)
    assert list(tmp_path.iterdir()) == []


PEAK = """
import re, sys, cellrisk as cr
table = cr.tabulate(sys.argv[1], ["name", "age"], "y", memory_limit="200MB")
print(table.n_cells, re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not say how much memory was used")
def test_text_with_very_many_values_keeps_to_the_limit(tmp_path: Path) -> None:
    """At most one and a half times the limit, and 300 MB for the libraries and what is read."""
    path, rows = tmp_path / "names.parquet", 390_000
    duckdb.sql(
        f"SELECT 'person number ' || hash(i) AS name, i % 90 AS age, 'y' || (i % 5) AS y FROM range({rows}) AS r(i)"
    ).write_parquet(str(path))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True, timeout=300
    )
    cells, peak = map(int, done.stdout.split())
    assert cells == rows
    assert peak * 1024 <= 1.5 * 200e6 + 300e6


FULL_DISK = ["--qid", "a,b", "--sensitive", "y", "--memory-limit", "200MB"]


@pytest.mark.slow
def test_a_full_disk_is_refused_and_left_empty(
    many_cells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB's own limit for what it spills stands for the disk; given when it is opened, it would not hold."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real = sources.embedded_engine

    for room, code in (("2GB", 0), ("1MB", 2)):

        @contextmanager
        def engine_with_room(resources: Resources, room: str = room) -> Iterator[tuple[Any, Path]]:
            with real(resources) as (connection, folder):
                connection.execute(f"SET max_temp_directory_size = '{room}'")
                yield connection, folder

        monkeypatch.setattr(sources, "embedded_engine", engine_with_room)
        assert main(["inspect", str(many_cells), *FULL_DISK]) == code
        message = capsys.readouterr().err
        assert [engine.OUT_OF_MEMORY in line for line in message.splitlines()] == [True] * (code == 2)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", ["4", "four GB", "", "-1GB", "1XB", "10MB", 5, "0GB"])
def test_memory_limits_are_checked(people: pd.DataFrame, limit: str | int) -> None:
    with refused("memory-limit"):
        cr.tabulate(people, QIDS, "y", memory_limit=limit)


@pytest.mark.slow
def test_progress_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    duckdb.sql("SELECT 'v' || (range % 400007) AS a, range % 3 AS y FROM range(6000000)").write_parquet(str(path))
    seen: list[float] = []
    cr.tabulate(path, "a", "y", progress=seen.append)
    assert seen
    assert all(0 <= share <= 1 for share in seen)


IN_A_QUERY = """
import cellrisk.counts.counting as room
def wait(relation, *_):
    relation.connection.execute("CREATE TABLE endless AS SELECT hash(range) FROM range(1000000000000)")
room.select_records = wait
"""


@pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="DuckDB 1.5 refuses this query instead of spilling")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_leaves_nothing(tmp_path: Path, stop: signal.Signals) -> None:
    """Ctrl-C, or a polite kill, in the middle of a query that has spilled: no traceback, no temporary files."""
    path, scratch = tmp_path / "few.csv", tmp_path / "scratch"
    path.write_text("a,y\n1,2\n", encoding="utf-8")
    scratch.mkdir()
    arguments = ["inspect", str(path), "--qid", "a", "--sensitive", "y", "--memory-limit", "200MB"]
    with subprocess.Popen(
        [sys.executable, "-c", START + IN_A_QUERY + RUN, *arguments],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while not any(file.stat().st_size for file in scratch.glob("cellrisk-*/spill/*")):
                assert process.poll() is None, "it ended before it was stopped"
                assert time.monotonic() < deadline, "it spills nothing"
                time.sleep(0.02)
            process.send_signal(stop)
            _, message = process.communicate(timeout=BOUND)
        finally:
            process.kill()
    assert (process.returncode, message) == (130, "cellrisk: interrupted\n")
    assert list(scratch.iterdir()) == []


def test_duckdb_files(people: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", people)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        connection.execute("CREATE SCHEMA old; CREATE VIEW old.persons AS SELECT * FROM people")
    plain = cr.tabulate(people, QIDS, "y")
    assert same(plain, cr.tabulate(path, QIDS, "y", table="people"))
    assert same(plain, cr.tabulate(path, QIDS, "y", table="old.persons"))
    with refused("no-table"):
        cr.tabulate(path, QIDS, "y")
    with pytest.raises(UnknownName, match="did you mean 'people'"):
        cr.tabulate(path, QIDS, "y", table="peple")
    with refused("no-column"):
        cr.tabulate(path, ["nope"], "y", table="people")
    (tmp_path / "fake.duckdb").write_bytes(b"this is no database at all, but it is long enough to look at")
    with pytest.raises(InvalidInput) as refusal:
        cr.tabulate(tmp_path / "fake.duckdb", QIDS, "y", table="people")
    assert "long enough" not in str(refusal.value)
    with refused("no-file"):
        cr.tabulate(tmp_path / "none.duckdb", QIDS, "y", table="people")
    with refused("no-tables"):
        cr.tabulate(people, QIDS, "y", table="people")


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM read_csv('{}')", "SELECT * FROM '{}'", "SELECT content AS sex, 'a' AS y FROM read_text('{}')"],
)
def test_a_view_reads_nothing_beside_its_file(tmp_path: Path, query: str) -> None:
    """A DuckDB file that somebody sent must not make us read another one."""
    (tmp_path / "other.csv").write_text("sex,y\nf,a\nm,b\n", encoding="utf-8")
    path = tmp_path / "sent.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW people AS {query.format(tmp_path / 'other.csv')}")
    with refused("view-of-files"):
        cr.tabulate(path, ["sex"], "y", table="people")


def test_duckdb_relations(people: pd.DataFrame) -> None:
    with duckdb.connect() as connection:
        relation = connection.from_df(people).filter("b > -99")
        assert same(cr.tabulate(people, QIDS, "y"), cr.tabulate(relation, QIDS, "y"))
        with refused("no-column"):
            cr.tabulate(relation, ["nope"], "y")


def test_a_corrupt_row_group_is_refused(people: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    people.to_parquet(path)
    content = bytearray(path.read_bytes())
    content[8:2000] = bytes(1992)
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as refusal:
        cr.tabulate(path, QIDS, "y")
    assert len(str(refusal.value).splitlines()) == 1


def test_row_order_and_partitions_do_not_change_a_bit(people: pd.DataFrame, tmp_path: Path) -> None:
    shuffled = people.sample(frac=1.0, random_state=4)
    for number in range(7):
        shuffled.iloc[number::7].to_parquet(tmp_path / f"part{number}.parquet")
    mechanism = cr.Laplace(epsilon=0.7)
    whole = cr.assess(cr.tabulate(people, QIDS, "y"), mechanism)
    parts = cr.assess(cr.tabulate(str(tmp_path / "part*.parquet"), QIDS, "y"), mechanism)
    assert near.same(whole.risks, parts.risks)
    assert re.sub("people", "", str(whole)) == re.sub("people", "", str(parts))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("change", ["vanishes", "grows"])
@pytest.mark.parametrize("most", [0, 10**6])
def test_a_file_that_changes_between_the_passes_is_refused(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, change: str, most: int
) -> None:
    """Unless there is one pass only, as of text: then it was read before it changed."""
    path = tmp_path / f"people.{suffix}"

    def write(frame: pd.DataFrame) -> None:
        frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)

    def code_then_change(*given: Any) -> object:
        found = real(*given)
        path.unlink(missing_ok=True)
        if change == "grows":
            write(pd.concat([people, people]))
        return found

    real = counting.code_values
    write(people)
    expected = cr.tabulate(path, QIDS, "y")
    monkeypatch.setattr(counting, "code_values", code_then_change)
    monkeypatch.setattr(engine, "MOST_CELLS", most)
    if suffix == "csv":
        assert same(cr.tabulate(path, QIDS, "y"), expected)
        return
    with pytest.raises(InvalidInput) as refusal:
        cr.tabulate(path, QIDS, "y")
    assert len(str(refusal.value).splitlines()) == 1
