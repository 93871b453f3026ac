"""Descriptions: only their end is read, the newest first, and nothing but regular files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import descriptions
from cellrisk.repeat.ledger.descriptions import list_named, read_end
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
        with pytest.raises(InvalidInput) as refused:
            ledger.save(released, output / "more.csv")
        assert refused.value.code == "lost-entry"
        os.utime(output / "r19.csv.json", (1, 1))
        assert not ledger.verify(folders=[output]).ok


def test_what_is_not_a_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "file").write_text("text")
    assert [read_end(tmp_path / name) for name in ("pipe", "link", "file", "nothing")] == [
        None,
        None,
        b"text",
        None,
    ]
