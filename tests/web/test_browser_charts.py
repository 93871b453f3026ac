"""In a real browser: charts that are not empty and whose labels do not lie over each other, at every width and zoom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import SCREEN
from tests.web.geometry import bars, column, lines, middle, outside, overlaps, painted, repeated
from tests.web.walking import expect, open_step, show_people, unfold, wait_until_shown, wider_than_screen

Visit = Callable[..., Any]
pytestmark = pytest.mark.slow
WIDTHS = {"wide": 1280, "tablet": 768, "telephone": 390}
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}
"""The zoom of a browser leaves the screen as it is and makes the page's own pixels larger: 1280 by 900 at 200% are 640
by 450 of them, each four of the screen's. Chromium is told so, which is what its zoom does to a page; its menu cannot
be reached from a test. In Firefox it can, and the tests there turn the zoom itself."""


@pytest.fixture(scope="module")
def page(long_visit: Visit) -> Any:
    return show_people(long_visit())


def resize(page: Any, width: int) -> None:
    page.set_viewport_size({**SCREEN, "width": width})
    wait_until_drawn(page)


def wait_until_drawn(page: Any) -> None:
    """Every chart that is on the page is as wide as its place."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.open .chart svg')].every((picture) => !picture.parentElement.clientWidth"
        " || picture.viewBox.baseVal.width === picture.parentElement.clientWidth)"
    )


def check_chart(page: Any, place: str, kinds: set[str]) -> None:
    assert overlaps(page, place) == []
    assert repeated(page, place) == []
    assert outside(page, place) == []
    assert set(lines(page, place)) == kinds


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_no_label_lies_over_another(page: Any, pictures: Path, width: int) -> None:
    resize(page, width)
    check_both_steps(page, pictures, str(width))


def check_both_steps(page: Any, pictures: Path, name: str) -> None:
    open_step(page, "see")
    wait_until_drawn(page)
    check_chart(page, "#curve", {"exposed", "caused", "sure"})
    assert lines(page, "#curve")["exposed"]["rise"] > 100  # the axis is scaled to the curves
    assert wider_than_screen(page) == 0
    page.locator("#see").screenshot(path=pictures / f"see-{name}.png")
    open_step(page, "decide")
    page.get_by_label("Revealed, at most").fill("90")  # off the scale: an arrow at the edge
    page.get_by_label("Because of their own record, at most").fill("0.1")
    assert page.locator("#limits .label.limit").all_text_contents() == ["↑ limit 90%"]
    wait_until_drawn(page)
    check_chart(page, "#limits", {"exposed", "caused", "sure"})
    assert wider_than_screen(page) == 0
    page.locator("#decide").screenshot(path=pictures / f"decide-{name}.png")


def draw_every_chart(page: Any) -> Any:
    """Sizes of cells, the map with three marks and a limit."""
    open_step(page, "see")
    unfold(page, "How large the groups are")
    open_step(page, "decide")
    page.get_by_label("Revealed, at most").fill("90")
    page.get_by_label("Worst case for one record, at most").fill("75")
    expect(page.locator("#verdict .answer")).to_contain_text("Admissible")
    unfold(page, "Risk and usefulness")
    page.get_by_role("button", name="Draw the map").click()
    expect(page.locator("#map .label.mark")).to_have_count(3)
    return page


def check_every_chart(page: Any, pictures: Path, name: str) -> None:
    open_step(page, "see")
    wait_until_drawn(page)
    assert overlaps(page, "#histogram") == []
    assert outside(page, "#histogram") == []
    assert bars(page, "#histogram") == [int(text) for text in column(page, "#size-numbers", 1)]
    assert painted(page, "#histogram", ".bar") > 0.1
    open_step(page, "decide")
    wait_until_drawn(page)
    check_chart(page, "#map", {"exposed"})
    for place, shape in (("#map", ".line.exposed"), ("#limits", ".line.exposed")):
        assert painted(page, place, shape) > 0.2, place
    assert wider_than_screen(page) == 0
    page.locator("#map").screenshot(path=pictures / f"map-{name}.png")


@pytest.fixture(scope="module")
def with_charts(page: Any) -> Any:
    return draw_every_chart(page)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_the_other_charts_at_every_width(with_charts: Any, pictures: Path, width: int) -> None:
    resize(with_charts, width)
    check_every_chart(with_charts, pictures, str(width))


def test_everything_at_twice_the_size(page: Any, browser: Any, pictures: Path) -> None:
    with closing(browser.new_context(**ZOOMED, storage_state=page.context.storage_state())) as window:
        zoomed = window.new_page()
        zoomed.set_default_timeout(60_000)
        zoomed.goto(page.url)
        wait_until_shown(zoomed)
        assert zoomed.evaluate("() => [innerWidth, devicePixelRatio]") == [640, 2]
        check_both_steps(zoomed, pictures, "twice")
        check_every_chart(draw_every_chart(zoomed), pictures, "twice")
        for step in ("load", "act", "ledger"):
            open_step(zoomed, step)
            assert wider_than_screen(zoomed) == 0


def test_values_under_the_pointer_and_by_keyboard(page: Any) -> None:
    """They are those of the table below the chart; the pointer and the arrows find the same ones."""
    open_step(page, "see")
    resize(page, WIDTHS["wide"])
    table = {
        row[0]: row[1:] for row in zip(*(column(page, "#curve-numbers", place) for place in range(4)), strict=True)
    }
    chart, said = page.locator("#curve"), page.locator("#curve .readout p")
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 80)
    expect(said).to_be_visible()
    under = said.inner_text().splitlines()
    own, _, caused = table[under[0].removeprefix("epsilon ")]
    assert under[1:3] == [f"revealed {own}", f"because of their own record {caused}"]
    assert outside(page, "#curve") == []
    page.mouse.move(0, 0)
    expect(said).to_be_hidden()
    chart.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    last = list(table)[-2]
    expect(said).to_contain_text(f"epsilon {last}")
    expect(page.locator("#announcer")).to_contain_text(f"epsilon {last}, revealed {table[last][0]}")
    page.keyboard.press("Escape")
    expect(said).to_be_hidden()


def test_the_marker_stands_above_the_slider(page: Any) -> None:
    open_step(page, "see")
    resize(page, WIDTHS["wide"])
    page.locator("#epsilon").fill("30")
    slider, marker = page.locator("#epsilon").bounding_box(), page.locator("#curve .marker")
    thumb = slider["x"] + 10 + (slider["width"] - 20) * 30 / 120
    assert middle(marker.bounding_box()) == pytest.approx(thumb, abs=2)
    wait_until_shown(page)


def test_a_finished_step_is_one_line_that_opens(page: Any) -> None:
    open_step(page, "decide")
    expect(page.locator("#see-told")).to_contain_text("because of their own record")
    expect(page.locator(".step-body:visible")).to_have_count(1)
    page.locator("#see-fold").click()
    expect(page.locator("#see-body")).to_be_visible()
    expect(page.locator("#see-title")).to_be_focused()
    expect(page.locator("#decide-body")).to_be_hidden()
    page.locator("#advanced").evaluate("details => { details.open = false; }")
    for control in ("mechanism", "measure", "neighbours", "form", "protection"):
        expect(page.locator(f"#advanced #{control}")).to_be_hidden()
    unfold(page, "Advanced")
    expect(page.locator("#advanced #mechanism")).to_be_visible()


def test_a_note_where_noise_itself_shows_single_values(page: Any) -> None:
    open_step(page, "see")
    expect(page.locator("#noise-note")).to_contain_text("noise itself then shows single values in groups")
