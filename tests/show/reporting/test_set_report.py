"""`together report`: what a board sees of tables that are released together."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.decide.policies import Policies
from cellrisk.repeat.together import KEPT, judge
from cellrisk.show.reporting import Report
from cellrisk.show.wording.attackers import own_people, own_share
from cellrisk.system.formatting import say_people
from tests.near import near
from tests.refusals import refused
from tests.show.reporting.reading import LEVELS, TOWNS, TRADES, Reader, people

SET = """
source = "people.csv"
sensitive = "trade"
levels = ["trade=fletcher|cooper|chandler", "age=younger|middling|older"]
epsilon = 1.0

[[table]]
qid = ["town"]

[[table]]
name = "towns and ages"
qid = ["town", "age"]
epsilon = 0.5

[[table]]
qid = ["town"]
where = { age = { not = ["older"] } }
"""
TABLES: list[dict[str, Any]] = [
    {"qid": "town"},
    {"qid": ["town", "age"], "name": "towns and ages", "epsilon": 0.5},
    {"qid": "town", "where": {"age": {"not": ["older"]}}},
]
SECTIONS = [
    "1. Decision asked for",
    "Sign-off",
    "2. The tables by themselves",
    "3. What each table adds, and what would help",
    "4. Two ways to put the tables together",
    "5. Differences of tables, and common margins",
    "6. Usefulness of what is published",
    "7. Assumptions",
    "8. Label of the release",
    "9. Mechanisms and versions",
    "10. Where standards and boards find their answers",
    "11. How this report was made",
    "12. Notes for the curator",
]


def assess(tables: Any = TABLES, data: pd.DataFrame | None = None, **more: Any) -> cr.TogetherAssessment:
    asked: dict[str, Any] = {"levels": LEVELS, "epsilon": 1.0} | more
    return cr.assess_together(people(3) if data is None else data, tables, "trade", **asked)


@pytest.fixture(scope="module")
def found() -> cr.TogetherAssessment:
    return assess()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with people and a set, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    people(3).to_csv("people.csv", index=False)
    Path("set.toml").write_text(SET, encoding="utf-8")
    return tmp_path


def read(report: Report) -> Reader:
    return Reader(report.html)


def test_the_board_sees_the_set_and_its_picture(found: cr.TogetherAssessment) -> None:
    made = cr.report(found, max_caused=0.5, audience="All who ask", organisation="Office")
    page = read(made)
    assert page.headings == ["Disclosure review of 3 tables of trade", *SECTIONS]
    assert page.open == []
    assert made.verdict == "kept"
    assert made.epsilon == near(2.5)
    assert found.headline in page.text
    assert any(label.startswith("How what is revealed grows as tables are added") for label in page.labels)
    assert "each with geometric noise, at epsilon 2.5 in all." in page.text
    for line in (
        "All who ask",
        "Office",
        "A person's town and age, that the person is in the tables",
        "Do not publish",
    ):
        assert line in page.text
    assert cr.report(found, max_caused=0.5, audience="All who ask", organisation="Office").html == made.html


@pytest.mark.usefixtures("no_pictures")
def test_numbers_are_those_of_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["together", "set.toml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    asked = ["together", "report", "set.toml", "--date", "2026-11-17", "--output", "report.html"]
    pages = set()
    for _ in range(2):
        assert main(asked) == 0
        pages.add(Path("report.html").read_text(encoding="utf-8"))
    (html,) = pages
    page = Reader(html)
    assert told["sentence"] in page.text
    lead = told["rules"][0]
    people = told["records"]
    whole = [f"{own_people(lead[name], people)} ({own_share(lead[name], people)})" for name in ("caused", "right")]
    assert ["All 3 tables together", "2.5", *whole] in [row[:4] for row in page.rows]
    points = next(row[4] for row in page.rows if row[0] == "All 3 tables together")
    assert float(points.removesuffix(" percentage points")) == pytest.approx(
        100 * told["ceiling"]["advantage"], abs=0.1
    )
    names = ["1: town", "2: towns and ages (town, age)", "3: town; age is not older"]
    for name, each in zip(names, told["tables"], strict=True):
        alone = [
            f"{own_people(each[figure], each['records'])} ({own_share(each[figure], each['records'])})"
            for figure in ("caused", "right")
        ]
        assert [name, f"{each['mechanism']['epsilon']:g}", *alone] in [row[:4] for row in page.rows]
        own = [f"{each['records']:,}", f"{each['cells']:,}", say_people(each["right"]), say_people(each["named"])]
        own += [f"{each['sd']:,.1f}", say_people(each["caused"]), say_people(each["chance"]), f"{each['raw']:,}"]
        assert [name, *own] in page.rows
        without = [say_people(each["set_without_it"][figure]) for figure in ("caused", "right")]
        assert [name, *without] in [[row[0], *row[3:]] for row in page.rows if len(row) == 5]
    for each in told["rules"]:
        row = next(row for row in page.rows if row[0] == each["rule"].capitalize())
        numbers = [say_people(each[name]) for name in ("right", "named")] + [f"{each['sd']:,.1f} (+-"]
        assert [*row[1:3], row[3][: len(numbers[2])]] == numbers
        assert row[4:7] == [say_people(each["caused"]), say_people(each["chance"]), f"{each['raw']:,}"]
    (difference,) = told["differences"]
    assert difference["sentence"] in page.text
    assert all(each in page.text for each in told["statements"])
    for name in ("people.csv", "set.toml"):
        assert hashlib.sha256(Path(name).read_bytes()).hexdigest() in page.text
    assert "Date 2026-11-17 Command cellrisk together report set.toml" in page.text
    assert "values that these columns can take were read from the data, not declared: town." in page.text


@pytest.mark.usefixtures("no_pictures")
def test_tables_are_added_one_by_one(found: cr.TogetherAssessment) -> None:
    rows = [row for row in read(cr.report(found)).rows if len(row) == 5 and row[0][:2] in ("1:", "2:", "3:")]
    so_far = [found.collections[tuple(range(1, last + 1))] for last in (1, 2, 3)]
    assert [row[1:3] for row in rows[:3]] == [[say_people(here.caused), say_people(here.right)] for here in so_far]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        ({}, "open"),
        ({"max_caused": 0.9, "max_epsilon": 2.5, "max_ceiling": 0.95, "max_risk": 0.99, "margin": 0.99}, "kept"),
        ({"max_caused": 1e-6, "max_epsilon": 3.0}, "broken"),
        ({"max_epsilon": 2.4, "max_ceiling": 0.6, "max_risk": 0.01, "max_people": 1, "margin": 0.001}, "broken"),
    ],
)
def test_limits_are_judged_as_the_set_is(found: cr.TogetherAssessment, limits: dict[str, Any], verdict: str) -> None:
    from cellrisk.decide.limits import read_limits

    made = cr.report(found, **limits)
    assert made.verdict == verdict
    broken = [judged.breach for judged in judge(found, read_limits(**limits), Policies()) if judged.state != KEPT]
    assert list(made.broken) == broken
    rows = [row for row in read(made).rows if row[-1] in ("kept", "broken", "cannot be judged")]
    assert len(rows) == len(limits)
    assert sum(row[-1] == "broken" for row in rows) == len(broken)
    assert all(row[1] == "applicant" for row in rows)


@pytest.mark.usefixtures("no_pictures")
def test_policies_say_who_set_which_limit_and_when(found: cr.TogetherAssessment) -> None:
    words: dict[str, Any] = {"set_by": "the review board", "set_on": "2026-05-04"}
    policy = cr.Policy(max_ceiling=0.6, max_risk=0.5, measure="expected", **words)
    made = cr.report(found, policy=policy)
    rows = [
        row
        for row in read(made).rows
        if row[1:2] == ["a policy given in Python, set by the review board on 2026-05-04"]
    ]
    assert sorted(row[-1] for row in rows) == ["broken", "cannot be judged"]
    assert list(made.broken) == [judged.breach for judged in judge(found, (), made.policies)]
    assert "does not keep 2 of 2 limits" in made.headline
    with refused("certainty"):
        cr.report(found, max_certain=0.5, certainty=0.9)


@pytest.mark.usefixtures("no_pictures")
def test_a_broken_limit_or_policy_ends_with_three(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["together", "report", "set.toml", "--output", "report.html"]
    assert main([*asked, "--max-epsilon", "2"]) == 3
    assert "Limits broken: the set does not keep the limit" in capsys.readouterr().out
    Path("policy.toml").write_text("[policy]\nmax-epsilon = 2\nmax-certain = 0.9\n", encoding="utf-8")
    monkeypatch.setenv("CELLRISK_POLICY", "policy.toml")
    assert main(asked) == 3
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "epsilon is 2.5; by policy.toml" in told.err
    page = Reader(Path("report.html").read_text(encoding="utf-8"))
    assert "The informed attacker" in " ".join(page.headings)
    assert main([*asked, "--max-epsilon", "2.2"]) == 2
    assert "--max-epsilon is looser than the policy" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_hostile_names_are_shown_and_do_nothing() -> None:
    name, column = "<script>alert('a')</script> $\\frac{1}{2}$ \u202ex", "<b>town</b>"
    frame = people(3).rename(columns={"town": column})
    tables = [{"qid": column, "name": name}, {"qid": "age", "where": {column: {"not": ["<i>Quimby</i>"]}}}]
    made = cr.report(cr.assess_together(frame, tables, "trade", epsilon=1.0), title="A <u> & title", audience="<a>")
    assert not {"script", "i", "u"} & set(read(made).counted)
    assert "\u202e" not in made.html
    assert any(row[0].startswith("1: <script>alert('a')</script> $") for row in read(made).rows)


def test_hostile_names_in_the_picture() -> None:
    tables = [{"qid": "town", "name": "<script>$\\frac$ &"}, {"qid": "age", "name": "_^{"}]
    made = cr.report(assess(tables))
    assert not read(made).counted["script"]


@pytest.mark.usefixtures("no_pictures")
def test_the_ledger_tells_what_is_spent_before_and_after(
    folder: Path, capsys: pytest.CaptureFixture[str], found: cr.TogetherAssessment
) -> None:
    pytest.importorskip("sqlalchemy", reason="the extra 'ledger' is not installed")
    with cr.Ledger("ledger.db", create=True) as ledger:
        ledger.add(attribute="trade", quasi_identifiers="age", loss=cr.Geometric(epsilon=0.5), new_cohort=True)
        ledger.set_limit("everyone", epsilon=2.9)
        head = ledger.head.digest
        gaussian = assess(mechanism="gaussian-analytic", delta=1e-6)
        assert "Spent after this release: not known (a set is released" in cr.report(gaussian, ledger=ledger).html
    assert main(["together", "report", "set.toml", "--ledger", "ledger.db", "--output", "report.html"]) == 0
    text = Reader(Path("report.html").read_text(encoding="utf-8")).text
    assert "1 release about the same people, by the ledger (cohort everyone)." in text
    assert "Spent before: epsilon 0.5. Spent after this release: epsilon 3. Limit: at most epsilon 2.9" in text
    assert "Does it fit? No: " in text
    assert head in text


@pytest.mark.usefixtures("no_pictures")
def test_what_was_asked_for_beside_the_set_is_shown() -> None:
    tables = [{"qid": ["town"]}, {"qid": ["town", "age"]}]
    data = people(3)
    known = assess(tables, data, certainty=0.8, mechanism="gaussian-analytic", delta=1e-6)
    assert known.refinement is not None
    page = read(cr.report(known))
    assert known.refinement.headline in page.text
    assert f"This attacker's figures are not computed: {known.certain_unknown}." in page.text
    sure = assess([{"qid": "town"}, {"qid": "age"}], data, certainty=0.8)
    rows = [row[:3] for row in read(cr.report(sure)).rows]
    assert ["80%", "1", say_people(sure.certain[0].right)] in rows


@pytest.mark.usefixtures("no_pictures")
def test_one_table_and_many() -> None:
    one = read(cr.report(assess([{"qid": "town"}], levels={"town": TOWNS, "trade": TRADES})))
    assert "Approve publication of 1 table of trade, with geometric noise, at epsilon 1." in one.text
    assert [row[0] for row in one.rows if row[0] == "The table"]
    frame = people(3).assign(**{f"part {number}": "same" for number in range(7)})
    many = [{"qid": ["town", f"part {number}"], "epsilon": 0.1 + number / 10} for number in range(7)]
    page = read(cr.report(assess([*many, {"qid": "age"}], frame)))
    assert "Figures to decide by: the set; each table by itself is in section 2" in page.text


REFUSALS = {
    "--epsilon 1": "No such option: --epsilon",
    "--perturbation cell-key": "No such option: --perturbation",
    "--public": "No such option: --public",
    "--max-caused 2": "--max-caused must be a share of people",
    "--max-certain 0.1 --certainty 0.8,0.9": "takes one certainty",
    "--template nowhere.j2": "the template cannot be read",
    "--ledger nowhere.db": "nowhere.db",
}


@pytest.mark.parametrize("words", REFUSALS)
def test_what_a_report_on_a_set_refuses(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in folder.iterdir())
    assert main(["together", "report", "set.toml", "--output", "report.html", *words.split()]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert REFUSALS[words] in told.err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_set_and_its_records_are_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").rename("people.html")
    Path("set.toml").write_text(SET.replace("people.csv", "people.html"), encoding="utf-8")
    Path("set.html").write_text(SET, encoding="utf-8")
    for asked, kept in (
        (["set.toml", "--output", "people.html"], "people.html"),
        (["set.html", "--output", "set.html"], "set.html"),
    ):
        before = Path(kept).read_bytes()
        assert main(["together", "report", *asked]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert Path(kept).read_bytes() == before


@pytest.mark.parametrize(
    "words", [{"epsilon": 1.0}, {"measure": "expected"}, {"max_tvd": 0.1}, {"mechanism": "laplace"}, {"public": True}]
)
def test_python_names_its_arguments(found: cr.TogetherAssessment, words: dict[str, Any]) -> None:
    with refused("not-taken", *words):
        cr.report(found, **words)


@pytest.mark.usefixtures("no_pictures")
def test_bins_of_a_table_are_mappings_or_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = people(3).assign(years=range(250))
    frame.to_csv("people.csv", index=False)
    text = SET.replace('qid = ["town"]\n\n', 'qid = ["years"]\nbin = ["years=0/100/300"]\n\n', 1)
    Path("set.toml").write_text(text, encoding="utf-8")
    assert main(["together", "report", "set.toml", "--output", "report.html"]) == 0
    page = Reader(Path("report.html").read_text(encoding="utf-8"))
    assert "years in bins: 0/100/300" in page.text
    assert "values that these columns can take were read from the data, not declared: town." in page.text


@pytest.mark.usefixtures("no_pictures")
def test_the_label_has_the_guarantee_of_all_tables(found: cr.TogetherAssessment) -> None:
    """Tables 1 and 3 have epsilon 1, table 2 has a half: their noise differs."""
    said = read(cr.report(found, max_epsilon=3.0)).text.partition("8. Label of the release")[2]
    for words in ("2.5 (1 to 20)", "pure differential privacy", "one record", "whether the limits are kept", "to fill"):
        assert words in said.partition("9. Mechanisms")[0]
    assert "of its own for each table" in said
    assert found.ceiling is not None
    assert found.ceiling.headline.partition(". ")[0] in said
    alike = read(cr.report(assess([{"qid": "town"}, {"qid": "age"}]))).text
    assert "Geometric noise, epsilon 1: a published count is within 3" in alike
