"""One entry of a ledger, and what is in it: a cohort, a limit or a release."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger.chain import Row
from cellrisk.system.checks import is_number, require_within
from cellrisk.system.text import aligned
from cellrisk.system.words import Operator, list_words, require_word

KINDS = ("cohort", "limit", "release")
LONGEST_NAME = 200
LONGEST_PURPOSE = 10_000
LONGEST_PATH = 4096
LONGEST_BODY = 1 << 22
BLOCK = 1 << 20


@dataclass(frozen=True)
class Cohort:
    """People that releases cover. Cohorts share nobody, except that one may be part of another."""

    name: str
    part_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that releases may cost a person of a cohort, all together.

    It is meant in pure DP where its delta is 0, else in approximate DP.

    >>> Limit(cohort="everyone", epsilon=2.0).describe()
    "at most epsilon 2 for each person of 'everyone'"
    """

    cohort: str
    epsilon: float
    delta: float = 0.0
    operator: Operator = "tightest"

    def __post_init__(self) -> None:
        require_within("epsilon", self.epsilon, above=0)
        require_within("delta", self.delta, least=0, below=1)
        require_word("operator", self.operator, list_words(Operator))

    def describe(self) -> str:
        """The limit in a few words."""
        delta = f" at delta {self.delta:g}" if self.delta else ""
        by = f" by {self.operator} composition" if self.operator != "tightest" else ""
        return f"at most epsilon {self.epsilon:g}{delta}{by} for each person of '{self.cohort}'"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, without the cohort."""
        named = {"epsilon": float(self.epsilon), "delta": float(self.delta)}
        return {**named, "operator": self.operator}


@dataclass(frozen=True)
class ReleasedFile:
    """A file as it was when it was released."""

    name: str
    path: str | None
    """Where the file was written; that stands beside the entry and not in it, so that an export does not hold it."""
    sha256: str
    bytes: int
    place: str | None = None
    """What binds the path to the entry: the SHA-256 of a random salt and the path."""
    description: str | None = None
    """The SHA-256 of the description beside it, without what that says of the ledger."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or len(self.name) > LONGEST_PATH:
            raise InvalidInput("a released file has a name")
        if self.path is not None and (not isinstance(self.path, str) or len(self.path) > LONGEST_PATH):
            raise InvalidInput("a released file has a path")
        if isinstance(self.bytes, bool) or not isinstance(self.bytes, int) or self.bytes < 0:
            raise InvalidInput("a released file has a size")
        for digest in (self.sha256, self.place or "0" * 64, self.description or "0" * 64):
            if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
                raise InvalidInput("a released file has its digests")

    @staticmethod
    def of(path: str | os.PathLike[str]) -> ReleasedFile:
        """Reads a file and takes its SHA-256."""
        place = Path(path).absolute()
        try:
            if not place.is_file():
                raise InvalidInput("there is no such file", got=place)
            size, digest = 0, hashlib.sha256()
            with place.open("rb") as stream:
                while block := stream.read(BLOCK):
                    size += len(block)
                    digest.update(block)
        except OSError as error:
            raise InvalidInput("the file cannot be read", got=f"{place} ({error.strerror})") from None
        path = check_text("the path of the file", str(place), LONGEST_PATH)
        return ReleasedFile(place.name, path, digest.hexdigest(), size)

    def to_dict(self) -> dict[str, Any]:
        """What an entry holds of it: everything but where it is."""
        named = {"name": self.name, "sha256": self.sha256, "bytes": self.bytes}
        more = {"place": self.place, "description": self.description}
        return {**named, **{name: value for name, value in more.items() if value is not None}}


@dataclass(frozen=True)
class BookedTable:
    """One table of a set, as an entry notes it."""

    quasi_identifiers: tuple[str, ...]
    loss: Loss
    name: str | None = None
    where: str | None = None

    @staticmethod
    def read(named: Any) -> BookedTable:
        """The table that a body holds; refuses what is none."""
        return BookedTable(
            _check_columns(named["quasi_identifiers"]),
            _parse_loss(json.dumps(named["loss"])),
            *(
                None if named[key] is None else check_text(f"the {key} of a table", named[key], LONGEST_PURPOSE)
                for key in ("name", "where")
            ),
        )

    def describe(self) -> str:
        """The table on one line.

        >>> BookedTable(("age", "sex"), Loss.pure(1.0), where="age from 18").describe()
        'age, sex; age from 18, at 1-DP'
        """
        called = f'"{show_on_one_line(self.name)}": ' if self.name else ""
        part = f"; {show_on_one_line(self.where)}" if self.where else ""
        columns = ", ".join(map(show_on_one_line, self.quasi_identifiers))
        return f"{called}{columns}{part}, at {self.loss.describe()}"


