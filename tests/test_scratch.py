"""Private folders: gone after their block, and after a process that was killed outright."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cellrisk import locks, scratch
from cellrisk.scratch import private_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill that leaves a folder behind")
HOLDER = """
import sys
from cellrisk.scratch import private_folder
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
    process.communicate()


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
        monkeypatch.setattr(scratch, "try_lock", locks.try_lock)
        with private_folder():
            assert outer.exists()
            assert (temporary / "cellrisk-mine" / "notes").read_text() == "kept"
