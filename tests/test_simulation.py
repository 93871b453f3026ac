"""`simulate`: against closed forms and enumeration, and what it refuses. Seeds are fixed: no test is left to luck."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.assessment import CURATOR_NOTE
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.measures import MEASURES, Dirichlet, Shrinkage, Survival
from cellrisk.people import count_people
from cellrisk.profiles import Profiles
from cellrisk.simulation import Comparison, Difference, Estimate, Exposed, Scenario, Simulation, releases, simulate
from cellrisk.simulation.counts import CountLaw, draw_from_prior
from cellrisk.simulation.releases import apply_post

MECHANISMS = {
    "laplace": cr.Laplace(epsilon=0.8),
    "laplace, replace": cr.Laplace(epsilon=1.5, neighbours="replace"),
    "laplace, threshold": cr.Laplace(epsilon=1.0, threshold=2.5),
    "gaussian": cr.Gaussian(epsilon=0.9, delta=0.05),
    "gaussian-pdp": cr.ProbabilisticGaussian(epsilon=1.5, delta=0.05),
    "gaussian-analytic": cr.AnalyticGaussian(epsilon=1.0, delta=0.05),
    "geometric": cr.Geometric(epsilon=0.9),
    "discrete-gaussian": cr.DiscreteGaussian(epsilon=1.0, delta=0.05),
}
TWO = [[3, 0], [2, 1], [0, 1], [5, 4], [0, 6], [1, 1], [12, 1]]
THREE = [[4, 2, 1], [0, 5, 0], [1, 1, 0], [1, 0, 0], [0, 0, 9], [2, 0, 2]]
HOMOGENEOUS = [[3, 0], [0, 2], [1, 0], [0, 4]]


def make(cells: list[list[int]]) -> cr.FrequencyTable:
    """A table with one value of the quasi-identifier for each cell, and the levels a, b, c."""
    labels = "abc"[: len(cells[0])]
    rows = [
        {"cell": f"{place:04}", "y": label, "n": count}
        for place, counts in enumerate(cells)
        for label, count in zip(labels, counts, strict=True)
    ]
    return cr.tabulate(pd.DataFrame(rows), "cell", "y", levels={"y": list(labels)}, count="n")


def outcomes(counts: list[int], mechanism: cr.Mechanism, reach: int = 60) -> Any:
    """Every release of a cell with its probability, for integer noise: P(released = v) from the noise's cdf."""
    chances = []
    for count in counts:
        at = np.arange(1, reach)
        chance = mechanism.noise.cdf(at - count + 0.5) - mechanism.noise.cdf(at - count - 0.5)
        chance[at < mechanism.threshold] = 0.0  # these vanish
        chances.append([float(mechanism.noise.vanish(count, mechanism.threshold)), *chance])
    for released in itertools.product(range(reach), repeat=len(counts)):
        yield released, math.prod(chance[value] for chance, value in zip(chances, released, strict=True))


@pytest.mark.parametrize("cells", [TWO, THREE], ids=["K=2", "K=3"])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_agrees_with_every_closed_form(cells: list[list[int]], mechanism: cr.Mechanism) -> None:
    table, alpha = make(cells), [0.5, 1.5, 0.2][: len(cells[0])]
    found = simulate(table, mechanism, measures=tuple(MEASURES), releases=2500, seed=5, alpha=alpha)
    compared = found.compare(cr.assess(table, mechanism, alpha=alpha))
    assert len(compared.differences) == 4 * 2 * 2 + 2
    assert compared.largest_z < 4
    assert compared.agrees
    assert all(each.standard_error > 0 for each in compared.differences)


@pytest.mark.parametrize("mechanism", [cr.Laplace(epsilon=1.0), cr.AnalyticGaussian(epsilon=0.5, delta=0.001)])
def test_agrees_on_adult(adult: cr.FrequencyTable, mechanism: cr.Mechanism) -> None:
    found = simulate(adult, mechanism, measures=tuple(MEASURES), releases=150)
    assert found.compare(cr.assess(adult, mechanism)).largest_z < 4


@pytest.mark.parametrize(
    "settings",
    [
        {"sizes": "negbin"},
        {"zero_truncation": False},
        {"sizes": "negbin", "zero_truncation": False},
        {"alpha": "moments"},
        {"sizes_fit": "bayes"},
    ],
    ids=str,
)
def test_priors_are_those_of_assess(settings: dict[str, Any]) -> None:
    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    found = simulate(table, mechanism, measures=tuple(MEASURES), releases=3000, **settings)
    assessed = cr.assess(table, mechanism, **settings)
    assert found.compare(assessed).largest_z < 4
    assert found.fitted.to_dict() == assessed.fitted["y"].to_dict()


