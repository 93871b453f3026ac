"""In a real browser: the page of sets, from a set file to its report."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.system.formatting import whole_people
from tests.web.conftest import PEOPLE, Running
from tests.web.test_browser_looks import scan
from tests.web.walking import expect, press_tab_until, save_download, wider_than_screen

pytestmark = pytest.mark.slow
Visit = Callable[..., Any]
SET = """
source = "elsewhere.csv"
sensitive = "job"
epsilon = 1.0
bin = ["age=5"]
[[table]]
name = "by age"
qid = ["age"]
[[table]]
qid = ["sex"]
epsilon = 0.5
"""


@pytest.fixture
def page(visit: Visit, server: Running) -> Any:
    """The page of sets with the small file of the folder."""
    page = visit(expected="422")
    page.goto(f"{server.base}/sets")
    page.get_by_label("File", exact=True).select_option("people.csv")
    page.get_by_role("button", name="Open the file").click()
    expect(page.locator("#source-title")).to_have_text("people.csv: 400 rows, 4 columns")
    return page


def count_set(page: Any, text: str = SET) -> None:
    page.get_by_label("Load a set file").set_input_files({"name": "my.toml", "mimeType": "", "buffer": text.encode()})
    expect(page.locator("#matrix tbody tr")).to_have_count(3)


def test_a_set_file_gives_the_matrix_of_the_library_and_its_source_is_not_opened(page: Any, server: Running) -> None:
    count_set(page)
    tables = [{"qid": ["age"], "bin": {"age": 5}}, {"qid": ["sex"], "epsilon": 0.5}]
    together = cr.assess_together(server.folder / "people.csv", tables, "job", epsilon=1.0)
    expect(page.locator("#sentence")).to_contain_text(together.headline.partition(". By itself")[0])
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#matrix tbody tr").all()]
    rules = [*(table.alone for table in together.tables), together.rules[0]]
    names = ("right", "named", "caused", "chance", "raw")
    assert [row[1:6] for row in rows] == [[whole_people(getattr(rule, name)) for name in names] for rule in rules]
    assert [row[0] for row in rows] == ["1", "0.5", "1.5"]
    expect(page.locator("#growth-caused dt")).to_have_text(["1: by age", "2: sex"])
    expect(page.locator("#shell")).to_contain_text("cellrisk together my.toml")


def test_the_report(page: Any, tmp_path: Path) -> None:
    count_set(page)
    report = save_download(page, "Download the report", tmp_path)
    assert report.name == "people-set-report.html"
    assert "by age" in report.read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [(("epsilon = 1.0\n", ""), "epsilon"), (('"sex"', '"shoe"'), "shoe"), (("[[table]]", "[[table"), "my.toml")],
    ids=["no-epsilon", "no-such-column", "no-toml"],
)
def test_a_set_file_that_cannot_be_used_is_refused_in_one_line(page: Any, change: tuple[str, str], words: str) -> None:
    text = SET.replace(*change)
    page.get_by_label("Load a set file").set_input_files({"name": "my.toml", "mimeType": "", "buffer": text.encode()})
    told = page.locator("#count-status").get_by_role("alert")
    expect(told).to_contain_text(words)
    assert "\n" not in told.inner_text()
    expect(page.locator("#shown")).to_be_hidden()


def test_a_reload_the_way_back_and_the_other_page(page: Any) -> None:
    count_set(page)
    page.reload()
    expect(page.locator("#matrix tbody tr")).to_have_count(3)
    page.get_by_label("The set file").fill(SET.replace("by age", "changed"))
    page.get_by_role("button", name="Count the set").click()
    expect(page.locator("#matrix")).to_contain_text("changed")
    page.go_back()
    expect(page.locator("#matrix")).to_contain_text("by age")
    page.get_by_role("link", name="One table").click()
    expect(page.locator("#source-title")).to_have_text("people.csv: 400 rows, 4 columns")


def test_a_set_file_that_means_harm_is_only_text(page: Any, visit: Visit) -> None:
    count_set(page, SET.replace("by age", "<img src=x onerror=alert(1)><script>alert(1)</script>"))
    expect(page.locator("#matrix")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main img, main script").count() == 0


def test_without_a_mouse(visit: Visit, server: Running) -> None:
    page = visit()
    page.goto(f"{server.base}/sets")
    press_tab_until(page, "#try-adult")
    page.keyboard.press("Enter")
    expect(page.locator("#source-title")).to_be_focused()
    press_tab_until(page, "#set-text")
    expect(page.get_by_label("The set file")).to_have_value(re.compile('sensitive = "income"'))
    press_tab_until(page, "#count-set")
    page.keyboard.press("Enter")
    expect(page.locator("#shown-title")).to_be_focused()


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_every_screen(page: Any, pictures: Path, width: int, theme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    count_set(page, SET.replace("[[table]]", "[[table]]\nwhere = { age = { below = 60 } }", 1))
    page.screenshot(path=pictures / f"sets-{width}-{theme}.png", full_page=True)
    assert wider_than_screen(page) == 0
    assert scan(page) == []


def test_people_are_uploaded_again_after_a_restart_and_the_set_file_is_kept(visit: Visit, server: Running) -> None:
    page = visit(expected="404")
    page.goto(f"{server.base}/sets#source=upload%3Agone.csv&id=gone&set=sensitive%20%3D%20%22job%22")
    expect(page.locator("#load-status")).to_contain_text("Choose the file again")
    page.get_by_label("Choose a file").set_input_files({"name": "p.csv", "mimeType": "", "buffer": PEOPLE.encode()})
    expect(page.get_by_label("The set file")).to_have_value('sensitive = "job"')
