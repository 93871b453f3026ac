"""A bar on a terminal for long work; nothing when the output goes elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

SECONDS_BEFORE_IT_SHOWS = 1.0
WIDTH = 30


def progress_bar(doing: str) -> Callable[[float], None] | None:
    """Something to call with the share done, or None where nobody is looking."""
    if not sys.stderr.isatty():
        return None
    started = time.monotonic()

    def show(share: float) -> None:
        if time.monotonic() - started >= SECONDS_BEFORE_IT_SHOWS:
            sys.stderr.write(f"\r{bar(doing, share)}\r" if share < 1 else f"\r{' ' * (WIDTH + 24)}\r")
            sys.stderr.flush()

    return show


def bar(doing: str, share: float) -> str:
    """The bar itself.

    >>> bar("counting", 0.5)
    'counting [###############               ]  50%'
    """
    filled = round(share * WIDTH)
    return f"{doing} [{'#' * filled}{' ' * (WIDTH - filled)}] {share:4.0%}"