class Whereabouts(NamedTuple):
    """Where a released file was written, and the salt of the digest that binds this to its entry."""

    path: str
    salt: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.salt}\n{self.path}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a ledger, as it was written. Its order is its number; its time is what the clock said."""

    number: int
    time: str
    """UTC, to the microsecond."""
    kind: str
    cohort: str
    part_of: str | None = None
    quasi_identifiers: tuple[str, ...] = ()
    attribute: str | None = None
    loss: Loss | None = None
    scale: float | None = None
    """The scale of the noise, where the mechanism is known."""
    purpose: str = ""
    tables: tuple[BookedTable, ...] = ()
    """The tables of a set that was released together; empty where it was one table."""
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
    """What the digest covers, beside number and previous."""

    @staticmethod
    def read(row: Row, path: str | None = None) -> Entry:
        """The entry that a stored row holds, and where its file was written; refuses a body that is not one."""
        try:
            body = read_json(row.body)
            limit, file = body.get("limit"), body.get("file")
            entry = Entry(
                number=row.number,
                time=_check_time(body["time"]),
                kind=check_text("the kind", body["kind"], LONGEST_NAME),
                cohort=check_cohort(body["cohort"]),
                part_of=check_part_of(body.get("part_of")),
                quasi_identifiers=_check_columns(body.get("quasi_identifiers", [])),
                attribute=None if body.get("attribute") is None else _check_column(body["attribute"]),
                loss=None if body.get("loss") is None else _parse_loss(json.dumps(body["loss"])),
                scale=_check_number(body.get("scale")),
                purpose=check_text("the purpose", body.get("purpose", ""), LONGEST_PURPOSE, empty=True),
                tables=tuple(BookedTable.read(named) for named in body.get("tables") or ()),
                file=None if file is None else ReleasedFile(**{"path": path, **file}),
                limit=None if limit is None else Limit(cohort=body["cohort"], **limit),
                clock_behind=_check_number(body.get("clock_behind")),
                version=check_text("the version", body["cellrisk"], LONGEST_NAME),
                previous=row.previous,
                digest=row.digest,
                body=row.body,
            )
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise InvalidInput(f"entry {row.number} of the ledger holds nothing that can be read as an entry") from None
        whole = {"cohort": True, "limit": entry.limit is not None, "release": entry.loss is not None}
        if not whole.get(entry.kind, False):
            raise InvalidInput(f"entry {row.number} of the ledger is of no known kind, or not whole")
        return entry

    @property
    def headline(self) -> str:
        """The entry in a sentence, on one line."""
        cohort = f"'{show_on_one_line(self.cohort)}'"
        if self.kind == "cohort":
            part = f", part of '{show_on_one_line(self.part_of)}'" if self.part_of else ""
            return f"Cohort {cohort}{part}."
        if self.limit is not None:
            return f"Limit: {self.limit.describe()}."
        by = ", ".join(map(show_on_one_line, self.quasi_identifiers))
        what = f"{show_on_one_line(self.attribute)} by {by}" if self.attribute and by else self.attribute or by
        if self.tables:
            what = f"{len(self.tables)} tables of {what}"
        loss = f" at {self.loss.describe()}" if self.loss is not None else ""
        return f"Release of {show_on_one_line(what)} to cohort {cohort}{loss}."

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values. The body is what is left without number, previous and digest."""
        return {"number": self.number, "previous": self.previous, "digest": self.digest, **read_json(self.body)}

    def __str__(self) -> str:
        rows = [["entry", str(self.number)], ["time", self.time], ["cohort", show_on_one_line(self.cohort)]]
        if self.loss is not None:
            mechanism = self.loss.mechanism
            rows += [["loss", self.loss.describe()], ["neighbours", self.loss.neighbours]]
            rows += [["mechanism", mechanism.name if mechanism else "not known"]]
            rows += [["scale of the noise", f"{self.scale:.6g}"]] if self.scale is not None else []
        rows += [[f"table {number}", each.describe()] for number, each in enumerate(self.tables, start=1)]
        if self.purpose:
            rows.append(["purpose", show_on_one_line(self.purpose)])
        if self.file is not None:
            rows += [["file", show_on_one_line(self.file.path or self.file.name)], ["SHA-256", self.file.sha256]]
        if self.clock_behind is not None:
            rows.append(["clock", f"{self.clock_behind:g} s behind the entry before"])
        rows += [["written by", f"cellrisk {self.version}"], ["previous", self.previous], ["digest", self.digest]]
        return f"{self.headline}\n\n{aligned(rows[0], rows[1:], left=2)}"


