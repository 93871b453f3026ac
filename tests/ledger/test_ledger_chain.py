"""The chain alone, in memory: every way to break it is told in full, and nothing is told of what is whole."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger import chain
from cellrisk.repeat.ledger.chain import Head, Row, check_links, find_breaks, write_canonically

ID = "7f" * 16
EDITED = "does not match its digest: it was edited"
NOT_ITS_OWN = "has a digest that is not its own: the digest was edited"
HEAD_EDITED = (None, "the ledger's note of its last digest is not that of its last entry: it was edited")
INSERTED_BEFORE = "something was inserted, removed or moved before it"


def make_chain(length: int) -> tuple[list[Row], Head]:
    """Entries as the docstrings define them, by hashlib alone."""
    rows: list[Row] = []
    previous = ID
    for number in range(1, length + 1):
        body = f'{{"n":{number}}}'
        digest = hashlib.sha256(f"{number}\n{previous}\n{body}".encode()).hexdigest()
        rows.append(Row(number, previous, digest, body))
        previous = digest
    return rows, Head(ID, 3, "", length, previous)


def tell(rows: list[Row], head: Head, unreadable: frozenset[int] = frozenset()) -> list[tuple[int | None, str]]:
    return [tuple(problem) for problem in find_breaks(rows, head, unreadable)]


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_what_is_whole_is_not_blamed(length: int) -> None:
    rows, head = make_chain(length)
    assert tell(rows, head) == tell(rows[::-1], head) == []
    check_links(rows, 0, ID, head)
    for known in range(1, length + 1):
        check_links(rows[known:], known, rows[known - 1].digest, head)


def test_whichever_entries_are_deleted_are_named() -> None:
    """All sets of five entries that can go: each run of them is one problem, and those that stay are not blamed."""
    rows, head = make_chain(5)
    for kept in itertools.product([True, False], repeat=5):
        left = [row for row, stays in zip(rows, kept, strict=True) if stays]
        expected = []
        for stays, run in itertools.groupby(range(1, 6), key=lambda number: kept[number - 1]):
            first, *more = run
            if not stays:
                rest = f", and so are those up to entry {more[-1]}" if more else ""
                expected.append((first, f"is missing{rest}: it was deleted"))
        assert tell(left, head) == expected, kept


def test_what_cannot_be_read_is_not_missing() -> None:
    rows, head = make_chain(4)
    for number in range(1, 5):
        left = [row for row in rows if row.number != number]
        assert tell(left, head, frozenset({number})) == [(number, "cannot be read: the file is damaged there")]
    assert tell(rows[:1], head, frozenset({3})) == [
        (2, "is missing: it was deleted"),
        (3, "cannot be read: the file is damaged there"),
        (4, "is missing: it was deleted"),
    ]


def test_whatever_is_edited_in_an_entry_is_told_of_that_entry_alone() -> None:
    rows, head = make_chain(4)
    for place in range(4):
        for change, told in (
            ({"body": "{}"}, EDITED),
            ({"previous": "0" * 64}, EDITED),
            ({"digest": "0" * 64}, NOT_ITS_OWN),
        ):
            changed = [row._replace(**change) if row is rows[place] else row for row in rows]
            assert tell(changed, head) == [(place + 1, told)]
            with pytest.raises(InvalidInput, match=rf"^the ledger is damaged or was changed at entry {place + 1}; "):
                check_links(changed, 0, ID, head)


def test_the_note_of_the_last_entry_is_compared() -> None:
    rows, head = make_chain(2)
    assert tell(rows, head._replace(digest="0" * 64)) == [HEAD_EDITED]
    assert tell([], Head(ID, 3, "", 0, "0" * 32)) == [HEAD_EDITED]
    assert tell(rows, head._replace(number=3)) == [(3, "is missing: it was deleted")]
    assert tell(rows, head._replace(number=1)) == [
        (2, "stands after what the ledger gives as its last entry: it was inserted"),
        HEAD_EDITED,
    ]
    for other in (head._replace(digest="0" * 64), head._replace(number=3), head._replace(number=1)):
        with pytest.raises(InvalidInput, match=r"^the ledger is damaged or was changed at its end; verify tells more"):
            check_links(rows, 0, ID, other)


def test_an_entry_of_another_chain_does_not_follow() -> None:
    """Its digest is its own, but it names another entry before it."""
    rows, head = make_chain(3)
    for place, before in ((0, "this ledger's id"), (1, "entry 1"), (2, "entry 2")):
        row = rows[place]
        digest = hashlib.sha256(f"{row.number}\n{'0' * 64}\n{row.body}".encode()).hexdigest()
        foreign = row._replace(previous="0" * 64, digest=digest)
        changed = [foreign if each is row else each for each in rows]
        after = [(place + 2, f"does not follow entry {place + 1}: {INSERTED_BEFORE}")] if place < 2 else [HEAD_EDITED]
        assert tell(changed, head) == [(place + 1, f"does not follow {before}: {INSERTED_BEFORE}"), *after]


def test_entries_where_none_can_be() -> None:
    rows, head = make_chain(2)
    for number in (0, -1):
        digest = hashlib.sha256(f"{number}\n{ID}\n{{}}".encode()).hexdigest()
        assert tell([Row(number, ID, digest, "{}"), *rows], head) == [
            (number, "stands before the first entry: it was inserted or moved there")
        ]
    for more in (1, 2):
        told = tell([*rows[:1] * more, *rows], head)
        assert told == [(1, f"stands there {1 + more} times: it was inserted")]


def test_entries_that_changed_places_are_told_with_their_numbers() -> None:
    rows, head = make_chain(5)
    for one, other in itertools.combinations(range(1, 6), 2):
        swapped = {one: other, other: one}
        told = tell([row._replace(number=swapped.get(row.number, row.number)) for row in rows], head)
        moved = [(number, text) for number, text in told if "entries were moved" in text]
        assert moved == [
            (one, f"was written as entry {other}: entries were moved"),
            (other, f"was written as entry {one}: entries were moved"),
        ]


class Tries:
    """Counts what is digested to find out numbers, but for the digits of the numbers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: list[int] = []
        self.digested = 0
        real = chain.compute_digest

        def compute(number: int, previous: str, body: str) -> str:
            self.numbers.append(number)
            self.digested += len(f"{previous}\n{body}")
            return real(number, previous, body)

        monkeypatch.setattr(chain, "compute_digest", compute)


def test_a_number_is_found_by_the_entry_before_however_far_it_was_moved() -> None:
    rows, head = make_chain(3)
    far = [*rows[:2], rows[2]._replace(number=1000)]
    assert (1000, "was written as entry 3: entries were moved") in tell(far, head)
    for edited in (rows[1]._replace(digest="0" * 64), rows[1]._replace(body="{}")):  # the third names it as it was
        assert (1000, "was written as entry 3: entries were moved") in tell([rows[0], edited, far[2]], head)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_canonically({"scale": number})
