"""Walking through the page as people do. Numbers are read off the page, never out of its script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import find_chromium

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser tests").expect
expect.set_options(timeout=60_000)
if find_chromium() is None:
    pytest.skip("Chromium is not installed: no browser tests", allow_module_level=True)

ROLES = {"qid": "Quasi-identifier", "sensitive": "Sensitive", "unused": "Not used"}


def try_adult(page: Any) -> None:
    """The example, up to its columns."""
    page.get_by_role("button", name="Try the Adult example").click()
    expect(page.locator("#source-title")).to_have_text("adult.parquet: 32,561 rows, 11 columns")


def open_people(page: Any) -> None:
    """The small file of the folder, up to its columns, which get a meaning by clicks."""
    page.get_by_label("File", exact=True).select_option("people.csv")
    page.get_by_role("button", name="Open the file").click()
    expect(page.locator("#source-title")).to_have_text("people.csv: 400 rows, 4 columns")
    choose_columns(page)


def choose_columns(page: Any) -> None:
    for column, role in {"sex": "qid", "age": "qid", "job": "sensitive"}.items():
        page.get_by_role("radio", name=f"{column}: {ROLES[role]}").check()
    page.get_by_label("Bins of age").fill("5")


def count_table(page: Any) -> None:
    """Counts, and waits until every step has something to show."""
    page.get_by_role("button", name="Count the table").click()
    wait_until_shown(page)


def wait_until_shown(page: Any) -> None:
    """The curve of what the controls say is drawn, and everything that the server was asked for is there."""
    expect(page.locator("#see-status")).to_be_empty()
    expect(page.locator("#verdict .answer")).not_to_be_empty()
    expect(page.locator("#verdict")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#attacks-status progress")).to_have_count(0)
    expect(page.locator("#risk-figures")).not_to_contain_text("counting")
    expect(page.locator("#sentence")).to_contain_text(re.compile(f"^At epsilon {re.escape(epsilon(page))}[, ]"))
    expect(page.locator("#shell")).to_contain_text(f"--epsilon {epsilon(page)}")
    for control in ("mechanism", "measure"):
        chosen = page.locator(f"#{control}").input_value()
        expect(page.locator("#shell")).to_contain_text(re.compile(f"--{control} {chosen}(\\s|$)"))


def open_step(page: Any, step: str) -> Any:
    """Opens a step by the line that it is folded into, and gives it."""
    if not page.locator(f"#{step}.open").count():
        page.locator(f"#{step}-fold").click()
    expect(page.locator(f"#{step}-body")).to_be_visible()
    return page.locator(f"#{step}")


def unfold(page: Any, words: str) -> None:
    """Opens what stands behind a line of its own within a step."""
    line = page.locator("summary", has_text=words)
    if not line.evaluate("line => line.parentElement.open"):
        line.click()


def show_people(page: Any) -> Any:
    open_people(page)
    count_table(page)
    return page


def show_adult(page: Any) -> Any:
    try_adult(page)
    count_table(page)
    return page


def epsilon(page: Any) -> str:
    return str(page.locator("#epsilon-value").inner_text())


def figures(page: Any) -> dict[str, str]:
    """The key numbers beside the curve, by their names."""
    rows = page.locator("#risk-figures > div").all()
    return {row.locator("dt").inner_text(): row.locator(".value").inner_text() for row in rows}


def slide_to(page: Any, place: int) -> None:
    """Moves the slider as a person with keys does: to its start, then a step at a time from the nearer end."""
    slider = page.locator("#epsilon")
    last = int(slider.get_attribute("max"))
    near_end = place > last / 2
    slider.press("End" if near_end else "Home")
    for _ in range(last - place if near_end else place):
        page.keyboard.press("ArrowLeft" if near_end else "ArrowRight")


def limit(page: Any) -> float:
    """The limit on the exposed, as a share; the line on the chart and the box beside it must say the same."""
    field = page.get_by_label("Revealed, at most").input_value()
    words = page.locator("#limits .label.limit").text_content().removeprefix("↑ ")
    assert words == f"limit {float(field):g}%"
    return round(float(field) / 100, 6)


def save_download(page: Any, button: str, folder: Path) -> Path:
    """Presses a button and keeps the file that comes."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    path = folder / str(waiting.value.suggested_filename)
    waiting.value.save_as(path)
    return path


def press_tab_until(page: Any, selector: str, most: int = 120) -> None:
    """Goes on with the Tab key; wherever it stops on the way, the focus can be seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() == 0:
            continue
        if page.locator(f"{selector}:focus").count() == 1:
            outline = focused.evaluate("element => getComputedStyle(element).outlineStyle")
            assert outline != "none", f"the focus on {selector} cannot be seen"
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def wider_than_screen(page: Any) -> int:
    """By how many pixels the page can be scrolled sideways."""
    return int(page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth"))
