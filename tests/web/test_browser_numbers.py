"""In a real browser: the page shows the numbers of the command line, wherever the slider and the limit are moved."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.publish.simulation import SCENARIOS
from cellrisk.system.text import as_given, percent
from tests.web.conftest import Running
from tests.web.walking import (
    epsilon,
    expect,
    figures,
    limit,
    open_step,
    save_download,
    show_people,
    slide_to,
    unfold,
    wait_until_shown,
)

EXPOSED = "Exposed: own value revealed"
Visit = Callable[..., Any]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def shown(long_visit: Visit) -> Any:
    return show_people(long_visit())


@pytest.fixture
def page(shown: Any, server: Running, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The page of the small file; each test finds its controls as they were at the start."""
    monkeypatch.chdir(server.folder)
    open_step(shown, "see")
    unfold(shown, "Advanced")
    unfold(shown, "How large the cells are")
    for control, value in {"mechanism": "geometric", "measure": "local", "weights": "records"}.items():
        shown.locator(f"#{control}").select_option(value)
    wait_until_shown(shown)
    shown.locator("#epsilon").fill("72")
    open_step(shown, "decide")
    shown.get_by_label("Exposed, at most").fill("10")
    unfold(shown, "The riskiest cells")
    open_step(shown, "see")
    wait_until_shown(shown)
    return shown


def run_command(page: Any, name: str, *more: str) -> None:
    """Runs a line that the page gives for the command line."""
    lines = page.locator("#shell").inner_text().splitlines()
    line = next(line for line in lines if line.startswith(f"cellrisk {name} "))
    assert main([*shlex.split(line)[1:], *more]) == 0


