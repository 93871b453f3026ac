"""Where a report is saved, and as what: a page that can be read, and a PDF that fetches nothing."""

from __future__ import annotations

import hashlib
import re
import urllib.request
import zlib
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.show.reporting import Report, check_report_path, document
from tests.refusals import refused
from tests.show.reporting.reading import Reader, pdfs, people


def test_where_a_report_is_saved(chosen: Report, tmp_path: Path) -> None:
    for name in ("report.html", "report.HTM"):
        assert chosen.save(tmp_path / name).read_text("utf-8") == chosen.html
    for name in ("report", "report.doc"):
        with refused("output"):
            check_report_path(tmp_path / name)
    with refused("output"):
        chosen.save(tmp_path / "nowhere" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with refused("output"):
        chosen.save(tmp_path / "folder.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "report.HTM", "report.html"]


@pytest.mark.parametrize(("error", "words"), [(ImportError, "WeasyPrint, which is not"), (OSError, "Pango")])
def test_a_pdf_without_its_maker(
    error: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Any:
        raise error(name)

    monkeypatch.setattr(document, "import_module", fail)
    with refused("no-weasyprint", words, "pip install 'cellrisk[pdf]'", "libpango-1.0-0 libpangoft2-1.0-0"):
        check_report_path(tmp_path / "report.pdf")


needs_pdf = pytest.mark.skipif(not pdfs(), reason="WeasyPrint or its library Pango is not installed")


@needs_pdf
def test_a_pdf_has_pages(chosen: Report, tmp_path: Path) -> None:
    content = chosen.save(tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    objects = b"".join(_unpacked(stream) for stream in streams)
    (pages,) = re.findall(rb"/Type /Pages.*?/Count (\d+)", objects + content, re.DOTALL)
    assert 4 <= int(pages) <= 12
    assert b"CreationDate" not in objects + content


def _unpacked(stream: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream)  # whose last byte may be a line break, which is cut off above
    except zlib.error:
        return b""


@needs_pdf
def test_making_a_pdf_fetches_nothing(chosen: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", fetch)
    secret = tmp_path / "secret.svg"
    secret.write_text("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>", "utf-8")
    body = f"<html><body>A<img src='{secret.as_uri()}'><img src='http://localhost:1/a.png'></body></html>"
    mean = Report(body, "A", "B", "open", "C", chosen.setting, 1.0, public=False)
    assert mean.to_pdf().startswith(b"%PDF")


def test_colours_can_be_read() -> None:
    style = Path(document.__file__).with_name("templates").joinpath("style.css").read_text("utf-8")
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", style))
    assert len(colours) == 12
    pairs = [("ink", "paper"), ("ink", "shade"), ("quiet", "paper"), ("link", "paper")]
    pairs += [(front, f"{kind}-shade") for kind in ("good", "bad", "open") for front in (kind, "ink")]
    for front, back in pairs:
        assert _contrast(colours[front], colours[back]) >= 4.5


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_first_page_tells_of_ledger_date_command_and_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sqlalchemy", reason="the extra 'ledger' is not installed")
    monkeypatch.chdir(tmp_path)
    people(3).to_csv("people.csv", index=False)
    with cr.Ledger("ledger.db", create=True) as ledger:
        ledger.add(attribute="trade", quasi_identifiers="age", loss=cr.Geometric(epsilon=0.5), new_cohort=True)
        ledger.set_limit("everyone", epsilon=1.2)
        head = ledger.head.digest
    asked = ["people.csv", "--qid", "town,age", "--sensitive", "trade", "--epsilon", "1", "--ledger", "ledger.db"]
    more = ["--date", "2026-11-17", "--audience", "All who ask", "--output", "report.html"]
    pages = set()
    for _ in range(2):
        assert main(["report", *asked, *more]) == 0
        pages.add(Path("report.html").read_text(encoding="utf-8"))
    (page,) = pages
    text = Reader(page).text
    told = [
        "All who ask",
        "1 release about the same people, by the ledger (cohort everyone).",
        "Spent before: epsilon 0.5. Spent after this release: epsilon 1.5. Limit: at most epsilon 1.2",
        "Does it fit? No: ",
        "Date 2026-11-17",
        "Command cellrisk report people.csv --qid town,age",
        hashlib.sha256(Path("people.csv").read_bytes()).hexdigest(),
        head,
    ]
    assert [each for each in told if each not in text] == []
    assert text.count("Spent before: epsilon 0.5.") == 2  # on page one, and in the label
    capsys.readouterr()
    assert main(["report", *asked, "--output", "report.html", "--cohort", "nobody"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
