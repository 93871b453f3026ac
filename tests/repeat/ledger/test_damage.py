"""Bytes of the file that changed by themselves: reported, with the entry that they hit, and never a wrong entry."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from cellrisk.errors import CellriskError
from cellrisk.repeat.ledger import Entry, Ledger
from tests.repeat.ledger.conftest import LAPLACE, fill

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


def examine(path: Path, expected: tuple[Entry, ...]) -> str:
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
        outcomes.append(examine(copy, expected))
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
    assert examine(copy, expected) == "refused"


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
    assert examine(copy, expected) in ("refused", "reported")
