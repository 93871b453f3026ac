"""One entry of a ledger: a cohort, a limit or a release; and the hash chain of the entries.

Each digest covers the one before, so no entry can be changed alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.releasing.files import MANIFEST
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.system.checks import require_within
from cellrisk.system.choices import CompositionMethod, list_words, require_word
from cellrisk.system.results import find_words

KINDS = ("cohort", "limit", "release")
LONGEST_NAME = 200
LONGEST_PURPOSE = 10_000
LONGEST_PATH = 4096
LONGEST_BODY = 1 << 22
BLOCK = 1 << 20


class Row(NamedTuple):
    """An entry as it is stored."""

    number: int
    previous: str
    digest: str
    body: str


class Head(NamedTuple):
    """What a ledger states about itself: its id, and its last entry."""

    id: str
    created: str
    number: int
    digest: str


class Problem(NamedTuple):
    """Something that is wrong, and the number of the entry that it concerns, if it concerns one."""

    entry: int | None
    text: str


def write_canonically(body: Mapping[str, Any]) -> str:
    """A body as the one text that its digest is computed from: sorted keys, ASCII, floats that are read back exactly.

    >>> write_canonically({"b": 0.1, "a": "Köln"})
    '{"a":"K\\\\u00f6ln","b":0.1}'
    """
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def compute_digest(number: int, previous: str, body: str) -> str:
    """SHA-256 over the entry's number, the digest before it, and its body, each on a line of its own.

    The first entry follows the ledger's random id.

    >>> compute_digest(1, "7f3a", "{}")[:16]
    '0da89255bee75e3c'
    """
    return hashlib.sha256(f"{number}\n{previous}\n{body}".encode()).hexdigest()


def find_breaks(rows: Sequence[Row], head: Head) -> Iterator[Problem]:
    """What breaks the chain, in the order of the entries; nothing if all is as it was written.

    A chain that was written anew from some entry on is consistent: only a digest noted elsewhere finds that.
    """
    expected, previous = 1, {head.id}
    for row in rows:
        if row.number > expected:
            more = f", and so are those up to entry {row.number - 1:,}" if row.number > expected + 1 else ""
            yield Problem(expected, f"is missing{more}: it was deleted")
            previous = set()
        computed = compute_digest(row.number, row.previous, row.body)
        if not 1 <= row.number <= head.number:
            yield Problem(row.number, "is not between the first entry and the last: it was inserted")
        elif row.digest != computed:
            yield Problem(row.number, "does not match its digest: it was edited or moved")
        elif previous and row.previous not in previous:
            yield Problem(row.number, "does not follow the entry before it: an entry was inserted, removed or moved")
        expected, previous = row.number + 1, {row.digest, computed}
    if expected <= head.number:
        yield Problem(expected, "is missing: the end of the ledger was deleted")
    elif head.digest not in (previous or {head.digest}):
        yield Problem(None, "the ledger's note of its last digest is not that of its last entry: it was edited")


@dataclass(frozen=True)
class Cohort:
    """The people whom releases are about. Cohorts share nobody, except that one may be part of another."""

    name: str
    part_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that all releases together may cost a person of a cohort: pure DP if its delta is 0.

    >>> Limit(cohort="everyone", epsilon=2.0).describe()
    "at most epsilon 2 for each person of 'everyone'"
    """

    cohort: str
    epsilon: float
    delta: float = 0.0
    method: CompositionMethod = "tightest"

    def __post_init__(self) -> None:
        require_within("epsilon", self.epsilon, above=0)
        require_within("delta", self.delta, least=0, below=1)
        require_word("method", self.method, list_words(CompositionMethod))

    def describe(self) -> str:
        """The limit in a few words."""
        delta = f" at delta {self.delta:g}" if self.delta else ""
        by = f" by {self.method} composition" if self.method != "tightest" else ""
        return f"at most epsilon {self.epsilon:g}{delta}{by} for each person of '{self.cohort}'"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, without the cohort."""
        return {"epsilon": float(self.epsilon), "delta": float(self.delta), "method": self.method}


@dataclass(frozen=True)
class ReleasedFile:
    """A file as it was when it was released. Where it was written is not recorded: its description names the entry."""

    name: str
    sha256: str
    bytes: int
    description: str | None = None
    """The SHA-256 of the description beside the file, without its ledger entry."""

    def __post_init__(self) -> None:
        if Path(check_text("the name of a released file", self.name, LONGEST_PATH)).name != self.name:
            raise InvalidInput("a released file is named without its folder")
        if isinstance(self.bytes, bool) or not isinstance(self.bytes, int) or self.bytes < 0:
            raise InvalidInput("a released file has a size")
        for digest in (self.sha256, self.description or self.sha256):
            if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
                raise InvalidInput("a released file has its digests")

    @staticmethod
    def of(path: str | os.PathLike[str]) -> ReleasedFile:
        """The file at a path, with its SHA-256."""
        file, size, digest = Path(path).absolute(), 0, hashlib.sha256()
        if not file.is_file():
            raise InvalidInput("there is no such file", got=file)
        try:
            with file.open("rb") as stream:
                while block := stream.read(BLOCK):
                    size += len(block)
                    digest.update(block)
        except OSError as error:
            raise InvalidInput("the file cannot be read", got=f"{file} ({error.strerror})") from None
        return ReleasedFile(file.name, digest.hexdigest(), size)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; what is not known is left out."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a ledger, as it was written. Its order is its number; its time is what the clock showed."""

    number: int
    time: str
    """UTC, to the microsecond."""
    kind: str
    cohort: str
    part_of: str | None = None
    quasi_identifiers: tuple[str, ...] = ()
    attribute: str | None = None
    loss: Loss | None = None
    purpose: str = ""
    file: ReleasedFile | None = None
    """What was released; of a set, the list of its tables, which has their digests."""
    limit: Limit | None = None
    clock_behind: float | None = None
    """Seconds that the clock was behind the entry before."""
    version: str = ""
    """The version of cellrisk that wrote it."""
    previous: str = ""
    digest: str = ""
    body: str = ""
    """What the digest covers, with number and previous."""

    @staticmethod
    @lru_cache(maxsize=4096)
    def read(row: Row) -> Entry:
        """The entry of a stored row; refuse a body that is not one."""
        try:
            body = read_json(row.body)
            limit, file, behind = body.get("limit"), body.get("file"), body.get("clock_behind")
            attribute, part_of = body.get("attribute"), body.get("part_of")
            columns = body.get("quasi_identifiers", [])
            if write_time(datetime.fromisoformat(body["time"])) != body["time"] or not isinstance(columns, list):
                raise ValueError("another form of time or columns")
            entry = Entry(
                number=row.number,
                time=body["time"],
                kind=check_text("the kind", body["kind"], LONGEST_NAME),
                cohort=check_cohort(body["cohort"]),
                part_of=None if part_of is None else check_cohort(part_of),
                quasi_identifiers=tuple(check_text("a column", name, LONGEST_NAME) for name in columns),
                attribute=None if attribute is None else check_text("the attribute", attribute, LONGEST_NAME),
                loss=None if body.get("loss") is None else _parse_loss(json.dumps(body["loss"])),
                purpose=check_text("the purpose", body.get("purpose", ""), LONGEST_PURPOSE, empty=True),
                file=None if file is None else ReleasedFile(**file),
                limit=None if limit is None else Limit(cohort=body["cohort"], **limit),
                clock_behind=None if behind is None else require_within("clock_behind", behind, above=0),
                version=check_text("the version", body["cellrisk"], LONGEST_NAME),
                previous=row.previous,
                digest=row.digest,
                body=row.body,
            )
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise InvalidInput(f"entry {row.number} of the ledger cannot be read as an entry") from None
        whole = {"cohort": True, "limit": entry.limit is not None, "release": entry.loss is not None}
        if not whole.get(entry.kind, False):
            raise InvalidInput(f"entry {row.number} of the ledger has an unknown kind, or is not whole")
        return entry

    @property
    def of_set(self) -> bool:
        """Whether a set of tables was released together: its loss has the events of all, its file is their list."""
        return self.file is not None and self.file.name == MANIFEST

    @property
    def headline(self) -> str:
        """The entry in a sentence, on one line."""
        return str(find_words("ledger").headline(self))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: number, previous and digest, and the body."""
        return {"number": self.number, "previous": self.previous, "digest": self.digest, **read_json(self.body)}

    def __str__(self) -> str:
        return str(find_words("ledger").describe(self))


def describe_release(
    attribute: str | None, quasi_identifiers: str | Sequence[str], loss: Loss, purpose: str
) -> dict[str, Any]:
    """The fields of a release, checked as they will be read."""
    names = [quasi_identifiers] if isinstance(quasi_identifiers, str) else list(quasi_identifiers)
    quasi = [check_text("a quasi-identifier", name, LONGEST_NAME) for name in names]
    if attribute is not None:
        check_text("the attribute", attribute, LONGEST_NAME)
    columns = quasi if attribute is None else [*quasi, attribute]
    if not columns:
        raise InvalidInput("a release has an attribute or quasi-identifiers", fix="name its columns")
    if len(set(columns)) < len(columns):
        raise InvalidInput("a column is named twice", got=show_on_one_line(", ".join(columns)))
    return {
        "attribute": attribute,
        "quasi_identifiers": quasi,
        "loss": loss.to_dict(),
        "purpose": check_text("the purpose", purpose, LONGEST_PURPOSE, empty=True),
    }


def read_loss(loss: Mechanism | Loss) -> Loss:
    """The loss of a mechanism or as it was given; refuse one that could not be read back from an entry."""
    given = Loss.of(loss) if isinstance(loss, Mechanism) else loss
    if not isinstance(given, Loss):
        raise InvalidInput(
            "a release needs its privacy loss", got=type(loss).__name__, allowed="a mechanism, or a Loss"
        )
    return _parse_loss(json.dumps(given.to_dict()))


@lru_cache(maxsize=4096)
def _parse_loss(text: str) -> Loss:
    """The loss of a text; the entries of a ledger have few different ones."""
    return Loss.from_dict(json.loads(text))


def check_cohort(name: object) -> str:
    """The name of a cohort, which can be kept, typed and shown on one line."""
    text = check_text("the name of the cohort", name, LONGEST_NAME)
    if text != text.strip() or not text.isprintable():
        raise InvalidInput(
            "the name of the cohort must be printable, on one line, without spaces around it",
            got=repr(show_on_one_line(text)),
        )
    return text


def check_text(what: str, text: object, longest: int, *, empty: bool = False) -> str:
    """Text that every database can hold and that is read back as it is."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be text", got=type(text).__name__)
    if not text.strip() and not empty:
        raise InvalidInput(f"{what} is empty", fix="give one")
    if len(text) > longest:
        raise InvalidInput(f"{what} is too long", got=f"{len(text):,} characters", allowed=f"up to {longest:,}")
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidInput(f"{what} holds a character that no database keeps", fix="leave out NUL and half characters")
    return str(text)


def fold(name: str) -> str:
    """A name without differences in case, spaces and the encoding of accents."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def show_on_one_line(text: str | None) -> str:
    """Text without line breaks and without control characters.

    >>> show_on_one_line("yearly\\nreport")
    'yearly report'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text or "").split())


def write_time(moment: datetime) -> str:
    """A moment in UTC, to the microsecond."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput("the clock must return a time with its zone", got=type(moment).__name__)
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")


def read_json(text: str) -> Any:
    """The value of a body; refuse a text that is not JSON, is too long or too deep, or cannot be written again."""
    if len(text) > LONGEST_BODY:
        raise InvalidInput("the text is too long", got=f"{len(text):,} characters")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise InvalidInput("the text is nested too deeply") from None
    except UnicodeEncodeError:
        raise InvalidInput("the text holds half characters") from None
    return value


def _refuse_constant(name: str) -> None:
    raise InvalidInput("the numbers in a ledger must be finite", got=name)
