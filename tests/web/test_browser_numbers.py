"""In a real browser: the page shows the numbers of the command line, wherever the slider and the limit are moved."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.show.wording.attackers import share
from cellrisk.system.formatting import as_given, percent
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

REVEALED = "Revealed: own value"
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
    unfold(shown, "How large the groups are")
    for control, value in {"mechanism": "geometric", "measure": "local", "weights": "records"}.items():
        shown.locator(f"#{control}").select_option(value)
    wait_until_shown(shown)
    shown.locator("#epsilon").fill("72")
    open_step(shown, "decide")
    shown.get_by_label("Revealed, at most").fill("10")
    unfold(shown, "Groups with the highest risk")
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
    @pytest.mark.parametrize(
        "place", [0, 37, *(pytest.param(place, marks=pytest.mark.slow) for place in (60, 101, 120))]
    )
    def test_the_numbers_are_those_of_the_command_line(self, page: Any, capsys: Capture, place: int) -> None:
        slide_to(page, place)
        found = assess(page, capsys)
        people = found["people"]["job"]
        ends = risk_of(found, "limits", "local", "tight", "records")
        assert found["mechanism"]["epsilon"] == float(epsilon(page))
        ceiling = found["decision"][0]["ceiling"]
        attacks = [row for row in found["attackers"] if row["attack"] != "any"]
        informed = next(row for row in attacks if row["attack"] == "informed")
        shown = figures(page)
        if place % 3 == 0:  # between these positions, lines are straight
            assert shown == shown | {
                "Because of their own record": share(max(row["own"] for row in attacks) / found["table"]["records"]),
                "Inferred, 95% sure": share(informed["revealed"] / found["table"]["records"]),
                "Most for one person": share(max(row["most"] for row in attacks)),
            }
        assert shown == shown | {
            REVEALED: percent(risk_of(found, "risks", "local", "tight", "records")["risk"]),
            "Any value revealed": percent(risk_of(found, "risks", "local", "exact", "records")["risk"]),
            "Worst case for one record": f"{math.ceil(1000 * ceiling['even_two'] - 1e-9) / 10:g}%",
            "Revealed as epsilon falls to 0": percent(ends["chance"]),
            "Revealed with no noise": percent(ends["raw"]),
        }
        told = page.locator("#risk-figures").inner_text()
        assert f"95% of releases: {people['low']:,} to {people['high']:,} people" in told
        expect(page.locator("#sentence")).to_contain_text(found["headline"].partition(" Having")[0])
        expect(page.locator("#attacks tbody tr").first).to_contain_text("Homogeneity attack")

    def test_a_picture_of_people_is_drawn_and_described(self, page: Any) -> None:
        slide_to(page, 80)
        image = page.locator("#attacks img")
        expect(image).to_have_attribute("alt", re.compile(f"of 100 people, at epsilon {re.escape(epsilon(page))};"))
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") > 100

    def test_it_asks_the_server_for_nothing(self, page: Any) -> None:
        """The sentence follows within the event, before any answer could come."""
        before, after = page.evaluate(
            """() => {
              const [slider, sentence] = ['epsilon', 'sentence'].map((id) => document.getElementById(id));
              const before = sentence.textContent;
              slider.value = Number(slider.value) + 10;
              slider.dispatchEvent(new Event('input', { bubbles: true }));
              return [before, sentence.textContent];
            }"""
        )
        assert (before == after, "a published count is within" in after) == (False, True)
        wait_until_shown(page)

    @pytest.mark.slow
    def test_screen_readers_hear_epsilon_and_risk(self, page: Any) -> None:
        slide_to(page, 40)
        told = page.locator("#epsilon").get_attribute("aria-valuetext")
        shown = figures(page)
        because = f"{shown['Because of their own record']} because of their own record"
        assert told == f"epsilon {epsilon(page)}, {because}, {shown[REVEALED]} revealed"
        wait_until_shown(page)
        expect(page.locator("#announcer")).to_contain_text(f"At epsilon {epsilon(page)},")
        heard = page.locator("#announcer").inner_text()
        expect(page.locator("#sentence")).to_contain_text(heard)

    @pytest.mark.slow
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
        assert figures(page)[REVEALED] == percent(risk_of(found, "risks", measure, "tight", weights)["risk"])
        expect(page.locator("#sentence")).to_contain_text(found["headline"].partition(" Having")[0])

    @pytest.mark.slow
    def test_delta(self, page: Any, capsys: Capture) -> None:
        page.locator("#mechanism").select_option("discrete-gaussian")
        expect(page.locator("#delta-field")).to_be_visible()
        first = assess(page, capsys)["mechanism"]["delta"]
        page.locator("#delta").select_option(index=1 - int(page.locator("#delta").input_value()))
        expect(page.locator("#shell")).not_to_contain_text(f"--delta {first:g} ")
        found = assess(page, capsys)
        assert found["mechanism"]["delta"] != first
        assert figures(page)[REVEALED] == percent(risk_of(found, "risks", "local", "tight", "records")["risk"])


@pytest.mark.slow
class TestLimit:
    def test_typed(self, page: Any, direct: cr.FrequencyTable) -> None:
        open_step(page, "decide")
        page.get_by_label("Revealed, at most").fill("100")
        self.check_verdict(page, direct, 1.0)
        page.get_by_label("Revealed, at most").fill("0")
        expect(page.locator("#verdict")).to_contain_text("No epsilon is admissible.")
        expect(page.locator("#use-epsilon")).to_be_hidden()
        page.get_by_label("Revealed, at most").fill("12.5")
        assert limit(page) == 0.125
        self.check_verdict(page, direct, 0.125)

    def check_verdict(self, page: Any, direct: cr.FrequencyTable, accepted: float) -> None:
        """The page says of a limit what `choose` says of it."""
        choice = cr.choose(direct, max_risk=accepted)
        expect(page.locator("#shell")).to_contain_text(f"--max-risk {accepted:g}")
        expect(page.locator("#verdict")).to_have_attribute("aria-busy", "false")
        use = page.locator("#use-epsilon")
        if choice.epsilon is None:  # every larger epsilon keeps it: the end of the range is never offered
            assert choice.options[0].open_ended
            expect(page.locator("#verdict")).to_contain_text("Nothing is recommended.")
            expect(use).to_be_hidden()
            return
        use.click()
        wait_until_shown(page)
        assert choice.epsilon / 1.2 < float(epsilon(page)) <= choice.epsilon
        assert any(low <= float(epsilon(page)) <= high for low, high in choice.admissible)
        expect(page.locator("#setting")).to_contain_text("Within the limits")


@pytest.mark.slow
class TestDownloads:
    def test_the_report_says_what_the_page_says(self, page: Any, tmp_path: Path) -> None:
        slide_to(page, 50)
        wait_until_shown(page)
        open_step(page, "decide")
        accepted = limit(page)
        open_step(page, "act")
        report = save_download(page, "Download the report", tmp_path).read_text(encoding="utf-8")
        shown = figures(page)
        because = shown["Because of their own record"]
        for words in (f"epsilon {epsilon(page)}", shown[REVEALED], because, f"{as_given(accepted, 2)}%"):
            assert words in report

    def test_commands_can_be_copied(self, page: Any) -> None:
        open_step(page, "act")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#copy-shell").click()
        expect(page.locator("#copy-shell")).to_have_text("Copied")
        assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#shell").inner_text()
