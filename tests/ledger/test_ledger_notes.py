"""Files outside a ledger that speak of it, each alone: checkpoints, and the descriptions beside releases."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import checkpoints, descriptions
from cellrisk.repeat.ledger.chain import Head, Row
from cellrisk.repeat.ledger.checkpoints import Checkpoint, find_checkpoints, write_line
from cellrisk.repeat.ledger.descriptions import (
    compare_description,
    compare_tables,
    digest_description,
    find_lost,
    read_regular,
)
from cellrisk.repeat.ledger.entry import BookedTable, Entry, ReleasedFile
from cellrisk.system.writing import refuse_inputs

ID, OTHER, TOKEN = "7f" * 16, "5a" * 16, "1b" * 16
DIGESTS = ["", *(f"{number:064x}" for number in range(1, 9))]


# Heads.


@dataclass
class Told:
    """A ledger of some entries, which says of itself and of them what a head is compared with."""

    length: int
    asked: list[int] = field(default_factory=list)

    @property
    def head(self) -> Head:
        return Head(ID, 3, "", self.length, DIGESTS[self.length] or ID)

    def row(self, number: int) -> Row | None:
        self.asked.append(number)
        return Row(number, "", DIGESTS[number], "") if 0 < number <= self.length else None


def write_lines(path: Path, *numbers: int, identity: str = ID) -> None:
    path.write_text("".join(f"{identity} {number} {DIGESTS[number] or identity}\n" for number in numbers))


def test_files_of_heads_are_those_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(checkpoints.VARIABLE, raising=False)
    assert find_checkpoints(None) == ()
    assert find_checkpoints(tmp_path / "a") == (Checkpoint(tmp_path / "a"),)
    monkeypatch.setenv(checkpoints.VARIABLE, str(tmp_path / "b"))
    assert find_checkpoints(None) == (Checkpoint(tmp_path / "b"),)
    assert find_checkpoints(str(tmp_path / "a")) == (Checkpoint(tmp_path / "a"), Checkpoint(tmp_path / "b"))
    monkeypatch.setenv(checkpoints.VARIABLE, "")
    assert find_checkpoints(None) == ()


def test_nothing_is_released_over_a_file_of_heads(tmp_path: Path) -> None:
    Checkpoint.open(str(tmp_path / "kept"))
    with pytest.raises(InvalidInput, match="would replace the file that keeps the ledger's head"):
        refuse_inputs(tmp_path / "kept")


def test_a_file_that_can_keep_no_head_is_refused_by_its_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("something\n" + write_line(Told(1).head))
    (tmp_path / "longer").write_text(write_line(Told(1).head) + "0\n")
    (tmp_path / "empty").touch()
    for name, message in (
        ("", "the file for the ledger's head is no file; got "),
        ("pipe", "the file for the ledger's head is no file; got "),
        ("text", "the file for the ledger's head holds something else; got "),
        ("longer", "the file for the ledger's head holds something else; got "),
        ("nowhere/head", "the folder for the ledger's head does not exist; got "),
        ("a\0b", "a path cannot hold NUL"),
    ):
        with pytest.raises(InvalidInput) as refused:
            Checkpoint.open(f"{tmp_path}/{name}")
        assert str(refused.value).startswith(message), name
    assert Checkpoint.open(f"{tmp_path}/empty").path == tmp_path / "empty"
    write_lines(tmp_path / "good", 1)
    assert Checkpoint.open(f"{tmp_path}/good").path == tmp_path / "good"


def test_the_last_head_is_the_one_of_the_highest_number(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "heads")
    assert file.last(ID) is None
    write_lines(file.path, 1, 3, 2)
    assert file.last(ID) == (3, DIGESTS[3])
    assert file.last(OTHER) is None
    with file.path.open("a") as stream:
        stream.write(f"{OTHER} 7 {DIGESTS[7]}\n{ID} 8 {DIGESTS[8][:50]}\n\udcff".encode("utf-8", "replace").decode())
    assert file.last(ID) == (3, DIGESTS[3])
    assert file.last(OTHER) == (7, DIGESTS[7])


def test_a_file_of_heads_is_read_up_to_64_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is 113 characters long, so that is more than half a million writes."""
    file = Checkpoint(tmp_path / "heads")
    write_lines(file.path, 1)
    os.truncate(file.path, 64 << 20)
    assert file.last(ID) == (1, DIGESTS[1])
    os.truncate(file.path, (64 << 20) + 1)
    with pytest.raises(InvalidInput, match=r"^the file of the ledger's head is too large; got .*; begin a new one$"):
        file.last(ID)


