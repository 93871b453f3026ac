"""Paths: only regular tables below the folder, whatever is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.web import folder_files
from tests.web.conftest import Running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tables, and with every trap."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for each in (folder / "sub", folder / ".hidden", outside):
        each.mkdir(parents=True)
    for path in (
        *(folder / "a.csv", folder / "sub" / "b.parquet", folder / "sub" / "c.CSV", folder / "d.csv.gz"),
        *(folder / "notes.txt", folder / ".secret.csv", folder / ".hidden" / "h.csv", outside / "o.csv"),
    ):
        path.write_text("x\n1\n", encoding="utf-8")
    (folder / "folder.csv").mkdir()
    (folder / "out.csv").symlink_to(outside / "o.csv")
    (folder / "outside").symlink_to(outside)
    (folder / "in.csv").symlink_to(folder / "sub" / "c.CSV")
    (folder / "to-hidden.csv").symlink_to(folder / ".secret.csv")
    (folder / "broken.csv").symlink_to(folder / "gone.csv")
    (folder / "circle.csv").symlink_to(folder / "circle.csv")
    os.mkfifo(folder / "pipe.csv")
    return folder


def test_tables_are_listed_with_their_sizes(folder: Path) -> None:
    assert folder_files.list_files(folder) == [
        ("a.csv", 4),
        ("d.csv.gz", 4),
        ("in.csv", 4),
        ("sub/b.parquet", 4),
        ("sub/c.CSV", 4),
    ]


def test_at_most_a_thousand_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_files, "MOST_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text("x\n", encoding="utf-8")
    assert [path for path, _ in folder_files.list_files(tmp_path)] == ["0.csv", "1.csv", "2.csv"]


def test_a_huge_folder_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_files, "MOST_VISITED", 2)
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text("x\n", encoding="utf-8")
    assert len(folder_files.list_files(tmp_path)) == 2


@pytest.mark.parametrize("path", ["a.csv", "sub/b.parquet", "in.csv"])
def test_what_is_listed_is_found(folder: Path, path: str) -> None:
    found = folder_files.find_file(folder, path)
    assert found == (folder / path).resolve()


TRAPS = {
    "above": "../outside/o.csv",
    "above-and-back": "sub/../a.csv",
    "absolute": "/etc/passwd.csv",
    "absolute-inside": "{folder}/a.csv",
    "link-out": "out.csv",
    "folder-linked-out": "outside/o.csv",
    "hidden": ".secret.csv",
    "hidden-folder": ".hidden/h.csv",
    "link-to-hidden": "to-hidden.csv",
    "nul": "a.csv\0.csv",
    "backslash": "sub\\b.parquet",
    "empty-part": "sub//b.parquet",
    "dot-part": "./a.csv",
    "other-kind": "notes.txt",
    "a-folder": "folder.csv",
    "a-pipe": "pipe.csv",
    "broken-link": "broken.csv",
    "circle": "circle.csv",
    "gone": "gone.csv",
    "glob": "*.csv",
    "home": "~/a.csv",
    "address": "http://example.org/a.csv",
    "encoded": "%2e%2e/outside/o.csv",
    "too-long": "x" * 500 + ".csv",
    "half-a-letter": "\udcff.csv",
}


@pytest.mark.parametrize("path", TRAPS.values(), ids=TRAPS)
def test_everything_else_is_refused_with_the_same_words(folder: Path, path: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        folder_files.find_file(folder, path.format(folder=folder) if "{" in path else path)
    assert str(refusal.value) == f"{folder_files.REFUSED}; {folder_files.FIX}"


@pytest.mark.parametrize("path", [path for name, path in TRAPS.items() if name != "half-a-letter" and "{" not in path])
def test_the_server_refuses_them_too(client: Any, path: str) -> None:
    answer = client.post("/api/sources", json={"path": path})
    assert answer.status_code == 422
    assert answer.json() == {"error": f"{folder_files.REFUSED}; {folder_files.FIX}"}


def test_a_file_that_becomes_a_link_out_is_refused_when_it_is_used(
    server: Running, client: Any, look: Callable[[str], Any], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("sex,job\nf,cook\nm,smith\n", encoding="utf-8")
    trap = server.folder / "trap.csv"
    trap.write_text("sex,job\nf,cook\nm,smith\n", encoding="utf-8")
    source = client.post("/api/sources", json={"path": "trap.csv"}).json()["source"]
    trap.unlink()
    trap.symlink_to(secret)
    try:
        chosen = {"source": source, "quasi_identifiers": ["sex"], "sensitive": ["job"]}
        assert client.post("/api/tables", json=chosen).status_code == 422
        assert look(source).status_code == 422
        assert "trap.csv" not in [each["path"] for each in client.get("/api/files").json()["files"]]
    finally:
        trap.unlink()


def test_files_are_listed_by_the_server(client: Any) -> None:
    assert "people.csv" in [each["path"] for each in client.get("/api/files").json()["files"]]
