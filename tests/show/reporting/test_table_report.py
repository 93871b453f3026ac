"""`report`: what the board sees, in every case of the decision, and one file that needs no other."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.decide.choosing import choose
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.risk.explanation import explain
from cellrisk.show.reporting import Report, metadata, report
from cellrisk.show.wording.attackers import accuracy, attack_rows, learnt, say_icons, shown_attacks
from cellrisk.show.wording.ceiling import CHOSEN
from cellrisk.show.wording.choice import CHOICE_NOTE
from cellrisk.show.wording.release import label
from cellrisk.system.formatting import CURATOR_NOTE, percent
from tests.refusals import refused
from tests.show.reporting.reading import SECTIONS, SOURCE, Reader, down, pdfs, people


def test_the_board_sees_every_section(chosen: Report, page: Reader) -> None:
    assert page.headings == ["Disclosure review of trade by town and age", *SECTIONS]
    assert chosen.verdict == "recommended"
    assert chosen.to_html() == chosen.html
    assert "Approve publication of the frequency table of trade by town and age with geometric noise" in page.text
    for line in (CURATOR_NOTE, CHOICE_NOTE, "Office", "as it came", "Do not publish"):
        assert line in page.text
    assert all(name in page.text for name in ("Prepared by", "Reviewed by", "Signature", "Date"))


def test_numbers_are_those_of_choose_assess_and_explain(table: cr.FrequencyTable, chosen: Report, page: Reader) -> None:
    choice = choose(table, max_risk=0.3, max_tvd=0.5, releases=2)
    assert chosen.epsilon == down(choice.epsilon)
    assert chosen.mechanism == cr.Geometric(epsilon=down(choice.epsilon))
    assessment = cr.assess(table, chosen.mechanism, measures="local")
    first, _, stated = assessment.headline.partition("Having a person's record")
    assert stated
    assert first + CHOSEN in page.text  # of an epsilon chosen from the data, no ceiling is stated
    people = assessment.figures[0].people
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
        at = cr.Geometric(epsilon=factor * chosen.epsilon)
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


def test_page_one_has_the_attacks_and_the_error_of_a_count(
    table: cr.FrequencyTable, chosen: Report, page: Reader
) -> None:
    front = page.text.partition("Sign-off")[0]
    assert accuracy(chosen.mechanism) in front
    attackers = cr.assess(table, chosen.mechanism, measures="local").attackers["trade"][-1]
    for cells in attack_rows(attackers, shown_attacks(attackers), None):  # no bound: epsilon was chosen from the data
        assert [*cells[:4], *cells[5:]] in [[*row[:4], *row[5:]] for row in page.rows]
        assert " ".join(cells[4].split()) in front.replace("(", "").replace(")", "")
    assert "Any attack, at most" not in front
    (headings,) = [row for row in page.rows if row[0] == "Attack"]
    assert len(headings) == len(attack_rows(attackers, shown_attacks(attackers), None)[0])
    assert say_icons(attackers, "trade", f"epsilon {chosen.epsilon:g}") in page.labels


@pytest.mark.slow
def test_sign_off_stays_on_page_one(chosen: Report, table: cr.FrequencyTable) -> None:
    weasyprint = pytest.importorskip("weasyprint", exc_type=ImportError)
    if not pdfs():
        pytest.skip("WeasyPrint's library Pango is not installed")
    for made in (chosen, report(table, epsilon=1.0, releases=2)):
        first, second, *_ = weasyprint.HTML(string=made.html).render().pages
        assert {"decision", "sign-off"} <= set(first.anchors)
        assert "risk" in second.anchors


def test_the_label_answers_every_question(table: cr.FrequencyTable) -> None:
    made = report(table, epsilon=3.0)
    read = Reader(made.html).text.partition("10. Mechanism and versions")[0].partition("9. Label of the release")[2]
    answers = label(cr.Geometric(3.0), cr.Geometric(3.0), cr.ceiling("geometric", epsilon=3.0), ["none"], "x")
    for name, answer in answers.items():
        assert name.replace("_", " ").capitalize() in read
        assert answer.split(";")[0] in " ".join(read.split()) or name == "not_covered"
    assert "3 (1 to 20)" in read
    assert "to fill: the losses of all releases about the same people" in read


@pytest.mark.usefixtures("no_pictures")
def test_page_one_is_about_the_attacker_who_was_asked_for(table: cr.FrequencyTable) -> None:
    asked: dict[str, Any] = {"certainty": 0.8, "harmful": "cooper", "unions": "cooper+chandler"}
    asked["belief"] = "0.4,0.3,0.1/0.9"
    front = Reader(report(table, epsilon=2.0, **asked).html).text.partition("Sign-off")[0]
    attackers = cr.assess(table, epsilon=2.0, measures="local", **asked).attackers["trade"][-1]
    assert "Informed attacker, 80% sure" in front
    assert "95% sure" not in front
    (row,) = attack_rows(attackers, ["informed"], None)
    assert " ".join(row[1:4]) in front
    assert learnt(attackers, "trade", table.attribute().levels.labels) in front
    assert "Taken as one value, " in front


CHECKLIST = (
    "Context: purpose",
    "Attacks: who",
    "The most for one person, beside the average",
    "Harm to people if a value is inferred, and to whom",
    "Does the table hold everybody, or a sample?",
    "Adversarial testing: was an attack tried on the release?",
    "Threshold: the risk that is tolerable",
    "Governance: who decides",
    "SATRE 3.3.09, output management",
    "Is the unit of protection a person?",
)


def test_the_checklist_asks_what_standards_ask_and_marks_what_is_left(page: Reader) -> None:
    for question in CHECKLIST:
        (row,) = [row for row in page.rows if question in row[0]]
        assert len(row) == 3
        assert row[1]
    assert {"to fill: harms", "to fill: population or sample", "to fill: tests by others"} <= {
        row[2] for row in page.rows if len(row) == 3
    }


@pytest.mark.usefixtures("no_pictures")
def test_page_one_says_what_the_figures_are_of(table: cr.FrequencyTable) -> None:
    """The error beside the size of counts; what is limited, and not another risk; an epsilon that nobody recommends."""
    fronts = {
        name: Reader(report(table, **asked).html).text.partition("Sign-off")[0]
        for name, asked in {
            "kept": {"epsilon": 1.0, "max_caused": 0.3},
            "none": {"max_risk": 0.001},
            "unbound": {"max_caused": 0.99},
        }.items()
    }
    largest = max(int(block.counts.max()) for block in table.attributes[0].profiles.blocks)
    median = int(table.summary().cell_sizes["median"])
    for name, front in fronts.items():
        less = ", less than that error" if name == "none" else ""
        assert f"The largest true count is {largest}{less}; half of the groups hold at most {median} people." in front
    metric = cr.choose(table, max_caused=0.3).kept_limits[0].metric(table.attributes)
    caused = float(metric([cr.Geometric(1.0)])[0])
    assert f"revealed because of their own record ({100 * caused:.4g}% of a category are revealed" in fronts["kept"]
    assert "local risk" not in fronts["kept"]
    for name in ("none", "unbound"):
        assert "No epsilon is recommended. The figures below are at epsilon" in fronts[name]


def test_one_file_that_needs_no_other(chosen: Report, page: Reader) -> None:
    assert chosen.html.startswith("<!doctype html>")
    assert page.open == []
    assert not page.counted["script"]
    assert not page.counted["link"]
    assert page.addresses
    assert all(address.startswith("#") for address in page.addresses)
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert [name for name, times in Counter(page.ids).items() if times > 1] == []
    style = chosen.html.partition("<style>")[2].partition("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style
    assert page.counted["h1"] == 1
    assert page.counted["caption"] == page.counted["table"]
    assert page.counted["svg"] == page.counted["figure"] == 4
    assert sum("epsilon falls to 0" in label for label in page.labels) == 1


@pytest.mark.slow
def test_the_same_bytes_in_every_process_and_nothing_of_sets_is_loaded(chosen: Report) -> None:
    script = (
        "import hashlib, sys, cellrisk as cr, tests.show.reporting.reading as it\n"
        "made = cr.report(it.tabulated(), max_risk=0.3, max_tvd=0.5, releases=2, top=4, organisation='Office',\n"
        "                 preparation=['as it came'])\n"
        "print(hashlib.sha256(made.html.encode()).hexdigest())\n"
        "print([name for name in sys.modules if name.startswith(('cellrisk.repeat', 'cellrisk.publish.noisy'))])\n"
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
    (html, loaded, pdf), other = (run.communicate(timeout=300)[0].split("\n")[:3] for run in runs)
    assert [html, loaded, pdf] == other
    assert loaded == "[]"
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
    assert "What would help: a looser limit" in read.text
    assert "3. No epsilon is recommended: what comes nearest" in read.headings
    assert len(read.headings) == len(SECTIONS)  # no label without an epsilon
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
    assert cr.assess(table, cr.Geometric(epsilon=1.0)).headline in read.text
    assert "At epsilon 1: total variation distance (TVD) of marginals from the true ones" in read.text
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
    assert ("Published at epsilon 2" if verdict == "kept" else "Limits broken") in found.headline


@pytest.mark.usefixtures("no_pictures")
def test_an_epsilon_with_a_limit_on_usefulness_alone(table: cr.FrequencyTable) -> None:
    found = report(table, epsilon=200.0, max_tvd=0.3, releases=2)
    read = Reader(found.html)
    assert found.verdict == "kept"
    assert "Required is a TVD of at most 0.3" in read.text
    assert report(table, "gaussian", epsilon=0.5, delta=0.01, max_tvd=1e-9, releases=2, public=True).verdict == "broken"


@pytest.mark.slow
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
        "All figures of this section are of the local risk",
        "Dirichlet",
        "observed in the data",
    ):
        assert words.lower() in read.text.lower()


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_every_figure_is_at_the_delta_of_the_policy(table: cr.FrequencyTable) -> None:
    policy = cr.Policy(delta="0.1/n")
    found = report(table, "gaussian-analytic", epsilon=1.0, policy=policy)
    assert found.setting.delta == policy.largest_delta(table.n_records)
    told = re.findall(r"gaussian-analytic, delta ([0-9.e-]+[0-9])", Reader(found.html).text)
    assert set(told) == {f"{found.setting.delta:g}"}


def test_markup_in_names_and_values_is_shown_as_it_is() -> None:
    name, value = '<b>&"', '<script>alert("&amp;")</script>'
    frame = people(3).rename(columns={"town": name})
    frame[name] = frame[name].replace("Quimby", value)
    frame["trade"] = frame["trade"].replace("fletcher", value)
    found = report(cr.tabulate(frame, [name, "age"], "trade"), epsilon=1.0, title=f"A {value}", source=name)
    read = Reader(found.html)
    assert not read.counted["script"]
    ours = sum(found.html.count(f"<b>{name}:</b>") for name in ("Data", "Policy", "Table"))
    assert read.counted["b"] == ours
    assert read.headings[0] == f"A {value}"
    assert any(row[0] == value for row in read.rows)
    assert f"Data: {name}" in read.text


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
    assert ["Group", "Records", "Risk", "People revealed"] in read.rows
    assert any(row[0].endswith("part 4: same; part 5: same") for row in read.rows)


@pytest.mark.slow
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
    assert set(metadata.FORMULAS) == set(MECHANISMS)
    for name, kind in MECHANISMS.items():
        found = report(table, name, epsilon=0.5, delta=None if kind.pure else 0.01, public=True)
        assert "to fill" not in found.html
        released = "Yes: cellrisk release makes this noise" in found.html
        assert released == (name in ("geometric", "discrete-gaussian"))


def test_progress_rises_to_the_end(table: cr.FrequencyTable) -> None:
    told: list[float] = []
    report(table, max_risk=0.3, max_tvd=0.5, releases=1, public=True, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 2


def test_what_a_report_refuses(table: cr.FrequencyTable) -> None:
    with refused("no-decision"):
        report(table)
    with refused("no-decision"):
        report(table, max_tvd=0.1)
    with pytest.raises(InvalidInput, match="epsilon below 1 only"):
        report(table, "gaussian", epsilon=2.0)
    with refused("word"):
        report(table, "noise", epsilon=1.0)
    with refused("type"):
        report(table, epsilon=1.0, preparation="age in bins")
    with refused("limit-range"):
        report(table, max_risk=30)


@pytest.mark.usefixtures("no_pictures")
def test_the_first_page_says_which_limit_binds_and_how_often_it_is_released(table: cr.FrequencyTable) -> None:
    found = report(table, max_epsilon=0.4, max_ceiling=0.99)
    choice = choose(table, max_epsilon=0.4, max_ceiling=0.99)
    front = Reader(found.html).text.split("Sign-off")[0]
    assert "the limit on epsilon binds" in choice.why
    assert choice.why[1:] in front
    assert "Once, or a series One release of this table." in front
    asked = Reader(report(table, epsilon=0.2, max_epsilon=0.4, max_ceiling=0.99).html).text.split("Sign-off")[0]
    assert "where the limit on epsilon binds" in asked


@pytest.mark.slow
def test_who_set_the_limits_and_when(table: cr.FrequencyTable) -> None:
    policy = cr.Policy(max_ceiling=0.9, set_by="the review board", set_on="2026-05-04")
    found = report(table, epsilon=0.5, policy=policy)
    assert "one given in Python, set by the review board on 2026-05-04" in " ".join(found.html.split())
    perturbed = cr.report(table, perturbation="random-rounding:3", policy=policy)
    assert "set by the review board on 2026-05-04" in " ".join(perturbed.html.split())


@pytest.mark.parametrize("words", [{"set_by": ""}, {"set_by": 3}, {"set_by": "x" * 201}, {"set_on": "tomorrow"}])
def test_who_and_when_must_be_a_name_and_a_date(words: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"set-(by|on) must be"):
        cr.Policy(max_epsilon=1.0, **words)  # type: ignore[arg-type]