@pytest.mark.parametrize(
    ("cells", "boundary"), [(HOMOGENEOUS, "zero"), ([[2, 2]] * 5, "infinite")], ids=["zero", "infinite"]
)
def test_priors_at_their_limits(cells: list[list[int]], boundary: str) -> None:
    table, mechanism = make(cells), cr.Laplace(epsilon=1.0)
    found = simulate(table, mechanism, measures=["shrinkage", "marginal_shrinkage"], releases=3000)
    assert found.fitted.prior is not None
    assert found.fitted.prior.boundary == boundary
    assert found.compare(cr.assess(table, mechanism)).largest_z < 4


@pytest.mark.parametrize(
    "prior",
    [
        Dirichlet((0.2, 0.5, 0.3), 1e-7, "mle"),
        Dirichlet((0.2, 0.5, 0.3), 0.05, "mle"),
        Dirichlet((0.2, 0.8, 0.0), 3.0, "mle"),
        Dirichlet((0.2, 0.5, 0.3), 1e12, "mle"),
    ],
    ids=lambda prior: f"{prior.concentration:g}",
)
def test_counts_from_a_prior(prior: Dirichlet) -> None:
    sizes = np.full((1, 100_000), 6)
    counts = draw_from_prior(prior, sizes, np.random.default_rng(3))
    assert (counts.sum(axis=0) == sizes).all()
    assert counts.mean(axis=(1, 2)) / 6 == pytest.approx(prior.mean, abs=4 * 0.5 / math.sqrt(100_000))
    noise = cr.Laplace(epsilon=1.0).noise
    released = counts + noise.sample(np.random.default_rng(4), counts.shape) > 0.5
    alone = (released.sum(axis=0) == 1) & ((released * counts).sum(axis=0) > 0)
    closed = Shrinkage(prior).average(Profiles.from_cells([[6, 0, 0]], 3), Survival((noise,)), ("exact",))
    error = alone.std() / math.sqrt(alone.size)
    assert abs(alone.mean() - closed["exact", "uniform"][0]) < 4 * error


def test_many_seeds_spread_as_standard_errors_say() -> None:
    """Over 60 seeds, z-scores of one number have mean near 0 and deviation near 1."""
    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    assessed = cr.assess(table, mechanism, measures="local", forms="tight", weights="records")
    z = [simulate(table, mechanism, releases=200, seed=seed).compare(assessed).differences[0].z for seed in range(60)]
    assert abs(np.mean(z)) < 4 / math.sqrt(60)
    assert 0.7 < np.std(z) < 1.35


@pytest.mark.parametrize("cells", [TWO, THREE], ids=["K=2", "K=3"])
@pytest.mark.parametrize(
    "mechanism", [cr.Laplace(epsilon=0.8), cr.Geometric(epsilon=2.0)], ids=["laplace", "geometric"]
)
def test_people(cells: list[list[int]], mechanism: cr.Mechanism) -> None:
    table = make(cells)
    found, exact = simulate(table, mechanism, releases=5000), count_people(table.profiles(), mechanism)
    assert abs(found.people.mean - exact.mean) < 4 * found.people.standard_error
    assert found.people.deviation == pytest.approx(exact.deviation, rel=4 / math.sqrt(2 * 5000))
    assert abs(found.people.low - exact.low) <= 1
    assert abs(found.people.high - exact.high) <= 1
    assert found.people.mean / table.n_records == pytest.approx(found.value().mean, rel=1e-12)


def test_people_of_adult(adult: cr.FrequencyTable) -> None:
    mechanism = cr.Laplace(epsilon=1.0)
    found, exact = simulate(adult, mechanism, releases=500), count_people(adult.profiles(), mechanism)
    assert abs(found.people.mean - exact.mean) < 4 * found.people.standard_error
    assert found.people.deviation == pytest.approx(exact.deviation, rel=4 / math.sqrt(2 * 500))


