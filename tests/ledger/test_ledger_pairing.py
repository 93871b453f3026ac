"""A release and its entry: both exist or neither does, whatever fails, whoever looks, and whenever the process dies."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.publish.releasing.saving import Pair, sidecar_of
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger, journals
from cellrisk.repeat.ledger.store import Session
from tests.ledger.conftest import Where, execute_in_file
from tests.ledger.deaths import FIELDS, GEOMETRIC
from tests.near import near


def save(ledger: Ledger, released: Release, path: Path, **options: Any) -> Any:
    with ledger.reserve(**FIELDS) as reservation:
        return reservation.save(released, path, **options)


@pytest.mark.parametrize("name", ["released.csv", "released.parquet"])
def test_a_release_is_saved_with_its_entry(where: Where, released: Release, output: Path, name: str) -> None:
    with where.open() as ledger:
        entry = save(ledger, released, output / name)
        assert entry == ledger.entry(2)
        assert entry.file is not None
        assert entry.file.path == str(output / name)
        assert ledger.pendings() == ()
        found = ledger.verify()
        assert (found.ok, found.remarks) == (True, ())
        described = json.loads((output / f"{name}.json").read_text(encoding="utf-8"))
        assert described["ledger"] == {"id": ledger.id, "entry": 2, "digest": entry.digest}
        assert described["sha256"] == entry.file.sha256
        assert {key: described[key] for key in released.to_dict()} == released.to_dict()
    assert sorted(os.listdir(output)) == [name, f"{name}.json"]
    released.save(output / f"plain-{name}")
    assert (output / name).read_bytes() == (output / f"plain-{name}").read_bytes()


def test_the_cohort_of_a_release_need_not_be_named_where_there_is_one(where: Where) -> None:
    with where.open() as ledger:
        assert ledger.add(**FIELDS, cohort=None).cohort == "everyone"
        ledger.add(**FIELDS, cohort=None)
        with pytest.raises(InvalidInput, match="no cohort was named"):
            ledger.add(**FIELDS, cohort=None, new_cohort=True)
        assert ledger.choose_cohort(None) == "everyone"
        ledger.declare("north", part_of="everyone")
        for refused in (lambda: ledger.add(**FIELDS, cohort=None), lambda: ledger.choose_cohort(None)):
            with pytest.raises(InvalidInput, match=r"no cohort was named.*everyone, north"):
                refused()
        assert ledger.choose_cohort("south") == "south"


def test_a_reservation_counts_as_spent_until_it_ends(where: Where) -> None:
    with where.open() as ledger, where.open() as other:
        ledger.set_limit("everyone", epsilon=0.2)
        with ledger.reserve(**FIELDS):
            assert other.spent("everyone").epsilon == 0.1
            assert other.losses("everyone") == (Loss.of(GEOMETRIC),)
            with pytest.raises(InvalidInput, match="spent more than that limit"):
                other.set_limit("everyone", epsilon=0.05)
            with other.reserve(**FIELDS):
                for attempt in (lambda: other.add(**FIELDS), lambda: other.reserve(**FIELDS).__enter__()):
                    with pytest.raises(InvalidInput, match=r"exceed the limit .* got epsilon 0\.3 in all"):
                        attempt()
                assert ["is being written since" in remark.text for remark in ledger.verify().remarks] == [True] * 2
                assert len(ledger.pendings()) == 2
        assert ledger.spent("everyone").epsilon == 0
        assert len(ledger.entries()) == 2


def test_a_reservation_brings_its_cohort_with_it(in_file: Where, released: Release, output: Path) -> None:
    with in_file.open() as ledger, in_file.open() as other:
        with ledger.reserve(**FIELDS, cohort="first") as one, other.reserve(**FIELDS, cohort="first") as two:
            with pytest.raises(
                CellriskError, match="cohort 'first' is only declared by a release that is not finished"
            ):
                other.spent("first")
            with pytest.raises(CellriskError, match="has no cohort 'second'"):
                other.add(**FIELDS, cohort="second")
            one.save(released, output / "one.csv")
            two.save(released, output / "two.csv")
        assert [entry.kind for entry in ledger.entries()] == ["cohort", "release", "release"]
        with ledger.reserve(**FIELDS, cohort="inner", new_cohort=True, part_of="first") as three:
            assert other.spent("first").epsilon == 0.3
            with pytest.raises(InvalidInput, match="cohort 'inner' is known already"):
                other.add(**FIELDS, cohort="inner", new_cohort=True)
            three.save(released, output / "three.csv")
        assert [(cohort.name, cohort.part_of) for cohort in other.cohorts()] == [("first", None), ("inner", "first")]
        with pytest.raises(KeyboardInterrupt), ledger.reserve(**FIELDS, cohort="given up", new_cohort=True):
            raise KeyboardInterrupt
        assert len(ledger.cohorts()) == 2
        assert ledger.verify().ok


def test_a_release_that_was_not_reserved_is_refused(in_file: Where, released: Release, output: Path) -> None:
    others: list[dict[str, Any]] = [
        {**FIELDS, "loss": cr.Geometric(epsilon=0.05)},
        {**FIELDS, "loss": Loss.pure(0.1)},
        {**FIELDS, "attribute": "income"},
        {**FIELDS, "quasi_identifiers": ["age"]},
    ]
    with in_file.open() as ledger:
        for fields in others:
            with ledger.reserve(**fields) as reservation:
                with pytest.raises(InvalidInput, match="not the one that was reserved"):
                    reservation.save(released, output / "released.csv")
                nothing: Any = None
                with pytest.raises(InvalidInput, match="only a release can be saved; got NoneType"):
                    reservation.save(nothing, output / "released.csv")
        with ledger.reserve(**FIELDS) as reservation:
            reservation.save(released, output / "released.csv")
            with pytest.raises(InvalidInput, match="a reservation is for one release"):
                reservation.save(released, output / "again.csv")
        assert len(ledger.entries()) == 2
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_places_that_a_release_cannot_be_saved_to(in_file: Where, released: Release, output: Path) -> None:
    with in_file.open() as ledger:
        save(ledger, released, output / "released.csv")
        before = {name: (output / name).read_bytes() for name in os.listdir(output)}
        for path, message in (
            (output / "released.csv", "the output path exists"),
            (output / "released.xlsx", "saved by its ending"),
            (output / "nowhere" / "released.csv", "does not exist"),
            (output / f"{'x' * 240}.csv", "cannot be written to"),
            (output / f"{'x' * 300}.csv", "cannot be written to"),
        ):
            with ledger.reserve(**FIELDS) as reservation, pytest.raises(InvalidInput, match=message):
                reservation.save(released, path)
        assert len(ledger.entries()) == 2
        assert ledger.spent("everyone").epsilon == 0.1
        assert {name: (output / name).read_bytes() for name in os.listdir(output)} == before
        replaced = save(ledger, released, output / "released.csv", force=True)
        found = ledger.verify()
        assert found.ok
        assert [tuple(remark) for remark in found.remarks] == [(2, "its file released.csv was replaced by entry 3")]
        described = json.loads((output / "released.csv.json").read_text(encoding="utf-8"))
        assert described["ledger"]["digest"] == replaced.digest
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


class Fails:
    """Lets a call through, until it is the n-th: that one fails, before or after it is done, or all from there on."""

    def __init__(
        self, real: Callable[..., Any], at: int, error: BaseException, after: bool = False, always: bool = False
    ) -> None:
        self.real, self.left, self.error, self.after, self.always = real, at, error, after, always

    def as_method(self) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            return self(*arguments, **options)

        return call

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.left -= 1
        if (self.left == 0 and not self.after) or (self.left < 0 and self.always):
            raise self.error
        done = self.real(*arguments, **options)
        if self.left == 0:
            raise self.error
        return done


FAILURES = [
    *[("write", at, False) for at in (1, 2, 3)],
    *[("fsync", at, False) for at in (1, 3, 4)],
    ("append", 1, True),
    ("change", 1, False),
    ("change", 1, True),
]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stop"])
@pytest.mark.parametrize(("what", "at", "after"), FAILURES)
def test_a_failure_before_the_decision_leaves_nothing(
    in_file: Where,
    released: Release,
    output: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    at: int,
    after: bool,
    error: BaseException,
) -> None:
    owner: Any = os if what in ("write", "fsync") else Session
    with in_file.open() as ledger:
        ledger.declare("everyone")
        with ledger.reserve(**FIELDS) as reservation:
            real = getattr(owner, what)
            broken = Fails(real, at, error, after)
            monkeypatch.setattr(owner, what, broken.as_method())
            with pytest.raises((InvalidInput, KeyboardInterrupt, OSError)) as raised:
                reservation.save(released, output / "released.csv")
            assert raised.value is error or "No space left on device" in str(raised.value)
            monkeypatch.setattr(owner, what, real)
        assert os.listdir(output) == []
        assert ledger.pendings() == ()
        assert [entry.kind for entry in ledger.entries()] == ["cohort"]
        assert ledger.verify().ok
    assert sorted(os.listdir(output.parent)) == ["output", "releases.ledger"]
    assert os.listdir(state) == []


@pytest.mark.parametrize("at", [3, 4, 5, 6])
def test_a_failure_after_the_decision_is_finished(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """The moves of the files fail in turn: two of what is replaced, two of what is new. Forward is the only way."""
    with in_file.open() as ledger:
        save(ledger, released, output / "released.csv")
        monkeypatch.setattr(os, "replace", Fails(os.replace, at - 2, OSError(13, "Permission denied")))
        with pytest.raises(InvalidInput, match="entry 3 is written, but its file could not be moved into its place"):
            save(ledger, released, output / "released.csv", force=True)
        monkeypatch.undo()
        check_finished(ledger, output)


@pytest.mark.parametrize(("what", "at"), [*[("replace", at) for at in (1, 2, 3, 4)], ("commit", 1), ("finish", 1)])
@pytest.mark.parametrize("again", [False, True])
def test_who_is_interrupted_after_the_decision_is_told_what_stands(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch, what: str, at: int, again: bool
) -> None:
    """Ctrl-C once the entry is committed: the file is moved, or will be, and that is what is said."""
    import sqlalchemy as sa

    with in_file.open() as ledger:
        save(ledger, released, output / "released.csv")
        with monkeypatch.context() as patch:
            if what == "replace":
                broken: Any = Fails(os.replace, at, KeyboardInterrupt(), always=again)
                patch.setattr(os, "replace", broken)
            elif what == "commit":
                broken = Fails(sa.Connection.commit, 2, KeyboardInterrupt(), after=True)
                patch.setattr(sa.Connection, "commit", broken.as_method())
            else:
                patch.setattr(Pair, "finish", Fails(Pair.finish, 1, KeyboardInterrupt(), always=again).as_method())
            with pytest.raises(KeyboardInterrupt) as stopped:
                save(ledger, released, output / "released.csv", force=True)
        assert str(stopped.value).startswith("entry 3 of the ledger stands")
        if again and what != "commit":
            assert "moves its file into its place" in str(stopped.value)
            ledger.settle()
        check_finished(ledger, output)


def check_finished(ledger: Ledger, output: Path) -> None:
    assert len(ledger.entries(kind="release")) == 2
    assert ledger.verify().ok
    assert ledger.pendings() == ()
    described = json.loads((output / "released.csv.json").read_text(encoding="utf-8"))
    assert described["ledger"]["entry"] == 3
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]
    assert sorted(os.listdir(output.parent)) == ["output", "releases.ledger"]


def test_a_decision_whose_answer_was_lost_is_asked_for(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit stands, and then the connection breaks: the ledger is asked, and the release is finished."""
    import sqlalchemy as sa

    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        lost = InvalidInput("the connection to the ledger was lost")
        broken = Fails(sa.Connection.commit, 1, lost, after=True)
        monkeypatch.setattr(sa.Connection, "commit", broken.as_method())
        entry = reservation.save(released, output / "released.csv")
        monkeypatch.undo()
        assert ledger.entry(2) == entry
        assert ledger.verify().ok
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def lose_journals(state: Path) -> None:
    """They are on the disk of another machine, or in the home of another user."""
    for path in state.rglob("*-*"):
        path.unlink()


