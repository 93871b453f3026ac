"""A real Spark Connect server on the loopback device gives what DuckDB gives, and its token is never shown."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import cellrisk
from cellrisk.cli import main
from cellrisk.counts.spark import reading
from cellrisk.counts.spark import session as spark_session
from cellrisk.counts.tabulation import tabulate
from cellrisk.errors import CellriskError
from tests.counts.awkward import facts, make_table, write_csv
from tests.counts.spark_cluster import CHEAP_JAVA, FAST, find_home, free_port, need_spark
from tests.counts.test_spark import BAD_TEXT, CASES

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves the closing of sockets to Python
]
TOKEN = "Plugh5823"
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS_TO_START = 120


@dataclass(frozen=True)
class Server:
    port: int
    process: subprocess.Popen[bytes]

    def address(self, token: str = TOKEN) -> str:
        """By the name localhost: with a token, pyspark asks every other host for TLS."""
        return f"sc://localhost:{self.port}/;token={token}"

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """A server that asks for the token and keeps everything in the folder, or a skip that says what is missing."""
    need_spark()
    home, port = find_home(), free_port()
    settings = FAST | {
        "spark.connect.authenticate.token": TOKEN,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -Dderby.system.home={folder} {CHEAP_JAVA}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder),
        "spark.master": "local[2]",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    process = subprocess.Popen(
        [home / "bin" / "spark-submit", "--class", CLASS, *options, "spark-internal"],
        cwd=folder,
        env={**environment, "SPARK_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    server = Server(port, process)
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while not server.answers():
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)
        yield server
    finally:
        server.end()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with its address where a user would put it."""
    monkeypatch.setenv("SPARK_REMOTE", shared_server.address())
    return shared_server


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, table = tmp_path_factory.mktemp("awkward"), make_table()
    pq.write_table(table, folder / "a.parquet", row_group_size=100)
    return {"parquet": folder / "a.parquet", "csv": write_csv(table, folder / "a.csv")}


WAYS = [
    ("parquet", "text"),
    ("parquet", "every kind of level"),
    ("parquet", "many levels, counts"),
    ("parquet", "bins"),
    ("csv", "text"),
    ("csv", "counts"),
]


@pytest.mark.parametrize(("kind", "case"), WAYS)
def test_files_give_what_duckdb_gives(kind: str, case: str, server: Server, awkward: dict[str, Path]) -> None:
    found = tabulate(awkward[kind], engine="spark", **CASES[case])
    assert facts(found) == facts(tabulate(awkward[kind], **CASES[case]))
    assert spark_session.find_session() is None


def test_frames_and_tables_of_an_open_session(server: Server, awkward: dict[str, Path]) -> None:
    """The session stays open, with the settings that it had, and nothing of ours is left in it."""
    from pyspark.sql.connect.session import SparkSession

    request = CASES["counts"]
    expected = facts(tabulate(awkward["parquet"], **request))
    session = SparkSession.builder.remote(server.address()).create()
    try:
        session.conf.set("spark.sql.ansi.enabled", "false")
        frame = session.read.parquet(str(awkward["parquet"]))
        frame.createTempView("people")
        assert facts(tabulate(frame.repartition(3), **request)) == expected
        assert facts(tabulate("people", engine="spark", **request)) == expected
        assert session.conf.get("spark.sql.ansi.enabled") == "false"
        assert session.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
        assert [row.tableName for row in session.sql("SHOW TABLES").collect()] == ["people"]
        either_case = session.sql("SELECT collate(a, 'UTF8_LCASE') AS a, 'u' AS y FROM VALUES ('x'), ('X') AS t(a)")
        assert either_case.distinct().count() == 1
        assert tabulate(either_case, "a", "y", levels={"y": ["u", "v"]}).n_cells == 2
    finally:
        session.stop()
    refused("connection to Spark was lost", frame, "text", "job")


def refused(words: str, source: Any, *roles: str) -> None:
    with pytest.raises(CellriskError) as caught:
        tabulate(source, *(roles or ("a", "y")), engine="spark")
    text = str(caught.value)
    assert words in text, text
    assert "\n" not in text, text
    assert TOKEN not in text, text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("case", ["short line", "open quote", "blank before a quote", "late latin"])
def test_bad_text(case: str, server: Server, tmp_path: Path) -> None:
    words, content = BAD_TEXT[case]
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(words, path)


def test_the_command_line(server: Server, awkward: dict[str, Path]) -> None:
    """In a process of its own: the same JSON from both engines, and nothing beside it."""
    code = "import sys; from cellrisk.cli import main; sys.exit(main())"
    arguments = ["inspect", str(awkward["parquet"]), "--qid", "text,age", "--sensitive", "job", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cellrisk.__file__).parents[1])}
    outputs = []
    for engine in ("duckdb", "spark"):
        command = [sys.executable, "-c", code, *arguments, "--engine", engine]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert '"' in outputs[0]
    assert TOKEN not in outputs[1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("/;token=other" + TOKEN, "refused the token"),
        ("", "refused the token"),
        ("?token=" + TOKEN, "refused the token"),
        ("/;token" + TOKEN, "cannot be reached"),
        ("/" + TOKEN, "cannot be reached"),
    ],
    ids=["wrong token", "no token", "a query", "no value", "a path"],
)
def test_addresses_that_do_not_open(
    parameters: str, words: str, server: Server, awkward: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", f"sc://localhost:{server.port}{parameters}")
    refused(words, awkward["parquet"], "text", "job")
    assert spark_session.find_session() is None


def test_a_token_that_asks_for_tls(server: Server, awkward: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "PATIENCE", 0.5)
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{server.port}/;token={TOKEN}")
    refused("does not speak TLS", awkward["parquet"], "text", "job")


def test_a_server_that_goes_away(
    tmp_path: Path, awkward: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line and exit code 2, soon: in the middle of counting, and when the server is gone from the start."""
    prepare = reading.prepare
    with running_server(tmp_path) as server:

        def prepare_without_server(*given: Any) -> Any:
            prepared = prepare(*given)
            server.end()
            return prepared

        monkeypatch.setenv("SPARK_REMOTE", server.address())
        monkeypatch.setattr(spark_session, "PATIENCE", 2.0)
        monkeypatch.setattr(reading, "prepare", prepare_without_server)
        arguments = ["inspect", str(awkward["parquet"]), "--qid", "text", "--sensitive", "job", "--engine", "spark"]
        for _ in range(2):
            started = time.monotonic()
            assert main(arguments) == 2
            assert time.monotonic() - started < 60
            out, err = capfd.readouterr()
            assert out == ""
            assert re.search("connection to Spark (was lost|failed)", err)
            assert len(err.splitlines()) == 1
            assert TOKEN not in err
            assert spark_session.find_session() is None
