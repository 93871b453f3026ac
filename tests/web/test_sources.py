"""Sources: the example, files of the folder and nothing else, uploads that keep to their limit."""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellrisk.web.sources import MOST_UPLOADS
from tests.web.conftest import PEOPLE, Running, hear, upload

Look = Callable[[str], Any]
LIMIT = 200_000


def kept(server: Running) -> set[str]:
    """Files that uploads have left in the private folder."""
    return {path.name for path in server.temporary.glob("cellrisk-web-*/uploads/*")}


def send(client: Any, content: Any, name: str = "a.csv") -> Any:
    return client.post("/api/uploads", params={"name": name}, content=content)


class TestColumns:
    def test_the_state_says_what_can_be_chosen(self, client: Any) -> None:
        state = client.get("/api/state").json()
        assert (state["folder"], state["ledger"]) == (True, False)
        assert [name for name, *_ in state["choices"]["measure"]] == [
            *("local", "expected", "shrinkage", "marginal", "marginal_shrinkage")
        ]

    def test_the_example_comes_with_a_suggestion(self, client: Any, look: Look) -> None:
        source = client.post("/api/sources", json={"example": "adult"}).json()
        assert client.post("/api/sources", json={"example": "adult"}).json() == source  # nothing is loaded twice
        preview = look(source["source"])
        assert preview["title"] == "adult.parquet: 32,561 rows, 11 columns"
        assert preview["suggested"]["sensitive"] == ["income"]

    def test_a_column_that_looks_like_counts_is_named(self, client: Any, look: Look) -> None:
        text = "region,illness,n\n" + "".join(f"{place},{ill},{place + 3}\n" for place in range(9) for ill in "abc")
        suggested = look(upload(client, text).json()["source"])["suggested"]
        assert (suggested["counts"], suggested["sensitive"]) == (["n"], ["illness"])

    def test_an_upload_is_previewed(self, client: Any, look: Look) -> None:
        source = upload(client, PEOPLE, "C:\\people.csv").json()
        assert (source["name"], source["bytes"], source["kind"]) == ("people.csv", len(PEOPLE), "upload")
        columns = look(source["source"])["columns"]
        assert [(each["name"], each["kind"], each["levels"], each["missing"]) for each in columns] == [
            ("sex", "text", "2", "0"),
            ("age", "number", "37", "0"),
            ("job", "text", "3", "0"),
            ("note", "text", "400", "0"),
        ]
        assert columns[0]["hint"] is None
        assert "not a quasi-identifier" in columns[3]["hint"]

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("a,b\n1,x\n1,y\n", "one value only"),
            ("a,b\n,x\n,y\n", "no values"),
            ("a,b\n1.5,x\n2.5,x\n3.5,y\n", "cut it into bins"),
        ],
        ids=["one-value", "no-value", "unique-number"],
    )
    def test_hints_of_a_specialist(self, client: Any, look: Look, text: str, hint: str) -> None:
        assert hint in look(upload(client, text).json()["source"])["columns"][0]["hint"]

    @pytest.mark.parametrize("choice", [{}, {"path": "people.csv", "example": "adult"}])
    def test_a_source_is_one_of_the_two(self, client: Any, choice: dict[str, str]) -> None:
        assert "one of the two" in client.post("/api/sources", json=choice).json()["error"]


TRAPS = {
    "above": "../outside/o.csv",
    "above-from-below": "sub/../../outside/o.csv",
    "absolute": "/etc/passwd",
    "absolute-table": "{outside}/o.csv",
    "link-out": "out.csv",
    "folder-out": "outside/o.csv",
    "link-to-hidden": "to-hidden.csv",
    "hidden": ".secret.csv",
    "hidden-folder": ".hidden/h.csv",
    "broken-link": "broken.csv",
    "circle": "circle.csv",
    "folder": "folder.csv",
    "pipe": "pipe.csv",
    "other-kind": "notes.txt",
    "nul": "b.csv\0.csv",
    "backslash": "sub\\b.csv",
    "dot": "./b.csv",
    "empty-part": "sub//b.csv",
    "missing": "gone.csv",
    "not-text": "\ud800.csv",
}


