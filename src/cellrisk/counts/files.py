"""Files: found, checked and described before an engine opens them."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from cellrisk.counts.refusals import LONGEST_LINE, redacted
from cellrisk.counts.schema import locate
from cellrisk.errors import InvalidInput, argument

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
PACKINGS = {".gz": "gzip", ".zst": "zstd"}
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
KINDS = ".csv, .tsv, .txt (also with .gz or .zst), .parquet"
ALL_KINDS = f"{KINDS}, .xlsx, .ods, .sav, .sas7bdat, .xpt, .dta, .feather, .jsonl, .zip"
NOT_UTF8 = f"save it as UTF-8, or name its encoding: {argument('encoding', 'latin-1')}"
ENCODINGS = "for example latin-1, cp1252, utf-16, shift_jis"
DELIMITERS = (",", ";", "\t", "|")
HEAD = 64 * 1024
CHUNK = 1024 * 1024
LONGEST_HEADER = 2_000_000
"""Bytes of the first line that are read."""
MOST_COLUMNS = 10_000
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
LAKES = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata": "Iceberg"}
"""The folder that holds the log of a table, and the kind of that table."""


@dataclass(frozen=True)
class EncodedPath(os.PathLike[str]):
    """A path, or glob, of text files, and the encoding that the user names."""

    path: str
    encoding: str

    def __post_init__(self) -> None:
        try:
            known = codecs.lookup(self.encoding)._is_text_encoding
        except (LookupError, ValueError):
            known = False
        if not known:
            raise InvalidInput(
                "is not known", option="encoding", got=repr(self.encoding), allowed=ENCODINGS, code="encoding"
            )

    def __fspath__(self) -> str:
        return self.path


class TextFiles(NamedTuple):
    """Text files with the same header, delimiter and compression."""

    paths: list[Path]
    packing: str
    """How their bytes are compressed: `find_packing`."""
    delimiter: str
    names: tuple[str, ...]
    places: list[int]
    """Where the columns in use stand in the header."""


class ParquetFiles(NamedTuple):
    """Parquet files with the same columns; those that only folders name (``year=2020/``) come last, and are text."""

    paths: list[Path]
    names: list[str]
    kinds: list[pa.DataType]
    n_stored: int
    """How many of the columns the files themselves hold."""
    places: list[int]
    """Where the columns in use stand among the names."""
    base: Path | None
    """The folder below which folders name columns, if any do."""


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
    if exists(path):
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


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long, or a folder on the way that may not be entered
        return False


def is_parquet(path: Path) -> bool:
    """Return whether the file is Parquet (else delimited text), by its name; refuse other kinds."""
    check_file(path)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        check_lake(path)
        return True
    if is_text(path):
        return False
    raise InvalidInput("the kind of the file is not known from its name", got=path, allowed=ALL_KINDS, code="file-kind")


def is_text(path: Path) -> bool:
    """Return whether the file is delimited text, packed or not, by its name."""
    plain = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    return plain.suffix.lower() in TEXT_SUFFIXES


def are_parquet(files: Iterable[Path]) -> bool:
    """Return whether the files are Parquet, and not text; refuse a mixture."""
    kinds = {is_parquet(path) for path in files}
    if len(kinds) > 1:
        raise InvalidInput(
            "the pattern matches both text and Parquet files", fix="read one kind at a time", code="file-kind"
        )
    return kinds == {True}


def check_file(path: Path, may_be_empty: bool = False) -> None:
    """Refuse folders, what is not a regular file, what may not be read, and empty files."""
    if path.is_dir():
        check_lake(path)
        fix = f"name its files, for instance '{path}/*.parquet'"
        raise InvalidInput("the source is a folder", got=path, fix=fix, code="folder")
    if not path.is_file():
        raise InvalidInput("the source is not a regular file", got=path, allowed=ALL_KINDS, code="file-kind")
    with refusals_of_the_system(path):
        if path.stat().st_size == 0 and not may_be_empty:
            raise InvalidInput("the file is empty", got=path, code="no-records")
        with path.open("rb") as stream:
            stream.read(1)


def check_lake(path: Path) -> None:
    """Refuse a table that is a folder of files with a log, and each of its files: the log says which are deleted."""
    for folder in (path, *path.absolute().parents):
        for name, kind in LAKES.items():
            log = folder / name
            if log.is_dir() and (kind != "Iceberg" or any(log.glob("*.metadata.json"))):
                raise InvalidInput(
                    f"the source belongs to a table of {kind}, from which its records may have been deleted",
                    got=path,
                    fix=f"read it with a library for {kind} tables, and give its Arrow table or dataset",
                    code="table-format",
                )


def check_unpacked(path: str, limit: int | None) -> None:
    """Refuse a file that holds more than a limit once it is unpacked. Gzip and zstd are measured, as far as the limit.

    A Parquet file says itself what its columns hold; a value counts for a byte at least, because repeated values take
    almost no place in such a file. One that says less than it holds meets the engine's own limit of memory.
    """
    if limit is None:
        return
    file, unpacked = Path(path), 0
    with redacted(), refusals_of_the_system(file):
        if is_parquet(file):
            import pyarrow.parquet as pq

            stated = pq.read_metadata(path)
            unpacked = sum(stated.row_group(number).total_byte_size for number in range(stated.num_row_groups))
            unpacked = max(unpacked, stated.num_rows * stated.num_columns)
        elif find_packing(file) != "none":
            with open_bytes(file) as stream:
                while unpacked <= limit and (part := stream.read(CHUNK)):
                    unpacked += len(part)
    if unpacked > limit:
        allowed = f"{limit:,} bytes, and as many values"
        raise InvalidInput("the file is too large once it is unpacked", allowed=allowed, code="too-large")


def describe_text(path: Path, columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return delimiter and header of a text file. The delimiter is the one under which most columns are found."""
    with refusals_of_the_system(path):
        with open_bytes(path) as stream:
            start = stream.read(LONGEST_HEADER + 1)
        check_text(path, start[:HEAD])
        order = ("\t", *DELIMITERS) if ".tsv" in path.suffixes else DELIMITERS
        headers = [(names, sign) for sign in order if (names := read_header(path, start, sign)) is not None]
        if not headers:
            raise too_long(path, "a field of the header", csv.field_size_limit())
        names, delimiter = max(headers, key=lambda header: (len(set(columns) & set(header[0])), len(header[0])))
        if not names:
            allowed = "a first line with the names of the columns"
            raise InvalidInput("the first line is empty", got=path, allowed=allowed, code="no-header")
        check_columns(path, len(names))
        with open_bytes(path) as stream:
            if find_packing(path) == "none":
                stream.seek(max(0, path.stat().st_size - LONGEST_LINE - 1))
                check_lines(path, [stream.read()])
            else:  # to the end: the engine may not see that it is cut short
                check_lines(path, iter(lambda: stream.read(CHUNK), b""))
    return delimiter, names


