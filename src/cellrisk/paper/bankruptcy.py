"""Qualitative Bankruptcy (UCI 281): 250 records from a file of any form, or from UCI, recognised by their digest."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

URL = "https://archive.ics.uci.edu/static/public/281/qualitative+bankruptcy.zip"
TIMEOUT = 20.0
"""Seconds that UCI is waited for, in all."""
MOST_BYTES = 1 << 20
"""The data are a few kilobytes; anything past this is something else."""
COLUMNS = ("IR", "MR", "FF", "CR", "CO", "OR", "class")
NAMES = {
    "IR": ("ir", "industrialrisk"),
    "MR": ("mr", "managementrisk"),
    "FF": ("ff", "financialflexibility"),
    "CR": ("cr", "credibility"),
    "CO": ("co", "competitiveness"),
    "OR": ("or", "op", "operatingrisk"),
    "class": ("class", "bankruptcy", "bankruptcystatus", "status"),
}
"""What files call the columns, in small letters."""
COUNTS = ("n", "count", "counts", "freq", "frequency")
N_RECORDS = 250
DIGEST = "54ae4b67fd8bd2208549ec1071a2efeeffa6bc315a2802334dc50659da2ee642"
"""SHA-256 of the records: values between commas in the order of the columns, sorted, one a line."""
WHERE = "take Qualitative_Bankruptcy.data.txt or its zip from https://archive.ics.uci.edu/dataset/281"


@dataclass(frozen=True)
class Records:
    """The 250 records, recognised.

    The digest is that of the values alone: the order of the rows, line ends and the form of the file do not matter.
    """

    rows: tuple[tuple[str, ...], ...]
    source: str
    """Where they come from, for the reader."""

    def __post_init__(self) -> None:
        if digest_of(self.rows) != DIGEST:
            many = f"{len(self.rows):,} records"
            if len(self.rows) >= N_RECORDS:
                many = f"{many} that differ from them" if len(self.rows) == N_RECORDS else "more records"
            raise InvalidInput("these are not the 250 records of Qualitative Bankruptcy", got=many, fix=WHERE)

    @property
    def digest(self) -> str:
        return digest_of(self.rows)

    def to_frame(self) -> pd.DataFrame:
        """One row a record."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(COLUMNS))


def digest_of(rows: Sequence[Sequence[str]]) -> str:
    """The SHA-256 that a table has in any order of its rows.

    >>> digest_of([("P", "B"), ("A", "NB")]) == digest_of([("A", "NB"), ("P", "B")])
    True
    """
    return hashlib.sha256("\n".join(sorted(",".join(row) for row in rows)).encode("utf-8")).hexdigest()


def read_bankruptcy(path: str | os.PathLike[str]) -> Records:
    """The records of a file: UCI's text or zip, records with a header, or the authors' table of counts."""
    source = Path(path)
    try:
        if source.is_file() and source.stat().st_size > MOST_BYTES:
            raise InvalidInput(
                "the file is too large to be Qualitative Bankruptcy", got=f"{source.stat().st_size:,} bytes", fix=WHERE
            )
        content = source.read_bytes()
    except OSError as error:
        raise InvalidInput(
            "the Bankruptcy file cannot be read", got=f"{source} ({error.strerror})", fix=WHERE
        ) from None
    return parse_bankruptcy(content, source.name)


def fetch_bankruptcy() -> Records:
    """The records from UCI; refuses where there is no network, or where something else comes back."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    begun = time.monotonic()
    content = b""
    try:
        with urlopen(URL, timeout=TIMEOUT) as answer:
            while piece := answer.read1(1 << 16):
                content += piece
                if len(content) > MOST_BYTES:
                    raise InvalidInput("UCI sent too much for Qualitative Bankruptcy", allowed=f"{MOST_BYTES:,} bytes")
                if time.monotonic() - begun > TIMEOUT:
                    raise InvalidInput("UCI was too slow", allowed=f"{TIMEOUT:g} seconds")
    except HTTPError as error:
        error.close()
        raise InvalidInput("UCI does not have the file any more", got=f"HTTP status {error.code}") from None
    except (OSError, HTTPException) as error:
        raise InvalidInput("UCI cannot be reached", got=type(error).__name__) from None
    return parse_bankruptcy(content, "UCI")


def parse_bankruptcy(content: bytes, source: str) -> Records:
    """The records in the bytes of a file of any of the forms."""
    if content.startswith(b"PK"):
        return _parse_zip(content, source)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("the Bankruptcy file is neither text nor a zip", got=source, fix=WHERE) from None
    try:
        return Records(tuple(islice(_read_rows(text), N_RECORDS + 1)), source)
    except csv.Error:
        raise InvalidInput("the Bankruptcy file is no table", got=source, fix=WHERE) from None


def _parse_zip(content: bytes, source: str) -> Records:
    """The first member that holds the records."""
    refusal = InvalidInput("the zip does not hold Qualitative Bankruptcy", got=source, fix=WHERE)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                if member.is_dir() or member.file_size > MOST_BYTES or member.filename.lower().endswith(".zip"):
                    continue
                with archive.open(member) as stream:
                    inside = stream.read(MOST_BYTES)
                try:
                    return parse_bankruptcy(inside, source)
                except InvalidInput as error:
                    refusal = error if ".data" in member.filename else refusal
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, NotImplementedError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("the zip is damaged", got=source, fix=WHERE) from None
    raise refusal


def _read_rows(text: str) -> Iterator[tuple[str, ...]]:
    """Each record once, its values in the order of `COLUMNS`."""
    lines = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if any(cell.strip() for cell in row)]
    if not lines:
        raise InvalidInput("the Bankruptcy file is empty", fix=WHERE)
    header = [_plain(name) for name in lines[0]]
    header_less = set(header) <= {"p", "a", "n", "b", "nb"}
    if header_less:  # UCI's text
        places, counted = list(range(len(COLUMNS))), None
    else:
        lines = lines[1:]
        places = [_find(header, column) for column in COLUMNS]
        counted = _find_count(header)
    width = len(COLUMNS) if header_less else len(header)
    for number, row in enumerate(lines, start=1):
        if len(row) != width:
            raise InvalidInput(
                "a line of the Bankruptcy file has another number of columns", got=f"record {number}", fix=WHERE
            )
        times = 1 if counted is None else _whole(row[counted], number)
        yield from [tuple(row[place].strip().upper() for place in places)] * times


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _find(header: Sequence[str], column: str) -> int:
    for place, name in enumerate(header):
        if name in NAMES[column]:
            return place
    raise InvalidInput(f"the Bankruptcy file has no column '{column}'", allowed=", ".join(COLUMNS), fix=WHERE)


def _find_count(header: Sequence[str]) -> int | None:
    """The last column holds counts where it repeats the name before it, as the authors' table does, or says so."""
    repeated = len(header) > 1 and header[-1] == header[-2]
    return len(header) - 1 if repeated or header[-1] in COUNTS else None


def _whole(text: str, number: int) -> int:
    if not text.strip().isascii() or not text.strip().isdigit() or int(text) > N_RECORDS:
        raise InvalidInput(
            "a count of the Bankruptcy file is no whole number", got=f"record {number}", allowed=f"0 to {N_RECORDS}"
        )
    return int(text)
