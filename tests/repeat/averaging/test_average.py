"""`average`: against simulated averages, the two directions, the agreement for Gaussian noise, and what is said."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.averaging import average
from tests.near import near, same
from tests.tables import from_counts

CELLS = [[3, 0, 0], [2, 1, 0], [0, 1, 0], [5, 4, 1], [0, 6, 0], [1, 1, 0]]
MECHANISMS = {
    "laplace": cr.Laplace(epsilon=0.6),
    "gaussian": cr.Gaussian(epsilon=0.9, delta=0.05),
    "gaussian-pdp": cr.ProbabilisticGaussian(epsilon=0.8, delta=0.05),
    "gaussian-analytic": cr.AnalyticGaussian(epsilon=0.8, delta=0.05),
    "geometric": cr.Geometric(epsilon=0.6),
    "geometric, threshold": cr.Geometric(epsilon=0.6, threshold=1.5, neighbours="replace"),
    "discrete-gaussian": cr.DiscreteGaussian(epsilon=1.5, delta=0.05),
}


@pytest.mark.parametrize("number", [3, 4])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_agrees_with_simulated_averages(mechanism: cr.Mechanism, number: int) -> None:
    """15,000 times: so many releases are drawn, averaged, cut at the threshold and attacked. Within 4.5 errors."""
    times, generator = 15_000, np.random.default_rng(6)
    counts = np.array(CELLS, np.float64)
    averages = np.zeros((times, *counts.shape))
    for _ in range(number):
        averages += counts + mechanism.noise.sample(generator, averages.shape)
    shown = averages / number >= mechanism.threshold
    alone = shown & (shown.sum(axis=2, keepdims=True) == 1)
    exact = (alone & (counts > 0)).any(axis=2).mean(axis=1)
    tight = (alone * counts).sum(axis=(1, 2)) / counts.sum()
    found = average(from_counts(CELLS), mechanism, releases=number, measures="local")
    for values, form, weights in ((exact, "exact", "uniform"), (tight, "tight", "records")):
        error = values.std(ddof=1) / math.sqrt(times)
        assert abs(found.row(form=form, weights=weights).averaging - values.mean()) < 4.5 * error
    # One record less, under the same noise: who is read off with everybody, and not without oneself.
    less = (averages - number) / number >= mechanism.threshold
    caused = (alone & ~less) * counts
    values = caused.sum(axis=(1, 2)) / counts.sum()
    error = values.std(ddof=1) / math.sqrt(times)
    [told] = found.caused
    assert abs(told.averaging - values.mean()) < 4.5 * error


@pytest.mark.parametrize("name", ["gaussian", "gaussian-pdp", "gaussian-analytic"])
@pytest.mark.parametrize("number", [1, 4, 25])
@pytest.mark.parametrize("delta", [None, 0.04])
def test_gaussians_composed_exactly_agree_with_averaging(name: str, number: int, delta: float | None) -> None:
    """In every measure and form: the rule's noise has scale sigma/sqrt T, which is what averaging leaves."""
    mechanism = cr.mechanism(name, epsilon=0.5, delta=0.02)
    found = average(from_counts(CELLS), mechanism, releases=number, method="pld", total_delta=delta)
    rule = found.rule
    assert rule.mechanism is not None
    assert math.isclose(rule.mechanism.scale, mechanism.scale / math.sqrt(number), rel_tol=1e-11)
    assert {row.larger for row in found.rows} == {"equal"}
    assert "by pld composition" in found.details or number == 1
    assert ", which is the same." in " ".join(found.details.split())


@pytest.mark.parametrize("name", ["laplace", "geometric"])
@pytest.mark.parametrize(
    ("cell", "form", "larger"),
    [((3, 0), "tight", "rule"), ((3, 2), "exact", "averaging"), ((3, 2), "tight", "averaging")],
)
def test_each_can_be_the_larger(name: str, cell: tuple[int, ...], form: str, larger: str) -> None:
    """Ten releases at epsilon 0.1: a homogeneous cell for one direction, a heterogeneous one for the other."""
    found = average(from_counts([cell]), cr.mechanism(name, epsilon=0.1), releases=10, measures="local", forms=form)
    row = found.row(form=form)
    assert found.rule.epsilon == 1.0
    assert row.larger == larger
    assert abs(row.averaging - (row.rule or 0.0)) > 0.05
    word = "larger" if larger == "rule" else "smaller"
    assert f", which is {word}. It assumes noise of standard deviation " in " ".join(found.details.split())
    assert "with epsilon here" not in found.details


