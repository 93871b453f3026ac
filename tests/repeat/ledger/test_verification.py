"""Every way to change a ledger, a description or bytes of its file behind its back is found and named."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import Entry, Ledger, verification
from cellrisk.repeat.ledger.entry import compute_digest, write_canonically
from cellrisk.repeat.ledger.staging import Draft
from cellrisk.repeat.ledger.verification import list_named, read_end
from tests.refusals import refused
from tests.repeat.ledger.conftest import LAPLACE, Where, fill

INSERT = "INSERT INTO entries (number, previous, digest, body) "


def put(where: Where, number: int, **changed: Any) -> None:
    """Writes columns of an entry anew."""
    for name, value in changed.items():
        where.execute(f"UPDATE entries SET {name} = '{value}' WHERE number = {number}")


def body_of(where: Where, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(where.execute(f"SELECT body FROM entries WHERE number = {number}")[0][0])
    return found


def edit(where: Where, number: int) -> None:
    put(where, number, body=write_canonically({**body_of(where, number), "purpose": "something else"}))


def swap(where: Where, one: int, other: int) -> None:
    for number, new in ((one, 99), (other, one), (99, other)):
        where.execute(f"UPDATE entries SET number = {new} WHERE number = {number}")


def rewrite(where: Where, start: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """A careful forger: every digest from there on is computed anew, and the head too."""
    rows = where.execute("SELECT number, previous, digest, body FROM entries ORDER BY number")
    previous = rows[start - 2][2] if start > 1 else where.execute("SELECT id FROM ledger")[0][0]
    for number, _, _, text in rows[start - 1 :]:
        body = write_canonically(change(json.loads(text)) if number == start else json.loads(text))
        digest = compute_digest(number, previous, body)
        put(where, number, previous=previous, body=body, digest=digest)
        previous = digest
    where.execute(f"UPDATE ledger SET digest = '{previous}'")


def delete(where: Where, *numbers: int) -> None:
    where.execute(f"DELETE FROM entries WHERE number IN ({', '.join(map(str, numbers))})")


def delete_and_close_up(where: Where, number: int) -> None:
    delete(where, number)
    where.execute(f"UPDATE entries SET number = number - 1 WHERE number > {number}")
    where.execute("UPDATE ledger SET number = number - 1")


def insert_between(where: Where, number: int) -> None:
    for old in range(5, number - 1, -1):
        where.execute(f"UPDATE entries SET number = {old + 1} WHERE number = {old}")
    where.execute(f"{INSERT} SELECT {number}, previous, digest, body FROM entries WHERE number = {number + 1}")
    where.execute("UPDATE ledger SET number = 6")


def insert_well_made(where: Where) -> None:
    """An entry with a digest of its own after the last, that the head does not know."""
    previous, body = where.execute("SELECT digest, body FROM entries WHERE number = 5")[0]
    digest = compute_digest(6, previous, body)
    where.execute(f"{INSERT} VALUES (6, '{previous}', '{digest}', '{body}')")


LAST = "SELECT body FROM entries WHERE number = 5"


def forge(where: Where, number: int, body: str) -> str:
    """The digest of another body at that place."""
    return compute_digest(number, where.execute(f"SELECT previous FROM entries WHERE number = {number}")[0][0], body)


def cut_off(where: Where) -> None:
    """The last entry gone, and the head's number changed, but not its digest."""
    delete(where, 5)
    where.execute("UPDATE ledger SET number = 4")


