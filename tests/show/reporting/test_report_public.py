"""`report` for the public: no figure from the data, and nothing of the place where it was made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.show.reporting import document, report
from cellrisk.system.formatting import percent
from tests.refusals import refused
from tests.show.reporting.reading import AGES, SOURCE, TOWNS, TRADES, Reader, people, tabulated

NUMBER = r"(?<![\w.])[\d,]*\d(?:\.\d+)?(?![\w.]*\w)"
PUBLIC_SECTIONS = (
    "1. What was published",
    "2. What the guarantee means",
    "3. How to use the counts",
    "4. What was measured and required",
    "5. What is withheld, and what the choice discloses",
    "6. Assumptions",
    "7. Label of the release",
    "8. Mechanism and versions",
)


def test_the_public_sees_no_figure_from_the_data(table: cr.FrequencyTable) -> None:
    found = report(
        table, max_risk=0.9, max_people=199, margin=0.0987, public=True, source="people.csv", preparation=["as it came"]
    )
    read = Reader(found.html)
    assert read.headings[1:] == list(PUBLIC_SECTIONS)
    assert found.verdict == "recommended"
    for label in (*TOWNS, *TRADES, *AGES):
        assert label not in found.html
    assessment = cr.assess(table, cr.Geometric(epsilon=found.epsilon or 1.0), measures="local")
    exposure = assessment.figures[0]
    shares = exposure.people.mean / exposure.records, exposure.raw_share, *exposure.baselines.values()
    for share in (*shares, assessment.value()):
        assert percent(share) not in found.html
    assert set(re.findall(r"\d[\d.]*%", read.text)) == {"9.87%", "90%", "95%"}
    # The guarantee, the use of the counts and the label follow from the noise alone, as the test below shows.
    before, _, after = read.text.partition("2. What the guarantee means")
    rest, _, label = after.partition("4. What was measured")[2].partition("7. Label of the release")
    numbers = re.findall(NUMBER, before + rest + label.partition("8. Mechanism and versions")[2])
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
    [
        pytest.param({"epsilon": 0.7}, id="given", marks=pytest.mark.slow),
        pytest.param({"epsilon": 0.7, "max_risk": 0.99}, id="kept"),
        pytest.param({"max_risk": 0.0}, id="none"),
        pytest.param({"max_risk": 1.0, "max_tvd": 1.0}, id="end of the range", marks=pytest.mark.slow),
    ],
)
def test_two_tables_give_the_public_the_same_page(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tabulated(3, 250), tabulated(4, 477)
    pages = {report(each, public=True, releases=1, **asked).html for each in (one, other)}
    assert len(pages) == 1
    assert report(one, releases=1, **asked).html != report(other, releases=1, **asked).html
    monkeypatch.setattr(document, "render", lambda _, data, __=None: json.dumps(data))  # all that a template could show
    given = {report(each, public=True, releases=1, **asked).html for each in (one, other)}
    assert len(given) == 1


def test_the_public_gets_no_delta_that_was_set_from_the_records(table: cr.FrequencyTable) -> None:
    with refused("public-delta"):
        report(table, "gaussian-analytic", epsilon=1.0, public=True)
    assert report(table, "gaussian-analytic", epsilon=1.0, delta=0.01, public=True).verdict == "open"
    told = "Delta was set from the number of records, and tells its order of magnitude."
    found = report(table, "gaussian-analytic", epsilon=1.0, delta=0.01, public=True, disclosures=[told]).html
    assert found.count(told.removesuffix(".")) == 3  # in the notes, the label, and what the guarantee does not cover


@pytest.mark.usefixtures("no_pictures")
def test_nothing_of_the_place_where_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    people(3).to_csv(path, index=False)
    found = report(cr.tabulate(path, ["town", "age"], "trade"), epsilon=1.0, source=path.name)
    assert str(tmp_path) not in found.html
    assert str(SOURCE) not in found.html
    assert "people.csv" in found.html


@pytest.mark.parametrize("more", [[], ["--mechanism", "discrete-gaussian", "--delta", "1e-6"]], ids=["pure", "delta"])
def test_nobody_and_somebody_have_the_same_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    """A table without records, one with a record, and one whose record lies outside the labels: no figure tells."""
    found = set()
    columns = ["--qid", "age", "--bin", "age=0/18/65", "--sensitive", "job", "--levels", "job=cook|smith"]
    for number, record in enumerate(["", "5,cook\n", "abc,zz\n"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "people.csv").write_text(f"age,job\n{record}", encoding="utf-8")
        output = folder / "report.html"
        command = [
            "report",
            str(folder / "people.csv"),
            *columns,
            "--public",
            "--epsilon",
            "1",
            "--output",
            str(output),
        ]
        code = main([*command, *more])
        said = capsys.readouterr()
        found.add((code, said.out.replace(str(output), ""), said.err, output.read_bytes()))
    assert len(found) == 1


def test_the_command_asks_for_a_delta_and_does_not_advise_one_from_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text("age,job\n5,cook\n", encoding="utf-8")
    columns = ["--qid", "age", "--bin", "age=0/18/65", "--sensitive", "job", "--levels", "job=cook|smith"]
    asked = ["--mechanism", "discrete-gaussian", "--epsilon", "1", "--output", str(tmp_path / "report.html")]
    assert main(["report", str(tmp_path / "people.csv"), *columns, "--public", *asked]) == 2
    said = capsys.readouterr().err
    assert "a report for the public needs a delta" in said
    assert "number of records would tell" in said
    assert "common choice" not in said


KEEPS_NONE, CHOSEN = "is admissible", "epsilon was chosen"


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    ("limits", "verdict"), [({"max_caused": 0.9999}, "unbound"), ({"max_caused": 1e-9}, "none"), ({}, "open")]
)
def test_no_sentence_says_why_there_is_no_epsilon_but_the_true_one(
    table: cr.FrequencyTable, limits: dict[str, float], verdict: str, public: bool
) -> None:
    given = {"epsilon": 1.0} if verdict == "open" else {}
    found = report(table, **limits, **given, public=public)
    assert found.verdict == verdict
    said = [found.html, found.sentence]
    assert any(KEEPS_NONE in text for text in said) is (verdict == "none")
    assert any("no limit binds" in text.lower() for text in said) is (verdict == "unbound")
    assert not any(CHOSEN in text.lower() for text in said)
    assert not any("epsilon, which was chosen" in text for text in said)
