"""What follows from entries, without a database: who is covered and limited, and what a verification finds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.repeat.accounting import composition
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import journals, verification
from cellrisk.repeat.ledger.chain import Head, Problem, Row, compute_digest, write_canonically
from cellrisk.repeat.ledger.entry import BookedTable, Cohort, Entry, Limit, ReleasedFile, Whereabouts
from cellrisk.repeat.ledger.limits import LedgerState, Reserved, find_undeclared
from cellrisk.repeat.ledger.store import DECIDED, RESERVED, Pending
from cellrisk.repeat.ledger.verification import Examined, Verification, compare_files, examine
from tests.near import near

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


def test_entries_about_cohorts_that_were_not_declared() -> None:
    entries = make_entries(("a",), ("b", "a"), ("c", "x"), ("d", pure(1.0)), ("a", None), ("b", pure(1.0)))
    assert [tuple(problem) for problem in find_undeclared(entries)] == [
        (3, "is about a cohort that is part of one never declared"),
        (4, "is about a cohort that was not declared before it"),
        (5, "declares a cohort that was declared before it"),
    ]
    with pytest.raises(InvalidInput) as refused:
        LedgerState(entries)
    assert str(refused.value) == (
        "the ledger is damaged: entry 3 is about a cohort that is part of one never declared; verify tells more"
    )
    with pytest.raises(InvalidInput) as refused:
        LedgerState(entries[:2], (Reserved("c", pure(1.0), True, "x"),))
    assert str(refused.value) == "the ledger is damaged: a reservation is part of no cohort; verify tells more"
    assert LedgerState(entries[:2], (Reserved("c", pure(1.0), True, "b"),)).announced == {"c": "b"}


def test_a_reservation_announces_its_cohort_until_that_is_declared() -> None:
    reserved = (Reserved("a", pure(1.0), True), Reserved("b", pure(1.0)), Reserved("c", pure(1.0), True, "a"))
    state = LedgerState(make_entries(("a",)), reserved)
    assert state.announced == {"c": "a"}
    assert state.declared == {"a": None}
    assert state.cohorts == (Cohort("a"),)
    with pytest.raises(
        InvalidInput, match=r"^cohort 'c' is only declared by a release that is not finished; try again"
    ):
        state.require("c")
    pending = Pending(TOKEN, RESERVED, {"cohort": "a", "loss": pure(0.5).to_dict(), "declares": True, "part_of": "b"})
    assert Reserved.of(pending) == Reserved("a", pure(0.5), True, "b")


def test_the_cohort_that_is_meant() -> None:
    none, one, two = (LedgerState(make_entries(*told)) for told in ((), (("a",),), (("a",), ("b",))))
    assert [state.choose_cohort("x", new) for state in (none, one, two) for new in (False, True)] == ["x"] * 6
    assert (none.choose_cohort(None), none.choose_cohort(None, True), one.choose_cohort(None)) == (
        *("everyone", "everyone", "a"),
    )
    for state, new, known in ((one, True, "a"), (two, False, "a, b"), (two, True, "a, b")):
        with pytest.raises(InvalidInput) as refused:
            state.choose_cohort(None, new)
        assert str(refused.value) == f"no cohort was named; allowed: {known}; name it: --cohort NAME"


def test_an_unknown_cohort_is_refused_with_the_nearest() -> None:
    declares = "new_cohort=True (--new-cohort) declares it: people that no other cohort covers"
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


def test_when_a_cohort_has_to_be_declared() -> None:
    empty, known = LedgerState(()), LedgerState(make_entries(("a",)))
    coming = LedgerState((), (Reserved("b", pure(1.0), True),))
    assert empty.find_declaration("x", False, None) == empty.find_declaration("x", True, None) == Cohort("x")
    assert coming.find_declaration("b", False, None) == Cohort("b")
    assert known.find_declaration("a", False, None) is None
    assert known.find_declaration("b", True, "a") == Cohort("b", "a")
    for state, name, new, part_of, message in (
        (
            known,
            "a",
            False,
            "a",
            r"^part_of is said when a cohort is declared; say new_cohort=True \(--new-cohort\) too$",
        ),
        (known, "A", True, None, r"^cohort 'a' is known already; leave new_cohort \(--new-cohort\) out$"),
        (coming, "b", True, None, "^cohort 'b' is known already"),
        (coming, "c", False, None, "^the ledger has no cohort 'c'"),
        (known, "b", True, "c", "^the ledger has no cohort 'c'"),
        (known, "b", False, None, "^the ledger has no cohort 'b'"),
        (known, " b", True, None, "must be printable"),
    ):
        with pytest.raises(CellriskError, match=message):
            state.find_declaration(name, new, part_of)


TREE = {"all": None, "north": "all", "south": "all", "city": "north", "town": "north", "island": None}


@pytest.mark.parametrize("announced", [(), ("city",), ("city", "town", "south"), tuple(TREE)[1:]])
def test_a_person_loses_what_was_released_on_all_that_they_are_in(announced: tuple[str, ...]) -> None:
    """By a plain walk over the people of each smallest cohort."""
    told: list[tuple[Any, ...]] = [(name, part_of) for name, part_of in TREE.items() if name not in announced]
    costs = {name: 2.0**power for power, name in enumerate(TREE)}
    told += [(name, pure(cost)) for name, cost in costs.items() if name not in announced]
    declared = {name for name in TREE if name not in announced}
    reserved = tuple(
        Reserved(name, pure(costs[name]), True, TREE[name] if TREE[name] in declared else None) for name in announced
    )
    state = LedgerState(make_entries(*told), reserved)
    part_of = {**TREE, **{each.cohort: each.part_of for each in reserved}}

    def walk(name: str | None) -> list[str]:
        return [] if name is None else [name, *walk(part_of[name])]

    for name in TREE:
        assert list(state.path(name)) == walk(name)
        assert sorted(loss.epsilon or 0 for loss in state.losses(name)) == sorted(costs[each] for each in walk(name))
        inside = [each for each in TREE if name in walk(each)]
        leaves = [each for each in inside if each not in part_of.values()]
        assert sorted(state.innermost(name)) == sorted(leaves)
        assert state.spend(name).epsilon == near(max(sum(costs[up] for up in walk(each)) for each in inside))


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


def test_what_keeps_a_limit_by_addition_is_not_composed_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tightest composition can take seconds; addition takes none."""
    asked: list[tuple[str, float | None, str | None]] = []

    def compose(losses: Any, *, operator: Any, delta: Any, flavour: Any) -> Any:
        asked.append((operator, delta, flavour))
        if flavour == "pure" and any(loss.flavour != "pure" for loss in losses):
            raise InvalidInput("no such epsilon")
        return SimpleNamespace(epsilon=sum(loss.epsilon for loss in losses))

    monkeypatch.setattr(composition, "compose", compose)
    limit = Limit(cohort="a", epsilon=1.0, delta=1e-6)
    state = LedgerState(make_entries(("a",), (limit,), ("b",), ("b", pure(9.0))))
    state.check_release(Cohort("a"), pure(1.0))
    assert asked == [("basic", 1e-6, "approximate")]
    asked.clear()
    with pytest.raises(InvalidInput, match="would exceed the limit"):
        state.check_release(Cohort("a"), pure(1.5))
    assert asked == [("basic", 1e-6, "approximate"), ("tightest", 1e-6, "approximate")]
    asked.clear()
    exact = LedgerState(make_entries(("a",), ("a", pure(1.0))))
    exact.check_limit(Limit(cohort="a", epsilon=1.0, operator="basic"))
    assert asked == [("basic", 0.0, "pure")]
    asked.clear()
    approximate = Loss.approximate(0.1, 1e-9)
    with pytest.raises(InvalidInput, match=r"^the limit of cohort 'a' cannot be kept: no such epsilon$"):
        LedgerState(make_entries(("a",), ("a", approximate))).check_limit(Limit(cohort="a", epsilon=5.0))
    assert asked == [("basic", 0.0, "pure"), ("tightest", 0.0, "pure")]