def test_a_reservation_without_its_journal_is_left_alone_and_can_be_abandoned(
    in_file: Where, released: Release, output: Path, state: Path
) -> None:
    with in_file.open() as ledger, in_file.open() as other:
        ledger.set_limit("everyone", epsilon=0.1)
        with ledger.reserve(**FIELDS) as reservation:
            lose_journals(state)
            (left,) = other.settle()
            assert left.token == reservation.token
            found = other.verify()
            assert found.ok
            assert "reserved, and counts as spent; its journal is not here: ledger abandon" in found.remarks[0].text
            with pytest.raises(InvalidInput, match="exceed the limit"):
                other.add(**FIELDS)
            assert other.abandon(reservation.token) is False
            other.add(**FIELDS)
            with pytest.raises(InvalidInput, match="the reservation was given up meanwhile"):
                reservation.save(released, output / "released.csv")
        assert other.pendings() == ()
    assert os.listdir(output) == []


class Death(BaseException):
    """The process ends here, whatever it had in mind."""


def die_before_the_move(
    ledger: Ledger, released: Release, path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> str:
    """A process that dies between its commit and the move of its files; the token of its reservation."""
    with monkeypatch.context() as patch:
        patch.setattr(Pair, "publish", Fails(Pair.publish, 1, Death()).as_method())
        reserving = ledger.reserve(**FIELDS)
        reservation = reserving.__enter__()
        with pytest.raises(Death):
            reservation.save(released, path, **options)
        reservation._journal.close()
        patch.setattr(type(reservation), "close", lambda reservation: None)
        reserving.__exit__(None, None, None)
    return reservation.token


def test_a_decided_release_is_finished_by_the_next_write_and_not_by_reading(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of the page that dies between commit and move: its temporary folder is gone, its journal is not."""
    with where.open() as ledger:
        save(ledger, released, output / "released.csv")
        die_before_the_move(ledger, released, output / "released.csv", monkeypatch, force=True)
    before = {name: (output / name).read_bytes() for name in os.listdir(output)}
    with where.open() as ledger:
        found = ledger.verify()
        assert found.ok
        assert "its process is dead: ledger settle ends it" in found.remarks[0].text
        ledger.entries()
        ledger.spent("everyone")
        assert {name: (output / name).read_bytes() for name in os.listdir(output)} == before
        ledger.add(**FIELDS)
        assert ledger.pendings() == ()
        assert ledger.verify().ok
        described = json.loads((output / "released.csv.json").read_text(encoding="utf-8"))
        assert described["ledger"]["entry"] == 3
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_a_decided_release_that_cannot_be_reached_is_abandoned_and_later_finished(
    where: Where, released: Release, output: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry stands, whoever gives it up. Where its machine comes back, the file is moved into its place."""
    with where.open() as ledger:
        token = die_before_the_move(ledger, released, output / "released.csv", monkeypatch)
        hidden = state.with_name(f"{state.name}-elsewhere")
        state.rename(hidden)
        assert ledger.abandon(token) is True
        assert ledger.pendings() == ()
        assert ledger.spent("everyone").epsilon == 0.1
        assert [tuple(remark) for remark in ledger.verify().remarks] == [
            (2, "its file released.csv is not where it was written")
        ]
        hidden.rename(state)
        ledger.settle()
        assert ledger.verify().remarks == ()
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_a_copy_of_a_ledger_does_not_end_what_the_ledger_has_begun(
    in_file: Where, released: Release, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        token = die_before_the_move(ledger, released, output / "released.csv", monkeypatch)
    assert in_file.file is not None
    copy = tmp_path / "copy.ledger"
    shutil.copy(in_file.file, copy)
    execute_in_file(copy, "UPDATE pending SET state = 'reserved'")
    with Ledger(copy) as ledger:
        assert [pending.token for pending in ledger.settle()] == [token]
        ledger.add(**FIELDS)
    assert len(os.listdir(output)) == 2
    assert all(name.startswith(".") for name in os.listdir(output))
    with in_file.open() as ledger:
        assert ledger.settle() == ()
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_a_folder_of_journals_that_others_can_write_to_is_not_believed(
    in_file: Where, released: Release, output: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        die_before_the_move(ledger, released, output / "released.csv", monkeypatch)
        (state / "reservations").chmod(0o777)
        assert len(ledger.settle()) == 1
        with pytest.raises(InvalidInput, match="the folder of journals is not private"), ledger.reserve(**FIELDS):
            pass
        (state / "reservations").chmod(0o700)
        assert ledger.settle() == ()


def test_only_what_is_reserved_and_not_ours_can_be_abandoned(in_file: Where) -> None:
    with in_file.open() as ledger:
        for token in ("0" * 32, "", ".", "bash", "../../x"):
            with pytest.raises(CellriskError, match="the ledger has no such reservation"):
                ledger.abandon(token)
        with (
            ledger.reserve(**FIELDS) as reservation,
            pytest.raises(InvalidInput, match="is still running, and will end it"),
        ):
            ledger.abandon(reservation.token)


def test_nobody_sees_an_entry_without_its_file(in_file: Where, released: Release, output: Path) -> None:
    stop, seen, failures = threading.Event(), 0, []

    def watch() -> None:
        nonlocal seen
        with in_file.open() as ledger:
            while not stop.is_set():
                for entry in ledger.entries(kind="release"):
                    seen += 1
                    if entry.file is None or not Path(entry.file.path).exists():
                        failures.append(entry.number)

    with in_file.open() as ledger:
        ledger.declare("everyone")
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for number in range(15):
                save(ledger, released, output / f"released{number}.csv")
        finally:
            stop.set()
            watcher.join()
        assert failures == []
        assert seen > 0
        assert len(ledger.entries(kind="release")) == 15


def test_journals_of_those_who_died_before_they_reserved_are_swept_away(in_file: Where, state: Path) -> None:
    with in_file.open() as ledger:
        journals.open_journal(ledger.id, "0" * 32, 0).close()
        held = journals.open_journal(ledger.id, "1" * 32, 0)
        journals.open_journal("f" * 32, "2" * 32, 0).close()
        ledger.verify()
        assert len(list(state.rglob("*-*"))) == 3
        ledger.declare("everyone")
        assert {path.name for path in state.rglob("*-*")} == {f"{ledger.id}-{'1' * 32}", f"{'f' * 32}-{'2' * 32}"}
        held.remove()


def test_what_is_staged_is_private_and_removed_by_its_exact_name(tmp_path: Path) -> None:
    pair = Pair(tmp_path / "released.csv", "f" * 32)
    others = ["released.csv", f".released.csv.{'f' * 32}.newer", f".{'f' * 32}", f"..released.csv.{'f' * 32}.new.x1y2"]
    for name in others:
        (tmp_path / name).write_text("another")
    pair.stage(pair.target.name, b"new")
    pair.stage(sidecar_of(pair.target).name, b"{}")
    assert {stat.S_IMODE(path.stat().st_mode) for path in pair.new} == {0o600}
    pair.discard()
    assert sorted(os.listdir(tmp_path)) == sorted(others)


DEATHS = [
    ("save", "in_file", 997),
    ("create", "in_file", 109),
    ("save", "in_file", 151),
    ("replace", "in_file", 157),
    ("save", "in_database", 509),
]


@pytest.mark.parametrize(("scenario", "place", "stride"), DEATHS)
def test_death_at_any_line(
    request: pytest.FixtureRequest, output: Path, scenario: str, place: str, stride: int
) -> None:
    where: Where = request.getfixturevalue(place)
    address = where.address if where.file is None else str(output / "releases.ledger")
    command = [sys.executable, "-W", "error", "-m", "tests.ledger.deaths", scenario, address, str(output), str(stride)]
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(Path(cr.__file__).parents[1]), str(root)])
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["died"] for each in told] == [True] * (len(told) - 1) + [False]
    assert len(told) > 3
    ledger = ["releases.ledger"] if where.file else []
    for each in told:
        pair = [] if not each["named"] else ["released.csv", "released.csv.json"]
        assert each["problems"] == [], each
        assert all("was replaced by entry" in text for _, text in each["remarks"]), each
        made = ledger if scenario != "create" or each["entries"] else [name for name in ledger if name in each["files"]]
        assert each["files"] == sorted([*pair, *made]), each
        assert each["described"] == each["matched"] == len(each["named"]), each
        assert each["pendings"] == 0, each
        assert each["spent"] == near(0.1 * each["entries"]), each
    counts = [each["entries"] for each in told]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
