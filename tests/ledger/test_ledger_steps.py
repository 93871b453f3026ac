"""Each step of reading, writing and ending a release by itself: what is read again, who is told what, what is left."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.publish.releasing import Release
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger, book, journals, pairing, store
from cellrisk.repeat.ledger.chain import Head, Problem, Row
from cellrisk.repeat.ledger.entry import BookedTable, Entry, Whereabouts
from cellrisk.repeat.ledger.journals import Note
from cellrisk.repeat.ledger.limits import LedgerState
from cellrisk.repeat.ledger.pairing import Reservation
from cellrisk.repeat.ledger.store import DECIDED, RESERVED, Pending, Session, Store
from cellrisk.system import stopping
from tests.ledger.conftest import Where
from tests.ledger.deaths import FIELDS

TOKEN = "1b" * 16
LOSS = Loss.pure(0.5)


# Reading.


def test_entries_that_were_read_are_not_read_again(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int | None]] = []
    for name in ("rows", "whereabouts"):
        real = getattr(Session, name)

        def ask(session: Session, start: int | None = None, name: str = name, real: Any = real) -> Any:
            asked.append((name, start))
            return real(session, start)

        monkeypatch.setattr(Session, name, ask)
    with in_file.open() as ledger, in_file.open() as other:
        other.declare("a")
        asked.clear()
        assert len(ledger.entries()) == 1
        assert len(ledger.entries()) == 1
        assert asked == [("rows", 1), ("whereabouts", 1), ("rows", 2)]  # nothing new has no files either
        other.declare("b")
        other.declare("c")
        asked.clear()
        assert [entry.cohort for entry in ledger.entries()] == ["a", "b", "c"]
        assert asked == [("rows", 2), ("whereabouts", 2)]
        asked.clear()
        assert len(ledger.entries()) == 3
        assert asked == [("rows", 4)]


def test_a_ledger_that_was_rewritten_at_the_same_length_is_read_anew(in_file: Where) -> None:
    assert in_file.file is not None
    with in_file.open() as ledger:
        ledger.declare("a")
        before = in_file.file.read_bytes()
        ledger.declare("b")
        kept = in_file.file.read_bytes()
        in_file.file.write_bytes(before)
        with in_file.open() as other:
            other.declare("c")
        assert [entry.cohort for entry in ledger.entries()] == ["a", "c"]
        in_file.file.write_bytes(kept)
        assert [entry.cohort for entry in ledger.entries()] == ["a", "b"]
        in_file.file.write_bytes(before)
        assert [entry.cohort for entry in ledger.entries()] == ["a"]


def test_where_files_are_is_read_with_their_entries(in_file: Where, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    with in_file.open() as ledger, in_file.open() as other:
        other.add(**FIELDS, file=tmp_path / "a.csv")
        assert len(ledger.entries()) == 2
        other.add(**FIELDS, file=tmp_path / "a.csv")
        assert [entry.file and entry.file.path for entry in ledger.entries()] == [
            *(None, str(tmp_path / "a.csv"), str(tmp_path / "a.csv")),
        ]
        assert [entry.number for entry in ledger.entries("everyone", "release")] == [2, 3]


def test_who_looks_while_files_are_moved_waits_until_the_time_is_over(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment, slept = [10.0], []
    clock = SimpleNamespace(monotonic=lambda: moment[0], sleep=slept.append)
    monkeypatch.setattr(book, "time", clock)
    alive = {"one"}
    monkeypatch.setattr(book, "is_alive", lambda identity, token: identity == ledger.id and token in alive)
    decided, reserved = Pending("one", DECIDED, {}), Pending("one", RESERVED, {})
    with in_file.open() as ledger:
        assert ledger._await_moves([decided], 10.5) is True
        assert ledger._await_moves([reserved, decided], 10.5) is True
        assert ledger._await_moves([decided], 10.0) is True
        assert slept == [journals.PAUSE] * 3
        moment[0] = 10.6
        assert ledger._await_moves([decided], 10.5) is False
        moment[0] = 10.0
        for nobody in ([], [reserved], [Pending("dead", DECIDED, {})]):
            assert ledger._await_moves(nobody, 10.5) is False
        assert len(slept) == 3


def test_a_verification_looks_again_where_the_ledger_has_grown_meanwhile(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be replaced, and its entry written, while files are read: that is no change behind anybody's back."""
    looks: list[int] = []
    grows: list[str] = []

    def compare(examined: Any, folders: Any, is_ledger: Any) -> Any:
        looks.append(examined.found.n_entries)
        if grows:
            other.declare(grows.pop())
        problems = (Problem(1, "changed"),) if examined.found.n_entries < 4 else ()
        return SimpleNamespace(ok=not problems, head=examined.found.head, problems=problems)

    monkeypatch.setattr(book, "compare_files", compare)
    with in_file.open() as ledger, in_file.open() as other:
        ledger.declare("a")
        assert not ledger.verify().ok
        assert looks == [1]  # nothing has grown: it is so
        looks.clear()
        grows += ["d", "c", "b"]
        assert ledger.verify().ok
        assert looks == [1, 2, 3, 4]
        looks.clear()
        grows += ["e"]
        assert ledger.verify().ok  # what is whole is not doubted
        assert looks == [4]
        assert ledger.verify(files=False).ok
        assert looks == [4]


