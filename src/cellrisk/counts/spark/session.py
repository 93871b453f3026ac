"""A Spark session to count in: the one that is given or running, one on a cluster, or a private local one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.system.scratch import private_folder

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
}
"""What could change a result, for the length of one tabulation. Substitution would put settings and environment
variables in the place of levels such as ${env:HOME}. Ibis sets the time zone and the policy for maps itself."""
JAVA_PACKAGE = "openjdk-17-jre-headless"
QUIET = "rootLogger.level = off\n"
PATIENCE = 10.0
"""Seconds to wait for a cluster to answer, and for a Java of our own to end."""


@contextmanager
def spark_session(given: Any = None) -> Iterator[Any]:
    """The session of a given frame, else one that runs already, else a new one, which is stopped at the end."""
    check_pyspark()
    session = given if given is not None else find_session()
    if session is not None:
        with with_settings(session):
            yield session
        return
    remote, master = os.environ.get("SPARK_REMOTE", ""), find_master()
    opened = remote_session(remote) if remote and not remote.startswith("local") else own_session(master)
    with opened as session, with_settings(session):
        yield session


def check_pyspark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise InvalidInput(
            "the Spark engine needs pyspark, which is not installed", fix="run: pip install 'cellrisk[spark]'"
        )


def find_session() -> Any:
    """A session that this process has open, or None."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if "pyspark.sql.connect.session" in sys.modules:
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        session = RemoteSession.getActiveSession()
        if session is not None:
            return session
    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context is not None else None


def functions_of(session: Any) -> Any:
    """Spark's functions for that kind of session; those for one kind make no columns for the other."""
    remote = type(session).__module__.startswith("pyspark.sql.connect.")
    return importlib.import_module("pyspark.sql.connect.functions" if remote else "pyspark.sql.functions")


def find_master() -> str:
    """The master that the environment names, else this machine."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    named = [value for option, value in pairwise(arguments) if option == "--master"]
    named += [word.partition("=")[2] for word in arguments if word.startswith("spark.master=")]
    return os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_MASTER") or [*named, "local[*]"][0]


@contextmanager
def with_settings(session: Any) -> Iterator[None]:
    """The settings that results depend on, for the length of the block; the session's own come back afterwards."""
    changed = {key: value for key, value in SETTINGS.items() if session.conf.get(key) != value}
    before = {key: session.conf.get(key, None) for key in ("spark.sql.session.timeZone", *changed)}
    try:
        for key, value in changed.items():
            session.conf.set(key, value)
        with silenced(session):
            yield
    finally:
        with suppress(Exception):  # a session that is lost has no settings to put back
            for key, value in before.items():
                if value is None:
                    session.conf.unset(key)
                else:
                    session.conf.set(key, value)


@contextmanager
def silenced(session: Any) -> Iterator[None]:
    """No log for the length of the block, since Spark quotes records that it cannot read; a server keeps its own."""
    context = getattr(session, "_sc", None)
    if context is None:
        yield
        return
    level = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    try:
        yield
    finally:
        with suppress(Exception):
            context.setLogLevel(level)


@contextmanager
def remote_session(address: str) -> Iterator[Any]:
    """A session of our own on a Spark Connect server."""
    check_reachable(address)
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError:
        raise InvalidInput(
            "Spark Connect needs packages that are not installed", fix="run: pip install 'cellrisk[spark]'"
        ) from None
    try:
        session = SparkSession.builder.remote(address).create()
        session.client.set_retry_policies([brief_retries()])
        # Where an execution can be attached to again, Spark 4.0 may lose a quick failure: the server is done,
        # and its client waits for ever.
        session.client.disable_reattachable_execute()
    except Exception as error:  # the text of such errors repeats the address, which may hold a token
        raise unreachable(address, type(error).__name__) from None
    try:
        yield session
    finally:
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")  # an error here would leave the session open
            session.stop()


def brief_retries() -> Any:
    """Gives up on a server for good after some seconds; Spark tries for ten minutes, and again at every later step."""
    retries: Any = importlib.import_module("pyspark.sql.connect.client.retries")

    class BriefRetries(retries.DefaultPolicy):  # type: ignore[misc]
        deadline: float | None = None

        def can_retry(self, error: BaseException) -> bool:
            if not super().can_retry(error):
                return False
            self.deadline = self.deadline or time.monotonic() + PATIENCE
            return time.monotonic() < self.deadline

    return BriefRetries(max_backoff=1000)