def test_each_case_is_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many cohorts whose people have lost the same cost no more than one."""
    asked: list[int] = []
    real = composition.compose
    monkeypatch.setattr(
        composition, "compose", lambda losses, **more: (asked.append(len(losses)), real(losses, **more))[1]
    )
    limit = Limit(cohort="all", epsilon=3.0)
    parts = [(f"part {number}", "all") for number in range(5)]
    state = LedgerState(make_entries(("all",), (limit,), *parts, ("all", pure(1.0)), ("part 3", pure(1.0))))
    state.check_release(Cohort("all"), pure(1.0))
    assert sorted(asked) == [2, 3]
    asked.clear()
    assert state.spend("all").epsilon == 2.0
    assert sorted(asked) == [1, 2]


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


class Told:
    """An open ledger, as far as it is asked."""

    def __init__(self, rows: list[Row], **told: Any) -> None:
        self.rows = rows
        number, digest = (rows[-1].number, rows[-1].digest) if rows else (0, ID)
        self.head = Head(ID, 3, "", number, digest)
        self.written: dict[int, Whereabouts] = told.get("written", {})
        self.flaws: list[str] = told.get("flaws", [])
        self.pendings: tuple[list[Pending], list[str]] = told.get("pendings", ([], []))
        self.faults: list[str] = told.get("faults", [])

    def rescue_rows(self) -> tuple[list[Row], frozenset[int]]:
        return self.rows, frozenset()

    def whereabouts(self) -> dict[int, Whereabouts]:
        return self.written

    def examine_pendings(self) -> tuple[list[Pending], list[str]]:
        return self.pendings

    def find_faults(self) -> list[str]:
        return self.faults


def look(rows: list[Row], noted: Any = None, heads: Any = (), **told: Any) -> Examined:
    session: Any = Told(rows, **told)
    return examine(session, noted, heads)


COHORT: dict[str, Any] = {"kind": "cohort"}
RELEASE: dict[str, Any] = {"kind": "release", "attribute": "job", "loss": pure(0.5).to_dict()}


def release_with_file(place: str | None = None) -> dict[str, Any]:
    file = {"name": "a.csv", "sha256": "ab" * 32, "bytes": 5, **({} if place is None else {"place": place})}
    return {**RELEASE, "file": file}


def test_a_whole_ledger_is_told_as_it_is() -> None:
    written = {2: Whereabouts("/out/a.csv", "salt")}
    examined = look(write_rows(COHORT, release_with_file(written[2].digest)), written=written)
    assert examined.found == Verification(ID, 2, examined.entries[-1].digest, (), ())
    assert [entry.file and entry.file.path for entry in examined.entries] == [None, "/out/a.csv"]
    assert examined.decided == ()
    assert look([]).found == Verification(ID, 0, ID, (), ())


def test_all_that_is_wrong_is_told_in_the_order_of_the_entries() -> None:
    """What hits no entry comes first, whatever was found first."""
    rows = write_rows(COHORT, RELEASE, {**RELEASE, "kind": "strange"})
    rows[0] = rows[0]._replace(body="{}")
    found = look(rows, flaws=["a flaw"], faults=["a fault"], pendings=([], ["a reservation"]), noted="0" * 64).found
    assert [tuple(problem) for problem in found.problems] == [
        (None, "a flaw"),
        (None, "a reservation"),
        (None, "no entry has the digest that was noted elsewhere: the ledger was rewritten"),
        (None, "the file of the ledger is damaged: a fault"),
        (1, "does not match its digest: it was edited"),
        (3, "holds nothing that can be read as an entry"),
    ]
    assert found.n_entries == 3


def test_cohorts_are_looked_at_where_all_entries_are_there() -> None:
    assert [tuple(problem) for problem in look(write_rows(RELEASE)).found.problems] == [
        (1, "is about a cohort that was not declared before it")
    ]
    rows = write_rows(COHORT, RELEASE)
    assert [tuple(problem) for problem in look(rows[1:]).found.problems] == [(1, "is missing: it was deleted")]


def test_notes_of_where_files_are_belong_to_their_entries() -> None:
    right, wrong = Whereabouts("/out/a.csv", "salt"), Whereabouts("/out/b.csv", "salt")
    rows = write_rows(COHORT, release_with_file(right.digest), release_with_file())
    edited = (2, "the note of where its file was written was edited or removed")
    alone = "a note of where a file was written belongs to no entry (number {})"
    for written, told in (
        ({2: right}, []),
        ({}, [edited]),
        ({2: wrong}, [edited]),
        ({2: right, 9: right, 3: right, 1: right}, [(None, alone.format(number)) for number in (1, 3, 9)]),
    ):
        assert [tuple(problem) for problem in look(rows, written=written).found.problems] == told


def pend(token: str = TOKEN, state: str = RESERVED, **body: Any) -> Pending:
    told = {"cohort": "a", "part_of": None, "declares": False, "host": "h\nere", "since": TIME}
    return Pending(token, state, {**told, "loss": pure(1.0).to_dict(), **body})


def test_reservations_that_do_not_fit() -> None:
    rows = write_rows(COHORT, release_with_file(), RELEASE, {**COHORT, "cohort": "c"})
    name = f"reservation {TOKEN}"
    part = f"{name} is about a cohort that is part of one never declared"
    never = f"{name} is about a cohort that was never declared"
    gone = f"{name} is decided, and its entry is not there, or another names it too"
    for pendings, told in (
        ([pend()], []),
        ([pend(cohort="c", part_of="c")], []),
        ([pend(part_of="a", cohort="b", declares=True)], []),
        ([pend(part_of="x", cohort="b", declares=True)], [part]),
        ([pend(cohort="b")], [never]),
        ([pend(cohort="b", part_of="x")], [part, never]),
        ([pend(state=DECIDED, entry=2)], []),
        ([pend(state=DECIDED, entry=3)], [gone]),
        ([pend(state=DECIDED)], [gone]),
        ([pend(state=DECIDED, entry=9)], [gone]),
        ([pend(state=DECIDED, entry=2), pend(state=DECIDED, entry=2)], [gone]),
    ):
        examined = look(rows, pendings=(pendings, []))
        assert [tuple(problem) for problem in examined.found.problems] == [(None, text) for text in told]
        assert examined.decided == tuple(each for each in pendings if each.entry is not None)


def test_reservations_are_remarked_with_what_ends_them(state: Path) -> None:
    def remark(**body: Any) -> str:
        ((entry, text),) = look(write_rows(COHORT, release_with_file()), pendings=([pend(**body)], [])).found.remarks
        assert entry is None
        return text

    start = f"reservation {TOKEN} is being written since {TIME} on h ere: "
    assert remark() == f"{start}reserved, and counts as spent; its journal is not here: ledger abandon gives it up"
    journal = journals.open_journal(ID, TOKEN, 0)
    assert remark() == f"{start}reserved, and counts as spent"
    assert remark(state=DECIDED, entry=2) == f"{start}decided, its file not yet in place"
    journal.close()
    dead = "; its process is dead: ledger settle ends it, and so does the next write"
    assert remark() == f"{start}reserved, and counts as spent{dead}"


def test_clocks_and_heads_are_remarked() -> None:
    rows = write_rows(COHORT, {**RELEASE, "clock_behind": 1.5}, RELEASE)
    clock = (2, "the clock was 1.5 s behind the entry before")

    def remark(**told: Any) -> list[tuple[int | None, str]]:
        found = look(rows, **told).found
        assert found.ok
        assert found.remarks[0] == clock
        return [tuple(each) for each in found.remarks[1:]]

    assert remark() == remark(noted=f" {rows[2].digest.upper()}\n") == []
    assert remark(noted=rows[0].digest) == [(1, "has the digest that was noted elsewhere; 2 came after it")]
    assert remark(noted=ID) == [(0, "has the digest that was noted elsewhere; 3 came after it")]

    def head(number: int | None, fault: str = "") -> Any:
        last = None if number is None else (number, "")
        return SimpleNamespace(compare=lambda session: fault, last=lambda identity: last if identity == ID else None)

    last = "is the last that the file of the head notes; {} came after"
    assert remark(heads=[head(3)]) == remark(heads=[head(None)]) == []
    assert remark(heads=[head(2), head(2)]) == [(2, last.format(1))]
    assert remark(heads=[head(0), head(1)]) == [(None, last.format(3)), (1, last.format(2))]
    faulty = look(rows, heads=[head(2, "a fault"), head(2, "a fault"), head(1, "another")]).found
    assert [tuple(problem) for problem in faulty.problems] == [(None, "a fault"), (None, "another")]
    assert [tuple(remark) for remark in faulty.remarks] == [clock]
    for noted in ("", "ab", "g" * 64, 5, "0" * 33):
        with pytest.raises(
            InvalidInput, match=r"^a digest is 64 hexadecimal digits; take it from what verify or show prints$"
        ):
            look(rows, noted=noted)


# Files.


def add_file(path: Path, number: int, content: bytes = b"1,2\n", **more: Any) -> Entry:
    path.write_bytes(content)
    file = ReleasedFile(path.name, str(path), hashlib.sha256(content).hexdigest(), len(content), **more.pop("file", {}))
    return Entry(number=number, digest=f"{number:064x}", time=TIME, kind="release", cohort="a", file=file, **more)


def compare(*entries: Entry, decided: Any = (), folders: Any = (), own: Any = ()) -> tuple[list[Any], list[Any]]:
    found = compare_files(Examined(make_verification(), entries, tuple(decided)), folders, lambda path: path in own)
    return [tuple(problem) for problem in found.problems], [tuple(remark) for remark in found.remarks]


def test_files_are_compared_with_their_entries(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    entry = add_file(path, 2)
    without = Entry(number=1, time=TIME, kind="cohort", cohort="a")
    changed = (2, "its file a.csv is not what was released: it was changed")
    assert compare(without, entry) == ([], [])
    assert compare(entry, own=[path]) == ([], [(2, "its file a.csv cannot be read")])
    for content in (b"1,3\n", b"1,2\n\n", b""):
        path.write_bytes(content)
        assert compare(without, entry) == ([changed], [])
    path.unlink()
    assert compare(entry) == ([], [(2, "its file a.csv is not where it was written")])
    path.mkdir()
    assert compare(entry) == ([], [(2, "its file a.csv cannot be read")])
    path.rmdir()
    again = add_file(path, 3)
    later = add_file(tmp_path / "b.csv", 4)
    assert compare(entry, again, later) == ([], [(2, "its file a.csv was replaced by entry 3")])


def test_paths_that_are_not_asked_for() -> None:
    for path in (None, "", "a.csv", "//server/a.csv", "\\\\server\\a.csv", "/a\0b"):
        file = ReleasedFile("a.csv", path, "ab" * 32, 5)
        entry = Entry(number=2, time=TIME, kind="release", cohort="a", file=file)
        assert compare(entry) == ([], [(2, "where its file a.csv was written is not known")])
    file = ReleasedFile("a.csv", f"/{'x' * 300}", "ab" * 32, 5)  # longer than any name of a file
    entry = Entry(number=2, time=TIME, kind="release", cohort="a", file=file)
    assert compare(entry) == ([], [(2, "its file a.csv is not where it was written")])


def describe(identity: str, number: int, digest: str) -> str:
    named = {"id": identity, "entry": number, "digest": digest}
    return json.dumps({"sentence": "s", "ledger": named}, indent=2) + "\n"


PLAIN = hashlib.sha256(b'{\n  "sentence": "s"\n}\n').hexdigest()


def test_a_description_is_compared_where_the_file_or_it_is_there(tmp_path: Path) -> None:
    path, beside = tmp_path / "a.csv", tmp_path / "a.csv.json"
    entry = add_file(path, 2, file={"description": PLAIN})
    text = describe(ID, 2, entry.digest)
    beside.write_text(text)
    assert compare(entry) == ([], [])
    beside.unlink()
    deleted = (2, "the description a.csv.json of its file is not there, or cannot be read: it was deleted")
    assert compare(entry) == ([deleted], [])
    path.unlink()
    gone = (2, "its file a.csv is not where it was written")
    assert compare(entry) == ([], [gone])
    beside.write_text(text.replace("s", "t", 1))
    changed = (2, "the description a.csv.json of its file is not what was released: it was changed")
    assert compare(entry) == ([changed], [gone])
    beside.write_text(describe(ID, 3, "0" * 64))
    lost = "the ledger lacks entry 3, which the description of a.csv names: it is older than that release, restored "
    assert compare(entry) == ([(None, f"{lost}from a copy, or it was rewritten"), changed], [gone])


def test_the_tables_of_a_set_are_compared_where_the_list_of_them_is_sound(tmp_path: Path) -> None:
    """The list has the digests of the tables: where it was changed itself, they say nothing."""
    table = tmp_path / "t.csv"
    table.write_bytes(b"3,4\n")
    listed = {"file": "t.csv", "sha256": hashlib.sha256(b"3,4\n").hexdigest(), "description": PLAIN}
    content = json.dumps({"tables": [listed]}).encode()
    entry = add_file(tmp_path / "set.json", 2, content, tables=(BookedTable(("age",), pure(1.0)),))
    (tmp_path / "t.csv.json").write_text(describe(ID, 2, entry.digest))
    assert compare(entry) == ([], [])
    table.write_bytes(b"3,5\n")
    told = (2, "its file t.csv is not what was released: it was changed")
    assert compare(entry) == ([told], [])
    (tmp_path / "set.json").write_bytes(content + b" ")
    assert compare(entry) == ([(2, "its file set.json is not what was released: it was changed")], [])
    (tmp_path / "set.json").write_bytes(content)
    alone = Entry(number=2, time=TIME, kind="release", cohort="a", digest=entry.digest, file=entry.file)
    assert compare(alone) == ([], [])


def test_lost_entries_are_looked_for_beside_files_and_in_folders(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    entry = add_file(tmp_path / "one" / "a.csv", 2)
    for folder in ("one", "two"):
        (tmp_path / folder / f"{folder}.csv.json").write_text(describe(ID, 7, "0" * 64))
        (tmp_path / folder / "known.csv.json").write_text(describe(ID, 2, entry.digest))
    for folders, names in (((), ["one"]), ((tmp_path / "two",), ["one", "two"])):
        problems, _ = compare(entry, folders=folders)
        assert [text.split()[9] for _, text in problems] == [f"{name}.csv" for name in names]


def test_a_file_on_its_way_is_not_blamed_by_the_word_of_its_journal(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "a.csv"
    entry = add_file(path, 2)
    path.unlink()
    pending = pend(state=DECIDED, entry=2)
    gone = (2, "its file a.csv is not where it was written")
    assert compare(entry, decided=[pending]) == ([], [gone])
    journal = journals.open_journal(ID, TOKEN, 0)
    assert compare(entry, decided=[pending]) == ([], [])
    other = add_file(tmp_path / "b.csv", 3)
    (tmp_path / "b.csv").write_bytes(b"")
    changed = (3, "its file b.csv is not what was released: it was changed")
    assert compare(entry, other, decided=[pending]) == ([changed], [])
    assert compare(entry, decided=[pend(state=DECIDED, entry=3)]) == ([], [gone])
    journal.close()
    assert compare(entry, decided=[pending]) == ([], [gone])
    (staged, *_) = verification.staged_at(path, TOKEN).new
    staged.touch()
    assert compare(entry, decided=[pending]) == ([], [])
    nowhere = Entry(number=2, time=TIME, kind="release", cohort="a", file=ReleasedFile("a.csv", None, "ab" * 32, 5))
    assert compare(nowhere, decided=[pending]) == ([], [(2, "where its file a.csv was written is not known")])
    assert verification._is_on_its_way(ID, pending, None) is False
