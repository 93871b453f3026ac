"""Where records come from: uploads in a private folder, files of the named folder, the example that is shipped."""

from __future__ import annotations

import secrets
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from anyio import to_thread
from python_multipart import MultipartParser
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import parse_options_header

from cellrisk.counts import datasets
from cellrisk.counts.files import KINDS, PACKINGS, PARQUET_SUFFIXES, TEXT_SUFFIXES
from cellrisk.errors import InvalidInput
from cellrisk.web.answer_models import SourceKind, Suggestion
from cellrisk.web.folder_files import find_file
from cellrisk.web.guard import TooLarge

ENDINGS = (
    *PARQUET_SUFFIXES,
    *(f"{ending}{packing}" for ending in TEXT_SUFFIXES for packing in ("", *PACKINGS)),
)
MOST_UPLOADS = 20
MOST_AT_ONCE = 4
AT_ONCE = 1_000_000
"""Bytes that are written to the disk at once."""
UNPACKED_TIMES = 10
"""How many times the limit of an upload its content may have once it is unpacked."""
UNPACKED_AT_ONCE = 1_000_000
BYTES_BESIDE_THE_FILE = 10_000
"""Bytes of an upload that are not the file's own."""
ADULT = Suggestion(
    quasi_identifiers=["age", "relationship", "education", "race", "sex", "hours-per-week"],
    sensitive=["income"],
    bins={"age": "5", "hours-per-week": "10"},
)


@dataclass(frozen=True)
class Origin:
    """One source: where it is now, and how a user finds it again."""

    id: str
    name: str
    bytes: int
    find: Callable[[], Path]
    """The path, checked again each time it is asked for."""
    command: str
    """The path for somebody who runs the same on a command line."""
    kind: SourceKind
    suggested: Suggestion | None = None
    unpacked_limit: int | None = None
    """Bytes that its content may have once it is unpacked; none for files of the owner's own folder."""

    def stamp(self) -> tuple[int, int]:
        """What changes when the file does."""
        stat = self.find().stat()
        return stat.st_size, stat.st_mtime_ns


class Sources:
    """The sources that pages have loaded. Uploads beyond the last twenty, or beyond twice the limit, are removed."""

    def __init__(self, private: Path, folder: Path | None, upload_limit: int) -> None:
        self._private, self._folder, self._limit = private, folder, upload_limit
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._uploads: OrderedDict[str, Path] = OrderedDict()
        self._known: dict[Any, str] = {}
        self._lock = threading.Lock()
        self._arriving = 0

    def find(self, source: str) -> Origin | None:
        return self._origins.get(source)

    def open_example(self) -> Origin:
        path = datasets.adult_path()
        return self._add("adult", "adult.parquet", path.stat().st_size, lambda: path, str(path), "example", ADULT)

    def open_file(self, given: str) -> Origin:
        """A file of the folder; the same file gives the same source."""
        if self._folder is None:
            raise InvalidInput(
                "the server has no folder to read from", fix="start it with --folder, or upload the file"
            )
        folder = self._folder
        path = find_file(folder, given)
        stat = path.stat()
        key = (given, stat.st_size, stat.st_mtime_ns)
        return self._add(key, given, stat.st_size, lambda: find_file(folder, given), str(path), "file")

    def _add(
        self,
        key: Any,
        name: str,
        size: int,
        find: Callable[[], Path],
        command: str,
        kind: SourceKind,
        suggested: Suggestion | None = None,
    ) -> Origin:
        with self._lock:
            if key not in self._known:
                origin = Origin(secrets.token_urlsafe(16), name, size, find, command, kind, suggested)
                self._known[key], self._origins[origin.id] = origin.id, origin
            return self._origins[self._known[key]]

    async def receive(self, headers: MutableMapping[str, str], chunks: Any) -> Origin:
        """Takes an upload in as it comes, straight to the private folder, and stops where it gets too large."""
        if int(headers.get("content-length", "0") or 0) > self._limit + BYTES_BESIDE_THE_FILE:
            raise TooLarge
        if self._arriving >= MOST_AT_ONCE:
            raise InvalidInput("too many uploads at once", allowed=f"{MOST_AT_ONCE}", fix="wait for the others")
        identity = secrets.token_urlsafe(16)
        unfinished = self._private / f"{identity}.unfinished"
        self._arriving += 1
        try:
            with unfinished.open("xb") as stream:
                parser = UploadParser(headers.get("content-type", ""), self._limit)
                async for chunk in chunks:
                    parser.feed(chunk)
                    if parser.waiting >= AT_ONCE:
                        await to_thread.run_sync(parser.flush, stream)
                await to_thread.run_sync(parser.flush, stream)
            name = parser.finish()
            path = self._private / f"{identity}{ending_of(name)}"
            unfinished.rename(path)
        except OSError as error:
            raise InvalidInput(f"the upload cannot be kept: {error.strerror or type(error).__name__}") from None
        finally:
            self._arriving -= 1
            unfinished.unlink(missing_ok=True)
        size = path.stat().st_size
        origin = Origin(identity, name, size, lambda: path, name, "upload", unpacked_limit=UNPACKED_TIMES * self._limit)
        with self._lock:
            self._origins[identity], self._uploads[identity] = origin, path
            self._make_room()
        return origin

    def _make_room(self) -> None:
        while len(self._uploads) > 1 and (
            len(self._uploads) > MOST_UPLOADS
            or sum(self._origins[upload].bytes for upload in self._uploads) > 2 * self._limit
        ):
            oldest, path = self._uploads.popitem(last=False)
            del self._origins[oldest]
            path.unlink(missing_ok=True)


