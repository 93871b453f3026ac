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

from cellrisk.counts.engine import LONGEST_LINE, redacted
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
PACKED = (".zip",)
FOREIGN = (*STATISTICAL, *SPREADSHEETS, *FEATHER, *LINES, *PACKED)
KINDS = ".csv, .tsv, .txt (also with .gz or .zst), .parquet"
ALL_KINDS = f"{KINDS}, .xlsx, .ods, .sav, .sas7bdat, .xpt, .dta, .feather, .jsonl, .zip"
NOT_UTF8 = f"save it as UTF-8, or name its encoding: {argument('encoding', 'latin-1')}"
DELIMITERS = (",", ";", "\t", "|")
HEAD = 64 * 1024
CHUNK = 1024 * 1024
LONGEST_HEADER = 2_000_000
"""Bytes of the first line that are read."""
MOST_COLUMNS = 10_000
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


@dataclass(frozen=True)
class TextFile:
    """A delimited text file: how to split it, and what its header says."""

    path: Path
    packing: str
    """How its bytes are compressed: `find_packing`."""
    delimiter: str
    names: tuple[str, ...]


class TextGroup(NamedTuple):
    """Text files with the same header, delimiter and compression."""

    files: list[TextFile]
    places: list[int]
    """Where the columns in use stand in the header."""


class ParquetFile(NamedTuple):
    """The columns of a Parquet file; those that only its folders name (``year=2020/``) come last, and are text."""

    names: list[str]
    kinds: list[pa.DataType]
    n_stored: int
    """How many of them the file itself holds."""
    places: list[int]
    """Where the columns in use stand among the names."""
    base: Path | None
    """The folder below which folders name columns, where any do."""


class ParquetGroups(NamedTuple):
    """Parquet files, those that are alike together."""

    groups: list[tuple[list[Path], ParquetFile]]
    """The files of each group, and what the first of them holds."""
    kinds: list[pa.DataType]
    """For each column in use, the type that holds its values in every file: the wider one where they differ."""


