"""A Spark session to count in: the one that is given or running, one on a cluster, or a local one of our own."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cellrisk.errors import InvalidInput
from cellrisk.system.scratch import private_folder

SETTINGS = {
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What a result depends on, and what joins small partitions, for the length of one tabulation."""
JAVA_PACKAGE = "openjdk-17-jre-headless"
PATIENCE = 10.0
"""Seconds to wait for a Java of our own to end."""


@contextmanager
def spark_session(given: Any = None) -> Iterator[Any]:
    """The session of a given frame, else one that runs already, else a new one, which is stopped at the end."""
    if importlib.util.find_spec("pyspark") is None:
        what = "the Spark engine needs pyspark, which is not installed"
        raise InvalidInput(what, fix="run: pip install 'cellrisk[spark]'", code="no-spark")
    session = given if given is not None else find_session()
    if type(session).__module__.startswith("pyspark.sql.connect") or (session is None and "SPARK_REMOTE" in os.environ):
        raise InvalidInput(
            "Spark Connect is not supported",
            fix="name the cluster with SPARK_MASTER instead of SPARK_REMOTE, or write the table to Parquet files",
            code="no-spark",
        )
    opened: Any = nullcontext(session) if session else own_session(os.environ.get("SPARK_MASTER") or "local[*]")
    logging.getLogger().addFilter(is_not_of_py4j)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas 3, of which nothing is used here
            with opened as session, with_settings(session):
                yield session
    finally:
        logging.getLogger().removeFilter(is_not_of_py4j)


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a line of the log is not py4j's, which writes a traceback if a signal interrupts a call."""
    return "py4j" not in record.pathname


def find_session() -> Any:
    """Return a session that this process has open, or None."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def with_settings(session: Any) -> Iterator[None]:
    """The settings that results depend on, for the length of the block; the session has its own again afterwards.

    Nothing is logged in it, since Spark quotes records that it cannot read. An interrupt ends the jobs of the block.
    """
    before = {key: session.conf.get(key, None) for key in SETTINGS}
    context, group = session.sparkContext, f"cellrisk {threading.get_ident()}"
    level = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    context.setJobGroup(group, "cellrisk", interruptOnCancel=True)
    try:
        for key, value in SETTINGS.items():
            session.conf.set(key, value)
        yield
    except BaseException:
        with suppress(Exception):
            context.cancelJobGroup(group)
        raise
    finally:
        with suppress(Exception):  # a session that is lost has no settings to put back
            for key, old in before.items():
                session.conf.unset(key) if old is None else session.conf.set(key, old)
            context.setLocalProperty("spark.jobGroup.id", None)
            context.setLogLevel(level)


@contextmanager
def own_session(master: str) -> Iterator[Any]:
    """A Spark of our own: silent, its scratch in a private folder, and gone at the end with its Java."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        raise no_java("the Spark engine needs Java, which is not found" + (" where JAVA_HOME points" if home else ""))
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    started: list[Any] = []

    def start(*given: Any, **named: Any) -> Any:
        """Start a program and note it at once, so that a signal while Java starts leaves no Java behind."""
        started.append(subprocess.Popen(*given, **named))
        return started[-1]

    with private_folder("spark") as folder:
        (folder / "log4j2.properties").write_text("rootLogger.level = off\n", encoding="utf-8")
        conf = SparkConf(loadDefaults=False).setAll(list(configure(master, str(folder)).items()))
        try:
            try:
                with patch.object(java_gateway, "Popen", start):
                    gateway = java_gateway.launch_gateway(conf, quiet)  # type: ignore[no-untyped-call]
                # Spark's own handler of SIGINT calls Java, fails while the context starts, and hides the interrupt.
                with patch.object(importlib.import_module(SparkContext.__module__), "signal"):
                    session = SparkSession(SparkContext(conf=conf, gateway=gateway))
            except Exception as error:  # Spark's own text is long and names hosts and paths
                if master.startswith("local"):
                    raise no_java(f"Spark could not be started ({type(error).__name__})") from None
                fix = "check SPARK_MASTER, and that the server runs; without it Spark runs on this machine"
                what = f"Spark cannot be reached ({type(error).__name__})"
                raise InvalidInput(what, fix=fix, code="no-connection") from None
            yield session
            with suppress(Exception):
                session.stop()
                gateway.shutdown()
        finally:
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
            for process in started:
                end_java(process)


def configure(master: str, folder: str) -> dict[str, str]:
    """Return the settings of a Spark of our own."""
    java = " ".join(f'"-D{option}{folder}"' for option in ("java.io.tmpdir=", "derby.system.home="))
    settings = {
        "spark.app.name": "cellrisk",
        "spark.master": master,
        "spark.driver.extraJavaOptions": f'{java} "-Dlog4j2.configurationFile=file:{folder}/log4j2.properties" '
        "-XX:-UsePerfData",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        settings |= {f"spark.driver.{name}": "127.0.0.1" for name in ("bindAddress", "host")}
        settings |= {"spark.local.dir": folder}
        if "SPARK_DRIVER_MEMORY" not in os.environ and hasattr(os, "sysconf"):
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            settings["spark.driver.memory"] = f"{max(1024, memory // 2**21)}m"
    return settings


def no_java(what: str) -> InvalidInput:
    fix = f"check JAVA_HOME; on Debian or Ubuntu: apt install {JAVA_PACKAGE}"
    return InvalidInput(what, allowed="Java 17 or 21", fix=fix, code="no-java")


def end_java(process: Any) -> None:
    """End the Java that was started, so that the next session starts one with a folder of its own."""
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(PATIENCE if sys.exc_info()[0] is None else 0)  # after a failure nothing of it is needed
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # with the program that starts it
        process.wait()