def test_one_release_has_nothing_to_average() -> None:
    mechanism = cr.Geometric(epsilon=0.7)
    found, assessed = average(from_counts(CELLS), mechanism, releases=1), cr.assess(from_counts(CELLS), mechanism)
    assert len(found.rows) == len(assessed.risks)
    for row, risk in zip(found.rows, assessed.risks, strict=True):
        assert math.isclose(row.one, risk.risk, rel_tol=1e-14)
        assert math.isclose(row.averaging, risk.risk, rel_tol=1e-11)
        assert row.larger == "equal"


def test_assess_of_several_releases_is_average() -> None:
    table, mechanism = from_counts(CELLS), cr.Geometric(epsilon=0.6)
    found = cr.assess(table, mechanism, releases=4, measures="local")
    assert same(found.to_dict(), average(table, mechanism, releases=4, measures="local").to_dict())
    assert found.value() == found.row().averaging < cr.assess(table, mechanism, releases=1).value(form="exact")
    with pytest.raises(InvalidInput, match="homogeneity attack alone"):
        cr.assess(table, mechanism, releases=4, attack="plurality")


@pytest.mark.slow
def test_many_releases_tend_to_the_raw_table() -> None:
    found = average(from_counts(CELLS), cr.Laplace(epsilon=0.5), releases=10_000)
    limits = cr.assess(from_counts(CELLS), cr.Laplace(epsilon=0.5)).limits
    for row, ends in zip(found.rows, limits, strict=True):
        assert math.isclose(row.averaging, ends.raw, abs_tol=1e-9)


def test_priors_are_those_of_assess() -> None:
    priors = cr.Priors([0.5, 1.5, 0.2], "negbin", zero_truncation=False)
    found = average(from_counts(CELLS), cr.Laplace(epsilon=0.5), releases=3, priors=priors)
    assessed = cr.assess(from_counts(CELLS), cr.Laplace(epsilon=0.5), priors=priors)
    assert [row.one for row in found.rows] == pytest.approx([risk.risk for risk in assessed.risks], rel=1e-12, abs=0)
    assert same(found.fitted["y"].to_dict(), assessed.fitted["y"].to_dict())


def test_losses_without_a_sum_have_no_rule_and_the_answer_says_so() -> None:
    analytic = cr.AnalyticGaussian(epsilon=0.5, delta=0.3)
    found = average(from_counts(CELLS), analytic, releases=4, measures="local")
    assert found.rule.mechanism is None
    assert "deltas of the losses add up to 1 or more" in found.rule.why
    assert (found.row().rule, found.row().larger) == (None, None)
    assert "has no answer: the deltas of the losses add up to 1 or more" in " ".join(found.details.split())
    assert found.to_dict()["risks"][0]["larger"] is None
    assert found.to_dict()["rule"]["mechanism"] is None
    assert average(from_counts(CELLS), analytic, releases=4, measures="local", total_delta=0.1).row().larger == "equal"
    classical = cr.Gaussian(epsilon=0.5, delta=0.01)  # holds below epsilon 1 only
    found = average(from_counts(CELLS), classical, releases=4, measures="local", method="basic")
    assert found.rule.mechanism == cr.AnalyticGaussian(epsilon=2.0, delta=0.04)


def test_output_is_tidy_and_says_whom_it_is_for() -> None:
    mechanism = cr.ProbabilisticGaussian(epsilon=0.5, delta=1e-3)
    found = average(from_counts(CELLS), mechanism, releases=5, measures=["local", "marginal_shrinkage"], forms="tight")
    frame = found.to_frame()
    assert list(frame.columns) == ["sensitive", "measure", "form", "weights", "attacker", "method", "risk"]
    assert len(frame) == 3 * 3 + 3 + 1
    assert sorted(frame.attacker.unique()) == ["any", "averaging", "one release", "rule"]
    document = json.loads(json.dumps(found.to_dict()))
    assert document["releases"] == 5
    assert document["rule"]["method"] == "pld"
    assert document["risks"][0]["larger"] == "equal"
    text = found.details
    assert "Internal: computed from the raw data" in text
    assert "rule, pld" in text
    assert "Dirichlet prior" in text
    assert found.row("marginal_shrinkage", weights=None) == found.row("marginal_shrinkage")


