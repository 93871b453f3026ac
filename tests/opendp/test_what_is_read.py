"""Objects of OpenDP read step by step: queries over frames as they describe themselves, and what is refused of them.

Queries over frames run with the Polars that OpenDP asks for (`test_from_opendp.py` starts them). Here a query has a
real measurement, with its privacy map, and the description and the plan that such a query gives.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import opendp.prelude as dp
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import zcdp_log_delta
from tests.near import near
from tests.opendp.test_from_opendp import MARGINAL, contingency_table, count_labels, on_counts
from tests.test_mechanisms import gaussian_delta

DECLARED = """LEFT JOIN:
LEFT PLAN ON: [col("age"), col("sick")]
  DF ["age", "sick"]
RIGHT PLAN ON: [col("age"), col("sick")]
  AGGREGATE
    [len()] BY [col("age"), col("sick")]
    FROM
    DF ["age", "sick"]
END LEFT JOIN"""
TOTAL = 'SELECT [len()]\n  DF ["age"]'
LAPLACE = {"aggregate": "Frame Length", "distribution": "Integer Laplace", "scale": 2.0}


@pytest.fixture(autouse=True)
def _features() -> None:
    dp.enable_features("contrib")


class LazyFrameQuery:
    """What is read of OpenDP's query of this name."""

    def __init__(self, measurement: Any, plan: str = DECLARED, unit: Any = 1) -> None:
        self.measurement = measurement
        self._query = SimpleNamespace(_d_in=unit)
        self.polars_plan = SimpleNamespace(explain=lambda *, optimized: "" if optimized else plan)

    def resolve(self) -> Any:
        if self.measurement is None:
            raise RuntimeError("the plan holds secret")
        return self.measurement


LazyFrameQuery.__module__ = "opendp.extras.polars"


def frame(monkeypatch: pytest.MonkeyPatch, *rows: dict[str, Any], **more: Any) -> LazyFrameQuery:
    """A query that describes itself by these rows; nothing describes one without rows."""

    def summarize(measurement: Any) -> Any:
        if not rows:
            raise RuntimeError("the plan holds secret")
        assert measurement is query.measurement
        return SimpleNamespace(to_dicts=lambda: list(rows))

    monkeypatch.setattr("opendp.accuracy.summarize_polars_measurement", summarize)
    query = LazyFrameQuery(**{"measurement": count_labels() >> dp.m.then_laplace(scale=2.0), **more})
    return query


