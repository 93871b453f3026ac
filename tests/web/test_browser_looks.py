"""In a real browser: two widths, two themes, and what a scanner of accessibility says.

Screenshots are kept in the folder that CELLRISK_SCREENSHOTS names, or in a temporary one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import Running
from tests.web.walking import expect, open_step, show_adult, show_people, unfold, wider_than_screen

Visit = Callable[..., Any]
NARROW, WIDE = 390, 1280
SCREENS = [(NARROW, "light"), (NARROW, "dark"), (WIDE, "light"), (WIDE, "dark")]


def scan(page: Any) -> list[str]:
    """What axe finds serious or critical: its rule, and where."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in grave for node in each["nodes"]]


def look_at_every_step(page: Any, name: str, pictures: Path, show: Callable[[Any], Any]) -> None:
    page.screenshot(path=pictures / f"start-{name}.png", full_page=True)
    assert wider_than_screen(page) == 0
    assert scan(page) == []
    show(page)
    for step in ("see", "decide", "act"):
        open_step(page, step)
        page.evaluate("() => scrollTo(0, 0)")
        page.screenshot(path=pictures / f"{step}-{name}.png", full_page=True)
        assert scan(page) == []
    open_step(page, "decide")
    unfold(page, "Risk and usefulness")
    page.get_by_role("button", name="Draw the map").click()
    expect(page.locator("#map-area")).to_be_visible()
    page.evaluate("() => scrollTo(0, 0)")
    page.screenshot(path=pictures / f"steps-{name}.png", full_page=True)
    assert scan(page) == []
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert wider_than_screen(page) == 0
    open_step(page, "see")
    assert wider_than_screen(page) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), SCREENS, ids=[f"{theme}-{width}" for width, theme in SCREENS])
def test_every_step_on_every_screen(visit: Visit, pictures: Path, width: int, theme: str) -> None:
    look_at_every_step(visit(width=width, theme=theme), f"{width}-{theme}", pictures, show_adult)


def test_every_step_of_a_small_table(visit: Visit, pictures: Path) -> None:
    look_at_every_step(visit(width=NARROW, theme="light"), "small-table", pictures, show_people)


@pytest.mark.slow
def test_the_question_before_a_release(visit: Visit, pictures: Path) -> None:
    for theme in ("light", "dark"):
        page = show_people(visit(theme=theme))
        open_step(page, "act")
        page.get_by_role("button", name="Make the release…").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert scan(page) == []
        page.screenshot(path=pictures / f"release-{theme}.png")


class TestTheme:
    def paper(self, page: Any) -> str:
        return str(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))

    def letters(self, page: Any) -> str:
        return str(page.locator("#curve .title").evaluate("text => getComputedStyle(text).fill"))

    @pytest.mark.slow
    def test_it_follows_the_system(self, visit: Visit) -> None:
        page = show_people(visit(theme="dark"))
        dark, on_dark = self.paper(page), self.letters(page)
        page.emulate_media(color_scheme="light")
        assert self.paper(page) == "rgb(255, 255, 255)" != dark
        assert self.letters(page) != on_dark

    def test_the_switch_is_kept(self, visit: Visit) -> None:
        page = visit(theme="light")
        page.get_by_label("Theme").select_option("dark")
        dark = self.paper(page)
        assert dark != "rgb(255, 255, 255)"
        page.reload()
        assert self.paper(page) == dark
        expect(page.get_by_label("Theme")).to_have_value("dark")
        page.get_by_label("Theme").select_option("")
        assert self.paper(page) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_the_curve_stays_inside_when_the_window_shrinks(visit: Visit) -> None:
    page = show_people(visit())
    page.set_viewport_size({"width": NARROW, "height": 900})
    expect(page.locator("#curve svg")).to_have_attribute("viewBox", re.compile("0 0 3.. .*"))
    assert wider_than_screen(page) == 0
    plot, mark = (page.locator(place).bounding_box() for place in ("#curve svg", "#curve .marker"))
    assert plot["x"] <= mark["x"] <= plot["x"] + plot["width"]


def test_nothing_inline_and_nothing_from_elsewhere(visit: Visit, server: Running) -> None:
    page = visit()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    show_people(page)
    page.reload()
    expect(page.locator("#theme")).to_be_visible()
    assert asked
    assert [url for url in asked if not url.startswith((server.base, "data:", "blob:"))] == []
    text = page.request.get(server.base).text()
    assert " style=" not in text
    assert " onclick=" not in text
    assert text.count("<script") == text.count('<script src="/static/')


"""How many times as long as an idle slider's the slider's frames may take: a busy machine does twice or three times."""