TAMPERINGS: dict[str, tuple[Callable[[Where], None], list[tuple[int | None, str]]]] = {
    "edited first": (lambda where: edit(where, 1), 1),
    "edited middle": (lambda where: edit(where, 3), 3),
    "edited last": (lambda where: edit(where, 5), 5),
    "no JSON": (lambda where: put(where, 3, body="{"), 3),
    "digest changed": (lambda where: put(where, 3, digest="0" * 64), 3),
    "previous changed": (lambda where: put(where, 3, previous="0" * 64), 3),
    "deleted middle": (lambda where: delete(where, 3), 3),
    "deleted last": (lambda where: delete(where, 5), 5),
    "deleted all": (lambda where: delete(where, *range(1, 6)), 1),
    "deleted last, head cut": (cut_off, None),
    "deleted and closed up": (lambda where: delete_and_close_up(where, 3), 3),
    "swapped": (lambda where: swap(where, 3, 4), 3),
    "inserted": (lambda where: insert_between(where, 4), 5),
    "a well-made entry in place of another": (
        lambda where: put(where, 3, body=(body := where.execute(LAST)[0][0]), digest=forge(where, 3, body)),
        4,
    ),
    "appended": (insert_well_made, 6),
    "before the first, well made": (
        lambda where: where.execute(f"{INSERT} VALUES (0, 'x', '{compute_digest(0, 'x', '{}')}', '{{}}')"),
        0,
    ),
    "head digest": (lambda where: where.execute(f"UPDATE ledger SET digest = '{'0' * 64}'"), None),
    "head number up": (lambda where: where.execute("UPDATE ledger SET number = 2000000000"), 6),
    "another id": (lambda where: where.execute(f"UPDATE ledger SET id = '{'0' * 32}'"), 1),
    "invalid, well made": (
        lambda where: rewrite(where, 3, lambda body: {**body, "loss": {**body["loss"], "epsilon": -1}}),
        3,
    ),
    "unknown kind, well made": (lambda where: rewrite(where, 3, lambda body: {**body, "kind": "other"}), 3),
    "unknown cohort, well made": (lambda where: rewrite(where, 4, lambda body: {**body, "cohort": "nobody"}), 4),
    "part of nothing, well made": (lambda where: rewrite(where, 1, lambda body: {**body, "part_of": "nobody"}), 1),
}


CASES = [("in_file", name) for name in TAMPERINGS]
CASES += [("in_database", name) for name in ("edited middle", "deleted last", "swapped", "appended", "head digest")]


@pytest.mark.parametrize(("place", "name"), CASES)
def test_what_was_changed_is_found_and_named(request: pytest.FixtureRequest, place: str, name: str) -> None:
    where: Where = request.getfixturevalue(place)
    tamper, entry = TAMPERINGS[name]
    with where.open() as ledger:
        fill(ledger)
        assert ledger.verify().ok
    where.disarm()
    tamper(where)
    where.arm()
    with where.open() as ledger:
        found = ledger.verify()
        assert not found.ok
        assert entry in {problem.entry for problem in found.problems}, found.problems
        assert found.problems[0].text in str(found)
        if not name.endswith("well made"):
            with pytest.raises(InvalidInput, match="the ledger is damaged or was changed at"):
                ledger.entries()
            with pytest.raises(InvalidInput, match="the ledger is damaged or was changed at"):
                ledger.add(attribute="z", quasi_identifiers=[], loss=LAPLACE)


def test_a_rewritten_chain_is_found_by_a_digest_noted_elsewhere(where: Where) -> None:
    with where.open() as ledger:
        fill(ledger)
        noted = ledger.verify().head
        assert noted == ledger.head.digest == ledger.entry(5).digest
        assert ledger.verify(head=noted.upper()).remarks == ()
        assert ledger.verify(head=ledger.id).ok
        ledger.add(attribute="z", quasi_identifiers=[], loss=LAPLACE)
        grown = ledger.verify(head=noted)
        assert grown.ok
        assert [tuple(remark) for remark in grown.remarks] == [
            (5, "has the digest that was noted elsewhere; 1 came after it")
        ]
    where.disarm()
    rewrite(where, 3, lambda body: {**body, "purpose": "something else"})
    where.arm()
    with where.open() as ledger:
        assert ledger.verify().ok  # whole in itself
        assert ledger.entry(3).purpose == "something else"
        assert [tuple(problem) for problem in ledger.verify(head=noted).problems] == [
            (None, "no entry has the digest that was noted elsewhere: the ledger was rewritten")
        ]


@pytest.mark.parametrize("head", ["", "abc", "g" * 64, 5, "0" * 63])
def test_a_digest_that_is_none_is_refused(in_file: Where, head: Any) -> None:
    with in_file.open() as ledger, pytest.raises(InvalidInput, match="a digest is 64 hexadecimal digits"):
        ledger.verify(head=head)


