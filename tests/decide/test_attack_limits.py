"""Limits on what attackers learn: against every release written out, and against tables that hide people at risk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError
from tests.decide.oracle import Attackers
from tests.tables import from_counts

PRIOR = ((0.4, 0.15), 0.9)
BELIEF = "0.4,0.15/0.9"


def draw_counts(seed: int) -> Any:
    generator = np.random.default_rng(seed)
    sizes = generator.choice([1, 2, 3, 6, 20], size=(int(generator.integers(3, 9)), 2))
    counts = generator.integers(0, sizes + 1) * (generator.random(sizes.shape) < 0.7)
    counts[:, 0] += counts.sum(axis=1) == 0
    counts[0] = [1, 1]
    return counts


@pytest.mark.parametrize("name", ["max_caused", "max_certain", "max_person"])
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_the_largest_up_to_which_all_keep_the_limit(name: str, seed: int) -> None:
    kind, threshold = [("geometric", 0.5), ("laplace", 0.5), ("geometric", 2.5), ("geometric", 10.5)][seed]
    oracle = Attackers(draw_counts(seed), *PRIOR, 0.8, kind, threshold)
    grid = np.geomspace(0.4, 20.0, 60)
    along = np.array([oracle.figures(float(epsilon))[name] for epsilon in grid])
    limit = float(along[0] + 0.6 * (along.max() - along[0])) or 0.01
    how: dict[str, Any] = {"certainty": 0.8, "belief": BELIEF, "threshold": threshold, "largest_epsilon": 20.0}
    choice = cr.choose(from_counts(oracle.counts), kind, **{name: limit}, **how)  # type: ignore[arg-type]
    option = choice.options[0]
    end = choice.admissible[-1][1] if choice.admissible else 0.0
    for epsilon, value in zip(grid.tolist(), along.tolist(), strict=True):
        inside = epsilon <= end or any(low <= epsilon <= high for low, high in option.again)
        assert inside == (value <= limit) or abs(value - limit) < 1e-6, (epsilon, value, limit)
    if choice.exact_epsilon is not None and choice.exact_epsilon > grid[0]:  # smaller ones are not written out
        assert oracle.figures(choice.exact_epsilon)[name] <= limit + 1e-9
        assert oracle.figures(choice.exact_epsilon * (1 + 1e-5))[name] > limit - 1e-6
        assert choice.epsilon is not None
        assert choice.epsilon <= choice.exact_epsilon < choice.epsilon * 1.1
        recommended = choice.alternatives[1]
        assert recommended.limited[name] == pytest.approx(oracle.figures(choice.epsilon)[name], rel=1e-6, abs=1e-9)


def test_the_limit_of_a_gaussian_mechanism() -> None:
    oracle = Attackers(draw_counts(7), *PRIOR, 0.8, "gaussian")
    mechanism = cr.AnalyticGaussian(1.0, delta=0.01)
    limits = cr.Policy(max_caused=1e-9, max_certain=1e-9, max_person=1e-9, certainty=0.8, belief=BELIEF).limits
    figures = oracle.figures(mechanism.scale)
    for limit in limits:
        found = limit.value(from_counts(oracle.counts).attributes, mechanism)
        assert found == pytest.approx(figures[limit.name], rel=1e-6, abs=1e-9)


def test_without_noise_it_is_the_table_as_it_is() -> None:
    """Next to no noise the figures are those of the table, where no attacker's odds are near what is needed."""
    oracle = Attackers(draw_counts(3), *PRIOR, 0.8)
    choice = cr.choose(
        from_counts(oracle.counts), max_caused=0.05, max_certain=0.05, max_person=0.2, certainty=0.8, belief=BELIEF
    )
    figures = oracle.figures(40.0)
    assert choice.no_noise == {name: pytest.approx(value, rel=1e-6, abs=1e-9) for name, value in figures.items()}


SLOW_LIMIT = pytest.param({"max_certain": 0.4}, marks=pytest.mark.slow)
MIXED = [[1, 0], [1, 0], [2, 0], [0, 1], [3, 1], [0, 2], [5, 0], [4, 3]]


@pytest.mark.parametrize("limits", [{"max_caused": 0.05}, SLOW_LIMIT, {"max_person": 0.1}])
def test_categories_that_nobody_has_do_not_raise_the_epsilon(limits: dict[str, float]) -> None:
    alone = cr.choose(from_counts(MIXED), **limits).exact_epsilon  # type: ignore[arg-type]
    assert alone is not None
    wide = cr.choose(from_counts(MIXED, 6), **limits).exact_epsilon  # type: ignore[arg-type]
    assert wide is not None
    assert wide <= alone * (1 + 1e-3)


@pytest.mark.parametrize("limits", [{"max_caused": 0.2}, SLOW_LIMIT, {"max_person": 0.2}])
def test_people_who_are_not_at_risk_do_not_raise_the_epsilon(limits: dict[str, float]) -> None:
    """Ten thousand more people of a category of their own, with a prior that does not look at the table."""
    counts = np.pad(np.array(MIXED), ((0, 1), (0, 1)))
    counts[-1, 2] = 100
    few = cr.choose(from_counts(counts), **limits, belief="0.4,0.15,0.3/0.9").exact_epsilon  # type: ignore[arg-type]
    counts[-1, 2] = 10_000
    more = cr.choose(from_counts(counts), **limits, belief="0.4,0.15,0.3/0.9").exact_epsilon  # type: ignore[arg-type]
    assert few is not None
    assert more is not None
    assert more <= few * (1 + 1e-3)


