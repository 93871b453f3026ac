"""Who may read what the commands write: figures of the raw data their owner alone, what is public as the umask says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.cli.program import PROGRAM
from cellrisk.system.atomic import write_whole

if os.name != "posix":
    pytest.skip("modes of files are those of POSIX", allow_module_level=True)

TABLE = ("people.csv", "--qid", "sex", "--sensitive", "job", "--levels", "sex=f|m", "--levels", "job=cook|smith")
PRIVATE: dict[tuple[str, str], tuple[str, ...]] = {
    ("inspect", "--plot"): (*TABLE, "--plot", "made.svg"),
    ("assess", "--plot"): (*TABLE, "--epsilon", "1", "--measure", "local", "--plot", "made.svg"),
    ("curve", "--plot"): (*TABLE, "--epsilon", "0.5,1", "--measure", "local", "--plot", "made.png"),
    ("curve", "--csv"): (*TABLE, "--epsilon", "0.5,1", "--measure", "local", "--csv", "made.csv"),
    ("choose", "--plot"): (*TABLE, "--max-risk", "0.9", "--releases", "3", "--plot", "made.svg"),
    ("utility", "--csv"): (*TABLE, "--epsilon", "1", "--ways", "1", "--releases", "3", "--csv", "made.csv"),
    ("report", "--output"): (*TABLE, "--epsilon", "1", "--output", "made.html"),
}
PUBLIC: dict[tuple[str, str], tuple[str, ...]] = {
    ("release", "--output"): (*TABLE, "--epsilon", "1", "--output", "made.csv"),
    ("report --public", "--output"): (*TABLE, "--epsilon", "1", "--public", "--output", "made.html"),
    ("demo", "--save"): ("--save", "made.parquet"),
}
ELSEWHERE = {
    ("ledger export", "--output"),  # writes through `write_whole`, as those above
    ("together release", "--output"),  # has tests of its own
    ("together report", "--output"),  # writes through `write_whole`, as those above
    ("together assess", "--plot"),  # draws through `save`, as those above
    ("ledger risk", "--plot"),  # draws through `save`, as those above
}
WRITING = ("--output", "--plot", "--csv", "--save")


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["sex,job", *["f,cook"] * 9, *["m,smith"] * 8, *["m,cook"] * 3]
    (tmp_path / "people.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def mode_of(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def made() -> list[Path]:
    return sorted(path for path in Path().iterdir() if path.name.startswith("made"))


def test_every_option_that_writes_is_looked_at() -> None:
    def find(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from find(inner, (*path, name))
        for option in command.params:
            yield from ((" ".join(path), each) for each in option.opts if each in WRITING)

    found = set(find(PROGRAM, ()))
    assert found == {*PRIVATE, *PUBLIC, *ELSEWHERE} - {("report --public", "--output")}


@pytest.mark.parametrize("case", PRIVATE, ids=" ".join)
def test_figures_of_the_raw_data_are_for_their_owner(case: tuple[str, str]) -> None:
    os.umask(0)
    assert main([case[0], *PRIVATE[case]]) == 0
    assert [mode_of(path) for path in made()] == [0o600]


@pytest.mark.parametrize("case", PUBLIC, ids=" ".join)
def test_what_is_public_follows_the_umask(case: tuple[str, str]) -> None:
    for mask, expected in ((0, 0o666), (0o077, 0o600)):
        os.umask(mask)
        assert main([*case[0].split()[:1], *PUBLIC[case]]) == 0
        assert made()
        assert {mode_of(path) for path in made()} == {expected}
        for path in made():
            path.unlink()


def test_replacing_a_file_makes_it_no_more_readable() -> None:
    os.umask(0)
    for name, public, before, after in (
        ("a", True, 0o640, 0o640),
        ("b", True, 0o600, 0o600),
        ("c", False, 0o644, 0o600),
        ("d", False, 0o400, 0o400),
        ("e", True, 0o777, 0o666),
    ):
        Path(name).write_text("before", encoding="utf-8")
        os.chmod(name, before)
        if os.access(name, os.W_OK):
            write_whole(name, "after", public=public)
            assert (Path(name).read_text(encoding="utf-8"), mode_of(name)) == ("after", after)


def test_a_release_that_is_replaced_becomes_no_more_readable() -> None:
    os.umask(0)
    table = cr.tabulate("people.csv", "sex", "job", levels={"sex": ["f", "m"], "job": ["cook", "smith"]})
    released = cr.release(table, cr.Geometric(epsilon=1.0))
    released.save("made.csv")
    for path, mode in zip(made(), (0o640, 0o600), strict=True):
        path.chmod(mode)
    released.save("made.csv", force=True)
    assert [mode_of(path) for path in made()] == [0o640, 0o600]
