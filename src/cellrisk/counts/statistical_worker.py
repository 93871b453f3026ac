"""Reads files of SPSS, SAS and Stata and spreadsheets in a process of its own, which `other_formats` starts.

A damaged or hostile file can end the process in which a library written in C or Rust reads it, or take all its memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.files import SPREADSHEETS, STATISTICAL, refusals_of_the_system
from cellrisk.counts.frames import assemble
from cellrisk.counts.resources import free_memory
from cellrisk.errors import CellriskError, InvalidInput, argument
from cellrisk.system.isolated import answer_once, limit_memory

if TYPE_CHECKING:
    import pyarrow as pa

ReadBatches = Callable[[Sequence[str]], Iterator["pa.Table"]]
"""Gives some columns of a file, so many rows at a time."""
ROWS = 100_000
"""Rows that are read at a time."""
DATES = re.compile(r"^%-?[td]|DATE|TIME|YY|QYR|MOYR|WKYR|JULIAN|HHMM|MMSS|TOD|E8601|B8601", re.IGNORECASE)
"""Formats of dates and times in the three programs."""


def main() -> None:
    """Answer `other_formats.ask_worker`, in the other process."""
    answer_once(answer)


def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of a file's columns, and write those asked for, or all, to a Parquet file if it has them."""
    path = Path(asked["path"])
    for library in (asked["library"], "pyarrow.parquet"):
        import_module(library)
    limit_memory(min(asked["memory"], free_memory()))
    try:
        with refusals_of_the_reader(path):
            read = read_spreadsheet if path.suffix.lower() in SPREADSHEETS else read_statistical
            names, read_batches = read(path, asked["sheet"])
            columns = names if asked["columns"] is None else asked["columns"]
            if set(columns) <= set(names):
                write_batches(read_batches(columns), asked["target"], len(columns))
            return {"names": names}
    except CellriskError as refusal:
        return {"refused": refusal.marked, "code": refusal.code}


def write_batches(batches: Iterator[pa.Table], target: str, columns: int) -> None:
    """Write batches of one type to one file; without any, so many columns of text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(batches, None) or assemble(pa.array([], pa.string()) for _ in range(columns))
    with pq.ParquetWriter(target, first.schema) as writer:
        for batch in (first, *batches):
            writer.write_table(batch)


def read_statistical(path: Path, _: None) -> tuple[list[str], ReadBatches]:
    """Read a file of SPSS, SAS or Stata. If a column has labels for its values, they are the levels, unless the file
    says that it measures on a scale; missing values that the user has defined are missing."""
    import pyreadstat

    read = getattr(pyreadstat, STATISTICAL[path.suffix.lower()])
    described = read(str(path), metadataonly=True)[1]

    def batches(columns: Sequence[str]) -> Iterator[pa.Table]:
        converters = [choose_converter(described, name) for name in columns]
        used = list(dict.fromkeys(columns))
        for frame, _ in pyreadstat.read_file_in_chunks(read, str(path), chunksize=ROWS, usecols=used):
            if len(frame):
                yield assemble(convert(frame[name].tolist()) for name, convert in zip(columns, converters, strict=True))

    return list(described.column_names), batches


def choose_converter(described: Any, name: str) -> Callable[[list[Any]], pa.Array]:
    labels = described.variable_value_labels.get(name)
    if labels and described.variable_measure.get(name) != "scale":
        return lambda values: label_values(values, labels)
    plain = described.readstat_variable_types.get(name) != "string"
    dated = DATES.search(str(described.original_variable_types.get(name, "")))
    return number_array if plain and not dated else text_array


def read_spreadsheet(path: Path, sheet: str | None) -> tuple[list[str], ReadBatches]:
    """Read one sheet of a workbook, every value as the text that it would be in a CSV file; the first row has the
    names."""
    from python_calamine import CalamineWorkbook

    workbook = CalamineWorkbook.from_path(str(path))
    sheets = workbook.sheet_names
    if (sheet is None and len(sheets) != 1) or (sheet is not None and sheet not in sheets):
        raise InvalidInput(
            "the workbook has several sheets" if sheet is None else f"the workbook has no sheet '{sheet}'",
            got=path,
            allowed=", ".join(sheets),
            fix=f"name one with {argument('table')}",
            code="no-table",
        )
    rows = iter(workbook.get_sheet_by_name(sheet or sheets[0]).iter_rows())
    names = [write_value(value) or "" for value in next(rows, [])]
    while names and not names[-1]:
        names.pop()
    if not names:
        allowed = "a first row with the names of the columns"
        raise InvalidInput("the first row is empty", allowed=allowed, code="no-header")

    def batches(columns: Sequence[str]) -> Iterator[pa.Table]:
        places = [names.index(name) for name in columns]  # the parent refuses a name that repeats
        filled = ([*row, *[None] * len(names)] for row in rows if any(value != "" for value in row))
        while part := list(islice(filled, ROWS)):
            yield assemble(text_array(row[place] for row in part) for place in places)

    return names, batches


def number_array(values: list[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if value is None or value != value else float(value) for value in values], pa.float64())


def text_array(values: Iterable[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([write_value(value) for value in values], pa.string())


def label_values(values: list[Any], labels: Mapping[Any, str]) -> pa.Array:
    """Return the labels of values; a label that stands for several values is followed by the value."""
    texts = list(labels.values())
    spelt = {
        value: label if texts.count(label) == 1 else f"{label} ({write_value(value)})"
        for value, label in labels.items()
    }
    return text_array(spelt.get(value, value) for value in values)


def write_value(value: Any) -> str | None:
    """Return a value as the text that it would be in a CSV file; None if it is missing.

    >>> [write_value(value) for value in (2.0, 0.5, True, "", None, float("nan"), date(2026, 1, 31))]
    ['2', '0.5', 'true', None, None, None, '2026-01-31']
    """
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime):
        midnight = (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0)
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


@contextmanager
def refusals_of_the_reader(path: Path) -> Iterator[None]:
    """Replace what a library says of a damaged or hostile file, which may quote what it holds."""
    try:
        yield
    except (CellriskError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            with refusals_of_the_system(path):
                raise
        what = f"the file cannot be read, or is damaged ({type(error).__name__})"
        raise InvalidInput(what, got=path, fix="save it again", code="damaged") from None