@pytest.mark.parametrize("cells", [[[3, 0], [2, 1], [0, 1]], THREE], ids=["K=2", "K=3"])
def test_scenarios_against_enumeration(cells: list[list[int]]) -> None:
    """Each cell's outcomes by which labels survive, sorted into the eight cases by hand."""
    mechanism = cr.Laplace(epsilon=0.9)
    expected = dict.fromkeys(range(1, 9), 0.0)
    for counts in cells:
        survive = [float(mechanism.noise.survive(count)) for count in counts]
        present = {place for place, count in enumerate(counts) if count}
        for pattern in itertools.product((False, True), repeat=len(counts)):
            chance = math.prod(s if up else 1 - s for s, up in zip(survive, pattern, strict=True))
            shown = {place for place, up in enumerate(pattern) if up}
            if len(present) == 1:
                number = {0: 4, 1: 1 if shown == present else 2}.get(len(shown), 3)
            else:
                number = {0: 6, 1: 8 if shown <= present else 7}.get(len(shown), 5)
            expected[number] += chance / len(cells)
    found = simulate(make(cells), mechanism, releases=5000)
    assert math.fsum(each.share for each in found.scenarios) == pytest.approx(1, abs=1e-12)
    for each in found.scenarios:
        assert abs(each.share - expected[each.number]) <= 4 * each.standard_error, each.number
    exposing = math.fsum(each.share for each in found.scenarios if each.exposes)
    assert exposing == pytest.approx(found.value(form="exact", weights="uniform").mean, rel=1e-12)


@pytest.mark.parametrize("mechanism", [cr.Geometric(epsilon=0.9), cr.Geometric(epsilon=1.2, threshold=1.5)])
def test_other_attacks_against_enumeration(mechanism: cr.Mechanism) -> None:
    cells = [[3, 1], [2, 2], [0, 4]]
    named: dict[str, list[float]] = {"plurality": [], "proportional": []}
    for counts in cells:
        plurality = proportional = 0.0
        for released, chance in outcomes(counts, mechanism):
            if sum(released):
                tied = [count for count, value in zip(counts, released, strict=True) if value == max(released)]
                plurality += chance * sum(tied) / len(tied)
                proportional += chance * float(np.dot(counts, released)) / sum(released)
        named["plurality"].append(plurality)
        named["proportional"].append(proportional)
    found = simulate(make(cells), mechanism, releases=8000)
    for attack, records in named.items():
        by_cell = np.array(records) / [sum(counts) for counts in cells]
        for weights, exact in (("uniform", by_cell.mean()), ("records", sum(records) / np.sum(cells))):
            estimate = found.value(attack=attack, weights=weights)
            assert abs(estimate.mean - exact) < 4 * estimate.standard_error, (attack, weights)


def same(first: Simulation, second: Simulation) -> bool:
    return first.estimates == second.estimates and bool((first.exposed == second.exposed).all())


def test_same_seed_same_numbers() -> None:
    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    first = simulate(table, mechanism, measures=tuple(MEASURES), releases=50, seed=3)
    assert same(first, simulate(make(THREE), mechanism, measures=tuple(MEASURES), releases=50, seed=3))
    assert not same(first, simulate(table, mechanism, measures=tuple(MEASURES), releases=50, seed=4))
    alone = simulate(table, mechanism, measures="marginal", releases=50, seed=3)
    assert alone.value("marginal") == first.value("marginal")
    assert alone.value() == first.value()


def test_post_that_does_nothing() -> None:
    table, mechanism = make(THREE), cr.Geometric(epsilon=1.0)
    plain = simulate(table, mechanism, measures=["local", "expected"], releases=60)
    processed = simulate(table, mechanism, measures=["local", "expected"], releases=60, post=lambda counts: counts)
    assert same(plain, processed)
    assert processed.post_processed
    assert "post-processed releases" in processed.headline


def test_post_that_leaves_nothing() -> None:
    found = simulate(make(TWO), cr.Laplace(epsilon=1.0), measures=tuple(MEASURES), releases=20, post=np.zeros_like)
    assert {(each.mean, each.standard_error) for each in found.estimates} == {(0.0, 0.0)}
    assert found.people == Exposed(0.0, 0.0, 0.0, 0, 0)
    assert {each.number for each in found.scenarios if each.share > 0} == {4, 6}


def test_post_that_suppresses_is_a_threshold() -> None:
    table = make(THREE)
    suppressed = simulate(
        table, cr.Laplace(epsilon=1.0), releases=40, post=lambda counts: np.where(counts > 2.5, counts, 0)
    )
    assert same(suppressed, simulate(table, cr.Laplace(epsilon=1.0, threshold=2.5), releases=40))


def test_post_sees_cells_and_levels_in_order() -> None:
    seen = []

    def keep(counts: Any) -> Any:
        seen.append(counts.copy())
        return counts

    simulate(make(THREE), cr.Laplace(epsilon=50.0), releases=2, post=keep)
    assert seen[0].tolist() == [THREE, THREE]
    assert seen[0].dtype == np.float64


