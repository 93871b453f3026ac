"""Bankruptcy in every form in which people have it, from a file and from a server."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.paper import bankruptcy
from cellrisk.paper.bankruptcy import Records, digest_of, fetch_bankruptcy, parse_bankruptcy, read_bankruptcy
from cellrisk.paper.experiments import bankruptcy_experiments
from tests.reproduction.conftest import as_text
from tests.shared_data import FOLDER, needs_shared_data, read

Rows = list[tuple[str, ...]]
LONG = "Industrial Risk,Management Risk,Financial Flexibility,Credibility,Competitiveness,Operating Risk,Class"


def zipped(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_dot_", "."), text)
    return buffer.getvalue()


def counted(rows: Rows) -> str:
    """The authors' form: the last column repeats the name before it."""
    lines = ["IR,MR,FF,CR,CO,OR,class,class"]
    lines += [f"{','.join(row)},{rows.count(row)}" for row in sorted(set(rows))]
    return "\n".join(lines)


def shuffled(rows: Rows) -> str:
    """A header of short names in another order, and the rows backwards."""
    lines = [",".join((row[6], *row[:6])) for row in reversed(rows)]
    return "\n".join(["class,IR,MR,FF,CR,CO,OP", *lines])


FORMS: dict[str, Callable[[Rows], bytes]] = {
    "UCI's text": lambda rows: as_text(rows).encode(),
    "line ends of Windows": lambda rows: as_text(rows).replace("\n", "\r\n").encode(),
    "spaces, small letters, a byte order mark": lambda rows: (
        as_text(rows).replace(",", ", ").lower().encode("utf-8-sig")
    ),
    "long header": lambda rows: f"{LONG}\n{as_text(rows)}".encode(),
    "other order": lambda rows: shuffled(rows).encode(),
    "authors' counts": lambda rows: counted(rows).encode(),
    "counts in n": lambda rows: counted(rows).replace("class,class", "class,n", 1).encode(),
    "UCI's zip": lambda rows: zipped(Q_dot_info_dot_txt="about the data\n", Q_dot_data_dot_txt=as_text(rows)),
}


@pytest.mark.usefixtures("recognised")
@pytest.mark.parametrize("form", FORMS)
def test_form_is_read(form: str, rows: Rows, digest: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(FORMS[form](rows))
    records = read_bankruptcy(path)
    assert sorted(records.rows) == sorted(rows)
    assert records.digest == digest


def test_digest_is_the_plain_one() -> None:
    text = b"A,NB\nP,B"
    assert digest_of([("P", "B"), ("A", "NB")]) == hashlib.sha256(text).hexdigest()


@needs_shared_data
def test_authors_table_has_the_digest_and_makes_both_experiments() -> None:
    records = read_bankruptcy(FOLDER / "bankcount.csv")
    assert len(records.rows) == 250
    whole, subset = (each.table for each in bankruptcy_experiments(records))
    counts, flexible = read("bankcount.csv"), read("FFcount.csv")
    oracle = cr.tabulate(counts, ["IR", "MR", "FF", "CR", "CO", "OR"], "class", count="n")
    assert whole.profiles().equals(oracle.profiles())
    oracle = cr.tabulate(flexible, ["IR", "MR", "OR", "CR", "CO"], "FF", count="n")
    assert subset.profiles().equals(oracle.profiles())
    assert (subset.n_cells, subset.profiles().n_homogeneous, subset.profiles().n_exposed) == (78, 54, 142)


REFUSALS: dict[str, tuple[bytes, str]] = {
    "empty": (b"\n\n", "is empty"),
    "not text": (b"\xff\xfe\x00\x81", "neither text nor a zip"),
    "no table": (b"P" * 200_000, "is no table"),
    "too narrow": (b"P,P,A\n", "another number of columns; got record 1"),
    "lacks a column": (b"IR,MR,FF,CR,CO,class\nP,P,P,P,P,B\n", "has no column 'OR'"),
    "ragged": (b"IR,MR,FF,CR,CO,OR,class\nP,P,P,P,P,B\n", "another number of columns; got record 1"),
    "no count": (b"IR,MR,FF,CR,CO,OR,class,n\nP,P,P,P,P,P,B,many\n", "no whole number; got record 1"),
    "large count": (b"IR,MR,FF,CR,CO,OR,class,n\nP,P,P,P,P,P,B,251\n", "no whole number"),
    "too few": (b"P,P,P,P,P,P,B\n", "not the 250 records .* got 1 records"),
    "too many": (b"P,P,P,P,P,P,B\n" * 400, "got more records"),
    "other records": (b"P,P,P,P,P,P,B\n" * 250, "got 250 records that differ"),
    "damaged zip": (zipped(Q_dot_data_dot_txt="P,P\n" * 99)[:-40], "zip is damaged"),
    "other zip": (zipped(readme="hello, world\n"), "does not hold"),
    "wrong zip": (zipped(Q_dot_data_dot_txt="P,P,P,P,P,P,B\n" * 250), "got 250 records that differ"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal(case: str) -> None:
    content, message = REFUSALS[case]
    with pytest.raises(InvalidInput, match=message) as refusal:
        parse_bankruptcy(content, "a file")
    assert "P,P" not in str(refusal.value)


def test_records_are_recognised_or_refused() -> None:
    with pytest.raises(InvalidInput, match="not the 250 records"):
        Records((("P", "B"),), "nowhere")


def test_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_bankruptcy(tmp_path / "nothing.csv")
    large = tmp_path / "large.csv"
    large.write_bytes(b"P," * bankruptcy.MOST_BYTES)
    with pytest.raises(InvalidInput, match="too large"):
        read_bankruptcy(large)


@contextmanager
def serving(status: int, content: bytes) -> Iterator[str]:
    """A server on this machine that gives one answer."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/qualitative+bankruptcy.zip"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between this machine and itself."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.usefixtures("recognised", "direct")
def test_records_are_fetched(rows: Rows, digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(200, zipped(Q_dot_data_dot_txt=as_text(rows))) as address:
        monkeypatch.setattr(bankruptcy, "URL", address)
        records = fetch_bankruptcy()
    assert (records.digest, records.source) == (digest, "UCI")


GONE = {
    "not found": (404, b"", "HTTP status 404"),
    "wrong records": (200, zipped(Q_dot_data_dot_txt="P,P,P,P,P,P,B\n" * 250), "records that differ"),
    "cut off": (200, zipped(Q_dot_data_dot_txt="P,P,P,P,P,P,B\n" * 250)[:-30], "zip is damaged"),
    "a page": (200, b"<!doctype html>\n<p>Moved</p>\n", "Bankruptcy"),
    "too much": (200, b"PK" * bankruptcy.MOST_BYTES, "too much"),
}


@pytest.mark.usefixtures("recognised", "direct")
@pytest.mark.parametrize("case", GONE)
def test_what_cannot_be_fetched_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status, content, message = GONE[case]
    with serving(status, content) as address:
        monkeypatch.setattr(bankruptcy, "URL", address)
        with pytest.raises(InvalidInput, match=message):
            fetch_bankruptcy()


@pytest.mark.usefixtures("direct")
def test_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(200, b"") as address:
        pass
    monkeypatch.setattr(bankruptcy, "URL", address)
    with pytest.raises(InvalidInput, match="cannot be reached"):
        fetch_bankruptcy()


def test_server_that_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bankruptcy, "TIMEOUT", -1.0)
    monkeypatch.setattr("urllib.request.urlopen", lambda _url, timeout: io.BytesIO(b"PK and more"))
    with pytest.raises(InvalidInput, match="too slow"):
        fetch_bankruptcy()
