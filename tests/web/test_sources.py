"""Sources: the example, files of the folder, uploads that keep to their limit."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, integers, lists

import cellrisk as cr
from cellrisk.web import request_models
from cellrisk.web.guard import TooLarge
from cellrisk.web.sources import MOST_UPLOADS, Unpacking
from tests.examples import examples
from tests.web.conftest import PEOPLE, Running, upload

Look = Callable[[str], Any]


class TestSources:
    def test_the_state_says_what_can_be_chosen(self, client: Any) -> None:
        state = client.get("/api/state").json()
        assert (state["version"], state["folder"], state["ledger"]) == (cr.__version__, True, False)
        assert [each["name"] for each in state["mechanisms"] if each["delta"]] == [
            *("gaussian", "gaussian-pdp", "gaussian-analytic", "discrete-gaussian")
        ]
        assert [each["name"] for each in state["measures"]] == list(request_models.MeasureName.__args__)

    def test_the_example_comes_with_a_suggestion(self, client: Any, look: Look) -> None:
        source = client.post("/api/sources", json={"example": "adult"}).json()
        assert client.post("/api/sources", json={"example": "adult"}).json() == source  # nothing is loaded twice
        preview = look(source["source"]).json()
        assert (preview["rows"], len(preview["columns"])) == (32561, 11)
        assert preview["suggested"]["sensitive"] == ["income"]

    def test_a_column_that_looks_like_counts_is_named(self, client: Any, look: Look) -> None:
        text = "region,illness,n\n" + "".join(f"{place},{ill},{place + 3}\n" for place in range(9) for ill in "abc")
        suggested = look(upload(client, text).json()["source"]).json()["suggested"]
        assert (suggested["counts"], suggested["sensitive"]) == (["n"], ["illness"])

    def test_an_upload_is_previewed(self, client: Any, look: Look) -> None:
        source = upload(client, PEOPLE, "C:\\people.csv").json()
        assert (source["name"], source["bytes"]) == ("people.csv", len(PEOPLE))
        preview = look(source["source"]).json()
        suggested = {"quasi_identifiers": ["sex", "age"], "sensitive": ["job"], "bins": {"age": "10"}, "counts": []}
        assert (preview["suggested"], preview["kind"]) == (suggested, "upload")
        found = {each["name"]: (each["kind"], each["levels"], each["missing"]) for each in preview["columns"]}
        assert found == {
            "sex": ("text", 2, 0),
            "age": ("number", 37, 0),
            "job": ("text", 3, 0),
            "note": ("text", 400, 0),
        }
        hints = {each["name"]: each["hint"] for each in preview["columns"]}
        assert "no quasi-identifier" in hints["note"]
        assert hints["sex"] is None

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
        source = upload(client, text).json()["source"]
        assert hint in look(source).json()["columns"][0]["hint"]

    @pytest.mark.parametrize("choice", [{}, {"path": "people.csv", "example": "adult"}])
    def test_a_source_is_one_of_the_two(self, client: Any, choice: dict[str, str]) -> None:
        assert "one of the two" in client.post("/api/sources", json=choice).json()["error"]


class TestUploads:
    LIMIT = 200_000

    def kept(self, server: Running) -> set[str]:
        """Files that uploads have left in the private folder."""
        return {path.name for path in server.temporary.glob("cellrisk-web-*/uploads/*")}

    def test_one_byte_less_is_taken_and_one_more_is_not(self, server: Running, client: Any) -> None:
        text = "x\n" + "1\n" * (self.LIMIT // 2)
        taken = upload(client, text[: self.LIMIT])
        assert (taken.status_code, taken.json()["bytes"]) == (200, self.LIMIT)
        before = self.kept(server)
        assert upload(client, text[: self.LIMIT + 1]).status_code == 413
        assert self.kept(server) == before
        assert f"{taken.json()['source']}.csv" in before

    @pytest.mark.parametrize("declared", [None, "10", str(10**12)], ids=["chunked", "too-small", "too-large"])
    def test_what_a_request_says_of_its_length_is_not_believed(
        self, server: Running, client: Any, declared: str | None
    ) -> None:
        before = self.kept(server)
        length = "Transfer-Encoding: chunked" if declared is None else f"Content-Length: {declared}"
        name = f"cellrisk-{server.port}"
        head = (
            f"POST /api/uploads HTTP/1.1\r\nHost: localhost:{server.port}\r\nX-Cellrisk: 1\r\n{length}\r\n"
            f"Cookie: {name}={client.cookies[name]}\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
        )
        body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' + b"1\n" * 200_000
        broken_off = False
        answer = b""
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            try:
                connection.sendall(head.encode())
                for start in range(0, len(body), 50_000):
                    part = body[start : start + 50_000]
                    connection.sendall(b"%x\r\n%s\r\n" % (len(part), part) if declared is None else part)
            except (BrokenPipeError, ConnectionResetError):
                broken_off = True  # the server has answered and closed; what it said may or may not still be there
            try:
                answer = connection.recv(65536)
            except ConnectionResetError:
                broken_off = True
        if answer or not broken_off:
            assert answer.split(b" ")[1] in ((b"422", b"400") if declared == "10" else (b"413",))
        assert self.kept(server) == before

    @pytest.mark.parametrize(
        ("content", "kind", "error"),
        [
            (b"x", "text/plain", "multipart/form-data"),
            (b"no boundary at all", "multipart/form-data; boundary=b", "cannot be read"),
            (b"", "multipart/form-data; boundary=b", "broke off"),
            (
                b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nx\r\n',
                "multipart/form-data; boundary=b",
                "broke off",
            ),
            (
                b'--b\r\nContent-Disposition: form-data; name="other"; filename="a.csv"\r\n\r\nx\r\n--b--\r\n',
                "multipart/form-data; boundary=b",
                "no file",
            ),
            (
                b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.exe"\r\n\r\nx\r\n--b--\r\n',
                "multipart/form-data; boundary=b",
                "kind of the file",
            ),
        ],
        ids=["not-multipart", "garbage", "empty", "half", "other-field", "other-kind"],
    )
    def test_a_broken_upload_is_refused_and_leaves_nothing(
        self, server: Running, client: Any, content: bytes, kind: str, error: str
    ) -> None:
        before = self.kept(server)
        answer = client.post("/api/uploads", content=content, headers={"content-type": kind})
        assert answer.status_code == 422
        assert error in answer.json()["error"]
        assert self.kept(server) == before

    def test_two_files_at_once_are_refused(self, client: Any) -> None:
        answer = client.post("/api/uploads", files=[("file", ("a.csv", "x\n")), ("file", ("b.csv", "x\n"))])
        assert "more than one" in answer.json()["error"]

    def test_only_the_last_uploads_are_kept(self, server: Running, client: Any, look: Look) -> None:
        first = upload(client, "x\n1\n").json()["source"]
        assert look(first).status_code == 200
        for _ in range(MOST_UPLOADS):
            assert upload(client, "x\n1\n").status_code == 200
        assert look(first).status_code == 404
        assert len(self.kept(server)) == MOST_UPLOADS

    def test_the_private_folder_is_private(self, server: Running, client: Any) -> None:
        upload(client, "x\n1\n")
        (private,) = server.temporary.glob("cellrisk-web-*")
        assert private.stat().st_mode & 0o777 == 0o700
        assert (private / "uploads").stat().st_mode & 0o777 == 0o700


class TestUnpacked:
    """Uploads that are small until they are unpacked: the limit is ten times that of an upload."""

    LIMIT = 10 * TestUploads.LIMIT

    def text(self, size: int) -> bytes:
        return b"x\n" + b"1\n" * ((size - 2) // 2)

    @pytest.mark.parametrize("members", [1, 3], ids=["one-member", "three-members"])
    def test_gzip_is_taken_up_to_the_limit_and_not_beyond(
        self, server: Running, client: Any, look: Look, members: int
    ) -> None:
        parts = [self.text(self.LIMIT // members - 2)] + [b"1\n" * (self.LIMIT // members // 2 - 1)] * (members - 1)
        fits = b"".join(map(gzip.compress, parts))
        taken = client.post("/api/uploads", files={"file": ("a.csv.gz", fits)})
        assert taken.status_code == 200
        assert look(taken.json()["source"]).json()["rows"] == sum(map(len, parts)) // 2 - 1
        before = TestUploads().kept(server)
        answer = client.post("/api/uploads", files={"file": ("a.csv.gz", fits + gzip.compress(b"1\n" * 10))})
        assert answer.status_code == 413
        assert "unpacks to more than 10 times" in answer.json()["error"]
        assert TestUploads().kept(server) == before

    def test_a_bomb_is_not_unpacked(self, client: Any) -> None:
        bomb = gzip.compress(b"0" * 100_000_000, 9)
        assert len(bomb) < TestUploads.LIMIT
        assert client.post("/api/uploads", files={"file": ("a.csv.gz", bomb)}).status_code == 413

    def test_zstd_within_the_limit_is_read(self, client: Any, look: Look) -> None:
        packed = pa.BufferOutputStream()
        with pa.CompressedOutputStream(packed, "zstd") as stream:
            stream.write(PEOPLE.encode())
        answer = client.post("/api/uploads", files={"file": ("a.csv.zst", packed.getvalue().to_pybytes())})
        assert look(answer.json()["source"]).json()["rows"] == 400

    @settings(max_examples=examples(100), deadline=None)
    @given(lists(binary(max_size=300), max_size=4), integers(0, 1000), integers(1, 400), binary(max_size=5))
    def test_what_is_measured_is_what_gzip_unpacks(
        self, parts: list[bytes], limit: int, step: int, rest: bytes
    ) -> None:
        """Cut anywhere, with any number of members, and whatever stands after them."""
        packed = b"\0".join(map(gzip.compress, parts)) + rest
        unpacking = Unpacking(limit)
        fits = True
        try:
            for start in range(0, len(packed), step):
                unpacking.feed(packed[start : start + step])
        except TooLarge:
            fits = False
        assert fits == (sum(map(len, parts)) <= limit)

    @pytest.mark.parametrize("way", ["preview", "table"])
    @pytest.mark.parametrize("kind", ["a.parquet", "a.csv.zst"])
    def test_what_holds_too_much_is_refused(
        self, client: Any, look: Look, finish: Callable[..., Any], way: str, kind: str, tmp_path: Path
    ) -> None:
        """A column of one value takes almost no place, however often it is repeated; and so does text under zstd."""
        path = tmp_path / kind
        if kind == "a.parquet":
            values = pa.array(np.zeros(self.LIMIT, dtype=np.int8))
            pq.write_table(pa.table({"sex": values, "job": values}), path)
        else:
            with pa.CompressedOutputStream(str(path), "zstd") as stream:
                stream.write(b"sex,job\n" + b"1,2\n" * (self.LIMIT // 4))
        assert path.stat().st_size < TestUploads.LIMIT
        source = client.post("/api/uploads", files={"file": (kind, path.read_bytes())}).json()["source"]
        if way == "preview":
            error = look(source).json()["error"]
        else:
            chosen = {"source": source, "quasi_identifiers": ["sex"], "sensitive": ["job"]}
            error = finish(client.post("/api/tables", json=chosen), "failed")
        assert "too large once it is unpacked" in error