def assess(page: Any, capsys: Capture) -> dict[str, Any]:
    """What ``cellrisk assess --json`` says of the setting on the page."""
    wait_until_shown(page)
    capsys.readouterr()
    run_command(page, "assess", "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def risk_of(found: dict[str, Any], part: str, measure: str, form: str, weights: str | None) -> dict[str, Any]:
    return next(row for row in found[part] if (row["measure"], row["form"], row["weights"]) == (measure, form, weights))


class TestSlider:
    @pytest.mark.parametrize("place", [0, 37, 60, 101, 120])
    def test_the_numbers_are_those_of_the_command_line(self, page: Any, capsys: Capture, place: int) -> None:
        slide_to(page, place)
        found = assess(page, capsys)
        people = found["people"]["job"]
        ends = risk_of(found, "limits", "local", "tight", "records")
        assert found["mechanism"]["epsilon"] == float(epsilon(page))
        caused, sure, ceiling = (found["decision"][0][name] for name in ("caused", "certainty", "ceiling"))
        assert figures(page) == {
            "Because of their own record": percent(caused["share"]),
            "Named with certainty": percent(sure[0]["right"] / found["table"]["records"]),
            EXPOSED: percent(risk_of(found, "risks", "local", "tight", "records")["risk"]),
            "Any value revealed": percent(risk_of(found, "risks", "local", "exact", "records")["risk"]),
            "Worst case for one record": f"{math.ceil(1000 * ceiling['even_two'] - 1e-9) / 10:.1f}%",
            "Exposed as epsilon falls to 0": percent(ends["chance"]),
            "Exposed by the raw table": percent(ends["raw"]),
        }
        told = page.locator("#risk-figures").inner_text()
        for interval in (people, caused):
            assert f"95% of releases: {interval['low']:,} to {interval['high']:,} people" in told
        expect(page.locator("#sentence")).to_have_text(found["headline"])

    def test_it_asks_the_server_for_nothing(self, page: Any) -> None:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        before = page.locator("#sentence").inner_text()
        page.locator("#epsilon").press("PageUp")
        assert page.locator("#sentence").inner_text() != before
        assert asked == []

    def test_screen_readers_hear_epsilon_and_risk(self, page: Any) -> None:
        slide_to(page, 40)
        told = page.locator("#epsilon").get_attribute("aria-valuetext")
        shown = figures(page)
        because = f"{shown['Because of their own record']} because of their own record"
        assert told == f"epsilon {epsilon(page)}, {because}, {shown[EXPOSED]} exposed"
        wait_until_shown(page)
        expect(page.locator("#announcer")).to_have_text(page.locator("#sentence").inner_text())

    @pytest.mark.parametrize(
        ("mechanism", "measure", "weights"),
        [("laplace", "local", "uniform"), ("gaussian-analytic", "expected", "records")],
        ids=["another-mechanism", "another-measure"],
    )
    def test_switches(self, page: Any, capsys: Capture, mechanism: str, measure: str, weights: str) -> None:
        page.locator("#mechanism").select_option(mechanism)
        page.locator("#measure").select_option(measure)
        page.locator("#weights").select_option(weights)
        found = assess(page, capsys)
        assert figures(page)[EXPOSED] == percent(risk_of(found, "risks", measure, "tight", weights)["risk"])
        expect(page.locator("#sentence")).to_have_text(found["headline"])

    def test_delta(self, page: Any, capsys: Capture) -> None:
        page.locator("#mechanism").select_option("discrete-gaussian")
        expect(page.locator("#delta-field")).to_be_visible()
        first = assess(page, capsys)["mechanism"]["delta"]
        page.locator("#delta").select_option(index=1 - int(page.locator("#delta").input_value()))
        expect(page.locator("#shell")).not_to_contain_text(f"--delta {first:g} ")
        found = assess(page, capsys)
        assert found["mechanism"]["delta"] != first
        assert figures(page)[EXPOSED] == percent(risk_of(found, "risks", "local", "tight", "records")["risk"])


class TestLimit:
    def test_dragged_with_the_mouse(self, page: Any, direct: cr.FrequencyTable, pictures: Path) -> None:
        open_step(page, "decide")
        before = limit(page)
        handle = page.get_by_role("slider", name="Limit: exposed")
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 3, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y + 12, steps=4)
        page.mouse.move(x + 40, y + 25, steps=4)
        page.mouse.up()
        page.mouse.move(x, y - 100)
        after = limit(page)
        assert after < before
        moved = handle.bounding_box()["y"] - box["y"]
        assert moved == pytest.approx(25, abs=3)
        self.check_verdict(page, direct, after)
        page.locator("#decide").screenshot(path=pictures / "limit-dragged.png")

    def test_moved_with_keys(self, page: Any, direct: cr.FrequencyTable) -> None:
        open_step(page, "decide")
        handle = page.get_by_role("slider", name="Limit: exposed")
        before = limit(page)
        for key, change in {"ArrowUp": 0.001, "ArrowLeft": -0.001, "PageUp": 0.01, "PageDown": -0.01}.items():
            handle.press(key)
            assert limit(page) == pytest.approx(before + change, abs=1e-9)
            before = limit(page)
        handle.press("End")
        assert limit(page) == 1
        self.check_verdict(page, direct, 1.0)
        handle.press("Home")
        assert limit(page) == 0
        expect(page.locator("#verdict")).to_contain_text("No epsilon is admissible.")
        expect(page.locator("#use-epsilon")).to_be_hidden()

    def test_typed(self, page: Any, direct: cr.FrequencyTable) -> None:
        open_step(page, "decide")
        page.get_by_label("Exposed, at most").fill("12.5")
        assert limit(page) == 0.125
        self.check_verdict(page, direct, 0.125)

    def check_verdict(self, page: Any, direct: cr.FrequencyTable, accepted: float) -> None:
        """The page says of a limit what `choose` says of it."""
        choice = cr.choose(direct, max_risk=accepted)
        expect(page.locator("#shell")).to_contain_text(f"--max-risk {accepted:g}")
        expect(page.locator("#verdict")).to_have_attribute("aria-busy", "false")
        use = page.locator("#use-epsilon")
        if choice.epsilon is None:  # every larger epsilon keeps it: the end of the range is never offered
            assert choice.open_ended
            expect(page.locator("#verdict")).to_contain_text("Nothing is recommended.")
            expect(use).to_be_hidden()
            return
        use.click()
        wait_until_shown(page)
        assert choice.epsilon / 1.2 < float(epsilon(page)) <= choice.epsilon
        assert any(low <= float(epsilon(page)) <= high for low, high in choice.admissible)
        expect(page.locator("#setting")).to_contain_text("Within the limits")


