"""Risk along a sequence and through growth of every kind, against a person-by-person oracle and against `assess`."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.counts.cells import Cells, Domain
from cellrisk.repeat.sequences import RiskSequence, Step, assess_sequence
from cellrisk.risk.measures import MEASURES
from tests.examples import examples
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


def test_once_at_its_maximum_the_bounded_risk_stays_there() -> None:
    rows = [{"sex": sex, "job": "a", "pay": pay} for sex in "fm" for pay in "xxxxxyyyyy"]
    table = cr.tabulate(pd.DataFrame(rows), "sex", ["job", "pay"], levels={"job": ["a", "b"]})
    steps = [Step(cr.Laplace(epsilon=60.0), "job"), Step(cr.Laplace(epsilon=1.0), "pay"), Step(cr.Laplace(epsilon=1.0))]
    found = assess_sequence(table, steps)
    assert [row.overall.max_records for row in found.rows] == pytest.approx([1.0, 1.0, 1.0], abs=1e-12)
