"""Files: found, checked and described before an engine opens them."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

from cellrisk.counts.engine import CHECK_QUOTES, LONGEST_LINE
from cellrisk.errors import InvalidInput, argument

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
PACKED = ".gz"
STATISTICAL = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
    ".dta": "read_dta",
}
"""Endings of files of SPSS, SAS and Stata, and the function of pyreadstat that reads each."""
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
FEATHER = (".feather", ".arrow")
LINES = (".jsonl", ".ndjson")
OTHER_FORMATS = (*STATISTICAL, *SPREADSHEETS, *FEATHER, *LINES, ".zip")
KINDS = ".csv, .tsv, .txt (also with .gz), .parquet"
ALL_KINDS = f"{KINDS}, .xlsx, .ods, .sav, .sas7bdat, .xpt, .dta, .feather, .jsonl, .zip"
NOT_UTF8 = f"save it as UTF-8, or name its encoding: {argument('encoding', 'latin-1')}"
ENCODINGS = "for example latin-1, cp1252, utf-16, shift_jis"
DELIMITERS = (",", ";", "\t", "|")
HEAD = 64 * 1024
CHUNK = 1024 * 1024
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def find_files(source: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the file, or the files that a glob matches, in order of name."""
    given = os.fspath(source)
    if not isinstance(given, str) or "\0" in given or not given.strip():
        raise InvalidInput("a path must be the name of a file", got=f"a {type(given).__name__}", code="path")
    scheme = ADDRESS.match(given)
    if scheme:
        raise InvalidInput(
            "addresses are not read", got=f"an address that starts with {scheme[1]}://", allowed=KINDS, code="path"
        )
    path = Path(given).expanduser()
    if os.path.exists(path):
        return (path,)
    if not glob.has_magic(str(path)):
        raise InvalidInput("there is no such file", got=given, allowed=ALL_KINDS, code="no-file")
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    files = tuple(match for match in matches if not match.is_dir())
    if not files:
        raise InvalidInput("no file matches the pattern", got=given, code="no-file")
    return files


def is_address(source: object) -> bool:
    """Return whether this is a database's address, such as postgresql://host/name."""
    return isinstance(source, str) and ADDRESS.match(source) is not None


def find_stored(source: object) -> tuple[str, Path] | None:
    """Return the engine and the path of a database in a file, by its name or its address; None for other sources.

    >>> find_stored("duckdb://census.db") == ("duckdb", Path("census.db")), find_stored("people.csv")
    (True, None)
    """
    if not isinstance(source, str | os.PathLike):
        return None
    scheme, _, rest = os.fspath(source).partition("://")
    if scheme in ("duckdb", "sqlite") and rest:
        return scheme, Path(unquote(re.split("[?#]", rest)[0]))
    return ("duckdb", Path(source)) if Path(source).suffix.lower() in (".duckdb", ".ddb") else None


def are_parquet(files: Iterable[Path]) -> bool:
    """Return whether the files are Parquet, and not delimited text, by their names; refuse others and a mixture."""
    kinds = set()
    for path in files:
        check_file(path)
        if path.suffix.lower() not in PARQUET_SUFFIXES and not is_text(path):
            what = "the kind of the file is not known from its name"
            raise InvalidInput(what, got=path, allowed=ALL_KINDS, code="file-kind")
        kinds.add(is_text(path))
    if len(kinds) > 1:
        raise InvalidInput(
            "the pattern matches both text and Parquet files", fix="read one kind at a time", code="file-kind"
        )
    return kinds == {False}


def is_text(path: Path) -> bool:
    """Return whether the file is delimited text, packed or not, by its name."""
    plain = path.with_suffix("") if path.suffix.lower() == PACKED else path
    return plain.suffix.lower() in TEXT_SUFFIXES


def check_file(path: Path, may_be_empty: bool = False) -> None:
    """Refuse folders, what is not a regular file, what may not be read, and empty files."""
    if path.is_dir():
        fix = f"name its files, for instance '{path}/*.parquet'"
        raise InvalidInput("the source is a folder", got=path, fix=fix, code="folder")
    if not path.is_file():
        raise InvalidInput("the source is not a regular file", got=path, allowed=ALL_KINDS, code="file-kind")
    with refusals_of_the_system(path), path.open("rb") as stream:
        if not stream.read(1) and not may_be_empty:
            raise InvalidInput("the file is empty", got=path, code="no-records")


