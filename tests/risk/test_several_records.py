"""Assessments, curves and choices for people with several records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from tests.near import near


def join(result: object) -> str:
    """What it prints, on one line."""
    return " ".join(str(result).split())


def make_frame(seed: int = 0, people: int = 400) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    who = np.sort(generator.integers(0, people, 3 * people))
    area = generator.integers(0, 80, people)[who]
    ill = generator.choice(["flu", "cold", "none"], len(who), p=[0.1, 0.3, 0.6])
    return pd.DataFrame({"who": who, "area": area, "ill": ill})


def tabulate(contributions: int = 3, *, asserted: bool = False, **options: Any) -> cr.FrequencyTable:
    named = {} if asserted else {"person": "who"}
    return cr.tabulate(make_frame(), "area", "ill", contributions=contributions, **named, **options)


def attacker(document: dict[str, Any], name: str) -> dict[str, Any]:
    return dict(next(row for row in document["attackers"] if row["attack"] == name))


def test_figures_are_of_people_and_the_papers_measures_of_records() -> None:
    table = tabulate()
    found = cr.assess(table, "geometric", epsilon=1.0)
    document = found.to_dict()
    people = make_frame()["who"].nunique()
    assert document["unit"] == {"kind": "person", "contributions": 3, "per_group": 3, "enforced": True}
    assert attacker(document, "any")["own"] == near(people * math.tanh(0.5))
    assert {*document["decision"][0]} == {"sensitive", "ceiling", "belief"}
    assert "people" not in document
    assert document["records"]["ill"]["mean"] <= table.n_records
    for name in ("homogeneity", "plurality", "best-guess", "informed"):
        row = attacker(document, name)
        assert {*row["by_category"]} == {"cold", "flu", "none"}
        assert 0 <= row["revealed"] <= people
        assert abs(row["own"]) <= people * math.tanh(0.5)
        assert row["most"] <= math.tanh(0.5)
        assert row["without"] == near(row["revealed"] - row["own"])
    text = join(found)
    assert f"{people} people with {table.n_records:,} records in {table.n_cells} groups" in text
    assert "because of their own records, at least" in text
    assert "At most 3 records of a person are kept. They were drawn with seed 0." in text


def test_a_limit_binds_on_people() -> None:
    table = tabulate()
    choice = cr.choose(table, max_caused=0.02)
    assert choice.epsilon is not None
    made = cr.assess(table, "geometric", epsilon=choice.epsilon).to_dict()
    for row in made["attackers"][:-1]:
        assert all(part["own"] <= 0.02 * part["people"] + 1e-9 for part in row["by_category"].values())
    assert choice.to_dict()["unit"]["contributions"] == 3
    assert all("records" in each and "caused" not in each for each in choice.to_dict()["alternatives"])
    person = cr.choose(table, max_person=0.05)
    assert person.exact_epsilon is not None
    assert attacker(cr.assess(table, "geometric", epsilon=person.exact_epsilon).to_dict(), "plurality")["most"] <= 0.05


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_ceilings_follow_from_the_guarantee(neighbours: Any) -> None:
    table = tabulate()
    found = cr.assess(table, "geometric", epsilon=1.0, neighbours=neighbours).figures[0].ceiling
    alone = compose_ceiling([cr.Loss.pure(1.0, neighbours)], labels=3)
    assert found.even_two == pytest.approx(alone.even_two, rel=1e-6, abs=0)
    assert found.even <= alone.even
    assert found.advantage == pytest.approx(math.tanh(0.5), rel=1e-6, abs=0)
    assert "Worst case for one person" in found.headline
    gaussian = cr.ceiling(cr.DiscreteGaussian(1.0, delta=1e-3, unit=table.unit))
    assert gaussian.advantage == near((math.e - 1 + 2e-3) / (math.e + 1))
    assert gaussian.advantage < gaussian.even_two * 2 - 1


def test_an_asserted_bound_has_guarantees_and_no_figures_of_people() -> None:
    table = tabulate(asserted=True)
    assert table.n_records == len(make_frame())
    found = cr.assess(table, "geometric", epsilon=1.0)
    assert found.to_dict()["unit"] == {"kind": "person", "contributions": 3, "per_group": 3, "enforced": False}
    assert found.to_dict()["attackers"] == []
    assert "it is not known which records are of one person" in str(found)
    assert "asserted, not checked" in join(found)
    assert "asserted, not checked" in join(cr.curve(table, epsilon=[1.0]))
    choice = cr.choose(table, max_posterior="5:20")
    assert choice.exact_epsilon == pytest.approx(math.log(0.2 * 0.95 / (0.05 * 0.8)) / 2, rel=1e-6, abs=0)
    assert "asserted, not checked" in join(choice)
    with pytest.raises(InvalidInput) as refusal:
        cr.choose(table, max_caused=0.01)
    assert refusal.value.code == "attacks-unknown"


REFUSED: dict[str, Any] = {
    "explain": lambda table: cr.explain(table, "geometric", epsilon=1.0),
    "simulate": lambda table: cr.simulate(table, "geometric", epsilon=1.0, releases=2),
    "publish_risk": lambda table: cr.publish_risk(table, "geometric", epsilon=1.0, risk_epsilon=0.1),
    "average": lambda table: cr.assess(table, "geometric", epsilon=1.0, releases=2),
    "caused along epsilon": lambda table: cr.curve(table, measures="caused"),
    "max_people": lambda table: cr.choose(table, max_people=5),
    "unions": lambda table: cr.assess(table, "geometric", epsilon=1.0, unions="flu+cold").to_dict(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_known_for_one_record_alone_is_refused(what: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        REFUSED[what](tabulate(levels={"ill": ["flu", "cold", "none"]}))
    assert refusal.value.code == "several-records"


def test_harmful_values_alone_are_learnt() -> None:
    rows = [
        attacker(cr.assess(tabulate(), "geometric", epsilon=20.0, harmful=harmful, certainty=0.6).to_dict(), "informed")
        for harmful in (None, "flu")
    ]
    assert rows[1]["learnt"] <= rows[0]["learnt"]
    assert rows[1]["harmful"] == ["flu"]
