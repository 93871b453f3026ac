"""Bankruptcy in every form in which people have it, from a file and from a server."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

import cellrisk as cr
from reproduction import bankruptcy
from reproduction.bankruptcy import Rows, digest_of, fetch_bankruptcy, parse_bankruptcy, read_bankruptcy


def zipped(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Qualitative_Bankruptcy.info.txt", "about the data\n")
        archive.writestr("Qualitative_Bankruptcy.data.txt", text)
    return buffer.getvalue()


def counted(text: str, header: str) -> bytes:
    rows = text.split()
    lines = [header, *(f"{row},{rows.count(row)}" for row in sorted(set(rows)))]
    return "\n".join(lines).encode()


def shuffled(text: str) -> bytes:
    """The class first, and the rows backwards."""
    rows = [row.split(",") for row in reversed(text.split())]
    return "\n".join(["class,IR,MR,FF,CR,CO,OR", *(",".join((row[6], *row[:6])) for row in rows)]).encode()


FORMS: dict[str, Callable[[str], bytes]] = {
    "UCI's text": lambda text: text.encode(),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "spaces, small letters, a byte order mark": lambda text: text.replace(",", ", ").lower().encode("utf-8-sig"),
    "other order": shuffled,
    "authors' counts": lambda text: counted(text, "IR,MR,FF,CR,CO,OR,class,class"),
    "counts in n": lambda text: counted(text, "IR,MR,FF,CR,CO,OR,class,n"),
    "UCI's zip": zipped,
}


@pytest.fixture
def recognised(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The invented records pass for those of Bankruptcy."""
    monkeypatch.setattr(bankruptcy, "DIGEST", digest_of(rows))


@pytest.mark.usefixtures("recognised")
@pytest.mark.parametrize("form", FORMS)
def test_form_is_read(form: str, rows: Rows, text: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(FORMS[form](text))
    assert sorted(read_bankruptcy(path)) == sorted(rows)


def test_digest_is_the_plain_one() -> None:
    assert digest_of([("P", "B"), ("A", "NB")]) == hashlib.sha256(b"A,NB\nP,B").hexdigest()


OTHERS = "P,P,P,P,P,P,B\n" * 250
REFUSALS: dict[str, tuple[bytes, str]] = {
    "not text": (b"\xff\xfe\x00\x81", "got 0 records"),
    "no count": (b"IR,MR,FF,CR,CO,OR,class,n\nP,P,P,P,P,P,B,many\n", "got 0 records"),
    "huge count": (b"IR,MR,FF,CR,CO,OR,class,n\nP,P,P,P,P,P,B,9999999999\n", "got 251 records"),
    "too few": (b"P,P,P,P,P,P,B\n", "got 1 records"),
    "other records": (OTHERS.encode(), "got 250 records that differ"),
    "damaged zip": (zipped(OTHERS)[:-40], "got 0 records"),
    "wrong zip": (zipped(OTHERS), "got 250 records that differ"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal(case: str) -> None:
    content, message = REFUSALS[case]
    with pytest.raises(cr.InvalidInput, match=f"not the 250 records of Qualitative Bankruptcy; {message}") as refusal:
        parse_bankruptcy(content)
    assert "P,P" not in str(refusal.value)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(cr.InvalidInput, match="cannot be read"):
        read_bankruptcy(tmp_path / "nothing.csv")


@pytest.mark.usefixtures("recognised")
def test_records_are_fetched(rows: Rows, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bankruptcy, "urlopen", lambda _, timeout: io.BytesIO(zipped(text)))
    assert fetch_bankruptcy() == rows


GONE: dict[str, tuple[bytes | Exception, str]] = {
    "not found": (HTTPError(bankruptcy.URL, 404, "", Message(), None), "HTTP status 404"),
    "no network": (URLError("no route"), "cannot be reached; got URLError"),
    "wrong records": (zipped(OTHERS), "records that differ"),
    "a page": (b"<!doctype html>\n<p>Moved</p>\n", "not the 250 records"),
}


@pytest.mark.parametrize("case", GONE)
def test_what_cannot_be_fetched_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, message = GONE[case]

    def urlopen(_: str, timeout: float) -> io.BytesIO:
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr(bankruptcy, "urlopen", urlopen)
    with pytest.raises(cr.InvalidInput, match=message):
        fetch_bankruptcy()