def test_a_verification_of_a_ledger_that_grows_and_grows_ends(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def compare(examined: Any, folders: Any, is_ledger: Any) -> Any:
        looks.append(examined.found.n_entries)
        other.declare(f"cohort {len(looks)}")
        return SimpleNamespace(ok=False, head=examined.found.head)

    monkeypatch.setattr(book, "compare_files", compare)
    monkeypatch.setattr(book, "MOST_LOOKS", 3)
    with in_file.open() as ledger, in_file.open() as other:
        assert not ledger.verify().ok
        assert looks == [0, 1, 2]


def test_a_ledger_that_is_not_whole_in_itself_is_looked_at_once(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    real = book.examine
    monkeypatch.setattr(book, "examine", lambda *given: (looks.append(1), real(*given))[1])
    with in_file.open() as ledger:
        ledger.declare("a")
        in_file.execute("CREATE VIEW more AS SELECT 1")
        assert not ledger.verify().ok
        assert looks == [1]


def test_who_reads_can_change_nothing(in_file: Where) -> None:
    with in_file.open() as ledger:
        ledger.declare("a")
        for statement in ("UPDATE ledger SET number = 0", "DELETE FROM pending", "CREATE TABLE more (x)"):
            with ledger._store.read() as session, pytest.raises(sa.exc.OperationalError, match="readonly"):
                session.connection.exec_driver_sql(statement)


def test_entries_that_were_edited_are_not_read(in_file: Where) -> None:
    with in_file.open() as ledger, in_file.open() as other:
        ledger.declare("a")
        assert len(other.entries()) == 1
        ledger.declare("b")
        in_file.disarm()
        in_file.execute("UPDATE entries SET body = replace(body, '\"b\"', '\"c\"') WHERE number = 2")
        in_file.arm()
        with in_file.open() as new:
            for reader in (other, new):  # who knows the first entry, and who knows none
                with pytest.raises(
                    InvalidInput, match=r"^the ledger is damaged or was changed at entry 2; verify tells"
                ):
                    reader.entries()
                with pytest.raises(
                    InvalidInput, match=r"^the ledger is damaged or was changed at entry 2; verify tells"
                ):
                    reader.add(**FIELDS, cohort="a")


def test_how_long_who_reads_waits_for_files_that_are_moved(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines: list[float] = []
    monkeypatch.setattr(book, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(Ledger, "_await_moves", lambda ledger, pendings, deadline: deadlines.append(deadline))
    with in_file.open(wait=7.0) as ledger:
        ledger.entries()
        ledger.verify()
    assert deadlines == [107.0, 107.0]


# Stopping.


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def test_who_is_stopped_before_anything_is_written_is_told_nothing(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        ledger.declare("everyone")
        for owner, name in ((Store, "write"), (LedgerState, "check_release"), (Session, "pendings")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, stop)
                with pytest.raises(KeyboardInterrupt) as stopped:
                    ledger.add(**FIELDS)
            assert stopped.value.args == ()
        assert len(ledger.entries()) == 1


def write_and_stop(ledger: Ledger, stopped: BaseException) -> None:
    with ledger._writing() as (session, _):
        ledger._append(session, "cohort", "a", part_of=None)
        raise stopped


def test_who_is_stopped_after_an_entry_is_told_whether_it_stands(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is asked; what somebody has said already is not said otherwise."""
    with in_file.open() as ledger:
        for answer, told in ((True, "entry 1 of the ledger stands"), (False, ""), (None, stopping.NOT_KNOWN)):
            with monkeypatch.context() as patch:
                patch.setattr(Store, "has_entry", lambda store, number, digest, answer=answer: answer)
                with pytest.raises(KeyboardInterrupt) as stopped:
                    write_and_stop(ledger, KeyboardInterrupt())
            assert str(stopped.value) == told
        with pytest.raises(KeyboardInterrupt, match=r"^said before$"):
            write_and_stop(ledger, KeyboardInterrupt("said before"))
        assert ledger.entries() == ()


def test_what_stands_is_noted_once_it_is_written(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(book, "note_outcome", noted.append)
    with in_file.open() as ledger:
        place = str(in_file.file)
        with ledger._writing():
            pass
        ledger.declare("a")
        assert noted == [f"the new ledger stands, and is empty: {place}", "entry 1 of the ledger stands"]
        noted.clear()
        ledger.remove_unused()
        assert noted == []  # it is in use
    with in_file.open() as ledger:
        assert noted == []
    assert in_file.file is not None
    in_file.file.unlink()
    with in_file.open() as ledger:
        noted.clear()
        ledger.remove_unused()
        assert noted == [""]
        with pytest.raises(InvalidInput, match=r"^the ledger is closed; open it again$"):
            ledger.entries()


def test_a_ledger_whose_making_was_stopped_is_removed(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (KeyboardInterrupt(), InvalidInput("refused")):
        with monkeypatch.context() as patch:
            patch.setattr(book, "note_outcome", lambda text, error=error: (_ for _ in ()).throw(error))
            with pytest.raises(type(error)):
                in_file.open()
        assert not in_file.is_there()
    in_file.open().close()
    with pytest.raises(InvalidInput, match="there is a file already"):
        in_file.open(create=True)
    assert in_file.is_there()


# Writing.


TABLES = [
    {"quasi_identifiers": ["age"], "loss": LOSS.to_dict(), "name": "old", "where": "age from 30"},
    {"quasi_identifiers": ["sex"], "loss": LOSS.to_dict(), "name": None, "where": None},
]


def test_the_tables_of_a_set_are_written_into_its_entry(in_file: Where) -> None:
    body = {
        "attribute": "job",
        "quasi_identifiers": ["age", "sex"],
        "loss": LOSS.to_dict(),
        "scale": 2.0,
        "purpose": "p",
    }
    cohort = {"cohort": "a", "declares": True, "part_of": None}
    with in_file.open() as ledger:
        with ledger._writing() as (session, _):
            first = ledger._write_release(session, {**body, **cohort, "tables": TABLES}, None)
            plain = [ledger._write_release(session, {**body, **cohort, **none}, None) for none in ({}, {"tables": []})]
        assert first.tables == (BookedTable(("age",), LOSS, "old", "age from 30"), BookedTable(("sex",), LOSS))
        assert ledger.entries()[1:] == (first, *plain)
        assert [entry.kind for entry in ledger.entries()] == ["cohort", "release", "release", "release"]
        assert ["tables" in json.loads(entry.body) for entry in (first, *plain)] == [True, False, False]
        assert (first.attribute, first.quasi_identifiers, first.scale, first.purpose, first.file) == (
            *("job", ("age", "sex"), 2.0, "p", None),
        )


def test_a_file_is_bound_to_its_entry_by_a_new_salt(
    in_file: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    lengths: list[int] = []
    real = secrets.token_hex
    with in_file.open() as ledger:
        monkeypatch.setattr(secrets, "token_hex", lambda length: (lengths.append(length), real(length))[1])
        for _ in range(2):
            ledger.add(**FIELDS, file=tmp_path / "a.csv")
        with ledger._store.read() as session:
            written = session.whereabouts()
        assert [written[number].path for number in (2, 3)] == [str(tmp_path / "a.csv")] * 2
        assert written[2].salt != written[3].salt
        places = [entry.file.place for entry in ledger.entries() if entry.file is not None]
        assert places == [written[2].digest, written[3].digest]
        assert lengths == [16, 16]  # 128 bits: nobody guesses a path by trying


def test_reservations_are_checked_one_by_one(in_file: Where) -> None:
    """A row that is none does not hide those after it, and what it costs."""
    body = {"cohort": "a", "part_of": None, "declares": True, "loss": LOSS.to_dict(), "host": "", "since": ""}

    def insert(token: str, told: Any, state: str = RESERVED) -> None:
        in_file.execute(f"INSERT INTO pending VALUES ('{token}', '{state}', '{json.dumps(told)}')")

    with in_file.open() as ledger:
        insert("0", body)
        insert("1" * 32, {**body, "loss": {}})
        insert("2" * 32, body)
        insert("3" * 32, body, "done")
        insert("4" * 32, {**body, "entry": 7}, DECIDED)
        wrong: dict[str, Any] = {"cohort": "", "part_of": " x", "declares": 1, "host": 5, "since": "x" * 201}
        for number, (name, value) in enumerate(wrong.items(), start=5):
            insert(str(number) * 32, {**body, name: value})
        for number, name in enumerate(body):
            insert("abcdef"[number] * 32, {key: value for key, value in body.items() if key != name})
        with ledger._store.read() as session:
            pendings, problems = session.examine_pendings()
            assert [(pending.token[0], pending.decided, pending.entry) for pending in pendings] == [
                *(("2", False, None), ("4", True, 7)),
            ]
            unread = [f"reservation {sign * 32} cannot be read" for sign in "13" + "56789" + "abcdef"]
            assert problems == ["a reservation has a name that cellrisk never gives", *unread]
            with pytest.raises(InvalidInput) as refused:
                session.pendings()
        assert str(refused.value) == (
            "the ledger is damaged: a reservation has a name that cellrisk never gives; "
            f"got {in_file.file}; verify tells more"
        )
    assert Pending("", DECIDED, {"entry": True}).entry is Pending("", DECIDED, {}).entry is None
    assert Pending("", RESERVED, {"entry": 5}).entry is None


def test_behind_a_damage_ten_thousand_numbers_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many the ledger says that it has."""
    session: Any = object.__new__(Session)
    session.place = object.__new__(store.FilePlace)
    session.head = Head("", 3, "", 2**53, "")
    asked: list[int] = []
    monkeypatch.setattr(Session, "rows", lambda *_: (_ for _ in ()).throw(MemoryError()))
    monkeypatch.setattr(Session, "_list_numbers", lambda session, order: [2**53] if "DESC" in str(order) else [1, 2])
    monkeypatch.setattr(Session, "_rescue", lambda session, number: (asked.append(number), number == 5 and None)[1])
    rows, unreadable = session.rescue_rows()
    assert asked == [*range(1, 10_003), 2**53]
    assert (rows, len(unreadable)) == ([], 10_002)
    assert 5 not in unreadable


def test_a_reservation_that_is_gone_is_not_changed(in_file: Where) -> None:
    with (
        in_file.open() as ledger,
        ledger._store.write() as session,
        pytest.raises(
            InvalidInput, match=r"^the reservation was given up meanwhile; reserve again; nothing was written$"
        ),
    ):
        session.change(Pending(TOKEN, DECIDED, {}))


def test_whether_an_entry_stands(in_file: Where) -> None:
    with in_file.open() as ledger:
        entry = ledger.declare("a")
        has_entry = ledger._store.has_entry
        assert has_entry(1, entry.digest) is True
        assert has_entry(1, "0" * 64) is has_entry(2, entry.digest) is False
        ledger._store.place.writable = False
        assert has_entry(1, entry.digest) is None
        with pytest.raises(InvalidInput) as refused:
            ledger.declare("b")
        assert str(refused.value) == (
            f"the ledger can be read only; got {in_file.file}; ask for the right to write to it"
        )
        assert ledger.writable is False


def test_a_head_is_noted_only_where_something_was_written(in_file: Where, tmp_path: Path) -> None:
    head = tmp_path / "heads"
    with in_file.open(head=head) as ledger:
        with ledger._store.write():
            pass
        assert not head.exists()
        ledger.declare("a")
        assert len(head.read_text().splitlines()) == 1
        with ledger.reserve(**FIELDS, cohort="a"):
            pass
        assert len(head.read_text().splitlines()) == 1
    with pytest.raises(
        InvalidInput, match=r"^the ledger's head cannot be kept in the ledger; got .*-shm; name another file$"
    ):
        in_file.open(head=f"{in_file.file}-shm")


# Ending a release.


class Moved:
    """The files of a release, where they are staged: what is done with them."""

    def __init__(self, folder: Path, done: list[str], fails: str = "") -> None:
        self.new, self.done, self.fails = (folder / ".staged", folder / ".staged.json"), done, fails

    def __getattr__(self, name: str) -> Callable[[], None]:
        def do() -> None:
            self.done.append(name)
            if name == self.fails:
                raise OSError(13, "Permission denied")

        return do


def end(
    patch: pytest.MonkeyPatch, folder: Path, pending: Pending | None, note: Note | None, fails: str = "", **told: Any
) -> tuple[bool, list[str]]:
    """A release is ended in a ledger of one entry, number 2, of a file at a path and with a digest."""
    done: list[str] = []
    file = {"name": "a.csv", "sha256": told.get("sha256", "ab" * 32), "bytes": 5}
    body = {"kind": "release", "cohort": "a", "time": "2024-03-31T12:00:00.000000+00:00", "cellrisk": "0.2.0"}
    text = told.get("body", json.dumps({**body, "loss": LOSS.to_dict(), "file": file}))
    session: Any = SimpleNamespace(
        pending=lambda token: pending if token == TOKEN else None,
        whereabouts=lambda: {
            1: Whereabouts(told.get("earlier", "/other.csv"), ""),
            2: Whereabouts(told.get("path", str(folder / "a.csv")), ""),
        },
        row=lambda number: Row(2, "", "", text) if number == 2 else None,
    )
    asked: list[tuple[Path, str]] = []
    patch.setattr(pairing, "staged_at", lambda *given: (asked.append(given), Moved(folder, done, fails))[1])
    answer = pairing._end(session, TOKEN, note)
    assert asked in ([], [(folder / "a.csv", TOKEN)])
    return answer, done


MOVED, LEFT, DISCARDED = (True, ["publish", "finish"]), (False, []), (True, ["discard"])


def test_how_a_release_of_a_dead_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = Note("/ledger", tmp_path / "a.csv", "ab" * 32)
    reserved = Pending(TOKEN, RESERVED, {})
    decided, nowhere, unnumbered = (Pending(TOKEN, DECIDED, body) for body in ({"entry": 2}, {"entry": 3}, {}))
    for pending, told, expected in (
        (None, None, (True, [])),
        (reserved, None, (True, [])),
        (decided, None, LEFT),
        (None, Note("/ledger"), (True, [])),
        (reserved, Note("/ledger"), (True, [])),
        (decided, Note("/ledger"), LEFT),
        (None, note, MOVED),  # it was given up, and its entry stands
        (reserved, note, DISCARDED),
        (decided, note, MOVED),
        (nowhere, note, LEFT),
        (unnumbered, note, LEFT),
    ):
        assert end(monkeypatch, tmp_path, pending, told) == expected, (pending, told)
    for wrong in ({"sha256": "cd" * 32}, {"body": "{}"}):
        assert end(monkeypatch, tmp_path, decided, note, **wrong) == LEFT
        assert end(monkeypatch, tmp_path, None, note, **wrong) == DISCARDED
    assert end(monkeypatch, tmp_path, None, note, path="/elsewhere.csv") == DISCARDED
    assert end(monkeypatch, tmp_path, None, note, earlier=str(note.target)) == MOVED  # of several, one stands
    assert end(monkeypatch, tmp_path, decided, note, fails="publish") == (False, ["publish"])
    assert end(monkeypatch, tmp_path, decided, note, fails="finish") == (False, ["publish", "finish"])
    assert end(monkeypatch, tmp_path / "gone", decided, Note("/ledger", tmp_path / "gone" / "a.csv", "ab" * 32)) == LEFT


def make_reservation(entry: Entry | None = None) -> tuple[Reservation, list[str]]:
    done: list[str] = []
    journal: Any = SimpleNamespace(close=lambda: done.append("close"), remove=lambda: done.append("remove"))
    nothing: Any = None
    reservation = Reservation(nothing, Pending(TOKEN, RESERVED, {}), journal, nothing)
    reservation._entry = entry
    return reservation, done


ENTRY = Entry(number=7, time="", kind="release", cohort="a", digest="ab" * 32)
STANDS = "entry 7 of the ledger stands"
WHOLE = f"{STANDS}, and its file is in its place"
LATER = f"{STANDS}; the next write to the ledger, or ledger settle, moves its file into its place"


def test_who_is_stopped_at_the_end_of_a_release_is_told_what_stands() -> None:
    for done, said, told in (
        (True, "", WHOLE),
        (True, "said before", "said before"),
        (False, "", ""),
        (False, "x", "x"),
    ):
        reservation, journal = make_reservation(ENTRY)
        reservation._done = done
        reservation._finish = lambda said=said: (_ for _ in ()).throw(KeyboardInterrupt(said))  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt) as stopped:
            reservation.close()
        assert (str(stopped.value), journal) == (told, ["close"])
        assert reservation.outcome == (WHOLE if done else LATER)


def test_files_that_cannot_be_moved_after_an_interruption_are_left_to_the_next(tmp_path: Path) -> None:
    for fails in ("publish", "finish"):
        reservation, journal = make_reservation(ENTRY)
        files: Any = Moved(tmp_path, [], fails)
        with pytest.raises(KeyboardInterrupt) as stopped:
            reservation._finish_late(files)
        assert str(stopped.value) == LATER
        reservation._finish = stop  # type: ignore[method-assign]
        reservation.close()  # its journal stays, for whoever writes next
        assert journal == ["close"]
    reservation, _ = make_reservation(ENTRY)
    files = Moved(tmp_path, [])
    reservation._finish_late(files)
    assert files.done == ["publish", "finish"]
    assert reservation._left is False


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("stands", [True, False, None])
def test_what_the_end_of_a_reservation_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: bool | None, done: bool, removed: bool
) -> None:
    reservation, journal = make_reservation(ENTRY)
    did: list[str] = []
    files: Any = Moved(tmp_path, did)

    def remove_row() -> None:
        did.append("row")
        if not removed:
            raise InvalidInput("the connection to the ledger was lost")
        reservation._removed = True

    reservation._pair, reservation._done, reservation._removed = files, done, done and removed
    monkeypatch.setattr(reservation, "_find_out", lambda: (did.append("asked"), stands)[1])
    monkeypatch.setattr(reservation, "_remove_row", remove_row)
    monkeypatch.setattr(pairing, "end_journal", lambda store, journal, token: did.append(f"journal {token}"))
    monkeypatch.setattr(pairing, "settle", lambda store, token: did.append(f"settle {token}"))
    reservation.close()
    ended = (["remove"], []) if removed else ([], [f"journal {TOKEN}"])
    if done:
        assert (journal, did) == ended
    elif stands is False:
        assert (journal, did) == (ended[0], ["asked", "discard", "row", *ended[1]])
    else:
        assert (journal, did) == (["close"], ["asked", f"settle {TOKEN}"])


def test_nothing_is_told_of_a_release_that_was_not_saved() -> None:
    reservation, _ = make_reservation()
    assert reservation._find_out() is False
    assert reservation.token == TOKEN
    with pytest.raises(InvalidInput, match=r"^nothing was saved$"):
        reservation.outcome  # noqa: B018


def test_when_the_journal_of_a_reservation_is_removed() -> None:
    for row, removed in ((None, "remove"), ("there", "close"), (InvalidInput("lost"), "close")):
        did: list[str] = []
        session: Any = SimpleNamespace(pending=lambda token, row=row: row)

        class Read:
            def __enter__(self, session: Any = session, row: Any = row) -> Any:
                if isinstance(row, InvalidInput):
                    raise row
                return session

            def __exit__(self, *_: object) -> None: ...

        ledger: Any = SimpleNamespace(read=Read)
        journal: Any = SimpleNamespace(
            close=lambda did=did: did.append("close"), remove=lambda did=did: did.append("remove")
        )
        pairing.end_journal(ledger, journal, TOKEN)
        assert did == [removed]


def test_how_a_reservation_is_settled(in_file: Where, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_file.open() as ledger:
        shop = ledger._store
        assert pairing.settle(shop, TOKEN) == pairing.ELSEWHERE
        journal = journals.open_journal(ledger.id, TOKEN, 0)
        assert pairing.settle(shop, TOKEN) == pairing.ALIVE
        journal.write(Note("/another/place"))
        journal.close()
        assert pairing.settle(shop, TOKEN) == pairing.ELSEWHERE
        with monkeypatch.context() as patch:
            patch.setattr(pairing, "_end", lambda session, token, note: False)
            assert pairing.settle(shop, TOKEN, anywhere=True) == pairing.ELSEWHERE
        assert journal.path.exists()
        assert pairing.settle(shop, TOKEN, anywhere=True) == pairing.SETTLED
        assert os.listdir(state) == []
        with pytest.raises(
            UnknownName, match=rf"^the ledger has no such reservation; got '{TOKEN}'; verify lists them$"
        ):
            ledger.abandon(TOKEN)


def test_only_the_release_that_was_reserved_is_saved(in_file: Where, released: Release, tmp_path: Path) -> None:
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        assert reservation.ledger == ledger.id
        assert journals.list_journals(ledger.id).keys() == {reservation.token}
        entry = reservation.save(released, tmp_path / "a.csv")
        assert entry == ledger.entry(2)
        assert (reservation.outcome, reservation._removed) == (WHOLE.replace("7", "2"), True)
    assert journals.list_journals(ledger.id) == {}


def test_what_a_ledger_says_of_itself(in_file: Where) -> None:
    with Ledger(in_file.address, create=True) as ledger:
        assert str(ledger) == f"Ledger {in_file.file}: 0 entries, 0 of them releases, on 0 cohorts."
        ledger.add(**FIELDS)
        assert str(ledger) == f"Ledger {in_file.file}: 2 entries, 1 of them releases, on 1 cohort."
        assert (ledger.place, ledger.writable) == (str(in_file.file), True)
        ledger.add_figure(epsilon=0.25, attribute=None, quasi_identifiers="age")
        assert ledger.losses("everyone")[-1] == Loss.pure(0.25)
        assert ledger.limit("everyone") is None
        assert ledger.set_limit("everyone", epsilon=2).limit == ledger.limit("everyone")
