"""The hash chain of the entries: each digest covers the one before, so no entry can be changed alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cellrisk.errors import InvalidInput


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


def find_breaks(rows: Sequence[Row], head: Head, number: int = 0, last: str | None = None) -> Iterator[Problem]:
    """What breaks the chain, in the order of the entries; nothing if all is as it was written.

    ``rows``: the entries after a number, whose digest is ``last``; by default all. A chain that was written anew from
    some entry on is consistent: only a digest noted elsewhere finds that.
    """
    expected, previous = number + 1, {last or head.id}
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


def check_links(rows: Sequence[Row], number: int, previous: str, head: Head) -> None:
    """Refuse entries that do not follow each other, from the one after a number to the last."""
    for problem in find_breaks(rows, head, number, previous):
        where = "its end" if problem.entry is None else f"entry {problem.entry}"
        raise InvalidInput(f"the ledger is damaged or was changed at {where}", fix="ledger verify shows more")
