"""In a real browser: from a file to a signed-off epsilon, by mouse and by keyboard, and what happens on the way."""

from __future__ import annotations

import html
import re
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from tests.near import near
from tests.web.conftest import PEOPLE, start, stop, welcome
from tests.web.walking import (
    ROLES,
    choose_columns,
    count_table,
    epsilon,
    expect,
    limit,
    open_people,
    open_step,
    press_tab_until,
    save_download,
    show_adult,
    show_people,
    try_adult,
    unfold,
    wait_until_shown,
)

Visit = Callable[..., Any]


class TestFromFileToReport:
    @pytest.mark.slow
    def test_the_adult_example(self, visit: Visit, tmp_path: Path, pictures: Path) -> None:
        page = visit()
        try_adult(page)
        expect(page.get_by_role("radio", name=f"income: {ROLES['sensitive']}")).to_be_checked()
        count_table(page)
        expect(page.locator("#table-figures")).to_contain_text("6,280")
        before = epsilon(page)
        open_step(page, "decide")
        page.get_by_label("Revealed, at most").fill("30")
        expect(page.locator("#shell")).to_contain_text("--max-risk 0.3 ")
        page.get_by_role("button", name=re.compile("Use epsilon")).click()
        wait_until_shown(page)
        assert epsilon(page) != before
        open_step(page, "act")
        expect(page.locator("#setting")).to_contain_text("Within the limits")
        page.get_by_label("Title of the report").fill("Income by age, sex and work")
        page.get_by_label("Organisation").fill("Office of Tables")
        page.screenshot(path=pictures / "path-adult.png", full_page=True)
        report = save_download(page, "Download the report", tmp_path)
        assert report.name == "adult-report.html"
        text = report.read_text(encoding="utf-8")
        for words in ("Income by age, sex and work", "Office of Tables", f"epsilon {epsilon(page)}", "30%", "32,561"):
            assert words in text
        expect(page.locator("#download-status")).to_contain_text("Saved: adult-report.html")

    def test_a_file_from_the_disk(self, visit: Visit, tmp_path: Path) -> None:
        file = tmp_path / "survey.csv"
        file.write_text(PEOPLE, encoding="utf-8")
        page = visit()
        page.get_by_label("Choose a file").set_input_files(file)
        expect(page.locator("#source-title")).to_have_text("survey.csv: 400 rows, 4 columns")
        choose_columns(page)
        count_table(page)
        assert "400 people" in page.locator("#sentence").inner_text()
        sentence = page.locator("#sentence").inner_text()
        open_step(page, "act")
        report = save_download(page, "Download the report", tmp_path)
        assert report.name == "survey-report.html"
        assert sentence.partition(". ")[2].partition(" (")[0] in html.unescape(report.read_text("utf-8"))

    @pytest.mark.slow
    def test_a_file_that_is_dropped(self, visit: Visit) -> None:
        page = visit()
        page.route("**/api/state", lambda route: None)  # even before the server has said what it can do
        page.reload()
        files = page.evaluate_handle(
            "text => { const all = new DataTransfer(); all.items.add(new File([text], 'dropped.csv')); return all; }",
            PEOPLE,
        )
        page.dispatch_event("#drop", "drop", {"dataTransfer": files})
        expect(page.locator("#source-title")).to_have_text("dropped.csv: 400 rows, 4 columns")

    @pytest.mark.slow
    def test_without_a_mouse(self, visit: Visit, tmp_path: Path) -> None:
        page = visit()
        press_tab_until(page, "#folder-file")
        page.keyboard.type("people")
        press_tab_until(page, "#open-file")
        page.keyboard.press("Enter")
        expect(page.locator("#source-title")).to_be_focused()
        press_tab_until(page, "input[name=role-1]")  # roles are suggested; keys change them
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("radio", name=f"age: {ROLES['unused']}")).to_be_checked()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("radio", name=f"age: {ROLES['qid']}")).to_be_checked()
        press_tab_until(page, "[data-column=age] .bins")
        page.keyboard.type("5")
        press_tab_until(page, "#count-table")
        page.keyboard.press("Enter")
        expect(page.locator("#see-title")).to_be_focused()  # what is new
        wait_until_shown(page)
        press_tab_until(page, "#epsilon")
        before = epsilon(page)
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
        assert float(epsilon(page)) < float(before)
        wait_until_shown(page)
        press_tab_until(page, "#see .next")
        page.keyboard.press("Enter")
        expect(page.locator("#decide-title")).to_be_focused()
        press_tab_until(page, "#max-risk")
        page.keyboard.type("20")
        assert limit(page) == near(0.2)
        press_tab_until(page, "#decide .next")
        page.keyboard.press("Enter")
        press_tab_until(page, "#report")
        with page.expect_download() as waiting:
            page.keyboard.press("Enter")
        waiting.value.save_as(tmp_path / "report.html")
        assert f"epsilon {epsilon(page)}" in (tmp_path / "report.html").read_text("utf-8")


