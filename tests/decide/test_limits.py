"""Choosing by caused, certainty, ceiling and epsilon: every smaller epsilon keeps the limit, a larger one does not."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.decide.limits import (
    Limit,
    RiskDefinition,
    find_kept,
    find_largest_without_data,
    read_limits,
    tightest,
)
from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.noise.perturbations import read_perturbation
from tests.commands import run
from tests.near import near
from tests.tables import from_counts

Capture = pytest.CaptureFixture[str]
MIXED = [[1, 0], [1, 0], [2, 0], [0, 1], [3, 1], [0, 2], [5, 0], [4, 3]]


HALF_CERTAIN = read_limits(max_certain=0.5)[0]


def find_largest(limit: Limit, attributes: Any, setting: Mechanism, low: float, high: float) -> float | None:
    """The largest epsilon up to which every smaller one, from ``low`` on, keeps the limit."""
    kept = find_kept(limit, attributes, setting, (low, high))
    assert all(start <= end for start, end in kept.intervals)
    assert sorted(kept.intervals) == list(kept.intervals)
    return kept.largest


def test_certainty_that_cannot_be_told_is_no_limit() -> None:
    """Of a table with too many different cells, which labels stand in which cell is not held."""
    attributes = [replace(each, vectors=None) for each in from_counts(MIXED).attributes]
    with pytest.raises(CellriskError, match="attacks cannot be assessed"):
        find_largest(
            HALF_CERTAIN,
            attributes,
            make_mechanism("geometric", epsilon=1e-3),
            1e-3,
            100.0,
        )


def test_the_ceiling_has_closed_forms() -> None:
    table = from_counts(MIXED)
    assert cr.choose(table, max_ceiling=0.75).exact_epsilon == pytest.approx(math.log(3), rel=1e-6, abs=0)
    replaced = cr.choose(table, max_ceiling=0.75, neighbours="replace").exact_epsilon
    assert replaced == pytest.approx(2 * math.log(3), rel=1e-6, abs=0)
    laplace = cr.choose(table, "laplace", max_ceiling=0.75).exact_epsilon
    assert laplace is not None
    assert 1 - math.exp(-laplace) * (1 + laplace / 2) / 2 == pytest.approx(0.75, rel=1e-6, abs=0)
    for name in ("gaussian-analytic", "gaussian-pdp", "discrete-gaussian"):
        found = cr.choose(table, name, delta=1e-5, max_ceiling=0.75).exact_epsilon
        assert found is not None
        assert cr.ceiling(name, epsilon=found, delta=1e-5).even_two <= 0.75
        assert cr.ceiling(name, epsilon=found * (1 + 1e-6), delta=1e-5).even_two > 0.75
    assert cr.choose(table, "gaussian", delta=1e-5, max_ceiling=0.9).options[0].open_ended  # its guarantee ends before


def count_adult(sensitive: str | list[str]) -> cr.FrequencyTable:
    columns = ["age", "education", "race"]
    return cr.tabulate(cr.datasets.adult_as_published(), columns, sensitive, bins={"age": 10})


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"max_caused": 0.1}, {"max_certain": 0.4}])
def test_every_attribute_must_keep_the_limit(limit: dict[str, Any]) -> None:
    generator = np.random.default_rng(4)
    groups = generator.integers(0, 20, 60)
    people = pd.DataFrame({"q": groups, "x": (groups + generator.integers(0, 2, 60)) % 2, "y": groups % 3 == 0})

    def reach(sensitive: Any) -> Any:
        return cr.choose(cr.tabulate(people, "q", sensitive), **limit).exact_epsilon

    alone = [reach(name) for name in ("x", "y")]
    assert alone[0] != pytest.approx(alone[1], rel=1e-3, abs=0)
    assert reach(["x", "y"]) == reach(["y", "x"]) == pytest.approx(min(alone), rel=1e-6, abs=0)


def test_every_limit_must_be_kept() -> None:
    table = count_adult("income")
    risk = cr.choose(table, max_risk=0.07)
    assert risk.exact_epsilon is not None
    assert risk.admissible[0][0] > 1e-3
    assert "the limit on the risk is broken (as epsilon falls to 0 the risk tends to 25.0%)" in risk.why
    assert "max-caused" in risk.why
    together = cr.choose(table, max_risk=0.07, max_epsilon=risk.exact_epsilon / 2, max_ceiling=0.9)
    assert together.epsilon == risk.exact_epsilon / 2
    assert together.admissible[0][0] == risk.admissible[0][0]
    assert "where the limit on epsilon binds" in together.why
    apart = cr.choose(table, max_risk=0.07, max_epsilon=risk.admissible[0][0] / 2)
    assert (apart.epsilon, apart.admissible) == (None, ())
    assert "max-caused" in apart.why


def test_where_no_limit_binds_nothing_is_recommended() -> None:
    table = from_counts(MIXED)
    for limits in ({"max_risk": 1.0}, {"max_caused": 1.0}, {"max_ceiling": 1.0}, {"max_epsilon": 1000.0}):
        choice = cr.choose(table, **limits)  # type: ignore[arg-type]
        assert (choice.epsilon, choice.risk, choice.alternatives, choice.figures) == (None, None, (), ())
        assert choice.admissible == ((1e-3, 100.0),)
        assert choice.options[0].open_ended
        assert choice.headline.startswith("No recommendation for geometric noise: no limit binds")
        assert "a ceiling of 0.75 or an epsilon of at most 1" in choice.why
        document = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
        assert (document["epsilon"], document["risk"], document["decision"]) == (None, None, [])
        assert document["admissible"] == [[1e-3, 100.0]]
    choice.plot()
    assert "recommended " not in str(cr.choose(table, max_risk=1.0))
    at_the_end = cr.choose(table, max_epsilon=100.0)
    assert at_the_end.epsilon == 100.0


@pytest.mark.slow
def test_a_report_without_a_binding_limit_recommends_nothing() -> None:
    for public in (False, True):
        found = cr.report(from_counts(MIXED), max_risk=1.0, public=public)
        assert (found.verdict, found.epsilon) == ("unbound", None)
        assert "Nothing is recommended: no limit binds" in found.html
        assert "Recommended: epsilon" not in found.html
        assert "Approve publication" not in found.html
    chosen = cr.report(from_counts(MIXED), max_ceiling=0.75)
    assert (chosen.verdict, chosen.epsilon) == ("recommended", 1.0)
    broken = cr.report(from_counts(MIXED), epsilon=2.0, max_ceiling=0.75)
    assert broken.verdict == "broken"


def test_json_has_the_figures_at_the_epsilon_chosen() -> None:
    table = from_counts(MIXED)
    choice = cr.choose(table, max_caused=0.05, max_certain=0.9, certainty=0.8)
    document = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
    (figures,) = document["decision"]
    assert figures["certainty"][0]["certainty"] == 0.8
    assert figures["ceiling"]["labels"] == 2
    assert document["limits"] == {"max_caused": 0.05, "max_certain": 0.9, "certainty": 0.8, "belief": "negbin"}
    assert document["epsilon"] == choice.epsilon
    roles = {each["role"]: each for each in document["alternatives"]}
    assert roles["looser"]["verdict"] == "breaks the limit on own records"
    assert choice.headline.endswith(
        "with geometric noise, the largest allowed, rounded down. Every epsilon from 0.001 up to it keeps every limit."
    )


GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-5}
BAD: dict[str, list[dict[str, Any]]] = {
    "limit-range": [
        *({name: bad} for name in ("max_caused", "max_certain", "max_person") for bad in (0, 1.01, math.nan, True)),
        *({name: bad} for name in ("max_risk", "margin") for bad in (-0.1, 1.01, "0.1", 10**400)),
        *({"max_people": bad} for bad in (-1, math.inf)),
        *({"max_ceiling": bad} for bad in (0.5, 1.5)),
        *({"max_epsilon": bad} for bad in (0, -1, math.inf, "1")),
        *({"max_error": bad} for bad in (1.5, -1)),
        *({"max_posterior": bad} for bad in ("20:5", "5", "0:20", "a:b", "5:nan")),
    ],
    "limit-with-delta": [{"max_posterior": "5:20", **GAUSSIAN}],
    "table-belief": [{"max_person": 0.1, "belief": "table"}],
    "error-below-threshold": [{"max_error": 3, "threshold": 4.5}],
    "one-certainty": [{"max_certain": 0.1, "certainty": [0.8, 0.9]}],
    "no-limit": [{}],
}


@pytest.mark.parametrize(("code", "arguments"), [(code, each) for code, every in BAD.items() for each in every])
def test_bad_limits_are_refused(code: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(CellriskError, check=lambda refusal: refusal.code == code):
        cr.choose(from_counts(MIXED), **arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"max_risk": 0.3, "max_tvd": 7}, "max_tvd must be a number from 0 to 1"),
        ({"max_risk": 0.3, "measure": "global"}, "unknown measure"),
        ({"max_risk": 0.3, "attack": "guess"}, "unknown attack"),
        ({"max_certain": 0.1, "certainty": 0.5}, "certainty must be above 0.5"),
        ({"max_certain": 0.1, "belief": "guess"}, "unknown belief"),
        ({"max_certain": 0.1, "belief": "1,1,1/0.5"}, "one shape for each label"),
    ],
)
def test_what_limits_depend_on_is_checked(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(CellriskError, match=says):
        cr.choose(from_counts(MIXED), **arguments)


@pytest.mark.parametrize("name", ["max_risk", "margin", "max_people", "max_error"])
def test_a_limit_of_nothing_is_one(name: str) -> None:
    assert [limit.maximum for limit in read_limits(**{name: 0})] == [0.0]


@pytest.mark.parametrize("limit", [{"max_caused": 0.1}, {"max_certain": 0.1}, {"max_ceiling": 0.7}])
def test_a_table_with_one_label_is_refused(limit: dict[str, float]) -> None:
    with pytest.raises(CellriskError, match="has one level only"):
        cr.choose(cr.tabulate(pd.DataFrame({"q": [1, 2], "y": ["a", "a"]}), "q", "y"), **limit)  # type: ignore[arg-type]


# Policies


def test_a_limit_on_epsilon_at_the_ends_of_the_range() -> None:
    """It is kept up to itself, exactly, or up to the end of the range; not at all below what is searched."""
    for most, largest in ((0.5, 0.5), (1e-3, 1e-3), (5e-4, 5e-4), (10.0, 10.0), (20.0, 10.0), (5e-7, None)):
        (limit,) = read_limits(max_epsilon=most)
        assert find_largest(limit, [], make_mechanism("geometric", epsilon=1.0), 0.01, 10.0) == largest


@pytest.mark.parametrize(
    ("limits", "name", "largest", "binds"),
    [
        ({"max_ceiling": 0.75}, "geometric", math.log(3), True),
        ({"max_ceiling": 0.75, "max_epsilon": 1.0}, "geometric", 1.0, True),
        ({"max_ceiling": 0.75, "max_epsilon": 2.0}, "geometric", math.log(3), True),
        ({"max_ceiling": 1.0}, "geometric", 100.0, False),
        ({"max_epsilon": 100.0}, "geometric", 100.0, True),  # it binds wherever the search ends
        ({"max_epsilon": 101.0}, "geometric", 100.0, False),
        ({"max_ceiling": 0.5 + 1e-8}, "geometric", None, True),
        ({"max_ceiling": 0.5 + 1e-8, "max_epsilon": 2.0}, "geometric", None, True),
        ({"max_ceiling": 1.0}, "gaussian", math.nextafter(1.0, 0.0), False),
        ({}, "geometric", 100.0, False),
    ],
)
def test_how_far_limits_reach_on_any_table(
    limits: dict[str, float], name: str, largest: float | None, binds: bool
) -> None:
    """Two equally likely values are told apart 1/(1 + e^-epsilon) of the time: 3 times in 4 at ln 3."""
    setting = make_mechanism(name, epsilon=1e-3, delta=1e-5 if name == "gaussian" else 0.0)  # type: ignore[arg-type]
    reach = find_largest_without_data(read_limits(**limits), setting)  # type: ignore[arg-type]
    assert reach == (None if largest is None else pytest.approx(largest, rel=2e-7, abs=0), binds)


def test_a_figure_at_its_limit_is_no_breach() -> None:
    attributes, mechanism = from_counts(MIXED).attributes, cr.Geometric(1.5)
    for limit in read_limits(max_caused=0.5, max_certain=0.5, max_ceiling=0.7, max_epsilon=1.0, certainty=0.8):
        figure = limit.value(attributes, mechanism)
        assert replace(limit, maximum=figure).breach(attributes, mechanism) is None
        below = replace(limit, maximum=figure * (1 - 1e-9))
        assert below.breach(attributes, mechanism) == f"{below.describe()}; {limit.say(figure)}"


def test_a_figure_is_that_of_the_attribute_with_the_largest() -> None:
    one, other = (from_counts(cells).attributes for cells in ([[1, 0], [0, 2]], [[9, 8], [7, 9]]))
    for limit in read_limits(max_caused=0.5, max_certain=0.5, certainty=0.8):
        alone = [limit.value(each, cr.Geometric(1.5)) for each in (one, other)]
        assert alone[0] != pytest.approx(alone[1], rel=0.01, abs=0)
        assert limit.value([*one, *other], cr.Geometric(1.5)) == near(max(alone))


def test_limits_on_what_a_perturbation_reveals() -> None:
    """Rounded to 3: one of 1 is shown once in three times, and the largest count then names the value."""
    attributes = from_counts([[1, 0], [0, 2], [4, 3]]).attributes
    rounded = read_perturbation("random-rounding:3")
    caused, person = read_limits(max_person=1.0, max_caused=1.0)
    assert person.value(attributes, rounded) >= 1 / 3
    assert caused.breach(attributes, rounded) is None
    (epsilon,) = read_limits(max_epsilon=100.0)
    assert "states no epsilon" in str(epsilon.breach(attributes, rounded))
    (guessed,) = read_limits(max_risk=1.0, risk=RiskDefinition(attack="plurality"))
    assert "homogeneity attack alone" in str(guessed.breach(attributes, rounded))


def test_who_is_learnt_after_rounding() -> None:
    """Thirty and none, published so, were 28 to 32 and 0 to 2: at least 28 of 30 have the value."""
    attributes = from_counts([[30, 0], [0, 30]]).attributes
    rounded = read_perturbation("random-rounding:3")
    (limit,) = read_limits(max_certain=0.9, certainty=0.9)
    assert limit.value(attributes, rounded) == pytest.approx(1.0, abs=1e-9)
    assert "100% of a category" in str(limit.breach(attributes, rounded))
    nobody = from_counts([[3, 3], [3, 3]]).attributes
    assert limit.value(nobody, rounded) == pytest.approx(0.0, abs=1e-9)
    assert limit.value([*nobody, *attributes], rounded) == pytest.approx(1.0, abs=1e-9)


def test_the_strictest_limit_on_each_figure_holds() -> None:
    given = read_limits(max_caused=0.03, max_certain=0.2, max_epsilon=5)
    other = read_limits(max_caused=0.02, max_certain=0.1, certainty=0.9, max_ceiling=0.8, max_epsilon=7)
    joined = tightest([*given, *other])
    assert [(limit.name, limit.maximum) for limit in joined] == [
        ("max_caused", 0.03),
        ("max_certain", 0.2),
        ("max_epsilon", 5.0),
        ("max_caused", 0.02),  # of another certainty: neither is the stricter
        ("max_certain", 0.1),
        ("max_ceiling", 0.8),
    ]
    table = from_counts(MIXED)
    free = cr.choose(table, max_epsilon=3.0)
    held = cr.choose(table, max_epsilon=3.0, policy=cr.Policy(max_ceiling=0.75, max_epsilon=2.0))
    assert (free.epsilon, held.epsilon) == (3.0, 1.0)
    assert cr.choose(table, policy=cr.Policy(max_epsilon=2.0)).epsilon == 2.0
    (obeyed,) = held.to_dict()["policy"]["obeyed"]
    assert obeyed["limits"] == {"max_ceiling": 0.75, "max_epsilon": 2.0}
    assert held.to_dict()["limits"] == {"max_ceiling": 0.75, "max_epsilon": 2.0}


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (cr.Policy(max_caused=0.05), "at most 5% of any category revealed because of their own record; "),
        (cr.Policy(max_certain=0.05, certainty=0.8), "at most 5% of any category learnt with 80% certainty; "),
        (cr.Policy(max_ceiling=0.75), "a worst case of at most 75%; the worst case is"),
        (cr.Policy(max_epsilon=2.0), "an epsilon of at most 2; epsilon is 3"),
    ],
)
def test_a_release_that_breaks_a_policy_is_refused(policy: cr.Policy, says: str) -> None:
    table = from_counts(MIXED)
    (breach,) = policy.breaches(table, cr.Geometric(3.0))
    assert says in breach
    assert policy.breaches(table, cr.Geometric(0.01)) == []
    with pytest.raises(CellriskError, match="the policy forbids this release"):
        Policies.in_force(policy).forbid(table, cr.Geometric(3.0), "y")
    chosen = cr.choose(table, policy=policy).epsilon
    assert chosen is not None
    assert policy.breaches(table, cr.Geometric(chosen)) == []
    assert bool(Policies((policy,)).disclosures) == (policy.max_ceiling is None and policy.max_epsilon is None)


# The command


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{place},{'ab'[label]}" for place, cell in enumerate(MIXED) for label in (0, 1) for _ in range(cell[label])
    ]
    Path("people.csv").write_text("\n".join(["q,y", *rows, ""]))
    return ["people.csv", "--qid", "q", "--sensitive", "y"]


@pytest.mark.slow
def test_the_command_gives_what_python_gives(people: list[str], capsys: Capture) -> None:
    for options, limits in (
        (["--max-caused", "0.05"], {"max_caused": 0.05}),
        (["--max-certain", "0.3", "--certainty", "0.8"], {"max_certain": 0.3, "certainty": 0.8}),
        (["--max-ceiling", "0.7", "--max-epsilon", "9"], {"max_ceiling": 0.7, "max_epsilon": 9.0}),
    ):
        code, out, _ = run(capsys, "choose", *people, *options, "--json")
        assert code == 0
        assert json.loads(out)["epsilon"] == pytest.approx(
            cr.choose(from_counts(MIXED), **limits).epsilon, rel=1e-6, abs=0
        )  # type: ignore[arg-type]
    code, out, _ = run(capsys, "choose", *people, "--max-caused", "0.9", "--json")
    assert (code, json.loads(out)["epsilon"]) == (0, None)
    code, out, _ = run(capsys, "choose", *people, "--max-risk", "1")
    assert code == 0
    assert "No recommendation" in out
    code, out, _ = run(capsys, "report", *people, "--max-risk", "1", "--output", "report.html")
    assert code == 0
    assert "Nothing is recommended" in out


def test_assess_is_a_gate(people: list[str], capsys: Capture) -> None:
    asked = [*people, "--epsilon", "1", "--measure", "local", "--certainty", "0.8"]
    for option, kept, broken in (
        ("--max-caused", "0.9", "0.01"),
        ("--max-certain", "0.99", "0.01"),
        ("--max-ceiling", "0.74", "0.73"),
    ):
        assert run(capsys, "assess", *asked, option, kept)[0] == 0
        code, out, err = run(capsys, "assess", *asked, option, broken)
        assert code == 3
        assert "the homogeneity attack reveals" in out
        assert "asked for was" in err
