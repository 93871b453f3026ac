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
from cellrisk.counts import counting, refusals, sources
from cellrisk.counts.engine import Resources, free_memory
from cellrisk.errors import InvalidInput, UnknownName
from tests import near
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
    """Profiles, level counts and missing counts, row by row."""
    one, two = first.attribute(), second.attribute()
    return (
        list(one.profiles.rows()) == list(two.profiles.rows())
        and one.levels.labels == two.levels.labels
        and one.levels.level.tolist() == two.levels.level.tolist()
        and one.levels.count.tolist() == two.levels.count.tolist()
        and one.levels.cells.tolist() == two.levels.cells.tolist()
        and one.levels.size_products.tolist() == two.levels.size_products.tolist()
        and first.homogeneity == second.homogeneity
        and first.missing_records == second.missing_records
    )


@pytest.mark.parametrize("count", [None, "times"])
@pytest.mark.parametrize("missing", ["category", "drop"])
def test_parts_of_a_table_give_the_same_counts(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, count: str | None, missing: str
) -> None:
    plain = cr.tabulate(people, QIDS, "y", count=count, missing=missing)
    monkeypatch.setattr(counting, "MOST_CELLS", 0)
    assert same(plain, cr.tabulate(people, QIDS, "y", count=count, missing=missing))