class TestRefusals:
    """One plain line, beside what was asked; a refusal that the server sends is an error in the browser's console."""

    @pytest.mark.slow
    def test_no_sensitive_column(self, visit: Visit) -> None:
        page = visit()
        open_people(page)
        page.get_by_role("radio", name=f"job: {ROLES['unused']}").check()
        page.get_by_role("button", name="Count the table").click()
        told = page.locator("#count-status").get_by_role("alert")
        expect(told).to_have_text("Choose at least one quasi-identifier and one sensitive column.")

    def test_bins_that_are_none(self, visit: Visit) -> None:
        page = visit(expected="422")
        open_people(page)
        page.get_by_label("Bins of age").fill("often")
        page.get_by_role("button", name="Count the table").click()
        told = page.locator("#count-status").get_by_role("alert")
        expect(told).to_contain_text("age")
        assert "\n" not in told.inner_text()
        assert "--" not in told.inner_text()

    @pytest.mark.slow
    def test_a_file_that_is_too_large(self, visit: Visit, tmp_path: Path) -> None:
        file = tmp_path / "large.csv"
        file.write_bytes(b"a,b\n" * 60_000)
        page = visit()
        page.get_by_label("Choose a file").set_input_files(file)
        told = page.locator("#load-status").get_by_role("alert")
        expect(told).to_have_text("large.csv is too large; at most 200 kB can be uploaded.")

    def test_a_server_that_is_gone(self, visit: Visit) -> None:
        page = visit(expected="net::ERR")
        page.route("**/api/sources", lambda route: route.abort())
        page.get_by_role("button", name="Try the Adult example").click()
        told = page.locator("#load-status").get_by_role("alert")
        expect(told).to_have_text(
            "The server does not answer. Is cellrisk serve still running? Start it again: every choice is in the "
            "address of this page."
        )


@pytest.mark.slow
class TestLongWork:
    def test_cancel(self, visit: Visit, client: Any) -> None:
        page = show_adult(visit())
        open_step(page, "decide")
        unfold(page, "Risk and usefulness")
        page.get_by_label("Largest distortion").fill("0.37")  # another map than those of other tests, which are kept
        with page.expect_response(lambda answer: answer.request.method == "POST" and "/map" in answer.url) as begun:
            page.get_by_role("button", name="Draw the map").click()
        job = begun.value.json()["job"]
        expect(page.locator("#map-status progress")).to_be_visible()
        page.locator("#map-status").get_by_role("button", name="Cancel").click()
        expect(page.locator("#map-status")).to_have_text("Cancelled.")
        expect(page.locator("#map-area")).to_be_hidden()
        assert client.get(f"/api/jobs/{job}").json()["state"] == "cancelled"

    def test_the_curve_is_there_before_what_takes_longer(self, visit: Visit) -> None:
        """The intervals and what an attacker is sure of are filled in once they come."""
        page = visit()
        held: list[Any] = []
        free: list[bool] = []

        def hold(route: Any) -> None:
            if free:
                route.continue_()
            else:
                held.append(route)

        for what in ("attacks", "figures"):
            page.route(f"**/{what}", hold)
        open_people(page)
        page.get_by_role("button", name="Count the table").click()
        expect(page.locator("#curve polyline")).to_have_count(1)
        expect(page.locator("#attacks-status")).to_contain_text("Assessing the attacks")
        expect(page.locator("#risk-figures")).to_contain_text("counting")
        free.append(True)
        for route in held:
            route.continue_()
        wait_until_shown(page)
        expect(page.locator("#curve polyline")).to_have_count(3)

    def test_a_new_question_ends_the_one_before(self, visit: Visit) -> None:
        page = show_people(visit(expected="404"))
        unfold(page, "Advanced")
        hold_curves(page)
        page.get_by_label("Mechanism", exact=True).first.select_option("gaussian-analytic")
        expect(page.locator("#see-status")).to_contain_text("at work")
        with page.expect_response(lambda answer: answer.request.method == "DELETE") as ended:
            page.get_by_label("Mechanism", exact=True).first.select_option("laplace")
        assert ended.value.url.endswith("/api/jobs/held")

    def test_after_a_cancel_the_controls_say_what_is_shown(self, visit: Visit) -> None:
        page = show_people(visit(expected="404"))
        unfold(page, "Advanced")
        hold_curves(page)
        mechanism = page.get_by_label("Mechanism", exact=True).first
        mechanism.select_option("gaussian-pdp")
        page.locator("#see-status").get_by_role("button", name="Cancel").click()
        expect(page.locator("#see-status")).to_have_text("Cancelled.")
        expect(mechanism).to_have_value("geometric")


