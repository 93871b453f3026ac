"""Private folders: gone after their block, and after a process that was killed outright."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cellrisk.system import scratch
from cellrisk.system.atomic import try_lock
from cellrisk.system.scratch import private_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill that leaves a folder behind")
HOLDER = """
import sys
from cellrisk.system.scratch import private_folder
with private_folder() as folder:
    (folder / "spilled").write_text("a record")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def hold(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process in the middle of its work."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str], kill: bool) -> None:
    if kill:
        process.kill()
    process.communicate(timeout=300)


def test_a_folder_is_private_and_gone_after_its_block() -> None:
    with private_folder("spark") as folder:
        assert folder.name.startswith("cellrisk-spark-")
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()
    with pytest.raises(KeyError), private_folder() as folder:
        raise KeyError
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next(temporary: Path) -> None:
    process, left = hold(temporary)
    end(process, kill=True)
    assert (left / "spilled").exists()
    with private_folder():
        assert not left.exists()
    assert list(temporary.iterdir()) == []


def test_what_a_living_process_holds_is_left_alone(temporary: Path) -> None:
    process, held = hold(temporary)
    with private_folder():
        assert (held / "spilled").read_text() == "a record"
    end(process, kill=False)
    assert not held.exists()


def test_folders_without_a_lock_are_left_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "cellrisk-mine").mkdir()
    (temporary / "cellrisk-mine" / "notes").write_text("kept")

    def refuse(handle: int) -> bool:
        raise OSError("no locks available")

    monkeypatch.setattr(scratch, "try_lock", refuse)
    with private_folder() as outer:
        monkeypatch.setattr(scratch, "try_lock", try_lock)
        with private_folder():
            assert outer.exists()
            assert (temporary / "cellrisk-mine" / "notes").read_text() == "kept"


def leave(folder: Path) -> Path:
    """A folder as a killed process leaves it."""
    folder.mkdir(mode=0o700)
    (folder / scratch.LOCK).touch(mode=0o600)
    (folder / "spilled").write_text("a record")
    return folder


def leave_without_lock(folder: Path) -> Path:
    """The place of the lock that is missing."""
    (leave(folder) / scratch.LOCK).unlink()
    return folder / scratch.LOCK


def leave_to_somebody_else(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(leave(folder), 65534, 65534)


TRAPS: dict[str, Callable[[Path, Path], object]] = {
    "link to a folder": lambda trap, precious: trap.symlink_to(precious),
    "link in a circle": lambda trap, precious: trap.symlink_to(trap),
    "plain file": lambda trap, precious: trap.write_text("kept"),
    "folder of somebody else": lambda trap, precious: leave_to_somebody_else(trap),
    "folder that others may enter": lambda trap, precious: leave(trap).chmod(0o777),
    "link for a lock": lambda trap, precious: leave_without_lock(trap).symlink_to(precious / scratch.LOCK),
    "pipe for a lock": lambda trap, precious: os.mkfifo(leave_without_lock(trap)),
    "folder for a lock": lambda trap, precious: leave_without_lock(trap).mkdir(),
}


@pytest.mark.parametrize("kind", TRAPS)
def test_traps_in_a_shared_folder_are_neither_entered_nor_removed(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    precious = leave(tmp_path_factory.mktemp("elsewhere") / "precious")
    TRAPS[kind](temporary / "cellrisk-trap", precious)
    left = leave(temporary / "cellrisk-left")
    looked_at: list[os.stat_result] = []

    def look(handle: int) -> bool:
        looked_at.append(os.fstat(handle))
        return try_lock(handle)

    lock = (left / scratch.LOCK).stat()
    monkeypatch.setattr(scratch, "try_lock", look)
    scratch.remove_left_behind(temporary)
    assert not left.exists()
    assert os.path.lexists(temporary / "cellrisk-trap")
    assert [(status.st_dev, status.st_ino) for status in looked_at] == [(lock.st_dev, lock.st_ino)]
    assert {path.name for path in precious.iterdir()} == {scratch.LOCK, "spilled"}


def test_links_in_what_was_left_are_removed_and_not_followed(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    precious = leave(tmp_path_factory.mktemp("elsewhere") / "precious")
    left = leave(temporary / "cellrisk-left")
    (left / "deep" / "deeper").mkdir(parents=True)
    for place in (left, left / "deep", left / "deep" / "deeper"):
        (place / "folder").symlink_to(precious)
        (place / "file").symlink_to(precious / "spilled")
    scratch.remove_left_behind(temporary)
    assert not left.exists()
    assert (precious / "spilled").read_text() == "a record"


def test_a_folder_that_is_exchanged_for_a_link_meanwhile_leads_nowhere(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = leave(tmp_path_factory.mktemp("elsewhere") / "precious")
    left = leave(temporary / "cellrisk-left")

    def exchange(handle: int) -> bool:
        left.rename(temporary / "moved")
        left.symlink_to(precious)
        return try_lock(handle)

    monkeypatch.setattr(scratch, "try_lock", exchange)
    scratch.remove_left_behind(temporary)
    assert left.is_symlink()
    assert (precious / "spilled").read_text() == "a record"
