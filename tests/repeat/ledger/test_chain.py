"""The chain of digests, by hashlib alone: whatever is edited, deleted, inserted or moved is found."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger.chain import Head, Row, check_links, find_breaks, write_canonically

ID = "7f" * 16


def make_chain(length: int) -> tuple[list[Row], Head]:
    rows: list[Row] = []
    for number in range(1, length + 1):
        previous, body = rows[-1].digest if rows else ID, f'{{"n":{number}}}'
        digest = hashlib.sha256(f"{number}\n{previous}\n{body}".encode()).hexdigest()
        rows.append(Row(number, previous, digest, body))
    return rows, Head(ID, "", length, rows[-1].digest if rows else ID)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_whole_chain_has_no_problem(length: int) -> None:
    rows, head = make_chain(length)
    assert list(find_breaks(rows, head)) == []
    check_links(rows, 0, ID, head)


def test_every_set_of_deleted_entries_is_found() -> None:
    rows, head = make_chain(5)
    for size in range(1, 6):
        for gone in itertools.combinations(range(1, 6), size):
            left = [row for row in rows if row.number not in gone]
            assert next(iter(find_breaks(left, head))).entry == gone[0]
            with pytest.raises(InvalidInput, match="damaged or was changed"):
                check_links(left, 0, ID, head)


@pytest.mark.parametrize("field", ["number", "previous", "digest", "body"])
@pytest.mark.parametrize("place", range(5))
def test_every_edit_is_found(field: str, place: int) -> None:
    rows, head = make_chain(5)
    rows[place] = rows[place]._replace(**{field: 9 if field == "number" else "ab" * 32})
    rows.sort()
    assert list(find_breaks(rows, head))
    with pytest.raises(InvalidInput, match="damaged or was changed"):
        check_links(rows, 0, ID, head)


def test_every_order_of_the_bodies_is_found() -> None:
    rows, head = make_chain(4)
    for order in itertools.permutations(range(4)):
        moved = [rows[place]._replace(number=number) for number, place in enumerate(order, start=1)]
        assert (list(find_breaks(moved, head)) == []) == (order == (0, 1, 2, 3))


@pytest.mark.parametrize("head", [(5, "ab" * 32), (4, None), (6, None)])
def test_a_changed_note_of_the_last_entry_is_found(head: tuple[int, str | None]) -> None:
    rows, true = make_chain(5)
    assert list(find_breaks(rows, true._replace(number=head[0], digest=head[1] or true.digest)))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_only_finite_numbers_are_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_canonically({"epsilon": number})