def test_released_files_are_compared(in_file: Where, tmp_path: Path) -> None:
    files = [tmp_path / f"released{number}.csv" for number in range(4)]
    with in_file.open() as ledger:
        for number, file in enumerate(files):
            file.write_text(f"{number}\n")
            ledger.add(attribute=f"y{number}", quasi_identifiers=[], loss=LAPLACE, file=file)
        assert ledger.verify().remarks == ledger.verify().problems == ()
        files[0].write_text("changed\n")
        files[1].unlink()
        files[3].unlink()
        files[3].mkdir()
        ledger.add(attribute="again", quasi_identifiers=[], loss=LAPLACE, file=files[2])
        found = ledger.verify()
        assert [tuple(problem) for problem in found.problems] == [
            (2, "its file released0.csv is not what was released: it was changed")
        ]
        assert [tuple(remark) for remark in found.remarks] == [
            (3, "its file released1.csv is not in a folder that was looked at"),
            (4, "its file released2.csv was replaced by a later release"),
            (5, "its file released3.csv cannot be read"),
        ]
        assert ledger.verify(files=False).ok


def test_a_verification_prints_and_converts(in_file: Where) -> None:
    with in_file.open() as ledger:
        empty = ledger.verify()
        assert empty.headline.startswith("The ledger is whole: 0 entries")
        fill(ledger)
        whole = ledger.verify()
    assert whole.to_dict() == {
        "ok": True,
        "sentence": f"The ledger is whole: 5 entries, each as it was written. The last digest: {whole.head}.",
        "ledger": whole.id,
        "n_entries": 5,
        "head": whole.head,
        "problems": [],
        "remarks": [],
    }
    assert len(whole.to_frame()) == 0
    in_file.disarm()
    edit(in_file, 3)
    in_file.arm()
    with Ledger(in_file.address) as ledger:
        frame = ledger.verify().to_frame()
    assert frame[["kind", "entry"]].to_dict("records") == [{"kind": "problem", "entry": 3}]


ID, DIGEST = "7f" * 16, "ab" * 32


def describe(path: Path, number: int, digest: str = DIGEST, identity: str = ID, before: str = "") -> None:
    named = f'"ledger": {{\n    "id": "{identity}",\n    "entry": {number},\n    "digest": "{digest}"\n  }}\n}}\n'
    path.write_text(f'{{\n  "sentence": "{before}",\n  {named}')


def test_descriptions_that_name_entries_are_found(tmp_path: Path) -> None:
    describe(tmp_path / "known.csv.json", 1)
    describe(tmp_path / "lost.csv.json", 2, before="x" * 100_000)
    describe(tmp_path / "other.parquet.json", 3, identity="00" * 16)
    describe(tmp_path / "not-a-description.json", 4)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "set.json").write_text("{}")
    describe(tmp_path / "set" / "table-1.csv.json", 5)
    os.mkfifo(tmp_path / "pipe.csv.json")
    (tmp_path / "folder.csv.json").mkdir()
    found = sorted(list_named(ID, tmp_path), key=lambda named: named.number)
    assert [(named.name, named.number) for named in found] == [
        ("known.csv", 1),
        ("lost.csv", 2),
        ("set/table-1.csv", 5),
    ]
    assert list(list_named(ID, tmp_path / "nowhere")) == []


