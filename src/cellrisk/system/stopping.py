"""Stopping: a signal ends a command within two seconds, whatever it is doing, and leaves nothing half-made behind.

Python raises KeyboardInterrupt between two steps of the main thread, so that an array operation or a query of some
seconds would have to end first. A thread is woken by the signal itself: where the main thread has not unwound in time,
that thread removes what is unfinished, says so, and ends the process.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

INTERRUPTED = 130
"""The exit code of a command that a signal has ended."""
PATIENCE = 1.5
"""Seconds that the main thread has to unwind."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
LEDGER = "cellrisk.repeat.ledger.staging"
NOT_KNOWN = "a release that was being written to the ledger stands or not: cellrisk ledger list tells"

_unfinished: dict[str, None] = {}
_left_alone: list[object] = []
_outcome: list[str] = []


def note_outcome(sentence: str) -> None:
    """Says what the command has written for good, for whoever stops it after that; empty where nothing stands."""
    if threading.current_thread() is threading.main_thread():  # others serve somebody else, and are not stopped
        _outcome[:] = [sentence] if sentence else []


@contextmanager
def unfinished(path: str | os.PathLike[str]) -> Iterator[None]:
    """A file or folder that is of no use before the block has ended, and is removed where the process must end."""
    name = os.fspath(path)
    _unfinished[name] = None
    try:
        yield
    finally:
        _unfinished.pop(name, None)


@contextmanager
def left_alone() -> Iterator[None]:
    """Work that answers signals by itself and may take longer to end, such as a server with its workers."""
    mark = object()
    _left_alone.append(mark)
    try:
        yield
    finally:
        _left_alone.remove(mark)


class Watch:
    """For the length of its block, a signal raises KeyboardInterrupt once; where that is not heard, the process ends.

    Signals that were ignored before, as those of a job in the background are, stay so. Only the main thread can listen
    to signals: in another the block is as without it.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self.interrupted = self._raised = False
        self._end = end
        self._finished = threading.Event()
        self._before: dict[int, Any] = {}
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if threading.current_thread() is not threading.main_thread():
            return self
        note_outcome("")
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._interrupt)
        self._written, self._read = socket.socketpair()
        self._written.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="cellrisk-stopping", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        self._finished.set()
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        with suppress(OSError):
            self._written.send(b"\0")
        self._thread.join()
        self._written.close()
        self._read.close()

    def _interrupt(self, _number: int, _frame: object) -> None:
        """The first signal unwinds what is being done; further ones would only disturb that."""
        self.interrupted = True
        if not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    def _watch(self) -> None:
        while not self._finished.is_set():
            numbers = self._read.recv(64)
            if _left_alone or not set(numbers) & set(self._before):
                continue
            self.interrupted = True
            if not self._finished.wait(PATIENCE):
                self._end()


def say_interrupted(words: str = "") -> str:
    """What is said after an interruption: what the one who was interrupted has said of it, or what stands anyway."""
    return "; ".join(["interrupted", *([words] if words else _outcome)])


def end_now(message: str, code: int = INTERRUPTED) -> None:
    """Ends the process at once: no step of the main thread is waited for. What is unfinished is removed first."""
    for name in list(_unfinished):
        with suppress(OSError):
            Path(name).unlink() if not Path(name).is_dir() else shutil.rmtree(name, ignore_errors=True)
    with suppress(OSError, ValueError):
        os.write(2, f"cellrisk: {message}\n".encode())
    os._exit(code)


def what_stands() -> str:
    """What can be said where the main thread could not be heard: as after any sudden end."""
    return say_interrupted("" if _outcome or LEDGER not in sys.modules else NOT_KNOWN)