def test_odd_texts_and_far_numbers(tmp_path: Path) -> None:
    odd = pd.DataFrame(
        {"a": ["it's", "a\\b", '"', "NUL\0", "", None] * 4, "b": ["'); --", "x"] * 12, "y": list("pqrs") * 6}
    )
    far = pd.DataFrame(
        {"a": [-(2**63), 2**63 - 1, 0, 5] * 3, "b": [1, 2, None] * 4, "c": [1, 2] * 6, "y": list("pq") * 6}
    ).astype({"b": "Int64"})
    for frame in (odd, far):
        frame.to_parquet(tmp_path / "a.parquet")
        names = list(frame.columns[:-1])
        from_frame, from_file = cr.tabulate(frame, names, "y"), cr.tabulate(tmp_path / "a.parquet", names, "y")
        assert same(from_frame, from_file)
        assert from_frame.n_cells == frame.groupby(names, dropna=False).ngroups


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
        assert [refusals.OUT_OF_MEMORY in line for line in message.splitlines()] == [True] * (code == 2)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_disk_that_is_really_full(many_cells: Path, tmp_path: Path) -> None:
    """A disk of a few megabytes in a mount namespace of its own, where the system permits one."""
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = 'mount -t tmpfs -o size="$ROOM" none "$TMPDIR"'
    environment = {**os.environ, "PYTHONPATH": str(Path(cr.__file__).parents[1]), "TMPDIR": str(tmp_path)}
    try:
        subprocess.run([*alone, mount], env={**environment, "ROOM": "1m"}, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no small disk can be mounted: user namespaces are not permitted here")
    code = (
        "import os, sys; from cellrisk.cli import main;"
        "code = main(sys.argv[1:]); print('left:', os.listdir(os.environ['TMPDIR'])); sys.exit(code)"
    )
    command = [*alone, f'{mount} && exec "$@"', "sh", sys.executable, "-c", code, "inspect", str(many_cells)]
    for room, expected in (("800m", 0), ("2m", 2)):
        done = subprocess.run(
            [*command, *FULL_DISK],
            env={**environment, "ROOM": room},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == expected, done.stderr
        assert [refusals.OUT_OF_MEMORY in line for line in done.stderr.splitlines()] == [True] * (expected == 2)
        assert done.stdout.splitlines()[-1] == "left: []"


@pytest.mark.parametrize("limit", ["4", "four GB", "", "-1GB", "1XB", "10MB", 5, "0GB"])
def test_memory_limits_are_checked(people: pd.DataFrame, limit: str | int) -> None:
    with pytest.raises(InvalidInput, match="memory limit"):
        cr.tabulate(people, QIDS, "y", memory_limit=limit)


def test_memory_limits_are_read() -> None:
    assert Resources.of("1.5 GiB").memory == int(1.5 * 2**30)
    assert Resources.of(10**9).memory == 10**9
    assert free_memory() > 10**8


@pytest.mark.slow
def test_progress_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    duckdb.sql("SELECT 'v' || (range % 400007) AS a, range % 3 AS y FROM range(6000000)").write_parquet(str(path))
    seen: list[float] = []
    cr.tabulate(path, "a", "y", progress=seen.append)
    assert seen
    assert all(0 <= share <= 1 for share in seen)


IN_A_QUERY = """
import cellrisk.counts.tabulation as room
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
    with pytest.raises(InvalidInput, match="which one"):
        cr.tabulate(path, QIDS, "y")
    with pytest.raises(UnknownName, match="did you mean 'people'"):
        cr.tabulate(path, QIDS, "y", table="peple")
    with pytest.raises(UnknownName, match="no column"):
        cr.tabulate(path, ["nope"], "y", table="people")
    (tmp_path / "fake.duckdb").write_bytes(b"this is no database at all, but it is long enough to look at")
    with pytest.raises(InvalidInput) as refusal:
        cr.tabulate(tmp_path / "fake.duckdb", QIDS, "y", table="people")
    assert "long enough" not in str(refusal.value)
    with pytest.raises(InvalidInput, match="no such file"):
        cr.tabulate(tmp_path / "none.duckdb", QIDS, "y", table="people")
    with pytest.raises(InvalidInput, match="leave table out"):
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
    with pytest.raises(InvalidInput, match="is a view that reads files outside the DuckDB file"):
        cr.tabulate(path, ["sex"], "y", table="people")


def test_duckdb_relations(people: pd.DataFrame) -> None:
    with duckdb.connect() as connection:
        relation = connection.from_df(people).filter("b > -99")
        assert same(cr.tabulate(people, QIDS, "y"), cr.tabulate(relation, QIDS, "y"))
        with pytest.raises(UnknownName, match="relation has no column"):
            cr.tabulate(relation, ["nope"], "y")


def test_hive_partitions(people: pd.DataFrame, tmp_path: Path) -> None:
    for value, part in people.assign(b=people["b"].astype(str)).groupby("b"):
        folder = tmp_path / f"b={value}"
        folder.mkdir()
        part.drop(columns="b").to_parquet(folder / "part.parquet")
    pattern = str(tmp_path / "*" / "*.parquet")
    assert same(cr.tabulate(people, QIDS, "y"), cr.tabulate(pattern, QIDS, "y"))
    without = [name for name in QIDS if name != "b"]
    assert same(cr.tabulate(people, without, "y"), cr.tabulate(pattern, without, "y"))


def test_a_corrupt_row_group_is_refused(people: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    people.to_parquet(path)
    content = bytearray(path.read_bytes())
    content[8:2000] = bytes(1992)
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as refusal:
        cr.tabulate(path, QIDS, "y")
    assert len(str(refusal.value).splitlines()) == 1


def test_wide_tables() -> None:
    """Thirty quasi-identifiers, and a sensitive attribute with ten thousand levels."""
    generator = np.random.default_rng(1)
    n = 20_000
    frame = pd.DataFrame({f"q{i}": generator.integers(0, 2, n) for i in range(30)})
    frame["code"] = [f"D{code:05d}" for code in generator.integers(0, 10_000, n)]
    table = cr.tabulate(frame, [f"q{i}" for i in range(30)], "code")
    cells = frame.groupby([f"q{i}" for i in range(30)]).size()
    assert table.n_cells == len(cells)
    assert table.attribute().n_levels == frame["code"].nunique()
    few = cr.tabulate(frame, ["q0", "q1"], "code")
    counts = frame.groupby(["q0", "q1", "code"]).size()
    largest = counts.groupby(level=[0, 1]).apply(lambda cell: tuple(sorted(cell, reverse=True)))
    assert sorted(profile for profile, _ in few.profiles().rows()) == sorted(largest)


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
    monkeypatch.setattr(counting, "MOST_CELLS", most)
    if suffix == "csv":
        assert same(cr.tabulate(path, QIDS, "y"), expected)
        return
    with pytest.raises(InvalidInput) as refusal:
        cr.tabulate(path, QIDS, "y")
    assert len(str(refusal.value).splitlines()) == 1