def test_a_save_reads_the_newest_alone(
    in_file: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many descriptions a folder holds; verify reads all."""
    monkeypatch.setattr("cellrisk.repeat.ledger.NEWEST", 3)
    read: list[Path] = []
    monkeypatch.setattr(verification, "read_end", lambda path, *more: (read.append(path), read_end(path, *more))[1])
    with in_file.open() as ledger:
        for number in range(20):
            path = output / f"r{number:02}.csv.json"
            describe(path, 1, identity="00" * 16)
            os.utime(path, (number, number))
        ledger.save(released, output / "new.csv")
        assert [path.name for path in read if path.parent == output] == [f"r{n}.csv.json" for n in (19, 18, 17)]
        describe(output / "r19.csv.json", 7, identity=ledger.id)
        with refused("lost-entry"):
            ledger.save(released, output / "more.csv")
        os.utime(output / "r19.csv.json", (1, 1))
        assert not ledger.verify(folders=[output]).ok


def test_what_is_not_a_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "file").write_text("text")
    assert [read_end(tmp_path / name) for name in ("pipe", "link", "file", "nothing")] == [None, None, b"text", None]


FRAME = pd.DataFrame({"who": [1, 1, 2, 3], "area": list("nnss"), "sex": list("fmfm"), "ill": ["no", "yes", "no", "no"]})
LEVELS = {"area": ["n", "s"], "sex": ["f", "m"], "ill": ["no", "yes"]}
RECORDS, PEOPLE = {"outside": "drop"}, {"outside": "drop", "person": "who", "contributions": 2}
STATED = re.compile(r"(?P<cost>.*?), (?:of this release alone|together with the (?P<others>[0-9]+) releases?)\b.*")
LAST_ENTRY = re.compile(r"last entry then: (?P<number>[0-9]+), digest (?P<digest>[0-9a-f]{64})")


def release(unit: dict[str, Any], **noise: Any) -> Any:
    table = cr.tabulate(FRAME, "area", "ill", levels={name: LEVELS[name] for name in ("area", "ill")}, **unit)
    return cr.release(table, **noise)


MADE = {
    "records": lambda: release(RECORDS, epsilon=0.5),
    "people": lambda: release(PEOPLE, epsilon=0.5),
    "with a delta": lambda: release(RECORDS, mechanism="discrete-gaussian", epsilon=0.5, delta=1e-6),
    "a rho of people": lambda: release(PEOPLE, mechanism="discrete-gaussian", epsilon=0.5, delta=1e-6),
    "set": lambda: cr.release_together(FRAME, [{"qid": "area"}, {"qid": "sex"}], "ill", levels=LEVELS, epsilon=0.25),
}


def read_total(path: Path) -> str:
    return str(json.loads(path.read_text())["label"]["total"])


@pytest.mark.parametrize("kind", MADE)
def test_the_label_states_the_total_over_the_ledger(
    where: Where, output: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this release and those that the ledger held; still true if another writer comes before its entry."""
    made = MADE[kind]()

    def let_another_write(*asked: Any) -> Draft:
        """After the label is stated, and before the transaction."""
        monkeypatch.undo()
        with where.open() as other:
            other.save(made, output / ("other" if kind == "set" else "other.csv"))
        return Draft(*asked)

    with where.open() as ledger:
        for number in range(3):
            target = output / (f"{number}" if kind == "set" else f"{number}.csv")
            if number == 2:
                monkeypatch.setattr("cellrisk.repeat.ledger.Draft", let_another_write)
            entry = ledger.save(made, target)
            described = sorted(target.glob("table-*.json")) if kind == "set" else [output / f"{target.name}.json"]
            [total] = {read_total(path) for path in described}
            stated = STATED.fullmatch(total)
            assert stated is not None
            last = LAST_ENTRY.search(total)
            entries = ledger.entries()[: 0 if last is None else int(last["number"])]
            assert last is None or entries[-1].digest == last["digest"]
            losses = [each.loss for each in entries if each.loss is not None]
            assert (number, entry.number - 1 - len(entries)) in [(0, 1), (1, 0), (2, 1)]
            assert int(stated["others"] or 0) == len(losses) == number
            assert entry.loss is not None
            rho = cr.Loss.join([*losses, entry.loss]).total_rho if kind == "a rho of people" else None
            cost = cr.compose([*losses, entry.loss]) if rho is None else None
            numbers = [float(text) for text in re.findall(r"[0-9.]+(?:e-[0-9]+)?", stated["cost"])]
            expected = [rho] if cost is None else [each for each in (cost.epsilon, cost.delta) if each]
            assert numbers == pytest.approx(expected, rel=1e-5, abs=0)
        assert ledger.verify(folders=[output]).ok
    if kind != "set":
        made.save(output / "without.csv")
        assert read_total(output / "without.csv.json").startswith("to fill")


def test_the_total_is_that_of_the_cohort_and_its_limit(in_file: Where, output: Path) -> None:
    made = MADE["records"]()
    with in_file.open() as ledger:
        ledger.add(attribute="job", quasi_identifiers="age", loss=cr.Laplace(1.0))
        ledger.add(attribute="job", quasi_identifiers="age", loss=cr.Laplace(0.5), cohort="ill", new_cohort=True)
        ledger.set_limit("everyone", epsilon=3.0, delta=1e-6)
        ledger.save(made, output / "new.csv", cohort="women", new_cohort=True, part_of="everyone")
        assert read_total(output / "new.csv.json").startswith(
            "epsilon 1.5 (pure DP, by basic composition), together with the 1 "
        )
        ledger.save(made, output / "all.csv")
        assert read_total(output / "all.csv.json").startswith("epsilon 2 at delta 1e-06 (approximate DP, by ")


MARK = "a purpose that is long enough to be found again in the file"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Entry, ...]]:
    """A ledger of several pages, and what is in it."""
    path = tmp_path_factory.mktemp("sound") / "sound.ledger"
    with Ledger(path, create=True) as ledger:
        fill(ledger)
        for number in range(25):
            purpose = f"{MARK} {number} " + "and more of it " * 20
            ledger.add(attribute=f"z{number}", quasi_identifiers=["age"], loss=LAPLACE, purpose=purpose)
        return path, ledger.entries()


