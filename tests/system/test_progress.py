"""A signal ends every command in time: code 130, one line, no traceback, nothing half-made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from cellrisk.cli import main
from cellrisk.system import progress

if os.name != "posix":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

BOUND = 120.0
"""Seconds within which a command ends after a signal, on a machine that is busy with other things."""
START = """
import signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # they may be inherited as ignored
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

def working():
    print("working", flush=True)

def sleep(*_):
    working()
    time.sleep(3600)
"""
RUN = """
from cellrisk.cli import main
sys.exit(main())
"""
IN_PYTHON = """
import cellrisk.counts.counting as module
def compute(*_):
    working()
    while True:
        pass
module.select_records = compute
"""
IN_A_SET = IN_PYTHON.replace("counts.counting", "counts.joint").replace("select_records", "group_records")
IN_A_QUERY = """
import threading
import cellrisk.counts.counting as module
def query(relation, *_):
    threading.Timer(0.5, working).start()
    relation.connection.execute(
        "CREATE TEMP TABLE t AS SELECT a.range % 1000003 x, count(*) c FROM range(30000000) a, range(200) b GROUP BY 1"
    )
module.select_records = query
"""
IN_SIMULATION = """
import cellrisk.publish.simulation.drawing as module
real = module.round_counts
module.round_counts = lambda *given, **named: (working(), real(*given, **named))[1]
"""
IN_CLEANING_UP = """
import cellrisk.counts.counting as module
import sqlite3
def fail(*_):
    try:
        sleep()
    except KeyboardInterrupt:
        try:
            sqlite3.connect("/nowhere/at/all.db")
        except sqlite3.Error as error:
            raise RuntimeError("Zanzibar") from error
module.select_records = fail
"""
AFTER_WRITING = """
import cellrisk.counts.counting as module
def write(*_):
    try:
        sleep()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("entry 7 of the ledger stands, and its file is in its place") from None
module.select_records = write
"""
IN_WRITING = """
import cellrisk.system.atomic as module
module.os.fsync = sleep
"""
IN_LOADING = """
import importlib.abc
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "cellrisk.cli.program":
            sleep()
sys.meta_path.insert(0, Slow())
"""
TABLE = ("people.csv", "--qid", "sex", "--sensitive", "job", "--levels", "sex=f|m", "--levels", "job=cook|smith")
CASES: dict[str, tuple[str, signal.Signals, tuple[str, ...]]] = {
    "a query, Ctrl-C": (IN_A_QUERY, signal.SIGINT, ("inspect", *TABLE)),
    "a query, SIGTERM": (IN_A_QUERY, signal.SIGTERM, ("curve", *TABLE, "--epsilon", "1", "--csv", "curve.csv")),
    "a query, SIGHUP": (IN_A_QUERY, signal.SIGHUP, ("report", *TABLE, "--output", "report.html")),
    "simulation": (IN_SIMULATION, signal.SIGTERM, ("simulate", *TABLE, "--epsilon", "1", "--releases", "1000000")),
    "Python": (IN_PYTHON, signal.SIGINT, ("assess", *TABLE, "--epsilon", "1")),
    "choosing": (IN_PYTHON, signal.SIGTERM, ("choose", *TABLE, "--max-caused", "1%")),
    "a set": (IN_A_SET, signal.SIGTERM, ("together", "set.toml")),
    "cleaning up": (IN_CLEANING_UP, signal.SIGTERM, ("explain", *TABLE, "--epsilon", "1")),
    "loading": (IN_LOADING, signal.SIGINT, ("inspect", *TABLE)),
    "writing": (
        IN_WRITING,
        signal.SIGTERM,
        ("curve", *TABLE, "--epsilon", "1", "--measure", "local", "--csv", "c.csv"),
    ),
    "writing a release": (IN_WRITING, signal.SIGINT, ("release", *TABLE, "--epsilon", "1", "--output", "out.csv")),
}


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["sex,job,town", *["f,cook,a"] * 9, *["m,smith,b"] * 8, *["m,cook,a"] * 3]
    (tmp_path / "people.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    described = (
        'source = "people.csv"\nsensitive = "job"\nepsilon = 1\n[[table]]\nqid = ["sex"]\n[[table]]\nqid = ["town"]\n'
    )
    levels = 'levels = {sex = ["f", "m"], town = ["a", "b"], job = ["cook", "smith"]}\n'
    (tmp_path / "set.toml").write_text(levels + described, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def stop(place: str, number: signal.Signals, arguments: tuple[str, ...], times: int = 1) -> tuple[int, str]:
    """Starts a command, waits until it works there, sends the signal; its code, and what it said."""
    Path("scratch").mkdir()
    command = [sys.executable, "-c", START + textwrap.dedent(place) + RUN, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": "scratch"}
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "working\n", process.communicate(timeout=BOUND)
            for _ in range(times):
                process.send_signal(number)
            _, said = process.communicate(timeout=BOUND)
            return process.returncode, said
        finally:
            process.kill()


@pytest.mark.parametrize("case", CASES)
def test_a_signal_ends_a_command_in_time(case: str) -> None:
    code, said = stop(*CASES[case])
    assert (code, said) == (130, "cellrisk: interrupted\n")
    assert sorted(os.listdir()) == ["people.csv", "scratch", "set.toml"]
    assert os.listdir("scratch") == []


def test_what_was_written_is_reported() -> None:
    code, said = stop(AFTER_WRITING, signal.SIGINT, ("inspect", *TABLE))
    assert (code, said) == (
        130,
        "cellrisk: interrupted; entry 7 of the ledger stands, and its file is in its place\n",
    )


def test_several_signals_are_as_good_as_one() -> None:
    code, said = stop(IN_CLEANING_UP, signal.SIGINT, ("inspect", *TABLE), times=5)
    assert (code, said) == (130, "cellrisk: interrupted\n")


def test_the_signals_are_given_back() -> None:
    before = [signal.getsignal(number) for number in progress.SIGNALS]
    assert main(["--version"]) == 0
    assert main(["inspect", "nowhere.csv", "--qid", "a", "--sensitive", "b"]) == 2
    assert [signal.getsignal(number) for number in progress.SIGNALS] == before


def test_an_interruption_in_the_same_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def send(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        while True:  # until the signal is heard
            time.sleep(0.01)

    monkeypatch.setattr("cellrisk.cli.options.TableOptions.tabulate", send)
    assert main(["inspect", *TABLE]) == 130
    assert capsys.readouterr().err == "cellrisk: interrupted\n"


def test_a_delayed_interrupt_is_raised_after_the_block() -> None:
    reached = []

    def import_slowly(signals: list[int]) -> None:
        with progress.interrupts_delayed():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            reached.append(list(signals))

    with progress.interrupted_by_signals() as signals, pytest.raises(KeyboardInterrupt):
        import_slowly(signals)
    assert reached == [[signal.SIGTERM]]