def group_text(files: Iterable[Path], columns: Sequence[str]) -> list[TextFiles]:
    """Return text files, those that can be read together in one group."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Path]] = {}
    for path in files:
        groups.setdefault((find_packing(path), *describe_text(path, columns)), []).append(path)
    return [
        TextFiles(paths, *shape, locate(columns, shape[-1], f"'{paths[0].name}'", first_line=True))
        for shape, paths in groups.items()
    ]


def describe_parquet(path: Path, columns: Sequence[str]) -> ParquetFiles:
    """Return what a Parquet file holds; refuse a file without the columns in use."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with refusals_of_the_system(path):
        try:
            schema = pq.read_schema(path)
        except pa.ArrowInvalid:
            what = "the file is not Parquet, or is cut short or encrypted"
            raise InvalidInput(what, got=path, fix="write it again", code="damaged") from None
    check_columns(path, len(schema.names))
    keys = partition_keys(path)
    both = [name for name in columns if name in keys and name in schema.names]
    if both:
        raise InvalidInput(
            f"column '{both[0]}' is both in the file and in the names of its folders",
            got=f"'{path.name}'",
            fix="rename it in one of the two",
            code="ambiguous-column",
        )
    folders = [key for key in keys if key not in schema.names]
    names, kinds = [*schema.names, *folders], [*schema.types, *(pa.string() for _ in folders)]
    first = next((place for place, folder in enumerate(path.parts[:-1]) if "=" in folder[1:]), 0)
    base = Path(*path.parts[:first]) if folders else None
    return ParquetFiles([path], names, kinds, len(schema.names), locate(columns, names, f"'{path.name}'"), base)


