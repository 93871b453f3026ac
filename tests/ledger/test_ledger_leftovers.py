"""What stands where a ledger looks, and was not put there by it: logs of dead ledgers, heads, releases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger import Ledger, checkpoints
from tests.ledger.deaths import make_release

MAKERS: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_bytes(b"old"),
    "empty": Path.touch,
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_no_ledger_is_made_beside_what_another_left(tmp_path: Path, end: str) -> None:
    for name, make in MAKERS.items():
        place = tmp_path / f"{name}.db"
        make(Path(f"{place}{end}"))
        with pytest.raises(InvalidInput, match="was left there"):
            Ledger(place, create=True)
    assert len(os.listdir(tmp_path)) == len(MAKERS)


JOURNALS = (
    "[" * 60_000,
    "{}",
    "[]",
    "3",
    *(
        json.dumps({"place": "{place}", "target": target, "sha256": "0"})
        for target in ("", "/", "relative.csv", "/tmp/a\0b", "/tmp/\ud800", 3, ["/tmp"], {})
    ),
)


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
    with Ledger(place, head=head) as ledger, pytest.raises(InvalidInput, match="nothing is noted of this ledger"):
        ledger.note_head()
    head.unlink()
    with Ledger(place, head=head) as ledger:
        assert ledger.note_head() == head.read_text().strip()


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
            command = ["ledger", "export", str(place), "--output", str(tmp_path / name), "--form", "csv", *cohort]
            assert main(command) == 2, name
            assert "would replace what entry 2 has released" in capsys.readouterr().err
    assert output.read_bytes() == kept
    assert main(["ledger", "export", str(place), "--output", str(tmp_path / "entries.csv")]) == 0