class UploadParser:
    """Reads a multipart body with one file in it as it comes.

    Starlette's form would first write the file to the system's temporary folder, whatever its size, and unpacked bombs
    would be seen only after that.
    """

    def __init__(self, content_type: str, limit: int) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidInput("an upload must be multipart/form-data", fix="send the file in the field 'file'")
        self._limit, self._size, self._total = limit, 0, 0
        self._field, self._value = bytearray(), bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._name: str | None = None
        self._inside = self._ended = False
        self._waiting: list[bytes] = []
        self.waiting = 0
        self._unpacking: Unpacking | None = None
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": lambda data, start, end: self._field.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._open,
                "on_part_data": self._take,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        self._total += len(chunk)
        if self._total > self._limit + BYTES_BESIDE_THE_FILE:
            raise TooLarge
        try:
            self._parser.write(chunk)
        except MultipartParseError:
            raise InvalidInput("the upload cannot be read", fix="send it again") from None

    def flush(self, stream: BinaryIO) -> None:
        for data in self._waiting:
            stream.write(data)
            if self._unpacking is not None:
                self._unpacking.feed(data)
        self._waiting, self.waiting = [], 0

    def finish(self) -> str:
        """The name of the file, once all of it is there."""
        if not self._ended:
            raise InvalidInput("the upload broke off", fix="send it again")
        if self._name is None:
            raise InvalidInput("the upload holds no file", fix="send it in the field 'file'")
        return self._name

    def _begin(self) -> None:
        self._headers, self._inside = {}, False

    def _end_header(self) -> None:
        self._headers[bytes(self._field).lower()] = bytes(self._value)
        self._field, self._value = bytearray(), bytearray()

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if options.get(b"name") == b"file" and b"filename" in options:
            if self._name is not None:
                raise InvalidInput("the upload holds more than one file", fix="send one at a time")
            self._name, self._inside = clean_name(options[b"filename"].decode("utf-8", "replace")), True
            if ending_of(self._name).endswith(".gz"):
                self._unpacking = Unpacking(UNPACKED_TIMES * self._limit)

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._inside:
            self._size += end - start
            if self._size > self._limit:
                raise TooLarge
            self._waiting.append(bytes(data[start:end]))
            self.waiting += end - start

    def _end(self) -> None:
        self._ended = True


class Unpacking:
    """What a gzip file unpacks to, measured as it comes and kept nowhere; ends in an exception once it is too large.

    What is no gzip is left to those who read the file.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._member: Any = None
        self._broken = False

    def feed(self, data: bytes) -> None:
        while data and not self._broken:
            if self._member is None:
                data = data.lstrip(b"\0")  # zeros may stand between and after the members of a gzip file
                if not data:
                    return
                self._member = zlib.decompressobj(wbits=31)
            try:
                self._left -= len(self._member.decompress(data, UNPACKED_AT_ONCE))
            except zlib.error:
                self._broken = True
                return
            if self._left < 0:
                raise TooLarge(f"the file unpacks to more than {UNPACKED_TIMES} times the limit of uploads")
            if self._member.eof:
                data, self._member = self._member.unused_data, None
            else:
                data = self._member.unconsumed_tail


def clean_name(given: str) -> str:
    """The name of a file as it is shown: no folders, nothing that does not print.

    >>> clean_name("C:\\\\data\\\\people\\x00.csv"), clean_name("../../people.csv")
    ('people.csv', 'people.csv')
    """
    last = given.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[-120:].lstrip(".- ") or "upload"


def ending_of(name: str) -> str:
    """The part of a file's name that says its kind; refuses other kinds."""
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.lower().endswith(ending):
            return ending
    raise InvalidInput("the kind of the file is not known from its name", allowed=KINDS)