@pytest.fixture(scope="module")
def ill() -> cr.FrequencyTable:
    """A hundred ill people, each alone in a group, among 9,900 healthy people in large groups."""
    return from_counts(np.concatenate([np.tile([0, 1], (100, 1)), np.tile([99, 0], (100, 1))]))


def test_a_few_people_at_risk_among_many_are_not_hidden(ill: cr.FrequencyTable) -> None:
    choice = cr.choose(ill, max_caused=0.01)
    assert choice.epsilon is not None
    assert choice.no_noise["max_caused"] == pytest.approx(1.0, rel=1e-6, abs=0)
    limit = choice.kept_limits[0]
    for epsilon in (choice.epsilon * 1.2, 1.0, 5.0, 30.0):
        assert limit.value(ill.attributes, cr.Geometric(epsilon)) > 0.01
    assert limit.value(ill.attributes, cr.Geometric(choice.epsilon)) <= 0.01


@pytest.mark.slow
def test_harmful_values_narrow_the_limit(ill: cr.FrequencyTable) -> None:
    every = cr.choose(ill, max_certain=0.01, largest_epsilon=4)
    healthy = cr.choose(ill, max_certain=0.01, harmful="v0", largest_epsilon=4)
    sick = cr.choose(ill, max_certain=0.01, harmful=["v1"], largest_epsilon=4)
    assert every.exact_epsilon == healthy.exact_epsilon is not None
    assert sick.exact_epsilon is not None
    assert sick.exact_epsilon > 1.1 * every.exact_epsilon
    assert sick.to_dict()["limits"]["harmful"] == ["v1"]


@pytest.mark.slow
def test_a_value_that_was_split_is_assessed_as_one() -> None:
    """Splitting a value at random hides it; a union finds it again."""
    generator = np.random.default_rng(2)
    whole = np.array([[n, m] for n, m in zip([8, 12, 0, 9, 0, 14, 2, 0], [0, 0, 3, 0, 2, 1, 2, 1], strict=True)])
    parts = np.stack([[*generator.multinomial(n, [0.25] * 4), m] for n, m in whole])
    belief = "0.1,0.1,0.1,0.1,0.15/0.9"
    value = {
        unions: cr.assess(from_counts(parts), epsilon=2.0, certainty=0.8, belief=belief, unions=unions).to_dict()
        for unions in ((), ("v0+v1+v2+v3",))
    }
    rows = [row for row in value["v0+v1+v2+v3",]["attackers"] if row.get("union")]
    assert [row["union"] for row in rows] == [["v0", "v1", "v2", "v3"]]
    assert not any(row.get("union") for row in value[()]["attackers"])
    informed = next(row for row in value[()]["attackers"] if row["attack"] == "informed")
    split = sum(informed["by_category"][f"v{k}"]["revealed"] for k in range(4))
    assert rows[0]["by_category"]["v0+v1+v2+v3"]["people"] == int(whole[:, 0].sum())
    assert rows[0]["revealed"] > 2 * split
    alone = cr.choose(from_counts(parts), max_certain=0.3, certainty=0.8, belief=belief, largest_epsilon=3)
    also = cr.choose(
        from_counts(parts), max_certain=0.3, certainty=0.8, belief=belief, unions=["v0+v1+v2+v3"], largest_epsilon=3
    )
    assert also.exact_epsilon is not None
    assert alone.exact_epsilon is None or also.exact_epsilon < alone.exact_epsilon


@pytest.mark.parametrize(
    "wrong",
    [
        {"harmful": "v9"},
        {"harmful": ["v0", "V1"]},
        {"unions": "v0"},
        {"unions": "v0+v9"},
        {"unions": "v0+v1"},
        {"unions": [("v0", "v1")]},
    ],
)
def test_values_that_do_not_exist_are_refused(wrong: dict[str, Any]) -> None:
    for ask in (
        lambda: cr.choose(from_counts(MIXED), max_certain=0.1, **wrong),
        lambda: cr.assess(from_counts(MIXED), epsilon=1.0, **wrong),
    ):
        with pytest.raises(CellriskError, check=lambda refusal: refusal.code == "unknown-value"):
            ask()


def test_very_wide_noise_is_not_summed() -> None:
    """At epsilon 1e-6 what one record adds counts with its bound, tanh(epsilon/2); nothing can be learnt."""
    caused, certain, person = cr.Policy(max_caused=1e-9, max_certain=1e-9, max_person=1e-9).limits
    attributes = from_counts(MIXED).attributes
    bound = math.tanh(5e-7)
    assert caused.value(attributes, cr.Geometric(1e-6)) == pytest.approx(bound, rel=1e-9, abs=0)
    assert person.value(attributes, cr.Geometric(1e-6)) == pytest.approx(bound, rel=1e-9, abs=0)
    assert certain.value(attributes, cr.Geometric(1e-6)) == 0.0
    blind = cr.Policy(max_certain=0.5, certainty=0.6, belief="0.1,9/0.9").limits[0]
    assert blind.value(attributes, cr.Geometric(1e-6)) == 1.0  # a belief that is sure before it looks


def test_limits_that_attack_tables_cannot_judge_are_refused() -> None:
    with pytest.raises(CellriskError, check=lambda refusal: refusal.code == "table-belief"):
        cr.choose(from_counts(MIXED), max_caused=0.1, belief="table")
