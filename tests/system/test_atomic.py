"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cellrisk.system.atomic import check_writable, write_whole
from tests.counts.counter import refused


def test_text_and_bytes(tmp_path: Path) -> None:
    assert write_whole(tmp_path / "a.txt", "für alle\n").read_text(encoding="utf-8") == "für alle\n"
    assert write_whole(str(tmp_path / "a.txt"), b"\x00\x01").read_bytes() == b"\x00\x01"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_files_for_the_public_are_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("x")
    write_whole(tmp_path / "ours", "x", public=True)
    assert (tmp_path / "usual").stat().st_mode == (tmp_path / "ours").stat().st_mode


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    target = tmp_path / "a.txt"
    target.write_text("before")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with refused("output"):
        write_whole(target, "after")
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.txt", "after")
    assert os.listdir(tmp_path) == []


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("output"):
        check_writable(tmp_path)
    with refused("output"):
        check_writable(tmp_path / "nowhere" / "a.txt")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with refused("output"):
        check_writable(tmp_path / "a.txt")
