"""The simulator of sets: intervals that hold, deviations within their errors, and many labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts.joint import count_together
from cellrisk.repeat.together.simulator import Simulator, find_spread, name_ways, simulate_rules
from tests.repeat.together.oracle import enumerate_set, geometric

TABLES: list[dict[str, Any]] = [{"qid": ["a", "c"]}, {"qid": ["b", "c"]}]


def make_people(people: int, labels: int) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    return pd.DataFrame({name: draw.integers(0, labels if name == "y" else 4, people) for name in "abcy"})


def simulate(frame: pd.DataFrame, found: cr.TogetherAssessment, draws: int, **asked: Any) -> dict[str, np.ndarray]:
    """(releases, 3) of each way of attack: right, named, caused."""
    joint = count_together(frame, [row.table.asked for row in found.tables], "y", **asked)
    simulator = Simulator(joint, [row.table.mechanism for row in found.tables])
    numbers = [simulator.read(*simulator.compare(released)) for released in simulator.draw(draws, seed=77)]
    return dict(zip(name_ways(len(found.tables)), np.concatenate(numbers).transpose(1, 0, 2), strict=True))


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
        joint = count_together(frame, [row.table.asked for row in found.tables], "y")
        right, *_ = simulate_rules(joint, [row.table.mechanism for row in found.tables], 500, seed=1000 + seed)
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
    for rule in ("elimination", "any"):
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
