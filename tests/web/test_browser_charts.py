"""In a real browser: charts that are not empty and whose labels do not lie over each other, at every width and zoom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import SCREEN
from tests.web.geometry import lines, middle, outside, overlaps
from tests.web.walking import epsilon, expect, open_step, show_people, unfold, wait_until_shown, wider_than_screen

Visit = Callable[..., Any]
WIDTHS = {"wide": 1280, "tablet": 768, "telephone": 390, "twice as large": 640}
"""The last is a screen of 1280 pixels at a zoom of 200%."""


@pytest.fixture(scope="module")
def page(long_visit: Visit) -> Any:
    return show_people(long_visit())


def resize(page: Any, width: int) -> None:
    page.set_viewport_size({**SCREEN, "width": width})
    page.wait_for_function(
        "() => [...document.querySelectorAll('.open .chart svg')].every((picture) => !picture.parentElement.clientWidth"
        " || picture.viewBox.baseVal.width === picture.parentElement.clientWidth)"
    )


def check_chart(page: Any, place: str, kinds: set[str]) -> None:
    assert overlaps(page, place) == []
    assert outside(page, place) == []
    assert set(lines(page, place)) == kinds


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_no_label_lies_over_another(page: Any, pictures: Path, width: int) -> None:
    open_step(page, "see")
    resize(page, width)
    check_chart(page, "#curve", {"exposed", "caused", "sure"})
    assert lines(page, "#curve")["exposed"]["rise"] > 100  # the axis is scaled to the curves
    assert wider_than_screen(page) == 0
    page.locator("#see").screenshot(path=pictures / f"see-{width}.png")
    open_step(page, "decide")
    page.get_by_label("Exposed, at most").fill("90")  # off the scale: an arrow at the edge
    page.get_by_label("Because of their own record, at most").fill("0.1")
    expect(page.locator("#max-risk-handle")).to_contain_text("↑ limit 90.0%")
    resize(page, width)
    check_chart(page, "#limits", {"exposed", "caused", "sure"})
    marks = [page.locator(f"#{name}-handle b").bounding_box() for name in ("max-risk", "max-caused")]
    assert abs(marks[0]["y"] - marks[1]["y"]) > 20 or abs(marks[0]["x"] - marks[1]["x"]) > 80
    assert wider_than_screen(page) == 0
    page.locator("#decide").screenshot(path=pictures / f"decide-{width}.png")


def test_labels_that_are_pushed_together_are_seen(page: Any) -> None:
    """The check itself: a label that is moved over another is found, and so is a line without points."""
    open_step(page, "see")
    resize(page, WIDTHS["wide"])
    page.evaluate("() => document.querySelectorAll('#curve .label').forEach((label) => label.setAttribute('y', 50))")
    assert overlaps(page, "#curve")
    page.evaluate("() => document.querySelector('#curve polyline').setAttribute('points', '60,10')")
    with pytest.raises(AssertionError):
        lines(page, "#curve")
    resize(page, WIDTHS["tablet"])
    resize(page, WIDTHS["wide"])
    assert overlaps(page, "#curve") == []


def test_the_marker_stands_above_the_slider_and_can_be_dragged(page: Any) -> None:
    open_step(page, "see")
    resize(page, WIDTHS["wide"])
    page.locator("#epsilon").fill("30")
    slider, marker = page.locator("#epsilon").bounding_box(), page.locator("#curve .marker")
    thumb = slider["x"] + 10 + (slider["width"] - 20) * 30 / 120
    assert middle(marker.bounding_box()) == pytest.approx(thumb, abs=2)
    before, box = epsilon(page), page.locator("#curve").bounding_box()
    page.mouse.move(thumb, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(thumb + 150, box["y"] + 60, steps=3)
    page.mouse.up()
    assert float(epsilon(page)) > float(before)
    assert middle(marker.bounding_box()) == pytest.approx(thumb + 150, abs=4)
    wait_until_shown(page)


def test_a_note_where_noise_itself_shows_single_values(page: Any) -> None:
    open_step(page, "see")
    expect(page.locator("#noise-note")).to_contain_text("noise itself then shows single values in cells")


def test_the_paper_s_words_are_in_tooltips(page: Any) -> None:
    open_step(page, "see")
    unfold(page, "Advanced")
    expect(page.locator("#form option:checked")).to_have_text("Own value revealed")
    assert "“tight” in the paper" in str(page.locator("#form").get_attribute("title"))


def test_on_paper_every_step_is_open_and_nothing_can_be_pressed(page: Any, pictures: Path) -> None:
    open_step(page, "act")
    page.pdf(path=pictures / "printed.pdf")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    try:
        for place in ("#curve svg", "#limits svg", "#verdict", "#setting", "#shell", "#printed"):
            expect(page.locator(place)).to_be_visible()
        for place in (".steps", "#report", "#release", "#count-table", "#columns"):
            expect(page.locator(place)).to_be_hidden()
        page.screenshot(path=pictures / "printed.png", full_page=True)
    finally:
        page.emulate_media(media="screen")
        page.evaluate("() => dispatchEvent(new Event('afterprint'))")
