"""The chain that holds the entries together: each digest covers the one before, so none can be changed alone."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
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
    """What a ledger says of itself: which one it is, and its last entry."""

    id: str
    schema: int
    created: str
    number: int
    digest: str


class Problem(NamedTuple):
    """Something that is wrong, and the entry that it hits, where it hits one."""

    entry: int | None
    text: str


def write_canonically(body: Mapping[str, Any]) -> str:
    """A body as the one text that its digest is taken of: sorted keys, ASCII, floats as they are read back exactly.

    >>> write_canonically({"b": 0.1, "a": "Köln"})
    '{"a":"K\\\\u00f6ln","b":0.1}'
    """
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def compute_digest(number: int, previous: str, body: str) -> str:
    """SHA-256 over the entry's number, the digest before it, and its body, each on a line of its own.

    Before the first entry stands the ledger's own random id.

    >>> compute_digest(1, "7f3a", "{}")[:16]
    '0da89255bee75e3c'
    """
    return hashlib.sha256(f"{number}\n{previous}\n{body}".encode()).hexdigest()


def find_breaks(rows: Sequence[Row], head: Head, unreadable: frozenset[int] = frozenset()) -> Iterator[Problem]:
    """What breaks the chain, in the order of the entries; nothing where all is as it was written.

    A chain that was written anew from some entry on is whole in itself: only a digest noted elsewhere finds that.
    """
    recomputed = {row.number: compute_digest(row.number, row.previous, row.body) for row in rows}
    by_number = {row.number: row for row in rows}
    counts = Counter(row.number for row in rows)
    numbers = {digest: number for number, digest in recomputed.items()} | {row.digest: row.number for row in rows}
    expected = 1
    for number in sorted({*by_number, *unreadable, head.number + 1}):
        if number > expected:
            more = f", and so are those up to entry {number - 1:,}" if number > expected + 1 else ""
            yield Problem(expected, f"is missing{more}: it was deleted")
        expected = max(expected, number + 1)
        if number in unreadable:
            yield Problem(number, "cannot be read: the file is damaged there")
        elif number in by_number:
            if counts[number] > 1:
                yield Problem(number, f"stands there {counts[number]:,} times: it was inserted")
            if number < 1:
                yield Problem(number, "stands before the first entry: it was inserted or moved there")
            if number > head.number:
                yield Problem(number, "stands after what the ledger gives as its last entry: it was inserted")
            before = {head.id} if number == 1 else _digests(by_number.get(number - 1), recomputed)
            yield from _check_row(by_number[number], by_number, recomputed, before, head, numbers)
    last = by_number.get(head.number)
    noted = _digests(last, recomputed) if head.number else {head.id}
    if noted and head.digest not in noted:
        yield Problem(None, "the ledger's note of its last digest is not that of its last entry: it was edited")


def check_links(rows: Sequence[Row], number: int, previous: str, head: Head) -> None:
    """Refuses entries that do not follow each other, from the one after a number to the last."""
    for row in rows:
        number += 1
        if row != Row(number, previous, compute_digest(number, previous, row.body), row.body):
            raise InvalidInput(f"the ledger is damaged or was changed at entry {number}", fix="verify tells more")
        previous = row.digest
    if (number, previous) != (head.number, head.digest):
        raise InvalidInput("the ledger is damaged or was changed at its end", fix="verify tells more")


def _check_row(
    row: Row,
    rows: Mapping[int, Row],
    recomputed: Mapping[int, str],
    before: set[str],
    head: Head,
    numbers: Mapping[str, int],
) -> Iterator[Problem]:
    if row.digest != recomputed[row.number]:
        following = rows[row.number + 1].previous if row.number + 1 in rows else head.digest
        likely = {numbers.get(row.previous, 0) + 1, row.number - 1, row.number + 1} - {row.number}
        moved = [number for number in likely if compute_digest(number, row.previous, row.body) == row.digest]
        if moved:
            yield Problem(row.number, f"was written as entry {moved[0]}: entries were moved")
        elif following == recomputed[row.number]:
            yield Problem(row.number, "has a digest that is not its own: the digest was edited")
        else:
            yield Problem(row.number, "does not match its digest: it was edited")
    elif before and row.previous not in before:
        what = f"entry {row.number - 1}" if row.number > 1 else "this ledger's id"
        yield Problem(row.number, f"does not follow {what}: something was inserted, removed or moved before it")


def _digests(row: Row | None, recomputed: Mapping[int, str]) -> set[str]:
    """The digests by which the next entry may name an entry: the noted one and the computed one, which an edit sets
    apart. What was edited is told of the entry itself, and not again of the next."""
    return set() if row is None else {row.digest, recomputed[row.number]}
