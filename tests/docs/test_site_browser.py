"""The site in a real browser, opened from a disk: nothing is fetched, nothing is complained of, the search finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import QUIET, find_chromium

NEEDED = "there is no Chromium (on Debian or Ubuntu: apt install chromium)"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_chromium() is None, reason=NEEDED)]
LOCAL = ("file:", "data:", "blob:", "about:")
PAGES = ("index", "maths", "reference/python", "reference/commands", "how-to/data")


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    """A window for all tests; a page stays open in it, which makes the others faster."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=list(QUIET), timeout=180_000)
        window = browser.new_context()
        window.new_page()
        yield window
        browser.close()


def foreign(address: str) -> list[str]:
    return [] if address.startswith(LOCAL) else [address]


@pytest.fixture
def visit(window: Any, built: Path) -> Iterator[Any]:
    complaints: list[str] = []
    opened = []

    def open_page(name: str, width: int = 1280, theme: str = "light") -> Any:
        page = window.new_page()
        opened.append(page)
        page.set_default_timeout(120_000)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.on("request", lambda request: complaints.extend(foreign(request.url)))
        page.goto(f"file://{built}/{name}.html")
        page.wait_for_load_state("load")
        return page

    yield open_page
    for page in opened:
        page.evaluate("() => localStorage.clear()")  # where a page keeps the theme that it was first seen in
        page.close()
    assert len(window.pages) == 1
    assert complaints == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (400, "dark")], ids=["desk, light", "telephone, dark"])
def test_pages_open_without_complaint_and_fit(visit: Any, name: str, width: int, theme: str) -> None:
    page = visit(name, width, theme)
    assert page.locator("h1").count() == 1
    assert page.locator("body").get_attribute("data-md-color-scheme") == {"light": "default", "dark": "slate"}[theme]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["index", "reference/python"])
def test_the_search_works_from_a_disk(visit: Any, name: str) -> None:
    page = visit(name)
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("homogeneity")
    page.locator(".md-search-result__item").nth(2).wait_for()


def test_formulas_have_a_shape(visit: Any) -> None:
    page = visit("maths")
    sizes = page.evaluate("[...document.querySelectorAll('math')].map(each => each.getBoundingClientRect().height)")
    assert len(sizes) > 50
    assert min(sizes) > 5
    assert max(sizes) > 30
