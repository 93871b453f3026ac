"""A release and its entry: both exist or neither does, whatever fails, whoever looks, and whenever the process dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.accounting import Loss
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.ledger import Ledger, pairing
from cellrisk.ledger.pairing import LifeSign
from cellrisk.ledger.store import Session
from cellrisk.releasing import Release
from cellrisk.releasing.saving import Pair
from tests.ledger.conftest import Where
from tests.ledger.deaths import GEOMETRIC, make_release

FIELDS: dict[str, Any] = {"attribute": "job", "quasi_identifiers": ["sex"], "loss": GEOMETRIC}


@pytest.fixture(scope="module")
def released() -> Release:
    return make_release()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


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
        {**FIELDS, "loss": Loss(flavour="pure", epsilon=0.1)},
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
    """Lets a call through, until it is the n-th: that one fails, before or after it is done."""

    def __init__(self, real: Callable[..., Any], at: int, error: BaseException, after: bool = False) -> None:
        self.real, self.left, self.error, self.after = real, at, error, after

    def as_method(self) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            return self(*arguments, **options)

        return call

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise self.error
        done = self.real(*arguments, **options)
        if self.left == 0:
            raise self.error
        return done


FAILURES = [
    *[("replace", at, False) for at in (1, 2)],
    *[("fsync", at, False) for at in (1, 2)],
    ("append", 1, True),
    ("change", 1, False),
    ("change", 2, False),
    ("change", 2, True),
]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stop"])
@pytest.mark.parametrize(("what", "at", "after"), FAILURES)
def test_a_failure_before_the_decision_leaves_nothing(
    in_file: Where,
    released: Release,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    at: int,
    after: bool,
    error: BaseException,
) -> None:
    owner: Any = os if what in ("replace", "fsync") else Session
    with in_file.open() as ledger:
        ledger.declare("everyone")
        with ledger.reserve(**FIELDS) as reservation:
            real = getattr(owner, what)
            broken = Fails(real, at, error, after)
            monkeypatch.setattr(owner, what, broken.as_method())
            with pytest.raises((InvalidInput, KeyboardInterrupt, OSError)):
                reservation.save(released, output / "released.csv")
            monkeypatch.setattr(owner, what, real)
        assert os.listdir(output) == []
        assert ledger.pendings() == ()
        assert [entry.kind for entry in ledger.entries()] == ["cohort"]
        assert ledger.verify().ok
    assert sorted(os.listdir(output.parent)) == ["output", "releases.ledger"]


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("at", [3, 4, 5, 6])
def test_a_failure_after_the_decision_is_finished(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch, at: int, stop: bool
) -> None:
    """The moves of the files fail in turn: two of what is replaced, two of what is new. Forward is the only way."""
    with in_file.open() as ledger:
        save(ledger, released, output / "released.csv")
        broken = Fails(os.replace, at, KeyboardInterrupt() if stop else OSError(13, "Permission denied"))
        monkeypatch.setattr(os, "replace", broken)
        with pytest.raises(KeyboardInterrupt if stop else InvalidInput) as refusal:
            save(ledger, released, output / "released.csv", force=True)
        monkeypatch.undo()
        if not stop:
            assert "entry 3 is written, but its file could not be moved into its place" in str(refusal.value)
        assert len(ledger.entries(kind="release")) == 2
        assert ledger.verify().ok
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
        broken = Fails(sa.Connection.commit, 2, lost, after=True)
        monkeypatch.setattr(sa.Connection, "commit", broken.as_method())
        entry = reservation.save(released, output / "released.csv")
        monkeypatch.undo()
        assert ledger.entry(2) == entry
        assert ledger.verify().ok
    assert sorted(os.listdir(output)) == ["released.csv", "released.csv.json"]


def test_a_reservation_that_was_given_up_for_dead_writes_nothing(
    in_file: Where, released: Release, output: Path
) -> None:
    """Its lock was removed by somebody, so the next who opens the ledger takes it back."""
    with in_file.open() as ledger, ledger.reserve(**FIELDS) as reservation:
        for name in os.listdir(output.parent):
            if name.endswith(".lock"):
                (output.parent / name).unlink()
        with in_file.open() as other:
            assert other.pendings() == ()
        with pytest.raises(InvalidInput, match="the reservation was given up meanwhile"):
            reservation.save(released, output / "released.csv")
    assert os.listdir(output) == []


def test_a_reservation_on_another_machine_is_left_alone_and_told(
    in_file: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_file.open() as ledger:
        ledger.set_limit("everyone", epsilon=0.1)
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(pairing.platform, "node", lambda: "elsewhere")
            elsewhere.setattr(pairing.LifeSign, "release", lambda sign: os.close(sign.handle))
            elsewhere.setattr(Session, "settle", lambda session, token: None)
            with ledger.reserve(**FIELDS):
                pass
        for name in os.listdir(tmp_path):
            if name.endswith(".lock"):
                (tmp_path / name).unlink()  # it is on the disk of that machine
    with in_file.open() as ledger:
        found = ledger.verify()
        assert found.ok
        assert "on elsewhere: reserved, and counts as spent" in found.remarks[0].text
        with pytest.raises(InvalidInput, match="exceed the limit"):
            ledger.add(**FIELDS)
        (pending,) = ledger.pendings()
        ledger.abandon(pending.token)
        ledger.add(**FIELDS)
        assert ledger.pendings() == ()


def test_only_what_is_reserved_and_not_ours_can_be_abandoned(in_file: Where) -> None:
    with in_file.open() as ledger:
        with pytest.raises(CellriskError, match="the ledger has no such reservation"):
            ledger.abandon("0" * 32)
        with (
            ledger.reserve(**FIELDS) as reservation,
            pytest.raises(InvalidInput, match="its process lives, and ends it by itself"),
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


def test_signs_of_those_who_died_before_they_reserved_are_swept_away(in_file: Where, tmp_path: Path) -> None:
    with in_file.open() as ledger:
        (tmp_path / f".cellrisk-{ledger.id}-{'0' * 32}.lock").touch()
        held = LifeSign.hold(tmp_path / f".cellrisk-{ledger.id}-{'1' * 32}.lock")
        assert held is not None
        assert LifeSign.hold(held.path) is None
    in_file.open().close()
    assert sorted(os.listdir(tmp_path)) == [held.path.name, "releases.ledger"]
    held.release()
    assert os.listdir(tmp_path) == ["releases.ledger"]


def test_what_a_death_in_the_middle_of_staging_leaves_is_removed(tmp_path: Path) -> None:
    pair = Pair(tmp_path / "released.csv", "f" * 32)
    (tmp_path / f"..released.csv.{'f' * 32}.new.x1y2").write_text("half")
    (tmp_path / "released.csv").write_text("another")
    pair.stage_file(b"new")
    pair.discard()
    assert os.listdir(tmp_path) == ["released.csv"]


DEATHS = [
    ("create", "in_file", 149),
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
        command, cwd=root, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
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
        assert each["files"] == sorted([*pair, *ledger]), each
        assert each["described"] == each["matched"] == len(each["named"]), each
        assert each["pendings"] == 0, each
        assert each["spent"] == pytest.approx(0.1 * each["entries"]), each
    counts = [each["entries"] for each in told]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