def find_files(source: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The file, or the files that a glob matches, in order of name."""
    given = os.fspath(source)
    if not isinstance(given, str):
        raise InvalidInput("a path must be text", got=f"a {type(given).__name__}")
    if "\0" in given or not given.strip():
        raise InvalidInput("a path must name a file", got="an empty path" if not given.strip() else "a NUL character")
    scheme = ADDRESS.match(given)
    if scheme:
        raise InvalidInput(
            "addresses are not read", got=f"an address that starts with {scheme[1]}://", allowed=f"files: {KINDS}"
        )
    path = Path(given).expanduser()
    if exists(path):
        return (path,)
    if glob.has_magic(str(path)):
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
        files = tuple(match for match in matches if not match.is_dir())
        if not files:
            raise InvalidInput("no file matches the pattern", got=given)
        return files
    raise InvalidInput("there is no such file", got=given, allowed=ALL_KINDS)


def is_address(source: object) -> bool:
    """Whether this is a database's address, such as postgresql://host/name."""
    return isinstance(source, str) and ADDRESS.match(source) is not None


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long, or a folder on the way that may not be entered
        return False


def is_parquet(path: Path) -> bool:
    """Whether the file is Parquet (else delimited text), by its name; refuses other kinds, folders and empty files."""
    check_file(path)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        check_lake(path)
        return True
    if is_text(path):
        return False
    raise InvalidInput("the kind of the file is not known from its name", got=path, allowed=ALL_KINDS)


def is_text(path: Path) -> bool:
    """Whether the file is delimited text, packed or not, by its name."""
    plain = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    return plain.suffix.lower() in TEXT_SUFFIXES


def is_foreign(path: Path) -> bool:
    """Whether a file is one of another program, by its name."""
    return path.suffix.lower() in FOREIGN


def check_file(path: Path, may_be_empty: bool = False) -> None:
    """Refuses folders, what is no regular file, what may not be read, and empty files."""
    if path.is_dir():
        check_lake(path)
        raise InvalidInput("the source is a folder", got=path, fix=f"name its files, for instance '{path}/*.parquet'")
    if not path.is_file():
        raise InvalidInput("the source is not a regular file", got=path, allowed=ALL_KINDS)
    with refusals_of_the_system(path):
        if path.stat().st_size == 0 and not may_be_empty:
            raise InvalidInput("the file is empty", got=path)
        with path.open("rb") as stream:
            stream.read(1)


def are_parquet(files: Iterable[Path]) -> bool:
    """Whether the files are Parquet, and not text; refuses a mixture."""
    kinds = {is_parquet(path) for path in files}
    if len(kinds) > 1:
        raise InvalidInput("the pattern matches both text and Parquet files", fix="read one kind at a time")
    return kinds == {True}


LAKES = {"_delta_log": "a Delta", ".hoodie": "a Hudi", "metadata": "an Iceberg"}
"""The folder that holds the log of a table, and the kind of that table."""


def check_lake(path: Path) -> None:
    """Refuses a table that is a folder of files with a log, and each of its files: the log says which are deleted."""
    for folder in (path, *path.absolute().parents):
        for name, kind in LAKES.items():
            log = folder / name
            if log.is_dir() and (kind != "an Iceberg" or any(log.glob("*.metadata.json"))):
                raise InvalidInput(
                    f"the source is {kind} table, or a file of one, which may be deleted from it but still be there",
                    got=path,
                    fix=f"read it with a library for {kind.split()[1]} tables, and give its Arrow table or dataset",
                )


def check_parquet(path: Path) -> None:
    """Refuses a file without Parquet's mark at both ends."""
    with refusals_of_the_system(path), path.open("rb") as stream:
        start = stream.read(4)
        stream.seek(-min(4, path.stat().st_size), os.SEEK_END)
        end = stream.read(4)
    if b"PARE" in (start, end):
        raise InvalidInput("the Parquet file is encrypted", got=path, fix="decrypt it first")
    if start != b"PAR1":
        raise InvalidInput("the file is not Parquet, whatever its name says", got=path, allowed=KINDS)
    if end != b"PAR1" or path.stat().st_size < 12:
        raise InvalidInput("the Parquet file is cut short", got=path, fix="copy or write it again")


def check_unpacked(path: str, limit: int | None) -> None:
    """Refuses a file that holds more than a limit once it is unpacked. Gzip and zstd are measured, as far as the limit.

    A Parquet file says itself what its columns hold; a value counts for a byte at least, because repeated values take
    almost no place in such a file. One that says less than it holds meets the engine's own limit of memory.
    """
    if limit is None:
        return
    file = Path(path)
    unpacked = 0
    with redacted(), refusals_of_the_system(file):
        if is_parquet(file):
            import pyarrow.parquet as pq

            check_parquet(file)
            said = pq.read_metadata(path)
            unpacked = sum(said.row_group(number).total_byte_size for number in range(said.num_row_groups))
            unpacked = max(unpacked, said.num_rows * said.num_columns)
        elif find_packing(file) != "none":
            with open_bytes(file) as stream:
                while unpacked <= limit and (part := stream.read(CHUNK)):
                    unpacked += len(part)
    if unpacked > limit:
        raise InvalidInput("the file is too large once it is unpacked", allowed=f"{limit:,} bytes, and as many values")


def describe_text(path: Path, columns: Sequence[str]) -> TextFile:
    """Delimiter and header of a text file. The delimiter is the one under which most of the columns are found."""
    packing = find_packing(path)
    with refusals_of_the_system(path):
        with open_bytes(path) as stream:
            start = stream.read(LONGEST_HEADER + 1)
        check_text(path, start[:HEAD])
        order = ("\t", *DELIMITERS) if ".tsv" in path.suffixes else DELIMITERS
        headers = [(names, each) for each in order if (names := read_header(path, start, each)) is not None]
        if not headers:
            raise InvalidInput(
                f"the header cannot be read: a field is longer than {csv.field_size_limit():,} letters",
                got=path,
                fix="check the quotation marks in its first line",
            )
        names, delimiter = max(headers, key=lambda header: (len(set(columns) & set(header[0])), len(header[0])))
        if not names:
            raise InvalidInput(
                "the first line is empty", got=path, allowed="a first line with the names of the columns"
            )
        check_columns(path, len(names))
        with open_bytes(path) as stream:
            if packing == "none":
                stream.seek(max(0, path.stat().st_size - LONGEST_LINE - 1))
                check_lines(path, [stream.read()])
            else:  # to the end: the engine may not see that it is cut short
                check_lines(path, iter(lambda: stream.read(CHUNK), b""))
    return TextFile(path, packing, delimiter, names)


def group_text(files: Iterable[Path], columns: Sequence[str]) -> list[TextGroup]:
    """Text files, those that can be read together in one group."""
    groups: dict[tuple[object, ...], list[TextFile]] = {}
    for path in files:
        file = describe_text(path, columns)
        groups.setdefault((file.packing, file.delimiter, file.names), []).append(file)
    return [
        TextGroup(group, locate(columns, group[0].names, f"'{group[0].path.name}'", first_line=True))
        for group in groups.values()
    ]


def describe_parquet(path: Path, columns: Sequence[str]) -> ParquetFile:
    """What a Parquet file holds; refuses what is none, and a file without the columns in use."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_parquet(path)
    with refusals_of_the_system(path):
        schema = pq.read_schema(path)
    folders = folder_columns(path, schema.names, columns)
    names, kinds = [*schema.names, *folders], [*schema.types, *(pa.string() for _ in folders)]
    base = partition_base(path) if folders else None
    return ParquetFile(names, kinds, len(schema.names), locate(columns, names, f"'{path.name}'"), base)


def group_parquet(files: Iterable[Path], columns: Sequence[str]) -> ParquetGroups:
    """Parquet files, those that can be read together in one group."""
    import pyarrow as pa

    groups: dict[str, tuple[list[Path], ParquetFile]] = {}
    for path in files:
        file = describe_parquet(path, columns)
        groups.setdefault(f"{file.names} {file.kinds} {file.n_stored} {file.base}", ([], file))[0].append(path)
    found = list(groups.values())
    schemas = [
        pa.schema([(f"c{new}", value_type(file.kinds[old])) for new, old in enumerate(file.places)])
        for _, file in found
    ]
    try:
        return ParquetGroups(found, pa.unify_schemas(schemas, promote_options="permissive").types)
    except pa.ArrowException:
        raise InvalidInput(
            "the Parquet files give the columns in use types that do not go together",
            fix="write them with the same types, or read them apart",
        ) from None


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values: dictionaries hold it, and extensions are stored as one."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return pa.string() if kind.extension_name == "arrow.uuid" else kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def check_lines(path: Path, pieces: Iterable[bytes]) -> None:
    """Refuses a line that is too long and has no end in these pieces: the engine passes over one that is the last."""
    length = 0
    for piece in pieces:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        length = length + len(piece) if end < 0 else len(piece) - end - 1
        if length > LONGEST_LINE:
            raise InvalidInput(
                "a line of the file is too long",
                got=path,
                allowed=f"up to {LONGEST_LINE:,} bytes",
                fix="check its line ends and quotation marks",
            )


def check_columns(path: Path, number: int) -> None:
    """Refuses a file with more columns than an engine can describe in bearable time."""
    if number > MOST_COLUMNS:
        raise InvalidInput(
            "the file has too many columns",
            got=f"{number:,} in {path}",
            allowed=f"up to {MOST_COLUMNS:,}",
            fix="write those in use to a file of their own",
        )


def check_text(path: Path, head: bytes) -> None:
    """Refuses what is not UTF-8 text, going by its first 64 KB."""
    if not head.strip():
        raise InvalidInput("the file is empty", got=path)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput("the file is UTF-16 text", got=path, fix="save it as UTF-8")
    if head.startswith(b"PAR1"):
        raise InvalidInput("the file is Parquet, whatever its name says", got=path, fix="name it .parquet")
    if b"\0" in head:
        raise InvalidInput("the file is binary, not text", got=path, allowed=KINDS)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
    except UnicodeDecodeError:
        raise InvalidInput("the file is not UTF-8 text", got=path, fix=NOT_UTF8) from None


def read_header(path: Path, start: bytes, delimiter: str) -> tuple[str, ...] | None:
    """The fields of the first line, which must end within the start of the file; None where it cannot be cut so."""
    cut = len(start) > LONGEST_HEADER
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")  # what comes after the line is no concern
    lines = io.StringIO(decoder.decode(start, final=not cut), newline="")
    try:
        names = tuple(next(csv.reader(lines, delimiter=delimiter), []))
    except csv.Error:
        return None
    "".join(names).encode("utf-8")  # refuses what was no UTF-8
    if cut and not lines.read(1):
        raise InvalidInput(
            "the first line of the file is too long",
            got=path,
            allowed=f"up to {LONGEST_HEADER:,} bytes",
            fix="check its line ends and quotation marks",
        )
    return names


def is_too_long(error: csv.Error) -> bool:
    """Whether Python's reader stopped at a field longer than it takes, and not at a quotation mark."""
    return "field larger than field limit" in str(error)


def find_packing(path: Path) -> str:
    """How the bytes of a file are compressed, by its name: none, gzip or zstd."""
    return PACKINGS.get(path.suffix.lower(), "none")


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked."""
    packing = find_packing(path)
    if packing == "zstd":
        import pyarrow as pa

        return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))
    return cast(BinaryIO, gzip.open(path, "rb")) if packing == "gzip" else path.open("rb")


@contextmanager
def refusals_of_the_system(path: Path) -> Iterator[None]:
    """Turns what the operating system says of a file into one line."""
    try:
        yield
    except PermissionError:
        raise InvalidInput("the file may not be read: no permission", got=path) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidInput("the file is not whole gzip, whatever its name says", got=path) from None
    except UnicodeError:
        raise InvalidInput("the file is not UTF-8 text", got=path, fix=NOT_UTF8) from None
    except OSError as error:
        if path.suffix.lower() == ".zst" and error.errno is None:
            raise InvalidInput("the file is not whole zstd, whatever its name says", got=path) from None
        raise InvalidInput(f"the file cannot be read: {error.strerror or type(error).__name__}", got=path) from None


def partition_keys(path: Path) -> list[str]:
    """The columns that the folders of a file name.

    >>> partition_keys(Path("data/year=2020/month=1/part.parquet"))
    ['year', 'month']
    """
    return [folder.partition("=")[0] for folder in path.parts[:-1] if "=" in folder[1:]]


def folder_columns(path: Path, names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that only the folders of a file name; one in use that the file holds too could be either."""
    keys = partition_keys(path)
    both = [name for name in columns if name in keys and name in names]
    if both:
        raise InvalidInput(
            f"column '{both[0]}' stands both in the file and in the names of its folders",
            got=f"'{path.name}'",
            fix="rename it in one of the two",
        )
    return [key for key in keys if key not in names]


def partition_base(path: Path) -> Path:
    """The folder below which folders name columns.

    >>> partition_base(Path("data/year=2020/month=1/part.parquet")).as_posix()
    'data'
    """
    first = next(place for place, folder in enumerate(path.parts[:-1]) if "=" in folder[1:])
    return Path(*path.parts[:first])
