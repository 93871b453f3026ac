"""Files of other programs: SPSS, SAS and Stata, spreadsheets, Feather, JSON lines, and a zip with one table in it.

Each is read once, a good many rows at a time, into a Parquet file in the engine's private folder, and is then counted
like any other. A column has a type that the file declares for it, or else is text, value by value: no record decides
how another one is read. Such files come from anywhere, so what they hold is measured before it is unpacked.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, time
from functools import partial
from importlib import import_module
from itertools import accumulate, islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from cellrisk.counts.engine import LONGEST_LINE
from cellrisk.counts.files import (
    CHUNK,
    FEATHER,
    PARQUET_SUFFIXES,
    SPREADSHEETS,
    STATISTICAL,
    TEXT_SUFFIXES,
    check_columns,
    check_text,
    refusals_of_the_system,
)
from cellrisk.counts.schema import locate
from cellrisk.counts.streams import plan_stream, write_batches
from cellrisk.errors import CellriskError, InvalidInput, argument
from cellrisk.system.extras import extra_needed
from cellrisk.system.isolated import send, start_isolated

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 100_000
"""Rows that are read at a time."""
LARGEST_SPREADSHEET = 2_000_000_000
"""Bytes of a spreadsheet once it is unpacked: all of it is held in memory."""
MEMORY = 8_000_000_000
"""Bytes that reading a file of SPSS, SAS or Stata or a spreadsheet may take; less if the machine can spare less."""
PATIENCE, BYTES_A_SECOND = 600, 100_000
"""Seconds that reading such a file may take, and one more for so many bytes."""
APART = {**dict.fromkeys(STATISTICAL, "pyreadstat"), **dict.fromkeys(SPREADSHEETS, "python_calamine")}
"""Endings of the files that are read in a process of their own, and the library that reads each."""
LOOKED_AT = 10_000
"""Lines of JSON whose keys tell which columns there are."""
DATES = re.compile(r"^%-?[td]|DATE|TIME|YY|QYR|MOYR|WKYR|JULIAN|HHMM|MMSS|TOD|E8601|B8601", re.IGNORECASE)
"""Formats of dates and times in the three programs."""


def list_columns(path: Path, sheet: str | None = None) -> list[str]:
    """The names of the columns of a file; of JSON lines, those of the first ten thousand records."""
    with refusals_of_the_reader(path):
        if path.suffix.lower() in FEATHER:
            _check_no_sheet(path, sheet)
            return list(_open_feather(path).schema.names)
        return ask_apart(path, sheet) if path.suffix.lower() in APART else _JsonLines(()).names(path, sheet)


def plan_foreign(
    path: Path, columns: Sequence[str], sheet: str | None = None, by_declaration: bool = False
) -> Callable[[Path], Path]:
    """Checks the columns of a file; the result writes those in use, as c0, c1, ..., to a file in a folder.

    by_declaration: whether lines of JSON have the columns asked for, whatever keys occur in them.
    """
    with refusals_of_the_reader(path):
        if path.suffix.lower() in FEATHER:
            return refusals_of_the_reader(path)(plan_stream(_open_feather(path), columns, by_declaration))
        lines = _JsonLines(columns if by_declaration else ())
        apart = path.suffix.lower() in APART
        names = ask_apart(path, sheet) if apart else lines.names(path, sheet)
        locate(columns, names, f"'{path.name}'", first_line=path.suffix.lower() in SPREADSHEETS)
        if apart:
            return lambda folder: folder / ask_apart(path, sheet, columns, folder)[0]
        read = partial(lines.read, path, columns, sheet)
        return refusals_of_the_reader(path)(lambda folder: write_batches(read(), folder, len(columns)))


def unpack(path: Path, folder: Path) -> Path:
    """The one table in a zip, unpacked into a folder; what holds more than it says, or than the disk, is refused."""
    with refusals_of_the_system(path), refusals_of_the_reader(path), zipfile.ZipFile(path) as packed:
        member = _find_member(path, packed)
        free = shutil.disk_usage(folder).free
        if member.file_size > free // 2:
            raise InvalidInput(
                "the file in the zip is too large to unpack here",
                got=f"{member.file_size:,} bytes",
                allowed=f"half of the free disk: {free // 2:,} bytes",
            )
        target = folder / f"unpacked{PurePosixPath(member.filename).suffix.lower()}"
        left = member.file_size
        with target.open("xb") as copy:
            for part in _unpack_member(packed, member):
                left -= len(part)
                if left < 0:
                    break
                copy.write(part)
        if left:
            raise InvalidInput("the file in the zip is not as long as the zip says", got=path, fix="pack it again")
    return target


def _unpack_member(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """All that a member holds, in parts: `zipfile` itself stops at the size that the zip claims."""
    member.file_size = sys.maxsize
    with packed.open(member) as source:
        yield from iter(partial(source.read, CHUNK), b"")


def _check_size(path: Path) -> None:
    """Refuse a spreadsheet that is too large, measured by unpacking it: its own claims are not believed."""
    unpacked = path.stat().st_size
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            sizes = (len(part) for member in packed.infolist() for part in _unpack_member(packed, member))
            unpacked = next((total for total in accumulate(sizes) if total > LARGEST_SPREADSHEET), 0)
    if unpacked > LARGEST_SPREADSHEET:
        allowed = f"up to {LARGEST_SPREADSHEET:,} bytes"
        raise InvalidInput("the spreadsheet is too large once it is unpacked", allowed=allowed, fix="save it as CSV")


def ask_apart(
    path: Path, sheet: str | None, columns: Sequence[str] | None = None, folder: Path | None = None
) -> list[str]:
    """Read a file in an isolated process with limits of memory and time, which a damaged or hostile file may end.

    Returns the names of its columns, or that of the file in the folder to which the columns given were written.
    """
    suffix = path.suffix.lower()
    fix = "delete cells far from the table, or save it as CSV" if suffix in SPREADSHEETS else "save it again"
    with extra_needed(), refusals_of_the_system(path):
        import_module(APART[suffix])
        seconds = PATIENCE + path.stat().st_size // BYTES_A_SECOND
    asked = {"path": str(path), "sheet": sheet, "columns": columns and list(columns), "folder": str(folder)}
    limits = {"rows": ROWS, "bytes": LARGEST_SPREADSHEET, "memory": MEMORY, "seconds": seconds}
    said = b""
    with (
        suppress(BrokenPipeError),
        start_isolated("cellrisk.counts.statistical_worker", path.absolute().parent) as process,
    ):
        try:
            send(process.stdin, asked | limits)
            said = process.stdout.read() if process.stdout else b""
        except BaseException:
            process.kill()
            raise
    if said.startswith(b"Timeout"):
        raise InvalidInput(f"reading the file was ended after {seconds:,} seconds", got=path, fix=fix)
    if process.returncode != 0:
        allowed = f"up to {MEMORY / 10**9:g} GB of memory to read it"
        raise InvalidInput("the file cannot be read, or is damaged", got=path, allowed=allowed, fix=fix)
    answer: dict[str, list[str]] = json.loads(said)
    if "refused" in answer:
        raise InvalidInput(*answer["refused"])
    return answer["names"]


class Statistical:
    """SPSS, SAS and Stata. Where a column has labels for its values, they are the levels, unless the file says that it
    measures on a scale; missing values that the user has defined are missing."""

    def names(self, path: Path, sheet: str | None) -> list[str]:
        _check_no_sheet(path, sheet)
        return list(self._describe(path).column_names)

    def read(self, path: Path, columns: Sequence[str], sheet: str | None) -> Iterator[pa.Table]:
        read_one, chunks = self._load(path)
        described = self._describe(path)
        converters = [self._choose_converter(described, name) for name in columns]
        for frame, _ in chunks(read_one, str(path), chunksize=ROWS, usecols=list(dict.fromkeys(columns))):
            if len(frame):
                yield _assemble(
                    convert(frame[name].tolist()) for name, convert in zip(columns, converters, strict=True)
                )

    def _describe(self, path: Path) -> Any:
        read_one, _ = self._load(path)
        return read_one(str(path), metadataonly=True)[1]

    def _load(self, path: Path) -> tuple[Any, Any]:
        import pyreadstat

        return getattr(pyreadstat, STATISTICAL[path.suffix.lower()]), pyreadstat.read_file_in_chunks

    def _choose_converter(self, described: Any, name: str) -> Callable[[list[Any]], pa.Array]:
        labels = described.variable_value_labels.get(name)
        if labels and described.variable_measure.get(name) != "scale":
            return lambda values: _label(values, labels)
        plain = described.readstat_variable_types.get(name) != "string"
        if plain and not DATES.search(str(described.original_variable_types.get(name, ""))):
            return _as_numbers
        return _as_text


class Spreadsheet:
    """One sheet of a workbook, every value as the text that it would be in a CSV file; the first row has the names."""

    def names(self, path: Path, sheet: str | None) -> list[str]:
        return _header(next(iter(self._rows(path, sheet)), []))

    def read(self, path: Path, columns: Sequence[str], sheet: str | None) -> Iterator[pa.Table]:
        rows = iter(self._rows(path, sheet))
        places = locate(columns, _header(next(rows, [])), f"'{path.name}'", first_line=True)
        filled = (row for row in rows if any(value != "" for value in row))
        for part in _in_parts([row[place] if place < len(row) else None for place in places] for row in filled):
            yield _assemble(map(_as_text, zip(*part, strict=True)))

    def _rows(self, path: Path, sheet: str | None) -> Iterable[list[Any]]:
        from python_calamine import CalamineWorkbook

        _check_size(path)
        workbook = CalamineWorkbook.from_path(str(path))
        names = workbook.sheet_names
        if sheet is not None and sheet not in names:
            raise InvalidInput(f"the workbook has no sheet '{sheet}'", got=path, allowed=", ".join(names))
        if sheet is None and len(names) != 1:
            raise InvalidInput(
                "the workbook has several sheets",
                got=path,
                allowed=", ".join(names),
                fix=f"name one with {argument('table')}",
            )
        rows: Iterable[list[Any]] = workbook.get_sheet_by_name(names[0] if sheet is None else sheet).iter_rows()
        return rows


class _JsonLines:
    """One object a line, every value as text; a key that a record lacks is a missing value.

    Where columns are declared, there are no others, and a nested value is missing; else it is refused.
    """

    def __init__(self, declared: Sequence[str]) -> None:
        self._declared = declared

    def names(self, path: Path, sheet: str | None) -> list[str]:
        _check_no_sheet(path, sheet)
        found = dict.fromkeys(self._declared)
        for record in () if self._declared else islice(self._records(path), LOOKED_AT):
            found.update(dict.fromkeys(record))
            check_columns(path, len(found))
        return list(found)

    def read(self, path: Path, columns: Sequence[str], sheet: str | None) -> Iterator[pa.Table]:
        nested = dict | list if self._declared else ()
        for part in _in_parts(self._records(path)):
            values = ([record.get(name) for record in part] for name in columns)
            yield _assemble(
                _as_text(None if isinstance(each, nested) else each for each in column) for column in values
            )

    def _records(self, path: Path) -> Iterator[dict[str, Any]]:
        with path.open("rb") as stream:
            start = stream.read(CHUNK)[: 64 * 1024]
            if start.strip() or not self._declared:
                check_text(path, start)
            stream.seek(0)
            number = 0
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InvalidInput(f"line {number:,} of the file is too long", got=path)
                if line.strip():
                    yield self._read_line(path, number, line)

    def _read_line(self, path: Path, number: int, line: bytes) -> dict[str, Any]:
        try:
            record = json.loads(line.decode("utf-8-sig"), parse_int=str)
        except (ValueError, RecursionError):  # its text would quote the record
            raise InvalidInput(f"line {number:,} of the file is not JSON", got=path) from None
        if not isinstance(record, dict):
            raise InvalidInput(
                f"line {number:,} of the file is no object", got=path, allowed='lines such as {"sex": "f", "age": 30}'
            )
        return record


def _open_feather(path: Path) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(str(path), format="feather")


def _check_no_sheet(path: Path, sheet: str | None) -> None:
    if sheet is not None:
        raise InvalidInput(
            "a table was named, and this file holds only one", got=path, fix=f"leave {argument('table')} out"
        )


def _find_member(path: Path, packed: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one file in a zip that is a table; what a Mac adds beside it does not count."""
    members = [each for each in packed.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise InvalidInput(
            "a zip must hold one file", got=f"{len(members)} in {path}", fix="unpack it, and name a file"
        )
    if members[0].flag_bits & 1:
        raise InvalidInput("the zip is encrypted", got=path, fix="unpack it first")
    if PurePosixPath(members[0].filename).suffix.lower() not in (*TEXT_SUFFIXES, *PARQUET_SUFFIXES):
        raise InvalidInput("the file in the zip is not a table", got=path, allowed=".csv, .tsv, .txt or .parquet in it")
    return members[0]


def _header(row: Sequence[Any]) -> list[str]:
    names = [_write(value) or "" for value in row]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise InvalidInput("the first row is empty", allowed="a first row with the names of the columns")
    return names


def _in_parts(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while part := list(islice(rows, ROWS)):
        yield part


def _assemble(arrays: Iterable[pa.Array]) -> pa.Table:
    import pyarrow as pa

    return pa.table({f"c{place}": array for place, array in enumerate(arrays)})


def _as_numbers(values: list[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if value is None or value != value else float(value) for value in values], pa.float64())


def _as_text(values: Iterable[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([_write(value) for value in values], pa.string())


def _label(values: list[Any], labels: Mapping[Any, str]) -> pa.Array:
    """The labels of values; a label that stands for several values is told apart by them, and so is none at all."""
    texts = list(labels.values())
    spelt = {
        value: label if texts.count(label) == 1 else f"{label} ({_write(value)})" for value, label in labels.items()
    }
    return _as_text(spelt.get(value, value) for value in values)


def _write(value: Any) -> str | None:
    """A value as the text that it would be in a CSV file; None where it is missing.

    >>> [_write(value) for value in (2.0, 0.5, True, "", None, float("nan"), date(2026, 1, 31))]
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
    if isinstance(value, dict | list):
        raise InvalidInput(
            "a value is nested", got="a list or an object in it", allowed="texts, numbers and true or false"
        )
    return str(value)


@contextmanager
def refusals_of_the_reader(path: Path) -> Iterator[None]:
    """A library that reads a damaged or hostile file may say anything of it, and quote what it holds."""
    try:
        yield
    except (CellriskError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:
            with refusals_of_the_system(path):
                raise
        raise InvalidInput("the file cannot be read, or is damaged", got=path, fix="save it again") from None
    except Exception as error:
        kind = type(error).__name__
        raise InvalidInput(f"the file cannot be read, or is damaged ({kind})", got=path, fix="save it again") from None
