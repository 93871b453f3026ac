"""A process that forks the command line on demand, to be killed or to run beside others; run as a module.

It has imported everything and made one release, so that a run is one fork and little more. It reads one order a line
and answers in JSON.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.ledger.soak import LONG, PEOPLE, look, make_command

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = (
    *(
        "cellrisk.cli",
        "cellrisk.repeat.ledger.pairing",
        "cellrisk.publish.releasing",
        "cellrisk.counts.embedded",
        "psycopg",
    ),
    *("ibis.backends.duckdb", "opendp.prelude", "opendp._data", "pyarrow.pandas_compat", "pyarrow_hotfix"),
    *("pydantic.json_schema", "pydantic.type_adapter", "sqlalchemy.dialects.postgresql", "typer._adapters"),
)
ALONE = ["unshare", "--map-root-user", "--mount", "sh", "-c"]


class Launcher:
    """The process as it is seen from outside, with a small disk that only it sees, where that is permitted."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.disk = scratch, scratch / "disk"
        self.disk.mkdir()
        mount = f"mount -t tmpfs -o size=2m none '{self.disk}'"
        self.has_disk = _try([*ALONE, mount])
        before = [*ALONE, f'{mount} && exec "$@"', "sh"] if self.has_disk else []
        paths = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
        environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"}
        environment["CELLRISK_STATE"] = str(scratch / "state")
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", "tests.ledger.launcher"],
            env={name: value for name, value in environment.items() if name != "CELLRISK_TRACEBACK"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait(timeout=300)

    def order(self, do: str, **rest: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **rest}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the launcher died"
        return json.loads(answer)

    def run(self, arguments: Sequence[str], mark: str | None = None, after: float | None = None) -> Run:
        """One command, killed some seconds after its start or after a mark that it passes, or not at all.

        After 0 seconds it dies by its own hand, at the very mark.
        """
        return Run(**self.order("run", arguments=list(arguments), mark=mark, after=after))


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int | None
    """None where it was killed."""
    errors: str
    marks: dict[str, float]
    """When it passed what, in seconds after its start."""


@contextmanager
def launched(scratch: Path) -> Iterator[Launcher]:
    launcher = Launcher(scratch)
    try:
        yield launcher
    finally:
        launcher.close()


def _try(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0
    except OSError:
        return False


# From here on: inside the process.

MARKS = {"t": "settle", "r": "reserve", "s": "save", "d": "decide", "D": "decided", "e": "saved"}


def announce(writing: int, last: str | None = None) -> None:
    """Tells through a pipe where the command has got to; the process dies at its last mark."""
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.repeat.ledger.pairing import Reservation

    def pass_mark(sign: str) -> None:
        os.write(writing, sign.encode())
        if sign and MARKS[sign] == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def marked(before: str, method: Callable[..., Any], after: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            pass_mark(before)
            result = method(*given, **named)
            pass_mark(after)
            return result

        return call

    for kind, name, before, after in (
        (Ledger, "settle", "t", ""),
        (Ledger, "reserve", "r", ""),
        (Reservation, "save", "s", "e"),
        (Reservation, "_decide", "d", "D"),
    ):
        setattr(kind, name, marked(before, getattr(kind, name), after))


def fork(work: Callable[[], int], *closed: int) -> int:
    """Does the work in a child that says nothing, and leaves without a word."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            for handle in closed:
                os.close(handle)
            code = work()
            sys.stderr.flush()
        finally:
            os._exit(code)
    return child


def run(arguments: list[str], mark: str | None, after: float | None) -> dict[str, Any]:
    from cellrisk.cli import main

    def work() -> int:
        os.dup2(errors.fileno(), 2)
        announce(writing, mark if after == 0 else None)
        return main(arguments)

    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as errors:
        begun = time.monotonic()
        child = fork(work, reading)
        os.close(writing)
        marks: dict[str, float] = {}
        deadline = begun + after if after is not None and mark is None else None
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([reading], [], [], left)[0]:
                os.kill(child, signal.SIGKILL)
                break
            seen = os.read(reading, 100)
            if not seen:
                break
            for sign in seen.decode():
                marks.setdefault(MARKS[sign], time.monotonic() - begun)
            if mark in marks and after is not None and deadline is None:
                deadline = time.monotonic() + after
        _, status = os.waitpid(child, 0)
        while select.select([reading], [], [], 0)[0] and (seen := os.read(reading, 100)):  # passed before the kill
            for sign in seen.decode():
                marks.setdefault(MARKS[sign], time.monotonic() - begun)
        marks["end"] = time.monotonic() - begun
        os.close(reading)
        errors.seek(0)
        text = errors.read().decode()
    code = os.waitstatus_to_exitcode(status)
    return {"code": None if code == -signal.SIGKILL else code, "errors": text, "marks": marks}


def work_through(place: str, jobs: list[tuple[str, list[str]]], released: str) -> list[tuple[int, str]]:
    """One after another: through the API with a ledger that stays open, and by command."""
    from cellrisk.cli import main
    from cellrisk.errors import CellriskError
    from cellrisk.repeat.ledger import Ledger

    release = pickle.loads(Path(released).read_bytes())
    fields = {"attribute": release.sensitive, "quasi_identifiers": release.quasi_identifiers, "loss": release.mechanism}
    done = []
    with Ledger(place, wait=LONG) as ledger:
        for way, given in jobs:
            code, errors = 0, io.StringIO()
            try:
                if way == "add":
                    ledger.add(**fields)
                elif way == "save":
                    with ledger.reserve(**fields) as reservation:
                        reservation.save(release, given[0])
                else:
                    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
                        code = main(given)
            except CellriskError as refusal:
                code = 2
                errors.write(f"{refusal}\n")
            done.append((code, errors.getvalue()))
    return done


def work_together(place: str, batches: list[list[tuple[str, list[str]]]], released: str) -> list[Any]:
    """A process for each batch, all begun at once."""
    gate, opened = os.pipe()
    with tempfile.TemporaryDirectory() as folder:

        def work(number: int) -> int:
            os.read(gate, 1)
            done = work_through(place, batches[number], released)
            Path(folder, str(number)).write_text(json.dumps(done), encoding="utf-8")
            return 0

        children = [fork(partial(work, number), opened) for number in range(len(batches))]
        os.close(opened)
        os.close(gate)
        for child in children:
            os.waitpid(child, 0)
        found = [Path(folder, str(number)) for number in range(len(batches))]
        return [json.loads(path.read_text(encoding="utf-8")) if path.exists() else None for path in found]


def look_apart(place: str, folder: str, outputs: str) -> Any:
    """What `look` finds, in a process of its own: a list of rows, or the failure as text."""
    with tempfile.TemporaryFile() as told:

        def work() -> int:
            try:
                answer: Any = look(place, Path(folder), Path(outputs))[0]
            except BaseException as failure:
                answer = f"{type(failure).__name__}: {failure}"
            told.write(json.dumps(answer).encode())
            told.flush()
            return 0

        os.waitpid(fork(work), 0)
        told.seek(0)
        return json.loads(told.read())


def fill(folder: str, left: int) -> int:
    """Fills a disk until so many bytes are left, to the block; what is left then."""
    with open(f"{folder}/filler", "wb") as filler:
        while True:
            disk = os.statvfs(folder)
            too_many = disk.f_bavail * disk.f_frsize - left
            if too_many < disk.f_frsize:
                return too_many + left
            filler.write(bytes(too_many // disk.f_frsize * disk.f_frsize))
            filler.flush()


def clear(folder: str) -> None:
    os.unlink(f"{folder}/filler")


ORDERS: dict[str, Callable[..., Any]] = {
    "run": run,
    "together": work_together,
    "look": look_apart,
    "fill": fill,
    "clear": clear,
    "make": lambda folder: os.makedirs(folder, exist_ok=True),
}


def warm_up() -> None:
    """Loads what is loaded late, and fills what is kept between calls; no thread and no connection is left."""
    for name in MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    from cellrisk.cli import main

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        Path(folder, "people.csv").write_text(PEOPLE, encoding="utf-8")
        main(make_command(f"{folder}/people.csv", f"{folder}/releases.ledger", f"{folder}/released.csv"))


def serve() -> None:
    warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        sys.stdout.write(json.dumps(ORDERS[order.pop("do")](**order)) + "\n")
        sys.stdout.flush()
    os._exit(0)  # without a word of the libraries about what they did not put away


if __name__ == "__main__":
    serve()
