"""Both linkage attacks held to enumeration, published figures and one table alone; the simulator held to both."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.counts.joint import count_together
from cellrisk.repeat.together.linkage_attacks import RULES, Simulator, find_spread
from tests.examples import examples
from tests.near import near
from tests.repeat.together.oracle import (
    Key,
    count_cells,
    enumerate_caused,
    enumerate_person,
    enumerate_set,
    geometric,
    laplace,
)

TWO = [
    {"sex": "f", "town": "a", "age": 30, "job": "x"},
    {"sex": "f", "town": "a", "age": 41, "job": "x"},
    {"sex": "f", "town": "b", "age": 30, "job": "y"},
    {"sex": "m", "town": "b", "age": 52, "job": "y"},
    {"sex": "m", "town": "b", "age": 30, "job": "y"},
    {"sex": "m", "town": "a", "age": 44, "job": "x"},
]
THREE = [
    {"sex": "f", "town": "a", "job": "x"},
    {"sex": "f", "town": "b", "job": "y"},
    {"sex": "m", "town": "b", "job": "z"},
    {"sex": "m", "town": "a", "job": "x"},
    {"sex": "m", "town": "a", "job": "z"},
]


def by_sex(person: dict[str, Any]) -> Any:
    return person["sex"]


def by_town(person: dict[str, Any]) -> Any:
    return person["town"]


def by_sex_if_old(person: dict[str, Any]) -> Any:
    return person["sex"] if person["age"] >= 40 else None


CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[Key], list[Callable[[int], float]]]] = {
    "two tables": (
        TWO,
        [{"qid": "sex", "epsilon": 1.0}, {"qid": "town", "epsilon": 0.4}],
        [by_sex, by_town],
        [geometric(1.0), geometric(0.4)],
    ),
    "other noise, other threshold": (
        TWO,
        [
            {"qid": "sex", "mechanism": "laplace", "epsilon": 2.0, "threshold": 1.5},
            {"qid": ["town"], "mechanism": "geometric", "epsilon": 1.0},
        ],
        [by_sex, by_town],
        [laplace(2.0, 1.5), geometric(1.0)],
    ),
    "a part of the people": (
        TWO,
        [
            {"qid": "sex", "where": {"age": {"from": 40}}, "epsilon": 1.0},
            {"qid": "town", "epsilon": 1.5},
            {"qid": "sex", "epsilon": 0.7},
        ],
        [by_sex_if_old, by_town, by_sex],
        [geometric(1.0), geometric(1.5), geometric(0.7)],
    ),
    "three labels": (
        THREE,
        [{"qid": "sex", "epsilon": 1.0}, {"qid": "town", "epsilon": 2.0}],
        [by_sex, by_town],
        [geometric(1.0), geometric(2.0)],
    ),
}


def assess(people: list[dict[str, Any]], tables: list[dict[str, Any]], **more: Any) -> cr.TogetherAssessment:
    return cr.assess_together(pd.DataFrame(people), tables, "job", **more)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES)
def test_every_pattern_of_noise(case: str, rule: str) -> None:
    people, tables, keys, survive = CASES[case]
    labels = sorted({person["job"] for person in people})
    found = assess(people, tables).rule(rule)
    expected = enumerate_set(people, keys, "job", labels, survive, rule)
    assert (found.right, found.named) == near((expected["right"], expected["named"]))
    assert found.sd_error is not None
    assert abs(found.sd - expected["sd"]) < 5 * found.sd_error
    assert found.caused == near(enumerate_caused(people, keys, "job", labels, survive, rule))
    assert found.precision == near(expected["right"] / expected["named"])
    counts = count_cells(people, keys, "job")
    without_noise = [lambda count: float(count > 0)] * len(keys)
    exposed = sum(enumerate_person(person, counts, keys, "job", labels, without_noise, rule) for person in people)
    assert found.raw == round(exposed)


@pytest.mark.parametrize("case", CASES)
def test_chance_is_what_endless_noise_leaves(case: str) -> None:
    people, tables, _, _ = CASES[case]
    found = assess(people, tables)
    drowned = assess(people, [{**table, "epsilon": 1e-9} for table in tables])
    for rule in RULES:
        assert found.rule(rule).chance == pytest.approx(drowned.rule(rule).right, rel=1e-6, abs=0)


@pytest.mark.parametrize("case", CASES)
def test_each_collection_is_the_set_of_these_tables_alone(case: str) -> None:
    """Each table beside the set, the set without it, the largest figure caused, and the table that adds most."""
    people, tables, _, _ = CASES[case]
    found = assess(people, tables)
    numbers = range(1, len(tables) + 1)
    some = [each for size in numbers for each in combinations(numbers, size)]
    assert set(found.collections) == set(some)
    alone = {each: assess(people, [tables[number - 1] for number in each]).rule() for each in some}
    for each, rule in alone.items():
        figures = found.collections[each]
        assert (figures.right, figures.named, figures.caused) == near((rule.right, rule.named, rule.caused))
    for row in found.tables:
        own = alone[row.table.number,]
        assert (row.alone.right, row.alone.named, row.alone.caused) == near((own.right, own.named, own.caused))
        assert (row.alone.chance, row.alone.raw) == near((own.chance, own.raw))
        rest = alone[tuple(number for number in numbers if number != row.table.number)]
        assert row.without is not None
        assert (row.without.right, row.without.caused) == near((rest.right, rest.caused))
    assert alone[found.largest].caused == near(max(rule.caused for rule in alone.values()))
    most = found.adds_most
    assert most is not None
    assert most.without is not None
    assert most.without.caused == near(min(row.without.caused for row in found.tables if row.without))


@pytest.fixture(scope="module")
def published() -> Any:
    return cr.datasets.adult_as_published()


BINS = {"age": 5, "hours-per-week": 10}
PAIRS = [["age", "sex"], ["education", "sex"], ["age", "education"]]
TRIPLES = [
    ["age", "education", "sex"],
    ["age", "relationship", "hours-per-week"],
    ["education", "race", "hours-per-week"],
]
SIX = [["age", "education", "sex"], ["age", "race", "hours-per-week"], ["education", "race", "hours-per-week"]]


def of_adult(source: Any, columns: list[list[str]], sensitive: str = "income", **more: Any) -> cr.TogetherAssessment:
    used = {name for each in columns for name in each}
    bins = {name: width for name, width in BINS.items() if name in used}
    return cr.assess_together(source, [{"qid": each} for each in columns], sensitive, bins=bins, **more)


@pytest.mark.parametrize(
    ("columns", "mechanism", "any_", "elimination", "raw"),
    [
        (PAIRS, "laplace", (2134.54, 332.673, 6.95274), (2130.56, 2147.66, 12.8027, 332.483), 2370),
        (TRIPLES, "laplace", (4306.51, 243.738, 79.9938), (4251.23, 4353.29, 140.898, 242.768), 4545),
        (TRIPLES, "geometric", (4348.86, 226.727, 86.3754), (4298.49, 4388.04, 152.094, 225.932), 4545),
    ],
)
def test_figures_of_adult(
    published: Any,
    columns: list[list[str]],
    mechanism: str,
    any_: tuple[float, ...],
    elimination: tuple[float, ...],
    raw: int,
) -> None:
    found = of_adult(published, columns, mechanism=mechanism, epsilon=1.0)
    one, two = found.rule("any"), found.rule("elimination")
    assert (one.right, one.caused) == pytest.approx((any_[0], any_[2]), rel=5e-6, abs=0)
    assert (two.right, two.named, two.caused) == pytest.approx(elimination[:3], rel=5e-6, abs=0)
    for rule, deviation in ((one, any_[1]), (two, elimination[3])):
        assert rule.sd_error is not None
        assert rule.sd_error < 0.06 * rule.sd
        assert abs(rule.sd - deviation) < 5 * rule.sd_error
    assert {each.raw for each in found.rules} == {raw}
    assert [each.chance / 27504 for each in found.rules] == near([0.109375, 0.578125])
    if columns is PAIRS:
        assert found.refinement is not None
        refined = {row.what: row for row in found.refinement.rows}
        assert abs(refined["table 3 alone"].right - 1682.69) < 5 * refined["table 3 alone"].error
    if mechanism == "geometric":
        assert [each.alone.caused for each in found.tables] == pytest.approx([28.011, 62.112, 47.919], rel=1e-5, abs=0)
        assert found.adds_most is found.tables[1]
        assert found.largest == (1, 2, 3)


def test_figures_of_six_labels(published: Any) -> None:
    found = of_adult(published, SIX, "relationship", epsilon=1.0)
    assert found.rule("any").right == pytest.approx(122.420, rel=5e-6, abs=0)
    lead = found.rule()
    assert (lead.right, lead.named, lead.caused) == pytest.approx((318.656, 421.004, 109.388), rel=5e-6, abs=0)
    assert (found.rule("any").raw, lead.raw) == (375, 529)


def test_one_table_is_what_assess_says(published: Any) -> None:
    """Right, deviation, caused, named, chance, raw and ceiling of a set of one table."""
    found = of_adult(published, [["age", "education"]], epsilon=1.0)
    table = cr.tabulate(published, ["age", "education"], "income", bins={"age": 5})
    told = cr.assess(table, epsilon=1.0, measures="local").to_dict()
    decision = told["decision"][0]
    people = cr.assess(table, epsilon=1.0, measures="local")
    exposure = people.figures[0]
    for each in [*found.rules, found.tables[0].alone]:
        assert each.caused == near(decision["caused"]["people"])
        assert each.bound == near(decision["caused"]["bound"])
        assert each.raw == table.profiles("income").n_exposed
        assert each.chance == near(27504 / 4)
        if each.sd_error is None:
            assert each.sd == near(exposure.people.deviation)
        else:
            assert abs(each.sd - exposure.people.deviation) < 5 * each.sd_error
        assert each.right / 27504 == near(people.value(measure="local", form="tight", weights="records"))
    assert found.ceiling is not None
    assert found.ceiling.even_two == near(cr.ceiling("geometric", epsilon=1.0).even_two)


@settings(max_examples=examples(8))
@given(data=st.data())
def test_caused_is_never_negative_and_within_its_bound(data: st.DataObject) -> None:
    """caused <= (1 - e^-sum epsilon) right, whatever the people, labels, noise and thresholds."""
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=2, max_size=12))
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "y"])
    tables = [
        {
            "qid": qid,
            "epsilon": data.draw(st.floats(0.05, 5.0)),
            "threshold": data.draw(st.sampled_from([0.5, 1.5, 3.5])),
            "mechanism": data.draw(st.sampled_from(["geometric", "laplace"])),
        }
        for qid in ("a", "b", "c")
    ]
    found = cr.assess_together(frame, tables, "y", levels={"y": [0, 1, 2]})
    assert tuple(each.rule for each in found.rules) == RULES
    for each in found.rules:
        assert 0 <= each.caused <= each.bound * (1 + 1e-9) + 1e-12
        assert each.right <= each.named * (1 + 1e-9)
        assert found.ceiling is not None
        assert each.caused <= found.records * found.ceiling.advantage * (1 + 1e-9) + 1e-12
        assert 0 <= each.low <= each.high <= len(rows)
    for some in found.collections.values():
        assert some.caused >= 0


@pytest.mark.parametrize("mechanism", ["gaussian-analytic", "discrete-gaussian"])
def test_caused_is_within_its_bound_where_there_is_a_delta(mechanism: str) -> None:
    """caused <= (1 - e^-epsilon) right + e^-epsilon delta n, epsilon and delta being those of all tables."""
    tables = [{"qid": "sex"}, {"qid": "town"}]
    found = assess(TWO, tables, mechanism=mechanism, epsilon=0.3, delta=1e-3)
    assert tuple(each.rule for each in found.rules) == RULES
    for each in found.rules:
        free = math.exp(-found.cost.epsilon) * found.cost.delta * len(TWO)
        assert 0 < each.caused <= -math.expm1(-found.cost.epsilon) * each.right + free
        assert each.caused <= each.bound


def test_noise_with_a_limit_has_more_than_chance() -> None:
    """Chance under a mechanism whose noise stays finite as epsilon falls is computed with that noise."""
    gaussian = {"mechanism": "gaussian-analytic", "epsilon": 1.0, "delta": 0.1}
    tables = [{"qid": "sex", **gaussian}, {"qid": "town", **gaussian}]
    found = assess(TWO, tables)
    limit = cr.AnalyticGaussian(epsilon=1e-9, delta=0.1)
    near_limit = assess(TWO, [{"qid": "sex", "mechanism": limit}, {"qid": "town", "mechanism": limit}])
    for rule in RULES:
        assert found.rule(rule).chance == pytest.approx(near_limit.rule(rule).right, rel=1e-6, abs=0)


def test_a_very_noisy_table_hinders_elimination(published: Any) -> None:
    tables = [
        {"qid": TRIPLES[0], "epsilon": 3.0},
        {"qid": TRIPLES[1], "epsilon": 3.0},
        {"qid": TRIPLES[2], "epsilon": 0.001},
    ]
    found = cr.assess_together(published, tables, "income", bins=BINS)
    assert found.largest == (1, 2)
    assert "2 tables of them (1, 2) would reveal more" in found.details
    alone = cr.assess_together(published, tables[:2], "income", bins=BINS)
    assert found.collections[1, 2].caused == near(alone.rule().caused)
    assert found.tables[2].without is not None
    assert found.tables[2].without.right == near(alone.rule().right)


def test_more_tables_than_are_compared_in_every_way() -> None:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(draw.integers(0, 2, (30, 8)), columns=[*"abcdefg", "y"])
    found = cr.assess_together(frame, [{"qid": name} for name in "abcdefg"], "y", epsilon=1.0)
    assert len(found.collections) == 7 + 7 + 1
    assert "Of more than 6 tables" in found.details
    rest = cr.assess_together(frame, [{"qid": name} for name in "bcdefg"], "y", epsilon=1.0)
    assert found.tables[0].without is not None
    assert found.tables[0].without.caused == near(rest.rule().caused)


TABLES: list[dict[str, Any]] = [{"qid": ["a", "c"]}, {"qid": ["b", "c"]}]


def make_people(people: int, labels: int) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    return pd.DataFrame({name: draw.integers(0, labels if name == "y" else 4, people) for name in "abcy"})


def simulate(
    frame: pd.DataFrame, found: cr.TogetherAssessment, draws: int, seed: int = 77, **asked: Any
) -> dict[str, np.ndarray]:
    """(releases, 3) of each way of attack: right, named, caused."""
    joint = count_together(frame, [row.table.asked for row in found.tables], "y", **asked)
    simulator = Simulator(joint, [row.table.mechanism for row in found.tables])
    numbers = [simulator.read(*simulator.compare(released)) for released in simulator.draw(draws, seed)]
    ways = *RULES, *(f"table {row.table.number} alone" for row in found.tables)
    return dict(zip(ways, np.concatenate(numbers).transpose(1, 0, 2), strict=True))


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
@pytest.mark.parametrize("labels", [2, 4, 11, 70])
def test_intervals_and_means_by_other_releases(mechanism: str, labels: int) -> None:
    """At least 95% of releases drawn with another seed lie in the interval; exact means are theirs within the error."""
    frame = make_people(300, labels)
    found = cr.assess_together(
        frame, TABLES, "y", mechanism=mechanism, epsilon=1.0, levels={"y": [*range(labels)]}, seed=1
    )
    drawn = simulate(frame, found, 4000, levels={"y": [*range(labels)]})
    rows = [(rule.rule, rule) for rule in found.rules]
    rows += [(f"table {row.table.number} alone", row.alone) for row in found.tables]
    for way, figures in rows:
        for numbers, mean in zip(drawn[way].T, (figures.right, figures.named, figures.caused), strict=True):
            assert abs(numbers.mean() - mean) < 5 * numbers.std() / math.sqrt(4000) + 5 * math.sqrt(mean / 4000)
        right = drawn[way][:, 0]
        # 500 releases gave the ends: the share between them varies with a deviation of about 0.01
        assert np.mean((right >= figures.low) & (right <= figures.high)) >= 0.92
        if figures.sd_error is not None:
            other = find_spread(right, figures.right, 300)
            assert abs(other["sd"] - figures.sd) < 5 * math.hypot(other["sd_error"], figures.sd_error)


def test_intervals_cover_on_average() -> None:
    """Over many seeds, 95% of releases lie in the interval, or a little more: numbers of people are whole."""
    frame = make_people(300, 2)
    covered = []
    for seed in range(30):
        found = cr.assess_together(frame, TABLES, "y", epsilon=0.5, seed=seed)
        right = simulate(frame, found, 500, seed=1000 + seed)["elimination"][:, 0]
        lead = found.rule()
        covered.append(np.mean((right >= lead.low) & (right <= lead.high)))
    assert 0.95 - 4 * 0.0023 < np.mean(covered) < 0.98  # each share varies by about 0.0126, and 30 of them by 0.0023


def test_many_releases_are_those_of_every_pattern() -> None:
    people = [dict(zip("abcy", row, strict=True)) for row in ("pqux", "pquy", "prvy", "sqvx", "sruy")]
    tables = [{"qid": "a"}, {"qid": "b", "where": {"c": "u"}}]
    keys = [lambda person: person["a"], lambda person: person["b"] if person["c"] == "u" else None]
    frame = pd.DataFrame(people)
    found = cr.assess_together(frame, tables, "y", epsilon=1.0)
    drawn = simulate(frame, found, 20_000)
    for rule in RULES:
        expected = enumerate_set(people, keys, "y", "xy", [geometric(1.0)] * 2, rule)
        right, named, _ = drawn[rule].T
        assert abs(right.mean() - expected["right"]) < 5 * expected["sd"] / math.sqrt(20_000)
        assert abs(named.mean() - expected["named"]) < 5 * named.std() / math.sqrt(20_000)
        spread = find_spread(right, expected["right"], 5)
        assert abs(spread["sd"] - expected["sd"]) < 5 * spread["sd_error"]


def test_a_number_that_never_varied_has_the_largest_error_that_its_mean_allows() -> None:
    spread = find_spread(np.zeros(500), 1e-6, 100)
    assert spread == {"sd": 0.0, "sd_error": pytest.approx(1e-2, rel=1e-12, abs=0), "low": 0, "high": 0}


def test_the_same_seed_gives_the_same_answer() -> None:
    frame = make_people(100, 3)
    first, second, other = (
        cr.assess_together(frame, TABLES, "y", epsilon=1.0, seed=seed).to_dict() for seed in (1, 1, 2)
    )
    assert first == second
    assert first["rules"][0]["sd"] != other["rules"][0]["sd"]
    assert first["rules"][0]["right"] == other["rules"][0]["right"]


def test_people_who_are_almost_never_named_are_left_out_of_a_simulation() -> None:
    """Large counts make most rows certain to be missed; the spread of the others is the same."""
    small, large = make_people(60, 2), pd.DataFrame({"a": [9] * 400, "b": [9] * 400, "c": [9] * 400, "y": [0, 1] * 200})
    frame = pd.concat([small, large])
    found = cr.assess_together(frame, TABLES, "y", epsilon=1.0)
    drawn = simulate(frame, found, 4000)
    lead = found.rule()
    other = find_spread(drawn["elimination"][:, 0], lead.right, 460)
    assert lead.sd_error is not None
    assert abs(other["sd"] - lead.sd) < 5 * math.hypot(other["sd_error"], lead.sd_error)
