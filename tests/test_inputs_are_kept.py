"""What is read, or recorded in, is never written over, under any name of the same file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.repeat.ledger import Ledger
from cellrisk.system import atomic
from tests.commands import refusing

PEOPLE = "sex,job\n" + "f,cook\nf,smith\nm,cook\nm,cook\n" * 3
COLUMNS = ("--qid", "sex", "--sensitive", "job")
LEVELS = ("--levels", "sex=f|m", "--levels", "job=cook|smith")
AT = ("--mechanism", "geometric", "--epsilon", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records, a ledger, parents and settings, with further names for each."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE)
    Path("cellrisk.toml").write_text('missing = "category"\n')
    Path("sub").mkdir()
    with Ledger("l.csv", create=True) as ledger:
        ledger.declare("everyone")
    Path("parents.csv").write_text("sex,count\nf,6\nm,6\n")
    for name in ("people.csv", "l.csv", "parents.csv"):
        Path("sub", f"link-{name}").symlink_to(tmp_path / name)
        os.link(name, Path("sub", f"hard-{name}"))
    return tmp_path


def look(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names_of(name: str) -> list[str]:
    return [name, f"./sub/../{name}", f"sub/link-{name}", f"sub/hard-{name}", str(Path(name).absolute())]


RELEASE = ("release", "people.csv", *COLUMNS, *LEVELS, *AT, "--force", "--parents", "parents.csv", "--ledger", "l.csv")


@pytest.mark.parametrize("name", ["people.csv", "l.csv", "parents.csv"])
def test_a_release_never_replaces_what_it_is_made_from(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = look(folder)
    for output in names_of(name):
        assert main([*RELEASE, "--output", output]) == 2, output
        said = capsys.readouterr().err
        assert "the output would replace" in said, output
        assert len(said.splitlines()) == 1
    assert look(folder) == before


COMMANDS: dict[str, tuple[str, ...]] = {
    "the description is the ledger": ("release", "people.csv", *COLUMNS, *LEVELS, *AT, "--force", "--ledger",
                                      "r.csv.json", "--new-ledger", "--output", "r.csv"),
    "the description is the source": ("release", "r.csv.json", *COLUMNS, *AT, "--force", "--output", "r.csv"),
    "one of a glob": ("release", "peop*.csv", *COLUMNS, *LEVELS, *AT, "--force", "--output", "people.csv"),
    "a curve": ("curve", "people.csv", *COLUMNS, "--epsilon", "0.1,1", "--csv", "people.csv"),
    "a picture": ("curve", "people.svg", *COLUMNS, "--epsilon", "0.1,1", "--plot", "people.svg"),
    "utility": ("utility", "people.csv", *COLUMNS, "--epsilon", "1", "--csv", "sub/hard-people.csv"),
    "a report": ("report", "people.html", *COLUMNS, *AT, "--output", "people.html"),
    "an export": ("ledger", "export", "l.csv", "--output", "sub/hard-l.csv"),
    "the settings": ("curve", "people.csv", *COLUMNS, "--epsilon", "0.1,1", "--csv", "cellrisk.toml"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_what_it_was_given(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for other in ("people.svg", "people.html", *(["r.csv.json"] if "source" in name else [])):
        shutil.copy("people.csv", other)
    before = look(folder)
    assert main(list(COMMANDS[name])) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "the output would replace" in said
    assert look(folder) == before


@pytest.mark.parametrize("address", ["people.duckdb", "duckdb://people.duckdb", "sqlite://people.db"])
def test_a_database_is_not_replaced(address: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(duckdb.connect("people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM 'people.csv'")
    with closing(sqlite3.connect("people.db")) as lite:
        lite.execute("CREATE TABLE people (sex, job)")
    name = "people.db" if "sqlite" in address else "people.duckdb"
    Path("out.csv").symlink_to(name)
    before = look(folder)
    given = ["release", address, "--table", "people", *COLUMNS, *LEVELS, *AT, "--force", "--output", "out.csv"]
    assert main(given) == 2
    assert "cellrisk: the output " in capsys.readouterr().err
    assert look(folder) == before


def test_python_does_not_replace_them_either(folder: Path) -> None:
    table = cr.tabulate("people.csv", ["sex"], "job", levels={"sex": ["f", "m"], "job": ["cook", "smith"]})
    mechanism = cr.Geometric(epsilon=1.0)
    released = cr.release(table, mechanism, parents="parents.csv")
    curve = cr.curve(table, "laplace", epsilon=[0.1, 1.0])
    before = look(folder)
    writes: list[Callable[[str], Any]] = [lambda path: released.save(path, force=True), curve.to_csv]
    with Ledger("l.csv") as ledger:
        for name in names_of("people.csv"):
            for write in (*writes, lambda path: ledger.save(released, path, force=True)):
                with refusing("output"):
                    write(name)
        for name in names_of("l.csv"):
            with refusing("output"):
                ledger.save(released, name, force=True)
        for name in names_of("parents.csv"):
            with refusing("output"):
                ledger.save(released, name, force=True)
        assert len(ledger.entries()) == 1
    assert look(folder) == before


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_what_a_ledger_keeps_beside_it_is_kept_before_it_is_there(end: str) -> None:
    with Ledger("l.csv"), refusing("output"):
        atomic.write_whole(f"sub/../l.csv{end}", "x")
    assert not Path(f"l.csv{end}").exists()
