"""Reports of how far long work is."""

from __future__ import annotations

from collections.abc import Callable

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