@pytest.mark.parametrize("aggregate", ["Frame Length", "Length"])
@pytest.mark.parametrize("threshold", [{}, {"threshold": None}, {"threshold": math.nan}])
@pytest.mark.parametrize("plan", [DECLARED, TOTAL])
def test_a_query_with_declared_keys(
    aggregate: str, threshold: dict[str, Any], plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = frame(monkeypatch, {**LAPLACE, "aggregate": aggregate, **threshold}, plan=plan)
    assert cr.from_opendp(query) == cr.Geometric(epsilon=0.5)


def test_a_query_with_little_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = count_labels() >> dp.m.then_laplace(scale=0.25)
    query = frame(monkeypatch, {**LAPLACE, "scale": 0.25}, measurement=measurement)
    assert cr.from_opendp(query) == cr.Geometric(epsilon=4.0)


def test_a_query_with_gaussian_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = count_labels(distance=dp.L2Distance["f64"]) >> dp.m.then_gaussian(scale=3.0)
    row = {**LAPLACE, "distribution": "Integer Gaussian", "scale": 3.0}
    found = cr.from_opendp(frame(monkeypatch, row, measurement=measurement), delta=1e-6)
    assert isinstance(found, cr.DiscreteGaussian)
    assert found.scale == near(3.0)


def test_a_query_that_publishes_keys_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars shows a key where its noisy count is above the threshold: 33 itself is not shown. No plan is looked at."""
    query = frame(monkeypatch, {**LAPLACE, "threshold": 33}, plan="AGGREGATE")
    with pytest.raises(InvalidInput, match="publishes the keys of the data above a threshold"):
        cr.from_opendp(query)
    assert cr.from_opendp(query, observed_keys=True) == cr.Geometric(epsilon=0.5, threshold=33.5)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "OpenDP does not describe the query: is it finished?; got RuntimeError"),
        (
            [LAPLACE, LAPLACE],
            "the query does not count records alone; got 2 aggregates: Frame Length, Frame Length; "
            "give the query of the counts: group_by(...).agg(dp.len())",
        ),
        (
            [{**LAPLACE, "aggregate": "Sum"}],
            "the query does not count records alone; got 1 aggregates: Sum; "
            "give the query of the counts: group_by(...).agg(dp.len())",
        ),
        (
            [{**LAPLACE, "distribution": "Float Laplace"}],
            "noise of this distribution is not known here; got Float Laplace",
        ),
        (
            [{**LAPLACE, "distribution": "Integer Cauchy"}],
            "noise of this distribution is not known here; got Integer Cauchy",
        ),
        ([{**LAPLACE, "scale": 0.0}], "the query adds no noise: a margin calls the counts themselves public"),
        ([{**LAPLACE, "scale": math.nan}], "the query adds no noise: a margin calls the counts themselves public"),
        (
            [{**LAPLACE, "scale": 3.0}],
            "by OpenDP's privacy map, one record does not move one count by one; "
            "got a loss of 0.5, where noise of scale 3 on such counts costs 0.333333",
        ),
    ],
)
def test_descriptions_that_are_refused(rows: list[dict[str, Any]], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput) as refusal:
        cr.from_opendp(frame(monkeypatch, *rows))
    assert str(refusal.value) == told


@pytest.mark.parametrize(
    "plan",
    [
        DECLARED.partition("\n")[2],  # no join
        DECLARED.replace("LEFT JOIN:", "INNER JOIN:", 1),
        DECLARED.replace("LEFT JOIN:", "RIGHT JOIN:", 1),  # which keeps the rows of the data
        DECLARED.replace(' ON: [col("age"), ', " ON: [", 1),  # keys of one column
        DECLARED.replace("    FROM", '    [len()] BY [col("age")]\n    FROM'),  # grouped twice
        DECLARED.replace("AGGREGATE", "DISTINCT"),
        "AGGREGATE\n  [len()]",  # in words that are not known
        "",
    ],
)
def test_plans_that_do_not_declare_every_key(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = frame(monkeypatch, LAPLACE, plan=plan)
    if not plan:
        assert cr.from_opendp(query).epsilon == near(0.5)  # nothing is grouped
        return
    with pytest.raises(InvalidInput) as refusal:
        cr.from_opendp(query)
    assert str(refusal.value) == (
        "the query publishes keys of the data as they are: a combination that nobody has is seen to be missing, "
        "without noise; declare every combination of all grouping columns, as the last step: with_keys(...)"
    )


@pytest.mark.parametrize("unit", [None, True, 1.0, "1"])
def test_a_privacy_unit_that_is_no_number_of_records(unit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "does not say how many records of a person it protects: its privacy unit is no whole number"
    with pytest.raises(InvalidInput, match=told):
        cr.from_opendp(frame(monkeypatch, LAPLACE, unit=unit))


@pytest.mark.parametrize("unit", [0, 2, 3])
def test_a_privacy_unit_of_other_than_one_record(unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match=f"got a privacy unit of {unit} records; count people"):
        cr.from_opendp(frame(monkeypatch, LAPLACE, unit=unit))


def test_other_queries_that_say_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match=r"makes no measurement of the query: is it finished\?; got RuntimeError$"):
        cr.from_opendp(frame(monkeypatch, LAPLACE, measurement=None))
    older = frame(monkeypatch, LAPLACE)
    del older._query
    with pytest.raises(InvalidInput, match=r"this version of OpenDP does not say .*; use opendp 0.14 to 0.16"):
        cr.from_opendp(older)


def named(kind: str, **fields: Any) -> Any:
    """An object of OpenDP of this kind, which says this."""
    return type(kind, (), {"__module__": "opendp.mod", **fields})()


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (None, "the measurement does not say how it was made; use opendp 0.14 to 0.16"),
        ({"__function__": "make_private_lazyframe"}, "a measurement on frames does not say its scale; give the query"),
        ({"__function__": "make_noise"}, "adds no Laplace or Gaussian noise to counts; got make_noise"),
        (
            {
                "__function__": "make_laplace_threshold",
                "__kwargs__": {"input_domain": "MapDomain(T=f64)", "scale": 1.0, "threshold": 9.0},
            },
            "a threshold on counts that are no whole numbers is not known here",
        ),
        (
            {
                "__function__": "make_chain_mt",
                "__kwargs__": {"transformation0": object(), "measurement1": None},
            },
            "the measurement counts no records before it adds noise; got None; one of make_count,",
        ),
    ],
)
def test_measurements_that_are_refused(made: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        cr.from_opendp(named("Measurement", __opendp_dict__=made), neighbours="replace")


def test_other_objects_that_are_refused() -> None:
    with pytest.raises(InvalidInput, match="does not say which marginals it will measure, nor with which noise"):
        cr.from_opendp(named("ContingencyTableQuery"))
    made = on_counts(dp.m.make_laplace, 2.0).__opendp_dict__
    for metric in ("EventDistance<i64>", "EventDistance(i64)"):
        with pytest.raises(InvalidInput, match=r"tables of this kind are not known here; got EventDistance$"):
            cr.from_opendp(named("Measurement", __opendp_dict__=made, input_metric=metric))


@pytest.mark.parametrize("given", [{"marginal": ["age"]}, {"mechanism": "geometric"}])
def test_what_belongs_to_a_contingency_table(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="alone; got Measurement; leave them out"):
        cr.from_opendp(on_counts(dp.m.make_laplace, 2.0), neighbours="replace", **given)


def test_words_for_neighbours_are_checked_wherever_they_are_given() -> None:
    for given, how in (
        (on_counts(dp.m.make_laplace, 2.0), {}),
        (count_labels() >> dp.m.then_laplace(scale=2.0), {}),
        (contingency_table([4.0, 0.0]), MARGINAL),
    ):
        with pytest.raises(UnknownName, match="unknown neighbours; got 'near'; allowed: add-remove, replace"):
            cr.from_opendp(given, **{**how, "neighbours": "near"})
    told = "got neighbours='replace', where it has 'add-remove'; leave neighbours out"
    with pytest.raises(InvalidInput, match=told):
        cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=2.0), neighbours="replace")
    assert cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=2.0), neighbours="add-remove").epsilon == near(0.5)


def test_a_record_that_is_changed_moves_two_counts() -> None:
    records = dp.vector_domain(dp.atom_domain(T="i32"), size=4), dp.change_one_distance()
    counted = dp.t.make_metric_unbounded(*records) >> dp.t.then_count_by_categories([1, 2], null_category=False)
    found = cr.from_opendp(counted >> dp.m.then_laplace(scale=4.0))
    assert found == cr.Geometric(epsilon=0.5, neighbours="replace")


@pytest.mark.parametrize("kind", ["i32", "i64", "u32", "u64"])
def test_counts_are_whole_numbers_of_any_kind(kind: str) -> None:
    found = cr.from_opendp(on_counts(dp.m.make_laplace, 2.0, kind), neighbours="add-remove")
    assert found == cr.Geometric(epsilon=0.5)


def test_wrappers_that_fix_no_delta_leave_it_to_be_given() -> None:
    measurement = on_counts(dp.m.make_gaussian, 3.0)
    wrapped = dp.c.make_zCDP_to_approxDP(measurement)
    plain = cr.from_opendp(measurement, neighbours="add-remove", delta=1e-6)
    assert cr.from_opendp(wrapped, neighbours="add-remove", delta=1e-6) == plain
    with pytest.raises(InvalidInput, match="Gaussian noise is stated at a delta, and none is known; give delta=1e-6"):
        cr.from_opendp(wrapped, neighbours="add-remove")
    fixed = dp.c.make_fix_delta(wrapped, delta=1e-7)
    with pytest.raises(InvalidInput, match="the measurement fixes another delta; got delta=1e-06; leave delta out"):
        cr.from_opendp(fixed, neighbours="add-remove", delta=1e-6)
    approximate = dp.c.make_approximate(on_counts(dp.m.make_laplace, 2.0))
    assert cr.from_opendp(approximate, neighbours="add-remove") == cr.Geometric(epsilon=0.5)


@pytest.mark.parametrize("epsilon", [1.4e-12, 3e-12, 0.8e-12, 1e-14])
def test_the_smallest_epsilon_that_is_told_apart_from_none(epsilon: float) -> None:
    """Noise so wide that a delta asks for next to no epsilon."""
    sigma = 1e11
    z, s = sigma * epsilon, 1 / sigma
    delta = s * (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / math.sqrt(2)) / 2)  # but for s^2
    measurement = on_counts(dp.m.make_gaussian, sigma, "f64")
    if epsilon > 1e-12:
        found = cr.from_opendp(measurement, neighbours="add-remove", delta=delta)
        assert found.epsilon == pytest.approx(epsilon, rel=1e-6, abs=0)
    else:
        with pytest.raises(InvalidInput, match=r"so much noise meets this delta at any epsilon; got scale 1e\+11 at"):
            cr.from_opendp(measurement, neighbours="add-remove", delta=delta)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_gaussian_noise_that_is_read_is_that_of_the_mechanism(neighbours: Any) -> None:
    for scale in (0.3, 2.0, 17.0):
        for kind in ("i64", "f64"):
            measurement = on_counts(dp.m.make_gaussian, scale, kind)
            found = cr.from_opendp(measurement, neighbours=neighbours, delta=1e-6)
            assert found.scale == pytest.approx(scale, rel=1e-9, abs=0)


@pytest.mark.parametrize("scale", [0.3, 2.0, 17.0])
def test_no_epsilon_is_told_smaller_than_the_noise_gives(scale: float) -> None:
    """At the epsilon that is told, the delta of the noise that was read is not above the one that it is told at."""
    whole = cr.from_opendp(on_counts(dp.m.make_gaussian, scale), neighbours="add-remove", delta=1e-6)
    assert zcdp_log_delta(0.5 / scale**2, whole.epsilon) <= math.log(1e-6)
    assert zcdp_log_delta(0.5 / scale**2, whole.epsilon * (1 - 1e-9)) > math.log(1e-6)
    real = cr.from_opendp(on_counts(dp.m.make_gaussian, scale, "f64"), neighbours="add-remove", delta=1e-6)
    assert gaussian_delta(scale, real.epsilon) <= 1e-6 < gaussian_delta(scale, real.epsilon * (1 - 1e-9))


def test_columns_of_a_marginal_that_were_found_in_the_data() -> None:
    table = contingency_table([4.0, 0.0], thresholds=("sick",))
    with pytest.raises(InvalidInput, match=r"has a delta of its own; got sick; declare them"):
        cr.from_opendp(table, **MARGINAL)
    elsewhere = contingency_table([4.0, 0.0], thresholds=("town",))
    assert cr.from_opendp(elsewhere, **MARGINAL).epsilon == near(math.sqrt(2.0) / 3.0)
    many = contingency_table([4.0, 0.0], [5.0, 1.0])
    with pytest.raises(InvalidInput, match="measured several times: together, they are no counts with one noise"):
        cr.from_opendp(many, **MARGINAL)
