"""Figures to decide by along a sequence: against the oracle, enumeration, `assess`, and limits on the next release."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences import Step, assess_sequence, largest_epsilon
from tests.near import near
from tests.repeat.sequences import oracle
from tests.repeat.sequences.people import make_people, make_steps, tabulate, tell

ONE = {
    "laplace": cr.Laplace(epsilon=0.7),
    "geometric, a threshold": cr.Geometric(epsilon=1.0, threshold=2.5),
    "replace": cr.Geometric(epsilon=1.0, neighbours="replace"),
    "gaussian": cr.AnalyticGaussian(epsilon=0.8, delta=1e-3),
}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return tabulate(make_people())


@pytest.mark.parametrize("mechanism", ONE.values(), ids=ONE.keys())
def test_one_release_is_what_assess_says(table: cr.FrequencyTable, mechanism: cr.Mechanism) -> None:
    found = assess_sequence(table, [Step(mechanism, "job")])
    [decision] = [each for each in cr.assess(table, mechanism).to_dict()["decision"] if each["sensitive"] == "job"]
    [row] = found.to_dict()["releases"]
    for name in ("people", "share", "sd", "low", "high", "bound", "cap"):
        assert row["caused"][name] == pytest.approx(decision["caused"][name], rel=1e-9, abs=0), name
    assert row["overall_caused"]["max"] == pytest.approx(decision["caused"]["share"], rel=1e-9, abs=0)
    assert row["ceiling"]["even_two"] == near(decision["ceiling"]["even_two"])
    assert found.ceiling is not None
    assert (found.ceiling.even, found.ceiling.labels) == (near(decision["ceiling"]["even"]), 3)
    assert found.ceiling.exact
    assert "are exact: there is one release" in str(found)


@pytest.mark.parametrize(
    "told",
    ["0.5 job sex; 0.4 - town; 0.3 job sex town age", "0.2 job; 0.3 pay; 1.5 job", "0.01 job sex; 3 job; 20 job"],
)
def test_caused_is_kept_person_by_person(table: cr.FrequencyTable, told: str) -> None:
    releases = tell(told)
    expected = oracle.follow(make_people().to_dict("records"), releases, risk_of=oracle.cell_caused)
    found = assess_sequence(table, make_steps(releases), measure="shrinkage", form="exact")
    for row, each in zip(found.rows, expected, strict=True):
        assert row.overall_caused.max_records == pytest.approx(each["max_records"], rel=1e-10, abs=0)
        assert row.overall_caused.sum_records == pytest.approx(each["sum_records"], rel=1e-10, abs=0)
        if row.caused is None:
            assert each["records"] is None
        else:
            assert row.caused.share == pytest.approx(each["records"], rel=1e-10, abs=0)
            assert row.caused.people <= min(row.caused.bound, row.caused.cap)
    shares = [row.overall_caused.max_records for row in found.rows]
    assert shares == sorted(shares)


def enumerate_ceiling(epsilons: list[float]) -> float:
    """Two even labels through geometric noise: every count's likelihood ratio is e^epsilon or e^-epsilon."""
    counts = [epsilon for epsilon in epsilons for _ in range(2)]
    success = 0.0
    for signs in itertools.product((1, -1), repeat=len(counts)):
        one = math.prod(1 / (1 + math.exp(-sign * epsilon)) for sign, epsilon in zip(signs, counts, strict=True))
        other = math.prod(1 / (1 + math.exp(sign * epsilon)) for sign, epsilon in zip(signs, counts, strict=True))
        success += 0.5 * max(one, other)
    return success


def test_the_ceiling_along_the_releases_is_that_of_enumeration(table: cr.FrequencyTable) -> None:
    epsilons = [0.3, 0.5, 1.1]
    found = assess_sequence(table, [Step(cr.Geometric(epsilon), "pay") for epsilon in epsilons])
    for number, row in enumerate(found.rows, start=1):
        assert row.ceiling is not None
        expected = enumerate_ceiling(epsilons[:number])
        assert expected - 1e-12 <= row.ceiling.even_two <= expected + 2e-4
        assert row.ceiling.exact
    assert "some attacker reaches it" in str(found)
    several = assess_sequence(table, [Step(cr.Geometric(0.3), name) for name in ("pay", "job")])
    assert several.rows[-1].ceiling is not None
    assert not several.rows[-1].ceiling.exact
    assert "composed: an upper bound" in str(several)


def test_a_loss_whose_noise_is_not_known_has_a_bound_or_a_reason(table: cr.FrequencyTable) -> None:
    known = Step(cr.Geometric(0.5), "pay")
    pure = assess_sequence(table, [known, Step(Loss.pure(0.5), "pay")], assess_as="laplace")
    assert pure.rows[-1].ceiling is not None
    assert not pure.rows[-1].ceiling.exact
    steps = [known, Step(Loss.zcdp(0.1), "pay")]
    found = assess_sequence(table, steps, assess_as="gaussian-analytic", total_delta=1e-6)
    document = json.loads(json.dumps(found.to_dict()))["releases"][-1]
    assert 0.5 < document["ceiling"]["even_two"] < 1
    assert not document["ceiling"]["exact"]
    assert document["caused"]["cap"] == near(60 * document["ceiling"]["advantage"])