def hold_curves(page: Any) -> None:
    """From now on a curve is a job that stays at work, so that there is time to cancel it."""
    states = ["running"]

    def answer(route: Any) -> None:
        if route.request.method == "DELETE":
            states[0] = "cancelled"
            route.continue_()
        else:
            route.fulfill(json={"state": states[0], "progress": 0.4, "step": "at work", "result": None, "error": None})

    page.route("**/positions", lambda route: route.fulfill(status=202, json={"job": "held"}))
    page.route("**/api/jobs/held", answer)


@pytest.mark.slow
class TestReload:
    """What a reload keeps before there is a table, and while it is counted."""

    def test_the_choices_of_columns(self, visit: Visit) -> None:
        page = visit()
        open_people(page)
        page.get_by_role("radio", name=f"sex: {ROLES['unused']}").check()
        page.get_by_label("Missing values").select_option("drop")
        page.get_by_label("Bins of age").fill("7")
        page.reload()  # at once
        expect(page.locator("#source-title")).to_have_text("people.csv: 400 rows, 4 columns")
        expect(page.get_by_role("radio", name=f"sex: {ROLES['unused']}")).to_be_checked()
        expect(page.get_by_role("radio", name=f"job: {ROLES['sensitive']}")).to_be_checked()
        expect(page.get_by_label("Bins of age")).to_have_value("7")
        expect(page.get_by_label("Missing values")).to_have_value("drop")

    def test_the_count(self, visit: Visit) -> None:
        page = visit(expected="net::ERR")
        open_people(page)
        page.get_by_label("Bins of age").fill("3")
        held: list[Any] = []

        def hold(route: Any) -> None:  # the answer takes long, and the reload comes first
            held.append(route)

        page.route("**/api/tables", hold)
        page.get_by_role("button", name="Count the table").click()
        expect(page.locator("#count-status progress")).to_be_visible()
        page.unroute("**/api/tables")
        page.reload()
        wait_until_shown(page)
        expect(page.locator("#load-told")).to_contain_text("people.csv: 400 people in 26 groups")
        assert len(held) == 1


@pytest.mark.slow
class TestRelease:
    @pytest.fixture
    def page(self, visit: Visit) -> Any:
        pytest.importorskip("opendp", reason="the extra 'release' is not installed")
        page = show_people(visit())
        unfold(page, "Advanced")
        page.get_by_label("Mechanism", exact=True).first.select_option("laplace")
        open_step(page, "act")
        page.get_by_role("button", name="Geometric").click()  # which is offered where a mechanism cannot be released
        expect(page.locator("#release-fields")).to_be_visible()
        wait_until_shown(page)
        page.get_by_label("Labels as they occur").check()
        return page

    def test_it_says_what_it_costs_before_it_is_made(self, page: Any) -> None:
        page.get_by_role("button", name="Make the release…").click()
        told = page.get_by_role("dialog")
        expect(told).to_contain_text("counts of 400 people from people.csv")
        expect(told).to_contain_text(f"It costs these people epsilon {epsilon(page)}, for good.")
        told.get_by_role("button", name="Go back").click()
        expect(told).to_be_hidden()
        expect(page.locator("#release-status")).to_be_empty()

    def test_it_is_made_after_a_yes(self, page: Any, tmp_path: Path) -> None:
        page.get_by_role("button", name="Make the release…").click()
        with page.expect_download() as waiting:
            page.get_by_role("dialog").get_by_role("button", name="Make the release").click()
        released = tmp_path / str(waiting.value.suggested_filename)
        waiting.value.save_as(released)
        with zipfile.ZipFile(released) as archive:
            assert len(archive.namelist()) == 2
            assert any("epsilon" in archive.read(name).decode() for name in archive.namelist())