def test_bad_questions_are_refused() -> None:
    table, laplace = from_counts(CELLS), cr.Laplace(epsilon=0.5)
    for releases, what in ((0, "from 1 to 10,000"), (2.0, "whole number"), (10_001, "from 1 to 10,000")):
        with pytest.raises(InvalidInput, match=what):
            average(table, laplace, releases=releases)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="unknown method; got 'best'; allowed: tightest, basic"):
        average(table, laplace, releases=2, method="best")
    for delta in (1.0, -0.1, "small"):
        with pytest.raises(InvalidInput, match="total_delta must be a number from 0 to below 1"):
            average(table, laplace, releases=2, total_delta=delta)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="unknown measure"):
        average(table, laplace, releases=2, measures="global")
    with pytest.raises(InvalidInput, match="no epsilon was given for laplace"):
        average(table, "laplace", releases=2)
    with pytest.raises(InvalidInput, match="total_delta is the delta of all releases together"):
        average(table, laplace, releases=2, delta=0.1)
    found = average(table, laplace, releases=2, measures="local", forms="tight")
    with pytest.raises(UnknownName, match="that risk was not assessed"):
        found.row(form="exact")


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_the_figures_to_decide_by_of_one_release_are_those_of_assess(mechanism: cr.Mechanism) -> None:
    table = from_counts(CELLS)
    found = average(table, mechanism, releases=1, measures="local")
    [decision] = cr.assess(table, mechanism).to_dict()["decision"]
    [told] = json.loads(json.dumps(found.to_dict()))["decision"]
    for who in ("one", "averaging"):
        assert told["caused"][who]["people"] == pytest.approx(decision["caused"]["people"], rel=1e-9, abs=0)
        assert told["caused"][who]["share"] == pytest.approx(decision["caused"]["share"], rel=1e-9, abs=0)
    for name in ("even_two", "even", "labels"):
        assert told["ceiling"][name] == near(decision["ceiling"][name])


def test_caused_after_averaging_is_enumerated() -> None:
    """Two geometric noises: every pair of them, and the mean with a person less by one."""
    epsilon, counts = 1.0, [2, 1]
    a = math.exp(-epsilon)
    weight = {j: (1 - a) / (1 + a) * a ** abs(j) for j in range(-45, 46)}
    mean: dict[float, float] = {}
    for one, other in itertools.product(weight, repeat=2):
        mean[(one + other) / 2] = mean.get((one + other) / 2, 0.0) + weight[one] * weight[other]

    def gone(count: int) -> float:
        return sum(chance for noise, chance in mean.items() if count + noise < 0.5)

    expected = sum(counts[k] * (gone(counts[k] - 1) - gone(counts[k])) * gone(counts[1 - k]) * gone(0) for k in (0, 1))
    [told] = average(from_counts([[2, 1, 0]]), cr.Geometric(epsilon=epsilon), releases=2, measures="local").caused
    assert told.averaging * 3 == pytest.approx(expected, rel=1e-10, abs=0)


def test_the_ceiling_of_all_releases_is_said() -> None:
    found = average(from_counts(CELLS), cr.Geometric(epsilon=0.3), releases=4, measures="local")
    expected = compose_ceiling([Loss.of(cr.Geometric(epsilon=0.3))] * 4, labels=3)
    [told] = found.to_dict()["decision"]
    assert told["ceiling"]["even"] == near(expected.even)
    assert told["ceiling"]["even_two"] == near(expected.even_two)
    assert expected.headline in " ".join(str(found).split())
    frame = found.to_frame()
    assert frame.query("measure == 'ceiling'").risk.item() == near(expected.even_two)
    assert frame.query("measure == 'caused' and attacker == 'averaging'").risk.item() == near(found.caused[0].averaging)