def after(table: cr.FrequencyTable, past: list[Step], epsilon: float, attribute: str) -> tuple[float, float]:
    """Caused and the ceiling with the next release at an epsilon, by the whole sequence."""
    row = assess_sequence(table, [*past, Step(cr.Geometric(epsilon), attribute)]).rows[-1]
    assert row.ceiling is not None
    return row.overall_caused.max_records, row.ceiling.even_two


def test_limits_on_caused_and_ceiling_end_where_the_whole_sequence_does(table: cr.FrequencyTable) -> None:
    past = [Step(cr.Geometric(0.1), "pay")]
    limit = after(table, past, 0.8, "job")[0]
    found = largest_epsilon(table, past, attribute="job", max_caused=limit)
    assert found.binding == ("caused",)
    assert found.epsilon == pytest.approx(0.8, rel=1e-6, abs=0)
    assert found.then("caused") is not None
    assert found.then("caused") <= limit < after(table, past, found.epsilon * (1 + 1e-6), "job")[0]
    assert [low for low, _ in found.admissible] == [0.001]
    limit = after(table, past, 0.6, "job")[1]
    both = largest_epsilon(table, past, attribute="job", max_ceiling=limit, max_caused=0.9)
    assert both.binding == ("ceiling",)
    assert both.epsilon == pytest.approx(0.6, rel=1e-5, abs=0)
    assert both.ceiling is not None
    assert both.ceiling.even_two <= limit
    alone = largest_epsilon(None, past, attribute="job", max_ceiling=limit)
    assert alone.epsilon == near(both.epsilon)
    assert (alone.then("risk"), alone.sequence, alone.before) == (None, None, None)
    assert "raw data" not in str(alone)


def test_more_privacy_is_never_inadmissible_where_caused_falls_again() -> None:
    """Of two people alone in a cell, caused is 2 a (1 - a)/(1 + a)^2: 0 at both ends, 1/4 at epsilon ln 3."""
    frame = pd.DataFrame({"x": ["cell"], "y": ["a"], "n": [2]})
    pair = cr.tabulate(frame, "x", "y", count="n", levels={"y": ["a", "b"]})
    found = largest_epsilon(pair, [], attribute="y", max_caused=0.1)
    a = math.exp(-found.epsilon)  # type: ignore[operator]
    assert a * (1 - a) / (1 + a) ** 2 == pytest.approx(0.1, rel=1e-5, abs=0)
    assert found.epsilon < math.log(3)  # type: ignore[operator]
    assert len(found.admissible) == 1
    assert after(pair, [], 50.0, "y")[0] < 0.1  # and yet not admissible, as epsilons below it are not
    peak = largest_epsilon(pair, [], attribute="y", max_caused=0.126)
    assert (peak.epsilon, peak.binding, peak.admissible) == (None, (), ((0.001, 100.0),))
    assert "No limit binds" in peak.headline
    assert "nothing is recommended" in peak.why


def test_risk_and_the_others_hold_together(table: cr.FrequencyTable) -> None:
    risk = largest_epsilon(table, [], attribute="job", max_risk=0.2)
    caused = largest_epsilon(table, [], attribute="job", max_caused=after(table, [], 0.5, "job")[0])
    both = largest_epsilon(table, [], attribute="job", max_risk=0.2, max_caused=caused.maxima["max_caused"])
    grid = np.geomspace(1e-3, 100, 60)

    def inside(found: Any, epsilon: float) -> bool:
        return any(low <= epsilon <= high for low, high in found.admissible)

    for epsilon in grid:
        assert inside(both, epsilon) == (inside(risk, epsilon) and inside(caused, epsilon))
    never = largest_epsilon(table, [Step(cr.Geometric(5.0), "job")], attribute="pay", max_caused=1e-4)
    assert (never.epsilon, never.admissible) == (None, ())
    assert "epsilon 1e-06 is too much already" in never.headline


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ("no limit was given", {}),
        ("max_caused must be a number above 0", {"max_caused": 0.0}),
        ("max_ceiling must be a number above 0.5", {"max_ceiling": 0.5}),
        ("max_ceiling must be a number above 0.5", {"max_ceiling": 1.0}),
        ("max_ceiling must be a number above 0.5", {"max_ceiling": "high"}),
    ],
)
def test_bad_limits_are_refused(table: cr.FrequencyTable, words: str, limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=words):
        largest_epsilon(table, [], attribute="job", **limits)


def test_what_needs_a_table_or_a_ceiling_is_refused(table: cr.FrequencyTable) -> None:
    with pytest.raises(InvalidInput, match="need a table"):
        largest_epsilon(None, [], attribute="job", max_caused=0.1, max_ceiling=0.8)
    past = [Step(cr.DiscreteGaussian(epsilon=1e-5, delta=1e-6), "pay")] * 2
    with pytest.raises(InvalidInput, match="no ceiling"):
        largest_epsilon(None, past, attribute="job", max_ceiling=0.8)


def test_losses_are_composed_once_each(table: cr.FrequencyTable) -> None:
    losses = [Loss.of(cr.Geometric(epsilon=0.3)), Loss.of(cr.Laplace(epsilon=0.4))]
    steps = [Step(loss, "job") for loss in losses]
    found = assess_sequence(table, steps)
    assert found.ceiling is not None
    assert found.ceiling.even == near(compose_ceiling(losses, labels=3).even)
