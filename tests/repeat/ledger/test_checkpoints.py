"""An older copy in place of a ledger: descriptions and heads kept outside tell that something was lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import Ledger, checkpoints
from cellrisk.repeat.ledger.checkpoints import Checkpoint, write_line
from tests.refusals import refused
from tests.repeat.ledger.conftest import Where
from tests.repeat.ledger.deaths import FIELDS


def go_back(where: Where, before: bytes) -> None:
    assert where.file is not None
    where.file.write_bytes(before)


@pytest.mark.parametrize("name", ["second.csv", "first.csv", "elsewhere/second.csv"])
def test_descriptions_tell_what_an_older_copy_has_lost(
    in_file: Where, released: Release, tmp_path: Path, name: str
) -> None:
    """A new file, one that replaces another, and one in a folder that has to be named."""
    (tmp_path / "elsewhere").mkdir()
    assert in_file.file is not None
    with in_file.open() as ledger:
        ledger.save(released, tmp_path / "first.csv")
        before = in_file.file.read_bytes()
        ledger.save(released, tmp_path / name, force=True)
        assert ledger.verify(folders=[tmp_path / "elsewhere"]).ok
    go_back(in_file, before)
    with in_file.open() as ledger:
        folders = [tmp_path / "elsewhere"] if "/" in name else []
        texts = [problem.text for problem in ledger.verify(folders=folders).problems]
        assert any(f"lacks entry 3, which the description of {Path(name).name} names" in text for text in texts)
        assert "/" not in name or ledger.verify().ok  # there it was not looked for
        with refused("lost-entry"):
            ledger.save(released, (tmp_path / name).with_name("third.csv"))
        assert len(ledger.entries()) == 2
        if "/" in name:
            ledger.add(**FIELDS)  # another entry 3 is not that one
            assert not ledger.verify(folders=folders).ok


@pytest.mark.parametrize("lost", ["single", "set", "set elsewhere"])
def test_nothing_is_spent_from_an_older_copy_beside_what_was_released(
    in_file: Where, released: Release, tmp_path: Path, lost: str
) -> None:
    """A release and a set that the ledger no longer knows; then every way to spend, with nothing written by any."""
    assert in_file.file is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    frame = pd.DataFrame({"sex": list("fmfm"), "town": list("aabb"), "job": list("xyyx")})
    levels = {"sex": ["f", "m"], "town": ["a", "b"], "job": ["x", "y"]}
    several = cr.release_together(frame, [{"qid": "sex"}, {"qid": "town"}], "job", levels=levels, epsilon=0.1)
    table = cr.tabulate(frame, "sex", "job", levels={name: levels[name] for name in ("sex", "job")})

    def save_set(ledger: Ledger, folder: Path) -> None:
        ledger.save(several, folder)

    def publish_figure(ledger: Ledger) -> None:
        cr.publish_risk(table, cr.Geometric(epsilon=1.0), risk_epsilon=0.1, ledger=ledger, cohort="everyone")

    place = elsewhere if "elsewhere" in lost else tmp_path
    with in_file.open() as ledger:
        ledger.declare("everyone")
        before = in_file.file.read_bytes()
        if lost == "single":
            ledger.save(released, place / "lost.csv")
        else:
            save_set(ledger, place / "lost")
        assert ledger.verify(folders=[elsewhere]).ok
        ledger.save(released, place / "next.csv")  # the whole ledger goes on
    go_back(in_file, before)
    (place / "next.csv.json").unlink()
    kinds: dict[str, Callable[[Ledger], object]] = {
        "single": lambda ledger: ledger.save(released, place / "second.csv"),
        "set": lambda ledger: save_set(ledger, place / "second"),
    }
    if place == tmp_path:  # what is printed alone has no folder of its own: descriptions beside the ledger count
        kinds |= {"figure": publish_figure, "by hand": lambda ledger: ledger.add(**FIELDS)}
    here = sorted(path.name for path in place.rglob("*"))
    with in_file.open() as ledger:
        assert any("lacks entry 2" in problem.text for problem in ledger.verify(folders=[elsewhere]).problems)
        for kind, spend in kinds.items():
            with refused("lost-entry"):
                spend(ledger)
            assert (kind, len(ledger.entries())) == (kind, 1)
    assert sorted(path.name for path in place.rglob("*")) == here


def change(path: Path, change_it: Callable[[str], str]) -> None:
    path.write_text(change_it(path.read_text(encoding="utf-8")), encoding="utf-8")


EDITS: dict[str, Callable[[Path], object]] = {
    "a number": lambda path: change(path, lambda text: text.replace('"epsilon": 0.1', '"epsilon": 0.01')),
    "a word": lambda path: change(path, lambda text: text.replace("The guarantee holds", "The guarantee is absolute")),
    "a space": lambda path: change(path, lambda text: text.replace("\n", "\n ", 1)),
    "a key twice": lambda path: change(path, lambda text: text.replace("{", '{"sentence": "safe",', 1)),
    "no ledger": lambda path: path.write_text(
        json.dumps({key: part for key, part in json.loads(path.read_text()).items() if key != "ledger"}, indent=2)
        + "\n"
    ),
    "another entry": lambda path: change(path, lambda text: text.replace('"entry": 2', '"entry": 1')),
    "another digest": lambda path: change(path, lambda text: text[:-8] + "0" + text[-7:]),
    "nothing": lambda path: path.write_text(""),
    "deep": lambda path: path.write_text("[" * 100_000),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe"),
    "deleted": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


def test_a_description_that_was_edited_or_deleted_is_told(in_file: Where, released: Release, tmp_path: Path) -> None:
    with in_file.open() as ledger:
        ledger.save(released, tmp_path / "released.csv")
        description = tmp_path / "released.csv.json"
        sound = description.read_bytes()
        assert ledger.verify().ok
        for name, edit in EDITS.items():
            edit(description)
            told = [problem.text for problem in ledger.verify().problems if problem.entry == 2]
            assert len(told) == 1, name
            assert "the description released.csv.json of its file is not" in told[0], name
            description.rmdir() if description.is_dir() else description.unlink(missing_ok=True)
            description.write_bytes(sound)
        assert ledger.verify().ok


# Heads.


def test_a_head_kept_outside_follows_every_write_and_finds_an_older_copy(
    in_file: Where, released: Release, tmp_path: Path
) -> None:
    head = tmp_path / "kept" / "heads"
    head.parent.mkdir()
    assert in_file.file is not None
    with in_file.open(head=head) as ledger:
        assert not head.exists()
        ledger.note_head()
        ledger.declare("everyone")
        before = in_file.file.read_bytes()
        ledger.save(released, tmp_path / "released.csv")
        assert head.read_text().splitlines()[-1] == write_line(ledger.head)
        assert [line.split()[1] for line in head.read_text().splitlines()] == ["0", "1", "2"]
    assert head.stat().st_mode & 0o777 == 0o600
    go_back(in_file, before)
    with in_file.open(head=head) as ledger:
        for write in (
            lambda: ledger.add(**FIELDS),
            lambda: ledger.save(released, tmp_path / "more.csv"),
            ledger.note_head,
        ):
            with refused("checkpoint"):
                write()
        assert any("lacks entry 2" in problem.text for problem in ledger.verify(files=False).problems)
        assert len(ledger.entries()) == 1  # to read is no harm
    (tmp_path / "released.csv.json").unlink()  # which names the lost entry too
    with in_file.open() as ledger:
        ledger.add(**FIELDS)
    with in_file.open(head=head) as ledger, pytest.raises(InvalidInput, match="the ledger lacks entry 2"):
        ledger.add(**FIELDS)


def test_a_writer_that_died_before_it_noted_the_head_locks_nobody_out(
    in_file: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = tmp_path / "heads"
    with in_file.open(head=head) as ledger:
        ledger.declare("everyone")
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "note", lambda file, head: None)
            ledger.add(**FIELDS)
        found = ledger.verify()
        assert found.ok
        assert [tuple(remark) for remark in found.remarks] == [(1, "is the last entry of the checkpoint; 1 came after")]
        ledger.add(**FIELDS)
        assert ledger.verify().remarks == ()


def test_a_line_that_was_torn_is_passed_over(in_file: Where, tmp_path: Path) -> None:
    head = tmp_path / "heads"
    with in_file.open(head=head) as ledger:
        ledger.declare("everyone")
        head.write_text(head.read_text() + ledger.id + " 2 abc")
        ledger.add(**FIELDS)
        assert head.read_text().splitlines()[1:] == [f"{ledger.id} 2 abc", write_line(ledger.head)]


def test_one_file_keeps_the_heads_of_several_ledgers_and_knows_a_stranger(tmp_path: Path) -> None:
    head = tmp_path / "heads"
    for name in ("one", "two"):
        with Ledger(tmp_path / name, create=True, head=head) as ledger:
            ledger.declare("everyone")
    for name in ("one", "two"):
        with Ledger(tmp_path / name, head=head) as ledger:
            ledger.add(**FIELDS)
    shutil.copy(tmp_path / "two", tmp_path / "one")
    Ledger(tmp_path / "three", create=True).close()
    with Ledger(tmp_path / "three", head=head) as ledger:
        with refused("checkpoint"):
            ledger.declare("everyone")
        assert ledger.note_head() in head.read_text()
        ledger.declare("everyone")


def test_nothing_is_written_to_a_ledger_that_was_put_in_the_place_of_another(tmp_path: Path) -> None:
    with Ledger(tmp_path / "one", create=True) as one, Ledger(tmp_path / "two", create=True) as two:
        one.declare("everyone")
        two.declare("everyone")
        os.replace(tmp_path / "two", tmp_path / "one")
        with refused("exchanged"):
            one.add(**FIELDS)
    with Ledger(tmp_path / "one") as ledger:
        assert (ledger.id, len(ledger.entries())) == (two.id, 1)


def test_heads_in_a_database_by_the_variable(
    in_database: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(checkpoints.VARIABLE, str(tmp_path / "heads"))
    with in_database.open() as ledger:
        ledger.declare("everyone")
        ledger.add(**FIELDS)
    in_database.disarm()
    in_database.execute("DELETE FROM entries WHERE number = 2")
    in_database.execute("UPDATE ledger SET number = 1, digest = (SELECT digest FROM entries)")
    in_database.arm()
    with in_database.open() as ledger, pytest.raises(InvalidInput, match="the ledger lacks entry 2"):
        ledger.add(**FIELDS)


def test_files_that_cannot_keep_a_head_are_refused(in_file: Where, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,job\nf,cook\n")
    in_file.open().close()
    for path, message in (
        (tmp_path / "people.csv", "holds something else"),
        (in_file.address, "holds something else"),
        (f"{in_file.address}-wal", "cannot be kept in the ledger"),
        (tmp_path, "is not a file"),
        (tmp_path / "nowhere" / "heads", "does not exist"),
        ("a\0b", "cannot hold NUL"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Ledger(in_file.address, head=path)
    assert sorted(os.listdir(tmp_path)) == ["people.csv", "releases.ledger"]
    assert (tmp_path / "people.csv").read_text() == "sex,job\nf,cook\n"


def test_the_commands_around_a_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger, head = str(tmp_path / "l.db"), str(tmp_path / "heads")
    add = ["ledger", "add", ledger, "--attribute", "job", "--epsilon", "0.1", "--head", head]
    assert main(["ledger", "create", ledger, "--head", head]) == 0
    assert main(add) == 0
    line = Path(head).read_text().splitlines()[-1]
    assert f"Head, to be noted elsewhere: {line}\n" in capsys.readouterr().out
    shutil.copy(ledger, tmp_path / "older")
    assert main(add) == 0
    assert main(["ledger", "verify", ledger, "--head", head]) == 0
    assert main(["ledger", "verify", ledger, "--head", line.split()[2]]) == 0
    shutil.copy(tmp_path / "older", ledger)
    capsys.readouterr()
    assert main(add) == 2
    assert "restored from an older copy" in capsys.readouterr().err
    assert main(["ledger", "verify", ledger, "--head", head]) == 3
    assert main(["ledger", "verify", ledger, "--head", "nothing"]) == 2
    assert main(["ledger", "checkpoint", ledger, "--head", str(tmp_path / "another")]) == 0
    assert (tmp_path / "another").read_text().split() == capsys.readouterr().out.split()[-3:]


def test_a_head_that_is_named_does_not_switch_the_other_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    always, other, place = tmp_path / "always", tmp_path / "other", tmp_path / "l.db"
    monkeypatch.setenv(checkpoints.VARIABLE, str(always))
    with Ledger(place, create=True, head=other) as ledger:
        ledger.declare("everyone")
        older = place.read_bytes()
        ledger.declare("second")
        assert always.read_text() == other.read_text() != ""
    place.write_bytes(older)
    for path in (always, other):  # each of them alone tells
        kept = path.read_text()
        path.write_text("".join(kept.splitlines(keepends=True)[:1]))
        with Ledger(place, head=other) as ledger:
            with pytest.raises(InvalidInput, match="the ledger lacks entry 2"):
                ledger.declare("third")
            with pytest.raises(InvalidInput, match="the ledger lacks entry 2"):
                ledger.note_head()
            assert not ledger.verify().ok
        path.write_text(kept)
    monkeypatch.setenv(checkpoints.VARIABLE, str(place))
    with pytest.raises(InvalidInput, match=r"holds something else|cannot be kept in the ledger"):
        Ledger(place, head=other)


def test_a_head_that_was_emptied_is_not_begun_anew(tmp_path: Path) -> None:
    head, place = tmp_path / "head", tmp_path / "l.db"
    head.touch()
    with Ledger(place, create=True, head=head) as ledger:  # of a new ledger nothing can be noted
        ledger.note_head()
    head.write_text("")
    with Ledger(place, head=head) as ledger, refused("checkpoint"):
        ledger.note_head()
    head.unlink()
    with Ledger(place, head=head) as ledger:
        assert ledger.note_head() == head.read_text().strip()
