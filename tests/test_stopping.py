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
from cellrisk.system import stopping

if os.name != "posix":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

BOUND = 30.0
"""Seconds within which a command ends after a signal, on a machine that is busy with other things."""
START = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # they may be inherited as ignored
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

def working():
    print("working", flush=True)

def stay_in_c():
    import hashlib, threading
    threading.Timer(0.3, working).start()  # by then this thread is in C, where no handler runs
    hashlib.pbkdf2_hmac("sha256", b"p", b"s", 2_000_000_000)  # an hour without a step of Python
"""
RUN = """
from cellrisk.cli import main
sys.exit(main())
"""
IN_COUNTING = """
import cellrisk.counts.tabulation as room
room.validate = lambda *_: stay_in_c()
"""
IN_SIMULATION = """
import cellrisk.publish.simulation.releases as room
real = room.attack_cells
room.attack_cells = lambda *given, **named: (working(), real(*given, **named))[1]
"""
IN_PYTHON = """
import cellrisk.counts.tabulation as room
def wait(*_):
    working()
    while True:
        pass
room.validate = wait
"""
DEAF = """
import cellrisk.counts.tabulation as room
def wait(*_):
    working()
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            continue
room.validate = wait
"""
CHAINED = """
import cellrisk.counts.tabulation as room
import sqlite3, time
def wait(*_):
    try:
        working()
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        try:
            sqlite3.connect("/nowhere/at/all.db")
        except sqlite3.Error as error:
            raise RuntimeError("Zanzibar") from error
room.validate = wait
"""
TRUTH = """
import cellrisk.counts.tabulation as room
import time
def wait(*_):
    try:
        working()
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("entry 7 of the ledger stands, and its file is in its place") from None
room.validate = wait
"""
WRITING = """
import cellrisk.system.writing as room
room.os.fsync = lambda _: stay_in_c()
"""
IN_TRANSFORMS = """
import cellrisk.risk.measures.given_total as room
real = room.multinomial_risk
def again(*given):
    real(*given)  # what is loaded late is loaded, and the real work has been done once
    working()
    while True:
        real(*given)
room.multinomial_risk = again
"""
TABLE = ("people.csv", "--qid", "sex", "--sensitive", "job", "--levels", "sex=f|m", "--levels", "job=cook|smith")
CASES: dict[str, tuple[str, signal.Signals, tuple[str, ...]]] = {
    "counting, Ctrl-C": (IN_COUNTING, signal.SIGINT, ("inspect", *TABLE)),
    "counting, SIGTERM": (IN_COUNTING, signal.SIGTERM, ("curve", *TABLE, "--epsilon", "1", "--csv", "curve.csv")),
    "counting, SIGHUP": (IN_COUNTING, signal.SIGHUP, ("report", *TABLE, "--output", "report.html")),
    "simulation": (IN_SIMULATION, signal.SIGTERM, ("simulate", *TABLE, "--epsilon", "1", "--releases", "1000000")),
    "Python": (IN_PYTHON, signal.SIGINT, ("assess", *TABLE, "--epsilon", "1")),
    "deaf": (DEAF, signal.SIGINT, ("assess", *TABLE, "--epsilon", "1")),
    "other errors on the way": (CHAINED, signal.SIGTERM, ("explain", *TABLE, "--epsilon", "1")),
    "writing": (WRITING, signal.SIGTERM, ("curve", *TABLE, "--epsilon", "1", "--measure", "local", "--csv", "c.csv")),
    "writing a release": (WRITING, signal.SIGINT, ("release", *TABLE, "--epsilon", "1", "--output", "out.csv")),
}


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["sex,job", *["f,cook"] * 9, *["m,smith"] * 8, *["m,cook"] * 3]
    (tmp_path / "people.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
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
    assert sorted(os.listdir()) == ["people.csv", "scratch"]
    assert os.listdir("scratch") == []


def test_a_signal_ends_the_risks_of_large_cells_at_small_epsilon() -> None:
    """Here the work is real, transforms of cells of 10^5 records, and goes on until the signal is heard."""
    rows = [f"{cell},{label},{104_087 // (cell + label)}" for cell in range(1, 9) for label in range(1, 8)]
    Path("large.csv").write_text("\n".join(["cell,label,n", *rows, ""]), encoding="utf-8")
    table = ("large.csv", "--qid", "cell", "--sensitive", "label", "--count", "n")
    code, said = stop(IN_TRANSFORMS, signal.SIGTERM, ("assess", *table, "--epsilon", "0.001"))
    assert (code, said) == (130, "cellrisk: interrupted\n")
    assert sorted(os.listdir()) == ["large.csv", "people.csv", "scratch"]
    assert os.listdir("scratch") == []


def test_what_stands_is_said() -> None:
    code, said = stop(TRUTH, signal.SIGINT, ("inspect", *TABLE))
    assert (code, said) == (
        130,
        "cellrisk: interrupted; entry 7 of the ledger stands, and its file is in its place\n",
    )


def test_several_signals_are_as_good_as_one() -> None:
    code, said = stop(CHAINED, signal.SIGINT, ("inspect", *TABLE), times=5)
    assert (code, said) == (130, "cellrisk: interrupted\n")


def test_a_signal_while_the_commands_are_loaded() -> None:
    place = """
    import importlib.abc
    class Slow(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == "cellrisk.cli.program":
                stay_in_c()
    sys.meta_path.insert(0, Slow())
    """
    code, said = stop(place, signal.SIGINT, ("inspect", *TABLE))
    assert (code, said) == (130, "cellrisk: interrupted\n")


def test_the_signals_are_given_back() -> None:
    before = [signal.getsignal(number) for number in stopping.SIGNALS]
    assert main(["--version"]) == 0
    assert main(["inspect", "nowhere.csv", "--qid", "a", "--sensitive", "b"]) == 2
    assert [signal.getsignal(number) for number in stopping.SIGNALS] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_an_interruption_in_the_same_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        while True:  # until the signal is heard
            time.sleep(0.01)

    monkeypatch.setattr("cellrisk.cli.groups.TableOptions.tabulate", interrupt)
    assert main(["inspect", *TABLE]) == 130
    assert capsys.readouterr().err == "cellrisk: interrupted\n"


def test_a_refusal_is_no_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "nowhere.csv", "--qid", "a", "--sensitive", "b"]) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_what_is_unfinished_is_known_for_its_block() -> None:
    with stopping.unfinished("half"):
        assert "half" in stopping._unfinished
    assert "half" not in stopping._unfinished


def test_where_a_ledger_is_in_use_the_end_says_who_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, stopping.LEDGER, raising=False)
    assert stopping.what_stands() == "interrupted"
    monkeypatch.setitem(sys.modules, stopping.LEDGER, stopping)
    assert "cellrisk ledger list tells" in stopping.what_stands()
