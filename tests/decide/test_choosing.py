"""Choosing: the edges are edges, the set is whole, and nothing is promised where no epsilon will do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.decide.choosing import weigh
from cellrisk.decide.limits import RiskDefinition, read_limits
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.noise.perturbations import read_perturbation
from cellrisk.noise.precision import find_error
from cellrisk.risk.people import count_people
from cellrisk.system.formatting import round_down
from tests.near import near, same


@pytest.fixture(scope="module")
def bent() -> cr.FrequencyTable:
    """Twenty cells of the profile 5+1, K = 3: the exact risk rises from 0.25, then falls to 0."""
    rows = [{"q": cell, "y": "abbbbb"[place]} for cell in range(20) for place in range(6)]
    return cr.tabulate(pd.DataFrame(rows), "q", "y", levels={"y": ["a", "b", "c"]})


def number_after(words: str, text: str) -> float:
    """The number that stands in a text after some words."""
    return float(text.partition(f"{words} ")[2].split()[0].rstrip(",;"))


def risk_at(table: cr.FrequencyTable, epsilon: float, measure: str, form: str, weights: str) -> float:
    return cr.assess(table, cr.Geometric(epsilon=epsilon)).value(measure, form, weights)


@pytest.mark.parametrize(
    ("measure", "form", "weights", "limit"),
    [
        ("local", "tight", "records", 0.3),
        ("local", "exact", "records", 0.3),
        ("local", "published", "uniform", 0.5),
        ("expected", "exact", "uniform", 0.35),
        ("shrinkage", "tight", "records", 0.31),
        ("marginal", "exact", "uniform", 0.5),
        ("marginal_shrinkage", "tight", "records", 0.4),
    ],
)
def test_edges_on_adult(adult: cr.FrequencyTable, measure: str, form: str, weights: str, limit: float) -> None:
    choice = cr.choose(adult, max_risk=limit, measure=measure, form=form, weights=weights)
    assert choice.exact_epsilon == choice.admissible[-1][1]
    assert choice.epsilon == round_down(choice.exact_epsilon, digits=2)
    for low, high in choice.admissible:
        for edge, outward in ((low, -1), (high, 1)):
            assert risk_at(adult, edge, measure, form, weights) <= limit
            if 1e-3 < edge < 100:
                assert risk_at(adult, edge * (1 + outward * 1e-6), measure, form, weights) > limit
    line = cr.curve(adult, measures=measure, forms=form, weights=weights).lines[0]
    inside = [any(low <= epsilon <= high for low, high in choice.admissible) for epsilon in line.epsilon]
    assert inside == (line.risk <= limit).tolist()


def test_risk_that_is_not_monotone(bent: cr.FrequencyTable) -> None:
    choice = cr.choose(bent, max_risk=0.255, form="exact")
    assert len(choice.admissible) == 2
    assert choice.admissible[0][0] == 1e-3
    assert choice.admissible[-1][1] == 100
    assert choice.epsilon is None
    assert "the end of the range searched" in choice.why
    assert "by accident" not in choice.why  # it begins where the search does
    gap = (choice.admissible[0][1], choice.admissible[1][0])
    middle = float(np.sqrt(gap[0] * gap[1]))
    assert risk_at(bent, middle, "local", "exact", "records") > 0.255


def test_none_says_why(adult: cr.FrequencyTable) -> None:
    choice = cr.choose(adult, max_risk=0.2)
    assert (choice.epsilon, choice.risk, choice.admissible, choice.alternatives) == (None, None, (), ())
    lowest = choice.options[0]
    line = cr.curve(
        adult, epsilon=np.geomspace(1e-6, 100, 301), measures="local", forms="tight", weights="records"
    ).lines[0]
    assert lowest.searched == (1e-6, 100.0)
    assert lowest.lowest_risk == pytest.approx(line.risk.min(), abs=1e-6)
    assert "as epsilon falls to 0 the risk tends to 25.0%" in choice.why
    said = "No epsilon keeps a risk of at most 20% with geometric noise. Epsilon "
    assert choice.headline.startswith(said)
    assert "max-caused" in choice.why
    document = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
    assert (document["epsilon"], document["admissible"]) == (None, [])
    assert document["lowest"]["risk"] == lowest.lowest_risk


def test_people_and_margin_are_limits_on_the_same_risk(adult: cr.FrequencyTable) -> None:
    by_people = cr.choose(adult, max_people=8000)
    by_risk = cr.choose(adult, max_risk=8000 / adult.n_records)
    assert by_people.exact_epsilon == pytest.approx(by_risk.exact_epsilon, rel=1e-7, abs=0)
    assert by_people.epsilon is not None
    assert count_people(adult.profiles(), cr.Geometric(epsilon=by_people.epsilon).channel).mean <= 8000
    by_margin = cr.choose(adult, margin=0.05)
    assert by_margin.exact_epsilon == pytest.approx(cr.choose(adult, max_risk=0.3).exact_epsilon, rel=1e-7, abs=0)
    both = cr.choose(adult, max_risk=0.3, max_people=8000)
    assert both.exact_epsilon == pytest.approx(by_people.exact_epsilon, rel=1e-7, abs=0)


def test_every_attribute_must_be_within_the_limit() -> None:
    frame = cr.datasets.adult_as_published()
    together = cr.tabulate(frame, ["age", "education"], ["income", "sex"], bins={"age": 5})
    choice = cr.choose(together, max_risk=0.1)
    alone = [
        cr.choose(cr.tabulate(frame, ["age", "education"], name, bins={"age": 5}), max_risk=0.1).admissible
        for name in ("income", "sex")
    ]
    for epsilon in np.geomspace(1e-3, 100, 301):
        inside = [any(low <= epsilon <= high for low, high in each) for each in alone]
        assert any(low <= epsilon <= high for low, high in choice.admissible) == all(inside)


def test_gaussian_and_the_grid_over_delta(adult: cr.FrequencyTable) -> None:
    choice = cr.choose(adult, "gaussian-analytic", max_risk=0.3, delta=[1e-6, 1e-5, 1e-4])
    epsilons = [option.epsilon for option in choice.options]
    assert epsilons == sorted(epsilons, reverse=True)  # type: ignore[type-var]
    assert [option.mechanism.delta for option in choice.options] == [1e-6, 1e-5, 1e-4]
    usual = cr.choose(adult, "gaussian-analytic", max_risk=0.3)
    assert usual.options[0].mechanism.delta == 3e-5
    classical = cr.choose(adult, "gaussian", max_risk=0.3)
    assert classical.epsilon is None
    assert classical.admissible[-1][1] < 1
    assert "no limit binds: even epsilon 0.99999, the end of what the mechanism covers" in classical.why


def test_alternatives_say_what_they_cost(adult: cr.FrequencyTable) -> None:
    choice = cr.choose(adult, max_risk=0.3)
    stricter, recommended, looser = choice.alternatives
    assert [each.role for each in choice.alternatives] == ["stricter", "recommended", "looser"]
    assert stricter.epsilon * 2 == recommended.epsilon == looser.epsilon / 2 == choice.epsilon
    assert stricter.risk < recommended.risk <= 0.3 < looser.risk
    assert looser.verdict == "breaks the limit on the risk"
    assert recommended.verdict == stricter.verdict == "within every limit"
    for each in choice.alternatives:
        assert same(each.people[0], count_people(adult.profiles(), cr.Geometric(epsilon=each.epsilon).channel))
        assert f"{each.people[0].mean:,.0f}" in choice.details
    free = weigh(choice.measured, choice.options[0].mechanism, 1.0)
    assert {each.verdict for each in free} == {"no limit was set"}
    assert recommended.risk == near(choice.risk) == near(recommended.limited["max_risk"])
    assert [each.within for each in choice.alternatives] == [
        find_error(cr.Geometric(each.epsilon)) for each in choice.alternatives
    ]
    assert choice.no_noise == {"max_risk": near(choice.limits.raw)}


def test_the_range_can_be_narrowed(adult: cr.FrequencyTable) -> None:
    choice = cr.choose(adult, max_risk=0.3, least_epsilon=0.01, largest_epsilon=0.5)
    assert choice.admissible == ((0.01, 0.5),)
    with pytest.raises(CellriskError, match="range of epsilons is empty"):
        cr.choose(adult, max_risk=0.3, least_epsilon=1.0, largest_epsilon=0.5)


def test_trade_off(bent: cr.FrequencyTable) -> None:
    table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 10})
    choice = cr.choose(table, max_risk=0.1, max_epsilon=20, max_tvd=0.05, releases=10, way=2)
    assert choice.epsilon == 20
    assert choice.trade_off is not None
    least = choice.trade_off.least_epsilon
    assert least is not None
    assert choice.admissible[0][0] == max(least, choice.admissible[0][0])
    simulated = [
        cr.utility(table, cr.Geometric(epsilon=epsilon), ways=2, releases=10).mean_tvd(2)[0]
        for epsilon in (least, least / 1.01)
    ]
    assert simulated[0] <= 0.05 < simulated[1]
    assert choice.alternatives
    assert all(each.tvd is not None for each in choice.alternatives)
    assert choice.headline.endswith("It keeps every limit.")
    points = choice.to_dict()["trade_off"]["points"]
    assert [point["epsilon"] for point in points] == sorted(point["epsilon"] for point in points)
    nothing = cr.choose(bent, max_risk=0.26, form="exact", largest_epsilon=0.5, max_tvd=0.001, releases=5, way=1)
    assert nothing.epsilon is None
    assert "the limit on the TVD asks for an epsilon above 0.5" in nothing.why
    allowed = nothing.options[0].within_limits[-1][1]
    assert number_after("the other limits allow epsilon up to", nothing.why) == pytest.approx(allowed, rel=1e-3, abs=0)
    neither = cr.choose(bent, max_risk=0.01, form="exact", largest_epsilon=0.5, max_tvd=0.001, releases=2, way=1)
    assert "comes nearest, with a risk of" in neither.why


@pytest.mark.parametrize(("most", "asks"), [(0.2, True), (1.0, False)])
def test_a_limit_on_use_is_told_where_it_asks_for_more(bent: cr.FrequencyTable, most: float, asks: bool) -> None:
    choice = cr.choose(bent, max_risk=0.99, max_tvd=most, releases=2, way=1, largest_epsilon=5.0)
    assert choice.options[0].open_ended
    assert (choice.admissible[0][0] > 1e-3) == asks
    assert ("the limit on the TVD asks for" in choice.why) == asks


def test_frame_and_text(bent: cr.FrequencyTable) -> None:
    choice = cr.choose(bent, ["laplace", "geometric"], max_risk=0.255, form="exact")
    frame = choice.to_frame()
    assert frame.columns.tolist() == ["mechanism", "delta", "low", "high"]
    assert len(frame) == sum(len(option.admissible) for option in choice.options)
    assert "An epsilon chosen from these data reveals a little about them" in str(choice)
    assert "largest epsilon" in choice.details


def find_breaches(
    table: cr.FrequencyTable, method: Any, risk: RiskDefinition | None = None, **given: float
) -> list[str]:
    """What a method breaks of the limits given."""
    found = [limit.breach(table.attributes, method) for limit in read_limits(**given, risk=risk)]  # type: ignore[arg-type]
    return [breach for breach in found if breach is not None]


def test_what_a_perturbation_breaks(bent: cr.FrequencyTable) -> None:
    """Rounded to 3, a count of 1 vanishes twice in three times, and one of 5 never: then 5 of 6 people are exposed."""
    rounded = read_perturbation("random-rounding:3")
    risk, people = 2 / 3 * 5 / 6, 20 * 5 * 2 / 3
    assert find_breaches(bent, rounded, max_risk=risk + 1e-9, max_people=people + 1e-7) == []
    assert find_breaches(bent, rounded, max_risk=0.1, max_people=1, margin=0.1) == [
        "a risk of at most 10% (local risk, tight, by records); it is 55.56%",
        "a risk at most 10% above blind noise; a perturbation has no noise that could drown the counts, and so no "
        "chance level",
        "at most 1 person revealed on average (local risk, tight, by records); it is 66.67",
    ]
    assert len(find_breaches(bent, rounded, max_risk=risk - 1e-9)) == 1
    assert len(find_breaches(bent, rounded, max_people=people - 1e-7)) == 1
    (line,) = find_breaches(bent, rounded, RiskDefinition(attack="plurality"), max_risk=1.0)
    assert "homogeneity attack alone" in line


def test_the_limit_that_allows_least_is_named(bent: cr.FrequencyTable) -> None:
    """The risk falls below 15% beyond both: a ceiling of 0.7 is reached at ln(7/3), the limit on epsilon at 0.5."""
    choice = cr.choose(bent, max_risk=0.15, form="exact", max_epsilon=0.5, max_ceiling=0.7)
    asked = cr.choose(bent, max_risk=0.15, form="exact").admissible[0][0]
    assert asked > np.log(7.0 / 3.0)
    assert choice.epsilon is None
    assert "the limit on epsilon allows up to 0.5" in choice.why
    assert number_after("the limit on the risk asks for epsilon", choice.why) == pytest.approx(asked, rel=1e-3, abs=0)


def test_an_answer_says_which_limits_bind(bent: cr.FrequencyTable) -> None:
    """Five and one are never alone in the raw table, so that its own risk is 0."""
    loose = cr.choose(bent, max_risk=0.9, largest_epsilon=50.0).why
    assert number_after("no limit binds: even epsilon", loose) == near(50.0)
    assert "gives a risk of at most 90% (the risk without noise is 0%)" in loose
    looser = cr.choose(bent, max_ceiling=1.0).why
    assert "gives a worst case of at most 100%" in looser
    assert "the raw table" not in looser
    both = cr.choose(bent, max_risk=0.9, max_epsilon=0.5).why
    assert both.startswith("the limits allow epsilon from 0.001 to 0.5, where the limit on epsilon binds")
    assert "binds" not in cr.choose(bent, max_epsilon=0.5).why


def test_a_limit_that_the_smallest_epsilon_breaks(bent: cr.FrequencyTable) -> None:
    """Two values are told apart 1/(1 + e^-0.001) of the time at epsilon 0.001: 0.50001 is searched below that."""
    choice = cr.choose(bent, max_ceiling=0.50001)
    assert choice.exact_epsilon == pytest.approx(np.log(0.50001 / 0.49999), rel=1e-6, abs=0)
    assert choice.admissible == ((1e-6, choice.exact_epsilon),)
    choice = cr.choose(bent, max_ceiling=0.5 + 1e-8)
    assert (choice.epsilon, choice.admissible) == (None, ())
    assert "already at epsilon 1e-06, the worst case is" in choice.why
    told = choice.why.partition("the worst case is ")[2].removesuffix("%")
    assert float(told) == pytest.approx(100 / (1 + np.exp(-1e-6)), abs=1e-5)


def test_the_risk_is_that_of_the_attribute_with_the_highest() -> None:
    rows = [{"q": cell, "x": "ab"[place % 2], "y": "cd"[place == 0]} for cell in range(9) for place in range(6)]
    both = cr.tabulate(pd.DataFrame(rows), "q", ["x", "y"])
    choice = cr.choose(both, max_risk=0.9, max_epsilon=1.0)
    found = cr.assess(both, cr.Geometric(epsilon=1.0), measures="local").to_frame()
    tight = found[(found["form"] == "tight") & (found["weights"] == "records")]["risk"]
    assert tight.min() < tight.max()
    assert choice.risk == near(tight.max())
    (line,) = find_breaches(both, read_perturbation("random-rounding:3"), max_risk=0.5)
    assert "it is 55.56%" in line  # of y; three and three are never shown alone
    (line,) = find_breaches(both, cr.Geometric(epsilon=1.0), max_risk=0.01)
    assert line.endswith(f"it is {100 * tight.max():.4g}%")


def test_what_a_mechanism_breaks(bent: cr.FrequencyTable) -> None:
    """By what `assess` says of the same table; at the limit itself nothing is broken."""
    at, exact = cr.Geometric(epsilon=0.2), RiskDefinition(form="exact")
    risk, tight = (risk_at(bent, 0.2, "local", form, "records") for form in ("exact", "tight"))
    chance = exact.of(bent.attributes).limits(make_mechanism("geometric", epsilon=1e-3))[0].chance
    assert risk > chance + 1e-3
    (told,) = find_breaches(bent, at, exact, max_risk=0.1)
    assert told == f"a risk of at most 10% (local risk, exact, by records); it is {100 * risk:.4g}%"
    for name, edge in (("max_risk", risk), ("margin", risk - chance), ("max_people", tight * bent.n_records)):
        for beyond, broken in ((1e-9, 0), (-1e-9, 1)):
            assert len(find_breaches(bent, at, exact, **{name: edge * (1 + beyond)})) == broken
