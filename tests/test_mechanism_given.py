"""A mechanism is given in one way everywhere: an object, or a name with epsilon beside it; geometric by default."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, describe_mechanism
from tests.commands import refusing
from tests.near import near, same
from tests.publish.simulation.cases import make

CELLS = [[3, 0], [2, 1], [4, 4], [1, 0]]
GAUSSIAN = cr.AnalyticGaussian(epsilon=0.7, delta=0.01, neighbours="replace", threshold=1.5)
NAMED: dict[str, Any] = {"epsilon": 0.7, "delta": 0.01, "neighbours": "replace", "threshold": 1.5}
AT_ONE: dict[str, Callable[..., Any]] = {
    "assess": cr.assess,
    "ceiling": lambda _, *given, **beside: cr.ceiling(*given, **beside),
    "explain": cr.explain,
    "simulate": lambda *given, **beside: cr.simulate(*given, releases=5, **beside),
    "average": lambda *given, **beside: cr.average(*given, releases=3, measures="local", **beside),
    "utility": lambda *given, **beside: cr.utility(*given, ways=1, releases=2, **beside),
    "report": lambda *given, **beside: cr.report(*given, releases=2, **beside),
}
ALONG: dict[str, Callable[..., Any]] = {
    "curve": cr.curve,
    "choose": lambda *given, **beside: cr.choose(*given, max_risk=0.9, **beside),
    "largest_epsilon": lambda _, given=USUAL_MECHANISM, **beside: cr.largest_epsilon(
        [], given, max_ceiling=0.9, total_delta=beside.get("delta"), **beside
    ),
}


def say(found: Any) -> Any:
    return found.describe() if isinstance(found, cr.Step) else found.to_dict()


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return make(CELLS)


@pytest.mark.parametrize("name", AT_ONE)
def test_an_object_and_a_name_give_the_same_answer(name: str, table: cr.FrequencyTable) -> None:
    ask = AT_ONE[name]
    named = say(ask(table, "gaussian-analytic", **NAMED))
    assert same(named, say(ask(table, GAUSSIAN)))
    assert same(say(ask(table, epsilon=0.7)), say(ask(table, cr.Geometric(0.7))))
    assert not same(named, say(ask(table, replace(GAUSSIAN, epsilon=0.8))))


@pytest.mark.parametrize("name", AT_ONE)
def test_what_is_missing_or_said_twice_is_refused(name: str, table: cr.FrequencyTable) -> None:
    ask = AT_ONE[name]
    for word, value in NAMED.items():
        if (name, word) != ("average", "delta"):  # which says what to write instead
            with pytest.raises(InvalidInput, match=f"has its own epsilon and settings, .*: {word}="):
                ask(table, GAUSSIAN, **{word: value})
    with refusing("word"):
        ask(table, "noise", epsilon=1.0)
    with pytest.raises(InvalidInput, match="a mechanism is an object or a name"):
        ask(table, 1.0)
    if name != "report":  # which takes limits instead
        with pytest.raises(InvalidInput, match=r"no epsilon was given for geometric; .* Geometric\(epsilon=1.0\)"):
            ask(table)


@pytest.mark.parametrize("name", [pytest.param("curve", marks=pytest.mark.slow), "choose", "largest_epsilon"])
def test_of_an_object_all_but_its_epsilon_is_taken_where_epsilon_is_looked_for(
    name: str, table: cr.FrequencyTable
) -> None:
    ask = ALONG[name]
    beside = {word: value for word, value in NAMED.items() if word != "epsilon"}
    if name != "largest_epsilon":
        assert say(ask(table, GAUSSIAN)) == say(ask(table, "gaussian-analytic", **beside))
        assert say(ask(table, replace(GAUSSIAN, epsilon=3.0))) == say(ask(table, GAUSSIAN))
        assert say(ask(table, replace(GAUSSIAN, threshold=2.5))) != say(ask(table, GAUSSIAN))
    assert say(ask(table, cr.Geometric(3.0))) == say(ask(table))
    assert say(ask(table, cr.Geometric(3.0, neighbours="replace"))) == say(ask(table, neighbours="replace"))
    with pytest.raises(InvalidInput, match=r"has its own epsilon and settings, .*: threshold="):
        ask(table, GAUSSIAN, threshold=1.5)


def test_several_are_names_or_objects(table: cr.FrequencyTable) -> None:
    several = cr.curve(table, [cr.Geometric(1.0), GAUSSIAN], epsilon=[0.1, 1.0], measures="local")
    assert {line.setting.describe() for line in several.lines} == {"geometric", "gaussian-analytic, delta 0.01"}
    alone = cr.curve(table, GAUSSIAN, epsilon=[0.1, 1.0], measures="local")
    for line in alone.lines:
        alike = [each for each in several.lines if each.setting == line.setting and each.form == line.form]
        assert any(each.risk == near(line.risk) for each in alike)
    with pytest.raises(InvalidInput, match="holds objects and names; allowed: names alone, or objects alone"):
        cr.curve(table, ["geometric", GAUSSIAN])
    found = cr.utility(table, ["geometric", "laplace"], epsilon=np.array([1.0, 0.1]), ways=1, releases=2)
    assert [(each.name, each.epsilon) for each in found.mechanisms] == [
        ("geometric", 0.1), ("geometric", 1.0), ("laplace", 0.1), ("laplace", 1.0),
    ]  # fmt: skip


def test_a_policy_holds_for_the_delta_of_an_object(table: cr.FrequencyTable) -> None:
    policies = Policies.in_force(cr.Policy(max_risk=0.9, delta=0.001))
    with pytest.raises(InvalidInput, match=r"delta is larger than the policy allows; got 0\.01"):
        cr.choose(table, GAUSSIAN, policy=policies)
    with pytest.raises(InvalidInput, match=r"delta is larger than the policy allows; got 0\.01"):
        cr.report(table, GAUSSIAN, policy=policies)
    assert cr.choose(table, cr.Geometric(1.0), policy=policies).options[0].mechanism.delta == 0.0


def test_a_release_and_its_simulation_take_names() -> None:
    table = make(CELLS)
    assert cr.release(table, epsilon=1.0, observed_levels=True).mechanism == cr.Geometric(1.0)
    totals = pd.DataFrame({"y": ["a", "b"], "count": [10, 5]})
    named = cr.simulate(table, "geometric", parents=totals, epsilon=1.0, releases=20)
    assert same(named.to_dict(), cr.simulate(table, cr.Geometric(1.0), parents=totals, releases=20).to_dict())


def test_a_mechanism_is_made_with_epsilon_alone() -> None:
    assert cr.Laplace(1.0) == cr.Laplace(epsilon=1.0)
    assert cr.mechanism(epsilon=1.0) == cr.Geometric(1.0)
    assert cr.mechanism(GAUSSIAN) is GAUSSIAN
    assert repr(cr.Laplace(1.0)) == "Laplace(epsilon=1.0, delta=0.0, neighbours='add-remove', threshold=0.5)"
    with pytest.raises(TypeError, match="positional arguments"):
        cr.AnalyticGaussian(1.0, 0.01)  # type: ignore[misc]
    assert describe_mechanism("laplace", delta=[0.1, 0.2]).delta == [0.1, 0.2]


def test_every_public_function_speaks_of_what_release_makes() -> None:
    functions = [getattr(cr, name) for name in cr.__all__ if inspect.isfunction(getattr(cr, name))]
    found = {
        each.__name__: inspect.signature(each).parameters["mechanism"].default
        for each in functions
        if "mechanism" in inspect.signature(each).parameters
    }
    assert {"assess", "curve", "choose", "utility", "release", "simulate", "average", "explain", "report"} <= set(found)
    assert found.pop("audit") is None, "it is that of the release in hand, which is known or asked for"
    assert set(found.values()) == {"geometric"}
