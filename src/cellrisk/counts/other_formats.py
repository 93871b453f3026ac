"""Files of other programs: SPSS, SAS and Stata, spreadsheets, Feather, JSON lines, and a zip with one table in it.

A column has the type that the file declares for it, or else is text, value by value: no record decides how another one
is read. Such files come from anywhere, so what they hold is measured before it is unpacked.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from cellrisk.counts.files import (
    FEATHER,
    HEAD,
    PARQUET_SUFFIXES,
    SPREADSHEETS,
    STATISTICAL,
    TEXT_SUFFIXES,
    check_columns,
    check_text,
    refusals_of_the_system,
)
from cellrisk.counts.frames import assemble, open_stream
from cellrisk.counts.refusals import LONGEST_LINE
from cellrisk.counts.schema import locate
from cellrisk.counts.statistical_worker import in_parts, refusals_of_the_reader, text_array, unpack_member
from cellrisk.errors import InvalidInput
from cellrisk.system.extras import extra_needed
from cellrisk.system.isolated import ask_isolated

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 8_000_000_000
"""Bytes that reading a file of SPSS, SAS or Stata or a spreadsheet may take; less if the machine can spare less."""
PATIENCE, BYTES_A_SECOND = 600, 100_000
"""Seconds that reading such a file may take, and one more for so many bytes."""
LARGEST_SPREADSHEET = 2_000_000_000
"""Bytes of a spreadsheet once it is unpacked: all of it is held in memory."""
LIBRARIES = {**dict.fromkeys(STATISTICAL, "pyreadstat"), **dict.fromkeys(SPREADSHEETS, "python_calamine")}
"""Endings of the files that are read in a process of their own, and the library that reads each."""
LOOKED_AT = 10_000
"""Lines of JSON whose keys tell which columns there are."""


def read_other(path: Path, columns: Sequence[str], sheet: str | None, by_declaration: bool, folder: Path) -> Any:
    """Return the columns in use as a stream of Arrow batches, or as a Parquet file in the folder.

    by_declaration: lines of JSON have the columns asked for, whatever keys occur in them.
    """
    suffix = path.suffix.lower()
    if suffix in LIBRARIES:
        target = folder / "table.parquet"
        names = ask_worker(path, sheet, columns, target)
        locate(columns, names, f"'{path.name}'", first_line=suffix in SPREADSHEETS)
        if not target.exists():  # every column was asked for, and now has a name
            ask_worker(path, sheet, columns, target)
        return target
    if sheet is not None:
        raise InvalidInput("this file holds one table", option="table", got=path, fix="leave it out", code="no-tables")
    with refusals_of_the_reader(path):
        if suffix in FEATHER:
            import pyarrow.dataset

            return open_stream(pyarrow.dataset.dataset(str(path), format="feather"), columns, by_declaration)
        if not by_declaration:
            locate(columns, list_keys(path), f"'{path.name}'")
    return open_lines(path, columns, by_declaration)


def list_keys(path: Path) -> list[str]:
    """Return the keys of the first ten thousand records of lines of JSON."""
    names: dict[str, None] = {}
    for record in islice(read_lines(path), LOOKED_AT):
        names.update(dict.fromkeys(record))
        check_columns(path, len(names))
    return list(names)


def ask_worker(path: Path, sheet: str | None, columns: Sequence[str] = (), target: Path | None = None) -> list[str]:
    """Read a file in an isolated process with limits of memory and time, which a damaged or hostile file may end.

    Returns the names of its columns. If the columns given are among them, they are written to a target.
    """
    suffix = path.suffix.lower()
    fix = "delete cells far from the table, or save it as CSV" if suffix in SPREADSHEETS else "save it again"
    with extra_needed(), refusals_of_the_system(path):
        import_module(LIBRARIES[suffix])
        seconds = PATIENCE + path.stat().st_size // BYTES_A_SECOND
    asked: dict[str, Any] = {"path": str(path), "sheet": sheet, "columns": list(columns), "target": str(target)}
    asked |= {"bytes": LARGEST_SPREADSHEET, "memory": MEMORY, "library": LIBRARIES[suffix]}
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
    return list(answer["names"])


def open_lines(path: Path, columns: Sequence[str], by_declaration: bool) -> pa.RecordBatchReader:
    """Return lines of JSON as a stream, every value as text; a key that a record lacks is a missing value.

    A nested value is refused, or missing if by_declaration.
    """
    import pyarrow as pa

    nested = dict | list if by_declaration else ()

    def batches() -> Iterator[pa.RecordBatch]:
        with refusals_of_the_reader(path):
            for part in in_parts(read_lines(path, by_declaration)):
                lists = ([record.get(name) for record in part] for name in columns)
                arrays = (text_array(None if isinstance(v, nested) else v for v in values) for values in lists)
                yield from assemble(arrays).to_batches()

    schema = pa.schema([(f"c{place}", pa.string()) for place in range(len(columns))])
    return pa.RecordBatchReader.from_batches(schema, batches())


def read_lines(path: Path, may_be_empty: bool = False) -> Iterator[dict[str, Any]]:
    """Return the records of a file with one JSON object a line."""
    with path.open("rb") as stream:
        start = stream.read(HEAD)
        if start.strip() or not may_be_empty:
            with refusals_of_the_system(path):
                check_text(path, start)
        stream.seek(0)
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line.decode("utf-8-sig"), parse_int=str) if len(line) <= LONGEST_LINE else None
            except (ValueError, RecursionError):  # its text would quote the record
                record = None
            if not isinstance(record, dict):
                allowed = 'lines such as {"sex": "f", "age": 30}'
                what = f"line {number:,} of the file is not a JSON object, or too long"
                raise InvalidInput(what, got=path, allowed=allowed, code="damaged") from None
            yield record


def unpack(path: Path, folder: Path) -> Path:
    """Unpack the one table in a zip into a folder; refuse what holds more than it says, or than the disk."""
    with refusals_of_the_system(path), refusals_of_the_reader(path), zipfile.ZipFile(path) as packed:
        member = _find_member(path, packed)
        free, left = shutil.disk_usage(folder).free, member.file_size
        if left > free // 2:
            raise InvalidInput(
                "the file in the zip is too large to unpack here",
                got=f"{left:,} bytes",
                allowed=f"half of the free disk: {free // 2:,} bytes",
                code="too-large",
            )
        target = folder / f"unpacked{PurePosixPath(member.filename).suffix.lower()}"
        with target.open("xb") as copy:
            for part in unpack_member(packed, member):
                left -= len(part)
                if left < 0:
                    break
                copy.write(part)
        if left:
            what = "the file in the zip is not as long as the zip says"
            raise InvalidInput(what, got=path, fix="pack it again", code="damaged")
    return target


def _find_member(path: Path, packed: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the one file in a zip that is a table; what a Mac adds beside it does not count."""
    files = [member for member in packed.infolist() if not member.is_dir()]
    members = [member for member in files if not member.filename.startswith("__MACOSX/")]
    allowed = "one file in it, .csv, .tsv, .txt or .parquet, not encrypted"
    if len(members) != 1:
        raise InvalidInput("a zip must hold one file", got=f"{len(members)} in {path}", allowed=allowed, code="zip")
    kind = PurePosixPath(members[0].filename).suffix.lower()
    if members[0].flag_bits & 1 or kind not in (*TEXT_SUFFIXES, *PARQUET_SUFFIXES):
        raise InvalidInput("the file in the zip is not a table that can be read", got=path, allowed=allowed, code="zip")
    return members[0]