def describe_text(path: Path, plain: Path, columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return delimiter and header of a text file. The delimiter is the one under which most columns are found.

    plain: the file itself, or its copy by `copy_plain`.
    """
    with refusals_of_the_system(path), plain.open("rb") as stream:
        start = stream.read(LONGEST_LINE + 1)
        check_text(path, start[:HEAD])
        text, headers = start.decode("utf-8-sig", "surrogateescape"), []
        for sign in ("\t", *DELIMITERS) if ".tsv" in path.suffixes else DELIMITERS:
            lines = io.StringIO(text, newline="")
            with suppress(csv.Error):
                headers.append((tuple(next(csv.reader(lines, delimiter=sign), [])), sign))
                if len(start) > LONGEST_LINE and not lines.read(1):
                    raise too_long(path, "the first line", LONGEST_LINE)
        if not headers:
            raise too_long(path, "a field of the header", csv.field_size_limit())
        names, delimiter = max(headers, key=lambda header: (len(set(columns) & set(header[0])), len(header[0])))
        "".join(names).encode("utf-8")  # refuses what is not UTF-8
        stream.seek(max(0, plain.stat().st_size - LONGEST_LINE - 1))
        end = stream.read()
        if len(end) > LONGEST_LINE and not re.search(b"[\r\n]", end):  # DuckDB skips such a line if it is the last
            raise too_long(path, "a line", LONGEST_LINE)
    if not names:
        allowed = "a first line with the names of the columns"
        raise InvalidInput("the first line is empty", got=path, allowed=allowed, code="no-header")
    return delimiter, names


def too_long(path: Path, what: str, most: int) -> InvalidInput:
    what, allowed = f"{what} of the file is too long", f"up to {most:,} bytes"
    return InvalidInput(what, got=path, allowed=allowed, fix=CHECK_QUOTES, code="too-long")


def check_text(path: Path, head: bytes) -> None:
    """Refuse what is not UTF-8 text, judged by its first 64 KB."""
    if not head.strip():
        raise InvalidInput("the file is empty", got=path, code="no-records")
    if b"\0" in head or head.startswith(b"PAR1"):
        raise InvalidInput("the file is binary, not text", got=path, allowed=KINDS, code="file-kind")
    codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)


def copy_plain(path: Path, encoding: str | None, folder: Path) -> Path:
    """Return a text file, or its copy in a folder if it is packed or not UTF-8.

    The encoding is the one that the user names, or the one that the file's own mark tells.
    """
    packed = path.suffix.lower() == PACKED
    with refusals_of_the_system(path), gzip.open(path) if packed else path.open("rb") as source:
        start = source.read(4)
        if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            encoding = encoding or "utf-32"
        elif start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = encoding or "utf-16"
        if encoding is None and not packed:
            return path
        parts = chain([start], iter(lambda: source.read(CHUNK), b""))
        return save_parts(path, parts if encoding is None else recode(path, parts, encoding), folder)


def recode(path: Path, parts: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Return text in UTF-8."""
    try:
        "".encode(encoding)  # refuses what is no encoding of text
        decoder = codecs.getincrementaldecoder(encoding)()
        for part in parts:
            yield decoder.decode(part).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:  # it would quote the bytes
        raise InvalidInput(f"the file is not {encoding} text", got=path, allowed=ENCODINGS, code="encoding") from None
    except (LookupError, TypeError, ValueError):
        got = repr(encoding)
        raise InvalidInput("is not known", option="encoding", got=got, allowed=ENCODINGS, code="encoding") from None


def save_parts(path: Path, parts: Iterable[bytes], folder: Path, suffix: str = "") -> Path:
    """Write what a file holds to a file of its own in a folder, up to half of the free disk."""
    target, left = folder / f"{len(os.listdir(folder))}{suffix}", shutil.disk_usage(folder).free // 2
    with target.open("xb") as copy:
        for part in parts:
            left -= len(part)
            if left < 0:
                allowed = "half of the free disk"
                raise InvalidInput("the file is too large to unpack here", got=path, allowed=allowed, code="too-large")
            copy.write(part)
    return target


@contextmanager
def refusals_of_the_system(path: Path) -> Iterator[None]:
    """Replace what the operating system says of a file by one line."""
    try:
        yield
    except PermissionError:
        raise InvalidInput("the file may not be read: no permission", got=path, code="unreadable") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidInput("the file is not whole gzip, whatever its name says", got=path, code="damaged") from None
    except UnicodeError:
        raise InvalidInput("the file is not UTF-8 text", got=path, fix=NOT_UTF8, code="encoding") from None
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or type(error).__name__}"
        raise InvalidInput(what, got=path, code="unreadable") from None
