"""Files of other programs: SPSS, SAS and Stata, spreadsheets, Feather, JSON lines, and a zip with one table in it.

A column has the type that the file declares for it, or else is text, value by value: no record decides how another one
is read.
"""

from __future__ import annotations

import math
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from importlib import import_module
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from cellrisk.counts.engine import (
    LONGEST_LINE,
    Cause,
    Relation,
    assemble,
    define,
    find_cause,
    free_memory,
    quote_path,
    quote_sql,
)
from cellrisk.counts.files import (
    CHUNK,
    HEAD,
    PARQUET_SUFFIXES,
    SPREADSHEETS,
    STATISTICAL,
    TEXT_SUFFIXES,
    check_text,
    refusals_of_the_system,
    save_parts,
)
from cellrisk.counts.schema import AskedColumns, locate
from cellrisk.errors import CellriskError, InvalidInput, argument, extra_needed
from cellrisk.system.isolated import answer_once, ask_isolated, limit_memory

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 8_000_000_000
"""Bytes that reading a file of SPSS, SAS or Stata or a spreadsheet may take; less if the machine can spare less."""
PATIENCE, BYTES_A_SECOND = 600, 100_000
"""Seconds that reading such a file may take, and one more for so many bytes."""
LIBRARIES = {**dict.fromkeys(STATISTICAL, "pyreadstat"), **dict.fromkeys(SPREADSHEETS, "python_calamine")}
"""Endings of the files that are read in a process of their own, and the library that reads each."""
LOOKED_AT = 10_000
"""Lines of JSON whose keys tell which columns there are."""
FLAT = 'write lines such as {"sex": "f", "age": 30}'
LINE_FAILURES: tuple[Cause, ...] = (
    ("maximum_object_size", "a line of the file is too long", FLAT, "too-long"),
    ("a value is nested", "a value is nested", FLAT, "nested"),
    ("Malformed JSON|no object", "a line of the file is not a JSON object", FLAT, "damaged"),
)


def ask_worker(path: Path, sheet: str | None, columns: Sequence[str], folder: Path) -> Path:
    """Read a file in an isolated process with limits of memory and time, which a damaged or hostile file may end.

    Returns a Parquet file with the columns in use as c0, c1, ...
    """
    suffix, target = path.suffix.lower(), folder / "table.parquet"
    fix = "delete cells far from the table, or save it as CSV" if suffix in SPREADSHEETS else "save it again"
    with extra_needed(), refusals_of_the_system(path):
        import_module(LIBRARIES[suffix])
        seconds = PATIENCE + path.stat().st_size // BYTES_A_SECOND
    every = isinstance(columns, AskedColumns) and columns.every
    asked: dict[str, Any] = {"path": str(path), "sheet": sheet, "columns": None if every else list(columns)}
    asked |= {"target": str(target), "memory": MEMORY, "library": LIBRARIES[suffix]}
    try:
        answer = ask_isolated("cellrisk.counts.other_formats", asked, seconds, path.absolute().parent)
    except TimeoutError:
        what = f"reading the file was ended after {seconds:,} seconds"
        raise InvalidInput(what, got=path, fix=fix, code="too-large") from None
    except ChildProcessError:
        allowed = f"up to {MEMORY / 10**9:g} GB of memory to read it"
        what = "the file cannot be read, or is damaged"
        raise InvalidInput(what, got=path, allowed=allowed, fix=fix, code="damaged") from None
    if "refused" in answer:
        raise InvalidInput(answer["refused"], code=answer["code"])
    locate(columns, answer["names"], f"'{path.name}'", first_line=suffix in SPREADSHEETS)
    return target


def read_lines(connection: Any, path: Path, columns: Sequence[str], by_declaration: bool) -> Relation:
    """Return lines of JSON, every value as text; a key that a record lacks is a missing value.

    by_declaration: they have the columns asked for, whatever keys occur, and a nested value is missing; else refused.
    """
    import duckdb

    with refusals_of_the_system(path), path.open("rb") as stream:
        start = stream.read(HEAD)
        if start.strip() or not by_declaration:
            check_text(path, start)
    lines = f"read_ndjson_objects({quote_path(path)}, maximum_object_size={LONGEST_LINE})"
    try:
        if not by_declaration:
            query = f"SELECT unnest(json_keys(json)) FROM (FROM {lines} LIMIT {LOOKED_AT})"
            names = dict.fromkeys(name for (name,) in connection.execute(query).fetchall())
            locate(columns, list(names), f"'{path.name}'")
        chosen = (f"{json_value(name, by_declaration)} AS c{index}" for index, name in enumerate(columns))
        return define(connection, "TABLE", f"SELECT {', '.join(chosen)} FROM {lines}")
    except duckdb.Error as error:  # which quotes the record
        raise find_cause(str(error), LINE_FAILURES) or InvalidInput(
            "the file does not hold lines of JSON", got=path, fix=FLAT, code="damaged"
        ) from None


