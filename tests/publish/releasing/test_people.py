"""Releases for people with several records: their noise, their words, and what one person more or less changes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import cellrisk as cr
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput
from tests.near import near

LEVELS = {"area": ["n", "s"], "ill": ["no", "yes"]}
PEOPLE = [("a", "n", "no"), ("a", "n", "yes"), ("a", "s", "yes"), ("a", "s", "no"), ("b", "n", "no"), (None, "s", "no")]
Row = tuple[Any, Any, Any]


def tabulate(rows: list[Row], contributions: int | None = 3, per_group: int | None = None) -> cr.FrequencyTable:
    frame = pd.DataFrame(rows, columns=["who", "area", "ill"])
    bound: dict[str, Any] = {"person": "who", "contributions": contributions, "per_group": per_group}
    return cr.tabulate(frame, "area", "ill", levels=LEVELS, outside="drop", **(bound if contributions else {}))


@pytest.mark.parametrize("unit", [Unit(1, enforced=True), Unit(3), Unit(3, 1), Unit(5, 2)])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_noise_is_that_of_opendp_for_the_unit(unit: Unit, neighbours: Any) -> None:
    twice = 1 if neighbours == "add-remove" else 2
    pure = cr.Geometric(0.7, neighbours=neighbours, unit=unit)
    assert pure.scale == near(twice * unit.contributions / 0.7)
    assert pure.to_opendp().map(twice * unit.contributions) == near(0.7)
    gaussian = cr.DiscreteGaussian(0.7, delta=1e-6, neighbours=neighbours, unit=unit)
    l2 = math.sqrt(twice) * unit.l2
    loss = gaussian.to_opendp().map(l2)
    assert loss == pytest.approx(gaussian.rho, rel=1e-9, abs=0)
    assert loss <= gaussian.rho


def test_a_release_names_its_unit_and_is_read_back(tmp_path: Path) -> None:
    made = cr.release(tabulate(PEOPLE, 3, 1), "geometric", epsilon=1.0)
    described = made.to_dict()
    assert described["unit"] == {"kind": "person", "contributions": 3, "per_group": 1, "enforced": True}
    assert described["mechanism"]["scale"] == near(3.0)
    assert described["noise"]["privacy_loss"]["epsilon"] == near(1.0)
    assert described["label"]["unit"].startswith("one person. At most 3 records of a person are kept")
    assert "(L1 = 3, L2 = 1.73205)" in described["label"]["neighbours"]
    assert "holds for one person whose records are added or removed" in " ".join(described["statements"])
    assert described["ceiling"]["even_two"] == near(1 - math.exp(-1) / 2)
    assert cr.Release.load(made.save(tmp_path / "made.csv")).mechanism == made.mechanism


def test_an_asserted_bound_is_said_to_be_asserted() -> None:
    frame = pd.DataFrame(PEOPLE, columns=["who", "area", "ill"])
    table = cr.tabulate(frame, "area", "ill", levels=LEVELS, outside="drop", contributions=4)
    described = cr.release(table, "geometric", epsilon=1.0).to_dict()
    assert described["unit"] == {"kind": "person", "contributions": 4, "per_group": 4, "enforced": False}
    assert "The bound is asserted, not checked" in " ".join(described["not_covered"])
    assert "asserted, not checked" in described["label"]["unit"]


def test_each_release_draws_the_records_anew_and_leaves_out_those_of_nobody() -> None:
    table = tabulate(PEOPLE, 1)
    drawn = {tuple(cr.release(table, "geometric", epsilon=60.0).frame["count"]) for _ in range(60)}
    assert {sum(counts) for counts in drawn} == {2}  # one record of a, one of b, none of those who are not named
    assert len(drawn) == 4  # each of the four records of a


MORE_PEOPLE = {
    "a record": [("c", "n", "no")],
    "as many as may be": [("c", "n", "no")] * 3,
    "more": [("c", area, ill) for area in "ns" for ill in ("no", "yes")] * 4,
    "records outside": [("c", "x", "no"), ("c", "n", "?")],
    "records with missing values": [("c", None, "no"), ("c", "n", None)],
    "records that name nobody": [(None, "n", "no")] * 5,
    "of somebody who is there": [("b", "s", "yes")] * 7,
}


@pytest.mark.parametrize("more", MORE_PEOPLE)
@pytest.mark.parametrize("start", [[], [("b", "n", "no")], PEOPLE], ids=["nobody", "one", "some"])
def test_one_person_more_changes_nothing_but_counts(start: list[Row], more: str) -> None:
    def made(rows: list[Row]) -> dict[str, Any]:
        frame = pd.DataFrame(rows, columns=["who", "area", "ill"]).astype(object)
        named: dict[str, Any] = {"person": "who", "contributions": 3}
        table = cr.tabulate(frame, "area", "ill", levels=LEVELS, outside="drop", **named)
        found = cr.release(table, "geometric", epsilon=1.0)
        keys = found.frame.drop(columns="count").astype(str).to_dict("list")
        return {**found.to_dict(), "keys": keys, "text": str(found).partition("\n")[0]}

    assert made([*start, *MORE_PEOPLE[more]]) == made(start)


def least_ratio(often: int, seldom: int, times: int) -> float:
    """Return what the ratio of two probabilities is at least, with a confidence of 99.8%."""
    low = stats.beta.ppf(0.001, often, times - often + 1)
    high = stats.beta.ppf(0.999, seldom + 1, times - seldom)
    return float(low / high)


@pytest.mark.parametrize("for_a_person", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_is_seen_of_a_person_keeps_the_guarantee(for_a_person: bool) -> None:
    """Counts of 2 and more show a person with three records; noise for one record shows them far too often."""
    times, shown = 400, []
    for rows in ([("a", "n", "yes")] * 5, [("b", "s", "no")]):
        table = tabulate(rows, 3)
        frame = pd.DataFrame(rows[:3], columns=["who", "area", "ill"])
        plain = cr.tabulate(frame, "area", "ill", levels=LEVELS, outside="drop")
        counts = table if for_a_person else plain
        made = [cr.release(counts, "geometric", epsilon=1.0).frame for _ in range(times)]
        shown.append(
            sum(int(frame[(frame.area == "n") & (frame.ill == "yes")]["count"].iloc[0] >= 2) for frame in made)
        )
    ratio = least_ratio(*shown, times)
    assert (ratio <= math.e) is for_a_person


def test_guarantees_for_a_record_and_for_a_person_do_not_add_up() -> None:
    frame = pd.DataFrame(PEOPLE, columns=["who", "area", "ill"])
    plain = cr.tabulate(frame, "area", "ill", levels=LEVELS, outside="drop")
    parents = cr.release(plain, "geometric", epsilon=1.0)
    with pytest.raises(InvalidInput) as refusal:
        cr.release(tabulate(PEOPLE), "geometric", epsilon=1.0, parents=parents)
    assert refusal.value.code == "mixed-units"


def test_a_mechanism_for_another_unit_is_refused() -> None:
    with pytest.raises(InvalidInput) as refusal:
        cr.release(tabulate(PEOPLE), cr.Geometric(1.0, unit=Unit(2)))
    assert refusal.value.code == "other-unit"