class TestDownloads:
    def test_the_curve_is_that_of_the_command_line(self, page: Any, tmp_path: Path) -> None:
        open_step(page, "act")
        saved, own = save_download(page, "Curve, CSV", tmp_path), tmp_path / "own.csv"
        run_command(page, "curve", "--csv", str(own), "--plot", str(tmp_path / "own.svg"))
        assert saved.name == "people-curve.csv"
        assert saved.read_text(encoding="utf-8").count("geometric") > 100
        assert saved.read_text(encoding="utf-8") == own.read_text(encoding="utf-8")

    def test_the_drawing(self, page: Any, tmp_path: Path) -> None:
        open_step(page, "act")
        saved = save_download(page, "Curve, SVG", tmp_path)
        assert saved.name == "people-curve.svg"
        assert saved.read_text(encoding="utf-8").lstrip().startswith("<?xml")

    def test_the_report_says_what_the_page_says(self, page: Any, tmp_path: Path) -> None:
        slide_to(page, 50)
        wait_until_shown(page)
        open_step(page, "act")
        report = save_download(page, "Download the report", tmp_path).read_text(encoding="utf-8")
        shown = figures(page)
        because = shown["Because of their own record"]
        for words in (f"epsilon {epsilon(page)}", shown[EXPOSED], because, f"{as_given(limit(page), 2)}%"):
            assert words in report

    def test_commands_can_be_copied(self, page: Any) -> None:
        open_step(page, "act")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#copy-python").click()
        expect(page.locator("#copy-python")).to_have_text("Copied")
        assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#python").inner_text()


class TestCells:
    def test_the_riskiest_can_be_sorted(self, page: Any) -> None:
        open_step(page, "decide")
        table = page.locator("#riskiest table")
        heads = [head.inner_text() for head in table.locator("thead th").all()]
        assert heads == ["sex", "age", "people", "values", "risk", "expected exposed"]
        assert table.locator("thead th").nth(4).get_attribute("aria-sort") == "descending"
        self.press_head(page, "people")
        assert self.column(page, 2) == sorted(self.column(page, 2), reverse=True)
        self.press_head(page, "people")
        assert table.locator("thead th").nth(2).get_attribute("aria-sort") == "ascending"
        assert self.column(page, 2) == sorted(self.column(page, 2))
        expect(table.get_by_role("button", name="people")).to_be_focused()

    def press_head(self, page: Any, name: str) -> None:
        page.locator("#riskiest table").get_by_role("button", name=name).click()

    def column(self, page: Any, place: int) -> list[int]:
        rows = page.locator("#riskiest tbody tr").all()
        return [int(row.locator("th, td").nth(place).inner_text()) for row in rows]

    def test_what_the_attacker_sees_is_labelled(self, page: Any) -> None:
        legend = page.locator("#legend li").all()
        assert [each.locator(".badge").inner_text() for each in legend] == [str(number) for number in SCENARIOS]
        rows = page.locator("#glimpse tbody tr").all()
        assert len(rows) == 12
        for row in rows:
            number = row.locator(".badge").inner_text()
            words = row.locator(".scenario").inner_text()
            assert words.split("\n")[-1] in legend[int(number) - 1].inner_text()

    def test_another_draw(self, page: Any) -> None:
        before = page.locator("#glimpse tbody").inner_text()
        page.get_by_role("button", name="Draw another release").click()
        expect(page.locator("#glimpse tbody")).not_to_have_text(before)


class TestDecisions:
    def test_the_map(self, page: Any) -> None:
        """The risk of this table falls as epsilon grows, so that no limit binds, and no point is recommended."""
        open_step(page, "decide")
        unfold(page, "Risk and usefulness")
        page.get_by_label("Exposed, at most").fill("20")
        page.get_by_role("button", name="Draw the map").click()
        expect(page.locator("#map-area")).to_be_visible()
        expect(page.locator("#map-sentence")).to_contain_text("recommended")
        expect(page.locator("#map-table")).to_be_hidden()