@pytest.mark.slow
class TestLedger:
    def test_a_release_is_made_with_its_entry(self, browser: Any, tmp_path: Path, pictures: Path) -> None:
        """The ledger has a cohort already: a new one has to be said to be new."""
        pytest.importorskip("opendp", reason="the extra 'release' is not installed")
        pytest.importorskip("sqlalchemy", reason="the extra 'ledger' is not installed")
        with cr.Ledger(tmp_path / "releases.db", create=True) as ledger:
            ledger.set_limit("others", epsilon=2.0)
        running = start(tmp_path, ledger=str(tmp_path / "releases.db"))
        try:
            with welcome(browser, running) as open_page:
                page = show_people(open_page())
                open_step(page, "act")
                page.get_by_role("button", name="Make the release…").click()
                needed = "The ledger needs a purpose and a cohort: fill in both boxes."
                expect(page.locator("#release-status")).to_have_text(needed)
                expect(page.get_by_label("Purpose")).to_be_focused()
                page.get_by_label("Purpose").fill("yearly table")
                page.get_by_label("Cohort (whose data)").fill("people")
                page.get_by_label("Labels as they occur").check()
                page.get_by_role("button", name="Make the release…").click()
                told = page.get_by_role("dialog")
                expect(told).to_contain_text("no cohort 'people'")
                expect(told.get_by_role("button", name="Forbidden")).to_be_disabled()
                told.get_by_role("button", name="Go back").click()
                page.get_by_label("A new cohort").check()
                page.get_by_role("button", name="Make the release…").click()
                expect(told).to_contain_text("nothing spent before, geometric, epsilon 1 after")
                with page.expect_download() as waiting:
                    page.get_by_role("dialog").get_by_role("button", name="Make the release").click()
                assert waiting.value.suggested_filename == "people-release.zip"
                expect(page.locator("#ledger-area .cohort").last).to_contain_text("Cohort 'people' has spent epsilon 1")
                expect(page.locator("#ledger-area tbody tr")).to_contain_text("yearly table")
                open_step(page, "ledger")
                page.get_by_role("button", name=re.compile("Copy the digest")).click()
                expect(page.locator("#ledger-area .digest button")).to_have_text("Copied")
                page.locator("#ledger").screenshot(path=pictures / "ledger.png")
        finally:
            stop(running)
        with cr.Ledger(tmp_path / "releases.db") as ledger:
            [entry] = ledger.entries(kind="release")
            assert (entry.cohort, entry.purpose) == ("people", "yearly table")

    def test_none_was_named(self, visit: Visit) -> None:
        expect(visit().locator("#ledger-status")).to_contain_text("--ledger FILE")


@pytest.mark.slow
class TestDoor:
    """What a browser is started with, which everybody on the machine can read."""

    def test_the_browser_is_started_with_a_file_that_leads_to_the_link(self, browser: Any, tmp_path: Path) -> None:
        started = tmp_path / "browser"
        started.write_text(
            '#!/bin/sh\nprintf "%s\\n" "$@" > "$0.given"\nenv > "$0.around"\nmv "$0.given" "$0.done"\n',
            encoding="utf-8",
        )
        started.chmod(0o755)
        running = start(tmp_path, open_browser=True, environment={"BROWSER": f"{started} %s"})
        try:
            until = time.monotonic() + 60
            while not Path(f"{started}.done").exists() and time.monotonic() < until:
                time.sleep(0.02)
            given = Path(f"{started}.done").read_text(encoding="utf-8").strip()
            around = Path(f"{started}.around").read_text(encoding="utf-8")
            door = Path(given.removeprefix("file://"))
            assert (door.stat().st_mode & 0o777, door.parent.stat().st_mode & 0o777) == (0o600, 0o700)
            assert running.token not in given + around
            with welcome(browser, running) as open_page:
                page = open_page(at=given)
                assert page.url.partition("#")[0] == f"{running.base}/"
                assert running.token not in page.evaluate("document.referrer")
                assert not door.exists()  # it has served
                assert [each for each in command_lines() if running.token in each] == []
                assert open_page().url == f"{running.base}/"  # the printed link still works
            assert running.said() == ""
        finally:
            stop(running)
        assert list(running.temporary.iterdir()) == []


def command_lines() -> list[str]:
    """What every process on this machine was started with, and finds around it, as far as it may be read."""
    found = []
    for file in [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]:
        with suppress(OSError):
            found.append(file.read_text(encoding="utf-8", errors="replace"))
    return found