@pytest.fixture(scope="module")
def trapped(server: Running) -> Path:
    """The folder of the server with every trap, and what is outside it."""
    folder, outside = server.folder, server.folder.parent / "outside"
    for place in (folder / "sub", folder / ".hidden", outside):
        place.mkdir()
    names = ("b.csv", "sub/b.csv", "notes.txt", ".secret.csv", ".hidden/h.csv")
    for path in (*(folder / name for name in names), outside / "o.csv"):
        path.write_text("x\n1\n", encoding="utf-8")
    (folder / "folder.csv").mkdir()
    links = {"out.csv": outside / "o.csv", "outside": outside, "to-hidden.csv": folder / ".secret.csv"}
    links |= {name: folder / name.replace("broken", "gone") for name in ("broken.csv", "circle.csv")}
    for name, target in {**links, "in.csv": folder / "sub/b.csv"}.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.csv")
    return outside


class TestFolder:
    def test_tables_inside_are_listed_and_opened(self, client: Any, trapped: Path) -> None:
        listed = [each["path"] for each in client.get("/api/files").json()["files"]]
        assert listed == ["b.csv", "in.csv", "people.csv", "sub/b.csv"]
        assert [client.post("/api/sources", json={"path": path}).status_code for path in listed] == [200] * 4

    @pytest.mark.parametrize("path", TRAPS.values(), ids=TRAPS)
    def test_nothing_else_is_opened_and_nothing_is_learnt(self, client: Any, trapped: Path, path: str) -> None:
        given = json.dumps({"path": path.format(outside=trapped)})
        answer = client.post("/api/sources", content=given, headers={"content-type": "application/json"})
        assert answer.status_code == 422
        if "ud800" not in given:
            assert answer.json()["error"].startswith("there is no such file in the folder")


class TestUploads:
    def test_up_to_the_limit_and_not_beyond(self, server: Running, client: Any) -> None:
        text = b"x\n" + b"1\n" * (LIMIT // 2)
        taken = send(client, text[:LIMIT])
        assert (taken.status_code, taken.json()["bytes"]) == (200, LIMIT)
        before = kept(server)
        assert send(client, text[: LIMIT + 1]).status_code == 413
        assert send(client, iter([text[: LIMIT + 1]])).status_code == 413  # chunked: it does not say its length
        assert kept(server) == before
        assert f"{taken.json()['source']}.csv" in before

    def test_an_upload_that_breaks_off_leaves_nothing(self, server: Running, client: Any) -> None:
        before, name = kept(server), f"cellrisk-{server.port}"
        head = (
            f"POST /api/uploads?name=a.csv HTTP/1.1\r\nHost: localhost:{server.port}\r\nX-Cellrisk: 1\r\n"
            f"Content-Length: 1000\r\nCookie: {name}={client.cookies[name]}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(head.encode() + b"x\n1\n")
        assert client.get("/api/state").status_code == 200
        assert kept(server) == before

    def test_a_bomb_is_not_unpacked(self, server: Running, client: Any) -> None:
        content = b"x,y\n" + b"1,2\n" * (3 * LIMIT)
        source = send(client, gzip.compress(content), "bomb.csv.gz").json()["source"]
        assert "once it is unpacked" in hear(client, client.get(f"/api/sources/{source}"), failed=True)

    def test_another_kind_of_file_is_refused(self, client: Any) -> None:
        assert "kind of the file" in send(client, b"x", "a.exe").json()["error"]

    @pytest.mark.parametrize("name", ["../../a.csv", "/etc/a.csv", "..\\a.csv", "a\0.csv"])
    def test_a_name_leads_nowhere(self, client: Any, name: str) -> None:
        assert send(client, b"x\n1\n", name).json()["name"] == "a.csv"

    def test_only_the_last_uploads_are_kept(self, server: Running, client: Any) -> None:
        first = send(client, b"x\n1\n").json()["source"]
        for _ in range(MOST_UPLOADS):
            assert send(client, b"x\n1\n").status_code == 200
        assert client.get(f"/api/sources/{first}").status_code == 404
        assert len(kept(server)) == MOST_UPLOADS

    def test_the_private_folder_is_private(self, server: Running, client: Any) -> None:
        send(client, b"x\n1\n")
        (private,) = server.temporary.glob("cellrisk-web-*")
        assert private.stat().st_mode & 0o777 == (private / "uploads").stat().st_mode & 0o777 == 0o700
