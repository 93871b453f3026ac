"""What commands print: text, warnings, broken limits with their exit code, and a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from cellrisk.errors import visible

LIMIT_BROKEN = 3


def say(text: str, err: bool = False) -> None:
    """Print text or JSON, without characters that a terminal would obey or hide."""
    typer.echo(visible(text), err=err)


def warn_of_formulas(path: Path) -> None:
    """Print one line on standard error if a spreadsheet would take cells of a CSV file for formulas."""
    from cellrisk.system import spreadsheets

    warning = spreadsheets.tell_formulas(path)
    if warning is not None:
        say(f"cellrisk: {warning}", err=True)


def stop_if_broken(breaches: Sequence[str]) -> None:
    """Print broken limits in one line on standard error, and end with their exit code."""
    if breaches:
        say(f"cellrisk: {'; '.join(breaches)}", err=True)
        raise typer.Exit(LIMIT_BROKEN)


def progress_bar(doing: str) -> Callable[[float], None] | None:
    """Return a function to call with the share done; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(share: float) -> None:
        sys.stderr.write(f"\r{doing}: {share:4.0%}" if share < 1 else f"\r{' ' * (len(doing) + 6)}\r")
        sys.stderr.flush()

    return show
