"""In a real browser: the address keeps every choice, nothing is recommended unasked, what has to be known is said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import PEOPLE, start, stop, welcome
from tests.web.walking import (
    ROLES,
    count_table,
    epsilon,
    expect,
    open_people,
    open_step,
    show_people,
    wait_until_shown,
)

pytestmark = pytest.mark.slow
Visit = Callable[..., Any]
COUNTS = "region,sex,illness,n\n" + "".join(
    f"r{place % 5},{'fm'[place % 2]},{'abc'[place % 3]},{3 + place % 7}\n" for place in range(30)
)


def choose(page: Any) -> None:
    """Some choices of a person, in two steps."""
    page.locator("#epsilon").fill("60")
    open_step(page, "decide")
    page.get_by_label("Worst case for one record, at most").fill("75")
    expect(page.locator("#verdict .answer")).to_contain_text("Admissible: epsilon from 0.001 to 1.09")
    wait_until_shown(page)


def check_choices(page: Any) -> None:
    """The same choices, wherever the address is opened."""
    expect(page.locator("#decide.open")).to_be_visible()
    expect(page.get_by_label("Worst case for one record, at most")).to_have_value("75")
    expect(page.locator("#verdict .answer")).to_contain_text("Admissible: epsilon from 0.001 to 1.09")
    expect(page.locator("#load-told")).to_contain_text("400 people in 18 groups by sex, age; sensitive job")
    wait_until_shown(page)
    assert epsilon(page) == "0.316"


class TestAddress:
    def test_a_reload_the_way_back_and_a_second_tab(self, visit: Visit) -> None:
        page = show_people(visit())
        choose(page)
        page.reload()
        check_choices(page)
        check_choices(visit(at=page.url))
        page.go_back()
        expect(page.locator("#see.open")).to_be_visible()
        page.go_forward()
        check_choices(page)

    def test_a_table_that_is_counted_again_keeps_later_choices(self, visit: Visit) -> None:
        """The address set a limit, the person changes it, and counts other columns: the change stays."""
        page = show_people(visit())
        choose(page)
        page.reload()
        check_choices(page)
        page.get_by_label("Worst case for one record, at most").fill("70")
        expect(page.locator("#verdict .answer")).to_contain_text("Admissible: epsilon from 0.001 to 0.847")
        open_step(page, "load")
        page.get_by_label("Bins of age").fill("10")
        count_table(page)
        open_step(page, "decide")
        expect(page.get_by_label("Worst case for one record, at most")).to_have_value("70")
        assert epsilon(page) == "0.316"

    def test_a_restarted_server(self, browser: Any, tmp_path: Path) -> None:
        """A file of the folder is counted again; a file that was uploaded is asked for, and its choices are kept."""
        running = start(tmp_path)
        try:
            with welcome(browser, running) as open_page:
                page = open_page(expected="Failed to load resource")
                show_people(page)
                choose(page)
                kept = page.url
                survey = tmp_path / "survey.csv"
                survey.write_text(PEOPLE, encoding="utf-8")
                open_step(page, "load")
                page.get_by_label("Choose a file").set_input_files(survey)
                expect(page.locator("#source-title")).to_have_text("survey.csv: 400 rows, 4 columns")
                page.get_by_label("Bins of age: a width").fill("7")
                page.get_by_role("button", name="Count the table").click()
                expect(page.locator("#load-told")).to_contain_text("survey.csv: 400 people in")
                expect(page.locator("#see-title")).to_be_focused()
                uploaded = page.url
                stop(running)
                shutil.rmtree(running.temporary)
                running = start(tmp_path, port=running.port)
                page.goto(running.link)
                page.goto(kept)
                page.reload()
                expect(page.locator("#restored")).to_have_text(
                    "The server no longer had this table, and has counted it again. Every choice is as it was."
                )
                check_choices(page)
                page.goto(uploaded)
                page.reload()
                expect(page.locator("#load-status")).to_contain_text("The server no longer has survey.csv")
                page.get_by_label("Choose a file").set_input_files(survey)
                expect(page.locator("#source-title")).to_have_text("survey.csv: 400 rows, 4 columns")
                expect(page.get_by_label("Bins of age: a width")).to_have_value("7")
        finally:
            stop(running)


class TestLoading:
    def test_roles_are_suggested(self, visit: Visit) -> None:
        page = visit()
        page.get_by_label("File", exact=True).select_option("people.csv")
        page.get_by_role("button", name="Open the file").click()
        for column, role in {"sex": "qid", "age": "qid", "job": "sensitive", "note": "unused"}.items():
            expect(page.get_by_role("radio", name=f"{column}: {ROLES[role]}")).to_be_checked()

    def test_counts_are_asked_about_before_counting(self, visit: Visit, tmp_path: Path) -> None:
        (tmp_path / "cells.csv").write_text(COUNTS, encoding="utf-8")
        page = visit()
        page.get_by_label("Choose a file").set_input_files(tmp_path / "cells.csv")
        expect(page.locator("#count-hint")).to_contain_text("Column n looks like counts of people.")
        page.get_by_role("button", name="Count the table").click()
        expect(page.locator("#count-status").get_by_role("alert")).to_contain_text("Say under “Each row is”")
        expect(page.get_by_label("Each row is")).to_be_focused()
        page.get_by_label("Each row is").select_option("in n")
        count_table(page)
        total = sum(int(line.rpartition(",")[2]) for line in COUNTS.splitlines()[1:])
        expect(page.locator("#load-told")).to_contain_text(f"{total} people")

    def test_one_person_can_have_several_rows(self, visit: Visit) -> None:
        """Asked first; the column of people and the number are kept by a reload, and reach the commands."""
        page = visit()
        open_people(page)
        expect(page.get_by_label("Column of people")).to_be_hidden()
        page.get_by_label("Can one person have several rows?").select_option("yes")
        page.get_by_role("button", name="Count the table").click()
        expect(page.locator("#count-status").get_by_role("alert")).to_contain_text("how many records of one person")
        expect(page.get_by_label("Most records of one person")).to_be_focused()
        page.get_by_label("Most records of one person").fill("2")
        page.get_by_label("Column of people").select_option("age")
        page.get_by_role("button", name="Count the table").click()
        expect(page.locator("#count-status").get_by_role("alert")).to_contain_text("age names people")
        page.get_by_label("Column of people").select_option("note")
        page.reload()
        expect(page.get_by_label("Column of people")).to_have_value("note")
        expect(page.get_by_label("Most records of one person")).to_have_value("2")
        count_table(page)
        expect(page.locator("#table-figures")).to_contain_text("At most 2 records of a person are kept.")
        expect(page.locator("#shell")).to_contain_text("--person note --contributions 2")


class TestDeciding:
    def test_nothing_is_recommended_without_a_limit_that_binds(self, visit: Visit) -> None:
        page = show_people(visit())
        open_step(page, "decide")
        expect(page.locator("#verdict")).to_contain_text("No limit is set: nothing is recommended.")
        expect(page.locator("#use-epsilon")).to_be_hidden()
        expect(page.locator("#limits .label.limit")).to_have_count(0)
        page.get_by_label("Revealed, at most").fill("90")
        expect(page.locator("#verdict")).to_contain_text("Nothing is recommended.")
        expect(page.locator("#verdict")).to_contain_text("No limit binds")
        expect(page.locator("#use-epsilon")).to_be_hidden()
        page.get_by_label("Revealed, at most").fill("150")
        expect(page.locator("#max-risk-lock")).to_have_text("Not used: it is not from 0 to 100.")
        expect(page.locator("#verdict")).to_contain_text("No limit is set")
        page.get_by_label("Revealed, at most").fill("")
        page.get_by_label("Because of their own record, at most").fill("0.05")  # finer than the arrows of the box
        expect(page.locator("#verdict")).to_contain_text(
            "at most 0.05% of any category revealed because of their own record"
        )
        expect(page.locator("#max-caused-lock")).to_be_empty()

    def test_harmful_values_narrow_what_is_learnt(self, visit: Visit, tmp_path: Path, pictures: Path) -> None:
        """Its limit and sentence count the values that are named; the address and the commands keep them."""
        rows = ["a,hiv"] * 40 + ["b,flu"] * 40 + ["c,hiv"] * 40 + ["c,flu"] * 400
        (tmp_path / "ill.csv").write_text("\n".join(["region,illness", *rows]), encoding="utf-8")
        page = visit(expected="422")
        page.get_by_label("Choose a file").set_input_files(tmp_path / "ill.csv")
        count_table(page)
        open_step(page, "decide")
        page.get_by_label("Learnt by an informed attacker, at most").fill("20")
        expect(page.locator("#verdict .answer")).to_contain_text("Admissible: epsilon from 0.001 to")
        page.get_by_label("Harmful values").fill("flu")
        page.keyboard.press("Tab")
        expect(page.locator("#verdict")).to_contain_text("at most 20% of any harmful category learnt")
        wait_until_shown(page)
        expect(page.locator("#shell")).to_contain_text("--max-certain 0.2 --harmful flu")
        expect(page.locator("#attacks")).to_contain_text("harmful 'illness'")
        page.locator("#decide").screenshot(path=pictures / "harmful.png")
        page.reload()
        expect(page.get_by_label("Harmful values")).to_have_value("flu")
        expect(page.locator("#verdict")).to_contain_text("at most 20% of any harmful category learnt")
        page.get_by_label("Harmful values").fill("measles")
        page.keyboard.press("Tab")
        expect(page.locator("#limit-status").get_by_role("alert")).to_contain_text("“Harmful values” must be values of")

    def test_what_a_policy_fixes_is_locked(self, browser: Any, tmp_path: Path) -> None:
        policy = '[policy]\nmax-risk = 0.2\nmax-people = 90\nmargin = 0.3\nmax-ceiling = 0.75\nform = "exact"\n'
        (tmp_path / "cellrisk.toml").write_text(policy, encoding="utf-8")
        running = start(tmp_path)
        try:
            with welcome(browser, running) as open_page:
                page = show_people(open_page())
                locked = {"max-risk": "20", "max-people": "90", "margin": "30", "max-ceiling": "75"}
                for box, value in {**locked, "form": "exact", "measure": "local"}.items():
                    expect(page.locator(f"#{box}")).to_have_value(value)
                    expect(page.locator(f"#{box}")).to_be_disabled()
                expect(page.get_by_label("Learnt by an informed attacker, at most")).to_be_enabled()
                open_step(page, "decide")
                expect(page.locator("#max-risk-lock")).to_have_text("Fixed by the policy")
                expect(page.locator("#policy-lock")).to_contain_text("cellrisk.toml")
                open_step(page, "act")
                page.locator("#observed-levels").check()
                page.locator("#epsilon").evaluate(
                    "slider => { slider.value = 110; slider.dispatchEvent(new Event('input')); }"
                )
                wait_until_shown(page)
                page.get_by_role("button", name="Make the release…").click()
                told = page.get_by_role("dialog")
                expect(told).to_contain_text("The policy asks for a worst case of at most")
                expect(told.get_by_role("button", name="Forbidden")).to_be_disabled()
        finally:
            stop(running)
