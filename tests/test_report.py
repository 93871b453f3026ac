"""`report`: what the board sees, what the public does not, the same bytes each time, one file that needs no other."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import zlib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.assessment import CURATOR_NOTE
from cellrisk.choice import CHOICE_NOTE, choose
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.explanation import explain
from cellrisk.mechanisms import MECHANISMS
from cellrisk.reporting import Report, basis, check_report_path, document, registry, report
from cellrisk.text import percent

SOURCE = Path(document.__file__).parents[2]
TOWNS = ["Quimby", "Zarnath", "Wexcombe", "Uxley", "Yarrowby", "Jexton", "Kvistad", "Ozzano"]
TRADES, AGES = ["fletcher", "cooper", "chandler"], ["younger", "middling", "older"]
LEVELS = {"town": TOWNS, "age": AGES, "trade": TRADES}
SECTIONS = (
    "1. Decision asked for",
    "2. Risk before, after and by chance",
    "3. The epsilon and two alternatives",
    "4. Risk along epsilon",
    "5. Usefulness of what is published",
    "6. Sizes of the cells",
    "7. Who is at risk, and what would help",
    "8. Assumptions",
    "9. Mechanism and versions",
    "10. Record for the deployments registry",
    "11. Notes for the curator",
    "12. Sign-off",
)
PUBLIC_SECTIONS = (
    "1. Decision asked for",
    "2. What was measured and required",
    "3. What is withheld, and what the choice discloses",
    "4. Assumptions",
    "5. Mechanism and versions",
    "6. Record for the deployments registry",
    "7. Sign-off",
)


class Reader(HTMLParser):
    """Reads a page: its words, headings, tables, ids and addresses, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.counted: Counter[str] = Counter()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.labels: list[str] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._note(tag, attributes)
        if tag != "meta":
            self.open.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._note(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if {"h1", "h2"} & set(self.open):
            self.headings[-1] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def _note(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.counted[tag] += 1
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src", "srcset", "data", "action", "poster"):
                self.addresses.append(value or "")
            if name == "aria-label":
                self.labels.append(value or "")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def people(seed: int, records: int = 250) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "town": generator.choice(TOWNS, records, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]),
            "age": generator.choice(AGES, records),
            "trade": generator.choice(TRADES, records, p=[0.9, 0.08, 0.02]),
        }
    )


def tabulated(seed: int = 3, records: int = 250) -> cr.FrequencyTable:
    return cr.tabulate(people(seed, records), ["town", "age"], "trade", levels=LEVELS)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return tabulated()


@pytest.fixture(scope="module")
def chosen(table: cr.FrequencyTable) -> Report:
    return report(
        table, max_risk=0.3, max_tvd=0.5, releases=2, top=4, organisation="Office", preparation=["as it came"]
    )


