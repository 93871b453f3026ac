"""What follows from entries, without a database: who is covered and limited, and what a verification finds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger.chain import Problem, Row, compute_digest, write_canonically
from cellrisk.repeat.ledger.entry import Cohort, Entry, Limit, ReleasedFile
from cellrisk.repeat.ledger.limits import LedgerState
from cellrisk.repeat.ledger.verification import Verification

ID, TOKEN = "7f" * 16, "1b" * 16
TIME = "2024-03-31T12:00:00.000000+00:00"


def pure(epsilon: float) -> Loss:
    return Loss.pure(epsilon)


def make_entries(*told: tuple[Any, ...]) -> tuple[Entry, ...]:
    """A cohort and what it is part of; a cohort and a loss; or a limit."""
    entries = []
    for number, (what, *rest) in enumerate(told, start=1):
        fields: dict[str, Any] = {"number": number, "time": TIME}
        if isinstance(what, Limit):
            fields |= {"kind": "limit", "cohort": what.cohort, "limit": what}
        elif rest and isinstance(rest[0], Loss):
            fields |= {"kind": "release", "cohort": what, "loss": rest[0]}
        else:
            fields |= {"kind": "cohort", "cohort": what, "part_of": rest[0] if rest else None}
        entries.append(Entry(**fields))
    return tuple(entries)


# Cohorts.


def test_the_cohort_that_is_meant() -> None:
    none, one, two = (LedgerState(make_entries(*told)) for told in ((), (("a",),), (("a",), ("b",))))
    assert [state.choose_cohort("x", new) for state in (none, one, two) for new in (False, True)] == ["x"] * 6
    assert (none.choose_cohort(None), none.choose_cohort(None, True), one.choose_cohort(None)) == (
        *("everyone", "everyone", "a"),
    )
    for state, new, known in ((one, True, "a"), (two, False, "a, b"), (two, True, "a, b")):
        with pytest.raises(InvalidInput) as refused:
            state.choose_cohort(None, new)
        assert str(refused.value) == f"no cohort was named; allowed: {known}; name it: cohort='a'"


def test_an_unknown_cohort_is_refused_with_the_nearest() -> None:
    declares = "new_cohort=True declares it: people that no other cohort covers"
    for names, asked, told in (
        ([], "north", f"; {declares}"),
        (["north"], "North", f"; allowed: north; did you mean 'north'? {declares}"),
        (["north"], "nort", f"; allowed: north; did you mean 'north'? {declares}"),
        (["north"], "xyz", f"; allowed: north; {declares}"),
        (
            ["xNORTH", "north", "n o r t h"],
            "NORTH",
            f"; allowed: xNORTH, north, n o r t h; did you mean 'north'? {declares}",
        ),
        ([str(n) for n in range(20)], "x", f"; allowed: {', '.join(map(str, range(20)))}; {declares}"),
        ([str(n) for n in range(22)], "x", f"; allowed: {', '.join(map(str, range(20)))} and 2 more; {declares}"),
    ):
        state = LedgerState(make_entries(*((name,) for name in names)))
        with pytest.raises(UnknownName) as refused:
            state.require(asked)
        assert str(refused.value) == f"the ledger has no cohort '{asked}'{told}"
    assert LedgerState(make_entries(("north",))).require("north") == "north"


TREE = {"all": None, "north": "all", "south": "all", "city": "north", "town": "north", "island": None}


def test_a_release_on_a_new_cohort_is_limited_by_those_around_it() -> None:
    entries = make_entries(("all", None), (Limit(cohort="all", epsilon=1.0),), ("all", pure(0.5)), ("in", "all"))
    state = LedgerState(entries)
    for cohort in (Cohort("all"), Cohort("in", "all"), Cohort("new", "all")):
        state.check_release(cohort, pure(0.5))
        with pytest.raises(InvalidInput) as refused:
            state.check_release(cohort, pure(0.6))
        assert str(refused.value) == (
            "the release would exceed the limit of cohort 'all'; got epsilon 1.1 in all; "
            "allowed: at most epsilon 1 for each person of 'all'"
        )
    state.check_release(Cohort("elsewhere"), pure(5.0))
    state.check_limit(Limit(cohort="all", epsilon=0.5))
    with pytest.raises(InvalidInput) as refused:
        state.check_limit(Limit(cohort="all", epsilon=0.4))
    assert str(refused.value) == (
        "cohort 'all' has spent more than that limit; got epsilon 0.5 in all; "
        "allowed: at most epsilon 0.4 for each person of 'all'"
    )


# Verifications.


def make_verification(problems: Any = (), remarks: Any = (), n_entries: int = 1) -> Verification:
    return Verification(ID, n_entries, "ab" * 32, tuple(problems), tuple(remarks))


def test_a_verification_in_words() -> None:
    assert make_verification().headline == (
        f"The ledger is whole: 1 entry, each as it was written, the last digest {'ab' * 32}."
    )
    found = make_verification([Problem(None, "one"), Problem(12, "two")], [Problem(3, "a remark")], 12)
    assert (found.ok, make_verification(remarks=[Problem(1, "a")]).ok) == (False, True)
    assert found.headline == "The ledger is NOT as it was written: 2 problems in 12 entries."
    assert found._paragraphs() == ["entry  problem\n-      one\n12     two", "entry  remark\n3      a remark"]
    assert make_verification()._paragraphs() == []
    assert str(found).endswith("\n\nentry  problem\n-      one\n12     two\n\nentry  remark\n3      a remark")
    assert found.to_dict()["problems"] == [{"entry": None, "text": "one"}, {"entry": 12, "text": "two"}]
    assert found.to_dict()["remarks"] == [{"entry": 3, "text": "a remark"}]
    frame = found.to_frame()
    assert list(frame["kind"]) == ["problem", "problem", "remark"]
    assert frame["entry"].fillna(-1).tolist() == [-1, 12, 3]


def write_rows(*bodies: dict[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for number, body in enumerate(bodies, start=1):
        previous = rows[-1].digest if rows else ID
        text = write_canonically({"time": TIME, "cellrisk": "0.2.0", "cohort": "a", **body})
        rows.append(Row(number, previous, compute_digest(number, previous, text), text))
    return rows


COHORT: dict[str, Any] = {"kind": "cohort"}
RELEASE: dict[str, Any] = {"kind": "release", "attribute": "job", "loss": pure(0.5).to_dict()}


def release_with_file(place: str | None = None) -> dict[str, Any]:
    file = {"name": "a.csv", "sha256": "ab" * 32, "bytes": 5, **({} if place is None else {"place": place})}
    return {**RELEASE, "file": file}


# Files.


def add_file(path: Path, number: int, content: bytes = b"1,2\n", **more: Any) -> Entry:
    path.write_bytes(content)
    file = ReleasedFile(path.name, str(path), hashlib.sha256(content).hexdigest(), len(content), **more.pop("file", {}))
    return Entry(number=number, digest=f"{number:064x}", time=TIME, kind="release", cohort="a", file=file, **more)


def describe(identity: str, number: int, digest: str) -> str:
    named = {"id": identity, "entry": number, "digest": digest}
    return json.dumps({"sentence": "s", "ledger": named}, indent=2) + "\n"


PLAIN = hashlib.sha256(b'{\n  "sentence": "s"\n}\n').hexdigest()