def test_a_file_of_heads_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "heads", 1)
    monkeypatch.setattr(Path, "open", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    for read in (lambda: Checkpoint(tmp_path / "heads").last(ID), lambda: Checkpoint.open(str(tmp_path / "heads"))):
        with pytest.raises(
            InvalidInput, match=r"^the ledger's head cannot be read; got .*heads \(Input/output error\)"
        ):
            read()


LACKS = (
    "the ledger lacks entry {}, which is noted in the file that keeps its head: it was rewritten, or restored from an "
    "older copy"
)
NOTHING = "nothing is noted of this ledger in the file that keeps its head: it may have been exchanged"


def test_a_ledger_is_compared_with_its_head(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "heads")
    assert file.compare(Told(2)) == NOTHING
    for noted in range(4):
        write_lines(file.path, noted)
        for length in range(5):
            told = Told(length)
            assert file.compare(told) == ("" if length >= noted else LACKS.format(noted)), (noted, length)
            assert told.asked == ([noted] if noted else [])
    for number, digest in ((0, OTHER), (2, DIGESTS[3])):
        file.path.write_text(f"{ID} {number} {digest}\n")
        assert file.compare(Told(3)) == LACKS.format(number)


def test_which_ledgers_a_file_of_heads_accepts(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "heads")

    def refuse(how: Callable[[Told], None]) -> str:
        try:
            how(Told(1))
        except InvalidInput as refusal:
            return str(refusal)
        return ""

    def try_all() -> tuple[bool, ...]:
        refusals = [refuse(how) for how in (file.check, partial(file.check, new=True), file.begin)]
        end = f"got {file.path}; find the newest copy, or account for what is lost and note the head in another file"
        assert [text for text in refusals if text and not text.endswith(end)] == []
        return tuple(not text for text in refusals)

    assert try_all() == (False, True, True)  # no file: nothing is noted, and one may begin
    file.path.touch()
    assert try_all() == (False, True, False)  # it may have been emptied
    write_lines(file.path, 1, identity=OTHER)
    assert try_all() == (False, True, True)
    write_lines(file.path, 1)
    assert try_all() == (True, True, True)
    write_lines(file.path, 2)
    assert try_all() == (False, False, False)


def test_who_waits_for_the_lock_sees_what_was_noted_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another who holds the lock notes a later entry: the earlier one is not noted after it."""
    file = Checkpoint(tmp_path / "heads")
    locked: list[str] = []

    def wait(handle: int) -> None:
        write_lines(file.path, 3)
        locked.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(checkpoints, "wait_for_lock", wait)
    file.note(Told(2).head)
    assert (file.last(ID), locked) == ((3, DIGESTS[3]), [str(file.path)])
    assert len(file.path.read_text().splitlines()) == 1


def test_a_head_is_added_once_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "heads")
    before = len(os.listdir("/proc/self/fd"))
    for length in (0, 1, 1, 0, 2):
        file.note(Told(length).head)
    assert file.path.read_text() == "".join(f"{write_line(Told(length).head)}\n" for length in (0, 1, 2))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    file.path.write_text("torn")
    file.note(Told(2).head)
    assert file.path.read_text() == f"torn\n{write_line(Told(2).head)}\n"
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(InvalidInput) as refused:
        Checkpoint(tmp_path).note(Told(2).head)
    assert str(refused.value) == (
        "entry 2 stands in the ledger, but could not be noted in the file that keeps its head; "
        f"got {tmp_path} (Is a directory); see to the file: the next write notes it"
    )


def test_room_for_a_head_is_asked_of_the_file_or_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, int]] = []
    allowed = [True, True, False]
    monkeypatch.setattr(os, "access", lambda path, mode: (asked.append((path, mode)), allowed.pop(0))[1])
    file = Checkpoint(tmp_path / "heads")
    file.check_room()
    file.path.touch()
    file.check_room()
    with pytest.raises(InvalidInput, match=r"^the ledger's head cannot be noted there; got .*; choose another file$"):
        file.check_room()
    assert asked == [(tmp_path, os.W_OK), (file.path, os.W_OK), (file.path, os.W_OK)]


# Journals.


# Descriptions.


def describe(**ledger: Any) -> str:
    named = {"ledger": ledger} if ledger else {}
    return json.dumps({"sentence": "für alle", **named}, indent=2, ensure_ascii=False) + "\n"


def make_entry(path: Path, description: str | None = None, n_tables: int = 0) -> Entry:
    file = ReleasedFile(path.name, str(path), "ab" * 32, 5, description=description)
    table = BookedTable(("age",), Loss.pure(1.0))
    common: dict[str, Any] = {"time": "", "kind": "release", "cohort": "everyone"}
    return Entry(number=4, digest=DIGESTS[4], file=file, tables=(table,) * n_tables, **common)


NAMED = {"id": ID, "entry": 4, "digest": DIGESTS[4]}


def test_the_digest_of_a_description_is_that_of_what_is_released() -> None:
    alone = hashlib.sha256(describe().encode()).hexdigest()
    assert digest_description(describe()) == digest_description(describe(**NAMED)) == alone
    for text in ("", "[]", "[]\n", '"a"\n', describe()[:-1], describe() + "\n", "{}", "[" * 100_000):
        assert digest_description(text) is None, text[:20]
    assert digest_description("{}\n") == hashlib.sha256(b"{}\n").hexdigest()


CHANGED = "the description a.csv.json of its file is not what was released: it was changed"


def test_a_description_is_compared_in_all_its_parts(tmp_path: Path) -> None:
    path, beside = tmp_path / "a.csv", tmp_path / "a.csv.json"
    alone = hashlib.sha256(describe().encode()).hexdigest()
    entry = make_entry(path, alone)
    assert compare_description(make_entry(path), ID, path) == ""  # its digest was not noted
    assert compare_description(entry, ID, path) == (
        "the description a.csv.json of its file is not there, or cannot be read: it was deleted"
    )
    beside.write_text(describe(**NAMED))
    assert compare_description(entry, ID, path) == ""
    for other in (
        *(describe(**{**NAMED, name: value}) for name, value in (("id", OTHER), ("entry", 5), ("digest", DIGESTS[5]))),
        *(describe(**NAMED, more=1), describe(), describe(**NAMED).replace("alle", "keinen"), "{", "[]", "5"),
    ):
        beside.write_text(other)
        assert compare_description(entry, ID, path) == CHANGED
    beside.write_bytes(b"\xff")
    assert compare_description(entry, ID, path) == CHANGED


def test_every_table_of_a_set_is_compared_with_the_list(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    alone = hashlib.sha256(describe().encode()).hexdigest()
    told = []
    for name, content in (("a.csv", b"1,2\n"), ("b.csv", b"3,4\n")):
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}.json").write_text(describe(**NAMED))
        told.append({"file": name, "sha256": hashlib.sha256(content).hexdigest(), "description": alone})
    entry = make_entry(path, n_tables=2)

    def compare(listed: Any) -> list[str]:
        path.write_text(json.dumps(listed))
        return list(compare_tables(entry, ID, path))

    assert compare({"tables": told}) == []
    unread = ["the list of its tables cannot be read"]
    for listed in (
        *([], 5, {}, {"tables": 5}, {"tables": [5, 5]}, {"tables": told[:1]}, {"tables": [*told, told[0]]}),
        *({"tables": [told[0], {**told[1], "file": name}]} for name in ("../b.csv", "/b.csv", "x/b.csv")),
        {"tables": [told[0], {"file": "b.csv"}]},
    ):
        assert compare(listed) == unread, listed
    path.write_text("")
    assert list(compare_tables(entry, ID, path)) == unread
    path.unlink()
    assert list(compare_tables(entry, ID, path)) == unread
    (tmp_path / "a.csv").write_bytes(b"1,3\n")
    (tmp_path / "b.csv.json").write_text(describe(**{**NAMED, "entry": 5}))
    assert compare({"tables": told}) == [
        "its file a.csv is not what was released: it was changed",
        CHANGED.replace("a.csv", "b.csv"),
    ]
    (tmp_path / "a.csv").unlink()
    (tmp_path / "a.csv.json").unlink()
    assert compare({"tables": told}) == [
        "its file a.csv is not there, or cannot be read: it was deleted",
        "the description a.csv.json of its file is not there, or cannot be read: it was deleted",
        CHANGED.replace("a.csv", "b.csv"),
    ]


def test_entries_that_only_descriptions_know_are_lost(tmp_path: Path) -> None:
    for name, ledger in (
        ("known.csv.json", NAMED),
        ("lost.csv.json", {**NAMED, "entry": 1234}),
        ("rewritten.parquet.json", {**NAMED, "digest": DIGESTS[5]}),
        ("other.csv.json", {**NAMED, "id": OTHER, "entry": 9, "digest": ID}),
        (".staged.csv.json", {**NAMED, "entry": 9}),
        ("no.json", {**NAMED, "entry": 9}),
        ("words.csv.json", {**NAMED, "entry": "9"}),
        ("numbers.csv.json", {**NAMED, "digest": 9}),
        ("truth.csv.json", {**NAMED, "entry": True}),
    ):
        (tmp_path / name).write_text(json.dumps({"ledger": ledger}))
    (tmp_path / "broken.csv.json").write_text(f'{{"{ID}"')
    (tmp_path / "list.csv.json").write_text(f'["{ID}"]')
    (tmp_path / "without.csv.json").write_text(f'{{"ledger": {{"id": "{ID}"}}}}')
    (tmp_path / "folder.csv.json").mkdir()
    for name in ("set", ".staged", "no set", "deep/set"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "table-1.csv.json").write_text(json.dumps({"ledger": {**NAMED, "entry": 7}}))
        if "no" not in name:
            (tmp_path / name / "set.json").write_text("{}")
    found = find_lost(ID, {4: DIGESTS[4]}.get, [tmp_path, tmp_path / "nowhere", tmp_path])
    assert [tuple(problem) for problem in found] == [
        (
            None,
            f"the ledger lacks entry {number}, which the description of {name} names: it is older than that release, "
            "restored from a copy, or it was rewritten",
        )
        for number, name in (("1,234", "lost.csv"), ("4", "rewritten.parquet"), ("7", "set/table-1.csv"))
    ]
    assert descriptions._list_descriptions(Path("a\0b")) == []


def test_of_a_large_folder_a_hundred_thousand_names_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that somebody sent can name any folder."""

    class Folder:
        names = (f"{number}.csv.json" if number >= 99_999 else "" for number in range(100_100))

        def __enter__(self) -> Any:
            return (SimpleNamespace(name=name) for name in self.names)

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(os, "scandir", lambda folder: Folder())
    assert descriptions._list_descriptions(Path("/any")) == [Path("/any/99999.csv.json")]


def test_a_description_is_read_up_to_256_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked = tmp_path / "large", []
    path.touch()
    os.truncate(path, (256 << 20) + 1)
    assert read_regular(path) is None

    class Stream:
        def __enter__(self) -> Stream:
            return self

        def __exit__(self, *_: object) -> None: ...

        def read(self, size: int) -> bytes:
            asked.append(size)
            return b"read"

    monkeypatch.setattr(descriptions, "_open_regular", lambda path: Stream())
    for size, content in ((256 << 20, b"read"), ((256 << 20) + 1, None)):
        monkeypatch.setattr(descriptions, "_size", lambda stream, size=size: size)
        assert read_regular(path) == content
    assert asked == [256 << 20]
