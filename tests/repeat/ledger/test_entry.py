"""What an entry may hold, and how it is told: each part at its edge, and each that cannot be in a ledger refused."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import mechanism
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger.entry import (
    Entry,
    Head,
    Limit,
    ReleasedFile,
    Row,
    check_cohort,
    find_breaks,
    read_json,
    write_canonically,
)

PURE = Loss.pure(0.5)
TIME = "2024-03-31T12:00:00.000000+00:00"
COMMON = {"cohort": "everyone", "time": TIME, "cellrisk": "0.2.0"}
FILE = {"name": "a.csv", "sha256": "ab" * 32, "bytes": 12, "description": "ef" * 32}
BODIES: dict[str, dict[str, Any]] = {
    "cohort": {**COMMON, "kind": "cohort", "part_of": "all"},
    "limit": {**COMMON, "kind": "limit", "limit": {"epsilon": 2.0, "delta": 0.0, "method": "tightest"}},
    "release": {
        **COMMON,
        "kind": "release",
        "attribute": "job",
        "quasi_identifiers": ["age", "sex"],
        "loss": PURE.to_dict(),
        "purpose": "yearly\nreport",
        "file": FILE,
        "clock_behind": 1.5,
    },
}


def read(body: Any) -> Entry:
    return Entry.read(Row(3, "12" * 32, "34" * 32, json.dumps(body)))


def test_every_part_of_an_entry_is_read() -> None:
    release = read(BODIES["release"])
    assert release == Entry(
        number=3,
        time=TIME,
        kind="release",
        cohort="everyone",
        quasi_identifiers=("age", "sex"),
        attribute="job",
        loss=PURE,
        purpose="yearly\nreport",
        file=ReleasedFile("a.csv", "ab" * 32, 12, "ef" * 32),
        clock_behind=1.5,
        version="0.2.0",
        previous="12" * 32,
        digest="34" * 32,
        body=json.dumps(BODIES["release"]),
    )
    assert release.to_dict() == {"number": 3, "previous": "12" * 32, "digest": "34" * 32, **BODIES["release"]}
    assert release.file is not None
    assert release.file.to_dict() == FILE
    assert ReleasedFile("a", "ab" * 32, 0).to_dict() == {"name": "a", "sha256": "ab" * 32, "bytes": 0}
    assert read(BODIES["limit"]).limit == Limit(cohort="everyone", epsilon=2.0)
    cohort = read(BODIES["cohort"])
    assert (cohort.part_of, cohort.loss, cohort.file) == ("all", None, None)


WRONG: list[tuple[str, str, Any]] = [
    *[("release", name, value) for name in ("clock_behind",) for value in ("2", True, [2.0], 10**400)],
    *[(kind, "time", value) for kind in BODIES for value in (None, 5, "", "today", TIME[:-6], TIME.replace("T", " "))],
    *[(kind, "kind", value) for kind in BODIES for value in (None, 5, "", "releases", "x" * 201)],
    *[(kind, "cohort", value) for kind in BODIES for value in (None, 5, "", " a", "a\nb", "x" * 201)],
    *[(kind, "cellrisk", value) for kind in BODIES for value in (None, 5, "", "x" * 201)],
    *[("cohort", "part_of", value) for value in (5, "", " a", "x" * 201)],
    *[("release", "quasi_identifiers", value) for value in (None, "age", {"age": 1}, [5], [""], ["x" * 201])],
    *[("release", "attribute", value) for value in (5, "", "x" * 201)],
    *[("release", "loss", value) for value in (None, 5, {}, {"dp_definition": "pure"})],
    *[("release", "purpose", value) for value in (None, 5, "x" * 10_001, "a\0b")],
    *[("release", "file", value) for value in (5, {}, {**FILE, "bytes": -1}, {**FILE, "more": 1}, {"name": "a"})],
    *[("limit", "limit", value) for value in (None, 5, {}, {"epsilon": 0}, {"epsilon": 1, "method": "loosest"})],
]


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_of_which_one_part_cannot_be_is_refused(kind: str) -> None:
    for _, name, value in (wrong for wrong in WRONG if wrong[0] == kind):
        with pytest.raises(InvalidInput, match=r"^entry 3 of the ledger (cannot be read|has an unknown kind)"):
            read({**BODIES[kind], name: value})
    for name in ("time", "kind", "cohort", "cellrisk", *{"limit", "loss"}.intersection(BODIES[kind])):
        with pytest.raises(InvalidInput, match=r"^entry 3 of the ledger (cannot be read|has an unknown kind)"):
            read({key: value for key, value in BODIES[kind].items() if key != name})


def test_numbers_that_are_not_finite_are_refused() -> None:
    for text in ("1e999", "-1e999", "NaN", "Infinity"):
        body = json.dumps(BODIES["release"]).replace('"clock_behind": 1.5', f'"clock_behind": {text}')
        with pytest.raises(InvalidInput, match="entry 3 of the ledger cannot be read as an entry"):
            Entry.read(Row(3, "", "", body))
    with pytest.raises(InvalidInput, match=r"^the numbers in a ledger must be finite; got NaN"):
        read_json("NaN")


def test_a_text_of_json_that_could_not_be_kept_is_refused() -> None:
    assert read_json('{"a": "K\\u00f6ln"}') == {"a": "Köln"}
    with pytest.raises(InvalidInput, match=r"^the text holds half characters$"):
        read_json('{"a": "\\ud800"}')
    with pytest.raises(InvalidInput, match=r"^the text is nested too deeply$"):
        read_json("[" * 100_000)
    with pytest.raises(ValueError, match="Expecting value"):
        read_json("")


def test_an_entry_is_printed_in_full() -> None:
    assert str(read(BODIES["release"])) == (
        "Release of job by age, sex about cohort 'everyone' at 0.5-DP.\n\n"
        "entry       3\n"
        f"time        {TIME}\n"
        "cohort      everyone\n"
        "loss        0.5-DP\n"
        "neighbours  add-remove\n"
        "mechanism   not known\n"
        "purpose     yearly report\n"
        "file        a.csv\n"
        f"SHA-256     {'ab' * 32}\n"
        "clock       1.5 s behind the entry before\n"
        "written by  cellrisk 0.2.0\n"
        f"previous    {'12' * 32}\n"
        f"digest      {'34' * 32}"
    )
    plain = {**BODIES["release"], "purpose": "", "clock_behind": None}
    told = str(read({**plain, "loss": Loss.of(mechanism("laplace", epsilon=0.5)).to_dict()}))
    assert [line.split("  ")[0] for line in told.splitlines()[2:]] == [
        *("entry", "time", "cohort", "loss", "neighbours", "mechanism", "scale of the noise", "file", "SHA-256"),
        *("written by", "previous", "digest"),
    ]
    assert "\nmechanism           laplace\n" in told
    assert "\nfile                a.csv\n" in told
    assert str(read(BODIES["cohort"])) == (
        f"Cohort 'everyone', part of 'all'.\n\nentry       3\ntime        {TIME}\ncohort      everyone\n"
        f"written by  cellrisk 0.2.0\nprevious    {'12' * 32}\ndigest      {'34' * 32}"
    )


def test_names_of_cohorts() -> None:
    assert check_cohort("north and south") == "north and south"
    for name in (" a", "a ", "a\tb", "a\u200bb", "a\nb"):
        with pytest.raises(InvalidInput, match="must be printable, on one line, without spaces around it; got '"):
            check_cohort(name)


# The chain of digests, by hashlib alone: whatever is edited, deleted, inserted or moved is found.

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


def test_every_set_of_deleted_entries_is_found() -> None:
    rows, head = make_chain(5)
    for size in range(1, 6):
        for gone in itertools.combinations(range(1, 6), size):
            left = [row for row in rows if row.number not in gone]
            assert next(iter(find_breaks(left, head))).entry == gone[0]


@pytest.mark.parametrize("field", ["number", "previous", "digest", "body"])
@pytest.mark.parametrize("place", range(5))
def test_every_edit_is_found(field: str, place: int) -> None:
    rows, head = make_chain(5)
    rows[place] = rows[place]._replace(**{field: 9 if field == "number" else "ab" * 32})
    rows.sort()
    assert list(find_breaks(rows, head))


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
