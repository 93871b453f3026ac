"""Long work tells how far it has got."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""


class StepCounter:
    """Counts steps, and tells each percent once.

    >>> told = []
    >>> report = StepCounter(told.append, 4)
    >>> report.add(1), report.add(3), told
    (None, None, [0.25, 1.0])
    """

    def __init__(self, progress: Progress | None, steps: int) -> None:
        self._progress, self._steps, self._done, self._told = progress, steps, 0, 0

    def add(self, steps: int) -> None:
        self._done += steps
        percent = 100 * self._done // self._steps
        if self._progress is not None and percent > self._told:
            self._told = percent
            self._progress(self._done / self._steps)


def share_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """What reports progress, for a part of the work."""
    if progress is None:
        return None
    return lambda done: progress(start + (end - start) * done)
