"""CSV files, which people open in spreadsheets: there a text that starts like a formula is computed.

Texts are written as they are, or on request with an apostrophe before those that a spreadsheet would compute. Numbers
are never changed.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Signs that start a formula, or that spreadsheets skip before one; the last four are the wide ones of East Asia."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SAFE_WORDS = "write it with --spreadsheet-safe, or open it as text"


def starts_formula(cell: object) -> bool:
    """Return whether a spreadsheet would take a cell for a formula.

    >>> [starts_formula(cell) for cell in ("=1+1", "-2 to 0", "@home", "<=50K", "-2.5", -2.5)]
    [True, True, True, False, False, False]
    """
    return isinstance(cell, str) and cell.startswith(STARTS) and NUMBER.fullmatch(cell) is None


def make_safe(cell: Any) -> Any:
    """Return a cell, with an apostrophe before it if a spreadsheet would take it for a formula.

    >>> make_safe("=1+1"), make_safe("cook"), make_safe(-3)
    ("'=1+1", 'cook', -3)
    """
    return f"'{cell}" if starts_formula(cell) else cell


def write_frame(frame: pd.DataFrame, *, spreadsheet_safe: bool = False) -> str:
    """Return a frame as CSV."""
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return write_rows([str(name) for name in frame.columns], rows, spreadsheet_safe=spreadsheet_safe)


def write_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], *, spreadsheet_safe: bool = False) -> str:
    """Return rows as CSV, below their names; None is an empty cell.

    If a text holds a carriage return, which older Pythons leave bare, all cells are quoted.
    """
    table = [[make_safe(cell) for cell in row] if spreadsheet_safe else row for row in (names, *rows)]
    returns = any("\r" in cell for row in table for cell in row if isinstance(cell, str))
    stream = io.StringIO()
    csv.writer(stream, csv.unix_dialect if returns else csv.excel, lineterminator="\n").writerows(table)
    return stream.getvalue()


def tell_formulas(path: str | os.PathLike[str]) -> str | None:
    """Return a warning of a CSV file with cells that a spreadsheet would compute; None if it has none."""
    with Path(path).open(encoding="utf-8", newline="") as stream:
        cells = sum(starts_formula(cell) for row in csv.reader(stream) for cell in row)
    if not cells:
        return None
    many = f"1 cell of {Path(path).name} starts" if cells == 1 else f"{cells:,} cells of {Path(path).name} start"
    return f"{many} a formula in a spreadsheet: {SAFE_WORDS}"
