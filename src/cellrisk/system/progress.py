"""Long work: reports of how far it is, and interrupts.

SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, and the command reports what it has already written. Python runs a
handler between two steps of the main thread, and DuckDB runs it within a query. DuckDB then waits for the query's own
threads, for seconds, unless the query is cancelled: `cancelled_by_signal` registers how.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""


class StepCounter:
    """Count steps, and report each percent once.

    >>> shares = []
    >>> report = StepCounter(shares.append, 4)
    >>> report.add(1), report.add(3), shares
    (None, None, [0.25, 1.0])
    """

    def __init__(self, progress: Progress | None, steps: int) -> None:
        self._progress, self._steps, self._done, self._reported = progress, steps, 0, 0

    def add(self, steps: int) -> None:
        self._done += steps
        percent = 100 * self._done // self._steps
        if self._progress is not None and percent > self._reported:
            self._reported = percent
            self._progress(self._done / self._steps)


def share_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return a report of progress for a part of the work."""
    if progress is None:
        return None
    return lambda done: progress(start + (end - start) * done)


INTERRUPTED = 130
"""Exit code of an interrupted command."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
SECONDS_BETWEEN = 1.0
"""A signal that follows another sooner is ignored, so it does not disturb the clean-up."""
NOT_KNOWN = "whether the release was written to the ledger is not known: see cellrisk ledger list"

_outcome: list[str] = []
_arrived: list[int] = []
_cancels: list[Callable[[], None]] = []
_delays: list[int] = []


def note_outcome(sentence: str) -> None:
    """Note what the command has written permanently, for the report of an interruption; empty if nothing."""
    if threading.current_thread() is threading.main_thread():
        _outcome[:] = [sentence] if sentence else []


def describe_interruption(words: str = "") -> str:
    """Return the report of an interruption: the words of the interrupted code, or else what was noted.

    >>> describe_interruption("entry 7 of the ledger stands")
    'interrupted; entry 7 of the ledger stands'
    """
    return "; ".join(["interrupted", *([words] if words else _outcome)])


@contextmanager
def cancelled_by_signal(cancel: Callable[[], None]) -> Iterator[None]:
    """Call ``cancel`` if a signal arrives during the block; it must return at once."""
    _cancels.append(cancel)
    try:
        yield
    finally:
        _cancels.remove(cancel)


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Raise an interrupt only after the block: DuckDB aborts the process if an exception interrupts its import."""
    _delays.append(len(_arrived))
    try:
        yield
    finally:
        before = _delays.pop()
    if len(_arrived) > before:
        raise KeyboardInterrupt


@contextmanager
def interrupted_by_signals() -> Iterator[list[int]]:
    """Let signals raise KeyboardInterrupt during the block; yields the list of signals that arrived.

    Signals that were ignored before, as in a background job, stay ignored. Only the main thread can handle signals.
    """
    raised = -SECONDS_BETWEEN

    def interrupt(number: int, _frame: object) -> None:
        nonlocal raised
        _arrived.append(number)
        if not _delays and time.monotonic() - raised >= SECONDS_BETWEEN:
            raised = time.monotonic()
            for cancel in _cancels:
                cancel()
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    note_outcome("")
    _arrived.clear()
    heard = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield _arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
