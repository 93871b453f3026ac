"""A standalone Spark cluster on the loopback device: a master and workers from the pyspark package, gone afterwards."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cellrisk.counts.spark import JAVA_PACKAGE

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
SECONDS_TO_START = 120
CHEAP_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""A Java that lives for seconds pays for no thorough compiler and no threads that collect garbage."""

CHEAP = {
    "spark.default.parallelism": "1",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.rdd.compress": "false",
}
"""Settings of a Spark for a few hundred rows, from its start,"""
FAST = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than a few hundred rows
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""and of its session."""


def need_spark() -> None:
    """Skips the test where Spark cannot run, saying what is missing."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip(f"Java is not found; on Debian or Ubuntu: apt install {JAVA_PACKAGE}")
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed; run: pip install 'cellrisk[spark]'")


def find_home() -> Path:
    """The folder of the pyspark package, which holds Spark's programs."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass(frozen=True)
class Cluster:
    port: int
    page: int

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def workers(self) -> int:
        """Workers that the master knows of and that are alive; 0 while it does not answer."""
        with (
            suppress(OSError, ValueError),
            urllib.request.urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=5) as answer,
        ):
            state: dict[str, Any] = json.load(answer)
            return sum(each["state"] == "ALIVE" for each in state["workers"])
        return 0


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and its workers of one core each, which keep everything in the folder; a skip where Spark cannot run."""
    need_spark()
    cluster = Cluster(free_port(), free_port())
    own = ["--host", "127.0.0.1"]
    with ExitStack() as stack:
        programs = [
            stack.enter_context(
                running(folder, MASTER, *own, "--port", str(cluster.port), "--webui-port", str(cluster.page))
            )
        ]
        for place in range(workers):
            room = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"work{place}")]
            programs.append(stack.enter_context(running(folder, WORKER, *own, *room, cluster.master)))
        deadline = time.monotonic() + SECONDS_TO_START
        while cluster.workers() < workers:
            assert all(program.poll() is None for program in programs), "a part of the cluster ended"
            assert time.monotonic() < deadline, "the cluster did not start"
            time.sleep(0.2)
        yield cluster


@contextmanager
def running(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's programs, ended with all that it started."""
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environment |= {
        "SPARK_HOME": str(find_home()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{CHEAP_JAVA} -Djava.io.tmpdir={folder} -Dspark.local.dir={folder}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
    }
    process = subprocess.Popen(
        [find_home() / "bin" / "spark-class", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
