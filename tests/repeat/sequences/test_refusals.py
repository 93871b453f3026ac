"""What cannot be answered along a sequence is refused in one line with the fix; and how results look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences import RiskSequence, Step, assess_sequence
from cellrisk.show.pictures import draw_sequence
from tests.near import near
from tests.refusals import refused
from tests.repeat.sequences.people import make_people, make_steps, tabulate, tell

LAPLACE = cr.Laplace(epsilon=0.5)
ANALYTIC = cr.AnalyticGaussian(epsilon=0.5, delta=1e-3)
CLASSICAL = cr.Gaussian(epsilon=0.6, delta=1e-3)
DISCRETE = cr.DiscreteGaussian(epsilon=0.5, delta=1e-3)
UNKNOWN = Loss.approximate(0.5, 1e-3)
PURE_UNKNOWN = Loss.pure(0.5)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return tabulate(make_people())


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


def test_a_step_keeps_its_loss() -> None:
    step = Step(LAPLACE, "job", "sex")
    assert (step.loss, step.attribute, step.quasi_identifiers) == (Loss.of(LAPLACE), "job", ("sex",))
    assert Step(Loss.of(LAPLACE), "job", ["sex"]) == step
    assert Step(LAPLACE).describe() == "counts of the groups at 0.5-DP"


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
