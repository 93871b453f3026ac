"""In a real browser: the page of sets, from records to what several tables give away together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.repeat.together.together_result import say_people
from tests.web.conftest import SCREEN, Running
from tests.web.geometry import outside, overlaps
from tests.web.test_browser import hold_jobs
from tests.web.test_browser_looks import scan
from tests.web.walking import expect, press_tab_until, wider_than_screen

Visit = Callable[..., Any]
FIGURES = ("right", "named", "caused", "chance", "raw")
TWO = """
source = "/etc/passwd"
sensitive = "job"
bin = ["age=5"]
epsilon = 1
levels = {job = ["cook", "smith", "clerk"]}
[[table]]
qid = ["sex", "age"]
[[table]]
name = "the older ones"
qid = ["age"]
where = {age = {from = 30}, sex = ["f", "m"]}
mechanism = "laplace"
epsilon = 0.5
threshold = 1.5
"""
OVERLAPPING = """
sensitive = "job"
epsilon = 1
bin = ["age=5"]
[[table]]
qid = ["sex", "age"]
[[table]]
qid = ["sex", "age"]
where = {age = {not = [22, 23]}}
[[table]]
qid = ["sex"]
"""


def open_sets(visit: Visit, server: Running, **more: Any) -> Any:
    return visit(at=f"{server.base}/sets", **more)


def open_people(page: Any) -> Any:
    page.get_by_label("File", exact=True).select_option("people.csv")
    page.get_by_role("button", name="Open the file").click()
    expect(page.locator("#source-title")).to_have_text("people.csv: 400 rows, 4 columns")
    page.get_by_label("Sensitive column").select_option("job")
    return page


def give_set(page: Any, text: str, name: str = "set.toml") -> None:
    page.locator("#set-toml").set_input_files({"name": name, "mimeType": "application/toml", "buffer": text.encode()})


def show_set(page: Any, text: str = TWO) -> Any:
    open_people(page)
    give_set(page, text)
    expect(page.locator("#set-status")).to_contain_text("set.toml is read")
    return count_set(page)


def count_set(page: Any) -> Any:
    page.get_by_role("button", name="Count the set").click()
    return wait_until_shown(page)


def wait_until_shown(page: Any) -> Any:
    expect(page.locator("#count-status")).to_be_empty()
    expect(page.locator("#set-text")).not_to_be_empty()
    expect(page.locator("#commands-status")).to_be_empty()
    return page


def matrix(page: Any) -> list[list[str]]:
    """The cells of the matrix, row by row, without the title of each row."""
    rows = page.locator("#matrix tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]


def add_table(page: Any, number: int, *columns: str, bins: str = "") -> None:
    page.get_by_role("button", name="Add a table").click()
    card = page.locator(".card").nth(number - 1)
    for column in columns:
        card.get_by_label(column, exact=True).check()
    if bins:
        card.get_by_label(f"Bins of age in table {number}").fill(bins)


def test_tables_are_added_one_by_one_and_the_numbers_are_those_of_the_library(visit: Visit, server: Running) -> None:
    page = open_people(open_sets(visit, server))
    add_table(page, 1, "sex", "age", bins="5")
    add_table(page, 2, "age", bins="10")
    page.get_by_label("Epsilon of table 2").fill("0.5")
    page.get_by_role("button", name="Add a condition").last.click()
    page.get_by_label("Column of condition 1 of table 2").select_option("sex")
    page.get_by_label("Values of condition 1 of table 2").fill("f")
    count_set(page)
    tables: list[dict[str, Any]] = [
        {"qid": ["sex", "age"], "bin": {"age": 5}},
        {"qid": "age", "bin": {"age": 10}, "where": {"sex": "f"}, "epsilon": 0.5},
    ]
    found = cr.assess_together(server.folder / "people.csv", tables, "job", epsilon=1.0)
    assert page.locator("#sentence").inner_text() == found.headline
    rows = matrix(page)
    for row, figures in zip(rows, [*(each.alone for each in found.tables), found.rule()], strict=True):
        assert row[1:6] == [say_people(getattr(figures, name)) for name in FIGURES]
    assert [row[0] for row in rows] == ["1", "0.5", "1.5"]
    without = found.tables[1].without
    assert without is not None
    assert rows[1][7:9] == [say_people(without.right), say_people(without.caused)]
    assert scan(page) == []
    before = page.locator("#shown").inner_text()
    page.reload()
    wait_until_shown(page)
    assert page.locator("#shown").inner_text() == before
    assert page.get_by_label("Values of condition 1 of table 2").input_value() == "f"


class TestSetFile:
    def test_it_fills_the_boxes_and_its_source_is_not_opened(self, visit: Visit, server: Running) -> None:
        page = show_set(open_sets(visit, server))
        told = page.locator("#set-status").inner_text()
        assert told == (
            "set.toml is read: 2 tables. The source that it names, /etc/passwd, is not opened: the records are those "
            "of people.csv."
        )
        page.locator(".card summary").nth(1).click()
        expect(page.get_by_label("Mechanism of table 2")).to_have_value("laplace")
        expect(page.get_by_label("Threshold of table 2")).to_have_value("1.5")
        expect(page.get_by_label("Bins of age in table 2")).to_have_value("5")
        expect(page.get_by_label("Values of condition 2 of table 2")).to_have_value("f|m")

    def test_what_is_written_gives_the_same_on_the_command_line(
        self, visit: Visit, server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        page = show_set(open_sets(visit, server))
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Download").click()
        waiting.value.save_as(tmp_path / str(waiting.value.suggested_filename))
        monkeypatch.chdir(tmp_path)
        assert (tmp_path / "set.toml").read_text("utf-8") == page.locator("#set-text").inner_text()
        assert page.locator("#shell").inner_text().strip() == "cellrisk together set.toml"
        assert main(["together", "set.toml", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        rows = matrix(page)
        for row, figures in zip(rows, [*said["tables"], said["rules"][0]], strict=True):
            assert row[1:6] == [say_people(figures[name]) for name in FIGURES]
        assert page.locator("#sentence").inner_text() == said["sentence"]
        for line in said["statements"]:
            expect(page.locator("#statements")).to_contain_text(line)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("sensitive = 'job'\nrun = 'rm'\n[[table]]\nqid = 'sex'\n", "unknown key in set.toml; got 'run'"),
            (
                TWO.replace('"sex", "age"', '"sex", "town"'),
                "names columns that people.csv does not have: town.",
            ),
            (TWO + "[[table]]\nqid = ['age', 'sex']\n", "remove one of them"),
            ("x" * 300_000, "The set file is 300 kB large; at most 64 kB are read."),
        ],
        ids=["unknown key", "other records", "twice", "too large"],
    )
    def test_one_that_cannot_be_used_leaves_the_boxes_alone(
        self, visit: Visit, server: Running, text: str, words: str
    ) -> None:
        page = open_people(open_sets(visit, server, expected="status of 422"))
        add_table(page, 1, "sex")
        give_set(page, text)
        expect(page.locator("#set-status .error")).to_contain_text(words)
        assert page.locator(".card").count() == 1

    def test_an_old_answer_is_said_to_be_old(self, visit: Visit, server: Running) -> None:
        page = show_set(open_sets(visit, server))
        page.get_by_label("Epsilon", exact=True).first.fill("2")
        expect(page.locator("#stale")).to_contain_text("The boxes have changed")
        page.get_by_label("Epsilon", exact=True).first.fill("1")
        expect(page.locator("#stale")).to_be_empty()


class TestRefusals:
    def test_boxes_that_are_empty_are_named_and_focused(self, visit: Visit, server: Running) -> None:
        page = open_people(open_sets(visit, server))
        count, error = page.get_by_role("button", name="Count the set"), page.locator("#count-status .error")
        count.click()
        expect(error).to_have_text("There is no table yet: press “Add a table”.")
        add_table(page, 1)
        count.click()
        expect(error).to_have_text("Tick a column under “Quasi-identifiers” of table 1.")
        page.locator(".card").get_by_label("sex", exact=True).check()
        page.get_by_label("Epsilon", exact=True).first.fill("")
        count.click()
        expect(error).to_contain_text("“Epsilon” is empty: fill it in for table 1")
        expect(page.get_by_label("Epsilon of table 1")).to_be_focused()
        page.get_by_label("Epsilon of table 1").fill("-1")
        count.click()
        expect(error).to_have_text("“Epsilon” of table 1 must be a number above 0.")
        page.get_by_label("Epsilon of table 1").fill("1")
        page.get_by_label("Mechanism of table 1").select_option("gaussian-analytic")
        count.click()
        expect(error).to_contain_text("“Delta” is empty: the mechanism of table 1 needs one")
        expect(page.get_by_label("Delta of table 1")).to_be_focused()
        page.get_by_label("Mechanism of table 1").select_option("")
        page.get_by_role("button", name="Add a condition").click()
        count.click()
        expect(error).to_contain_text("“People in it” of table 1: write a value for")
        page.get_by_label("Values of condition 1 of table 1").fill("nobody")
        count.click()
        expect(error).to_contain_text("correct “People in it”, or remove the table")

    def test_noise_that_tables_share(self, visit: Visit, server: Running) -> None:
        page = open_people(open_sets(visit, server))
        add_table(page, 1, "sex")
        page.locator("summary", has_text="More for all tables").click()
        page.get_by_label("How noise is drawn").select_option("cell-key")
        page.get_by_role("button", name="Count the set").click()
        expect(page.locator("#count-status .error")).to_contain_text("names noise that is not independent")

    def test_the_same_table_twice(self, visit: Visit, server: Running) -> None:
        page = open_people(open_sets(visit, server))
        add_table(page, 1, "sex")
        page.get_by_role("button", name="Copy table 1").click()
        page.get_by_role("button", name="Count the set").click()
        expect(page.locator("#count-status .error")).to_contain_text("are the same table, released twice")
        page.get_by_role("button", name="Remove table 2").click()
        expect(page.locator(".card")).to_have_count(1)
        count_set(page)


def test_warnings_are_shown_as_they_are_printed(visit: Visit, server: Running) -> None:
    page = show_set(open_sets(visit, server), OVERLAPPING)
    warned = page.locator("#mind li").all_inner_texts()
    assert re.match(
        r"Table 2 leaves out \d+ people of cells that it shares with table 1: to publish both takes", warned[0]
    )
    rules = page.locator("#rules")
    expect(rules.get_by_role("table")).to_be_hidden()
    rules.locator("summary").click()
    expect(rules.get_by_role("row")).to_have_count(3)
    expect(rules).to_contain_text("any: a value that some table shows alone; several may be.")


def test_cancel(visit: Visit, server: Running, client: Any) -> None:
    page = open_people(open_sets(visit, server))
    add_table(page, 1, "sex")
    hold_jobs(page)
    with page.expect_response(lambda answer: answer.url.endswith("/set")) as begun:
        page.get_by_role("button", name="Count the set").click()
    expect(page.locator("#count-status progress")).to_be_visible()
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as ended:
        page.locator("#count-status").get_by_role("button", name="Cancel").click()
    assert ended.value.url.endswith(begun.value.json()["job"])
    expect(page.locator("#count-status")).to_have_text("Cancelled.")
    expect(page.locator("#shown")).to_be_hidden()


def test_without_a_mouse(visit: Visit, server: Running) -> None:
    page = open_sets(visit, server)
    press_tab_until(page, "#open-file")
    page.keyboard.press("Enter")
    expect(page.locator("#source-title")).to_be_focused()
    press_tab_until(page, "#sensitive")
    page.keyboard.type("job")
    press_tab_until(page, "#add-table")
    page.keyboard.press("Enter")
    expect(page.locator(".card summary")).to_be_focused()
    press_tab_until(page, ".pick-column input")
    page.keyboard.press("Space")
    press_tab_until(page, "#count-set")
    page.keyboard.press("Enter")
    wait_until_shown(page)
    expect(page.locator("#shown-title")).to_be_focused()
    press_tab_until(page, "#rules summary")
    page.keyboard.press("Enter")
    expect(page.locator("#rules-table")).to_be_visible()
    press_tab_until(page, "#copy-set-text")


class TestAddress:
    def test_the_source_comes_along_from_the_other_page_and_back(self, visit: Visit) -> None:
        page = visit()
        page.get_by_label("File", exact=True).select_option("people.csv")
        page.get_by_role("button", name="Open the file").click()
        expect(page.locator("#source-title")).to_contain_text("people.csv")
        page.get_by_role("link", name="Several tables").click()
        expect(page.locator("#source-title")).to_have_text("people.csv: 400 rows, 4 columns")
        page.get_by_role("link", name="One table").click()
        expect(page.locator("h1")).to_have_text("Choose epsilon by looking")
        expect(page.locator("#source-title")).to_contain_text("people.csv")

    def test_the_way_back(self, visit: Visit, server: Running) -> None:
        page = show_set(open_sets(visit, server))
        before = page.locator("#sentence").inner_text()
        page.get_by_label("Epsilon", exact=True).first.fill("3")
        count_set(page)
        expect(page.locator("#sentence")).not_to_have_text(before)
        page.go_back()
        expect(page.locator("#sentence")).to_have_text(before)
        expect(page.get_by_label("Epsilon", exact=True).first).to_have_value("1")

    def test_one_that_means_harm(self, visit: Visit, server: Running) -> None:
        page = show_set(open_sets(visit, server))
        bad = (
            '{"quasi_identifiers":["<img src=x onerror=alert(1)>",{"a":1}],"where":[1],"epsilon":"x"}',
            "null",
            "[",
            "3",
        )
        good = page.url.partition("&table=")[0]
        page.goto("about:blank")
        page.goto(good + "".join(f"&table={each}" for each in bad) + "&counted=yes")
        expect(page.locator(".card")).to_have_count(1)
        expect(page.locator("#count-status .error")).to_be_visible()
        assert page.locator("img").count() == 0


WIDTHS = (1280, 768, 390)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_screen(visit: Visit, server: Running, pictures: Path, width: int, theme: str) -> None:
    page = show_set(open_sets(visit, server, width=width, theme=theme), OVERLAPPING)
    page.locator(".card summary").nth(1).click()
    page.locator("summary", has_text="More for all tables").click()
    page.get_by_role("button", name="Declare the labels of a column").click()
    for chart in ("#growth-caused", "#growth-right"):
        assert overlaps(page, chart) == []
        assert outside(page, chart) == []
        bars = page.locator(f"{chart} rect").evaluate_all("bars => bars.map((bar) => bar.getBBox().width)")
        assert len(bars) == 5
        assert max(bars) > 80
    assert wider_than_screen(page) == 0
    assert scan(page) == []
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert wider_than_screen(page) == 0
    assert scan(page) == []
    page.evaluate("() => scrollTo(0, 0)")
    page.screenshot(path=pictures / f"sets-{width}-{theme}.png", full_page=True)


def test_labels_that_are_pushed_together_are_seen(visit: Visit, server: Running) -> None:
    page = show_set(open_sets(visit, server))
    page.evaluate("() => document.querySelectorAll('#growth-caused text').forEach((text) => text.setAttribute('y', 9))")
    assert overlaps(page, "#growth-caused")
    page.set_viewport_size({**SCREEN, "width": 1000})
    page.wait_for_function("() => document.querySelector('#growth-caused svg').viewBox.baseVal.width < 480")
    assert overlaps(page, "#growth-caused") == []


def test_on_paper_there_is_the_answer_and_nothing_to_press(visit: Visit, server: Running, pictures: Path) -> None:
    page = show_set(open_sets(visit, server))
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    for place in ("#sentence", "#matrix", "#growth-caused svg", "#statements", "#set-text", "#printed"):
        expect(page.locator(place)).to_be_visible()
    for place in ("#load", "#tables", "#print", "#copy-shell", "#download", ".pages"):
        expect(page.locator(place)).to_be_hidden()
    page.screenshot(path=pictures / "sets-printed.png", full_page=True)


def test_copied_commands_are_those_that_are_shown(visit: Visit, server: Running, window: Any, tmp_path: Path) -> None:
    page = show_set(open_sets(visit, server))
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).first.click()
    assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#set-text").inner_text()