def test_tables_too_large_to_draw_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells in pieces, one release at a time: other draws, the same law, and whole releases for post."""
    monkeypatch.setattr(releases, "COUNTS_AT_ONCE", 12)
    shapes = set()

    def look(counts: Any) -> Any:
        shapes.add(counts.shape)
        return counts

    table, mechanism = make(THREE), cr.Laplace(epsilon=1.0)
    found = simulate(table, mechanism, measures=["local", "expected"], releases=400)
    assert found.compare(cr.assess(table, mechanism, measures=["local", "expected"])).largest_z < 4
    assert same(found, simulate(table, mechanism, measures=["local", "expected"], releases=400, post=look))
    assert shapes == {(1, 6, 3)}


def test_compare_finds_a_planted_error(adult: cr.FrequencyTable) -> None:
    found = simulate(adult, cr.Laplace(epsilon=1.0), releases=100)
    compared = found.compare(cr.assess(adult, cr.Laplace(epsilon=1.1), measures="local"))
    assert compared.largest_z > 8
    assert not compared.agrees
    assert "which chance does not explain" in str(compared)


def test_compare_shows_every_number() -> None:
    table, mechanism = make(TWO), cr.Laplace(epsilon=1.0)
    compared = simulate(table, mechanism, releases=500).compare(cr.assess(table, mechanism))
    frame = compared.to_frame()
    assert list(frame.columns) == [
        *("measure", "attack", "form", "weights", "assessed", "simulated", "standard_error", "z"),
    ]
    assert len(frame) == 4
    assert frame["z"].abs().max() == compared.largest_z
    assert json.loads(json.dumps(compared.to_dict(), allow_nan=False))["agrees"] is True
    assert str(compared).endswith(CURATOR_NOTE)
    assert compared.headline.startswith("The 4 assessed numbers are at most ")


def test_releases_that_do_not_vary() -> None:
    """Little noise: every release shows the same, and risks of 1 or a hair below are no contradiction."""
    table, mechanism = make(HOMOGENEOUS), cr.Laplace(epsilon=60.0)
    found = simulate(table, mechanism, releases=50)
    assert found.value() == Estimate("local", "homogeneity", "tight", "records", 1.0, 0.0)
    assert found.compare(cr.assess(table, mechanism, measures="local")).largest_z < 0.01
    assert found.compare(cr.assess(table, cr.Laplace(epsilon=1.0), measures="local")).largest_z > 4


@pytest.mark.parametrize(
    ("assessed", "simulated", "error", "z"),
    [
        (0.5, 0.4, 0.05, 2.0),
        (0.4, 0.5, 0.05, -2.0),
        (0.5, 0.0, 0.0, 10.0),
        (1e-20, 0.0, 0.0, 0.0),
        (0.0, 0.5, 0.0, -math.inf),
        (1.0, 1.0, 0.0, 0.0),
    ],
)
def test_z(assessed: float, simulated: float, error: float, z: float) -> None:
    difference = Difference("local", "homogeneity", "tight", "records", assessed, simulated, error, 100)
    assert difference.z == pytest.approx(z)
    if math.isinf(z):
        assert Comparison((difference,), 100).to_dict()["largest_z"] is None


def test_compare_refuses() -> None:
    table, mechanism = make(TWO), cr.Laplace(epsilon=1.0)
    found = simulate(table, mechanism, releases=5)
    with pytest.raises(InvalidInput, match="another table"):
        found.compare(cr.assess(make(HOMOGENEOUS), mechanism))
    with pytest.raises(InvalidInput, match="no number in common"):
        found.compare(cr.assess(table, mechanism, forms="published"))
    with pytest.raises(InvalidInput, match="needs an assessment; got dict"):
        found.compare({})  # type: ignore[arg-type]


def test_output() -> None:
    found = simulate(make(THREE), cr.AnalyticGaussian(epsilon=1.0, delta=0.05), measures=tuple(MEASURES), releases=30)
    frame = found.to_frame()
    assert list(frame.columns) == ["sensitive", "measure", "attack", "form", "weights", "mean", "standard_error"]
    assert len(frame) == 8 + 3 * 4 + 2
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [each["number"] for each in document["scenarios"] if each["exposes"]] == [1, 8]
    assert document["people"]["mean"] == found.people.mean
    assert set(document["fitted"]) == {"alpha", "sizes"}
    assert (document["releases"], document["seed"], document["post_processed"]) == (30, 0, False)
    text = str(found)
    assert text.startswith("At epsilon 1 and delta 0.05, 30 simulated releases let ")
    assert text.endswith(CURATOR_NOTE)
    assert "a label alone that is not in it" in text
    assert found.value("marginal_shrinkage", weights="uniform") == found.value("marginal_shrinkage", weights=None)


def test_one_of_several_attributes() -> None:
    frame = pd.DataFrame({"cell": [0, 0, 1, 1], "y": list("aaab"), "z": list("cdcd")})
    table, mechanism = cr.tabulate(frame, "cell", ["y", "z"]), cr.Laplace(epsilon=1.0)
    with pytest.raises(InvalidInput, match="several sensitive attributes"):
        simulate(table, mechanism, releases=5)
    found = simulate(table, mechanism, releases=2000, sensitive="z")
    compared = found.compare(cr.assess(table, mechanism))
    assert len(compared.differences) == 4
    assert compared.agrees


def test_progress_reaches_the_end() -> None:
    told: list[float] = []
    simulate(make(TWO), cr.Laplace(epsilon=1.0), measures=["local", "marginal"], releases=10, progress=told.append)
    assert told[-1] == 1.0
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"releases": 1}, "releases must be a whole number from 2 on; got 1"),
        ({"releases": 10.0}, "releases must be a whole number; got float"),
        ({"releases": True}, "releases must be a whole number; got bool"),
        ({"seed": -1}, "seed must be a whole number from 0 on; got -1"),
        ({"seed": None}, "seed must be a whole number; got NoneType"),
        ({"measures": "global"}, "unknown measure; got 'global'; allowed: local, expected"),
        ({"measures": []}, "no measure was chosen"),
        ({"post": 3}, "post must be a function; got int"),
        ({"sensitive": "nothing"}, "no sensitive attribute 'nothing'"),
        ({"mechanism": "laplace"}, "simulate needs a mechanism; got str"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refuses(settings: dict[str, Any], message: str) -> None:
    given = {"mechanism": cr.Laplace(epsilon=1.0), "releases": 5, **settings}
    with pytest.raises((InvalidInput, UnknownName)) as refusal:
        simulate(make(TWO), **given)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("post", "message"),
    [
        (lambda counts: counts[:, 1:], r"of the shape it was given.*got \(5, 6, 2\); allowed: \(5, 7, 2\)"),
        (lambda counts: counts - 1e6, "finite and not negative; got 70 of 70 that are not"),
        (lambda counts: counts * np.nan, "finite and not negative; got 70 of 70"),
        (lambda counts: counts + np.inf, "finite and not negative; got 70 of 70"),
        (lambda counts: None, "post must return numbers; got an array of type object"),
        (lambda counts: counts.astype(str), "post must return numbers"),
        (lambda counts: [[1], [1, 2]], "post must return an array; got list"),
    ],
)
def test_refuses_what_post_returns(post: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulate(make(TWO), cr.Laplace(epsilon=1.0), releases=5, post=post)


def test_whole_numbers_from_post_will_do() -> None:
    assert apply_post(lambda counts: counts.astype(np.int64), np.array([[[2.0, 1.0]]])).dtype == np.float64


def test_values_that_were_not_simulated() -> None:
    found = simulate(make(TWO), cr.Laplace(epsilon=1.0), releases=5)
    for asked in ({"measure": "expected"}, {"form": "exact", "attack": "plurality"}):
        with pytest.raises(UnknownName, match="that risk was not simulated"):
            found.value(**asked)
    for asked in ({"measure": "x"}, {"form": "published"}, {"attack": "x"}, {"weights": "x"}):
        with pytest.raises(UnknownName, match="unknown "):
            found.value(**asked)


def test_parts_refuse_what_does_not_fit() -> None:
    found = simulate(make(TWO), cr.Laplace(epsilon=1.0), releases=5)
    fields = {**vars(found)}
    fields.pop("people", None)
    with pytest.raises(InvalidInput, match="a number of people for each release"):
        Simulation(**{**fields, "exposed": found.exposed[:2]})
    with pytest.raises(InvalidInput, match="all eight"):
        Simulation(**{**fields, "scenarios": found.scenarios[:7]})
    with pytest.raises(InvalidInput, match="must add up to 1"):
        Simulation(**{**fields, "scenarios": tuple(Scenario(number, 0.1, 0.0) for number in range(1, 9))})
    with pytest.raises(InvalidInput, match="no such scenario"):
        Scenario(9, 0.1, 0.0)
    with pytest.raises(InvalidInput, match="a share from 0 to 1"):
        Scenario(1, 1.1, 0.0)
    with pytest.raises(UnknownName, match="unknown measure"):
        CountLaw("global", None, None)
    for measure in ("shrinkage", "marginal"):
        with pytest.raises(InvalidInput, match="needs a prior"):
            CountLaw(measure, None, None)
