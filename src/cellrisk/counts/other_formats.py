"""Files of other programs: SPSS, SAS and Stata, spreadsheets, Feather, JSON lines, and a zip with one table in it.

A column has the type that the file declares for it, or else is text, value by value: no record decides how another one
is read.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from cellrisk.counts.engine import Relation, load_stream, make_table, quote_path, quote_sql, read_parquet
from cellrisk.counts.files import (
    CHUNK,
    FEATHER,
    HEAD,
    PARQUET_SUFFIXES,
    SPREADSHEETS,
    STATISTICAL,
    TEXT_SUFFIXES,
    check_text,
    refusals_of_the_system,
    save_parts,
)
from cellrisk.counts.frames import open_stream
from cellrisk.counts.refusals import LONGEST_LINE, Cause, find_cause
from cellrisk.counts.schema import AskedColumns, locate
from cellrisk.counts.statistical_worker import refusals_of_the_reader
from cellrisk.errors import InvalidInput
from cellrisk.system.extras import extra_needed
from cellrisk.system.isolated import ask_isolated

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


def read_other(
    connection: Any, path: Path, columns: Sequence[str], sheet: str | None, by_declaration: bool, folder: Path
) -> Relation:
    """Return the columns in use. by_declaration: lines of JSON have the columns asked for, whatever keys occur."""
    suffix = path.suffix.lower()
    if suffix in LIBRARIES:
        return read_parquet(connection, [ask_worker(path, sheet, columns, folder)])
    if suffix in FEATHER:
        with refusals_of_the_reader(path):
            import pyarrow.dataset

            dataset = pyarrow.dataset.dataset(str(path), format="feather")
            return load_stream(connection, open_stream(dataset, columns, by_declaration))
    return read_lines(connection, path, columns, by_declaration)


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
        answer = ask_isolated("cellrisk.counts.statistical_worker", asked, seconds, path.absolute().parent)
    except TimeoutError:
        what = f"reading the file was ended after {seconds:,} seconds"
        raise InvalidInput(what, got=path, fix=fix, code="too-large") from None
    except ChildProcessError:
        allowed = f"up to {MEMORY / 10**9:g} GB of memory to read it"
        raise InvalidInput(
            "the file cannot be read, or is damaged", got=path, allowed=allowed, fix=fix, code="damaged"
        ) from None
    if "refused" in answer:
        raise InvalidInput(answer["refused"], code=answer["code"])
    locate(columns, answer["names"], f"'{path.name}'", first_line=suffix in SPREADSHEETS)
    return target


def read_lines(connection: Any, path: Path, columns: Sequence[str], by_declaration: bool) -> Relation:
    """Return lines of JSON, every value as text; a key that a record lacks is a missing value.

    A nested value is refused, or missing if by_declaration.
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
        chosen = (f"{json_value(name, by_declaration)} AS c{place}" for place, name in enumerate(columns))
        return make_table(connection, f"SELECT {', '.join(chosen)} FROM {lines}")
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