def examine_copy(path: Path, expected: tuple[Entry, ...]) -> str:
    """What is said of a damaged copy; fails where an entry is not what was written, or anything but a refusal comes."""
    try:
        with Ledger(path, create=False, wait=1) as ledger:
            whole = ledger.verify().ok
            try:
                entries: tuple[Entry, ...] | None = ledger.entries()
            except CellriskError:
                entries = None
    except CellriskError:
        return "refused"
    assert entries == expected or (entries is None and not whole)
    return "harmless" if whole else "reported"


@pytest.mark.parametrize("seed", range(2))
def test_a_byte_that_changed(sound: tuple[Path, tuple[Entry, ...]], tmp_path: Path, seed: int) -> None:
    source, expected = sound
    draw, content = random.Random(seed), source.read_bytes()
    copy, outcomes = tmp_path / "copy.ledger", []
    for _ in range(80):
        damaged = bytearray(content)
        # A part of the changes goes to the first page, where the structure of the file is.
        place = draw.randrange(200) if draw.random() < 0.2 else draw.randrange(len(content))
        damaged[place] ^= draw.randrange(1, 256)
        copy.write_bytes(damaged)
        outcomes.append(examine_copy(copy, expected))
        for beside in tmp_path.iterdir():
            beside.unlink()
    assert {"reported", "harmless", "refused"} == set(outcomes)


def test_the_entry_that_is_hit_is_named(sound: tuple[Path, tuple[Entry, ...]], tmp_path: Path) -> None:
    source, expected = sound
    for number in (0, 12, 24):
        copy = tmp_path / f"copy{number}.ledger"
        content = bytearray(source.read_bytes())
        place = content.index(f"{MARK} {number} ".encode()) + 5
        content[place] ^= 1
        copy.write_bytes(content)
        with Ledger(copy) as ledger:
            entry = next(entry for entry in expected if entry.attribute == f"z{number}")
            assert [problem.entry for problem in ledger.verify().problems] == [entry.number]


@pytest.mark.parametrize("text", ["TRIGGER entries_are_not_deleted", "CREATE TABLE entries"])
def test_tables_whose_names_are_no_text_are_refused(
    sound: tuple[Path, tuple[Entry, ...]], tmp_path: Path, text: str
) -> None:
    """The engine then quotes, in its message, what cannot be decoded."""
    source, expected = sound
    copy = tmp_path / "copy.ledger"
    content = bytearray(source.read_bytes())
    content[content.index(text.encode()) + 7] ^= 0x80
    copy.write_bytes(content)
    assert examine_copy(copy, expected) == "refused"


def test_a_page_that_was_lost(sound: tuple[Path, tuple[Entry, ...]], tmp_path: Path) -> None:
    """A page of entries full of zeros: those on it are named, the engine's own check tells more."""
    source, expected = sound
    copy = tmp_path / "copy.ledger"
    content = bytearray(source.read_bytes())
    page = content.index(f"{MARK} 12 ".encode()) // 4096 * 4096
    content[page : page + 4096] = bytes(4096)
    copy.write_bytes(content)
    entry = next(entry for entry in expected if entry.attribute == "z12")
    with Ledger(copy) as ledger:
        found = ledger.verify()
        assert any("the file of the ledger is damaged" in problem.text for problem in found.problems)
        assert found.n_entries < entry.number
        with pytest.raises(CellriskError, match="the ledger is damaged"):
            ledger.entries()


@pytest.mark.parametrize("kept", [1, 99, 100, 4095, 4096, 0.5, -1])
def test_a_file_that_was_cut_off(sound: tuple[Path, tuple[Entry, ...]], tmp_path: Path, kept: float) -> None:
    source, expected = sound
    copy = tmp_path / "copy.ledger"
    shutil.copy(source, copy)
    size = copy.stat().st_size
    with copy.open("r+b") as stream:
        stream.truncate(int(size * kept) if 0 < kept < 1 else int(kept) % size)
    assert examine_copy(copy, expected) in ("refused", "reported")
