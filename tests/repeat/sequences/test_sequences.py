"""Risk along a sequence and through growth of every kind, against a person-by-person oracle and against `assess`."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.counts.cells import Cells, Domain
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences import RiskSequence, Step, assess_sequence, largest_epsilon
from cellrisk.risk.measures import MEASURES
from cellrisk.show.pictures import draw_sequence
from tests.examples import examples
from tests.near import near
from tests.refusals import refused
from tests.repeat.sequences import oracle
from tests.repeat.sequences.people import QIDS, SENSITIVE, make_people, make_steps, tabulate, tell

SEQUENCES = {
    "the cells, then three attributes": "0.1 -; 0.4 job; 0.3 pay; 0.5 ill",
    "one attribute alone": "0.7 job",
    "the same attribute again": "0.2 job; 0.3 pay; 1.5 job; 0.1 pay",
    "new sensitive attributes": "0.5 job age; 0.5 pay age; 0.5 ill age",
    "a new quasi-identifier alone": "0.5 job age; 0.4 pay age; 0.3 - age town",
    "new quasi-identifiers, two times": "0.5 job sex; 0.4 - town; 0.3 - age",
    "an attribute and a quasi-identifier at once": "0.5 job sex; 0.4 pay sex town; 0.3 ill age sex town",
    "a quasi-identifier instead of another": "0.5 job sex; 0.4 pay town",
    "a release on fewer quasi-identifiers": "0.5 job; 0.4 pay sex",
    "nothing but cells": "0.5 - sex; 0.5 - town",
    "large epsilons, where risk falls": "0.01 job sex; 3 job sex; 20 job sex town",
}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return make_people()


@pytest.fixture(scope="module")
def table(people: pd.DataFrame) -> cr.FrequencyTable:
    return tabulate(people)


def check(found: RiskSequence, expected: list[dict[str, float | None]]) -> None:
    assert len(found.rows) == len(expected)
    for row, told in zip(found.rows, expected, strict=True):
        numbers = {**vars(row.overall), "uniform": row.uniform, "records": row.records, "cells": row.cells}
        numbers["epsilon"] = row.cumulative.epsilon
        assert {name for name, value in numbers.items() if value is None} == {
            name for name, value in told.items() if value is None
        }
        for name, value in told.items():
            assert value is None or numbers[name] == pytest.approx(value, rel=1e-12, abs=1e-15), name


@pytest.mark.parametrize("form", ["exact", "tight"])
@pytest.mark.parametrize("text", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_every_kind_of_growth_is_as_told_person_by_person(
    people: pd.DataFrame, table: cr.FrequencyTable, text: str, form: str
) -> None:
    told = tell(text)
    expected = oracle.follow(people.to_dict("records"), told, form)
    check(assess_sequence(table, make_steps(told), form=form), expected)


def test_a_new_cohort_is_assessed_apart_and_the_old_one_stays_as_it_was(people: pd.DataFrame) -> None:
    """Vertical growth, and mixed: the old cohort grows by an attribute, the new one has releases of its own."""
    new = make_people(40, seed=8)
    old_told, new_told = tell("0.5 job sex; 0.4 pay"), tell("0.3 job")
    check(assess_sequence(tabulate(people), make_steps(old_told)), oracle.follow(people.to_dict("records"), old_told))
    check(assess_sequence(tabulate(new), make_steps(new_told)), oracle.follow(new.to_dict("records"), new_told))


def test_growth_in_a_subset_is_the_subset_with_the_releases_of_all_and_its_own(people: pd.DataFrame) -> None:
    subset = people[people.town == "u"]
    told = tell("0.5 job age sex; 0.4 pay age sex")
    found = assess_sequence(tabulate(subset), make_steps(told))
    check(found, oracle.follow(subset.to_dict("records"), told))
    assert found.rows[-1].cumulative.epsilon == 0.9


@pytest.mark.parametrize("measure", MEASURES)
def test_one_attribute_is_what_assess_says_at_the_cumulative_epsilon(people: pd.DataFrame, measure: str) -> None:
    """In coarser cells too, where priors are fitted to those cells."""
    told = tell("0.3 - sex; 0.5 job sex town; 0.7 pay")
    found = assess_sequence(tabulate(people), make_steps(told), measure=measure, form="exact")
    for row, quasi, epsilon in zip(found.rows[1:], (("town", "sex"), QIDS), (0.8, 1.5), strict=True):
        alone = cr.assess(tabulate(people, quasi), cr.Laplace(epsilon=epsilon), measures=measure, forms="exact")
        for weights in ("uniform", "records"):
            expected = alone.value(measure, "exact", weights, row.attribute)
            assert getattr(row, weights) == pytest.approx(expected, rel=1e-11, abs=0)


@pytest.mark.parametrize(
    "mechanism",
    [
        cr.Gaussian(epsilon=0.5, delta=0.01),
        cr.ProbabilisticGaussian(epsilon=0.5, delta=0.01),
        cr.AnalyticGaussian(epsilon=0.5, delta=0.01, threshold=2.5),
        cr.DiscreteGaussian(epsilon=0.5, delta=0.01),
        cr.Geometric(epsilon=0.5, neighbours="replace"),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_the_first_release_is_assessed_in_the_very_noise_it_was_made_with(
    table: cr.FrequencyTable, mechanism: cr.Mechanism
) -> None:
    found = assess_sequence(table, [Step(mechanism, "job")])
    expected = cr.assess(table, mechanism, measures="local").value(sensitive="job")
    assert found.rows[0].overall.max_records == pytest.approx(expected, rel=1e-7, abs=0)
    assert found.rows[0].mechanism is not None
    assert found.rows[0].mechanism.threshold == mechanism.threshold
    assert found.rows[0].mechanism.neighbours == mechanism.neighbours


@pytest.mark.parametrize("kind", [cr.Gaussian, cr.AnalyticGaussian, cr.ProbabilisticGaussian, cr.DiscreteGaussian])
def test_gaussian_releases_are_assessed_in_the_noise_of_their_average(
    table: cr.FrequencyTable, kind: type[cr.Mechanism]
) -> None:
    """Four releases with the same noise are to an attacker as one with half of it, however delta is split."""
    mechanism = kind(epsilon=0.5, delta=0.001)
    found = assess_sequence(table, [Step(mechanism, "job")] * 4)
    assert found.rows[-1].mechanism is not None
    assert found.rows[-1].mechanism.scale == pytest.approx(mechanism.scale / 2, rel=1e-6, abs=0)


def test_the_cells_of_attributes_are_matched_by_their_keys(people: pd.DataFrame) -> None:
    """The order of records, counted rows and records left out for a missing value change nothing."""
    told = tell("0.4 job sex; 0.3 pay")
    expected = oracle.follow(people.to_dict("records"), told)
    counted = people.sample(frac=1.0, random_state=1).value_counts().reset_index()
    steps = make_steps(told)
    check(assess_sequence(cr.tabulate(counted, list(QIDS), list(SENSITIVE), count="count"), steps), expected)
    gaps = pd.concat([people, people.head(8)], ignore_index=True)
    gaps.loc[len(people) :, "pay"] = None
    gaps.loc[len(people) + 4 :, "town"] = None
    dropped = cr.tabulate(gaps, list(QIDS), list(SENSITIVE), missing="drop")
    assert dropped.dropped_records == 8
    check(assess_sequence(dropped, steps), expected)


def make_cells(name: str, labels: tuple[str, ...], counts: list[list[int]]) -> Cells:
    """Cells of one quasi-identifier, with a row of counts for each of its labels."""
    matrix = np.array(counts)
    cell, level = np.nonzero(matrix)
    codes = np.arange(len(labels))[:, None]
    return Cells(name, ("a", "b"), (Domain("sex", labels),), codes, cell, level, matrix[cell, level])


def test_a_cell_without_records_of_an_attribute_has_risk_zero_for_it() -> None:
    """Two attributes whose cells differ, with their labels in another order."""
    job, pay = make_cells("job", ("f", "m"), [[2, 0], [1, 3]]), make_cells("pay", ("x", "f"), [[4, 0], [2, 0]])
    people = pd.DataFrame({"sex": list("ffmmmm"), "job": list("aaabbb"), "pay": list("aaaaab")})
    made = cr.tabulate(people, "sex", ["job", "pay"])
    table = dataclasses.replace(
        made,
        attributes=tuple(
            dataclasses.replace(made.attribute(cells.sensitive), profiles=cells.profiles()) for cells in (job, pay)
        ),
        read_cells=lambda place: (job, pay)[place],
    )
    found = assess_sequence(table, [Step(cr.Laplace(epsilon=1.0), "job"), Step(cr.Laplace(epsilon=1.0), "pay")])
    risk = {
        key: oracle.cell_risk(dict(zip("ab", counts, strict=True)), "ab", epsilon, "tight")
        for key, counts, epsilon in (
            ("job f", (2, 0), 1.0),
            ("job m", (1, 3), 1.0),
            ("pay x", (4, 0), 2.0),
            ("pay f", (2, 0), 2.0),
        )
    }
    cells = [max(risk["job f"], risk["pay f"]), risk["job m"], risk["pay x"]]
    added = [risk["job f"] + risk["pay f"], risk["job m"], risk["pay x"]]
    last = found.rows[-1]
    assert last.cells == 3
    assert last.uniform == pytest.approx((risk["pay x"] + risk["pay f"]) / 2, rel=1e-12, abs=0)
    assert last.overall.max_uniform == pytest.approx(sum(cells) / 3, rel=1e-12, abs=0)
    assert last.overall.sum_records == pytest.approx(np.dot(added, [2, 4, 4]) / 10, rel=1e-12, abs=0)


def test_splitting_a_cell_of_low_risk_lowers_the_uniform_average_but_not_the_one_by_records() -> None:
    """One homogeneous cell, and one mixed cell that a new quasi-identifier splits into four mixed ones."""
    rows = [{"sex": "f", "town": "u", "job": "a"}] * 6
    rows += [{"sex": "m", "town": town, "job": job} for town in "uvwx" for job in "aaaaabbbbb"]
    table = cr.tabulate(pd.DataFrame(rows), ["sex", "town"], "job")
    found = assess_sequence(table, [Step(cr.Laplace(epsilon=1.0), "job", "sex"), Step(cr.Laplace(epsilon=0.5))])
    first, second = (row.overall for row in found.rows)
    assert second.max_uniform < 0.6 * first.max_uniform
    assert second.max_records >= first.max_records


@cache
def made_of(seed: int) -> cr.FrequencyTable:
    return tabulate(make_people(40, seed))


@settings(max_examples=examples(30), phases=(Phase.explicit, Phase.generate))
@given(
    seed=st.sampled_from([1, 2, 3]),
    steps=st.lists(
        st.tuples(
            st.floats(0.01, 8.0),
            st.sampled_from([None, *SENSITIVE]),
            st.lists(st.sampled_from(QIDS), min_size=1, max_size=3, unique=True),
        ),
        min_size=2,
        max_size=5,
    ),
)
def test_by_records_the_overall_risk_never_falls(seed: int, steps: list[tuple[float, str | None, list[str]]]) -> None:
    found = assess_sequence(made_of(seed), [Step(cr.Laplace(epsilon=each[0]), *each[1:]) for each in steps])
    for before, after in itertools.pairwise(found.rows):
        assert after.overall.max_records >= before.overall.max_records - 1e-14
        assert after.overall.sum_records >= before.overall.sum_records - 1e-14
        assert after.overall.max_records <= after.overall.sum_records + 1e-14
        if before.cells == after.cells:
            assert after.overall.max_uniform >= before.overall.max_uniform - 1e-14
    assert found.rows[-1].overall.max_records <= 1.0


ONE = {
    "laplace": cr.Laplace(epsilon=0.7),
    "geometric, a threshold": cr.Geometric(epsilon=1.0, threshold=2.5),
    "replace": cr.Geometric(epsilon=1.0, neighbours="replace"),
    "gaussian": cr.AnalyticGaussian(epsilon=0.8, delta=1e-3),
}


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
    assert "are exact: there is one release" in found.details


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
    assert "some attacker reaches it" in found.details
    several = assess_sequence(table, [Step(cr.Geometric(0.3), name) for name in ("pay", "job")])
    assert several.rows[-1].ceiling is not None
    assert not several.rows[-1].ceiling.exact
    assert "composed: an upper bound" in several.details


def test_a_loss_whose_noise_is_not_known_has_a_bound_or_a_reason(table: cr.FrequencyTable) -> None:
    known = Step(cr.Geometric(0.5), "pay")
    pure = assess_sequence(table, [known, Step(Loss.pure(0.5), "pay")])
    assert pure.rows[-1].ceiling is not None
    assert not pure.rows[-1].ceiling.exact
    steps = [known, Step(Loss.zcdp(0.1), "pay")]
    found = assess_sequence(table, steps, total_delta=1e-6)
    document = json.loads(json.dumps(found.to_dict()))["releases"][-1]
    assert 0.5 < document["ceiling"]["even_two"] < 1
    assert not document["ceiling"]["exact"]
    assert document["caused"]["cap"] == near(60 * document["ceiling"]["advantage"])


def test_the_largest_epsilon_ends_where_the_ceiling_of_all_does() -> None:
    past = [Loss.of(cr.Geometric(0.1)), Loss.of(cr.Laplace(0.3))]
    limit = compose_ceiling([*past, Loss.of(cr.Geometric(0.6))]).even_two
    found = largest_epsilon(past, max_ceiling=limit)
    assert found.binds
    assert found.epsilon == pytest.approx(0.6, rel=1e-5, abs=0)
    assert found.ceiling is not None
    assert found.ceiling.even_two <= limit
    assert found.to_dict()["before"]["even_two"] == near(compose_ceiling(past).even_two)  # type: ignore[index,call-overload]
    assert "raw data" not in str(found)
    loose = largest_epsilon([], max_ceiling=0.999, policy=cr.Policy(max_epsilon=1.0))
    assert (loose.epsilon, loose.binds) == (1.0, False)
    assert "Every epsilon of geometric noise up to 1 keeps" in loose.headline
    never = largest_epsilon([Loss.of(cr.Geometric(5.0))], max_ceiling=0.6)
    assert (never.epsilon, never.ceiling) == (None, None)
    assert "No epsilon of geometric noise keeps" in never.headline


@pytest.mark.parametrize("limit", [0.5, 1.0, "high"])
def test_bad_limits_are_refused(limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"max_ceiling must be a number above 0\.5"):
        largest_epsilon([], max_ceiling=limit)
    past = [Loss.of(cr.DiscreteGaussian(epsilon=1e-5, delta=1e-6))] * 2
    with pytest.raises(InvalidInput, match="no ceiling"):
        largest_epsilon(past, max_ceiling=0.8)


LAPLACE = cr.Laplace(epsilon=0.5)
ANALYTIC = cr.AnalyticGaussian(epsilon=0.5, delta=1e-3)
CLASSICAL = cr.Gaussian(epsilon=0.6, delta=1e-3)
DISCRETE = cr.DiscreteGaussian(epsilon=0.5, delta=1e-3)
UNKNOWN = Loss.approximate(0.5, 1e-3)
PURE_UNKNOWN = Loss.pure(0.5)


@pytest.fixture(scope="module")
def found(table: cr.FrequencyTable) -> RiskSequence:
    return assess_sequence(table, make_steps(tell("0.1 - sex; 0.4 job sex; 0.3 pay; 0.2 job")))


BAD_STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "no loss": ({"given": 0.5}, "a mechanism or a loss; got float"),
    "an attribute that is no name": ({"given": LAPLACE, "attribute": 3}, "must be a name; got int"),
    "no quasi-identifier": ({"given": LAPLACE, "quasi_identifiers": []}, "one at least; got 0 names"),
    "one named twice": ({"given": LAPLACE, "quasi_identifiers": ["a", "a"]}, "named once each"),
}


@pytest.mark.parametrize(("fields", "words"), BAD_STEPS.values(), ids=BAD_STEPS.keys())
def test_steps_are_checked_when_made(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Step(**fields)


REFUSED: dict[str, tuple[list[Any], str]] = {
    "a concentrated loss without a delta": ([Step(Loss.zcdp(0.1))], "no-delta"),
    "different neighbours": (
        [Step(LAPLACE), Step(cr.Laplace(epsilon=1.0, neighbours="replace"), "job")],
        "mixed-neighbours",
    ),
    "no release": ([], "no-steps"),
    "no step": ([LAPLACE], "no-step"),
    "people with several records": ([Step(cr.Geometric(0.5, unit=Unit(2)), "job")], "several-records"),
}


@pytest.mark.parametrize(("steps", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_in_one_line(table: cr.FrequencyTable, steps: list[Step], code: str) -> None:
    with refused(code) as refusal:
        assess_sequence(table, steps)
    assert "\n" not in str(refusal.value)


INSTEAD: dict[str, tuple[list[Any], dict[str, Any], type[cr.Mechanism]]] = {
    "pure noise after a delta": ([ANALYTIC, LAPLACE], {}, cr.AnalyticGaussian),
    "pure noise at a given delta": ([LAPLACE], {"total_delta": 1e-3, "method": "basic"}, cr.AnalyticGaussian),
    "pure noise": ([LAPLACE, cr.Geometric(0.2)], {}, cr.Geometric),
    "pure noise that is not known": ([cr.Laplace(0.2), Loss.pure(0.5)], {}, cr.Geometric),
    "classical gaussian from 1 on": ([CLASSICAL, CLASSICAL], {"method": "basic"}, cr.AnalyticGaussian),
    "discrete gaussians": ([DISCRETE, DISCRETE], {}, cr.DiscreteGaussian),
    "discrete gaussian after a loss that is not concentrated": ([UNKNOWN, DISCRETE], {}, cr.AnalyticGaussian),
    "a loss that is not known": ([UNKNOWN], {}, cr.AnalyticGaussian),
}


@pytest.mark.parametrize(("given", "how", "kind"), INSTEAD.values(), ids=INSTEAD.keys())
def test_a_loss_that_the_own_noise_cannot_have_is_assessed_in_another(
    table: cr.FrequencyTable, given: list[Any], how: dict[str, Any], kind: type[cr.Mechanism]
) -> None:
    found = assess_sequence(table, [Step(each, "job") for each in given], **how).rows[-1]
    assert type(found.mechanism) is kind
    if kind is not cr.DiscreteGaussian:
        assert found.mechanism.epsilon == near(found.cumulative.epsilon)


def test_a_release_of_cells_alone_needs_no_known_mechanism(table: cr.FrequencyTable) -> None:
    found = assess_sequence(table, [Step(PURE_UNKNOWN), Step(LAPLACE, "job")])
    assert found.rows[0].mechanism is None
    assert found.rows[1].cumulative.epsilon == 1.0


def test_noise_too_wide_for_its_delta_is_assessed_as_it_is(table: cr.FrequencyTable) -> None:
    wide = cr.AnalyticGaussian(epsilon=0.001, delta=1e-6)
    found = assess_sequence(table, [Step(wide, "job")], total_delta=0.2)
    assert found.rows[0].cumulative.epsilon == 0.0
    assert found.rows[0].mechanism is not None
    assert found.rows[0].mechanism.scale == pytest.approx(wide.scale, rel=1e-6, abs=0)


UNKNOWN_NAMES: dict[str, tuple[list[Step], dict[str, Any], str]] = {
    "attribute": ([Step(LAPLACE, "wealth")], {}, "no sensitive attribute 'wealth'"),
    "quasi-identifier": ([Step(LAPLACE, "job", "street")], {}, "no quasi-identifier 'street'; allowed: age, town, sex"),
    "method": ([Step(LAPLACE, "job")], {"method": "best"}, "unknown method"),
    "measure": ([Step(LAPLACE, "job")], {"measure": "global"}, "unknown measure"),
    "form": ([Step(LAPLACE, "job")], {"form": "loose"}, "unknown form"),
}


@pytest.mark.parametrize(("steps", "how", "words"), UNKNOWN_NAMES.values(), ids=UNKNOWN_NAMES.keys())
def test_unknown_names_are_refused(
    table: cr.FrequencyTable, steps: list[Step], how: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnknownName, match=words):
        assess_sequence(table, steps, **how)


def test_gaussian_noises_of_two_kinds_are_one_gaussian(table: cr.FrequencyTable) -> None:
    steps = [Step(kind(epsilon=0.5, delta=1e-6), "job") for kind in (cr.AnalyticGaussian, cr.ProbabilisticGaussian)]
    [*_, row] = assess_sequence(table, steps).rows
    assert row.mechanism is not None
    squares = sum(1 / step.loss.mechanism.scale**2 for step in steps if step.loss.mechanism is not None)
    assert row.mechanism.scale == pytest.approx(squares**-0.5, rel=1e-9, abs=0)


def test_a_sequence_prints_and_converts(found: RiskSequence) -> None:
    text = found.details
    assert text.startswith(
        "After 4 releases the cumulative loss is epsilon 1.\n"
        "The homogeneity attack reveals the attribute most at risk (one of 2) of fewer than 1 of 60 people "
    )
    assert "neither exact nor a bound" in text
    assert "not a probability" in text
    assert "not protected" in text
    assert [row.assessed for row in found.rows] == [(), ("job",), ("job", "pay"), ("job",)]
    document = json.loads(json.dumps(found.to_dict()))
    assert document["releases"][2]["cumulative"] == {
        "epsilon": 0.8,
        "delta": 0.0,
        "dp_definition": "pure",
        "method": "basic",
    }
    assert document["releases"][0]["risk"] is None
    frame = found.to_frame()
    assert len(frame) == 4 * 4 + 3 * 2 + 3 + 4 * 3
    ceilings = frame.query("kind == 'ceiling'").risk.tolist()
    assert ceilings == [row["ceiling"]["even_two"] for row in document["releases"]] == sorted(ceilings)
    last = frame.query("release == 4 and kind == 'max' and weights == 'records'").risk.item()
    assert last == found.rows[-1].overall.max_records


def test_the_picture_holds_the_numbers(found: RiskSequence, tmp_path: Path) -> None:
    figure = draw_sequence(found)
    across = [row.cumulative.epsilon for row in found.rows]
    [axes] = figure.axes
    for line, weights in zip(axes.lines, ("records", "uniform"), strict=False):
        assert np.array_equal(line.get_xdata(), across)
        assert np.asarray(line.get_ydata()).tolist() == [row.overall.value("max", weights) for row in found.rows]
    words = " ".join(text.get_text() for text in figure.texts)
    assert f"the overall risk is {100 * found.rows[-1].overall.max_records:.1f}%" in words
    path = found.plot(tmp_path / "risk.png")
    assert path.read_bytes().startswith(b"\x89PNG")