def check_reachable(address: str) -> None:
    """Refuses a cluster that does not answer, at once: Spark itself tries for minutes."""
    places = parse_places(address)
    for host, port in places:
        with suppress(OSError), socket.create_connection((host, port), timeout=PATIENCE):
            return
    if places:
        raise unreachable(address)


def parse_places(address: str) -> list[tuple[str, int]]:
    """Hosts and ports of an address, without the credentials that it may hold.

    >>> parse_places("sc://me:pass@db.example:15003/;token=abc"), parse_places("spark://a:7077,b:7078")
    ([('db.example', 15003)], [('a', 7077), ('b', 7078)])
    """
    found = re.match(r"(sc|spark)://(?:[^/;]*@)?([^/;?#]+)", address)
    if not found:
        return []
    usual = {"sc": 15002, "spark": 7077}[found[1]]
    parts = [re.fullmatch(r"(.+?)(?::(\d+))?", place) for place in found[2].split(",") if place]
    return [(part[1].strip("[]"), int(part[2] or usual)) for part in parts if part]


def unreachable(address: str, why: str = "") -> InvalidInput:
    places = ", ".join(f"{host}:{port}" for host, port in parse_places(address))
    return InvalidInput(
        "Spark cannot be reached" + (f" ({why})" if why else ""),
        got=places or None,
        fix="check SPARK_REMOTE and SPARK_MASTER, and that the server runs; without them Spark runs on this machine",
    )


@contextmanager
def own_session(master: str) -> Iterator[Any]:
    """A Spark of our own: silent, its scratch in a private folder, and gone at the end with its Java."""
    check_java()
    check_reachable(master)
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    launch: Any = java_gateway.launch_gateway
    main = threading.current_thread() is threading.main_thread()
    interrupt = signal.getsignal(signal.SIGINT)  # Spark puts its own in place and leaves it there
    with private_folder("spark") as folder:
        (folder / "log4j2.properties").write_text(QUIET, encoding="utf-8")
        conf = SparkConf(loadDefaults=False).setAll(list(configure(master, str(folder)).items()))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        gateway = session = None
        try:
            try:
                gateway = launch(conf, quiet)
                session = SparkSession(SparkContext(conf=conf, gateway=gateway))
            except Exception as error:  # Spark's own text is long and names hosts and paths
                raise not_started(master, error) from None
            yield session
        finally:
            if session is not None:
                with suppress(Exception):
                    session.stop()
            if gateway is not None:
                end_java(gateway)
            if main and interrupt is not None:
                signal.signal(signal.SIGINT, interrupt)


def configure(master: str, folder: str) -> dict[str, str]:
    """The settings of a Spark of our own."""
    options = ("-Djava.io.tmpdir=", "-Dderby.system.home=", "-Dlog4j2.configurationFile=file:")
    places = (folder, folder, f"{folder}/log4j2.properties")
    java = " ".join(f'"{option}{place}"' for option, place in zip(options, places, strict=True))
    settings = {
        "spark.app.name": "cellrisk",
        "spark.master": master,
        "spark.driver.extraJavaOptions": f"{java} -XX:-UsePerfData",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": folder,
            "spark.sql.shuffle.partitions": str(8 * (os.cpu_count() or 1)),
        }
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            settings["spark.driver.memory"] = f"{max(1024, memory_in_mb() // 2)}m"
    return settings


def memory_in_mb() -> int:
    """The machine's memory, or 2 GB where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (AttributeError, OSError, ValueError):
        return 2048


def check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        raise InvalidInput(
            "the Spark engine needs Java, which is not found" + (" where JAVA_HOME points" if home else ""),
            allowed="Java 17 or 21",
            fix=f"on Debian or Ubuntu: apt install {JAVA_PACKAGE}",
        )


def not_started(master: str, error: Exception) -> InvalidInput:
    if not master.startswith("local"):
        return unreachable(master, type(error).__name__)
    return InvalidInput(
        f"Spark could not be started ({type(error).__name__})",
        allowed="Java 17 or 21",
        fix=f"check JAVA_HOME; on Debian or Ubuntu: apt install {JAVA_PACKAGE}",
    )


def end_java(gateway: Any) -> None:
    """Ends the Java that was started, so that the next session starts one with a folder of its own."""
    from pyspark import SparkContext

    process = getattr(gateway, "proc", None)
    if process is None:  # this Python was itself started by Spark
        return
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