def json_value(name: str, by_declaration: bool) -> str:
    """Return SQL for the value of a key of an object, as text; a number is written without ``.0``."""
    key = quote_sql("/" + name.replace("~", "~0").replace("/", "~1"))
    value, kind = f"json_extract_string(json, {key})", f"json_type(json, {key})"
    number = f"nullif(regexp_replace({value}, '\\.0$', ''), 'NaN')"
    nested = "NULL" if by_declaration else "error('a value is nested')"
    return (
        f"CASE WHEN json_type(json) <> 'OBJECT' THEN error('no object') WHEN {kind} IN ('ARRAY', 'OBJECT') "
        f"THEN {nested} WHEN {kind} = 'DOUBLE' THEN {number} ELSE nullif({value}, '') END"
    )


def unpack(path: Path, folder: Path) -> Path:
    """Unpack the one table in a zip into a folder; what a Mac adds beside it does not count."""
    with refusals_of_the_system(path), refusals_of_the_reader(path), zipfile.ZipFile(path) as packed:
        files = [member for member in packed.infolist() if not member.is_dir()]
        members = [member for member in files if not member.filename.startswith("__MACOSX/")]
        allowed = "one file in it, .csv, .tsv, .txt or .parquet, not encrypted"
        if len(members) != 1:
            raise InvalidInput("a zip must hold one file", got=f"{len(members)} in {path}", allowed=allowed, code="zip")
        suffix = PurePosixPath(members[0].filename).suffix.lower()
        if members[0].flag_bits & 1 or suffix not in (*TEXT_SUFFIXES, *PARQUET_SUFFIXES):
            what = "the file in the zip is not a table that can be read"
            raise InvalidInput(what, got=path, allowed=allowed, code="zip")
        members[0].file_size = sys.maxsize  # else reading stops at the size that the zip claims
        with packed.open(members[0]) as member:
            return save_parts(path, iter(lambda: member.read(CHUNK), b""), folder, suffix)


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
    import_module(asked["library"])
    import pyarrow
    from pyarrow import parquet

    limit_memory(min(asked["memory"], free_memory()))
    try:
        with refusals_of_the_reader(path):
            read = read_spreadsheet if path.suffix.lower() in SPREADSHEETS else read_statistical
            names, read_batches = read(path, asked["sheet"])
            columns = names if asked["columns"] is None else asked["columns"]
            if set(columns) <= set(names):
                batches = read_batches(columns)
                first = next(batches, None) or assemble(pyarrow.array([], pyarrow.string()) for _ in columns)
                with parquet.ParquetWriter(asked["target"], first.schema) as writer:
                    for batch in chain([first], batches):
                        writer.write_table(batch)
            return {"names": names}
    except CellriskError as refusal:
        return {"refused": refusal.marked, "code": refusal.code}


def read_statistical(path: Path, _: None) -> tuple[list[str], ReadBatches]:
    """Read a file of SPSS, SAS or Stata. If a column has labels for its values, they are the levels, unless the file
    says that it measures on a scale; missing values that the user has defined are missing."""
    import pyreadstat

    read = getattr(pyreadstat, STATISTICAL[path.suffix.lower()])
    described = read(str(path), metadataonly=True)[1]

    def batches(columns: Sequence[str]) -> Iterator[pa.Table]:
        used = list(dict.fromkeys(columns))
        for frame, _ in pyreadstat.read_file_in_chunks(read, str(path), chunksize=ROWS, usecols=used):
            if len(frame):
                yield assemble(convert_values(described, name, frame[name].tolist()) for name in columns)

    return list(described.column_names), batches


def convert_values(described: Any, name: str, values: list[Any]) -> pa.Array:
    """Return the values of a column: labels, of which one that stands for several values is followed by the value;
    numbers; or texts."""
    import pyarrow as pa

    labels = described.variable_value_labels.get(name)
    if labels and described.variable_measure.get(name) != "scale":
        texts = list(labels.values())
        spelt = {
            value: label if texts.count(label) == 1 else f"{label} ({write_value(value)})"
            for value, label in labels.items()
        }
        return text_array(spelt.get(value, value) for value in values)
    dated = DATES.search(str(described.original_variable_types.get(name, "")))
    if dated or described.readstat_variable_types.get(name) == "string":
        return text_array(values)
    return pa.array([None if value is None or value != value else float(value) for value in values], pa.float64())


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
            yield assemble(text_array(row[index] for row in part) for index in places)

    return names, batches


def text_array(values: Iterable[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([write_value(value) for value in values], pa.string())


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
