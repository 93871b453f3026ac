"""What is written is what is read, on both engines: entries, cohorts, clocks, the one file that is left, exports."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism, mechanism
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger
from tests.repeat.ledger.conftest import LAPLACE, Where, fill
from tests.repeat.ledger.deaths import make_release

PURPOSE = 'Überblick 2021\nfor the board; it\'s "final" \\ 100% 🏯 \x1b[31m'


def test_a_release_is_read_back_as_it_was_written(where: Where, tmp_path: Path) -> None:
    released = tmp_path / "released.csv"
    released.write_bytes(b"age,n\n31,4\n")
    with where.open() as ledger:
        written = ledger.add(
            attribute="income", quasi_identifiers=["age", "Größe\n(cm)"], loss=LAPLACE, purpose=PURPOSE, file=released
        )
    with where.open(create=False) as ledger:
        cohort, read = ledger.entries()
        assert read == written == ledger.entry(2)
        assert (cohort.kind, cohort.cohort, cohort.part_of) == ("cohort", "everyone", None)
        assert (read.number, read.kind, read.attribute, read.purpose) == (2, "release", "income", PURPOSE)
        assert read.quasi_identifiers == ("age", "Größe\n(cm)")
        assert read.loss == Loss.of(LAPLACE)
        assert (read.version, read.clock_behind) == (cr.__version__, None)
        assert read.file is not None
        assert read.file.sha256 == hashlib.sha256(b"age,n\n31,4\n").hexdigest()
        assert (read.file.name, read.file.bytes) == ("released.csv", 11)
        assert (read.previous, ledger.head.digest) == (cohort.digest, read.digest)
        assert cohort.previous == ledger.id == ledger.head.id
    assert "Überblick 2021 for the board" in str(read)
    assert "\x1b" not in str(read)
    assert read.headline == "Release of income by age, Größe (cm) about cohort 'everyone' at 0.1-DP."


def test_the_digest_is_what_anybody_can_compute(where: Where) -> None:
    with where.open() as ledger:
        fill(ledger)
        entries = ledger.entries()
    previous = where.execute("SELECT id FROM ledger")[0][0]
    rows = where.execute("SELECT number, previous, digest, body FROM entries ORDER BY number")
    for (number, before, digest, body), entry in zip(rows, entries, strict=True):
        assert before == previous
        assert digest == hashlib.sha256(f"{number}\n{before}\n{body}".encode()).hexdigest() == entry.digest
        assert body == json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
        previous = digest


LOSSES: dict[str, Mechanism | Loss] = {
    **{
        name: mechanism(name, epsilon=0.1, delta=None if kind.pure else 1e-6, threshold=2.5, neighbours="replace")
        for name, kind in MECHANISMS.items()
    },
    "pure": Loss.pure(1 / 3, "replace"),
    "whole number": Loss.pure(2, "replace"),
    "small delta": Loss.approximate(0.1 + 0.2, 1e-300, "replace"),
    "approximate": Loss.approximate(5e-324, 0.9999999999999999, "replace"),
    "concentrated": Loss.zcdp(1.7976931348623157e308, "replace"),
}


def test_losses_are_kept_to_the_last_digit(where: Where) -> None:
    with where.open() as ledger:
        for name, loss in LOSSES.items():
            ledger.add(attribute=name, quasi_identifiers=[], loss=loss)
        kept = [entry.loss for entry in ledger.entries(kind="release")]
    with where.open() as ledger:
        assert [entry.loss for entry in ledger.entries(kind="release")] == kept
        assert ledger.state().losses("everyone") == tuple(kept)
    assert kept == [Loss.of(loss) if isinstance(loss, Mechanism) else loss for loss in LOSSES.values()]


def test_cohorts_are_declared_and_entries_found_by_them(where: Where) -> None:
    with where.open() as ledger:
        ledger.add(attribute="y", quasi_identifiers="age", loss=LAPLACE, cohort="2020")
        ledger.add(attribute="y", quasi_identifiers="age", loss=LAPLACE, cohort="2021", new_cohort=True)
        ledger.declare("2021 students", part_of="2021")
        ledger.add(attribute=None, quasi_identifiers="age", loss=LAPLACE, cohort="2021 students")
        assert ledger.state().declared == {"2020": None, "2021": None, "2021 students": "2021"}
        assert [entry.number for entry in ledger.entries("2021")] == [3, 4]
        assert [entry.number for entry in ledger.entries("2021", kind="release")] == [4]
        assert ledger.entries(kind="limit") == ()
        assert "6 entries, 3 of them releases, about 3 cohorts" in str(ledger)
        assert ledger.entry(5).headline == "Cohort '2021 students', part of '2021'."
        assert ledger.entry(6).headline == "Release of age about cohort '2021 students' at 0.1-DP."


def test_a_clock_that_goes_backwards_is_remarked_and_changes_no_order(where: Where) -> None:
    noon = datetime(2024, 3, 31, 12, tzinfo=timezone.utc)
    times = iter([noon, noon, noon, noon - timedelta(hours=1, microseconds=1), noon - timedelta(minutes=30), noon])
    with where.open(clock=lambda: next(times)) as ledger:
        for name in ("a", "b", "c", "d"):
            ledger.add(attribute=name, quasi_identifiers=[], loss=LAPLACE)
        assert [entry.attribute for entry in ledger.entries(kind="release")] == ["a", "b", "c", "d"]
        assert [entry.clock_behind for entry in ledger.entries()] == [None, None, 3600.000001, None, None]
        assert ledger.entry(3).time == "2024-03-31T10:59:59.999999+00:00"
        found = ledger.verify()
        assert found.ok
        assert [tuple(remark) for remark in found.remarks] == [(3, "the clock was 3600 s behind the entry before")]


def test_other_zones_are_told_in_utc(in_file: Where) -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    with in_file.open(clock=lambda: datetime(2024, 1, 1, 2, tzinfo=zone)) as ledger:
        assert ledger.declare("a").time == "2023-12-31T20:30:00.000000+00:00"


def test_a_clock_without_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the clock must return a time with its zone"):
        Ledger(tmp_path / "a.ledger", create=True, clock=lambda: datetime(2024, 1, 1))
    with Ledger(tmp_path / "a.ledger", create=True) as ledger:
        assert ledger.entries() == ()


def test_one_file_is_left(in_file: Where, tmp_path: Path) -> None:
    with in_file.open() as first, in_file.open() as second:
        fill(first)
        fill_more = second.add(attribute="z", quasi_identifiers=["age"], loss=LAPLACE)
        assert first.entries()[-1] == fill_more
        assert first.verify().ok
    assert os.listdir(tmp_path) == ["releases.ledger"]
    assert in_file.execute("PRAGMA journal_mode") == [("wal",)]


def test_nothing_stays_open(in_file: Where) -> None:
    ledger = in_file.open()
    fill(ledger)
    del ledger  # not closed: there is nothing to close
    gc.collect()
    assert not [name for name in os.listdir("/proc/self/fd") if in_file.address in _target(name)]


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def test_threads_share_a_ledger(where: Where) -> None:
    failures: list[BaseException] = []

    def add(ledger: Ledger, name: str) -> None:
        try:
            for _ in range(5):
                ledger.add(attribute=name, quasi_identifiers=[], loss=LAPLACE)
                ledger.entries()
                with where.open() as other:
                    assert other.verify(files=False).ok
        except BaseException as error:
            failures.append(error)

    with where.open() as ledger:
        ledger.declare("everyone")
        threads = [threading.Thread(target=add, args=(ledger, name)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(ledger.entries(kind="release")) == 20
        assert ledger.verify().ok


def test_entries_of_other_numbers(where: Where) -> None:
    with where.open() as ledger:
        fill(ledger)
        with pytest.raises(UnknownName, match="no such entry; got 6; allowed: up to 5"):
            ledger.entry(6)
        bad: Any
        for bad in (0, -1, "1", True, 1.0):
            with pytest.raises(CellriskError, match="the number of an entry must be a whole number"):
                ledger.entry(bad)
        with pytest.raises(UnknownName, match="unknown kind of entry"):
            ledger.entries(kind="releases")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}' WHERE number = 3",
        "DELETE FROM entries WHERE number = 5",
        "INSERT OR REPLACE INTO entries SELECT 3, previous, digest, body FROM entries WHERE number = 4",
        "TRUNCATE entries",
        "INSERT INTO entries SELECT * FROM entries WHERE number = 3 ON CONFLICT (number) DO UPDATE SET body = '{}'",
    ],
)
def test_the_database_itself_refuses_changes(where: Where, statement: str) -> None:
    if (where.file is None and "REPLACE" in statement) or (where.file and "TRUNCATE" in statement):
        statement = "DELETE FROM entries"  # the other engine's word
    with where.open() as ledger:
        fill(ledger)
        with pytest.raises(Exception, match=r"are never (changed|deleted|replaced)"):
            where.execute(statement)
        assert ledger.verify().ok


WORDS = 'for "them": it\'s\n- a # list, {really}; 100% 🏯 \u2028 yes\ttab'


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    folder = tmp_path_factory.mktemp("export")
    (folder / "released.csv").write_text("n\n1\n")
    with Ledger(folder / "releases.ledger", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=7.25, delta=1e-5)
        ledger.add(
            attribute="income",
            quasi_identifiers=["age", "sex, or so"],
            loss=LAPLACE,
            purpose=WORDS,
            file=folder / "released.csv",
        )
        ledger.add(attribute=None, quasi_identifiers=["age"], loss=Loss.zcdp(1 / 3))
        ledger.add(attribute="job", quasi_identifiers=[], loss=mechanism("discrete-gaussian", epsilon=1.5, delta=1e-7))
        ledger.add(attribute="ill", quasi_identifiers=[], loss=mechanism("gaussian-pdp", epsilon=0.1, delta=1e-7))
        return ledger


def test_json_lines_can_be_verified_without_the_ledger(exported: Ledger, tmp_path: Path) -> None:
    text, previous = exported.export(tmp_path / "a.jsonl").read_text(encoding="utf-8"), None
    for line, entry in zip(text.split("\n")[:-1], exported.entries(), strict=True):
        told = json.loads(line)
        number, before, digest = (told.pop(name) for name in ("number", "previous", "digest"))
        body = json.dumps(told, sort_keys=True, separators=(",", ":"))
        assert digest == hashlib.sha256(f"{number}\n{before}\n{body}".encode()).hexdigest() == entry.digest
        assert previous in (None, before)
        previous = digest


def test_exports_are_written_whole(exported: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.jsonl"
    target.write_text("old")
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda source, end: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(CellriskError, match="No space left"):
            exported.export(target)
    assert (os.listdir(tmp_path), target.read_text()) == (["a.jsonl"], "old")
    assert exported.export(target) == target
    assert "income" in target.read_text(encoding="utf-8")


def test_exports_of_another_form_are_refused(exported: Ledger, tmp_path: Path) -> None:
    with pytest.raises(CellriskError, match=r"decides the form of an export; got a.xlsx; allowed: .jsonl"):
        exported.export(tmp_path / "a.xlsx")
    assert os.listdir(tmp_path) == []


def test_an_export_replaces_nothing_that_was_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, output = tmp_path / "l.db", tmp_path / "released.csv"
    with Ledger(place, create=True) as ledger:
        ledger.save(make_release(), output)
        ledger.declare("others")
    (tmp_path / "link.csv").symlink_to(output)
    (tmp_path / "hard.csv").hardlink_to(output)
    kept = output.read_bytes()
    for name in ("released.csv", "link.csv", "hard.csv", "released.csv.json"):
        for cohort in ([], ["--cohort", "others"]):
            command = ["ledger", "export", str(place), "--output", str(tmp_path / name), *cohort]
            assert main(command) == 2, name
            assert "would replace" in capsys.readouterr().err
    assert output.read_bytes() == kept
    assert main(["ledger", "export", str(place), "--output", str(tmp_path / "entries.jsonl")]) == 0
