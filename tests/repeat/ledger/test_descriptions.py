"""Descriptions: only their end is read, the newest first, and nothing but regular files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import descriptions
from cellrisk.repeat.ledger.descriptions import list_named, read_end
from cellrisk.repeat.ledger.staging import Draft
from tests.refusals import refused
from tests.repeat.ledger.conftest import Where

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
    monkeypatch.setattr(descriptions, "read_end", lambda path, *more: (read.append(path), read_end(path, *more))[1])
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
LAST = re.compile(r"last entry then: (?P<number>[0-9]+), digest (?P<digest>[0-9a-f]{64})")


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
            last = LAST.search(total)
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
