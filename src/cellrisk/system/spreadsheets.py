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
from typing import TYPE_CHECKING, Any, Literal

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
    if spreadsheet_safe:
        frame = frame.rename(columns=make_safe)
        for place, (name, kind) in enumerate(frame.dtypes.items()):
            column = frame.iloc[:, place]
            if str(kind) == "category":
                frame[name] = column.cat.rename_categories([make_safe(label) for label in column.cat.categories])
            elif not _is_number(kind):
                frame[name] = column.map(make_safe, na_action="ignore")
    texts = [str(name) for name in frame.columns]
    for place, kind in enumerate(frame.dtypes):
        if not _is_number(kind):
            texts += frame.iloc[:, place].dropna().astype(str).unique().tolist()
    return str(frame.to_csv(index=False, lineterminator="\n", quoting=_quoting(texts)))


def write_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], *, spreadsheet_safe: bool = False) -> str:
    """Return rows as CSV, below their names; None is an empty cell."""
    table = [[make_safe(cell) for cell in row] if spreadsheet_safe else row for row in (names, *rows)]
    stream = io.StringIO()
    quoting = _quoting(cell for row in table for cell in row if isinstance(cell, str))
    csv.writer(stream, lineterminator="\n", quoting=quoting).writerows(table)
    return stream.getvalue()


def tell_formulas(path: str | os.PathLike[str]) -> str | None:
    """Return a warning of a CSV file with cells that a spreadsheet would compute; None if it has none."""
    with Path(path).open(encoding="utf-8", newline="") as stream:
        cells = sum(starts_formula(cell) for row in csv.reader(stream) for cell in row)
    if not cells:
        return None
    many = f"1 cell of {Path(path).name} starts" if cells == 1 else f"{cells:,} cells of {Path(path).name} start"
    return f"{many} a formula in a spreadsheet: {SAFE_WORDS}"


def _quoting(texts: Iterable[str]) -> Literal[0, 2]:
    """Return which texts are quoted: all if one holds a carriage return, which older Pythons leave bare."""
    return csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL


def _is_number(kind: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(kind) or is_bool_dtype(kind))