def group_parquet(files: Iterable[Path], columns: Sequence[str]) -> list[ParquetFiles]:
    """Return Parquet files, those that can be read together in one group."""
    groups: dict[str, ParquetFiles] = {}
    for path in files:
        file = describe_parquet(path, columns)
        groups.setdefault(f"{file[1:]}", file._replace(paths=[])).paths.append(path)
    return list(groups.values())


def partition_keys(path: Path) -> list[str]:
    """Return the columns that the folders of a file name.

    >>> partition_keys(Path("data/year=2020/month=1/part.parquet"))
    ['year', 'month']
    """
    return [folder.partition("=")[0] for folder in path.parts[:-1] if "=" in folder[1:]]


def check_lines(path: Path, pieces: Iterable[bytes]) -> None:
    """Refuse a line that is too long and has no end in these pieces: DuckDB skips one that is the last."""
    length = 0
    for piece in pieces:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        length = length + len(piece) if end < 0 else len(piece) - end - 1
        if length > LONGEST_LINE:
            raise too_long(path, "a line", LONGEST_LINE)


def too_long(path: Path, what: str, most: int) -> InvalidInput:
    fix = "check its line ends and quotation marks"
    return InvalidInput(
        f"{what} of the file is too long", got=path, allowed=f"up to {most:,} bytes", fix=fix, code="too-long"
    )


def check_columns(path: Path, number: int) -> None:
    """Refuse a file with more columns than an engine can describe in bearable time."""
    if number > MOST_COLUMNS:
        raise InvalidInput(
            "the file has too many columns",
            got=f"{number:,} in {path}",
            allowed=f"up to {MOST_COLUMNS:,}",
            fix="write those in use to a file of their own",
            code="too-many-columns",
        )


def check_text(path: Path, head: bytes) -> None:
    """Refuse what is not UTF-8 text, judged by its first 64 KB."""
    if not head.strip():
        raise InvalidInput("the file is empty", got=path, code="no-records")
    if b"\0" in head or head.startswith(b"PAR1"):
        raise InvalidInput("the file is binary, not text", got=path, allowed=KINDS, code="file-kind")
    codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)


def read_header(path: Path, start: bytes, delimiter: str) -> tuple[str, ...] | None:
    """Return the fields of the first line, which must end within the start of the file; None if it cannot be split."""
    cut = len(start) > LONGEST_HEADER
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")  # what comes after the line is no concern
    lines = io.StringIO(decoder.decode(start, final=not cut), newline="")
    try:
        names = tuple(next(csv.reader(lines, delimiter=delimiter), []))
    except csv.Error:
        return None
    "".join(names).encode("utf-8")  # refuses what is not UTF-8
    if cut and not lines.read(1):
        raise too_long(path, "the first line", LONGEST_HEADER)
    return names


def find_packing(path: Path) -> str:
    """Return how the bytes of a file are compressed, by its name: none, gzip or zstd."""
    return PACKINGS.get(path.suffix.lower(), "none")


def open_bytes(path: Path) -> BinaryIO:
    """Open the bytes of a file, unpacked."""
    packing = find_packing(path)
    if packing == "zstd":
        import pyarrow as pa

        return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))
    return cast(BinaryIO, gzip.open(path, "rb")) if packing == "gzip" else path.open("rb")


def find_encoding(path: Path) -> str | None:
    """Return the encoding that a text file's own mark names; None if it has none: it is UTF-8, or refused later."""
    if not is_text(path):
        return None
    with refusals_of_the_system(path), open_bytes(path) as stream:
        start = stream.read(4)
    wide = start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    return "utf-32" if wide else "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def recode(path: Path, encoding: str, folder: Path) -> Path:
    """Write a copy of a text file in UTF-8 into a folder."""
    target = folder / f"{len(os.listdir(folder))}{'.tsv' if '.tsv' in path.suffixes else '.csv'}"
    decoder = codecs.getincrementaldecoder(encoding)()
    with refusals_of_the_system(path), open_bytes(path) as source, target.open("xb") as copy:
        try:
            while part := source.read(CHUNK):
                copy.write(decoder.decode(part).encode("utf-8"))
            copy.write(decoder.decode(b"", final=True).encode("utf-8"))
        except UnicodeError:  # it would quote the bytes
            raise InvalidInput(
                f"the file is not {encoding} text", got=path, allowed=ENCODINGS, code="encoding"
            ) from None
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
        if path.suffix.lower() == ".zst" and error.errno is None:
            what = "the file is not whole zstd, whatever its name says"
        raise InvalidInput(what, got=path, code="unreadable") from None