@pytest.fixture(scope="module")
def page(chosen: Report) -> Reader:
    return Reader(chosen.html)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and says nothing where words and numbers are looked at."""
    import cellrisk.pictures as pictures

    for name in ("draw_curve", "draw_choice", "draw_sizes"):
        monkeypatch.setattr(pictures, name, lambda _: SimpleNamespace(texts=[]))
    monkeypatch.setattr(pictures, "to_svg", lambda _: "<svg></svg>")


def down(epsilon: float | None) -> float:
    """To five digits, not above."""
    assert epsilon is not None
    digits = 4 - int(np.floor(np.log10(epsilon)))
    return float(f"{np.floor(epsilon * 10.0**digits) / 10.0**digits:.5g}")


def test_the_board_sees_every_section(chosen: Report, page: Reader) -> None:
    assert page.headings == ["Disclosure review of trade by town and age", *SECTIONS]
    assert chosen.verdict == "recommended"
    assert chosen.to_html() == chosen.html
    assert "Approve publication of the frequency table of trade by town and age with laplace noise" in page.text
    for line in (CURATOR_NOTE, CHOICE_NOTE, "Office", "as it came", "Do not publish"):
        assert line in page.text
    assert all(name in page.text for name in ("Prepared by", "Reviewed by", "Signature", "Date"))


def test_numbers_are_those_of_choose_assess_and_explain(table: cr.FrequencyTable, chosen: Report, page: Reader) -> None:
    choice = choose(table, max_risk=0.3, max_tvd=0.5, releases=2)
    assert chosen.epsilon == down(choice.epsilon)
    assert chosen.mechanism == cr.Laplace(epsilon=down(choice.epsilon))
    assessment = cr.assess(table, chosen.mechanism, measures="local")
    assert assessment.headline in page.text
    people = assessment.exposures[0].people
    (row,) = [row for row in page.rows if row[0] == "Recommended"]
    assert row[:4] == [
        "Recommended",
        f"{chosen.epsilon:g}",
        f"{chosen.mechanism.scale:.4g}",
        percent(assessment.value()),
    ]
    assert row[4] == f"{people.mean:,.0f} ({people.low:,} to {people.high:,})"
    assert row[5] == f"{choice.alternatives[1].tvd:.3g}"
    for role, factor in (("Stricter", 0.5), ("Looser", 2.0)):
        (other,) = [row for row in page.rows if row[0] == role]
        at = cr.Laplace(epsilon=factor * chosen.epsilon)
        assert other[1:4] == [f"{at.epsilon:.5g}", f"{at.scale:.4g}", percent(cr.assess(table, at).value())]
    assert "breaks the limit on the risk" in other[-1]
    found = explain(table, chosen.mechanism, top=4)
    assert found.headline in page.text
    for cell in found.riskiest:
        assert [*cell.key.values(), f"{cell.records:,}", percent(cell.risk), f"{cell.people:,.1f}"] in page.rows
    for removal in found.without:
        assert any(
            row[:3] == [removal.quasi_identifier, f"{removal.cells:,}", percent(removal.risk)] for row in page.rows
        )


def test_one_file_that_needs_no_other(chosen: Report, page: Reader) -> None:
    assert chosen.html.startswith("<!doctype html>")
    assert page.open == []
    assert not page.counted["script"]
    assert not page.counted["link"]
    assert all(address.startswith("#") for address in page.addresses)
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert [name for name, times in Counter(page.ids).items() if times > 1] == []
    style = chosen.html.partition("<style>")[2].partition("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style
    assert page.counted["h1"] == 1
    assert page.counted["caption"] == page.counted["table"]
    assert page.counted["svg"] == page.counted["figure"] == 3
    assert sum("epsilon falls to 0" in label for label in page.labels) == 1


def test_the_same_bytes_in_every_process(chosen: Report) -> None:
    script = (
        "import hashlib, tests.test_report as it\n"
        "made = it.report(it.tabulated(), max_risk=0.3, max_tvd=0.5, releases=2, top=4, organisation='Office',\n"
        "                 preparation=['as it came'])\n"
        "print(hashlib.sha256(made.html.encode()).hexdigest())\n"
        "print(hashlib.sha256(made.to_pdf()).hexdigest() if it.pdfs() else '')"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}", "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    (html, pdf), other = (run.communicate()[0].split("\n")[:2] for run in runs)
    assert [html, pdf] == other
    assert html == hashlib.sha256(chosen.html.encode()).hexdigest()
    assert len(pdf) == (64 if pdfs() else 0)


@pytest.mark.usefixtures("no_pictures")
def test_no_epsilon_will_do(table: cr.FrequencyTable) -> None:
    choice = choose(table, max_risk=0.001)
    assert choice.epsilon is None
    found = report(table, max_risk=0.001)
    read = Reader(found.html)
    assert (found.verdict, found.epsilon, found.mechanism) == ("none", None, None)
    assert choice.headline in read.text
    assert percent(choice.options[0].lowest_risk) in read.text
    assert "What would be needed: to allow a risk of about" in read.text
    assert "3. No epsilon will do: what comes nearest" in read.headings
    assert len(read.headings) == 13
    assert found.to_dict()["epsilon"] is None


@pytest.mark.usefixtures("no_pictures")
def test_limits_in_conflict(table: cr.FrequencyTable) -> None:
    found = report(table, max_risk=0.2, max_tvd=0.01, releases=2)
    read = Reader(found.html)
    rows = {row[0]: row for row in read.rows if row}
    assert found.verdict == "none"
    assert rows["Keeps the limit on the risk"][1] == f"{down(choose(table, max_risk=0.2).epsilon):g}"
    assert rows["Keeps the limit on the risk"][-1] == "Breaks the limit on the TVD."
    assert rows["Keeps the limit on the TVD"][-1] == "Breaks the limit on the risk."
    assert "which keeps the limit on the risk" in read.text


@pytest.mark.usefixtures("no_pictures")
def test_an_epsilon_that_was_given(table: cr.FrequencyTable) -> None:
    found = report(table, epsilon=1.0)
    read = Reader(found.html)
    assert (found.verdict, found.epsilon) == ("open", 1.0)
    assert cr.assess(table, cr.Laplace(epsilon=1.0)).headline in read.text
    assert "Usefulness was not assessed" in read.text
    assert read.headings[1:] == list(SECTIONS)
    assert [row[0] for row in read.rows if row[0] in ("Stricter", "Asked for", "Looser")] == [
        "Stricter",
        "Asked for",
        "Looser",
    ]


@pytest.mark.parametrize(("limit", "verdict"), [(0.9, "kept"), (0.01, "broken")])
def test_an_epsilon_is_checked_against_limits(table: cr.FrequencyTable, limit: float, verdict: str) -> None:
    found = report(table, epsilon=2.0, max_risk=limit, public=True)
    assert (found.verdict, found.epsilon) == (verdict, 2.0)
    assert f"Limits {verdict}" in found.headline


@pytest.mark.usefixtures("no_pictures")
def test_an_epsilon_with_a_limit_on_usefulness_alone(table: cr.FrequencyTable) -> None:
    found = report(table, epsilon=200.0, max_tvd=0.3, releases=2)
    read = Reader(found.html)
    assert found.verdict == "kept"
    assert ["Epsilon", "Risk", "TVD"] in read.rows
    assert report(table, "gaussian", epsilon=0.5, delta=0.01, max_tvd=1e-9, releases=2, public=True).verdict == "broken"


def test_several_attributes_another_measure_and_a_delta() -> None:
    frame = people(5).assign(wage=np.where(people(6)["age"] == "older", "high", "low"))
    several = cr.tabulate(frame, ["town", "age"], ["trade", "wage"])
    found = report(
        several,
        "gaussian-analytic",
        epsilon=1.0,
        measure="shrinkage",
        form="exact",
        weights="uniform",
        cells="observed",
    )
    read = Reader(found.html)
    mechanism = found.mechanism
    assert mechanism is not None
    assessment = cr.assess(several, mechanism, measures="shrinkage")
    for name, line in zip(("trade", "wage"), assessment.headline.split("\n"), strict=True):
        assert line in read.text
        value = percent(assessment.value("shrinkage", "exact", "uniform", name))
        assert any(row[0] == name and row[2] == value for row in read.rows)
    for words in (
        "one over the number of records",
        "2 times the epsilon",
        "sequential composition",
        "All figures of this section are of the local risk",
        "Dirichlet",
        "which cells hold records",
        "observed in the data",
    ):
        assert words.lower() in read.text.lower()


def test_markup_in_names_and_values_is_shown_as_it_is() -> None:
    name, value = '<b>&"', '<script>alert("&amp;")</script>'
    frame = people(3).rename(columns={"town": name})
    frame[name] = frame[name].replace("Quimby", value)
    frame["trade"] = frame["trade"].replace("fletcher", value)
    found = report(cr.tabulate(frame, [name, "age"], "trade"), epsilon=1.0, title=f"A {value}", source=name)
    read = Reader(found.html)
    assert not read.counted["script"]
    assert not read.counted["b"] - found.html.count("<b>Data:</b>") - found.html.count("<b>Table:</b>")
    assert read.headings[0] == f"A {value}"
    assert any(row[0] == value for row in read.rows)
    assert f"Data: {name}" in read.text


def test_the_public_sees_no_figure_from_the_data(table: cr.FrequencyTable) -> None:
    found = report(
        table, max_risk=0.9, max_people=199, margin=0.0987, public=True, source="people.csv", preparation=["as it came"]
    )
    read = Reader(found.html)
    assert read.headings[1:] == list(PUBLIC_SECTIONS)
    assert found.verdict == "recommended"
    for label in (*TOWNS, *TRADES, *AGES):
        assert label not in found.html
    assessment = cr.assess(table, cr.Laplace(epsilon=found.epsilon or 1.0), measures="local")
    exposure = assessment.exposures[0]
    for share in (exposure.share, exposure.raw_share, exposure.guess_share, assessment.value()):
        assert percent(share) not in found.html
    assert set(re.findall(r"\d[\d.]*%", read.text)) == {"9.9%", "90.0%"}
    numbers = re.findall(r"(?<![\w.])[\d,]*\d(?:\.\d+)?(?![\w.]*\w)", read.text)
    assert not {f"{table.n_records}", f"{exposure.people.mean:,.0f}", f"{exposure.people.low}"} & set(numbers)
    for figure in ("svg", "figure"):
        assert not read.counted[figure]
    for line in (
        "not differentially private",
        "the choice itself discloses",
        "199 people",
        "people.csv",
        "as it came",
    ):
        assert line in read.text


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    "asked",
    [{"epsilon": 0.7}, {"epsilon": 0.7, "max_risk": 0.99}, {"max_risk": 0.0}, {"max_risk": 1.0, "max_tvd": 1.0}],
    ids=["given", "kept", "none", "end of the range"],
)
def test_two_tables_give_the_public_the_same_page(asked: dict[str, Any]) -> None:
    one, other = tabulated(3, 250), tabulated(4, 477)
    pages = {report(each, public=True, releases=1, **asked).html for each in (one, other)}
    assert len(pages) == 1
    assert report(one, releases=1, **asked).html != report(other, releases=1, **asked).html


def test_the_public_is_told_what_delta_tells(table: cr.FrequencyTable) -> None:
    assert "order of magnitude" in report(table, "gaussian-analytic", epsilon=1.0, public=True).html
    assert "order of magnitude" not in report(table, "gaussian-analytic", epsilon=1.0, delta=0.01, public=True).html


@pytest.mark.usefixtures("no_pictures")
def test_nothing_of_the_place_where_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    people(3).to_csv(path, index=False)
    found = report(cr.tabulate(path, ["town", "age"], "trade"), epsilon=1.0, source=path.name)
    assert str(tmp_path) not in found.html
    assert str(SOURCE) not in found.html
    assert "people.csv" in found.html


@pytest.mark.usefixtures("no_pictures")
def test_a_table_without_its_source(table: cr.FrequencyTable) -> None:
    bare = cr.FrequencyTable(table.quasi_identifiers, table.attributes, table.homogeneity)
    read = Reader(report(bare, epsilon=1.0).html)
    assert "cannot be shown" in read.text
    assert ["town", "quasi-identifier", "not known", "not known"] in read.rows


@pytest.mark.usefixtures("no_pictures")
def test_many_quasi_identifiers_share_a_column() -> None:
    frame = people(3).assign(**{f"part {number}": "same" for number in range(6)})
    many = cr.tabulate(frame, [name for name in frame if name != "trade"], "trade")
    read = Reader(report(many, epsilon=1.0).html)
    assert ["Cell", "Records", "Risk", "People exposed"] in read.rows
    assert any(row[0].endswith("part 4: same; part 5: same") for row in read.rows)


@pytest.mark.usefixtures("no_pictures")
def test_missing_values_are_told() -> None:
    frame = people(3)
    frame.loc[:6, "town"] = None
    dropped = cr.tabulate(frame, ["town", "age"], "trade", missing="drop")
    assert "Records left out: 7." in report(dropped, epsilon=1.0).html
    kept = cr.tabulate(frame, ["town", "age"], "trade")
    assert "Records with a missing value: town: 7." in report(kept, epsilon=1.0).html
    assert "town: 7" not in report(kept, epsilon=1.0, public=True).html


def test_every_mechanism_has_its_formula(table: cr.FrequencyTable) -> None:
    assert set(basis.FORMULAS) == set(MECHANISMS)
    for name, kind in MECHANISMS.items():
        found = report(table, name, epsilon=0.5, delta=None if kind.pure else 0.01, public=True)
        read = Reader(found.html)
        rows = dict(row for row in read.rows if len(row) == 2)
        assert rows["dp_variant.variant_name"] == ("Pure DP" if kind.pure else "Approximate DP")
        assert rows["privacy_loss.privacy_parameters.epsilon"] == "0.5"
        assert (rows["privacy_loss.privacy_parameters.rho"] == "not applicable") == (name != "discrete-gaussian")
        assert rows["basic.intended_use"] == registry.TO_FILL
        assert rows["basic.data_curators.data_curator_name"] == registry.TO_FILL


def test_progress_rises_to_the_end(table: cr.FrequencyTable) -> None:
    told: list[float] = []
    report(table, max_risk=0.3, max_tvd=0.5, releases=1, public=True, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 2


def test_what_a_report_refuses(table: cr.FrequencyTable) -> None:
    with pytest.raises(InvalidInput, match=r"needs a decision to ask for.*--epsilon 1 or --max-risk"):
        report(table)
    with pytest.raises(InvalidInput, match="needs a decision to ask for"):
        report(table, max_tvd=0.1)
    with pytest.raises(InvalidInput, match="one mechanism"):
        report(table, ["laplace", "geometric"], epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="epsilon below 1 only"):
        report(table, "gaussian", epsilon=2.0)
    with pytest.raises(UnknownName, match="unknown mechanism"):
        report(table, "noise", epsilon=1.0)
    with pytest.raises(InvalidInput, match="list of lines"):
        report(table, epsilon=1.0, preparation="age in bins")
    with pytest.raises(InvalidInput, match="max_risk must be a share"):
        report(table, max_risk=30)


def test_where_a_report_is_saved(chosen: Report, tmp_path: Path) -> None:
    for name in ("report.html", "report.HTM"):
        assert chosen.save(tmp_path / name).read_text("utf-8") == chosen.html
    for name in ("report", "report.doc"):
        with pytest.raises(InvalidInput, match=r"allowed: \.html, \.htm, \.pdf"):
            check_report_path(tmp_path / name)
    with pytest.raises(InvalidInput, match="does not exist"):
        chosen.save(tmp_path / "nowhere" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        chosen.save(tmp_path / "folder.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "report.HTM", "report.html"]


@pytest.mark.parametrize(("error", "words"), [(ImportError, "WeasyPrint, which is not"), (OSError, "Pango")])
def test_a_pdf_without_its_maker(
    error: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Any:
        raise error(name)

    monkeypatch.setattr(document, "import_module", fail)
    with pytest.raises(
        InvalidInput, match=rf"{words}.*pip install 'cellrisk\[pdf\]'.*libpango-1.0-0 libpangoft2-1.0-0"
    ):
        check_report_path(tmp_path / "report.pdf")


def pdfs() -> bool:
    """Whether WeasyPrint and its libraries are there."""
    try:
        check_report_path(Path(tempfile.gettempdir()) / "report.pdf")
    except InvalidInput as refusal:
        return "WeasyPrint" not in str(refusal)
    return True


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
        return zlib.decompress(stream)
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


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_can_be_read(mode: str) -> None:
    style = Path(document.__file__).with_name("style.css").read_text("utf-8")
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in style.split("@media", 2)[:2])
    colours = light if mode == "light" else dark
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