def describe_release(
    attribute: str | None,
    quasi_identifiers: str | Sequence[str],
    loss: Loss,
    purpose: str,
    tables: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """What is written of a release whose loss was read, checked; a refusal says what cannot be kept."""
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
        "scale": loss.events[0].scale if len(loss.events) == 1 else None,
        "purpose": check_text("the purpose", purpose, LONGEST_PURPOSE, empty=True),
        **({"tables": _check_tables(tables)} if tables else {}),
    }


def _check_tables(tables: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tables of a set as they are written, checked as they will be read."""
    plain: list[dict[str, Any]] = json.loads(json.dumps(list(tables)))
    for named in plain:
        BookedTable.read(named)
    return plain


def read_loss(loss: Mechanism | Loss) -> Loss:
    """The loss of a mechanism or as it was given; refuses one that would not be read back as it is."""
    given = Loss.of(loss) if isinstance(loss, Mechanism) else loss
    if not isinstance(given, Loss):
        raise InvalidInput(
            "a release needs its privacy loss", got=type(loss).__name__, allowed="a mechanism, or a Loss"
        )
    read = Loss.from_dict(json.loads(json.dumps(given.to_dict())))
    if read != given:
        raise InvalidInput("the loss cannot be kept as it is", fix="use a mechanism of cellrisk as it is")
    return read


@lru_cache(maxsize=4096)
def _parse_loss(text: str) -> Loss:
    """The loss that a text holds; the entries of a ledger have few that differ."""
    return Loss.from_dict(json.loads(text))


def check_cohort(name: object) -> str:
    """The name of a cohort, which can be kept, typed and shown on one line."""
    text = check_text("the name of the cohort", name, LONGEST_NAME)
    if text != text.strip() or not all(sign.isprintable() for sign in text):
        raise InvalidInput(
            "the name of the cohort must be printable, on one line, without spaces around it",
            got=repr(show_on_one_line(text)),
        )
    return text


def check_part_of(name: object) -> str | None:
    """The name of the cohort that contains another, if one does."""
    return None if name is None else check_cohort(name)


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
    """What two names share that differ in case, spaces or the way accents are written only."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def show_on_one_line(text: str | None) -> str:
    """Text without line breaks and without signs that a terminal would obey.

    >>> show_on_one_line("yearly\\nreport")
    'yearly report'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text or "").split())


def write_time(moment: datetime) -> str:
    """A moment in UTC, to the microsecond."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput("the clock must tell the time with its zone", got=type(moment).__name__)
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")


def _check_time(text: str) -> str:
    if write_time(datetime.fromisoformat(text)) != text:
        raise ValueError("another form of time")
    return text


def read_json(text: str) -> Any:
    """What a text of the ledger holds; refuses a text that is no JSON, is too long or too deep, or cannot be written
    again."""
    if len(text) > LONGEST_BODY:
        raise InvalidInput("the text is too long", got=f"{len(text):,} characters")
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise InvalidInput("the text is nested too deeply") from None
    except UnicodeEncodeError:
        raise InvalidInput("the text holds half characters") from None
    return found


def _refuse_constant(name: str) -> None:
    raise InvalidInput("the numbers in a ledger must be finite", got=name)


def _check_columns(names: object) -> tuple[str, ...]:
    if not isinstance(names, list):
        raise InvalidInput("columns are a list")
    return tuple(map(_check_column, names))


def _check_column(name: object) -> str:
    return check_text("a column", name, LONGEST_NAME)


def _check_number(value: Any) -> float | None:
    if value is not None and not is_number(value):
        raise InvalidInput("the numbers in a ledger must be finite")
    return value
