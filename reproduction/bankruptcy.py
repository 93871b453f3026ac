"""Qualitative Bankruptcy (UCI 281): 250 records from a file or from UCI, recognised by their digest."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias
from urllib.error import HTTPError
from urllib.request import urlopen
from zipfile import BadZipFile, ZipFile

import cellrisk as cr

URL = "https://archive.ics.uci.edu/static/public/281/qualitative+bankruptcy.zip"
MOST_BYTES = 1 << 20  # the data are a few kilobytes; no more than this is read
COLUMNS = ("IR", "MR", "FF", "CR", "CO", "OR", "CLASS")
DIGEST = "54ae4b67fd8bd2208549ec1071a2efeeffa6bc315a2802334dc50659da2ee642"
"""SHA-256 of the records: comma-separated values in the order of the columns, one record a line, sorted."""
WHERE = "take Qualitative_Bankruptcy.data.txt or its zip from https://archive.ics.uci.edu/dataset/281"

Rows: TypeAlias = list[tuple[str, ...]]


def digest_of(rows: Iterable[tuple[str, ...]]) -> str:
    """Return the SHA-256 that a table has in any order of its rows.

    >>> digest_of([("P", "B"), ("A", "NB")]) == digest_of([("A", "NB"), ("P", "B")])
    True
    """
    return hashlib.sha256("\n".join(sorted(",".join(row) for row in rows)).encode("utf-8")).hexdigest()


def read_bankruptcy(path: str | Path) -> Rows:
    """Return the records of a file: UCI's text or zip, a CSV file of records, or the authors' table of counts."""
    try:
        with Path(path).open("rb") as stream:
            return parse_bankruptcy(stream.read(MOST_BYTES))
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise cr.InvalidInput("the Bankruptcy file cannot be read", got=got, fix=WHERE) from None


def fetch_bankruptcy() -> Rows:
    """Return the records from UCI, or refuse if there is no network or UCI sends something else."""
    try:
        with urlopen(URL, timeout=20.0) as answer:
            content = answer.read(MOST_BYTES)
    except HTTPError as error:
        error.close()
        raise cr.InvalidInput("UCI does not have the file", got=f"HTTP status {error.code}") from None
    except (OSError, HTTPException) as error:
        raise cr.InvalidInput("UCI cannot be reached", got=type(error).__name__) from None
    return parse_bankruptcy(content)


def parse_bankruptcy(content: bytes) -> Rows:
    """Return the records in the bytes of a file, if they are the 250 of Qualitative Bankruptcy."""
    rows: Rows = []
    with suppress(BadZipFile, csv.Error, EOFError, LookupError, NotImplementedError, OSError, RuntimeError, ValueError):
        if content.startswith(b"PK"):
            with ZipFile(io.BytesIO(content)) as archive:
                name, *_ = [name for name in archive.namelist() if ".data" in name]
                content = archive.open(name).read(MOST_BYTES)
        rows = read_rows(content.decode("utf-8-sig"))
    if digest_of(rows) != DIGEST:
        got = f"{len(rows):,} records" + (" that differ from them" if len(rows) == 250 else "")
        raise cr.InvalidInput("these are not the 250 records of Qualitative Bankruptcy", got=got, fix=WHERE)
    return rows


def read_rows(text: str) -> Rows:
    """Return each record, its values in the order of `COLUMNS`.

    UCI's text has no header. Otherwise columns are found by name, and a last column that repeats the name before it, or
    is called n, holds counts.

    >>> read_rows("class,IR,MR,FF,CR,CO,OR,n\\nB,P,P,A,A,N,N,2")
    [('P', 'P', 'A', 'A', 'N', 'N', 'B'), ('P', 'P', 'A', 'A', 'N', 'N', 'B')]
    """
    lines = [[value.strip().upper() for value in line] for line in csv.reader(io.StringIO(text)) if line]
    header = lines.pop(0) if "CLASS" in lines[0] else list(COLUMNS)
    places = [header.index(column) for column in COLUMNS]
    counted = header[-1] in ("N", *header[:-1])
    times = [min(int(line[len(header) - 1]), 251) if counted else 1 for line in lines]
    return [
        tuple(line[place] for place in places) for line, many in zip(lines, times, strict=True) for _ in range(many)
    ]
